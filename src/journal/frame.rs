//! The host's messages to the recorder: frames on a stream socket, each its number, the length of its payload as a
//! little-endian `u32`, and the payload. [`Frame`] is their table.
//!
//! Both ends are the same program, forked, so the frames have no version.
//!
//! Invariants: the recorder does not write a start with entries whose [`Frame::Entries`] did not come; the decoder trusts
//! no length: it skips a frame that is longer than any that the encoder makes, and does not store it.

use std::time::Duration;

use rexec_sh::protocol::wire::{Field, Message, WireError};
use rexec_sh::wire;

use super::record::{DestroyedRecord, InputRecord, RunEnd, StartRecord, UnseenRecord};
use crate::text::redact::{is_secret, split_entry};

/// The longest payload, bytes. The largest one is a start record with every field at its bound.
pub const FRAME_BYTES_MAX: usize = 768 << 10;
/// The most output in one frame, bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The longest variable that is sent, bytes. execve(2) takes none that is longer.
const ENTRY_BYTES_MAX: usize = 128 << 10;
/// The number and the length.
const HEADER_BYTES: usize = 5;

wire! {
    /// A message of the host. `at` is the time from the run's start to the moment when the host read or wrote it.
    #[derive(Debug, PartialEq, Eq)]
    pub enum Frame<'a> {
        /// A run begins. `has_entries`: all of its [`Frame::Entries`] came before.
        1 Start { has_entries: bool, start: Box<StartRecord> },
        /// Entries `NAME=value`, a NUL behind each, for [`variables`]: the run's environment, or what of it the recorder
        /// masks in this run.
        2 Entries { seq: u64, entries: &'a [u8] },
        /// The record keeps the order of all streams' output, and not their numbers.
        3 Output { seq: u64, stream: u8, at: Duration, bytes: &'a [u8] },
        /// The run's terminal has another size: rows and columns.
        4 Resized { seq: u64, at: Duration, window: (u16, u16) },
        /// The recorder answers, with the same mark, what it has of the run by then.
        5 Mark { seq: u64, mark: u64 },
        /// This much of the run's output went to a recorder that died.
        6 Lost { seq: u64, bytes: u64 },
        /// A person typed for the run.
        7 Input { at: Duration, input: Box<InputRecord> },
        /// The recorder ignores a run without a start, and frames of a run that come after its end.
        8 End(end: Box<RunEnd>),
        /// Commands ran without a host.
        9 Unseen(unseen: Box<UnseenRecord>),
        /// The text of the file of project sessions.
        10 Projects(text: &'a [u8]),
        /// The host gave up this many records.
        11 Dropped(count: u64),
        /// The host leaves in order. The recorder then ends the journal with a `close` record.
        12 Close,
        /// It is known what a run has destroyed, perhaps long after its end.
        13 Destroyed(destroyed: Box<DestroyedRecord>),
    }
}

/// A record is the rest of its payload, as JSON.
macro_rules! records {
    ($($record:ident),+) => { $(impl<'a> Field<'a> for Box<$record> {
        fn put(&self, out: &mut Vec<u8>) {
            serde_json::to_writer(out, self).expect("a record has string keys only, and memory does not fail to write");
        }

        fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
            serde_json::from_slice(std::mem::take(payload)).map_err(|_| WireError::Malformed("a record that is none"))
        }
    })+ };
}

records!(DestroyedRecord, StartRecord, InputRecord, RunEnd, UnseenRecord);

impl Frame<'_> {
    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind(), 0, 0, 0, 0]);
        let payload = out.len();
        self.put_fields(out);
        let length = u32::try_from(out.len() - payload).expect("payloads are bounded far below 4 GiB");
        out[payload - 4..payload].copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends the frames of a run that begins in this environment (entries `NAME=value`). Unless the start says that all of
/// the environment is sent, only its secrets are.
pub fn encode_start<'a>(start: &StartRecord, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let has_entries = encode_entries(start, environment, out);
    let start = Box::new(start.fitted().unwrap_or_else(|| start.clone()));
    Frame::Start { has_entries, start }.encode(out);
}

/// Appends the frames with the entries of an environment that are sent. Returns true if there are any.
fn encode_entries<'a>(start: &StartRecord, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let is_sent = |entry: &&[u8]| {
        entry.len() <= ENTRY_BYTES_MAX && (start.environment_sent || split_entry(entry).is_some_and(is_secret_entry))
    };
    let (mut entries, mut has_entries) = (Vec::new(), false);
    for entry in environment.into_iter().filter(is_sent) {
        if entries.len() > FRAME_BYTES_MAX - 2 * ENTRY_BYTES_MAX {
            Frame::Entries { seq: start.card.seq, entries: &entries }.encode(out);
            entries.clear();
        }
        entries.extend_from_slice(entry);
        entries.push(0);
        has_entries = true;
    }
    if has_entries {
        Frame::Entries { seq: start.card.seq, entries: &entries }.encode(out);
    }
    has_entries
}

fn is_secret_entry((name, value): (&[u8], &[u8])) -> bool {
    is_secret(name, value)
}

/// The names and values in the payload of a [`Frame::Entries`].
pub fn variables(payload: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    payload.split(|&byte| byte == 0).filter_map(split_entry)
}

/// Appends frames with output of a run. The caller numbers the streams.
pub fn encode_output(seq: u64, stream: u8, at: Duration, bytes: &[u8], out: &mut Vec<u8>) {
    bytes.chunks(OUTPUT_BYTES_MAX).for_each(|bytes| Frame::Output { seq, stream, at, bytes }.encode(out));
}

/// Appends the frame of a run that has ended.
pub fn encode_end(end: RunEnd, out: &mut Vec<u8>) {
    Frame::End(Box::new(end.fitted().unwrap_or(end))).encode(out);
}

/// Appends the frame with the project sessions. Skips a text that no frame can hold.
pub fn encode_projects(text: &[u8], out: &mut Vec<u8>) {
    if text.len() <= FRAME_BYTES_MAX {
        Frame::Projects(text).encode(out);
    }
}

/// Cuts a byte stream, which arrives in pieces of any size, into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    /// The bytes that arrived, and room for more.
    buffer: Vec<u8>,
    /// How many bytes of `buffer` have arrived.
    end: usize,
    /// How many of them were returned as frames.
    taken: usize,
    /// How many bytes of a frame that is too long have not arrived yet.
    skip: usize,
}

impl Decoder {
    /// Adds bytes that arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let bytes = &bytes[skipped..];
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Room for this many bytes or more. The caller reads into it.
    pub fn room(&mut self, least: usize) -> &mut [u8] {
        self.buffer.copy_within(self.taken..self.end, 0);
        (self.end, self.taken) = (self.end - self.taken, 0);
        if self.buffer.len() < self.end + least {
            self.buffer.resize(self.end + least, 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Adds the first bytes of [`Decoder::room`], this many.
    pub fn arrived(&mut self, length: usize) {
        let skipped = self.skip.min(length);
        self.skip -= skipped;
        self.buffer.copy_within(self.end + skipped..self.end + length, self.end);
        self.end += length - skipped;
    }

    /// Takes the next whole frame; `None` until more bytes arrive.
    ///
    /// # Errors
    /// Those of [`Message::read`]. The frame is passed over.
    pub fn next_frame(&mut self) -> Option<Result<Frame<'_>, WireError>> {
        loop {
            let &[kind, a, b, c, d] = self.buffer[self.taken..self.end].first_chunk::<HEADER_BYTES>()?;
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            let payload = self.taken + HEADER_BYTES;
            let have = self.end - payload;
            if length > FRAME_BYTES_MAX {
                self.taken = payload + length.min(have);
                self.skip = length - length.min(have);
            } else if have < length {
                return None;
            } else {
                self.taken = payload + length;
                return Some(Frame::read(kind, &self.buffer[payload..self.taken]));
            }
        }
    }
}

#[cfg(test)]
mod tests;
