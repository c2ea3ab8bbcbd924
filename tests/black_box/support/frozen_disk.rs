//! A disk that can be made to stand still: whoever writes to it then waits until it goes on.
//!
//! Only an image of our own is frozen, below a loop device. A watchdog in a session of its own thaws what stands still for
//! 30 s, and unmounts the disk when this process is gone.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::programs::{self, skipped};
use super::temp::TempDir;

/// The watchdog: reads what is done to the disk, a word a line.
const WATCHDOG: &str = r#"
while read -r word; do
    while [ "$word" = frozen ]; do
        read -r -t 30 word || { fsfreeze -u "$1"; break; }
    done
done
fsfreeze -u "$1"
umount -l "$1"
"#;

/// The disk, mounted until it is dropped.
#[derive(Debug)]
pub(crate) struct FrozenDisk {
    place: TempDir,
    watchdog: Child,
    /// The watchdog's input, until the end.
    told: Option<ChildStdin>,
}

impl FrozenDisk {
    /// Mounts it. `None` where that is not allowed.
    pub(crate) fn mount() -> Option<Self> {
        let tools = ["mkfs.ext4", "mount", "umount", "fsfreeze", "truncate", "setsid"];
        if !nix::unistd::geteuid().is_root() || !tools.iter().all(|tool| administrators(tool).is_some()) {
            skipped("a disk that stands still: only root can mount one, with mkfs.ext4 and fsfreeze");
            return None;
        }
        let place = TempDir::new(None);
        let (image, disk) = (place.join("image"), place.join("disk"));
        std::fs::create_dir(&disk).expect("the directory is ours");
        let is_made = succeeds(tool("truncate").args(["-s", "16M"]).arg(&image))
            && succeeds(tool("mkfs.ext4").arg("-q").arg(&image))
            && succeeds(tool("mount").args(["-o", "loop"]).args([&image, &disk]));
        if !is_made {
            skipped("a disk that stands still: no image can be mounted");
            return None;
        }
        let mut watchdog = tool("setsid");
        watchdog.args(["bash", "-c", WATCHDOG, "watchdog"]).arg(&disk);
        watchdog.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut watchdog = watchdog.spawn().expect("setsid is there");
        let told = watchdog.stdin.take();
        Some(Self { place, watchdog, told })
    }

    /// The directory at its top.
    pub(crate) fn path(&self) -> PathBuf {
        self.place.join("disk")
    }

    pub(crate) fn freeze(&mut self) {
        self.tell("frozen\n");
        assert!(succeeds(tool("fsfreeze").arg("-f").arg(self.path())), "the disk can stand still");
    }

    /// Lets it go on. The watchdog may have done so before.
    pub(crate) fn thaw(&mut self) {
        succeeds(tool("fsfreeze").arg("-u").arg(self.path()));
        self.tell("thawed\n");
    }

    fn tell(&mut self, word: &str) {
        let told = self.told.as_mut().expect("it is there until the end");
        told.write_all(word.as_bytes()).expect("the watchdog lives");
    }
}

impl Drop for FrozenDisk {
    fn drop(&mut self) {
        self.told = None;
        self.watchdog.wait().expect("it is ours");
    }
}

/// Where a program of an administrator is.
fn administrators(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists())
}

fn tool(name: &str) -> Command {
    let mut command = programs::command(administrators(name).expect("it was looked for"));
    command.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin");
    command
}

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
