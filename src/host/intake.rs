//! The loop's first phase: every source that has something is visited once.
//!
//! Invariants: a visit never waits; a source that may have more is visited again in the next turn, so that none keeps
//! the others from theirs.

use super::door::Arrival;
use super::{Host, Source, opening};
use crate::io::poller::Token;
use crate::limits;
use crate::sys::signal::Asked;

impl Host {
    /// Every source that has something is visited once.
    pub(super) fn intake(&mut self) {
        for token in std::mem::take(&mut self.ready) {
            let Some(&source) = self.sources.get(&token) else { continue };
            match source {
                Source::Door => self.visit_door(token),
                Source::Watch => {
                    if self.door.has_changed() {
                        self.check_socket();
                    }
                }
                Source::Signals => self.visit_signals(),
                Source::Screen => {}
                Source::Keys => {
                    if !self.screen.discard_keys(&mut self.poller) {
                        self.sources.remove(&token);
                        self.on_console_gone();
                    }
                }
                Source::Recorder => self.visit_recorder(),
                Source::Peer(id) => self.visit_peer(id),
                Source::Control(job) => self.visit_control(job),
                Source::Stream(job, stream) => self.visit_stream(job, stream),
            }
        }
    }

    fn visit_door(&mut self, token: Token) {
        for _ in 0..limits::ACCEPTS_PER_TURN {
            if self.peers.len() >= self.peers_max {
                // Who leaves makes room; the timer is for callers that hold descriptors without leaving.
                self.door.retry_at = Some(self.now + limits::ACCEPT_RETRY);
                return;
            }
            match self.door.accept(self.now) {
                Arrival::Peer(fd) => {
                    if let Some(peer) = self.admit(fd) {
                        self.visit_peer(peer);
                    }
                }
                Arrival::TurnedAway => {}
                Arrival::Nobody => return,
            }
        }
        self.ready.insert(token);
    }

    pub(super) fn check_socket(&mut self) {
        if self.is_closing() {
            return;
        }
        let before = [Some(self.door.token), self.door.watch_token];
        let has_failed = self.door.restore_at.take().is_some();
        let line = match self.door.restore(&mut self.poller) {
            Ok(false) => return,
            Ok(true) => format!("… the socket was removed and is there again: {}", self.door.path().display()),
            Err(failure) => {
                self.door.restore_at = Some(self.now + limits::SOCKET_RETRY);
                failure.to_string().trim_end().to_owned()
            }
        };
        let is_told = has_failed && self.door.restore_at.is_some();
        for token in before.into_iter().flatten() {
            self.sources.remove(&token);
        }
        self.sources.insert(self.door.token, Source::Door);
        self.ready.insert(self.door.token);
        self.sources.extend(self.door.watch_token.map(|token| (token, Source::Watch)));
        if !is_told {
            self.console.say(&line, self.screen.out.buffer());
        }
    }

    fn visit_signals(&mut self) {
        while let Some(asked) = self.signals.take_next() {
            match asked {
                Asked::End => self.ask_to_end(),
                Asked::HangUp => self.on_console_gone(),
                Asked::CheckSocket => self.check_socket(),
                Asked::Resize => self.measure_console(),
            }
        }
    }

    /// Looks how large the console is; so large are, at least, the terminals of the commands that start from now on.
    pub(super) fn measure_console(&mut self) {
        let size = self.screen.size();
        self.console.resize(size.map_or(0, |size| size.cols));
        self.size = opening::terminal_size(self.options.pty_size, size);
        self.spares.resize(self.size);
    }
}
