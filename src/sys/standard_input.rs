//! What lies in a command's standard input, without a byte of it being read.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::unistd::{Whence, lseek};

/// What a descriptor has for its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// Bytes.
    Something,
    /// No bytes. Another process may still write some.
    NothingYet,
    /// No bytes, or a device, of which nobody knows that.
    Nothing,
}

/// What there is to read: of a regular file what lies behind its offset, of a pipe or a socket what FIONREAD counts. A
/// server of files is not asked (AT_STATX_DONT_SYNC), as it may not answer.
#[must_use]
pub fn unread(fd: &OwnedFd) -> Unread {
    // SAFETY: every field is a number, for which zero is a value.
    let mut seen: libc::statx = unsafe { std::mem::zeroed() };
    let at = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let wanted = libc::STATX_TYPE | libc::STATX_SIZE;
    // SAFETY: the kernel fills the structure, and the name ends with a NUL.
    if unsafe { libc::statx(fd.as_raw_fd(), c"".as_ptr(), at, wanted, &raw mut seen) } != 0 {
        return Unread::Nothing;
    }
    match u32::from(seen.stx_mode) & libc::S_IFMT {
        libc::S_IFREG => {
            let offset = lseek(fd, 0, Whence::SeekCur).ok().and_then(|offset| u64::try_from(offset).ok());
            if offset.is_some_and(|offset| offset < seen.stx_size) { Unread::Something } else { Unread::Nothing }
        }
        libc::S_IFIFO | libc::S_IFSOCK => {
            let mut bytes: libc::c_int = 0;
            // SAFETY: the kernel writes one int.
            let answer = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
            if answer == 0 && bytes > 0 { Unread::Something } else { Unread::NothingYet }
        }
        _ => Unread::Nothing,
    }
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
        File::from(read_end).read_to_string(&mut text).unwrap();
        assert_eq!(text, "answer");
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
