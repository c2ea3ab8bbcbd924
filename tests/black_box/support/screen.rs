//! What a person sees in the end: the bytes of a terminal, drawn. It knows the sequences that everyday programs write.
//! It is for comparing two screens, so a sequence that it does not know is unknown on both.

use std::collections::BTreeSet;
use std::str::Chars;

type Cells = Vec<Vec<char>>;

/// Stands in the second column of a wide character.
const SECOND_HALF: char = '\u{2060}';

fn is_wide(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{ff01}'..='\u{ff60}')
}

fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}')
}

/// A screen.
#[derive(Debug)]
pub(crate) struct Screen {
    cells: Cells,
    /// The usual cells and their cursor, while a full-screen program has others.
    usual: Option<(Cells, (usize, usize))>,
    cols: usize,
    row: usize,
    col: usize,
    /// The first and the last row that scroll.
    region: (usize, usize),
    saved: (usize, usize),
    /// A restored cursor does not wait behind a full row, where it was saved.
    is_forgetful: bool,
    /// Private modes, by what was said of each last.
    modes: BTreeSet<(String, char)>,
}

impl Screen {
    /// A screen of this size after these bytes.
    pub(crate) fn of(bytes: &[u8], size: (u16, u16)) -> Self {
        Self::drawn(bytes, size, false)
    }

    /// The same on a terminal that forgets that the cursor waits behind a full row when it is saved and restored.
    pub(crate) fn forgetful(bytes: &[u8], size: (u16, u16)) -> Self {
        Self::drawn(bytes, size, true)
    }

    fn drawn(bytes: &[u8], (cols, rows): (u16, u16), is_forgetful: bool) -> Self {
        let (cols, rows) = (usize::from(cols), usize::from(rows));
        let mut screen = Self {
            cells: vec![vec![' '; cols]; rows],
            usual: None,
            cols,
            row: 0,
            col: 0,
            region: (0, rows - 1),
            saved: (0, 0),
            is_forgetful,
            modes: BTreeSet::new(),
        };
        let text = String::from_utf8_lossy(bytes);
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            screen.take(char, &mut chars);
        }
        screen
    }

    /// Its lines, without the blanks at their ends.
    pub(crate) fn text(&self) -> String {
        let lines = self
            .cells
            .iter()
            .map(|row| row.iter().filter(|&&char| char != SECOND_HALF).collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// The lines, where the cursor is, and the modes that were set or reset.
    pub(crate) fn state(&self) -> String {
        format!("{}\nat {},{}; {:?}", self.text(), self.row, self.col, self.modes)
    }

    fn take(&mut self, char: char, rest: &mut Chars<'_>) {
        match char {
            '\r' => self.col = 0,
            '\n' => self.down(),
            '\x08' => self.col = self.col.min(self.cols - 1).saturating_sub(1),
            '\t' => self.col = ((self.col / 8 + 1) * 8).min(self.cols - 1),
            '\x1b' => self.escape(rest),
            _ if char.is_control() || is_mark(char) => {}
            _ => {
                let columns = 1 + usize::from(is_wide(char));
                if self.col + columns > self.cols {
                    self.col = 0;
                    self.down();
                }
                self.cells[self.row][self.col..self.col + columns].fill(SECOND_HALF);
                self.cells[self.row][self.col] = char;
                self.col += columns;
            }
        }
    }

    fn down(&mut self) {
        if self.row == self.region.1 {
            self.scroll_up(self.region.0, 1);
        } else {
            self.row = (self.row + 1).min(self.cells.len() - 1);
        }
    }

    /// Moves what stands from row `top` to the region's end up.
    fn scroll_up(&mut self, top: usize, count: usize) {
        for _ in 0..count.min(self.region.1 + 1 - top) {
            self.cells.remove(top);
            self.cells.insert(self.region.1, vec![' '; self.cols]);
        }
    }

    /// Moves what stands from row `top` to the region's end down.
    fn scroll_down(&mut self, top: usize, count: usize) {
        for _ in 0..count.min(self.region.1 + 1 - top) {
            self.cells.remove(self.region.1);
            self.cells.insert(top, vec![' '; self.cols]);
        }
    }

    fn escape(&mut self, rest: &mut Chars<'_>) {
        match rest.next() {
            Some('[') => {
                let parameters: String = rest.clone().take_while(|char| !('@'..='~').contains(char)).collect();
                let last = rest.nth(parameters.chars().count()).unwrap_or('m');
                self.sequence(&parameters, last);
            }
            Some(']' | 'P' | '^' | '_') => {
                let mut before = ' ';
                for char in rest.by_ref() {
                    if char == '\x07' || (before, char) == ('\x1b', '\\') {
                        break;
                    }
                    before = char;
                }
            }
            Some('(' | ')' | '#' | '%') => _ = rest.next(),
            Some('M') if self.row == self.region.0 => self.scroll_down(self.region.0, 1),
            Some('M') => self.row = self.row.saturating_sub(1),
            Some('7') => self.save(),
            Some('8') => self.restore(),
            _ => {}
        }
    }

    fn save(&mut self) {
        self.saved = (self.row, self.col);
    }

    fn restore(&mut self) {
        (self.row, self.col) = self.saved;
        self.col = self.col.min(self.cols - usize::from(self.is_forgetful));
    }

    fn sequence(&mut self, parameters: &str, last: char) {
        if let Some(modes) = parameters.strip_prefix('?') {
            return modes.split(';').for_each(|mode| self.mode(mode, last));
        }
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().ok());
        let (first, second) = (numbers.next().flatten(), numbers.next().flatten());
        let count = first.unwrap_or(1).max(1);
        let (bottom, right) = (self.cells.len() - 1, self.cols - 1);
        let col = self.col.min(right);
        match last {
            'A' => self.row = self.row.saturating_sub(count),
            'B' if self.row <= self.region.1 => self.row = (self.row + count).min(self.region.1),
            'B' => self.row = (self.row + count).min(bottom),
            'C' => self.col = (col + count).min(right),
            'D' => self.col = col.saturating_sub(count),
            'G' => self.col = (count - 1).min(right),
            'd' => self.row = (count - 1).min(bottom),
            'H' | 'f' => (self.row, self.col) = ((count - 1).min(bottom), (second.unwrap_or(1).max(1) - 1).min(right)),
            'J' => self.erase_screen(first.unwrap_or(0)),
            'K' => self.erase_line(first.unwrap_or(0)),
            'L' if self.row <= self.region.1 => self.scroll_down(self.row, count),
            'M' if self.row <= self.region.1 => self.scroll_up(self.row, count),
            'S' => self.scroll_up(self.region.0, count),
            'T' => self.scroll_down(self.region.0, count),
            'P' => {
                let row = &mut self.cells[self.row];
                row.drain(col..(col + count).min(self.cols));
                row.resize(self.cols, ' ');
            }
            '@' => {
                let row = &mut self.cells[self.row];
                row.splice(col..col, std::iter::repeat_n(' ', count));
                row.truncate(self.cols);
            }
            's' => self.save(),
            'u' => self.restore(),
            'X' => self.cells[self.row].iter_mut().skip(col).take(count).for_each(|cell| *cell = ' '),
            'r' => {
                let region = (count - 1, second.unwrap_or(bottom + 1).clamp(1, bottom + 1) - 1);
                self.region = if region.0 < region.1 { region } else { (0, bottom) };
                (self.row, self.col) = (0, 0);
            }
            _ => {}
        }
    }

    fn erase_line(&mut self, which: usize) {
        let (col, cols) = (self.col.min(self.cols - 1), self.cols);
        let range = [col..cols, 0..col + 1, 0..cols][which.min(2)].clone();
        self.cells[self.row][range].fill(' ');
    }

    fn erase_screen(&mut self, which: usize) {
        let (row, rows) = (self.row, self.cells.len());
        let others = [row + 1..rows, 0..row, 0..rows][which.min(2)].clone();
        self.cells[others].iter_mut().for_each(|row| row.fill(' '));
        self.erase_line(which);
    }

    fn mode(&mut self, mode: &str, last: char) {
        if !matches!(last, 'h' | 'l') {
            return;
        }
        self.modes.retain(|(name, _)| name != mode);
        self.modes.insert((mode.to_owned(), last));
        match (mode, last) {
            ("1048", 'h') => self.save(),
            ("1048", _) => self.restore(),
            _ => {}
        }
        if matches!(mode, "47" | "1047" | "1049") {
            let blank = vec![vec![' '; self.cols]; self.cells.len()];
            match (last, self.usual.take()) {
                ('h', None) => {
                    let cells = std::mem::replace(&mut self.cells, blank);
                    self.usual = Some((cells, (self.row, self.col)));
                }
                ('l', Some((cells, cursor))) => {
                    self.cells = cells;
                    (self.row, self.col) = cursor;
                }
                (_, usual) => self.usual = usual,
            }
        }
    }
}
