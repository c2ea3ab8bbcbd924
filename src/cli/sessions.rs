//! `rexec sessions`: the journals, one for each run of the host.

use std::io::{self, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::log::found_something;
use super::look::columns_of;
use super::run_reference::unreadable;
use super::sheet::{Sheet, Tint, padded};
use super::verb::{Group, JSON, Values, Verb};
use super::when;
use crate::history::{self, SessionHistory, SessionSpan};
use crate::text::banner::duration;
use crate::text::count;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    name: "sessions",
    short: None,
    group: Group::Past,
    arguments: "",
    values: Values::Nothing,
    summary: "list the host's sessions, the newest at the end",
    text: "\
A session is one run of the host, and has a journal. Each has one line: its
name, when it began, how long it lasted, how many commands it has, and how long
its files are. A name with a colon and a number, as in rexec show
2026-05-21-09:42:18:44, is a command of that session.
",
    options: &[JSON],
    codes: &[(1, "there is no journal")],
    examples: &["rexec sessions", "rexec sessions --json"],
    run: |parser| {
        let [is_json] = VERB.flags(parser, ["json"])?;
        let home = super::home()?;
        let lines = lines(&home)?;
        let is_empty = lines.is_empty();
        super::with_output(|out| match is_json {
            true => super::put_json(lines.iter(), out),
            false => super::written(write_all(&lines, &Sheet::standard(), out)),
        })?;
        Ok(found_something(!is_empty, is_json, &home))
    },
};

/// The most columns of a session's name.
const NAME_COLUMNS: usize = 24;

/// A session in `rexec sessions --json`.
#[derive(Debug, Serialize)]
struct SessionLine {
    session: String,
    /// Whether its host runs.
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
    let names = lines.iter().map(|line| escape_line(&line.session, NAME_COLUMNS));
    let name_columns = names.map(|name| columns_of(&name)).max().unwrap_or(0).max(7);
    let heading = format!("{}  BEGAN                     LASTED  COMMANDS       SIZE", padded("SESSION", name_columns));
    writeln!(out, "{}", sheet.tinted(Tint::Dim, &heading))?;
    for line in lines {
        let begun = history::milliseconds(&line.span.began);
        let local = begun.and_then(|at| sheet.clock.local(at));
        let began =
            local.map(|local| format!("{} {}", when::day_shown(local), when::time_shown(local))).unwrap_or_default();
        let ended = match line.is_running {
            true => Some(sheet.clock.now),
            false => line.span.ended.as_deref().and_then(history::milliseconds),
        };
        let lasted =
            begun.zip(ended).and_then(|(from, to)| u64::try_from(to - from).ok()).map(duration).unwrap_or_default();
        let name = padded(&escape_line(&line.session, NAME_COLUMNS), name_columns);
        let size = count::size(line.span.bytes);
        let runs = if line.is_running { sheet.tinted(Tint::Bold, "  runs") } else { String::new() };
        writeln!(out, "{name}  {began:<19}  {lasted:>11}  {:>8}  {size:>9}{runs}", line.span.commands)?;
    }
    Ok(())
}
