//! What a command destroys: named beforehand, kept, and brought back.
//!
//! [`losses`] reads a command's leaves and names the operands whose files go away or change: of `rm`, of a redirection, of
//! `sed -i`. [`keep`](keeping::keep) links or copies what they name into the store before the command runs, and writes a manifest;
//! [`settle`](settling::settle) takes out afterwards what is still there. Both work in processes of their own below the guard.

mod archive;
pub mod exceptions;
mod expansion;
mod finding;
mod git;
pub mod keeping;
pub mod manifest;
mod name_pattern;
mod operand;
mod operands;
mod patches;
mod present;
pub mod record;
mod repository;
pub mod restoring;
pub mod settling;
pub mod store;
pub mod tidying;

use crate::gate::Gate;
pub use crate::gate::KeepingBounds;
use crate::script::VariableLookup;
pub use operand::{Extent, Loss, Operand, PathPattern, Step};
pub use operands::{Losses, losses};
pub use repository::{Ignored, Listing, OwnFiles, RepositoryLoss, Since};

/// What a call destroys, as the host gets it.
#[must_use]
pub fn losses_of_call(call: &[Vec<u8>], environment: VariableLookup<'_>) -> Losses {
    losses(&Gate::default().leaves_of_call(call, environment))
}
