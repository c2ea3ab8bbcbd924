//! `[[ … ]]`.

use super::words::WordMode;
use super::{ReadStep, ShellText};
use crate::script::tree::{Problem, ShellWord, StageKind};

/// The letters of operators with one word.
const UNARY: &[u8] = b"abcdefghknoprstuvwxzGLNORS";
/// The operators between two words.
const BINARY: [&[u8]; 13] =
    [b"=", b"==", b"!=", b"=~", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot", b"-ef"];

impl ShellText<'_> {
    pub(super) fn test(&mut self) -> ReadStep<StageKind> {
        let mut words = Vec::new();
        self.conditions(&mut words)?;
        self.expect_keyword("]]")?;
        Ok(StageKind::Test(words))
    }

    /// Conditions joined by `&&` and `||`.
    fn conditions(&mut self, words: &mut Vec<ShellWord>) -> ReadStep<()> {
        loop {
            self.condition(words)?;
            if !self.take(b"&&") && !self.take(b"||") {
                return Ok(());
            }
        }
    }

    fn condition(&mut self, words: &mut Vec<ShellWord>) -> ReadStep<()> {
        self.newlines()?;
        while self.take_keyword("!") {
            self.newlines()?;
        }
        if self.take(b"(") {
            self.deeper(|text| text.conditions(words))?;
            self.expect(b")")?;
            return self.newlines();
        }
        if matches!(self.keyword(), Some(("]]", _))) {
            return Err(Problem::Syntax);
        }
        let first = self.word()?.ok_or(Problem::Syntax)?;
        self.blanks();
        let is_unary = matches!(first.bare(), Some([b'-', letter]) if UNARY.contains(letter));
        let is_binary = !self.ends_condition() && (!is_unary || self.is_binary());
        words.push(first);
        if is_unary && !is_binary {
            words.push(self.word()?.ok_or(Problem::Syntax)?);
            self.newlines()?;
        } else if is_binary {
            let mode = self.operator()?;
            self.blanks();
            words.push(self.word_in(mode)?.ok_or(Problem::Syntax)?);
            self.newlines()?;
        }
        self.blanks();
        Ok(())
    }

    /// Returns true if no operator follows the first word.
    fn ends_condition(&mut self) -> bool {
        matches!(self.peek(), None | Some(b'&' | b'|' | b')')) || matches!(self.keyword(), Some(("]]", _)))
    }

    /// Returns true if a binary operator follows: then `-f` in `[[ -f = x ]]` is a plain word.
    fn is_binary(&mut self) -> bool {
        BINARY.iter().any(|operator| self.starts(operator).is_some_and(|end| self.is_end_of_word(end)))
    }

    /// Takes an operator between two words; returns the mode of the second one.
    fn operator(&mut self) -> ReadStep<WordMode> {
        if self.take(b"<") || self.take(b">") {
            return Ok(WordMode::Plain);
        }
        let operator = self.word()?.ok_or(Problem::Syntax)?;
        match operator.bare() {
            Some(b"=~") => Ok(WordMode::Expression),
            Some(b"=" | b"==" | b"!=") => Ok(WordMode::Pattern),
            Some(other) if BINARY.contains(&other) => Ok(WordMode::Plain),
            _ => Err(Problem::Syntax),
        }
    }
}
