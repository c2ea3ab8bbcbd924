//! The guard: the process between the host and one command.
//!
//! It is the session leader of the command's terminal and owns its foreground, adopts everything the command leaves
//! behind (child subreaper), and is the only process that signals the command. The shell is its child in a *background*
//! process group of the same session. Three things follow: the shell's end is not the session's end, so background
//! jobs live on; who reads the terminal is stopped and thereby seen; and the whole tree, however daemonised, can be
//! found and killed.
//!
//! Guards are made ahead of demand. One waits for its RUN, says that it begins, starts the shell, reports, obeys orders,
//! and stays until it has no children. A command may signal its guard: only SIGKILL and SIGSTOP have an effect, and for
//! those the host has its own means. Invariants: it holds its control socket, the terminal's slave, its caller's
//! terminal if that is relayed, and nothing else; the slave is closed
//! before the shell's status is reported; when the host is gone a running command is terminated and killed, while what
//! an ended command left behind is left alone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Instant;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, Signal as Named, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{ForkResult, fork, setsid};
use rexec_sh::protocol::environment;
use rexec_sh::protocol::wire::{AtStart, Decoded, FromShim, RunRequest};

use super::baseline::Baseline;
use super::control::{self, Report};
use super::launch::{AtTerminal, Descriptors, GUARD_IGNORES, Launch};
use super::supervisor::{AtCaller, Warden};
use crate::core::job::Order;
use crate::limits;
use crate::sys::kill::{CONT, Pidfd};
use crate::sys::relayed::Relayed;
use crate::sys::{self, orphans, process, pty, socket};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// The host's hold on a guard.
#[derive(Debug)]
pub struct Guard {
    /// The guard's process, which is also the session of its terminal.
    pub pid: Pid,
    /// Orders go in, reports come out, its end is the guard's; it does not block.
    pub control: OwnedFd,
    /// The terminal's master.
    pub master: OwnedFd,
}

/// Continues a guard that somebody has stopped; one that runs does not notice.
pub fn wake(pid: Pid, control: &OwnedFd) {
    signal(pid, control, CONT);
}

/// Whether a guard, a child of the host's, has not ended.
#[must_use]
pub fn is_alive(pid: Pid) -> bool {
    orphans::is_child(pid)
}

/// Kills a guard. Its children become the host's.
pub fn kill(pid: Pid, control: &OwnedFd) {
    signal(pid, control, Signal::KILL);
}

/// Signals a guard, unless it is dead already: then its number may be another process's. It has the only other end of its
/// control socket, so that end tells, once a descriptor holds the number fast.
fn signal(pid: Pid, control: &OwnedFd, signal: Signal) {
    let Some(process) = Pidfd::open(pid) else { return };
    let mut end = [PollFd::new(control.as_fd(), PollFlags::empty())];
    let is_dead = poll(&mut end, PollTimeout::ZERO).is_ok_and(|count| count > 0);
    if !is_dead {
        process.send(signal);
    }
}

/// Makes a guard with terminal and session, ready for a command. It holds copies of these descriptors from birth, as if
/// they had come with the command.
///
/// # Errors
/// What pipe(2)-like calls and fork(2) give for want of terminals, descriptors or processes.
pub fn make(size: pty::Size, held: &[RawFd]) -> io::Result<Guard> {
    let (control, far) = socket::pair()?;
    let pty = pty::open(size)?;
    // SAFETY: the process has one thread, so the child may go on as an ordinary process.
    match unsafe { fork() }.map_err(sys::io)? {
        ForkResult::Parent { child } => Ok(Guard { pid: Pid::new(child.as_raw()), control, master: pty.master }),
        ForkResult::Child => {
            std::panic::set_hook(Box::new(|_| process::exit(70)));
            let (slave, _) = (pty.slave, std::mem::ManuallyDrop::new((pty.master, control)));
            // SAFETY: this process has copies of its own, and what owned them before the fork is never dropped here.
            let held = held.iter().map(|&fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect();
            let code = match enter(far, slave, held) {
                Ok(Some(warden)) => warden.watch(),
                Ok(None) => 0,
                Err(error) => error.raw_os_error().unwrap_or(1),
            };
            process::exit(code)
        }
    }
}

/// Becomes a guard, waits for a command and starts it. `None` when there is nothing to watch.
fn enter(control: OwnedFd, slave: OwnedFd, held: Vec<OwnedFd>) -> io::Result<Option<Warden>> {
    let signals = become_guard(&control, &slave, &held)?;
    let baseline = Baseline::read();
    let Some(mut request) = Request::receive(&control, held)? else { return Ok(None) };
    let plan = request.plan;
    let mut orders = Early { control: &control, bytes: std::mem::take(&mut request.rest), kept: Vec::new() };
    match request.start(&slave, &baseline, &mut orders) {
        Ok((shell, terminal)) => {
            let (rest, kept) = (orders.bytes, orders.kept);
            let caller = AtCaller { is_foreground: plan.has(control::PLAN_FOREGROUND), terminal };
            let warden = Warden::new(control, signals, slave, shell, plan);
            let mut warden = warden.relayed(plan.has(control::PLAN_RELAYED).then_some(caller));
            warden.take_early(kept, rest);
            Ok(Some(warden))
        }
        Err(NotStarted::HostGone) => Ok(None),
        Err(NotStarted::Report(report)) => {
            sys::write(&control, &report.encode())?;
            Ok(None)
        }
    }
}

/// Why there is no shell.
enum NotStarted {
    /// Nobody would watch it.
    HostGone,
    /// For this reason.
    Report(Report),
}

impl From<Report> for NotStarted {
    fn from(report: Report) -> Self {
        Self::Report(report)
    }
}

/// Orders that come before there is a shell.
struct Early<'a> {
    control: &'a OwnedFd,
    /// Not decoded yet.
    bytes: Vec<u8>,
    /// For the shell, once it is there.
    kept: Vec<Order>,
}

impl Early<'_> {
    /// Takes what has come. Fails when the host is gone, or when an order would end a shell that has just begun: then it
    /// is as if it had.
    fn take(&mut self, run: &RunRequest<'_>) -> Result<(), NotStarted> {
        let mut bytes = [0; 64];
        let is_gone = loop {
            match socket::receive(self.control, &mut bytes) {
                Ok(0) => break true,
                Ok(length) => self.bytes.extend_from_slice(&bytes[..length]),
                Err(error) => break !sys::is_transient(&error),
            }
        };
        for order in control::take_orders(&mut self.bytes) {
            let signal = match order {
                Order::Kill => Some(Signal::KILL),
                Order::Terminate => Some(Signal::TERM),
                Order::Signal(signal) => Some(signal),
                _ => None,
            };
            match signal.map(|signal| (signal, run.at_start(signal))) {
                Some((signal, AtStart::Ends)) => {
                    return Err(Report::Exited {
                        exit: Exit::Signal(signal),
                        group: ProcessGroup::new(0),
                        has_left: false,
                    }
                    .into());
                }
                Some((_, AtStart::Nothing)) => {}
                Some((_, AtStart::Waits)) | None => self.kept.push(order),
            }
        }
        if is_gone { Err(NotStarted::HostGone) } else { Ok(()) }
    }
}

/// Leaves the host behind: descriptors, session, dispositions, mask. What is set here is set explicitly, because the
/// host's own choices came along with the fork.
fn become_guard(control: &OwnedFd, slave: &OwnedFd, held: &[OwnedFd]) -> io::Result<SignalFd> {
    process::close_all_but(&[control, slave].into_iter().chain(held).map(AsRawFd::as_raw_fd).collect::<Vec<_>>());
    // Descriptors 0 to 2 are taken, so that what arrives later never lands on a target of the command's own.
    for _ in 0..3 {
        let fd = nix::fcntl::fcntl(control, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(0)).map_err(sys::io)?;
        if fd > 2 {
            let _ = nix::unistd::close(fd);
        }
    }
    setsid().map_err(sys::io)?;
    // SAFETY: the ioctl takes a number: do not steal the terminal, it is new.
    sys::check(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
    nix::sys::prctl::set_child_subreaper(true).map_err(sys::io)?;
    let _ = nix::sys::prctl::set_name(rexec_sh::protocol::mark::GUARD_NAME);
    for signal in 1..=64 {
        let disposition = if GUARD_IGNORES.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: a disposition without a handler; what may not be set is refused, which does no harm.
        unsafe { libc::signal(signal, disposition) };
    }
    // Its command may have stopped it: then it would not see its host's end.
    let _ = nix::sys::prctl::set_pdeathsig(Named::SIGCONT);
    // What is blocked has no effect here, and none on the shell, which gets a mask of its own. Faults stay faults.
    let mut blocked = SigSet::all();
    let heeded = [Named::SIGSEGV, Named::SIGBUS, Named::SIGILL, Named::SIGFPE, Named::SIGABRT, Named::SIGCONT];
    for signal in heeded {
        blocked.remove(signal);
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&blocked), None).map_err(sys::io)?;
    let children = SigSet::from_iter([Named::SIGCHLD]);
    SignalFd::with_flags(&children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(sys::io)
}

/// A command as the host passed it on.
struct Request {
    plan: control::Plan,
    frame: Vec<u8>,
    /// What came behind the frame: orders.
    rest: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Request {
    /// Waits for one; `None` when the host went away before it was whole.
    fn receive(control: &OwnedFd, held: Vec<OwnedFd>) -> io::Result<Option<Self>> {
        let mut request =
            Self { plan: control::Plan::default(), frame: Vec::new(), rest: Vec::new(), descriptors: held };
        let mut buffer = vec![0; 64 << 10];
        loop {
            let received = socket::receive_with_descriptors(control, &mut buffer, &mut request.descriptors)?;
            if received.bytes == 0 {
                return Ok(None);
            }
            request.frame.extend_from_slice(&buffer[..received.bytes]);
            let Some((plan, frame)) = request.frame.split_first_chunk::<{ control::PLAN_BYTES }>() else { continue };
            request.plan = control::Plan::decode(*plan);
            match FromShim::decode(frame) {
                Ok(Decoded::Incomplete) => {}
                Ok(Decoded::Item(FromShim::Run(_), taken)) => {
                    request.rest = request.frame.split_off(control::PLAN_BYTES + taken);
                    return Ok(Some(request));
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Starts the shell; gives its number, and the caller's terminal if that is relayed, or why there is none. The host
    /// hears of it before there can be one.
    fn start(
        self,
        slave: &OwnedFd,
        baseline: &Baseline,
        orders: &mut Early<'_>,
    ) -> Result<(Pid, Option<Relayed>), NotStarted> {
        let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&self.frame[control::PLAN_BYTES..]) else {
            return Err(Report::Failed { stage: control::Stage::Fork, errno: libc::EPROTO }.into());
        };
        let raised = make_room(&run.attributes.inherited)?.then(Baseline::read);
        let failed = |e: io::Error| Report::Failed {
            stage: control::Stage::Descriptors,
            errno: e.raw_os_error().unwrap_or(libc::EPROTO),
        };
        sys::cgroup::enter(&run.attributes.extras.cgroups);
        let mut descriptors = Self::arrange(self.descriptors, self.plan, &run, slave).map_err(failed)?;
        // Before there can be an end of the host: the terminal would not tell its modes any more.
        let terminal = descriptors.terminal.take().filter(|_| self.plan.has(control::PLAN_RELAYED));
        let terminal = terminal.and_then(|terminal| Relayed::like(terminal, slave));
        let mut launch = Launch::new(&run, &descriptors, raised.as_ref().unwrap_or(baseline));
        if self.plan.has(control::PLAN_DEFAULTS) {
            launch.add_defaults(environment::DEFAULTS, &run);
        }
        if self.plan.has(control::PLAN_LIVE) {
            launch.add_defaults(environment::LIVE, &run);
        }
        if self.plan.has(control::PLAN_LEADER) {
            // SAFETY: the ioctl takes no argument. It sends SIGHUP to the guard's own group, which ignores it.
            unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCNOTTY) };
            launch.begin_at(AtTerminal::Leader(slave.as_raw_fd()));
        } else if self.plan.has(control::PLAN_FOREGROUND) {
            launch.begin_at(AtTerminal::Foreground(slave.as_raw_fd()));
        }
        orders.take(&run)?;
        sys::write(orders.control, &Report::Begun.encode()).map_err(|_| NotStarted::HostGone)?;
        let shell = Self::launch(&launch, &run, orders)?;
        Ok((shell, terminal))
    }

    /// Makes the shell's process, again and again while there are too many.
    #[expect(clippy::disallowed_methods, reason = "a guard has nothing else to do yet")]
    fn launch(launch: &Launch<'_>, run: &RunRequest<'_>, orders: &mut Early<'_>) -> Result<Pid, NotStarted> {
        let until = Instant::now() + limits::FORK_TIMEOUT;
        loop {
            match launch.start() {
                Ok(shell) => return Ok(shell),
                Err((control::Stage::Fork, libc::EAGAIN | libc::ENOMEM)) if Instant::now() < until => {
                    std::thread::sleep(limits::START_RETRY);
                    orders.take(run)?;
                }
                Err((stage, errno)) => return Err(Report::Failed { stage, errno }.into()),
            }
        }
    }

    /// Gives each descriptor its role, and moves it out of the way of the command's numbers: 0 to 2 are taken in a
    /// guard, so none of those is in the way.
    fn arrange(
        descriptors: Vec<OwnedFd>,
        plan: control::Plan,
        run: &RunRequest<'_>,
        slave: &OwnedFd,
    ) -> io::Result<Descriptors> {
        let targets = &run.attributes.inherited;
        let mut given = descriptors.into_iter();
        let mut next = || {
            let fd = given.next().ok_or(io::ErrorKind::InvalidData)?;
            if targets.contains(&fd.as_raw_fd()) { clear_of(targets, fd.as_fd()) } else { Ok(fd) }
        };
        let is_named = run.attributes.extras.directory.is_some();
        let directory = if is_named { None } else { Some(next()?) };
        let mut terminal = None;
        let mut stdin = if run.attributes.stdio.stdin { Some(next()?) } else { None };
        if plan.has(control::PLAN_IN_TTY) {
            terminal = stdin.replace(clear_of(targets, slave.as_fd())?);
        }
        if run.attributes.stdio.brings_terminal() {
            terminal = Some(next()?);
        }
        let inherited = run.attributes.inherited.iter().map(|_| next()).collect::<io::Result<Vec<_>>>()?;
        let mut pipes = Vec::new();
        for _ in 0..(plan.bits & (control::PLAN_OUT_PIPE | control::PLAN_ERR_PIPE)).count_ones() {
            pipes.push(next()?);
        }
        let mut tty = slave.as_raw_fd();
        if targets.contains(&tty) {
            pipes.push(clear_of(targets, slave.as_fd())?);
            tty = pipes[pipes.len() - 1].as_raw_fd();
        }
        let (out, err) = (plan.has(control::PLAN_OUT_PIPE), plan.has(control::PLAN_ERR_PIPE));
        let stdout = if out { pipes[0].as_raw_fd() } else { tty };
        let stderr = match (err, plan.has(control::PLAN_ERR_IS_OUT)) {
            (true, _) => pipes[usize::from(out)].as_raw_fd(),
            (false, true) => stdout,
            (false, false) => tty,
        };
        Ok(Descriptors { directory, stdin, terminal, inherited, stdout, stderr, _kept: pipes })
    }
}

/// A copy of a descriptor with a number that is none of these.
fn clear_of(targets: &[i32], fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut lowest = 3;
    loop {
        let copy = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(lowest)).map_err(sys::io)?;
        // SAFETY: the descriptor is new and nobody else's.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        if !targets.contains(&copy.as_raw_fd()) {
            return Ok(copy);
        }
        lowest = copy.as_raw_fd() + 1;
    }
}

/// Sees to it that the guard may have descriptors with these numbers; whether it had to raise its limit for that. The
/// callers' limits can be higher than the host's.
fn make_room(numbers: &[i32]) -> Result<bool, Report> {
    let Some(descriptor) = numbers.iter().copied().max() else { return Ok(false) };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((libc::rlim_t::MAX, libc::rlim_t::MAX));
    let wanted = libc::rlim_t::from(descriptor.unsigned_abs()) + 1;
    if wanted <= soft {
        return Ok(false);
    }
    let limit = u32::try_from(hard).unwrap_or(u32::MAX);
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted))
        .map_err(|_| Report::OutOfReach { descriptor, limit })?;
    Ok(true)
}
