//! Reports of a shim that runs its command itself, in its caller's sandbox, to the host.
//!
//! Most sandboxes deny sockets, but a FIFO that the host has made beforehand can be opened for writing in them. A report
//! is a sequence of records in that FIFO, which many shims write at once. A record has at most PIPE_BUF bytes, so the
//! kernel writes it in one piece (pipe(7)).
//!
//! ```text
//! record   magic 4 | checksum 8 | length 2 | kind 1 | detail 1 | key 16 | number 4 | payload
//! report   BEGIN+ (OUTPUT | UNREPORTED)* END
//! ```
//!
//! Every process of the same user can write there, so a reader trusts nothing: it skips bytes that are not a record,
//! and the records of a run count only with the run's own key, one after the other. A report never makes the host run
//! anything.
//!
//! Other processes of the user might read the FIFO before the host does, so no values of variables travel in it: of the
//! environment it has only names, and in arguments and output, values that may be secrets are masked (`value_mask.rs`).
//!
//! A run has two numbers. The *key* stays in its shim and in the FIFO, which only the host can read: knowing it allows
//! writing the report. The *mark* is in the command's environment and names the run; it allows nothing.

mod run_mark;
mod value_mask;

pub use run_mark::{RunMark, marked_run, marked_socket, names_witness, reported_entry, witness_name};
pub use value_mask::{MaskedStream, ValueMasks, reported_variable};

use super::process::{Exit, Signal};
use super::wire::CallerStream;

/// The longest record, bytes: PIPE_BUF of Linux.
pub const RECORD_BYTES_MAX: usize = 4096;
/// The part of it before the payload, bytes.
pub const RECORD_HEADER_BYTES: usize = 36;
/// The longest payload, bytes.
pub const PAYLOAD_BYTES_MAX: usize = RECORD_BYTES_MAX - RECORD_HEADER_BYTES;
/// The longest beginning of a report in all its records, bytes. A run with a longer one is not reported.
pub const BEGINNING_BYTES_MAX: usize = 256 << 10;
/// Environment in a beginning, bytes: names, and the values that name an agent. Further variables are left out.
pub const REPORTED_ENV_BYTES: usize = 64 << 10;

const RECORD_MAGIC: [u8; 4] = *b"\x1fRXR";
const CHECKED_FROM: usize = 12;
/// Size of the part of a beginning before its directory, bytes.
const PLACE_BYTES: usize = 44;

const BEGIN: u8 = 1;
const OUTPUT: u8 = 2;
const UNREPORTED: u8 = 3;
const END: u8 = 4;

/// The beginning of a run's records, drawn by chance. The command must not know it.
pub type RunKey = [u8; 16];

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report<'a> {
    /// A piece of the beginning, see [`Beginning`].
    Begin { piece: &'a [u8], is_last: bool },
    /// Output of the command.
    Output { stream: CallerStream, bytes: &'a [u8] },
    /// This many further bytes of this stream were not reported.
    Unreported { stream: CallerStream, bytes: u64 },
    /// The command has ended.
    End(Exit),
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportRecord<'a> {
    pub key: RunKey,
    /// The record's place in the report, from 0.
    pub number: u32,
    pub report: Report<'a>,
}

/// The beginning of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum FoundRecord<'a> {
    /// A record of this length, bytes.
    Record(ReportRecord<'a>, usize),
    /// This many bytes that are not a record.
    Garbage(usize),
    /// Perhaps the first part of a record.
    Incomplete,
}

/// Appends a record. Its payload has at most [`PAYLOAD_BYTES_MAX`] bytes.
pub fn encode_report(key: &RunKey, number: u32, report: &Report<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    let count;
    let (kind, detail, payload): (u8, u8, &[u8]) = match report {
        Report::Begin { piece, is_last } => (BEGIN, u8::from(*is_last), piece),
        Report::Output { stream, bytes } => (OUTPUT, u8::from(*stream == CallerStream::Err), bytes),
        Report::Unreported { stream, bytes } => {
            count = bytes.to_le_bytes();
            (UNREPORTED, u8::from(*stream == CallerStream::Err), &count)
        }
        Report::End(Exit::Code(code)) => (END, 0, std::slice::from_ref(code)),
        Report::End(Exit::Signal(signal)) => {
            count = u64::from(signal.number()).to_le_bytes();
            (END, 1, &count[..1])
        }
    };
    assert!(payload.len() <= PAYLOAD_BYTES_MAX, "callers cut what they report");
    let length = u16::try_from(RECORD_HEADER_BYTES + payload.len()).expect("at most RECORD_BYTES_MAX");
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&[kind, detail]);
    out.extend_from_slice(key);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(payload);
    let sum = checksum(&out[start + CHECKED_FROM..]);
    out[start + RECORD_MAGIC.len()..start + CHECKED_FROM].copy_from_slice(&sum.to_le_bytes());
}

/// Decodes the beginning of some bytes.
#[must_use]
pub fn decode_report(bytes: &[u8]) -> FoundRecord<'_> {
    let seen = bytes.len().min(RECORD_MAGIC.len());
    if bytes[..seen] != RECORD_MAGIC[..seen] {
        let next = bytes.iter().skip(1).position(|&byte| byte == RECORD_MAGIC[0]);
        return FoundRecord::Garbage(next.map_or(bytes.len(), |at| at + 1));
    }
    let Some(header) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else { return FoundRecord::Incomplete };
    let length = usize::from(u16::from_le_bytes([header[12], header[13]]));
    if !(RECORD_HEADER_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return FoundRecord::Garbage(1);
    }
    let Some(whole) = bytes.get(..length) else { return FoundRecord::Incomplete };
    let sum = u64::from_le_bytes(*header[4..].first_chunk().expect("the header holds it"));
    let report = understand(header[14], header[15], &whole[RECORD_HEADER_BYTES..]);
    match report.filter(|_| checksum(&whole[CHECKED_FROM..]) == sum) {
        None => FoundRecord::Garbage(1),
        Some(report) => {
            let key = *header[16..].first_chunk().expect("the header holds it");
            let number = u32::from_le_bytes(*header[32..].first_chunk().expect("the header holds it"));
            FoundRecord::Record(ReportRecord { key, number, report }, length)
        }
    }
}

fn understand(kind: u8, detail: u8, payload: &[u8]) -> Option<Report<'_>> {
    match (kind, detail, payload) {
        (BEGIN, 0 | 1, piece) => Some(Report::Begin { piece, is_last: detail == 1 }),
        (OUTPUT, _, bytes) => Some(Report::Output { stream: stream_of(detail)?, bytes }),
        (UNREPORTED, _, bytes) => {
            let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
            Some(Report::Unreported { stream: stream_of(detail)?, bytes })
        }
        (END, 0, &[code]) => Some(Report::End(Exit::Code(code))),
        (END, 1, &[number @ 1..=64]) => Some(Report::End(Exit::Signal(Signal::new(number)))),
        _ => None,
    }
}

fn stream_of(detail: u8) -> Option<CallerStream> {
    match detail {
        0 => Some(CallerStream::Out),
        1 => Some(CallerStream::Err),
        _ => None,
    }
}

/// FNV-1a over words of eight bytes. It tells torn records from whole ones and proves nothing else.
fn checksum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0100_0000_01b3;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(PRIME).rotate_left(23);
    let mut chunks = bytes.chunks_exact(8);
    let length = u64::try_from(bytes.len()).expect("a length has 64 bits");
    let mut sum = mix(0xcbf2_9ce4_8422_2325, length);
    for chunk in &mut chunks {
        sum = mix(sum, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    chunks.remainder().iter().fold(sum, |sum, &byte| mix(sum, u64::from(byte)))
}

/// The shim's process, and its view of its sandbox. Each field is 0 or false if it is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShimPlace {
    /// The inode of its pid namespace.
    pub namespace: u64,
    /// Its number there.
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub began: u64,
    /// It may not use sockets.
    pub lacks_sockets: bool,
    /// The file system of its directory is read-only.
    pub is_read_only: bool,
    /// It has `no_new_privs`.
    pub no_new_privs: bool,
    /// It has a seccomp filter.
    pub has_filter: bool,
    /// A variable says that it is inside a run, but no guard is in sight.
    pub may_be_inside: bool,
    /// The reported run around it, by a variable.
    pub within: RunMark,
    /// The mark of this run. An earlier release's shim sends none: its mark is the key.
    pub mark: RunMark,
}

/// The beginning of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beginning<'a> {
    /// The shim's process.
    pub place: ShimPlace,
    pub dir: &'a [u8],
    /// A RUN frame with the arguments, in which the values of variables are masked, and the environment's names. It has
    /// no attributes.
    pub frame: &'a [u8],
}

impl<'a> Beginning<'a> {
    pub fn encode(&self, out: &mut Vec<u8>) {
        let ShimPlace { namespace, pid, began, lacks_sockets, is_read_only, no_new_privs, has_filter, .. } = self.place;
        let has_mark = self.place.mark != RunMark::default();
        let flags = [lacks_sockets, is_read_only, no_new_privs, has_filter, self.place.may_be_inside, has_mark];
        let bits = flags.iter().rev().fold(0_u32, |bits, &flag| bits << 1 | u32::from(flag));
        out.extend_from_slice(&namespace.to_le_bytes());
        out.extend_from_slice(&began.to_le_bytes());
        out.extend_from_slice(&pid.to_le_bytes());
        out.extend_from_slice(&bits.to_le_bytes());
        let length = u32::try_from(self.dir.len()).expect("a path is short");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&self.place.within);
        out.extend_from_slice(self.dir);
        out.extend_from_slice(self.frame);
        // After the frame, where a host of an earlier release does not look.
        out.extend_from_slice(if has_mark { &self.place.mark } else { &[] });
    }

    /// The shim in the first piece of a beginning: its pid namespace, its number and its start.
    #[must_use]
    pub fn named_in(first: &[u8]) -> Option<(u64, i32, u64)> {
        let (namespace, rest) = first.split_first_chunk()?;
        let (began, rest) = rest.split_first_chunk()?;
        let pid = rest.first_chunk()?;
        Some((u64::from_le_bytes(*namespace), i32::from_le_bytes(*pid), u64::from_le_bytes(*began)))
    }

    /// Reads the bytes of [`Beginning::encode`].
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, rest) = bytes.split_first_chunk::<PLACE_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(*fixed[at..].first_chunk().expect("within the fixed part"));
        let half = |at: usize| *fixed[at..].first_chunk::<4>().expect("within the fixed part");
        let bits = u32::from_le_bytes(half(20));
        let has = |place: u32| bits >> place & 1 != 0;
        let length = usize::try_from(u32::from_le_bytes(half(24))).ok()?;
        let (dir, rest) = rest.split_at_checked(length)?;
        let (frame, mark) = if has(5) { rest.split_last_chunk()? } else { (rest, &RunMark::default()) };
        let place = ShimPlace {
            namespace: word(0),
            began: word(8),
            pid: i32::from_le_bytes(half(16)),
            lacks_sockets: has(0),
            is_read_only: has(1),
            no_new_privs: has(2),
            has_filter: has(3),
            may_be_inside: has(4),
            within: *fixed[28..].first_chunk().expect("within the fixed part"),
            mark: *mark,
        };
        Some(Self { place, dir, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RunKey = [7; 16];

    fn encoded(number: u32, report: &Report<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        encode_report(&KEY, number, report, &mut out);
        out
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        let long = [b'x'; PAYLOAD_BYTES_MAX];
        let reports = [
            Report::Begin { piece: b"abc", is_last: true },
            Report::Begin { piece: b"", is_last: false },
            Report::Output { stream: CallerStream::Out, bytes: &long },
            Report::Output { stream: CallerStream::Err, bytes: b"e\x1fRXR" },
            Report::Unreported { stream: CallerStream::Out, bytes: 1 << 40 },
            Report::Unreported { stream: CallerStream::Err, bytes: 1 },
            Report::End(Exit::Code(255)),
            Report::End(Exit::Signal(Signal::TERM)),
        ];
        for (number, report) in (0..).zip(reports) {
            let bytes = encoded(number, &report);
            assert!(bytes.len() <= RECORD_BYTES_MAX);
            let record = ReportRecord { key: KEY, number, report };
            assert_eq!(decode_report(&bytes), FoundRecord::Record(record, bytes.len()));
            for end in 0..bytes.len() {
                assert_eq!(decode_report(&bytes[..end]), FoundRecord::Incomplete);
            }
        }
    }

    /// Skips garbage; returns the records, and what stays incomplete.
    fn all(mut bytes: &[u8]) -> (Vec<ReportRecord<'_>>, usize) {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            match decode_report(bytes) {
                FoundRecord::Record(record, length) => {
                    found.push(record);
                    bytes = &bytes[length..];
                }
                FoundRecord::Garbage(length) => bytes = &bytes[length..],
                FoundRecord::Incomplete => break,
            }
        }
        (found, bytes.len())
    }

    /// A forged header must not swallow the record behind it.
    #[test]
    fn a_record_behind_garbage_is_found() {
        let honest = encoded(3, &Report::Output { stream: CallerStream::Out, bytes: b"honest" });
        let header = &encoded(0, &Report::Output { stream: CallerStream::Out, bytes: &[0; 60] })[..36];
        for garbage in [&b"junk\x1f"[..], b"\x1fRXR", header, &[0; 5000], &honest[..honest.len() - 1]] {
            let padding = [0; 100];
            let bytes = [garbage, &honest, &padding].concat();
            let (found, _) = all(&bytes);
            assert_eq!(found.iter().filter(|record| record.number == 3).count(), 1, "{garbage:?}");
        }
        for at in 0..honest.len() {
            let mut bent = honest.clone();
            bent[at] ^= 0x10;
            assert!(all(&bent).0.is_empty(), "byte {at}");
        }
    }

    #[test]
    fn a_beginning_is_read_as_it_is_written() {
        let place = ShimPlace {
            namespace: 4_026_531_836,
            pid: 2,
            began: 9,
            is_read_only: true,
            may_be_inside: true,
            within: KEY,
            ..ShimPlace::default()
        };
        for mark in [RunMark::default(), [9; 16]] {
            let place = ShimPlace { mark, ..place };
            let beginning = Beginning { place, dir: b"/a b", frame: b"frame" };
            let mut bytes = Vec::new();
            beginning.encode(&mut bytes);
            assert_eq!(Beginning::decode(&bytes), Some(beginning));
            (0..PLACE_BYTES + 4).for_each(|end| assert_eq!(Beginning::decode(&bytes[..end]), None));
        }
    }
}
