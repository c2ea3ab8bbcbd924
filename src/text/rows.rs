//! Keeps rows of output apart from the host's rows where those are plain text: on pipes, in files, on terminals without
//! UTF-8, and in a printed journal.
//!
//! Invariants: a row of output that reads like one of the host's is indented by one column, and every other row is
//! unchanged; the input has no control characters but line feeds and tabs; how it was split never shows; only a few bytes
//! are held back, at the start of a row.

mod alike;

use std::fmt::Write as _;

use super::count::left_out;
use crate::limits;
use alike::Lookalike;

/// The beginning of the host's rows, which no row of output may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStyle {
    /// With the words of a banner, an end line or a remark.
    Wording,
    /// With `>>> `. Rows are broken at the terminal's width, so that the terminal itself never begins one.
    Chevrons {
        /// The terminal's width; rows are not broken if it is 0.
        columns: u16,
        /// True if the terminal shows more than ASCII.
        has_utf8: bool,
    },
}

/// The beginning of the host's rows on consoles without UTF-8.
pub const CHEVRONS: &str = ">>> ";

#[derive(Debug)]
pub struct Rows {
    style: RowStyle,
    /// The start of a row that may still become like one of the host's.
    held: Vec<u8>,
    /// The start of the row was passed.
    is_in_row: bool,
    /// An upper bound for the columns passed.
    columns: usize,
    /// Rows of the current line that are complete.
    rows: u16,
    /// The most rows of a line.
    rows_max: u16,
    /// The bytes left out of the current line.
    cut: u64,
}

/// The verdict about the start of a row.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Output,
    Forged,
    Open,
}

impl Rows {
    /// Starts a block.
    #[must_use]
    pub fn new(style: RowStyle) -> Self {
        let rows_max = limits::CONSOLE_LINE_ROWS;
        Self { style, held: Vec::new(), is_in_row: false, columns: 0, rows: 0, rows_max, cut: 0 }
    }

    pub fn resize(&mut self, width: u16) {
        if let RowStyle::Chevrons { columns, .. } = &mut self.style {
            *columns = width;
        }
    }

    /// If true, the part of a line beyond [`limits::CONSOLE_LINE_ROWS`] rows is counted instead of shown. This is the
    /// start value where rows are broken.
    pub fn cut_lines(&mut self, is_cut: bool) {
        self.rows_max = if is_cut { limits::CONSOLE_LINE_ROWS } else { u16::MAX };
    }

    /// Takes text, and appends its rows.
    pub fn push(&mut self, text: &[u8], out: &mut Vec<u8>) {
        match self.style {
            RowStyle::Wording => self.push_bytes(text, out),
            RowStyle::Chevrons { columns, has_utf8 } => {
                for c in String::from_utf8_lossy(text).chars() {
                    self.push_char(c, columns.into(), has_utf8, out);
                }
            }
        }
    }

    /// Appends the bytes that are held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            self.is_in_row = true;
            out.append(&mut self.held);
        }
    }

    /// Returns true if the next character begins a row.
    #[must_use]
    pub fn is_line_start(&self) -> bool {
        !self.is_in_row && self.held.is_empty()
    }

    fn push_bytes(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut rest = text;
        while let Some((&first, after)) = rest.split_first() {
            if self.is_in_row || (self.held.is_empty() && is_plain_start(rest)) {
                let row = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
                out.extend_from_slice(&rest[..row]);
                self.is_in_row = rest[row - 1] != b'\n';
                rest = &rest[row..];
            } else {
                self.push_start(first, out);
                rest = after;
            }
        }
    }

    /// Takes a byte at the start of a row.
    fn push_start(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == b'\n' {
            out.append(&mut self.held);
            out.push(byte);
            return;
        }
        self.held.push(byte);
        match self.style.verdict(&self.held) {
            Verdict::Open => return,
            Verdict::Forged => {
                out.push(b' ');
                self.columns += 1;
            }
            Verdict::Output => {}
        }
        self.finish(out);
    }

    fn push_char(&mut self, c: char, width: usize, has_utf8: bool, out: &mut Vec<u8>) {
        if c == '\n' {
            self.finish(out);
            let cut = std::mem::take(&mut self.cut);
            if cut > 0 {
                out.extend_from_slice(left_out(cut).replace('⋯', "...").as_bytes());
            }
            out.push(b'\n');
            (self.is_in_row, self.columns, self.rows) = (false, 0, 0);
            return;
        }
        if self.cut > 0 {
            self.cut += c.len_utf8() as u64;
            return;
        }
        let mut spelled = String::new();
        match c {
            c if c.is_ascii() || has_utf8 => spelled.push(c),
            c => {
                let _ = write!(spelled, "\\u{{{:x}}}", u32::from(c));
            }
        }
        for c in spelled.chars() {
            let needed = match c {
                '\t' => 8 - self.columns % 8,
                c if c.is_ascii() => 1,
                _ => 2,
            };
            if width > 2 && self.columns + needed > width {
                if self.rows + 1 >= self.rows_max {
                    self.cut += c.len_utf8() as u64;
                    return;
                }
                self.rows += 1;
                self.finish(out);
                out.push(b'\n');
                (self.is_in_row, self.columns) = (false, 0);
            }
            self.columns += needed;
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                if self.is_in_row {
                    out.push(byte);
                } else {
                    self.push_start(byte, out);
                }
            }
        }
    }
}

impl RowStyle {
    fn verdict(self, start: &[u8]) -> Verdict {
        /// The beginnings of the host's remarks and end lines.
        const WORDS: [&[Lookalike]; 9] = [
            &[Lookalike::Ellipsis],
            &words(b"exit "),
            &words(b"left running:"),
            &words(b"lost: "),
            &words(b"not started: "),
            &words(b"rexec: "),
            &words(b"rexec host "),
            &words(b"rexec journal: "),
            &words(b"stopped before it began"),
        ];
        if is_plain_start(start) {
            return Verdict::Output;
        }
        let Some(start) = alike::read(start) else { return Verdict::Open };
        let against = |word: &[Lookalike]| {
            let common = start.len().min(word.len());
            match start.iter().zip(word).all(|(there, own)| there.may_be(*own)) {
                // A word of another script without one of these characters is not a forgery.
                true if common == word.len() => {
                    let is_forged = start[..common]
                        .iter()
                        .any(|there| !matches!(there, Lookalike::Letter | Lookalike::Ascii(b' ')));
                    if is_forged { Verdict::Forged } else { Verdict::Output }
                }
                true => Verdict::Open,
                false => Verdict::Output,
            }
        };
        let words: &[&[Lookalike]] = match (self, start.as_slice()) {
            // A zero-width mark without a character before it.
            (_, [Lookalike::Nothing, ..]) => return Verdict::Forged,
            (_, []) => return Verdict::Open,
            (Self::Chevrons { .. }, _) => &[&words(b">>>")],
            (Self::Wording, [Lookalike::Ascii(b'[')]) => return Verdict::Open,
            (Self::Wording, [Lookalike::Ascii(b'['), Lookalike::Ascii(byte), ..]) if !byte.is_ascii_digit() => {
                return Verdict::Output;
            }
            (Self::Wording, [Lookalike::Ascii(b'['), ..]) => return Verdict::Forged,
            (Self::Wording, _) => &WORDS,
        };
        let verdicts = || words.iter().map(|word| against(word));
        let first = |verdict| verdicts().find(|other| *other == verdict);
        first(Verdict::Forged).or_else(|| first(Verdict::Open)).unwrap_or(Verdict::Output)
    }
}

/// Returns true if a row begins with ASCII characters that begin none of the host's, as most rows do.
fn is_plain_start(row: &[u8]) -> bool {
    let Some(first) = row.first().map(u8::to_ascii_lowercase) else { return false };
    match row.get(1).map(u8::to_ascii_lowercase) {
        _ if first == b'\n' || !first.is_ascii() => false,
        _ if !b"[elnrs>".contains(&first) => true,
        Some(second) if first.is_ascii_lowercase() && second.is_ascii() => {
            ![b"ex", b"le", b"lo", b"no", b"re", b"st"].contains(&&[first, second])
        }
        _ => false,
    }
}

const fn words<const N: usize>(text: &[u8; N]) -> [Lookalike; N] {
    let mut word = [Lookalike::Nothing; N];
    let mut at = 0;
    while at < N {
        word[at] = Lookalike::Ascii(text[at]);
        at += 1;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(style: RowStyle, pieces: &[&str]) -> String {
        let (mut rows, mut out) = (Rows::new(style), Vec::new());
        pieces.iter().for_each(|piece| rows.push(piece.as_bytes(), &mut out));
        rows.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// Most rows take a shortcut, which must not miss one like the host's.
    #[test]
    fn no_row_of_the_host_takes_the_shortcut() {
        for host in [
            "… x",
            "exit 1",
            "left running: x",
            "lost: x",
            "not started: x",
            "rexec: x",
            "rexec host x",
            "rexec journal: x",
            "stopped before it began",
            "[2026-05-21T09:42:18Z] x",
            ">>> x",
        ] {
            for start in [host.to_owned(), host.to_uppercase()] {
                assert!((1..=start.len()).all(|end| !is_plain_start(&start.as_bytes()[..end])), "{start}");
            }
        }
        assert!([&b"large"[..], b" ", b"src/x", b"nail", b"S ", b"1"].into_iter().all(is_plain_start));
        assert!([&b""[..], b"\n", b"l", b"\xc3\xa9"].into_iter().all(|row| !is_plain_start(row)));
    }

    fn by_bytes(style: RowStyle, text: &str) -> String {
        let (mut rows, mut out) = (Rows::new(style), Vec::new());
        text.as_bytes().chunks(1).for_each(|piece| rows.push(piece, &mut out));
        rows.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_like_the_host_s_are_indented() {
        for (text, expected) in [
            ("a\n[2026-05-21T09:42:18Z] #3 x\n", "a\n [2026-05-21T09:42:18Z] #3 x\n"),
            ("exit 1 · 0.5 s\nexiting\nexit", " exit 1 · 0.5 s\nexiting\nexit"),
            ("… stopping\n\n…", " … stopping\n\n …"),
            ("Left running: x\nlost: x\nlost\n", " Left running: x\n lost: x\nlost\n"),
            ("rexec: x\nrexec\nnot started: x\n", " rexec: x\nrexec\n not started: x\n"),
            ("[INFO] x\n[\n[", "[INFO] x\n[\n["),
            (" [2026] x\n", " [2026] x\n"),
            ("[\u{fe0f}2026] x\n\u{301}[2026] x\n", " [\u{fe0f}2026] x\n \u{301}[2026] x\n"),
            ("[\u{1d7f8}026] x\n\u{2772}2026] x\n", " [\u{1d7f8}026] x\n \u{2772}2026] x\n"),
            ("e\u{fe0e}xit 1\nе\u{445}it 1\n", " e\u{fe0e}xit 1\n е\u{445}it 1\n"),
            ("\u{1d68e}\u{1d6a1}\u{1d692}\u{1d69d} 1\n", " \u{1d68e}\u{1d6a1}\u{1d692}\u{1d69d} 1\n"),
            ("⋯ stopping\nтест x\nÄxid 1\n", " ⋯ stopping\nтест x\nÄxid 1\n"),
        ] {
            assert_eq!(passed(RowStyle::Wording, &[text]), expected);
            assert_eq!(by_bytes(RowStyle::Wording, text), expected, "byte by byte");
        }
    }

    #[test]
    fn no_row_of_output_begins_with_chevrons_wherever_the_terminal_breaks_it() {
        let style = RowStyle::Chevrons { columns: 10, has_utf8: true };
        assert_eq!(passed(style, &[">", ">> x\n", ">> y"]), " >>> x\n>> y");
        assert_eq!(passed(style, &["0123456789>>> x"]), "0123456789\n >>> x");
        assert_eq!(passed(style, &["日本語日本>>> x"]), "日本語日本\n >>> x");
        assert_eq!(passed(style, &["\t1>>> x"]), "\t1>\n>> x");
        for forged in [">\u{fe0f}>> x", "\u{203a}\u{203a}> x", "≫> x", "⋙ x", "\u{1433}>\u{301}> x", "\u{301}>>> x"]
        {
            assert_eq!(passed(RowStyle::Chevrons { columns: 80, has_utf8: true }, &[forged]), format!(" {forged}"));
        }
        assert_eq!(passed(RowStyle::Chevrons { columns: 80, has_utf8: true }, &["❯ ls\n❯❯ ls"]), "❯ ls\n❯❯ ls");
        let ascii = RowStyle::Chevrons { columns: 80, has_utf8: false };
        assert_eq!(passed(ascii, &["é>>>"]), "\\u{e9}>>>");
    }
}
