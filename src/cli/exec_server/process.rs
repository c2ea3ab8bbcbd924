//! One process of a client: a run of the host under the client's own name for it.
//!
//! Invariant: `seq` counts output, exit and close together from 1 without a gap, because Codex waits forever at a gap.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::front::rpc::client::PendingCalls;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::{CancelParams, ResizeParams, SignalName, SignalParams, WriteParams};
use crate::limits;
use crate::text::encode::base64;

/// The progress of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The host has the request, and has not answered.
    Asked,
    /// The host runs it as this run.
    Runs(u64),
    /// It has ended; output of processes that it left may follow.
    Exited(i64),
    /// Nothing follows.
    Closed(i64),
}

/// What a client wants of a process.
#[derive(Debug)]
pub(super) enum Wish {
    Input(Vec<u8>),
    Signal(SignalName),
    Size {
        rows: u16,
        cols: u16,
    },
    /// Its end.
    End,
}

impl Wish {
    /// Calls the host about the process, which is this run.
    ///
    /// # Errors
    /// Returns the purpose of a call that is too long.
    pub(super) fn call(self, run: u64, then: Purpose, host: &mut PendingCalls<Purpose>) -> Result<(), Purpose> {
        match self {
            Self::Input(bytes) => {
                let params = WriteParams { run, base64: Some(bytes), ..WriteParams::default() };
                host.send::<method::Write>(&params, then)
            }
            Self::Signal(signal) => host.send::<method::Signal>(&SignalParams { run, signal }, then),
            Self::Size { rows, cols } => host.send::<method::Resize>(&ResizeParams { run, rows, cols }, then),
            Self::End => {
                let grace_ms = u64::try_from(limits::GRACE_CALLER_GONE.as_millis()).ok();
                host.send::<method::Cancel>(&CancelParams { run, grace_ms }, then)
            }
        }
    }
}

/// The use of a host's answer.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The answer has the run of this process. The client's request is `id`.
    Start { process: String, id: Value },
    /// Answers the client's request `id` with this result.
    Answer { id: Value, result: Value },
    /// As `Answer`, once the host has taken the rest of the input, too: a write is split into pieces that the host
    /// takes one after the other.
    Write { process: String, rest: Vec<Vec<u8>>, id: Value, result: Value },
}

/// A piece of output, kept for later reads.
#[derive(Debug)]
struct KeptChunk {
    seq: u64,
    stream: &'static str,
    bytes: Box<[u8]>,
}

#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) stage: Stage,
    pub(super) is_tty: bool,
    /// True if it takes input.
    pub(super) takes_input: bool,
    /// True if the host has a piece of input, and has not answered.
    pub(super) is_writing: bool,
    /// Wishes that wait for the run's number, or for the end of a write, each with the use of the host's answer.
    pub(super) waiting: Vec<(Wish, Purpose)>,
    /// The names of the last writes. A write that comes again under its name is not done again.
    writes: VecDeque<String>,
    /// The number of the next message.
    next: u64,
    kept: VecDeque<KeptChunk>,
    kept_bytes: usize,
}

impl ClientProcess {
    pub(super) fn new(is_tty: bool, takes_input: bool) -> Self {
        let (writes, kept, waiting) = (VecDeque::new(), VecDeque::new(), Vec::new());
        Self {
            stage: Stage::Asked,
            is_tty,
            takes_input,
            is_writing: false,
            waiting,
            writes,
            next: 1,
            kept,
            kept_bytes: 0,
        }
    }

    pub(super) fn exit(&self) -> Option<i64> {
        match self.stage {
            Stage::Asked | Stage::Runs(_) => None,
            Stage::Exited(code) | Stage::Closed(code) => Some(code),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed(_))
    }

    /// Takes the number of the next message.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Keeps output for later reads, up to the limit.
    pub(super) fn keep(&mut self, seq: u64, stream: &'static str, bytes: &[u8]) {
        self.kept_bytes += bytes.len();
        self.kept.push_back(KeptChunk { seq, stream, bytes: bytes.into() });
        while self.kept_bytes > limits::EXEC_SERVER_KEPT_BYTES && self.kept.len() > 1 {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |chunk| chunk.bytes.len());
        }
    }

    /// Frees all output except the last pieces.
    pub(super) fn shed(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    /// Returns true if a write of this name is new.
    pub(super) fn is_new_write(&mut self, name: &str) -> bool {
        if name.is_empty() {
            return true;
        }
        if self.writes.iter().any(|known| known == name) {
            return false;
        }
        self.writes.push_back(name.to_owned());
        if self.writes.len() > limits::EXEC_SERVER_WRITES_KNOWN {
            self.writes.pop_front();
        }
        true
    }

    /// Returns true if there is anything for a reader after this message.
    pub(super) fn has_news(&self, after: u64) -> bool {
        let last = self.kept.back().map_or(0, |chunk| chunk.seq);
        last > after || self.exit().is_some()
    }

    /// The answer to a reader that has everything up to message `after`: at least one piece, then as many as fit.
    pub(super) fn read(&self, after: u64, most: usize) -> Value {
        let (mut chunks, mut bytes, mut next) = (Vec::new(), 0, self.next);
        for chunk in self.kept.iter().filter(|chunk| chunk.seq > after) {
            if !chunks.is_empty() && bytes + chunk.bytes.len() > most {
                next = chunk.seq;
                break;
            }
            bytes += chunk.bytes.len();
            chunks.push(json!({"seq": chunk.seq, "stream": chunk.stream, "chunk": base64(&chunk.bytes)}));
            if bytes >= most {
                next = chunk.seq + 1;
                break;
            }
        }
        json!({
            "chunks": chunks, "nextSeq": next, "exited": self.exit().is_some(), "exitCode": self.exit(),
            "closed": self.is_closed(), "failure": null, "sandboxDenied": false,
        })
    }
}
