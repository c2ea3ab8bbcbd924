//! A helper process that restores the terminal when its owner is killed while a program has the whole screen: the host,
//! or `rexec attach`.
//!
//! Invariants: it writes nothing while its owner lives, and nothing once that has let it go; a blocked terminal delays
//! it for a bounded time only.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::terminal::{Output, restore_raw};
use super::{helper, socket};
use crate::limits;
use rexec_sh::protocol::process::Pid;

/// The owner's side of the helper.
#[derive(Debug)]
pub struct TerminalKeeper {
    socket: OwnedFd,
    pid: Pid,
}

impl TerminalKeeper {
    /// Starts a helper that writes `undo` to this terminal when this process is gone. `None` for an output that only
    /// another helper can write.
    ///
    /// # Errors
    /// As socketpair(2), dup(2) and fork(2).
    pub fn start(output: &Output, undo: &[u8]) -> io::Result<Option<Self>> {
        let Output::Pollable(terminal) = output else { return Ok(None) };
        let terminal = terminal.try_clone()?;
        let (socket, far) = socket::pair()?;
        let keep = [far.as_raw_fd(), terminal.as_raw_fd()];
        let pid = helper::fork(c"rexec-keeper", &keep, || serve(&far, &terminal, undo))?;
        Ok(Some(Self { socket, pid }))
    }

    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Ends the helper: its owner has given the terminal back.
    pub fn end(self) {
        // If this fails, the helper is gone.
        let _ = socket::send(&self.socket, b"x", &[]);
    }
}

fn serve(owner: &OwnedFd, terminal: &File, undo: &[u8]) {
    let mut byte = [0];
    while let Err(error) = super::read(owner, &mut byte) {
        if !super::is_transient(&error) {
            break;
        }
        let _ = poll(&mut [PollFd::new(owner.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
    }
    if byte != [0] {
        return;
    }
    let mut rest = undo;
    while !rest.is_empty() {
        match super::write(terminal, rest) {
            Ok(written) => rest = &rest[written..],
            Err(error) if super::is_transient(&error) && has_room(terminal, limits::KEEPER_PATIENCE) => {}
            Err(_) => break,
        }
    }
    restore_raw(terminal);
}

fn has_room(terminal: &File, most: Duration) -> bool {
    let most = u16::try_from(most.as_millis()).unwrap_or(u16::MAX);
    poll(&mut [PollFd::new(terminal.as_fd(), PollFlags::POLLOUT)], PollTimeout::from(most)).is_ok_and(|ready| ready > 0)
}
