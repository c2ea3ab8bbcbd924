//! A reference to a shared text, in the place of a long argument.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextRef {
    pub id: u64,
    /// How many bytes of the text's beginning come first.
    pub head: usize,
    /// The argument's own part, which comes next.
    pub own: String,
    /// How many bytes of the text's end come last.
    pub tail: usize,
}
