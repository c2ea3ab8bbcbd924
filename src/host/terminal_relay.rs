//! Runs whose terminal stands for their caller's: keys, size and stops on their way between the two.
//!
//! The caller's shim has its terminal in raw mode and hands everything on; the line discipline of the run's terminal,
//! which has the modes and the size of the caller's, makes of it what the caller's would have made. Invariants: no more
//! keys are kept than a shim may send unanswered; the caller's terminal is put back when its shim was killed.

use std::os::fd::OwnedFd;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::{self, KEYS_BYTES_MAX};

use super::{Host, PeerId};
use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::core::job::Order;
use crate::core::process::Signal;
use crate::front::TerminalEvent;
use crate::io::outlet::Outlet;
use crate::limits;
use crate::sys::relayed::Relayed;
use crate::sys::{self, pty};

const TOO_MANY_KEYS: Notice = Notice::fixed(
    OWN_FAILURE,
    "more keys than may be on their way",
    "install rexec-sh and rexec-host of the same release",
);

/// The caller's side of a run's terminal.
#[derive(Debug)]
pub(super) struct TerminalRelay {
    /// Until the shim has left.
    terminal: Option<Relayed>,
    is_background: bool,
    keys: Outlet,
    /// The shell was stopped by this signal, which the caller is told behind the output before it.
    stopped: Option<Signal>,
}

impl TerminalRelay {
    /// For a command that came with this descriptor 0, and whose caller is in the background of it or not.
    pub(super) fn new(stdin: Option<&OwnedFd>, is_background: bool) -> Self {
        let terminal = stdin.and_then(|fd| Relayed::new(fd.try_clone().ok()?));
        Self { terminal, is_background, keys: Outlet::default(), stopped: None }
    }

    /// Gives the run's terminal the modes of the caller's. In the background those are another program's: there the
    /// run's are the usual ones, also for the caller's at the end.
    pub(super) fn lend_modes(&mut self, master: &OwnedFd) {
        match &mut self.terminal {
            Some(terminal) if self.is_background => terminal.borrow_modes(master),
            Some(terminal) => terminal.lend_modes(master),
            None => {}
        }
    }

    /// What the caller is told of a stop.
    pub(super) fn take_stop(&mut self) -> Option<Signal> {
        self.stopped.take()
    }

    /// Whether keys wait for room.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }
}

impl Host {
    /// The run begins: its shim may relay its terminal.
    pub(super) fn attach_terminal(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job).filter(|run| run.relay.is_some()) else { return };
        if let Some(peer) = run.peer.and_then(|peer| self.peers.get_mut(&peer)) {
            wire::encode_attach(peer.out.buffer());
        }
        self.roomy.extend(run.peer);
    }

    /// Something happened at the terminal of a run's caller.
    pub(super) fn at_terminal(&mut self, job: JobId, event: TerminalEvent) {
        match event {
            TerminalEvent::Keys(keys) => self.on_keys(job, &keys),
            TerminalEvent::Size(rows, cols) => {
                let tty = self.runs.get(&job).and_then(|run| run.streams[Stream::Tty as usize].as_ref());
                if let Some(port) = tty.filter(|_| rows > 0 && cols > 0) {
                    let (rows, cols) = (rows.min(limits::WINDOW_ROWS_MAX), cols.min(limits::WINDOW_COLS_MAX));
                    let _ = pty::resize(port.fd(), pty::Size { rows, cols });
                }
            }
            TerminalEvent::Resume { foreground } => self.order(job, Order::Resume { foreground }),
            TerminalEvent::Hangup => {
                // The kernel does with the run's terminal what it has done with the caller's.
                self.close_stream(job, Stream::Tty);
                self.engine.on_hangup(job, Stream::Tty);
            }
        }
    }

    fn on_keys(&mut self, job: JobId, keys: &[u8]) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let (peer, Some(relay)) = (run.peer, &mut run.relay) else { return };
        if relay.keys.pending() + keys.len() > KEYS_BYTES_MAX {
            let Some(peer) = peer else { return };
            return self.part(peer, &TOO_MANY_KEYS);
        }
        relay.keys.buffer().extend_from_slice(keys);
        self.flush_keys(job);
    }

    /// Writes keys to the run's terminal as it takes them, and tells the shim how many.
    pub(super) fn flush_keys(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let Some(relay) = run.relay.as_mut().filter(|relay| relay.has_keys()) else { return };
        let before = relay.keys.pending();
        let written = match run.streams[Stream::Tty as usize].as_mut() {
            Some(port) => relay.keys.flush(|bytes| port.write(|fd| sys::write(fd, bytes))).is_ok(),
            None => false,
        };
        if !written {
            // A terminal that is gone takes everything.
            relay.keys.clear();
        }
        let taken = u32::try_from(before - relay.keys.pending()).expect("at most KEYS_BYTES_MAX");
        if let Some(id) = run.peer
            && taken > 0
            && let Some(peer) = self.peers.get_mut(&id)
        {
            wire::encode_taken(taken, peer.out.buffer());
            self.roomy.insert(id);
        }
    }

    /// The shell of a run on a relayed terminal was stopped.
    pub(super) fn on_shell_stopped(&mut self, job: JobId, signal: Signal) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if let Some(relay) = &mut run.relay {
            relay.stopped = Some(signal);
            self.roomy.extend(run.peer);
        }
    }

    /// The shim of a run has left, in good order or not.
    pub(super) fn release_terminal(&mut self, job: JobId, peer: PeerId, is_in_order: bool) {
        let Some(run) = self.runs.get_mut(&job).filter(|run| run.peer == Some(peer)) else { return };
        let terminal = run.relay.as_mut().and_then(|relay| relay.terminal.take());
        if let Some(terminal) = terminal.filter(|_| !is_in_order) {
            terminal.restore();
        }
    }
}
