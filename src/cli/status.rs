//! `rexec status`: the host's state, for people, for status lines, and as JSON.

use std::path::{Path, PathBuf};

use super::ask::{self, AskError};
use super::look::Look;
use super::verb::{Call, Group, NO_HOST, Opt, Verb, Words, json};
use crate::front::answer::{Answer, HostStatus};
use crate::text::agent_name::agent_name;
use crate::text::banner::duration;
use crate::text::count::counted;
use crate::text::ends::escape_ends;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "status",
    group: Group::Own,
    summary: "show what the host does, for you or for a status line",
    text: "\
With --short it is a few words for the status line of tmux, starship or a bar,
such as 2 run, 1 waits, or idle. Without a host --short prints nothing at all;
the exit code says that no host runs.

  set -g status-right '#(rexec status --short)'       in ~/.tmux.conf
",
    codes: &[NO_HOST],
    examples: &["rexec status", "rexec status --json"],
    call: &Call::<StatusCall> {
        options: &[Opt::flag("--short", |q| q.is_short = true, "print a few words"), json(|q| q.is_json = true)],
        words: Words::NONE,
        run: |StatusCall { is_short, is_json }| {
            if is_short && is_json {
                return Err(VERB.missing("one of --short and --json"));
            }
            let status = match of(&super::socket_path()?) {
                Ok(status) => status,
                Err(AskError::NoHost { .. }) if is_short => return Ok(NO_HOST.0),
                Err(error) => return Err(error.into()),
            };
            if is_json {
                return super::with_output(|out| super::put_json([status].iter(), out));
            }
            super::say(&if is_short { format!("{}\n", short(&status)) } else { long(&status, &Look::of_output()) })
        },
    },
};

#[derive(Default)]
struct StatusCall {
    is_short: bool,
    is_json: bool,
}

/// Columns of one of the host's words that are shown. The rest is cut.
const WORD_COLUMNS: usize = 60;
/// Columns of the last command that are shown. The rest is cut.
const COMMAND_COLUMNS: usize = 400;

/// The running commands, in a few words.
fn short(status: &HostStatus) -> String {
    let waits = if status.waiting == 1 { "waits" } else { "wait" };
    let counts = [(status.running, "run"), (status.waiting, waits), (status.paused, "paused"), (status.left, "left")];
    let words: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if words.is_empty() { "idle".to_owned() } else { words.join(", ") }
}

/// The host, its running commands, and its past ones, in lines that fit the terminal.
fn long(status: &HostStatus, look: &Look) -> String {
    let HostStatus { version, pid, up_ms, session, commands, failed, agents, last, .. } = status;
    let word = |word: &str| escape_line(word, WORD_COLUMNS);
    let agents: Vec<String> = agents.iter().map(|whoami| agent_name(whoami, 1, "")).collect();
    let agents = if agents.is_empty() { String::new() } else { format!(": {}", agents.join(", ")) };
    let mut lines = vec![format!("rexec-host {}, process {pid}, up {}", word(version), duration(*up_ms))];
    lines.extend(outdated(status).map(|why| format!("{why}: {RESTART}")));
    lines.extend([
        short(status) + &agents,
        format!("session {}: {}, {failed} failed", word(session), counted(*commands, "command", "commands")),
    ]);
    lines.extend(last.as_ref().map(|last| {
        let command = escape_ends(&last.command, COMMAND_COLUMNS);
        let (seq, agent, ago) = (last.seq, agent_name(&last.whoami, 1, ""), duration(last.ended_ms));
        format!("#{seq} of {agent} ended {ago} ago with {}: {command}", last.exit)
    }));
    lines.iter().map(|line| look.cut(line, look.columns) + "\n").collect()
}

/// The advice about a host of another installation.
pub(super) const RESTART: &str = "restart rexec-host when nothing runs in it";

/// The reason why the host is of another installation than this program, if it is.
pub(super) fn outdated(status: &HostStatus) -> Option<String> {
    const OWN: &str = env!("CARGO_PKG_VERSION");
    // The kernel adds this to the name of a file that is gone (proc(5)).
    let is_gone = |path: PathBuf| path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)");
    if status.version != OWN {
        return Some(format!("this rexec is {OWN}"));
    }
    let program = std::fs::read_link(format!("/proc/{}/exe", status.pid));
    program.is_ok_and(is_gone).then(|| "its program was replaced after it had started".to_owned())
}

pub(super) fn of(socket: &Path) -> Result<HostStatus, AskError> {
    match ask::ask(socket, r#"{"action":"status"}"#)?.answer(Some(ask::PATIENCE))? {
        Answer::Status(status) => Ok(*status),
        _ => Err(AskError::Unclear),
    }
}

#[cfg(test)]
mod tests {
    use super::{HostStatus, outdated};

    #[test]
    fn a_host_of_another_version_or_of_a_program_that_is_gone_is_outdated() {
        let status = |version: &str, pid| HostStatus { version: version.to_owned(), pid, ..HostStatus::default() };
        let own = env!("CARGO_PKG_VERSION");
        assert_eq!(outdated(&status("0.0.0", 1)), Some(format!("this rexec is {own}")));
        assert_eq!(outdated(&status(own, std::process::id())), None);
    }
}
