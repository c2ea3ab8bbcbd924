//! `rexec exec-server`: Codex's own protocol for running commands elsewhere, over standard input and output. The commands
//! run in the host; this is its client.
//! [`ExecSession`] has the common part of the protocols, and [`StdioServer`] the loop.

mod dialect;
mod environment;
mod files;
mod message;
mod place;
mod process;
mod requests;
mod session;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::stdio_server::StdioServer;
use super::verb::{Call, Group, Opt, Verb, Words};
use dialect::Dialect;
use requests::Identity;
use session::ExecSession;

const PROTOCOLS: [&str; 2] = ["current", "v0"];

pub(super) const VERB: Verb = Verb {
    term: "exec-server",
    group: Group::Agents,
    summary: "run Codex's commands in the host (see rexec help codex)",
    text: "\
Codex starts this program when its environments.toml says so, and then runs its
commands, reads and edits files through it. The commands run in your host. No
host needs to run when Codex starts; a command that finds none says so.
With v0, outputBytesCap is checked and changes nothing: that protocol cannot
ask for earlier output, so all of it is sent at once and none is retained.
",
    codes: &[(0, "the client has closed its side, or a signal came")],
    examples: &["rexec exec-server"],
    call: &Call::<ServerCall> {
        options: &[
            Opt::word(
                "--protocol PROTOCOL",
                &PROTOCOLS,
                |q, v| q.dialect = v.word(dialect).unwrap_or_default(),
                "current, or v0 for exec-server.v0",
            ),
            Opt::value(
                "--as NAME",
                |q, v| q.whoami = Some(v.text()),
                "the caller's name (default: the one that it gives)",
            ),
        ],
        words: Words::NONE,
        run: serve,
    },
};

/// The variable by which a caller names itself.
const WHOAMI: &str = "REXEC_WHOAMI";

#[derive(Default)]
struct ServerCall {
    dialect: Dialect,
    whoami: Option<String>,
}

fn dialect(word: &str) -> Option<Dialect> {
    match word {
        "current" => Some(Dialect::Current),
        "v0" => Some(Dialect::V0),
        _ => None,
    }
}

fn serve(ServerCall { dialect, whoami }: ServerCall) -> Result<u8, Notice> {
    let whoami = whoami.or_else(|| std::env::var(WHOAMI).ok().filter(|name| !name.is_empty()));
    let identity = Identity { whoami, session: format!("exec-server:{}", std::process::id()) };
    StdioServer::serve(ExecSession::new(dialect, identity))?;
    Ok(exit_code::SUCCESS)
}
