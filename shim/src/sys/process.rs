//! This process and the ones around it.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

use super::{Result, own};

/// Ends the process, without destructors or exit handlers.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: _exit takes any code.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Executes another program in this process. Returns only if that failed.
pub(crate) fn execute(path: &CStr, argv: &[&CStr], env: &[&CStr]) -> Errno {
    let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end in NULL and outlive the call, as do the strings they point to.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    Errno::last()
}

/// The effective user, as execve(2) left it. The shim never changes it.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: getauxval has no preconditions.
    let uid = unsafe { libc::getauxval(libc::AT_EUID) };
    u32::try_from(uid).expect("a user id has 32 bits")
}

/// The path by which this program was executed, which may differ from `argv[0]`.
pub(crate) fn executed_path() -> &'static CStr {
    // SAFETY: getauxval has no preconditions.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if path.is_null() {
        return c"";
    }
    // SAFETY: the kernel put a string on the stack, which lives as long as the process.
    unsafe { CStr::from_ptr(path) }
}

pub(crate) fn own_group() -> ProcessGroup {
    // SAFETY: getpgrp has no preconditions.
    ProcessGroup::new(unsafe { libc::getpgrp() })
}

pub(crate) fn is_session_leader() -> bool {
    // SAFETY: neither call has preconditions.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Returns true if this process is in the process group of its session's leader.
pub(crate) fn is_in_leaders_group() -> bool {
    // SAFETY: neither call has preconditions.
    let (session, group) = unsafe { (libc::getsid(0), libc::getpgrp()) };
    // 0 stands for every leader outside of this PID namespace.
    session != 0 && session == group
}

/// The parent. Its number is 0 if it is outside of this PID namespace.
pub(crate) fn parent() -> Pid {
    // SAFETY: getppid has no preconditions.
    Pid::new(unsafe { libc::getppid() })
}

/// The signal that this process gets when its parent dies, if its caller has asked for one.
pub(crate) fn death_signal() -> Option<Signal> {
    let mut number: libc::c_int = 0;
    // SAFETY: the call writes one number.
    unsafe { libc::prctl(libc::PR_GET_PDEATHSIG, &raw mut number) };
    u8::try_from(number).ok().filter(|&number| number > 0).map(Signal::new)
}

/// Returns true if the process of such a descriptor has ended.
pub(crate) fn has_ended(process: &OwnedFd) -> bool {
    let mut watched = [super::watch(process.as_raw_fd(), libc::POLLIN)];
    super::poll(&mut watched, 0).is_ok_and(|found| found > 0)
}

/// Sends a signal to the process of such a descriptor, if that lives (pidfd_send_signal(2)).
pub(crate) fn signal_through(process: &OwnedFd, signal: Signal) {
    let number = c_int::from(signal.number());
    // SAFETY: the kernel makes up the information that is not given.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), number, ptr::null::<u8>(), 0) };
}

/// A descriptor that becomes readable when the process ends (pidfd_open(2)).
pub(crate) fn process_descriptor(pid: Pid) -> Result<OwnedFd> {
    // SAFETY: pidfd_open has no preconditions; its descriptor is close-on-exec.
    own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid.number(), 0) })
}
