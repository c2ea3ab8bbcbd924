//! A text that is too long for its place: its beginning and its end, and how much is left out between them.
//!
//! Invariants: the first and the last character are always shown; what is left out is counted exactly, in characters
//! and lines. So nothing is pushed out of sight by what somebody put before it or behind it.

use super::count::counted;
use super::escape::push_escaped;
use super::width::width;

/// More blanks than this in a row are counted, where a text does not fit as it is.
const BLANKS_MAX: usize = 24;
/// Marks without a width in a row that take no columns. The others take one each, because they take bytes.
const MARKS_MAX: usize = 4;

/// What is shown as one.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Char(char),
    /// Blanks in a row, and the line feeds among them.
    Blanks(usize, usize),
}

/// `text` escaped on one line of at most `columns_max` columns, with its beginning and its end.
#[must_use]
pub fn escape_ends(text: &str, columns_max: usize) -> String {
    let mut pieces: Vec<Piece> = text.chars().map(Piece::Char).collect();
    let is_whole = |pieces: &[Piece]| fitting(pieces.iter(), columns_max) == pieces.len();
    if !is_whole(&pieces) {
        pieces = with_counted_blanks(text);
    }
    if is_whole(&pieces) {
        return spelled(&pieces);
    }
    // What is left out is no more than everything.
    let room = columns_max.saturating_sub(left_out(&pieces).chars().count()).max(2);
    let head = fitting(pieces.iter(), room - room / 2).max(1);
    let tail = fitting(pieces[head..].iter().rev(), room / 2).max(1).min(pieces.len() - head);
    let (head, rest) = pieces.split_at(head);
    let (middle, tail) = rest.split_at(rest.len() - tail);
    [spelled(head), left_out(middle), spelled(tail)].concat()
}

/// How much these are.
fn left_out(pieces: &[Piece]) -> String {
    let (characters, lines) = pieces.iter().fold((0, 0), |(characters, lines), piece| {
        let (more_characters, more_lines) = piece.counts();
        (characters + more_characters, lines + more_lines)
    });
    let characters = counted(characters as u64, "character", "characters");
    let lines = if lines == 0 { String::new() } else { format!(", {}", counted(lines as u64, "line", "lines")) };
    format!(" …⟨{characters}{lines} left out⟩… ")
}

impl Piece {
    fn push(self, line: &mut String) {
        match self {
            Self::Char(c) => push_escaped(line, c, false),
            Self::Blanks(count, 0) => *line += &format!(" ⟨{count} blanks⟩ "),
            Self::Blanks(count, lines) => *line += &format!(" ⟨{count} blanks, {lines} of them line feeds⟩ "),
        }
    }

    /// Characters and line feeds.
    fn counts(&self) -> (usize, usize) {
        match *self {
            Self::Char(c) => (1, usize::from(c == '\n')),
            Self::Blanks(count, lines) => (count, lines),
        }
    }
}

/// How many of the pieces fit into so many columns.
fn fitting<'a>(pieces: impl Iterator<Item = &'a Piece>, columns_max: usize) -> usize {
    let (mut columns, mut marks, mut shown) = (0, 0, String::new());
    pieces
        .take_while(|piece| {
            shown.clear();
            piece.push(&mut shown);
            let needed: usize = shown.chars().map(width).sum();
            marks = if needed == 0 { marks + 1 } else { 0 };
            columns += needed.max(usize::from(marks > MARKS_MAX));
            columns <= columns_max
        })
        .count()
}

fn with_counted_blanks(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let blanks = &rest[..rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())];
        let count = blanks.chars().count();
        if count > BLANKS_MAX {
            pieces.push(Piece::Blanks(count, blanks.matches('\n').count()));
            rest = &rest[blanks.len()..];
        } else {
            let length = blanks.len().max(first.len_utf8());
            pieces.extend(rest[..length].chars().map(Piece::Char));
            rest = &rest[length..];
        }
    }
    pieces
}

fn spelled(pieces: &[Piece]) -> String {
    let mut line = String::new();
    pieces.iter().for_each(|piece| piece.push(&mut line));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_hides_neither_the_beginning_nor_the_end() {
        let fill = "x".repeat(1_000);
        for text in [format!("{fill};EVIL"), format!("EVIL;{fill}"), format!(": {fill}\n{fill};EVIL")] {
            let shown = escape_ends(&text, 400);
            assert!(shown.contains("EVIL") && shown.contains(" characters"), "{shown}");
            assert!(shown.chars().count() <= 400, "{shown}");
        }
        assert_eq!(escape_ends("ls", 400), "ls");
        let blank = format!("true{}; EVIL{} # ok", " ".repeat(900), " \t\n".repeat(300));
        let shown = escape_ends(&blank, 400);
        assert_eq!(shown, "true ⟨900 blanks⟩ ; EVIL ⟨901 blanks, 300 of them line feeds⟩ # ok");
        let lines = escape_ends(&"echo\n".repeat(1_000), 100);
        assert!(lines.starts_with("echo\\necho") && lines.ends_with("echo\\n"), "{lines}");
        let (_, count) = lines.split_once('⟨').unwrap();
        let numbers: Vec<usize> = count.split(' ').filter_map(|word| word.parse().ok()).collect();
        assert!(numbers[0] > 4_900 && numbers[1] > 980, "{lines}");
    }

    #[test]
    fn the_count_and_what_is_shown_are_the_whole() {
        for columns in [0, 1, 60, 80, 400] {
            let text = "word日".repeat(500);
            let shown = escape_ends(&text, columns);
            let (head, rest) = shown.split_once(" …⟨").unwrap();
            let (count, tail) = rest.split_once(" characters left out⟩… ").unwrap();
            let count: usize = count.parse().unwrap();
            assert_eq!(head.chars().count() + count + tail.chars().count(), 2_500, "{columns}");
            assert!(text.starts_with(head) && text.ends_with(tail));
        }
        let marks = escape_ends(&"a\u{301}\u{302}\u{303}\u{304}\u{305}\u{306}".repeat(10_000), 400);
        assert!(marks.len() < 3_000, "{}", marks.len());
    }
}
