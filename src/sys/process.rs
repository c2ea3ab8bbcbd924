//! The host's own process: its identity and its limits.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::limits;
use rexec_sh::protocol::process::Pid;

#[must_use]
pub fn uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The login shell of this user's account (passwd(5)); `None` without an account, or if none is named.
#[must_use]
pub fn login_shell() -> Option<PathBuf> {
    let account = nix::unistd::User::from_uid(nix::unistd::getuid()).ok()??;
    (!account.shell.as_os_str().is_empty()).then_some(account.shell)
}

/// The name of this user's account (passwd(5)); `None` without an account.
#[must_use]
pub fn account_name() -> Option<String> {
    let account = nix::unistd::User::from_uid(nix::unistd::getuid()).ok()??;
    (!account.name.is_empty()).then_some(account.name)
}

#[must_use]
pub fn pid() -> Pid {
    Pid::new(std::process::id().cast_signed())
}

/// Checks `is_true` every millisecond, for at most `time`. Returns true if it came true.
#[expect(clippy::disallowed_methods, reason = "a guard may wait a moment for what its command is just doing")]
pub(crate) fn comes_true_within(time: Duration, is_true: impl Fn() -> bool) -> bool {
    const STEP: Duration = Duration::from_millis(1);
    let from = Instant::now();
    while !is_true() {
        if from.elapsed() >= time {
            return false;
        }
        std::thread::sleep(STEP);
    }
    true
}

/// Returns true if a child has not ended. Reaps it if the kernel does not.
pub(crate) fn is_living_child(pid: Pid) -> bool {
    // SAFETY: the call takes numbers and a null pointer, and waits for nothing.
    unsafe { nix::libc::waitpid(pid.number(), std::ptr::null_mut(), nix::libc::WNOHANG) == 0 }
}

/// Raises the soft limit on descriptors towards the hard limit. Commands get their caller's limit.
pub fn raise_descriptor_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted_descriptors(soft, hard), hard);
    }
}

/// Makes malloc(3) of glibc use mmap(2) for every large block. By default it moves large blocks to the heap once a few
/// were freed, and buffers that grow side by side leave holes there, together as large as the buffers. The end of the
/// heap is kept: output in flight grows and shrinks it all the time, and fresh pages cost more than the work on them.
pub fn keep_large_blocks_apart() {
    #[cfg(target_env = "gnu")]
    {
        use nix::libc;
        // SAFETY: the call takes numbers, and the process has one thread.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, limits::LARGE_BLOCK_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, limits::KEPT_HEAP_BYTES);
        }
    }
}

fn wanted_descriptors(soft: u64, hard: u64) -> u64 {
    hard.min(limits::HOST_DESCRIPTORS).max(soft)
}

#[must_use]
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(soft, _)| soft)
}

/// Makes this process the parent of its orphaned descendants: processes that lose their guard.
///
/// # Errors
/// As prctl(2).
pub fn adopt_orphans() -> io::Result<()> {
    nix::sys::prctl::set_child_subreaper(true).map_err(super::io)
}

/// Makes a child the leader of a process group of its own.
///
/// # Errors
/// EACCES once the child has executed, as setpgid(2).
pub fn lead_group(child: Pid) -> io::Result<()> {
    let child = nix::unistd::Pid::from_raw(child.number());
    nix::unistd::setpgid(child, child).map_err(super::io)
}

/// Makes this process wait for its turn when it wakes (SCHED_BATCH, sched(7)), instead of taking the place of a running
/// one: nobody waits for its answer.
pub fn give_way() {
    super::scheduler::set(nix::libc::SCHED_BATCH, 0);
}

/// Leaves processor and disk to all other processes, as nice(1) and ionice(1) do, for good.
pub fn lower_priority() {
    /// The class of processes that get the disk when it is idle (ioprio_set(2)).
    const IDLE: nix::libc::c_int = 3 << 13;
    // SAFETY: the calls take numbers.
    unsafe {
        nix::libc::nice(19);
        // The first number means a process, the second one this process.
        nix::libc::syscall(nix::libc::SYS_ioprio_set, 1, 0, IDLE);
    }
}

/// Returns true if this process has a child, also one that has ended and was not waited for.
#[must_use]
pub fn has_children() -> bool {
    // SAFETY: every field is a number, for which zero is a value.
    let mut seen: nix::libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = nix::libc::WEXITED | nix::libc::WNOHANG | nix::libc::WNOWAIT;
    // SAFETY: the kernel fills the structure, and waits for nothing.
    unsafe { nix::libc::waitid(nix::libc::P_ALL, 0, &raw mut seen, flags) == 0 }
}

/// Ends a forked process without running exit handlers of the host.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: the call takes a number and does not return.
    unsafe { nix::libc::_exit(code) }
}

/// Closes every descriptor except these. If guards held each other's sockets, none would notice the end of another.
pub(crate) fn close_all_but(kept: &[i32]) {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.unsigned_abs()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for last in kept.into_iter().map(Some).chain([None]) {
        if last != Some(first) {
            // SAFETY: the call takes numbers. This process does not use the closed descriptors again.
            unsafe { nix::libc::syscall(nix::libc::SYS_close_range, first, last.map_or(u32::MAX, |last| last - 1), 0) };
        }
        first = last.map_or(u32::MAX, |last| last + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_descriptors_are_wanted_as_are_allowed_up_to_a_bound() {
        const MOST: u64 = limits::HOST_DESCRIPTORS;
        assert_eq!(wanted_descriptors(100, 2_000), 2_000);
        assert_eq!(wanted_descriptors(100, u64::MAX), MOST);
        assert_eq!(wanted_descriptors(MOST + 1, u64::MAX), MOST + 1, "a higher limit is kept");
    }
}
