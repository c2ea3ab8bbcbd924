//! What a guard does while its command runs, and after: it waits, reports, obeys, and hunts.
//!
//! Invariants: the shell is signalled only while it is not reaped; the foreground and the slave are given back before the
//! shell's status is told; what runs on other terminals below is not touched; the hunt ends.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signalfd::SignalFd;

use super::control::{self, Report};
use super::demand::Demand;
use super::foreground::{Foreground, StoppedGroup};
use super::reaper::{self, News};
use crate::core::job::Order;
use crate::limits;
use crate::sys::kill::{self, CONT, TTIN, TTOU};
use crate::sys::relayed::Relayed;
use crate::sys::tree::{self, Want};
use crate::sys::{self, process, socket};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

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

/// The guard, once its command runs.
#[derive(Debug)]
pub(super) struct Warden {
    control: OwnedFd,
    signals: SignalFd,
    foreground: Foreground,
    /// `Some` if and only if the shell is not reaped: only then is its number its own.
    shell: Option<Pid>,
    group: ProcessGroup,
    /// What is left of the shell's group is killed once the caller has its result.
    kills_group: bool,
    group_ends: Option<Instant>,
    /// From the death of a shell by a signal of its caller's to the end of its group.
    grace: Duration,
    /// The signals of the caller's so far; bit N is signal N.
    signalled: u128,
    host_lives: bool,
    orders: Vec<u8>,
    hunt: Hunt,
    relayed: Option<AtCaller>,
    /// The command gets keys only while it asks for them.
    demand: Option<Demand>,
}

/// The caller's side of a terminal that is relayed.
#[derive(Debug)]
pub(super) struct AtCaller {
    /// The shell begins in the foreground.
    pub(super) is_foreground: bool,
    pub(super) terminal: Option<Relayed>,
}

impl Warden {
    /// The watch over a shell that was just started in a group of its own.
    pub(super) fn new(control: OwnedFd, signals: SignalFd, slave: OwnedFd, shell: Pid, plan: control::Plan) -> Self {
        // Also here, because the child may not have got to it yet when it is signalled. It fails when it has executed.
        let _ = process::lead_group(shell);
        Self {
            control,
            signals,
            foreground: Foreground::new(slave),
            shell: Some(shell),
            group: shell.as_group(),
            kills_group: plan.has(control::PLAN_KILL_GROUP),
            grace: plan.grace,
            signalled: 0,
            group_ends: None,
            host_lives: true,
            orders: Vec::new(),
            hunt: Hunt::No,
            relayed: None,
            demand: plan.has(control::PLAN_ON_DEMAND).then(Demand::default),
        }
    }

    /// The same where the shell's terminal stands for its caller's.
    pub(super) fn relayed(mut self, relayed: Option<AtCaller>) -> Self {
        if relayed.as_ref().is_some_and(|caller| !caller.is_foreground) {
            self.foreground.begin_away(self.group);
        }
        Self { relayed, ..self }
    }

    /// Obeys what was ordered before there was a shell; `rest` is the beginning of an order, if anything.
    pub(super) fn take_early(&mut self, orders: Vec<Order>, rest: Vec<u8>) {
        self.orders = rest;
        orders.into_iter().for_each(|order| self.obey(order));
    }

    /// Everything after the start, until there is nothing left to watch; gives the exit code.
    pub(super) fn watch(mut self) -> i32 {
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
        let demand = self.demand.as_ref().and_then(Demand::deadline);
        let deadlines = self.foreground.lent_until().into_iter().chain(hunt).chain(self.group_ends).chain(demand);
        let timeout = match deadlines.min() {
            None => PollTimeout::NONE,
            // Rounded up, so that it is not woken just before the time.
            Some(at) => {
                let wait = at.saturating_duration_since(now) + Duration::from_micros(999);
                PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX)
            }
        };
        let asker = self.demand.as_ref().and_then(Demand::asker);
        let wanted = |is_wanted: bool| if is_wanted { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(asker.unwrap_or(self.signals.as_fd()), wanted(asker.is_some())),
            PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
        ];
        let watched = if self.host_lives { 3 } else { 2 };
        match poll(&mut fds[..watched], timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let has = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let (has_signal, has_ended, has_orders) = (has(&fds[0]), has(&fds[1]), has(&fds[2]));
        if has_signal {
            // One read takes every SIGCHLD there is: they do not queue.
            let _ = self.signals.read_signal();
        }
        if let Some(demand) = self.demand.as_mut().filter(|_| has_ended) {
            demand.on_asker_ended(Instant::now());
        }
        Ok(has_orders)
    }

    fn report(&self, reports: &[Report]) {
        if reports.is_empty() {
            return;
        }
        let bytes: Vec<u8> = reports.iter().flat_map(|report| report.encode()).collect();
        // A host that is gone is noticed when the orders are read.
        let _ = sys::write(&self.control, &bytes);
    }

    /// Collects what ended or stopped; whether any children are left.
    fn reap(&mut self) -> bool {
        let mut shell_end = None;
        let has_children = loop {
            match reaper::next() {
                News::None => break true,
                News::NoChildren => break false,
                News::Stopped { pid, signal } => self.on_stopped(pid, signal),
                News::Ended { pid, exit } if Some(pid) == self.shell => {
                    shell_end = Some(exit);
                    self.shell = None;
                }
                News::Ended { .. } => {}
            }
        };
        if let Some(exit) = shell_end {
            self.on_shell_end(exit, has_children);
        }
        has_children
    }

    /// The foreground and the slave go back before the status is told, so that the host's next read decides.
    fn on_shell_end(&mut self, exit: Exit, has_children: bool) {
        if has_children && self.was_ended_by_caller(exit) {
            self.group_ends = Some(Instant::now() + self.grace);
        }
        if let Some(caller) = self.relayed.take() {
            // A host that was killed hangs the terminal up, and is seen to be gone no sooner than that.
            let has_hung_up = exit == Exit::Signal(Signal::HUP) || self.foreground.has_hung_up();
            let wait = if has_hung_up { limits::HANG_UP_WAIT } else { Duration::ZERO };
            if let Some(terminal) = caller.terminal.filter(|_| self.host_leaves_within(wait)) {
                terminal.restore();
            }
        }
        self.foreground.close();
        self.demand = None;
        let left = if has_children { tree::descendants(process::pid()) } else { Vec::new() };
        let stopped = left.iter().filter(|process| process.is_stopped && is_at_our_terminal(process));
        for group in stopped.map(|process| process.group).collect::<BTreeSet<_>>() {
            self.foreground.hang_up_group(group);
        }
        self.report(&[Report::Exited { exit, group: self.group, has_left: has_children }]);
    }

    /// Whether the host has closed its end after this time at the latest.
    fn host_leaves_within(&self, time: Duration) -> bool {
        let mut end = [PollFd::new(self.control.as_fd(), PollFlags::empty())];
        poll(&mut end, PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO)).is_ok_and(|found| found > 0)
    }

    /// Whether the shell died of what its caller had sent: then the caller would now wait, and kill the rest of the
    /// group. A terminal that hung up kills nobody.
    fn was_ended_by_caller(&self, exit: Exit) -> bool {
        let signal = Signal::new(exit.code().wrapping_sub(128));
        let is_end = match signal {
            Signal::INT | Signal::QUIT | Signal::TERM => true,
            Signal::HUP => self.relayed.is_none(),
            _ => false,
        };
        is_end && self.signalled & 1 << signal.number() != 0
    }

    fn on_stopped(&mut self, pid: Pid, signal: Signal) {
        if self.relayed.is_some() {
            if Some(pid) == self.shell {
                self.note_asker(signal);
                self.report(&[Report::ShellStopped { signal }]);
            }
            return;
        }
        // Other stops were asked for by somebody who will also continue it.
        if !matches!(signal, TTIN | TTOU) {
            return;
        }
        let Some(process) = tree::process(pid).filter(is_at_our_terminal) else { return };
        let group = process.group;
        if self.shell.is_none() {
            self.foreground.hang_up_group(group);
        } else if !self.foreground.knows(group) {
            let members = self.members(group);
            self.on_group_stopped(group, signal == TTIN, &members);
        }
    }

    /// Remembers for whose sake a command that has its terminal on demand was stopped.
    fn note_asker(&mut self, signal: Signal) {
        let wanted = match signal {
            kill::TTIN => Want::Input,
            kill::TTOU => Want::Modes,
            _ => return,
        };
        if self.demand.is_none() {
            return;
        }
        let members = self.members(self.group);
        let asker = tree::asker(&members, wanted).map(|asker| asker.pid);
        let asker = asker.filter(|&asker| Some(asker) != self.shell);
        if let Some(demand) = &mut self.demand {
            demand.on_asked(asker);
        }
    }

    /// The processes of a group, nearest first.
    fn members(&self, group: ProcessGroup) -> Vec<tree::Process> {
        tree::descendants(process::pid()).into_iter().filter(|process| process.group == group).collect()
    }

    fn on_group_stopped(&mut self, group: ProcessGroup, reads: bool, members: &[tree::Process]) {
        let Some(asker) = tree::asker(members, if reads { Want::Input } else { Want::Modes }) else { return };
        let stopped = StoppedGroup { group, reads, asker: asker.pid, program: asker.program };
        let report = self.foreground.on_stopped(stopped);
        self.report(report.as_slice());
    }

    /// Groups whose processes are not the guard's children (below timeout(1), or with a group of their own) stop
    /// without a word to it. Those that somebody stopped on purpose are left alone.
    fn look(&mut self) {
        if self.shell.is_none() || self.relayed.is_some() || self.foreground.lent_until().is_some() {
            return;
        }
        let report = self.foreground.retake();
        self.report(report.as_slice());
        let me = process::pid();
        let below: Vec<_> = tree::descendants(me).into_iter().filter(is_at_our_terminal).collect();
        let stopped = below.iter().filter(|process| process.is_stopped && process.parent != me);
        for group in stopped.map(|process| process.group).collect::<BTreeSet<_>>() {
            let members: Vec<_> = below.iter().filter(|process| process.group == group).copied().collect();
            if let Some(reads) = tree::reads_at_stop(&members).filter(|_| !self.foreground.knows(group)) {
                self.on_group_stopped(group, reads, &members);
            }
        }
    }

    fn tick(&mut self, now: Instant) {
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
        let living = tree::descendants(process::pid());
        if round >= limits::KILL_ROUNDS_MAX || now >= until {
            let named = living.iter().take(limits::STRAGGLERS_NAMED_MAX);
            let report = |process: &tree::Process| Report::Unkillable { pid: process.pid, program: process.program };
            self.report(&named.map(report).collect::<Vec<_>>());
            self.hunt = Hunt::GivenUp;
            return;
        }
        for process in living {
            let _ = kill::process(process.pid, Signal::KILL);
        }
        let pause = Duration::from_millis(50.min(2 << round.min(5)));
        self.hunt = Hunt::Killing { round: round + 1, next: now + pause, until };
    }

    fn take_orders(&mut self) {
        let mut bytes = [0; 64];
        let is_gone = loop {
            match socket::receive(&self.control, &mut bytes) {
                Ok(0) => break true,
                Ok(length) => self.orders.extend_from_slice(&bytes[..length]),
                Err(error) => break !sys::is_transient(&error),
            }
        };
        // The host's last orders are orders.
        for order in control::take_orders(&mut self.orders) {
            self.obey(order);
        }
        if is_gone {
            self.on_host_gone();
        }
    }

    fn on_host_gone(&mut self) {
        self.host_lives = false;
        if let Some(terminal) = self.relayed.as_ref().and_then(|caller| caller.terminal.as_ref()) {
            terminal.restore();
        }
        if self.kills_group || self.group_ends.take().is_some() {
            self.kill_group();
        }
        if self.shell.is_some() {
            self.terminate();
            if matches!(self.hunt, Hunt::No) {
                self.hunt = Hunt::Grace { until: Instant::now() + limits::GRACE_CALLER_GONE };
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Signal(signal) if self.shell.is_some() => {
                self.signalled |= 1 << (signal.number() & 127);
                let _ = kill::group(self.group, signal);
            }
            Order::Signal(_) => {}
            Order::Terminate => self.terminate(),
            Order::Kill => {
                self.report(&[Report::Hunting]);
                if !matches!(self.hunt, Hunt::Killing { .. }) {
                    self.start_killing(Instant::now());
                }
            }
            Order::EndInput => self.foreground.lend(),
            Order::HangUp => {
                let report = self.foreground.hang_up_reported();
                self.report(report.as_slice());
            }
            Order::BreakPipe => self.break_pipe(),
            Order::Look => self.look(),
            Order::Resume { foreground } => {
                if self.shell.is_some() && self.relayed.is_some() {
                    self.foreground.resume(foreground, self.group);
                }
                if let Some(demand) = self.demand.as_mut().filter(|_| foreground) {
                    demand.on_lent();
                }
                self.report(&[Report::Resumed]);
            }
            Order::Typed => {
                if let Some(demand) = &mut self.demand {
                    demand.on_typed(Instant::now());
                }
            }
            Order::KillGroup => self.group_ends = Some(Instant::now() + limits::GROUP_LEAVE),
        }
    }

    /// While it has a member the group's number is its own.
    fn kill_group(&self) {
        let is_member = |process: &tree::Process| process.group == self.group;
        if self.shell.is_none() && tree::descendants(process::pid()).iter().any(is_member) {
            let _ = kill::group(self.group, Signal::KILL);
        }
    }

    /// TERM first: a stopped process acts on it as soon as it is continued.
    fn terminate(&self) {
        if self.shell.is_some() {
            let _ = kill::group(self.group, Signal::TERM);
            let _ = kill::group(self.group, CONT);
        } else {
            for process in tree::descendants(process::pid()) {
                let _ = kill::process(process.pid, Signal::TERM);
                let _ = kill::process(process.pid, CONT);
            }
        }
    }

    /// On a pipe the writer alone would be struck. Who writes cannot be seen from here, but it is hardly the shell
    /// while it has others at work for it.
    fn break_pipe(&self) {
        let Some(shell) = self.shell else { return };
        let members = tree::descendants(process::pid());
        let mut others = members.iter().filter(|process| process.group == self.group);
        let mut struck = false;
        for process in others.by_ref().filter(|process| process.pid != shell) {
            struck |= kill::process(process.pid, Signal::PIPE).is_ok();
        }
        if !struck {
            let _ = kill::process(shell, Signal::PIPE);
        }
        self.report(&[Report::PipeBroken]);
    }
}

/// What made a session of its own, or runs below script(1) or tmux(1), stops for another terminal or for none.
fn is_at_our_terminal(process: &tree::Process) -> bool {
    process.session == process::pid()
}
