//! Passes the parser's findings to a lazy terminal, and keeps back those that need no layout.
//!
//! Colours have no effect on the text, and neither has erasing after its end. A carriage return has none before a line
//! feed, so it waits for the next byte. Lines with nothing else are taken many at a time. All other controls need the
//! terminal to be up to date.

use std::ops::Range;

use super::LazyTerminal;
use crate::text::csi::Csi;
use crate::text::parser::Sink;
use crate::text::sanitize::virtual_terminal::VirtualTerminal;
use crate::text::sanitize::window::{BLOCK_BYTES, Reading, Window};

/// A terminal, and the buffer for its final text.
#[derive(Debug)]
pub(in crate::text::sanitize) struct LazySink<'a> {
    lazy: &'a mut LazyTerminal,
    out: &'a mut Vec<u8>,
}

impl LazyTerminal {
    pub(in crate::text::sanitize) fn sink<'a>(&'a mut self, out: &'a mut Vec<u8>) -> LazySink<'a> {
        LazySink { lazy: self, out }
    }
}

impl LazySink<'_> {
    fn lay_out(&mut self) -> &mut VirtualTerminal {
        self.lazy.lay_out(self.out);
        &mut self.lazy.terminal
    }

    /// Carries out a change, and reports it to the sender. The change returns true if it may have reached rows above
    /// the cursor.
    fn edit(&mut self, change: impl FnOnce(&mut VirtualTerminal, &mut Vec<u8>) -> bool) {
        let row = self.lay_out().main.cursor.row;
        let terminal = &mut self.lazy.terminal;
        let reaches_up = change(terminal, self.out);
        if (reaches_up || terminal.main.cursor.row < row)
            && let Some(sender) = &mut terminal.sender
        {
            sender.set_moved_up();
        }
    }
}

impl Sink for LazySink<'_> {
    const READS_SEQUENCES: bool = true;

    #[inline]
    fn shortcut(&mut self, input: &[u8]) -> usize {
        let lazy = &mut *self.lazy;
        if lazy.pending.is_empty() && !lazy.is_plain() {
            return 0;
        }
        if input.starts_with(b"\r\n") && !lazy.return_seen {
            let taken = lazy.take_lines(input, self.out);
            if taken > 0 {
                return taken;
            }
        }
        let mut window = Window::<PendingReading>::new(false, std::mem::take(&mut lazy.return_seen));
        let taken = window.fill(input);
        if !window.text().is_empty() {
            lazy.text(window.text(), self.out);
        }
        if window.return_seen {
            self.control(b'\r');
        }
        taken
    }

    #[inline]
    fn text(&mut self, run: &[u8]) {
        if self.lazy.terminal.alt.is_some() {
            self.lazy.terminal.alt_bytes += run.len() as u64;
        }
        self.lazy.text(run, self.out);
    }

    fn control(&mut self, byte: u8) {
        match byte {
            b'\r' if !self.lazy.pending.is_empty() => self.lazy.return_seen = true,
            b'\r' => self.lazy.terminal.carriage_return(),
            0x08 => self.lay_out().backspace(),
            0x0B | 0x0C => self.text(b"\n"),
            0x0E | 0x0F => {
                let used = usize::from(byte == 0x0E);
                if self.lazy.terminal.charsets.used != used {
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
                if self.lazy.terminal.charsets.sets[set] != last {
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
        let is_at_end = !self.lazy.pending.is_empty() && !self.lazy.return_seen;
        if last == b'm' || is_at_end && erases_behind(body, last) {
            return;
        }
        let Some(csi) = Csi::parse(body) else { return };
        match (csi.private, csi.intermediates, last) {
            (None, [], b'@'..=b'H' | b'J'..=b'M' | b'P' | b'S' | b'T' | b'X' | b'`'..=b'b' | b'd'..=b'f' | b'h') => {}
            (None, [], b'l' | b'r' | b's' | b'u') | (None, [b'!'], b'p') => {}
            (Some(b'?'), [], b'h' | b'l') if csi.values().any(VirtualTerminal::knows_private_mode) => {}
            _ => return,
        }
        self.edit(|terminal, out| terminal.control_sequence(&csi, last, out));
    }
}

/// Reads text after `pending`, where there is nothing to erase.
#[derive(Debug)]
enum PendingReading {}

impl Reading for PendingReading {
    const RETURN_STARTS_LINE: bool = false;

    #[inline]
    fn has_no_effect(block: &[u8; BLOCK_BYTES], body: Range<usize>, after_return: bool) -> bool {
        let last = block[body.end];
        last == b'm' || !after_return && erases_behind(&block[body], last)
    }
}

/// Returns true if the sequence erases from the cursor to the end of the line or the screen.
fn erases_behind(body: &[u8], last: u8) -> bool {
    matches!(last, b'K' | b'J') && matches!(body, b"" | b"0")
}
