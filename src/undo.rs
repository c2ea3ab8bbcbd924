//! What a command destroys, as far as its text tells.
//!
//! [`losses`] reads a command's leaves and names the operands whose files go away or change: of `rm`, of a redirection, of
//! `sed -i`. `rexec explain` shows them.

mod operand;
mod operands;

pub use operand::{Extent, Loss, Operand, PathPattern, Step};
pub use operands::{Losses, losses};
