//! The file beside a journal's file that has its summary: `2026-05-21-09:42:18.summary`.
//!
//! Two lines: the summary as JSON, with the checksum of the last journal bytes that it covers, and the checksum of that
//! line.
//!
//! Invariants: a summary that was torn, changed, or is of another content than the journal has counts as none; making one
//! never changes the journal; a summary that cannot be written is left out, because readers can do without.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::directory::NO_WAIT;
use super::home::JournalHome;
use crate::journal::record::LINE_BYTES_MAX;
use crate::journal::summary::{Summary, checksum};
use crate::limits;

const EXTENSION: &str = "summary";
/// The end of the summarized part, bytes, whose checksum must fit.
const END_BYTES: u64 = 1 << 10;
/// The longest summary that is read, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
struct SummaryLine {
    v: u32,
    summary: Summary,
    /// The checksum of the last bytes that the summary covers.
    end: u64,
}

/// The version of summaries that this build writes and reads.
const VERSION: u32 = 1;

/// The path of the summary for this journal's file.
pub(super) fn summary_path(journal: &Path) -> PathBuf {
    journal.with_extension(EXTENSION)
}

/// Reads the summary beside a journal's file. `None` if there is none that fits the file as it is.
#[must_use]
pub fn load_summary(path: &Path, file: &File) -> Option<Summary> {
    let mut text = Vec::new();
    let beside = OpenOptions::new().read(true).custom_flags(NO_WAIT).open(summary_path(path)).ok()?;
    beside.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    let (line, rest) = text.split_at_checked(memchr::memchr(b'\n', &text)? + 1)?;
    let sum: u64 = std::str::from_utf8(rest).ok()?.trim_end().parse().ok()?;
    if sum != checksum(line) {
        return None;
    }
    let SummaryLine { v, summary, end } = serde_json::from_slice(line).ok()?;
    let fits = v == VERSION && !summary.is_void && end_of(file, summary.length).ok()? == end;
    fits.then_some(summary)
}

/// The checksum of the last bytes before this offset.
fn end_of(file: &File, length: u64) -> io::Result<u64> {
    let bytes = length.min(END_BYTES);
    let mut end = vec![0; usize::try_from(bytes).expect("it is small")];
    file.read_exact_at(&mut end, length - bytes)?;
    Ok(checksum(&end))
}

/// A journal's summary in the making.
#[derive(Debug, Default)]
pub(super) struct SummaryMaker {
    summary: Summary,
    /// How much of the file the summary beside it covers, bytes.
    stored: u64,
}

impl SummaryMaker {
    /// Goes on with the summary that is there, or begins.
    pub(super) fn begin(path: &Path, file: &File) -> Self {
        let summary = load_summary(path, file).unwrap_or_default();
        Self { stored: summary.length, summary }
    }

    /// Takes the whole lines of at most `bytes` more of the file, or one longer line. Returns true if that was all.
    pub(super) fn extend(&mut self, mut file: &File, bytes: u64) -> io::Result<bool> {
        file.seek(SeekFrom::Start(self.summary.length))?;
        let until = self.summary.length.saturating_add(bytes);
        let mut lines = BufReader::with_capacity(256 << 10, file);
        let mut line = Vec::new();
        while self.summary.length < until {
            line.clear();
            let read = (&mut lines).take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(true);
            }
            if !line.ends_with(b"\n") {
                // A torn end, or a line that no recorder writes: then there is no summary of what follows.
                return Ok(true);
            }
            self.summary.take(&line);
        }
        Ok(false)
    }

    /// Returns true if the summary beside the file is too far behind this one.
    pub(super) fn is_due(&self) -> bool {
        self.summary.length >= self.stored + limits::JOURNAL_SUMMARY_BYTES
    }

    /// Returns true if the summary beside the file covers less than this one.
    pub(super) fn is_ahead(&self) -> bool {
        self.summary.length > self.stored
    }

    pub(super) fn store(&mut self, path: &Path, file: &File) -> io::Result<()> {
        self.stored = self.summary.length;
        let line = SummaryLine { v: VERSION, summary: self.summary.clone(), end: end_of(file, self.summary.length)? };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        let sum = checksum(&text);
        text.extend_from_slice(format!("{sum}\n").as_bytes());
        let beside = summary_path(path);
        let (Some(home), Some(name)) = (path.parent(), beside.file_name().and_then(OsStr::to_str)) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let home = JournalHome { path: home.to_owned(), uid: file.metadata()?.uid() };
        home.open().map_err(io::Error::other)?.replace(name, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_summary_that_does_not_fit_the_file_counts_as_none() {
        let home = std::env::temp_dir().join(format!("rexec-summary-{}", std::process::id()));
        JournalHome::of_test(&home);
        let path = home.join("2026-05-21-09:42:18.jsonl");
        let text =
            "{\"v\":1,\"type\":\"open\"}\n{\"v\":1,\"type\":\"start\",\"seq\":4}\n{\"v\":1,\"type\":\"close\"}\n";
        fs::write(&path, text).unwrap();
        let file = File::open(&path).unwrap();
        let mut maker = SummaryMaker::begin(&path, &file);
        assert!(load_summary(&path, &file).is_none());
        assert!(maker.extend(&file, 1 << 20).unwrap());
        maker.store(&path, &file).unwrap();
        let summary = load_summary(&path, &file).unwrap();
        assert_eq!((summary.length, summary.begun), (text.len() as u64, Some((4, 4))));

        let good = fs::read(summary_path(&path)).unwrap();
        for bad in [good[..good.len() / 2].to_vec(), Vec::new(), good.to_ascii_uppercase(), [&b"x"[..], &good].concat()]
        {
            fs::write(summary_path(&path), bad).unwrap();
            assert!(load_summary(&path, &file).is_none());
        }
        fs::write(summary_path(&path), &good).unwrap();
        fs::write(&path, text.replace("close", "clos ")).unwrap();
        assert!(load_summary(&path, &file).is_none(), "another content");
        fs::write(&path, &text[..text.len() - 9]).unwrap();
        assert!(load_summary(&path, &file).is_none(), "a shorter file");
        fs::write(&path, format!("{text}more\n")).unwrap();
        assert!(load_summary(&path, &file).is_some(), "of the beginning it is right");
        fs::remove_dir_all(&home).unwrap();
    }
}
