//! The bounds of what is kept before a command destroys it.

use std::time::Duration;

/// The time for which a collector begins to keep more, unless `[undo]` says.
pub const KEEPING: Duration = Duration::from_secs(10);
/// The most that it may say.
pub const KEEPING_MAX: Duration = Duration::from_secs(300);
/// How much longer a command waits for its collector.
pub const KEEPING_SLACK: Duration = Duration::from_secs(2);
/// After this time, a person is told that something is being kept.
pub const KEEPING_SHOWN_AFTER: Duration = Duration::from_millis(500);
/// The time that a collector has to be gone after SIGKILL.
pub const COLLECTOR_END: Duration = Duration::from_secs(1);
/// The largest file that is copied where it cannot be linked, unless `[undo]` says, bytes.
pub const COPIED_FILE_BYTES: u64 = 1 << 20;
/// The most that it may say, bytes.
pub const COPIED_FILE_BYTES_MAX: u64 = 1 << 30;
/// Patterns of what is not kept.
pub const EXCEPTIONS_MAX: usize = 64;
/// Operands that are looked at to see whether a collector is needed. If there are more, it is.
pub const OPERANDS_LOOKED_AT: usize = 16;

/// After this time, what is kept is removed.
pub const KEPT_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How often that is done, at most.
pub const KEPT_TIDIED_EVERY: Duration = Duration::from_secs(600);
/// Kept bytes of one command after which it is done at once.
pub const KEPT_TIDIED_AT_ONCE_BYTES: u64 = 1 << 20;
/// Free bytes of a disk below which nothing is kept there, and what is kept is removed; of a smaller one a tenth.
pub const KEPT_RESERVE_BYTES: u64 = 2 << 30;
/// The time after its shell's end in which processes of a command may still destroy what is kept. The rest of it goes then.
pub const SETTLED_AFTER: Duration = Duration::from_secs(60);
/// How fast a disk may be filled, at most, bytes a second: so often its room is looked at while something is kept.
pub const FILLED_BYTES_A_SECOND: u64 = 1 << 30;
/// The time between two looks at its room.
pub const ROOM_LOOKS_SHORTEST: Duration = Duration::from_millis(100);
pub const ROOM_LOOKS_LONGEST: Duration = Duration::from_secs(10);
/// Names that the patterns of an operand are compared with. Beyond it, the operand is named as not kept as a whole.
pub const KEPT_MATCHES_MAX: usize = 100_000;
/// Names below a directory that are copied where the text does not tell which of them a command replaces. Of more, none has to be.
pub const KEPT_BELOW_MAX: usize = 500;
/// Names of an archive of which each is kept alone. One with more does not tell what it replaces.
pub const ARCHIVE_NAMES_MAX: usize = 10_000;
/// The largest archive that is unpacked to find its names, bytes. It takes about as long as the command itself.
pub const ARCHIVE_UNPACKED_BYTES_MAX: u64 = 2 << 20;
/// The most that such an archive may have in it, or a zip file's list of names, bytes.
pub const ARCHIVE_BYTES_MAX: usize = 32 << 20;
/// The longest facts about one file in an archive, bytes.
pub const ARCHIVE_HEADER_BYTES_MAX: u64 = 256 << 10;
/// The largest file of differences that is read, bytes.
pub const PATCH_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a manifest. Beyond it, what comes is named as not kept.
pub const MANIFEST_BYTES_MAX: u64 = 256 << 20;
/// The longest line of a manifest that is read, bytes.
pub const MANIFEST_LINE_BYTES_MAX: u64 = 1 << 20;
/// The longest path that is kept, bytes.
pub const KEPT_PATH_BYTES_MAX: usize = 128 << 10;
/// Files that are copied before one command, which takes about half a second.
pub const COPIED_FILES_MAX: usize = 5_000;
/// Bytes that are copied before one command, unless one file may have more.
pub const COPIED_BYTES_MAX: u64 = 64 << 20;
/// Bytes of names that git tells of one command. Beyond it, what it would destroy is named as not kept.
pub const GIT_ANSWER_BYTES_MAX: usize = 64 << 20;
/// The longest HEAD of a repository that is read, bytes.
pub const GIT_HEAD_BYTES_MAX: u64 = 4 << 10;
/// Bytes of a file's extended attributes, their names included. Files with more are named.
pub const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
