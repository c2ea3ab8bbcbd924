//! `rexec mcp`: an MCP server over standard input and output, which is a client of the host's socket.
//!
//! [`McpServer`] has the protocol, and [`StdioServer`] the loop.

use std::io::{self, IsTerminal};
use std::time::Instant;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::stdio_server::{StdioServer, StdioSession};
use super::told::tell;
use super::verb::{Call, Group, Opt, Verb, Words};
use crate::front::mcp::{McpIdentity, McpServer};
use crate::limits;

pub(super) const VERB: Verb = Verb {
    term: "mcp",
    group: Group::Agents,
    summary: "give an agent tools that run commands in the host (MCP)",
    text: include_str!("help/mcp.txt"),
    codes: &[(0, "the agent has closed its side, or a signal came")],
    examples: &["rexec mcp", "claude mcp add rexec -- rexec mcp"],
    call: &Call::<Option<String>> {
        options: &[Opt::value(
            "--whoami NAME",
            |whoami, v| *whoami = Some(v.text()).filter(|name| !name.trim().is_empty()),
            "the caller's name (default: the one that the agent gives)",
        )],
        words: Words::NONE,
        run: serve,
    },
};

/// The flag by which other programs of this name start it.
pub(super) const FLAG: Verb = Verb {
    term: "-m, --mcp-stdio",
    group: Group::Flag,
    summary: "the same as rexec mcp",
    text: "\
An agent starts this program and speaks the Model Context Protocol with it.
rexec help mcp has the settings of agents.
",
    examples: &["rexec --mcp-stdio --whoami Codex"],
    ..VERB
};

/// The variable by which `rexec run` tells its sessions apart.
const STARTED_BY_RUN: &str = "REXEC_RUN_AGENT";

fn serve(whoami: Option<String>) -> Result<u8, Notice> {
    if io::stdin().is_terminal() {
        tell("an agent starts this program; rexec help mcp says how");
    }
    let session = std::env::var(STARTED_BY_RUN).unwrap_or_else(|_| format!("mcp:{}", std::process::id()));
    let dir = std::env::current_dir().map_or_else(|_| "/".to_owned(), |dir| dir.to_string_lossy().into_owned());
    let server = McpServer::new(McpIdentity { whoami, session, dir });
    StdioServer::serve(server)?;
    Ok(exit_code::SUCCESS)
}

impl StdioSession for McpServer {
    const LINE_BYTES_MAX: [usize; 2] = [limits::MCP_LINE_BYTES_MAX, limits::MCP_HOST_LINE_BYTES_MAX];

    fn to_client(&mut self) -> &mut Vec<u8> {
        self.to_client()
    }

    fn to_host(&mut self) -> &mut Vec<u8> {
        self.to_host()
    }

    fn client_line(&mut self, line: &[u8], now: Instant) {
        self.client_line(line, now);
    }

    fn client_line_too_long(&mut self) {
        self.client_line_too_long();
    }

    fn host_line(&mut self, line: &[u8], now: Instant) -> usize {
        self.host_line(line, now);
        0
    }

    fn host_bytes(&mut self, _: &[u8]) {}

    fn owes_answers(&self) -> bool {
        self.owes_answers()
    }

    fn client_is_gone(&mut self) {
        self.client_is_gone();
    }

    fn wants_host(&self) -> bool {
        self.wants_host()
    }

    fn host_is_up(&mut self, now: Instant) {
        self.host_is_up(now);
    }

    fn host_is_absent(&mut self, notice: &str) {
        self.host_is_absent(notice);
    }

    fn host_is_gone(&mut self) {
        self.host_is_gone();
    }

    fn tick(&mut self, now: Instant) {
        self.tick(now);
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline()
    }
}
