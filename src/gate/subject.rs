//! A leaf as rules look at it. What several rules need of it is worked out once.

use std::cell::OnceCell;

use super::places::{self, Facts, Path};
use super::statements;
use super::words::{ValueOptions, Words};
use crate::script::{Argument, Leaf};

#[derive(Debug)]
pub(super) struct Subject<'l> {
    pub(super) leaf: &'l Leaf,
    pub(super) facts: &'l Facts<'l>,
    programs: &'l [ValueOptions],
    words: OnceCell<Words<'l>>,
    statements: OnceCell<Vec<Argument>>,
    operands: OnceCell<Vec<Path>>,
    written: OnceCell<Vec<Path>>,
    is_elsewhere: OnceCell<bool>,
}

impl<'l> Subject<'l> {
    pub(super) fn of(leaf: &'l Leaf, programs: &'l [ValueOptions], facts: &'l Facts<'l>) -> Self {
        let (words, statements) = (OnceCell::new(), OnceCell::new());
        let (operands, written) = (OnceCell::new(), OnceCell::new());
        Self { leaf, facts, programs, words, statements, operands, written, is_elsewhere: OnceCell::new() }
    }

    pub(super) fn words(&self) -> &Words<'l> {
        self.words.get_or_init(|| Words::of(self.leaf, self.programs))
    }

    /// Returns true if its paths are those of another machine or of a container.
    pub(super) fn is_elsewhere(&self) -> bool {
        *self.is_elsewhere.get_or_init(|| self.leaf.is_elsewhere())
    }

    /// See [`statements::statements`].
    pub(super) fn statements(&self) -> &[Argument] {
        self.statements.get_or_init(|| statements::statements(self.leaf))
    }

    /// The path of each operand.
    pub(super) fn operands(&self) -> &[Path] {
        let path = |word| Path::of(word, self.leaf, self.facts);
        self.operands.get_or_init(|| self.words().operands.iter().map(|operand| path(operand.word)).collect())
    }

    /// The paths of the files that it writes.
    pub(super) fn written(&self) -> &[Path] {
        let written = || places::written(self.leaf, || self.words());
        self.written.get_or_init(|| written().iter().map(|word| Path::of(word, self.leaf, self.facts)).collect())
    }
}
