//! Runs: what the host holds of a command, from the request to the last left-over process.
//!
//! A run outlives its job: the job closes with the shell's end and its last output, the run goes when its guard is gone
//! and its streams are closed. Until then left-over processes can write, and what they write is read and dropped, so
//! that they neither block nor die.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Instant, SystemTime};

use super::plan::Plan;
use super::roster::{Ending, Identity};
use super::spares::Spare;
use super::{Host, PeerId, Source, refusal};
use crate::core::engine::JobId;
use crate::core::entry::{StartError, Stream};
use crate::core::job::Order;
use crate::core::log::Lag;
use crate::front::command::Command;
use crate::front::jsonl::Request;
use crate::front::treatment::Treatment;
use crate::io::outlet::Outlet;
use crate::io::poller::Ready;
use crate::io::port::{Input, Port};
use crate::limits;
use crate::sink::console::Heading;
use crate::sink::record::{self, Left, Start};
use crate::sys::control::{self, Report};
use crate::sys::{self, pty, socket};
use crate::text::escape::escape_line;

/// A command on its way to a guard.
#[derive(Debug)]
struct Pending {
    command: Command,
    descriptors: Vec<OwnedFd>,
}

/// The link to a run's guard.
#[derive(Debug)]
struct Link {
    pid: i32,
    control: Port,
    /// The rest of the RUN frame, then orders.
    out: Outlet,
    inbox: Vec<u8>,
    shell_is_over: bool,
    /// The group of a shell that has ended, until what it left running was looked at.
    left_by: Option<i32>,
}

/// One command, as the host holds it.
#[derive(Debug)]
pub(super) struct Run {
    peer: Option<PeerId>,
    /// Until it is started; or why it cannot be.
    pending: Option<Result<Pending, StartError>>,
    pub(super) identity: Identity,
    pub(super) accepted: Instant,
    guard: Option<Link>,
    streams: [Option<Port>; Stream::ALL.len()],
    /// Nobody reads the output: when the next byte of it is worth a SIGPIPE.
    strike_from: Option<Instant>,
    pub(super) ending: Ending,
}

impl Run {
    /// Its guard's process.
    pub(super) fn guard_pid(&self) -> Option<i32> {
        self.guard.as_ref().map(|link| link.pid)
    }
}

impl Host {
    /// Remembers an event of a guard's; whether it is worth a visit.
    pub(super) fn remember_control(&mut self, job: JobId, event: Ready) -> bool {
        let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) else { return false };
        link.control.remember(event);
        event.readable || !link.out.is_empty()
    }

    /// Remembers an event of a stream's; whether it is worth a visit.
    pub(super) fn remember_stream(&mut self, job: JobId, stream: Stream, event: Ready) -> bool {
        if let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].as_mut()) {
            port.remember(event);
        }
        event.readable
    }

    /// The peer that asked for this job.
    pub(super) fn peer_of(&self, job: JobId) -> Option<PeerId> {
        self.runs.get(&job)?.peer
    }

    /// A shim's command.
    pub(super) fn submit_command(&mut self, peer: PeerId, command: Command) {
        let Some(from) = self.peers.get_mut(&peer) else { return };
        let descriptors = std::mem::take(&mut from.descriptors);
        if descriptors.len() != command.descriptors {
            return self.part(peer, 125, super::BUSY);
        }
        self.submit(peer, command, Ok(descriptors));
    }

    /// A command as words, with the host's environment.
    pub(super) fn submit_words(&mut self, peer: PeerId, request: &Request) {
        let (command, descriptors) = super::words::command(request, &self.own);
        self.submit(peer, command, descriptors);
    }

    fn submit(&mut self, peer: PeerId, command: Command, descriptors: Result<Vec<OwnedFd>, StartError>) {
        let Some(job) = self.engine.submit() else { return self.part(peer, 125, super::BUSY) };
        self.attend(peer, job);
        let sent = || descriptors.as_ref().ok()?.first().and_then(sys::path_of);
        let dir = command.dir.clone().map_or_else(|| sent().unwrap_or_default(), std::path::PathBuf::from);
        let dir = dir.as_os_str().as_encoded_bytes();
        self.record(job, &command, dir);
        let identity = Identity::of(&command, dir);
        let run = Run {
            peer: Some(peer),
            pending: Some(descriptors.map(|descriptors| Pending { command, descriptors })),
            identity,
            accepted: self.now,
            guard: None,
            streams: [const { None }; Stream::ALL.len()],
            strike_from: None,
            ending: Ending::default(),
        };
        self.runs.insert(job, run);
    }

    /// Tells journal and console of a new command.
    fn record(&mut self, job: JobId, command: &Command, dir: &[u8]) {
        let time = record::timestamp(SystemTime::now());
        let mut start = Start {
            seq: job.0,
            time: time.clone(),
            whoami: command.whoami.clone(),
            envs: command.envs.clone(),
            command: String::from_utf8_lossy(&command.text).into_owned(),
            shell: command.shell.clone(),
            probe: command.is_probe,
            window: Some(self.window(command)),
            ..Start::default()
        };
        start.set_exec(command.exec.iter().map(Vec::as_slice));
        start.set_dir(dir);
        let heading = Heading {
            time,
            whoami: command.whoami.clone(),
            dir: start.dir.clone(),
            command: start.command.clone(),
            is_probe: command.is_probe,
        };
        if let Some(cursor) = self.engine.attach(job, self.journal.lag()) {
            let run = command.run();
            let environment = run.iter().flat_map(|run| run.env.iter()).map(CStr::to_bytes);
            self.journal.begin(cursor, &start, environment, self.scribe.out.buffer());
        }
        if let Some(cursor) = self.engine.attach(job, Lag::Skip) {
            self.console.begin(&mut self.engine, cursor, heading);
        }
    }

    /// Performs the start of a job.
    pub(super) fn start(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        match run.pending.take() {
            None => {}
            Some(Err(why)) => self.engine.on_start_failed(job, why),
            Some(Ok(pending)) => match self.hand_over(job, &pending) {
                Ok(()) => {
                    let waited = self.now.saturating_duration_since(self.runs[&job].accepted);
                    self.journal.note(job, |end| end.queued_ms = u64::try_from(waited.as_millis()).unwrap_or(0));
                    self.start_retry = None;
                }
                Err(error) => self.on_start_refused(job, pending, &error),
            },
        }
    }

    /// Want of something that comes back is waited for; anything else ends the job.
    fn on_start_refused(&mut self, job: JobId, pending: Pending, error: &std::io::Error) {
        let may_wait = error.raw_os_error().is_some_and(sys::is_shortage) && !self.is_closing();
        let Some(run) = self.runs.get_mut(&job) else { return };
        if may_wait && self.now.saturating_duration_since(run.accepted) < limits::START_TIMEOUT {
            run.pending = Some(Ok(pending));
            self.engine.retry(job);
            self.start_retry = Some(self.now + limits::START_RETRY);
            return;
        }
        self.engine.on_start_failed(job, refusal::without_guard(error));
    }

    /// Gives a command to a guard. Everything that can fail comes before the guard has it: a command that was given
    /// away is never given again.
    fn hand_over(&mut self, job: JobId, pending: &Pending) -> std::io::Result<()> {
        let command = &pending.command;
        // What an agent reads of the shell for itself is for a program and not for people.
        let pipes_only = self.options.pipes_only || command.is_probe;
        let plan = Plan::of(command.stdio, pipes_only, command.kills_group);
        let mut descriptors: Vec<RawFd> = pending.descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let mut streams = [const { None }; Stream::ALL.len()];
        let mut far = Vec::new();
        for (stream, read, write) in plan.open_pipes()? {
            streams[stream as usize] = Some(Port::new(&mut self.poller, read)?);
            descriptors.push(write.as_raw_fd());
            far.push(write);
        }
        let first = [&[plan.bits()], command.frame.as_slice()].concat();
        let (mut spare, sent) = match self.give(&first, &descriptors) {
            Ok(given) => given,
            Err(error) => {
                streams.into_iter().flatten().for_each(|port: Port| port.close(&mut self.poller));
                return Err(error);
            }
        };
        if let Some((rows, cols)) = command.window {
            let _ = pty::resize(spare.master.fd(), pty::Size { rows, cols });
        }
        spare.control.expect_input();
        let mut out = Outlet::default();
        out.buffer().extend_from_slice(&first[sent..]);
        self.prepare_protocol(job, command, plan.tty_is_stdout());
        self.bind(job, spare, out, streams);
        self.engine.on_started(job, plan.streams(), self.now);
        Ok(())
    }

    /// Sends the first bytes to a guard; gives it and how many it took. A guard can have been killed while it waited:
    /// then the next one gets them. When the user's callers have more descriptors in flight than this host may have, none
    /// of its own may travel: then they are born with the guard. Waiting would not help, because those callers wait for us.
    fn give(&mut self, first: &[u8], descriptors: &[RawFd]) -> std::io::Result<(Spare, usize)> {
        let mut may_travel = true;
        loop {
            let (mut spare, travelling) = if may_travel {
                (self.spares.take(&mut self.poller)?, descriptors)
            } else {
                (self.spares.make_with(&mut self.poller, descriptors)?, &[][..])
            };
            match spare.control.write(|fd| socket::send(fd, first, travelling)) {
                Ok(sent) => return Ok((spare, sent.unwrap_or(0))),
                Err(error) => {
                    spare.close(&mut self.poller);
                    if may_travel && sys::is_in_flight_limit(&error) {
                        may_travel = false;
                    } else if error.kind() != std::io::ErrorKind::BrokenPipe {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Rows and columns of the command's terminal.
    fn window(&self, command: &Command) -> (u16, u16) {
        command.window.unwrap_or((self.size.rows, self.size.cols))
    }

    fn prepare_protocol(&mut self, job: JobId, command: &Command, tty_is_stdout: bool) {
        let peer = self.runs.get(&job).and_then(|run| run.peer);
        let window = self.window(command);
        let (policy, redact) = (self.options.sanitize, self.options.redact_agents);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(&peer))
            && let super::peer::Protocol::Shim(shim) = &mut peer.protocol
        {
            shim.prepare(tty_is_stdout, Treatment::both(command, !tty_is_stdout, policy, window, redact));
        }
    }

    /// The run now has a guard and streams.
    fn bind(&mut self, job: JobId, spare: Spare, out: Outlet, mut streams: [Option<Port>; Stream::ALL.len()]) {
        streams[Stream::Tty as usize] = Some(spare.master);
        for (stream, port) in Stream::ALL.into_iter().zip(&streams) {
            if let Some(port) = port {
                self.sources.insert(port.token(), Source::Stream(job, stream));
            }
        }
        self.sources.insert(spare.control.token(), Source::Control(job));
        if let Some(run) = self.runs.get_mut(&job) {
            run.streams = streams;
            run.guard = Some(Link {
                pid: spare.pid,
                control: spare.control,
                out,
                inbox: Vec::new(),
                shell_is_over: false,
                left_by: None,
            });
        }
        self.flush_guard(job);
    }

    /// Gives an order to the job's guard.
    pub(super) fn order(&mut self, job: JobId, order: Order) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if order == Order::Lend {
            // End of file, where a reader in line mode takes it.
            type_end_of_file(run);
        }
        if let Some(link) = &mut run.guard {
            link.out.buffer().extend_from_slice(&control::encode_order(order));
        }
        self.flush_guard(job);
    }

    fn flush_guard(&mut self, job: JobId) {
        if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut())
            && link.control.is_writable()
        {
            let port = &mut link.control;
            // A guard that is gone is noticed by its end.
            let _ = link.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
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
        match report {
            Report::Failed { stage, errno } => {
                let shell = self.runs.get(&job).map_or("", |run| run.identity.shell.as_str());
                self.on_not_started(job, refusal::at_stage(shell, stage, errno));
            }
            Report::OutOfReach { descriptor, limit } => {
                self.on_not_started(job, refusal::out_of_reach(descriptor, limit));
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
                self.journal.note(job, |end| end.unkillable.push(pid));
                if let Some(run) = self.runs.get_mut(&job) {
                    run.ending.unkillable.push(pid);
                }
                let program = escape_line(&program.to_string(), 32);
                let line = format!("… #{}: {program} (process {pid}) cannot be killed", job.0);
                self.console.say(&line, self.screen.out.buffer());
            }
            Report::PipeBroken => {
                if let Some(run) = self.runs.get_mut(&job) {
                    run.strike_from = Some(self.now + limits::BROKEN_PIPE_PAUSE);
                }
            }
            Report::Exited { exit, group, has_left } => {
                self.on_shell_over(job, has_left.then_some(group));
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
    fn on_shell_over(&mut self, job: JobId, left_by: Option<i32>) {
        if let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.as_mut()) {
            link.shell_is_over = true;
            link.left_by = left_by;
        }
    }

    /// What a command left running is looked at when it closes, and not before: what was just forked has no name of its
    /// own yet, and may be about to leave the group.
    pub(super) fn note_left(&mut self, job: JobId) {
        let is_over = self.engine.job(job).is_none_or(crate::core::job::Job::is_closed);
        let Some(run) = self.runs.get_mut(&job).filter(|_| is_over) else { return };
        let Some(link) = &mut run.guard else { return };
        let Some(group) = link.left_by.take() else { return };
        let kills_group = std::mem::take(&mut run.identity.kills_group);
        let left = sys::tree::walk(link.pid).filter(|process| !kills_group || process.group != group);
        let left = left.map(|process| Left { pid: process.pid, comm: process.program.to_string() });
        let left: Vec<Left> = left.take(limits::STRAGGLERS_COUNTED_MAX).collect();
        if kills_group {
            self.order(job, Order::KillGroup);
        }
        if !left.is_empty() {
            self.console.on_left(job, &left);
            self.journal.on_left(job, left);
        }
    }

    /// Reads what is there. Once the slave is closed this finds either the end or a left-over process that holds the
    /// terminal.
    fn drain_streams(&mut self, job: JobId) {
        for stream in Stream::ALL {
            if let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].as_mut()) {
                port.expect_input();
                self.visit_stream(job, stream);
            }
        }
    }

    fn on_guard_gone(&mut self, job: JobId) {
        let Some(link) = self.runs.get_mut(&job).and_then(|run| run.guard.take()) else { return };
        self.sources.remove(&link.control.token());
        link.control.close(&mut self.poller);
        self.engine.on_guard_gone(job, self.now);
        if !link.shell_is_over {
            let ours: std::collections::BTreeSet<i32> = self.own_processes().collect();
            sys::process::kill_orphans(&|pid| ours.contains(&pid));
        }
        self.drain_streams(job);
    }

    /// Every child that the host knows.
    fn own_processes(&self) -> impl Iterator<Item = i32> {
        let guards = self.runs.values().filter_map(|run| Some(run.guard.as_ref()?.pid));
        guards.chain(self.spares.pids()).chain([self.scribe.pid])
    }

    /// A command's stream may have something.
    pub(super) fn visit_stream(&mut self, job: JobId, stream: Stream) {
        let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].as_mut()) else { return };
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
            self.close_stream(job, stream);
            self.engine.on_hangup(job, stream);
        }
        self.dirty.insert(job);
    }

    fn on_output(&mut self, job: JobId, stream: Stream, length: usize) {
        self.engine.on_output(job, stream, self.buffer[..length].into(), self.now);
        let Some(run) = self.runs.get_mut(&job) else { return };
        if run.strike_from.is_some_and(|from| self.now >= from) {
            // Not again before the guard has answered.
            run.strike_from = Some(self.now + limits::FAREWELL_TIMEOUT);
            self.engine.on_broken_pipe(job);
        }
    }

    /// The caller's reader is gone. Pipes are closed, so that the writer is struck as on the caller's own pipe; a
    /// terminal cannot be closed, so who writes to it from now on gets the signal by hand.
    pub(super) fn on_output_closed(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        if run.streams[Stream::Out as usize].is_some() {
            self.close_stream(job, Stream::Out);
            self.engine.on_hangup(job, Stream::Out);
        } else if run.strike_from.is_none() {
            run.strike_from = Some(self.now);
        }
    }

    fn close_stream(&mut self, job: JobId, stream: Stream) {
        if let Some(port) = self.runs.get_mut(&job).and_then(|run| run.streams[stream as usize].take()) {
            self.sources.remove(&port.token());
            port.close(&mut self.poller);
        }
    }

    /// Streams that are readable and wanted again are visited in the next turn.
    pub(super) fn revisit(&mut self, job: JobId) {
        let Some(run) = self.runs.get(&job) else { return };
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
        if is_over && run.guard.is_none() {
            for stream in Stream::ALL {
                self.close_stream(job, stream);
            }
            self.answer_ending(job, Vec::new());
            self.runs.remove(&job);
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

fn type_end_of_file(run: &mut Run) {
    if let Some(port) = &mut run.streams[Stream::Tty as usize] {
        // A terminal whose input is full already has something to read.
        let _ = port.write(|fd| sys::write(fd, END_OF_FILE));
    }
}
