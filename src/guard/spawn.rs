//! Makes guards: the host's side, which forks one, and the guard's first steps.
//!
//! Invariant: the host signals a guard only while the guard's process number is certainly its own.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal as Named, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, fork, setsid};

use super::condition::{Condition, ConditionFiles, SleepCount};
use super::control::{self, GuardReport};
use super::launch::GUARD_IGNORES;
use super::orphans;
use super::request::{self, NotStarted};
use super::supervisor::Supervisor;
use crate::sys::kill::{self, CONT, Pidfd};
use crate::sys::own_table::{self, Birth};
use crate::sys::{self, caller_descriptor, process, pty, socket};
use rexec_sh::protocol::process::{Pid, Signal};

/// The host's handles of a guard.
#[derive(Debug)]
pub struct Guard {
    /// The guard's process. It leads the session of the run's terminal.
    pub pid: Pid,
    /// The control socket, non-blocking: the host writes orders and reads reports. It is at its end when the guard has
    /// ended.
    pub control: OwnedFd,
    pub master: OwnedFd,
}

/// Sends SIGCONT to a guard, which somebody may have stopped.
pub fn wake(pid: Pid, control: &OwnedFd) {
    signal(pid, control, CONT);
}

/// Sends SIGCONT to a guard if it is stopped; returns true if it was. A guard that stops at this moment is not noticed.
pub fn wake_if_stopped(pid: Pid, control: &OwnedFd) -> bool {
    let is_stopped = kill::is_stopped_child(pid);
    if is_stopped {
        wake(pid, control);
    }
    is_stopped
}

/// Returns true if a guard lives. It must be a child of this process.
#[must_use]
pub fn is_alive(pid: Pid) -> bool {
    orphans::is_child(pid)
}

/// Sends SIGKILL to a guard. Its children become children of the host.
pub fn kill(pid: Pid, control: &OwnedFd) {
    signal(pid, control, Signal::KILL);
}

/// Signals a guard unless it has ended: then its number may belong to another process. The guard holds the only other
/// end of the control socket. If that end is open after the pidfd was opened, the pidfd refers to the guard.
fn signal(pid: Pid, control: &OwnedFd, signal: Signal) {
    let process = Pidfd::open(pid);
    match process {
        _ if has_left(control) => {}
        Some(process) => process.send(signal),
        // There is no descriptor left. The guard lived a moment ago.
        None => drop(kill::process(pid, signal)),
    }
}

/// Returns true if the guard at the other end of its control socket is dead, or dying.
#[must_use]
pub fn has_left(control: &OwnedFd) -> bool {
    let mut other_end = [PollFd::new(control.as_fd(), PollFlags::empty())];
    poll(&mut other_end, PollTimeout::ZERO).is_ok_and(|count| count > 0)
}

/// Forks a guard with a terminal of this size, ready for a command. The guard inherits the descriptors in `held`, as if
/// they had come with the command.
///
/// # Errors
/// EMFILE, ENFILE, ENOSPC, EAGAIN or ENOMEM, if descriptors, terminals or processes have run out.
pub fn make(size: pty::Size, held: &[RawFd]) -> io::Result<Guard> {
    let (control, far) = socket::pair()?;
    let pty = pty::open(size)?;
    if held.is_empty() && caller_descriptor::are_slow_held() {
        return make_apart(control, far, pty);
    }
    // SAFETY: the process has one thread, so the child may go on as an ordinary process.
    match unsafe { fork() }.map_err(sys::io)? {
        ForkResult::Parent { child } => Ok(Guard { pid: Pid::new(child.as_raw()), control, master: pty.master }),
        ForkResult::Child => {
            std::panic::set_hook(Box::new(|_| process::exit(70)));
            let (slave, _) = (pty.slave, std::mem::ManuallyDrop::new((pty.master, control)));
            // SAFETY: this process has copies of its own, and what owned them before the fork is never dropped here.
            let held = held.iter().map(|&fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect();
            live(far, slave, held)
        }
    }
}

/// As [`make`], without copies of a caller's descriptors: the guard might wait when it closes one.
fn make_apart(control: OwnedFd, far: OwnedFd, pty: pty::Pty) -> io::Result<Guard> {
    match own_table::fork(&[far.as_raw_fd(), pty.slave.as_raw_fd()])? {
        Birth::Parent(pid) => Ok(Guard { pid, control, master: pty.master }),
        Birth::Child(numbers) => {
            // Their numbers mean nothing here any more.
            let _ = std::mem::ManuallyDrop::new((pty, control, far));
            // SAFETY: these numbers are this process's own.
            let own = numbers.into_iter().map(|number| unsafe { OwnedFd::from_raw_fd(number) });
            let [far, slave] = own.collect::<Vec<_>>().try_into().expect("as many as were kept");
            live(far, slave, Vec::new())
        }
    }
}

/// Runs a guard to its end.
fn live(control: OwnedFd, slave: OwnedFd, held: Vec<OwnedFd>) -> ! {
    std::panic::set_hook(Box::new(|_| process::exit(70)));
    let code = serve(control, slave, held);
    process::exit(code.unwrap_or_else(|error| error.raw_os_error().unwrap_or(1)))
}

/// Becomes a guard and serves commands, one after the other, each on a terminal of its own. It ends after a command
/// that has left anything, or of which something was kept. Returns the exit code.
fn serve(mut control: OwnedFd, mut slave: OwnedFd, held: Vec<OwnedFd>) -> io::Result<i32> {
    let mut signals = become_guard(&control, &slave, &held)?;
    let files = ConditionFiles::open();
    let condition = Condition::read(&files);
    let mut held = Some(held);
    loop {
        let Some(received) = request::receive(&control, held.take().unwrap_or_default())? else { return Ok(0) };
        // Another process may have changed this one while it waited. The host then gives the command to another guard.
        if Condition::read(&files) != condition {
            return Ok(0);
        }
        let mut sleeps = SleepCount::begin();
        let plan = received.plan;
        let mut kept = None;
        let started = match received.start(&control, &slave, &condition.baseline, &mut sleeps, &mut kept) {
            Ok(started) => started,
            Err(not_started) => {
                if let NotStarted::Report(report) = not_started {
                    sys::write(&control, &report.encode())?;
                }
                if let Some(kept) = kept {
                    kept.settle_at_end(&control);
                }
                return Ok(0);
            }
        };
        sleeps.reasons += 1;
        let supervisor = Supervisor::new(control, signals, slave, started.shell, plan);
        let mut supervisor = supervisor.with_relayed(started.relayed).with_input(started.input, started.late_input);
        supervisor.record = kept;
        if !started.has_terminal {
            supervisor.foreground.close();
        }
        supervisor.take_early(started.orders, started.rest);
        let free = supervisor.run(&mut sleeps).map_err(sys::io)?;
        (control, signals) = match free {
            Some(free) if !sleeps.was_disturbed() && Condition::read(&files) == condition => free,
            _ => return Ok(0),
        };
        sys::write(&control, &GuardReport::Free.encode())?;
        let Some(next) = next_terminal(&control)? else { return Ok(0) };
        lead(&next)?;
        slave = next;
    }
}

/// Waits for the terminal of the next command. `None` if the host is gone, or lets the guard go.
fn next_terminal(control: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let (mut order, mut slaves) = ([0; control::ORDER_BYTES], Vec::new());
    loop {
        if socket::receive_with_descriptors(control, &mut order, &mut slaves)?.bytes == 0 {
            return Ok(None);
        }
        // Other orders were for the command that has ended.
        if order == control::RENEW && !slaves.is_empty() {
            return Ok(slaves.pop());
        }
    }
}

/// Makes a terminal the controlling one of this session, in place of the last command's.
fn lead(slave: &OwnedFd) -> io::Result<()> {
    // SAFETY: the ioctl takes a number: 0, do not take the terminal away from another session.
    let take = || sys::check(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) });
    if take().is_ok() {
        return Ok(());
    }
    // The host has not closed the old terminal yet.
    let old = std::fs::File::open("/dev/tty")?;
    // Its SIGHUP is for the guard's own group, which ignores it.
    pty::give_up(&old);
    take().map(drop)
}

/// Replaces what the fork inherited from the host: descriptors, session, signal dispositions and mask.
fn become_guard(control: &OwnedFd, slave: &OwnedFd, held: &[OwnedFd]) -> io::Result<SignalFd> {
    process::close_all_but(&[control, slave].into_iter().chain(held).map(AsRawFd::as_raw_fd).collect::<Vec<_>>());
    // With descriptors 0 to 2 in use, no descriptor that arrives later gets one of the command's own numbers.
    for _ in 0..3 {
        let fd = nix::fcntl::fcntl(control, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(0)).map_err(sys::io)?;
        if fd > 2 {
            let _ = nix::unistd::close(fd);
        }
    }
    setsid().map_err(sys::io)?;
    lead(slave)?;
    nix::sys::prctl::set_child_subreaper(true).map_err(sys::io)?;
    let _ = nix::sys::prctl::set_name(rexec_sh::protocol::mark::GUARD_NAME);
    for signal in 1..=64 {
        let disposition = if GUARD_IGNORES.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: a disposition without a handler. For some signals the call is refused, which does no harm.
        unsafe { libc::signal(signal, disposition) };
    }
    // The command may have stopped the guard, which then would not notice the end of the host.
    let _ = nix::sys::prctl::set_pdeathsig(Named::SIGCONT);
    // Blocked signals have no effect on the guard. The shell gets its caller's mask. Faults keep their effect.
    let mut blocked = SigSet::all();
    let open = [Named::SIGSEGV, Named::SIGBUS, Named::SIGILL, Named::SIGFPE, Named::SIGABRT, Named::SIGCONT];
    for signal in open {
        blocked.remove(signal);
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&blocked), None).map_err(sys::io)?;
    let children = SigSet::from_iter([Named::SIGCHLD]);
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(sys::io)
}
