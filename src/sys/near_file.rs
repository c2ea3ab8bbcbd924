//! Small files that others may have made, read by the loop.
//!
//! Invariant: nothing here waits for a file server or for another process. Nothing is touched that lies below a mount of a
//! network file system or of one in user space, also behind links, and only a regular file is opened.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use nix::libc;

use super::project;

/// Links in one path, as for the kernel.
const LINKS_MAX: usize = 40;

/// The mounts of this process.
#[derive(Debug)]
pub struct Mounts {
    /// As proc_pid_mountinfo(5). `None` if that cannot be read: then everything may wait.
    text: Option<String>,
}

/// What stands at a path.
#[derive(Debug)]
pub enum Place {
    Nothing,
    /// Looking there may wait.
    Far,
    Unfit(Unfit),
    File(NearFile),
}

/// Why a file is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    NoRegularFile,
    OfOthers,
    OpenToAll,
}

impl Unfit {
    /// Checks the owner and the mode of a file that says what this user wants.
    #[must_use]
    pub fn of(metadata: &Metadata, uid: u32) -> Option<Self> {
        match metadata {
            data if !data.is_file() => Some(Self::NoRegularFile),
            data if ![0, uid].contains(&data.uid()) => Some(Self::OfOthers),
            data if data.mode() & 0o002 != 0 => Some(Self::OpenToAll),
            _ => None,
        }
    }

    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoRegularFile => "it is no regular file",
            Self::OfOthers => "it belongs to somebody else",
            Self::OpenToAll => "everybody can write to it",
        }
    }
}

/// A file that was looked at, and whatever has taken its place since is another one.
#[derive(Debug)]
pub struct NearFile {
    /// Opened with O_PATH.
    handle: File,
    metadata: Metadata,
}

/// What changes when a file is written or replaced, as far as the resolution of its times goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mounts {
    #[must_use]
    pub fn read() -> Self {
        Self { text: fs::read_to_string("/proc/self/mountinfo").ok() }
    }

    /// No mounts, for a caller that may wait.
    #[must_use]
    pub fn ignored() -> Self {
        Self { text: Some(String::new()) }
    }

    fn may_wait(&self, path: &Path) -> bool {
        self.text.as_ref().is_none_or(|mounts| project::may_wait(path, mounts))
    }

    /// Looks at a path, through links.
    ///
    /// # Errors
    /// As open(2).
    pub fn look(&self, path: &Path) -> io::Result<Place> {
        match self.without_links(path) {
            Ok(Some(path)) => self.look_itself(&path),
            Ok(None) => Ok(Place::Far),
            Err(error) if is_missing(&error) => Ok(Place::Nothing),
            Err(error) => Err(error),
        }
    }

    /// Looks at a path that has no links: what stands behind one is no regular file.
    ///
    /// # Errors
    /// As open(2).
    pub fn look_itself(&self, path: &Path) -> io::Result<Place> {
        if self.may_wait(path) {
            return Ok(Place::Far);
        }
        let handle = match project::open_itself(path) {
            Ok(handle) => File::from(handle),
            Err(error) if is_missing(&error) => return Ok(Place::Nothing),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Ok(Place::Unfit(Unfit::NoRegularFile)),
            Err(error) => return Err(error),
        };
        let metadata = handle.metadata()?;
        if !metadata.is_file() {
            return Ok(Place::Unfit(Unfit::NoRegularFile));
        }
        Ok(Place::File(NearFile { handle, metadata }))
    }

    /// The path that leads to the same place without links. `None` if it may lead to a file server.
    fn without_links(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let mut left: Vec<OsString> = steps(path).collect();
        let (mut real, mut links) = (PathBuf::from("/"), 0);
        while let Some(step) = left.pop() {
            if step == ".." {
                real.pop();
                continue;
            }
            real.push(step);
            if self.may_wait(&real) {
                return Ok(None);
            }
            match fs::read_link(&real) {
                Ok(_) if links == LINKS_MAX => return Err(io::Error::from_raw_os_error(libc::ELOOP)),
                Ok(target) => {
                    links += 1;
                    real.pop();
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(steps(&target));
                }
                // It is no link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(real))
    }
}

/// The steps of a path, the last one first.
fn steps(path: &Path) -> impl Iterator<Item = OsString> {
    let step = |component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(step)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl NearFile {
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let data = &self.metadata;
        Stamp {
            file: (data.dev(), data.ino()),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }

    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its bytes; `None` if it has more than this.
    ///
    /// # Errors
    /// As open(2) and read(2). A file on which another process has a lease would have to be waited for, and is not.
    pub fn read(&self, most: usize) -> io::Result<Option<Vec<u8>>> {
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() <= most).then_some(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn text(mounts: &Mounts, path: &Path) -> String {
        match mounts.look(path) {
            Ok(Place::File(file)) => String::from_utf8(file.read(9).unwrap().unwrap_or_default()).unwrap(),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn links_are_followed_and_nothing_but_a_near_file_is_opened() {
        let top = std::env::temp_dir().join(format!("rexec-near-{}", std::process::id()));
        fs::create_dir_all(top.join("real/far")).unwrap();
        let top = fs::canonicalize(top).unwrap();
        fs::write(top.join("real/a"), "one").unwrap();
        fs::write(top.join("real/long"), "1234567890").unwrap();
        fs::write(top.join("real/far/b"), "two").unwrap();
        symlink("../real/./a", top.join("real/up")).unwrap();
        symlink(top.join("real"), top.join("dir")).unwrap();
        symlink("loop", top.join("loop")).unwrap();
        symlink("real/far", top.join("aside")).unwrap();
        nix::unistd::mkfifo(&top.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let near = Mounts::read();
        assert_eq!(text(&near, &top.join("dir/up")), "one");
        assert_eq!(text(&near, &top.join("dir/long")), "");
        assert_eq!(text(&near, &top.join("dir/none")), "Nothing");
        assert_eq!(text(&near, &top.join("real/a/b")), "Nothing");
        for other in ["fifo", "real"] {
            assert_eq!(text(&near, &top.join(other)), "Unfit(NoRegularFile)", "{other}");
        }
        assert!(text(&near, &top.join("loop")).contains("40"), "ELOOP");
        let itself = |name: &str| near.look_itself(&top.join(name));
        assert!(matches!(itself("dir/a"), Ok(Place::Unfit(Unfit::NoRegularFile))), "behind a link");
        assert!(matches!(itself("real/a"), Ok(Place::File(_))));
        let mount = format!("1 1 0:1 / {} rw - fuse.x y rw\n", top.join("real/far").display());
        let far = Mounts { text: Some(mount) };
        for name in ["real/far/b", "dir/far/b", "aside/b", "aside/../a"] {
            assert_eq!(text(&far, &top.join(name)), "Far", "{name}");
        }
        assert_eq!(text(&far, &top.join("dir/a")), "one");
        assert_eq!(text(&Mounts { text: None }, &top.join("real/a")), "Far");
        fs::remove_dir_all(top).unwrap();
    }
}
