//! Shortens a text to its beginning and its end, and says how much is left out between them.
//!
//! Runs of blanks and repetitions, with which a text can be padded, are shortened to a count first.
//!
//! Invariants: the first and the last character are always shown; the part left out is counted exactly, in characters and
//! lines. So padding cannot push any part of a text out of sight unnoticed. A note stands in brackets that the text's own
//! characters never show. However long the text is, its ends alone take memory.

use super::count::grouped;
use super::escape::push_escaped;
use super::width::width;

/// Longer runs of blanks and longer repetitions are shortened to a count, in characters.
const PADDING_MAX: usize = 24;
/// The longest unit of a repetition, in characters. Longer ones take too long to find.
const UNIT_MAX: usize = 16;
/// Zero-width marks in a row that count as no column. Further ones count as one each, because they take bytes.
const MARKS_MAX: usize = 4;

/// Bytes of each end of a text that are searched for padding.
const END_BYTES: usize = 16 << 10;

/// A part of the text that is shown or left out as a whole.
#[derive(Debug, Clone, Copy)]
enum Piece<'a> {
    Char(char),
    Blanks(&'a [char]),
    /// A repetition: its unit, and its number.
    Repeated(&'a [char], usize),
    /// The text between the ends of a long text. It never fits.
    Middle(&'a str),
}

/// `text` escaped on one line of at most `columns_max` columns; of a longer text, its beginning and its end.
#[must_use]
pub fn escape_ends(text: &str, columns_max: usize) -> String {
    let [head, middle, tail] = parts(text);
    let [head, tail]: [Vec<char>; 2] = [head, tail].map(|end| end.chars().collect());
    let middle = (!middle.is_empty()).then_some(Piece::Middle(middle));
    let is_whole = |pieces: &[Piece<'_>]| fitting(pieces.iter(), columns_max) == pieces.len();
    let mut pieces: Vec<Piece<'_>> = head.iter().copied().map(Piece::Char).collect();
    if middle.is_some() || !is_whole(&pieces) {
        pieces = with_counted_padding(&head);
        pieces.extend(middle);
        pieces.append(&mut with_counted_padding(&tail));
    }
    if is_whole(&pieces) {
        return spelled(&pieces);
    }
    // The longest note says that all is left out.
    let room = columns_max.saturating_sub(left_out(&pieces).chars().count()).max(2);
    let head = fitting(pieces.iter(), room - room / 2).max(1);
    let tail = fitting(pieces[head..].iter().rev(), room / 2).max(1).min(pieces.len() - head);
    let (head, rest) = pieces.split_at(head);
    let (middle, tail) = rest.split_at(rest.len() - tail);
    [spelled(head), left_out(middle), spelled(tail)].concat()
}

/// The beginning of a text, the part that is not examined, and the end. A short text is a beginning.
fn parts(text: &str) -> [&str; 3] {
    if text.len() <= 2 * END_BYTES {
        return [text, "", ""];
    }
    let boundary = |at: usize| (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (head, tail) = (boundary(END_BYTES), boundary(text.len() - END_BYTES));
    [&text[..head], &text[head..tail], &text[tail..]]
}

/// The note about these left-out pieces.
fn left_out(pieces: &[Piece<'_>]) -> String {
    let (characters, lines) = pieces.iter().fold((0, 0), |(characters, lines), piece| {
        let (more_characters, more_lines) = piece.counts();
        (characters + more_characters, lines + more_lines)
    });
    let counted = |number: usize, noun: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{} {noun}{plural}", grouped(number as u64))
    };
    let lines = if lines == 0 { String::new() } else { format!(", {}", counted(lines, "line")) };
    format!(" ⟨… +{}{lines}⟩ ", counted(characters, "character"))
}

impl Piece<'_> {
    fn push(&self, line: &mut String) {
        match *self {
            // Only this module's notes stand in these brackets, so that no text can imitate one.
            Self::Char(c @ ('⟨' | '⟩')) => *line += &format!("⟨{:X}⟩", u32::from(c)),
            Self::Char(c) => push_escaped(line, c, false),
            Self::Blanks(blanks) => match lines(blanks) {
                0 => *line += &format!(" ⟨{} blanks⟩ ", blanks.len()),
                lines => *line += &format!(" ⟨{} blanks, {} line feeds among them⟩ ", blanks.len(), lines),
            },
            Self::Repeated(unit, times) => {
                unit.iter().for_each(|c| push_escaped(line, *c, false));
                *line += &format!("⟨×{times}⟩");
            }
            Self::Middle(text) => text.chars().for_each(|c| push_escaped(line, c, false)),
        }
    }

    /// The number of characters, and of line feeds among them.
    fn counts(&self) -> (usize, usize) {
        match *self {
            Self::Char(c) => (1, usize::from(c == '\n')),
            Self::Blanks(blanks) => (blanks.len(), lines(blanks)),
            Self::Repeated(unit, times) => (unit.len() * times, lines(unit) * times),
            Self::Middle(text) => (text.chars().count(), memchr::memchr_iter(b'\n', text.as_bytes()).count()),
        }
    }
}

/// The parts of a text from [`escape_ends`]; `true` marks a note.
pub fn noted(mut shown: &str) -> impl Iterator<Item = (bool, &str)> {
    std::iter::from_fn(move || {
        let is_note = shown.starts_with('⟨');
        let end = match is_note {
            true => shown.find('⟩').map(|at| at + '⟩'.len_utf8()),
            false => shown.find('⟨'),
        };
        let (part, rest) = shown.split_at_checked(end.unwrap_or(shown.len()))?;
        shown = rest;
        (!part.is_empty()).then_some((is_note, part))
    })
}

fn lines(chars: &[char]) -> usize {
    chars.iter().filter(|c| **c == '\n').count()
}

/// The number of pieces that fit into `columns_max` columns.
fn fitting<'a>(pieces: impl Iterator<Item = &'a Piece<'a>>, columns_max: usize) -> usize {
    let (mut columns, mut marks, mut shown) = (0, 0, String::new());
    pieces
        .take_while(|piece| !matches!(piece, Piece::Middle(_)))
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

fn with_counted_padding(chars: &[char]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = chars;
    while let Some(first) = rest.first() {
        let blanks = rest.iter().take_while(|c| c.is_whitespace()).count();
        let (piece, length) = if blanks > PADDING_MAX {
            (Piece::Blanks(&rest[..blanks]), blanks)
        } else if let Some((unit, times)) = repeated(rest) {
            (Piece::Repeated(&rest[..unit], times), unit * times)
        } else {
            (Piece::Char(*first), 1)
        };
        pieces.push(piece);
        rest = &rest[length..];
    }
    pieces
}

/// The length of the unit that is repeated at the start, and the number of its repetitions.
fn repeated(chars: &[char]) -> Option<(usize, usize)> {
    (1..=UNIT_MAX.min(chars.len())).find_map(|unit| {
        let same = chars.iter().zip(&chars[unit..]).take_while(|(a, b)| a == b).count();
        let times = same / unit + 1;
        (times > 2 && unit * times > PADDING_MAX).then_some((unit, times))
    })
}

fn spelled(pieces: &[Piece<'_>]) -> String {
    let mut line = String::new();
    pieces.iter().for_each(|piece| piece.push(&mut line));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text in which nothing is repeated.
    fn varied(words: usize) -> String {
        (0..words).map(|n| format!("w{n} ")).collect()
    }

    /// The number at the start of a note's part.
    fn number(text: &str) -> Option<usize> {
        text.chars()
            .take_while(|c| c.is_ascii_digit() || *c == ' ')
            .filter(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .ok()
    }

    #[test]
    fn padding_hides_neither_the_beginning_nor_the_end() {
        let fill = varied(300);
        for text in [format!("{fill};EVIL"), format!("EVIL;{fill}"), format!(": {fill}\n{fill};EVIL")] {
            let shown = escape_ends(&text, 400);
            assert!(shown.contains("EVIL") && shown.contains(" characters"), "{shown}");
            assert!(shown.chars().count() <= 400, "{shown}");
        }
        assert_eq!(escape_ends("ls", 400), "ls");
        assert_eq!(escape_ends("a ⟨… +9 characters⟩ b", 400), "a ⟨27E8⟩… +9 characters⟨27E9⟩ b", "it is not a note");
        let lines: String = (0..1_000).map(|n| format!("echo {n}\n")).collect();
        let lines = escape_ends(&lines, 100);
        assert!(lines.starts_with("echo 0\\necho 1") && lines.ends_with("echo 999\\n"), "{lines}");
        let (_, count) = lines.split_once("⟨… +").unwrap();
        let numbers: Vec<usize> = count.split(", ").filter_map(number).collect();
        assert!(numbers[0] > 8_000 && numbers[1] > 980, "{lines}");
    }

    #[test]
    fn notes_are_told_from_the_text() {
        let parts: Vec<(bool, &str)> = noted("cargo ⟨… +9 characters⟩ x⟨×30⟩").collect();
        assert_eq!(parts, [(false, "cargo "), (true, "⟨… +9 characters⟩"), (false, " x"), (true, "⟨×30⟩")]);
        assert_eq!(noted("").count() + noted("⟨").count(), 1);
    }

    #[test]
    fn blanks_and_repetitions_are_counted_where_a_text_is_too_long() {
        for (before, shown) in [
            (" ".repeat(900), " ⟨900 blanks⟩ "),
            (" \t\n".repeat(300), " ⟨900 blanks, 300 line feeds among them⟩ "),
            ("x".repeat(500), "x⟨×500⟩"),
            (": -".repeat(200), ": -⟨×200⟩"),
            ("# a comment\n".repeat(99), "# a comment\\n⟨×99⟩"),
        ] {
            let text = format!("true;{before}EVIL;{before}true");
            assert_eq!(escape_ends(&text, 400), format!("true;{shown}EVIL;{shown}true"));
        }
        assert_eq!(escape_ends(&"x".repeat(60), 60), "x".repeat(60), "what fits is shown as it is");
    }

    #[test]
    fn the_count_and_the_shown_parts_are_the_whole() {
        for columns in [0, 1, 60, 80, 400] {
            let text = varied(500);
            let shown = escape_ends(&text, columns);
            let (head, rest) = shown.split_once(" ⟨… +").unwrap();
            let (count, tail) = rest.split_once(" characters⟩ ").unwrap();
            let count = number(count).unwrap();
            assert_eq!(head.chars().count() + count + tail.chars().count(), text.len(), "{columns}");
            assert!(text.starts_with(head) && text.ends_with(tail));
        }
        for text in [varied(30_000), "ä\n€".repeat(30_000), format!("{}{}", "x".repeat(90_000), varied(9_000))] {
            let shown = escape_ends(&text, 400);
            assert!(shown.chars().count() <= 400, "{shown}");
            let note = shown.split_once(" ⟨… +").unwrap().1.split_once('⟩').unwrap().0;
            let numbers: Vec<usize> = note.split(", ").filter_map(number).collect();
            let (chars, lines) = (text.chars().count(), text.matches('\n').count());
            assert!(numbers[0] <= chars && numbers[0] + 2 * END_BYTES > chars, "{shown}");
            assert!(lines == 0 || (numbers[1] <= lines && numbers[1] + 2 * END_BYTES > lines), "{shown}");
        }
        let marks: String =
            (0..9_999).flat_map(|n| [char::from(b'a' + u8::try_from(n % 26).unwrap()), '\u{301}', '\u{302}']).collect();
        assert!(escape_ends(&marks, 400).len() < 3_000);
    }
}
