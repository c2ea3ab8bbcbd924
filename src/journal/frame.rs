//! The host's messages to the recorder: frames on a stream socket.
//!
//! ```text
//! kind u8 | seq u64 | length u32 | payload         numbers are little-endian
//! START     a start record, JSON
//! ENTRIES   entries NAME=value, a NUL behind each: the run's environment, or what of it the recorder masks in this run
//! MASKED    a start record, JSON, of a run whose ENTRIES came before; it says whether they are all
//! OUTPUT    the stream's number u8, microseconds since the run's start u64, raw bytes
//! RESIZED   microseconds since the run's start u64, rows u16, columns u16
//! MARK      a number u64: the recorder answers how far the run is
//! LOST      a count u64: bytes of the run's output that went to a recorder that died
//! END       how the run ended, JSON
//! INPUT     microseconds since the run's start u64, an input record, JSON
//! PROJECTS  the project sessions, JSON; seq is 0
//! DROPPED   a count u64: records that the host gave up; seq is 0
//! CLOSE     nothing; seq is 0
//! ```
//!
//! Both ends are the same program, forked, so the frames have no version.
//!
//! Invariants: the recorder does not write a MASKED start whose ENTRIES did not come; the decoder trusts no length: it
//! skips a frame that is longer than any that the encoder makes, and does not store it; it passes over a frame that
//! it does not understand.

use std::time::Duration;

use super::record::{InputRecord, RunEnd, StartRecord, UnseenRecord};
use crate::text::redact::{is_secret, split_entry};

/// The longest payload, bytes. The largest one is a start record with every field at its bound.
pub const FRAME_BYTES_MAX: usize = 768 << 10;
/// The most output in one frame, bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The longest variable that is sent, bytes. execve(2) takes none that is longer.
const ENTRY_BYTES_MAX: usize = 128 << 10;
/// Kind, seq and length.
const HEADER_BYTES: usize = 13;

const START: u8 = 1;
const OUTPUT: u8 = 2;
const END: u8 = 3;
const CLOSE: u8 = 4;
const ENTRIES: u8 = 5;
const MASKED: u8 = 6;
const LOST: u8 = 7;
const DROPPED: u8 = 8;
const RESIZED: u8 = 9;
const INPUT: u8 = 10;
const UNSEEN: u8 = 12;
const MARK: u8 = 13;
const PROJECTS: u8 = 11;

/// Appends the frames of a run that begins in this environment (entries `NAME=value`). Unless the start says that all of
/// the environment is sent, only its secrets are.
pub fn encode_start<'a>(start: &StartRecord, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let has_entries = encode_entries(start, environment, out);
    let fitted = start.fitted();
    let kind = if has_entries { MASKED } else { START };
    encode(kind, start.seq, out, |out| put_json(fitted.as_ref().unwrap_or(start), out));
}

/// Appends the frames with the entries of an environment that are sent. Returns true if there are any.
fn encode_entries<'a>(start: &StartRecord, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let is_sent = |entry: &&[u8]| {
        entry.len() <= ENTRY_BYTES_MAX && (start.environment_sent || split_entry(entry).is_some_and(is_secret_entry))
    };
    let mut entries = environment.into_iter().filter(is_sent);
    let mut next = entries.next();
    let has_entries = next.is_some();
    while next.is_some() {
        encode(ENTRIES, start.seq, out, |out| {
            let full_at = out.len() + FRAME_BYTES_MAX - ENTRY_BYTES_MAX;
            while let Some(entry) = next {
                out.extend_from_slice(entry);
                out.push(0);
                next = entries.next();
                if out.len() >= full_at {
                    break;
                }
            }
        });
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

/// Appends frames with output of a run, read this long after its start. The caller numbers the streams; the record keeps
/// the order of their output and not their names.
pub fn encode_output(seq: u64, stream: u8, at: Duration, bytes: &[u8], out: &mut Vec<u8>) {
    for piece in bytes.chunks(OUTPUT_BYTES_MAX) {
        encode(OUTPUT, seq, out, |out| {
            out.push(stream);
            put_time(at, out);
            out.extend_from_slice(piece);
        });
    }
}

/// Appends the frame that says that a run's terminal got another size this long after its start.
pub fn encode_resized(seq: u64, at: Duration, (rows, cols): (u16, u16), out: &mut Vec<u8>) {
    encode(RESIZED, seq, out, |out| {
        put_time(at, out);
        out.extend_from_slice(&rows.to_le_bytes());
        out.extend_from_slice(&cols.to_le_bytes());
    });
}

fn put_time(at: Duration, out: &mut Vec<u8>) {
    out.extend_from_slice(&u64::try_from(at.as_micros()).unwrap_or(u64::MAX).to_le_bytes());
}

/// Splits a payload into the time at its beginning and the rest.
fn split_time(payload: &[u8]) -> Option<(Duration, &[u8])> {
    let (time, rest) = payload.split_first_chunk()?;
    Some((Duration::from_micros(u64::from_le_bytes(*time)), rest))
}

/// Appends the frame of a run that has ended. The recorder ignores a run without a start, and frames of a run that come
/// after its end.
pub fn encode_end(end: &RunEnd, out: &mut Vec<u8>) {
    let fitted = end.fitted();
    encode(END, end.seq, out, |out| put_json(fitted.as_ref().unwrap_or(end), out));
}

/// Appends the frame that says how many bytes of a run's output were lost with an earlier recorder.
pub fn encode_lost(seq: u64, bytes: u64, out: &mut Vec<u8>) {
    encode(LOST, seq, out, |out| out.extend_from_slice(&bytes.to_le_bytes()));
}

/// Appends the frame that asks the recorder what it has of a run by then. The answer has the same number.
pub fn encode_mark(seq: u64, mark: u64, out: &mut Vec<u8>) {
    encode(MARK, seq, out, |out| out.extend_from_slice(&mark.to_le_bytes()));
}

/// Appends the frame that says how much a person typed for a run.
pub fn encode_input(input: &InputRecord, at: Duration, out: &mut Vec<u8>) {
    encode(INPUT, input.seq, out, |out| {
        put_time(at, out);
        put_json(input, out);
    });
}

/// Appends the frame of commands that ran without a host.
pub fn encode_unseen(unseen: &UnseenRecord, out: &mut Vec<u8>) {
    encode(UNSEEN, 0, out, |out| put_json(unseen, out));
}

/// Appends the frame with the project sessions. Skips a text that no frame can hold.
pub fn encode_projects(text: &[u8], out: &mut Vec<u8>) {
    if text.len() <= FRAME_BYTES_MAX {
        encode(PROJECTS, 0, out, |out| out.extend_from_slice(text));
    }
}

/// Appends the frame that says how many records the host gave up.
pub fn encode_dropped(count: u64, out: &mut Vec<u8>) {
    encode(DROPPED, 0, out, |out| out.extend_from_slice(&count.to_le_bytes()));
}

/// Appends the frame of a host that leaves in order. The recorder then ends the journal with a `close` record.
pub fn encode_close(out: &mut Vec<u8>) {
    encode(CLOSE, 0, out, |_| {});
}

fn encode(kind: u8, seq: u64, out: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    out.extend_from_slice(&seq.to_le_bytes());
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    payload(out);
    let length = u32::try_from(out.len() - length_at - 4).expect("payloads are bounded far below 4 GiB");
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}

fn put_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("a record has string keys only, and memory does not fail to write");
}

/// Splits a header into kind, seq and the payload's length.
fn fields(header: &[u8; HEADER_BYTES]) -> (u8, u64, usize) {
    let seq = u64::from_le_bytes(*header[1..].first_chunk().expect("the header holds a seq"));
    let length = u32::from_le_bytes(*header[9..].first_chunk().expect("the header holds a length"));
    (header[0], seq, length as usize)
}

/// One message of the host.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Start {
        start: Box<StartRecord>,
        /// [`Frame::Entries`] of this run came before.
        has_entries: bool,
    },
    /// The entries are for [`variables`].
    Entries {
        seq: u64,
        entries: &'a [u8],
    },
    Output {
        seq: u64,
        stream: u8,
        /// The time from the run's start to the moment when the host read it.
        at: Duration,
        bytes: &'a [u8],
    },
    /// The run's terminal has another size: rows and columns.
    Resized {
        seq: u64,
        at: Duration,
        window: (u16, u16),
    },
    /// The host asks how far the run is.
    Mark {
        seq: u64,
        mark: u64,
    },
    /// Output that was lost with an earlier recorder.
    Lost {
        seq: u64,
        bytes: u64,
    },
    /// A person typed this much for the run.
    Input {
        at: Duration,
        input: Box<InputRecord>,
    },
    End(Box<RunEnd>),
    Unseen(Box<UnseenRecord>),
    /// The text of the file of project sessions.
    Projects(&'a [u8]),
    /// How many records the host gave up.
    Dropped(u64),
    /// The host leaves in order.
    Close,
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

    /// Returns the next whole frame. `None` until more bytes arrive.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let (kind, seq, payload) = loop {
            let (kind, seq, length) = fields(self.buffer[self.taken..self.end].first_chunk()?);
            let payload_at = self.taken + HEADER_BYTES;
            let have = self.end - payload_at;
            if length > FRAME_BYTES_MAX {
                self.taken = payload_at + length.min(have);
                self.skip = length - length.min(have);
                continue;
            }
            if have < length {
                return None;
            }
            self.taken = payload_at + length;
            let payload = payload_at..self.taken;
            match understand(kind, seq, &self.buffer[payload.clone()]) {
                // These borrow from the buffer, and a borrow that leaves the function must not begin inside the loop.
                Some(Frame::Output { .. } | Frame::Entries { .. } | Frame::Projects(_)) => break (kind, seq, payload),
                Some(Frame::Start { start, has_entries }) => return Some(Frame::Start { start, has_entries }),
                Some(Frame::End(end)) => return Some(Frame::End(end)),
                Some(Frame::Resized { seq, at, window }) => return Some(Frame::Resized { seq, at, window }),
                Some(Frame::Mark { seq, mark }) => return Some(Frame::Mark { seq, mark }),
                Some(Frame::Lost { seq, bytes }) => return Some(Frame::Lost { seq, bytes }),
                Some(Frame::Input { at, input }) => return Some(Frame::Input { at, input }),
                Some(Frame::Unseen(unseen)) => return Some(Frame::Unseen(unseen)),
                Some(Frame::Dropped(count)) => return Some(Frame::Dropped(count)),
                Some(Frame::Close) => return Some(Frame::Close),
                None => {}
            }
        };
        understand(kind, seq, &self.buffer[payload])
    }
}

fn understand(kind: u8, seq: u64, payload: &[u8]) -> Option<Frame<'_>> {
    match kind {
        START | MASKED => {
            let start = serde_json::from_slice(payload).ok()?;
            Some(Frame::Start { start: Box::new(start), has_entries: kind == MASKED })
        }
        ENTRIES => Some(Frame::Entries { seq, entries: payload }),
        OUTPUT => {
            let (&stream, rest) = payload.split_first()?;
            split_time(rest).map(|(at, bytes)| Frame::Output { seq, stream, at, bytes })
        }
        RESIZED => {
            let (at, size) = split_time(payload)?;
            let (rows, cols) = (size.first_chunk()?, size.last_chunk()?);
            Some(Frame::Resized { seq, at, window: (u16::from_le_bytes(*rows), u16::from_le_bytes(*cols)) })
        }
        MARK => Some(Frame::Mark { seq, mark: u64::from_le_bytes(payload.try_into().ok()?) }),
        LOST => Some(Frame::Lost { seq, bytes: u64::from_le_bytes(payload.try_into().ok()?) }),
        INPUT => {
            let (at, input) = split_time(payload)?;
            Some(Frame::Input { at, input: Box::new(serde_json::from_slice(input).ok()?) })
        }
        DROPPED => Some(Frame::Dropped(u64::from_le_bytes(payload.try_into().ok()?))),
        END => serde_json::from_slice(payload).ok().map(|end| Frame::End(Box::new(end))),
        UNSEEN => serde_json::from_slice(payload).ok().map(|unseen| Frame::Unseen(Box::new(unseen))),
        PROJECTS => Some(Frame::Projects(payload)),
        CLOSE => Some(Frame::Close),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
