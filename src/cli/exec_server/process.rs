//! One process of a client: a run of the host under the client's own name for it.
//!
//! Invariant: `seq` counts output, exit and close together from 1 without a gap, because Codex waits for ever at a gap.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::limits;
use crate::text::encode::base64;

/// How far a process has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The host has been asked.
    Asked,
    /// It is this run.
    Runs(u64),
    /// It has ended, and output of what it has left may follow.
    Exited(i64),
    /// Nothing follows.
    Closed(i64),
}

/// What to do with the host's answer.
#[derive(Debug)]
pub(super) enum Ask {
    /// It has the run of this process. The client's request has this name.
    Start { process: String, id: Value },
    /// The client's request of this name is answered with this.
    Answer { id: Value, result: Value },
    /// As `Answer`, once the host has taken the rest of the input, too: what a process is written comes in pieces that the
    /// host takes, one after the other.
    Write { process: String, rest: Vec<String>, id: Value, result: Value },
}

/// A piece of output, as a client reads it later.
#[derive(Debug)]
struct KeptChunk {
    seq: u64,
    stream: &'static str,
    bytes: Box<[u8]>,
}

/// One process.
#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) stage: Stage,
    pub(super) is_tty: bool,
    /// Whether it takes input.
    pub(super) takes_input: bool,
    /// Whether the host has got a piece of input, and has not answered.
    pub(super) is_writing: bool,
    /// Requests for the host that wait for the run's number, or for the end of a write: a method and its parameters, and
    /// what to do with the answer.
    pub(super) waiting: Vec<(&'static str, Value, Ask)>,
    /// The last names of writes. A write that comes again under its name is not done again.
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

    /// The exit code, once it has one.
    pub(super) fn exit(&self) -> Option<i64> {
        match self.stage {
            Stage::Asked | Stage::Runs(_) => None,
            Stage::Exited(code) | Stage::Closed(code) => Some(code),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed(_))
    }

    /// The number of the next message, which is now used.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Keeps output for later reading, as far as there is room.
    pub(super) fn keep(&mut self, seq: u64, stream: &'static str, bytes: &[u8]) {
        self.kept_bytes += bytes.len();
        self.kept.push_back(KeptChunk { seq, stream, bytes: bytes.into() });
        while self.kept_bytes > limits::EXEC_SERVER_KEPT_BYTES && self.kept.len() > 1 {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |chunk| chunk.bytes.len());
        }
    }

    /// Frees all but the last of its output.
    pub(super) fn shed(&mut self) {
        self.kept.clear();
        self.kept_bytes = 0;
    }

    /// Whether a write of this name is new.
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

    /// Whether there is anything behind this message for a reader to get at once.
    pub(super) fn has_news(&self, after: u64) -> bool {
        let last = self.kept.back().map_or(0, |chunk| chunk.seq);
        last > after || self.exit().is_some()
    }

    /// What a reader gets that has everything up to this message: one piece at least, then as many as fit.
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
