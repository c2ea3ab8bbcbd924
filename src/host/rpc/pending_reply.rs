//! Requests that wait for something about a run.

use std::time::Instant;

use super::Requester;
use crate::front::rpc::params::Encoding;
use crate::front::rpc::start::StartParams;

#[derive(Debug)]
pub(super) enum Awaiting {
    /// `exec.run`: the end of the run. `parses` says that its standard output is parsed as JSON.
    Answer { parses: bool },
    /// `exec.output`: a chunk, or the end. Once `is_due`, it waits only for room.
    Output { wanted: WantedOutput, is_due: bool },
    /// `exec.wait`: the end of the run.
    Exit,
    /// `exec.wait`: the run listens on this port, or on any.
    Port { port: Option<u16>, look_at: Instant },
    /// `exec.wait`: the run has written a text.
    Text(Box<[u8]>),
    /// `exec.wait`: time.
    Time,
    /// `exec.start`: the end of a run that has the same name.
    Restart(Option<Box<WantedStart>>),
}

/// The output that `exec.output` asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedOutput {
    /// Only the chunks after this one.
    pub(super) after: u64,
    pub(super) most_bytes: usize,
    pub(super) encoding: Encoding,
}

#[derive(Debug)]
pub(super) struct PendingReply {
    pub(super) to: Requester,
    pub(super) waiting: Awaiting,
    /// When it gets its answer at the latest.
    pub(super) until: Option<Instant>,
}

impl PendingReply {
    pub(super) fn to(&self) -> &Requester {
        &self.to
    }

    pub(super) fn text(&self) -> Option<&[u8]> {
        match &self.waiting {
            Awaiting::Text(text) => Some(text),
            _ => None,
        }
    }

    /// When it has to be looked at although nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let look = match self.waiting {
            Awaiting::Port { look_at, .. } => Some(look_at),
            _ => None,
        };
        look.into_iter().chain(self.until).min()
    }
}

/// A start that a client wants.
#[derive(Debug, Clone)]
pub(super) struct WantedStart {
    pub(super) to: Requester,
    pub(super) params: StartParams,
    /// The answer comes at the command's end.
    pub(super) is_run: bool,
}
