//! `rexec exec-server`: Codex's own protocol for running commands elsewhere, over standard input and output. The commands
//! run in the host, of which this is a client.
//! [`ExecSession`] has what the protocols share, and [`StdioServer`] the loop.

mod dialect;
mod environment;
mod files;
mod host_line;
mod message;
mod place;
mod process;
mod requests;
mod session;

use lexopt::prelude::Long;
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::stdio_server::StdioServer;
use super::verb::{Group, Values, Verb, VerbOption};
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
With v0, outputBytesCap is checked and changes nothing: that protocol cannot
ask for earlier output, so all of it is sent at once and none is retained.
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
    StdioServer::serve(ExecSession::new(dialect, identity))?;
    Ok(exit_code::SUCCESS)
}
