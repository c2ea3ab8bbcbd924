//! Runs: what the host holds of a command, from the request to the last left-over process.
//!
//! A run outlives its job: the job closes with the shell's end and its last output, the run goes when its guard is gone
//! and its streams are closed. Until then left-over processes can write, and what they write is read and dropped, so
//! that they neither block nor die.

use std::time::Instant;

use rexec_sh::protocol::wire;

use super::broken_pipe::BrokenPipe;
use super::orders::{Again, Orders};
use super::orphaned::Orphaned;
use super::roster::{Ending, Identity};
use super::start::PendingStart;
use super::terminal_relay::TerminalRelay;
use super::{Host, PeerId, start_errors};
use crate::core::engine::JobId;
use crate::core::entry::{Exit, StartError, Stream};
use crate::core::job::Order;
use crate::core::process::{Pid, ProcessGroup};
use crate::front::budget::Share;
use crate::guard::control::{self, Report};
use crate::guard::spawn;
use crate::io::poller::Ready;
use crate::io::port::{Input, Port};
use crate::journal::record::Left;
use crate::limits;
use crate::sys::{self, socket};

/// The link to a run's guard.
#[derive(Debug)]
pub(super) struct GuardLink {
    pub(super) pid: Pid,
    pub(super) control: Port,
    pub(super) orders: Orders,
    pub(super) inbox: Vec<u8>,
    pub(super) shell_is_over: bool,
    /// There were processes of the command when its shell ended.
    pub(super) has_left: bool,
    /// The group of a shell that has ended, until what it left running was looked at.
    pub(super) left_by: Option<ProcessGroup>,
}

/// One command, as the host holds it.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) peer: Option<PeerId>,
    /// Until its guard has begun with it; or why it cannot be started.
    pub(super) pending: Option<Result<PendingStart, StartError>>,
    pub(super) identity: Identity,
    /// What its request holds of the bytes of all, until its guard has all of it.
    pub(super) request: Option<Share>,
    pub(super) accepted: Instant,
    pub(super) guard: Option<GuardLink>,
    /// How many guards were given it.
    pub(super) attempts: u32,
    /// It waits for the next of them.
    pub(super) again: Option<Again>,
    /// What it left running when it closed, by number and start.
    pub(super) left: Vec<(Pid, u64)>,
    /// What its dead guard left.
    pub(super) bereft: Option<Orphaned>,
    pub(super) streams: [Option<Port>; Stream::ALL.len()],
    /// The caller's side of its terminal, if that is relayed.
    pub(super) relay: Option<TerminalRelay>,
    /// Which of the caller's streams its terminal is.
    pub(super) tty: Option<wire::Stream>,
    /// The caller's word on its outputs: nobody reads them any more. It may come before there are streams, and holds for
    /// those of every guard that is given the command.
    pub(super) unread: [bool; Stream::ALL.len()],
    /// What its output brings it that nobody reads.
    pub(super) broken_pipe: BrokenPipe,
    pub(super) ending: Ending,
}

impl ActiveRun {
    /// Its guard's process.
    pub(super) fn guard_pid(&self) -> Option<Pid> {
        self.guard.as_ref().map(|link| link.pid)
    }

    /// Everything that lives of it now, nearest to its guard first.
    pub(super) fn processes(&self) -> Vec<sys::tree::Process> {
        match (&self.guard, &self.bereft) {
            (Some(link), _) => sys::tree::walk(link.pid).take(limits::STRAGGLERS_COUNTED_MAX).collect(),
            (None, Some(bereft)) => bereft.living.clone(),
            (None, None) => Vec::new(),
        }
    }

    /// Whether nothing of it is left, once its job is over.
    fn is_over(&self) -> bool {
        self.guard.is_none() && self.bereft.is_none()
    }

    /// Whether its streams hold nothing yet, and their ends mean nothing: another guard may get it.
    fn is_unbegun(&self) -> bool {
        self.guard.as_ref().map_or(self.again.is_some(), |link| !link.orders.has_begun())
    }
}

impl Host {
    /// Remembers an event of a guard's; whether it is worth a visit.
    pub(super) fn remember_control(&mut self, job: JobId, event: Ready) -> bool {
        let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) else { return false };
        link.control.remember(event);
        event.readable || !link.orders.out.is_empty()
    }

    /// Remembers an event of a stream's; whether it is worth a visit.
    pub(super) fn remember_stream(&mut self, job: JobId, stream: Stream, event: Ready) -> bool {
        let Some(run) = self.runs.get_mut(&job) else { return event.readable };
        if let Some(port) = run.streams[stream as usize].as_mut() {
            port.remember(event);
        }
        event.readable || run.relay.as_ref().is_some_and(TerminalRelay::has_keys)
    }

    /// The peer that asked for this job.
    pub(super) fn peer_of(&self, job: JobId) -> Option<PeerId> {
        self.runs.get(&job)?.peer
    }

    /// Gives an order to the job's guard.
    pub(super) fn order(&mut self, job: JobId, order: Order) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if order == Order::EndInput {
            // End of file, where a reader in line mode takes it.
            type_end_of_file(run);
        }
        if let Some(again) = &mut run.again {
            again.keep(order, self.now);
        }
        if let Some(link) = &mut run.guard {
            link.orders.give(order, self.now);
            if link.orders.deadline().is_some() {
                self.owing.insert(job);
            }
        }
        self.flush_guard(job);
    }

    pub(super) fn flush_guard(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if let Some(link) = run.guard.as_mut()
            && link.control.is_writable()
        {
            let port = &mut link.control;
            if !link.orders.out.is_empty() {
                spawn::wake(link.pid, port.fd());
            }
            // A guard that is gone is noticed by its end.
            let _ = link.orders.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
        }
    }

    /// A guard may have reported something.
    pub(super) fn visit_control(&mut self, job: JobId) {
        self.flush_guard(job);
        let mut is_gone = false;
        let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) else { return };
        while link.control.is_readable() && !is_gone {
            let buffer = &mut self.buffer;
            match link.control.read(|fd| socket::receive(fd, buffer)) {
                Input::Bytes(length) => link.inbox.extend_from_slice(&self.buffer[..length]),
                Input::Nothing => {}
                Input::End => is_gone = true,
            }
        }
        let reports = std::mem::take(&mut link.inbox);
        let mut chunks = reports.chunks_exact(control::REPORT_BYTES);
        for chunk in &mut chunks {
            if let Some(report) = chunk.first_chunk().and_then(Report::decode) {
                self.on_report(job, report);
            }
        }
        self.tell_unkillable(job);
        let rest = chunks.remainder().to_vec();
        if is_gone {
            self.on_guard_gone(job);
        } else if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
            link.inbox = rest;
        }
        self.dirty.insert(job);
    }

    fn on_report(&mut self, job: JobId, report: Report) {
        if let Some(run) = self.runs.get_mut(&job)
            && let Some(link) = &mut run.guard
        {
            link.orders.on_begun();
            run.pending = None;
            run.request = None;
        }
        match report {
            Report::Begun => self.attach_terminal(job),
            Report::Hunting => {
                if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
                    link.orders.on_hunting(self.now);
                }
            }
            Report::Failed { stage, errno } => {
                let why = self.runs.get(&job).map(|run| &run.identity).map(|known| match known.is_words {
                    true => start_errors::of_words((&known.shell, &known.dir), stage, errno),
                    false => start_errors::at_stage(&known.shell, stage, errno),
                });
                why.into_iter().for_each(|why| self.on_not_started(job, why));
            }
            Report::OutOfReach { descriptor, limit } => {
                self.on_not_started(job, start_errors::out_of_reach(descriptor, limit));
            }
            Report::Stopped { reads, program } => {
                // What it wrote before it asked, the question perhaps, comes before the word that it asked.
                self.drain_streams(job);
                self.engine.on_input_stop(job, reads, program.to_string(), self.now);
            }
            Report::TookBack => {
                if let Some(run) = self.runs.get_mut(&job) {
                    type_end_of_file(run);
                }
            }
            Report::Unkillable { pid, program } => {
                if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
                    link.orders.on_given_up();
                }
                self.on_unkillable(job, pid, &program.to_string());
            }
            Report::ShellStopped { signal } => {
                self.drain_streams(job);
                self.on_shell_stopped(job, signal);
            }
            Report::KeysRead => self.on_keys_read(job),
            Report::TerminalReturned => {
                self.drain_streams(job);
                self.on_terminal_returned(job);
            }
            Report::PipeBroken => {
                if let Some(run) = self.runs.get_mut(&job) {
                    run.broken_pipe.on_struck(self.now);
                }
            }
            Report::Exited { exit, group, has_left } => {
                self.on_shell_over(job, has_left.then_some(group));
                let is_stopping = self.engine.job(job).is_none_or(crate::core::job::Job::is_stopping);
                if matches!(exit, Exit::Code(_)) && !is_stopping {
                    self.leave_modes(job);
                }
                self.engine.on_exit(job, exit, self.now);
                self.drain_streams(job);
                if has_left {
                    self.stragglers.push_back(job);
                }
            }
        }
    }

    /// Nothing of it runs.
    fn on_not_started(&mut self, job: JobId, why: StartError) {
        self.on_shell_over(job, None);
        self.engine.on_start_failed(job, why);
    }

    /// The shell is reaped, or was never there.
    fn on_shell_over(&mut self, job: JobId, left_by: Option<ProcessGroup>) {
        if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
            link.shell_is_over = true;
            link.has_left = left_by.is_some();
            link.left_by = left_by;
        }
    }

    /// What a command left running is looked at when it closes, and not before: what was just forked has no name of its
    /// own yet, and may be about to leave the group.
    pub(super) fn note_left(&mut self, job: JobId) {
        let is_over = self.engine.job(job).is_none_or(crate::core::job::Job::is_closed);
        let Some(run) = self.runs.get_mut(&job).filter(|_| is_over) else { return };
        let left_by = match (&mut run.guard, &mut run.bereft) {
            (Some(link), _) => link.left_by.take(),
            (None, Some(bereft)) => bereft.left_by.take(),
            (None, None) => None,
        };
        let Some(group) = left_by else { return };
        let kills_group = std::mem::take(&mut run.identity.kills_group);
        let left = run.processes().into_iter().filter(|process| !kills_group || process.group != group);
        let left: Vec<sys::tree::Process> = left.take(limits::STRAGGLERS_COUNTED_MAX).collect();
        run.left = left.iter().map(|process| (process.pid, process.start)).collect();
        let left = left.iter().map(|process| Left { pid: process.pid.number(), comm: process.program.to_string() });
        let left: Vec<Left> = left.collect();
        if kills_group {
            self.kill_bereft_group(job, group);
            self.order(job, Order::KillGroup);
        }
        if !left.is_empty() {
            self.console.on_left(job, &left);
            self.journal.on_left(job, left);
        }
    }

    /// Reads what is there. Once the slave is closed this finds either the end or a left-over process that holds the
    /// terminal.
    pub(super) fn drain_streams(&mut self, job: JobId) {
        for stream in Stream::ALL {
            if let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].as_mut()) {
                port.expect_input();
                self.visit_stream(job, stream);
            }
        }
    }

    /// A command's stream may have something.
    pub(super) fn visit_stream(&mut self, job: JobId, stream: Stream) {
        self.flush_keys(job);
        let Some(run) = self.runs.get_mut(&job).filter(|run| !run.is_unbegun()) else { return };
        let Some(port) = run.streams[stream as usize].as_mut() else { return };
        let is_over = self.engine.job(job).is_none_or(crate::core::job::Job::is_closed);
        let wanted = is_over || self.engine.job(job).is_some_and(|known| known.wants_output(stream));
        if !wanted {
            return;
        }
        let (mut filled, mut is_end) = (0, false);
        while port.is_readable() && !is_end && filled < self.buffer.len() {
            let buffer = &mut self.buffer[filled..];
            match port.read(|fd| sys::read(fd, buffer)) {
                Input::Bytes(length) => filled += length,
                Input::Nothing => {}
                Input::End => is_end = true,
            }
        }
        if port.is_readable() && !is_end {
            self.ready.insert(port.token());
        }
        if filled > 0 && !is_over {
            self.on_output(job, stream, filled);
        }
        if is_end {
            if stream == Stream::Tty {
                self.note_last_modes(job);
            }
            self.close_stream(job, stream);
            self.engine.on_hangup(job, stream);
        }
        self.dirty.insert(job);
    }

    fn on_output(&mut self, job: JobId, stream: Stream, length: usize) {
        self.engine.on_output(job, stream, self.buffer[..length].into(), self.now);
        if stream == Stream::Tty && self.runs.get_mut(&job).is_some_and(|run| run.broken_pipe.on_output(self.now)) {
            self.engine.on_broken_pipe(job);
        }
    }

    /// Nobody reads this descriptor of the command's any more. Its pipe is closed, so that who writes to it is struck as
    /// on the caller's own; the other descriptor goes on. A terminal cannot be closed, so who writes to it from now on
    /// gets the signal by hand.
    pub(super) fn on_output_closed(&mut self, job: JobId, stream: Stream) {
        if let Some(run) = self.runs.get_mut(&job) {
            run.unread[stream as usize] = true;
        }
        self.close_unread(job);
    }

    /// Has it so for the streams that there are now.
    pub(super) fn close_unread(&mut self, job: JobId) {
        for (stream, at_caller) in [(Stream::Out, wire::Stream::Out), (Stream::Err, wire::Stream::Err)] {
            let Some(run) = self.runs.get_mut(&job).filter(|run| run.unread[stream as usize]) else { continue };
            if run.streams[stream as usize].is_some() {
                self.close_stream(job, stream);
                self.engine.on_hangup(job, stream);
            } else if run.tty == Some(at_caller) {
                run.broken_pipe.begin(self.now);
            }
        }
    }

    pub(super) fn close_stream(&mut self, job: JobId, stream: Stream) {
        if let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].take()) {
            self.sources.remove(&port.token());
            port.close(&mut self.poller);
        }
    }

    /// Streams that are readable and wanted again are visited in the next turn.
    pub(super) fn revisit(&mut self, job: JobId) {
        let Some(run) = self.runs.get(&job).filter(|run| !run.is_unbegun()) else { return };
        let Some(known) = self.engine.job(job) else { return };
        for (stream, port) in Stream::ALL.into_iter().zip(&run.streams) {
            if let Some(port) = port.as_ref().filter(|port| port.is_readable() && known.wants_output(stream)) {
                self.ready.insert(port.token());
            }
        }
    }

    /// Forgets a run of which nothing is left, and closes the terminal of the oldest straggler beyond the bound.
    pub(super) fn reconcile_run(&mut self, job: JobId) {
        let is_over = self.engine.job(job).is_none_or(crate::core::job::Job::is_closed);
        let Some(run) = self.runs.get(&job) else { return };
        if is_over && run.is_over() {
            for stream in Stream::ALL {
                self.close_stream(job, stream);
            }
            self.answer_ending(job, Vec::new());
            self.runs.remove(&job);
            self.timeouts.retain(|&(_, other)| other != job);
            self.stragglers.retain(|&other| other != job);
        }
        while self.stragglers.len() > limits::STRAGGLERS_MAX
            && let Some(oldest) = self.stragglers.pop_front()
        {
            for stream in Stream::ALL {
                self.close_stream(oldest, stream);
            }
            let line = format!("… too many commands left processes running: the terminal of #{} is closed", oldest.0);
            self.console.say(&line, self.screen.out.buffer());
        }
    }
}

/// ^D, which a reader in line mode takes as the end of its input.
pub(super) const END_OF_FILE: &[u8] = &[4];

fn type_end_of_file(run: &mut ActiveRun) {
    if let Some(port) = &mut run.streams[Stream::Tty as usize] {
        // A terminal whose input is full already has something to read.
        let _ = port.write(|fd| sys::write(fd, END_OF_FILE));
    }
}
