//! The bounds of reports: what shims in sandboxes may say about the commands that they run.

use std::time::Duration;

/// Commands in sandboxes that report at once. Further ones run unseen, which the console says once.
pub const REPORTED_MAX: usize = 256;
/// Commands in sandboxes whose reports begin in a second. Further ones run unseen, which the console says once. Each one
/// costs lines of the journal and of the console, so a process that forges reports could fill both.
pub const REPORTS_BEGUN_A_SECOND: u32 = 200;
/// Looks at processes in a second that reports name as their shims. Further reports in that second are dropped: the look
/// costs up to a millisecond, and whoever forges a report chooses the process.
pub const REPORT_LOOKS_A_SECOND: u32 = 400;
/// Callers in a second of which the console says that they run a shell or a command without this host. Of further ones it
/// says, once, that there are some.
pub const CLAIMS_A_SECOND: u32 = 10;
/// Refused callers whose report is awaited, and reports whose beginning is not whole, each. Further callers are shown as
/// unseen; a further beginning takes the place of the oldest one.
pub const REPORTS_EXPECTED_MAX: usize = 64;
/// How long the rest of a beginning, or the report of a refused caller, is awaited.
pub const REPORT_PATIENCE: Duration = Duration::from_secs(2);
/// What is read of all reports, bytes a second. Shims find the FIFO full then, and count what they leave out.
pub const REPORT_BYTES_A_SECOND: usize = 8 << 20;
/// What is taken of one run's output, bytes a second. The rest is counted.
pub const REPORT_RUN_BYTES_A_SECOND: usize = 4 << 20;
/// What is kept of a run's output for which there is no room, bytes: its newest part, which is shown at the next chance.
/// Twice as much may be held.
pub const REPORT_HELD_BYTES: usize = 16 << 10;
/// How long a run reports nothing before what was held back is told, unless its log is still full.
pub const REPORT_REST: Duration = Duration::from_millis(100);
/// The largest number of unreported bytes that a record is believed.
pub const REPORT_UNREPORTED_MAX: u64 = 1 << 44;
/// From a report's beginning to the first look whether its shim still lives. The pauses then double …
pub const REPORT_LOOK: Duration = Duration::from_secs(2);
/// … up to this.
pub const REPORT_LOOK_MAX: Duration = Duration::from_secs(30);
/// From a report's end to the first look whether its shim has gone, too. The pauses then double.
pub const REPORT_END_LOOK: Duration = Duration::from_millis(2);
/// How long a shim may take to go after it has reported its end. Of one that stays, the report was forged.
pub const REPORT_END_PATIENCE: Duration = Duration::from_secs(5);
/// How often the processes of a reported run are looked at while it is ended.
pub const REPORT_KILL_PAUSE: Duration = Duration::from_millis(100);
/// SIGKILLs for the processes below a shim before it gets one itself.
pub const REPORT_KILLS_MIN: u32 = 5;
/// Looks at the tree of a reported run that a pause takes. What is forked faster goes on, and is named.
pub const REPORT_PAUSE_ROUNDS_MAX: u32 = 4;
/// Reports that have begun and wait for the search for their shims. Further ones are not shown.
pub const REPORTS_SOUGHT_MAX: usize = 128;
/// Processes that a search for shims looks at in one turn of the loop.
pub const REPORT_SEARCH_PART: usize = 100;
/// How long the next search waits after one, in times that it took.
pub const REPORT_SEARCH_REST: u32 = 10;
/// Reports that may name the same process as their shim. One of them is true.
pub const REPORTS_OF_ONE_SHIM: usize = 4;
/// So many records of a run make the host look below its shim, beside the regular looks …
pub const REPORT_LOOKS_BELOW: u32 = 8;
/// … and so many processes there are remembered.
pub const REPORT_KNOWN_BELOW: usize = 256;
/// Shims are remembered whose reports found no room, up to this many.
pub const REPORTS_DROPPED_KNOWN: usize = 1_024;
