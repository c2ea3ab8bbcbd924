//! `rexec undo RUN`: brings back what a command has destroyed.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::kept::{KeptPath, heading, path_shown};
use super::record_reference::{RecordReference, Shelf};
use super::run_reference::NO_SUCH_RUN;
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use super::{person, quoted, told};
use crate::text::count::{counted, grouped, size};
use crate::text::reason::reason;
use crate::undo::manifest::{Bytes, Why};
use crate::undo::record::{Comparison, Obstacle, Plan, Record, RecordName};
use crate::undo::restoring::{Restored, next_restore, restore, restore_to};

pub(super) const VERB: Verb = Verb {
    term: "undo",
    group: Group::Past,
    summary: "bring back the files that a command destroyed",
    text: "\
RUN is a command's number, SESSION:N one of another session, -1 the newest
record of rexec kept. With PATH, only what is there or below comes back. This
needs no host. It says what comes back and what stands there now, and asks.

It removes nothing and overwrites nothing. What stands there and differs is
kept first, as a record of its own: after rexec undo 45 that is 45.1, and rexec
undo 45.1 brings it back. Files come back with their bytes, mode, times, owner
(where that is allowed) and hard links, directories also if they were empty.
A directory that is a symbolic link now is not followed: what was below it does
not come back, and is named. What was interrupted goes on when it is run again.

A host keeps, before a command begins, what its text says that it may destroy,
unless it was started with rexec-host --undo off: the operands of rm, of find
with -delete, of mv, cp and ln onto something that exists, of sed -i, and files
that are written to with >, tee, truncate, dd, curl -o or wget -O; the archive
that tar c or zip replaces, what gzip -f and zip -m take away, and what a patch
or an archive names that tar x or unzip unpack. Where an archive does not tell
that (it comes through a pipe, an earlier part of the command may make it, it
has more than 10,000 names, or is compressed and has more than 2 MiB), all that
is in the directory is copied, if that is at most 500 names.

Of git reset --hard, checkout, restore, clean, rm, stash drop, branch -D,
--abort and their like it keeps the files that git itself names as changed,
untracked or in the way, with the index, references and their logs; it asks git
for them without locks, hooks or watchers.

A file gets a second name in ~/.rexec/kept (a hard link), which takes no time
and no room; one that is written in place is copied, if it has at most 1 MiB or
its file system can share blocks, and so is one whose link count the command
itself would show (ls -l, stat, gzip). [undo] in config.toml says how large a
copy may be, how long keeping may take, and what is not kept: see rexec help
config. Once the command and all that it has started have ended, or a minute
after its shell's end, what it has left alone leaves the store, and the console
counts what is gone. What a process of it destroys later is not kept.

Not kept: what scripts, make and programs in other languages destroy, as their
texts are not read; rows of databases; files on other computers, in containers
and of commands in an agent's sandbox; operands that only the command itself
finds out, as of xargs rm; directories with CACHEDIR.TAG, and node_modules,
target, __pycache__ and .venv, where it shows that a program makes them again
(package.json, Cargo.toml and the like); as root, a directory that ~/.rexec
itself is in (for others it is kept: rm then says that it cannot remove
~/.rexec/kept); files below submodules, of git's commands; an ignored file in
whose place git checkout or merge puts one of a branch; what shred overwrites;
modes and times alone, as chmod, touch and tar x change them; what commands of
a caller with REXEC_UNDO=off destroy; what is too large to be copied, more than
5,000 files that only a copy keeps, and what is not reached within 10 s. Where
the text shows that it is destroyed and it is no cache, the console says before
the command runs that something is not kept, and rexec kept N names it. Below 2
GiB of free room, or a tenth of a small disk, nothing is kept, and the oldest
of what is kept goes, also while a command runs.

Deleted files stay on your disk for 7 days, also if they were secret: rexec
kept --drop N removes them at once, rexec kept --drop --all all of them. A link
changes the status of a file that stays, as rsync --delete leaves some: git
status looks at it again, and git diff-index counts it as changed until then.
An agent's process can look, and neither undo nor drop, as far as that
is seen: see rexec help answer. By MCP (the tool undo) and JSON-RPC (exec.undo)
an agent can ask for it; that is done after your yes, on the console or with
rexec answer.
",
    codes: &[(1, "not all of it is back, or nothing was changed"), NO_SUCH_RUN],
    examples: &["rexec undo 45", "rexec undo 45 src --dry-run", "rexec undo -1 --to /tmp/before"],
    call: &Call::<UndoCall> {
        options: &[
            Opt::flag("--dry-run", |q| q.is_dry = true, "say what would come back, and change nothing"),
            Opt::flag("-y, --yes", |q| q.is_sure = true, "do not ask"),
            Opt::value(
                "--to DIR",
                |q, v| q.to = Some(v.raw().into()),
                "make copies below DIR instead, each with its whole path",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("RUN [PATH...]", Values::Records, |q, w| match q.reference {
            None => {
                let reference = RecordReference::of(&w.raw());
                q.reference = w.check(reference);
            }
            Some(_) => q.paths.push(w.raw()),
        }),
        run: |call| undo(&call),
    },
};

#[derive(Default)]
struct UndoCall {
    reference: Option<RecordReference>,
    paths: Vec<OsString>,
    to: Option<PathBuf>,
    is_dry: bool,
    is_sure: bool,
    is_json: bool,
}

/// What cannot come back, or was not kept: so many are named.
const NAMED_MAX: usize = 10;

fn undo(call: &UndoCall) -> Result<u8, Notice> {
    let reference =
        call.reference.as_ref().ok_or_else(|| VERB.missing("the number of a command, as in rexec undo 45"))?;
    if call.is_json && !call.is_sure && !call.is_dry {
        return Err(VERB.missing("--yes or --dry-run with --json"));
    }
    let paths = call.paths.iter().map(|path| absolute(Path::new(path))).collect::<Result<Vec<_>, _>>()?;
    let shelf = Shelf::open()?;
    let name = shelf.find(reference)?;
    let (store, record) = (shelf.store()?, shelf.read(name)?);
    let plan = Comparison::of(store, &record).plan(&paths, call.to.is_some());
    if !paths.is_empty() && record.chosen(&paths).is_empty() && plan.missed.is_empty() {
        let shown = shelf.shown(name);
        let problem = format_args!("nothing of {shown} is kept there");
        return Err(Notice::failed(problem, format_args!("rexec kept {shown} lists its paths")));
    }
    let failed = |error: std::io::Error| {
        Notice::failed(format_args!("cannot restore: {}", reason(&error)), "rexec kept lists what is kept")
    };
    let next = RecordName { restore: Some(next_restore(store, name).map_err(failed)?), ..name.clone() };
    let of_plan = Restored { failed: obstacles(&record, &plan), ..Restored::default() };
    if !call.is_json {
        super::say(&(heading(&shelf, &record) + "\n" + &announced(&shelf, &record, &plan, &next)))?;
    }
    if call.is_dry || plan.todo.is_empty() {
        if call.is_json {
            put(&record, &plan, &of_plan, true)?;
        }
        return Ok(code(&record, &plan, &of_plan));
    }
    person::check_that("brings back files")?;
    let again = format!("rexec undo {}", shelf.shown(name));
    if !call.is_sure && !told::is_wanted("restore? [y/N] ", &again)? {
        return super::say("nothing was changed\n").map(|_| exit_code::FAILURE);
    }
    let mut restored = match &call.to {
        Some(directory) => restore_to(store, &record, &plan.todo, directory).map_err(|error| {
            let problem = format_args!("cannot restore to {}: {}", quoted(directory), reason(&error));
            Notice::failed(problem, "name a directory that you may write to")
        })?,
        None => restore(store, &record, &plan.todo),
    };
    if call.is_json {
        restored.failed.extend(of_plan.failed);
        put(&record, &plan, &restored, false)?;
    } else {
        super::say(&told_of(&shelf, &restored))?;
        restored.failed.extend(of_plan.failed);
    }
    Ok(code(&record, &plan, &restored))
}

/// A path of the command line without links on the way, as records have them. What it ends in is not followed.
fn absolute(given: &Path) -> Result<Vec<u8>, Notice> {
    let path = std::path::absolute(given).map_err(|error| {
        let problem = format_args!("cannot find {}: {}", quoted(given), reason(&error));
        Notice::failed(problem, "give an absolute path")
    })?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    // Directories that are gone cannot be links.
    let found = plain.ancestors().skip(1).find_map(|above| Some((above, above.canonicalize().ok()?)));
    let whole = found.and_then(|(above, whole)| Some(whole.join(plain.strip_prefix(above).ok()?)));
    Ok(whole.unwrap_or(plain).into_os_string().into_vec())
}

fn obstacles(record: &Record, plan: &Plan) -> Vec<(Vec<u8>, Obstacle)> {
    plan.stuck.iter().map(|(index, obstacle)| (record.items[*index].path.0.clone(), obstacle.clone())).collect()
}

/// What a restore would do, in words.
fn announced(shelf: &Shelf, record: &Record, plan: &Plan, next: &RecordName) -> String {
    let mut text = String::new();
    if plan.todo.is_empty() {
        text += if plan.stuck.is_empty() { "all that was kept is there\n" } else { "nothing can come back\n" };
    } else {
        let _ = write!(text, "restore {}", amount(plan.files, plan.directories, plan.bytes));
        if plan.changed > 0 {
            let verb = if plan.changed == 1 { "exists and differs: it is" } else { "exist and differ: they are" };
            let _ = write!(text, " · {} {verb} kept first as {}", grouped(plan.changed), shelf.shown(next));
        }
        text.push('\n');
    }
    let stuck = obstacles(record, plan);
    text += &named("cannot come back", stuck.iter().map(told_obstacle), stuck.len());
    if let Some((count, name)) = shelf.moved(record, plan) {
        let (count, shown) = (counted(count, "of them is", "of them are"), shelf.shown(&name));
        let _ = writeln!(text, "{count} in {shown}: rexec undo {shown}");
    }
    let missed = plan.missed.iter().map(|index| KeptPath::of_missed(record, *index).text());
    text += &named("not kept", missed, plan.missed.len());
    if record.refused > 0 {
        let _ = writeln!(text, "{} of the manifest are not valid", counted(record.refused, "line", "lines"));
    }
    if !record.is_whole && record.name.restore.is_none() {
        text += "keeping was cut off: what it had not come to is not kept\n";
    }
    text
}

fn told_obstacle((path, obstacle): &(Vec<u8>, Obstacle)) -> String {
    format!("{}: {obstacle}", path_shown(path))
}

/// The first of some lines, below what they are.
fn named(what: &str, lines: impl Iterator<Item = String>, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let mut text = format!("{what}: {}\n", grouped(count as u64));
    lines.take(NAMED_MAX).for_each(|line| _ = writeln!(text, "  {line}"));
    if count > NAMED_MAX {
        let _ = writeln!(text, "  and {} more", grouped((count - NAMED_MAX) as u64));
    }
    text
}

/// `5 files and 2 directories (1.2 MB)`.
fn amount(files: u64, directories: u64, bytes: u64) -> String {
    let number =
        |count: u64, one: &str, many: &str| format!("{} {}", grouped(count), if count == 1 { one } else { many });
    let files_shown = number(files, "file", "files");
    match (files, directories) {
        (0, 1..) => number(directories, "directory", "directories"),
        (_, 0) => format!("{files_shown} ({})", size(bytes)),
        _ => format!("{files_shown} and {} ({})", number(directories, "directory", "directories"), size(bytes)),
    }
}

/// What a restore has done, in words.
fn told_of(shelf: &Shelf, restored: &Restored) -> String {
    let mut text = format!("restored {}", amount(restored.files, restored.directories, restored.bytes));
    if restored.written > 0 {
        let files = counted(restored.written, "file", "files");
        text.push_str(&format!(", with what was written to {files} after that"));
    }
    if let Some(name) = restored.kept_as.as_ref().filter(|_| restored.kept > 0) {
        let verb = if restored.kept == 1 { "is" } else { "are" };
        let kept = grouped(restored.kept);
        let name = shelf.shown(name);
        let _ = write!(text, " · {kept} that stood there {verb} kept: rexec undo {name}");
    }
    text.push('\n');
    text + &named("not restored", restored.failed.iter().map(told_obstacle), restored.failed.len())
}

fn code(record: &Record, plan: &Plan, restored: &Restored) -> u8 {
    let is_lost = |index: &usize| record.missed[*index].why != Why::Unknown;
    let is_all = restored.failed.is_empty() && record.refused == 0 && !plan.missed.iter().any(is_lost);
    if is_all { exit_code::SUCCESS } else { exit_code::FAILURE }
}

/// What `rexec undo --json` prints.
#[derive(Debug, Serialize)]
struct UndoForm {
    session: String,
    run: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    restore: Option<u32>,
    is_done: bool,
    files: u64,
    directories: u64,
    bytes: u64,
    differ: u64,
    /// The number of the record that has what differed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_as: Option<String>,
    failed: Vec<FailedPath>,
    not_kept: Vec<KeptPath>,
}

#[derive(Debug, Serialize)]
struct FailedPath {
    path: Bytes,
    why: &'static str,
    text: String,
}

fn put(record: &Record, plan: &Plan, restored: &Restored, is_dry: bool) -> Result<u8, Notice> {
    let failed = restored.failed.iter().map(|(path, obstacle)| FailedPath {
        path: Bytes(path.clone()),
        why: obstacle.word(),
        text: obstacle.to_string(),
    });
    let form = UndoForm {
        session: record.name.session.clone(),
        run: record.name.run,
        restore: record.name.restore,
        is_done: !is_dry,
        files: if is_dry { plan.files } else { restored.files },
        directories: if is_dry { plan.directories } else { restored.directories },
        bytes: if is_dry { plan.bytes } else { restored.bytes },
        differ: if is_dry { plan.changed } else { restored.kept },
        kept_as: restored.kept_as.as_ref().map(RecordName::number),
        failed: failed.collect(),
        not_kept: plan.missed.iter().map(|index| KeptPath::of_missed(record, *index)).collect(),
    };
    super::with_output(|out| {
        super::put_json(std::iter::once(&form), out)?;
        super::written(out.flush())
    })
}
