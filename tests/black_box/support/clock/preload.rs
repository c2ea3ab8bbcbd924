//! A clock that a test can set, for a program that it starts with this library in `LD_PRELOAD`.
//!
//! The file that `REXEC_TEST_CLOCK` names holds two numbers of seconds: the difference of the wall clock, and of the
//! monotonic clock, from the kernel's. The library reads the file each time the program asks for the time.

#![expect(unsafe_code, reason = "the function stands in the place of one of the C library's")]

use nix::libc::{self, c_int, clockid_t, timespec};

/// As clock_gettime(2).
///
/// # Safety
/// As clock_gettime(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    // SAFETY: the arguments are the caller's.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) };
    if result == 0 {
        // SAFETY: the kernel has just written there.
        unsafe { (*time).tv_sec += offset(clock) };
    }
    c_int::from(result != 0).wrapping_neg()
}

/// Seconds between the kernel's clock and what the program is told.
fn offset(clock: clockid_t) -> i64 {
    let place = match clock {
        libc::CLOCK_REALTIME => 0,
        libc::CLOCK_MONOTONIC => 1,
        _ => return 0,
    };
    let text = std::env::var_os("REXEC_TEST_CLOCK").and_then(|path| std::fs::read_to_string(path).ok());
    text.and_then(|text| text.split_ascii_whitespace().nth(place)?.parse().ok()).unwrap_or(0)
}
