//! The hand-over: a guard gets a command, its descriptors and its streams.
//!
//! Invariant: everything that can fail comes before the guard has the command.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use super::Starts;
use crate::core::engine::JobId;
use crate::core::entry::{Stream, Streams};
use crate::front::command::Command;
use crate::front::language::Language;
use crate::front::output_filter::OutputFilter;
use crate::front::trimmer::Trimmer;
use crate::guard::spawn;
use crate::host::context::Context;
use crate::host::orders::Orders;
use crate::host::run::{ActiveRun, Description, GuardLink, PendingStart, StreamPorts};
use crate::host::runs::Runs;
use crate::host::spares::{FirstInput, Spare};
use crate::host::stream_plan::StreamPlan;
use crate::host::terminal_relay::LentTerminal;
use crate::host::turn::{Source, Turn};
use crate::io::port::Port;
use crate::script::{self, Fed, SudoAsks};
use crate::sys::{self, pty, socket};

/// The message with which a guard gets a command.
struct FirstMessage<'a> {
    bytes: &'a [u8],
    descriptors: &'a [RawFd],
    /// The size that the guard's terminal has by then.
    size: pty::Size,
    /// Another guard had the command before.
    is_again: bool,
}

impl Starts {
    /// Hands a command to a guard. Returns the streams that the host reads of it. Everything that can fail comes before
    /// the guard has the command.
    pub(super) fn hand_over(
        &mut self,
        job: JobId,
        pending: &PendingStart,
        runs: &mut Runs,
        cx: &mut Context<'_>,
    ) -> io::Result<Streams> {
        let Context { turn, peers, .. } = cx;
        let command = &pending.command;
        let plan = self.plan(command).controlled(runs.prompts.wait(turn.now).is_some(), || is_without(command));
        let mut descriptors: Vec<RawFd> = pending.descriptors.iter().map(AsRawFd::as_raw_fd).collect();
        let mut streams: StreamPorts = [const { None }; Stream::ALL.len()];
        let mut far = Vec::new();
        for (stream, read, write) in plan.open_pipes()? {
            streams[stream as usize] = Some(Port::new(&mut turn.poller, read)?);
            descriptors.push(write.as_raw_fd());
            far.push(write);
        }
        let caller = runs.get(job).and_then(|run| peers.shim_pid(run.peer?));
        let record = self.record_place(job, command);
        let record_bytes = u16::try_from(record.len()).unwrap_or_default();
        let plan_bytes = plan.for_guard(self.options.grace, caller, record_bytes).encode();
        let first = [plan_bytes.as_slice(), &record, &command.frame].concat();
        let attempt = runs.get(job).map_or(0, |run| run.attempts);
        let behind_directory = pending.descriptors.get(1..).unwrap_or_default();
        let mut terminal =
            plan.is_relayed().then(|| LentTerminal::new(behind_directory, command.stdio, peers.terminals()));
        let size = self.terminal_size(command, plan);
        let message = FirstMessage { bytes: &first, descriptors: &descriptors, size, is_again: attempt > 0 };
        let (spare, sent) = match self.give(&message, terminal.as_mut(), turn) {
            Ok(given) => given,
            Err(error) => {
                streams.into_iter().flatten().for_each(|port: Port| port.close(&mut turn.poller));
                return Err(error);
            }
        };
        let mut orders = Orders::new(attempt, turn.now);
        orders.out.buffer().extend_from_slice(&first[sent..]);
        if let Some(run) = runs.get_mut(job) {
            run.relay = terminal.as_ref().map(|terminal| terminal.relay(command.stdio));
            run.tty = plan.tty();
            if let Some(peer) = run.peer.and_then(|peer| peers.get_mut(peer)) {
                peer.terminal = terminal.and_then(LentTerminal::into_inner);
                self.prepare_protocol(&mut peer.language, command, plan, &run.description);
            }
            streams[Stream::Tty as usize] = Some(spare.master);
            run.streams = streams;
            run.guard = Some(GuardLink::new(spare.pid, spare.control, orders));
            name_sources(job, run, turn);
        }
        runs.owe(job);
        runs.flush_guard(job);
        Ok(plan.streams())
    }

    /// Sends the first message to a guard. Returns the guard and how many bytes it took. A guard that waited may have
    /// been killed meanwhile: then the next one gets them. If the user's processes have more descriptors in flight than
    /// the kernel allows (ETOOMANYREFS, unix(7)), the guard inherits the descriptors at its birth instead; waiting would
    /// not help, because those processes wait for the host. If another guard had the command before, no waiting one is
    /// used, because whatever stopped or killed one of them may have done so to all.
    fn give(
        &mut self,
        message: &FirstMessage<'_>,
        mut terminal: Option<&mut LentTerminal>,
        turn: &mut Turn,
    ) -> io::Result<(Spare, usize)> {
        let FirstMessage { bytes, descriptors, size, is_again } = *message;
        let mut may_travel = true;
        // A guard that serves again leaves its old terminal with fewer calls when that is closed.
        turn.close_ended();
        loop {
            let (travelling, held) = if may_travel { (descriptors, &[][..]) } else { (&[][..], descriptors) };
            let mut spare = match &terminal {
                Some(_) => self.spares.make_with(&mut turn.poller, held, FirstInput::Nothing)?,
                None if may_travel && !is_again => self.spares.take(&mut turn.poller)?,
                None => self.spares.make_with(&mut turn.poller, held, FirstInput::End)?,
            };
            if let Some(terminal) = &mut terminal {
                terminal.lend_modes(spare.master.fd());
            }
            // The command may ask for it as soon as the guard has the first bytes.
            if size != self.size {
                let _ = pty::resize(spare.master.fd(), size);
            }
            match spare.control.write(|fd| socket::send(fd, bytes, travelling)) {
                Ok(sent) => {
                    // One that stops from now on is continued until it has begun, which it owes the host.
                    spawn::wake_if_stopped(spare.pid, spare.control.fd());
                    return Ok((spare, sent.unwrap_or(0)));
                }
                Err(error) => {
                    spare.close(&mut turn.poller);
                    if may_travel && sys::is_in_flight_limit(&error) {
                        may_travel = false;
                    } else if error.kind() != io::ErrorKind::BrokenPipe {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Tells the protocol of a run's peer how the run's output comes.
    fn prepare_protocol(
        &self,
        language: &mut Language,
        command: &Command,
        plan: StreamPlan,
        description: &Description,
    ) {
        let secrets = description.secrets.as_ref();
        if let (Language::Jsonl(jsonl), Some(secrets)) = (&mut *language, secrets) {
            jsonl.mask(secrets);
        }
        if let Language::Shim(shim) = language {
            let (window, policy) = (self.window(command), self.options.sanitize);
            let filters = OutputFilter::both(command, plan.is_as_written(), policy, window, secrets);
            let filters = match command.output_budget(self.options.budget) {
                None => filters,
                Some(budget) => {
                    let handle = self.output_handle(JobId(description.card.seq), command);
                    filters.map(|filter| filter.within(Trimmer::new(budget, handle.clone())))
                }
            };
            shim.prepare(plan.tty(), filters);
            if command.is_agents && !command.is_for_program {
                shim.is_for_model();
            }
        }
    }
}

/// Returns true if the command's words say that it gets no controlling terminal: something is piped or redirected into a
/// program of it that may read answers there, or a shell turns on job control. What an agent's wrapper redirects is no
/// answer.
fn is_without(command: &Command) -> bool {
    let fed = || script::feeds(&command.text, SudoAsks::of(sys::process::uid()));
    command.line.words.is_none() && (script::shell_controls_jobs(&command.exec) || fed() != Fed::Nothing)
}

/// Names a run's streams and its guard as sources of events.
fn name_sources(job: JobId, run: &ActiveRun, turn: &mut Turn) {
    for (stream, port) in Stream::ALL.into_iter().zip(&run.streams) {
        if let Some(port) = port {
            turn.name(port.token(), Source::Stream(job, stream));
        }
    }
    run.guard.iter().for_each(|link| turn.name(link.control.token(), Source::Control(job)));
}
