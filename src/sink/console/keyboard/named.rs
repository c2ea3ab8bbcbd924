//! The commands that the status line has named as waiting for an answer, or for a decision, and the meaning of the keys
//! that follow.
//!
//! A person presses `i` for what stands on the screen. A command that asks a moment before the key, perhaps with the same
//! words, must not get the answer. So what counts is what was drawn, and for [`limits::PROMPT_NAMED`] also what was drawn
//! before.
//!
//! Invariants: pure, the caller passes the time; a key means one command only while no other one waits, and none was
//! named lately.

use std::time::Instant;

use crate::limits;

/// The command that a key is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Asks {
    /// Nobody waits, and nobody did when the person last looked.
    #[default]
    Nobody,
    /// This command, the only one that the status line names.
    One(u64),
    /// One of several: the person has to say which.
    Several,
    /// The command that the person saw waits no longer, or the one that waits was not shown yet.
    NotNow,
}

#[derive(Debug, Default)]
pub struct NamedPrompts {
    named: Vec<u64>,
    /// Since when it names them, and no others.
    since: Option<Instant>,
    /// The commands that it no longer names, and since when.
    gone: Vec<(u64, Instant)>,
}

impl NamedPrompts {
    /// The status line names these commands from now on.
    pub fn note(&mut self, named: Vec<u64>, now: Instant) {
        let gone = self.named.iter().filter(|run| !named.contains(run));
        self.gone.extend(gone.map(|&run| (run, now)));
        self.gone.retain(|(run, since)| !named.contains(run) && *since + limits::PROMPT_NAMED > now);
        if self.named != named {
            self.since = Some(now);
        }
        self.named = named;
    }

    /// Until when more than this one command may be meant, because another one was named a moment ago.
    #[must_use]
    pub fn unclear_until(&self, waiting: &[u64], now: Instant) -> Option<Instant> {
        let named = self.named.iter().map(|run| (*run, now));
        let others = self.gone.iter().copied().chain(named).filter(|(run, _)| !waiting.contains(run));
        others.map(|(_, since)| since + limits::PROMPT_NAMED).max().filter(|until| *until > now)
    }

    /// The command on which a key decides while these wait. A person must have had time to read which it is.
    #[must_use]
    pub fn decides(&self, waiting: impl Iterator<Item = u64>, now: Instant) -> Asks {
        let is_seen = self.since.is_some_and(|since| now >= since + limits::QUESTION_SEEN);
        match self.asks(waiting, now) {
            Asks::One(_) if !is_seen => Asks::NotNow,
            asks => asks,
        }
    }

    /// The command that `i` answers while these wait.
    #[must_use]
    pub fn asks(&self, waiting: impl Iterator<Item = u64>, now: Instant) -> Asks {
        let other = |run: u64| move |other: &u64| *other != run;
        let mut waiting = waiting.peekable();
        let mut lately = self.gone.iter().filter(|(_, since)| *since + limits::PROMPT_NAMED > now).map(|(run, _)| *run);
        match self.named[..] {
            [] if waiting.peek().is_none() && lately.next().is_none() => Asks::Nobody,
            [] => Asks::NotNow,
            [run] if waiting.all(|it| !other(run)(&it)) && lately.all(|it| !other(run)(&it)) => Asks::One(run),
            _ => Asks::Several,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_key_is_for_what_was_drawn_and_for_nothing_else() {
        let now = Instant::now();
        let mut named = NamedPrompts::default();
        let asks = |named: &NamedPrompts, waiting: &[u64], at| named.asks(waiting.iter().copied(), at);
        assert_eq!(asks(&named, &[], now), Asks::Nobody);
        assert_eq!(asks(&named, &[1], now), Asks::NotNow, "it was not drawn yet");
        named.note(vec![1], now);
        assert_eq!(asks(&named, &[1], now), Asks::One(1));
        assert_eq!(asks(&named, &[], now), Asks::One(1), "its end is found when the answer begins");
        assert_eq!(asks(&named, &[1, 2], now), Asks::Several, "another one asks");
        assert_eq!(asks(&named, &[2], now), Asks::Several, "it took the place of the first one");
        named.note(vec![1, 2], now);
        assert_eq!(asks(&named, &[1, 2], now), Asks::Several);
        named.note(vec![2], now);
        assert_eq!(asks(&named, &[2], now), Asks::Several, "a moment ago there was another one");
        let later = now + limits::PROMPT_NAMED;
        assert_eq!(asks(&named, &[2], later - Duration::from_millis(1)), Asks::Several);
        assert_eq!(asks(&named, &[2], later), Asks::One(2));
        assert_eq!((named.unclear_until(&[2], now), named.unclear_until(&[2], later)), (Some(later), None));
        assert_eq!(named.unclear_until(&[3], later), Some(later + limits::PROMPT_NAMED), "before it is drawn");
        named.note(vec![], later);
        assert_eq!(asks(&named, &[], later), Asks::NotNow, "the person may not have seen that");
        named.note(vec![3], later);
        assert_eq!(asks(&named, &[3], later), Asks::Several);
        named.note(vec![], later);
        named.note(vec![3], later);
        assert_eq!(asks(&named, &[], later + limits::PROMPT_NAMED), Asks::One(3));
        named.note(vec![], later);
        assert_eq!(asks(&named, &[], later + limits::PROMPT_NAMED), Asks::Nobody);
    }

    #[test]
    fn a_key_decides_on_what_stood_there_for_a_while() {
        let now = Instant::now();
        let mut named = NamedPrompts::default();
        let decides = |named: &NamedPrompts, waiting: &[u64], at| named.decides(waiting.iter().copied(), at);
        assert_eq!(decides(&named, &[1], now), Asks::NotNow);
        named.note(vec![1], now);
        let seen = now + limits::QUESTION_SEEN;
        assert_eq!(decides(&named, &[1], seen - Duration::from_millis(1)), Asks::NotNow);
        named.note(vec![1], seen);
        assert_eq!(decides(&named, &[1], seen), Asks::One(1), "drawn again, it is the same one");
        named.note(vec![2], seen);
        assert_eq!(decides(&named, &[2], seen + limits::QUESTION_SEEN), Asks::Several, "another one stood there");
    }

    /// A command that asks twice is the same one.
    #[test]
    fn a_command_that_asks_again_is_no_other_one() {
        let now = Instant::now();
        let mut named = NamedPrompts::default();
        for drawn in [vec![7], vec![], vec![7]] {
            named.note(drawn, now);
        }
        assert_eq!(named.asks([7].into_iter(), now), Asks::One(7));
    }
}
