//! The bounds of `rexec mcp`.

use std::time::Duration;

/// The longest line from an MCP client, bytes. A longer one is skipped and answered with an error.
pub const MCP_LINE_BYTES_MAX: usize = 4 << 20;
/// The longest line from the host, bytes. A longer one ends the connection to it.
pub const MCP_HOST_LINE_BYTES_MAX: usize = 16 << 20;
/// Messages in one line of a client. A line with more is refused.
pub const MCP_BATCH_MAX: usize = 64;
/// Tool calls of one client that have no result yet. One more gets an error.
pub const MCP_CALLS_MAX: usize = 256;
/// Runs of one client that are remembered. The oldest are forgotten: what is new in their output then means all of it.
pub const MCP_RUNS_MAX: usize = 1_000;
/// A command or a look at its output that takes longer than this returns with what there is. Some clients give a call up
/// after 60 seconds.
pub const MCP_CALL: Duration = Duration::from_secs(45);
/// A tool call that the host has not answered for this long, or this long after [`MCP_CALL`], gets an error.
pub const MCP_ANSWER: Duration = Duration::from_secs(4);
/// How long a call waits for the end of a command that it has started in the background, which would be a failure.
pub const MCP_BACKGROUND_LOOK: Duration = Duration::from_secs(1);
/// How long a call waits for the end of a run that it ends. The result says if the run goes on.
pub const MCP_KILL: Duration = Duration::from_secs(5);
/// Output in one result, bytes. Of more, the beginning and the end are returned.
pub const MCP_TEXT_BYTES: usize = 10_000;
/// Time between two progress notifications of one call.
pub const MCP_PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// Output that is asked of the host at once, bytes …
pub const MCP_READ_BYTES: usize = 256 << 10;
/// … and the time between two questions, in which a command may write more.
pub const MCP_READ_EVERY: Duration = Duration::from_millis(100);
