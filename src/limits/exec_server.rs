//! The bounds of `rexec exec-server`: what it takes from its client and keeps for it.

use std::time::Duration;

/// The longest line of a client or a host, bytes. A longer one is refused without being kept.
pub const EXEC_SERVER_LINE_BYTES_MAX: usize = 96 << 20;
/// The largest file that is read as a whole, bytes. A larger one is refused.
pub const EXEC_SERVER_FILE_BYTES_MAX: u64 = 64 << 20;
/// Entries of a directory, or of a walk. Further ones are left out, and a walk says so.
pub const EXEC_SERVER_ENTRIES_MAX: usize = 20_000;
/// Output that is kept of a process for later reading, bytes. Beyond it the oldest goes.
pub const EXEC_SERVER_KEPT_BYTES: usize = 1 << 20;
/// Closed processes whose output is kept. Older ones have no output to read any more.
pub const EXEC_SERVER_READABLE_MAX: usize = 16;
/// Closed processes whose names are known. The oldest is forgotten, and its name may be used again.
pub const EXEC_SERVER_CLOSED_MAX: usize = 1_024;
/// The longest name of a process, bytes. A longer one is refused.
pub const EXEC_SERVER_NAME_BYTES_MAX: usize = 1_024;
/// Writes of one process whose names are known. An older one would be done again if it came again.
pub const EXEC_SERVER_WRITES_KNOWN: usize = 64;
/// Clients' reads that wait for output. One more is answered at once.
pub const EXEC_SERVER_READS_MAX: usize = 256;
/// The longest wait of a read. A longer one counts as this.
pub const EXEC_SERVER_WAIT_MAX: Duration = Duration::from_secs(600);
