//! Runs on a relayed terminal: what happens at the caller's terminal happens at the run's, and the modes that a command
//! leaves there outlast it.
//!
//! Invariant: no more keys are kept than a shim may send unanswered.

use rexec_sh::protocol::wire::KEYS_BYTES_MAX;

use super::Runs;
use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::core::job::Order;
use crate::front::TerminalEvent;
use crate::guard::saved_terminal::modes_of;
use crate::host::context::Context;
use crate::host::notices::TOO_MANY_KEYS;
use crate::host::peers::Peers;
use crate::host::terminal_relay::RelayEvent;
use crate::host::turn::Turn;
use crate::sys::{self, pty};

impl Runs {
    /// Something happened at the terminal of a run's caller.
    pub(in crate::host) fn at_terminal(&mut self, job: JobId, event: TerminalEvent, cx: &mut Context<'_>) {
        match event {
            TerminalEvent::Keys(keys) => self.on_keys(job, &keys, cx),
            TerminalEvent::Size(rows, cols) => {
                if let Some(port) = self.get_mut(job).and_then(|run| run.stream(Stream::Tty)) {
                    let _ = pty::resize(port.fd(), pty::Size { rows, cols });
                    cx.engine.on_resize(job, rows, cols, cx.turn.now);
                }
            }
            TerminalEvent::Resume { foreground } => {
                if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
                    relay.resuming += 1;
                    relay.is_returned &= !foreground;
                }
                let continues = self.on_caller_continued(job);
                self.order(job, Order::Resume { foreground, continues }, cx.turn.now);
            }
            TerminalEvent::Hangup => {
                // The kernel does with the run's terminal what it has done with the caller's.
                self.close_stream(job, Stream::Tty, cx.turn);
                cx.engine.on_hangup(job, Stream::Tty);
            }
        }
    }

    fn on_keys(&mut self, job: JobId, typed: &[u8], cx: &mut Context<'_>) {
        let Some(run) = self.get_mut(job) else { return };
        let (peer, Some(relay)) = (run.peer, &mut run.relay) else { return };
        if relay.keys.pending() + typed.len() > KEYS_BYTES_MAX {
            let Some(peer) = peer else { return };
            return cx.peers.fail(peer, &TOO_MANY_KEYS, cx.turn, cx.engine);
        }
        relay.keys.buffer().extend_from_slice(typed);
        self.flush_keys(job, cx.turn, cx.peers);
    }

    /// Writes as many keys to the run's terminal as it takes. Tells the shim their number at once, or, on demand, when
    /// the command has read them.
    pub(in crate::host) fn flush_keys(&mut self, job: JobId, turn: &Turn, peers: &mut Peers) {
        let Some(run) = self.get_mut(job).filter(|run| run.has_keys()) else { return };
        let Some(relay) = run.relay.as_mut().filter(|relay| relay.takes_keys()) else { return };
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
            self.order(job, Order::Typed, turn.now);
        } else {
            self.tell_taken(job, taken, peers);
        }
    }

    /// The command has begun in the foreground, or the guard has obeyed a resumption.
    pub(super) fn on_in_foreground(&mut self, job: JobId, turn: &Turn, peers: &mut Peers) {
        if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.resuming = relay.resuming.saturating_sub(1);
        }
        self.flush_keys(job, turn, peers);
    }

    fn tell_taken(&self, job: JobId, bytes: usize, peers: &mut Peers) {
        let bytes = u32::try_from(bytes).expect("at most KEYS_BYTES_MAX");
        if let Some(peer) = self.peer_of(job).filter(|_| bytes > 0) {
            peers.on_keys_taken(peer, bytes);
        }
    }

    /// The command has read everything that was typed at its terminal on demand.
    pub(super) fn on_keys_read(&mut self, job: JobId, peers: &mut Peers) {
        let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) else { return };
        let read = std::mem::take(&mut relay.unread);
        self.tell_taken(job, read, peers);
    }

    /// The command does not ask for keys any more.
    pub(super) fn on_terminal_returned(&mut self, job: JobId, peers: &mut Peers) {
        self.leave_modes(job, peers);
        if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.unread = 0;
            relay.is_returned = true;
        }
        self.tell_in_place(job, RelayEvent::TerminalReturned, peers);
    }

    /// Tells the peer of a run on a relayed terminal something, in its place in the output.
    pub(super) fn tell_in_place(&self, job: JobId, event: RelayEvent, peers: &mut Peers) {
        let peer = self.get(job).filter(|run| run.relay.is_some()).and_then(|run| run.peer);
        peer.into_iter().for_each(|peer| peers.tell_in_place(peer, event));
    }

    /// Gives the caller's terminal the modes that the command has left, as if it had been the command's own.
    pub(super) fn leave_modes(&mut self, job: JobId, peers: &mut Peers) {
        let Some(run) = self.get_mut(job) else { return };
        let (Some(relay), Some(peer)) = (&mut run.relay, run.peer) else { return };
        let port = run.streams[Stream::Tty as usize].as_ref();
        let left = port.and_then(|port| modes_of(port.fd())).or(relay.last_modes);
        if let Some(modes) = left.filter(|_| left != relay.known_modes)
            && peers.give_modes(peer, modes)
        {
            relay.known_modes = left;
        }
    }

    /// The last user of a run's terminal is gone: remembers the modes that it has left.
    pub(super) fn note_last_modes(&mut self, job: JobId) {
        let Some(run) = self.get_mut(job) else { return };
        if let (Some(relay), Some(port)) = (&mut run.relay, &run.streams[Stream::Tty as usize]) {
            relay.last_modes = modes_of(port.fd());
        }
    }
}
