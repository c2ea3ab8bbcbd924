//! The frames: their kinds, what they carry, and how they are written and read.
//!
//! Invariant: a frame that is written is read as the same frame, and as no other.

use std::ffi::CStr;

use super::modes::TerminalModes;
use super::run::{self, RunRequest};
use super::{Decoded, FRAME_BYTES_MAX, HEADER_BYTES, LEFT_BYTES_MAX, RUN, RUN_BYTES_MAX, WHOAMI_BYTES_MAX, WireError};
use crate::protocol::process::{Exit, Signal};

pub(super) const SIGNAL: u8 = 0x02;
const ABORT: u8 = 0x03;
const CLOSED: u8 = 0x04;
const LEFT: u8 = 0x05;
const KEYS: u8 = 0x08;
const SIZE: u8 = 0x09;
const RESUME: u8 = 0x0a;
const HANGUP: u8 = 0x0b;
const INTERACTIVE: u8 = 0x0c;
const OUT: u8 = 0x11;
const ERR: u8 = 0x12;
const NOTE: u8 = 0x13;
const EXIT: u8 = 0x14;
const FAIL: u8 = 0x15;
const REFUSE: u8 = 0x16;
const ATTACH: u8 = 0x18;
const TAKEN: u8 = 0x19;
const STOPPED: u8 = 0x1a;
const RETURN: u8 = 0x1b;
const MODES: u8 = 0x1c;
const SKIPPABLE: u8 = 0x80;
const HEARD: u8 = 0x81;
const ACCEPTED: u8 = 0x82;
const OUTPUT_ENDED: u8 = 0x83;
const LET_GO: u8 = 0x84;

/// One of the caller's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerStream {
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Err,
}

/// A frame from the shim.
#[derive(Debug, PartialEq, Eq)]
pub enum FromShim<'a> {
    /// Run a command. Boxed, because it is far larger than the other frames and comes once.
    Run(Box<RunRequest<'a>>),
    /// Deliver this signal to the command's process group.
    Signal(Signal),
    /// End the command's whole tree: SIGTERM, then SIGKILL.
    Abort,
    /// The reader of this stream is gone.
    Closed(CallerStream),
    /// The shim runs this command itself, because the host cannot enter the working directory.
    Left { whoami: &'a [u8], command: &'a [u8] },
    /// The shim becomes an interactive shell, which the host does not see.
    Interactive { whoami: &'a [u8] },
    /// Keys from the caller's terminal, for the command's.
    Keys(&'a [u8]),
    /// The size of the caller's terminal: rows and columns.
    Size(u16, u16),
    /// The caller goes on after a stop, in the foreground of its terminal or in the background.
    Resume { foreground: bool },
    /// The caller's terminal has hung up.
    Hangup,
    /// After ACCEPTED: the shim holds nothing any more that the command alone should hold.
    LetGo,
}

/// A frame from the host.
#[derive(Debug, PartialEq, Eq)]
pub enum FromHost<'a> {
    /// Bytes for the caller's descriptor 1.
    Out(&'a [u8]),
    /// Bytes for the caller's descriptor 2.
    Err(&'a [u8]),
    /// A line of the host's own for the caller's descriptor 2.
    Note(&'a [u8]),
    /// The command ended. No frame follows.
    Exit(Exit),
    /// The command did not run, or its end is unknown. The shim writes the text and exits with the code.
    Fail { code: u8, text: &'a [u8] },
    /// The command has begun on a terminal that stands for the caller's. The shim relays the caller's terminal.
    Attach,
    /// The command's terminal has taken this many bytes of keys.
    Taken(u32),
    /// The command was stopped by this signal. Its caller stops too, as it would with the real shell.
    Stopped(Signal),
    /// The command has changed its terminal's modes. The caller's terminal gets them at the end.
    Modes(TerminalModes),
    /// The command does not ask for keys any more. The shim leaves the caller's terminal alone until it asks again.
    Return,
    /// The host may not run the command, because the caller is sandboxed. The shim runs the real shell, silently.
    Refuse,
    /// The host has received a SIGNAL frame and passes the signal on.
    Heard,
    /// The host will not refuse the command any more. The shim lets go of what the command alone should hold, and says so.
    Accepted,
    /// No process of the command can write to this stream any more, and all it wrote has been sent. If the caller's
    /// descriptors 1 and 2 are one pipe, stream 1 stands for both.
    OutputEnded(CallerStream),
}

fn put_frame(out: &mut Vec<u8>, kind: u8, parts: [&[u8]; 2]) {
    let bytes = parts[0].len() + parts[1].len();
    debug_assert!(bytes <= FRAME_BYTES_MAX);
    out.push(kind);
    out.extend_from_slice(&u32::try_from(bytes).expect("bounded by FRAME_BYTES_MAX").to_le_bytes());
    out.extend_from_slice(parts[0]);
    out.extend_from_slice(parts[1]);
}

/// Appends a SIGNAL frame.
pub fn encode_signal(signal: Signal, out: &mut Vec<u8>) {
    put_frame(out, SIGNAL, [&[signal.number()], &[]]);
}

/// Appends an ABORT frame.
pub fn encode_abort(out: &mut Vec<u8>) {
    put_frame(out, ABORT, [&[], &[]]);
}

/// Appends a LET_GO frame.
pub fn encode_let_go(out: &mut Vec<u8>) {
    put_frame(out, LET_GO, [&[], &[]]);
}

/// Appends a CLOSED frame.
pub fn encode_closed(stream: CallerStream, out: &mut Vec<u8>) {
    put_frame(out, CLOSED, [&[stream as u8 + 1], &[]]);
}

/// Appends a LEFT frame: the caller's name, and the words of the command as far as [`LEFT_BYTES_MAX`].
pub fn encode_left<'a>(whoami: &[u8], argv: impl Iterator<Item = &'a CStr>, out: &mut Vec<u8>) {
    let whoami = &whoami[..whoami.len().min(usize::from(u8::MAX))];
    let mut payload = vec![u8::try_from(whoami.len()).expect("it was cut")];
    payload.extend_from_slice(whoami);
    for (n, argument) in argv.enumerate() {
        payload.extend_from_slice(if n == 0 { b"" } else { b" " });
        payload.extend_from_slice(argument.to_bytes());
        payload.truncate(LEFT_BYTES_MAX);
    }
    put_frame(out, LEFT, [&payload, &[]]);
}

/// Appends an INTERACTIVE frame: the caller's name.
pub fn encode_interactive(whoami: &[u8], out: &mut Vec<u8>) {
    put_frame(out, INTERACTIVE, [&whoami[..whoami.len().min(WHOAMI_BYTES_MAX)], &[]]);
}

/// Appends a KEYS frame.
pub fn encode_keys(keys: &[u8], out: &mut Vec<u8>) {
    put_frame(out, KEYS, [keys, &[]]);
}

/// Appends a SIZE frame.
pub fn encode_size((rows, cols): (u16, u16), out: &mut Vec<u8>) {
    put_frame(out, SIZE, [&rows.to_le_bytes(), &cols.to_le_bytes()]);
}

/// Appends a RESUME frame.
pub fn encode_resume(foreground: bool, out: &mut Vec<u8>) {
    put_frame(out, RESUME, [&[u8::from(foreground)], &[]]);
}

/// Appends a RETURN frame.
pub fn encode_return(out: &mut Vec<u8>) {
    put_frame(out, RETURN, [&[], &[]]);
}

/// Appends a MODES frame.
pub fn encode_modes(modes: TerminalModes, out: &mut Vec<u8>) {
    put_frame(out, MODES, [&modes.encode(), &[]]);
}

/// Appends a HANGUP frame.
pub fn encode_hangup(out: &mut Vec<u8>) {
    put_frame(out, HANGUP, [&[], &[]]);
}

/// Appends an ATTACH frame.
pub fn encode_attach(out: &mut Vec<u8>) {
    put_frame(out, ATTACH, [&[], &[]]);
}

/// Appends a TAKEN frame.
pub fn encode_taken(bytes: u32, out: &mut Vec<u8>) {
    put_frame(out, TAKEN, [&bytes.to_le_bytes(), &[]]);
}

/// Appends a STOPPED frame.
pub fn encode_stopped(signal: Signal, out: &mut Vec<u8>) {
    put_frame(out, STOPPED, [&[signal.number()], &[]]);
}

/// Appends output as frames of at most [`FRAME_BYTES_MAX`].
pub fn encode_output(stream: CallerStream, bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(FRAME_BYTES_MAX) {
        put_frame(out, output_kind(stream), [chunk, &[]]);
    }
}

fn output_kind(stream: CallerStream) -> u8 {
    match stream {
        CallerStream::Out => OUT,
        CallerStream::Err => ERR,
    }
}

/// Appends what `append` appends to it as output, in frames of at most [`FRAME_BYTES_MAX`]. Returns how many bytes of
/// output that is; without any there is no frame.
pub fn append_output(stream: CallerStream, out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    put_frame(out, output_kind(stream), [&[], &[]]);
    append(out);
    let bytes = out.len() - start - HEADER_BYTES;
    if bytes == 0 {
        out.truncate(start);
        return 0;
    }
    let first = bytes.min(FRAME_BYTES_MAX);
    let rest = out.split_off(start + HEADER_BYTES + first);
    let length = u32::try_from(first).expect("bounded by FRAME_BYTES_MAX").to_le_bytes();
    out[start + 1..start + HEADER_BYTES].copy_from_slice(&length);
    encode_output(stream, &rest, out);
    bytes
}

/// Appends a NOTE frame.
pub fn encode_note(text: &[u8], out: &mut Vec<u8>) {
    put_frame(out, NOTE, [&text[..text.len().min(FRAME_BYTES_MAX)], &[]]);
}

/// Appends an EXIT frame.
pub fn encode_exit(exit: Exit, out: &mut Vec<u8>) {
    let (how, value) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(signal) => (1, signal.number()),
    };
    put_frame(out, EXIT, [&[how, value], &[]]);
}

/// Appends a FAIL frame.
pub fn encode_fail(code: u8, text: &[u8], out: &mut Vec<u8>) {
    put_frame(out, FAIL, [&[code], &text[..text.len().min(FRAME_BYTES_MAX - 1)]]);
}

/// Appends a HEARD frame.
pub fn encode_heard(out: &mut Vec<u8>) {
    put_frame(out, HEARD, [&[], &[]]);
}

/// Appends an ACCEPTED frame.
pub fn encode_accepted(out: &mut Vec<u8>) {
    put_frame(out, ACCEPTED, [&[], &[]]);
}

/// Appends an OUTPUT_ENDED frame.
pub fn encode_output_ended(stream: CallerStream, out: &mut Vec<u8>) {
    put_frame(out, OUTPUT_ENDED, [&[stream as u8 + 1], &[]]);
}

/// Appends a REFUSE frame.
pub fn encode_refuse(out: &mut Vec<u8>) {
    put_frame(out, REFUSE, [&[], &[]]);
}

/// Whether a buffer starts with a RUN frame. Only then may it grow beyond [`FRAME_BYTES_MAX`].
#[must_use]
pub fn starts_with_run(bytes: &[u8]) -> bool {
    bytes.first() == Some(&RUN)
}

/// Reads one frame from the start of a buffer. `parse` returns `None` for a kind that it does not know.
fn decode<'a, T>(
    bytes: &'a [u8],
    parse: impl FnOnce(u8, &'a [u8]) -> Result<Option<T>, WireError>,
) -> Result<Decoded<T>, WireError> {
    let Some(&[kind, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(Decoded::Incomplete) };
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("usize has 32 bits or more");
    let most = if kind == RUN { RUN_BYTES_MAX } else { FRAME_BYTES_MAX };
    if length > most {
        return Err(WireError::TooLong { kind, bytes: length });
    }
    let taken = HEADER_BYTES + length;
    let Some(payload) = bytes.get(HEADER_BYTES..taken) else { return Ok(Decoded::Incomplete) };
    match parse(kind, payload)? {
        Some(frame) => Ok(Decoded::Item(frame, taken)),
        None if kind >= SKIPPABLE => Ok(Decoded::Skip(taken)),
        None => Err(WireError::UnknownKind(kind)),
    }
}

const WRONG_SIZE: WireError = WireError::Malformed("a control frame of the wrong size");

impl<'a> FromShim<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]. The buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        decode(bytes, Self::parse)
    }

    fn parse(kind: u8, payload: &'a [u8]) -> Result<Option<Self>, WireError> {
        Ok(Some(match (kind, payload) {
            (RUN, _) => Self::Run(Box::new(run::decode(payload)?)),
            (SIGNAL, &[signal @ 1..=64]) => Self::Signal(Signal::new(signal)),
            (ABORT, &[]) => Self::Abort,
            (CLOSED, &[1]) => Self::Closed(CallerStream::Out),
            (CLOSED, &[2]) => Self::Closed(CallerStream::Err),
            (LEFT, &[length, ref rest @ ..])
                if usize::from(length) <= rest.len() && payload.len() <= LEFT_BYTES_MAX =>
            {
                let (whoami, command) = rest.split_at(usize::from(length));
                Self::Left { whoami, command }
            }
            (INTERACTIVE, whoami) if whoami.len() <= WHOAMI_BYTES_MAX => Self::Interactive { whoami },
            (KEYS, keys) => Self::Keys(keys),
            (SIZE, &[a, b, c, d]) => Self::Size(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])),
            (RESUME, &[foreground @ 0..=1]) => Self::Resume { foreground: foreground == 1 },
            (HANGUP, &[]) => Self::Hangup,
            (LET_GO, &[]) => Self::LetGo,
            (SIGNAL | ABORT | CLOSED | LEFT | INTERACTIVE | SIZE | RESUME | HANGUP, _) => return Err(WRONG_SIZE),
            _ => return Ok(None),
        }))
    }
}

impl<'a> FromHost<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]. The buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        decode(bytes, Self::parse)
    }

    fn parse(kind: u8, payload: &'a [u8]) -> Result<Option<Self>, WireError> {
        Ok(Some(match (kind, payload) {
            (OUT, bytes) => Self::Out(bytes),
            (ERR, bytes) => Self::Err(bytes),
            (NOTE, text) => Self::Note(text),
            (EXIT, &[0, code]) => Self::Exit(Exit::Code(code)),
            (EXIT, &[1, signal]) => Self::Exit(Exit::Signal(Signal::new(signal))),
            (FAIL, [code, text @ ..]) => Self::Fail { code: *code, text },
            (REFUSE, &[]) => Self::Refuse,
            (HEARD, &[]) => Self::Heard,
            (ACCEPTED, &[]) => Self::Accepted,
            (OUTPUT_ENDED, &[1]) => Self::OutputEnded(CallerStream::Out),
            (OUTPUT_ENDED, &[2]) => Self::OutputEnded(CallerStream::Err),
            (ATTACH, &[]) => Self::Attach,
            (TAKEN, &[a, b, c, d]) => Self::Taken(u32::from_le_bytes([a, b, c, d])),
            (STOPPED, &[signal @ 1..=64]) => Self::Stopped(Signal::new(signal)),
            (MODES, bytes) => Self::Modes(TerminalModes::decode(bytes)?),
            (RETURN, &[]) => Self::Return,
            (EXIT | FAIL | REFUSE | ATTACH | TAKEN | STOPPED | RETURN, _) => return Err(WRONG_SIZE),
            _ => return Ok(None),
        }))
    }
}
