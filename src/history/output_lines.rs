//! The lines of a run's output as a person would read them, in bounded memory but for the longest line.
//!
//! A raw file goes through the same simulated terminal as the output in a record, so both have the same text.

use std::io::{self, Read};

use memchr::memchr;

use super::output::{OutputSource, WholeOutput};
use crate::limits;
use crate::text::sanitize::{Mode, Sanitizer};

/// How much is read at once, bytes.
const PIECE_BYTES: usize = 64 << 10;

/// A part of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPiece<'a> {
    /// A line without its newline.
    Line(&'a [u8]),
    /// This many bytes were not kept here.
    Gap(u64),
}

impl WholeOutput {
    /// Calls `each` with every line in order, and with the gap where it is, until `each` returns false.
    ///
    /// # Errors
    /// The output cannot be read, or `each` fails.
    pub fn for_each_line(mut self, mut each: impl FnMut(OutputPiece<'_>) -> io::Result<bool>) -> io::Result<()> {
        let is_raw = self.source == OutputSource::Raw;
        let Some(gap) = self.omitted else { return pass(&mut self, is_raw, &mut each).map(drop) };
        let goes_on = pass((&mut self).take(gap.at), is_raw, &mut each)?;
        if goes_on && each(OutputPiece::Gap(gap.bytes))? {
            pass(&mut self, is_raw, &mut each)?;
        }
        Ok(())
    }
}

/// Returns whether `each` wants more.
fn pass(
    mut source: impl Read,
    is_raw: bool,
    each: &mut impl FnMut(OutputPiece<'_>) -> io::Result<bool>,
) -> io::Result<bool> {
    let mode = Mode::Collapse { rows: limits::PTY_ROWS, cols: limits::PTY_COLS };
    let mut sanitizer = is_raw.then(|| Sanitizer::new(mode));
    let (mut bytes, mut text) = (vec![0; PIECE_BYTES], Vec::new());
    loop {
        let read = match source.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        match &mut sanitizer {
            Some(sanitizer) if read == 0 => sanitizer.finish(&mut text),
            Some(sanitizer) => sanitizer.push(&bytes[..read], &mut text),
            None => text.extend_from_slice(&bytes[..read]),
        }
        let mut taken = 0;
        while let Some(length) = memchr(b'\n', &text[taken..]) {
            if !each(OutputPiece::Line(&text[taken..taken + length]))? {
                return Ok(false);
            }
            taken += length + 1;
        }
        text.drain(..taken);
        if read == 0 {
            return if text.is_empty() { Ok(true) } else { each(OutputPiece::Line(&text)) };
        }
    }
}
