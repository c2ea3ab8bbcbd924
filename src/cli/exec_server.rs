//! `rexec exec-server`: Codex's own protocol for running commands elsewhere, over standard input and output. The commands
//! run in the host, of which this is a client.
//!
//! ```text
//! Codex ──lines──▶ ExecSession ──JSON-RPC──▶ rexec-host        one thread, one poll(2)
//!       ◀─────────         ◀────────────
//! ```
//!
//! Invariants: standard output has lines of the protocol only; nothing waits for a client that does not read, and then
//! nothing more is read from the host; the end of standard input, or a signal, closes the connection to the host, which
//! ends what runs.

mod dialect;
mod environment;
mod files;
mod host_line;
mod message;
mod place;
mod process;
mod requests;
mod session;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use lexopt::prelude::Long;
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::ask;
use super::verb::{Group, Values, Verb, VerbOption};
use crate::front::mcp::{ArrivedLine, Lines};
use crate::limits;
use crate::sys::poll::{Watched, ready};
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::terminal::Output;
use crate::sys::{self, file, socket};
use crate::text::reason::reason;
use dialect::Dialect;
use requests::Identity;
use session::ExecSession;

/// The protocols that there are.
const PROTOCOLS: [&str; 2] = ["current", "v0"];

pub(super) const VERB: Verb = Verb {
    name: "exec-server",
    short: None,
    group: Group::Agents,
    arguments: "",
    values: Values::Nothing,
    summary: "run Codex's commands in the host (see rexec help codex)",
    text: "\
Codex starts this program when its environments.toml says so, and then runs its
commands, reads and edits files through it. The commands run in your host. No
host needs to run when Codex starts; a command that finds none says so.
",
    options: &[
        VerbOption::taking("protocol", "PROTOCOL", Values::Words(&PROTOCOLS), "current, or v0 for exec-server.v0"),
        VerbOption::taking("as", "NAME", Values::Nothing, "the caller's name (default: the one that it gives)"),
    ],
    codes: &[(0, "the client has closed its side, or a signal came")],
    examples: &["rexec exec-server"],
    run: serve,
};

/// The variable by which a caller names itself.
const WHOAMI: &str = "REXEC_WHOAMI";
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

fn serve(parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    let (mut dialect, mut whoami) = (Dialect::Current, std::env::var(WHOAMI).ok().filter(|name| !name.is_empty()));
    while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
        match argument {
            Long("as") => whoami = Some(VERB.value(parser)?),
            Long("protocol") => match VERB.value(parser)?.as_str() {
                "current" => dialect = Dialect::Current,
                "v0" => dialect = Dialect::V0,
                other => return Err(VERB.none_of("--protocol", other, &PROTOCOLS)),
            },
            other => return Err(VERB.unexpected(other)),
        }
    }
    let identity = Identity { whoami, session: format!("exec-server:{}", std::process::id()) };
    let failed = |error: io::Error| {
        Notice::failed(format_args!("cannot go on: {}", reason(&error)), "look at the limits of this user (ulimit -a)")
    };
    ExecServer::new(ExecSession::new(dialect, identity)).map_err(failed)?.serve().map_err(failed)?;
    Ok(exit_code::SUCCESS)
}

/// Bytes on their way out.
#[derive(Default)]
struct OutgoingBytes {
    bytes: Vec<u8>,
    sent: usize,
}

impl OutgoingBytes {
    fn pending(&self) -> usize {
        self.bytes.len() - self.sent
    }

    fn add(&mut self, bytes: &mut Vec<u8>) {
        if self.sent == self.bytes.len() {
            self.sent = 0;
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, bytes);
        } else {
            self.bytes.append(bytes);
        }
    }

    /// Writes as much as is taken at once.
    fn write(&mut self, write: impl FnOnce(&[u8]) -> io::Result<usize>) -> io::Result<()> {
        match write(&self.bytes[self.sent..]) {
            Ok(length) => self.sent += length,
            Err(error) if sys::is_transient(&error) => {}
            Err(error) => return Err(error),
        }
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        Ok(())
    }
}

/// The connection to the host.
struct ServedHost {
    stream: UnixStream,
    /// A descriptor that goes with the first byte, because a relay of bytes could not pass one on.
    proof: Option<File>,
    lines: Lines,
}

/// The client, the host and the signals.
struct ExecServer {
    session: ExecSession,
    input: io::Stdin,
    output: Output,
    lines: Lines,
    host: Option<ServedHost>,
    signals: HostSignals,
    to_client: OutgoingBytes,
    to_host: OutgoingBytes,
    buffer: Vec<u8>,
}

impl ExecServer {
    fn new(session: ExecSession) -> io::Result<Self> {
        Ok(Self {
            session,
            input: io::stdin(),
            output: Output::standard()?,
            lines: Lines::new(limits::EXEC_SERVER_LINE_BYTES_MAX),
            host: None,
            signals: HostSignals::take()?,
            to_client: OutgoingBytes::default(),
            to_host: OutgoingBytes::default(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Serves until the client or a signal ends it.
    fn serve(mut self) -> io::Result<()> {
        while self.turn()? {}
        // What the host has said by now is not told any more, but a reader gets what was.
        let end = Instant::now() + limits::EXEC_SERVER_FAREWELL;
        while self.to_client.pending() > 0 && Instant::now() < end {
            let watched = [Watched { descriptor: self.output.as_fd(), reads: false, writes: true }];
            let found = ready(&watched, Some(end.saturating_duration_since(Instant::now())))?;
            if found[0].is_over || self.to_client.write(|bytes| self.output.write(bytes)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Waits once, and does what is there to be done. False at the end.
    fn turn(&mut self) -> io::Result<bool> {
        self.session.tick(Instant::now());
        self.find_host();
        self.to_client.add(&mut self.session.to_client);
        let takes_more = self.to_client.pending() < limits::EXEC_SERVER_HIGH_BYTES;
        let takes_requests = takes_more && self.to_host.pending() < limits::EXEC_SERVER_HIGH_BYTES;
        let left = self.session.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let watch = |descriptor, reads, writes| Watched { descriptor, reads, writes };
        let has_output = self.to_client.pending() > 0;
        let mut watched = vec![
            watch(self.signals.as_fd(), true, false),
            watch(self.input.as_fd(), takes_requests, false),
            watch(self.output.as_fd(), false, has_output && self.output.is_pollable()),
        ];
        if let Some(host) = &self.host {
            watched.push(watch(host.stream.as_fd(), takes_more, self.to_host.pending() > 0));
        }
        let left = if has_output && !self.output.is_pollable() { Some(Duration::ZERO) } else { left };
        let found = ready(&watched, left)?;
        if found[0].readable && matches!(self.signals.take_next(), Some(HostSignal::End | HostSignal::HangUp)) {
            return Ok(false);
        }
        if let Some(host) = found.get(3) {
            self.exchange(takes_more && host.readable, host.writable, host.is_over);
        }
        if has_output && self.to_client.write(|bytes| self.output.write(bytes)).is_err() {
            // Nobody reads. What runs ends with the connection.
            return Ok(false);
        }
        if found[2].is_over {
            return Ok(false);
        }
        if found[1].readable && takes_requests { self.read() } else { Ok(true) }
    }

    /// Reads from the client. False at the end.
    fn read(&mut self) -> io::Result<bool> {
        let length = match sys::read(&self.input, &mut self.buffer) {
            Err(error) if sys::is_transient(&error) => return Ok(true),
            answer => answer?,
        };
        self.lines.push(&self.buffer[..length]);
        let now = Instant::now();
        while let Some(line) = self.lines.take() {
            match line {
                ArrivedLine::Whole(line) => self.session.client_line(&line, now),
                ArrivedLine::TooLong => self.session.client_line_too_long(),
            }
        }
        Ok(length > 0)
    }

    /// Connects to the host if there is something to ask.
    fn find_host(&mut self) {
        if self.session.to_host.is_empty() {
            return;
        }
        if self.host.is_none() {
            let found = super::socket_path().and_then(|path| {
                let stream = ask::connect(&path)?;
                let proof = file::null().map_err(ask::AskError::Lost)?;
                Ok(ServedHost { stream, proof: Some(proof), lines: Lines::new(limits::EXEC_SERVER_LINE_BYTES_MAX) })
            });
            match found {
                Ok(host) => self.host = Some(host),
                Err(notice) => return self.session.host_is_absent(&notice.to_string()),
            }
        }
        self.to_host.add(&mut self.session.to_host);
    }

    /// Reads from the host and writes to it, as far as that is possible without waiting.
    fn exchange(&mut self, reads: bool, writes: bool, is_over: bool) {
        let Some(host) = &mut self.host else { return };
        if writes && self.to_host.pending() > 0 {
            let proof: Vec<_> = host.proof.iter().map(AsRawFd::as_raw_fd).collect();
            let sent = self.to_host.write(|bytes| socket::send(&host.stream, bytes, &proof));
            if sent.is_ok() {
                host.proof = None;
            }
        }
        if !reads {
            return;
        }
        match socket::receive(&host.stream, &mut self.buffer) {
            Ok(length @ 1..) => {
                host.lines.push(&self.buffer[..length]);
                while let Some(line) = host.lines.take() {
                    if let ArrivedLine::Whole(line) = line {
                        self.session.host_line(&line);
                    }
                }
            }
            Err(error) if sys::is_transient(&error) && !is_over => {}
            _ => {
                self.host = None;
                self.to_host = OutgoingBytes::default();
                self.session.host_is_gone();
            }
        }
    }
}
