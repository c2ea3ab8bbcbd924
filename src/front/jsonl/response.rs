//! The one line that answers a command: its exit code and its output.
//!
//! Invariants: the output stays below [`limits::JSON_OUTPUT_BYTES_MAX`] and within the share of all connections'
//! memory; once a byte is left out, so is everything after it, and the left-out bytes are counted.

use std::borrow::Cow;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use crate::core::end::End;
use crate::front::budget::Share;
use crate::front::how_ended::HowEnded;
use crate::front::json_line::put_line;

use crate::limits;
use crate::text::sanitize::{Mode, Sanitizer};

#[derive(Serialize)]
struct Response<'a> {
    exit: u8,
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    output_omitted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The output of a command until its response is written.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Removes escape sequences; `None` if they are wanted.
    sanitizer: Option<Sanitizer>,
    bytes: Vec<u8>,
    /// The memory that this connection may hold.
    share: Share,
    /// The number of bytes left out.
    omitted: u64,
}

impl Gathered {
    pub(super) fn new(share: Share) -> Self {
        Self { sanitizer: Some(Sanitizer::new(Mode::Strip)), ..Self::as_written(share) }
    }

    /// Output that keeps its escape sequences.
    pub(super) fn as_written(share: Share) -> Self {
        Self { sanitizer: None, bytes: Vec::new(), share, omitted: 0 }
    }

    /// Counts output that is missing before the next one.
    pub(super) fn miss(&mut self, bytes: u64) {
        self.omitted += bytes;
    }

    /// The output, with U+FFFD for bytes that are not UTF-8.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }

    pub(super) fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Takes the first bytes of `bytes`; returns their number.
    pub(super) fn push(&mut self, bytes: &[u8]) -> usize {
        let piece = &bytes[..bytes.len().min(limits::FILTERED_PIECE_BYTES)];
        let before = self.bytes.len();
        match &mut self.sanitizer {
            Some(sanitizer) => sanitizer.push(piece, &mut self.bytes),
            None => self.bytes.extend_from_slice(piece),
        }
        self.bound(before);
        piece.len()
    }

    pub(super) fn push_all(&mut self, bytes: &[u8]) {
        let mut taken = 0;
        while taken < bytes.len() {
            taken += self.push(&bytes[taken..]);
        }
    }

    /// Ends the output.
    pub(super) fn finish(&mut self) {
        let before = self.bytes.len();
        if let Some(sanitizer) = &mut self.sanitizer {
            sanitizer.finish(&mut self.bytes);
        }
        self.bound(before);
        self.cut(prefix_within(&self.bytes, self.share.room()));
    }

    pub(super) fn respond(&mut self, end: &End, out: &mut Vec<u8>) {
        let start = out.len();
        self.finish();
        let HowEnded { exit, error, message, .. } = HowEnded::from(end);
        let output = self.text();
        let (message, output_omitted) = (message.as_deref(), self.omitted);
        put_line(&Response { exit, output: &output, error, message, output_omitted }, out);
        drop(output);
        self.bytes = Vec::new();
        self.share.hold(out.len() - start);
    }

    /// Cuts the output to its limit, after it grew from `before` bytes.
    fn bound(&mut self, before: usize) {
        let most = if self.omitted > 0 { before } else { limits::JSON_OUTPUT_BYTES_MAX.min(self.share.room()) };
        self.cut(most);
        self.share.hold(self.bytes.len());
    }

    fn cut(&mut self, most: usize) {
        if let Some(beyond) = self.bytes.len().checked_sub(most) {
            self.omitted += u64::try_from(beyond).expect("a length fits 64 bits");
            self.bytes.truncate(most);
        }
    }
}

/// Writes the response to a refused client.
pub(super) fn refuse(notice: &Notice, out: &mut Vec<u8>) {
    let message = notice.to_string();
    let (error, message) = (Some("refused"), Some(message.as_str()));
    put_line(&Response { exit: notice.code, output: "", error, message, output_omitted: 0 }, out);
}

/// The length of the longest beginning of `output` that takes no more than `most` bytes as a string of JSON.
fn prefix_within(output: &[u8], most: usize) -> usize {
    // A byte becomes six bytes of JSON or fewer.
    if output.len() <= most / 6 {
        return output.len();
    }
    let (mut taken, mut prefix) = (0, 0);
    for chunk in output.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            taken += match byte {
                b'"' | b'\\' | b'\n' | b'\t' => 2,
                0..b' ' => 6,
                _ => 1,
            };
            if taken > most {
                return prefix;
            }
            prefix += 1;
        }
        if !chunk.invalid().is_empty() {
            taken += char::REPLACEMENT_CHARACTER.len_utf8();
            if taken > most {
                return prefix;
            }
            prefix += chunk.invalid().len();
        }
    }
    prefix
}
