//! `rexec stats`: the commands of each agent, their durations, and their failures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::columns::{self, Column};
use super::log::found_something;
use super::look::columns_of;
use super::run_reference::unreadable;
use super::sheet::{self, Sheet, Tint, padded};
use super::told::tell;
use super::verb::{Call, Group, Opt, Verb, Words, json};
use super::when;
use crate::history::{self, Facts, Query, RunOutcome};
use crate::text::agent_name::agent_name;
use crate::text::banner::duration;
use crate::text::count;
use crate::text::name::name_of;

pub(super) const VERB: Verb = Verb {
    term: "stats",
    group: Group::Past,
    summary: "count what each agent ran: commands, failures, time, output",
    text: "\
Counts commands that have ended, from all journals. Below the table stand the
slowest commands and those that failed most often. OUTPUT is what the commands
wrote. SAVED is how much less of it their callers got: escape sequences,
redraws and what a budget left out. MASKED is how many secrets the journal
masked.
",
    codes: &[(1, "no command has ended")],
    examples: &["rexec stats --today", "rexec stats --since 7d --json"],
    call: &Call::<StatsCall> {
        options: &[
            Opt::flag(
                "--today",
                |q| q.query.since = when::moment("today", sheet::clock()),
                "commands that began today, by your clock",
            ),
            Opt::value(
                "--since TIME",
                |q, v| q.query.since = v.moment(),
                "commands that began then or later, as in rexec log",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |StatsCall { query, is_json }| {
            let home = super::home()?;
            let stats = Stats::read(&home, &query)?;
            let is_empty = stats.agents.is_empty();
            super::with_output(|out| {
                if is_json {
                    return super::put_json(stats.lines(), out);
                }
                super::written(stats.write(&Sheet::standard(), out))
            })?;
            Ok(found_something(!is_empty, is_json, &home))
        },
    },
};

#[derive(Default)]
struct StatsCall {
    query: Query,
    is_json: bool,
}

/// The number of slowest commands, and of those that failed most often.
const LISTED: usize = 5;
/// The most different commands whose failures are counted. Beyond it, new ones are ignored.
const COMMANDS_MAX: usize = 100_000;
/// The bytes of a command that tell it from others.
const COMMAND_BYTES: usize = 200;
/// Columns of an agent's name.
const NAME_COLUMNS: usize = 14;

/// The numbers of an agent.
#[derive(Debug, Clone, Default, Serialize)]
struct AgentStats {
    commands: u64,
    failed: u64,
    lost: u64,
    duration_ms: u64,
    bytes: u64,
    /// The bytes of that output which the callers got, and the saved rest. If unknown, they got all.
    received: u64,
    saved: u64,
    /// Secrets that were masked for callers, and in the journal.
    hidden: u64,
    secrets: u64,
}

impl AgentStats {
    /// Adds the numbers of another agent.
    fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.failed += other.failed;
        self.duration_ms += other.duration_ms;
        self.bytes += other.bytes;
        self.saved += other.saved;
        self.secrets += other.secrets;
    }
}

#[derive(Debug, Serialize)]
struct StatsLine<'a> {
    agent: &'a str,
    #[serde(flatten)]
    stats: &'a AgentStats,
}

/// A run that is listed.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlowRun {
    duration_ms: Reverse<u64>,
    run: String,
    agent: String,
    command: String,
}

#[derive(Debug, Default)]
struct Stats {
    agents: BTreeMap<String, AgentStats>,
    slowest: Vec<SlowRun>,
    /// The numbers of a command's runs, and of its failures.
    commands: HashMap<String, (u64, u64)>,
    is_overfull: bool,
}

impl Stats {
    fn read(home: &Path, query: &Query) -> Result<Self, Notice> {
        let cannot_read = |error: io::Error| unreadable(home, &error);
        let mut stats = Self::default();
        for (place, session) in history::sessions(home).map_err(cannot_read)?.iter().enumerate() {
            let prefix = if place == 0 { String::new() } else { format!("{}:", session.name) };
            history::for_each_ended(session, query, |run| stats.add(run, &prefix)).map_err(cannot_read)?;
        }
        if stats.is_overfull {
            tell(format_args!("only the first {COMMANDS_MAX} different commands were compared by their failures"));
        }
        Ok(stats)
    }

    fn add(&mut self, run: &Facts, prefix: &str) {
        // One row for all sessions of an agent.
        let name = agent_name(&run.card.whoami, 1, "");
        let agent = self.agents.entry(name.clone()).or_default();
        agent.commands += 1;
        agent.failed += u64::from(run.has_failed());
        agent.lost += u64::from(run.outcome == RunOutcome::Lost);
        agent.duration_ms += run.duration_ms;
        agent.bytes += run.bytes;
        let received = run.received.unwrap_or(run.bytes);
        agent.received += received;
        agent.saved += run.bytes.saturating_sub(received);
        agent.hidden += run.hidden;
        agent.secrets += run.secrets;
        let chars = run.card.command.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = chars.take_while(|end| *end <= COMMAND_BYTES).last().unwrap_or(0);
        let command = &run.card.command[..end];
        let has_room = self.commands.len() < COMMANDS_MAX;
        match self.commands.get_mut(command) {
            Some(counts) => *counts = (counts.0 + 1, counts.1 + u64::from(run.has_failed())),
            None if has_room => {
                self.commands.insert(command.to_owned(), (1, u64::from(run.has_failed())));
            }
            None => self.is_overfull = true,
        }
        let is_slow =
            self.slowest.len() < LISTED || self.slowest.last().is_some_and(|last| last.duration_ms.0 < run.duration_ms);
        if is_slow && run.duration_ms > 0 {
            let (agent, command) = (name, command.to_owned());
            let run = SlowRun {
                duration_ms: Reverse(run.duration_ms),
                run: format!("{prefix}{}", run.card.seq),
                agent,
                command,
            };
            self.slowest.push(run);
            self.slowest.sort();
            self.slowest.truncate(LISTED);
        }
    }

    fn lines(&self) -> impl Iterator<Item = StatsLine<'_>> {
        self.agents.iter().map(|(agent, stats)| StatsLine { agent, stats })
    }

    fn write(&self, sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
        if self.agents.is_empty() {
            return writeln!(out, "no command has ended");
        }
        let mut total = AgentStats::default();
        self.agents.values().for_each(|stats| total.add(stats));
        let mut agents: Vec<_> = self.agents.iter().map(|(name, stats)| (name.as_str(), stats)).collect();
        agents.extend((self.agents.len() > 1).then_some(("all", &total)));
        let (head, rows) = columns::whole_table(columns_of_agents(&agents), &sheet.look);
        out.write_all(head.as_bytes())?;
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        self.write_slowest(sheet, out)?;
        let mut failing: Vec<_> = self.commands.iter().filter(|(_, (_, failed))| *failed > 0).collect();
        failing.sort_by_key(|(command, (runs, failed))| (Reverse(*failed), *runs, command.as_str()));
        if !failing.is_empty() {
            writeln!(out, "\n{}", sheet.tinted(Tint::Dim, "failed most often"))?;
        }
        for (command, (runs, failed)) in failing.into_iter().take(LISTED) {
            write_fitting(format!("{:>12}  ", format!("{failed} of {runs}")), command, sheet, out)?;
        }
        Ok(())
    }

    fn write_slowest(&self, sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
        if self.slowest.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", sheet.tinted(Tint::Dim, "slowest"))?;
        let names = self.slowest.iter().map(|slow| (name_of(&slow.agent, NAME_COLUMNS), format!("#{}", slow.run)));
        let names: Vec<_> = names.collect();
        let widest = |of: fn(&(String, String)) -> &String| names.iter().map(|names| columns_of(of(names))).max();
        let (agents, runs) = (widest(|names| &names.0).unwrap_or(0), widest(|names| &names.1).unwrap_or(0));
        for (slow, (agent, run)) in self.slowest.iter().zip(&names) {
            let (took, agent, run) = (duration(slow.duration_ms.0), padded(agent, agents), padded(run, runs));
            write_fitting(format!("{took:>12}  {agent}  {run}  "), &slow.command, sheet, out)?;
        }
        Ok(())
    }
}

fn columns_of_agents(agents: &[(&str, &AgentStats)]) -> Vec<Column> {
    let column = |name, rank, cell: &dyn Fn(&AgentStats) -> String| Column {
        name,
        is_number: true,
        rank,
        cells: agents.iter().map(|(_, stats)| cell(stats)).collect(),
    };
    let names = agents.iter().map(|(name, _)| name_of(name, NAME_COLUMNS)).collect();
    vec![
        Column { name: "AGENT", is_number: false, rank: 0, cells: names },
        column("COMMANDS", 0, &|stats| stats.commands.to_string()),
        column("FAILED", 1, &|stats| stats.failed.to_string()),
        column("TIME", 2, &|stats| duration(stats.duration_ms)),
        column("OUTPUT", 3, &|stats| count::size(stats.bytes)),
        column("SAVED", 4, &|stats| count::size(stats.saved)),
        column("MASKED", 5, &|stats| stats.secrets.to_string()),
    ]
}

/// Writes a line that ends with the part of a command that fits.
fn write_fitting(front: String, command: &str, sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
    let room = sheet.columns.saturating_sub(columns_of(&front) + 1).max(8);
    writeln!(out, "{front}{}", sheet.command(command, room))
}
