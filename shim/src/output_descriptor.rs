//! One of the caller's two output descriptors. Writes do not wait, if the kind of file allows that.
//!
//! Invariants: no flag of the inherited descriptor changes, because the caller shares it; pipes and terminals are
//! opened a second time for non-blocking writes; a closed output stays closed and gets no more bytes.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::CallerStream;

use crate::collect::StandardStreams;
use crate::sys::{self, FileKind};

/// Bytes that a pipe takes without waiting if it polls as writable.
const PIPE_ROOM_BYTES: usize = 4096;
/// Bytes that a terminal usually takes without waiting if it polls as writable.
const TERMINAL_ROOM_BYTES: usize = 512;

/// The result of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// This many bytes were written.
    Bytes(usize),
    /// No bytes are taken until the descriptor polls as writable.
    Blocked,
    /// The bytes cannot be written: the disk is full, or the reader is gone.
    Failed(Errno),
}

#[derive(Debug)]
pub(crate) struct OutputDescriptor {
    pub(crate) stream: CallerStream,
    fd: RawFd,
    kind: FileKind,
    is_terminal: bool,
    is_closed: bool,
    /// It was let go of; its reader may still be there.
    has_ended: bool,
    /// Bytes that could not be written although the reader was there.
    lost: usize,
    /// The second, non-blocking opening. `Some(None)` if it failed.
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
        Self { stream, fd, kind, is_terminal, is_closed: found.is_none(), has_ended: false, lost: 0, reopened: None }
    }

    /// Writes as much as possible without waiting. A regular file takes everything.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Written {
        let result = match self.kind {
            FileKind::Socket => match sys::send(self.fd, bytes) {
                // A sandbox may deny send(2) and allow write(2).
                Err(Errno::EPERM | Errno::EACCES) if sys::has_room(self.fd) => {
                    sys::write(self.fd, &bytes[..bytes.len().min(PIPE_ROOM_BYTES)])
                }
                sent => sent,
            },
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
            // A write to a terminal can wait although the terminal polled as writable.
            if !self.is_terminal && bytes.len() <= room && sys::has_room(self.fd) {
                return sys::write(self.fd, bytes);
            }
            self.reopened = Some(self.reopen());
        }
        match &self.reopened {
            Some(Some(reopened)) => sys::write(reopened.as_raw_fd(), bytes),
            // The file belongs to another user, or there is no /proc.
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

    /// Returns true if this error of a write means that the reader is gone. A full disk does not: the next bytes may
    /// find space.
    pub(crate) fn is_without_reader(&self, error: Errno) -> bool {
        matches!(error, Errno::EPIPE | Errno::ECONNRESET | Errno::ENOTCONN)
            || (self.kind == FileKind::Character && error == Errno::EIO)
    }

    /// Counts lost bytes. Returns their total.
    pub(crate) fn lose(&mut self, bytes: usize) -> usize {
        self.lost = self.lost.saturating_add(bytes);
        self.lost
    }

    /// Returns true if bytes were lost although the reader was there.
    pub(crate) fn has_lost(&self) -> bool {
        self.lost > 0
    }

    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Lets go of the output. It gets no more bytes.
    pub(crate) fn end(&mut self) {
        if !self.is_closed {
            (self.is_closed, self.has_ended, self.reopened) = (true, true, None);
            sys::let_go(self.fd);
        }
    }

    /// Returns true if its reader has left.
    pub(crate) fn has_lost_reader(&self) -> bool {
        self.is_closed && !self.has_ended
    }

    /// Returns true if the reader has taken everything. A file or a terminal always has.
    pub(crate) fn is_taken(&self) -> bool {
        match self.kind {
            FileKind::Pipe => sys::queued(self.fd) == 0,
            FileKind::Socket => sys::untaken(self.fd) == 0,
            FileKind::Regular | FileKind::Character | FileKind::Other => true,
        }
    }

    /// Returns true if it has, or had, a reader that could close its end.
    pub(crate) fn is_piped(&self) -> bool {
        matches!(self.kind, FileKind::Pipe | FileKind::Socket)
    }

    /// The poll(2) entry. It waits for space while a write is pending, and always for the reader to leave.
    pub(crate) fn watch(&self, wants_room: bool) -> libc::pollfd {
        let watched = !self.is_closed && (self.is_piped() || self.is_terminal);
        match (wants_room, watched) {
            (true, _) => sys::watch(self.fd, libc::POLLOUT),
            (false, true) => sys::watch(self.fd, 0),
            (false, false) => sys::watch(-1, 0),
        }
    }
}
