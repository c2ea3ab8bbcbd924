//! Files of /proc about one process. Many of them are read for each command, so it counts what a reading costs.

use std::fs::File;
use std::io::{self, Read};

/// The usual length of such a file, bytes.
const USUAL_BYTES: usize = 4 << 10;

/// Reads a file with few calls. Such a file does not tell its length, and a read of a part may cost as much as one of the
/// whole.
///
/// # Errors
/// As open(2) and read(2).
pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    // A File that is read to its end by itself asks for its length first.
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
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
}
