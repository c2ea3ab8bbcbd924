//! The lines of a recording: a command's output with its times.
//!
//! ```text
//! [44,0.000,"r","160x48"]      number, seconds since the command's start, kind, text
//! [44,0.012,"o","hello\r\n"]
//! ```
//!
//! Behind the command's number, a line is an event of asciicast v2: `o` is output as a terminal gets it, `r` the
//! terminal's size from then on, `m` a remark. `i` says how much a person typed; in a cast, whose `i` would be the keys, it
//! is a marker. The lines of commands that ran at once stand between each other. The end
//! record of a command names the file and the part of it that has the command's lines.
//!
//! Invariants: the first event of a command is its size; times do not decrease; the text of an event is whole: neither a
//! character nor an escape sequence is cut at its end, unless the output ends there.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::record::InputRecord;
use crate::text::count::counted;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// The command wrote this.
    #[serde(rename = "o")]
    Output,
    /// The terminal has this size: `COLSxROWS`.
    #[serde(rename = "r")]
    Size,
    /// A person typed this much: [`input_text`], never the keys.
    #[serde(rename = "i")]
    Input,
    /// A remark on the recording.
    #[serde(rename = "m")]
    Remark,
}

/// One event of a command's recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// The time since the command's start.
    pub at: Duration,
    pub kind: EventKind,
    pub text: String,
}

/// How each byte stands in a text in JSON; the last of the eight bytes says how many of them that takes.
static ESCAPES: [[u8; ESCAPE_BYTES]; 256] = {
    let digits = b"0123456789abcdef";
    let mut escapes = [[0; ESCAPE_BYTES]; 256];
    let mut byte = 0u8;
    loop {
        let letter = match byte {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            b'"' | b'\\' => byte,
            _ => 0,
        };
        escapes[byte as usize] = match (letter, byte) {
            (0, b' '..) => [byte, 0, 0, 0, 0, 0, 0, 1],
            (0, _) => [b'\\', b'u', b'0', b'0', digits[byte as usize >> 4], digits[byte as usize & 15], 0, 6],
            _ => [b'\\', letter, 0, 0, 0, 0, 0, 2],
        };
        if byte == u8::MAX {
            break escapes;
        }
        byte += 1;
    }
};
/// Bytes that are written for each byte, so that no length decides how many. The next byte's overwrite what is too much.
const ESCAPE_BYTES: usize = 8;
/// Bytes that are copied at once if none of them is escaped.
const STEP_BYTES: usize = 16;
/// Steps whose text is put together before it is appended.
const STEPS: usize = 16;

/// Appends the line of an event.
pub fn push_event(seq: u64, at: Duration, kind: EventKind, text: &str, out: &mut Vec<u8>) {
    let seconds = format!("{}.{:03}", at.as_secs(), at.subsec_millis());
    out.extend_from_slice(format!("[{seq},{seconds},\"{}\",", kind.word()).as_bytes());
    put_text(text, out);
    out.extend_from_slice(b"]\n");
}

/// Appends a text as JSON, as serde_json does, which is slower where much has to be escaped, as in short lines.
fn put_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut escaped = [0; ESCAPE_BYTES * STEP_BYTES * STEPS];
    for piece in text.as_bytes().chunks(STEP_BYTES * STEPS) {
        let mut len = 0;
        let (steps, rest) = piece.as_chunks::<STEP_BYTES>();
        for step in steps {
            if step.iter().fold(true, |is_plain, &byte| is_plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\')) {
                escaped[len..][..STEP_BYTES].copy_from_slice(step);
                len += STEP_BYTES;
            } else {
                len = escape(step, &mut escaped, len);
            }
        }
        len = escape(rest, &mut escaped, len);
        out.extend_from_slice(&escaped[..len]);
    }
    out.push(b'"');
}

/// Writes the bytes to `escaped` from `len` on. Returns the new length.
#[inline]
fn escape(bytes: &[u8], escaped: &mut [u8], mut len: usize) -> usize {
    for &byte in bytes {
        let escape = ESCAPES[usize::from(byte)];
        escaped[len..][..ESCAPE_BYTES].copy_from_slice(&escape);
        len += usize::from(escape[ESCAPE_BYTES - 1]);
    }
    len
}

/// The beginning of this command's lines.
#[must_use]
pub fn line_start(seq: u64) -> Vec<u8> {
    format!("[{seq},").into_bytes()
}

/// Reads a line without its newline. `None` if it is torn, or an event of a kind that this build does not know.
#[must_use]
pub fn parse_event(line: &[u8]) -> Option<RecordedEvent> {
    let (_, seconds, kind, text) = serde_json::from_slice::<(u64, f64, EventKind, String)>(line).ok()?;
    Some(RecordedEvent { at: Duration::try_from_secs_f64(seconds).ok()?, kind, text })
}

/// An answer as an event of kind [`EventKind::Input`] has it.
#[must_use]
pub fn input_text(input: &InputRecord) -> String {
    let shown = if input.hidden { ", not shown" } else { "" };
    format!("{} typed{shown}", counted(input.bytes, "byte", "bytes"))
}

/// A terminal's size as an event of kind [`EventKind::Size`] has it.
#[must_use]
pub fn size_text((rows, cols): (u16, u16)) -> String {
    format!("{cols}x{rows}")
}

/// Reads the text of [`size_text`]. Returns rows and columns.
#[must_use]
pub fn parse_size(text: &str) -> Option<(u16, u16)> {
    let (cols, rows) = text.split_once('x')?;
    Some((rows.parse().ok()?, cols.parse().ok()?))
}

/// The first line of a file in the form of asciicast v2.
#[derive(Debug, Clone, Serialize)]
pub struct CastHeader {
    /// 2.
    pub version: u8,
    pub width: u16,
    pub height: u16,
    /// When the command began, seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// The command's duration, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    pub command: String,
    pub title: String,
}

/// Makes a file in the form of asciicast v2.
#[must_use]
pub fn cast(header: &CastHeader, events: impl IntoIterator<Item = RecordedEvent>) -> Vec<u8> {
    let mut out = serde_json::to_vec(header).expect("memory does not fail to write");
    out.push(b'\n');
    for RecordedEvent { at, kind, text } in events {
        let kind = if kind == EventKind::Input { EventKind::Remark } else { kind };
        let line = serde_json::to_vec(&(at.as_secs_f64(), kind, text)).expect("memory does not fail to write");
        out.extend_from_slice(&line);
        out.push(b'\n');
    }
    out
}

impl EventKind {
    /// The kind's letter in asciicast v2.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Output => "o",
            Self::Size => "r",
            Self::Input => "i",
            Self::Remark => "m",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_escaped_as_the_library_does() {
        let all: String = (0..0x250).filter_map(char::from_u32).collect();
        let long = "a line that is copied at once\t\"\\".repeat(3);
        for text in [&all, &long, "", "y\r\ny\r\n", "\u{0}", "日本\u{1b}[1m\u{7f}"] {
            let (mut own, mut library) = (b"before".to_vec(), b"before".to_vec());
            put_text(text, &mut own);
            serde_json::to_writer(&mut library, text).unwrap();
            assert_eq!(String::from_utf8(own), String::from_utf8(library));
        }
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let mut out = Vec::new();
        let at = Duration::from_millis(61_005);
        push_event(7, at, EventKind::Output, "\x1b[1m\"é\"\r\n\u{1}", &mut out);
        push_event(7, at, EventKind::Size, &size_text((48, 160)), &mut out);
        assert!(out.starts_with(&line_start(7)));
        let lines: Vec<&[u8]> = out.split(|&byte| byte == b'\n').collect();
        assert_eq!(lines[1], br#"[7,61.005,"r","160x48"]"#);
        let text = "\x1b[1m\"é\"\r\n\u{1}".to_owned();
        assert_eq!(parse_event(lines[0]), Some(RecordedEvent { at, kind: EventKind::Output, text }));
        assert_eq!(parse_size(&parse_event(lines[1]).unwrap().text), Some((48, 160)));
        for line in [&lines[0][..20], b"", b"[]", b"[7,-1,\"o\",\"\"]", b"[7,1,\"z\",\"\"]", b"[7,1e99,\"o\",\"\"]"] {
            assert_eq!(parse_event(line), None);
        }
    }
}
