//! A file that many processes of this user add lines to, and that one process takes.
//!
//! A writer holds a shared flock(2) while it adds a line, and looks then whether the file still has a name.
//!
//! Invariant: what is not such a file makes way for the next one. It is removed, or else renamed; nothing that has content
//! of its own is removed.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use super::process;

/// Names that are tried for what is put aside.
const NAMES_MAX: u32 = 1_000;

/// What was taken.
#[derive(Debug)]
pub enum TakenSpool {
    /// There is no such file.
    Nothing,
    /// A process writes to it. It can be taken later.
    Busy,
    /// Something else than a file of this user's was in its place, and this has become of it.
    Unfit(MadeWay),
    /// Its beginning, and whether it has more.
    Lines(Vec<u8>, bool),
}

/// What has become of something that was in the place of a spool.
#[derive(Debug)]
pub enum MadeWay {
    Removed,
    /// It has this name now.
    Renamed(PathBuf),
    /// It is where it was, because it cannot be renamed.
    Stays(io::Error),
}

/// Takes the file at this path: at most `most` bytes of it are read, and it is removed. Nothing is waited for, and no symbolic
/// link is followed.
pub fn take(path: &Path, most: u64) -> TakenSpool {
    let taken = renamed(path);
    // One that was busy before comes first.
    if fs::symlink_metadata(&taken).is_err()
        && let Err(error) = fs::rename(path, &taken)
    {
        let is_absent = error.kind() == io::ErrorKind::NotFound;
        return if is_absent { TakenSpool::Nothing } else { TakenSpool::Unfit(MadeWay::Stays(error)) };
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = OpenOptions::new().read(true).custom_flags(flags).open(&taken);
    let is_fit = |data: &fs::Metadata| data.is_file() && data.uid() == process::uid() && data.nlink() == 1;
    let fit = open.ok().filter(|file| file.metadata().is_ok_and(|data| is_fit(&data)));
    match fit.map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock)) {
        None if fs::remove_file(&taken).or_else(|_| fs::remove_dir(&taken)).is_ok() => {
            TakenSpool::Unfit(MadeWay::Removed)
        }
        None => TakenSpool::Unfit(put_aside(path)),
        Some(Err(_)) => TakenSpool::Busy,
        Some(Ok(file)) => {
            let mut bytes = Vec::new();
            let _ = Read::take(&*file, most).read_to_end(&mut bytes);
            let is_more = file.metadata().is_ok_and(|data| data.len() > most);
            // It has no name any more when the lock goes.
            let _ = fs::remove_file(&taken);
            TakenSpool::Lines(bytes, is_more)
        }
    }
}

/// Gives what was to be taken from this path a name that is free, so that it is in nobody's way: a directory with content,
/// or a file that a process does not let go.
#[must_use]
pub fn put_aside(path: &Path) -> MadeWay {
    let names = (1..=NAMES_MAX).map(|number| with_end(path, &format!(".aside-{number}")));
    let Some(free) = names.into_iter().find(|name| fs::symlink_metadata(name).is_err()) else {
        return MadeWay::Stays(io::ErrorKind::AlreadyExists.into());
    };
    match fs::rename(renamed(path), &free) {
        Ok(()) => MadeWay::Renamed(free),
        Err(error) => MadeWay::Stays(error),
    }
}

/// Whether there is something to take.
#[must_use]
pub fn is_there(path: &Path) -> bool {
    [path, &renamed(path)].iter().any(|path| fs::symlink_metadata(path).is_ok())
}

fn renamed(path: &Path) -> PathBuf {
    with_end(path, ".taken")
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
