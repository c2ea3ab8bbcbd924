//! Decides how long a line without an end is held back from its reader.
//!
//! A line that only grew may be a prompt, or the dots of a program at work. It is held for the settle time, counted
//! from its first byte that the reader lacks, however much follows. A line that is rewritten is a progress bar or a
//! spinner, whose states are worth little. It is held until it has been unchanged for [`EDITED`] settle times. A
//! *frame* is held for longer: a state with the same words as the one that the reader has, or one whose cursor the
//! program has led back to its start, to overwrite it. No line is held for more than [`LONGEST`] settle times from its
//! first change that the reader lacks, so a bar costs the reader one line in that time, and a program that never pauses
//! is not silent.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

/// Settle times for which an edited line must be unchanged.
const EDITED: u32 = 2;
/// Settle times for which any line is held, and for which a frame must be unchanged.
const LONGEST: u32 = 8;

/// The unseen changes of one line, and their times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LineHold {
    /// The time of the first change that the reader lacks.
    first: Option<Instant>,
    /// The time of the last one.
    last: Option<Instant>,
    is_edited: bool,
    is_frame: bool,
    /// The words of the state that the reader has.
    given: Option<u64>,
}

impl LineHold {
    /// Marks the line as edited, and not only written from its start to its end.
    pub(super) fn on_edited(&mut self) {
        self.is_edited = true;
    }

    /// Records a change at this time.
    pub(super) fn on_touched(&mut self, at: Instant) {
        self.first.get_or_insert(at);
        self.last = Some(at);
        self.is_frame = false;
    }

    /// Records that the text has been this one since `at`, and that the reader lacks it. `grows`: it begins with the
    /// text that the reader has.
    pub(super) fn on_changed(&mut self, text: &[u8], grows: bool, at: Instant) {
        self.on_touched(at);
        self.is_frame = self.is_edited && !grows && self.given == Some(words(text));
    }

    /// Records that the reader has this text, so nothing more is held.
    pub(super) fn on_given(&mut self, text: &[u8]) {
        self.given = Some(words(text));
        self.release();
    }

    /// Holds nothing more: the line is again as the reader has it.
    pub(super) fn release(&mut self) {
        (self.first, self.last) = (None, None);
        self.is_frame = false;
    }

    /// The time of the last change that the reader lacks.
    pub(super) fn last(&self) -> Option<Instant> {
        self.last
    }

    /// Returns true if all held changes came in one moment.
    pub(super) fn is_of_one_moment(&self) -> bool {
        self.first == self.last
    }

    /// The time at which the reader gets the line, if it lacks something of it. `is_parked`: the cursor is at the start
    /// of its text.
    pub(super) fn due(&self, still: Duration, is_parked: bool) -> Option<Instant> {
        let first = self.first?;
        if !self.is_edited && !is_parked {
            return Some(first + still);
        }
        let settles = if self.is_frame || is_parked { LONGEST } else { EDITED };
        Some((self.last? + still * settles).min(first + still * LONGEST))
    }

    /// As [`Self::due`], if more came at this time than was looked at.
    pub(super) fn due_if_touched(mut self, at: Instant, still: Duration, is_parked: bool) -> Option<Instant> {
        let seen = self.due(still, is_parked);
        self.on_touched(at);
        seen.into_iter().chain(self.due(still, is_parked)).min()
    }
}

/// A hash of the letters of a text. Numbers, bars and spinners do not count.
fn words(text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    letters(text).for_each(|letter| letter.hash(&mut hasher));
    hasher.finish()
}

pub(super) fn letters(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    text.utf8_chunks().flat_map(|chunk| chunk.valid().chars()).filter(|c| c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STILL: Duration = Duration::from_millis(250);

    /// When a line is due whose texts come at these milliseconds.
    fn due(hold: &mut LineHold, start: Instant, texts: &[(u64, &str)]) -> u128 {
        for &(at, text) in texts {
            hold.on_changed(text.as_bytes(), false, start + Duration::from_millis(at));
        }
        hold.due(STILL, false).unwrap().duration_since(start).as_millis()
    }

    #[test]
    fn a_line_that_grows_is_due_from_its_first_byte_on() {
        let (mut hold, start) = (LineHold::default(), Instant::now());
        assert_eq!(hold.due(STILL, false), None);
        assert_eq!(due(&mut hold, start, &[(0, "."), (100, ".."), (200, "...")]), 250);
        hold.on_given(b"...");
        assert_eq!(hold.due(STILL, false), None);
        assert_eq!(due(&mut hold, start, &[(300, "....")]), 550);
    }

    #[test]
    fn an_edited_line_is_due_from_its_last_change_on_and_not_later_than_eight_times() {
        let (mut hold, start) = (LineHold::default(), Instant::now());
        hold.on_edited();
        assert_eq!(due(&mut hold, start, &[(0, "1%"), (300, "2%")]), 800);
        assert_eq!(due(&mut hold, start, &[(1700, "3%")]), 2000);
        hold.on_given(b"3%");
        assert_eq!(due(&mut hold, start, &[(2100, "4%")]), 4100, "a frame of the bar that the reader has");
        assert_eq!(due(&mut hold, start, &[(2200, "Go on? ")]), 2700, "another text");
        assert_eq!(hold.due(STILL, true), Some(start + Duration::from_millis(4100)), "its start is to be overwritten");
    }
}
