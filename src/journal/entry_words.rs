//! What is published of a log's entries: the line on a console, the line for the caller, the fields of the record.
//!
//! Every reader asks here about the entries that it does not show in a way of its own. A new kind of entry gets a row in
//! each table, so that it reaches all readers, or is kept from one of them by decision.

use std::time::{Duration, Instant};

use super::record::{GateRecord, KeptRecord, PortHolder, RunEnd, Straggler};
use crate::core::end::{End, Refusal, RefusalCause, Stopper};
use crate::core::engine::JobId;
use crate::core::entry::{
    Consequence, Decider, Decision, DestroyedFiles, Entry, Judgement, KeptFiles, LeftProcess, Permit, PortHeld, Prompt,
};
use crate::limits;
use crate::text::bind_failure::holder_line;
use crate::text::count::{self, counted};
use crate::text::escape::escape_line;
use crate::text::prompt::{prompt_words, quoted};

/// The width of a program's name in a line about it, columns. The kernel keeps 15 bytes.
const PROGRAM_COLUMNS: usize = 32;
/// The width of the words of a prompt, columns.
const PROMPT_COLUMNS: usize = 60;
/// The sign of a command that waits for the human: its line begins with it.
pub const WAITS: char = '⏎';
/// The sign of a command on which the human decides: its line begins with it.
pub const ASKS: char = '?';
/// The width of a person's reason, columns.
const WHY_COLUMNS: usize = 200;
/// The last part of the line about a prompt begins with this.
pub const WAITS_UNTIL: &str = " · end of file in ";

const FILTER_LEFT: &str = "a filter behind the ended shell is still at work; what it writes from now on is lost";

/// The line about an entry on consoles. `None` for an entry that they do not mention, or that a block shows itself.
#[must_use]
pub fn console_line(entry: &Entry, job: JobId, now: Instant) -> Option<String> {
    Some(match entry {
        Entry::WantedInput { program, has_ended } => {
            let program = escape_line(program, PROGRAM_COLUMNS);
            let how = if *has_ended { "and got end of file" } else { "and waits on: nobody answered" };
            format!("… {program} asked for input {how}")
        }
        Entry::Waits(waiting) => prompt_line(job, waiting, now),
        Entry::PortHeld(held) => format!("… {}", port_line(held)),
        Entry::Keeping => "… keeping what it may destroy, before it begins".to_owned(),
        Entry::Kept(kept) => kept_line(job, kept)?,
        Entry::Destroyed(destroyed) => destroyed_line(job, *destroyed),
        Entry::Judged(judgement) => judgement_line(job, judgement),
        Entry::Decided(decision, waited) => decision_line(job, decision, *waited),
        Entry::Stopping { by } => format!("… stopping: {}", stopper_words(*by)),
        Entry::FilterLeft => format!("… {FILTER_LEFT}"),
        Entry::Unreported { bytes } => format!("… {} not reported", count::bytes(*bytes)),
        Entry::Unkillable { pid, program } => {
            format!("… #{}: {} (process {pid}) cannot be killed", job.0, escape_line(program, PROGRAM_COLUMNS))
        }
        Entry::Output { .. }
        | Entry::Resized { .. }
        | Entry::Answered(_)
        // The line about the judgement stands there.
        | Entry::StillHeld { .. }
        | Entry::Marked(_)
        | Entry::Exited { .. }
        | Entry::Ended(_)
        | Entry::Left(_)
        | Entry::Received(_)
        | Entry::Over => return None,
    })
}

/// The line about an entry for the command's caller.
#[must_use]
pub fn caller_line(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::WantedInput { program, has_ended } => {
            let how = if *has_ended { "got end of file" } else { "nobody answered, and it waits on" };
            format!("command asked for terminal input ({program}); {how}")
        }
        Entry::Waits(waiting) => format!("waits for input at the console ({})", waiting.program),
        Entry::PortHeld(held) => port_line(held),
        Entry::FilterLeft => FILTER_LEFT.to_owned(),
        Entry::StillHeld { leaf } => format!("waits until your user says whether \"{leaf}\" may run"),
        Entry::Output { .. }
        | Entry::Resized { .. }
        // It is told of a wait that takes a while, and of a refusal at the end.
        | Entry::Judged(_)
        | Entry::Decided(..)
        // A reported command has no caller here.
        | Entry::Unreported { .. }
        | Entry::Answered(_)
        | Entry::Marked(_)
        | Entry::Stopping { .. }
        // Undo is for people.
        | Entry::Keeping
        | Entry::Kept(_)
        | Entry::Exited { .. }
        | Entry::Ended(_)
        // The rest may come behind the end, when the caller has left.
        | Entry::Left(_)
        | Entry::Unkillable { .. }
        | Entry::Destroyed(_)
        | Entry::Received(_)
        | Entry::Over => return None,
    })
}

/// Adds what an entry says to the record of the run's end. Output is counted by whoever stores it.
pub fn record(entry: &Entry, record: &mut RunEnd) {
    match entry {
        Entry::Answered(_) => record.answers += 1,
        Entry::PortHeld(held) => record.port_held = Some(PortHolder { port: held.port, seq: held.run }),
        Entry::Kept(kept) => record.kept = Some(kept_record(kept)),
        Entry::Judged(judgement) => record.gate = Some(gate_record(judgement)),
        Entry::Decided(decision, waited) => {
            if let Some(gate) = &mut record.gate {
                decision.by.word().clone_into(&mut gate.by);
                gate.after_ms = Some(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX));
            }
        }
        Entry::Ended(end) => record_end(end, record),
        Entry::Left(left) => {
            record.left_count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            record.left = left.iter().take(limits::STRAGGLERS_NAMED_MAX).map(straggler).collect();
        }
        Entry::Unkillable { pid, .. } => record.unkillable.push(pid.number()),
        Entry::Received(received) => (record.received, record.hidden) = (Some(received.bytes), received.hidden),
        Entry::Output { .. }
        | Entry::Resized { .. }
        | Entry::Unreported { .. }
        | Entry::StillHeld { .. }
        | Entry::WantedInput { .. }
        | Entry::Waits(_)
        | Entry::Marked(_)
        | Entry::Stopping { .. }
        | Entry::FilterLeft
        | Entry::Keeping
        | Entry::Exited { .. }
        // The record of the end is mostly written by then.
        | Entry::Destroyed(_)
        | Entry::Over => {}
    }
}

fn record_end(end: &End, record: &mut RunEnd) {
    (record.exit, record.signal) = (end.code(), end.signal());
    (record.duration_ms, record.queued_ms) = (end.took_ms(), end.queued_ms());
    record.error = end.failure().map(|failure| failure.word().to_owned());
    record.by = end.by.map(|by| by.word().to_owned());
}

fn gate_record(Judgement { verdict, rule, leaf, consequence, .. }: &Judgement) -> GateRecord {
    let by = match consequence {
        Consequence::Watched => "watch",
        Consequence::Unread => "unread",
        Consequence::Permitted(permit) => permit.word(),
        Consequence::Refused(Refusal { cause: RefusalCause::Away, .. }) => RefusalCause::AWAY,
        Consequence::Refused(_) => "rule",
        // Until somebody decides.
        Consequence::Asked { .. } => "nobody",
    };
    GateRecord {
        r#do: (*verdict).to_owned(),
        rule: rule.clone(),
        leaf: leaf.clone(),
        by: by.to_owned(),
        after_ms: None,
    }
}

fn kept_record(KeptFiles { files, missed, unknown, failure }: &KeptFiles) -> KeptRecord {
    KeptRecord { files: *files, missed: *missed, unknown: unknown.clone(), failure: failure.clone() }
}

/// What is not kept, in words; `None` if all is.
fn kept_line(job: JobId, KeptFiles { missed, unknown, failure, .. }: &KeptFiles) -> Option<String> {
    let unknown = escape_line(unknown, PROGRAM_COLUMNS);
    let missed = u64::from(*missed);
    Some(match (failure, missed, unknown.as_str()) {
        (Some(failure), ..) => format!("… undo: {failure}"),
        (None, 0, "") => return None,
        (None, 0, "shred") => "… not kept for undo: what shred destroys, as it is meant to leave nothing".to_owned(),
        (None, 0, unknown) => format!("… not kept for undo: what {unknown} destroys, which the text does not tell"),
        (None, missed, _) => {
            format!("… not kept for undo: {}; rexec kept {} names them", counted(missed, "path", "paths"), job.0)
        }
    })
}

/// The line about what a run has destroyed.
#[must_use]
pub fn destroyed_line(job: JobId, DestroyedFiles { files, bytes, directories, missed }: DestroyedFiles) -> String {
    let job = job.0;
    let counts = [(files, "file", "files"), (directories.into(), "directory", "directories")];
    let named =
        counts.into_iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| grouped_count(count, one, many));
    let named: Vec<String> = named.collect();
    let missed = u64::from(missed);
    match (named.is_empty(), missed) {
        (true, missed) => format!("… #{job}: {} gone, which could not be kept", counted(missed, "path", "paths")),
        (false, missed) => {
            let size = if bytes > 0 { format!(" ({})", count::size(bytes)) } else { String::new() };
            let more = match missed {
                0 => String::new(),
                1 => ", and 1 more path that was not kept".to_owned(),
                missed => format!(", and {} more paths that were not kept", count::grouped(missed)),
            };
            format!("… #{job}: {}{size} gone or changed{more}: rexec undo {job}", named.join(" and "))
        }
    }
}

/// `57 235 files`.
fn grouped_count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count::grouped(number), if number == 1 { one } else { many })
}

fn judgement_line(job: JobId, Judgement { why, consequence, .. }: &Judgement) -> String {
    match consequence {
        Consequence::Unread => format!("… allowed, though not all of it was read: {why}"),
        Consequence::Watched => format!("… watched: {why}"),
        Consequence::Permitted(Permit::Learned) => format!("… allowed: {why}"),
        Consequence::Permitted(Permit::Later { run }) => format!("… #{} may run, as you said of #{run}: {why}", job.0),
        Consequence::Refused(Refusal { cause: RefusalCause::Away, .. }) => {
            format!("… refused, because nobody is here to ask: {why}")
        }
        Consequence::Refused(_) => format!("… refused: {why}"),
        Consequence::Asked { .. } => format!("{ASKS} #{} asks whether it may run: {why}", job.0),
    }
}

/// Who said something.
#[must_use]
pub fn decider_words(by: Decider) -> &'static str {
    match by {
        Decider::Console => "you said",
        Decider::Client => "a client of yours said",
        Decider::Token => "who has its token said",
        Decider::Timeout => "nobody said",
    }
}

fn decision_line(job: JobId, Decision { is_yes, by, why }: &Decision, waited: Duration) -> String {
    if *by == Decider::Timeout {
        return format!("… #{} is refused: nobody said yes within {} s", job.0, waited.as_secs());
    }
    let who = decider_words(*by);
    match (is_yes, why) {
        (true, _) => format!("… #{} may run: {who} yes", job.0),
        (false, None) => format!("… #{} is refused: {who} no", job.0),
        (false, Some(why)) => format!("… #{} is refused: {who} no: {}", job.0, escape_line(why, WHY_COLUMNS)),
    }
}

fn straggler(left: &LeftProcess) -> Straggler {
    Straggler { pid: left.pid, comm: left.program.clone(), ports: left.ports.clone() }
}

fn prompt_line(job: JobId, waiting: &Prompt, now: Instant) -> String {
    let words = match prompt_words(&waiting.prompt, PROMPT_COLUMNS).as_str() {
        "" => escape_line(&waiting.program, PROGRAM_COLUMNS),
        words => quoted(words),
    };
    let left = waiting.until.saturating_duration_since(now).as_millis().div_ceil(1000);
    format!("{WAITS} #{} waits: {words}{WAITS_UNTIL}{}:{:02}", job.0, left / 60, left % 60)
}

fn port_line(held: &PortHeld) -> String {
    holder_line(held.port, held.run, &held.whoami, &held.process)
}

/// Who ends a run, for people.
#[must_use]
pub fn stopper_words(by: Stopper) -> &'static str {
    match by {
        Stopper::Caller => "its caller is gone",
        Stopper::CallerAsked => "its caller asked",
        Stopper::Console => "you asked",
        Stopper::Kill => "by rexec kill",
        Stopper::Client => "a client asked",
        Stopper::Project => "its project session ends",
        Stopper::Host => "the host is ending",
        Stopper::TimeLimit => "its time is over",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexec_sh::protocol::process::Pid;
    use rexec_sh::protocol::shown::is_plain;

    /// Programs choose their names and the words of their prompts.
    #[test]
    fn a_line_on_a_console_is_one_line_whoever_chose_the_names_in_it() {
        let (now, program) = (Instant::now(), "a\n\x1b[2Jb\u{202e}".to_owned());
        let prompt = program.clone().into_bytes().into();
        let entries = [
            Entry::WantedInput { program: program.clone(), has_ended: true },
            Entry::Waits(Box::new(Prompt { program: program.clone(), prompt, since: now, until: now })),
            Entry::PortHeld(Box::new(PortHeld {
                port: 1,
                run: 2,
                whoami: program.clone(),
                process: (program.clone(), 3),
            })),
            Entry::Unkillable { pid: Pid::new(4), program },
        ];
        for entry in entries {
            let line = console_line(&entry, JobId(5), now).expect("consoles mention it");
            assert!(line.chars().all(is_plain), "{line:?}");
        }
    }

    #[test]
    fn facts_before_and_behind_the_end_come_together_in_its_record() {
        let mut told = RunEnd { seq: 7, bytes: 3, ..RunEnd::default() };
        let left = LeftProcess { pid: 9, program: "node".to_owned(), ports: vec![3000] };
        let how = crate::core::end::How::Exited(rexec_sh::protocol::process::Exit::Code(3));
        let (queued, took) = (std::time::Duration::from_millis(1), std::time::Duration::from_millis(2));
        let held = PortHeld { port: 80, run: 4, whoami: String::new(), process: (String::new(), 1) };
        let entries = [
            Entry::PortHeld(Box::new(held)),
            Entry::Stopping { by: Stopper::Kill },
            Entry::Ended(End { how, by: Some(Stopper::Kill), queued, took }),
            Entry::Left(vec![left; limits::STRAGGLERS_NAMED_MAX + 1].into()),
            Entry::Over,
        ];
        entries.iter().for_each(|entry| record(entry, &mut told));
        let straggler = Straggler { pid: 9, comm: "node".to_owned(), ports: vec![3000] };
        let expected = RunEnd {
            seq: 7,
            exit: 3,
            duration_ms: 2,
            queued_ms: 1,
            bytes: 3,
            error: Some("aborted".to_owned()),
            by: Some("kill".to_owned()),
            left: vec![straggler; limits::STRAGGLERS_NAMED_MAX],
            left_count: u32::try_from(limits::STRAGGLERS_NAMED_MAX).expect("a small number") + 1,
            port_held: Some(PortHolder { port: 80, seq: 4 }),
            ..RunEnd::default()
        };
        assert_eq!(told, expected);
    }
}
