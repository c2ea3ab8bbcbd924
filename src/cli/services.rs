//! `rexec services`: the commands in the background, one per line, oldest first.

use std::collections::BTreeMap;
use std::io::Write;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::columns::{self, Column};
use super::host_calls::{CallError, HostCalls};
use super::look::Look;
use super::ps::table::clock;
use super::service::KnownRuns;
use super::verb::{Call, Group, NO_HOST, Opt, Verb, Words, json};
use crate::front::rpc::listing::ListedRun;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::RunParams;
use crate::limits;
use crate::text::banner::{duration, signal_name};

pub(super) const VERB: Verb = Verb {
    term: "services",
    group: Group::Live,
    summary: "show the commands in the background and how services ended",
    text: "\
Each command in the background has one line: its name if it is a service, its
number, its state, the ports on which it listens, how long it has run or how
long ago it ended, its project, and the command. A service that has ended is
shown until it is started again, or for an hour. rexec exec --bg --name starts
one; rexec wait, send, kill, tail, attach and out take its name.
",
    codes: &[NO_HOST],
    examples: &["rexec services", "rexec exec --bg --name web --wait-port 3000 -- npm run dev"],
    call: &Call::<ServicesCall> {
        options: &[
            Opt::flag(
                "--all",
                |q| q.shows_all = true,
                "also the earlier runs of services, and commands without a name that have ended",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |ServicesCall { shows_all, is_json }| {
            let mut calls = HostCalls::connect(&super::socket_path()?)?;
            let lines = lines(shows_all, &mut calls)?;
            super::with_output(|out| {
                if is_json {
                    return super::put_json(lines.iter(), out);
                }
                let text = if lines.is_empty() { NOTHING.to_owned() } else { draw(&lines, &Look::of_output()) };
                super::written(out.write_all(text.as_bytes()))
            })
        },
    },
};

#[derive(Default)]
struct ServicesCall {
    shows_all: bool,
    is_json: bool,
}

/// Printed if there is none.
const NOTHING: &str = "\
no command runs in the background
start one: rexec exec --bg --name web --wait-port 3000 -- npm run dev
";

/// Columns of a project's name.
const PROJECT_COLUMNS: usize = 20;

/// A command in the background: a line of `--json`.
#[derive(Debug, Serialize)]
struct ServiceLine {
    seq: u64,
    name: Option<String>,
    /// As in `exec.list`.
    state: String,
    exit: Option<u8>,
    signal: Option<u8>,
    ports: Vec<u16>,
    /// The time since its arrival.
    age_ms: u64,
    /// The time since the end of its shell.
    ended_ms: Option<u64>,
    whoami: String,
    why: Option<String>,
    command: String,
    dir: String,
    project: Option<String>,
    project_dir: Option<String>,
}

fn lines(shows_all: bool, calls: &mut HostCalls) -> Result<Vec<ServiceLine>, Notice> {
    let known = KnownRuns::ask(calls)?;
    // The newest run of each name and project.
    let mut newest: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
    for run in &known.runs {
        if let Some(name) = run.service() {
            newest.insert((name, run.facts.session.as_deref()), run.number());
        }
    }
    let is_newest = |run: &ListedRun| {
        let session = run.facts.session.as_deref();
        run.service().is_some_and(|name| newest.get(&(name, session)) == Some(&run.number()))
    };
    let is_shown = |run: &&ListedRun| run.facts.background && (shows_all || run.end.is_none() || is_newest(run));
    let mut lines = Vec::new();
    for run in known.runs.iter().filter(is_shown) {
        // Only the answer about one run has its ports.
        let ports = match calls.call::<method::Status>(&RunParams { run: run.number() }) {
            Ok(status) => status.ports,
            Err(CallError::Refused(_)) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let (project, card) = (known.project(run), &run.facts.card);
        lines.push(ServiceLine {
            seq: run.number(),
            name: run.service().map(str::to_owned),
            state: run.state.to_string(),
            exit: run.exit(),
            signal: run.signal(),
            ports,
            age_ms: run.started_ms_ago,
            ended_ms: run.end.as_ref().map(|end| run.started_ms_ago.saturating_sub(end.duration_ms)),
            whoami: card.whoami.clone(),
            why: Some(card.why.clone()).filter(|why| !why.is_empty()),
            command: card.command.clone(),
            dir: card.dir.clone(),
            project: project.map(|project| project.name.clone()),
            project_dir: project.map(|project| project.dir.clone()),
        });
    }
    Ok(lines)
}

fn draw(lines: &[ServiceLine], look: &Look) -> String {
    let column = |name, is_number, rank, cell: &dyn Fn(&ServiceLine) -> String| Column {
        name,
        is_number,
        rank,
        cells: lines.iter().map(cell).collect(),
    };
    let dash = || look.dash().to_owned();
    let ports = |line: &ServiceLine| match &line.ports[..] {
        [] => dash(),
        ports => ports.iter().map(u16::to_string).collect::<Vec<_>>().join(","),
    };
    let mut columns = vec![
        column("NAME", false, 0, &|line| {
            line.name.as_ref().map_or_else(dash, |name| look.cut(name, limits::RPC_NAME_BYTES))
        }),
        column("#", true, 0, &|line| line.seq.to_string()),
        column("STATE", false, 0, &state),
        column("PORT", true, 1, &ports),
        column("SINCE", true, 2, &|line| match line.ended_ms.filter(|_| line.exit.is_some()) {
            Some(ended) => format!("{} ago", duration(ended)),
            None => clock(line.age_ms),
        }),
        column("PROJECT", false, 3, &|line| {
            line.project.as_ref().map_or_else(dash, |project| look.cut(project, PROJECT_COLUMNS))
        }),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "COMMAND", look);
    for (at, line) in lines.iter().enumerate() {
        for column in &columns {
            let cell = &column.cells[at];
            let colour = if line.exit.is_some_and(|exit| exit != 0) { "31" } else { "0" };
            text += &if column.name == "STATE" { look.coloured(colour, cell) } else { cell.clone() };
            text += "  ";
        }
        text += &look.command(&line.command, room);
        text.push('\n');
    }
    text
}

/// The words for a state: the host's word, or the end.
fn state(line: &ServiceLine) -> String {
    match (line.exit, line.signal.and_then(signal_name)) {
        (Some(exit), Some(signal)) => format!("ended {exit} {signal}"),
        (Some(exit), None) => format!("ended {exit}"),
        (None, _) if line.state == "asks" => "waiting".to_owned(),
        (None, _) => line.state.clone(),
    }
}
