//! Words: quotes, patterns, assignments.

use super::cursor::{is_meta, length_before};
use super::{ReadStep, ShellText, push_rare};
use crate::limits;
use crate::script::tree::{Direction, NewValue, Problem, Quoting, ShellWord, ValueKind, WordPart};

/// The kind of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordMode {
    Plain,
    /// A word that may be an assignment.
    Assignable,
    /// The right side of `==` in `[[`, where `@(a|b)` is a pattern.
    Pattern,
    /// The right side of `=~`, where parentheses and bars belong to the word.
    Expression,
}

/// A word of a simple command.
#[derive(Debug)]
pub(super) enum CommandPart {
    Word(ShellWord),
    Assignment(NewValue),
}

#[derive(Debug, Default)]
pub(super) struct WordBuilder {
    parts: Vec<WordPart>,
    run: Vec<u8>,
    is_quoted: bool,
}

impl WordBuilder {
    pub(super) fn push(&mut self, byte: u8, quoting: Quoting) {
        self.extend(&[byte], quoting);
    }

    pub(super) fn extend(&mut self, bytes: &[u8], quoting: Quoting) {
        let is_quoted = quoting == Quoting::Quoted;
        if is_quoted != self.is_quoted {
            self.flush();
            self.is_quoted = is_quoted;
        }
        self.run.extend_from_slice(bytes);
    }

    pub(super) fn part(&mut self, part: WordPart) {
        self.flush();
        push_rare(&mut self.parts, part);
    }

    fn parts(&mut self, parts: Vec<WordPart>) {
        self.flush();
        if self.parts.is_empty() {
            self.parts = parts;
        } else {
            self.parts.extend(parts);
        }
    }

    fn flush(&mut self) {
        if !self.run.is_empty() {
            let bytes = std::mem::take(&mut self.run);
            let quoting = if self.is_quoted { Quoting::Quoted } else { Quoting::Unquoted };
            push_rare(&mut self.parts, WordPart::Literal { bytes, quoting });
        }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.run.is_empty()
    }

    /// Returns true if all of it could be the name of a variable.
    fn is_name(&self) -> bool {
        self.parts.is_empty() && !self.is_quoted && is_name(&self.run)
    }

    pub(super) fn into_parts(mut self) -> Vec<WordPart> {
        self.flush();
        self.parts
    }

    /// The word. Unquoted `*`, `[…]` and `{a,b}` in it are patterns.
    pub(super) fn finish(self) -> ShellWord {
        let mut parts = self.into_parts();
        let unquoted = parts.iter().filter_map(|part| match part {
            WordPart::Literal { bytes, quoting: Quoting::Unquoted } => Some(&bytes[..]),
            _ => None,
        });
        let mut unquoted = unquoted.flatten().copied();
        if !unquoted.clone().any(|byte| matches!(byte, b'*' | b'?' | b'[' | b'{')) {
            return ShellWord { parts };
        }
        let special = special_bytes(&mut unquoted);
        if special.is_empty() {
            return ShellWord { parts };
        }
        for part in &mut parts {
            if let WordPart::Literal { bytes, quoting: Quoting::Unquoted } = part
                && bytes.iter().any(|byte| special.contains(byte))
            {
                *part = WordPart::Pattern(std::mem::take(bytes));
            }
        }
        ShellWord { parts }
    }
}

/// The bytes that make patterns of their parts.
fn special_bytes(unquoted: impl Iterator<Item = u8>) -> Vec<u8> {
    let mut special = Vec::new();
    let mut bracket = false;
    let mut brace = false;
    let mut parts_brace = false;
    let mut dot = false;
    for byte in unquoted {
        match byte {
            b'*' | b'?' if !special.contains(&byte) => special.push(byte),
            b'[' => bracket = true,
            b']' if bracket => special.push(b'['),
            b'{' => brace = true,
            b',' => parts_brace |= brace,
            b'.' if dot => parts_brace |= brace,
            b'}' if parts_brace => special.push(b'{'),
            _ => {}
        }
        dot = byte == b'.';
        if special.len() > 8 {
            break;
        }
    }
    special
}

/// Returns true if a byte means itself wherever it stands in a word.
fn is_ordinary(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'-' | b'_')
}

/// Returns true if a byte may stand in the name of a variable.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns true if these bytes are the name of a variable.
pub(super) fn is_name(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
        && bytes.iter().all(|byte| is_name_byte(*byte))
}

/// The part of an assignment before its value.
#[derive(Debug)]
struct AssignmentHead {
    name: Vec<u8>,
    kind: ValueKind,
    subscript: Option<ShellWord>,
}

impl ShellText<'_> {
    /// The next word, if one follows.
    pub(super) fn word(&mut self) -> ReadStep<Option<ShellWord>> {
        self.word_in(WordMode::Plain)
    }

    pub(super) fn word_in(&mut self, mode: WordMode) -> ReadStep<Option<ShellWord>> {
        let mut word = WordBuilder::default();
        self.fill(&mut word, mode, &mut None)?;
        if word.is_empty() { Ok(None) } else { Ok(Some(word.finish())) }
    }

    /// The next word of a simple command, which may be an assignment.
    pub(super) fn command_word(&mut self, takes_assignments: bool) -> ReadStep<Option<CommandPart>> {
        if !takes_assignments {
            return Ok(self.word()?.map(CommandPart::Word));
        }
        let mut word = WordBuilder::default();
        let mut head = None;
        self.fill(&mut word, WordMode::Assignable, &mut head)?;
        let Some(AssignmentHead { name, mut kind, subscript }) = head else {
            return Ok(if word.is_empty() { None } else { Some(CommandPart::Word(word.finish())) });
        };
        let mut words: Vec<ShellWord> = subscript.into_iter().collect();
        if word.is_empty() && self.peek() == Some(b'(') {
            kind = ValueKind::Array;
            self.bump();
            self.array(&mut words)?;
            words.extend(self.word()?);
        } else {
            words.push(ShellWord { parts: word.into_parts() });
        }
        Ok(Some(CommandPart::Assignment(NewValue { name, kind, words })))
    }

    /// The values of an array, and the parenthesis after them.
    fn array(&mut self, words: &mut Vec<ShellWord>) -> ReadStep<()> {
        loop {
            self.newlines()?;
            if self.take(b")") {
                return Ok(());
            }
            words.push(self.word()?.ok_or(Problem::Syntax)?);
        }
    }

    /// Reads the parts of a word. With [`WordMode::Assignable`], the text before the value becomes the head.
    fn fill(&mut self, word: &mut WordBuilder, mode: WordMode, head: &mut Option<AssignmentHead>) -> ReadStep<()> {
        self.count_part()?;
        while let Some(byte) = self.peek() {
            let may_be_head = mode == WordMode::Assignable && head.is_none();
            match byte {
                b'<' | b'>' if self.is_process() => self.process(word)?,
                b'(' if mode == WordMode::Expression || self.begins_pattern(word, mode) => self.parentheses(word)?,
                b'|' if mode == WordMode::Expression => self.plain(word, byte),
                _ if is_meta(byte) => break,
                b'\\' => {
                    self.bump();
                    let escaped = self.text.get(self.at).copied();
                    word.push(escaped.unwrap_or(b'\\'), Quoting::Quoted);
                    self.at = (self.at + 1).min(self.text.len());
                }
                b'\'' => self.single_quoted(word)?,
                b'"' => self.double_quoted(word)?,
                b'$' | b'`' => self.expansion(word, Quoting::Unquoted)?,
                b'[' if may_be_head && word.is_name() => *head = self.subscript(word)?,
                b'=' if may_be_head => self.equals(word, head),
                b'~' if word.is_empty() || (head.is_some() && word.run.last() == Some(&b':')) => self.tilde(word),
                _ if is_ordinary(byte) => self.ordinary(word),
                _ => self.plain(word, byte),
            }
        }
        Ok(())
    }

    /// Takes the bytes up to the next one that may mean something.
    fn ordinary(&mut self, word: &mut WordBuilder) {
        word.extend(self.take_while(is_ordinary), Quoting::Unquoted);
    }

    fn plain(&mut self, word: &mut WordBuilder, byte: u8) {
        self.bump();
        word.push(byte, Quoting::Unquoted);
    }

    /// `=`, which ends an assignment's name.
    fn equals(&mut self, word: &mut WordBuilder, head: &mut Option<AssignmentHead>) {
        let (name, kind) = match word.run.strip_suffix(b"+") {
            Some(name) => (name, ValueKind::Appended),
            None => (&word.run[..], ValueKind::Whole),
        };
        if word.parts.is_empty() && !word.is_quoted && is_name(name) {
            *head = Some(AssignmentHead { name: name.to_vec(), kind, subscript: None });
            word.run.clear();
            self.bump();
        } else {
            self.plain(word, b'=');
        }
    }

    /// `[…]` after a name. Without a following `=`, it is part of a word.
    fn subscript(&mut self, word: &mut WordBuilder) -> ReadStep<Option<AssignmentHead>> {
        let start = self.at + 1;
        let end = self.matching(start, b']')?;
        let inner = &self.text[start..end];
        let subscript = ShellWord { parts: self.within(inner, |text| text.expanded(None))? };
        let begin = self.at;
        self.at = end + 1;
        if self.take(b"+=") || self.take(b"=") {
            let name = std::mem::take(&mut word.run);
            return Ok(Some(AssignmentHead { name, kind: ValueKind::Array, subscript: Some(subscript) }));
        }
        let written = self.text[begin..=end].to_vec();
        word.part(WordPart::Pattern(written));
        subscript.parts.into_iter().filter(|part| !matches!(part, WordPart::Literal { .. })).for_each(|p| word.part(p));
        Ok(None)
    }

    /// Returns true if a parenthesis belongs to `@(…)` or one of its like.
    fn begins_pattern(&self, word: &WordBuilder, mode: WordMode) -> bool {
        let is_on = self.patterns || mode == WordMode::Pattern;
        is_on && !word.is_quoted && matches!(word.run.last(), Some(b'?' | b'*' | b'+' | b'@' | b'!'))
    }

    /// `(…)` as part of a pattern. Its expansions stay among the word's parts.
    fn parentheses(&mut self, word: &mut WordBuilder) -> ReadStep<()> {
        let start = self.at + 1;
        let end = self.matching(start, b')')?;
        let inner = &self.text[start..end];
        let parts = self.within(inner, |text| text.expanded(None))?;
        let written = self.text[start - 1..=end].to_vec();
        word.part(WordPart::Pattern(written));
        parts.into_iter().filter(|part| !matches!(part, WordPart::Literal { .. })).for_each(|part| word.part(part));
        self.at = end + 1;
        Ok(())
    }

    pub(super) fn single_quoted(&mut self, word: &mut WordBuilder) -> ReadStep<()> {
        let bytes = self.raw_quoted()?.to_vec();
        word.part(WordPart::Literal { bytes, quoting: Quoting::Quoted });
        Ok(())
    }

    /// Takes `'…'`; returns the text between the quotes.
    pub(super) fn raw_quoted(&mut self) -> ReadStep<&[u8]> {
        let start = self.at + 1;
        let length = length_before(b'\'', &self.text[start..]);
        self.budget.steps += length as u64;
        self.at = start + length + 1;
        if self.at > self.text.len() { Err(Problem::Syntax) } else { Ok(&self.text[start..start + length]) }
    }

    pub(super) fn double_quoted(&mut self, word: &mut WordBuilder) -> ReadStep<()> {
        self.bump();
        let parts = self.expanded(Some(b'"'))?;
        if parts.is_empty() {
            word.part(WordPart::Literal { bytes: Vec::new(), quoting: Quoting::Quoted });
        } else {
            word.parts(parts);
        }
        Ok(())
    }

    /// `~` and `~name` in front of a slash or the end.
    fn tilde(&mut self, word: &mut WordBuilder) {
        let rest = &self.text[self.at + 1..self.text.len().min(self.at + 1 + limits::SCRIPT_LOOKAHEAD_BYTES)];
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(byte);
        let length = rest.iter().take_while(is_part).count();
        self.budget.steps += length as u64;
        if rest.get(length).is_none_or(|byte| is_meta(*byte) || matches!(byte, b'/' | b':')) {
            word.part(WordPart::Tilde(rest[..length].to_vec()));
            self.at += 1 + length;
        } else {
            self.plain(word, b'~');
        }
    }

    /// `<(…)` and `>(…)`.
    pub(super) fn process(&mut self, word: &mut WordBuilder) -> ReadStep<()> {
        let direction = if self.peek() == Some(b'<') { Direction::Writes } else { Direction::Reads };
        self.bump();
        self.peek();
        self.bump();
        let code = self.code_to_parenthesis()?;
        word.part(WordPart::Process { code, direction });
        Ok(())
    }
}

impl NewValue {
    /// The assignment as an argument of a builtin such as `export`.
    pub(super) fn into_word(self) -> ShellWord {
        let mut bytes = self.name;
        bytes.push(b'=');
        let mut parts = vec![WordPart::Literal { bytes, quoting: Quoting::Quoted }];
        parts.extend(self.words.into_iter().flat_map(|word| word.parts));
        if self.kind != ValueKind::Whole {
            parts.push(WordPart::Pattern(b"()".to_vec()));
        }
        ShellWord { parts }
    }
}
