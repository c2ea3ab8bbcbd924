//! Leaves in words, for people: as one would write them, and why one is not known.

use crate::script::{Argument, Leaf, LeafState, OpaqueReason, Problem, RedirectKind, Redirection};
use crate::text::escape::escape_line;

/// Columns of a leaf.
const LEAF_COLUMNS: usize = 4_000;

/// A leaf in words, or the reason why there are none.
#[must_use]
pub fn shown_leaf(leaf: &Leaf) -> String {
    let words = leaf_words(leaf);
    match why_opaque(leaf) {
        Some(why) if words.is_empty() => format!("({why})"),
        Some(why) => format!("{words} ({why})"),
        None => words,
    }
}

/// The words of a leaf, quoted where necessary.
#[must_use]
pub fn leaf_words(leaf: &Leaf) -> String {
    let program = if leaf.program.is_empty() { None } else { Some(word(&Argument::from(&leaf.program[..]))) };
    let arguments = leaf.arguments.iter().map(word);
    let words = program.into_iter().chain(arguments).chain(leaf.redirects.iter().map(redirection_words));
    escape_line(&words.collect::<Vec<_>>().join(" "), LEAF_COLUMNS)
}

pub(super) fn word(argument: &Argument) -> String {
    let shown = String::from_utf8_lossy(&argument.shown()).into_owned();
    let is_plain =
        argument.text().is_none() || !shown.contains(|c: char| c.is_whitespace() || "'\"\\$;&|<>()`".contains(c));
    if is_plain && !shown.is_empty() { shown } else { format!("'{}'", shown.replace('\'', "'\\''")) }
}

/// A redirection as one would write it; a here-document without its text.
#[must_use]
pub fn redirection_words(redirect: &Redirection) -> String {
    let (sign, usual) = match redirect.kind {
        RedirectKind::Read => ("<", 0),
        RedirectKind::Write => (">", 1),
        RedirectKind::Append => (">>", 1),
        RedirectKind::ReadWrite => ("<>", 0),
        RedirectKind::Duplicate => (">&", 1),
        RedirectKind::HereDocument => ("<<", 0),
        RedirectKind::HereString => ("<<<", 0),
    };
    let descriptor = match redirect.descriptor {
        Some(number) if number == usual => String::new(),
        Some(number) => number.to_string(),
        None => "{}".to_owned(),
    };
    let target = if redirect.kind == RedirectKind::HereDocument { "…".to_owned() } else { word(&redirect.target) };
    format!("{descriptor}{sign}{target}")
}

/// The reason why it is not known what a leaf runs.
#[must_use]
pub fn why_opaque(leaf: &Leaf) -> Option<&'static str> {
    let LeafState::Opaque(reason) = leaf.state else { return None };
    Some(match reason {
        OpaqueReason::Program => "the program's name is not known",
        OpaqueReason::Code => "a part of the code is not known",
        OpaqueReason::ShellReadsPipe => "a shell reads its commands from a pipe",
        OpaqueReason::SourcesStream => "commands are read from a stream",
        OpaqueReason::RenamesPrograms => "a name is given to another program",
        OpaqueReason::OtherShell => "a shell with another language",
        OpaqueReason::TooManyLeaves => "there are too many programs",
        OpaqueReason::NotRead(problem) => problem_in_words(problem),
    })
}

/// The reason why a text is not understood.
#[must_use]
pub fn problem_in_words(problem: Problem) -> &'static str {
    match problem {
        Problem::Syntax => "a syntax error",
        Problem::TooDeep => "it is nested too deep",
        Problem::TooMany => "it has too many words",
        Problem::TooLong => "it is too long",
    }
}
