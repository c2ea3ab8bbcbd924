//! The inheritance of a process besides descriptors and signals.

use std::ffi::c_int;
use std::ptr;

use nix::libc;

/// umask(2). It can only be read by setting it. For that instant it is the strictest one; no file is created then.
pub(crate) fn umask() -> u32 {
    // SAFETY: umask takes any mask and cannot fail.
    unsafe {
        let mask = libc::umask(0o777);
        libc::umask(mask);
        mask
    }
}

/// Soft and hard limit of this resource. `None` beyond the last resource.
pub(crate) fn limit(resource: u32) -> Option<(u64, u64)> {
    let mut limits = [0_u64; 2];
    // SAFETY: the kernel writes a struct rlimit64, two 64-bit numbers, to `limits`.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, ptr::null::<u64>(), limits.as_mut_ptr()) };
    (result == 0).then_some((limits[0], limits[1]))
}

/// The nice value, −20 to 19.
pub(crate) fn nice() -> i32 {
    // SAFETY: getpriority has no preconditions. The raw call returns 20 − nice, so that no value looks like an error.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    i32::try_from(raw).ok().filter(|raw| *raw > 0).map_or(0, |raw| 20 - raw)
}

/// ioprio_get(2). 0 if the priority follows the nice value.
pub(crate) fn io_priority() -> i32 {
    const IOPRIO_WHO_PROCESS: c_int = 1;
    // SAFETY: the call takes numbers.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
    i32::try_from(priority).map_or(0, |priority| priority.max(0))
}

/// Policy and priority of sched(7).
pub(crate) fn scheduler() -> (i32, i32) {
    // SAFETY: the call takes a number.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let Some(policy) = i32::try_from(policy).ok().filter(|&policy| policy > 0) else { return (0, 0) };
    let mut priority: c_int = 0;
    // SAFETY: the kernel writes a struct sched_param, which is one int.
    unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
    (policy, priority)
}

/// personality(2).
pub(crate) fn personality() -> u32 {
    // SAFETY: this number asks and changes nothing.
    let personality = unsafe { libc::personality(0xffff_ffff) };
    u32::try_from(personality).unwrap_or(0)
}

/// The timer slack, nanoseconds.
pub(crate) fn timer_slack() -> Option<u64> {
    // SAFETY: the call takes numbers. The raw one, because the C library's answer is an int.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(slack).ok()
}

/// Returns true if this process gets no huge pages (PR_GET_THP_DISABLE of prctl(2)).
pub(crate) fn has_no_huge_pages() -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 }
}

/// Writes the mask of this process's CPUs to the buffer, laid out as by the kernel. Returns its size in bytes.
pub(crate) fn affinity(buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes within the buffer.
    let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, buffer.len(), buffer.as_mut_ptr()) };
    usize::try_from(bytes).unwrap_or(0)
}
