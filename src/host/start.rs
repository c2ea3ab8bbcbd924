//! Starts: a command on its way from its caller to a guard.
//!
//! Invariants: the journal has a command before anything of it runs; everything that can fail comes before a guard has
//! the command, which is given away again only if the guard that had it never began; for want of something that comes
//! back it waits, in its place.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::SystemTime;

use rexec_sh::protocol::choice::Tty;
use rexec_sh::protocol::wire::AtStart;

use super::broken_pipe::BrokenPipe;
use super::orders::{Again, Orders};
use super::roster::{Ending, Identity};
use super::run::{ActiveRun, GuardLink};
use super::spares::{FirstInput, Spare};
use super::stream_plan::StreamPlan;
use super::terminal_relay::TerminalRelay;
use super::{Host, PeerId, Source, start_errors};
use crate::core::engine::JobId;
use crate::core::entry::{StartError, Stream, Streams};
use crate::core::job::Order;
use crate::core::log::Lag;
use crate::core::process::Signal;
use crate::front::budget::Share;
use crate::front::command::Command;
use crate::front::jsonl::CommandRequest;
use crate::front::output_filter::OutputFilter;
use crate::front::protocol::Protocol;
use crate::guard::spawn;
use crate::io::port::Port;
use crate::journal::record::{self, StartRecord};
use crate::limits;
use crate::sink::console::Heading;
use crate::sys::{self, pty, socket};

/// A command on its way to a guard.
#[derive(Debug)]
pub(super) struct PendingStart {
    command: Command,
    descriptors: Vec<OwnedFd>,
}

impl Host {
    /// A shim's command.
    pub(super) fn submit_command(&mut self, peer: PeerId, command: Command) {
        let Some(from) = self.peers.get_mut(&peer) else { return };
        let descriptors = std::mem::take(&mut from.descriptors);
        if descriptors.len() != command.descriptors {
            // Those that the kernel could not deliver are known to be lost; these were never sent.
            let notice = if descriptors.is_empty() { &super::RELAYED } else { &super::BUSY };
            return self.part(peer, notice);
        }
        let command = self.placed(peer, command);
        let request = self.requests.take(command.weight());
        self.submit(peer, command, Ok(descriptors), request);
    }

    /// A command as words, with the host's environment.
    pub(super) fn submit_words(&mut self, peer: PeerId, request: &CommandRequest) {
        let (command, descriptors) = super::json_command::command(request, &self.own);
        let command = self.placed(peer, command);
        let stdin = request.stdin.as_ref().map_or(0, String::len);
        let request = self.requests.take(command.weight() + stdin);
        self.submit(peer, command, descriptors, request);
    }

    /// The command with its caller's control groups, where they are others than the host's. Where one of them is closed to
    /// the host, that is said once for each kind of caller.
    fn placed(&mut self, peer: PeerId, mut command: Command) -> Command {
        let pid = self.peers.get(&peer).map(|peer| peer.pid);
        let Some(place) = pid.and_then(|pid| self.groups.place_of(pid)) else { return command };
        let is_whole =
            place.files.is_empty() || rexec_sh::protocol::wire::add_cgroups(&place.files, &mut command.frame).is_ok();
        if (place.is_partly_closed || !is_whole)
            && self.told_of_groups.len() < limits::NAMES_TOLD_MAX
            && self.told_of_groups.insert(command.whoami.clone())
        {
            let line = format!(
                "… {} is in another control group than this host, which may not enter it: its limits do not hold for its commands",
                command.whoami
            );
            self.console.say(&line, self.screen.out.buffer());
        }
        command
    }

    fn submit(
        &mut self,
        peer: PeerId,
        command: Command,
        descriptors: Result<Vec<OwnedFd>, StartError>,
        request: Option<Share>,
    ) {
        let Some(request) = request else { return self.part(peer, &super::BUSY) };
        let Some(job) = self.engine.submit() else { return self.part(peer, &super::BUSY) };
        self.attend(peer, job);
        let sent = || descriptors.as_ref().ok()?.first().and_then(sys::path_of);
        let dir = command.dir.clone().map_or_else(|| sent().unwrap_or_default(), std::path::PathBuf::from);
        let dir = dir.as_os_str().as_encoded_bytes();
        self.record(job, &command, dir);
        let identity = Identity::of(&command, dir);
        let run = ActiveRun {
            peer: Some(peer),
            pending: Some(descriptors.map(|descriptors| PendingStart { command, descriptors })),
            identity,
            request: Some(request),
            accepted: self.now,
            guard: None,
            attempts: 0,
            again: None,
            left: Vec::new(),
            bereft: None,
            streams: [const { None }; Stream::ALL.len()],
            relay: None,
            tty: None,
            unread: [false; Stream::ALL.len()],
            broken_pipe: BrokenPipe::default(),
            ending: Ending::default(),
        };
        self.runs.insert(job, run);
    }

    /// Tells journal and console of a new command.
    fn record(&mut self, job: JobId, command: &Command, dir: &[u8]) {
        let time = record::timestamp(SystemTime::now());
        let mut start = StartRecord {
            seq: job.0,
            time: time.clone(),
            whoami: command.whoami.clone(),
            envs: command.envs.clone(),
            command: String::from_utf8_lossy(&command.text).into_owned(),
            shell: command.shell.clone(),
            probe: command.is_probe,
            unwrapped: command.is_unwrapped,
            window: Some(self.window(command)),
            ..StartRecord::default()
        };
        start.set_exec(command.exec.iter().map(Vec::as_slice));
        start.set_dir(dir);
        let heading = Heading {
            time,
            whoami: command.whoami.clone(),
            dir: start.dir.clone(),
            command: start.command.clone(),
            is_unwrapped: command.is_unwrapped,
            is_probe: command.is_probe,
        };
        if let Some(cursor) = self.engine.attach(job, self.journal.lag()) {
            let run = command.run();
            let environment = run.iter().flat_map(|run| run.env.iter()).map(CStr::to_bytes);
            self.journal.begin(cursor, &start, environment, self.scribe.out.buffer(), self.now);
        }
        if let Some(cursor) = self.engine.attach(job, Lag::Skip) {
            self.console.begin(&mut self.engine, cursor, heading);
        }
    }

    /// What a signal does to a command that has not begun.
    pub(super) fn at_start(&self, job: JobId, signal: Signal) -> AtStart {
        match self.runs.get(&job).and_then(|run| run.pending.as_ref()) {
            Some(Ok(pending)) => pending.command.run().map_or(AtStart::Ends, |run| run.at_start(signal.number())),
            _ => AtStart::Ends,
        }
    }

    /// Performs the start of a job. What its caller has said meanwhile comes first: that it should not run, perhaps.
    pub(super) fn start(&mut self, job: JobId) {
        if let Some(peer) = self.peer_of(job).filter(|&peer| self.has_unread(peer)) {
            self.visit_peer(peer);
            if !self.engine.job(job).is_some_and(crate::core::job::Job::is_queued) {
                return;
            }
        }
        let Some(run) = self.runs.get_mut(&job) else { return };
        match run.pending.take() {
            None => {}
            Some(Err(why)) => self.engine.on_start_failed(job, why),
            Some(Ok(pending)) => match self.hand_over(job, &pending) {
                Ok(streams) => {
                    self.engine.on_started(job, streams, self.now);
                    self.close_unread(job);
                    if let Some(timeout) = pending.command.timeout {
                        self.timeouts.insert((self.now + timeout, job));
                    }
                    let waited = self.now.saturating_duration_since(self.runs[&job].accepted);
                    self.journal.note(job, |end| end.queued_ms = u64::try_from(waited.as_millis()).unwrap_or(0));
                    self.start_retry = None;
                    if let Some(run) = self.runs.get_mut(&job) {
                        run.pending = Some(Ok(pending));
                    }
                }
                Err(error) => self.on_start_refused(job, pending, &error),
            },
        }
    }

    /// Want of something that comes back is waited for; anything else ends the job.
    fn on_start_refused(&mut self, job: JobId, pending: PendingStart, error: &std::io::Error) {
        let may_wait = error.raw_os_error().is_some_and(sys::is_shortage) && !self.is_closing();
        let Some(run) = self.runs.get_mut(&job) else { return };
        if may_wait && self.now.saturating_duration_since(run.accepted) < limits::START_TIMEOUT {
            run.pending = Some(Ok(pending));
            self.engine.retry(job);
            self.start_retry = Some(self.now + limits::START_RETRY);
            return;
        }
        self.engine.on_start_failed(job, start_errors::without_guard(error));
    }

    /// Gives a command to another guard, because the one that had it died before it began.
    pub(super) fn give_again(&mut self, job: JobId) {
        self.engine.on_never_began(job);
        for stream in Stream::ALL {
            self.close_stream(job, stream);
        }
        self.dirty.insert(job);
        let is_alive = self.engine.job(job).is_some_and(crate::core::job::Job::is_alive);
        let Some(run) = self.runs.get_mut(&job) else { return };
        let Some(again) = run.again.take() else { return };
        let Some(Ok(pending)) = run.pending.take().filter(|_| is_alive) else { return };
        if self.now.saturating_duration_since(run.accepted) >= limits::START_TIMEOUT {
            return self.engine.on_start_failed(job, start_errors::without_beginning());
        }
        run.attempts += 1;
        match self.hand_over(job, &pending) {
            Ok(_) => {
                self.close_unread(job);
                again.signals.into_iter().for_each(|signal| self.order(job, Order::Signal(signal)));
            }
            Err(error) if error.raw_os_error().is_some_and(sys::is_shortage) && !self.is_closing() => {
                let again = Again { at: self.now + limits::START_RETRY, ..again };
                if let Some(run) = self.runs.get_mut(&job) {
                    run.again = Some(again);
                }
                self.owing.insert(job);
            }
            Err(error) => return self.engine.on_start_failed(job, start_errors::without_guard(&error)),
        }
        if let Some(run) = self.runs.get_mut(&job) {
            run.pending = Some(Ok(pending));
        }
    }

    /// Gives a command to a guard; returns the streams that the host reads of it. Everything that can fail comes before
    /// the guard has it.
    fn hand_over(&mut self, job: JobId, pending: &PendingStart) -> std::io::Result<Streams> {
        let command = &pending.command;
        let is_live = command.live.unwrap_or(self.options.live) && !command.is_for_program;
        let plan = StreamPlan::of(command.stdio, self.tty_of(command), command.kills_group)
            .live(is_live)
            .bare(command.is_bare);
        let mut descriptors: Vec<RawFd> = pending.descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let mut streams = [const { None }; Stream::ALL.len()];
        let mut far = Vec::new();
        for (stream, read, write) in plan.open_pipes()? {
            streams[stream as usize] = Some(Port::new(&mut self.poller, read)?);
            descriptors.push(write.as_raw_fd());
            far.push(write);
        }
        let first = [plan.for_guard(self.options.grace).encode().as_slice(), command.frame.as_slice()].concat();
        let attempt = self.runs.get(&job).map_or(0, |run| run.attempts);
        let behind_directory = pending.descriptors.get(1..).unwrap_or_default();
        let others = self.runs.values().filter_map(|run| run.relay.as_ref());
        let mut relay = plan.is_relayed().then(|| TerminalRelay::new(behind_directory, command.stdio, others));
        let (mut spare, sent) = match self.give(&first, &descriptors, attempt > 0, relay.as_mut()) {
            Ok(given) => given,
            Err(error) => {
                streams.into_iter().flatten().for_each(|port: Port| port.close(&mut self.poller));
                return Err(error);
            }
        };
        let size = self.terminal_size(command, plan);
        if size != self.size {
            let _ = pty::resize(spare.master.fd(), size);
        }
        spare.control.expect_input();
        let mut orders = Orders::new(attempt, self.now);
        orders.out.buffer().extend_from_slice(&first[sent..]);
        self.prepare_protocol(job, command, plan);
        if let Some(run) = self.runs.get_mut(&job) {
            run.relay = relay;
        }
        self.bind(job, spare, orders, streams);
        Ok(plan.streams())
    }

    /// Sends the first bytes to a guard; gives it and how many it took. A guard can have been killed while it waited:
    /// then the next one gets them. When the user's callers have more descriptors in flight than this host may have, none
    /// of its own may travel: then they are born with the guard. Waiting would not help, because those callers wait for us.
    /// The same with `is_new`: whoever stopped or killed one guard may have done so to all that waited.
    fn give(
        &mut self,
        first: &[u8],
        descriptors: &[RawFd],
        is_new: bool,
        mut relay: Option<&mut TerminalRelay>,
    ) -> std::io::Result<(Spare, usize)> {
        let mut may_travel = true;
        loop {
            let (travelling, held) = if may_travel { (descriptors, &[][..]) } else { (&[][..], descriptors) };
            let mut spare = match &relay {
                Some(_) => self.spares.make_with(&mut self.poller, held, FirstInput::Nothing)?,
                None if may_travel && !is_new => self.spares.take(&mut self.poller)?,
                None => self.spares.make_with(&mut self.poller, held, FirstInput::End)?,
            };
            if let Some(relay) = &mut relay {
                relay.lend_modes(spare.master.fd());
            }
            match spare.control.write(|fd| socket::send(fd, first, travelling)) {
                Ok(sent) => {
                    spawn::wake(spare.pid, spare.control.fd());
                    return Ok((spare, sent.unwrap_or(0)));
                }
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

    /// Which of a command's descriptors are its terminal: as its caller wants it, else as the host was told to. What an
    /// agent reads of the shell for itself is for a program and not for people.
    fn tty_of(&self, command: &Command) -> Tty {
        if command.is_for_program { Tty::Never } else { command.tty.unwrap_or(self.options.tty) }
    }

    /// Rows and columns of the screen on which the command's output is to be understood.
    fn window(&self, command: &Command) -> (u16, u16) {
        command.window.unwrap_or((self.size.rows, self.size.cols))
    }

    /// The size of the command's terminal. One that no stream is on has what programs assume without one, because some
    /// ask it all the same.
    fn terminal_size(&self, command: &Command, plan: StreamPlan) -> pty::Size {
        if !plan.has_terminal() && self.options.pty_size.is_none() {
            return pty::Size { rows: limits::UNSEEN_ROWS, cols: limits::UNSEEN_COLS };
        }
        let (rows, cols) = command.true_window.unwrap_or_else(|| self.window(command));
        pty::Size { rows, cols }
    }

    fn prepare_protocol(&mut self, job: JobId, command: &Command, plan: StreamPlan) {
        let tty = plan.tty();
        let peer = self.runs.get_mut(&job).and_then(|run| {
            run.tty = tty;
            run.peer
        });
        let window = self.window(command);
        let (policy, redact) = (self.options.sanitize, self.options.redact_agents);
        if let Some(peer) = peer.and_then(|peer| self.peers.get_mut(&peer))
            && let Protocol::Shim(shim) = &mut peer.protocol
        {
            shim.prepare(tty, OutputFilter::both(command, plan.is_as_written(), policy, window, redact));
        }
    }

    /// The run now has a guard and streams.
    fn bind(&mut self, job: JobId, spare: Spare, orders: Orders, mut streams: [Option<Port>; Stream::ALL.len()]) {
        streams[Stream::Tty as usize] = Some(spare.master);
        for (stream, port) in Stream::ALL.into_iter().zip(&streams) {
            if let Some(port) = port {
                self.sources.insert(port.token(), Source::Stream(job, stream));
            }
        }
        self.sources.insert(spare.control.token(), Source::Control(job));
        if let Some(run) = self.runs.get_mut(&job) {
            run.streams = streams;
            run.guard = Some(GuardLink {
                pid: spare.pid,
                control: spare.control,
                orders,
                inbox: Vec::new(),
                shell_is_over: false,
                has_left: false,
                left_by: None,
            });
        }
        self.owing.insert(job);
        self.flush_guard(job);
    }
}
