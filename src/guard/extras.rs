//! Process attributes that few programs change, such as the scheduling policy. They are read from this process, and set
//! in the child that executes the shell, if the kernel permits.

use nix::libc::{self, c_int};

use crate::sys::scheduler;
use rexec_sh::protocol::wire::Extras;

const IOPRIO_WHO_PROCESS: c_int = 1;

/// Reads the attributes of this process. `filter` is the text of its coredump_filter (core(5)).
pub(super) fn read(filter: &[u8]) -> Extras {
    let usual = Extras::default();
    let filter = std::str::from_utf8(filter).map(|digits| u32::from_str_radix(digits.trim(), 16));
    // SAFETY: the calls take numbers.
    unsafe {
        let slack = libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0);
        let io_priority = libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0);
        Extras {
            io_priority: i32::try_from(io_priority).map_or(0, |priority| priority.max(0)),
            scheduler: scheduler::own(),
            personality: u32::try_from(libc::personality(0xffff_ffff)).unwrap_or(0),
            timer_slack_ns: u64::try_from(slack).unwrap_or(usual.timer_slack_ns),
            coredump_filter: filter.ok().and_then(Result::ok).unwrap_or(usual.coredump_filter),
            no_huge_pages: libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1,
            ..usual
        }
    }
}

/// The attributes that differ from the guard's own, in the form for system calls.
pub(super) struct Changes {
    io_priority: Option<i32>,
    scheduler: Option<(i32, i32)>,
    personality: Option<u32>,
    timer_slack_ns: Option<u64>,
    coredump_filter: Option<Vec<u8>>,
    no_huge_pages: Option<bool>,
}

impl Changes {
    /// The changes that turn `own` into `wanted`.
    pub(super) fn between(own: &Extras, wanted: &Extras) -> Self {
        fn changed<T: PartialEq + Copy>(own: T, wanted: T) -> Option<T> {
            (own != wanted).then_some(wanted)
        }
        Self {
            io_priority: changed(own.io_priority, wanted.io_priority),
            scheduler: changed(own.scheduler, wanted.scheduler),
            personality: changed(own.personality, wanted.personality),
            timer_slack_ns: changed(own.timer_slack_ns, wanted.timer_slack_ns),
            coredump_filter: changed(own.coredump_filter, wanted.coredump_filter)
                .map(|filter| format!("{filter:#x}").into_bytes()),
            no_huge_pages: changed(own.no_huge_pages, wanted.no_huge_pages),
        }
    }

    /// Sets the attributes of the calling process.
    ///
    /// # Safety
    /// Only in the child.
    pub(super) unsafe fn apply(&self) {
        // SAFETY: system calls on numbers and on memory that this structure owns.
        unsafe {
            if let Some((policy, priority)) = self.scheduler {
                scheduler::set(policy, priority);
            }
            if let Some(priority) = self.io_priority {
                libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, priority);
            }
            if let Some(personality) = self.personality {
                libc::personality(libc::c_ulong::from(personality));
            }
            if let Some(slack) = self.timer_slack_ns {
                libc::syscall(libc::SYS_prctl, libc::PR_SET_TIMERSLACK, slack, 0, 0, 0);
            }
            if let Some(text) = &self.coredump_filter {
                let file = libc::open(c"/proc/self/coredump_filter".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
            }
            if let Some(on) = self.no_huge_pages {
                libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(on), 0, 0, 0);
            }
        }
    }
}
