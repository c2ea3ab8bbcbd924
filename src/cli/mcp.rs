//! `rexec mcp`: an MCP server over standard input and output, which is a client of the host's socket.
//!
//! One thread and one poll over the agent, the host and the signals. [`McpServer`] has the protocol. Nothing here waits
//! for the agent to read or for the host to answer, and the process lives on when the host ends: the next call looks
//! for a host again.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use lexopt::prelude::Long;
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::{Notice, remark};

use super::ask;
use super::verb::{Group, Values, Verb, VerbOption};
use crate::front::mcp::{ArrivedLine, Lines, McpIdentity, McpServer};
use crate::limits;
use crate::sys::poll::{Watched, ready};
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::{self, file, socket};
use crate::text::reason::reason;

const WHOAMI: VerbOption =
    VerbOption::taking("whoami", "NAME", Values::Nothing, "the caller's name (default: the one that the agent gives)");

pub(super) const VERB: Verb = Verb {
    name: "mcp",
    short: None,
    group: Group::Agents,
    arguments: "",
    values: Values::Nothing,
    summary: "give an agent tools that run commands in the host (MCP)",
    text: include_str!("help/mcp.txt"),
    options: &[WHOAMI],
    codes: &[(0, "the agent has closed its side, or a signal came")],
    examples: &["rexec mcp", "claude mcp add rexec -- rexec mcp"],
    run: |parser| serve(&VERB, parser),
};

/// The flag by which other programs of this name start it.
pub(super) const FLAG: Verb = Verb {
    name: "--mcp-stdio",
    short: Some('m'),
    group: Group::Flag,
    summary: "the same as rexec mcp",
    text: "\
An agent starts this program and speaks the Model Context Protocol with it.
rexec help mcp has the settings of agents.
",
    examples: &["rexec --mcp-stdio --whoami Codex"],
    run: |parser| serve(&FLAG, parser),
    ..VERB
};

/// The variable by which `rexec run` tells its sessions apart.
const STARTED_BY_RUN: &str = "REXEC_RUN_AGENT";
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes written at once. A pipe that poll(2) finds writable takes as many without waiting.
const WRITE_BYTES: usize = 4 << 10;

fn serve(verb: &Verb, parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    let mut whoami = None;
    while let Some(argument) = parser.next().map_err(|error| verb.wrong(&error))? {
        match argument {
            Long("whoami") => whoami = Some(verb.value(parser)?).filter(|name| !name.trim().is_empty()),
            other => return Err(verb.unexpected(other)),
        }
    }
    if io::stdin().is_terminal() {
        use io::Write;
        let _ = write!(io::stderr(), "{}", remark("an agent starts this program; rexec help mcp says how"));
    }
    let session = std::env::var(STARTED_BY_RUN).unwrap_or_else(|_| format!("mcp:{}", std::process::id()));
    let dir = std::env::current_dir().map_or_else(|_| "/".to_owned(), |dir| dir.to_string_lossy().into_owned());
    let server = McpServer::new(McpIdentity { whoami, session, dir });
    let failed = |error: io::Error| {
        Notice::failed(format_args!("cannot go on: {}", reason(&error)), "look at the limits of this user (ulimit -a)")
    };
    Connections::new(server).map_err(failed)?.serve().map_err(failed)?;
    Ok(exit_code::SUCCESS)
}

/// The connection to the host.
struct HostConnection {
    stream: UnixStream,
    /// A descriptor that goes with the first byte, because a relay of bytes could not pass one on.
    proof: Option<File>,
    lines: Lines,
}

/// The agent, the host and the signals.
struct Connections {
    server: McpServer,
    input: io::Stdin,
    output: io::Stdout,
    lines: Lines,
    host: Option<HostConnection>,
    signals: HostSignals,
}

impl Connections {
    fn new(server: McpServer) -> io::Result<Self> {
        Ok(Self {
            server,
            input: io::stdin(),
            output: io::stdout(),
            lines: Lines::new(limits::MCP_LINE_BYTES_MAX),
            host: None,
            signals: HostSignals::take()?,
        })
    }

    /// Serves until the agent or a signal ends it.
    fn serve(mut self) -> io::Result<()> {
        while self.turn()? {}
        self.farewell()
    }

    /// Waits once, and does what is there to be done. False at the end.
    fn turn(&mut self) -> io::Result<bool> {
        let now = Instant::now();
        self.take_lines(now);
        self.find_host(now);
        self.server.tick(now);
        let left = self.server.deadline().map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let reads = self.server.may_read_client();
        let mut watched = vec![
            Watched { descriptor: self.signals.as_fd(), reads: true, writes: false },
            Watched { descriptor: self.input.as_fd(), reads, writes: false },
            Watched { descriptor: self.output.as_fd(), reads: false, writes: !self.server.to_client().is_empty() },
        ];
        let (host_reads, host_writes) = (self.server.may_read_host(), !self.server.to_host().is_empty());
        if let Some(host) = &self.host {
            watched.push(Watched { descriptor: host.stream.as_fd(), reads: host_reads, writes: host_writes });
        }
        let found = ready(&watched, left)?;
        if found[0].readable && matches!(self.signals.take_next(), Some(HostSignal::End | HostSignal::HangUp)) {
            return Ok(false);
        }
        if let Some(host) = found.get(3).filter(|host| host.readable || host.writable) {
            self.exchange(host_reads, host.writable, host.is_over);
        }
        if found[2].is_over || (found[2].writable && !self.write()?) {
            return Ok(false);
        }
        // An agent that has closed its side while nothing can be told to it is gone.
        if !reads {
            return Ok(!found[1].is_over);
        }
        Ok(!found[1].readable || self.read()?)
    }

    /// Reads from the agent. False at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; READ_BYTES];
        let length = match sys::read(&self.input, &mut buffer) {
            Err(error) if sys::is_transient(&error) => return Ok(true),
            answer => answer?,
        };
        self.lines.push(&buffer[..length]);
        Ok(length > 0)
    }

    /// Writes to the agent. False when nobody reads.
    fn write(&mut self) -> io::Result<bool> {
        let waiting = self.server.to_client();
        match sys::write(&self.output, &waiting[..waiting.len().min(WRITE_BYTES)]) {
            Ok(length) => drop(waiting.drain(..length)),
            Err(error) if sys::is_transient(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Passes on whole lines, as far as there is room for what they cause.
    fn take_lines(&mut self, now: Instant) {
        while self.server.may_read_host() {
            match self.host.as_mut().and_then(|host| host.lines.take()) {
                Some(ArrivedLine::Whole(line)) => self.server.host_line(&line, now),
                Some(ArrivedLine::TooLong) => self.lose_host(),
                None => break,
            }
        }
        while self.server.may_read_client() {
            match self.lines.take() {
                Some(ArrivedLine::Whole(line)) => self.server.client_line(&line, now),
                Some(ArrivedLine::TooLong) => self.server.client_line_too_long(),
                None => break,
            }
        }
    }

    /// Connects to the host if a call needs it.
    fn find_host(&mut self, now: Instant) {
        if !self.server.wants_host() {
            return;
        }
        let found = super::socket_path().and_then(|path| {
            let stream = ask::connect(&path)?;
            let proof = file::null().map_err(ask::AskError::Lost)?;
            Ok(HostConnection { stream, proof: Some(proof), lines: Lines::new(limits::MCP_HOST_LINE_BYTES_MAX) })
        });
        match found {
            Ok(host) => {
                self.host = Some(host);
                self.server.host_is_up(now);
            }
            Err(notice) => self.server.host_is_absent(&notice.to_string()),
        }
    }

    /// Reads from the host and writes to it, as far as that is possible without waiting.
    fn exchange(&mut self, reads: bool, writes: bool, is_over: bool) {
        let Some(host) = &mut self.host else { return };
        let waiting = self.server.to_host();
        if writes && !waiting.is_empty() {
            let proof: Vec<_> = host.proof.iter().map(AsRawFd::as_raw_fd).collect();
            match socket::send(&host.stream, waiting, &proof) {
                Ok(length) => {
                    waiting.drain(..length);
                    host.proof = None;
                }
                Err(error) if sys::is_transient(&error) => {}
                // What the host has said before it went is still read.
                Err(_) => waiting.clear(),
            }
        }
        if !reads {
            if is_over {
                self.lose_host();
            }
            return;
        }
        let mut buffer = [0; READ_BYTES];
        match socket::receive(&host.stream, &mut buffer) {
            Ok(length @ 1..) => host.lines.push(&buffer[..length]),
            Err(error) if sys::is_transient(&error) => {}
            _ => {
                self.take_lines(Instant::now());
                self.lose_host();
            }
        }
    }

    fn lose_host(&mut self) {
        self.host = None;
        self.server.host_is_gone();
    }

    /// Tells the agent and the host what waits, if they take it soon. The host ends the runs of a connection that closes.
    fn farewell(mut self) -> io::Result<()> {
        let end = Instant::now() + limits::MCP_FAREWELL;
        self.exchange(false, true, false);
        while !self.server.to_client().is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            let found = ready(&[Watched { descriptor: self.output.as_fd(), reads: false, writes: true }], Some(left))?;
            if left == Duration::ZERO || found[0].is_over || (found[0].writable && !self.write()?) {
                break;
            }
        }
        Ok(())
    }
}
