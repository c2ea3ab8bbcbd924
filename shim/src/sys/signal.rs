//! Signals: sets of them, the mask, and their effects on this process.

use std::ffi::c_int;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

use nix::libc;
use rexec_sh::protocol::process::{Exit, Signal};

use super::{Result, exit, own, own_pid, read};

/// A set of signals. Bit N−1 is signal N.
pub(crate) type SignalSet = u64;

const SIGNALS: u8 = 64;
/// Size of the kernel's signal set, bytes.
const SIGNAL_SET_BYTES: usize = 8;
/// The kernel's struct sigaction begins with the handler and is shorter than this everywhere.
const ACTION_WORDS: usize = 16;
/// One of the default disposition: zeros.
const DEFAULT: [usize; ACTION_WORDS] = [libc::SIG_DFL; ACTION_WORDS];

/// Signals by which a write could end this process. They are blocked, so the write fails with an error instead.
pub(crate) const WRITE_ERRORS: SignalSet = bit(Signal::PIPE) | bit(XFSZ);

/// Signals that the command gets in place of this process: all that the real shell could trap, except those about
/// children and those of a terminal for background processes. The C library keeps two for itself.
pub(crate) const PASSED_ON: SignalSet =
    !(bit(Signal::KILL) | bit(STOP) | bit(CHLD) | bit(TTIN) | bit(TTOU) | bit(Signal::new(32)) | bit(Signal::new(33)));

pub(crate) const CHLD: Signal = named(libc::SIGCHLD);
pub(crate) const CONT: Signal = named(libc::SIGCONT);
pub(crate) const STOP: Signal = named(libc::SIGSTOP);
pub(crate) const TSTP: Signal = named(libc::SIGTSTP);
pub(crate) const TTIN: Signal = named(libc::SIGTTIN);
pub(crate) const TTOU: Signal = named(libc::SIGTTOU);
pub(crate) const WINCH: Signal = named(libc::SIGWINCH);
pub(crate) const XFSZ: Signal = named(libc::SIGXFSZ);

const fn named(number: c_int) -> Signal {
    Signal::new(number.to_le_bytes()[0])
}

/// Stops this process, or its whole group, by a signal of job control. Returns when it is continued. Returns at once if
/// the kernel stops no process, because the group is orphaned (setpgid(2)).
pub(crate) fn stop_by(signal: Signal, is_group: bool) {
    // SAFETY: a process may always signal itself and its group.
    unsafe { libc::kill(if is_group { 0 } else { libc::getpid() }, c_int::from(signal.number())) };
    // A blocked signal acts now.
    let before = change_mask(libc::SIG_UNBLOCK, bit(signal));
    change_mask(libc::SIG_SETMASK, before);
}

/// Ends this process, or its whole group, by a signal. If the signal does not kill, exits with the code for it.
pub(crate) fn die_by(signal: Signal, is_group: bool) -> ! {
    let number = c_int::from(signal.number());
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // The command has dumped a core already, if any. A program that takes cores from a pipe would get one of this process
    // whatever the limit is (core(5)).
    // SAFETY: the calls take numbers and structures that live.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        // Not signal(3), which refuses the C library's own signals. posix_spawn(3) leaves these ignored in what it starts.
        libc::syscall(libc::SYS_rt_sigaction, number, DEFAULT.as_ptr(), ptr::null::<usize>(), SIGNAL_SET_BYTES);
        libc::kill(if is_group { 0 } else { libc::getpid() }, number);
    }
    change_mask(libc::SIG_UNBLOCK, bit(signal));
    exit(Exit::Signal(signal).code())
}

pub(crate) fn ignored_signals() -> SignalSet {
    all().filter(|&signal| is_ignored(signal)).fold(0, |set, signal| set | bit(signal))
}

fn all() -> impl Iterator<Item = Signal> {
    (1..=SIGNALS).map(Signal::new)
}

/// Returns true if this process ignores a signal.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let mut action = DEFAULT;
    // SAFETY: no action is set, and the kernel writes one to `action`.
    let result = unsafe {
        let number = c_int::from(signal.number());
        libc::syscall(libc::SYS_rt_sigaction, number, ptr::null::<usize>(), action.as_mut_ptr(), SIGNAL_SET_BYTES)
    };
    result == 0 && action[0] == libc::SIG_IGN
}

pub(crate) const fn bit(signal: Signal) -> SignalSet {
    1 << (signal.number() - 1)
}

/// Blocks more signals and returns those that were blocked before.
pub(crate) fn block_signals(set: SignalSet) -> SignalSet {
    change_mask(libc::SIG_BLOCK, set)
}

pub(crate) fn restore_mask(set: SignalSet) {
    change_mask(libc::SIG_SETMASK, set);
}

/// Makes the raw call, because the C library's wrapper leaves out the signals that it keeps for itself.
fn change_mask(how: c_int, set: SignalSet) -> SignalSet {
    let mut old: SignalSet = 0;
    // SAFETY: the kernel reads and writes one signal set of this size each.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut old, SIGNAL_SET_BYTES) };
    old
}

/// A descriptor for reading these signals. They must be blocked.
pub(crate) fn signal_descriptor(set: SignalSet) -> Result<OwnedFd> {
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the kernel reads one signal set of this size.
    own(unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const set, SIGNAL_SET_BYTES, flags) })
}

/// The next pending signal. One that a failed write of this process has raised is skipped.
pub(crate) fn next_signal(descriptor: &OwnedFd) -> Option<Signal> {
    loop {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        let read = read(descriptor.as_raw_fd(), &mut info).ok()?;
        let word = |at: usize| info[..read].get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let number = word(offset_of!(libc::signalfd_siginfo, ssi_signo))?;
        let sender = word(offset_of!(libc::signalfd_siginfo, ssi_pid))?;
        let signal = u8::try_from(number).ok().map(Signal::new)?;
        if WRITE_ERRORS & bit(signal) == 0 || i32::try_from(sender) != Ok(own_pid().number()) {
            return Some(signal);
        }
    }
}

/// Stops this process until SIGCONT.
pub(crate) fn stop_self() {
    // SAFETY: a process may always stop itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Sends these signals to this process. A blocked one acts when it is unblocked, possibly on the program that this
/// process executes later.
pub(crate) fn raise(set: SignalSet) {
    for signal in all().filter(|&signal| set & bit(signal) != 0) {
        // SAFETY: a process may always signal itself.
        unsafe { libc::kill(libc::getpid(), signal.number().into()) };
    }
}
