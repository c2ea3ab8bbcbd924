//! The front doors: the languages of peers. They translate a peer's bytes into requests to the host, and a job's log
//! into bytes for the peer, and do nothing else.
//!
//! Invariant: no descriptors and no poll. A language sees the bytes that came in and appends the bytes that go out.

pub mod answer;
pub mod attached;
pub mod budget;
pub mod caller;
pub mod command;
pub mod how_ended;
pub mod init_record;
pub mod json_line;
pub mod jsonl;
pub mod keys;
pub mod language;
pub mod lines;
pub mod mcp;
pub mod numbers;
pub mod opencode;
pub mod output_filter;
pub mod profile;
pub mod projects;
pub mod rpc;
pub mod run_state;
pub mod sessions;
pub mod shim;
pub mod span;
pub mod trimmer;
pub mod unseen_notes;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use crate::core::end::{Refusal, StartError};
use crate::core::entry::Stream;
use command::Command;
pub use jsonl::{AgentRequest, AttachRequest, SendRequest, WatchLook, WatchRequest};
use rexec_sh::protocol::process::Signal;

/// A request of a peer to the host.
#[derive(Debug)]
pub enum PeerRequest {
    /// Run a command.
    Run(Box<Command>),
    /// Run a command that was given as words, in the host's own environment.
    RunWords(Box<jsonl::CommandRequest>),
    /// Show that this caller runs a command without the host.
    NoteLeft {
        /// The caller's name for itself.
        whoami: String,
        /// The command's text.
        command: String,
    },
    /// Show that this caller runs an interactive shell without the host.
    NoteInteractive {
        /// The caller's name for itself.
        whoami: String,
    },
    /// Deliver this signal to the command.
    Signal(Signal),
    /// The shim has let go of what its command may let go of.
    HasLetGo,
    /// End the command.
    Abort,
    /// The reader of this stream is gone. The stream is [`Stream::Out`] or [`Stream::Err`].
    OutputClosed(Stream),
    /// Pass an event at the caller's terminal on to the command's.
    Terminal(TerminalEvent),
    /// Look at what runs, or act on it.
    Supervise(Supervision),
    /// Type a person's answer for a command.
    Send(SendRequest),
    /// Have this person's terminal stand for a command's.
    Attach(AttachRequest),
    /// Serve a call of a program.
    Rpc(Box<rpc::call::RpcCall>),
}

/// What a person asks about the commands of others. Each number is a command's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supervision {
    /// Answer with the commands that run.
    List,
    /// Answer with what the host is and has.
    Status,
    /// `rexec run` starts an agent of this name in the process that asks.
    Agent { name: String },
    /// The end of the host.
    Stop {
        /// Also if commands run.
        force: bool,
    },
    /// End the command, or what it left running; `at_once` is without a grace.
    Kill { seq: u64, at_once: bool },
    /// Deliver this signal to the command, or to what it left running.
    Signal(u64, Signal),
    /// Stop every process of the command.
    Pause(u64),
    /// Continue what a pause has stopped.
    Resume(u64),
    /// Show the console here, too.
    Watch(WatchRequest),
    /// Tell each command that ends here, too; with `ansi`, with the escape sequences of its output.
    Transcript { ansi: bool },
    /// The terminal that shows the console here has this many columns now.
    Resize(u16),
}

/// An event at a caller's terminal.
#[derive(Debug)]
pub enum TerminalEvent {
    /// The person typed these bytes.
    Keys(Vec<u8>),
    /// The terminal has these rows and columns now.
    Size(u16, u16),
    /// The caller continues after a stop, in the foreground of its terminal or not.
    Resume { foreground: bool },
    /// The terminal is gone.
    Hangup,
}

impl From<&Refusal> for Notice {
    fn from(refusal: &Refusal) -> Self {
        Self::without_hint(exit_code::NOT_EXECUTABLE, refusal.sentence())
    }
}

impl From<&StartError> for Notice {
    fn from(why: &StartError) -> Self {
        Self::new(why.code, &why.problem, &why.hint)
    }
}
