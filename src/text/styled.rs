//! Output as lines of styled text: what a terminal of unlimited height would show of it in the end, with its colours.
//!
//! Invariants: memory is bounded by the number of cells; what a full-screen program draws on the alternate screen is
//! counted and not kept, as on a terminal after its end.

use super::csi::Csi;
use super::parser::{Parser, Sink};
use super::width::width;

/// Cells that are kept. Beyond it, output is left out and counted.
const CELLS_MAX: usize = 4 << 20;

/// Marks that one character keeps, bytes.
const MARKS_BYTES_MAX: usize = 32;

/// A colour of text or of its background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// That of the page.
    #[default]
    Default,
    /// One of the palette.
    Index(u8),
    Rgb(u8, u8, u8),
}

/// How a character looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextStyle {
    pub text: Colour,
    pub background: Colour,
    pub is_bold: bool,
    pub is_dim: bool,
    pub is_italic: bool,
    pub is_underlined: bool,
    pub is_struck: bool,
    /// Whether text and background have changed places.
    pub is_inverse: bool,
}

const PLAIN: TextStyle = TextStyle {
    text: Colour::Default,
    background: Colour::Default,
    is_bold: false,
    is_dim: false,
    is_italic: false,
    is_underlined: false,
    is_struck: false,
    is_inverse: false,
};

/// Characters of one look that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledRun {
    pub style: TextStyle,
    pub text: String,
}

#[derive(Debug, Clone)]
struct StyledCell {
    /// `None` behind a wide character.
    character: Option<char>,
    /// What combines with it.
    #[expect(clippy::box_collection, reason = "almost no cell has any, and there are many cells")]
    marks: Option<Box<String>>,
    style: TextStyle,
}

const BLANK: StyledCell = StyledCell { character: Some(' '), marks: None, style: PLAIN };

/// Output on its way into lines.
#[derive(Debug)]
pub struct StyledOutput {
    parser: Parser,
    page: StyledPage,
}

#[derive(Debug)]
struct StyledPage {
    lines: Vec<Vec<StyledCell>>,
    row: usize,
    column: usize,
    rows: usize,
    columns: usize,
    style: TextStyle,
    saved: (usize, usize),
    cells: usize,
    is_alternate: bool,
    hidden: u64,
    omitted: u64,
}

impl StyledOutput {
    /// A terminal with these rows and columns.
    #[must_use]
    pub fn new((rows, columns): (u16, u16)) -> Self {
        let page = StyledPage {
            lines: vec![Vec::new()],
            row: 0,
            column: 0,
            rows: usize::from(rows.max(1)),
            columns: usize::from(columns.max(1)),
            style: TextStyle::default(),
            saved: (0, 0),
            cells: 0,
            is_alternate: false,
            hidden: 0,
            omitted: 0,
        };
        Self { parser: Parser::default(), page }
    }

    /// Takes output in which a line feed only moves down, as a terminal gets it.
    pub fn push(&mut self, bytes: &[u8]) {
        self.parser.push(bytes, &mut self.page);
    }

    /// Notes that the terminal has this size from then on.
    pub fn resize(&mut self, (rows, columns): (u16, u16)) {
        (self.page.rows, self.page.columns) = (usize::from(rows.max(1)), usize::from(columns.max(1)));
    }

    /// The lines, without blank ones at the end, and how many bytes a full-screen program drew and how many are left out.
    #[must_use]
    pub fn finish(mut self) -> (Vec<Vec<StyledRun>>, u64, u64) {
        self.parser.finish(&mut self.page);
        let mut lines: Vec<Vec<StyledRun>> = self.page.lines.iter().map(|line| runs(line)).collect();
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        (lines, self.page.hidden, self.page.omitted)
    }
}

fn runs(line: &[StyledCell]) -> Vec<StyledRun> {
    let is_blank = |cell: &&StyledCell| cell.character == Some(' ') && cell.marks.is_none() && cell.style == PLAIN;
    let kept = line.len() - line.iter().rev().take_while(is_blank).count();
    let mut runs: Vec<StyledRun> = Vec::new();
    for cell in &line[..kept] {
        if runs.last().is_none_or(|run| run.style != cell.style) {
            runs.push(StyledRun { style: cell.style, text: String::new() });
        }
        if let Some(run) = runs.last_mut() {
            run.text.extend(cell.character);
            run.text.extend(cell.marks.as_deref().map(String::as_str));
        }
    }
    runs
}

impl StyledPage {
    /// The first row of the screen.
    fn top(&self) -> usize {
        self.lines.len().saturating_sub(self.rows)
    }

    fn go_to(&mut self, row: usize) {
        self.row = row;
        while self.lines.len() <= row && self.cells < CELLS_MAX {
            self.lines.push(Vec::new());
            self.cells += 1;
        }
        self.row = row.min(self.lines.len() - 1);
    }

    fn put(&mut self, c: char) {
        let wide = width(c);
        if self.cells >= CELLS_MAX {
            self.omitted += c.len_utf8() as u64;
            return;
        }
        if wide == 0 {
            let before = self.column.min(self.lines[self.row].len());
            if let Some(cell) = before.checked_sub(1).map(|at| &mut self.lines[self.row][at])
                && cell.marks.as_ref().is_none_or(|marks| marks.len() < MARKS_BYTES_MAX)
            {
                cell.marks.get_or_insert_default().push(c);
            }
            return;
        }
        if self.column + wide > self.columns {
            self.go_to(self.row + 1);
            self.column = 0;
        }
        let before = self.lines[self.row].len();
        let line = &mut self.lines[self.row];
        while line.len() < self.column + wide {
            line.push(BLANK);
        }
        line[self.column] = StyledCell { character: Some(c), marks: None, style: self.style };
        for cell in &mut line[self.column + 1..self.column + wide] {
            *cell = StyledCell { character: None, marks: None, style: self.style };
        }
        self.cells += line.len() - before;
        self.column += wide;
    }

    /// Erases from one column to before another.
    fn erase(&mut self, row: usize, from: usize, to: usize) {
        let line = &mut self.lines[row];
        if to >= line.len() {
            line.truncate(from);
        } else {
            line[from..to].fill(BLANK);
        }
    }

    fn erase_rows(&mut self, from: usize, to: usize) {
        for row in from..to.min(self.lines.len()) {
            self.lines[row].clear();
        }
    }

    fn set_modes(&mut self, csi: &Csi<'_>, is_set: bool) {
        if csi.private == Some(b'?') && csi.values().any(|mode| [47, 1047, 1049].contains(&mode)) {
            self.is_alternate = is_set;
        }
    }

    fn move_cursor(&mut self, csi: &Csi<'_>, last: u8) {
        let count = usize::from(csi.count(0));
        match last {
            b'A' | b'F' => self.row = self.row.saturating_sub(count).max(self.top()),
            b'B' | b'E' => self.row = (self.row + count).min(self.lines.len() - 1),
            b'C' => self.column = (self.column + count).min(self.columns - 1),
            b'D' => self.column = self.column.saturating_sub(count),
            b'G' | b'`' => self.column = (count - 1).min(self.columns - 1),
            b'd' => self.go_to(self.top() + (count - 1).min(self.rows - 1)),
            _ => {
                let column = usize::from(csi.count(1));
                self.go_to(self.top() + (count - 1).min(self.rows - 1));
                self.column = (column - 1).min(self.columns - 1);
            }
        }
        if matches!(last, b'E' | b'F') {
            self.column = 0;
        }
    }
}

impl Sink for StyledPage {
    const READS_SEQUENCES: bool = true;

    fn text(&mut self, run: &[u8]) {
        if self.is_alternate {
            self.hidden += run.len() as u64;
            return;
        }
        for c in String::from_utf8_lossy(run).chars() {
            match c {
                '\n' => self.go_to(self.row + 1),
                '\t' => {
                    let stop = (self.column / 8 + 1) * 8;
                    while self.column < stop.min(self.columns) {
                        self.put(' ');
                    }
                }
                c => self.put(c),
            }
        }
    }

    fn control(&mut self, byte: u8) {
        match byte {
            b'\r' => self.column = 0,
            0x08 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            ([], b'7') => self.saved = (self.row, self.column),
            ([], b'8') => (self.row, self.column) = (self.saved.0.min(self.lines.len() - 1), self.saved.1),
            ([], b'M') => self.row = self.row.saturating_sub(1).max(self.top()),
            ([], b'c') => self.style = TextStyle::default(),
            _ => {}
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) {
        let Some(csi) = Csi::parse(body).filter(|csi| csi.intermediates.is_empty()) else { return };
        match (csi.private, last) {
            (_, b'h' | b'l') => self.set_modes(&csi, last == b'h'),
            _ if self.is_alternate => self.hidden += body.len() as u64,
            (None, b'm') => self.style.apply(&csi),
            (None, b'A'..=b'H' | b'd' | b'f' | b'`') => self.move_cursor(&csi, last),
            (None, b'K') => {
                let length = self.lines[self.row].len();
                let (from, to) = match csi.value(0) {
                    0 => (self.column.min(length), length),
                    1 => (0, (self.column + 1).min(length)),
                    _ => (0, length),
                };
                self.erase(self.row, from, to);
            }
            (None, b'J') => match csi.value(0) {
                0 => {
                    let at = self.column.min(self.lines[self.row].len());
                    self.lines[self.row].truncate(at);
                    self.erase_rows(self.row + 1, usize::MAX);
                }
                1 => self.erase_rows(self.top(), self.row),
                _ => self.erase_rows(self.top(), usize::MAX),
            },
            (None, b's') => self.saved = (self.row, self.column),
            (None, b'u') => (self.row, self.column) = (self.saved.0.min(self.lines.len() - 1), self.saved.1),
            _ => {}
        }
    }
}

impl TextStyle {
    /// Changes the style as `CSI … m` says.
    fn apply(&mut self, csi: &Csi<'_>) {
        let text = String::from_utf8_lossy(csi.params).into_owned();
        let mut units = text.split(';');
        while let Some(unit) = units.next() {
            let parts: Vec<u16> = unit.split(':').map(|part| part.parse().unwrap_or(0)).collect();
            let code = parts.first().copied().unwrap_or(0);
            if matches!(code, 38 | 48 | 58) {
                // The parts stand behind colons or are parameters of their own.
                let colour = if parts.len() > 1 {
                    colour(&mut parts[1..].iter().copied(), parts.len() > 5)
                } else {
                    colour(&mut units.by_ref().map(|part| part.parse().unwrap_or(0)), false)
                };
                match (code, colour) {
                    (38, Some(colour)) => self.text = colour,
                    (48, Some(colour)) => self.background = colour,
                    _ => {}
                }
                continue;
            }
            self.set(code, parts.get(1).copied());
        }
    }

    fn set(&mut self, code: u16, kind: Option<u16>) {
        let index = |base: u16| Colour::Index(u8::try_from(code - base).unwrap_or(0));
        match code {
            0 => *self = Self::default(),
            1 => self.is_bold = true,
            2 => self.is_dim = true,
            3 => self.is_italic = true,
            4 => self.is_underlined = kind != Some(0),
            7 => self.is_inverse = true,
            9 => self.is_struck = true,
            21 => self.is_underlined = true,
            22 => (self.is_bold, self.is_dim) = (false, false),
            23 => self.is_italic = false,
            24 => self.is_underlined = false,
            27 => self.is_inverse = false,
            29 => self.is_struck = false,
            30..=37 => self.text = index(30),
            39 => self.text = Colour::Default,
            40..=47 => self.background = index(40),
            49 => self.background = Colour::Default,
            90..=97 => self.text = index(82),
            100..=107 => self.background = index(92),
            _ => {}
        }
    }
}

/// The colour behind 38 or 48. `has_space` says that a colour space stands before its parts.
fn colour(parts: &mut dyn Iterator<Item = u16>, has_space: bool) -> Option<Colour> {
    let byte = |part: Option<u16>| u8::try_from(part?).ok();
    match parts.next()? {
        5 => byte(parts.next()).map(Colour::Index),
        2 => {
            if has_space {
                parts.next();
            }
            Some(Colour::Rgb(byte(parts.next())?, byte(parts.next())?, byte(parts.next())?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
