//! A file that many processes of this user add lines to, and that one process takes.
//!
//! A writer holds a shared flock(2) while it adds a line, and looks then whether the file still has a name.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use nix::libc;

use super::process;

/// The result of taking the file.
#[derive(Debug, PartialEq, Eq)]
pub enum TakenSpool {
    /// There is no such file.
    Nothing,
    /// A process writes to it. It can be taken later.
    Busy,
    /// Something other than a file of this user is in its place.
    Unfit,
    /// Its beginning; `true` if it has more.
    Lines(Vec<u8>, bool),
}

/// Takes the file at this path: at most `most` bytes of it are read, and it is removed. It waits for nothing, and
/// follows no symbolic link.
pub fn take(path: &Path, most: u64) -> TakenSpool {
    let taken = renamed(path);
    // An earlier file that was busy comes first.
    if fs::symlink_metadata(&taken).is_err() && fs::rename(path, &taken).is_err() {
        return TakenSpool::Nothing;
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let open = OpenOptions::new().read(true).custom_flags(flags).open(&taken);
    let is_fit = |data: &fs::Metadata| data.is_file() && data.uid() == process::uid() && data.nlink() == 1;
    let fit = open.ok().filter(|file| file.metadata().is_ok_and(|data| is_fit(&data)));
    let result = match fit.map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock)) {
        None => TakenSpool::Unfit,
        Some(Err(_)) => return TakenSpool::Busy,
        Some(Ok(file)) => {
            let mut bytes = Vec::new();
            let _ = Read::take(&*file, most).read_to_end(&mut bytes);
            let is_more = file.metadata().is_ok_and(|data| data.len() > most);
            // It has no name any more when the lock is released.
            let _ = fs::remove_file(&taken);
            return TakenSpool::Lines(bytes, is_more);
        }
    };
    let _ = fs::remove_file(&taken).or_else(|_| fs::remove_dir(&taken));
    result
}

/// Returns true if there is a file to take.
#[must_use]
pub fn is_there(path: &Path) -> bool {
    [path, &renamed(path)].iter().any(|path| fs::symlink_metadata(path).is_ok())
}

fn renamed(path: &Path) -> PathBuf {
    let mut renamed = path.as_os_str().to_owned();
    renamed.push(".taken");
    PathBuf::from(renamed)
}
