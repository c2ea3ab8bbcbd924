//! Inspects a command's standard input without reading a byte of it.

use std::fs::OpenOptions;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{Whence, lseek};
use rexec_sh::protocol::process::Pid;

use super::kill::Pidfd;

/// The unread data of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    Something,
    /// No bytes. Another process may still write some.
    NothingYet,
    /// No bytes; also for a device, where this is unknown.
    Nothing,
}

/// The device and the inode of a pipe or a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PipeNumber((u32, u32), u64);

/// The unread data: of a regular file the bytes after its offset, of a socket the count of FIONREAD. A pipe is polled,
/// because FIONREAD would wait for a writer inside write(2). A server of files is not asked (AT_STATX_DONT_SYNC), as it
/// may not answer.
#[must_use]
pub fn unread(fd: &OwnedFd) -> Unread {
    let Some(seen) = look(fd) else { return Unread::Nothing };
    match u32::from(seen.stx_mode) & libc::S_IFMT {
        libc::S_IFREG => {
            let offset = lseek(fd, 0, Whence::SeekCur).ok().and_then(|offset| u64::try_from(offset).ok());
            if offset.is_some_and(|offset| offset < seen.stx_size) { Unread::Something } else { Unread::Nothing }
        }
        libc::S_IFIFO => {
            let mut waited = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut waited, PollTimeout::ZERO);
            let has_bytes = waited[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
            if has_bytes { Unread::Something } else { Unread::NothingYet }
        }
        libc::S_IFSOCK => {
            let mut bytes: libc::c_int = 0;
            // SAFETY: the kernel writes one int.
            let answer = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
            if answer == 0 && bytes > 0 { Unread::Something } else { Unread::NothingYet }
        }
        _ => Unread::Nothing,
    }
}

/// The pipe or socket of a descriptor. `None` for anything else.
pub(crate) fn pipe_number(fd: &OwnedFd) -> Option<PipeNumber> {
    let seen = look(fd)?;
    let is_pipe = matches!(u32::from(seen.stx_mode) & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK);
    is_pipe.then_some(PipeNumber((seen.stx_dev_major, seen.stx_dev_minor), seen.stx_ino))
}

/// The pipe or socket that is the standard input of a process, and `true` if a read there would not wait, because it
/// has bytes or no writers. `None` if it is neither, or if the process may not be examined.
pub(crate) fn pipe_of(pid: Pid) -> Option<(PipeNumber, bool)> {
    let open = |path: &str, flags| OpenOptions::new().read(true).custom_flags(flags).open(path).ok().map(OwnedFd::from);
    // This opens nothing, and no server of files learns of it.
    let place = open(&format!("/proc/{pid}/fd/0"), libc::O_PATH)?;
    let number = pipe_number(&place)?;
    // Opening it once more waits for a process that writes into it at this moment, so it is the way only if the other
    // one is barred.
    let again = || open(&format!("/proc/self/fd/{}", place.as_raw_fd()), libc::O_NONBLOCK);
    let pipe = Pidfd::open(pid).and_then(|process| process.descriptor(0)).or_else(again)?;
    let mut waited = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
    let is_ready = poll(&mut waited, PollTimeout::ZERO).is_ok_and(|count| count > 0);
    (pipe_number(&pipe) == Some(number)).then_some((number, is_ready))
}

/// The facts about a file without a question to its server.
fn look(fd: &OwnedFd) -> Option<libc::statx> {
    // SAFETY: every field is a number, for which zero is a value.
    let mut seen: libc::statx = unsafe { std::mem::zeroed() };
    let at = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let wanted = libc::STATX_TYPE | libc::STATX_SIZE | libc::STATX_INO;
    // SAFETY: the kernel fills the structure, and the name ends with a NUL.
    let answer = unsafe { libc::statx(fd.as_raw_fd(), c"".as_ptr(), at, wanted, &raw mut seen) };
    (answer == 0).then_some(seen)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn bytes_are_seen_and_stay() {
        let (read_end, write_end) = nix::unistd::pipe().unwrap();
        assert_eq!(unread(&read_end), Unread::NothingYet);
        let mut write_end = File::from(write_end);
        write_end.write_all(b"answer").unwrap();
        assert_eq!(unread(&read_end), Unread::Something);
        drop(write_end);
        let mut text = String::new();
        let mut rest = File::from(read_end);
        rest.read_to_string(&mut text).unwrap();
        assert_eq!(text, "answer");
        assert_eq!(unread(&OwnedFd::from(rest)), Unread::NothingYet, "all is read, and no writer is left");
        let (near, mut far) = UnixStream::pair().unwrap();
        let near = OwnedFd::from(near);
        assert_eq!(unread(&near), Unread::NothingYet);
        far.write_all(b"x").unwrap();
        assert_eq!(unread(&near), Unread::Something);
    }

    #[test]
    fn a_file_counts_from_its_offset_and_a_device_not_at_all() {
        let mut file = nix::unistd::mkstemp(&std::env::temp_dir().join("rexec-input-XXXXXX")).map(|(fd, path)| {
            std::fs::remove_file(path).unwrap();
            File::from(fd)
        });
        let file = file.as_mut().unwrap();
        let look = |file: &File| unread(&OwnedFd::from(file.try_clone().unwrap()));
        assert_eq!(look(file), Unread::Nothing);
        file.write_all(b"answer").unwrap();
        assert_eq!(look(file), Unread::Nothing, "at its end");
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(look(file), Unread::Something);
        assert_eq!(look(&File::open("/dev/zero").unwrap()), Unread::Nothing);
    }
}
