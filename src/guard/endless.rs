//! Ends programs that read on after the end of their input. zip(1) takes a password key by key and knows no end of
//! file, so it would read the hung-up terminal forever, as fast as a processor can.
//!
//! Invariant: only processes stopped at the terminal when that was given up are examined, and one is ended only if it
//! has read over and over again and got nothing.

use std::time::Instant;

use crate::limits;
use crate::sys::kill::{self, CONT};
use crate::sys::tree::{self, Process};
use crate::sys::usage::{self, Reads};
use rexec_sh::protocol::process::Signal;

/// A process that got end of file, and its reads so far.
#[derive(Debug)]
struct EndlessReader {
    process: Process,
    reads: Reads,
    has_got_hangup: bool,
}

/// The processes that asked when the terminal was given up.
#[derive(Debug, Default)]
pub(super) struct EndlessReaders {
    readers: Vec<EndlessReader>,
    look_at: Option<Instant>,
}

impl EndlessReaders {
    /// Watches these processes from now on.
    pub(super) fn watch(&mut self, processes: impl Iterator<Item = Process>, now: Instant) {
        self.readers.extend(processes.filter_map(|process| {
            let reads = usage::reads(process.pid)?;
            Some(EndlessReader { process, reads, has_got_hangup: false })
        }));
        self.look_at = (!self.readers.is_empty()).then(|| now + limits::ENDLESS_LOOK);
    }

    /// The time at which [`EndlessReaders::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Sends SIGHUP to those that have read and got nothing since the last look, as the end of a terminal does, and
    /// SIGKILL to those that got it before. Others are not watched any more.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        self.readers.retain_mut(|reader| {
            let is_same = tree::process(reader.process.pid).is_some_and(|found| found.start == reader.process.start);
            let reads = usage::reads(reader.process.pid).filter(|_| is_same);
            let Some(reads) = reads.filter(|reads| reads.are_empty_since(reader.reads)) else { return false };
            let signal = if reader.has_got_hangup { Signal::KILL } else { Signal::HUP };
            let _ = kill::process(reader.process.pid, signal);
            let _ = kill::process(reader.process.pid, CONT);
            reader.reads = reads;
            !std::mem::replace(&mut reader.has_got_hangup, true)
        });
        self.look_at = (!self.readers.is_empty()).then(|| now + limits::ENDLESS_LOOK);
    }
}
