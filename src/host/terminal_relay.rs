//! Runs whose terminal stands for their caller's: keys, size and stops on their way between the two.
//!
//! The caller's shim has its terminal in raw mode and hands everything on; the line discipline of the run's terminal,
//! which has the modes and the size of the caller's, makes of it what the caller's would have made. Invariants: no more
//! keys are kept than a shim may send unanswered; the caller's terminal is put back when its shim was killed.

use std::os::fd::OwnedFd;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::{self, KEYS_BYTES_MAX, Stdio, TerminalModes};

use super::{Host, PeerId};
use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::core::job::Order;
use crate::core::process::Signal;
use crate::front::TerminalEvent;
use crate::io::outlet::Outlet;
use crate::sys::relayed::{Relayed, modes_of};
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
    /// Keys come only while the command asks for them, and are counted as taken once it has read them.
    is_on_demand: bool,
    keys: Outlet,
    /// Written to the terminal on demand, and not known to be read, bytes.
    unread: usize,
    /// The modes of the run's terminal that the shim knows, and those of the moment when its last user was gone.
    known_modes: Option<TerminalModes>,
    last_modes: Option<TerminalModes>,
    /// What the caller is told behind the output before it.
    told: Vec<Told>,
}

/// What a caller is told in its place in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    /// The shell was stopped by this signal.
    Stopped(Signal),
    /// It does not ask for keys any more.
    Return,
}

impl TerminalRelay {
    /// For a command that came with these descriptors, behind its directory.
    pub(super) fn new<'a>(
        descriptors: &[OwnedFd],
        stdio: Stdio,
        others: impl Iterator<Item = &'a TerminalRelay>,
    ) -> Self {
        let at = usize::from(stdio.stdin && stdio.brings_terminal());
        let mut terminal = descriptors.get(at).and_then(|fd| Relayed::new(fd.try_clone().ok()?));
        if let Some(terminal) = &mut terminal {
            terminal.borrow_from(others.filter_map(|other| other.terminal.as_ref()));
        }
        Self {
            terminal,
            is_background: stdio.background,
            is_on_demand: stdio.on_demand,
            keys: Outlet::default(),
            unread: 0,
            known_modes: None,
            last_modes: None,
            told: Vec::new(),
        }
    }

    /// Gives the run's terminal the modes of the caller's. In the background those are another program's: there the
    /// run's are the usual ones, also for the caller's at the end.
    pub(super) fn lend_modes(&mut self, master: &OwnedFd) {
        if let Some(terminal) = &mut self.terminal {
            if self.is_background {
                terminal.borrow_modes(master);
            }
            terminal.lend_modes(master);
            self.known_modes = modes_of(master);
        }
    }

    /// What the caller is told now, when it has all output before it.
    pub(super) fn tell(&mut self, out: &mut Vec<u8>) {
        for told in self.told.drain(..) {
            match told {
                Told::Stopped(signal) => wire::encode_stopped(signal.number(), out),
                Told::Return => wire::encode_return(out),
            }
        }
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
                if let Some(port) = tty {
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
        let taken = before - relay.keys.pending();
        if relay.is_on_demand && written && taken > 0 {
            relay.unread += taken;
            self.order(job, Order::Typed);
        } else {
            self.tell_taken(job, taken);
        }
    }

    fn tell_taken(&mut self, job: JobId, bytes: usize) {
        let bytes = u32::try_from(bytes).expect("at most KEYS_BYTES_MAX");
        if bytes > 0
            && let Some(id) = self.peer_of(job)
            && let Some(peer) = self.peers.get_mut(&id)
        {
            wire::encode_taken(bytes, peer.out.buffer());
            self.roomy.insert(id);
        }
    }

    /// A command has read everything that was typed at its terminal on demand.
    pub(super) fn on_keys_read(&mut self, job: JobId) {
        let Some(relay) = self.runs.get_mut(&job).and_then(|run| run.relay.as_mut()) else { return };
        let read = std::mem::take(&mut relay.unread);
        self.tell_taken(job, read);
    }

    /// A command does not ask for keys any more.
    pub(super) fn on_terminal_returned(&mut self, job: JobId) {
        self.leave_modes(job);
        let Some(run) = self.runs.get_mut(&job) else { return };
        if let Some(relay) = &mut run.relay {
            relay.unread = 0;
            relay.told.push(Told::Return);
            self.roomy.extend(run.peer);
        }
    }

    /// What a command has made of its terminal's modes outlasts it, as on its caller's own.
    pub(super) fn leave_modes(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let Some(relay) = &mut run.relay else { return };
        let port = run.streams[Stream::Tty as usize].as_ref();
        let left = port.and_then(|port| modes_of(port.fd())).or(relay.last_modes);
        if let Some(modes) = left.filter(|_| left != relay.known_modes)
            && let Some(id) = run.peer
            && let Some(peer) = self.peers.get_mut(&id)
        {
            relay.known_modes = left;
            wire::encode_modes(modes, peer.out.buffer());
            self.roomy.insert(id);
        }
    }

    /// The last user of a run's terminal is gone: its modes are as that has left them.
    pub(super) fn note_last_modes(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if let (Some(relay), Some(port)) = (&mut run.relay, &run.streams[Stream::Tty as usize]) {
            relay.last_modes = modes_of(port.fd());
        }
    }

    /// The shell of a run on a relayed terminal was stopped.
    pub(super) fn on_shell_stopped(&mut self, job: JobId, signal: Signal) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if let Some(relay) = &mut run.relay {
            relay.told.push(Told::Stopped(signal));
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
