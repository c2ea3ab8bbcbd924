//! `rexec projects`: the project sessions, one per line. They are paused, resumed and ended as a whole.

use std::io::Write;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::columns::{self, Column};
use super::host_calls::HostCalls;
use super::look::Look;
use super::verb::{Call, Given, Group, NO_HOST, Opt, Verb, Words, json};
use super::{quoted, service};
use crate::front::projects::is_project_id;
use crate::front::rpc::methods::method;
use crate::front::rpc::projects::{ListedSession, SessionParams};
use crate::limits;
use crate::text::count::counted;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "projects",
    group: Group::Live,
    summary: "show projects; pause, resume or end all commands of one",
    text: "\
The first command in a git project makes a project session for it, and a
program can define others (rexec help protocol). Each has one line: its name,
its state, its commands that run or left something running, its ports, and its
directory. Definitions are kept for the next host. What a program of yours has
defined also gives its variables and ports to agents' commands that lack them.

PROJECT is a name, an identifier (p1), or a directory with a slash. A word
that may mean several is refused. Commands that come into a paused project
wait until it is resumed; those of a sandboxed agent do not.
",
    codes: &[(1, "there is no such project, or there are several"), NO_HOST],
    examples: &["rexec projects", "rexec projects --pause shop", "rexec log --cwd ~/shop"],
    call: &Call::<ProjectsCall> {
        options: &[
            Opt::value(
                "--pause PROJECT",
                |q, v| q.change(Change::Pause, v),
                "pause its commands, also those that come",
            ),
            Opt::value("--resume PROJECT", |q, v| q.change(Change::Resume, v), "let them go on"),
            Opt::value(
                "--end PROJECT",
                |q, v| q.change(Change::End, v),
                "end its commands, and forget the project session",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |ProjectsCall { change: changed, is_json }| {
            let mut calls = HostCalls::connect(&super::socket_path()?)?;
            match changed {
                Some((method, project)) => change(method, &project, is_json, &mut calls),
                None => list(is_json, &mut calls),
            }
        },
    },
};

#[derive(Default)]
struct ProjectsCall {
    /// What to do with which project.
    change: Option<(Change, String)>,
    is_json: bool,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Pause,
    Resume,
    End,
}

impl ProjectsCall {
    fn change(&mut self, change: Change, given: &mut Given<'_>) {
        if let Some((_, before)) = self.change.replace((change, given.text())) {
            given.refuse(VERB.too_much(&before));
        }
    }
}

/// Printed if there is none.
const NOTHING: &str = "no command has run in a project\n";

/// A line of `--json`. It has a `shell` without one, too.
#[derive(Debug, Serialize)]
struct ProjectLine<'a> {
    #[serde(flatten)]
    project: &'a ListedSession,
    #[serde(rename = "shell", skip_serializing_if = "Option::is_some")]
    no_shell: &'a Option<String>,
}

impl<'a> ProjectLine<'a> {
    fn of(project: &'a ListedSession) -> Self {
        Self { project, no_shell: &project.shell }
    }
}

/// Its running commands, and the ended ones that left something running.
fn commands(project: &ListedSession) -> Vec<u64> {
    let mut commands: Vec<u64> = project.runs.iter().chain(&project.background).copied().collect();
    commands.sort_unstable();
    commands.dedup();
    commands
}

fn list(is_json: bool, calls: &mut HostCalls) -> Result<u8, Notice> {
    let sessions = service::projects(calls)?;
    super::with_output(|out| {
        if is_json {
            return super::put_json(sessions.iter().map(ProjectLine::of), out);
        }
        let text = if sessions.is_empty() { NOTHING.to_owned() } else { draw(&sessions, &Look::of_output()) };
        super::written(out.write_all(text.as_bytes()))
    })
}

/// Pauses, resumes or ends a project session.
fn change(change: Change, project: &str, is_json: bool, calls: &mut HostCalls) -> Result<u8, Notice> {
    let known = service::projects(calls)?;
    let meant = meant(project, &known)?;
    let params = SessionParams { session: meant.session.clone() };
    let (done, word) = match change {
        Change::Pause => (calls.call::<method::SuspendSession>(&params)?, "paused"),
        Change::Resume => (calls.call::<method::ResumeSession>(&params)?, "resumed"),
        Change::End => {
            let done = calls.call::<method::DestroySession>(&params)?;
            return say(&done, &format!("{}: {}\n", shown(&meant.name), told(&done.ended, "ended")), is_json);
        }
    };
    say(&ProjectLine::of(&done), &format!("{}: {}\n", shown(&done.name), told(&commands(&done), word)), is_json)
}

/// A project's name. An older host may have taken it from any directory.
fn shown(name: &str) -> String {
    escape_line(name, limits::PROJECT_NAME_BYTES)
}

/// The project with this identifier, name or directory. An ambiguous word means none.
fn meant<'a>(project: &str, known: &'a [ListedSession]) -> Result<&'a ListedSession, Notice> {
    let is_path = project.contains('/') || project == ".";
    // The file system is asked only if the text names no known directory: one may be on a server that does not answer.
    let spelled = if is_path { std::path::absolute(project).ok() } else { None };
    let is_known = |dir: &PathBuf| known.iter().any(|line| Path::new(&line.dir) == dir);
    let dir = spelled.map(|dir| if is_known(&dir) { dir } else { dir.canonicalize().unwrap_or(dir) });
    // A directory may have the name of an identifier.
    let is_called = |line: &ListedSession| {
        is_project_id(project) && Path::new(&line.dir).file_name().is_some_and(|name| name == project)
    };
    let is_meant = |line: &&ListedSession| {
        line.session == project
            || line.name == project
            || line.dir == project
            || dir.as_deref() == Some(Path::new(&line.dir))
            || is_called(line)
    };
    let found: Vec<&ListedSession> = known.iter().filter(is_meant).collect();
    match found[..] {
        [only] => Ok(only),
        [] => {
            let problem = format!("there is no project {}", quoted(project));
            Err(Notice::failed(problem, "rexec projects shows their names and directories"))
        }
        _ => {
            let them = found.iter().map(|line| format!("{} {} in {}", line.session, line.name, line.dir));
            let them = them.collect::<Vec<_>>().join(", ");
            let problem = format!("{} may mean several projects: {them}", quoted(project));
            Err(Notice::failed(problem, "give the directory of one of them"))
        }
    }
}

fn say(answer: &impl Serialize, text: &str, is_json: bool) -> Result<u8, Notice> {
    super::with_output(|out| match is_json {
        true => super::put_json(std::iter::once(answer), out),
        false => super::written(out.write_all(text.as_bytes())),
    })
}

/// The number of affected commands, and their own numbers.
fn told(commands: &[u64], done: &str) -> String {
    let count = counted(u64::try_from(commands.len()).unwrap_or(u64::MAX), "command", "commands");
    let numbers: String = commands.iter().map(|number| format!(" #{number}")).collect();
    format!("{count} {done}{numbers}")
}

fn draw(projects: &[ListedSession], look: &Look) -> String {
    let column = |name, is_number, rank, cell: &dyn Fn(&ListedSession) -> String| Column {
        name,
        is_number,
        rank,
        cells: projects.iter().map(cell).collect(),
    };
    let some = |text: String| if text.is_empty() { look.dash().to_owned() } else { text };
    let numbers = |line: &ListedSession| {
        let commands = commands(line);
        let first: Vec<String> = commands.iter().take(NUMBERS_MAX).map(|number| format!("#{number}")).collect();
        let more = commands.len().saturating_sub(NUMBERS_MAX);
        if more > 0 { format!("{} +{more}", first.join(" ")) } else { first.join(" ") }
    };
    let ports = |line: &ListedSession| match line.ports[..] {
        [first, last] => format!("{first}-{last}"),
        _ => String::new(),
    };
    let mut columns = vec![
        column("PROJECT", false, 0, &|line| look.cut(&line.name, limits::PROJECT_NAME_BYTES.min(NAME_COLUMNS))),
        column("STATE", false, 0, &|line| {
            if line.state == "suspended" { "paused".to_owned() } else { line.state.to_string() }
        }),
        column("COMMANDS", false, 1, &|line| some(numbers(line))),
        column("PORTS", true, 2, &|line| some(ports(line))),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "DIRECTORY", look);
    for (at, line) in projects.iter().enumerate() {
        for column in &columns {
            text += &column.cells[at];
            text += "  ";
        }
        text += &look.cut(&line.dir, room);
        text.push('\n');
    }
    text
}

/// The most command numbers in a line.
const NUMBERS_MAX: usize = 4;
/// Columns of a project's name.
const NAME_COLUMNS: usize = 24;
