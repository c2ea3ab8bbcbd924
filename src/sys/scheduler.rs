//! The scheduling policy of a process (sched(7)), by system calls: the functions of musl's C library refuse them.

use nix::libc::{self, c_int};

/// The policy and the static priority of this process; 0 if they cannot be read.
#[must_use]
pub fn own() -> (c_int, c_int) {
    let mut priority: c_int = 0;
    // SAFETY: the calls take numbers, and a structure of one number, which one of them fills.
    let policy = unsafe {
        libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
        libc::syscall(libc::SYS_sched_getscheduler, 0)
    };
    (c_int::try_from(policy).unwrap_or(0).max(0), priority)
}

/// Sets both, if the kernel permits. Makes only one system call.
pub fn set(policy: c_int, priority: c_int) {
    // SAFETY: the call reads a structure of one number.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
}

#[cfg(test)]
mod tests {
    use super::{libc, own, set};

    #[test]
    fn a_policy_that_is_set_is_read() {
        // Of this thread alone.
        let before = own();
        set(libc::SCHED_BATCH, 0);
        assert_eq!((before, own()), ((libc::SCHED_OTHER, 0), (libc::SCHED_BATCH, 0)));
    }
}
