//! Expansions that begin with a dollar or a backquote, and the search for a closing bracket.

use std::rc::Rc;

use super::words::{WordBuilder, is_name, is_name_byte};
use super::{ReadStep, ShellText};
use crate::limits;
use crate::script::tree::{Change, Code, List, Problem, Quoting, WordPart};

/// The names of parameters that are one sign.
const SPECIAL: &[u8] = b"@*#?-$!";

impl ShellText<'_> {
    /// Text as in double quotes, up to this byte, which is taken, or up to the end.
    pub(super) fn expanded(&mut self, end: Option<u8>) -> ReadStep<Vec<WordPart>> {
        let mut word = WordBuilder::default();
        loop {
            let byte = self.peek();
            match byte {
                None if end.is_none() => return Ok(word.into_parts()),
                None => return Err(Problem::Syntax),
                Some(_) if byte == end => {
                    self.bump();
                    return Ok(word.into_parts());
                }
                Some(b'\\') => {
                    self.bump();
                    let escaped = self.text.get(self.at).copied();
                    let takes = |next: u8| matches!(next, b'$' | b'`' | b'\\') || Some(next) == end;
                    if !escaped.is_some_and(takes) {
                        word.push(b'\\', Quoting::Quoted);
                    } else if let Some(next) = escaped {
                        word.push(next, Quoting::Quoted);
                        self.bump();
                    }
                }
                Some(b'$' | b'`') => self.expansion(&mut word, Quoting::Quoted)?,
                Some(_) => {
                    let is_plain = |byte| !matches!(byte, b'\\' | b'$' | b'`') && Some(byte) != end;
                    word.extend(self.take_while(is_plain), Quoting::Quoted);
                }
            }
        }
    }

    /// The expansion at the next dollar or backquote.
    pub(super) fn expansion(&mut self, word: &mut WordBuilder, quoting: Quoting) -> ReadStep<()> {
        self.count_part()?;
        if self.peek() == Some(b'`') {
            return self.backquoted(word, quoting);
        }
        self.bump();
        match self.peek() {
            Some(b'(') if self.starts(b"((").is_some() => match self.double_parenthesis()? {
                Some(inner) => word.part(WordPart::Arithmetic { inner: inner.parts, quoting }),
                None => self.late_code(word, quoting)?,
            },
            Some(b'(') => {
                self.bump();
                let code = self.code_to_parenthesis()?;
                word.part(WordPart::Substitution { code, quoting });
            }
            Some(b'{') => self.deeper(|text| text.braced(word, quoting))?,
            Some(b'[') => {
                let start = self.at + 1;
                let end = self.matching(start, b']')?;
                let text = &self.text[start..end];
                let inner = self.within(text, |text| text.expanded(None))?;
                word.part(WordPart::Arithmetic { inner, quoting });
                self.at = end + 1;
            }
            Some(b'\'') if quoting == Quoting::Unquoted => self.escaped_quoted(word)?,
            Some(b'"') if quoting == Quoting::Unquoted => self.double_quoted(word)?,
            Some(byte) if SPECIAL.contains(&byte) || byte.is_ascii_digit() => {
                self.bump();
                word.part(plain_variable(vec![byte], quoting));
            }
            Some(byte) if is_name(&[byte]) => {
                let name = self.name();
                word.part(plain_variable(name, quoting));
            }
            _ => word.push(b'$', quoting),
        }
        Ok(())
    }

    fn name(&mut self) -> Vec<u8> {
        let mut name = Vec::new();
        while self.peek().is_some_and(is_name_byte) {
            name.extend_from_slice(self.take_while(is_name_byte));
        }
        name
    }

    /// The code of a substitution whose opening parenthesis has been taken.
    pub(super) fn code_to_parenthesis(&mut self) -> ReadStep<Rc<Code>> {
        let outer_pending = std::mem::take(&mut self.pending);
        let outer = std::mem::replace(&mut self.in_substitution, true);
        let list = self.deeper(|text| {
            let list = text.list()?;
            text.expect(b")").map(|()| list)
        });
        self.in_substitution = outer;
        let own_pending = std::mem::replace(&mut self.pending, outer_pending);
        self.pending.extend(own_pending);
        Ok(Rc::new(Code { list: list?, problem: None }))
    }

    /// `$((…) …)`, which is no arithmetic. bash reads its commands only when it runs them.
    fn late_code(&mut self, word: &mut WordBuilder, quoting: Quoting) -> ReadStep<()> {
        let start = self.at + 1;
        let end = self.matching(start, b')')?;
        let inner = &self.text[start..end];
        let (list, problem) = self.within(inner, |text| Ok(text.units()))?;
        word.part(WordPart::Substitution { code: Rc::new(Code { list, problem }), quoting });
        self.at = end + 1;
        Ok(())
    }

    /// `` `…` ``. Its text is read only after its backslashes are removed.
    fn backquoted(&mut self, word: &mut WordBuilder, quoting: Quoting) -> ReadStep<()> {
        self.bump();
        let mut text = Vec::new();
        loop {
            self.budget.steps += 1;
            let Some(byte) = self.text.get(self.at).copied() else { return Err(Problem::Syntax) };
            self.at += 1;
            match (byte, self.text.get(self.at)) {
                (b'`', _) => break,
                (b'\\', Some(next @ (b'$' | b'`' | b'\\'))) => {
                    text.push(*next);
                    self.at += 1;
                }
                (b'\\', Some(b'"')) if quoting == Quoting::Quoted => {}
                (byte, _) => text.push(byte),
            }
        }
        let (list, problem) = self.within(&text, |text| Ok(text.units()))?;
        word.part(WordPart::Substitution { code: Rc::new(Code { list, problem }), quoting });
        Ok(())
    }

    /// `${…}`.
    fn braced(&mut self, word: &mut WordBuilder, quoting: Quoting) -> ReadStep<()> {
        self.bump();
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // Later versions of bash run this as commands.
            let end = self.matching(self.at, b'}')?;
            self.at = end + 1;
            let code = Rc::new(Code { list: List::new(), problem: Some(Problem::Syntax) });
            word.part(WordPart::Substitution { code, quoting });
            return Ok(());
        }
        let mut change = Change::None;
        let is_alone = self.starts(b"#}").is_some() || self.starts(b"!}").is_some();
        let is_indirect = !is_alone && self.take(b"!");
        let is_counted = !is_indirect && !is_alone && self.take(b"#");
        if is_indirect || is_counted {
            change = Change::Value;
        }
        let mut name = match self.peek() {
            Some(byte) if is_name_byte(byte) => self.name(),
            Some(b'$') if self.starts(b"$(").is_some() || self.starts(b"${").is_some() => Vec::new(),
            Some(byte) if SPECIAL.contains(&byte) => {
                self.bump();
                vec![byte]
            }
            _ => Vec::new(),
        };
        if is_counted && is_name(&name) && matches!(self.peek(), Some(b'}' | b'[')) {
            change = Change::Length;
        }
        if is_indirect || self.starts(b"[@]").is_some() {
            // Such a name stands for any number of words, even in quotes.
            name.extend_from_slice(b"[@]");
        }
        if self.starts(b"=").is_some() || self.starts(b":=").is_some() {
            change = Change::Variable;
        } else if self.peek() != Some(b'}') && change == Change::None {
            change = Change::Value;
        }
        let inner = self.braced_rest(quoting)?;
        word.part(WordPart::Variable { name, quoting, change, inner });
        Ok(())
    }

    /// The text after the name in `${…}`, and the brace.
    fn braced_rest(&mut self, quoting: Quoting) -> ReadStep<Vec<WordPart>> {
        let mut rest = WordBuilder::default();
        loop {
            match self.peek() {
                None => return Err(Problem::Syntax),
                Some(b'}') => {
                    self.bump();
                    return Ok(rest.into_parts());
                }
                Some(b'\\') => {
                    self.bump();
                    let Some(byte) = self.text.get(self.at).copied() else { return Err(Problem::Syntax) };
                    rest.push(byte, Quoting::Quoted);
                    self.bump();
                }
                Some(b'\'') if quoting == Quoting::Quoted => {
                    // They are paired, but within double quotes they hide nothing.
                    let inner = self.raw_quoted()?.to_vec();
                    let parts = self.within(&inner, |text| text.expanded(None))?;
                    parts.into_iter().for_each(|part| rest.part(part));
                }
                Some(b'\'') => self.single_quoted(&mut rest)?,
                Some(b'"') => self.double_quoted(&mut rest)?,
                Some(b'$' | b'`') => self.expansion(&mut rest, quoting)?,
                Some(b'<' | b'>') if self.is_process() => self.process(&mut rest)?,
                Some(byte) => {
                    self.bump();
                    rest.push(byte, quoting);
                }
            }
        }
    }

    /// `$'…'`, in which a backslash names a byte. A zero byte ends the word's text.
    fn escaped_quoted(&mut self, word: &mut WordBuilder) -> ReadStep<()> {
        self.bump();
        let mut bytes = Vec::new();
        loop {
            self.budget.steps += 1;
            let Some(byte) = self.text.get(self.at).copied() else { return Err(Problem::Syntax) };
            self.at += 1;
            match byte {
                b'\'' => break,
                b'\\' => self.named_byte(&mut bytes)?,
                _ => bytes.push(byte),
            }
        }
        let end = super::cursor::length_before(0, &bytes);
        bytes.truncate(end);
        word.part(WordPart::Literal { bytes, quoting: Quoting::Quoted });
        Ok(())
    }

    /// The byte or character that follows a backslash in `$'…'`.
    fn named_byte(&mut self, bytes: &mut Vec<u8>) -> ReadStep<()> {
        let Some(byte) = self.text.get(self.at).copied() else { return Err(Problem::Syntax) };
        self.at += 1;
        match byte {
            b'a' => bytes.push(7),
            b'b' => bytes.push(8),
            b'e' | b'E' => bytes.push(27),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'v' => bytes.push(11),
            b'\\' | b'\'' | b'"' | b'?' => bytes.push(byte),
            b'c' => {
                let control = self.text.get(self.at).copied().ok_or(Problem::Syntax)?;
                self.at += 1;
                bytes.push(control & 0x1f);
            }
            b'0'..=b'7' => {
                self.at -= 1;
                let number = self.number(8, 3);
                bytes.extend(number.map(|number| number.to_le_bytes()[0]));
            }
            b'x' => bytes.extend(self.number(16, 2).map(|number| number.to_le_bytes()[0])),
            b'u' | b'U' => {
                let number = self.number(16, if byte == b'u' { 4 } else { 8 });
                let c = number.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => bytes.extend([b'\\', other]),
        }
        Ok(())
    }

    /// A number of at most this many digits.
    fn number(&mut self, base: u32, digits: usize) -> Option<u32> {
        let rest = &self.text[self.at..self.text.len().min(self.at + digits)];
        let length = rest.iter().take_while(|byte| char::from(**byte).is_digit(base)).count();
        self.at += length;
        u32::from_str_radix(std::str::from_utf8(&rest[..length]).ok()?, base).ok()
    }

    /// The place of the bracket that closes the one opened before `from`. Nothing is read.
    pub(super) fn matching(&mut self, from: usize, close: u8) -> ReadStep<usize> {
        let mut open = vec![close];
        let mut at = from;
        while let (Some(byte), Some(inner)) = (self.text.get(at).copied(), open.last().copied()) {
            self.budget.steps += 1;
            if byte == inner {
                open.pop();
                if open.is_empty() {
                    return Ok(at);
                }
            } else if byte == b'\\' && inner != b'\'' {
                at += 1;
            } else if let Some(closing) = opens(byte, self.text.get(at + 1).copied(), inner) {
                if open.len() >= limits::SCRIPT_BRACKETS_MAX {
                    return Err(Problem::TooDeep);
                }
                open.push(closing);
                at += usize::from(byte == b'$');
            }
            at += 1;
        }
        Err(Problem::Syntax)
    }
}

fn plain_variable(name: Vec<u8>, quoting: Quoting) -> WordPart {
    WordPart::Variable { name, quoting, change: Change::None, inner: Vec::new() }
}

/// The closing byte of the bracket or quote that this byte opens, inside one that `inner` closes.
fn opens(byte: u8, next: Option<u8>, inner: u8) -> Option<u8> {
    match (byte, next) {
        _ if matches!(inner, b'\'' | b'`') => None,
        (b'$', Some(b'(')) => Some(b')'),
        (b'$', Some(b'{')) => Some(b'}'),
        (b'`', _) => Some(b'`'),
        _ if inner == b'"' => None,
        (b'\'' | b'"', _) => Some(byte),
        (b'(', _) if inner == b')' => Some(b')'),
        (b'[', _) if inner == b']' => Some(b']'),
        _ => None,
    }
}
