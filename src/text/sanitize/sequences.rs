//! The control sequences that the virtual terminal carries out (ECMA-48, xterm's ctlseqs).

use super::virtual_terminal::VirtualTerminal;
use crate::text::csi::Csi;

impl VirtualTerminal {
    /// Carries out a sequence. Returns true if it may have changed rows above the cursor.
    pub(crate) fn control_sequence(&mut self, csi: &Csi<'_>, last: u8, out: &mut Vec<u8>) -> bool {
        if !csi.intermediates.is_empty() {
            self.soft_reset();
            return false;
        }
        if csi.private.is_some() {
            self.set_private_modes(csi, last == b'h');
            return false;
        }
        match last {
            b'h' | b'l' => {
                if csi.values().any(|mode| mode == 4) {
                    self.insert = last == b'h';
                }
                return false;
            }
            b's' if csi.params.is_empty() => {
                self.save_cursor();
                return false;
            }
            b'u' if csi.params.is_empty() => {
                self.restore_cursor();
                return false;
            }
            b'b' => {
                self.repeat(csi.count(0).into(), out);
                return false;
            }
            b's' | b'u' => return false,
            _ => {}
        }
        let reaches_up = match last {
            b'A'..=b'H' | b'`' | b'a' | b'd' | b'e' | b'f' => {
                self.move_cursor(csi, last);
                false
            }
            b'r' => {
                if !self.set_margins(csi) {
                    return false;
                }
                false
            }
            b'J' | b'K' => {
                let ended_early = csi.value(0) == 0 && self.grid().cursor.wraps;
                self.erase(csi.value(0), last, out);
                if ended_early {
                    // After the last column there is nothing to erase, and the next character still wraps.
                    return false;
                }
                last == b'J' && csi.value(0) == 1
            }
            b'T' if csi.values().count() > 1 => return false,
            _ => self.edit_cells_or_rows(csi, last, out),
        };
        self.grid().cursor.wraps = false;
        reaches_up
    }

    fn move_cursor(&mut self, csi: &Csi<'_>, last: u8) {
        let (rows, cols, region_end) = (self.rows, self.cols, self.bottom());
        let count = usize::from(csi.count(0));
        let grid = self.grid();
        let at = grid.cursor.row;
        let top = if at >= grid.top { grid.top } else { 0 };
        let bottom = if at <= region_end { region_end } else { rows - 1 };
        let up = at.saturating_sub(count).max(top);
        let down = (at + count).min(bottom);
        let cursor = &mut grid.cursor;
        match last {
            b'A' => cursor.row = up,
            b'B' | b'e' => cursor.row = down,
            b'C' | b'a' => cursor.col = (cursor.col + count).min(cols - 1),
            b'D' => cursor.col = cursor.col.saturating_sub(count),
            b'E' => (cursor.row, cursor.col) = (down, 0),
            b'F' => (cursor.row, cursor.col) = (up, 0),
            b'G' | b'`' => cursor.col = count.min(cols) - 1,
            b'd' => cursor.row = count.min(rows) - 1,
            _ => (cursor.row, cursor.col) = (count.min(rows) - 1, usize::from(csi.count(1)).min(cols) - 1),
        }
    }

    /// Sets the scrolling region. Returns true if the margins are valid.
    fn set_margins(&mut self, csi: &Csi<'_>) -> bool {
        let rows = self.rows;
        let top = usize::from(csi.count(0)) - 1;
        let bottom = match usize::from(csi.value(1)) {
            0 => rows,
            asked => asked.min(rows),
        } - 1;
        if top >= bottom {
            return false;
        }
        let grid = self.grid();
        grid.top = top;
        grid.bottom = (bottom + 1 != rows).then_some(bottom);
        grid.cursor.row = 0;
        grid.cursor.col = 0;
        true
    }

    fn erase(&mut self, what: u16, last: u8, out: &mut Vec<u8>) {
        let grid = self.grid();
        let cursor = grid.cursor;
        if matches!((last, what, cursor.col), (b'K' | b'J', 0, 0) | (b'K', 2, _))
            && let Some(above) = cursor.row.checked_sub(1).and_then(|above| grid.rows.get_mut(above))
        {
            above.set_unwrapped();
        }
        match (last, what) {
            (b'K', 0) if !cursor.wraps => grid.current().truncate(cursor.col),
            (b'K', 1) => grid.current().blank(0, cursor.col + 1),
            (b'K', 2) => grid.current().clear(),
            (b'J', 0) => {
                grid.erase_below(cursor.row);
                if !cursor.wraps {
                    grid.current().truncate(cursor.col);
                }
            }
            (b'J', 1) => {
                for row in grid.rows.iter_mut().take(cursor.row) {
                    row.clear();
                }
                grid.current().blank(0, cursor.col + 1);
            }
            (b'J', 2) => self.flush_rows(out),
            (b'J', _) => {}
            _ => _ = grid.current(),
        }
    }

    fn edit_cells_or_rows(&mut self, csi: &Csi<'_>, last: u8, out: &mut Vec<u8>) -> bool {
        let (cols, bottom) = (self.cols, self.bottom());
        let count = usize::from(csi.count(0));
        let grid = self.grid();
        let cursor = grid.cursor;
        match last {
            b'X' => grid.current().blank(cursor.col, cursor.col + count),
            b'P' => grid.current().delete(cursor.col, count),
            b'@' => grid.current().insert(cursor.col, count, cols),
            b'L' | b'M' if (grid.top..=bottom).contains(&cursor.row) => {
                grid.row_mut(bottom);
                let count = count.min(bottom - cursor.row + 1);
                match last {
                    b'L' => grid.move_down(cursor.row, bottom, count),
                    _ => grid.move_up(cursor.row, bottom, count),
                }
                grid.cursor.col = 0;
            }
            b'S' => self.scroll_up(count, out),
            b'T' => self.scroll_down(count, bottom),
            _ => {}
        }
        matches!(last, b'L' | b'M' | b'T')
    }
}
