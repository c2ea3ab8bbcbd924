//! How the host tells the recorder: frames on a stream socket.
//!
//! ```text
//! kind u8 | seq u64 | length u32 | payload         numbers little-endian
//! START     the JSON of a Start
//! SECRETS   entries NAME=value, each with a NUL behind it: what is to be masked in this run
//! MASKED    the JSON of a Start; SECRETS came before it
//! OUTPUT    the stream's number u8, raw bytes
//! LOST      a count u64: so many bytes of the run's output went to a recorder that died
//! END       the JSON of an End
//! DROPPED   a count u64: so many records were given up by the host; seq is 0
//! CLOSE     nothing; seq is 0
//! ```
//!
//! A MASKED start whose SECRETS did not come must not be written.
//!
//! Both ends are the same program, forked, so there is no version. Still the decoder trusts no length: what is longer
//! than any frame the encoder makes is skipped, not stored, and what cannot be understood is counted and passed over.

use super::{RunEnd, StartRecord};
use crate::text::redact::is_secret;

/// The longest payload, bytes. A fitted [`Start`] is the largest one there is.
pub const FRAME_BYTES_MAX: usize = 768 << 10;
/// The most output in one frame, bytes.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// The longest variable that is sent as a secret, bytes; execve(2) takes none that is longer.
const SECRET_BYTES_MAX: usize = 128 << 10;
const HEADER_BYTES: usize = 13;

const START: u8 = 1;
const OUTPUT: u8 = 2;
const END: u8 = 3;
const CLOSE: u8 = 4;
const SECRETS: u8 = 5;
const MASKED: u8 = 6;
const LOST: u8 = 7;
const DROPPED: u8 = 8;

/// Appends the frame that says that a run without secrets begins.
pub fn encode_start(start: &StartRecord, out: &mut Vec<u8>) {
    encode_start_in(start, [], out);
}

/// Appends the frames that say that a run begins, and what of its environment (`NAME=value`) is secret.
pub fn encode_start_in<'a>(start: &StartRecord, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let has_secrets = encode_secrets(start.seq, environment, out);
    let fitted = start.fitted();
    let kind = if has_secrets { MASKED } else { START };
    encode(kind, start.seq, out, |out| put_json(fitted.as_ref().unwrap_or(start), out));
}

/// Appends the frames with the secrets of an environment, if it has any.
fn encode_secrets<'a>(seq: u64, environment: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
    let mut entries = environment.into_iter().filter(|entry| entry.len() <= SECRET_BYTES_MAX && is_secret_entry(entry));
    let mut next = entries.next();
    let has_secrets = next.is_some();
    while next.is_some() {
        encode(SECRETS, seq, out, |out| {
            let full_at = out.len() + FRAME_BYTES_MAX - SECRET_BYTES_MAX;
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
    has_secrets
}

fn is_secret_entry(entry: &[u8]) -> bool {
    split_entry(entry).is_some_and(|(name, value)| is_secret(name, value))
}

fn split_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', entry)?;
    Some((&entry[..at], &entry[at + 1..]))
}

/// The variables of a SECRETS frame.
pub fn secrets(payload: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    payload.split(|&byte| byte == 0).filter_map(split_entry)
}

/// Appends frames with output of a run. Streams are numbered by the caller: the record keeps their order, not their names.
pub fn encode_output(seq: u64, stream: u8, bytes: &[u8], out: &mut Vec<u8>) {
    for piece in bytes.chunks(OUTPUT_BYTES_MAX) {
        encode(OUTPUT, seq, out, |out| {
            out.push(stream);
            out.extend_from_slice(piece);
        });
    }
}

/// Appends the frame that says how a run ended. A run whose start was never sent leaves no record, and nothing about a
/// run counts after its end.
pub fn encode_end(end: &RunEnd, out: &mut Vec<u8>) {
    let fitted = end.fitted();
    encode(END, end.seq, out, |out| put_json(fitted.as_ref().unwrap_or(end), out));
}

/// Appends the frame that says how much of a run's output an earlier recorder took with it.
pub fn encode_lost(seq: u64, bytes: u64, out: &mut Vec<u8>) {
    encode(LOST, seq, out, |out| out.extend_from_slice(&bytes.to_le_bytes()));
}

/// Appends the frame that says how many records the host gave up.
pub fn encode_dropped(count: u64, out: &mut Vec<u8>) {
    encode(DROPPED, 0, out, |out| out.extend_from_slice(&count.to_le_bytes()));
}

/// Appends the frame that says that the host leaves in order: the journal ends with a `close` record.
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

/// Kind, seq and length of the payload.
fn fields(header: &[u8; HEADER_BYTES]) -> (u8, u64, usize) {
    let seq = u64::from_le_bytes(*header[1..].first_chunk().expect("the header holds a seq"));
    let length = u32::from_le_bytes(*header[9..].first_chunk().expect("the header holds a length"));
    (header[0], seq, length as usize)
}

/// What the host said.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    Start {
        start: Box<StartRecord>,
        /// There are secrets to be masked in it.
        has_secrets: bool,
    },
    /// See [`secrets`].
    Secrets {
        seq: u64,
        entries: &'a [u8],
    },
    Output {
        seq: u64,
        stream: u8,
        bytes: &'a [u8],
    },
    Lost {
        seq: u64,
        bytes: u64,
    },
    End(Box<RunEnd>),
    Dropped(u64),
    Close,
}

/// Makes frames of a byte stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How much of `buffer` was handed out.
    taken: usize,
    /// How much of a frame that is too long is still to come.
    skip: usize,
    rejected: u64,
}

impl Decoder {
    /// Takes in what arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(&bytes[skipped..]);
    }

    /// The next whole frame, if there is one.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        let (kind, seq, payload) = loop {
            let (kind, seq, length) = fields(self.buffer[self.taken..].first_chunk()?);
            let payload_at = self.taken + HEADER_BYTES;
            let have = self.buffer.len() - payload_at;
            if length > FRAME_BYTES_MAX {
                self.taken = payload_at + length.min(have);
                self.skip = length - length.min(have);
                self.rejected += 1;
                continue;
            }
            if have < length {
                return None;
            }
            self.taken = payload_at + length;
            let payload = payload_at..self.taken;
            match understand(kind, seq, &self.buffer[payload.clone()]) {
                // What borrows is made again below: a borrow that leaves the function must not begin inside the loop.
                Some(Frame::Output { .. } | Frame::Secrets { .. }) => break (kind, seq, payload),
                Some(Frame::Start { start, has_secrets }) => return Some(Frame::Start { start, has_secrets }),
                Some(Frame::End(end)) => return Some(Frame::End(end)),
                Some(Frame::Lost { seq, bytes }) => return Some(Frame::Lost { seq, bytes }),
                Some(Frame::Dropped(count)) => return Some(Frame::Dropped(count)),
                Some(Frame::Close) => return Some(Frame::Close),
                None => self.rejected += 1,
            }
        };
        understand(kind, seq, &self.buffer[payload])
    }

    /// Frames that were passed over because they were too long or made no sense.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }
}

fn understand(kind: u8, seq: u64, payload: &[u8]) -> Option<Frame<'_>> {
    match kind {
        START | MASKED => {
            let start = serde_json::from_slice(payload).ok()?;
            Some(Frame::Start { start: Box::new(start), has_secrets: kind == MASKED })
        }
        SECRETS => Some(Frame::Secrets { seq, entries: payload }),
        OUTPUT => payload.split_first().map(|(&stream, bytes)| Frame::Output { seq, stream, bytes }),
        LOST => Some(Frame::Lost { seq, bytes: u64::from_le_bytes(payload.try_into().ok()?) }),
        DROPPED => Some(Frame::Dropped(u64::from_le_bytes(payload.try_into().ok()?))),
        END => serde_json::from_slice(payload).ok().map(|end| Frame::End(Box::new(end))),
        CLOSE => Some(Frame::Close),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EndRecord, LINE_BYTES_MAX, line};
    use super::*;

    fn drain(decoder: &mut Decoder) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(frame) = decoder.next_frame() {
            seen.push(format!("{frame:?}"));
        }
        seen
    }

    #[test]
    fn any_split_gives_the_same_frames() {
        let mut stream = Vec::new();
        let start = StartRecord { seq: 7, command: "ls".into(), ..StartRecord::default() };
        encode_start(&start, &mut stream);
        encode_output(7, 2, b"a\x00\xff", &mut stream);
        encode_output(7, 2, b"", &mut stream);
        stream.extend_from_slice(&[99, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, b'h', b'i']);
        encode_end(&RunEnd { seq: 7, exit: 3, ..RunEnd::default() }, &mut stream);
        encode_close(&mut stream);

        let mut whole = Decoder::default();
        whole.feed(&stream);
        let expected = drain(&mut whole);
        assert_eq!((expected.len(), whole.rejected()), (4, 1));
        assert_eq!(expected[1], format!("{:?}", Frame::Output { seq: 7, stream: 2, bytes: b"a\x00\xff" }));
        for at in 0..=stream.len() {
            let mut decoder = Decoder::default();
            decoder.feed(&stream[..at]);
            let mut seen = drain(&mut decoder);
            decoder.feed(&stream[at..]);
            seen.extend(drain(&mut decoder));
            assert_eq!(seen, expected, "split at {at}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_skipped_and_not_stored() {
        let length = 100 << 20;
        let mut decoder = Decoder::default();
        let mut header = vec![OUTPUT, 1, 0, 0, 0, 0, 0, 0, 0];
        header.extend_from_slice(&(length as u32).to_le_bytes());
        decoder.feed(&header);
        assert!(decoder.next_frame().is_none());
        let zeros = vec![0; 1 << 20];
        for _ in 0..100 {
            decoder.feed(&zeros);
            assert!(decoder.next_frame().is_none() && decoder.buffer.capacity() < 1 << 20);
        }
        let mut close = Vec::new();
        encode_close(&mut close);
        decoder.feed(&close);
        assert_eq!(decoder.next_frame(), Some(Frame::Close));
    }

    #[test]
    fn the_largest_fields_still_fit_a_frame_and_a_line() {
        for unit in ["\u{1}", "\"", "x", "\u{10ffff}"] {
            let long = unit.repeat(240 << 10);
            let start = StartRecord {
                command: long.clone(),
                exec: vec![long.clone(), long.clone()],
                exec_b64: Some(vec!["A".repeat(190 << 10)]),
                dir: long.clone(),
                whoami: long.clone(),
                shell: long.clone(),
                time: long.clone(),
                dir_b64: Some("A".repeat(30 << 10)),
                envs: (0..9999).map(|n| (n.to_string(), "\u{1}".repeat(9))).collect(),
                ..StartRecord::default()
            };
            let mut stream = Vec::new();
            encode_start(&start, &mut stream);
            assert!(stream.len() < FRAME_BYTES_MAX, "{}", stream.len());
            let mut decoder = Decoder::default();
            decoder.feed(&stream);
            let Some(Frame::Start { start: fitted, .. }) = decoder.next_frame() else { panic!("no start") };
            assert!(fitted.clipped && fitted.command.ends_with('…') && fitted.exec_b64.is_some());
            let left = super::super::Left { pid: i32::MIN, comm: unit.repeat(99) };
            let end = RunEnd {
                error: Some(long.clone()),
                left: vec![left; 999],
                unkillable: vec![i32::MIN; 9999],
                ..RunEnd::default()
            };
            let end = end.fitted().unwrap();
            let mut run = EndRecord::new(*fitted, end);
            run.output = "\u{fffd}".repeat(64 << 10);
            let whole = line("end", &run);
            assert!(whole.len() <= LINE_BYTES_MAX, "{}", whole.len());
            run.output = "\u{fffd}".repeat(400 << 10);
            assert!(run.line().len() <= LINE_BYTES_MAX);
        }
    }

    #[test]
    fn only_secrets_are_sent_and_any_amount_of_them() {
        let value = "v".repeat(120 << 10);
        let mut environment: Vec<String> = (0..20).map(|n| format!("KEY_{n}={value}")).collect();
        let sent = environment.clone();
        environment
            .extend(["PATH=/usr/bin:/bin", "SHORT_KEY=1234567", "NOTHING", "PWD=/srv/me/project"].map(String::from));
        environment.push(format!("HUGE_KEY={value}{value}"));
        let mut stream = Vec::new();
        encode_start_in(&StartRecord::default(), environment.iter().map(String::as_bytes), &mut stream);
        let mut decoder = Decoder::default();
        decoder.feed(&stream);
        let mut received = Vec::new();
        loop {
            match decoder.next_frame() {
                Some(Frame::Secrets { seq: 0, entries }) => {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    received.extend(secrets(entries).map(|(name, value)| format!("{}={}", text(name), text(value))));
                }
                Some(Frame::Start { has_secrets: true, .. }) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(received == sent && decoder.next_frame().is_none() && decoder.rejected() == 0);
        stream.clear();
        encode_start_in(&StartRecord::default(), [&b"PATH=/usr/bin:/bin"[..]], &mut stream);
        decoder.feed(&stream);
        assert!(matches!(decoder.next_frame(), Some(Frame::Start { has_secrets: false, .. })));
    }

    #[test]
    fn an_ordinary_start_is_not_touched() {
        let mut start = StartRecord { command: "x".repeat(131_071), ..StartRecord::default() };
        start.set_exec([&b"sh"[..], b"-c", &[b'x'; 131_071]].into_iter());
        start.set_dir(b"/tmp");
        assert_eq!((start.fitted(), &start.exec_b64, &start.dir_b64), (None, &None, &None));
        start.set_exec([&b"sh"[..], b"-c", &[0xff; 131_071]].into_iter());
        start.set_dir(b"/tmp/\xe4");
        assert_eq!(start.dir_b64.as_deref(), Some("L3RtcC/k"));
        let fitted = start.fitted().unwrap();
        assert_eq!(fitted.exec_b64, start.exec_b64);
    }
}
