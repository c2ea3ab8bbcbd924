//! The inheritance of a process started by a guard: the condition that one command could leave for the next.
//!
//! A command cannot change its guard from within, but any process of the same user can from outside: setpriority(2),
//! prlimit(2), sched_setaffinity(2), ioprio_set(2), a write to oom_score_adj, to autogroup or to the file of a control
//! group, KEYCTL_SESSION_TO_PARENT, ptrace(2). So a guard reads its condition when it begins, after each command, and
//! when the next one comes, perhaps an hour later. It serves only while nothing has changed.
//!
//! A process that traced the guard and left again shows in nothing that the guard could read, nor does a stop that
//! somebody continued. But each made the guard sleep and wake once more ([`SleepCount`]). A tracer's writes to the
//! guard's memory are beyond this check: a process that may trace the guard may trace the agents and the host, too.

use nix::libc::{self, c_int};
use nix::sys::resource::{UsageWho, getrusage};

use super::baseline::{Baseline, BaselineFiles};
use crate::sys::proc_file::{self, ReadAgain};

/// Lines of /proc/self/status that change by themselves. Pending signals are not inherited; queued ones are checked
/// separately.
const RESTLESS: [&[u8]; 13] = [
    b"State:",
    b"FDSize:",
    b"Vm",
    b"Rss",
    b"HugetlbPages:",
    b"SigQ:",
    b"SigPnd:",
    b"ShdPnd:",
    b"voluntary_ctxt_switches:",
    b"nonvoluntary_ctxt_switches:",
    b"Cpus_allowed_list:",
    b"Mems_allowed_list:",
    b"CoreDumping:",
];

/// The signals that queue (signal(7), real-time signals), as bits of a set.
const QUEUING: u64 = !0 << 31;

/// Asks for the number of a keyring (keyctl(2)).
const KEYCTL_GET_KEYRING_ID: c_int = 0;

/// The inherited attributes that another process can change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) baseline: Baseline,
    /// The lines of /proc/self/status that should not change: credentials, signals, tracer, CPUs, memory nodes.
    status: Vec<u8>,
    has_queued_signals: bool,
    cgroups: Vec<u8>,
    /// The priority of the session (sched(7), autogroup).
    session_priority: Vec<u8>,
    session_keyring: libc::c_long,
    is_dumpable: c_int,
    /// A struct sched_attr (sched_setattr(2)), which has more than policy and priority.
    scheduling: [u64; 7],
    /// The processes that may share a core with this one (PR_SCHED_CORE, prctl(2)).
    core_cookie: u64,
}

/// The files of /proc with the condition of this process. They stay open from command to command.
#[derive(Debug)]
pub(super) struct ConditionFiles {
    baseline: BaselineFiles,
    status: ReadAgain,
    cgroups: ReadAgain,
    session_priority: ReadAgain,
}

impl ConditionFiles {
    pub(super) fn open() -> Self {
        Self {
            baseline: BaselineFiles::open(),
            status: ReadAgain::open("/proc/self/status"),
            cgroups: ReadAgain::open("/proc/self/cgroup"),
            session_priority: ReadAgain::open("/proc/self/autogroup"),
        }
    }
}

impl Condition {
    pub(super) fn read(files: &ConditionFiles) -> Self {
        let status = files.status.read();
        let (mut kept, mut has_queued_signals) = (Vec::with_capacity(status.len()), false);
        for line in proc_file::lines(&status) {
            if line.starts_with(b"SigPnd:") || line.starts_with(b"ShdPnd:") {
                has_queued_signals |= signals(line) & QUEUING != 0;
            }
            if !RESTLESS.iter().any(|name| line.starts_with(name)) {
                kept.extend_from_slice(line);
            }
        }
        let (mut scheduling, mut core_cookie) = ([0_u64; 7], 0_u64);
        // SAFETY: the calls take numbers, and structures of the given sizes that the kernel fills.
        let (session_keyring, is_dumpable) = unsafe {
            libc::syscall(libc::SYS_sched_getattr, 0, scheduling.as_mut_ptr(), size_of_val(&scheduling), 0);
            libc::prctl(libc::PR_SCHED_CORE, libc::PR_SCHED_CORE_GET, 0, 0, &raw mut core_cookie);
            let own_keyring = libc::KEY_SPEC_SESSION_KEYRING;
            (
                libc::syscall(libc::SYS_keyctl, KEYCTL_GET_KEYRING_ID, own_keyring, 0),
                libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0),
            )
        };
        Self {
            baseline: Baseline::read_from(&files.baseline),
            has_queued_signals,
            status: kept,
            cgroups: files.cgroups.read(),
            session_priority: files.session_priority.read(),
            session_keyring,
            is_dumpable,
            scheduling,
            core_cookie,
        }
    }
}

/// The set of signals on a line of /proc/self/status.
fn signals(line: &[u8]) -> u64 {
    let set = std::str::from_utf8(line).ok().and_then(|line| line.split_once(':'));
    set.and_then(|(_, digits)| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or(0)
}

/// The number of sleeps of this process, against the number of its reasons to sleep.
#[derive(Debug)]
pub(super) struct SleepCount {
    before: i64,
    /// System calls that may have slept.
    pub(super) reasons: i64,
}

impl SleepCount {
    pub(super) fn begin() -> Self {
        Self { before: sleeps(), reasons: 0 }
    }

    /// Returns true if it slept more often than it had a reason to, as a stopped or traced process does.
    pub(super) fn was_disturbed(&self) -> bool {
        sleeps() - self.before > self.reasons
    }
}

/// The number of sleeps of this process (voluntary context switches, getrusage(2)).
fn sleeps() -> i64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.voluntary_context_switches())
}
