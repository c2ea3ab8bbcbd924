//! Files of /proc about one process, which the kernel writes as one record (seq_file.h, single_open). Many of them are
//! read for each command, so the cost of a reading matters.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;

/// The usual length of such a file, bytes.
const USUAL_BYTES: usize = 4 << 10;

/// Reads a file of one record with few calls. Such a file does not tell its length, and a read of a part may cost as much as
/// one of the whole.
///
/// # Errors
/// As open(2) and read(2).
pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
    read_record(&File::open(path)?)
}

/// Reads an open file of one record from its beginning. The kernel writes it anew for each such reading, and a reading
/// that leaves room in the buffer has all of it.
pub(crate) fn read_record(file: &File) -> io::Result<Vec<u8>> {
    let (mut bytes, mut end) = (vec![0; USUAL_BYTES], 0);
    loop {
        match file.read_at(&mut bytes[end..], end as u64) {
            Ok(length) if end + length == bytes.len() => {
                end += length;
                bytes.resize(2 * end, 0);
            }
            Ok(length) => {
                bytes.truncate(end + length);
                return Ok(bytes);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A file that is read again and again. It stays open, because opening it costs as much as reading it.
#[derive(Debug)]
pub(crate) struct ReadAgain {
    path: &'static str,
    /// `None` if it could not be opened. Then each reading tries again.
    file: Option<File>,
}

impl ReadAgain {
    pub(crate) fn open(path: &'static str) -> Self {
        Self { path, file: File::open(path).ok() }
    }

    /// The present contents of the file; empty if it cannot be read.
    pub(crate) fn read(&self) -> Vec<u8> {
        self.file.as_ref().map_or_else(|| read(self.path), read_record).unwrap_or_default()
    }
}

/// The lines of a text, with their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, others) = rest.split_at(end);
        rest = others;
        (!line.is_empty()).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_whole_and_its_lines_are_all_there() {
        let status = read("/proc/self/status").unwrap();
        assert!(lines(&status).any(|line| line.starts_with(b"Name:\t")));
        assert_eq!(lines(&status).flatten().copied().collect::<Vec<_>>(), status);
        assert_eq!(lines(b"a\n\nb").collect::<Vec<_>>(), [b"a\n".as_slice(), b"\n", b"b"]);
        assert_eq!(lines(b"").count(), 0);
        assert!(read("/proc/0/stat").is_err());
    }

    #[test]
    fn a_file_that_stays_open_says_what_is_true_now() {
        let score = ReadAgain::open("/proc/self/oom_score_adj");
        let before = score.read();
        assert_eq!(before, read("/proc/self/oom_score_adj").unwrap());
        let before = String::from_utf8(before).unwrap().trim().parse::<i32>().unwrap();
        // Only root may lower it, and no process has more than 1,000.
        let higher = (before.max(0) + 7).min(1_000);
        std::fs::write("/proc/self/oom_score_adj", higher.to_string()).unwrap();
        assert_eq!(score.read(), format!("{higher}\n").into_bytes());
        assert_eq!(ReadAgain::open("/proc/none").read(), b"");
    }
}
