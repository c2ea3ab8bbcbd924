//! `rexec show N`: a command as the console showed it, and everything in the journal about it.

mod live;

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use super::record_reference::kept_of;
use super::run_reference::{NO_SUCH_RUN, RunReference, unreadable};
use super::sheet::{Sheet, Tint, padded};
use super::verb::{Call, Group, Values, Verb, Words, json};
use super::{print, replay, when, written};
use crate::core::end::{Failure, RefusalCause};
use crate::history::{self, FoundRun, RunOutcome};
use crate::journal::record::{EndRecord, GateRecord, InputRecord, KeptRecord, RecordedOutput, RunEnd, StartRecord};
use crate::text::agent_name::{agent_name, short_name};
use crate::text::banner::{duration, left_line, signal_name};
use crate::text::count;
use crate::text::escape::{escape_line, escape_text};
use crate::text::name::name_of;

pub(super) const VERB: Verb = Verb {
    term: "show",
    group: Group::Past,
    summary: "show one command: its block, and all that the journal knows",
    text: "\
N is a command's number, SESSION:N one of another session, -1 the newest and -2
the one before it. rexec log shows numbers and sessions. Of a long output this
shows the beginning and the end; rexec out has all of it. Of a command that
runs this says what it does now, and shows the last lines that it has written.
",
    codes: &[NO_SUCH_RUN],
    examples: &["rexec show 44", "rexec show -1", "rexec show 2026-05-21-09:42:18:44"],
    call: &Call::<ShowCall> {
        options: &[json(|q| q.is_json = true)],
        words: Words::run("N", Values::Runs, |q, w| q.reference = w.reference()),
        run: |ShowCall { reference, is_json }| {
            let reference = reference.ok_or_else(|| VERB.missing("the number of a command, as in rexec show 44"))?;
            let home = super::home()?;
            let run = super::out::find_with_output(&reference, &home)?;
            let answers = run.answers().map_err(|error| unreadable(&home, &error))?;
            super::with_output(|out| {
                if is_json {
                    return super::put_json([ShownRun::of(&run, answers)].into_iter(), out);
                }
                written(write_run(&run, &answers, &Sheet::standard(), out))
            })
        },
    },
};

#[derive(Default)]
struct ShowCall {
    reference: Option<RunReference>,
    is_json: bool,
}

const LABEL_COLUMNS: usize = 11;
/// Columns of a fact. The rest is cut.
const FACT_COLUMNS: usize = 4_096;
/// The number of last answers that are shown.
const ANSWERS_SHOWN: usize = 10;

/// A run in `rexec show --json`.
#[derive(Debug, Serialize)]
pub(super) struct ShownRun<'a> {
    session: &'a str,
    state: &'static str,
    /// The answers of people: how much they typed, and where.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<InputRecord>,
    /// The journal's file.
    file: Cow<'a, str>,
    record: ShownRecord<'a>,
}

/// The run's record, as in the journal, but with whole long arguments.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ShownRecord<'a> {
    Ended(Box<EndRecord>),
    Begun(&'a StartRecord),
}

impl<'a> ShownRun<'a> {
    pub(super) fn of(run: &'a FoundRun, answers: Vec<InputRecord>) -> Self {
        let record = match &run.end {
            Some(end) => ShownRecord::Ended(Box::new(record(run, end))),
            None => ShownRecord::Begun(&run.start),
        };
        let (state, file) = (run.outcome.word(run.is_alive), run.file.to_string_lossy());
        Self { session: &run.session, state, answers, file, record }
    }
}

fn record(run: &FoundRun, end: &RunEnd) -> EndRecord {
    EndRecord { start: run.start.clone(), end: end.clone(), output: run.recorded.clone() }
}

fn write_run(run: &FoundRun, answers: &[InputRecord], sheet: &Sheet, out: &mut impl Write) -> io::Result<()> {
    let mut start = run.start.clone();
    start.card.whoami = start.card.agent_name();
    let start = &start;
    for (label, text) in facts(run, answers, sheet) {
        let label = sheet.tinted(Tint::Dim, &padded(label, LABEL_COLUMNS));
        writeln!(out, "{label}{}", escape_line(&text, FACT_COLUMNS))?;
    }
    if start.card.command.contains('\n') {
        writeln!(out, "{}", sheet.tinted(Tint::Dim, "text"))?;
        escape_text(start.card.command.trim_end()).lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    }
    writeln!(out)?;
    if sheet.look.is_terminal() {
        out.flush()?;
        if replay::draw(run, sheet)? {
            return Ok(());
        }
    }
    match (&run.end, run.outcome) {
        (Some(end), _) => print::render_run(&run.home, &EndRecord { start: start.clone(), ..record(run, end) }, 0, out),
        (None, RunOutcome::Lost) => print::render_lost(start, out),
        (None, _) if run.is_running() => live::write(run, start, out),
        (None, _) => print::render_open(start, None, out),
    }
}

/// Each fact with its name.
fn facts(run: &FoundRun, answers: &[InputRecord], sheet: &Sheet) -> Vec<(&'static str, String)> {
    let FoundRun { start, end, recorded, .. } = run;
    let mut facts = vec![("run", format!("#{} of session {}", start.card.seq, run.session))];
    facts.push(("state", state(run)));
    facts.push(("agent", caller(start)));
    facts.extend((!start.card.session.is_empty()).then(|| ("session", start.card.session.clone())));
    facts.extend((!start.card.call.is_empty()).then(|| ("tool call", start.card.call.clone())));
    let local = history::milliseconds(&start.card.time).and_then(|at| sheet.clock.local(at));
    let begun =
        local.map(|local| format!("{} {} ({})", when::day_shown(local), when::time_shown(local), start.card.time));
    facts.push(("began", begun.unwrap_or_else(|| start.card.time.clone())));
    // rexec's predecessor recorded neither a command's duration nor its shell.
    if let Some(end) = end.as_ref().filter(|_| !start.card.shell.is_empty()) {
        let waited =
            if end.queued_ms == 0 { String::new() } else { format!(", waited {} before", duration(end.queued_ms)) };
        facts.push(("took", format!("{}{waited}", duration(end.duration_ms))));
    }
    facts.extend((!start.card.why.is_empty()).then(|| ("why", start.card.why.clone())));
    facts.extend((!start.card.name.is_empty()).then(|| ("service", start.card.name.clone())));
    facts.push(("directory", start.card.dir.clone()));
    facts.extend((!start.card.shell.is_empty()).then(|| ("shell", start.card.shell.clone())));
    facts.extend(typed(answers, sheet).into_iter().map(|answer| ("answer", answer)));
    facts.extend(start.card.sandbox.clone().map(|sandbox| ("sandbox", sandbox)));
    if start.card.unwrapped {
        facts.push(("call", start.exec.join(" ")));
    }
    facts.extend((!start.envs.is_empty()).then(|| {
        let set: Vec<String> = start.envs.iter().map(|(name, value)| format!("{name}={value}")).collect();
        ("variables", set.join(" "))
    }));
    if let Some(end) = end {
        facts.push(("output", output(end, recorded, start.card.seq)));
        facts.extend(recorded.raw.as_ref().map(|raw| ("in file", run.home.join(raw).display().to_string())));
        facts.extend((recorded.secrets > 0).then(|| ("secrets", format!("{} masked", recorded.secrets))));
        let named = end.left.iter().map(|left| (left.comm.as_str(), left.pid));
        let left = left_line(end.left_count, named);
        facts.extend(left.and_then(|line| Some(("left", line.strip_prefix("left running: ")?.to_owned()))));
        facts.extend(end.port_held.map(|held| ("port", format!("{} is held by #{}", held.port, held.seq))));
        let is_refused = end.error.as_deref().and_then(Failure::of_word) == Some(Failure::Refused);
        facts.extend(end.gate.as_ref().map(|gate| ("rules", rules(gate, is_refused))));
        let kept = kept_of(run).or_else(|| end.kept.as_ref().map(kept_words));
        facts.extend(kept.map(|kept| ("undo", kept)));
        facts.extend((!end.unkillable.is_empty()).then(|| ("unkillable", format!("{:?}", end.unkillable))));
    }
    facts.push(("journal", run.file.display().to_string()));
    facts
}

/// What was kept for undo, in words.
fn kept_words(KeptRecord { files, missed, unknown, failure }: &KeptRecord) -> String {
    if let Some(failure) = failure {
        return failure.clone();
    }
    let is_all = *missed == 0 && unknown.is_empty();
    let kept = || format!("{} kept before it began", count::counted((*files).into(), "file", "files"));
    let parts = [
        (is_all || *files > 0).then(kept),
        (*missed > 0).then(|| format!("{} not kept", count::counted((*missed).into(), "path", "paths"))),
        (!unknown.is_empty()).then(|| format!("not kept what {unknown} destroys")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// What the rules said, and who decided, in words.
fn rules(GateRecord { r#do: verdict, rule, leaf, by, after_ms }: &GateRecord, is_refused: bool) -> String {
    let rule = rule.as_ref().map(|rule| format!(", by {rule}")).unwrap_or_default();
    let answer = if is_refused { "no" } else { "yes" };
    let decided = match by.as_str() {
        "watch" | "rule" => String::new(),
        "unread" => " · not all of it was read".to_owned(),
        RefusalCause::AWAY => " · nobody was there to ask".to_owned(),
        "nobody" => " · nobody had decided".to_owned(),
        "later" => " · yes to an earlier run of it".to_owned(),
        "learned" => " · you always allow it".to_owned(),
        "timeout" => format!(" · nobody answered in {}", duration(after_ms.unwrap_or(0))),
        by => format!(" · {answer} by {by} after {}", duration(after_ms.unwrap_or(0))),
    };
    format!("{verdict}{rule}: {leaf}{decided}")
}

/// The console's name for the caller, with its own name, its program and its version if these say more.
fn caller(start: &StartRecord) -> String {
    let (name, whole) = (start.card.agent_name(), name_of(&start.card.whoami, FACT_COLUMNS));
    let whole = if whole == agent_name(&start.card.whoami, 1, "") { "" } else { &whole };
    let program = if short_name(&start.card.whoami) == start.card.agent { "" } else { &start.card.agent };
    let known = [whole, program, &start.card.agent_version].into_iter().filter(|known| !known.is_empty());
    match &known.collect::<Vec<_>>()[..] {
        [] => name,
        known => format!("{name} ({})", known.join(" ")),
    }
}

/// Each answer: its time, size, and place.
fn typed(answers: &[InputRecord], sheet: &Sheet) -> Vec<String> {
    let earlier = answers.len().saturating_sub(ANSWERS_SHOWN);
    let more = (earlier > 0)
        .then(|| format!("{} before these: rexec show --json", count::counted(earlier as u64, "answer", "answers")));
    let shown = answers[earlier..].iter().map(|answer| {
        let local = history::milliseconds(&answer.time).and_then(|at| sheet.clock.local(at));
        let time = local.map_or_else(|| answer.time.clone(), when::time_shown);
        let place = match answer.from.as_str() {
            "console" => " at the console",
            "send" => " by rexec send",
            "attach" => " by rexec attach",
            "client" => " by a program",
            _ => "",
        };
        let shown = if answer.hidden { ", not shown" } else { "" };
        format!("{time} {}{place}{shown}", count::counted(answer.bytes, "byte", "bytes"))
    });
    more.into_iter().chain(shown).collect()
}

fn state(run: &FoundRun) -> String {
    let Some(end) = &run.end else {
        return match (run.outcome, run.is_alive) {
            (RunOutcome::Open, true) => live::state(run),
            (RunOutcome::Open, false) => "it has no end in the journal; its host does not run".to_owned(),
            _ => "lost: its host died before it ended".to_owned(),
        };
    };
    let signal = end.signal.map(|number| signal_name(number).map_or(format!("signal {number}"), str::to_owned));
    let parts = [Some(format!("exit {}", end.exit)), signal, end.error.clone()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The size of the output, and the way to read it.
fn output(end: &RunEnd, recorded: &RecordedOutput, seq: u64) -> String {
    let flaw = recorded.raw_error.as_ref().map(|flaw| format!(" (not all were kept: {flaw})"));
    let written = format!("{} bytes{}", count::grouped(end.bytes), flaw.as_deref().unwrap_or_default());
    match (&recorded.raw, recorded.omitted) {
        (Some(_), _) => match recorded.raw_omitted {
            Some(omitted) => format!("{written}; rexec out {seq} prints all but {}", count::bytes(omitted)),
            None => format!("{written}; rexec out {seq} prints them all"),
        },
        (None, Some(omitted)) => format!("{written}, without {} of its text", count::bytes(omitted)),
        (None, None) => format!("{written}, all below"),
    }
}
