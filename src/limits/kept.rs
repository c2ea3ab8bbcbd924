//! The bounds of what is kept before a command destroys it.

/// Names that the patterns of an operand are compared with. Beyond it, the operand is named as not kept as a whole.
pub const KEPT_MATCHES_MAX: usize = 100_000;
/// Bytes of a manifest. Beyond it, what comes is named as not kept.
pub const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// The longest line of a manifest that is read, bytes.
pub const MANIFEST_LINE_BYTES_MAX: u64 = 1 << 20;
/// The longest path that is kept, bytes.
pub const KEPT_PATH_BYTES_MAX: usize = 128 << 10;
/// Bytes that are copied before one command.
pub const COPIED_BYTES_MAX: u64 = 64 << 20;
