//! A reference to a shared text, in the place of a long argument.

use serde::{Deserialize, Serialize};

/// How to put a long argument together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextRef {
    /// The number of the text.
    pub id: u64,
    /// How many bytes of the text's beginning come first.
    pub head: usize,
    /// What comes next: the argument's own part.
    pub own: String,
    /// How many bytes of the text's end come last.
    pub tail: usize,
}
