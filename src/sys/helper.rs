//! Helper processes of the host.
//!
//! Invariant: a helper never has a copy of a caller's file: closing it would wait for the file's server.

use std::io;
use std::os::fd::RawFd;

use nix::unistd::ForkResult;

use super::own_table::{self, Birth};
use super::{caller_descriptor, process};
use rexec_sh::protocol::process::Pid;

/// Forks a helper process that runs `work` and ends; returns its number. The helper keeps the descriptors in `keep`. Its
/// standard descriptors are /dev/null.
///
/// # Errors
/// As fork(2); while this process holds files of callers, also as clone(2).
pub fn fork(name: &std::ffi::CStr, keep: &[RawFd], work: impl FnOnce()) -> io::Result<Pid> {
    if caller_descriptor::are_slow_held() {
        return match own_table::fork(keep)? {
            Birth::Parent(child) => Ok(child),
            Birth::Child(numbers) => {
                // The work uses their original numbers.
                for (kept, number) in numbers.into_iter().zip(keep) {
                    let _ = own_table::place(kept, *number);
                }
                live(name, keep, work)
            }
        };
    }
    // SAFETY: the process has one thread, so the child may go on as an ordinary process.
    match unsafe { nix::unistd::fork() }.map_err(super::io)? {
        ForkResult::Parent { child } => Ok(Pid::new(child.as_raw())),
        ForkResult::Child => live(name, keep, work),
    }
}

/// Runs a helper to its end.
fn live(name: &std::ffi::CStr, keep: &[RawFd], work: impl FnOnce()) -> ! {
    std::panic::set_hook(Box::new(|_| process::exit(70)));
    super::signal::leave_to_host();
    process::close_all_but(keep);
    // The new descriptors get those of the numbers 0 to 2 that were just closed.
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    let _nulls = null.map(|null| [null.try_clone(), null.try_clone(), Ok(null)]);
    let _ = nix::sys::prctl::set_name(name);
    work();
    process::exit(0)
}
