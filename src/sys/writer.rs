//! A helper process that writes to a descriptor for the host, because a write may block.
//!
//! The terminal of another user (`sudo -u`, `su`) cannot be opened a second time, and a blocking write to a terminal
//! may wait even if poll(2) reports room. A write to a file waits while its disk or its server stands still. The host
//! writes to a socket instead, and the helper waits.
//!
//! Invariants: bytes are written in the order in which the host sends them. The helper ends when the host has closed
//! the socket and everything is written, when the descriptor fails, or when [`Writer::end`] has waited long enough. A
//! full disk is no failure: it may have room again later.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};

use super::kill::Pidfd;
use super::{helper, socket};
use crate::limits;
use rexec_sh::protocol::process::{Pid, Signal};

/// The host's side of the helper.
#[derive(Debug)]
pub struct Writer {
    socket: OwnedFd,
    /// The terminal or pipe that the helper writes. Only the helper has a file: any other holder would wait for its
    /// server when closing it.
    target: Option<OwnedFd>,
    pid: Pid,
    process: Option<Pidfd>,
}

impl Writer {
    /// Starts a helper for a descriptor.
    ///
    /// # Errors
    /// As socketpair(2) and fork(2).
    pub fn start(target: OwnedFd) -> io::Result<Self> {
        let (socket, far) = socket::pair()?;
        let keep = [far.as_raw_fd(), target.as_raw_fd()];
        let pid = helper::fork(c"rexec-console", &keep, || serve(&far, &target))?;
        Ok(Self { socket, target: Some(target), pid, process: Pidfd::open(pid) })
    }

    /// Starts a helper for a standard descriptor that is a file. Then this process has `/dev/null` in place of that
    /// file or, with `keeps_way`, the socket to the helper.
    ///
    /// # Errors
    /// As [`Writer::start`] and dup2(2).
    pub fn take_place_of(number: RawFd, file: OwnedFd, keeps_way: bool) -> io::Result<Self> {
        let writer = Self { target: None, ..Self::start(file)? };
        match keeps_way {
            true => super::put_at(&writer.socket, number)?,
            false => super::put_at(&super::file::null()?, number)?,
        }
        Ok(writer)
    }

    /// Sends bytes to the helper, without waiting. Returns the number of bytes sent.
    ///
    /// # Errors
    /// `WouldBlock`, or EPIPE once the descriptor has failed.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        socket::send(&self.socket, bytes, &[])
    }

    /// The descriptor that the helper writes to, unless it is a file.
    #[must_use]
    pub fn target(&self) -> Option<&OwnedFd> {
        self.target.as_ref()
    }

    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Waits until the helper has written everything, for at most `most`, then kills it.
    pub fn end(self, most: Duration) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        let end = Instant::now() + most;
        loop {
            let left = u16::try_from(end.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(u16::MAX);
            let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, PollTimeout::from(left)) {
                Err(nix::errno::Errno::EINTR) => {}
                // The helper never sends anything, so this is its end.
                Ok(1..) => return,
                _ => break,
            }
        }
        if let Some(process) = &self.process {
            process.send(Signal::KILL);
        }
    }
}

impl AsFd for Writer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Writer {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

#[expect(clippy::disallowed_methods, reason = "the helper is there to wait")]
fn serve(from: &OwnedFd, to: &OwnedFd) {
    let mut buffer = [0; 32 << 10];
    while let Ok(length @ 1..) = super::read(from, &mut buffer) {
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            match super::write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if super::is_transient(&error) => {
                    // Another process that shares the descriptor has set O_NONBLOCK.
                    let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                Err(error) if super::is_disk_full(&error) => std::thread::sleep(limits::CONSOLE_DISK_RETRY),
                Err(_) => return,
            }
        }
    }
}
