//! A limit on the memory of many holders together, in bytes. Each holder also has a reserve of its own.
//!
//! Invariant: a dropped share returns its bytes.

use std::cell::Cell;
use std::rc::Rc;

#[derive(Debug, Clone)]
pub struct Budget {
    used: Rc<Cell<usize>>,
    most: usize,
    reserve: usize,
}

/// The part of one holder.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    /// A budget of `most` bytes for all shares together, and of `reserve` more bytes for each share.
    #[must_use]
    pub fn new(most: usize, reserve: usize) -> Self {
        Self { used: Rc::default(), most, reserve }
    }

    /// A share that holds nothing yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// A share that holds this many bytes; `None` if fewer are left.
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
    /// The most bytes that the share may hold, including its present ones.
    #[must_use]
    pub fn room(&self) -> usize {
        let left = self.budget.most.saturating_sub(self.budget.used.get());
        self.budget.reserve + self.beyond(self.bytes) + left
    }

    /// Sets the number of bytes that the share holds, at most [`Share::room`].
    pub fn hold(&mut self, bytes: usize) {
        let used = self.budget.used.get() - self.beyond(self.bytes);
        self.budget.used.set(used + self.beyond(bytes));
        self.bytes = bytes;
    }

    fn beyond(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.budget.reserve)
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
