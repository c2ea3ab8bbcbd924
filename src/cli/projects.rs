//! `rexec projects`: the project sessions, each in a line of its own. They are paused, resumed and ended as a whole.

use std::io::Write;
use std::path::Path;

use lexopt::prelude::Long;
use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Serialize};

use super::columns::{self, Column};
use super::host_calls::HostCalls;
use super::look::Look;
use super::verb::{Group, JSON, NO_HOST, Values, Verb, VerbOption};
use crate::front::rpc::params::NoParams;
use crate::front::rpc::projects::SessionParams;
use crate::limits;
use crate::text::count::counted;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    name: "projects",
    short: None,
    group: Group::Live,
    arguments: "",
    values: Values::Nothing,
    summary: "show projects; pause, resume or end all commands of one",
    text: "\
The first command in a git project makes a project session for it, and a
program can define others (rexec help protocol). Each has one line: its name,
its state, its commands that run or left something running, its ports, and its
directory. Definitions are kept for the next host.

PROJECT is a name, or a directory with a slash. Commands that come into a
paused project wait until it is resumed; those of a sandboxed agent do not.
",
    options: &[
        VerbOption::taking("pause", "PROJECT", Values::Nothing, "pause its commands, also those that come"),
        VerbOption::taking("resume", "PROJECT", Values::Nothing, "let them go on"),
        VerbOption::taking("end", "PROJECT", Values::Nothing, "end its commands, and forget the project session"),
        JSON,
    ],
    codes: &[(1, "there is no such project"), NO_HOST],
    examples: &["rexec projects", "rexec projects --pause shop", "rexec log --cwd ~/shop"],
    run: |parser| {
        let (mut asked, mut is_json) = (None, false);
        while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
            let method = match argument {
                Long("pause") => "session.suspend",
                Long("resume") => "session.resume",
                Long("end") => "session.destroy",
                Long("json") => {
                    is_json = true;
                    continue;
                }
                other => return Err(VERB.unexpected(other)),
            };
            let project = VERB.value(parser)?;
            if let Some((_, before)) = asked.replace((method, project)) {
                return Err(VERB.too_much(&before));
            }
        }
        let mut calls = HostCalls::connect(&super::socket_path()?)?;
        match asked {
            Some((method, project)) => change(method, &project, is_json, &mut calls),
            None => list(is_json, &mut calls),
        }
    },
};

/// What is said where there is none.
const NOTHING: &str = "no command has run in a project\n";

/// A project session: a line of `--json`.
#[derive(Debug, Serialize, Deserialize)]
struct ProjectLine {
    session: String,
    name: String,
    dir: String,
    state: String,
    runs: Vec<u64>,
    background: Vec<u64>,
    ports: Vec<u16>,
    env: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lost_env: Vec<String>,
    #[serde(default)]
    shell: Option<String>,
    implied: bool,
    created_at: String,
    last_activity: String,
}

impl ProjectLine {
    /// Its commands that run, and those that have ended and left something running.
    fn commands(&self) -> Vec<u64> {
        let mut commands: Vec<u64> = self.runs.iter().chain(&self.background).copied().collect();
        commands.sort_unstable();
        commands.dedup();
        commands
    }
}

/// The commands that were told to end.
#[derive(Debug, Serialize, Deserialize)]
struct EndedCommands {
    ended: Vec<u64>,
}

fn list(is_json: bool, calls: &mut HostCalls) -> Result<u8, Notice> {
    #[derive(Deserialize)]
    struct All {
        sessions: Vec<ProjectLine>,
    }
    let All { sessions } = calls.call("session.list", &NoParams {})?;
    super::with_output(|out| {
        if is_json {
            return super::put_json(sessions.iter(), out);
        }
        let text = if sessions.is_empty() { NOTHING.to_owned() } else { draw(&sessions, &Look::of_output()) };
        super::written(out.write_all(text.as_bytes()))
    })
}

/// Pauses, resumes or ends one.
fn change(method: &str, project: &str, is_json: bool, calls: &mut HostCalls) -> Result<u8, Notice> {
    let path = Path::new(project);
    let is_path = project.contains('/') || project == ".";
    let dir = if is_path { path.canonicalize().ok() } else { None };
    let session = dir.as_ref().and_then(|dir| dir.to_str()).unwrap_or(project).to_owned();
    let shown = escape_line(&session, limits::PROJECT_NAME_BYTES);
    let params = SessionParams { session };
    if method == "session.destroy" {
        let done: EndedCommands = calls.call(method, &params)?;
        return say(&done, &format!("{shown}: {}\n", told(&done.ended, "ended")), is_json);
    }
    let done: ProjectLine = calls.call(method, &params)?;
    let word = if method == "session.suspend" { "paused" } else { "resumed" };
    let name = escape_line(&done.name, limits::PROJECT_NAME_BYTES);
    say(&done, &format!("{name}: {}\n", told(&done.commands(), word)), is_json)
}

fn say(answer: &impl Serialize, text: &str, is_json: bool) -> Result<u8, Notice> {
    super::with_output(|out| match is_json {
        true => super::put_json(std::iter::once(answer), out),
        false => super::written(out.write_all(text.as_bytes())),
    })
}

/// How many commands something was done to, and which.
fn told(commands: &[u64], done: &str) -> String {
    let count = counted(u64::try_from(commands.len()).unwrap_or(u64::MAX), "command", "commands");
    let numbers: String = commands.iter().map(|number| format!(" #{number}")).collect();
    format!("{count} {done}{numbers}")
}

fn draw(projects: &[ProjectLine], look: &Look) -> String {
    let column = |name, is_number, rank, cell: &dyn Fn(&ProjectLine) -> String| Column {
        name,
        is_number,
        rank,
        cells: projects.iter().map(cell).collect(),
    };
    let some = |text: String| if text.is_empty() { look.dash().to_owned() } else { text };
    let numbers = |line: &ProjectLine| {
        let commands = line.commands();
        let first: Vec<String> = commands.iter().take(NUMBERS_MAX).map(|number| format!("#{number}")).collect();
        let more = commands.len().saturating_sub(NUMBERS_MAX);
        if more > 0 { format!("{} +{more}", first.join(" ")) } else { first.join(" ") }
    };
    let ports = |line: &ProjectLine| match line.ports[..] {
        [first, last] => format!("{first}-{last}"),
        _ => String::new(),
    };
    let mut columns = vec![
        column("PROJECT", false, 0, &|line| look.cut(&line.name, limits::PROJECT_NAME_BYTES.min(NAME_COLUMNS))),
        column("STATE", false, 0, &|line| {
            if line.state == "suspended" { "paused".to_owned() } else { line.state.clone() }
        }),
        column("COMMANDS", false, 1, &|line| some(numbers(line))),
        column("PORTS", true, 2, &|line| some(ports(line))),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "DIRECTORY", look);
    for (at, line) in projects.iter().enumerate() {
        for column in &columns {
            text += &column.padded(&column.cells[at]);
            text += "  ";
        }
        text += &look.cut(&line.dir, room);
        text.push('\n');
    }
    text
}

/// Numbers of commands in a line.
const NUMBERS_MAX: usize = 4;
/// Columns of a project's name.
const NAME_COLUMNS: usize = 24;
