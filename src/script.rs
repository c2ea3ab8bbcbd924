//! A command's text, read as the shell will read it: which programs it runs, and which of them it feeds.
//!
//! [`leaves()`] names every program, with its arguments, its redirections, what leads to it, and how well it is known.
//! [`feeds()`] says whether something is piped or redirected into a program that may read answers, because such a command
//! runs without a terminal.
//!
//! ```text
//!   text ──syntax──▶ tree ──┬─leaves──▶ Leaf   (values put in, wrappers taken off, code in arguments read again)
//!                           └─feeds───▶ Fed    (who has something on standard input)
//! ```
//!
//! Invariants: nothing is started, and nothing is looked up on the disk. The text is the one that the shell gets, never
//! what a person is shown of it. What is not understood is said to be so, with a reason. Time is linear in the text, and
//! [`limits`](crate::limits) bounds memory and recursion, whatever the text is. dash and zsh are read as bash.

mod feeds;
mod leaf;
mod leaves;
mod programs;
mod syntax;
mod tree;
mod values;
mod wrappers;

pub use feeds::{Excuse, Fed, FedBy, FedCommand, Feeding, SudoAsks, feeding, feeds, shell_controls_jobs};
pub use leaf::{
    Argument, ArgumentPiece, Hole, HoleKind, HoleReach, Leaf, LeafState, OpaqueReason, OutputOf, Pipes, Redirection,
    Via,
};
pub use leaves::{Leaves, leaves, leaves_of_arguments, leaves_of_program};
pub use programs::{base_name, is_listed};
pub use tree::{Problem, RedirectKind};
pub use values::VariableLookup;
