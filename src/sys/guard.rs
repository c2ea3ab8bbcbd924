//! The guard: the process between the host and one command.
//!
//! It is the session leader of the command's terminal and owns its foreground, adopts everything the command leaves
//! behind (child subreaper), and is the only process that signals the command. The shell is its child in a *background*
//! process group of the same session. Three things follow: the shell's end is not the session's end, so background
//! jobs live on; who reads the terminal is stopped and thereby seen; and the whole tree, however daemonised, can be
//! found and killed.
//!
//! Guards are made ahead of demand. One waits for its RUN, starts the shell, reports, obeys orders, and stays until it
//! has no children. Invariants: it holds its control socket, the terminal's slave and nothing else; the slave is closed
//! before the shell's status is reported; when the host is gone a running command is terminated and killed, while what
//! an ended command left behind is left alone.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpgid, setsid};
use rexec_sh::wire::{Decoded, FromShim};

use super::control::{self, Program, Report};
use super::launch::{Baseline, Descriptors, GUARD_IGNORES, Launch};
use super::{pty, socket, tree};
use crate::core::entry::Exit;
use crate::core::job::Order;
use crate::limits;

/// The host's hold on a guard.
#[derive(Debug)]
pub struct Guard {
    /// The guard's process, which is also the session of its terminal.
    pub pid: i32,
    /// Orders go in, reports come out, its end is the guard's; it does not block.
    pub control: OwnedFd,
    /// The terminal's master.
    pub master: OwnedFd,
}

/// Makes a guard with terminal and session, ready for a command.
///
/// # Errors
/// What pipe(2)-like calls and fork(2) give for want of terminals, descriptors or processes.
pub fn make(size: pty::Size) -> io::Result<Guard> {
    let (control, far) = socket::pair()?;
    let pty = pty::open(size)?;
    // SAFETY: the process has one thread, so the child may go on as an ordinary process.
    match unsafe { fork() }.map_err(super::io)? {
        ForkResult::Parent { child } => Ok(Guard { pid: child.as_raw(), control, master: pty.master }),
        ForkResult::Child => {
            std::panic::set_hook(Box::new(|_| exit(70)));
            let (slave, _) = (pty.slave, std::mem::ManuallyDrop::new((pty.master, control)));
            let code = match Warden::enter(far, slave) {
                Ok(Some(warden)) => warden.watch(),
                Ok(None) => 0,
                Err(error) => error.raw_os_error().unwrap_or(1),
            };
            exit(code)
        }
    }
}

/// Ends the process without running anything that belongs to the host it was forked from.
fn exit(code: i32) -> ! {
    // SAFETY: the call takes a number and does not come back.
    unsafe { libc::_exit(code) }
}

/// A group that was stopped at the terminal.
#[derive(Debug, Clone, Copy)]
struct StoppedGroup {
    group: Pid,
    reads: bool,
    program: Program,
}

/// How the end of the command's tree is pursued.
#[derive(Debug, Clone, Copy)]
enum Hunt {
    No,
    /// The host is gone: terminated, to be killed then.
    Grace {
        until: Instant,
    },
    /// Every descendant is killed, again and again.
    Killing {
        round: u32,
        next: Instant,
        until: Instant,
    },
    /// What still lives is beyond killing.
    GivenUp,
}

/// The guard from inside.
struct Warden {
    control: OwnedFd,
    signals: SignalFd,
    slave: Option<OwnedFd>,
    /// `Some` if and only if the shell is not reaped: only then is its number its own.
    shell: Option<Pid>,
    group: Pid,
    host_lives: bool,
    orders: Vec<u8>,
    stopped: VecDeque<StoppedGroup>,
    reported: Option<StoppedGroup>,
    lent_until: Option<Instant>,
    hunt: Hunt,
}

impl Warden {
    /// Becomes a guard, waits for a command and starts it. `None` when there is nothing to watch.
    fn enter(control: OwnedFd, slave: OwnedFd) -> io::Result<Option<Self>> {
        let signals = become_guard(&control, &slave)?;
        let baseline = Baseline::read();
        let Some(request) = Request::receive(&control)? else { return Ok(None) };
        let shell = match request.start(&slave, &baseline) {
            Ok(pid) => Pid::from_raw(pid),
            Err((stage, errno)) => {
                super::write(&control, &Report::Failed { stage, errno }.encode())?;
                return Ok(None);
            }
        };
        // Also here, because the child may not have got to it yet when it is signalled. It fails when it has executed.
        let _ = nix::unistd::setpgid(shell, shell);
        Ok(Some(Self {
            control,
            signals,
            slave: Some(slave),
            shell: Some(shell),
            group: shell,
            host_lives: true,
            orders: Vec::new(),
            stopped: VecDeque::new(),
            reported: None,
            lent_until: None,
            hunt: Hunt::No,
        }))
    }

    /// Everything after the start, until there is nothing left to watch; gives the exit code.
    fn watch(mut self) -> i32 {
        loop {
            let has_children = self.reap();
            if self.shell.is_none() && (!has_children || (!self.host_lives && matches!(self.hunt, Hunt::No))) {
                return 0;
            }
            self.tick(Instant::now());
            match self.wait() {
                Ok(true) => self.take_orders(),
                Ok(false) => {}
                Err(_) => return 1,
            }
        }
    }

    /// The only sleep; tells whether there may be orders.
    fn wait(&mut self) -> nix::Result<bool> {
        let now = Instant::now();
        let hunt = match self.hunt {
            Hunt::Grace { until } | Hunt::Killing { next: until, .. } => Some(until),
            Hunt::No | Hunt::GivenUp => None,
        };
        let timeout = match self.lent_until.into_iter().chain(hunt).min() {
            None => PollTimeout::NONE,
            // Rounded up, so that it is not woken just before the time.
            Some(at) => {
                let wait = at.saturating_duration_since(now) + Duration::from_micros(999);
                PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
            }
        };
        let mut fds = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
        ];
        let watched = if self.host_lives { 2 } else { 1 };
        match poll(&mut fds[..watched], timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let has = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let (has_signal, has_orders) = (has(&fds[0]), has(&fds[1]));
        if has_signal {
            // One read takes every SIGCHLD there is: they do not queue.
            let _ = self.signals.read_signal();
        }
        Ok(has_orders)
    }

    fn report(&self, reports: &[Report]) {
        let bytes: Vec<u8> = reports.iter().flat_map(|report| report.encode()).collect();
        // A host that is gone is noticed when the orders are read.
        let _ = super::write(&self.control, &bytes);
    }

    /// Collects what ended or stopped; whether any children are left.
    fn reap(&mut self) -> bool {
        let mut shell_end = None;
        let has_children = loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
                Ok(WaitStatus::StillAlive) => break true,
                Err(Errno::EINTR) => {}
                Err(_) => break false,
                Ok(WaitStatus::Stopped(pid, signal)) => self.on_stopped(pid, signal),
                Ok(WaitStatus::Exited(pid, code)) if Some(pid) == self.shell => {
                    shell_end = Some(Exit::Code(code.to_le_bytes()[0]));
                    self.shell = None;
                }
                Ok(WaitStatus::Signaled(pid, signal, _)) if Some(pid) == self.shell => {
                    shell_end = Some(Exit::Signal((signal as i32).to_le_bytes()[0]));
                    self.shell = None;
                }
                Ok(_) => {}
            }
        };
        if let Some(exit) = shell_end {
            self.on_shell_end(exit, has_children);
        }
        has_children
    }

    /// The foreground and the slave go back before the status is told, so that the host's next read decides.
    fn on_shell_end(&mut self, exit: Exit, has_children: bool) {
        self.take_foreground();
        self.slave = None;
        self.lent_until = None;
        let left = if has_children { tree::descendants(own_pid().as_raw()) } else { Vec::new() };
        for group in left.iter().filter(|process| process.is_stopped).map(|process| process.group) {
            hang_up(Pid::from_raw(group));
        }
        let named = left.iter().take(limits::STRAGGLERS_NAMED_MAX);
        let mut reports: Vec<Report> =
            named.map(|process| Report::Left { pid: process.pid, program: process.program }).collect();
        let left = u32::try_from(left.len()).unwrap_or(u32::MAX);
        reports.push(Report::Exited { exit, left });
        self.report(&reports);
    }

    fn on_stopped(&mut self, pid: Pid, signal: Signal) {
        // Other stops were asked for by somebody who will also continue it.
        if !matches!(signal, Signal::SIGTTIN | Signal::SIGTTOU) {
            return;
        }
        let Ok(group) = getpgid(Some(pid)) else { return };
        let program = tree::process(pid.as_raw()).map_or_else(Program::default, |process| process.program);
        self.on_group_stopped(StoppedGroup { group, reads: signal == Signal::SIGTTIN, program });
    }

    /// Each group is reported once, until it has had its slice of the foreground.
    fn on_group_stopped(&mut self, stopped: StoppedGroup) {
        if self.shell.is_none() {
            return hang_up(stopped.group);
        }
        let is_same = |known: &StoppedGroup| known.group == stopped.group;
        if self.stopped.iter().any(is_same) || (self.reported.as_ref().is_some_and(is_same) && !self.is_lent()) {
            return;
        }
        self.stopped.push_back(stopped);
        self.report_next_stop();
    }

    /// Groups whose processes are not the guard's children (below timeout(1), or with a group of their own) stop
    /// without a word to it. Those that somebody stopped on purpose are left alone, where the kernel tells which.
    fn look(&mut self) {
        if self.shell.is_none() || self.is_lent() {
            return;
        }
        let me = own_pid().as_raw();
        let is_news = |process: &&tree::Process| process.is_stopped && process.parent != me;
        for process in tree::descendants(me).iter().filter(is_news) {
            if [0, libc::SIGTTIN, libc::SIGTTOU].contains(&process.stop_signal) {
                let reads = process.stop_signal != libc::SIGTTOU;
                let group = Pid::from_raw(process.group);
                self.on_group_stopped(StoppedGroup { group, reads, program: process.program });
            }
        }
    }

    fn is_lent(&self) -> bool {
        self.lent_until.is_some()
    }

    /// One group at a time has the foreground.
    fn report_next_stop(&mut self) {
        if self.reported.is_none()
            && let Some(next) = self.stopped.pop_front()
        {
            self.reported = Some(next);
            self.report(&[Report::Stopped { reads: next.reads, program: next.program }]);
        }
    }

    fn take_foreground(&self) {
        if let Some(slave) = &self.slave {
            let _ = nix::unistd::tcsetpgrp(slave, own_pid());
        }
    }

    fn tick(&mut self, now: Instant) {
        if self.lent_until.is_some_and(|until| now >= until) {
            self.lent_until = None;
            self.reported = None;
            self.take_foreground();
            self.report(&[Report::TookBack]);
            self.report_next_stop();
        }
        match self.hunt {
            Hunt::Grace { until } if now >= until => self.start_killing(now),
            Hunt::Killing { round, next, until } if now >= next => self.kill_round(round, until, now),
            _ => {}
        }
    }

    fn start_killing(&mut self, now: Instant) {
        self.kill_round(0, now + limits::KILL_HUNT, now);
    }

    fn kill_round(&mut self, round: u32, until: Instant, now: Instant) {
        let living = tree::descendants(own_pid().as_raw());
        if round >= limits::KILL_ROUNDS_MAX || now >= until {
            let named = living.iter().take(limits::STRAGGLERS_NAMED_MAX);
            self.report(&named.map(|process| Report::Unkillable { pid: process.pid }).collect::<Vec<_>>());
            self.hunt = Hunt::GivenUp;
            return;
        }
        for process in living {
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        let pause = Duration::from_millis(50.min(2 << round.min(5)));
        self.hunt = Hunt::Killing { round: round + 1, next: now + pause, until };
    }

    fn take_orders(&mut self) {
        let mut bytes = [0; 64];
        while self.host_lives {
            match socket::receive(&self.control, &mut bytes) {
                Ok(0) => return self.on_host_gone(),
                Ok(length) => self.orders.extend_from_slice(&bytes[..length]),
                Err(error) if super::is_transient(&error) => break,
                Err(_) => return self.on_host_gone(),
            }
        }
        let orders = std::mem::take(&mut self.orders);
        let mut chunks = orders.chunks_exact(control::ORDER_BYTES);
        for chunk in &mut chunks {
            if let Some(order) = chunk.first_chunk().copied().and_then(control::decode_order) {
                self.obey(order);
            }
        }
        self.orders = chunks.remainder().to_vec();
    }

    fn on_host_gone(&mut self) {
        self.host_lives = false;
        if self.shell.is_some() {
            self.terminate();
            if matches!(self.hunt, Hunt::No) {
                self.hunt = Hunt::Grace { until: Instant::now() + limits::GRACE_CALLER_GONE };
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Signal(number) if self.shell.is_some() => signal_group(self.group, i32::from(number)),
            Order::Signal(_) => {}
            Order::Terminate => self.terminate(),
            Order::Kill => {
                if !matches!(self.hunt, Hunt::Killing { .. }) {
                    self.start_killing(Instant::now());
                }
            }
            Order::Lend => self.lend(),
            Order::HangUp => {
                if let Some(stopped) = self.reported.take() {
                    hang_up(stopped.group);
                }
                self.report_next_stop();
            }
            Order::BreakPipe => self.break_pipe(),
            Order::Look => self.look(),
        }
    }

    /// TERM first: a stopped process acts on it as soon as it is continued.
    fn terminate(&self) {
        if self.shell.is_some() {
            signal_group(self.group, libc::SIGTERM);
            signal_group(self.group, libc::SIGCONT);
        } else {
            for process in tree::descendants(own_pid().as_raw()) {
                let _ = kill(Pid::from_raw(process.pid), Signal::SIGTERM);
                let _ = kill(Pid::from_raw(process.pid), Signal::SIGCONT);
            }
        }
    }

    fn lend(&mut self) {
        if let (Some(stopped), Some(slave)) = (self.reported, &self.slave) {
            let _ = nix::unistd::tcsetpgrp(slave, stopped.group);
            signal_group(stopped.group, libc::SIGCONT);
            self.lent_until = Some(Instant::now() + limits::FOREGROUND_SLICE);
        }
    }

    /// On a pipe the writer alone would be struck. Who writes cannot be seen from here, but it is hardly the shell
    /// while it has others at work for it.
    fn break_pipe(&self) {
        let Some(shell) = self.shell else { return };
        let members = tree::descendants(own_pid().as_raw());
        let mut others = members.iter().filter(|process| process.group == self.group.as_raw());
        let mut struck = false;
        for process in others.by_ref().filter(|process| process.pid != shell.as_raw()) {
            struck |= kill(Pid::from_raw(process.pid), Signal::SIGPIPE).is_ok();
        }
        if !struck {
            let _ = kill(shell, Signal::SIGPIPE);
        }
        self.report(&[Report::PipeBroken]);
    }
}

fn own_pid() -> Pid {
    nix::unistd::getpid()
}

fn signal_group(group: Pid, signal: i32) {
    // SAFETY: the call takes numbers; real-time signals have no name in nix.
    unsafe { libc::killpg(group.as_raw(), signal) };
}

fn hang_up(group: Pid) {
    let _ = killpg(group, Signal::SIGHUP);
    let _ = killpg(group, Signal::SIGCONT);
}

/// Leaves the host behind: descriptors, session, dispositions, mask. What is set here is set explicitly, because the
/// host's own choices came along with the fork.
fn become_guard(control: &OwnedFd, slave: &OwnedFd) -> io::Result<SignalFd> {
    close_all_but(&[control.as_raw_fd(), slave.as_raw_fd()]);
    // Descriptors 0 to 2 are taken, so that what arrives later never lands on a target of the command's own.
    for _ in 0..3 {
        let fd = nix::fcntl::fcntl(control, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(0)).map_err(super::io)?;
        if fd > 2 {
            let _ = nix::unistd::close(fd);
        }
    }
    setsid().map_err(super::io)?;
    // SAFETY: the ioctl takes a number: do not steal the terminal, it is new.
    super::check(unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) })?;
    nix::sys::prctl::set_child_subreaper(true).map_err(super::io)?;
    let _ = nix::sys::prctl::set_name(c"rexec-guard");
    for signal in 1..=64 {
        let disposition = if GUARD_IGNORES.contains(&signal) { libc::SIG_IGN } else { libc::SIG_DFL };
        // SAFETY: a disposition without a handler; what may not be set is refused, which does no harm.
        unsafe { libc::signal(signal, disposition) };
    }
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGCHLD);
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None).map_err(super::io)?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK).map_err(super::io)
}

/// Closes every descriptor but these. Guards that held each other's sockets would die one after the other.
pub(super) fn close_all_but(kept: &[i32]) {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.unsigned_abs()).collect();
    kept.sort_unstable();
    let mut first = 0;
    for last in kept.into_iter().map(Some).chain([None]) {
        if last != Some(first) {
            // SAFETY: the call takes numbers; nothing of the host's that is closed here is used again.
            unsafe { libc::syscall(libc::SYS_close_range, first, last.map_or(u32::MAX, |last| last - 1), 0) };
        }
        first = last.map_or(u32::MAX, |last| last + 1);
    }
}

/// A command as the host passed it on.
struct Request {
    plan: u8,
    frame: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

impl Request {
    /// Waits for one; `None` when the host went away before it was whole.
    fn receive(control: &OwnedFd) -> io::Result<Option<Self>> {
        let mut request = Self { plan: 0, frame: Vec::new(), descriptors: Vec::new() };
        let mut buffer = vec![0; 64 << 10];
        loop {
            let received = socket::receive_with_descriptors(control, &mut buffer, &mut request.descriptors)?;
            if received.bytes == 0 {
                return Ok(None);
            }
            request.frame.extend_from_slice(&buffer[..received.bytes]);
            request.plan = request.frame[0];
            match FromShim::decode(&request.frame[1..]) {
                Ok(Decoded::Incomplete) => {}
                Ok(Decoded::Item(FromShim::Run(_), _)) => return Ok(Some(request)),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn start(self, slave: &OwnedFd, baseline: &Baseline) -> Result<i32, (control::Stage, i32)> {
        let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&self.frame[1..]) else {
            return Err((control::Stage::Fork, libc::EPROTO));
        };
        let failed = |errno| (control::Stage::Descriptors, errno);
        let descriptors = Self::arrange(self.descriptors, self.plan, &run, slave)
            .map_err(|e| failed(e.raw_os_error().unwrap_or(libc::EPROTO)))?;
        Launch::new(&run, &descriptors, baseline).start()
    }

    /// Gives each descriptor its role, and moves it out of the way of the command's numbers if there are any: 0 to 2
    /// are taken in a guard.
    fn arrange(
        descriptors: Vec<OwnedFd>,
        plan: u8,
        run: &rexec_sh::wire::Run<'_>,
        slave: &OwnedFd,
    ) -> io::Result<Descriptors> {
        let highest = run.attributes.inherited.iter().copied().max();
        let mut given = descriptors.into_iter();
        let mut next = || {
            let fd = given.next().ok_or(io::ErrorKind::InvalidData)?;
            match highest {
                Some(highest) => above(fd.as_fd(), highest),
                None => Ok(fd),
            }
        };
        let directory = next()?;
        let stdin = if run.attributes.stdio.stdin { Some(next()?) } else { None };
        let inherited = run.attributes.inherited.iter().map(|_| next()).collect::<io::Result<Vec<_>>>()?;
        let mut pipes = Vec::new();
        for _ in 0..(plan & (control::PLAN_OUT_PIPE | control::PLAN_ERR_PIPE)).count_ones() {
            pipes.push(next()?);
        }
        let mut tty = slave.as_raw_fd();
        if let Some(highest) = highest {
            pipes.push(above(slave.as_fd(), highest)?);
            tty = pipes[pipes.len() - 1].as_raw_fd();
        }
        let (out, err) = (plan & control::PLAN_OUT_PIPE != 0, plan & control::PLAN_ERR_PIPE != 0);
        let stdout = if out { pipes[0].as_raw_fd() } else { tty };
        let stderr = match (err, plan & control::PLAN_ERR_IS_OUT != 0) {
            (true, _) => pipes[usize::from(out)].as_raw_fd(),
            (false, true) => stdout,
            (false, false) => tty,
        };
        Ok(Descriptors { directory, stdin, inherited, stdout, stderr, _kept: pipes })
    }
}

/// A copy of a descriptor with a number above this one.
fn above(fd: BorrowedFd<'_>, highest: i32) -> io::Result<OwnedFd> {
    let copy = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(highest + 1)).map_err(super::io)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(copy) })
}
