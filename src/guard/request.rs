//! The command that a guard receives from the host, and its start.
//!
//! Invariants: before the shell's process is made, the host has given the order to begin, or gets the report that the
//! command begins. Until then, an order that would end a shell at its very beginning has the same result without one.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Instant;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use rexec_sh::protocol::environment;
use rexec_sh::protocol::wire::{AtStart, Decoded, FromShim, RunRequest};

use super::baseline::Baseline;
use super::collector::{CollectorTask, UnsettledRecord};
use super::condition::SleepCount;
use super::control::{self, GuardReport, RecordPlace, RunPlan, StartStage};
use super::launch::{Descriptors, Launch, ShellPlace};
use super::saved_terminal::SavedTerminal;
use super::supervisor::RelayedTerminal;
use crate::core::job::Order;
use crate::limits;
use crate::sys::standard_input::{self, PipeNumber, Unread};
use crate::sys::{self, pty, socket};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

pub(super) struct ReceivedRun {
    pub(super) plan: RunPlan,
    /// Where what the command may destroy is kept; `None` if it is not.
    record: Option<RecordPlace>,
    frame: Vec<u8>,
    /// Bytes of orders that arrived after the frame.
    rest: Vec<u8>,
    descriptors: Vec<OwnedFd>,
}

/// A command whose shell runs.
pub(super) struct StartedRun {
    pub(super) shell: Pid,
    pub(super) relayed: Option<RelayedTerminal>,
    /// True if the guard's terminal is the command's controlling one.
    pub(super) has_terminal: bool,
    /// The pipe that is the command's standard input.
    pub(super) input: Option<PipeNumber>,
    /// The command's standard input, if it may still get something, for which the command should have no terminal.
    pub(super) late_input: Option<OwnedFd>,
    /// Orders that came before there was a shell.
    pub(super) orders: Vec<Order>,
    /// The incomplete order after them.
    pub(super) rest: Vec<u8>,
}

/// The reason why there is no shell.
pub(super) enum NotStarted {
    /// The host is gone, so nobody wants the command.
    HostGone,
    /// The reason is in this report.
    Report(GuardReport),
}

impl From<GuardReport> for NotStarted {
    fn from(report: GuardReport) -> Self {
        Self::Report(report)
    }
}

/// Waits for a command. `None` if the host is gone before the command is complete.
///
/// # Errors
/// `InvalidData` if the host sends anything else; as recvmsg(2).
pub(super) fn receive(control: &OwnedFd, held: Vec<OwnedFd>) -> io::Result<Option<ReceivedRun>> {
    let (plan, frame, rest) = (RunPlan::default(), Vec::new(), Vec::new());
    let mut run = ReceivedRun { plan, record: None, frame, rest, descriptors: held };
    let mut buffer = vec![0; 16 << 10];
    loop {
        let received = socket::receive_with_descriptors(control, &mut buffer, &mut run.descriptors)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        run.frame.extend_from_slice(&buffer[..received.bytes]);
        let Some((plan, frame)) = run.frame.split_first_chunk::<{ control::PLAN_BYTES }>() else { continue };
        run.plan = RunPlan::decode(*plan);
        let Some((record, frame)) = frame.split_at_checked(run.plan.record_bytes.into()) else { continue };
        match FromShim::decode(frame) {
            Ok(Decoded::Incomplete) => {}
            Ok(Decoded::Item(FromShim::Run(_), taken)) => {
                run.record = RecordPlace::decode(record);
                run.frame.drain(..control::PLAN_BYTES + record.len());
                run.rest = run.frame.split_off(taken);
                return Ok(Some(run));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl ReceivedRun {
    /// Reports that the command is ready to begin, keeps what it may destroy, waits for the order, then starts its shell.
    /// `kept` becomes the record that is to be settled when nothing of the command lives, if there is one.
    pub(super) fn start(
        self,
        control: &OwnedFd,
        slave: &OwnedFd,
        baseline: &Baseline,
        sleeps: &mut SleepCount,
        kept: &mut Option<UnsettledRecord>,
    ) -> Result<StartedRun, NotStarted> {
        let failed = |stage, errno| GuardReport::Failed { stage, errno };
        let Ok(Decoded::Item(FromShim::Run(run), _)) = FromShim::decode(&self.frame) else {
            return Err(failed(StartStage::Fork, libc::EPROTO).into());
        };
        let raised = make_room(&run.attributes.inherited)?.then(Baseline::read);
        let mut descriptors = arrange(self.descriptors, self.plan, &run, slave)
            .map_err(|error| failed(StartStage::Descriptors, error.raw_os_error().unwrap_or(libc::EPROTO)))?;
        // Now, because a terminal whose master the host has closed does not report its modes any more.
        let terminal = descriptors.terminal.take();
        let relayed = self.plan.has(control::PLAN_RELAYED).then(|| RelayedTerminal {
            is_foreground: self.plan.has(control::PLAN_FOREGROUND),
            caller: terminal.and_then(|terminal| SavedTerminal::with_modes_of(terminal, slave)),
        });
        let baseline = raised.as_ref().unwrap_or(baseline);
        let mut launch = prepare(&run, self.plan, &descriptors, baseline, control, slave);
        let mut early = EarlyOrders { control, bytes: self.rest, kept: Vec::new(), may_begin: false };
        early.take(&run)?;
        let own_input = descriptors.stdin.as_ref().and_then(standard_input::pipe_number);
        let late_input = self.plan.has(control::PLAN_UNLESS_FED).then(|| descriptors.stdin.take()).flatten();
        let input = late_input.as_ref().map_or(Unread::Nothing, standard_input::unread);
        let is_detached = self.plan.has(control::PLAN_DETACHED) || input == Unread::Something;
        if is_detached {
            // Its SIGHUP is for the guard's own group, which ignores it.
            pty::give_up(slave);
            if self.plan.has(control::PLAN_ORPHANED) {
                // The shell's process group is then orphaned, as its caller's is.
                launch.begin_at(ShellPlace::OwnSession);
            }
        }
        let tell = |report: GuardReport| match sys::write(control, &report.encode()) {
            Ok(_) => Ok(()),
            Err(_) => Err(NotStarted::HostGone),
        };
        tell(GuardReport::Ready { is_detached })?;
        if let Some(record) = self.record {
            let task = CollectorTask::of(&run, descriptors.directory.as_ref());
            *kept = task.begin(record, tell)?;
            if let Some(kept) = kept {
                kept.await_collector(control, tell, &mut || early.take(&run))?;
            }
        }
        sleeps.reasons += early.await_begin(&run)?;
        if !early.may_begin {
            tell(GuardReport::Begun)?;
        }
        let mut descriptors = Some(descriptors);
        let shell = launch_patiently(&launch, &run, &mut early, &mut || drop(descriptors.take()))?;
        if self.plan.has(control::PLAN_FOREGROUND) {
            // A host that is gone shows at the next read of orders.
            let _ = sys::write(control, &GuardReport::InForeground.encode());
        }
        let late_input = late_input.filter(|_| input == Unread::NothingYet);
        let has_terminal = !is_detached;
        Ok(StartedRun {
            shell,
            relayed,
            has_terminal,
            input: own_input,
            late_input,
            orders: early.kept,
            rest: early.bytes,
        })
    }
}

fn prepare<'a>(
    run: &'a RunRequest<'a>,
    plan: RunPlan,
    descriptors: &Descriptors,
    baseline: &Baseline,
    control: &OwnedFd,
    slave: &OwnedFd,
) -> Launch<'a> {
    let mut launch = Launch::new(run, descriptors, baseline, control);
    if plan.has(control::PLAN_DEFAULTS) {
        launch.add_defaults(environment::DEFAULTS, run);
    }
    if plan.has(control::PLAN_LIVE) {
        launch.add_defaults(environment::LIVE, run);
    }
    if plan.has(control::PLAN_LEADER) {
        // Its SIGHUP is for the guard's own group, which ignores it.
        pty::give_up(slave);
        launch.begin_at(ShellPlace::SessionLeader(slave.as_raw_fd()));
    } else if plan.has(control::PLAN_FOREGROUND) {
        launch.begin_at(ShellPlace::Foreground(slave.as_raw_fd()));
    }
    launch
}

/// Makes the shell's process. It begins once `let_go` has closed the guard's copies. While the system has too many
/// processes, it tries again for [`limits::FORK_TIMEOUT`].
#[expect(clippy::disallowed_methods, reason = "a guard has nothing else to do yet")]
fn launch_patiently(
    launch: &Launch<'_>,
    run: &RunRequest<'_>,
    early: &mut EarlyOrders<'_>,
    let_go: &mut dyn FnMut(),
) -> Result<Pid, NotStarted> {
    let until = Instant::now() + limits::FORK_TIMEOUT;
    loop {
        match launch.start(let_go) {
            Ok(shell) => return Ok(shell),
            Err((StartStage::Fork, libc::EAGAIN | libc::ENOMEM)) if Instant::now() < until => {
                std::thread::sleep(limits::START_RETRY);
                early.take(run)?;
            }
            Err((stage, errno)) => return Err(GuardReport::Failed { stage, errno }.into()),
        }
    }
}

/// Orders that come before there is a shell.
struct EarlyOrders<'a> {
    control: &'a OwnedFd,
    /// Bytes of an incomplete order.
    bytes: Vec<u8>,
    /// For the shell, once it exists.
    kept: Vec<Order>,
    may_begin: bool,
}

impl EarlyOrders<'_> {
    /// Waits for the order to begin. Returns the number of possible sleeps.
    fn await_begin(&mut self, run: &RunRequest<'_>) -> Result<i64, NotStarted> {
        let until = Instant::now() + limits::LET_GO_PATIENCE;
        let mut sleeps = 0;
        loop {
            self.take(run)?;
            let left = until.saturating_duration_since(Instant::now());
            if self.may_begin || left.is_zero() {
                return Ok(sleeps);
            }
            sleeps += 1;
            let mut orders = [PollFd::new(self.control.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut orders, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        }
    }

    /// Takes the present orders. Fails if the host is gone, or if an order would end a shell that has just begun.
    fn take(&mut self, run: &RunRequest<'_>) -> Result<(), NotStarted> {
        let (orders, is_gone) = control::receive_orders(self.control, &mut self.bytes);
        for order in orders {
            let signal = match order {
                Order::Kill => Some(Signal::KILL),
                Order::Terminate => Some(Signal::TERM),
                Order::Signal(signal) => Some(signal),
                _ => None,
            };
            if order == Order::Begin {
                self.may_begin = true;
                continue;
            }
            match signal.map(|signal| (signal, run.at_start(signal))) {
                Some((signal, AtStart::Ends)) => {
                    let (exit, group) = (Exit::Signal(signal), ProcessGroup::new(0));
                    return Err(GuardReport::Exited { exit, group, has_left: false }.into());
                }
                Some((_, AtStart::Nothing)) => {}
                Some((_, AtStart::Waits)) | None => self.kept.push(order),
            }
        }
        if is_gone { Err(NotStarted::HostGone) } else { Ok(()) }
    }
}

/// Gives each descriptor its role, and moves it away from the numbers that the command's own descriptors get. Numbers 0
/// to 2 are in use in a guard, so no descriptor has one of them.
fn arrange(descriptors: Vec<OwnedFd>, plan: RunPlan, run: &RunRequest<'_>, slave: &OwnedFd) -> io::Result<Descriptors> {
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

/// A copy of a descriptor whose number is not one of the targets.
fn clear_of(targets: &[i32], fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut lowest = 3;
    loop {
        let copy = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(lowest)).map_err(sys::io)?;
        // SAFETY: the descriptor is new and has no other owner.
        let copy = unsafe { OwnedFd::from_raw_fd(copy) };
        if !targets.contains(&copy.as_raw_fd()) {
            return Ok(copy);
        }
        lowest = copy.as_raw_fd() + 1;
    }
}

/// Raises the guard's limit so that it may have descriptors with these numbers, because a caller's limit can be higher
/// than the host's. Returns true if it was raised.
fn make_room(numbers: &[i32]) -> Result<bool, GuardReport> {
    let Some(descriptor) = numbers.iter().copied().max() else { return Ok(false) };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((libc::rlim_t::MAX, libc::rlim_t::MAX));
    let wanted = libc::rlim_t::from(descriptor.unsigned_abs()) + 1;
    if wanted <= soft {
        return Ok(false);
    }
    let limit = u32::try_from(hard).unwrap_or(u32::MAX);
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard.max(wanted))
        .map_err(|_| GuardReport::OutOfReach { descriptor, limit })?;
    Ok(true)
}
