//! The syntax tree of a text. Words keep their quotes apart from their bytes, and nothing is expanded.

use std::cell::OnceCell;
use std::rc::Rc;

/// Commands in written order.
pub(super) type List = Vec<AndOr>;

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct AndOr {
    pub(super) pipelines: Vec<Pipeline>,
    /// True if `&` follows.
    pub(super) in_background: bool,
}

/// Commands joined by `|` and `|&`.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) stages: Vec<PipelineStage>,
}

#[derive(Debug)]
pub(super) struct PipelineStage {
    pub(super) kind: StageKind,
    pub(super) redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) enum StageKind {
    Simple(Clause),
    /// `{ … }`.
    Group(List),
    /// `( … )`.
    Subshell(List),
    /// The conditions and bodies of `if`, in order.
    If(Vec<List>),
    /// `while` and `until`: the condition and the body.
    Loop(Vec<List>),
    /// `for` and `select`: the variable, the words, and the body. Without words, the loop runs over the arguments.
    For {
        name: Vec<u8>,
        words: Vec<ShellWord>,
        body: List,
    },
    Case {
        subject: ShellWord,
        arms: Vec<(Vec<ShellWord>, List)>,
    },
    /// `(( … ))`, and the head of `for (( … ))` before its body.
    Arithmetic {
        expression: ShellWord,
        body: List,
    },
    /// `[[ … ]]`.
    Test(Vec<ShellWord>),
    Function {
        name: Vec<u8>,
        body: Rc<PipelineStage>,
    },
    Coprocess(Box<PipelineStage>),
    /// `!` or `time` alone.
    Nothing,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Clause {
    pub(super) assignments: Vec<NewValue>,
    pub(super) words: Vec<ShellWord>,
}

/// An assignment before a command, or alone.
#[derive(Debug)]
pub(super) struct NewValue {
    pub(super) name: Vec<u8>,
    pub(super) kind: ValueKind,
    /// The value, or the values of an array.
    pub(super) words: Vec<ShellWord>,
}

/// The way in which an assignment sets its variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    Whole,
    /// `+=`.
    Appended,
    /// `name=(…)` or `name[…]=…`.
    Array,
}

#[derive(Debug)]
pub(super) struct Redirect {
    /// `None` for `{name}`: the shell chooses the number.
    pub(super) descriptor: Option<u32>,
    pub(super) kind: RedirectKind,
    pub(super) target: RedirectTarget,
}

/// The action of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectKind {
    /// `<`.
    Read,
    /// `>`, `>|` and `&>`.
    Write,
    /// `>>` and `&>>`.
    Append,
    /// `<>`.
    ReadWrite,
    /// `<&` and `>&`.
    Duplicate,
    /// `<<` and `<<-`.
    HereDocument,
    /// `<<<`.
    HereString,
}

#[derive(Debug)]
pub(super) enum RedirectTarget {
    Word(ShellWord),
    /// Filled in once its lines have been read.
    HereDocument(Rc<OnceCell<ShellWord>>),
}

/// A word: parts that stand next to each other.
#[derive(Debug, Default, Clone)]
pub(super) struct ShellWord {
    pub(super) parts: Vec<WordPart>,
}

#[derive(Debug, Clone)]
pub(super) enum WordPart {
    Literal {
        bytes: Vec<u8>,
        quoting: Quoting,
    },
    /// `*`, `?`, `[…]`, `{a,b}` and extended patterns, as written.
    Pattern(Vec<u8>),
    /// A tilde at the beginning, with the name after it.
    Tilde(Vec<u8>),
    /// `$x` and `${x…}`.
    Variable {
        name: Vec<u8>,
        quoting: Quoting,
        change: Change,
        inner: Vec<WordPart>,
    },
    /// `$(…)` and backquotes.
    Substitution {
        code: Rc<Code>,
        quoting: Quoting,
    },
    /// `<(…)` and `>(…)`.
    Process {
        code: Rc<Code>,
        direction: Direction,
    },
    /// `$((…))`.
    Arithmetic {
        inner: Vec<WordPart>,
        quoting: Quoting,
    },
}

/// The effect of `${x…}` on the variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// Another value; the variable stays unchanged.
    Value,
    /// The number of its characters or elements: `${#x}`.
    Length,
    /// The variable may be set: `${x:=word}`.
    Variable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Quoted,
    Unquoted,
}

/// The end of a process substitution's pipe that its command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// `<(…)`: it writes.
    Writes,
    /// `>(…)`: it reads.
    Reads,
}

/// Code within a word.
#[derive(Debug)]
pub(super) struct Code {
    pub(super) list: List,
    /// The reason why the rest of the code is not read.
    pub(super) problem: Option<Problem>,
}

/// The reason why the rest of a text is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The shell does not accept it either.
    Syntax,
    /// Groups, substitutions or quotes lie too deep within each other.
    TooDeep,
    /// It has too many words.
    TooMany,
    /// It is too long.
    TooLong,
}

impl ShellWord {
    /// The bytes, if nothing in the word is expanded.
    pub(super) fn literal(&self) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        for part in &self.parts {
            match part {
                WordPart::Literal { bytes, .. } => whole.extend_from_slice(bytes),
                _ => return None,
            }
        }
        Some(whole)
    }

    /// Returns true if the word is these bytes, and nothing in it is expanded.
    pub(super) fn is_literally(&self, wanted: &[u8]) -> bool {
        let rest = self.parts.iter().try_fold(wanted, |rest, part| match part {
            WordPart::Literal { bytes, .. } => rest.strip_prefix(&bytes[..]),
            _ => None,
        });
        rest == Some(b"")
    }

    /// The bytes, if the word is written without quotes and nothing in it is expanded.
    pub(super) fn bare(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [WordPart::Literal { bytes, quoting: Quoting::Unquoted }] => Some(bytes),
            _ => None,
        }
    }
}
