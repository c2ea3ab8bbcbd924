//! Long arguments, written once per file.
//!
//! An agent's wrapper is tens of KiB long and the same for all of its commands but for the command in its middle or
//! at its end. A record has only the first bytes of such an argument in its `exec`. Its `exec_text` tells how to put
//! the argument together: the beginning of a text that stands earlier in the same file, some bytes of the argument's
//! own, and the end of that text.
//!
//! Invariants: a reference names a text of the same file; the three parts meet between characters; writers and readers
//! keep a bounded number of texts in memory.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::fit::clip;
use super::text_ref::TextRef;
use super::{StartRecord, line};
use crate::limits;

/// How much of a long argument stays in `exec`, bytes of JSON.
const SHOWN_BYTES: usize = 256;

/// A text that long arguments share, type `text`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextRecord {
    /// Unique within its file.
    pub id: u64,
    pub text: String,
}

/// The texts of a file that is being written.
#[derive(Debug)]
pub struct Texts {
    next_id: u64,
    known: VecDeque<TextRecord>,
}

impl Texts {
    /// Begins without any text. `length` is how much of the file another recorder has written, bytes. Each of its texts
    /// took more than one byte, so numbers above the length are free.
    #[must_use]
    pub fn new(length: u64) -> Texts {
        Texts { next_id: length + 1, known: VecDeque::new() }
    }

    /// The record with its long arguments cut. Appends the lines that must stand before it.
    pub fn shorten<'a>(&mut self, start: &'a StartRecord, lines: &mut Vec<Vec<u8>>) -> Cow<'a, StartRecord> {
        let is_long = |argument: &String| argument.len() > limits::JOURNAL_ARGUMENT_BYTES;
        if !start.exec.iter().any(is_long) {
            return Cow::Borrowed(start);
        }
        let mut start = start.clone();
        for (place, argument) in start.exec.iter_mut().enumerate().filter(|(_, argument)| is_long(argument)) {
            start.exec_text.insert(place, self.refer(argument, lines));
            *argument = clip(argument, SHOWN_BYTES);
        }
        Cow::Owned(start)
    }

    /// Forgets all texts, because a line that [`Texts::shorten`] returned was not written.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    fn refer(&mut self, argument: &str, lines: &mut Vec<Vec<u8>>) -> TextRef {
        let best = self.known.iter().map(|text| text.refer(argument)).min_by_key(|made| made.own.len());
        if let Some(best) = best.filter(|best| best.own.len() <= argument.len() / 2) {
            return best;
        }
        let text = TextRecord { id: self.next_id, text: argument.to_owned() };
        self.next_id += 1;
        lines.push(line("text", &text));
        let whole = TextRef { id: text.id, head: argument.len(), ..TextRef::default() };
        self.known.push_back(text);
        if self.known.len() > limits::JOURNAL_TEXTS_KNOWN {
            self.known.pop_front();
        }
        whole
    }
}

impl TextRecord {
    /// Refers to as much of this text as the argument shares with it.
    fn refer(&self, argument: &str) -> TextRef {
        let text = self.text.as_str();
        let mut head = common(text.bytes(), argument.bytes());
        while !(text.is_char_boundary(head) && argument.is_char_boundary(head)) {
            head -= 1;
        }
        let own = &argument[head..];
        let mut tail = common(text[head..].bytes().rev(), own.bytes().rev());
        while !(text.is_char_boundary(text.len() - tail) && own.is_char_boundary(own.len() - tail)) {
            tail -= 1;
        }
        TextRef { id: self.id, head, own: own[..own.len() - tail].to_owned(), tail }
    }
}

/// How many items two sequences have in common at their beginning.
fn common(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

/// The texts of a file that is being read.
#[derive(Debug, Default)]
pub struct Library {
    texts: HashMap<u64, String>,
    bytes: usize,
}

impl Library {
    /// Keeps a text, unless there are too many already.
    pub fn add(&mut self, text: TextRecord) {
        if self.bytes + text.text.len() <= limits::JOURNAL_TEXTS_READ_BYTES {
            self.bytes += text.text.len();
            self.texts.insert(text.id, text.text);
        }
    }

    /// Puts the long arguments together again. One whose text is missing stays cut and keeps its reference.
    pub fn complete(&self, start: &mut StartRecord) {
        let StartRecord { exec, exec_text, .. } = start;
        exec_text.retain(|&place, made_of| {
            let whole = self.texts.get(&made_of.id).and_then(|text| {
                let tail_at = text.len().checked_sub(made_of.tail)?;
                Some([text.get(..made_of.head)?, &made_of.own, text.get(tail_at..)?].concat())
            });
            match (exec.get_mut(place), whole) {
                (Some(argument), Some(whole)) if whole.len() <= super::LINE_BYTES_MAX => {
                    *argument = whole;
                    false
                }
                _ => true,
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_arguments_are_put_together_again() {
        let wrapper =
            |command: &str| format!("{}exec sh -c '{command}'\n{}", "ä=b; ".repeat(7_000), "# end ".repeat(20));
        let (mut texts, mut library) = (Texts::new(0), Library::default());
        let mut written = 0;
        for command in ["ls", "ls", "git status", "ö", "ü", "", &"x".repeat(3_000), &"y".repeat(90_000)] {
            let whole = vec!["sh".to_owned(), "-c".to_owned(), wrapper(command)];
            let start = StartRecord { exec: whole.clone(), ..StartRecord::default() };
            let mut lines = Vec::new();
            let mut start = texts.shorten(&start, &mut lines).into_owned();
            assert!(start.exec[2].len() <= SHOWN_BYTES && start.exec[..2] == whole[..2]);
            written += lines.len();
            for line in lines {
                library.add(serde_json::from_slice(&line).unwrap());
            }
            let read: StartRecord = serde_json::from_slice(&serde_json::to_vec(&start).unwrap()).unwrap();
            let mut missing = read.clone();
            Library::default().complete(&mut missing);
            assert_eq!(missing, read, "without its text it stays as it is");
            library.complete(&mut start);
            assert!(start.exec == whole && start.exec_text.is_empty(), "{command}");
        }
        assert_eq!(written, 2, "the wrapper, and an argument that is too unlike it");
    }
}
