//! The time that requests get, so that clients that ask without end hold nobody up.
//!
//! Invariants: a request is served in every turn that is not part of a pause; a pause is as long as the request before it;
//! clients whose requests are left have their turns one after the other, however much each of them has asked.

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
    /// A turn begins. Returns how many clients come first in it; [`RequestPace::next_late`] has each of them.
    pub(in crate::host) fn begin_turn(&mut self, now: Instant) -> usize {
        self.used = Duration::ZERO;
        if self.is_paused(now) {
            return 0;
        }
        self.free_from = None;
        self.late.len()
    }

    /// The client that has waited longest. `None` if there is no time for it: it stays in front of those that were served.
    pub(in crate::host) fn next_late(&mut self) -> Option<PeerId> {
        if self.has_time() { self.late.pop_front() } else { None }
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
        assert!(pace.begin_turn(now) == 0 && pace.has_time() && !pace.has_work(now));
        [3, 1, 3, 2].into_iter().for_each(|client| pace.put_off(PeerId(client)));
        assert!(pace.has_work(now) && pace.deadline().is_none());
        pace.note(now.checked_sub(Duration::from_secs(1)).expect("a time before"));
        assert!(!pace.has_time() && !pace.has_work(now) && pace.deadline() > Some(now));
        assert_eq!((pace.begin_turn(now), pace.next_late()), (0, None));
        let later = now + Duration::from_secs(10);
        assert!(pace.has_work(later));
        assert_eq!((pace.begin_turn(later), pace.next_late()), (3, Some(PeerId(3))));
        // It has used the time, and has more to ask: the others come first.
        pace.used = limits::RPC_TURN;
        pace.put_off(PeerId(3));
        assert_eq!(pace.next_late(), None);
        assert_eq!(pace.begin_turn(later), 3);
        let order: Vec<PeerId> = (0..3).filter_map(|_| pace.next_late()).collect();
        assert_eq!(order, [1, 2, 3].map(PeerId));
        assert!(pace.has_time() && !pace.has_work(later));
    }
}
