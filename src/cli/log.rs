//! `rexec log`: the commands that ran, oldest first, with the newest at the end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;
use time::PrimitiveDateTime;

use super::look::columns_of;
use super::output::VerbOutput;
use super::run_reference::unreadable;
use super::sheet::{Sheet, Tint, padded};
use super::told::tell;
use super::verb::{Call, Given, Group, Opt, Verb, Words, json};
use super::when;
use crate::core::end::Failure;
use crate::history::{self, Facts, Query, RunOutcome, SessionHistory};
use crate::text::banner::{duration, signal_name};
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::name::name_of;
use crate::text::plain_path::plain_path;

pub(super) const VERB: Verb = Verb {
    term: "log",
    group: Group::Past,
    summary: "list the commands that ran, the newest at the end",
    text: "\
Reads all journals, also those of the tool before this one, and needs no host.
Each command has one line: number, time, caller, the directory's name, how it
ended, how long it took, and text. A line above says which session the numbers
are of. Several options narrow the list together.

TIME is 1h, 2d, 30s (so long ago), today, yesterday, 09:40, 2026-05-21,
2026-05-21T09:40 or RFC 3339. Times are those of your clock.
",
    codes: &[(1, "no command is like that")],
    examples: &["rexec log --agent codex --failed --since 1h", "rexec log -g ECONNREFUSED --any-output -n all"],
    call: &Call::<LogCall> {
        options: &[
            Opt::value(
                "--agent AGENT",
                |q, v| q.query.agent = v.agent(),
                "commands of this agent, by its name or the console's: codex, claude~2",
            ),
            Opt::value(
                "--session ID",
                |q, v| q.query.session = v.filled(SESSIONS),
                "commands of the agent's session whose name begins so",
            ),
            Opt::flag("--failed", |q| q.query.is_failed = true, "commands that failed, or whose end was lost"),
            Opt::flag("--running", |q| q.query.is_running = true, "commands that run"),
            Opt::flag(
                "--destroyed",
                |q| q.query.is_destroyer = true,
                "commands that destroyed files, or were about to",
            ),
            Opt::value("--since TIME", |q, v| q.query.since = v.moment(), "commands that began then or later"),
            Opt::value("--until TIME", |q, v| q.query.until = v.moment(), "commands that began before then"),
            Opt::value(
                "--cwd DIR",
                |q, v| set_dir(&mut q.query, v),
                "commands in DIR or below it, or in any directory of that name",
            ),
            Opt::value(
                "--slow SPAN",
                |q, v| q.query.slow_ms = v.span().map(when::whole_ms),
                "commands that took this long or longer, as in 30s",
            ),
            Opt::value(
                "--exit N",
                |q, v| q.query.exit = v.parsed("a code from 0 to 255", |text| text.parse().ok()),
                "commands that ended with code N",
            ),
            Opt::value(
                "-g, --grep TEXT",
                |q, v| q.query.text = Some(v.text()),
                "commands with this text in them, to the letter",
            ),
            Opt::flag(
                "--any-output",
                |q| q.query.is_any_output = true,
                "with -g: also commands with the text in their output",
            ),
            Opt::value(
                "-n, --number N",
                |q, v| q.count = v.parsed("a number of commands, or all", count),
                "the N newest (default 20); all lists all",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::NONE,
        run: |call| {
            if call.query.is_any_output && call.query.text.is_none() {
                return Err(VERB.missing("-g TEXT with --any-output"));
            }
            log(&super::home()?, &call, &Sheet::standard(), &mut VerbOutput::standard())
        },
    },
};

/// The default number of commands.
const DEFAULT: usize = 20;
/// The most columns of an agent's name, and of a directory's.
const NAME_COLUMNS: usize = 12;
/// The most columns of a command's result.
const RESULT_COLUMNS: usize = 10;
/// The fewest columns of a command, however narrow the terminal is.
const COMMAND_COLUMNS_MIN: usize = 8;
/// The columns that a command should have. With fewer, a cell before it is left out.
const COMMAND_COLUMNS_WANTED: usize = 16;
/// The most columns of a sandbox.
const SANDBOX_COLUMNS: usize = 40;

#[derive(Default)]
struct LogCall {
    query: Query,
    /// The number of commands to list.
    count: Option<usize>,
    is_json: bool,
}

/// The form of `--session`.
const SESSIONS: &str = "the name of an agent's session or its beginning; rexec show N has a command's";

/// A number of rows, or all.
pub(super) fn count(text: &str) -> Option<usize> {
    if text == "all" { Some(usize::MAX) } else { text.parse().ok() }
}

/// A directory as a person names it: a path, or one name of a path.
fn set_dir(query: &mut Query, given: &mut Given<'_>) {
    let Some(given) = given.filled("a directory, as in --cwd .") else { return };
    let dir = plain_path(std::env::current_dir().unwrap_or_default(), Path::new(&given));
    let is_name = !given.contains('/') && ![".", ".."].contains(&given.as_str());
    query.dir_name = is_name.then_some(given);
    query.dir = Some(dir);
}

fn log(home: &Path, call: &LogCall, sheet: &Sheet, out: &mut impl Write) -> Result<u8, Notice> {
    let cannot_read = |error: io::Error| unreadable(home, &error);
    let sessions = history::sessions(home).map_err(cannot_read)?;
    let (mut found, mut left, mut unreadable_lines) = (Vec::new(), call.count.unwrap_or(DEFAULT), 0);
    let mut has_more = false;
    for session in &sessions {
        // One more than shown tells that there are more.
        let mut result = history::search(session, &call.query, left.saturating_add(1)).map_err(cannot_read)?;
        unreadable_lines += result.unreadable;
        has_more |= result.runs.len() > left;
        result.runs.truncate(left);
        left -= result.runs.len();
        found.push((session, result.runs));
        if has_more {
            break;
        }
    }
    let oldest_first = found.iter().rev().flat_map(|(session, runs)| runs.iter().rev().map(move |run| (*session, run)));
    if call.is_json {
        super::put_json(oldest_first.map(|(session, run)| LogLine::of(session, run)), out)?;
    } else {
        super::written(write_rows(oldest_first, sheet, out))?;
    }
    super::written(out.flush())?;
    let shown: usize = found.iter().map(|(_, runs)| runs.len()).sum();
    if has_more && !call.is_json {
        let newest = if shown == 1 { "the newest one is".to_owned() } else { format!("the newest {shown} are") };
        tell(format_args!("{newest} shown; -n N shows more, -n all shows all"));
    }
    if unreadable_lines > 0 {
        tell(counted(
            unreadable_lines,
            "line is not a record: it is left out",
            "lines are not records: they are left out",
        ));
    }
    Ok(found_something(shown > 0, call.is_json, home))
}

/// The exit code of a verb that lists. Prints a message if nothing was found; for `--json` the code is enough.
pub(super) fn found_something(is_found: bool, is_json: bool, home: &Path) -> u8 {
    if !is_found && !is_json {
        tell(format_args!("nothing found in the journals in {}", home.display()));
    }
    if is_found { exit_code::SUCCESS } else { exit_code::FAILURE }
}

/// The cells of a row between its number and its command: time, caller, directory, result, and duration.
fn cells(session: &SessionHistory, run: &Facts, sheet: &Sheet) -> ([String; CELLS], Tint) {
    let (result, tint) = outcome(run, session.is_alive());
    let took = match run.outcome {
        RunOutcome::Ended => duration(run.duration_ms),
        RunOutcome::Open if session.is_alive() => history::milliseconds(&run.card.time)
            .and_then(|at| u64::try_from(sheet.clock.now - at).ok())
            .map(duration)
            .unwrap_or_default(),
        _ => String::new(),
    };
    let (agent, dir) =
        (name_of(&run.card.agent_name(), NAME_COLUMNS), escape_line(&dir_name(&run.card.dir), NAME_COLUMNS));
    let time = local(run, sheet).map(when::time_shown).unwrap_or_default();
    ([time, agent, dir, escape_line(&result, RESULT_COLUMNS), took], tint)
}

/// The number of cells before the command.
const CELLS: usize = 5;
/// The cells that are left out where the terminal is too narrow, the least useful first.
const LEFT_OUT: [usize; 3] = [TOOK, 0, 2];
/// The cell with the end of a command.
const RESULT: usize = 3;
/// The cell with the duration of a command.
const TOOK: usize = 4;
/// Columns of a number and the gap after it.
const NUMBER_COLUMNS: usize = 8;

fn local(run: &Facts, sheet: &Sheet) -> Option<PrimitiveDateTime> {
    history::milliseconds(&run.card.time).and_then(|at| sheet.clock.local(at))
}

/// The columns of each cell; none if the cell is left out, so that the command has enough room.
fn widths<'a>(runs: impl Iterator<Item = (&'a SessionHistory, &'a Facts)>, sheet: &Sheet) -> [Option<usize>; CELLS] {
    let mut widths = [0; CELLS];
    for (session, run) in runs {
        let (cells, _) = cells(session, run, sheet);
        widths.iter_mut().zip(&cells).for_each(|(width, cell)| *width = columns_of(cell).max(*width));
    }
    let mut widths = widths.map(Some);
    for cell in LEFT_OUT {
        if room(&widths, sheet) < COMMAND_COLUMNS_WANTED {
            widths[cell] = None;
        }
    }
    widths
}

/// The columns left for a command.
fn room(widths: &[Option<usize>; CELLS], sheet: &Sheet) -> usize {
    let used: usize = widths.iter().flatten().map(|width| width + 2).sum();
    sheet.columns.saturating_sub(NUMBER_COLUMNS + used + 1).max(COMMAND_COLUMNS_MIN)
}

fn write_rows<'a>(
    runs: impl Iterator<Item = (&'a SessionHistory, &'a Facts)> + Clone,
    sheet: &Sheet,
    out: &mut impl Write,
) -> io::Result<()> {
    let widths = widths(runs.clone(), sheet);
    let room = room(&widths, sheet);
    let mut above = None;
    for (session, run) in runs {
        let day = local(run, sheet).map(when::day_shown).unwrap_or_default();
        let heading = format!("{day}  session {}", escape_line(&session.name, NAME_COLUMNS * 2));
        if above.as_ref() != Some(&heading) {
            writeln!(out, "{}", sheet.tinted(Tint::Dim, &heading))?;
            above = Some(heading);
        }
        let (cells, tint) = cells(session, run, sheet);
        let mut row = format!("{:>6}  ", run.card.seq);
        for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let Some(width) = width else { continue };
            row += &match at {
                RESULT => sheet.tinted(tint, &padded(cell, width)),
                TOOK => format!("{cell:>width$}"),
                _ => padded(cell, width),
            };
            row += "  ";
        }
        writeln!(out, "{row}{}", command_cell(run, room, sheet))?;
    }
    Ok(())
}

/// The command, and the note that it ran in its caller's sandbox.
fn command_cell(run: &Facts, room: usize, sheet: &Sheet) -> String {
    let service = if run.card.name.is_empty() { String::new() } else { format!("{}: ", run.card.name) };
    let command = &(service + &run.card.command);
    let Some(sandbox) = &run.card.sandbox else { return sheet.command(command, room) };
    let long = format!(" · in its sandbox ({})", sheet.cut(sandbox, SANDBOX_COLUMNS));
    let note = if columns_of(&long) + COMMAND_COLUMNS_MIN * 2 <= room { long } else { " · sandbox".to_owned() };
    let beside = room.saturating_sub(columns_of(&note)).max(1);
    sheet.command(command, beside) + &sheet.tinted(Tint::Dim, &note)
}

/// The end of a run, in a word or two.
pub(super) fn outcome(run: &Facts, is_alive: bool) -> (String, Tint) {
    match run.outcome {
        RunOutcome::Open if is_alive => ("running".to_owned(), Tint::Bold),
        RunOutcome::Open => ("no end".to_owned(), Tint::Yellow),
        RunOutcome::Lost => ("lost".to_owned(), Tint::Yellow),
        RunOutcome::Ended => match (&run.error, run.signal.and_then(signal_name)) {
            (Some(error), _) => (in_words(error, run.by.as_deref()), Tint::Red),
            (None, Some(signal)) => (signal.to_owned(), Tint::Red),
            (None, None) if run.exit == 0 => ("ok".to_owned(), Tint::Dim),
            (None, None) => (format!("exit {}", run.exit), Tint::Red),
        },
    }
}

/// The reason for a run's failure, as a person says it.
fn in_words(error: &str, by: Option<&str>) -> String {
    match (Failure::of_word(error), by) {
        (Some(Failure::NotFound), _) => "not found".to_owned(),
        (Some(Failure::NotStarted), _) => "not run".to_owned(),
        // The column has room for who did it, not for more.
        (Some(Failure::Stopped), Some(by)) => format!("by {by}"),
        (Some(Failure::TimedOut | Failure::Stopped | Failure::Refused | Failure::Lost) | None, _) => error.to_owned(),
    }
}

fn dir_name(dir: &str) -> String {
    let name = PathBuf::from(dir).file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| dir.to_owned())
}

/// A run in `rexec log --json`.
#[derive(Debug, Serialize)]
pub(super) struct LogLine<'a> {
    session: &'a str,
    #[serde(flatten)]
    run: &'a Facts,
    state: &'static str,
}

impl<'a> LogLine<'a> {
    pub(super) fn of(session: &'a SessionHistory, run: &'a Facts) -> Self {
        Self { session: &session.name, run, state: run.outcome.word(session.is_alive()) }
    }
}
