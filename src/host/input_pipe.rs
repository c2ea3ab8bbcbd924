//! The standard input of a command whose caller writes it in pieces: a pipe, and the bytes that wait for room in it.
//!
//! Invariants: no write waits; the host closes the pipe after the last byte, or when nobody reads it any more.

use crate::io::outlet::{Flush, Outlet};
use crate::io::poller::{Ready, Token};
use crate::io::port::Port;
use crate::sys;

/// The host's end of the pipe.
#[derive(Debug)]
pub(super) struct InputPipe {
    port: Port,
    waiting: Outlet,
    is_ending: bool,
}

impl InputPipe {
    /// The end of a new pipe, and its first bytes.
    pub(super) fn new(port: Port, first: &[u8]) -> Self {
        let mut waiting = Outlet::default();
        waiting.buffer().extend_from_slice(first);
        Self { port, waiting, is_ending: false }
    }

    /// Remembers an event. Returns true if it calls for a visit.
    pub(super) fn remember(&mut self, event: Ready) -> bool {
        self.port.remember(event);
        true
    }

    /// Queues bytes. Nothing follows them if this is the end.
    pub(super) fn push(&mut self, bytes: &[u8], is_end: bool) {
        self.waiting.buffer().extend_from_slice(bytes);
        self.is_ending |= is_end;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Bytes that wait for room.
    pub(super) fn pending(&self) -> usize {
        self.waiting.pending()
    }

    /// Writes as much as the pipe takes. Returns true if the caller should close it now.
    pub(super) fn flush(&mut self) -> bool {
        let port = &mut self.port;
        match self.waiting.flush(|bytes| port.write(|fd| sys::write(fd, bytes))) {
            Ok(Flush::Done) => self.is_ending,
            Ok(Flush::Blocked) => false,
            Err(_) => true,
        }
    }

    pub(super) fn token(&self) -> Token {
        self.port.token()
    }

    pub(super) fn into_port(self) -> Port {
        self.port
    }
}
