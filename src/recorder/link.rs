//! The recorder's end of the socket to its host.
//!
//! Invariants: a host that does not read holds up nothing for longer than a moment; what waits for it is bounded but
//! for the lines that must not be lost.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rexec_sh::protocol::wire::WireError;

use crate::journal::frame::{Decoder, Frame};
use crate::journal::status::RecorderStatus;

/// How many bytes are read from the host at once.
const READ_BYTES: usize = 256 << 10;
/// How long the recorder waits, before it leaves, for a host that does not read.
const LEAVE_WAIT: Duration = Duration::from_millis(100);
/// Bytes that wait for a host that does not read. Beyond this, sentences for the human are left out.
const OUT_BYTES_MAX: usize = 64 << 10;

/// The socket, frames that come in and lines that go out.
#[derive(Debug)]
pub(super) struct HostLink {
    socket: UnixStream,
    is_blocking: bool,
    decoder: Decoder,
    out: Vec<u8>,
}

impl HostLink {
    pub(super) fn new(socket: UnixStream) -> HostLink {
        HostLink { socket, is_blocking: true, decoder: Decoder::default(), out: Vec::new() }
    }

    /// Reads what the host has sent. Waits for it no longer than `wait`, and without an end if that is `None`. Returns
    /// how many bytes came, or `None` when nothing can come any more.
    pub(super) fn receive(&mut self, wait: Option<Duration>) -> Option<u64> {
        // A read timeout of zero would mean none at all.
        if self.is_blocking != wait.is_none_or(|wait| !wait.is_zero()) {
            self.is_blocking = !self.is_blocking;
            let _ = self.socket.set_nonblocking(!self.is_blocking);
        }
        if self.is_blocking {
            let _ = self.socket.set_read_timeout(wait);
        }
        match self.socket.read(self.decoder.room(READ_BYTES)) {
            Ok(0) => None,
            Ok(length) => {
                self.decoder.arrived(length);
                Some(length as u64)
            }
            Err(error) => {
                use ErrorKind::{Interrupted, TimedOut, WouldBlock};
                matches!(error.kind(), Interrupted | WouldBlock | TimedOut).then_some(0)
            }
        }
    }

    pub(super) fn next_frame(&mut self) -> Option<Result<Frame<'_>, WireError>> {
        self.decoder.next_frame()
    }

    /// Queues a line. Drops a sentence if too much waits, but no other line.
    pub(super) fn send(&mut self, status: &RecorderStatus) {
        if !matches!(status, RecorderStatus::Say(_)) || self.out.len() < OUT_BYTES_MAX {
            status.encode(&mut self.out);
        }
    }

    /// Returns true if lines wait for the host.
    pub(super) fn has_more(&self) -> bool {
        !self.out.is_empty()
    }

    /// Writes as many of the queued lines as the host takes without delay.
    pub(super) fn flush(&mut self) {
        if self.out.is_empty() {
            return;
        }
        // Once the socket's buffer is full, the rest goes another time.
        let _ = self.socket.set_write_timeout(Some(Duration::from_millis(1)));
        while !self.out.is_empty() {
            let Ok(length @ 1..) = self.socket.write(&self.out) else { return };
            self.out.drain(..length);
        }
    }

    /// Sends all queued lines, and says that they are the last.
    pub(super) fn leave(mut self) {
        self.send(&RecorderStatus::Leave);
        let _ = self.socket.set_nonblocking(false);
        let _ = self.socket.set_write_timeout(Some(LEAVE_WAIT));
        let _ = self.socket.write_all(&self.out);
    }
}
