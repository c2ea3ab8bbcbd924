//! Control groups: a command runs in those of its caller, with their limits on memory and processes.
//!
//! Both versions of cgroups(7) are supported. Each line of /proc/PID/cgroup that differs from the host's names a
//! directory below a mount point. The shell's process moves itself there before it executes the shell: a move can take
//! long, and the guard stays where it is, so it can serve another command.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use rexec_sh::protocol::process::Pid;

/// The host's own control groups, and the mount points of the hierarchies.
#[derive(Debug, Default)]
pub struct Groups {
    own: Vec<u8>,
    mounts: Vec<Mount>,
}

#[derive(Debug)]
struct Mount {
    /// The second field of this hierarchy's line in /proc/PID/cgroup; empty for version 2.
    controllers: Vec<String>,
    /// The mounted directory within the hierarchy.
    root: String,
    point: PathBuf,
}

/// The control groups of a caller that are not the host's.
#[derive(Debug, PartialEq, Eq)]
pub struct CallerGroups {
    /// The paths of the `cgroup.procs` files that this process may write, each ended by NUL.
    pub files: Vec<u8>,
    /// True if there are others, whose limits do not hold for the caller's commands.
    pub is_partly_closed: bool,
}

impl Groups {
    #[must_use]
    pub fn read() -> Self {
        let own = std::fs::read("/proc/self/cgroup").unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self { own, mounts: mounts.lines().filter_map(mount).collect() }
    }

    /// The control groups of a process; `None` if they are the host's, or cannot be read.
    #[must_use]
    pub fn of_caller(&self, pid: Pid) -> Option<CallerGroups> {
        let theirs = super::proc_file::read(&format!("/proc/{pid}/cgroup")).ok()?;
        if theirs == self.own {
            return None;
        }
        let mut place = CallerGroups { files: Vec::new(), is_partly_closed: false };
        for line in theirs.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            if self.own.split(|&byte| byte == b'\n').any(|own| own == line) {
                continue;
            }
            match self.procs_file(line).filter(|file| access(file, AccessFlags::W_OK).is_ok()) {
                Some(file) => {
                    place.files.extend_from_slice(file.as_os_str().as_bytes());
                    place.files.push(0);
                }
                None => place.is_partly_closed = true,
            }
        }
        Some(place)
    }

    fn procs_file(&self, line: &[u8]) -> Option<PathBuf> {
        let mut fields = std::str::from_utf8(line).ok()?.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let wanted: Vec<&str> = controllers.split(',').filter(|name| !name.is_empty()).collect();
        let is_it = |mount: &&Mount| {
            let has = |name: &&str| mount.controllers.iter().any(|other| other == name);
            mount.controllers.is_empty() == wanted.is_empty() && wanted.iter().all(has)
        };
        let mount = self.mounts.iter().find(is_it)?;
        let below = Path::new(path).strip_prefix(&mount.root).ok()?;
        let is_inside = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
        is_inside.then(|| mount.point.join(below).join("cgroup.procs"))
    }
}

/// Parses a line of /proc/self/mountinfo (proc_pid_mountinfo(5)); `None` if it is not a control group hierarchy.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, point) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let kind = after.next()?;
    let options = after.nth(1)?;
    let controllers = match kind {
        "cgroup2" => Vec::new(),
        "cgroup" => options.split(',').filter(|option| !matches!(*option, "rw" | "ro")).map(str::to_owned).collect(),
        _ => return None,
    };
    Some(Mount { controllers, root: root.to_owned(), point: PathBuf::from(point) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_leads_to_its_hierarchys_file() {
        let lines = "24 1 0:1 / /proc rw - proc proc rw\n\
            31 23 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
            32 23 0:34 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
            33 23 0:35 /user.slice /cg rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let groups = Groups { own: Vec::new(), mounts: lines.lines().filter_map(mount).collect() };
        let file = |line: &str| groups.procs_file(line.as_bytes()).map(|path| path.display().to_string());
        assert_eq!(file("4:cpu,cpuacct:/a/b").as_deref(), Some("/sys/fs/cgroup/cpu/a/b/cgroup.procs"));
        assert_eq!(file("1:name=systemd:/").as_deref(), Some("/sys/fs/cgroup/systemd/cgroup.procs"));
        assert_eq!(file("0::/user.slice/x").as_deref(), Some("/cg/x/cgroup.procs"));
        for elsewhere in ["0::/system.slice/x", "0::/user.slice/../x", "7:pids:/a", "nonsense"] {
            assert_eq!(file(elsewhere), None, "{elsewhere}");
        }
        assert_eq!(Groups::read().of_caller(super::super::process::pid()), None);
    }
}
