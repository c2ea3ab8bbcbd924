//! The events of the last moments, for clients that come back: what happened to all runs, but for their output.
//!
//! The first subscription that can be resumed begins the list, and it is kept for a while when the last one is gone. Each
//! event has a number, and each subscription tells them by a place of its own in the list.
//!
//! Invariants: the list is bounded in events and bytes, and a subscription learns the number of those that it has missed;
//! a cursor of another list is known as such; nothing is noted while nobody wants it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use super::watcher::{TellEvents, ToldEvents, is_full};
use crate::front::rpc::answers::{CursorNote, GoneEvents};
use crate::front::rpc::events::{ChosenEvent, event};
use crate::front::rpc::params::RunEvent;
use crate::front::rpc::reply::put_event;
use crate::host::peers::Peers;
use crate::host::project_sessions::now;
use crate::host::turn::PeerId;
use crate::limits;

/// A place in a list: `LIST-NUMBER`, where the number is that of the last event before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Now,
    Behind { list: String, last: u64 },
}

impl Place {
    /// Reads a place; `None` for a text that no host has given out.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text == "now" {
            return Some(Self::Now);
        }
        let (list, last) = text.rsplit_once('-').filter(|(list, _)| !list.is_empty())?;
        Some(Self::Behind { list: list.to_owned(), last: last.parse().ok()? })
    }
}

#[derive(Debug)]
struct PastEvent {
    word: RunEvent,
    line: Box<[u8]>,
}

/// A subscription that can be resumed.
#[derive(Debug)]
struct Follower {
    told: ToldEvents,
    /// The number of the last event before its next one.
    last: u64,
}

#[derive(Debug)]
pub(super) struct PastEvents {
    /// What no other list is called.
    list: String,
    events: VecDeque<PastEvent>,
    bytes: usize,
    /// The number of the last event.
    last: u64,
    /// The events that are noted.
    told: ToldEvents,
    followers: BTreeMap<(PeerId, u64), Follower>,
    /// Nobody follows since then.
    idle_since: Option<Instant>,
    /// Somebody may have something to take.
    has_news: bool,
}

impl PastEvents {
    pub(super) fn begin() -> Self {
        Self {
            list: format!("{}+{}", now(), std::process::id()),
            events: VecDeque::new(),
            bytes: 0,
            last: 0,
            told: ToldEvents::without_output(),
            followers: BTreeMap::new(),
            idle_since: None,
            has_news: false,
        }
    }

    /// The events that are noted.
    pub(super) fn told(&self) -> ToldEvents {
        self.told
    }

    pub(super) fn push<E: ChosenEvent>(&mut self, note: &E::Note) {
        let mut line = Vec::new();
        put_event::<E>(note, &mut line);
        self.bytes += line.len();
        self.last += 1;
        self.events.push_back(PastEvent { word: E::WORD, line: line.into() });
        while self.events.len() > limits::RPC_EVENTS_MAX
            || (self.bytes > limits::RPC_EVENTS_BYTES && self.events.len() > 1)
        {
            self.bytes -= self.events.pop_front().map_or(0, |oldest| oldest.line.len());
        }
        self.has_news = true;
    }

    /// The number of the last event that is gone.
    fn gone(&self) -> u64 {
        self.last - self.events.len() as u64
    }

    fn cursor(&self, last: u64) -> String {
        format!("{}-{last}", self.list)
    }

    /// Tells a subscription the events behind a place from now on. Returns where it begins, and what it has missed.
    pub(super) fn follow(
        &mut self,
        (peer, subscription): (PeerId, u64),
        told: ToldEvents,
        after: &Place,
    ) -> (String, Option<GoneEvents>) {
        let (last, gone) = match after {
            Place::Now => (self.last, None),
            Place::Behind { list, last } if *list == self.list && *last <= self.last => {
                let begin = self.gone().max(*last);
                (
                    begin,
                    Some(begin - last).filter(|&missed| missed > 0).map(|missed| GoneEvents { events: Some(missed) }),
                )
            }
            Place::Behind { .. } => (self.gone(), Some(GoneEvents { events: None })),
        };
        self.told = self.told.and(told);
        self.followers.insert((peer, subscription), Follower { told, last });
        self.idle_since = None;
        self.has_news = true;
        (self.cursor(last), gone)
    }

    /// Ends the subscriptions of a client, or one of them.
    pub(super) fn forget(&mut self, peer: PeerId, subscription: Option<u64>, now: Instant) {
        let is_meant = |number: u64| subscription.is_none_or(|wanted| wanted == number);
        self.followers.retain(|&(other, number), _| other != peer || !is_meant(number));
        if self.followers.is_empty() {
            self.idle_since.get_or_insert(now);
        }
    }

    /// When nobody will have come back in time.
    pub(super) fn ends(&self) -> Option<Instant> {
        self.idle_since.map(|since| since + limits::RPC_EVENTS_AGE)
    }

    /// A client may have room again.
    pub(super) fn retry(&mut self) {
        self.has_news = true;
    }

    /// Returns true if a client has not got everything.
    pub(super) fn owes(&self, peer: PeerId) -> bool {
        let own = self.followers.range((peer, 0)..=(peer, u64::MAX));
        own.into_iter().any(|(_, follower)| follower.last < self.last)
    }

    /// Tells each subscription the events that it wants, as long as its client has room. Returns the clients that got some.
    pub(super) fn deliver(&mut self, peers: &mut Peers) -> BTreeSet<PeerId> {
        let mut served = BTreeSet::new();
        if !std::mem::take(&mut self.has_news) {
            return served;
        }
        let mut followers = std::mem::take(&mut self.followers);
        for (&(id, subscription), follower) in followers.iter_mut().filter(|(_, known)| known.last < self.last) {
            let Some(peer) = peers.get_mut(id).filter(|peer| !peer.is_leaving) else { continue };
            let begin = self.gone().max(follower.last);
            let missed = Some(begin - follower.last).filter(|&missed| missed > 0);
            let mut is_told = missed.is_some();
            follower.last = begin;
            let place = usize::try_from(begin - self.gone()).unwrap_or(usize::MAX);
            for next in self.events.iter().skip(place) {
                if is_full(peer.out.pending()) && (!peer.send() || is_full(peer.out.pending())) {
                    break;
                }
                if follower.told.has(next.word) {
                    peer.out.buffer().extend_from_slice(&next.line);
                    is_told = true;
                }
                follower.last += 1;
            }
            if is_told {
                let gone = missed.map(|missed| GoneEvents { events: Some(missed) });
                let note = CursorNote { subscription, cursor: self.cursor(follower.last), gone };
                put_event::<event::Cursor>(&note, peer.out.buffer());
                served.insert(id);
            }
        }
        self.followers = followers;
        served
    }
}

impl TellEvents for PastEvents {
    fn tell<E: ChosenEvent>(&mut self, note: &E::Note) {
        self.push::<E>(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::rpc::answers::PortNote;

    fn push(list: &mut PastEvents, count: usize) {
        (0..count).for_each(|_| list.push::<event::Port>(&PortNote { run: 1, port: 80 }));
    }

    #[test]
    fn a_place_says_what_is_gone_behind_it() {
        let mut list = PastEvents::begin();
        let (told, mut follow) = (ToldEvents::without_output(), 0);
        let mut begin = |list: &mut PastEvents, after: &str| {
            follow += 1;
            list.follow((PeerId(1), follow), told, &Place::read(after).expect("a place"))
        };
        let (first, gone) = begin(&mut list, "now");
        assert_eq!((first.ends_with("-0"), gone), (true, None));
        push(&mut list, 3);
        assert_eq!(begin(&mut list, &first), (first.clone(), None), "all three follow");
        push(&mut list, limits::RPC_EVENTS_MAX);
        let (cursor, gone) = begin(&mut list, &first);
        assert_eq!((cursor.ends_with("-3"), gone), (true, Some(GoneEvents { events: Some(3) })));
        // One of another list, and one that this list has not come to.
        for strange in ["0-2".to_owned(), format!("{}-{}", list.list, list.last + 1)] {
            let (again, gone) = begin(&mut list, &strange);
            assert_eq!((again, gone), (cursor.clone(), Some(GoneEvents { events: None })), "{strange}");
        }
        for wrong in ["", "-", "Now", "7", "-1", "x-", "x-y", "1-2-"] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_list_is_bounded_and_ends_when_nobody_comes_back() {
        let (mut list, now) = (PastEvents::begin(), Instant::now());
        let line = "x".repeat(limits::RPC_EVENTS_BYTES / 4);
        for _ in 0..9 {
            list.push::<event::Remark>(&crate::front::rpc::answers::RemarkNote {
                run: 1,
                line: line.clone(),
                after: 0,
            });
            assert!(list.bytes <= limits::RPC_EVENTS_BYTES);
        }
        assert_eq!((list.events.len(), list.gone()), (3, 6));
        list.follow((PeerId(1), 1), ToldEvents::usual(), &Place::Now);
        list.follow((PeerId(1), 2), ToldEvents::usual(), &Place::Now);
        list.forget(PeerId(1), Some(1), now);
        list.forget(PeerId(2), None, now);
        assert_eq!(list.ends(), None);
        list.forget(PeerId(1), None, now);
        assert_eq!(list.ends(), Some(now + limits::RPC_EVENTS_AGE));
        list.follow((PeerId(3), 3), ToldEvents::usual(), &Place::Now);
        assert_eq!(list.ends(), None);
    }
}
