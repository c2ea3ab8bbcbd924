//! A count of what was done in a second, for a bound on it.

use std::time::{Duration, Instant};

/// The number of times that something was done in the second that began then.
#[derive(Debug)]
pub(super) struct RateCount {
    second: Instant,
    count: u32,
}

impl RateCount {
    pub(super) fn new(now: Instant) -> Self {
        Self { second: now, count: 0 }
    }

    /// Counts one more. Returns true if it is one of the first `most` of this second.
    pub(super) fn take(&mut self, most: u32, now: Instant) -> bool {
        if now >= self.second + Duration::from_secs(1) {
            *self = Self::new(now);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}
