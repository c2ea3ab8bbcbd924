//! Takes what guards report, and notes what an ended command left running.

use std::time::Duration;

use super::{Due, Runs};
use crate::core::end::StartError;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::{DestroyedFiles, KeptFiles, LeftProcess, Stream, TerminalWish};
use crate::core::job::{Job, Order};
use crate::guard::control::{self, GuardReport};
use crate::host::context::Context;
use crate::host::start_errors;
use crate::io::poller::Ready;
use crate::io::port::ReadOutcome;
use crate::journal::record::{DestroyedRecord, PublishedCard};
use crate::limits;
use crate::sys::program::Program;
use crate::sys::socket;
use crate::sys::tree::Process;
use crate::sys::usage::Listening;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::ProcessGroup;

impl Runs {
    /// Remembers an event of a guard's socket. Returns true if it calls for a visit.
    pub(in crate::host) fn remember_control(&mut self, job: JobId, event: Ready) -> bool {
        let Some(link) = self.link(job) else { return false };
        link.control.remember(event);
        event.readable || !link.orders.out.is_empty()
    }

    /// Takes a guard's reports. The tick of the same turn deals with its end.
    pub(in crate::host) fn visit_control(&mut self, job: JobId, cx: &mut Context<'_>) {
        self.flush_guard(job);
        let mut is_gone = false;
        let Some(link) = self.link(job) else { return };
        while link.control.is_readable() && !is_gone {
            let buffer = &mut cx.turn.buffer;
            match link.control.read(|fd| socket::receive(fd, buffer)) {
                ReadOutcome::Bytes(length) => link.inbox.extend_from_slice(&cx.turn.buffer[..length]),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => is_gone = true,
            }
        }
        let reports = std::mem::take(&mut link.inbox);
        let mut chunks = reports.chunks_exact(control::REPORT_BYTES);
        for chunk in &mut chunks {
            if let Some(report) = chunk.first_chunk().and_then(GuardReport::decode) {
                self.on_report(job, report, cx);
            }
        }
        let rest = chunks.remainder().to_vec();
        if is_gone {
            self.on_guard_gone(job, cx.turn, cx.engine);
        } else if let Some(link) = self.link(job) {
            link.inbox = rest;
            if link.is_free {
                self.on_guard_free(job, cx.turn, cx.engine);
            }
        }
        self.owe(job);
        cx.turn.touch(job);
    }

    fn on_report(&mut self, job: JobId, report: GuardReport, cx: &mut Context<'_>) {
        let Some(run) = self.get_mut(job) else { return };
        if report.tells_of_begin() {
            run.on_begun();
        }
        match report {
            GuardReport::Ready { is_detached } => self.on_ready(job, is_detached, cx),
            GuardReport::Begun => self.begin(job, None, cx),
            GuardReport::Keeping { seconds } => {
                let most = limits::KEEPING_MAX + limits::KEEPING_SLACK;
                let until = cx.turn.now + Duration::from_secs(seconds.into()).min(most);
                run.guard.iter_mut().for_each(|link| link.orders.on_keeping(until, cx.turn.now));
                cx.engine.on_keeping(job);
            }
            GuardReport::Kept { files, missed, unknown } => {
                let kept = KeptFiles { files, missed, unknown: unknown.to_string(), failure: None };
                cx.engine.on_kept(job, kept);
            }
            GuardReport::NotKept { errno } => {
                let failure = Some(start_errors::collector_failure(errno));
                cx.engine.on_kept(job, KeptFiles { failure, ..KeptFiles::default() });
            }
            GuardReport::GaveWay => {
                let failure = Some(start_errors::GAVE_WAY.to_owned());
                cx.engine.on_kept(job, KeptFiles { failure, ..KeptFiles::default() });
            }
            GuardReport::Unwanted => {
                let failure = Some(start_errors::UNWANTED.to_owned());
                cx.engine.on_kept(job, KeptFiles { failure, ..KeptFiles::default() });
            }
            GuardReport::Destroyed { files, bytes, directories, missed } => {
                let destroyed = DestroyedFiles { files, bytes, directories, missed };
                cx.engine.on_destroyed(job, destroyed);
                cx.turn.destroyed.push(DestroyedRecord::of(job, destroyed));
            }
            GuardReport::Fed => run.lock_terminal(),
            GuardReport::Hunting => run.guard.iter_mut().for_each(|link| link.orders.on_hunting(cx.turn.now)),
            GuardReport::Failed { stage, errno } => {
                let known = &run.description;
                let PublishedCard { shell, dir, .. } = &known.card;
                let why = match known.is_words {
                    true => start_errors::of_words(shell, dir, stage, errno),
                    false => start_errors::at_stage(shell, stage, errno),
                };
                self.on_not_started(job, why, cx.engine);
            }
            GuardReport::OutOfReach { descriptor, limit } => {
                self.on_not_started(job, start_errors::out_of_reach(descriptor, limit), cx.engine);
            }
            GuardReport::Stopped { wish, program } => self.on_asks(job, wish, program, cx),
            // Somebody who answers by now should not find an end of file before the first key.
            GuardReport::TookBack if run.answering.is_some() => {}
            GuardReport::TookBack => run.type_end_of_file(),
            GuardReport::Given => self.on_given(job, cx.engine),
            GuardReport::AskerGone => cx.engine.on_asker_gone(job),
            GuardReport::Unkillable { pid, program } => {
                run.guard.iter_mut().for_each(|link| link.orders.on_given_up());
                run.ending.give_up(pid);
                cx.engine.on_unkillable(job, pid, program.to_string());
            }
            GuardReport::ShellStopped { signal } => {
                self.drain_streams(job, cx.turn, cx.engine);
                self.on_shell_stopped(job, signal, cx.peers, cx.turn.now);
            }
            GuardReport::ShellContinued => self.on_shell_continued(job, cx.peers, cx.turn.now),
            GuardReport::KeysRead => self.on_keys_read(job, cx.peers),
            GuardReport::InForeground => self.on_in_foreground(job, cx.turn, cx.peers),
            GuardReport::TerminalReturned => {
                self.drain_streams(job, cx.turn, cx.engine);
                self.on_terminal_returned(job, cx.peers);
            }
            GuardReport::PipeBroken => run.broken_pipe.on_signalled(cx.turn.now),
            GuardReport::Unpaused => self.on_resumed(job),
            GuardReport::LookedForFilters { has_any } => cx.engine.on_filters_looked_for(job, has_any, cx.turn.now),
            GuardReport::Free => run.guard.iter_mut().for_each(|link| link.is_free = true),
            GuardReport::Exited { exit, group, has_left } => {
                self.on_shell_over(job, has_left.then_some(group));
                self.on_exited(job, exit, cx);
                if has_left {
                    self.stragglers.push_back(job);
                }
            }
        }
    }

    fn on_asks(&mut self, job: JobId, wish: TerminalWish, program: Program, cx: &mut Context<'_>) {
        // One that has lost its terminal was continued by that.
        if self.get_mut(job).is_none_or(|run| run.is_hung_up()) {
            return;
        }
        // The command's earlier output, the prompt perhaps, comes before the word that it asked.
        self.drain_streams(job, cx.turn, cx.engine);
        let now = cx.turn.now;
        cx.engine.on_input_stop(job, wish, program.to_string(), self.prompts.wait(now), now);
    }

    fn on_exited(&mut self, job: JobId, exit: Exit, cx: &mut Context<'_>) {
        let Context { turn, engine, peers } = cx;
        Stream::ALL.into_iter().for_each(|stream| self.timers.cancel(Due::OutputEnd(job, stream)));
        // One that was killed while it was stopped has left its shim stopped.
        self.on_shell_continued(job, peers, turn.now);
        let is_stopping = engine.job(job).is_none_or(Job::is_stopping);
        if exit != Exit::Code(0) && !is_stopping {
            // Its last output may say why it failed.
            self.drain_streams(job, turn, engine);
            self.name_port_holder(job, turn.now, engine);
        }
        if matches!(exit, Exit::Code(_)) && !is_stopping {
            self.leave_modes(job, peers);
        }
        engine.on_exit(job, exit, turn.now);
        self.drain_streams(job, turn, engine);
    }

    fn on_not_started(&mut self, job: JobId, why: StartError, engine: &mut Engine) {
        self.on_shell_over(job, None);
        engine.on_start_failed(job, why);
    }

    /// The shell was reaped, or never started.
    fn on_shell_over(&mut self, job: JobId, left_by: Option<ProcessGroup>) {
        if let Some(link) = self.link(job) {
            link.shell_is_over = true;
            link.has_left = left_by.is_some();
            link.left_by = left_by;
        }
    }

    /// Notes what a command left running when it ends, and not before: a process that was just forked has no name of
    /// its own yet, and may be about to leave the process group.
    pub(in crate::host) fn note_left(&mut self, job: JobId, now: std::time::Instant, engine: &mut Engine) {
        let has_ended = engine.job(job).is_none_or(Job::has_ended);
        let Some(run) = self.get_mut(job).filter(|_| has_ended) else { return };
        let left_by = match (&mut run.guard, &mut run.hunt) {
            (Some(link), _) => link.left_by.take(),
            (None, Some(hunt)) => hunt.left_by.take(),
            (None, None) => None,
        };
        let Some(group) = left_by else { return };
        let kills_group = std::mem::take(&mut run.description.kills_group);
        let left = run.processes().into_iter().filter(|process| !kills_group || process.group != group);
        let left: Vec<Process> = left.take(limits::STRAGGLERS_COUNTED_MAX).collect();
        run.left = left.iter().map(|process| (process.pid, process.start)).collect();
        let mut listening = Listening::default();
        let left = left.iter().enumerate().map(|(at, process)| {
            let is_looked_at = at < limits::STRAGGLERS_NAMED_MAX;
            let mut ports = if is_looked_at { listening.ports(process.pid) } else { Vec::new() };
            ports.truncate(limits::PORTS_NAMED_MAX);
            LeftProcess { pid: process.pid.number(), program: process.program.to_string(), ports }
        });
        let left: Box<[LeftProcess]> = left.collect();
        if kills_group {
            self.kill_orphaned_group(job, group);
            self.order(job, Order::KillGroup, now);
        }
        if !left.is_empty() {
            engine.on_left(job, left);
        }
    }

    /// Answers the peers that wait for the end of a command with the processes of it that cannot be killed.
    pub(in crate::host) fn answer_unkillable(&mut self, job: JobId, cx: &mut Context<'_>) {
        let Some(run) = self.get_mut(job).filter(|run| !run.ending.unkillable.is_empty()) else { return };
        let unkillable = std::mem::take(&mut run.ending.unkillable);
        self.answer_ending(job, unkillable, cx);
    }
}
