//! What the parser's findings do to a collapsing terminal, and which of them can wait.
//!
//! Colours change nothing, nor does erasing what is behind the end of the text. A carriage return before a line feed
//! changes nothing either, so it waits for what comes next. Lines with nothing else are taken many at a time. Whatever
//! else is not text needs the terminal up to date.

use std::ops::Range;

use super::Collapse;
use crate::text::csi::Csi;
use crate::text::parser::Sink;
use crate::text::sanitize::terminal::Terminal;
use crate::text::sanitize::window::{BLOCK_BYTES, Reading, Window};

/// A terminal together with where its final text goes.
#[derive(Debug)]
pub(crate) struct CollapseSink<'a> {
    collapse: &'a mut Collapse,
    out: &'a mut Vec<u8>,
}

impl Collapse {
    pub(crate) fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>) -> CollapseSink<'a> {
        CollapseSink { collapse: self, out }
    }
}

impl CollapseSink<'_> {
    /// Before anything that edits.
    fn lay_out(&mut self) -> &mut Terminal {
        self.collapse.lay_out(self.out);
        &mut self.collapse.terminal
    }

    /// Carries out a change that says whether it may have reached rows above the cursor, and lets the relay know.
    fn edit(&mut self, change: impl FnOnce(&mut Terminal, &mut Vec<u8>) -> bool) {
        let row = self.lay_out().main.cursor.row;
        let terminal = &mut self.collapse.terminal;
        let reaches_up = change(terminal, self.out);
        if (reaches_up || terminal.main.cursor.row < row)
            && let Some(relay) = &mut terminal.relay
        {
            relay.set_moved_up();
        }
    }
}

impl Sink for CollapseSink<'_> {
    const READS_SEQUENCES: bool = true;

    #[inline]
    fn shortcut(&mut self, input: &[u8]) -> (usize, u64) {
        let collapse = &mut *self.collapse;
        if collapse.pending.is_empty() && !collapse.is_plain() {
            return (0, 0);
        }
        let mut window = Window::<Pending>::new(false, std::mem::take(&mut collapse.return_seen));
        let taken = window.fill(input);
        if !window.text().is_empty() {
            collapse.text(window.text(), self.out);
        }
        if window.return_seen {
            self.control(b'\r');
        }
        (taken, window.sequences)
    }

    #[inline]
    fn text(&mut self, run: &[u8]) {
        if self.collapse.is_alternate() {
            self.collapse.terminal.alt_bytes += run.len() as u64;
        }
        self.collapse.text(run, self.out);
    }

    fn control(&mut self, byte: u8) {
        match byte {
            b'\r' if !self.collapse.pending.is_empty() => self.collapse.return_seen = true,
            b'\r' => self.collapse.terminal.carriage_return(),
            0x08 => self.lay_out().backspace(),
            0x0B | 0x0C => self.text(b"\n"),
            0x0E | 0x0F => {
                let used = usize::from(byte == 0x0E);
                if self.collapse.terminal.charsets.used != used {
                    self.lay_out().charsets.used = used;
                }
            }
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            ([set @ (b'(' | b')')], _) => {
                let set = usize::from(*set == b')');
                if self.collapse.terminal.charsets.sets[set] != last {
                    self.lay_out().charsets.sets[set] = last;
                }
            }
            ([], b'7' | b'8' | b'D' | b'E' | b'M' | b'c') => self.edit(|terminal, out| {
                match last {
                    b'7' => terminal.save_cursor(),
                    b'8' => terminal.restore_cursor(),
                    b'M' => terminal.reverse_index(),
                    b'c' => terminal.reset(out),
                    _ => {
                        terminal.grid().cursor.wraps = false;
                        if last == b'E' {
                            terminal.carriage_return();
                        }
                        terminal.index(out);
                    }
                }
                last == b'M'
            }),
            _ => {}
        }
    }

    #[inline]
    fn csi(&mut self, body: &[u8], last: u8) {
        let is_at_end = !self.collapse.pending.is_empty() && !self.collapse.return_seen;
        if last == b'm' || is_at_end && erases_behind(body, last) {
            return;
        }
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (None, [], b'@'..=b'H' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'`'..=b'b' | b'd'..=b'f' | b'h') => {}
            (None, [], b'l' | b'r' | b's' | b'u') | (None, [b'!'], b'p') => {}
            (Some(b'?'), [], b'h' | b'l') if csi.values().any(Terminal::knows_private_mode) => {}
            _ => return,
        }
        self.edit(|terminal, out| terminal.control_sequence(&csi, last, out));
    }
}

/// At the end of what is pending there is nothing to erase.
#[derive(Debug)]
enum Pending {}

impl Reading for Pending {
    const RETURN_STARTS_LINE: bool = false;

    #[inline]
    fn is_nothing(block: &[u8; BLOCK_BYTES], body: Range<usize>, after_return: bool) -> bool {
        let last = block[body.end];
        last == b'm' || !after_return && erases_behind(&block[body], last)
    }
}

/// Whether the sequence erases what is behind the cursor, in the line or on the screen.
fn erases_behind(body: &[u8], last: u8) -> bool {
    matches!(last, b'K' | b'J') && matches!(body, b"" | b"0")
}
