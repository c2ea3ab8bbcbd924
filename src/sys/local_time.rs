//! The human's clock: its offset from UTC. See localtime_r(3).

use nix::libc;

/// The offset from UTC at this moment (seconds since 1970), in seconds; 0 if the zone is unknown.
#[must_use]
pub fn offset(seconds: i64) -> i32 {
    // SAFETY: all fields of tm are numbers or a pointer that may be null.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to values of this function. rexec has one thread and never changes TZ.
    let filled = unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) };
    if filled.is_null() { 0 } else { i32::try_from(parts.tm_gmtoff).unwrap_or(0) }
}
