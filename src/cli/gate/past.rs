//! The commands of the journals, as they were called, for rules: `rexec gate explain` and `replay`.
//!
//! Invariant: a value that the journal does not keep is not known to the rules either, unlike those of a command that
//! runs.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::{GateCall, gates, print, rules, variable};
use crate::cli::columns::{self, Column};
use crate::cli::explain::WORD_COLUMNS;
use crate::cli::log::found_something;
use crate::cli::project_file::project_of;
use crate::cli::run_reference::{RunReference, unreadable};
use crate::cli::sheet::Sheet;
use crate::cli::{put_json, told, when, with_output, written};
use crate::gate::{Action, Facts, Gate, Judged, Rule, shown_leaf};
use crate::history::{self, Query, RunBeginning, SessionHistory, milliseconds};
use crate::journal::record::{DAY_BYTES, timestamp};
use crate::script::Leaf;
use crate::text::agent_name::agent_name;
use crate::text::count::counted;
use crate::text::escape::escape_line;

/// How far back `replay` and `learn` read without `--since`.
const SINCE: &str = "14d";
/// The same, in days.
const SINCE_DAYS: u64 = 14;
/// The most commands that are shown to somebody who has no rules yet, and their columns.
const PREVIEWED_MAX: usize = 8;
const PREVIEW_COLUMNS: usize = 66;
/// The most commands that `replay` lists. Further ones are counted.
const LISTED_MAX: usize = 10_000;
/// Columns of a rule's name.
const RULE_COLUMNS: usize = 40;

pub(super) fn explain(call: &GateCall, word: &OsStr) -> Result<u8, Notice> {
    let reference = RunReference::of(word)?;
    let home = crate::cli::home()?;
    // Its usual code is that of a rule that asks.
    let failed = |notice: Notice| Notice::failed(notice.problem, &notice.hint);
    let run = reference.find(&home, &crate::cli::socket_path()?).map_err(failed)?;
    let past = PastCall::of(run.beginning().map_err(|error| unreadable(&home, &error))?);
    if past.run.start.is_cut() {
        told::tell("the journal keeps only the beginning of this command: the rest is not judged");
    }
    let project = project_of(&past.directory);
    let gates = gates(call.file.as_deref(), &past.directory)?;
    let judged = past.read_by(project, |leaves, facts| Judged::of_all(&gates, leaves, facts));
    print(&judged, call.is_json)
}

pub(super) fn replay(call: &GateCall) -> Result<u8, Notice> {
    let (before, after) = match &call.file {
        Some(file) => (rules(None)?, rules(Some(file))?),
        None => (Gate::default(), rules(None)?),
    };
    if call.file.is_none() && after.rules.is_empty() {
        let hint = "name a file with --rules; rexec gate pack git >git.toml makes one";
        return Err(Notice::failed("there are no rules of yours", hint));
    }
    let sheet = Sheet::standard();
    let past = Past::of(call, &sheet)?;
    let replay = Replay::of(&past, before, after)?;
    if replay.counts.commands + replay.counts.sandboxed == 0 {
        return Ok(found_something(false, call.is_json, &past.home));
    }
    with_output(|out| match call.is_json {
        true => put_json(replay.found.iter(), out),
        false => written(replay.write(&sheet, out)),
    })?;
    if replay.counts.unlisted > 0 {
        let unlisted = counted(replay.counts.unlisted, "command", "commands");
        told::tell(format_args!("{unlisted} more are not listed; name a later time with --since"));
    }
    Ok(if replay.found.is_empty() { exit_code::FAILURE } else { exit_code::SUCCESS })
}

/// The sentences on what rules would have asked about, for somebody who has none yet.
pub(in crate::cli) fn preview(gate: Gate) -> Result<String, Notice> {
    let past = Past::of(&GateCall::default(), &Sheet::standard())?;
    Ok(Replay::of(&past, Gate::default(), gate)?.preview())
}

/// The journals, and the commands in them that are meant.
pub(super) struct Past {
    pub(super) home: PathBuf,
    sessions: Vec<SessionHistory>,
    query: Query,
}

impl Past {
    pub(super) fn of(call: &GateCall, sheet: &Sheet) -> Result<Self, Notice> {
        let since = call.since.or_else(|| when::moment(SINCE, sheet.clock));
        let query = Query { agent: call.agent.clone(), since, ..Query::default() };
        let home = crate::cli::home()?;
        let sessions = history::sessions(&home).map_err(|error| unreadable(&home, &error))?;
        Ok(Self { home, sessions, query })
    }

    /// Each session, with what stands in front of the numbers of its commands.
    fn sessions(&self) -> impl Iterator<Item = (&SessionHistory, String)> {
        let prefix = |place: usize, name: &str| if place == 0 { String::new() } else { format!("{name}:") };
        self.sessions.iter().enumerate().map(move |(place, session)| (session, prefix(place, &session.name)))
    }

    /// Calls `each` with every command and its number, in no particular order.
    pub(super) fn for_each(&self, mut each: impl FnMut(PastCall, &str)) -> Result<(), Notice> {
        for (session, prefix) in self.sessions() {
            history::for_each_start(session, &self.query, |run| {
                let label = format!("{prefix}{}", run.start.card.seq);
                each(PastCall::of(run), &label);
            })
            .map_err(|error| unreadable(&self.home, &error))?;
        }
        Ok(())
    }

    /// Calls `each` with every command that has ended and its number, in no particular order.
    pub(super) fn for_each_ended(&self, mut each: impl FnMut(&history::Facts, String)) -> Result<(), Notice> {
        for (session, prefix) in self.sessions() {
            history::for_each_ended(session, &self.query, |run| each(run, format!("{prefix}{}", run.card.seq)))
                .map_err(|error| unreadable(&self.home, &error))?;
        }
        Ok(())
    }
}

/// The project of each directory.
#[derive(Debug, Default)]
pub(super) struct Projects(HashMap<PathBuf, Option<PathBuf>>);

impl Projects {
    pub(super) fn of(&mut self, directory: &Path) -> Option<&Path> {
        if !self.0.contains_key(directory) {
            self.0.insert(directory.to_owned(), project_of(directory).map(Path::to_owned));
        }
        self.0[directory].as_deref()
    }
}

/// A command of the past, as its caller called it.
pub(super) struct PastCall {
    pub(super) run: RunBeginning,
    words: Vec<Vec<u8>>,
    pub(super) directory: PathBuf,
}

impl PastCall {
    fn of(run: RunBeginning) -> Self {
        let directory = OsString::from_vec(run.start.directory()).into();
        Self { words: run.start.arguments(), directory, run }
    }

    /// What each of these gates says of it.
    pub(super) fn judged<'g, const GATES: usize>(
        &self,
        gates: [&'g Gate; GATES],
        project: Option<&Path>,
    ) -> [Judged<'g>; GATES] {
        self.read_by(project, |leaves, facts| {
            let first = leaves(gates[0]);
            gates.map(|gate| {
                let leaves = if gate.reads_like(gates[0]) { first.clone() } else { leaves(gate) };
                Judged::of(gate, leaves, facts)
            })
        })
    }

    /// Calls `judge` with what reads its leaves, and with what is known about it.
    fn read_by<T>(
        &self,
        project: Option<&Path>,
        judge: impl FnOnce(&dyn Fn(&Gate) -> Vec<Leaf>, &Facts<'_>) -> T,
    ) -> T {
        let kept = |name: &[u8]| {
            let kept = &self.run.environment.as_ref()?.set;
            Some(kept.get(std::str::from_utf8(name).ok()?)?.clone().into_bytes())
        };
        // Where the journal has no environment, the home was most likely this one.
        let home = kept(b"HOME").or_else(|| variable(b"HOME")).filter(|home| !home.is_empty());
        let value = |name: &[u8]| match name {
            b"HOME" => home.clone(),
            b"PWD" => Some(self.directory.as_os_str().as_bytes().to_vec()),
            _ => kept(name),
        };
        let start = &self.run.start;
        let agent = if start.card.agent.is_empty() { &start.card.whoami } else { &start.card.agent };
        let today = timestamp(SystemTime::now());
        let facts = Facts {
            agent: Some(agent),
            session: Some(start.card.session.as_str()).filter(|session| !session.is_empty()),
            directory: Some(self.directory.as_os_str().as_bytes()),
            project: project.map(|project| project.as_os_str().as_bytes()),
            home: home.as_deref(),
            processes: None,
            today: today.get(..DAY_BYTES),
        };
        judge(&|gate| gate.leaves_of_call(&self.words, &value), &facts)
    }
}

/// How many commands were replayed.
#[derive(Debug, Default)]
struct Counts {
    commands: u64,
    /// Those whose verdict differs, by what the later rules do with them.
    asks: u64,
    denies: u64,
    allows: u64,
    /// Those of which the journal lacks a part.
    cut: u64,
    sandboxed: u64,
    unlisted: u64,
}

/// All commands of the past, by earlier and later rules.
pub(super) struct Replay {
    before: Gate,
    after: Gate,
    projects: Projects,
    counts: Counts,
    found: Vec<ReplayedForm>,
}

/// A command on which the rules differ, as `--json` prints it.
#[derive(Debug, Serialize)]
struct ReplayedForm {
    run: String,
    #[serde(skip)]
    seq: u64,
    time: String,
    agent: String,
    dir: String,
    /// The program that the verdict is about.
    leaf: String,
    before: &'static str,
    #[serde(rename = "do")]
    after: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    why: String,
}

impl Replay {
    /// Judges the commands by both rules. Those on which they differ are found, the first one first.
    pub(super) fn of(past: &Past, before: Gate, after: Gate) -> Result<Self, Notice> {
        let (projects, counts) = (Projects::default(), Counts::default());
        let mut replay = Self { before, after, projects, counts, found: Vec::new() };
        past.for_each(|run, label| replay.add(&run, label))?;
        replay.found.sort_by(|one, other| (&one.time, one.seq).cmp(&(&other.time, other.seq)));
        Ok(replay)
    }

    fn add(&mut self, past: &PastCall, label: &str) {
        if past.run.start.card.sandbox.is_some() {
            self.counts.sandboxed += 1;
            return;
        }
        self.counts.commands += 1;
        self.counts.cut += u64::from(past.run.start.is_cut());
        let project = self.projects.of(&past.directory);
        let [before, after] = past.judged([&self.before, &self.after], project);
        let actions = (before.action(), after.action());
        if actions.0 == actions.1 {
            return;
        }
        match actions.1 {
            Action::Ask => self.counts.asks += 1,
            Action::Deny => self.counts.denies += 1,
            Action::Allow => self.counts.allows += 1,
        }
        if self.found.len() == LISTED_MAX {
            self.counts.unlisted += 1;
            return;
        }
        // Where the later rules allow all of it, what the earlier ones stopped tells more.
        let telling = if actions.1 == Action::Allow { &before } else { &after };
        let at = telling.strictest();
        let start = &past.run.start;
        self.found.push(ReplayedForm {
            run: label.to_owned(),
            seq: start.card.seq,
            time: start.card.time.clone(),
            agent: agent_name(&start.card.whoami, start.card.session_number, &start.card.role),
            dir: start.card.dir.clone(),
            leaf: at.map(|at| shown_leaf(&telling.leaves[at])).unwrap_or_default(),
            before: actions.0.word(),
            after: actions.1.word(),
            rule: at.and_then(|at| telling.verdicts[at].cause.rule()).map(ToString::to_string),
            why: telling.why(),
        });
    }

    fn write(&self, sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
        if !self.found.is_empty() {
            out.write_all(self.table(sheet).as_bytes())?;
        }
        out.write_all(self.summary().as_bytes())
    }

    /// The last of the listed commands, with the number of all.
    fn preview(&self) -> String {
        let all = counted(self.counts.commands, "command", "commands");
        let asked = self.counts.asks + self.counts.denies;
        match (self.counts.commands, asked) {
            (0, _) => return "The journal has no commands yet to try them on.\n".to_owned(),
            (_, 0) => return format!("Of {all} in the last {SINCE_DAYS} days, they would have asked about none.\n"),
            _ => {}
        }
        let mut text = format!("Of {all} in the last {SINCE_DAYS} days, they would have asked about {asked}:\n\n");
        let hidden = self.found.len().saturating_sub(PREVIEWED_MAX);
        for run in &self.found[hidden..] {
            text += &format!("  #{}  {}\n", run.run, escape_line(&run.leaf, PREVIEW_COLUMNS));
        }
        if asked > PREVIEWED_MAX as u64 {
            text += &format!("  and {} earlier ones\n", asked - PREVIEWED_MAX as u64);
        }
        text + "\n"
    }

    /// How many of the listed commands a rule is the reason for.
    pub(super) fn count_of(&self, rule: &Rule) -> u64 {
        let rule = rule.to_string();
        self.found.iter().filter(|run| run.rule.as_ref() == Some(&rule)).count() as u64
    }

    /// The commands on which the rules differ, in numbers.
    pub(super) fn summary(&self) -> String {
        let counts = &self.counts;
        let differ = counts.denies + counts.asks + counts.allows;
        let parts = [(counts.denies, Action::Deny), (counts.asks, Action::Ask), (counts.allows, Action::Allow)];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts: Vec<String> = parts.map(|(count, action)| format!("{count} {}", action.word())).collect();
        let all = counted(counts.commands, "command", "commands");
        let mut text = match differ {
            0 => format!("of {all}, none is judged in another way\n"),
            1 => format!("of {all}, 1 is judged in another way: {}\n", parts.join(", ")),
            _ => format!("of {all}, {differ} are judged in another way: {}\n", parts.join(", ")),
        };
        if counts.cut > 0 {
            let cut = counted(counts.cut, "command", "commands");
            text += &format!("only the beginning is kept, and was judged, of {cut}\n");
        }
        if counts.sandboxed > 0 {
            let sandboxed = counted(counts.sandboxed, "command", "commands");
            text += &format!("left out, because no rule reaches into a sandbox: {sandboxed}\n");
        }
        text
    }

    fn table(&self, sheet: &Sheet) -> String {
        let look = &sheet.look;
        let moment = |run: &ReplayedForm| {
            let local = milliseconds(&run.time).and_then(|at| sheet.clock.local(at));
            local.map(|local| format!("{} {}", when::day_shown(local), when::time_shown(local))).unwrap_or_default()
        };
        let column = |name, rank, cell: &dyn Fn(&ReplayedForm) -> String| Column {
            name,
            is_number: false,
            rank,
            cells: self.found.iter().map(cell).collect(),
        };
        let rule = |run: &ReplayedForm| run.rule.as_deref().map_or_else(|| look.dash().to_owned(), escaped);
        let mut columns = vec![
            column("RUN", 0, &|run| format!("#{}", run.run)),
            column("TIME", 3, &moment),
            column("AGENT", 2, &|run| escaped(&run.agent)),
            column("BEFORE", 0, &|run| run.before.to_owned()),
            column("AFTER", 0, &|run| run.after.to_owned()),
            column("RULE", 1, &|run| look.cut(&rule(run), RULE_COLUMNS)),
        ];
        let room = columns::fit(&mut columns, look);
        let mut text = columns::head(&columns, "COMMAND", look);
        for (at, run) in self.found.iter().enumerate() {
            let cells: Vec<&str> = columns.iter().map(|column| column.cells[at].as_str()).collect();
            text += &cells.join("  ");
            text += "  ";
            text += look.cut(&escaped(&run.leaf), room).trim_end();
            text.push('\n');
        }
        text
    }
}

fn escaped(text: &str) -> String {
    escape_line(text, WORD_COLUMNS)
}
