//! Bounds on what is found of what commands destroy.

/// Operands of one command. What others destroy is not known.
pub const DESTROYED_OPERANDS_MAX: usize = 4_096;
/// Commands of git in one command whose files are kept.
pub const DESTROYED_REPOSITORIES_MAX: usize = 16;
/// Programs of one command that are named because their operands are not known.
pub const DESTROYED_UNKNOWN_MAX: usize = 8;
/// Parentheses in an expression of find. Of one with more, no test is read.
pub const FIND_DEPTH_MAX: usize = 16;
/// Alternatives in it. More count as anything.
pub const FIND_ALTERNATIVES_MAX: usize = 16;
/// Names that are read in a file of differences. What more of them would change is not known.
pub const PATCHED_NAMES_MAX: usize = 2_048;
