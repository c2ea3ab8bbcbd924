//! What files of differences change: the names that they have.
//!
//! Invariant: a superset. A name stands for all that is left of it without its first directories, whatever `-p` says.

use std::collections::BTreeSet;

use super::PathPattern;
use super::operand::{Extent, Loss, Operand};
use super::operands::LeafLosses;
use crate::gate::{Answer, Words};
use crate::limits;
use crate::script::{Argument, RedirectKind};

/// What stands before a name.
const LEADS: [&[u8]; 6] = [b"--- ", b"+++ ", b"*** ", b"Index: ", b"rename from ", b"rename to "];

impl LeafLosses<'_> {
    pub(super) fn by_patch(&mut self, words: &Words<'_>) {
        if words.has("--dry-run") == Answer::Yes {
            return;
        }
        self.output(words, b'o', "output");
        let directory = words.value_of(b'd', "directory").unwrap_or_else(|| Argument::from(&b"."[..]));
        let mut operands = words.operands();
        match operands.next() {
            Some(original) => {
                self.add(&super::operands::inside(Some(&directory), original), Loss::Name, Extent::Itself)
            }
            None => self.patched(&directory, words.value_of(b'i', "input").as_ref()),
        }
    }

    pub(super) fn by_git_apply(&mut self, words: &Words<'_>) {
        let has = |option: &&str| words.has(option) == Answer::Yes;
        if ["--check", "--stat", "--numstat", "--summary", "--cached"].iter().any(has) {
            return;
        }
        let mut operands = words.operands();
        // Git begins elsewhere, where its first word is an option.
        let is_here = self.leaf.arguments.first() == operands.next();
        self.is_unknown |= !is_here || words.has("--directory") != Answer::No;
        let here = Argument::from(&b"."[..]);
        let mut diffs = operands.filter(|_| is_here).peekable();
        if is_here && diffs.peek().is_none() {
            self.patched(&here, None);
        }
        diffs.for_each(|diff| self.patched(&here, Some(diff)));
    }

    /// What a file of differences changes below a directory: this file, or standard input.
    fn patched(&mut self, directory: &Argument, diff: Option<&Argument>) {
        let diff = diff.filter(|diff| diff.text() != Some(b"-"));
        let text = self.leaf.input.as_ref().filter(|_| diff.is_none());
        if let Some(text) = text.and_then(|input| input.text()) {
            let names = names(text);
            self.is_unknown |= names.len() > limits::PATCHED_NAMES_MAX;
            for name in names.iter().take(limits::PATCHED_NAMES_MAX) {
                let path = super::operands::inside(Some(directory), &Argument::from(&name[..]));
                self.add(&path, Loss::Name, Extent::Itself);
            }
            return;
        }
        let read = self.leaf.redirects.iter().rev().find(|redirect| redirect.kind == RedirectKind::Read);
        let diff = diff.or(read.filter(|_| text.is_none()).map(|redirect| &redirect.target));
        match (self.pattern(directory), diff.and_then(|diff| self.pattern(diff))) {
            (Some(path), Some(diff)) => {
                self.operands.push(Operand { path, loss: Loss::Name, extent: Extent::Patched { diff } });
            }
            _ => self.is_unknown = true,
        }
    }
}

/// The paths that differences may change, from the directory on where they are put in.
pub(super) fn names(diff: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    for line in diff.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(name) = LEADS.iter().find_map(|lead| line.strip_prefix(*lead)) {
            add(name, &mut found);
        } else if let Some(both) = line.strip_prefix(b"diff --git ")
            // Both have the same length, but for renamed ones, which have lines of their own.
            && let (Some(one), Some(other)) = (both.get(..both.len() / 2), both.get(both.len() / 2 + 1..))
        {
            add(one, &mut found);
            add(other, &mut found);
        }
        if found.len() > limits::PATCHED_NAMES_MAX {
            break;
        }
    }
    found
}

fn add(name: &[u8], to: &mut BTreeSet<Vec<u8>>) {
    let name = match name.strip_prefix(b"\"") {
        Some(quoted) => unquoted(quoted),
        // A time may follow.
        None => name.split(|byte| *byte == b'\t').next().unwrap_or_default().to_vec(),
    };
    // Patch goes neither up nor to absolute paths.
    let steps: Vec<_> = name.split(|byte| *byte == b'/').collect();
    if name.starts_with(b"/") || steps.contains(&&b".."[..]) || name.contains(&0) || name.is_empty() {
        return;
    }
    let rests = (0..steps.len()).map(|first| steps[first..].join(&b'/'));
    to.extend(rests.filter(|rest| !rest.is_empty()));
}

/// A name as git writes one with unusual characters, behind its first quotation mark.
fn unquoted(name: &[u8]) -> Vec<u8> {
    let (mut bytes, mut left) = (Vec::new(), name);
    while let Some((&byte, rest)) = left.split_first() {
        left = rest;
        match (byte, rest) {
            (b'"', _) => break,
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                bytes.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
                left = behind;
            }
            (b'\\', [letter, behind @ ..]) => {
                let letters =
                    [(b'n', b'\n'), (b't', b'\t'), (b'r', b'\r'), (b'a', 7), (b'b', 8), (b'v', 11), (b'f', 12)];
                let meant = letters.iter().find(|(written, _)| written == letter);
                bytes.push(meant.map_or(*letter, |(_, byte)| *byte));
                left = behind;
            }
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// The operand of a name below a directory.
pub(super) fn operand(directory: &PathPattern, name: &[u8]) -> Operand {
    let steps = name.split(|byte| *byte == b'/').filter(|step| !step.is_empty() && *step != b".");
    let steps = steps.map(|step| super::Step::Name(step.to_vec()));
    let path = PathPattern { steps: directory.steps.iter().cloned().chain(steps).collect(), ..directory.clone() };
    Operand { path, loss: Loss::Name, extent: Extent::Itself }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_name_what_they_change() {
        for (diff, expected) in [
            ("--- a/x/y\t2020-01-01\n+++ b/x/y\n@@ -1 +1 @@\n-a\n+b\n", "a/x/y b/x/y x/y y"),
            ("--- /dev/null\r\n+++ new file\r\n", "new file"),
            ("diff --git a/b c b/b c\ndeleted file mode 100644\n", "a/b c b c b/b c"),
            ("rename from p/q\nrename to r\n", "p/q q r"),
            ("+++ \"b/\\303\\251\\n\\\"\"\n", "b/\u{e9}\n\" \u{e9}\n\""),
            ("*** old.c\tMon\n--- new.c\tTue\nIndex: z\n", "new.c old.c z"),
            ("+++ ../x\n--- a/../../y\nonly text\n", ""),
        ] {
            let names = names(diff.as_bytes()).into_iter().map(|name| String::from_utf8(name).unwrap());
            assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "{diff}");
        }
    }
}
