//! One of the caller's two output descriptors: written to without ever waiting, as far as its kind allows.
//!
//! Invariants: no flag of the inherited descriptor changes, because it belongs to the caller too: a pipe or a terminal
//! is opened a second time to be written to without waiting; once closed, always closed, and nothing more is written.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::CallerStream;

use crate::collect::StandardStreams;
use crate::sys::{self, FileKind};

/// A pipe that polls as writable takes this much without waiting.
const PIPE_ROOM_BYTES: usize = 4096;
/// A terminal that polls as writable mostly takes this much.
const TERMINAL_ROOM_BYTES: usize = 512;

/// What became of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// So many bytes were taken.
    Bytes(usize),
    /// Nothing is taken before the descriptor polls as writable.
    Blocked,
    /// These bytes are not taken: there is no room on the disk, or nobody reads any more.
    Failed(Errno),
}

#[derive(Debug)]
pub(crate) struct OutputDescriptor {
    pub(crate) stream: CallerStream,
    fd: RawFd,
    kind: FileKind,
    is_terminal: bool,
    is_closed: bool,
    /// What was not taken for another reason than that nobody reads, bytes.
    lost: usize,
    /// The second, non-blocking opening; nothing in it once that has failed.
    reopened: Option<Option<OwnedFd>>,
}

impl OutputDescriptor {
    pub(crate) fn new(stream: CallerStream, standard: &StandardStreams) -> Self {
        let fd = match stream {
            CallerStream::Out => libc::STDOUT_FILENO,
            CallerStream::Err => libc::STDERR_FILENO,
        };
        let found = standard.output(stream);
        let (kind, is_terminal) = found.unwrap_or((FileKind::Other, false));
        Self { stream, fd, kind, is_terminal, is_closed: found.is_none(), lost: 0, reopened: None }
    }

    /// Writes what can be written without waiting; to a regular file, everything.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Written {
        let result = match self.kind {
            FileKind::Socket => sys::send(self.fd, bytes),
            FileKind::Pipe => self.write_without_waiting(bytes, PIPE_ROOM_BYTES),
            FileKind::Character if self.is_terminal => self.write_without_waiting(bytes, TERMINAL_ROOM_BYTES),
            FileKind::Regular | FileKind::Character | FileKind::Other => sys::write(self.fd, bytes),
        };
        match result {
            Ok(written) => Written::Bytes(written),
            Err(Errno::EINTR) => Written::Bytes(0),
            Err(Errno::EAGAIN) => Written::Blocked,
            Err(error) => Written::Failed(error),
        }
    }

    fn write_without_waiting(&mut self, bytes: &[u8], room: usize) -> sys::Result<usize> {
        if self.reopened.is_none() {
            // A terminal may make a write wait although it polled as writable.
            if !self.is_terminal && bytes.len() <= room && sys::has_room(self.fd) {
                return sys::write(self.fd, bytes);
            }
            self.reopened = Some(self.reopen());
        }
        match &self.reopened {
            Some(Some(reopened)) => sys::write(reopened.as_raw_fd(), bytes),
            // It belongs to another user, or there is no /proc.
            _ if sys::has_room(self.fd) => sys::write(self.fd, &bytes[..bytes.len().min(room)]),
            _ => Err(Errno::EAGAIN),
        }
    }

    fn reopen(&self) -> Option<OwnedFd> {
        let path = match self.stream {
            CallerStream::Out => c"/proc/self/fd/1",
            CallerStream::Err => c"/proc/self/fd/2",
        };
        sys::open(path, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY).ok()
    }

    /// Whether this error of a write says that nobody reads any more. A full disk is no such thing: the next bytes may
    /// find room.
    pub(crate) fn is_without_reader(&self, error: Errno) -> bool {
        matches!(error, Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN)
            || (self.kind == FileKind::Character && error == Errno::EIO)
    }

    /// Counts bytes that were not taken; how many there are now.
    pub(crate) fn lose(&mut self, bytes: usize) -> usize {
        self.lost = self.lost.saturating_add(bytes);
        self.lost
    }

    /// Whether something was not taken although somebody may read.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Nobody takes this output any more.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether somebody reads it who could go away, and has not.
    pub(crate) fn has_reader(&self) -> bool {
        !self.is_closed && matches!(self.kind, FileKind::Pipe | FileKind::Socket)
    }

    /// The poll(2) entry: waits for room while a write is pending, else only for the reader to leave.
    pub(crate) fn watch(&self, wants_room: bool) -> libc::pollfd {
        let watched = self.has_reader() || (self.is_terminal && !self.is_closed);
        match (wants_room, watched) {
            (true, _) => sys::watch(self.fd, libc::POLLOUT),
            (false, true) => sys::watch(self.fd, 0),
            (false, false) => sys::watch(-1, 0),
        }
    }
}
