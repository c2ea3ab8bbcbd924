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
/// Processes above one that decides on a held command that are looked at. One with more may not decide.
pub const DECIDER_ANCESTORS_MAX: usize = 64;
/// The longest reason that a person gives for a no, bytes.
pub const NO_WHY_BYTES_MAX: usize = 200;
/// The caller of a held command is told after this time that it waits for its user.
pub const HOLD_TOLD_AFTER: Duration = Duration::from_secs(2);
/// A question must have stood on the status line for this long before a key answers it.
pub const QUESTION_SEEN: Duration = Duration::from_millis(500);
/// How long a person is waited for, unless the rules say otherwise.
pub const ASK_WAIT: Duration = Duration::from_secs(60);
/// A question is over this long before its agent kills the command.
pub const PATIENCE_LEFT: Duration = Duration::from_secs(10);
/// How many days a person's "always" counts.
pub const LEARNED_DAYS: i64 = 30;
/// What a person always allows. The oldest go.
pub const LEARNED_MAX: usize = 100;
/// The words of one of them, and their bytes.
pub const LEARNED_WORDS_MAX: usize = 64;
pub const LEARNED_BYTES_MAX: usize = 1_000;
/// Unanswered asks that a person may still answer. The oldest go.
pub const LATER_ASKS_MAX: usize = 64;
/// Bytes of their commands together. The oldest go.
pub const LATER_BYTES_MAX: usize = 4 << 20;
/// How long a person may still answer one, and how long a yes then holds for the next run of it.
pub const LATER_KEPT: Duration = Duration::from_secs(600);
/// The longest call that the host reads itself to judge it, bytes. Reading it may take a millisecond, in which the host
/// serves nobody.
pub const RULES_CALL_BYTES_MAX: usize = 8 << 10;
/// Processes that read longer calls at once. Further calls wait.
pub const JUDGES_MAX: usize = 4;
/// Processes that a look at the victims of a command goes through.
pub const VICTIMS_MAX: usize = 4096;
/// Bytes that are read of what a program says that finds processes.
pub const VICTIMS_BYTES_MAX: u64 = 64 << 10;
/// How long such a process may read, which takes some 10 ms where it is not delayed. Then it is killed, and the call counts
/// as one of which it is not known what runs.
pub const JUDGE_WAIT: Duration = Duration::from_secs(10);
/// A project's file of rules, bytes. A longer one is refused.
pub const PROJECT_RULES_BYTES_MAX: usize = 256 << 10;
/// Files whose text a person has accepted. Further ones are refused.
pub const ACCEPTED_MAX: usize = 1_000;
/// How long what was seen of a file of rules counts before the next command has it looked at again.
pub const RULE_FILES_LOOK: Duration = Duration::from_secs(1);
