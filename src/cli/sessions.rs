//! `rexec sessions`: the journals, one for each run of the host.

use std::io::{self, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::columns::{self, Column};
use super::log::found_something;
use super::run_reference::unreadable;
use super::sheet::{Sheet, Tint};
use super::verb::{Call, Group, Verb, Words, json};
use super::when;
use crate::history::{self, SessionHistory, SessionSpan};
use crate::text::banner::duration;
use crate::text::count;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "sessions",
    group: Group::Past,
    summary: "list the host's sessions, the newest at the end",
    text: "\
A session is one run of the host, and has a journal. Each has one line: its
name, when it began, how long it lasted, how many commands it has, and how long
its files are. A name with a colon and a number, as in rexec show
2026-05-21-09:42:18:44, is a command of that session.
",
    codes: &[(1, "there is no journal")],
    examples: &["rexec sessions", "rexec sessions --json"],
    call: &Call::<bool> {
        options: &[json(|is_json| *is_json = true)],
        words: Words::NONE,
        run: |is_json| {
            let home = super::home()?;
            let lines = lines(&home)?;
            let is_empty = lines.is_empty();
            super::with_output(|out| match is_json {
                true => super::put_json(lines.iter(), out),
                false => super::written(write_all(&lines, &Sheet::standard(), out)),
            })?;
            Ok(found_something(!is_empty, is_json, &home))
        },
    },
};

/// The most columns of a session's name.
const NAME_COLUMNS: usize = 24;

/// A session in `rexec sessions --json`.
#[derive(Debug, Serialize)]
struct SessionLine {
    session: String,
    is_running: bool,
    pid: Option<u32>,
    #[serde(flatten)]
    span: SessionSpan,
    files: usize,
}

fn lines(home: &Path) -> Result<Vec<SessionLine>, Notice> {
    let cannot_read = |error: io::Error| unreadable(home, &error);
    let sessions = history::sessions(home).map_err(cannot_read)?;
    let line = |session: &SessionHistory| {
        let span = session.span()?;
        let pid = session.open.as_ref().map(|open| open.pid);
        let (name, files) = (session.name.clone(), session.files.len());
        Ok(SessionLine { session: name, is_running: session.is_alive(), pid, span, files })
    };
    sessions.iter().rev().map(line).collect::<io::Result<_>>().map_err(cannot_read)
}

fn write_all(lines: &[SessionLine], sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
    let column = |name, is_number, rank, cell: &dyn Fn(&SessionLine) -> String| Column {
        name,
        is_number,
        rank,
        cells: lines.iter().map(cell).collect(),
    };
    let columns = vec![
        column("SESSION", false, 0, &|line| escape_line(&line.session, NAME_COLUMNS)),
        column("BEGAN", false, 3, &|line| began(line, sheet)),
        column("LASTED", true, 2, &|line| lasted(line, sheet)),
        column("COMMANDS", true, 1, &|line| line.span.commands.to_string()),
        column("SIZE", true, 4, &|line| count::size(line.span.bytes)),
        column("", false, 5, &|line| if line.is_running { "runs".to_owned() } else { String::new() }),
    ];
    let (head, rows) = columns::whole_table(columns, &sheet.look);
    out.write_all(head.as_bytes())?;
    lines.iter().zip(rows).try_for_each(|(line, row)| match line.is_running {
        true => writeln!(out, "{}", sheet.tinted(Tint::Bold, &row)),
        false => writeln!(out, "{row}"),
    })
}

/// The start of a session, on the human's clock.
fn began(line: &SessionLine, sheet: &Sheet) -> String {
    let local = history::milliseconds(&line.span.began).and_then(|at| sheet.clock.local(at));
    local.map(|local| format!("{} {}", when::day_shown(local), when::time_shown(local))).unwrap_or_default()
}

/// The duration of a session, or its age.
fn lasted(line: &SessionLine, sheet: &Sheet) -> String {
    let ended = match line.is_running {
        true => Some(sheet.clock.now),
        false => line.span.ended.as_deref().and_then(history::milliseconds),
    };
    let span = history::milliseconds(&line.span.began).zip(ended).and_then(|(from, to)| u64::try_from(to - from).ok());
    span.map(duration).unwrap_or_default()
}
