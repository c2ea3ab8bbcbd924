//! `rexec kept`: what is kept of what commands have destroyed.

use std::io::{self, Write};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::columns::{self, Column};
use super::log::count;
use super::record_reference::{RecordReference, Shelf, time};
use super::run_reference::NO_SUCH_RUN;
use super::sheet::{Sheet, padded};
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use super::{person, told, when};
use crate::history;
use crate::text::count::{counted, grouped, size};
use crate::text::escape::escape_line;
use crate::text::reason::reason;
use crate::undo::manifest::{Bytes, Head, Kind};
use crate::undo::record::{self, Comparison, Plan, Record, RecordName, Standing, not_kept};
use crate::undo::store;

pub(super) const VERB: Verb = Verb {
    term: "kept",
    group: Group::Past,
    summary: "list what is kept of what commands destroyed, or drop it",
    text: "\
Without N, each record has one line, the newest first: its number, when it was
made, whose it is, how many files would come back and how large they are, how
much was not kept, and the command, if the journal has it. With N, each of its
paths has one: gone (it would come back), differs (something else stands
there), there, cannot (with the reason), or not kept.

N is a command's number, SESSION:N one of another session, N.1 what the first
restore of N has kept, -1 the newest record. rexec undo N brings it back.

What is kept takes room on the disk: --drop N removes it. An agent's process
cannot drop anything, as far as that is seen. rexec help undo says more.
",
    codes: &[(1, "not all of it could be dropped"), NO_SUCH_RUN],
    examples: &["rexec kept", "rexec kept 45 | less", "rexec kept --drop 45"],
    call: &Call::<KeptCall> {
        options: &[
            Opt::flag("--drop", |q| q.is_drop = true, "remove these records for good"),
            Opt::flag("--all", |q| q.is_all = true, "with --drop: all records; asks"),
            Opt::flag("-y, --yes", |q| q.is_sure = true, "do not ask"),
            Opt::value(
                "-n, --number N",
                |q, v| q.count = v.parsed("a number of records, or all", count),
                "the N newest (default 50); all lists all",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("[N...]", Values::Records, |q, w| {
            let reference = RecordReference::of(&w.raw());
            q.references.extend(w.check(reference));
        }),
        run: |call| match (call.is_drop, call.is_all, &call.references[..]) {
            (is_drop, _, references) if call.count.is_some() && (is_drop || !references.is_empty()) => {
                Err(Notice::usage("-n is for the list of all records", "rexec kept -n 100"))
            }
            (true, true, []) => drop_all(&call),
            (true, false, [_, ..]) => drop_these(&call),
            (true, ..) => Err(VERB.missing("either numbers or --all with --drop")),
            (false, true, _) => Err(VERB.missing("--drop with --all")),
            (false, false, []) => list(call.count.unwrap_or(DEFAULT), call.is_json),
            (false, false, references) => references.iter().try_fold(0, |_, reference| show(reference, call.is_json)),
        },
    },
};

#[derive(Default)]
struct KeptCall {
    references: Vec<RecordReference>,
    is_drop: bool,
    is_all: bool,
    is_sure: bool,
    is_json: bool,
    /// The number of records to list.
    count: Option<usize>,
}

/// The default number of records.
const DEFAULT: usize = 50;

/// A record in `rexec kept --json`.
#[derive(Debug, Serialize)]
struct KeptLine {
    session: String,
    run: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    restore: Option<u32>,
    time: String,
    agent: String,
    dir: Bytes,
    files: u64,
    directories: u64,
    bytes: u64,
    differ: u64,
    stuck: usize,
    not_kept: usize,
    is_whole: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// As a person names it.
    #[serde(skip)]
    shown: String,
    #[serde(skip)]
    at: Option<i64>,
}

impl KeptLine {
    fn of(name: &RecordName, head: &Head, shelf: &Shelf) -> Result<Self, Notice> {
        let record = shelf.read(name)?;
        let plan = Comparison::of(shelf.store()?, &record).plan(&[], false);
        let Plan { files, bytes, directories, changed, stuck, missed, .. } = plan;
        let time = time(head);
        Ok(Self {
            session: name.session.clone(),
            run: name.run,
            restore: name.restore,
            agent: head.agent.clone(),
            dir: head.dir.clone(),
            files,
            directories,
            bytes,
            differ: changed,
            stuck: stuck.len(),
            not_kept: missed.len(),
            is_whole: record.is_whole,
            command: if name.restore.is_some() { None } else { shelf.command(name) },
            shown: shelf.shown(name),
            at: history::milliseconds(&time),
            time,
        })
    }
}

/// A path in `rexec kept N --json`.
#[derive(Debug, Serialize)]
pub(super) struct KeptPath {
    pub(super) path: Bytes,
    pub(super) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
}

impl KeptPath {
    fn of(record: &Record, index: usize, standing: Standing) -> Self {
        let item = &record.items[index];
        let (state, why) = match standing {
            Standing::Present => ("there", None),
            Standing::Lost | Standing::Unfinished => ("gone", None),
            Standing::Changed => ("differs", None),
            Standing::Stuck(obstacle) => ("cannot", Some(obstacle.to_string())),
        };
        let bytes = (item.kind != Kind::Directory).then_some(item.size);
        Self { path: item.path.clone(), state, kind: Some(item.kind), bytes, why }
    }

    pub(super) fn of_missed(record: &Record, index: usize) -> Self {
        let missed = &record.missed[index];
        let why = Some(not_kept(missed.why).to_owned());
        Self { path: missed.path.clone(), state: "not kept", kind: None, bytes: None, why }
    }

    /// The path in a line, with the reason.
    pub(super) fn text(&self) -> String {
        let why = self.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        let slash = if self.kind == Some(Kind::Directory) { "/" } else { "" };
        path_shown(&self.path.0) + slash + &why
    }
}

/// A path on one line.
pub(super) fn path_shown(path: &[u8]) -> String {
    escape_line(&String::from_utf8_lossy(path), usize::MAX)
}

fn list(most: usize, is_json: bool) -> Result<u8, Notice> {
    let shelf = Shelf::open()?;
    // One that goes or is damaged meanwhile is no record any more.
    let lines = shelf.records.iter().filter_map(|(name, head)| KeptLine::of(name, head, &shelf).ok());
    let lines: Vec<KeptLine> = lines.take(most).collect();
    let code = super::with_output(|out| {
        if is_json {
            return super::put_json(lines.iter(), out);
        }
        let text = if lines.is_empty() { "nothing is kept\n".to_owned() } else { draw(&lines, &Sheet::standard()) };
        super::written(out.write_all(text.as_bytes()))
    })?;
    let more = shelf.records.len().saturating_sub(lines.len()) as u64;
    if more > 0 && lines.len() == most && !is_json {
        told::tell(format_args!("there are {} more; -n N lists more, -n all lists all", grouped(more)));
    }
    Ok(code)
}

/// Columns of an agent's name.
const AGENT_COLUMNS: usize = 16;

fn draw(lines: &[KeptLine], sheet: &Sheet) -> String {
    let look = &sheet.look;
    let column = |name, is_number, rank, cell: &dyn Fn(&KeptLine) -> String| Column {
        name,
        is_number,
        rank,
        cells: lines.iter().map(cell).collect(),
    };
    let number = |count: u64| if count == 0 { look.dash().to_owned() } else { grouped(count) };
    let mut columns = vec![
        column("RUN", false, 0, &|line| line.shown.clone()),
        column("WHEN", false, 2, &|line| {
            let local = line.at.and_then(|at| sheet.clock.local(at));
            local.map(|local| format!("{} {}", when::day_shown(local), when::time_shown(local))).unwrap_or_default()
        }),
        column("AGENT", false, 3, &|line| look.cut(&line.agent, AGENT_COLUMNS)),
        column("FILES", true, 0, &|line| number(line.files)),
        column("SIZE", true, 1, &|line| if line.files == 0 { look.dash().to_owned() } else { size(line.bytes) }),
        column("NOT KEPT", true, 4, &|line| number((line.not_kept + line.stuck) as u64)),
    ];
    let room = columns::fit(&mut columns, look);
    let mut text = columns::head(&columns, "COMMAND", look);
    for (at, line) in lines.iter().enumerate() {
        for column in &columns {
            text += &column.cells[at];
            text += "  ";
        }
        text += &look.command(line.command.as_deref().unwrap_or(look.dash()), room);
        text.push('\n');
    }
    text
}

fn show(reference: &RecordReference, is_json: bool) -> Result<u8, Notice> {
    let shelf = Shelf::open()?;
    let name = shelf.find(reference)?;
    let record = shelf.read(name)?;
    let mut comparison = Comparison::of(shelf.store()?, &record);
    let missed = comparison.plan(&[], false).missed;
    super::with_output(|out| {
        let of_items = (0..record.items.len()).map(|index| KeptPath::of(&record, index, comparison.standing(index)));
        let mut paths = of_items.chain(missed.into_iter().map(|index| KeptPath::of_missed(&record, index)));
        if is_json {
            return super::put_json(paths, out);
        }
        super::written(write_paths(&heading(&shelf, &record), &mut paths, record.refused, out))
    })
}

/// Whose record it is.
pub(super) fn heading(shelf: &Shelf, record: &Record) -> String {
    let sheet = Sheet::standard();
    let agent = escape_line(&record.head.agent, AGENT_COLUMNS);
    let command = shelf.command(&record.name).filter(|_| record.name.restore.is_none());
    let command = command.map(|command| format!("  {}", sheet.command(&command, sheet.columns))).unwrap_or_default();
    sheet.cut(&format!("#{} {agent}{command}", shelf.shown(&record.name)), sheet.columns)
}

const STATE_COLUMNS: usize = 10;

fn write_paths(
    heading: &str,
    paths: &mut dyn Iterator<Item = KeptPath>,
    refused: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{heading}")?;
    for path in paths {
        writeln!(out, "{}{}", padded(path.state, STATE_COLUMNS), path.text())?;
    }
    if refused > 0 {
        writeln!(out, "{} of the manifest are not valid", counted(refused, "line", "lines"))?;
    }
    Ok(())
}

const DROPS: &str = "drops what is kept";

fn drop_these(call: &KeptCall) -> Result<u8, Notice> {
    person::check_that(DROPS)?;
    let shelf = Shelf::open()?;
    let names = call.references.iter().map(|reference| shelf.find(reference));
    let names: Vec<&RecordName> = names.collect::<Result<_, _>>()?;
    drop_records(&shelf, &names, call.is_json)
}

fn drop_all(call: &KeptCall) -> Result<u8, Notice> {
    person::check_that(DROPS)?;
    let shelf = Shelf::open()?;
    let failed = |error| Notice::failed(format_args!("cannot read what is kept: {}", reason(&error)), "try again");
    let names = record::names(shelf.store()?).map_err(failed)?;
    let count = counted(names.len() as u64, "record", "records");
    if !call.is_sure && !told::is_wanted(format_args!("Drop {count}? [y/N] "), "rexec kept --drop --all")? {
        return super::say("nothing was dropped\n").map(|_| exit_code::FAILURE);
    }
    drop_records(&shelf, &names.iter().collect::<Vec<_>>(), call.is_json)
}

/// What was dropped, in `--json`.
#[derive(Debug, Serialize)]
struct Dropped {
    records: u64,
    freed: u64,
}

fn drop_records(shelf: &Shelf, names: &[&RecordName], is_json: bool) -> Result<u8, Notice> {
    let store = shelf.store()?;
    let (mut dropped, mut code) = (Dropped { records: 0, freed: 0 }, exit_code::SUCCESS);
    for name in names {
        match name.directory().and_then(|directory| store::discard(store, &directory)) {
            Ok(freed) => {
                dropped.records += 1;
                dropped.freed += freed;
            }
            Err(error) => {
                told::tell(format_args!("cannot drop {}: {}", shelf.shown(name), reason(&error)));
                code = exit_code::FAILURE;
            }
        }
    }
    super::with_output(|out| {
        if is_json {
            return super::put_json(std::iter::once(&dropped), out);
        }
        let count = counted(dropped.records, "record was", "records were");
        super::written(writeln!(out, "{count} dropped, and {} freed", size(dropped.freed)))
    })?;
    Ok(code)
}
