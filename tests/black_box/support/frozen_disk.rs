//! A disk that can be made to stand still: whoever writes to it then waits until it goes on.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::programs::skipped;
use super::temp::TempDir;

/// The disk, an image that is mounted, until it is dropped.
#[derive(Debug)]
pub(crate) struct FrozenDisk {
    place: TempDir,
}

impl FrozenDisk {
    /// Mounts it. `None` where that is not allowed.
    pub(crate) fn mount() -> Option<Self> {
        let tools = ["mkfs.ext4", "mount", "umount", "fsfreeze", "truncate"];
        if !nix::unistd::geteuid().is_root() || !tools.iter().all(|tool| program(tool).exists()) {
            skipped("a disk that stands still: only root can mount one, with mkfs.ext4 and fsfreeze");
            return None;
        }
        let disk = Self { place: TempDir::new(None) };
        let image = disk.place.join("image");
        let path = disk.path();
        std::fs::create_dir(&path).expect("the directory is ours");
        let is_made = run("truncate", &["-s", "16M"], &image)
            && run("mkfs.ext4", &["-q"], &image)
            && ran(Command::new(program("mount")).args(["-o", "loop"]).args([&image, &path]));
        if !is_made {
            skipped("a disk that stands still: no image can be mounted");
            return None;
        }
        Some(disk)
    }

    /// The directory at its top.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.join("disk")
    }

    pub(crate) fn freeze(&self) {
        assert!(run("fsfreeze", &["-f"], &self.path()), "the disk can stand still");
    }

    pub(crate) fn thaw(&self) {
        assert!(run("fsfreeze", &["-u"], &self.path()), "the disk can go on");
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        run("fsfreeze", &["-u"], &self.path());
        run("umount", &["-l"], &self.path());
    }
}

/// Where this program of an administrator is.
fn program(name: &str) -> PathBuf {
    let places = ["/usr/sbin", "/sbin", "/usr/bin"].map(|place| Path::new(place).join(name));
    places.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into())
}

fn run(name: &str, options: &[&str], path: &Path) -> bool {
    ran(Command::new(program(name)).args(options).arg(path))
}

/// Whether it succeeded. What it says is of no interest: a disk that goes on already is an error to fsfreeze(8).
fn ran(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
