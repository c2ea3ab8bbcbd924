//! The rules of the person's file, which are watched: the host asks them about every command that it runs, and shows what
//! they say. They hold no command.
//!
//! Invariants: without rules nothing is read; a call of more than `RULES_CALL_BYTES_MAX` is not read, and counts as one of
//! which it is not known what runs; what a judgement says has no secret of the command's environment or of its text.

use crate::core::entry::Judgement;
use crate::front::command::Command;
use crate::gate::{Action, Facts, Gate, GateMode, Judged, shown_leaf};
use crate::limits;
use crate::script::{Argument, Leaf};
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::redact::Redactor;

/// Columns of a leaf in a judgement.
const LEAF_COLUMNS: usize = 400;

#[derive(Debug)]
pub(super) struct WatchedRules {
    gate: Gate,
}

impl WatchedRules {
    pub(super) fn new(gate: Gate) -> Self {
        Self { gate }
    }

    /// What the person reads of them when the host begins.
    pub(super) fn greeting(&self) -> String {
        let count = self.gate.rules.len() as u64;
        let rules = match count {
            0 => "the settings of [gate] are watched and hold".to_owned(),
            1 => "1 rule is watched and holds".to_owned(),
            _ => format!("{} are watched and hold", counted(count, "rule", "rules")),
        };
        let mode = match self.gate.mode {
            GateMode::Watch => "",
            GateMode::Enforce => ", also with mode = \"enforce\", which this version does not have",
        };
        format!("{rules} no command{mode}")
    }

    /// What they say of a command that begins in this directory. `None` if they allow it.
    pub(super) fn judge(&self, command: &Command, directory: &[u8]) -> Option<Judgement> {
        let run = command.run()?;
        let value = |name: &[u8]| match name {
            b"PWD" => Some(directory.to_vec()),
            _ => run
                .env
                .iter()
                .find_map(|entry| entry.to_bytes().strip_prefix(name)?.strip_prefix(b"="))
                .map(<[u8]>::to_vec),
        };
        let home = value(b"HOME").filter(|home| !home.is_empty());
        let caller = &command.caller;
        let facts = Facts {
            agent: Some(if caller.agent.is_empty() { &caller.whoami } else { caller.agent }),
            session: Some(caller.session.as_str()).filter(|session| !session.is_empty()),
            directory: Some(directory),
            project: command.depth.and_then(|depth| above(directory, depth)),
            home: home.as_deref(),
        };
        let leaves = if command.exec.iter().map(Vec::len).sum::<usize>() > limits::RULES_CALL_BYTES_MAX {
            vec![Leaf::too_long()]
        } else {
            self.gate.leaves_of_call(&command.exec, &value)
        };
        let judged = Judged::of(&self.gate, leaves, &facts);
        let at = judged.strictest().filter(|&at| judged.verdicts[at].action != Action::Allow)?;
        let verdict = &judged.verdicts[at];
        let redactor = command.redactor();
        let leaf = redactor.masked_command(&shown_leaf(&without_secrets(&judged.leaves[at], &redactor)));
        let leaf = escape_line(&leaf, LEAF_COLUMNS);
        Some(Judgement {
            verdict: verdict.action.word(),
            rule: verdict.cause.rule().map(ToString::to_string),
            why: verdict.sentence(&leaf),
            leaf,
        })
    }
}

/// A leaf without secrets. It may have the values of variables that the text only names, and quotes would hide them.
fn without_secrets(leaf: &Leaf, redactor: &Redactor) -> Leaf {
    let shown: Vec<Vec<u8>> =
        std::iter::once(leaf.program.clone()).chain(leaf.arguments.iter().map(Argument::shown)).collect();
    let words: Vec<&[u8]> = shown.iter().map(Vec::as_slice).collect();
    let masked = redactor.clone().redact_arguments(&words).into_iter().skip(1);
    // The first word of a command is never masked. Here it may be the value of a variable.
    let word = |word: &[u8]| redactor.clone().redact_arguments(&[b"", word]).pop().unwrap_or_default();
    let targets: Vec<Vec<u8>> = leaf.redirects.iter().map(|redirect| word(&redirect.target.shown())).collect();
    let mut leaf = Leaf { program: word(&leaf.program), ..leaf.clone() };
    let places = leaf.arguments.iter_mut().chain(leaf.redirects.iter_mut().map(|redirect| &mut redirect.target));
    for (place, masked) in places.zip(masked.chain(targets)) {
        if place.shown() != masked {
            *place = Argument::from(&masked[..]);
        }
    }
    leaf
}

/// The directory that lies so many steps above this one.
fn above(directory: &[u8], depth: u8) -> Option<&[u8]> {
    let mut top = directory;
    for _ in 0..depth {
        let at = memchr::memrchr(b'/', top)?;
        top = if at == 0 { b"/" } else { &top[..at] };
    }
    Some(top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_lies_some_steps_above_a_directory() {
        for (directory, depth, top) in
            [("/a/b/c", 0, Some("/a/b/c")), ("/a/b/c", 2, Some("/a")), ("/a", 1, Some("/")), ("a", 1, None)]
        {
            assert_eq!(above(directory.as_bytes(), depth), top.map(str::as_bytes), "{directory} {depth}");
        }
    }
}
