//! The FIFO that reports come through.
//!
//! Invariants: it is this host's own file, and is made again when it was removed; no more is read in a second than
//! [`limits::REPORT_BYTES_A_SECOND`]; other bytes are skipped and counted, and hide no record behind them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rexec_sh::protocol::report::{FoundRecord, ReportRecord, decode_report};

use crate::host::turn::{Source, Turn};
use crate::io::poller::{Ready, Token};
use crate::io::port::{Port, ReadOutcome};
use crate::limits;
use crate::sys::fifo::{self, ShimLook};
use crate::sys::{self, file};

/// The part of a second for which reading is bounded.
const SLICE: Duration = Duration::from_millis(100);
const SLICE_BYTES: usize = limits::REPORT_BYTES_A_SECOND / 10;

#[derive(Debug)]
pub(super) struct ReportFifo {
    path: PathBuf,
    port: Option<Port>,
    /// Device and inode.
    identity: Option<(u64, u64)>,
    bytes: Vec<u8>,
    taken: usize,
    /// The beginning of this slice, and the bytes that were read in it.
    slice: Option<(Instant, usize)>,
    /// The lock that the writers see.
    look: ShimLook,
    pub(super) garbage: u64,
}

impl ReportFifo {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            port: None,
            identity: None,
            bytes: Vec::new(),
            taken: 0,
            slice: None,
            look: ShimLook::Done,
            garbage: 0,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its device and inode, while there is one.
    pub(super) fn identity(&self) -> Option<(u64, u64)> {
        self.identity
    }

    pub(super) fn token(&self) -> Option<Token> {
        self.port.as_ref().map(Port::token)
    }

    /// Makes it if it is not there, or if another process has changed it: who may read it, or where it has names.
    /// Whoever reads it has it open from then on, so it is replaced and not mended. Returns true if it was changed.
    pub(super) fn check(&mut self, turn: &mut Turn) -> io::Result<bool> {
        let is_there = self.identity.is_some() && file::identity(&self.path) == self.identity;
        let is_as_made = self.port.as_ref().is_some_and(|port| fifo::is_as_made(port.fd()));
        if is_there && is_as_made {
            return Ok(false);
        }
        self.identity = None;
        let fd = fifo::make(&self.path)?;
        self.look = ShimLook::Done;
        self.identity = fifo::identity(&fd);
        let port = Port::new(&mut turn.poller, fd)?;
        turn.name(port.token(), Source::Reports);
        if let Some(before) = self.port.replace(port) {
            turn.close(before);
        }
        Ok(is_there)
    }

    pub(super) fn close(mut self, turn: &mut Turn) {
        fifo::remove(&self.path, self.identity);
        if let Some(port) = self.port.take() {
            turn.close(port);
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        !self.port.as_ref().is_some_and(Port::is_readable)
    }

    pub(super) fn remember(&mut self, event: Ready) {
        if let Some(port) = &mut self.port {
            port.remember(event);
        }
    }

    /// Counts it as readable without an event.
    pub(super) fn expect_input(&mut self) {
        self.port.iter_mut().for_each(Port::expect_input);
    }

    /// When reading goes on, if it has paused.
    pub(super) fn resumes_at(&self) -> Option<Instant> {
        let (since, bytes) = self.slice?;
        let waits = bytes >= SLICE_BYTES && self.port.as_ref().is_some_and(Port::is_readable);
        waits.then_some(since + SLICE)
    }

    /// Tells the shims if they have to stay to be found.
    pub(super) fn tell_shims(&mut self, look: ShimLook) {
        if let Some(port) = self.port.as_ref().filter(|_| self.look != look) {
            fifo::tell_writers(port.fd(), look);
            self.look = look;
        }
    }

    /// Reads what has come. Returns true if there is too much of it.
    pub(super) fn read(&mut self, turn: &mut Turn) -> bool {
        // Before anything is read: a shim that finds its report read leaves.
        self.tell_shims(ShimLook::Due);
        let Some(port) = &mut self.port else { return false };
        self.bytes.drain(..self.taken);
        self.taken = 0;
        let (since, mut read) = match self.slice {
            Some((since, read)) if turn.now < since + SLICE => (since, read),
            _ => (turn.now, 0),
        };
        let is_too_much = read >= SLICE_BYTES;
        let mut filled = 0;
        while port.is_readable() && read < SLICE_BYTES && filled < limits::READ_BUDGET_BYTES {
            match port.read(|fd| sys::read(fd, &mut turn.buffer)) {
                ReadOutcome::Bytes(length) => {
                    self.bytes.extend_from_slice(&turn.buffer[..length]);
                    (read, filled) = (read + length, filled + length);
                }
                ReadOutcome::Nothing | ReadOutcome::End => break,
            }
        }
        self.slice = Some((since, read));
        if port.is_readable() && read < SLICE_BYTES {
            turn.queue(port.token());
        }
        is_too_much
    }

    pub(super) fn next_record(&mut self) -> Option<ReportRecord<'_>> {
        // Records are written atomically. So a part of one, with nothing behind it, never becomes a record.
        let is_whole = self.is_drained();
        loop {
            let rest = &self.bytes[self.taken..];
            let length = match decode_report(rest) {
                FoundRecord::Record(_, length) => length,
                FoundRecord::Incomplete if rest.is_empty() || !is_whole => return None,
                FoundRecord::Incomplete => {
                    self.taken += 1;
                    self.garbage += 1;
                    continue;
                }
                FoundRecord::Garbage(length) => {
                    self.taken += length;
                    self.garbage += length as u64;
                    continue;
                }
            };
            let at = self.taken;
            self.taken += length;
            let FoundRecord::Record(record, _) = decode_report(&self.bytes[at..]) else { return None };
            return Some(record);
        }
    }
}
