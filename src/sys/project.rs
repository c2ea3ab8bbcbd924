//! Finds the top of a directory's git project.
//!
//! Invariant: this never waits for a file server. It examines no directory below a mount of a network file system or of
//! one in user space, or behind a symbolic link.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat2};

/// The most examined ancestors.
const DEPTH_MAX: usize = 64;

/// The innermost directory at or above `dir` with a `.git`. `None` if there is none, or if a look might wait.
#[must_use]
pub fn top(dir: &Path) -> Option<PathBuf> {
    if !dir.is_absolute() || may_wait(dir, &fs::read_to_string("/proc/self/mountinfo").ok()?) {
        return None;
    }
    let has_git = |above: &&Path| open_itself(&above.join(".git")).is_ok();
    dir.ancestors().take(DEPTH_MAX).find(has_git).map(Path::to_owned)
}

/// Opens what stands at an absolute path that has no links, to look at it.
pub(super) fn open_itself(path: &Path) -> io::Result<OwnedFd> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how).map_err(super::io)
}

/// Returns true if a file system on the way to this directory may take forever. `mounts` is proc_pid_mountinfo(5).
pub(super) fn may_wait(dir: &Path, mounts: &str) -> bool {
    mounts.lines().any(|mount| {
        let mut fields = mount.split(' ');
        let (place, kind) = (fields.nth(4), mount.split(" - ").nth(1).and_then(|rest| rest.split(' ').next()));
        let is_above = place.is_some_and(|place| dir.starts_with(unescape(place)));
        is_above && kind.is_none_or(is_far)
    })
}

/// A path of proc_pid_mountinfo(5), which has a blank, a tab, a line feed and a backslash as three octal digits.
fn unescape(place: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .into_iter()
        .fold(place.to_owned(), |place, (written, meant)| place.replace(written, meant))
}

/// Returns true if a file system of this type is remote, or is a program.
fn is_far(kind: &str) -> bool {
    const FAR: [&str; 14] = [
        "9p",
        "afs",
        "autofs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "gfs2",
        "glusterfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
        "smb3",
    ];
    FAR.contains(&kind) || kind.starts_with("fuse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_project_is_found_and_no_file_server_is_asked() {
        let place = std::env::temp_dir().join(format!("rexec-top-{}", std::process::id()));
        let place = {
            fs::create_dir_all(place.join("one/two/three")).unwrap();
            fs::canonicalize(place).unwrap()
        };
        fs::create_dir(place.join("one/.git")).unwrap();
        fs::write(place.join("one/two/.git"), "gitdir: elsewhere").unwrap();
        std::os::unix::fs::symlink(place.join("one"), place.join("link")).unwrap();
        assert_eq!(top(&place.join("one/two/three")), Some(place.join("one/two")), "a work tree has a file");
        assert_eq!(top(&place.join("one")), Some(place.join("one")));
        assert_eq!(top(&place.join("one/no such")), Some(place.join("one")));
        // Where the temporary directory lies in a work tree itself, that one is found.
        assert_eq!(top(&place.join("link")), top(&place), "what is behind a link is not looked at");
        assert_eq!(top(Path::new("one")), None);
        fs::remove_dir_all(place).unwrap();
        let mounts = "22 1 0:1 / / rw - ext4 /dev/a rw\n23 1 0:2 / /srv/far rw - nfs4 x:/y rw\n\
                      24 1 0:3 / /srv/s rw shared:1 - fuse.sshfs x rw\n\
                      25 1 0:4 / /srv/my\\040disk\\134a rw - fuseblk /dev/b rw";
        let waits = |dir: &&str| may_wait(Path::new(dir), mounts);
        let far = ["/srv/far", "/srv/far/a", "/srv/s/b", "/srv/my disk\\a", "/srv/my disk\\a/b"];
        assert_eq!(far.iter().find(|dir| !waits(dir)), None);
        assert_eq!(["/srv", "/srv/farther", "/srv/my disk"].iter().find(|dir| waits(dir)), None);
    }
}
