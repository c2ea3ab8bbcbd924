//! `rexec diff N M`: the changes between the outputs of two commands.

use std::io;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::look::Look;
use super::run_reference::{RunReference, unreadable};
use super::unified::UnifiedDiff;
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use crate::history::{self, FoundRun, OutputPiece, Query};
use crate::text::count;
use crate::text::diff;
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "diff",
    group: Group::Past,
    summary: "compare the outputs of two commands",
    text: "\
A unified diff of the clean outputs, as rexec out prints them. N and M are
numbers, SESSION:N or -1. With --last, command N (the newest one without N) is
compared with the run of the same command in the same directory before it.
",
    codes: &[
        (0, "the outputs are equal"),
        (1, "they differ, or cannot be compared"),
        (3, "no journal has that command"),
    ],
    examples: &["rexec diff 12 14", "rexec diff --last", "rexec diff -n --last -1"],
    call: &Call::<DiffCall> {
        options: &[
            Opt::flag("--last", |q| q.is_last = true, "compare with the run of the same command before"),
            Opt::flag(
                "-n, --normalize",
                |q| q.is_normalized = true,
                "take no notice of times, durations and ids in hexadecimal",
            ),
            json(|q| q.is_json = true),
        ],
        words: Words::runs("N M | --last [N]", Values::Runs, |q, w| match q.named.len() {
            2 => w.refuse(VERB.too_much(&w.text())),
            _ => q.named.extend(w.reference()),
        }),
        run: |DiffCall { is_last, is_normalized, is_json, named }| {
            let runs = match (is_last, &named[..]) {
                (true, []) => with_the_one_before(find(&RunReference::of("-1".as_ref())?)?)?,
                (true, [run]) => with_the_one_before(find(run)?)?,
                (false, [first, second]) => [find(first)?, find(second)?],
                (true, _) => return Err(VERB.missing("one command with --last")),
                (false, _) => return Err(VERB.missing("two commands, as in rexec diff 12 14")),
            };
            compare(runs, is_normalized, is_json)
        },
    },
};

#[derive(Default)]
struct DiffCall {
    is_last: bool,
    is_normalized: bool,
    is_json: bool,
    named: Vec<RunReference>,
}

/// Bytes of an output that are compared. A longer one is refused.
const OUTPUT_BYTES_MAX: usize = 64 << 20;
/// Columns of a command in the head of the diff. The rest is cut.
const COMMAND_COLUMNS: usize = 200;
/// Columns of `--- ` and `+++ ` before it.
const SIGN_COLUMNS: usize = 4;

fn find(run: &RunReference) -> Result<FoundRun, Notice> {
    run.find(&super::home()?, &super::socket_path()?)
}

/// The newest earlier run of the same command in the same directory, and the run itself.
fn with_the_one_before(run: FoundRun) -> Result<[FoundRun; 2], Notice> {
    let cannot_read = |error: io::Error| unreadable(&run.home, &error);
    let start = &run.start;
    let text = start.card.command.lines().next().unwrap_or_default().chars().take(QUERY_CHARS).collect();
    let query = Query { text: Some(text), ..Query::default() };
    let sessions = history::sessions(&run.home).map_err(cannot_read)?;
    for session in sessions.iter().skip_while(|session| session.name != run.session) {
        let found = history::search(session, &query, usize::MAX).map_err(cannot_read)?;
        let is_before = |seq| session.name != run.session || seq < start.card.seq;
        let same = found.runs.iter().find(|other| {
            is_before(other.card.seq)
                && (&other.card.command, &other.card.dir) == (&start.card.command, &start.card.dir)
        });
        let before = same.map(|same| history::find(session, same.card.seq)).transpose().map_err(cannot_read)?.flatten();
        if let Some(before) = before {
            return Ok([before, run]);
        }
    }
    let problem = format_args!("#{} is the first run of its command in this directory", start.card.seq);
    Err(Notice::failed(problem, "rexec log -g TEXT finds others; rexec diff N M compares any two"))
}

/// The number of characters of a command by which its other runs are searched.
const QUERY_CHARS: usize = 200;

fn lines(run: FoundRun) -> Result<Vec<String>, Notice> {
    let (home, seq) = (run.home.clone(), run.start.card.seq);
    let (mut lines, mut bytes) = (Vec::new(), 0);
    let read = run.open_output().and_then(|output| {
        output.for_each_line(|piece| {
            let line = match piece {
                OutputPiece::Line(line) => String::from_utf8_lossy(line).into_owned(),
                OutputPiece::Gap(missing) => format!("… {} omitted", count::bytes(missing)),
            };
            bytes += line.len() + size_of::<String>();
            lines.push(line);
            Ok(bytes <= OUTPUT_BYTES_MAX)
        })
    });
    read.map_err(|error| unreadable(&home, &error))?;
    if bytes > OUTPUT_BYTES_MAX {
        let problem = format_args!("the output of #{seq} is too long to compare: over {} MiB", OUTPUT_BYTES_MAX >> 20);
        let hint = format_args!("rexec out {seq} --lines A:B prints a part of it for diff(1)");
        return Err(Notice::failed(problem, hint));
    }
    Ok(lines)
}

/// A changed line in `rexec diff --json`.
#[derive(Debug, Serialize)]
struct DiffLine<'a> {
    /// `removed` or `added`.
    change: &'static str,
    /// The line's number in its output, from 1.
    line: usize,
    text: &'a str,
}

fn compare(runs: [FoundRun; 2], is_normalized: bool, is_json: bool) -> Result<u8, Notice> {
    let look = Look::of_output();
    let heads = runs.each_ref().map(|run| {
        let (start, command) = (&run.start, escape_line(&run.start.card.command, COMMAND_COLUMNS));
        let head = format!("#{} {} {command}", start.card.seq, escape_line(&start.card.time, COMMAND_COLUMNS));
        look.cut(&head, look.columns.saturating_sub(SIGN_COLUMNS))
    });
    let [first, second] = runs.map(lines);
    let (first, second) = (first?, second?);
    let changes = if is_normalized {
        let normalized = |lines: &[String]| lines.iter().map(|line| diff::normalized(line)).collect::<Vec<_>>();
        diff::compare(&normalized(&first), &normalized(&second))
    } else {
        diff::compare(&first, &second)
    };
    let is_equal = !changes.removed.contains(&true) && !changes.added.contains(&true);
    let compared = UnifiedDiff { heads, first, second, changes };
    super::with_output(|out| {
        if is_json {
            return super::put_json(changed_lines(&compared), out);
        }
        super::written(compared.show(&look, out))
    })?;
    Ok(if is_equal { exit_code::SUCCESS } else { exit_code::FAILURE })
}

fn changed<'a>(lines: &'a [String], is: &'a [bool], change: &'static str) -> impl Iterator<Item = DiffLine<'a>> {
    let changed = lines.iter().zip(is).enumerate().filter(|(_, (_, is))| **is);
    changed.map(move |(at, (text, _))| DiffLine { change, line: at + 1, text })
}

fn changed_lines(diff: &UnifiedDiff) -> impl Iterator<Item = DiffLine<'_>> {
    let removed = changed(&diff.first, &diff.changes.removed, "removed");
    removed.chain(changed(&diff.second, &diff.changes.added, "added"))
}
