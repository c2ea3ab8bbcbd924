//! The relay: from the RUN frame being sent to the command's exit, one poll(2) over everything that can happen.
//!
//! ```text
//! socket ──▶ buffer ──▶ chunk ──▶ output (1 or 2)        signals, parent, readers gone ──▶ outgoing ──▶ socket
//! ```
//!
//! Invariants: output is written in the order of its frames, straight from the one read buffer; while an output does
//! not take it, nothing more is read from the host, and signals and deaths are still attended to; stdin is never
//! touched, unless it is a terminal that the host relays; an exit code that has arrived is never lost to a failed write.

mod job_control;
mod line_ends;

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Signal;
use rexec_sh::protocol::wire::{
    CallerStream, Decoded, FRAME_BYTES_MAX, FromHost, HEADER_BYTES, Hello, WireError, encode_abort, encode_closed,
};

use crate::caller_terminal::CallerTerminal;
use crate::notice;
use crate::output_descriptor::{OutputDescriptor, Written};
use crate::sys::{self, SignalSet, bit};

/// One frame of the largest size; bytes. Larger than what the C libraries take from their heaps, so that it is fresh
/// zeros of the kernel's, of which only the touched pages exist.
const BUFFER_BYTES: usize = HEADER_BYTES + FRAME_BYTES_MAX;
/// How long the host has to end a command that is aborted.
const ABORT_PATIENCE: Duration = Duration::from_secs(5);
/// So much may fail to be written of one stream, for want of room on a disk, before the command is told as if nobody read
/// it: a command that never looks at its output would go on for ever.
const LOST_BYTES_MAX: usize = 1 << 20;
/// The exit code of a command that ended well, but whose output could not be written: what most programs say then.
const OUTPUT_LOST: u8 = 1;
/// How long the host has to say that it heard of a signal that asks the command to end. A host that says nothing cannot
/// pass it on either: it is stopped, or has no turn.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(2);
/// The exit code of an aborted command: that of SIGTERM.
#[expect(clippy::cast_possible_truncation, reason = "SIGTERM is 15")]
const ABORTED: u8 = 128 + libc::SIGTERM as u8;

/// The signals that are passed on to the command.
pub(crate) const FORWARDED: SignalSet = bit(Signal::INT)
    | bit(Signal::TERM)
    | bit(Signal::HUP)
    | bit(Signal::QUIT)
    | bit(sys::USR1)
    | bit(sys::USR2)
    | bit(sys::TSTP)
    | bit(sys::CONT);

/// Those of them that ask the command to end.
const ENDING: SignalSet = bit(Signal::INT) | bit(Signal::TERM) | bit(Signal::HUP) | bit(Signal::QUIT);

/// How a relay ends.
#[derive(Debug)]
pub(crate) enum ClientEnd {
    /// The caller gets this code.
    Exit(u8),
    /// At a terminal the caller gets what its own shell would have given it: a death by this signal, that of the whole
    /// group where a key has sent it.
    Die { signal: Signal, is_group: bool },
    /// The host will not run the command. These signals came for it meanwhile.
    Refused(SignalSet),
    /// Something failed.
    Failed(Notice),
}

/// Bytes of the buffer on their way to an output.
#[derive(Debug)]
struct Chunk {
    stream: CallerStream,
    from: usize,
    to: usize,
}

#[derive(Debug)]
pub(crate) struct Client {
    socket: OwnedFd,
    signals: OwnedFd,
    /// Gone once the parent is, or when its death does not matter.
    parent: Option<OwnedFd>,
    outputs: [OutputDescriptor; 2],
    buffer: Vec<u8>,
    /// What has arrived and is not decoded yet: `buffer[start..end]`.
    start: usize,
    end: usize,
    greeted: bool,
    chunk: Option<Chunk>,
    /// How to end once the chunk is written.
    ending: Option<ClientEnd>,
    outgoing: Vec<u8>,
    /// How much of `outgoing` still belongs to the request.
    request: usize,
    is_orphan: bool,
    aborting: Option<Instant>,
    /// Every signal that came, but for those that stop and continue.
    came: SignalSet,
    /// A signal that asks the command to end, of which the host has not said that it heard, and until when it may.
    unheard: Option<(Instant, Signal)>,
    /// The caller's terminal, if the command may have one that stands for it.
    terminal: Option<CallerTerminal>,
    /// The terminal that the command's own has the size of.
    window: Option<RawFd>,
    /// A carriage return that may be the first half of a line's end, and until when it is kept.
    hold_back: Option<Instant>,
    /// SIGTSTP came to this process from outside, and went to the command.
    has_passed_stop: bool,
}

impl Client {
    /// A relay for a connection on which the first part of the request was sent; `rest` is what remains of it.
    pub(crate) fn new(
        socket: OwnedFd,
        signals: OwnedFd,
        parent: Option<OwnedFd>,
        outputs: [OutputDescriptor; 2],
    ) -> Self {
        Self {
            socket,
            signals,
            parent,
            outputs,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            greeted: false,
            chunk: None,
            ending: None,
            outgoing: Vec::new(),
            request: 0,
            is_orphan: false,
            aborting: None,
            came: 0,
            unheard: None,
            terminal: None,
            window: None,
            hold_back: None,
            has_passed_stop: false,
        }
    }

    /// The caller's terminals: the one to relay, if any, and the one that the command's own has the size of.
    pub(crate) fn with_terminals(self, terminal: Option<CallerTerminal>, window: Option<RawFd>) -> Self {
        Self { terminal, window, ..self }
    }

    /// What remains of the request, to be sent as the host takes it.
    pub(crate) fn queue_request(&mut self, rest: &[u8]) {
        self.outgoing.extend_from_slice(rest);
        self.request = self.outgoing.len();
    }

    /// Relays until the end.
    pub(crate) fn run(mut self) -> ClientEnd {
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

    /// Decodes and writes as far as both go.
    fn advance(&mut self) -> Option<ClientEnd> {
        loop {
            if self.chunk.is_some() && !self.write_chunk() {
                return None;
            }
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

    /// Takes one item off the buffer; false when there is no whole one.
    fn decode(&mut self) -> Result<bool, WireError> {
        let bytes = &self.buffer[self.start..self.end];
        if !self.greeted {
            if let Decoded::Item(_, taken) = Hello::decode(bytes)? {
                (self.greeted, self.start) = (true, self.start + taken);
                return Ok(true);
            }
            return Ok(false);
        }
        let (frame, taken) = match FromHost::decode(bytes)? {
            Decoded::Incomplete => {
                self.make_room();
                return Ok(false);
            }
            Decoded::Skip(taken) => {
                self.start += taken;
                return Ok(true);
            }
            Decoded::Item(frame, taken) => (frame, taken),
        };
        let to = self.start + taken;
        let chunk = |stream, bytes: &[u8]| Some(Chunk { stream, from: to - bytes.len(), to });
        match frame {
            FromHost::Out(bytes) => {
                self.chunk = chunk(CallerStream::Out, bytes);
                self.unprocess();
            }
            FromHost::Err(bytes) => {
                self.chunk = chunk(CallerStream::Err, bytes);
                self.unprocess();
            }
            FromHost::Note(text) => {
                self.chunk = chunk(CallerStream::Err, text);
                self.end_line();
            }
            FromHost::Exit(_) if self.hold_back.is_some() => {
                self.give_held();
                return self.decode();
            }
            FromHost::Exit(_) if self.aborting.is_some() => self.ending = Some(ClientEnd::Exit(ABORTED)),
            FromHost::Exit(exit) => self.ending = Some(self.end_of(exit)),
            FromHost::Fail { code, text } => {
                self.chunk = chunk(CallerStream::Err, text);
                self.ending = Some(ClientEnd::Exit(code));
                self.end_line();
                self.reset_terminal();
            }
            FromHost::Refuse => self.ending = Some(ClientEnd::Refused(self.came)),
            FromHost::Heard => self.unheard = None,
            FromHost::Attach => self.attach(),
            FromHost::Taken(bytes) => self.on_taken(bytes),
            FromHost::Stopped(signal) => self.on_command_stopped(signal),
            FromHost::Modes(modes) => self.on_modes(&modes),
            FromHost::Return => self.return_terminal(),
        }
        self.start = to;
        Ok(true)
    }

    /// Ends the host's own words with a newline; it takes the place of the frame's header.
    fn end_line(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        if chunk.from < chunk.to && self.buffer[chunk.to - 1] != b'\n' {
            self.buffer.copy_within(chunk.from..chunk.to, chunk.from - 1);
            self.buffer[chunk.to - 1] = b'\n';
            chunk.from -= 1;
        }
    }

    /// Moves a frame that is not whole to the front, so that the rest of it fits behind.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Writes the chunk; false when its output takes no more of it now.
    fn write_chunk(&mut self) -> bool {
        let Some(chunk) = &mut self.chunk else { return true };
        let output = &mut self.outputs[index(chunk.stream)];
        while chunk.from < chunk.to && !output.is_closed() {
            match output.write(&self.buffer[chunk.from..chunk.to]) {
                Written::Bytes(bytes) => chunk.from += bytes,
                Written::Blocked => return false,
                Written::Failed(error) => {
                    let (stream, lost) = (chunk.stream, chunk.to - chunk.from);
                    self.on_unwritable(stream, error, lost);
                    break;
                }
            }
        }
        self.chunk = None;
        true
    }

    /// These bytes cannot be written. Each stream fares for itself, as the command's own would.
    fn on_unwritable(&mut self, stream: CallerStream, error: Errno, bytes: usize) {
        let output = &mut self.outputs[index(stream)];
        if output.is_without_reader(error) {
            return self.close(stream);
        }
        let is_first = !output.has_lost();
        if output.lose(bytes) > LOST_BYTES_MAX {
            self.close(stream);
        }
        if is_first && stream == CallerStream::Out && !self.outputs[index(CallerStream::Err)].is_closed() {
            // The command cannot tell its caller of this: to it, the write has succeeded.
            let reason = error.desc();
            let problem = format_args!("the command's output cannot be written: {reason}");
            notice::tell(&Notice::without_hint(OWN_FAILURE, problem));
        }
    }

    /// Tells the host, once, that nobody reads this stream.
    fn close(&mut self, stream: CallerStream) {
        let output = &mut self.outputs[index(stream)];
        if !output.is_closed() {
            output.close();
            encode_closed(stream, &mut self.outgoing);
        }
        if self.is_orphan && stream == CallerStream::Out {
            self.abort();
        }
    }

    fn abort(&mut self) {
        if self.aborting.is_none() {
            self.aborting = Some(Instant::now() + ABORT_PATIENCE);
            encode_abort(&mut self.outgoing);
        }
    }

    /// Sends what the socket takes now.
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
            // The host has closed its end. Its last words may still be read.
            Err(_) => self.outgoing.clear(),
        }
    }

    /// Sleeps until something happens, and attends to it.
    fn wait(&mut self) -> Option<ClientEnd> {
        let blocked = self.chunk.as_ref().map(|chunk| chunk.stream);
        let mut events = if blocked.is_none() { libc::POLLIN } else { 0 };
        if !self.outgoing.is_empty() {
            events |= libc::POLLOUT;
        }
        // A descriptor without events would still report its hang-up, again and again.
        let socket = if events == 0 { -1 } else { self.socket.as_raw_fd() };
        let [out, err] = &self.outputs;
        let mut watched = [
            sys::watch(socket, events),
            sys::watch(self.signals.as_raw_fd(), libc::POLLIN),
            sys::watch(self.parent.as_ref().map_or(-1, AsRawFd::as_raw_fd), libc::POLLIN),
            out.watch(blocked == Some(CallerStream::Out)),
            err.watch(blocked == Some(CallerStream::Err)),
            self.terminal.as_ref().map_or(sys::watch(-1, 0), CallerTerminal::watch),
        ];
        match sys::poll(&mut watched, self.patience_ms()) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Some(ClientEnd::Failed(Notice::without_hint(OWN_FAILURE, error.desc()))),
        }
        if self.aborting.is_some_and(|deadline| deadline <= Instant::now()) {
            return Some(ClientEnd::Exit(ABORTED));
        }
        let [socket, signals, parent, out, err, keys] = watched.map(|watched| watched.revents);
        if signals != 0 {
            self.on_signals();
        }
        for (stream, events) in [(CallerStream::Out, out), (CallerStream::Err, err)] {
            if events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                self.close(stream);
            }
        }
        if parent != 0 {
            self.on_orphaned();
        }
        if keys != 0 {
            self.on_keys();
        }
        self.retry_terminal();
        if self.hold_back.is_some_and(|until| until <= Instant::now()) {
            self.give_held();
        }
        if socket & (libc::POLLIN | libc::POLLHUP | libc::POLLERR) != 0 && self.chunk.is_none() {
            return self.receive();
        }
        match self.unheard {
            // The socket's end is the command's, whenever the host comes to it.
            Some((_, signal)) if self.hears_by().is_some_and(|by| by <= Instant::now()) => {
                Some(ClientEnd::Exit(128 + signal.number()))
            }
            _ => None,
        }
    }

    /// How long to sleep: for ever, unless the host is to end an aborted command or to hear of a signal.
    fn patience_ms(&self) -> i32 {
        let retry = self.terminal.as_ref().and_then(CallerTerminal::retry_at);
        self.aborting.into_iter().chain(self.hears_by()).chain(retry).chain(self.hold_back).min().map_or(
            -1,
            |deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                i32::try_from(left.as_millis()).expect("at most ABORT_PATIENCE") + 1
            },
        )
    }

    /// Until when the host may say that it heard. What it says cannot be read while an output takes nothing.
    fn hears_by(&self) -> Option<Instant> {
        self.unheard.filter(|_| self.chunk.is_none()).map(|(by, _)| by)
    }

    /// Nobody may be left to stop the command; a living reader of its output is somebody.
    fn on_orphaned(&mut self) {
        self.parent = None;
        self.is_orphan = true;
        if !self.outputs[index(CallerStream::Out)].has_reader() {
            self.abort();
        }
    }

    fn receive(&mut self) -> Option<ClientEnd> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        match sys::receive(self.socket.as_raw_fd(), &mut self.buffer[self.end..]) {
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Ok(received @ 1..) => {
                self.end += received;
                None
            }
            Ok(0) | Err(_) if self.aborting.is_some() => Some(ClientEnd::Exit(ABORTED)),
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
