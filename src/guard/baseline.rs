//! The attributes that a child inherits from this process: limits, scheduling, umask.

use nix::libc::{self, c_int};
use nix::sys::stat::{Mode, umask};
use rexec_sh::protocol::wire::{AFFINITY_BYTES_MAX, Attributes, Extras};

use super::extras;
use crate::sys::proc_file::ReadAgain;

/// The guard's own attributes, read once. Only attributes that differ are set in the child.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Baseline {
    pub(super) extras: Extras,
    /// Soft and hard limits, by the number of the resource.
    pub(super) limits: Vec<(u64, u64)>,
    pub(super) oom_score_adj: i32,
    pub(super) nice: i32,
    pub(super) affinity: Vec<u8>,
}

/// The files of /proc with attributes of this process.
#[derive(Debug)]
pub(super) struct BaselineFiles {
    oom_score_adj: ReadAgain,
    coredump_filter: ReadAgain,
}

impl BaselineFiles {
    pub(super) fn open() -> Self {
        Self {
            oom_score_adj: ReadAgain::open("/proc/self/oom_score_adj"),
            coredump_filter: ReadAgain::open("/proc/self/coredump_filter"),
        }
    }
}

/// The number of resources with limits, getrlimit(2).
pub(super) const RESOURCES: c_int = 16;

impl Baseline {
    pub(super) fn read() -> Self {
        Self::read_from(&BaselineFiles::open())
    }

    /// As [`Baseline::read`], with open files.
    pub(super) fn read_from(files: &BaselineFiles) -> Self {
        let limits = (0..RESOURCES).map(|resource| {
            let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the call fills the structure, and the number of the resource is valid.
            let _ = unsafe { libc::prlimit64(0, resource_number(resource), std::ptr::null(), &raw mut limit) };
            (limit.rlim_cur, limit.rlim_max)
        });
        let text = files.oom_score_adj.read();
        // SAFETY: the call takes numbers only.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        Self {
            extras: extras::read(&files.coredump_filter.read()),
            limits: limits.collect(),
            oom_score_adj: std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0),
            nice,
            affinity: affinity(),
        }
    }
}

/// The CPU mask of this process, empty if it cannot be read.
fn affinity() -> Vec<u8> {
    let mut mask = vec![0; AFFINITY_BYTES_MAX];
    // SAFETY: the kernel fills the buffer up to the given length.
    let length = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, mask.len(), mask.as_mut_ptr()) };
    mask.truncate(usize::try_from(length).unwrap_or(0));
    mask
}

/// The umask, limits and scheduling of this process, as a command would inherit them.
#[must_use]
pub fn attributes() -> Attributes {
    let mask = umask(Mode::empty());
    umask(mask);
    let own = Baseline::read();
    Attributes {
        umask: mask.bits(),
        nice: own.nice,
        oom_score_adj: own.oom_score_adj,
        limits: own.limits,
        extras: own.extras,
        ..Attributes::default()
    }
}

#[cfg(target_env = "gnu")]
pub(super) fn resource_number(resource: c_int) -> libc::__rlimit_resource_t {
    resource.unsigned_abs()
}

#[cfg(not(target_env = "gnu"))]
pub(super) fn resource_number(resource: c_int) -> c_int {
    resource
}
