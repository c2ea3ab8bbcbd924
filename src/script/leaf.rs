//! A leaf: a program that runs, if the text tells.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use super::tree::{Problem, RedirectKind};
use super::{programs, wrappers};
use crate::limits;

/// A program that a text runs, or a layer such as `sudo` in front of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Leaf {
    /// The executed name or path. Empty if it is unknown, and for redirections without a command.
    pub program: Vec<u8>,
    pub arguments: Vec<Argument>,
    pub redirects: Vec<Redirection>,
    /// The way to it, the outermost step first.
    pub via: Rc<[Via]>,
    /// The target of earlier `cd`s; `None` is the directory where the text began.
    pub directory: Option<Argument>,
    pub state: LeafState,
    pub pipes: Pipes,
    /// The text of its standard input, if the text itself tells.
    pub input: Option<Rc<Argument>>,
}

/// The pipes between which a leaf stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pipes {
    pub reads: bool,
    pub writes: bool,
}

/// The degree to which a leaf is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafState {
    Known,
    /// An argument or a redirection has a hole.
    Open,
    /// It runs code of another language, which is not read.
    Foreign,
    /// The program that runs is unknown.
    Opaque(OpaqueReason),
}

/// The reason why the program that runs is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpaqueReason {
    Program,
    /// Code has a hole, or it is a hole altogether.
    Code,
    /// A shell reads commands from a pipe.
    ShellReadsPipe,
    /// Commands are read from a stream.
    SourcesStream,
    /// A name is given to another program.
    RenamesPrograms,
    /// The code is for a shell with another language.
    OtherShell,
    /// There are too many leaves. This one stands for all further ones.
    TooManyLeaves,
    /// The rest of the text is not read.
    NotRead(Problem),
}

/// A step on the way to a leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Via {
    /// A program that runs others: `sudo`, `bash -c`.
    Layer(Vec<u8>),
    /// `$(…)` and backquotes.
    Substitution,
    /// `<(…)` and `>(…)`.
    Process,
    Function(Vec<u8>),
    Alias(Vec<u8>),
    /// A variable that changes the program of a name, or its behaviour: `PATH`.
    Variable(Vec<u8>),
}

impl Leaf {
    /// The leaf that stands for a text that nobody reads because it is too long.
    #[must_use]
    pub fn too_long() -> Self {
        Self::opaque(OpaqueReason::NotRead(Problem::TooLong))
    }

    /// Returns true if it stands for a part of the text that the shell may run and that is beyond the bounds of what is
    /// read.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        use Problem::{TooDeep, TooLong, TooMany};
        let LeafState::Opaque(reason) = self.state else { return false };
        matches!(reason, OpaqueReason::TooManyLeaves | OpaqueReason::NotRead(TooDeep | TooMany | TooLong))
    }

    /// A leaf of which nothing is known.
    pub(super) fn opaque(reason: OpaqueReason) -> Self {
        Self {
            program: Vec::new(),
            arguments: Vec::new(),
            redirects: Vec::new(),
            via: Rc::from([]),
            directory: None,
            state: LeafState::Opaque(reason),
            pipes: Pipes::default(),
            input: None,
        }
    }

    /// Returns true if it runs on another machine, or in a container: paths and variables are not those of here.
    #[must_use]
    pub fn is_elsewhere(&self) -> bool {
        self.via.iter().any(|via| matches!(via, Via::Layer(layer) if wrappers::leads_elsewhere(layer)))
    }

    /// Returns true if it runs another program that its own words name, such as `docker exec` and `sudo`.
    #[must_use]
    pub fn is_layer(&self) -> bool {
        let Some(name) = programs::known_name(&self.program) else { return false };
        let arguments = self.arguments.iter().map(Argument::text);
        let words: Vec<_> = std::iter::once(Some(&self.program[..])).chain(arguments).collect();
        programs::is_shell(name) || wrappers::inner(name, &words).is_some()
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layer(name) => write!(f, "{}", String::from_utf8_lossy(name)),
            Self::Substitution => f.write_str("$()"),
            Self::Process => f.write_str("<()"),
            Self::Function(name) => write!(f, "{}()", String::from_utf8_lossy(name)),
            Self::Alias(name) => write!(f, "alias {}", String::from_utf8_lossy(name)),
            Self::Variable(name) => write!(f, "{}=", String::from_utf8_lossy(name)),
        }
    }
}

/// A redirection of a leaf.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirection {
    /// `None` if the shell chooses the number.
    pub descriptor: Option<u32>,
    pub kind: RedirectKind,
    /// The path or the descriptor; the text of a here-document.
    pub target: Argument,
}

/// A word after expansion. Unknown parts stay as holes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Argument {
    pub pieces: Vec<ArgumentPiece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentPiece {
    Text(Vec<u8>),
    Hole(Hole),
}

/// A place in a word whose text is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    pub kind: HoleKind,
    pub reach: HoleReach,
}

/// The possible text of a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoleReach {
    /// Any text within the one word.
    Within,
    /// No word, or several.
    Words,
}

/// The source of a hole's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoleKind {
    Variable(Vec<u8>),
    /// File names, or the alternatives of braces.
    Pattern(Vec<u8>),
    /// The home of this user, or one's own.
    Home(Vec<u8>),
    Output(OutputOf),
    /// `$((…))`, which may be negative.
    Arithmetic,
    /// Digits: `$?`, `${#x}`.
    Digits {
        name: Vec<u8>,
        may_be_empty: bool,
    },
    /// The name of a process substitution's pipe.
    Process,
    /// Text from another program, such as `xargs`.
    Filled,
}

/// The program whose output a hole is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputOf {
    Mktemp,
    Pwd,
    /// `dirname "$0"`.
    ScriptFolder,
    /// `git rev-parse --show-toplevel`.
    GitTop,
    Other,
}

/// The byte for a hole in code. In a text itself it is a hole, too.
pub(super) const HOLE_BYTE: u8 = 1;

impl From<&[u8]> for Argument {
    fn from(bytes: &[u8]) -> Self {
        Self::of_text(bytes)
    }
}

impl Argument {
    pub(super) fn of_text(bytes: &[u8]) -> Self {
        Self { pieces: vec![ArgumentPiece::Text(bytes.to_vec())] }
    }

    pub(super) fn of_hole(kind: HoleKind, reach: HoleReach) -> Self {
        Self { pieces: vec![ArgumentPiece::Hole(Hole { kind, reach })] }
    }

    pub(super) fn push_text(&mut self, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some(ArgumentPiece::Text(text)) => text.extend_from_slice(bytes),
            _ => self.pieces.push(ArgumentPiece::Text(bytes.to_vec())),
        }
    }

    pub(super) fn push_hole(&mut self, kind: HoleKind, reach: HoleReach) {
        self.pieces.push(ArgumentPiece::Hole(Hole { kind, reach }));
    }

    /// The bytes, if there is no hole.
    #[must_use]
    pub fn text(&self) -> Option<&[u8]> {
        match &self.pieces[..] {
            [] => Some(b""),
            [ArgumentPiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The bytes, without the holes.
    pub(super) fn into_text(self) -> Vec<u8> {
        let mut texts = self.pieces.into_iter().filter_map(|piece| match piece {
            ArgumentPiece::Text(text) => Some(text),
            ArgumentPiece::Hole(_) => None,
        });
        let mut whole = texts.next().unwrap_or_default();
        texts.for_each(|text| whole.extend(text));
        whole
    }

    /// The bytes, with [`HOLE_BYTE`] for each hole, and without a copy of a long text that has none.
    pub(super) fn marked(&self) -> Cow<'_, [u8]> {
        self.text().map_or_else(|| Cow::Owned(self.with_marks()), Cow::Borrowed)
    }

    /// The bytes, with [`HOLE_BYTE`] for each hole.
    pub(super) fn with_marks(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                ArgumentPiece::Text(text) => bytes.extend_from_slice(text),
                ArgumentPiece::Hole(_) => bytes.push(HOLE_BYTE),
            }
        }
        bytes
    }

    /// The number of bytes, each hole counted as one.
    pub(super) fn length(&self) -> usize {
        let length = |piece: &ArgumentPiece| match piece {
            ArgumentPiece::Text(text) => text.len(),
            ArgumentPiece::Hole(_) => 1,
        };
        self.pieces.iter().map(length).sum()
    }

    /// Makes a hole of each place of a text, for text from another program. Returns true if there is one.
    pub(super) fn fill(&mut self, replaced: &[u8]) -> bool {
        let mut filled = Self::default();
        let mut is_filled = false;
        for piece in std::mem::take(&mut self.pieces) {
            let ArgumentPiece::Text(text) = piece else {
                filled.pieces.push(piece);
                continue;
            };
            let mut rest = &text[..];
            while let Some(at) = rest.windows(replaced.len()).position(|window| window == replaced) {
                if at > 0 {
                    filled.push_text(&rest[..at]);
                }
                filled.push_hole(HoleKind::Filled, HoleReach::Within);
                rest = &rest[at + replaced.len()..];
                is_filled = true;
            }
            if !rest.is_empty() {
                filled.push_text(rest);
            }
        }
        *self = filled;
        is_filled
    }

    /// The argument with adjacent texts joined.
    pub(super) fn joined(self) -> Self {
        if !self.pieces.windows(2).any(|two| matches!(two, [ArgumentPiece::Text(_), ArgumentPiece::Text(_)])) {
            return self;
        }
        let mut joined = Self::default();
        for piece in self.pieces {
            match piece {
                ArgumentPiece::Text(text) => joined.push_text(&text),
                hole @ ArgumentPiece::Hole(_) => joined.pieces.push(hole),
            }
        }
        joined
    }

    /// The texts between these bytes that are not empty. `None` if there are too many.
    pub(super) fn split(&self, between: &[u8]) -> Option<Vec<Self>> {
        let mut words = vec![Self::default()];
        for piece in &self.pieces {
            match piece {
                ArgumentPiece::Text(text) => {
                    for (at, run) in text.split(|byte| between.contains(byte)).enumerate() {
                        if at > 0 && words.last().is_some_and(|word| !word.pieces.is_empty()) {
                            words.push(Self::default());
                        }
                        if let Some(word) = words.last_mut().filter(|_| !run.is_empty()) {
                            word.push_text(run);
                        }
                    }
                }
                hole @ ArgumentPiece::Hole(_) => words.last_mut()?.pieces.push(hole.clone()),
            }
            if words.len() > limits::SCRIPT_TURNS_MAX {
                return None;
            }
        }
        words.retain(|word| !word.pieces.is_empty());
        Some(words)
    }

    /// Its approximate memory, bytes.
    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + self.pieces.len() * size_of::<ArgumentPiece>() + self.length()
    }

    /// An argument that another program fills in.
    pub(super) fn filled(reach: HoleReach) -> Self {
        Self::of_hole(HoleKind::Filled, reach)
    }

    /// Returns true if it has a hole.
    pub(super) fn has_hole(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, ArgumentPiece::Hole(_)))
    }

    /// Returns true if it is one hole of this kind, and nothing else.
    pub(super) fn is_only(&self, kind: &HoleKind) -> bool {
        matches!(&self.pieces[..], [ArgumentPiece::Hole(hole)] if hole.kind == *kind)
    }

    /// The argument with another text in the place of its first piece.
    #[must_use]
    pub fn with_first(&self, text: &[u8]) -> Self {
        let rest = self.pieces.iter().skip(1).cloned();
        Self { pieces: [ArgumentPiece::Text(text.to_vec())].into_iter().chain(rest).collect() }
    }

    /// The argument as a word of code, with [`HOLE_BYTE`] for each hole.
    pub(super) fn as_code(&self) -> Vec<u8> {
        let mut bytes = vec![b'\''];
        for byte in self.with_marks() {
            match byte {
                b'\'' => bytes.extend_from_slice(b"'\\''"),
                _ => bytes.push(byte),
            }
        }
        bytes.push(b'\'');
        bytes
    }

    /// The argument in words: its text, with the holes as written.
    #[must_use]
    pub fn shown(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in &self.pieces {
            match piece {
                ArgumentPiece::Text(text) => bytes.extend_from_slice(text),
                ArgumentPiece::Hole(hole) => hole.kind.show(&mut bytes),
            }
        }
        bytes
    }
}

impl HoleKind {
    fn show(&self, bytes: &mut Vec<u8>) {
        match self {
            HoleKind::Variable(name) if name.is_empty() => bytes.extend_from_slice(b"${\xe2\x80\xa6}"),
            HoleKind::Variable(name) => {
                bytes.push(b'$');
                bytes.extend_from_slice(name.strip_suffix(b"[@]").unwrap_or(name));
            }
            HoleKind::Pattern(written) => bytes.extend_from_slice(written),
            HoleKind::Digits { name, .. } => bytes.extend([b"$", &name[..]].concat()),
            HoleKind::Home(user) => {
                bytes.push(b'~');
                bytes.extend_from_slice(user);
            }
            HoleKind::Output(OutputOf::Mktemp) => bytes.extend_from_slice(b"$(mktemp)"),
            HoleKind::Output(OutputOf::Pwd) => bytes.extend_from_slice(b"$(pwd)"),
            HoleKind::Output(OutputOf::ScriptFolder) => bytes.extend_from_slice(b"$(dirname \"$0\")"),
            HoleKind::Output(OutputOf::GitTop) => bytes.extend_from_slice(b"$(git rev-parse --show-toplevel)"),
            HoleKind::Output(OutputOf::Other) => bytes.extend_from_slice("$(…)".as_bytes()),
            HoleKind::Arithmetic => bytes.extend_from_slice("$((…))".as_bytes()),
            HoleKind::Process => bytes.extend_from_slice("<(…)".as_bytes()),
            HoleKind::Filled => bytes.extend_from_slice("…".as_bytes()),
        }
    }
}
