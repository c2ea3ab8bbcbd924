//! The recording of one run in the making: masked output becomes timed events, and events become lines of a file.
//!
//! Pieces of output that came within a moment are one event. A character or an escape sequence that is torn at the end
//! of a piece waits for the next one, and has its time.
//!
//! Invariants: text in memory is bounded; a recording has the output's beginning up to its cap, and says how much more
//! there was; once writing has failed, nothing more is written, so a recording never has a hole.

use std::borrow::Cow;
use std::time::Duration;

use super::output_files::{OutputFiles, Place};
use crate::journal::record::RecordedOutput;
use crate::journal::recording::{EventKind, push_event, size_text};
use crate::text::count;
use crate::text::whole::whole_len;

/// Output that came within this time of an event's beginning belongs to that event: less than one frame of a screen.
pub(super) const GRAIN: Duration = Duration::from_millis(10);
/// The longest event, bytes of output.
const EVENT_BYTES_MAX: usize = 16 << 10;
/// Lines that are shorter than this on average, bytes, are short.
const SHORT_LINE_BYTES: usize = 16;
/// How much output with short lines is put together at once, bytes.
const SHORT_PIECE_BYTES: usize = 256;
/// Lines that wait for the file, bytes. Beyond it they are written at once.
const LINES_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct TimedOutput {
    seq: u64,
    /// How much output is recorded, bytes. Zero means none at all.
    cap: u64,
    /// The terminal's size, until the first event is written.
    window: Option<(u16, u16)>,
    /// The output is what the caller's terminal gets. Other output is for a pipe, and a terminal would be moved to the
    /// next row's beginning by every line feed.
    is_verbatim: bool,
    /// Output that no event has yet.
    text: Vec<u8>,
    /// When the first byte of `text` came.
    began: Duration,
    /// When the last output came.
    last: Duration,
    /// The last byte of output was a carriage return.
    is_returned: bool,
    /// Bytes of output that were taken in.
    taken: u64,
    omitted: u64,
    lines: Vec<u8>,
    place: Option<Place>,
    /// Why the recording ends early.
    failure: Option<String>,
}

impl TimedOutput {
    pub(super) fn new(seq: u64, cap: u64, window: (u16, u16), is_verbatim: bool) -> TimedOutput {
        TimedOutput {
            seq,
            cap,
            window: Some(window),
            is_verbatim,
            text: Vec::new(),
            began: Duration::ZERO,
            last: Duration::ZERO,
            is_returned: false,
            taken: 0,
            omitted: 0,
            lines: Vec::new(),
            place: None,
            failure: None,
        }
    }

    /// Returns true if output waits for the file.
    pub(super) fn has_lines(&self) -> bool {
        !(self.lines.is_empty() && self.text.is_empty()) && self.failure.is_none()
    }

    /// Returns true if no more output is recorded.
    pub(super) fn is_full(&self) -> bool {
        self.taken >= self.cap || self.failure.is_some()
    }

    /// Counts output that comes when no more is recorded.
    pub(super) fn leave_out(&mut self, bytes: u64) {
        if self.cap > 0 && self.failure.is_none() {
            self.omitted += bytes;
        }
    }

    /// Takes in masked output of this time.
    pub(super) fn push(&mut self, bytes: &[u8], at: Duration) {
        if self.cap == 0 || bytes.is_empty() || self.failure.is_some() {
            return;
        }
        self.last = self.last.max(at);
        let room = usize::try_from(self.cap - self.taken).unwrap_or(usize::MAX);
        let (bytes, rest) = bytes.split_at(bytes.len().min(room));
        self.taken += bytes.len() as u64;
        self.omitted += rest.len() as u64;
        if self.last >= self.began + GRAIN || self.text.len() >= EVENT_BYTES_MAX {
            self.end_event();
        }
        if self.text.is_empty() {
            self.began = self.last;
        }
        if self.is_verbatim {
            self.text.extend_from_slice(bytes);
        } else {
            self.push_lines(bytes);
        }
    }

    /// Appends output with its line feeds as a terminal needs them.
    fn push_lines(&mut self, bytes: &[u8]) {
        if memchr::memchr_iter(b'\n', bytes).count() > bytes.len() / SHORT_LINE_BYTES {
            return self.push_short_lines(bytes);
        }
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', bytes) {
            self.text.extend_from_slice(&bytes[from..at]);
            let before = at.checked_sub(1).map_or(self.is_returned, |before| bytes[before] == b'\r');
            self.text.extend_from_slice(if before { b"\n" } else { b"\r\n" });
            from = at + 1;
        }
        self.text.extend_from_slice(&bytes[from..]);
        self.is_returned = bytes.last().map_or(self.is_returned, |&last| last == b'\r');
    }

    /// [`TimedOutput::push_lines`] for output in which a search for each line feed would take longer than a look at
    /// each byte.
    fn push_short_lines(&mut self, bytes: &[u8]) {
        let mut lines = [0; 2 * SHORT_PIECE_BYTES];
        let mut is_returned = self.is_returned;
        for piece in bytes.chunks(SHORT_PIECE_BYTES) {
            let mut len = 0;
            for &byte in piece {
                let is_ended = byte == b'\n' && !is_returned;
                // The second byte is overwritten unless it is needed, which costs less than a branch on every byte.
                lines[len..][..2].copy_from_slice(&if is_ended { *b"\r\n" } else { [byte, 0] });
                len += 1 + usize::from(is_ended);
                is_returned = byte == b'\r';
            }
            self.text.extend_from_slice(&lines[..len]);
        }
        self.is_returned = is_returned;
    }

    /// Notes that the terminal has this size from then on.
    pub(super) fn resize(&mut self, window: (u16, u16), at: Duration) {
        if self.window.is_some() && self.text.is_empty() {
            self.window = Some(window);
        } else if self.failure.is_none() && self.taken < self.cap {
            self.last = self.last.max(at);
            self.put_size();
            self.end_event();
            push_event(self.seq, self.last, EventKind::Size, &size_text(window), &mut self.lines);
        }
    }

    /// Notes that a person typed this much.
    pub(super) fn answer(&mut self, text: &str, at: Duration) {
        if self.failure.is_none() && self.taken < self.cap {
            self.last = self.last.max(at);
            self.put_size();
            self.end_event();
            push_event(self.seq, self.last, EventKind::Input, text, &mut self.lines);
        }
    }

    /// Notes that output was lost with an earlier recorder.
    pub(super) fn lose(&mut self, bytes: u64) {
        if self.cap > 0 {
            self.remark(&format!("{} of output came before this and are lost", count::bytes(bytes)));
        }
    }

    fn remark(&mut self, text: &str) {
        self.put_size();
        push_event(self.seq, self.last, EventKind::Remark, &format!("rexec: {text}"), &mut self.lines);
    }

    fn put_size(&mut self) {
        if let Some(window) = self.window.take() {
            push_event(self.seq, Duration::ZERO, EventKind::Size, &size_text(window), &mut self.lines);
        }
    }

    /// Makes an event of the text but for what is torn at its end.
    fn end_event(&mut self) {
        let whole = whole_len(&self.text);
        self.put_event(whole);
        self.began = self.last;
    }

    fn put_event(&mut self, length: usize) {
        if length > 0 {
            self.put_size();
            let text = &self.text[..length];
            // The check alone is much faster than the replacement of what is invalid.
            let text = str::from_utf8(text).map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed);
            push_event(self.seq, self.began, EventKind::Output, &text, &mut self.lines);
            self.text.drain(..length);
        }
    }

    /// Writes the lines that wait, if there are many of them or they `must` be written.
    pub(super) fn flush(&mut self, must: bool, files: &mut OutputFiles) {
        if must {
            self.end_event();
        }
        if self.lines.is_empty() || self.failure.is_some() || !(must || self.lines.len() >= LINES_BYTES_MAX) {
            return;
        }
        self.failure = files.write(&mut self.place, &self.lines).err();
        self.lines.clear();
        if self.failure.is_some() {
            self.text = Vec::new();
        }
    }

    /// Writes the rest, and notes in the record where the recording is.
    pub(super) fn finish(mut self, files: &mut OutputFiles, output: &mut RecordedOutput) {
        self.put_event(self.text.len());
        if self.omitted > 0 {
            self.remark(&format!("{} more are not recorded", count::bytes(self.omitted)));
        }
        self.flush(true, files);
        if let Some(place) = self.place {
            files.leave(&place);
            output.recording = Some(place.reference);
            output.recording_at = Some(place.range);
        }
        output.recording_omitted = (self.omitted > 0).then_some(self.omitted);
        output.recording_error = self.failure;
    }
}

#[cfg(test)]
mod tests;
