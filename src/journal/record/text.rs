//! Long arguments, written once per file: an agent's wrapper is tens of KiB long and the same for all of its commands
//! but for the command in its middle or at its end.
//!
//! A record has such an argument cut in its `exec`, and in `exec_text` says what it is made of: the beginning of a text
//! that stands earlier in the same file, some bytes of its own, and the end of that text.
//!
//! Invariants: a reference names a text of the same file; head and tail end and begin between characters; texts are kept
//! in memory up to a bound, for writers and readers.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::fit::clip;
use super::{EndRecord, StartRecord, line};
use crate::limits;

/// What of a long argument stands in `exec`, bytes.
const SHOWN_BYTES: usize = 256;

/// An argument of which others are made, type `text`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextRecord {
    /// Its name in this file.
    pub id: u64,
    pub text: String,
}

/// What a long argument is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextRef {
    /// The text's name.
    pub id: u64,
    /// So many of its first bytes …
    pub head: usize,
    /// … these of its own …
    pub own: String,
    /// … and so many of its last bytes.
    pub tail: usize,
}

/// The texts of a file that is being written.
#[derive(Debug)]
pub struct Texts {
    next_id: u64,
    known: VecDeque<TextRecord>,
}

impl Texts {
    /// For a file of this length. Of one that others wrote, no text is known, and the new names are none of theirs:
    /// each of those took more than one byte.
    #[must_use]
    pub fn new(length: u64) -> Texts {
        Texts { next_id: length + 1, known: VecDeque::new() }
    }

    /// Cuts the long arguments. Appends the lines that have to be written before the record.
    pub fn shorten(&mut self, exec: &mut [String], refs: &mut BTreeMap<usize, TextRef>, lines: &mut Vec<Vec<u8>>) {
        for (place, argument) in exec.iter_mut().enumerate() {
            if argument.len() > limits::JOURNAL_ARGUMENT_BYTES {
                refs.insert(place, self.refer(argument, lines));
                *argument = clip(argument, SHOWN_BYTES);
            }
        }
    }

    /// Forgets what it knows, because lines that it gave were not written.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    fn refer(&mut self, argument: &str, lines: &mut Vec<Vec<u8>>) -> TextRef {
        let made_of = |text: &TextRecord| {
            let text_bytes = text.text.len();
            let mut head = common(text.text.bytes(), argument.bytes());
            while !(text.text.is_char_boundary(head) && argument.is_char_boundary(head)) {
                head -= 1;
            }
            let own = &argument[head..];
            let mut tail = common(text.text[head..].bytes().rev(), own.bytes().rev());
            while !(text.text.is_char_boundary(text_bytes - tail) && own.is_char_boundary(own.len() - tail)) {
                tail -= 1;
            }
            TextRef { id: text.id, head, own: own[..own.len() - tail].to_owned(), tail }
        };
        let best = self.known.iter().map(made_of).min_by_key(|made| made.own.len());
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
    /// Takes a text, unless there are too many already.
    pub fn add(&mut self, text: TextRecord) {
        if self.bytes + text.text.len() <= limits::JOURNAL_TEXTS_READ_BYTES {
            self.bytes += text.text.len();
            self.texts.insert(text.id, text.text);
        }
    }

    /// Puts the long arguments of a start together again.
    pub fn complete_start(&self, start: &mut StartRecord) {
        self.complete(&mut start.exec, &mut start.exec_text);
    }

    /// The same for the record of a whole run.
    pub fn complete_run(&self, run: &mut EndRecord) {
        self.complete(&mut run.exec, &mut run.exec_text);
    }

    /// What cannot be put together, because its text is missing, stays cut, and its reference stays.
    fn complete(&self, exec: &mut [String], refs: &mut BTreeMap<usize, TextRef>) {
        refs.retain(|&place, made_of| {
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
            let mut start = StartRecord { exec: whole.clone(), ..StartRecord::default() };
            let mut lines = Vec::new();
            texts.shorten(&mut start.exec, &mut start.exec_text, &mut lines);
            assert!(start.exec[2].len() <= SHOWN_BYTES && start.exec[..2] == whole[..2]);
            written += lines.len();
            for line in lines {
                library.add(serde_json::from_slice(&line).unwrap());
            }
            let read: StartRecord = serde_json::from_slice(&serde_json::to_vec(&start).unwrap()).unwrap();
            let mut missing = read.clone();
            Library::default().complete_start(&mut missing);
            assert_eq!(missing, read, "without its text it stays as it is");
            library.complete_start(&mut start);
            assert!(start.exec == whole && start.exec_text.is_empty(), "{command}");
        }
        assert_eq!(written, 2, "the wrapper, and what is too unlike it");
    }
}
