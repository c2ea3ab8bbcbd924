//! The part of a row that its reader has, and the time for which the row has been unchanged.

use super::hold::LineHold;

/// The history of one row, kept by [`super::row_sender`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RowHistory {
    /// 0 until the row is first sent.
    pub(super) id: u64,
    pub(super) touched: bool,
    pub(super) hold: LineHold,
    /// A hash of the text at the last look.
    pub(super) seen: Option<u64>,
    /// A hash of the text that the reader has.
    pub(super) sent: Option<u64>,
    /// The text was empty at the last look.
    pub(super) blank: bool,
}

impl RowHistory {
    pub(super) fn touch(&mut self) {
        self.touched = true;
    }

    /// Records that text of the row is erased or overwritten.
    pub(super) fn rewrite(&mut self) {
        self.touched = true;
        self.hold.on_edited();
    }

    /// Returns true if the reader got this row, in its present state or an earlier one.
    pub(super) fn was_sent(&self) -> bool {
        self.sent.is_some()
    }

    /// Returns true if the reader has the row's present state.
    pub(super) fn is_up_to_date(&self) -> bool {
        self.sent.is_some() && self.sent == self.seen && !self.touched
    }

    /// Returns true if the reader lacks text that was there at the last look.
    pub(super) fn is_news(&self) -> bool {
        self.differs() && !self.blank
    }

    /// Returns true if the reader's text is not that of the last look.
    pub(super) fn differs(&self) -> bool {
        self.seen.is_some() && self.seen != self.sent
    }
}
