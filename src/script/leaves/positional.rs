//! The positional parameters `$1`, `$2` and so on. Copies share their words, since every branch and every subshell takes one.

use std::rc::Rc;

use crate::script::leaf::Argument;

#[derive(Debug, Clone)]
pub(super) struct Positional {
    words: Rc<[Argument]>,
    /// The number of words that `shift` has taken away.
    shifted: usize,
}

impl From<Vec<Argument>> for Positional {
    fn from(words: Vec<Argument>) -> Self {
        Self { words: words.into(), shifted: 0 }
    }
}

impl Positional {
    pub(super) fn words(&self) -> &[Argument] {
        &self.words[self.shifted..]
    }

    pub(super) fn shift(&mut self) {
        self.shifted = self.words.len().min(self.shifted + 1);
    }
}

impl PartialEq for Positional {
    fn eq(&self, other: &Self) -> bool {
        (Rc::ptr_eq(&self.words, &other.words) && self.shifted == other.shifted) || self.words() == other.words()
    }
}
