//! The wire format between rexec-sh and rexec-host: pure functions over bytes, no descriptors.
//!
//! A connection opens with one [`Hello`] in each direction (8 bytes, never framed, so that any two versions can tell
//! each other apart), followed by frames: one byte of kind, four bytes of payload length (little-endian, as every
//! number here), the payload. Command, directory and environment are bytes and never assumed to be UTF-8.
//!
//! ```text
//! shim ▶ host   HELLO (RUN(+descriptors)  SIGNAL*  CLOSED*  (KEYS | SIZE | RESUME | HANGUP)*  ABORT? | LEFT | INTERACTIVE)
//! host ▶ shim   HELLO ATTACH? (OUT | ERR | NOTE | HEARD | TAKEN | STOPPED | MODES | RETURN)* (EXIT | FAIL | REFUSE)
//! ```
//!
//! Invariants: nothing here allocates by a length field (the caller's buffer grows with the bytes that arrived);
//! every truncation of a valid stream is [`Decoded::Incomplete`] and never an error; kinds from 0x80 up may be skipped
//! by a reader that does not know them, any other unknown kind is an error.

mod extra;
mod run;

use std::ffi::CStr;
use std::fmt;

pub use extra::{COREDUMP_FILTER, Extras, TIMER_SLACK_NS, add_cgroups};
pub use run::{AtStart, Attributes, Run, Stdio, Strings, encode_run};

/// The first four bytes of every binary connection; the first byte tells it from JSONL, which opens with `{`.
pub const MAGIC: [u8; 4] = *b"RXEC";
/// The version this build speaks.
pub const VERSION: u16 = 3;
/// The oldest version this build still understands.
pub const VERSION_MIN: u16 = 3;
/// Size of a [`Hello`], bytes.
pub const HELLO_BYTES: usize = 8;
/// Size of a frame's kind and length, bytes.
pub const HEADER_BYTES: usize = 5;
/// The largest RUN payload, bytes. execve(2) takes 6 MiB of strings at most, with an unlimited stack.
pub const RUN_BYTES_MAX: usize = 8 << 20;
/// The largest payload of every other kind, bytes.
pub const FRAME_BYTES_MAX: usize = 128 << 10;
/// The most descriptors from 3 up that one RUN may carry.
pub const INHERITED_MAX: usize = 16;
/// The most resource limits that one RUN may carry (Linux has 16).
pub const LIMITS_MAX: usize = 32;
/// The largest CPU affinity mask, bytes (8,192 CPUs).
pub const AFFINITY_BYTES_MAX: usize = 1024;
/// The longest payload of a LEFT frame, bytes: longer commands are cut.
pub const LEFT_BYTES_MAX: usize = 4 << 10;
/// Keys that may be on their way to a command at once, bytes: the host answers with how many the command's terminal has
/// taken.
pub const KEYS_BYTES_MAX: usize = 32 << 10;
/// The longest name a caller may give itself, bytes.
pub const WHOAMI_BYTES_MAX: usize = 256;

const RUN: u8 = 0x01;
const SIGNAL: u8 = 0x02;
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

/// Why a peer's bytes cannot be understood. The connection ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// The first bytes are not [`MAGIC`].
    NotRexec,
    /// The peer speaks these versions, newest and oldest, and we speak none of them.
    Version { newest: u16, oldest: u16 },
    /// A frame of a kind we do not know and may not skip.
    UnknownKind(u8),
    /// A payload longer than its kind allows.
    TooLong { kind: u8, bytes: usize },
    /// A payload that is not what its kind says.
    Malformed(&'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRexec => write!(f, "the peer does not speak the rexec protocol"),
            Self::Version { newest, oldest } if newest == oldest => {
                write!(f, "the peer speaks protocol {newest}, this side {VERSION}")
            }
            Self::Version { newest, oldest } => {
                write!(f, "the peer speaks protocols {oldest} to {newest}, this side {VERSION}")
            }
            Self::UnknownKind(kind) => write!(f, "unknown frame kind {kind:#04x}"),
            Self::TooLong { kind, bytes } => {
                write!(f, "a frame of kind {kind:#04x} announces {bytes} bytes, more than its kind allows")
            }
            Self::Malformed(what) => write!(f, "malformed frame: {what}"),
        }
    }
}

impl std::error::Error for WireError {}

/// What a decoder found at the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// More bytes are needed.
    Incomplete,
    /// A whole item, which took this many bytes of the buffer.
    Item(T, usize),
    /// A frame that may be skipped, which took this many bytes of the buffer.
    Skip(usize),
}

/// The opening of a connection: which versions a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The newest version spoken, and the one in use if the other side knows it.
    pub newest: u16,
    /// The oldest version understood.
    pub oldest: u16,
}

impl Hello {
    /// What this build says.
    pub const OURS: Self = Self { newest: VERSION, oldest: VERSION_MIN };

    /// The eight bytes of it.
    #[must_use]
    pub fn encode(self) -> [u8; HELLO_BYTES] {
        let [a, b, c, d] = MAGIC;
        let ([e, f], [g, h]) = (self.newest.to_le_bytes(), self.oldest.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// Reads a hello and checks that the two sides share a version.
    ///
    /// # Errors
    /// [`WireError::NotRexec`] from the first byte that differs, [`WireError::Version`] when no version is shared.
    pub fn decode(bytes: &[u8]) -> Result<Decoded<Self>, WireError> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(WireError::NotRexec);
        }
        let Some(hello) = bytes.first_chunk::<HELLO_BYTES>() else { return Ok(Decoded::Incomplete) };
        let newest = u16::from_le_bytes([hello[4], hello[5]]);
        let oldest = u16::from_le_bytes([hello[6], hello[7]]);
        if oldest > VERSION || newest < VERSION_MIN || oldest > newest {
            return Err(WireError::Version { newest, oldest });
        }
        Ok(Decoded::Item(Self { newest, oldest }, HELLO_BYTES))
    }
}

/// One of the two streams of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Err,
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// It died by this signal.
    Signal(u8),
}

impl Exit {
    /// The code the caller sees: the shell's own, or 128 + the signal, as shells report it.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// The modes of a terminal (termios(3)) that a command can leave behind. Speed and character size are the line's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalModes {
    /// `c_iflag`.
    pub input: u32,
    /// `c_oflag`.
    pub output: u32,
    /// `c_lflag`.
    pub local: u32,
    /// `c_cc`, as many as the kernel has.
    pub characters: [u8; MODE_CHARACTERS],
}

/// How many special characters a terminal has.
pub const MODE_CHARACTERS: usize = 19;

impl TerminalModes {
    const BYTES: usize = 12 + MODE_CHARACTERS;

    fn encode(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        for (place, flags) in bytes.chunks_exact_mut(4).zip([self.input, self.output, self.local]) {
            place.copy_from_slice(&flags.to_le_bytes());
        }
        bytes[12..].copy_from_slice(&self.characters);
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().map_err(|_| WireError::Malformed("modes of a wrong size"))?;
        let flags = |at| u32::from_le_bytes(*bytes[at..].first_chunk().expect("12 bytes are flags"));
        let characters = *bytes[12..].first_chunk().expect("the rest are characters");
        Ok(Self { input: flags(0), output: flags(4), local: flags(8), characters })
    }
}

/// A frame from the shim.
#[derive(Debug, PartialEq, Eq)]
pub enum FromShim<'a> {
    /// Run a command. Boxed, because it is far larger than the others and comes once.
    Run(Box<Run<'a>>),
    /// Deliver this signal to the command's process group.
    Signal(u8),
    /// End the command: terminate, then kill, its whole tree.
    Abort,
    /// Nobody reads this stream any more.
    Closed(Stream),
    /// A command runs without the host, because its directory can only be entered by who is in it already.
    Left { whoami: &'a [u8], command: &'a [u8] },
    /// An interactive shell begins without the host, as interactive shells do.
    Interactive { whoami: &'a [u8] },
    /// Typed at the caller's terminal, for the command's.
    Keys(&'a [u8]),
    /// The caller's terminal has this size: rows and columns.
    Size(u16, u16),
    /// The caller goes on after a stop: in the foreground of its terminal, or not.
    Resume { foreground: bool },
    /// The caller's terminal has hung up.
    Hangup,
}

/// A frame from the host.
#[derive(Debug, PartialEq, Eq)]
pub enum FromHost<'a> {
    /// Bytes for the caller's descriptor 1.
    Out(&'a [u8]),
    /// Bytes for the caller's descriptor 2.
    Err(&'a [u8]),
    /// One line of the host's own for the caller's descriptor 2.
    Note(&'a [u8]),
    /// The command ended; nothing follows.
    Exit(Exit),
    /// The command did not run, or its end is unknown: leave with this code after these words.
    Fail { code: u8, text: &'a [u8] },
    /// The command has begun on a terminal that stands for the caller's: relay that one.
    Attach,
    /// The command's terminal has taken so many bytes of keys.
    Taken(u32),
    /// The command was stopped by this signal, as the caller would have been in its place.
    Stopped(u8),
    /// The command has changed its terminal's modes: at the end the caller's terminal gets these.
    Modes(TerminalModes),
    /// The command does not ask for keys any more: leave the caller's terminal alone until it asks again.
    Return,
    /// The host may not run it (the caller is sandboxed): run the real shell, silently.
    Refuse,
    /// The host has a SIGNAL and sees to it.
    Heard,
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
pub fn encode_signal(signal: u8, out: &mut Vec<u8>) {
    put_frame(out, SIGNAL, [&[signal], &[]]);
}

/// Appends an ABORT frame.
pub fn encode_abort(out: &mut Vec<u8>) {
    put_frame(out, ABORT, [&[], &[]]);
}

/// Appends a CLOSED frame.
pub fn encode_closed(stream: Stream, out: &mut Vec<u8>) {
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
pub fn encode_stopped(signal: u8, out: &mut Vec<u8>) {
    put_frame(out, STOPPED, [&[signal], &[]]);
}

/// Appends output as frames of at most [`FRAME_BYTES_MAX`].
pub fn encode_output(stream: Stream, bytes: &[u8], out: &mut Vec<u8>) {
    let kind = match stream {
        Stream::Out => OUT,
        Stream::Err => ERR,
    };
    for chunk in bytes.chunks(FRAME_BYTES_MAX) {
        put_frame(out, kind, [chunk, &[]]);
    }
}

/// Appends a NOTE frame.
pub fn encode_note(text: &[u8], out: &mut Vec<u8>) {
    put_frame(out, NOTE, [&text[..text.len().min(FRAME_BYTES_MAX)], &[]]);
}

/// Appends an EXIT frame.
pub fn encode_exit(exit: Exit, out: &mut Vec<u8>) {
    let (how, value) = match exit {
        Exit::Code(code) => (0, code),
        Exit::Signal(signal) => (1, signal),
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

/// Appends a REFUSE frame.
pub fn encode_refuse(out: &mut Vec<u8>) {
    put_frame(out, REFUSE, [&[], &[]]);
}

/// Splits one frame off the start of a buffer.
fn split(bytes: &[u8]) -> Result<Decoded<(u8, &[u8])>, WireError> {
    let Some(&[kind, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(Decoded::Incomplete) };
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("usize has 32 bits or more");
    let most = if kind == RUN { RUN_BYTES_MAX } else { FRAME_BYTES_MAX };
    if length > most {
        return Err(WireError::TooLong { kind, bytes: length });
    }
    match bytes.get(HEADER_BYTES..HEADER_BYTES + length) {
        None => Ok(Decoded::Incomplete),
        Some(payload) => Ok(Decoded::Item((kind, payload), HEADER_BYTES + length)),
    }
}

/// Whether the buffer starts with a RUN frame: only then may it grow beyond a usual frame.
#[must_use]
pub fn starts_with_run(bytes: &[u8]) -> bool {
    bytes.first() == Some(&RUN)
}

impl<'a> FromShim<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]; the buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        let (kind, payload, taken) = match split(bytes)? {
            Decoded::Incomplete => return Ok(Decoded::Incomplete),
            Decoded::Skip(taken) => return Ok(Decoded::Skip(taken)),
            Decoded::Item((kind, payload), taken) => (kind, payload, taken),
        };
        let frame = match (kind, payload) {
            (RUN, _) => Self::Run(Box::new(run::decode(payload)?)),
            (SIGNAL, &[signal @ 1..=64]) => Self::Signal(signal),
            (ABORT, &[]) => Self::Abort,
            (CLOSED, &[1]) => Self::Closed(Stream::Out),
            (CLOSED, &[2]) => Self::Closed(Stream::Err),
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
            (SIGNAL | ABORT | CLOSED | LEFT | INTERACTIVE | SIZE | RESUME | HANGUP, _) => {
                return Err(WireError::Malformed("a control frame of the wrong size"));
            }
            (SKIPPABLE.., _) => return Ok(Decoded::Skip(taken)),
            _ => return Err(WireError::UnknownKind(kind)),
        };
        Ok(Decoded::Item(frame, taken))
    }
}

impl<'a> FromHost<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]; the buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        let (kind, payload, taken) = match split(bytes)? {
            Decoded::Incomplete => return Ok(Decoded::Incomplete),
            Decoded::Skip(taken) => return Ok(Decoded::Skip(taken)),
            Decoded::Item((kind, payload), taken) => (kind, payload, taken),
        };
        let frame = match (kind, payload) {
            (OUT, bytes) => Self::Out(bytes),
            (ERR, bytes) => Self::Err(bytes),
            (NOTE, text) => Self::Note(text),
            (EXIT, &[0, code]) => Self::Exit(Exit::Code(code)),
            (EXIT, &[1, signal]) => Self::Exit(Exit::Signal(signal)),
            (FAIL, [code, text @ ..]) => Self::Fail { code: *code, text },
            (REFUSE, &[]) => Self::Refuse,
            (HEARD, &[]) => Self::Heard,
            (ATTACH, &[]) => Self::Attach,
            (TAKEN, &[a, b, c, d]) => Self::Taken(u32::from_le_bytes([a, b, c, d])),
            (STOPPED, &[signal @ 1..=64]) => Self::Stopped(signal),
            (MODES, bytes) => Self::Modes(TerminalModes::decode(bytes)?),
            (RETURN, &[]) => Self::Return,
            (EXIT | FAIL | REFUSE | ATTACH | TAKEN | STOPPED | RETURN, _) => {
                return Err(WireError::Malformed("a control frame of the wrong size"));
            }
            (SKIPPABLE.., _) => return Ok(Decoded::Skip(taken)),
            _ => return Err(WireError::UnknownKind(kind)),
        };
        Ok(Decoded::Item(frame, taken))
    }
}

#[cfg(test)]
mod tests;
