//! The times by which peers have to ask, and to take their last bytes.

use std::time::Instant;

use super::Peers;
use crate::core::engine::Engine;
use crate::front::language::Language;
use crate::host::notices::{ENDING, TOO_SLOW};
use crate::host::peer::Peer;
use crate::host::turn::{PeerId, Turn};
use crate::limits;
use crate::sys::socket;

impl Peers {
    /// A peer has asked for something, so the deadlines for its request are over.
    pub(in crate::host) fn end_greeting(&mut self, id: PeerId) {
        let Some(peer) = self.all.get(&id) else { return };
        let first = [limits::HELLO_TIMEOUT, limits::REQUEST_TIMEOUT, limits::UNREAD_REQUEST_TIMEOUT];
        let next = [limits::NEXT_REQUEST_TIMEOUT, limits::ONE_SHOT_TIMEOUT];
        for timeout in first.into_iter().chain(next) {
            self.greeting.remove(&(peer.since + timeout, id));
        }
    }

    /// The host ends: lets go of every peer that has not asked for anything, so that it does not have to ask.
    pub(in crate::host) fn dismiss(&mut self, turn: &mut Turn, engine: &mut Engine) {
        let has_answer: Vec<PeerId> =
            self.all.iter().filter(|(_, peer)| peer.may_be_closed()).map(|(&id, _)| id).collect();
        has_answer.into_iter().for_each(|id| self.lose(id, turn, engine));
        let is_idle = |peer: &Peer| peer.language.has_said_hello() && !peer.language.has_asked() && !peer.is_leaving;
        let idle: Vec<PeerId> = self.all.iter().filter(|(_, peer)| is_idle(peer)).map(|(&id, _)| id).collect();
        idle.into_iter().for_each(|id| self.fail(id, &ENDING, turn, engine));
    }

    /// Lets a peer that has taken its answer ask again. It may have done so already. Returns `false` when it cannot.
    pub(super) fn go_on(&mut self, id: PeerId, turn: &mut Turn) -> bool {
        self.end_greeting(id);
        let Some(peer) = self.all.get_mut(&id) else { return false };
        if !peer.go_on(turn.now) {
            return false;
        }
        turn.queue(peer.port.token());
        self.leaving.remove(&id);
        let keeps_connection = matches!(&peer.language, Language::Jsonl(jsonl) if jsonl.has_pinged());
        let timeout = if keeps_connection { limits::NEXT_REQUEST_TIMEOUT } else { limits::ONE_SHOT_TIMEOUT };
        self.greeting.insert((turn.now + timeout, id));
        true
    }

    /// Lets go of the peers that took too long for their hello, their request or their last bytes, and sends the
    /// redrawn lines that have stood still.
    pub(in crate::host) fn tick(&mut self, turn: &mut Turn, engine: &mut Engine) {
        while let Some(&(at, id)) = self.greeting.first().filter(|(at, _)| *at <= turn.now) {
            self.greeting.remove(&(at, id));
            let Some(peer) = self.all.get(&id) else { continue };
            let request_by = peer.since + limits::REQUEST_TIMEOUT;
            let read_by = peer.since + limits::UNREAD_REQUEST_TIMEOUT;
            if peer.may_be_closed() {
                self.lose(id, turn, engine);
            } else if peer.language.has_said_hello() && turn.now < request_by {
                self.greeting.insert((request_by, id));
            } else if turn.now < read_by && (peer.is_behind || socket::has_unread(peer.port.fd())) {
                self.greeting.insert((read_by, id));
            } else {
                self.fail(id, &TOO_SLOW, turn, engine);
            }
        }
        let is_due =
            |id: &PeerId| self.all.get(id).and_then(|peer| peer.language.deadline()).is_some_and(|at| at <= turn.now);
        for id in self.settling.iter().copied().filter(is_due).collect::<Vec<_>>() {
            if let Some(peer) = self.all.get_mut(&id) {
                peer.language.tick(turn.now, peer.out.buffer());
                self.roomy.insert(id);
            }
        }
        let is_late = |peer: &Peer| peer.leaves_by().is_some_and(|at| at <= turn.now);
        let late = |id: &PeerId| self.all.get(id).is_none_or(is_late);
        for id in self.leaving.iter().copied().filter(late).collect::<Vec<_>>() {
            self.leaving.remove(&id);
            self.lose(id, turn, engine);
        }
    }

    /// When [`Peers::tick`] has something to do.
    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        let leaving = self.leaving.iter().filter_map(|id| self.all.get(id)?.leaves_by());
        let settling = self.settling.iter().filter_map(|id| self.all.get(id)?.language.deadline());
        self.greeting.first().map(|&(at, _)| at).into_iter().chain(leaving).chain(settling).min()
    }
}
