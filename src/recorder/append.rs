//! Writing whole lines to the end of a file.
//!
//! Invariants: a line is one write, unless the disk takes less; a write that fails leaves either no trace or a torn
//! line that the next line's leading newline ends.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a new file for appending, readable by its owner only, whatever the umask is. Does not follow a symbolic link.
pub(super) fn open_append_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Writes `line` in one write, and ends a torn line before it. After a failure, `undo` takes back what was written, and
/// `torn` is true if part of it stays.
pub(super) fn append_line<W: Write>(
    mut out: W,
    line: &[u8],
    torn: &mut bool,
    undo: impl FnOnce(&mut W, u64) -> io::Result<()>,
) -> io::Result<()> {
    let led;
    let bytes = if *torn {
        led = [b"\n", line].concat();
        &led
    } else {
        line
    };
    let mut written = 0;
    // A full disk takes what fits without an error; only the next write says why it took no more.
    let error = loop {
        if written == bytes.len() {
            *torn = false;
            return Ok(());
        }
        match out.write(&bytes[written..]) {
            Ok(0) => break io::ErrorKind::WriteZero.into(),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error,
        }
    };
    if written > 0 && undo(&mut out, written as u64).is_err() {
        *torn = true;
    }
    Err(error)
}

/// Takes back the last `bytes`, unless another program has written behind them.
pub(super) fn undo(file: &mut &File, bytes: u64) -> io::Result<()> {
    let end = file.stream_position()?;
    if file.metadata()?.len() != end {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    file.set_len(end.saturating_sub(bytes))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A disk that follows a script: how many bytes it takes of each write.
    #[derive(Debug, Default)]
    struct Disk {
        content: Vec<u8>,
        script: VecDeque<Result<usize, io::ErrorKind>>,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.script.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.content.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn truncating(disk: &mut &mut Disk, bytes: u64) -> io::Result<()> {
        let length = disk.content.len() - usize::try_from(bytes).expect("no more than the content");
        disk.content.truncate(length);
        Ok(())
    }

    #[test]
    fn a_failed_write_leaves_nothing_or_a_line_of_its_own() {
        use io::ErrorKind::{Interrupted, StorageFull};
        for cut in 0..6 {
            let mut disk = Disk { script: [Err(Interrupted), Ok(cut), Err(StorageFull)].into(), ..Disk::default() };
            let mut torn = false;
            assert!(append_line(&mut disk, b"first\n", &mut torn, truncating).is_err());
            assert!(!torn && disk.content.is_empty());
            disk.script.clear();
            append_line(&mut disk, b"first\n", &mut torn, truncating).unwrap();
            assert_eq!(disk.content, b"first\n");

            let mut disk = Disk { script: [Ok(cut)].into(), ..Disk::default() };
            let fixed = |_: &mut &mut Disk, _| Err(StorageFull.into());
            disk.script.push_back(Err(StorageFull));
            assert!(append_line(&mut disk, b"first\n", &mut torn, fixed).is_err());
            assert_eq!(torn, cut > 0);
            disk.script = [Ok(0), Ok(1), Ok(0)].into();
            // A retry that fails as well, with nothing written and with the newline only.
            assert!(append_line(&mut disk, b"again\n", &mut torn, fixed).is_err());
            assert!(append_line(&mut disk, b"again\n", &mut torn, fixed).is_err());
            append_line(&mut disk, b"last\n", &mut torn, fixed).unwrap();
            assert!(!torn);
            assert!(disk.content.ends_with(b"\nlast\n"), "{}", String::from_utf8_lossy(&disk.content));
        }
    }

    #[test]
    fn a_short_write_that_goes_on_is_one_line() {
        let mut disk = Disk { script: [Ok(2), Ok(1)].into(), ..Disk::default() };
        append_line(&mut disk, b"first\n", &mut false, truncating).unwrap();
        assert_eq!(disk.content, b"first\n");
    }
}
