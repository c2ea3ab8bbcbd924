//! The frames: their kinds, their fields, and their encoding.
//!
//! Invariant: a written frame is read as the same frame, and as no other.

use std::ffi::CStr;

use super::modes::TerminalModes;
use super::run::RunRequest;
use super::table::{Message, Rest, Short};
use super::{Decoded, FRAME_BYTES_MAX, HEADER_BYTES, LEFT_BYTES_MAX, RUN, RUN_BYTES_MAX, WHOAMI_BYTES_MAX, WireError};
use crate::protocol::process::{Exit, Signal};
use crate::wire;

/// Kinds from here on may be skipped.
const SKIPPABLE: u8 = 0x80;

/// One of the caller's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerStream {
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Err,
}

wire!(for CallerStream { 1 Out, 2 Err });

wire! {
    /// A frame from the shim.
    #[derive(Debug, PartialEq, Eq)]
    pub enum FromShim<'a> {
        /// Run a command. Boxed, because it is far larger than the other frames and comes once.
        0x01 Run(request: Box<RunRequest<'a>>),
        /// Deliver this signal to the command's process group.
        0x02 Signal(signal: Signal),
        /// End the command's whole tree: SIGTERM, then SIGKILL.
        0x03 Abort,
        /// The reader of this stream is gone.
        0x04 Closed(stream: CallerStream),
        /// The shim runs this command itself, because the host cannot enter the working directory.
        0x05 Left { whoami: Short<'a>, command: Rest<'a, LEFT_BYTES_MAX> },
        /// Keys from the caller's terminal, for the command's.
        0x08 Keys(keys: &'a [u8]),
        /// The size of the caller's terminal: rows and columns.
        0x09 Size(size: (u16, u16)),
        /// The caller goes on after a stop, in the foreground of its terminal or in the background.
        0x0a Resume { foreground: bool },
        /// The caller's terminal has hung up.
        0x0b Hangup,
        /// The shim becomes an interactive shell, which the host does not see.
        0x0c Interactive { whoami: Rest<'a, WHOAMI_BYTES_MAX> },
        /// After ACCEPTED: the shim has let go of everything that only the command should hold.
        0x84 LetGo,
    }
}

wire! {
    /// A frame from the host.
    #[derive(Debug, PartialEq, Eq)]
    pub enum FromHost<'a> {
        /// Bytes for the caller's descriptor 1.
        0x11 Out(bytes: &'a [u8]),
        /// Bytes for the caller's descriptor 2.
        0x12 Err(bytes: &'a [u8]),
        /// A line of the host's own for the caller's descriptor 2.
        0x13 Note(text: &'a [u8]),
        /// The command ended. No frame follows.
        0x14 Exit(exit: Exit),
        /// The command did not run, or its end is unknown. The shim writes the text and exits with the code.
        0x15 Fail { code: u8, text: &'a [u8] },
        /// The host may not run the command, because the caller is sandboxed. The shim runs the real shell, silently.
        0x16 Refuse,
        /// The command has begun on a terminal that stands for the caller's. The shim relays the caller's terminal.
        0x18 Attach,
        /// The command's terminal has taken this many bytes of keys.
        0x19 Taken(bytes: u32),
        /// The command was stopped by this signal. Its caller stops too, as it would with the real shell.
        0x1a Stopped(signal: Signal),
        /// The command asks for keys no longer. The shim leaves the caller's terminal alone until it asks again.
        0x1b Return,
        /// The command has changed its terminal's modes. The caller's terminal gets them at the end.
        0x1c Modes(modes: TerminalModes),
        /// The host has received a SIGNAL frame and passes the signal on.
        0x81 Heard,
        /// The host will not refuse the command any more. The shim lets go of everything that only the command should
        /// hold, and reports that.
        0x82 Accepted,
        /// No process of the command can write to this stream any more, and all its output has been sent. If the
        /// caller's descriptors 1 and 2 are one pipe, stream 1 stands for both.
        0x83 OutputEnded(stream: CallerStream),
    }
}

/// Appends a frame. A text that makes it longer than [`FRAME_BYTES_MAX`] is cut.
fn put_frame<'a>(message: &impl Message<'a>, out: &mut Vec<u8>) {
    let payload = begin_frame(message.kind(), out);
    message.put_fields(out);
    out.truncate(payload + FRAME_BYTES_MAX);
    end_frame(payload, out);
}

/// Appends the header of a frame. Returns where its payload begins.
fn begin_frame(kind: u8, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[kind, 0, 0, 0, 0]);
    out.len()
}

/// Writes the length of a payload that begins there and goes on to the end.
fn end_frame(payload: usize, out: &mut [u8]) {
    let bytes = u32::try_from(out.len() - payload).expect("bounded by FRAME_BYTES_MAX");
    out[payload - HEADER_BYTES + 1..payload].copy_from_slice(&bytes.to_le_bytes());
}

impl FromShim<'_> {
    /// Appends the frame, as [`encode_run`](super::encode_run) does for a RUN.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_frame(self, out);
    }
}

impl FromHost<'_> {
    /// Appends the frame. Output may have at most [`FRAME_BYTES_MAX`]; [`encode_output`] takes any.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_frame(self, out);
    }
}

/// Appends a LEFT frame: the caller's name, and the words of the command, up to [`LEFT_BYTES_MAX`] in all.
pub fn encode_left<'a>(whoami: &[u8], argv: impl Iterator<Item = &'a CStr>, out: &mut Vec<u8>) {
    let whoami = Short(&whoami[..whoami.len().min(usize::from(u8::MAX))]);
    let most = LEFT_BYTES_MAX - 1 - whoami.0.len();
    let mut command = Vec::new();
    for (n, argument) in argv.enumerate() {
        command.extend_from_slice(if n == 0 { b"" } else { b" " });
        command.extend_from_slice(argument.to_bytes());
        command.truncate(most);
    }
    FromShim::Left { whoami, command: Rest(&command) }.encode(out);
}

/// Appends output as frames of at most [`FRAME_BYTES_MAX`].
pub fn encode_output(stream: CallerStream, bytes: &[u8], out: &mut Vec<u8>) {
    bytes.chunks(FRAME_BYTES_MAX).for_each(|chunk| output(stream, chunk).encode(out));
}

fn output(stream: CallerStream, bytes: &[u8]) -> FromHost<'_> {
    match stream {
        CallerStream::Out => FromHost::Out(bytes),
        CallerStream::Err => FromHost::Err(bytes),
    }
}

/// Frames the bytes that `append` appends as output, in frames of at most [`FRAME_BYTES_MAX`]. Returns the number of
/// bytes of output; without any there is no frame.
pub fn append_output(stream: CallerStream, out: &mut Vec<u8>, append: impl FnOnce(&mut Vec<u8>)) -> usize {
    let start = out.len();
    let payload = begin_frame(output(stream, &[]).kind(), out);
    append(out);
    let bytes = out.len() - payload;
    if bytes == 0 {
        out.truncate(start);
        return 0;
    }
    let rest = out.split_off(payload + bytes.min(FRAME_BYTES_MAX));
    end_frame(payload, out);
    encode_output(stream, &rest, out);
    bytes
}

/// Returns true if a buffer starts with a RUN frame. Only then may it grow beyond [`FRAME_BYTES_MAX`].
#[must_use]
pub fn starts_with_run(bytes: &[u8]) -> bool {
    bytes.first() == Some(&RUN)
}

/// Reads one frame from the start of a buffer.
fn decode<'a, T: Message<'a>>(bytes: &'a [u8]) -> Result<Decoded<T>, WireError> {
    let Some(&[kind, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(Decoded::Incomplete) };
    let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).expect("usize has 32 bits or more");
    let most = if kind == RUN { RUN_BYTES_MAX } else { FRAME_BYTES_MAX };
    if length > most {
        return Err(WireError::TooLong { kind, bytes: length });
    }
    let taken = HEADER_BYTES + length;
    let Some(payload) = bytes.get(HEADER_BYTES..taken) else { return Ok(Decoded::Incomplete) };
    match T::read(kind, payload) {
        Ok(frame) => Ok(Decoded::Item(frame, taken)),
        Err(_) if kind >= SKIPPABLE => Ok(Decoded::Skip(taken)),
        Err(error) => Err(error),
    }
}

impl<'a> FromShim<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]. The buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        decode(bytes)
    }
}

impl<'a> FromHost<'a> {
    /// Reads one frame from the start of a buffer.
    ///
    /// # Errors
    /// Any [`WireError`]. The buffer is not consumed.
    pub fn decode(bytes: &'a [u8]) -> Result<Decoded<Self>, WireError> {
        decode(bytes)
    }
}
