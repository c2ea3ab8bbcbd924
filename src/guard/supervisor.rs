//! The guard's work while its command runs, and after: it waits, reaps, reports and obeys.
//!
//! Invariants: the shell is signalled only until it is reaped. The guard's group is the foreground group and the slave is
//! closed before the shell's exit is reported.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use super::caller_group::CallerGroup;
use super::child_events::{self, ChildEvent};
use super::collector::UnsettledRecord;
use super::condition::SleepCount;
use super::control::{self, GuardReport, RunPlan};
use super::endless::EndlessReaders;
use super::foreground::Foreground;
use super::hunt::Hunt;
use super::paused_tree::PausedTree;
use super::saved_terminal::SavedTerminal;
use super::terminal_on_demand::Demand;
use crate::core::job::Order;
use crate::limits;
use crate::sys::kill::{self, CONT};
use crate::sys::standard_input::{self, PipeNumber, Unread};
use crate::sys::tree::Process;
use crate::sys::{self, process, tree};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// A guard whose command has started.
#[derive(Debug)]
pub(super) struct Supervisor {
    control: OwnedFd,
    signals: SignalFd,
    pub(super) foreground: Foreground,
    /// `Some` until the shell is reaped: only then is the number its own.
    pub(super) shell: Option<Pid>,
    pub(super) group: ProcessGroup,
    /// True if the rest of the shell's group is killed once the caller has its result.
    kills_group: bool,
    /// The time at which the rest of the shell's group is killed.
    group_ends: Option<Instant>,
    /// Time from the death of the shell by its caller's signal to the SIGKILL for its group.
    grace: Duration,
    /// The caller's signals so far; bit N is signal N.
    signalled: u128,
    /// The whole tree ends, because of an order. The host's death before the next order changes nothing about that.
    must_end: bool,
    host_lives: bool,
    /// Bytes of an incomplete order.
    orders: Vec<u8>,
    hunt: Hunt,
    /// The processes that an order to pause stopped, until they are continued.
    pub(super) paused: Option<PausedTree>,
    /// Stops at the terminal that the guard noticed only after the pause had begun.
    pub(super) stopped_before_pause: Vec<(Pid, Signal)>,
    pub(super) relayed: Option<RelayedTerminal>,
    /// Set if the command gets keys only while it asks for them.
    pub(super) demand: Option<Demand>,
    /// Programs that read on after the end of a terminal that was given up.
    endless: EndlessReaders,
    /// The command's standard input, and the end of the time in which it is watched for data.
    late_input: Option<(OwnedFd, Instant)>,
    /// The pipe that is the command's standard input. Its contents came from elsewhere.
    pub(super) own_input: Option<PipeNumber>,
    pub(super) caller: CallerGroup,
    /// Set if something of the command is kept for undo, and not settled yet.
    pub(super) record: Option<UnsettledRecord>,
    /// The guard may serve another command after this one.
    pub(super) is_reusable: bool,
}

/// A run's terminal that stands for its caller's.
#[derive(Debug)]
pub(super) struct RelayedTerminal {
    /// True if the shell begins in the foreground.
    pub(super) is_foreground: bool,
    /// The caller's terminal, if it sent one.
    pub(super) caller: Option<SavedTerminal>,
}

impl Supervisor {
    /// The supervisor of a shell that was just started in a process group of its own.
    pub(super) fn new(control: OwnedFd, signals: SignalFd, slave: OwnedFd, shell: Pid, plan: RunPlan) -> Self {
        // The child does so too, but may be signalled before it does. Once it has executed, this fails.
        let _ = process::lead_group(shell);
        Self {
            control,
            signals,
            foreground: Foreground::new(slave),
            shell: Some(shell),
            group: shell.as_group(),
            kills_group: plan.has(control::PLAN_KILL_GROUP),
            group_ends: None,
            grace: plan.grace,
            signalled: 0,
            must_end: false,
            host_lives: true,
            orders: Vec::new(),
            hunt: Hunt::No,
            paused: None,
            stopped_before_pause: Vec::new(),
            relayed: None,
            demand: plan.has(control::PLAN_ON_DEMAND).then(Demand::default),
            endless: EndlessReaders::default(),
            late_input: None,
            own_input: None,
            caller: CallerGroup::new(plan.caller, plan.has(control::PLAN_ORPHANED)),
            record: None,
            is_reusable: !plan.has(control::PLAN_RELAYED | control::PLAN_LEADER | control::PLAN_ON_DEMAND),
        }
    }

    /// The same supervisor; with `relayed`, of a terminal that stands for its caller's.
    pub(super) fn with_relayed(mut self, relayed: Option<RelayedTerminal>) -> Self {
        if relayed.as_ref().is_some_and(|terminal| !terminal.is_foreground) {
            self.foreground.begin_away(self.group);
        }
        Self { relayed, ..self }
    }

    /// The same supervisor, of a command that has this pipe as its standard input. It watches `late_input` for data for
    /// a while.
    pub(super) fn with_input(self, own_input: Option<PipeNumber>, late_input: Option<OwnedFd>) -> Self {
        let until = Instant::now() + limits::LATE_INPUT;
        Self { late_input: late_input.map(|input| (input, until)), own_input, ..self }
    }

    /// Obeys orders that came before there was a shell. `rest` is the incomplete order after them.
    pub(super) fn take_early(&mut self, orders: Vec<Order>, rest: Vec<u8>) {
        self.orders = rest;
        orders.into_iter().for_each(|order| self.obey(order));
    }

    /// Works until no process is left to watch. Returns the descriptors for another command, if this one's shell was
    /// its last process and no order has come.
    ///
    /// # Errors
    /// As poll(2).
    pub(super) fn run(mut self, sleeps: &mut SleepCount) -> nix::Result<Option<(OwnedFd, SignalFd)>> {
        loop {
            let had_shell = self.shell.is_some();
            let has_children = self.reap();
            if self.shell.is_none() && (!has_children || (!self.host_lives && matches!(self.hunt, Hunt::No))) {
                let is_reusable = self.is_reusable && self.record.is_none();
                if let Some(record) = self.record.take() {
                    record.settle_at_end(&self.control);
                }
                let is_free = had_shell && is_reusable && self.host_lives && self.orders.is_empty();
                return Ok(is_free.then_some((self.control, self.signals)));
            }
            self.tick(Instant::now());
            sleeps.reasons += 1;
            if self.wait()? {
                self.take_orders();
            }
        }
    }

    /// Sleeps until something happens or is due; returns true if there may be orders.
    fn wait(&mut self) -> nix::Result<bool> {
        let now = Instant::now();
        let demand = self.demand.as_ref().and_then(Demand::deadline);
        let late_input = self.late_input.as_ref().map(|(_, until)| *until);
        let (endless, caller) = (self.endless.deadline(), self.caller.deadline());
        let record = self.record.as_ref().map(UnsettledRecord::deadline);
        let due = [
            self.foreground.deadline(),
            self.hunt.deadline(),
            self.group_ends,
            demand,
            late_input,
            endless,
            caller,
            record,
        ];
        let timeout = match due.into_iter().flatten().min() {
            None => PollTimeout::NONE,
            // Rounded up, so that poll(2) does not return just before the time.
            Some(at) => {
                let wait = at.saturating_duration_since(now) + Duration::from_micros(999);
                PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
            }
        };
        let asker = self.demand.as_ref().and_then(Demand::asker);
        let input = self.late_input.as_ref().map(|(input, _)| input.as_fd());
        let wanted = |is_wanted: bool| if is_wanted { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(asker.unwrap_or(self.signals.as_fd()), wanted(asker.is_some())),
            PollFd::new(input.unwrap_or(self.signals.as_fd()), wanted(input.is_some())),
            PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
        ];
        let watched = if self.host_lives { 4 } else { 3 };
        match poll(&mut fds[..watched], timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let has = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let (has_signal, has_ended, has_orders) = (has(&fds[0]), has(&fds[1]), has(&fds[3]));
        if input.is_some() && has(&fds[2]) {
            self.look_at_input();
        }
        if has_signal {
            // One read takes every pending SIGCHLD, because they do not queue.
            let _ = self.signals.read_signal();
        }
        if let Some(demand) = self.demand.as_mut().filter(|_| has_ended) {
            demand.on_asker_ended(Instant::now());
        }
        Ok(has_orders)
    }

    /// Checks the command's standard input after a change: it has data, or its writers are gone.
    fn look_at_input(&mut self) {
        let input = self.late_input.take();
        if input.is_some_and(|(input, _)| standard_input::unread(&input) == Unread::Something) {
            self.report(&[GuardReport::Fed]);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.late_input.take_if(|(_, until)| now >= *until);
        self.endless.tick(now);
        let reports = self.foreground.tick(now);
        self.report(&reports);
        if let Some(demand) = self.demand.as_mut().filter(|_| self.shell.is_some()) {
            let reports = demand.tick(now, &mut self.foreground, self.group);
            self.report(&reports);
        }
        if self.group_ends.is_some_and(|at| now >= at) {
            self.group_ends = None;
            self.kill_group();
        }
        if self.caller.is_due(now) {
            self.look_at_caller();
        }
        let reports = self.hunt.tick(now);
        self.report(&reports);
        self.record = self.record.take().and_then(|record| record.tick(&self.control, now));
    }

    pub(super) fn report(&self, reports: &[GuardReport]) {
        if reports.is_empty() {
            return;
        }
        let bytes: Vec<u8> = reports.iter().flat_map(|report| report.encode()).collect();
        // When the host is gone, the next read of orders shows it.
        let _ = sys::write(&self.control, &bytes);
    }

    /// Reaps ended children and notes stopped ones; returns true if any children are left.
    fn reap(&mut self) -> bool {
        let (mut shell_end, mut has_ended) = (None, false);
        let has_children = loop {
            match child_events::next() {
                ChildEvent::None => break true,
                ChildEvent::NoChildren => break false,
                ChildEvent::Stopped { pid, signal } => self.on_stopped(pid, signal),
                ChildEvent::Continued { pid } => self.on_continued(pid),
                ChildEvent::Ended { pid, exit } if Some(pid) == self.shell => {
                    shell_end = Some(exit);
                    self.shell = None;
                }
                ChildEvent::Ended { .. } => has_ended = true,
            }
        };
        if has_ended {
            let reports = self.foreground.check_asker();
            self.report(&reports);
        }
        if let Some(exit) = shell_end {
            self.on_shell_end(exit, has_children);
        }
        has_children
    }

    /// Closes the terminal, then reports the exit, so the host's next read finds the end of output, or a process that
    /// holds the terminal.
    fn on_shell_end(&mut self, exit: Exit, has_children: bool) {
        if has_children && self.was_ended_by_caller(exit) {
            self.group_ends = Some(Instant::now() + self.grace);
        }
        if let Some(caller) = self.relayed.take().and_then(|terminal| terminal.caller) {
            // The death of the host hangs up the terminal first and closes its end of the socket a moment later.
            let has_hung_up = exit == Exit::Signal(Signal::HUP) || self.foreground.has_hung_up();
            let wait = if has_hung_up { limits::HANG_UP_WAIT } else { Duration::ZERO };
            if self.host_leaves_within(wait) {
                caller.restore();
            }
        }
        self.foreground.close();
        self.late_input = None;
        self.demand = None;
        if has_children {
            self.hang_up_stopped(&tree::descendants(process::pid()));
            self.record.iter_mut().for_each(|record| record.on_processes_left(Instant::now()));
        }
        self.report(&[GuardReport::Exited { exit, group: self.group, has_left: has_children }]);
    }

    /// Returns true if the host closes its end of the socket within this time.
    fn host_leaves_within(&self, time: Duration) -> bool {
        let mut end = [PollFd::new(self.control.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO)).is_ok_and(|found| found > 0)
    }

    /// Returns true if the shell died of a signal from its caller: the caller would now wait, and kill the rest of the
    /// group. After the hang-up of a terminal nothing is killed.
    fn was_ended_by_caller(&self, exit: Exit) -> bool {
        let signal = Signal::new(exit.code().wrapping_sub(128));
        let is_end = match signal {
            Signal::INT | Signal::QUIT | Signal::TERM => true,
            Signal::HUP => self.relayed.is_none(),
            _ => false,
        };
        is_end && self.signalled & 1 << signal.number() != 0
    }

    fn take_orders(&mut self) {
        let (orders, is_gone) = control::receive_orders(&self.control, &mut self.orders);
        // The last orders of a host that is gone count, too.
        orders.into_iter().for_each(|order| self.obey(order));
        if is_gone {
            self.on_host_gone();
        }
    }

    fn on_host_gone(&mut self) {
        self.host_lives = false;
        if let Some(caller) = self.relayed.as_ref().and_then(|terminal| terminal.caller.as_ref()) {
            caller.restore();
        }
        if self.kills_group || self.group_ends.take().is_some() {
            self.kill_group();
        }
        if self.shell.is_none() && !self.must_end {
            // Processes stopped at the guard's end would stay so forever, or get the kernel's SIGHUP.
            return self.unpause();
        }
        if !self.must_end {
            self.terminate();
        }
        if matches!(self.hunt, Hunt::No) {
            self.hunt = Hunt::Grace { until: Instant::now() + limits::GRACE_CALLER_GONE };
        }
    }

    fn obey(&mut self, order: Order) {
        // A look changes nothing. Any other order may have stopped, signalled or changed a process.
        self.is_reusable &= order == Order::Look;
        match order {
            Order::Signal(signal) if self.shell.is_some() => {
                self.signalled |= 1 << (signal.number() & 127);
                let _ = kill::group(self.group, signal);
                self.let_act(signal);
            }
            Order::Interrupt if self.shell.is_some() => {
                let below = tree::descendants(process::pid());
                let has_members = |group| below.iter().any(|process| process.group == group);
                let group = self.foreground.interruptible(self.group, has_members);
                let _ = kill::group(group, Signal::INT);
                let _ = kill::group(group, CONT);
            }
            Order::Signal(_) | Order::Interrupt => {}
            Order::SignalLeft(signal) => self.signal_left(signal),
            Order::Pause => self.pause(),
            Order::Unpause => {
                self.unpause();
                self.report(&[GuardReport::Unpaused]);
            }
            Order::Terminate => {
                self.must_end = true;
                self.terminate();
            }
            Order::Kill => {
                self.must_end = true;
                self.report(&[GuardReport::Hunting]);
                let reports = self.hunt.start(Instant::now());
                self.report(&reports);
            }
            Order::GiveUpTerminal => {
                let asked = self.foreground.give_up();
                self.endless.watch(asked.into_iter().filter_map(tree::process), Instant::now());
            }
            Order::EndInput
            | Order::LeaveKeys
            | Order::PassModes
            | Order::HangUp
            | Order::GiveForeground
            | Order::TakeForeground => self.obey_about_foreground(order),
            Order::BreakPipe => self.break_pipe(),
            Order::Look if self.shell.is_none() => self.look_for_filters(),
            // It came late.
            Order::Begin => {}
            Order::Look => self.look(),
            Order::Resume { foreground, continues } => {
                if self.shell.is_some() && self.relayed.is_some() {
                    self.foreground.resume(foreground, continues, self.group);
                }
                if let Some(demand) = self.demand.as_mut().filter(|_| foreground) {
                    demand.on_granted(Instant::now());
                }
                self.report(&[GuardReport::InForeground]);
            }
            Order::Typed => {
                if let Some(demand) = &mut self.demand {
                    demand.on_typed(Instant::now());
                }
            }
            Order::KillGroup => self.group_ends = Some(Instant::now() + limits::GROUP_LEAVE),
        }
    }

    /// Continues the shell's group if it is stopped because it asks for the terminal, so that it acts on a signal. Its
    /// caller does not see it as stopped. If it does not end, it asks again.
    fn let_act(&self, signal: Signal) {
        let stops = [kill::STOP, kill::TSTP, kill::TTIN, kill::TTOU].contains(&signal);
        if !stops && self.relayed.is_none() && self.paused.is_none() && self.foreground.knows(self.group) {
            let _ = kill::group(self.group, CONT);
        }
    }

    /// Obeys an order about a process group that asks. The asker may be gone by now.
    fn obey_about_foreground(&mut self, order: Order) {
        let reports = self.foreground.check_asker();
        self.report(&reports);
        let is_void = !reports.is_empty() && !matches!(order, Order::GiveForeground | Order::TakeForeground);
        if is_void || self.relayed.is_some() || self.shell.is_none() {
            return;
        }
        let report = match order {
            Order::HangUp => self.foreground.hang_up_reported(),
            Order::GiveForeground => Some(self.foreground.give(self.group)),
            Order::EndInput | Order::LeaveKeys => {
                self.foreground.end_input();
                None
            }
            Order::PassModes => {
                self.foreground.pass_modes();
                None
            }
            _ => {
                self.foreground.leave(Instant::now());
                None
            }
        };
        self.report(report.as_slice());
    }

    /// Kills the rest of the shell's group. While the group has a member, its number is its own.
    fn kill_group(&self) {
        let is_member = |process: &Process| process.group == self.group;
        if self.shell.is_none() && tree::descendants(process::pid()).iter().any(is_member) {
            let _ = kill::group(self.group, Signal::KILL);
        }
    }

    /// Sends SIGTERM, then SIGCONT, so that a stopped process acts on the SIGTERM as soon as it is continued.
    fn terminate(&mut self) {
        if self.shell.is_some() {
            let _ = kill::group(self.group, Signal::TERM);
            let _ = kill::group(self.group, CONT);
        } else {
            for process in tree::descendants(process::pid()) {
                let _ = kill::process(process.pid, Signal::TERM);
                let _ = kill::process(process.pid, CONT);
            }
        }
        self.unpause();
    }

    /// Sends SIGPIPE to the shell's group but not to the shell, because output has no reader any more. The kernel would
    /// send it to the writer alone. The guard cannot see which process writes, but while the shell has children at work,
    /// it is hardly the shell.
    fn break_pipe(&self) {
        let Some(shell) = self.shell else { return };
        let is_other = |process: &Process| process.group == self.group && process.pid != shell;
        let mut has_sent = false;
        for process in tree::descendants(process::pid()).into_iter().filter(is_other) {
            has_sent |= kill::process(process.pid, Signal::PIPE).is_ok();
        }
        if !has_sent {
            let _ = kill::process(shell, Signal::PIPE);
        }
        self.report(&[GuardReport::PipeBroken]);
    }
}
