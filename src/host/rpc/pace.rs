//! The time that requests get, so that clients that ask without end hold nobody up.
//!
//! Invariants: a request is served in every turn that is not part of a pause; a pause is as long as the request before it;
//! clients whose requests are left have their turns in the order in which they came to wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::host::turn::PeerId;
use crate::limits;

#[derive(Debug, Default)]
pub(in crate::host) struct RequestPace {
    /// The time that requests have taken of this turn.
    used: Duration,
    /// When the pause after a long request ends.
    free_from: Option<Instant>,
    /// Clients that have asked more than was served, longest first.
    late: VecDeque<PeerId>,
}

impl RequestPace {
    /// A turn begins. Returns the clients that come first in it.
    pub(in crate::host) fn begin_turn(&mut self, now: Instant) -> Vec<PeerId> {
        self.used = Duration::ZERO;
        if self.is_paused(now) {
            return Vec::new();
        }
        self.free_from = None;
        self.late.drain(..).collect()
    }

    pub(in crate::host) fn has_time(&self) -> bool {
        self.free_from.is_none() && self.used < limits::RPC_TURN
    }

    /// Notes a request that began at `since` and has ended.
    pub(in crate::host) fn note(&mut self, since: Instant) {
        let took = since.elapsed();
        self.used += took;
        if took > limits::RPC_TURN {
            self.free_from = Some(since + took * 2);
        }
    }

    /// The rest of a client's requests waits for its turn.
    pub(in crate::host) fn put_off(&mut self, client: PeerId) {
        if !self.late.contains(&client) {
            self.late.push_back(client);
        }
    }

    pub(in crate::host) fn is_late(&self, client: PeerId) -> bool {
        self.late.contains(&client)
    }

    /// Returns true if clients wait for nothing but the next turn.
    pub(in crate::host) fn has_work(&self, now: Instant) -> bool {
        !self.late.is_empty() && !self.is_paused(now)
    }

    /// When the pause is over for which clients wait.
    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        self.free_from.filter(|_| !self.late.is_empty())
    }

    fn is_paused(&self, now: Instant) -> bool {
        self.free_from.is_some_and(|from| now < from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_have_their_turns_in_order_and_long_requests_are_followed_by_a_pause() {
        let (mut pace, now) = (RequestPace::default(), Instant::now());
        assert!(pace.begin_turn(now).is_empty() && pace.has_time() && !pace.has_work(now));
        [3, 1, 3, 2].into_iter().for_each(|client| pace.put_off(PeerId(client)));
        assert!(pace.has_work(now) && pace.deadline().is_none());
        pace.note(now.checked_sub(Duration::from_secs(1)).expect("a time before"));
        assert!(!pace.has_time() && !pace.has_work(now) && pace.deadline() > Some(now));
        assert!(pace.begin_turn(now).is_empty());
        let later = now + Duration::from_secs(10);
        assert!(pace.has_work(later));
        assert_eq!(pace.begin_turn(later), [3, 1, 2].map(PeerId));
        assert!(pace.has_time() && !pace.has_work(later));
    }
}
