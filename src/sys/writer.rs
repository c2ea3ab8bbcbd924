//! A process that writes to a descriptor in the host's place, where a write may wait.
//!
//! The terminal of another user (`sudo -u`, `su`) cannot be opened a second time, so nothing promises the host that a
//! write to it returns: room that poll(2) reports is no such promise for a terminal. The host writes to a socket
//! instead, and the writer waits for the terminal.
//!
//! Invariants: what the host has handed over is written in its order; the writer ends when it has written everything
//! after the host closed the socket, when the descriptor fails, or when [`Writer::end`] has waited long enough.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{Shutdown, shutdown};

use super::kill::Pidfd;
use super::{process, socket};
use rexec_sh::protocol::process::{Pid, Signal};

/// The host's side of it.
#[derive(Debug)]
pub struct Writer {
    socket: OwnedFd,
    /// What is written to, for questions about it.
    target: OwnedFd,
    pid: Pid,
    process: Option<Pidfd>,
}

impl Writer {
    /// Starts a writer for this descriptor.
    ///
    /// # Errors
    /// As socketpair(2) and fork(2).
    pub fn start(target: OwnedFd) -> io::Result<Self> {
        let (socket, far) = socket::pair()?;
        let keep = [far.as_raw_fd(), target.as_raw_fd()];
        let pid = process::fork_helper(c"rexec-console", &keep, || serve(&far, &target))?;
        Ok(Self { socket, target, pid, process: Pidfd::open(pid) })
    }

    /// Hands bytes over, without waiting.
    ///
    /// # Errors
    /// `WouldBlock`, or EPIPE once the descriptor has failed.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        socket::send(&self.socket, bytes, &[])
    }

    /// What it writes to.
    #[must_use]
    pub fn target(&self) -> &OwnedFd {
        &self.target
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets it write what it has, for so long at most; then it is killed.
    pub fn end(self, most: Duration) {
        let _ = shutdown(self.socket.as_raw_fd(), Shutdown::Write);
        let end = Instant::now() + most;
        loop {
            let left = u16::try_from(end.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(u16::MAX);
            let mut watched = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut watched, PollTimeout::from(left)) {
                Err(nix::errno::Errno::EINTR) => {}
                // It never says anything, so this is its end.
                Ok(1..) => return,
                _ => break,
            }
        }
        if let Some(process) = &self.process {
            process.send(Signal::KILL);
        }
    }
}

impl AsRawFd for Writer {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// The writer's work.
fn serve(from: &OwnedFd, to: &OwnedFd) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = super::read(from, &mut buffer) {
        let mut rest = &buffer[..length];
        while !rest.is_empty() {
            match super::write(to, rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if super::is_transient(&error) => {
                    // Whoever shares the descriptor has set it not to block.
                    let _ = poll(&mut [PollFd::new(to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                Err(_) => return,
            }
        }
    }
}
