//! The wire format between rexec-sh and rexec-host: pure functions over bytes, no descriptors.
//!
//! A connection opens with one [`Hello`] in each direction (8 bytes, never framed, so that any two versions can tell
//! each other apart), followed by frames: one byte of kind, four bytes of payload length (little-endian, as every
//! number here), the payload. Command, directory and environment are bytes and never assumed to be UTF-8.
//!
//! ```text
//! shim ▶ host   HELLO (RUN(+descriptors)  LET_GO?  SIGNAL*  CLOSED*  (KEYS | SIZE | RESUME | HANGUP)*  ABORT? | LEFT | INTERACTIVE)
//! host ▶ shim   HELLO ACCEPTED? ATTACH? (OUT | ERR | NOTE | HEARD | OUTPUT_ENDED | TAKEN | STOPPED | MODES | RETURN)* (EXIT | FAIL | REFUSE)
//! ```
//!
//! Invariants: nothing here allocates by a length field (the caller's buffer grows with the bytes that arrived);
//! every truncation of a valid stream is [`Decoded::Incomplete`] and never an error; kinds from 0x80 up may be skipped
//! by a reader that does not know them, any other unknown kind is an error. Attributes of a RUN frame follow the same rule.

mod attributes;
mod extras;
mod fields;
mod frame;
mod modes;
mod run;
mod table;

use std::fmt;

pub use attributes::{Attributes, Stdio};
pub use extras::{COREDUMP_FILTER, Direct, Extras, OutputBudget, TIMER_SLACK_NS};
pub use fields::Strings;
pub use frame::*;
pub use modes::{MODE_CHARACTERS, TerminalModes};
pub use run::{AtStart, RunRequest, add_cgroups, add_variable, encode_run};
pub use table::{Field, Message, Rest, Short};

/// The first four bytes of every binary connection; the first byte tells it from JSONL, which opens with `{`.
pub const MAGIC: [u8; 4] = *b"RXEC";
/// The version of this build. From version 4 on, a reader skips unknown optional attributes of a RUN frame. A shim
/// sends its RUN before it knows its host's version, so it may send a new attribute once [`VERSION_MIN`] is 4.
pub const VERSION: u16 = VERSION_THAT_LETS_GO;
/// The first version whose shims answer ACCEPTED with LET_GO.
pub const VERSION_THAT_LETS_GO: u16 = 5;
/// The oldest version this build still understands: that of the release before this one. An agent keeps the shim that it
/// found at its start while a person replaces the host, and the reverse.
pub const VERSION_MIN: u16 = 3;
/// Size of a [`Hello`], bytes.
pub const HELLO_BYTES: usize = 8;
/// Size of a frame's kind and length, bytes.
pub const HEADER_BYTES: usize = 5;
/// The largest RUN payload, bytes. execve(2) takes at most 6 MiB of strings, with an unlimited stack.
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
/// The most bytes of keys on their way to a command: the host answers with the number of bytes that the command's
/// terminal has taken.
pub const KEYS_BYTES_MAX: usize = 32 << 10;
/// The longest purpose of a command, bytes. A longer one is cut.
pub const WHY_BYTES_MAX: usize = 1024;
/// The longest name of a caller for itself, bytes.
pub const WHOAMI_BYTES_MAX: usize = 256;

/// The kind of a RUN frame, the only one that may be large.
const RUN: u8 = 0x01;

/// The reason why a peer's bytes cannot be understood. It ends the connection.
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
    /// A payload of another form than its kind.
    Malformed(&'static str),
}

/// Returns true if these bytes begin with a whole frame.
#[must_use]
pub fn is_whole_frame(bytes: &[u8]) -> bool {
    let Some(&[_, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else { return false };
    bytes.len() - HEADER_BYTES >= u32::from_le_bytes([a, b, c, d]) as usize
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRexec => write!(f, "the peer does not speak the rexec protocol"),
            Self::Version { newest, oldest } => {
                let theirs = Hello { newest: *newest, oldest: *oldest }.versions();
                write!(f, "the peer speaks protocol {theirs}, this side {}", Hello::OURS.versions())
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

/// The result of decoding the start of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<T> {
    /// More bytes are needed.
    Incomplete,
    /// A whole item, which took this many bytes of the buffer.
    Item(T, usize),
    /// A frame that may be skipped, which took this many bytes of the buffer.
    Skip(usize),
}

/// The opening of a connection: the versions of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The newest version spoken, and the one in use if the other side knows it.
    pub newest: u16,
    /// The oldest version understood.
    pub oldest: u16,
}

impl Hello {
    /// The hello of this build.
    pub const OURS: Self = Self { newest: VERSION, oldest: VERSION_MIN };

    /// The versions in words.
    #[must_use]
    pub fn versions(self) -> String {
        let Self { newest, oldest } = self;
        if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") }
    }

    #[must_use]
    pub fn encode(self) -> [u8; HELLO_BYTES] {
        let [a, b, c, d] = MAGIC;
        let ([e, f], [g, h]) = (self.newest.to_le_bytes(), self.oldest.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }

    /// Reads a hello and checks that the two sides share a version.
    ///
    /// # Errors
    /// [`WireError::NotRexec`] from the first byte that differs, [`WireError::Version`] if no version is shared.
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

#[cfg(test)]
mod tests;
