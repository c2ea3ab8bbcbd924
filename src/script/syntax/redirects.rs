//! Redirections: `2>file`, `{log}>>file`, `<<END`.

use std::cell::OnceCell;
use std::rc::Rc;

use super::cursor::{is_meta, length_before};
use super::{PendingDocument, ReadStep, ShellText};
use crate::limits;
use crate::script::tree::{Problem, Redirect, RedirectKind, RedirectTarget};

/// The operators, longer ones first, each with its kind and its default descriptor.
const OPERATORS: [(&[u8], RedirectKind, u32); 12] = [
    (b"&>>", RedirectKind::Append, 1),
    (b"&>", RedirectKind::Write, 1),
    (b"<<<", RedirectKind::HereString, 0),
    (b"<<-", RedirectKind::HereDocument, 0),
    (b"<<", RedirectKind::HereDocument, 0),
    (b"<>", RedirectKind::ReadWrite, 0),
    (b"<&", RedirectKind::Duplicate, 0),
    (b"<", RedirectKind::Read, 0),
    (b">>", RedirectKind::Append, 1),
    (b">&", RedirectKind::Duplicate, 1),
    (b">|", RedirectKind::Write, 1),
    (b">", RedirectKind::Write, 1),
];

impl ShellText<'_> {
    /// The next redirection, if one follows.
    pub(super) fn redirect(&mut self) -> ReadStep<Option<Redirect>> {
        if !self.peek().is_some_and(|byte| matches!(byte, b'<' | b'>' | b'&' | b'{' | b'0'..=b'9')) {
            return Ok(None);
        }
        let before = self.at;
        let prefix = self.redirect_prefix();
        let operator = OPERATORS.iter().find_map(|(text, kind, fd)| Some((*text, *kind, *fd, self.starts(text)?)));
        let Some((text, mut kind, usual, end)) = operator.filter(|_| !self.is_process()) else {
            self.at = before;
            return Ok(None);
        };
        if text[0] == b'&' && prefix.is_some() {
            self.at = before;
            return Ok(None);
        }
        self.at = end;
        self.blanks();
        let descriptor = prefix.unwrap_or(Some(usual));
        if kind == RedirectKind::HereDocument {
            return self.here_document(descriptor, text == b"<<-").map(Some);
        }
        let word = self.word()?.ok_or(Problem::Syntax)?;
        let is_number = word.literal().is_some_and(|target| {
            let digits = target.strip_suffix(b"-").unwrap_or(&target);
            !target.is_empty() && digits.iter().all(u8::is_ascii_digit)
        });
        if text == b">&" && prefix.is_none() && word.literal().is_some() && !is_number {
            kind = RedirectKind::Write;
        }
        Ok(Some(Redirect { descriptor, kind, target: RedirectTarget::Word(word) }))
    }

    /// Returns true if `<(` or `>(` comes next.
    pub(super) fn is_process(&mut self) -> bool {
        self.starts(b"<(").is_some() || self.starts(b">(").is_some()
    }

    /// Takes the number or `{name}` directly before an operator. The inner `None` is a name.
    fn redirect_prefix(&mut self) -> Option<Option<u32>> {
        let first = self.peek()?;
        let rest = &self.text[self.at..self.text.len().min(self.at + limits::SCRIPT_LOOKAHEAD_BYTES)];
        let length = if first.is_ascii_digit() {
            rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        } else if first == b'{' {
            1 + rest.iter().position(|byte| *byte == b'}')?
        } else {
            return None;
        };
        self.budget.steps += length as u64;
        let is_operator = |byte: &u8| matches!(byte, b'<' | b'>');
        rest.get(length).filter(|byte| is_operator(byte))?;
        let inner = &rest[..length];
        let descriptor = match inner {
            [b'{', name @ .., b'}'] => {
                if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
                    return None;
                }
                None
            }
            digits => Some(std::str::from_utf8(digits).ok()?.parse().ok()?),
        };
        self.at += length;
        Some(descriptor)
    }

    fn here_document(&mut self, descriptor: Option<u32>, strips_tabs: bool) -> ReadStep<Redirect> {
        let (end, is_quoted) = self.end_word()?;
        let body = Rc::new(OnceCell::new());
        if self.pending.len() >= limits::SCRIPT_HERE_DOCUMENTS_MAX {
            return Err(Problem::Syntax);
        }
        self.pending.push(PendingDocument { end, is_quoted, strips_tabs, body: Rc::clone(&body) });
        let target = RedirectTarget::HereDocument(body);
        Ok(Redirect { descriptor, kind: RedirectKind::HereDocument, target })
    }

    /// The end word of a here-document, without its quotes; `true` if it had any.
    fn end_word(&mut self) -> ReadStep<(Vec<u8>, bool)> {
        let mut end = Vec::new();
        let mut is_quoted = false;
        let mut is_there = false;
        while let Some(byte) = self.peek().filter(|byte| !is_meta(*byte)) {
            self.bump();
            is_there = true;
            match byte {
                b'\\' => {
                    is_quoted = true;
                    end.extend(self.text.get(self.at));
                    self.bump();
                }
                b'\'' | b'"' => {
                    is_quoted = true;
                    let rest = self.text.get(self.at..).unwrap_or_default();
                    let length = length_before(byte, rest);
                    if length == rest.len() {
                        return Err(Problem::Syntax);
                    }
                    self.budget.steps += length as u64;
                    end.extend_from_slice(&rest[..length]);
                    self.at += length + 1;
                }
                _ => end.push(byte),
            }
        }
        if is_there { Ok((end, is_quoted)) } else { Err(Problem::Syntax) }
    }
}
