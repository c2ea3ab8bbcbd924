//! The number of rows of each line of a block, on a terminal that is narrower than the command's.
//!
//! Invariant: heights and their sums are lower bounds, as [`super::wrapped_line::WrappedLine`] counts them; forgotten lines
//! count as one row.

use std::collections::VecDeque;
use std::ops::Range;

/// The most lines remembered, counted from the block's last one. No program moves its cursor up farther than its screen.
const LINES_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Heights {
    /// The number of the first remembered line.
    first: u32,
    rows: VecDeque<u32>,
}

impl Heights {
    pub(super) fn get(&self, line: u32) -> u32 {
        let at = line.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.rows.get(at)).copied().unwrap_or(1)
    }

    /// The number of rows of several lines.
    pub(super) fn sum(&self, lines: Range<u32>) -> u32 {
        let from = lines.start.clamp(self.first, lines.end.max(self.first));
        let forgotten = from.min(lines.end) - lines.start.min(from).min(lines.end);
        (from..lines.end).map(|line| self.get(line)).fold(forgotten, u32::saturating_add)
    }

    pub(super) fn set(&mut self, line: u32, rows: u32) {
        if self.rows.is_empty() {
            self.first = line;
        }
        let Some(at) = line.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else { return };
        if at > self.rows.len() + LINES_MAX {
            *self = Self::default();
            return self.set(line, rows);
        }
        while self.rows.len() <= at {
            self.rows.push_back(1);
        }
        self.rows[at] = rows;
        while self.rows.len() > LINES_MAX {
            self.rows.pop_front();
            self.first += 1;
        }
    }

    /// Forgets the lines after this one.
    pub(super) fn truncate_after(&mut self, line: u32) {
        let kept = (line + 1).saturating_sub(self.first);
        self.rows.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Forgets all lines, because the terminal's width changed.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_add_up_and_old_ones_count_as_one() {
        let mut heights = Heights::default();
        assert_eq!(heights.sum(0..5), 5);
        for line in 0..3_000 {
            heights.set(line, 2);
        }
        assert_eq!(heights.sum(2_990..3_000), 20);
        assert_eq!(heights.sum(0..3_000), 2_000 + 2 * 1_000);
        assert_eq!(heights.sum(5..5), 0);
        heights.set(2_999, 7);
        assert_eq!((heights.get(2_999), heights.get(3_000), heights.get(3)), (7, 1, 1));
        heights.truncate_after(2_997);
        assert_eq!(heights.sum(2_997..3_000), 2 + 1 + 1);
    }
}
