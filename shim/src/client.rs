//! The shim as the host's client, from the sent RUN frame to the command's exit: one poll(2) over all events.
//!
//! ```text
//! socket ──▶ buffer ──▶ chunk ──▶ output (1 or 2)        signals, agent or parent or readers gone ──▶ outgoing ──▶ socket
//! ```
//!
//! Invariants: output is written in the order of its frames, straight from the one read buffer; while an output does
//! not take it, nothing more is read from the host (`read_ahead` has the exception), but signals and the agent's death
//! still take effect; descriptor 0 is never read, unless it is a terminal that the host relays; a failed write never
//! changes an exit code other than 0.

mod incoming;
mod job_control;
mod let_go;
mod line_ends;
mod read_ahead;
mod take_turns;

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::direct::DirectCall;
use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::{Exit, Signal};
use rexec_sh::protocol::wire::{CallerStream, FRAME_BYTES_MAX, FromShim, HEADER_BYTES};

use crate::controlling_terminal::ControllingTerminal;
use crate::lifeline::{Lifeline, have_lost_readers};
use crate::notice;
use crate::output_descriptor::OutputDescriptor;
use crate::sys::{self, SignalSet, bit};
use incoming::Chunk;
pub(crate) use let_go::Held;
use read_ahead::BlockedOutput;
use take_turns::Turns;

/// Size of the read buffer, bytes: one frame of the largest size. The C libraries map a block of this size, so only the
/// touched pages take memory.
const BUFFER_BYTES: usize = HEADER_BYTES + FRAME_BYTES_MAX;
/// Its initial size, bytes, until a read fills it. Most commands write less.
const FIRST_BUFFER_BYTES: usize = 16 << 10;
/// The time in which the host must end an aborted command.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// The exit code instead of 0 if output could not be written. Most programs exit with it then.
const OUTPUT_LOST: u8 = 1;
/// The time in which the host must confirm a signal that asks the command to end. A host that does not is stopped, and
/// does not pass the signal on either.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(2);
/// The time in which a parent must be dead after the kernel's signal for its death. The kernel sends it when the
/// parent's thread that made this process dies, and the process may have others.
const DEATH_PATIENCE: Duration = Duration::from_millis(500);
/// The end of an aborted command whose real end nobody reports.
const ABORTED: Exit = Exit::Signal(Signal::TERM);

/// Signals that ask the command to end.
const ENDING: SignalSet = bit(Signal::INT) | bit(Signal::TERM) | bit(Signal::HUP) | bit(Signal::QUIT);

/// The end of the client's work.
#[derive(Debug)]
pub(crate) enum ClientEnd {
    /// Exit with this code.
    Exit(u8),
    /// Die by this signal, as the real shell did. The whole group dies when a key sent the signal.
    Die { signal: Signal, is_group: bool },
    /// The host refuses the command. These signals have arrived for it.
    Refused(SignalSet),
    /// Write this notice and exit with its code.
    Failed(Notice),
}

#[derive(Debug)]
pub(crate) struct Client {
    socket: OwnedFd,
    signals: OwnedFd,
    lifeline: Lifeline,
    outputs: [OutputDescriptor; 2],
    /// The caller's descriptors 1 and 2 are one pipe.
    is_one_output: bool,
    /// Kept until the host accepts the command.
    held: Option<Held>,
    buffer: Vec<u8>,
    /// `buffer[start..end]` has arrived and is not decoded yet.
    start: usize,
    end: usize,
    greeted: bool,
    chunk: Option<Chunk>,
    blocked: BlockedOutput,
    turns: Turns,
    /// The end after the chunk is written.
    ending: Option<ClientEnd>,
    outgoing: Vec<u8>,
    /// The number of bytes of `outgoing` that belong to the request.
    request: usize,
    aborting: Option<Instant>,
    /// Signals that have arrived, except those that stop or continue.
    came: SignalSet,
    /// A signal that asks the command to end and that the host has not confirmed, and the deadline for the
    /// confirmation.
    unheard: Option<(Instant, Signal)>,
    /// A signal that may mean the parent's death, and the time at which it counts as sent by somebody.
    held_signal: Option<(Instant, Signal)>,
    /// The caller's terminal, if the host may relay it.
    terminal: Option<ControllingTerminal>,
    /// The terminal whose size the command's terminal has.
    window: Option<RawFd>,
    /// The deadline for a held carriage return, which may be the first half of a line's end.
    hold_back: Option<Instant>,
    /// Another process sent SIGTSTP, and it went on to the command.
    has_passed_stop: bool,
    /// This process stands for a shell, and so dies as one. `rexec exec` exits with the code for the signal instead.
    is_shell: bool,
    /// The form with `--whoami`: a signal aborts the command, and every failure outside the command has code 127.
    is_plain: bool,
}

impl Client {
    /// The client on a connection; the first part of the request was sent.
    pub(crate) fn new(socket: OwnedFd, signals: OwnedFd, lifeline: Lifeline, outputs: [OutputDescriptor; 2]) -> Self {
        Self {
            socket,
            signals,
            lifeline,
            outputs,
            is_one_output: false,
            held: None,
            buffer: vec![0; FIRST_BUFFER_BYTES],
            start: 0,
            end: 0,
            greeted: false,
            chunk: None,
            blocked: BlockedOutput::default(),
            turns: Turns::default(),
            ending: None,
            outgoing: Vec::new(),
            request: 0,
            aborting: None,
            came: 0,
            unheard: None,
            held_signal: None,
            terminal: None,
            window: None,
            hold_back: None,
            has_passed_stop: false,
            is_shell: true,
            is_plain: false,
        }
    }

    /// Adapts the client to a direct call, if this is one.
    pub(crate) fn for_call(self, direct: Option<&DirectCall<'_>>) -> Self {
        Self { is_shell: direct.is_none(), is_plain: direct.is_some_and(DirectCall::is_plain_client), ..self }
    }

    /// Sets the terminal to relay, if any, and the terminal whose size the command's terminal gets.
    pub(crate) fn with_terminals(self, terminal: Option<ControllingTerminal>, window: Option<RawFd>) -> Self {
        Self { terminal, window, ..self }
    }

    /// Sets the directory and the descriptors to let go of once the host accepts the command. `is_one_output`: both outputs
    /// are one.
    pub(crate) fn with_held(self, held: Held, is_one_output: bool) -> Self {
        Self { held: Some(held), is_one_output, ..self }
    }

    /// Gives back the lifeline, for a command that another process runs.
    pub(crate) fn take_lifeline(&mut self) -> Lifeline {
        std::mem::take(&mut self.lifeline)
    }

    /// Queues the rest of the request. It is sent as the host takes it.
    pub(crate) fn queue_request(&mut self, rest: &[u8]) {
        self.outgoing.extend_from_slice(rest);
        self.request = self.outgoing.len();
    }

    /// Works until the end. It does not take the client: this process exits next, and the kernel closes and unmaps
    /// faster than destructors.
    pub(crate) fn run(&mut self) -> ClientEnd {
        let end = loop {
            if let Some(end) = self.advance() {
                break end;
            }
            self.flush();
            if let Some(end) = self.wait() {
                break end;
            }
        };
        if !matches!(end, ClientEnd::Exit(_)) || self.aborting.is_some() {
            self.reset_terminal();
        }
        self.release_terminal();
        end
    }

    /// Decodes frames and writes output as far as possible.
    fn advance(&mut self) -> Option<ClientEnd> {
        loop {
            if self.chunk.is_some() && !self.write_chunk() {
                return self.end_without_reader();
            }
            self.on_unblocked();
            if let Some(end) = self.ending.take() {
                let has_lost = self.outputs[index(CallerStream::Out)].has_lost();
                return Some(if has_lost && matches!(end, ClientEnd::Exit(0)) {
                    ClientEnd::Exit(OUTPUT_LOST)
                } else {
                    end
                });
            }
            match self.decode() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(ClientEnd::Failed(notice::misunderstood(&error))),
            }
        }
    }

    fn abort(&mut self) {
        if self.aborting.is_none() {
            self.aborting = Some(Instant::now() + ABORT_PATIENCE);
            FromShim::Abort.encode(&mut self.outgoing);
        }
    }

    /// Sends as many bytes as the socket takes at once.
    fn flush(&mut self) {
        if self.outgoing.is_empty() {
            return;
        }
        match sys::send(self.socket.as_raw_fd(), &self.outgoing) {
            Ok(sent) => {
                self.outgoing.drain(..sent);
                self.request = self.request.saturating_sub(sent);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            // The host has closed its end. Its last frames can still be read.
            Err(_) => self.outgoing.clear(),
        }
    }

    /// Sleeps until an event, and handles it.
    fn wait(&mut self) -> Option<ClientEnd> {
        let blocked = self.chunk.as_ref().map(|chunk| chunk.stream);
        let reads = blocked.is_none() || self.reads_ahead();
        let mut events = if reads { libc::POLLIN } else { 0 };
        if !self.outgoing.is_empty() {
            events |= libc::POLLOUT;
        }
        // A descriptor without events would still report its hang-up, so poll would always return at once.
        let socket = if events == 0 { -1 } else { self.socket.as_raw_fd() };
        let [out, err] = &self.outputs;
        let [agent, parent] = self.lifeline.watch();
        let mut watched = [
            sys::watch(socket, events),
            sys::watch(self.signals.as_raw_fd(), libc::POLLIN),
            agent,
            parent,
            out.watch(blocked == Some(CallerStream::Out)),
            err.watch(blocked == Some(CallerStream::Err)),
            self.terminal.as_ref().map_or(sys::watch(-1, 0), ControllingTerminal::watch),
        ];
        match sys::poll(&mut watched, self.patience_ms()) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Some(ClientEnd::Failed(Notice::without_hint(OWN_FAILURE, error.desc()))),
        }
        if self.aborting.is_some_and(|deadline| deadline <= Instant::now()) {
            return Some(self.end_of(ABORTED));
        }
        let [socket, signals, agent, parent, out, err, keys] = watched.map(|watched| watched.revents);
        if signals != 0 {
            self.on_signals();
        }
        for (stream, events) in [(CallerStream::Out, out), (CallerStream::Err, err)] {
            if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                self.close(stream);
            }
        }
        if agent != 0 {
            self.on_agent_ended();
        }
        if parent != 0 {
            self.on_parent_ended();
        }
        if self.lifeline.looks_at().is_some_and(|at| at <= Instant::now()) {
            self.lifeline.look();
        }
        self.release_signal();
        if keys != 0 {
            self.on_keys();
        }
        self.retry_terminal();
        if self.hold_back.is_some_and(|until| until <= Instant::now()) {
            self.give_held();
        }
        if socket & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 && reads {
            return self.receive();
        }
        match self.unheard {
            // When the host runs again, it finds the socket closed and ends the command.
            Some((_, signal)) if self.hears_by().is_some_and(|by| by <= Instant::now()) => {
                Some(self.end_of(Exit::Signal(signal)))
            }
            _ => None,
        }
    }

    /// The time to sleep, milliseconds: until the nearest deadline, or forever (−1).
    fn patience_ms(&self) -> i32 {
        let retry = self.terminal.as_ref().and_then(ControllingTerminal::retry_at);
        let held = self.held_signal.map(|(until, _)| until);
        let look = self.lifeline.looks_at();
        let deadlines = [self.aborting, self.hears_by(), held, retry, self.hold_back, self.ahead_at(), look];
        deadlines.into_iter().flatten().min().map_or(-1, |deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            i32::try_from(left.as_millis()).expect("at most ABORT_PATIENCE") + 1
        })
    }

    /// The deadline for the host's confirmation of a signal. It does not count while an output is blocked: nothing is
    /// read from the host then.
    fn hears_by(&self) -> Option<Instant> {
        self.unheard.filter(|_| self.chunk.is_none()).map(|(by, _)| by)
    }

    fn on_agent_ended(&mut self) {
        self.lifeline.lose_agent();
        self.abort();
    }

    /// Counts an agent or a parent that is dying as dead, because it may be why a reader has left. Otherwise the command
    /// would end by SIGPIPE first, in the usual way, and what it has started would live on.
    fn look_for_ends(&mut self) {
        if self.lifeline.is_agent_dying() {
            self.on_agent_ended();
        }
        if self.lifeline.is_parent_dying() {
            self.on_parent_ended();
        }
    }

    /// Loses the parent. A caller that had set a signal for its death has asked for the command's end in any case.
    fn on_parent_ended(&mut self) {
        self.lifeline.lose_parent();
        if self.held_signal.take().is_some() {
            self.abort();
        }
        self.abort_if_left();
    }

    /// Aborts a command for which nobody waits any more.
    fn abort_if_left(&mut self) {
        if self.lifeline.is_left() && have_lost_readers(&self.outputs) {
            self.abort();
        }
    }

    fn receive(&mut self) -> Option<ClientEnd> {
        let mut room = self.buffer.len();
        if self.chunk.is_some() {
            room = self.make_room_ahead();
        } else if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        match sys::receive(self.socket.as_raw_fd(), &mut self.buffer[self.end..room]) {
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Ok(received @ 1..) => {
                self.end += received;
                if self.end == self.buffer.len() && self.end < BUFFER_BYTES {
                    self.buffer.resize(BUFFER_BYTES, 0);
                }
                None
            }
            Ok(0) | Err(_) if self.chunk.is_some() => {
                self.end_reading_ahead();
                None
            }
            Ok(0) | Err(_) if self.aborting.is_some() => Some(self.end_of(ABORTED)),
            Ok(0) | Err(_) => Some(ClientEnd::Failed(self.lost())),
        }
    }

    #[cold]
    fn lost(&self) -> Notice {
        if self.request > 0 {
            let problem = "the host went away before it had the whole command; it did not run";
            return Notice::new(OWN_FAILURE, problem, "start rexec-host in a terminal, then run the command again");
        }
        Notice::new(
            OWN_FAILURE,
            "the host went away in mid-run; whether the command finished is unknown",
            "look at what the command has changed before you run it again",
        )
    }
}

fn index(stream: CallerStream) -> usize {
    match stream {
        CallerStream::Out => 0,
        CallerStream::Err => 1,
    }
}
