//! Bounds on what is found of what commands destroy.

/// Operands of one command. What others destroy is not known.
pub const DESTROYED_OPERANDS_MAX: usize = 4_096;
/// Programs of one command that are named because their operands are not known.
pub const DESTROYED_UNKNOWN_MAX: usize = 8;
