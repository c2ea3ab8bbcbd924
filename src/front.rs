//! The languages that peers speak, translated: bytes into what is asked of the host, a job's log into bytes.
//!
//! No descriptors and no poll: a protocol sees the bytes that came in and appends the bytes that go out.

pub mod answer;
pub mod budget;
pub mod caller;
pub mod command;
pub mod jsonl;
pub mod output_filter;
pub mod protocol;
pub mod shim;

use rexec_sh::protocol::notice::Notice;

use crate::core::entry::{StartError, Stream};
use crate::core::process::Signal;
use command::Command;

/// What a peer asks of the host.
#[derive(Debug)]
pub enum PeerRequest {
    /// Run a command.
    Run(Box<Command>),
    /// Run a command that was given as words, by the host's own environment.
    RunWords(Box<jsonl::CommandRequest>),
    /// Take note of a command that its caller runs without the host.
    NoteLeft {
        /// Who calls, as it says.
        whoami: String,
        /// The command's words.
        command: String,
    },
    /// Show that an interactive shell of this caller's runs without the host.
    NoteInteractive {
        /// What the caller calls itself.
        whoami: String,
    },
    /// Deliver this signal to the command.
    Signal(Signal),
    /// End the command.
    Abort,
    /// Nobody reads what the command writes to this descriptor any more: [`Stream::Out`] or [`Stream::Err`].
    OutputClosed(Stream),
    /// Something happened at the caller's terminal, which the command's stands for.
    Terminal(TerminalEvent),
    /// Tell what runs.
    List,
    /// End the command with this number, or what it left running.
    Kill(u64),
}

/// What happens at a caller's terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    /// This was typed.
    Keys(Vec<u8>),
    /// It has this size now: rows and columns.
    Size(u16, u16),
    /// The caller goes on after a stop, in its foreground or not.
    Resume { foreground: bool },
    /// It is gone.
    Hangup,
}

impl From<&StartError> for Notice {
    fn from(why: &StartError) -> Self {
        Self::new(why.code, &why.problem, &why.hint)
    }
}
