//! The events of JSON-RPC, in one table: name, contents, and the word by which a client asks for them.
//!
//! The table makes the notifications that the host sends, what clients read, and the list in the document of `rexec schema
//! rpc`; a test compares the list in `rexec help protocol` with it.

use serde::Serialize;
use serde_json::Value;

use super::answers::{
    ClosedNote, CursorNote, DecidedNote, ExitedNote, HeldNote, OutputNote, PortNote, PromptNote, RemarkNote,
    ResizedNote,
};
use super::listing::ListedRun;
use super::params::RunEvent;

/// An event, as a type that stands for it.
pub trait RpcEvent {
    const NAME: &'static str;
    type Note: Serialize;
}

/// An event that a client chooses to be told.
pub trait ChosenEvent: RpcEvent {
    /// The word for it in the parameters of a subscription.
    const WORD: RunEvent;
}

/// A row of the table, as a document shows it.
#[derive(Debug)]
pub struct EventRow {
    pub name: &'static str,
    pub text: &'static str,
    /// The word for it, if a client chooses.
    pub word: Option<RunEvent>,
    /// The name of its contents' type.
    pub note: &'static str,
}

macro_rules! events {
    ($(#[doc = $text:literal] $name:literal $event:ident($note:ty) $(, $word:ident)?;)+) => {
        /// A type for each event.
        pub mod event {
            $(#[doc = $text] #[derive(Debug)] pub struct $event;)+
        }

        $(impl RpcEvent for event::$event {
            const NAME: &'static str = $name;
            type Note = $note;
        })+

        $($(impl ChosenEvent for event::$event {
            const WORD: RunEvent = RunEvent::$word;
        })?)+

        pub const EVENT_ROWS: &[EventRow] = &[$(
            EventRow { name: $name, text: $text, word: [$(RunEvent::$word)?].first().copied(), note: stringify!($note) },
        )+];

        /// An event, as a client reads it.
        #[derive(Debug)]
        pub enum Event {
            $(#[doc = $text] $event(Box<$note>),)+
        }

        impl Event {
            /// The event of this name; `None` for an unknown one, and for contents of another form.
            pub(super) fn named(name: &str, note: Value) -> Option<Self> {
                match name {
                    $($name => serde_json::from_value(note).ok().map(Self::$event),)+
                    _ => None,
                }
            }
        }
    };
}

events! {
    /// A run was taken in.
    "exec.started" Started(ListedRun), Start;
    /// A person decides whether a run begins.
    "exec.held" Held(HeldNote), Held;
    /// Somebody has decided whether a held run begins.
    "exec.decided" Decided(DecidedNote), Held;
    /// A run has written a chunk of output.
    "exec.output" Output(OutputNote), Output;
    /// A program of a run waits for a person's answer.
    "exec.prompt" Prompt(PromptNote), Prompt;
    /// A run listens on a port.
    "exec.port" Port(PortNote), Port;
    /// The host says about a run what its console shows.
    "exec.remark" Remark(RemarkNote), Remark;
    /// A run's shell has ended.
    "exec.exited" Exited(ExitedNote), Exit;
    /// Nothing more comes of a run.
    "exec.closed" Closed(ClosedNote), Exit;
    /// A run's terminal has this size.
    "exec.resized" Resized(ResizedNote);
    /// A subscription that can be resumed has told everything up to here.
    "events.cursor" Cursor(CursorNote);
}
