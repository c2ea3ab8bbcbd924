//! The place of the reading: bytes, blanks, comments, newlines and keywords.

use std::rc::Rc;

use super::{BEGINS_KEYWORD, KEYWORDS, PendingDocument, ReadStep, ShellText};
use crate::script::tree::{Code, List, Problem, Quoting, ShellWord, WordPart};

/// Returns true if a word ends before this byte.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// The number of bytes before the first one of this kind, or before the end.
pub(super) fn length_before(wanted: u8, bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == wanted).unwrap_or(bytes.len())
}

impl ShellText<'_> {
    /// The position after backslashes that newlines follow.
    fn joined(&mut self, mut at: usize) -> usize {
        while self.text.get(at) == Some(&b'\\') && self.text.get(at + 1) == Some(&b'\n') {
            at += 2;
            self.budget.steps += 2;
        }
        at
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        self.at = self.joined(self.at);
        self.budget.steps += 1;
        self.text.get(self.at).copied()
    }

    pub(super) fn bump(&mut self) {
        self.at += 1;
    }

    /// Takes the next bytes up to the first that is not of these. The next one must have been looked at: it may be behind a
    /// joined line.
    pub(super) fn take_while(&mut self, is_one: impl Fn(u8) -> bool) -> &[u8] {
        let begin = self.at;
        let length = self.text[begin..].iter().take_while(|byte| is_one(**byte)).count();
        self.budget.steps += length as u64;
        self.at += length;
        &self.text[begin..begin + length]
    }

    /// The position after these bytes, if they come next.
    pub(super) fn starts(&mut self, wanted: &[u8]) -> Option<usize> {
        let mut at = self.at;
        for byte in wanted {
            at = self.joined(at);
            self.budget.steps += 1;
            if self.text.get(at) != Some(byte) {
                return None;
            }
            at += 1;
        }
        Some(at)
    }

    pub(super) fn take(&mut self, wanted: &[u8]) -> bool {
        match self.starts(wanted) {
            Some(end) => {
                self.at = end;
                true
            }
            None => false,
        }
    }

    pub(super) fn expect(&mut self, wanted: &[u8]) -> ReadStep<()> {
        self.blanks();
        if self.take(wanted) { Ok(()) } else { Err(Problem::Syntax) }
    }

    pub(super) fn is_end_of_word(&mut self, at: usize) -> bool {
        let at = self.joined(at);
        self.text.get(at).is_none_or(|byte| is_meta(*byte))
    }

    /// Skips blanks, and a comment. The place must be between two words.
    pub(super) fn blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.bump(),
                b'#' => {
                    let rest = &self.text[self.at..];
                    let length = length_before(b'\n', rest);
                    self.budget.steps += length as u64;
                    self.at += length;
                    // A backslash at a comment's end continues nothing.
                    return;
                }
                _ => return,
            }
        }
    }

    /// Skips blanks, comments and newlines.
    pub(super) fn newlines(&mut self) -> ReadStep<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Takes a newline, and the here-documents after it.
    pub(super) fn newline(&mut self) -> ReadStep<()> {
        self.bump();
        for document in std::mem::take(&mut self.pending) {
            self.document(&document)?;
        }
        Ok(())
    }

    /// The next keyword, and the position after it.
    pub(super) fn keyword(&mut self) -> Option<(&'static str, usize)> {
        let first = self.peek().filter(|first| BEGINS_KEYWORD[usize::from(*first)])?;
        let found = KEYWORDS.iter().filter(|word| word.as_bytes()[0] == first);
        found.copied().find_map(|word| {
            let end = self.starts(word.as_bytes())?;
            self.is_end_of_word(end).then_some((word, end))
        })
    }

    pub(super) fn take_keyword(&mut self, wanted: &str) -> bool {
        self.blanks();
        match self.keyword() {
            Some((word, end)) if word == wanted => {
                self.at = end;
                true
            }
            _ => false,
        }
    }

    pub(super) fn expect_keyword(&mut self, wanted: &str) -> ReadStep<()> {
        if self.take_keyword(wanted) { Ok(()) } else { Err(Problem::Syntax) }
    }

    /// The lines of a here-document, up to its end word or the end of the text.
    fn document(&mut self, document: &PendingDocument) -> ReadStep<()> {
        let mut body = Vec::new();
        let mut continues = false;
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let line = &rest[..length_before(b'\n', rest)];
            let tabs = line.iter().take_while(|byte| document.strips_tabs && **byte == b'\t').count();
            let bare = &line[tabs..];
            self.budget.steps += line.len() as u64 + 1;
            if !continues && bare == document.end {
                self.at = (self.at + line.len() + 1).min(self.text.len());
                break;
            }
            let closes = self.in_substitution && !continues && bare.starts_with(&document.end);
            if closes && bare[document.end.len()..].contains(&b')') {
                self.at += tabs + document.end.len();
                break;
            }
            body.extend_from_slice(bare);
            body.push(b'\n');
            let slashes = bare.iter().rev().take_while(|byte| **byte == b'\\').count();
            continues = !document.is_quoted && slashes % 2 == 1;
            self.at = (self.at + line.len() + 1).min(self.text.len());
        }
        let word = if document.is_quoted {
            ShellWord { parts: vec![WordPart::Literal { bytes: body, quoting: Quoting::Quoted }] }
        } else {
            // bash reads it when the command runs: an error in it is one of that command.
            let parts = self.within(&body, |text| text.expanded(None));
            let unread = |problem| WordPart::Substitution {
                code: Rc::new(Code { list: List::new(), problem: Some(problem) }),
                quoting: Quoting::Quoted,
            };
            ShellWord { parts: parts.unwrap_or_else(|problem| vec![unread(problem)]) }
        };
        // Each here-document comes once.
        let _ = document.body.set(word);
        Ok(())
    }
}
