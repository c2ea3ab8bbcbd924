//! The table of `rexec ps`. Each command has one line, whatever its texts contain.
//!
//! Invariant: no line is wider than the terminal. If it is narrow, columns are left out, the least useful first.

use std::path::Path;

use super::measured::{Measured, RunProcess};
use super::{RunState, first_line};
use crate::cli::columns::{self, Column, LAST_COLUMNS_MIN};
use crate::cli::look::{Look, columns_of};
use crate::journal::entry_words::ASKS;
use crate::text::count::counted;
use crate::text::place::place;
use crate::text::prompt::quoted;

/// Columns of an agent's name.
pub(super) const AGENT_COLUMNS: usize = 12;
/// Columns of a directory. A longer one is cut at the start.
const DIR_COLUMNS: usize = 24;
/// Columns of a directory's name that are examined.
const DIR_CHARS_MAX: usize = 4_096;
/// Columns of a prompt. The rest is cut.
const PROMPT_COLUMNS: usize = 40;

pub(super) fn draw(runs: &[Measured], is_verbose: bool, look: &Look) -> String {
    let mut columns = columns_of_runs(runs, look);
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "COMMAND", look);
    for (at, run) in runs.iter().enumerate() {
        for column in &columns {
            let cell = &column.cells[at];
            text += &if column.name == "STATE" { look.coloured(colour(run.listed.state), cell) } else { cell.clone() };
            text += "  ";
        }
        text += &command(run, room, look);
        text.push('\n');
        if is_verbose {
            run.processes.iter().for_each(|process| text += &process_line(process, look));
        }
    }
    text
}

fn columns_of_runs(runs: &[Measured], look: &Look) -> Vec<Column> {
    let home = std::env::var("HOME").unwrap_or_default();
    let column = |name, is_number, rank, cell: &dyn Fn(&Measured) -> String| Column {
        name,
        is_number,
        rank,
        cells: runs.iter().map(cell).collect(),
    };
    let ports = |run: &Measured| match &run.ports[..] {
        [] => look.dash().to_owned(),
        [port] => port.to_string(),
        [port, more @ ..] => format!("{port}+{}", more.len()),
    };
    vec![
        column("#", true, 0, &|run| run.listed.card.seq.to_string()),
        column("AGENT", false, 1, &|run| look.cut(&run.listed.card.agent_name(), AGENT_COLUMNS)),
        column("DIR", false, 2, &|run| directory_cell(&run.listed.card.dir, &home, look)),
        column("STATE", false, 0, &|run| state(run.listed.state, look)),
        column("TIME", true, 3, &|run| clock(run.listed.age_ms)),
        column("CPU", true, 4, &|run| format!("{}%", run.cpu_percent)),
        column("RSS", true, 5, &|run| memory(run.rss_bytes)),
        column("PORT", true, 3, &ports),
    ]
}

/// The word for a state. A command that waits for a person is marked.
fn state(state: RunState, look: &Look) -> String {
    match state {
        RunState::Waiting => format!("{} {}", state.word(), look.enter()),
        RunState::Asks => format!("{} {ASKS}", state.word()),
        other => other.word().to_owned(),
    }
}

fn colour(state: RunState) -> &'static str {
    match state {
        RunState::Paused | RunState::Waiting | RunState::Asks => "33",
        RunState::Stopping => "31",
        RunState::Left | RunState::Queued => "38;5;244",
        RunState::Running | RunState::Unknown => "0",
    }
}

/// The command's first line and other known facts, in this many columns.
fn command(run: &Measured, room: usize, look: &Look) -> String {
    let all = &run.listed.card.command;
    let first = first_line(all);
    let mut notes = String::new();
    let lines = all.trim_end().lines().count();
    if lines > 1 {
        notes +=
            &format!(" {} +{}", look.enter(), counted(u64::try_from(lines - 1).unwrap_or(u64::MAX), "line", "lines"));
    }
    if run.listed.state == RunState::Left {
        let processes = u64::try_from(run.processes.len()).unwrap_or(u64::MAX);
        notes += &format!(" +{}", counted(processes, "process", "processes"));
    }
    if let Some(held) = &run.listed.held {
        notes += &format!(" · may it run? {}", look.cut(held, PROMPT_COLUMNS));
    }
    if let Some(prompt) = run.listed.prompt.as_ref().filter(|prompt| !prompt.trim().is_empty()) {
        notes += &format!("   {}", quoted(&look.cut(prompt.trim(), PROMPT_COLUMNS)));
    }
    if let Some(sandbox) = &run.listed.card.sandbox {
        notes += &format!(" · in its sandbox ({})", look.cut(sandbox, PROMPT_COLUMNS));
    }
    let beside = room.saturating_sub(columns_of(&notes));
    if beside < LAST_COLUMNS_MIN / 2 {
        return look.cut(&(first.to_owned() + &notes), room);
    }
    look.cut(first.trim_end(), beside) + &look.dim(&notes)
}

/// The line of a process, below its command.
fn process_line(process: &RunProcess, look: &Look) -> String {
    let ports: String = process.ports.iter().map(|port| format!("  :{port}")).collect();
    let line = format!("{:>14}  {:<16} {:>6}{ports}", process.pid, process.program, memory(process.rss_bytes));
    look.dim(&look.cut(&line, look.columns)) + "\n"
}

/// The end of a directory's name.
pub(super) fn directory_cell(dir: &str, home: &str, look: &Look) -> String {
    end_of(&look.cut(&directory(dir, home), DIR_CHARS_MAX), look.ellipsis())
}

/// A directory's name, from the top of its project (the directory with `.git`) if it is in one.
fn directory(dir: &str, home: &str) -> String {
    let depth = Path::new(dir).ancestors().position(|above| above.join(".git").exists());
    place(dir, depth, home)
}

/// The end of a directory's name that fits its column, with whole parts if the last one fits.
fn end_of(dir: &str, ellipsis: &str) -> String {
    if columns_of(dir) <= DIR_COLUMNS {
        return dir.to_owned();
    }
    let room = DIR_COLUMNS - columns_of(ellipsis);
    let ends = || dir.char_indices().map(|(at, _)| &dir[at..]).filter(|end| columns_of(end) <= room);
    let end = ends().find(|end| end.starts_with('/')).or_else(|| ends().next());
    format!("{ellipsis}{}", end.unwrap_or_default())
}

/// Milliseconds as `0:09`, `12:03` or `2:05:07`.
pub(in crate::cli) fn clock(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Bytes as `812 K`, `410 M` or `1.2 G`.
fn memory(bytes: u64) -> String {
    let (kib, mib) = (bytes >> 10, bytes >> 20);
    match mib {
        0 => format!("{kib} K"),
        1..1_000 => format!("{mib} M"),
        _ => format!("{}.{} G", mib / 1_024, mib % 1_024 * 10 / 1_024),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([9_999, 723_000, 7_507_000].map(clock), ["0:09", "12:03", "2:05:07"]);
        assert_eq!([0, 900 << 10, 410 << 20, 1_230 << 20].map(memory), ["0 K", "900 K", "410 M", "1.2 G"]);
        assert_eq!(end_of("shop/api", "…"), "shop/api");
        assert_eq!(end_of("a-long-project/packages/web/src", "…"), "…/packages/web/src");
        assert_eq!(end_of(&"日".repeat(40), "…"), format!("…{}", "日".repeat(11)));
    }
}
