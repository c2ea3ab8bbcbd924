//! The bounds of servers on standard input and output: `rexec mcp` and `rexec exec-server`.

use std::time::Duration;

/// What waits to be sent to the client, or to the host, bytes. Beyond it nothing more is read that causes more of it.
pub const STDIO_QUEUE_BYTES: usize = 1 << 20;
/// How long a client that has closed its side is answered what it has asked for before.
pub const STDIO_LAST_ANSWER: Duration = Duration::from_secs(1);
/// How long the last lines may take to be written when the client or a signal ends the server.
pub const STDIO_FAREWELL: Duration = Duration::from_secs(1);
