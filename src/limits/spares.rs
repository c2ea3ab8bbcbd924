//! How many guards wait for commands, and for how long.

use std::time::Duration;

/// Guards kept ready with terminal and session, ahead of demand. When none is left, the next one is made on demand.
pub const SPARE_GUARDS: usize = 2;
/// A guard without a terminal, whose command has left nothing, waits this long for another command, as long as there are
/// more than [`PARKED_GUARDS`] of them. So as many wait as ran at once in this time. Then it ends.
pub const PARKED_TIME: Duration = Duration::from_secs(1);
/// This many of them wait longer …
pub const PARKED_GUARDS: usize = 4;
/// … this long. Then they end, and a host without work sleeps.
pub const PARKED_IDLE: Duration = Duration::from_secs(10);
/// As many as this wait at the most; each takes about 250 KiB. Others end at once.
pub const PARKED_GUARDS_MAX: usize = 64;
/// After a spare guard could not be made, or died younger than this, none is tried for this long.
pub const SPARE_PAUSE: Duration = Duration::from_secs(1);
