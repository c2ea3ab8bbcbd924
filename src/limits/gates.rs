//! The bounds of rules on commands.

use std::time::Duration;

/// A file of rules, bytes. A longer one is refused.
pub const RULES_FILE_BYTES_MAX: usize = 1 << 20;
/// Rules of one file. A file with more is refused.
pub const RULES_MAX: usize = 1_000;
/// The longest reason that a rule gives, bytes. The agent reads it in a line of 400 bytes.
pub const RULE_WHY_BYTES_MAX: usize = 300;
/// The longest glob, bytes.
pub const RULE_GLOB_BYTES_MAX: usize = 256;
/// How much of a word with holes is compared with a glob, bytes. The rest counts as not known.
pub const RULE_WORD_BYTES_MAX: usize = 4 << 10;
/// The keys of one table of such a file.
pub const RULE_KEYS_MAX: usize = 64;
/// How long a person is waited for, unless the rules say otherwise.
pub const ASK_WAIT: Duration = Duration::from_secs(60);
/// The longest call that the host's rules are asked about, bytes. Reading it may take a millisecond, in which the host
/// serves nobody.
pub const RULES_CALL_BYTES_MAX: usize = 8 << 10;
