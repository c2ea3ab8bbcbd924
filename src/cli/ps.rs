//! `rexec ps`: the running commands, one per line, oldest first.

mod asks;
mod measured;
pub(in crate::cli) mod table;

use std::io::Write;

use super::verb::{Call, Group, NO_HOST, Opt, Verb, Words, json};
use super::{chosen, look, status};
use crate::front::answer::{HostStatus, Listed};
use crate::front::run_state::RunState;
use crate::text::agent_name::{agent_name, count_agents};
use crate::text::banner::duration;
use crate::text::count::counted;
use crate::text::escape::escape_line;
use look::Look;
use measured::Measured;

pub(super) const VERB: Verb = Verb {
    term: "ps",
    group: Group::Live,
    summary: "show the commands that run, wait, or left processes behind",
    text: "\
Each command has one line that fits the terminal. CPU is processor time by
time since the command came, over all its processes; RSS is their memory, with
shared pages counted for each; PORT is where they listen. The states:

  queued     it waits for its start
  asks       rules hold it until you say yes or no: rexec help gate
  running    its shell runs
  waiting    a program of it waits for your answer; its prompt is shown
  paused     rexec pause stopped its processes
  stopping   it was told to end
  left       its shell has ended; processes that it started go on

With --json each line has the whole command and all its processes.

--asks lists what your rules ask you instead, with the program that it is
about: what is held, what nobody answered within the last ten minutes, and what
may pass once because you answered that (allowed). rexec answer N yes|no
answers the first two.
",
    codes: &[NO_HOST],
    examples: &["rexec ps", "rexec ps -v", "rexec ps --asks", "rexec ps --json | jq .ports"],
    call: &Call::<PsCall> {
        options: &[
            Opt::flag("-v, --verbose", |q| q.is_verbose = true, "show the processes of each command, too"),
            Opt::flag("--asks", |q| q.is_about_asks = true, "what your rules ask you, and what nobody answered"),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |PsCall { is_verbose, is_about_asks, is_json }| {
            let socket = super::socket_path()?;
            if is_about_asks {
                return asks::print(&socket, is_json);
            }
            let runs = measured::all(chosen::runs(&socket)?);
            super::with_output(|out| {
                if is_json {
                    return super::put_json(runs.iter(), out);
                }
                let look = Look::of_output();
                let text = match &runs[..] {
                    [] => nothing_runs(&status::of(&socket)?, &look),
                    runs => table::draw(runs, is_verbose, &look) + &summary(runs, is_verbose, &look),
                };
                super::written(out.write_all(text.as_bytes()))
            })
        },
    },
};

#[derive(Default)]
struct PsCall {
    is_verbose: bool,
    is_about_asks: bool,
    is_json: bool,
}

/// The line below the table: the numbers of running commands and of those that wait for the person, and the possible
/// actions.
fn summary(runs: &[Measured], is_verbose: bool, look: &Look) -> String {
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let commands = counted(count(runs.len()), "command", "commands");
    let mut parts = vec![match count_agents(runs.iter().map(|run| run.listed.card.whoami.as_str())) {
        0 => commands,
        agents => format!("{commands} of {}", counted(count(agents), "agent", "agents")),
    }];
    let is_paused = |run: &&Measured| run.listed.state == RunState::Paused;
    let paused = runs.iter().filter(is_paused).count();
    if paused > 0 {
        parts.push(format!("{paused} paused"));
    }
    let is_asking = |run: &&Measured| run.listed.state == RunState::Asks;
    match runs.iter().filter(is_asking).count() {
        0 => {}
        1 => parts.push("1 asks you".to_owned()),
        asking => parts.push(format!("{asking} ask you")),
    }
    let is_waiting = |run: &&Measured| run.listed.state == RunState::Waiting;
    match runs.iter().filter(is_waiting).count() {
        0 => {}
        1 => parts.push("1 waits for you".to_owned()),
        waiting => parts.push(format!("{waiting} wait for you")),
    }
    parts.push("rexec kill N".to_owned());
    if let Some(run) = runs.iter().find(is_asking) {
        parts.push(format!("rexec answer {} yes", run.listed.card.seq));
    }
    if let Some(run) = runs.iter().find(is_waiting) {
        parts.push(format!("rexec send {}", run.listed.card.seq));
    }
    if let Some(run) = runs.iter().find(is_paused) {
        parts.push(format!("rexec resume {}", run.listed.card.seq));
    }
    if !is_verbose {
        parts.push("rexec ps -v: processes".to_owned());
    }
    look.dim(&look.fitted(&parts)) + "\n"
}

/// The text for an idle host.
fn nothing_runs(status: &HostStatus, look: &Look) -> String {
    let mut parts = vec![
        "nothing runs".to_owned(),
        format!("host up {} ({})", duration(status.up_ms), status.pid),
        format!("{}, {} failed", counted(status.commands, "command", "commands"), status.failed),
    ];
    if let Some(last) = &status.last {
        let sign = look.sign(last.exit == 0);
        let (agent, command) = (
            look.cut(&agent_name(&last.whoami, 1, ""), look.columns),
            escape_line(first_line(&last.command), look.columns),
        );
        parts.push(format!("last #{} {agent} {} ago {sign} {command}", last.seq, duration(last.ended_ms)));
    }
    look.fitted(&parts) + "\n"
}

fn first_line(command: &str) -> &str {
    command.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}
