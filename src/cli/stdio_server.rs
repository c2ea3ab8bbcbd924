//! The loop of a server on standard input and output that is a client of the host: one thread and one poll(2) over its
//! client, the host and the signals. `rexec mcp` and `rexec exec-server` are [`StdioSession`]s in it.
//!
//! ```text
//! client ──lines──▶ StdioSession ──JSON-RPC──▶ rexec-host
//!        ◀─────────              ◀────────────
//! ```
//!
//! Invariants: standard output has lines of the protocol only; nothing waits for a client that does not read or for a
//! host that does not answer, and it reads no input that causes more output for a client with
//! [`limits::STDIO_QUEUE_BYTES`] to take; the process lives on when the host ends, and the next request looks for a
//! host again; the end of standard input, or a signal, closes the connection to the host, which ends the session's
//! runs. Requests before the end of standard input are answered, for at most [`limits::STDIO_LAST_ANSWER`]; there is no
//! wait for a client that does not read any more.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::ask;
use crate::front::lines::{ArrivedLine, Lines};
use crate::limits;
use crate::sys::poll::{Readiness, Watched, ready};
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::terminal::Output;
use crate::sys::{self, file, socket};
use crate::text::reason::reason;

/// The protocol of such a server. It receives input and the time, and queues its output.
pub(super) trait StdioSession {
    /// The longest line of the client and of the host, bytes. A longer one of the host ends the connection to it.
    const LINE_BYTES_MAX: [usize; 2];

    fn to_client(&mut self) -> &mut Vec<u8>;
    fn to_host(&mut self) -> &mut Vec<u8>;
    /// Takes a line of the client.
    fn client_line(&mut self, line: &[u8], now: Instant);
    /// Reports that a line of the client was too long, and was not kept.
    fn client_line_too_long(&mut self);
    /// Takes a line of the host. Returns the number of bytes after the line that are not a line.
    fn host_line(&mut self, line: &[u8], now: Instant) -> usize;
    /// Takes the bytes after the line.
    fn host_bytes(&mut self, bytes: &[u8]);
    /// Returns true if there is a request for a host.
    fn wants_host(&self) -> bool;
    fn host_is_up(&mut self, now: Instant);
    /// Reports that there is no host; a notice gives the reason.
    fn host_is_absent(&mut self, notice: &str);
    fn host_is_gone(&mut self);
    fn tick(&mut self, now: Instant);
    /// The time at which [`StdioSession::tick`] has something to do.
    fn deadline(&self) -> Option<Instant>;
    /// Returns true if requests of the client must be answered before the end, if that is soon.
    fn owes_answers(&self) -> bool {
        false
    }
    /// Reports that the client has closed its side, and that the time to answer is over.
    fn client_is_gone(&mut self) {}
}

#[derive(Debug, Default)]
struct OutgoingBytes {
    bytes: Vec<u8>,
    sent: usize,
    /// The last write took nothing more.
    is_blocked: bool,
}

impl OutgoingBytes {
    fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    fn add(&mut self, bytes: &mut Vec<u8>) {
        if self.pending() == 0 {
            (self.sent, self.is_blocked) = (0, false);
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, bytes);
        } else {
            self.bytes.append(bytes);
        }
    }

    /// Writes as many bytes as are taken at once.
    fn write(&mut self, write: impl FnOnce(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        match write(&self.bytes[self.sent..]) {
            Ok(length) => self.sent += length,
            Err(error) if sys::is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        self.is_blocked = self.pending() > 0;
        if self.is_blocked && self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct HostConnection {
    stream: UnixStream,
    /// A descriptor that goes with the first byte, because a relay of bytes could not pass one on.
    proof: Option<File>,
    lines: Lines,
    /// The number of next bytes that are not a line.
    bytes_next: usize,
    out: OutgoingBytes,
}

#[derive(Debug)]
pub(super) struct StdioServer<S> {
    session: S,
    input: io::Stdin,
    output: Output,
    lines: Lines,
    to_client: OutgoingBytes,
    host: Option<HostConnection>,
    signals: HostSignals,
    /// After the client has closed its side: the time limit for the answers to its requests.
    last_answer: Option<Instant>,
}

impl<S: StdioSession> StdioServer<S> {
    /// Serves this session until the client or a signal ends it.
    pub(super) fn serve(session: S) -> Result<(), Notice> {
        let failed = |error: io::Error| {
            Notice::failed(
                format_args!("cannot go on: {}", reason(&error)),
                "look at the limits of this user (ulimit -a)",
            )
        };
        Self::new(session).and_then(Self::run).map_err(failed)
    }

    fn new(session: S) -> io::Result<Self> {
        let output = Output::standard()?;
        output.widen();
        Ok(Self {
            session,
            input: io::stdin(),
            output,
            lines: Lines::new(S::LINE_BYTES_MAX[0]),
            to_client: OutgoingBytes::default(),
            host: None,
            signals: HostSignals::take()?,
            last_answer: None,
        })
    }

    fn run(mut self) -> io::Result<()> {
        while self.turn()? {}
        self.session.client_is_gone();
        self.farewell()
    }

    /// Returns true if the client has so little to take that input which causes more of it may be read.
    fn takes_more(&mut self) -> bool {
        self.to_client.pending() + self.session.to_client().len() < limits::STDIO_QUEUE_BYTES
    }

    /// Returns true if requests may be taken: they cause output for the host, too.
    fn takes_requests(&mut self) -> bool {
        let for_host = self.session.to_host().len() + self.host.as_ref().map_or(0, |host| host.out.pending());
        for_host < limits::STDIO_QUEUE_BYTES && self.takes_more()
    }

    /// Does all due work, and waits once. Returns false at the end.
    fn turn(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        while self.takes_more() && self.take_from_host(now) {}
        let is_served = self.serve_client(now);
        self.find_host(now);
        self.session.tick(now);
        if !self.send() {
            return Ok(false);
        }
        let (takes_more, takes_requests) = (self.takes_more(), self.takes_requests());
        let (has_output, is_pollable) = (self.to_client.pending() > 0, self.output.is_pollable());
        if self.last_answer.is_some_and(|last| last <= now || !self.session.owes_answers()) {
            return Ok(false);
        }
        let deadline = [self.session.deadline(), self.last_answer].into_iter().flatten().min();
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // No descriptor reports that the client has taken enough for its next request, which was read.
        let goes_on = takes_requests && !is_served;
        let left = if goes_on || has_output && !is_pollable { Some(Duration::ZERO) } else { left };
        let watch = |descriptor, reads, writes| Watched { descriptor, reads, writes };
        let input = match self.last_answer {
            None => watch(self.input.as_fd(), takes_requests && is_served, false),
            // The end of the input would be found again and again. The signals stand in its place.
            Some(_) => watch(self.signals.as_fd(), false, false),
        };
        let mut watched = vec![
            watch(self.signals.as_fd(), true, false),
            input,
            watch(self.output.as_fd(), false, has_output && is_pollable),
        ];
        // Its end would be found again and again while it is not read.
        if let Some(host) = self.host.as_ref().filter(|host| takes_more || host.out.pending() > 0) {
            watched.push(watch(host.stream.as_fd(), takes_more, host.out.pending() > 0));
        }
        let found = ready(&watched, left)?;
        if found[0].readable && matches!(self.signals.take_next(), Some(HostSignal::End | HostSignal::HangUp)) {
            return Ok(false);
        }
        if let Some(host) = found.get(3) {
            self.hear_host(*host, takes_more);
        }
        if found[2].is_over {
            // Nobody reads. The client's runs end with the connection.
            return Ok(false);
        }
        self.to_client.is_blocked &= !found[2].writable && is_pollable;
        if self.last_answer.is_some() {
            return Ok(true);
        }
        if !takes_requests {
            // A client that has closed its side while nothing can be sent to it is gone.
            return Ok(!found[1].is_over);
        }
        if is_served && found[1].readable && !self.read()? {
            self.last_answer = Some(Instant::now() + limits::STDIO_LAST_ANSWER);
        }
        Ok(true)
    }

    /// Reads from the client. Returns false at the end.
    fn read(&mut self) -> io::Result<bool> {
        let length = match sys::read(&self.input, self.lines.room()) {
            Err(error) if sys::is_transient(&error) => return Ok(true),
            answer => answer?,
        };
        self.lines.arrived(length);
        Ok(length > 0)
    }

    /// Sends as much as is taken at once. Returns false if the client does not read any more.
    fn send(&mut self) -> bool {
        self.to_client.add(self.session.to_client());
        if let Some(host) = &mut self.host {
            host.out.add(self.session.to_host());
            host.send();
        }
        let output = &self.output;
        self.to_client.pending() == 0
            || self.to_client.is_blocked
            || self.to_client.write(|bytes| output.write(bytes)).is_ok()
    }

    /// Passes on the client's lines. Returns false if some of them wait until the client has taken more. Nothing more
    /// is read then; otherwise a client whose answers are longer than its requests would fill the memory.
    fn serve_client(&mut self, now: Instant) -> bool {
        while self.takes_requests() {
            if !self.take_from_client(now) {
                return true;
            }
        }
        false
    }

    /// Passes on the client's next line. Returns false if there is none.
    fn take_from_client(&mut self, now: Instant) -> bool {
        match self.lines.take() {
            Some(ArrivedLine::Whole(line)) => self.session.client_line(line, now),
            Some(ArrivedLine::TooLong) => self.session.client_line_too_long(),
            None => return false,
        }
        true
    }

    /// Passes on the host's next line or bytes. Returns false if there is nothing.
    fn take_from_host(&mut self, now: Instant) -> bool {
        let Some(host) = &mut self.host else { return false };
        if host.bytes_next > 0 {
            let Some(bytes) = host.lines.take_bytes(host.bytes_next) else { return false };
            host.bytes_next = 0;
            self.session.host_bytes(bytes);
            return true;
        }
        match host.lines.take() {
            Some(ArrivedLine::Whole(line)) => host.bytes_next = self.session.host_line(line, now),
            Some(ArrivedLine::TooLong) => self.lose_host(),
            None => return false,
        }
        true
    }

    /// Connects to the host if there is a request for it.
    fn find_host(&mut self, now: Instant) {
        if self.host.is_some() || !self.session.wants_host() {
            return;
        }
        let found = super::socket_path().and_then(|path| {
            let stream = ask::connect(&path)?;
            let proof = Some(file::null().map_err(ask::AskError::Lost)?);
            let lines = Lines::new(S::LINE_BYTES_MAX[1]);
            Ok(HostConnection { stream, proof, lines, bytes_next: 0, out: OutgoingBytes::default() })
        });
        match found {
            Ok(host) => {
                self.host = Some(host);
                self.session.host_is_up(now);
            }
            Err(notice) => self.session.host_is_absent(&notice.to_string()),
        }
    }

    /// Reads from the host, if it is ready and may be read.
    fn hear_host(&mut self, found: Readiness, takes_more: bool) {
        let Some(host) = &mut self.host else { return };
        host.out.is_blocked &= !found.writable;
        if !takes_more || !found.readable {
            return;
        }
        match socket::receive(&host.stream, host.lines.room()) {
            Ok(length @ 1..) => host.lines.arrived(length),
            Err(error) if sys::is_transient(&error) => {}
            // All its earlier lines were passed on, else nothing more would be read.
            _ => self.lose_host(),
        }
    }

    fn lose_host(&mut self) {
        self.host = None;
        self.session.host_is_gone();
    }

    /// Sends the waiting bytes to the client and the host, if they take them soon.
    fn farewell(mut self) -> io::Result<()> {
        let end = Instant::now() + limits::STDIO_FAREWELL;
        while self.send() && self.to_client.pending() > 0 {
            let left = end.saturating_duration_since(Instant::now());
            let found = ready(&[Watched { descriptor: self.output.as_fd(), reads: false, writes: true }], Some(left))?;
            if left.is_zero() || found[0].is_over {
                break;
            }
            self.to_client.is_blocked = false;
        }
        Ok(())
    }
}

impl HostConnection {
    fn send(&mut self) {
        if self.out.pending() == 0 || self.out.is_blocked {
            return;
        }
        let (stream, proof) = (&self.stream, self.proof.take());
        let descriptors: Vec<_> = proof.iter().map(AsRawFd::as_raw_fd).collect();
        let before = self.out.pending();
        if self.out.write(|bytes| socket::send(stream, bytes, &descriptors)).is_err() {
            // The host's last words are still read.
            self.out = OutgoingBytes::default();
        } else if self.out.pending() == before {
            self.proof = proof;
        }
    }
}
