//! `rexec status`: what the host is and has, for people, for status lines, and as JSON.

use std::path::Path;

use super::ask::{self, AskError};
use super::verb::{Group, JSON, NO_HOST, Values, Verb, VerbOption};
use crate::front::answer::{Answer, HostStatus};
use crate::text::banner::duration;
use crate::text::count::counted;
use crate::text::ends::escape_ends;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    name: "status",
    short: None,
    group: Group::Own,
    arguments: "",
    values: Values::Nothing,
    summary: "show what the host does, for you or for a status line",
    text: "\
With --short it is a few words for the status line of tmux, starship or a bar,
such as 2 run, 1 waits, or idle. Without a host --short prints nothing at all;
the exit code says that no host runs.

  set -g status-right '#(rexec status --short)'       in ~/.tmux.conf
",
    options: &[VerbOption::flag("short", "print a few words"), JSON],
    codes: &[NO_HOST],
    examples: &["rexec status", "rexec status --json"],
    run: |parser| {
        let [is_short, is_json] = VERB.flags(parser, ["short", "json"])?;
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
        super::say(&if is_short { format!("{}\n", short(&status)) } else { long(&status) })
    },
};

/// Columns of a caller's name that are shown. The rest is cut.
const NAME_COLUMNS: usize = 20;
/// Columns of the last command that are shown. The rest is cut.
const COMMAND_COLUMNS: usize = 40;

/// What runs, in a few words.
fn short(status: &HostStatus) -> String {
    let waits = if status.waiting == 1 { "waits" } else { "wait" };
    let counts = [(status.running, "run"), (status.waiting, waits), (status.paused, "paused"), (status.left, "left")];
    let words: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if words.is_empty() { "idle".to_owned() } else { words.join(", ") }
}

fn long(status: &HostStatus) -> String {
    let HostStatus { version, pid, up_ms, session, commands, failed, agents, last, .. } = status;
    let name = |name: &str| escape_line(name, NAME_COLUMNS);
    let mut text = format!(
        "rexec-host {}, process {pid}, up {}, session {}\n{}",
        name(version),
        duration(*up_ms),
        name(session),
        short(status)
    );
    if !agents.is_empty() {
        text += &format!(": {}", agents.iter().map(|agent| name(agent)).collect::<Vec<_>>().join(", "));
    }
    text += &format!("\n{}, {failed} failed", counted(*commands, "command", "commands"));
    if let Some(last) = last {
        let command = escape_ends(&last.command, COMMAND_COLUMNS);
        let (seq, whoami, ago) = (last.seq, name(&last.whoami), duration(last.ended_ms));
        text += &format!("; #{seq} of {whoami} ended {ago} ago with {}: {command}", last.exit);
    }
    text + "\n"
}

/// The status of the host on this socket.
pub(super) fn of(socket: &Path) -> Result<HostStatus, AskError> {
    match ask::ask(socket, r#"{"action":"status"}"#)?.answer(Some(ask::PATIENCE))? {
        Answer::Status(status) => Ok(*status),
        _ => Err(AskError::Unclear),
    }
}
