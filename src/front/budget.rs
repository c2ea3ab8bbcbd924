//! A bound on bytes that many hold together, each with a little of its own that is always there.
//!
//! Invariant: what a share holds is given back when it is dropped.

use std::cell::Cell;
use std::rc::Rc;

/// Bytes for all.
#[derive(Debug, Clone)]
pub struct Budget {
    used: Rc<Cell<usize>>,
    most: usize,
    own: usize,
}

/// What one of them holds.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of this many bytes, and so many more for each share.
    #[must_use]
    pub fn new(most: usize, own: usize) -> Self {
        Self { used: Rc::default(), most, own }
    }

    /// A share that holds nothing yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// A share of this size; `None` when there is not that much.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<Share> {
        let mut share = self.share();
        (bytes <= share.room()).then(|| {
            share.hold(bytes);
            share
        })
    }
}

impl Share {
    /// How much it may hold, what it holds included.
    #[must_use]
    pub fn room(&self) -> usize {
        let left = self.budget.most.saturating_sub(self.budget.used.get());
        self.budget.own + self.beyond(self.bytes) + left
    }

    /// From now on it holds this much, which is not more than its room.
    pub fn hold(&mut self, bytes: usize) {
        let used = self.budget.used.get() - self.beyond(self.bytes);
        self.budget.used.set(used + self.beyond(bytes));
        self.bytes = bytes;
    }

    fn beyond(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.budget.own)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_within_the_budget_and_give_back() {
        let budget = Budget::new(100, 10);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert_eq!((one.room(), other.room()), (110, 110));
        one.hold(70);
        assert_eq!((one.room(), other.room()), (110, 50));
        other.hold(50);
        assert_eq!((one.room(), other.room(), budget.share().room()), (70, 50, 10));
        assert!(budget.take(11).is_none() && budget.take(10).is_some());
        one.hold(5);
        assert_eq!(other.room(), 110);
        drop(one);
        drop(other);
        assert_eq!(budget.share().room(), 110);
    }
}
