//! The texts of results. Each ends with a newline: some clients join texts without one.

use std::fmt::Write as _;

use rexec_sh::protocol::notice::{Notice, hint_in, problem_in};

use crate::core::end::Failure;
use crate::front::how_ended::HowEnded;
use crate::front::rpc::answers::RunList;
use crate::front::rpc::error::{InputFault, NAME_TAKEN, NO_SUCH_RUN, RUN_IS_OVER, RpcError};
use crate::front::rpc::listing::ListedRun;
use crate::text::escape::escape_line;

/// Columns of a command or another text in a list. The rest is cut.
const COLUMNS: usize = 160;
/// Runs that a list names. The others are counted.
const LISTED_MAX: usize = 50;

/// The end of a command's result: the failure, if the host reports one, and the exit code.
pub(super) fn ending(ending: &HowEnded) -> String {
    let mut text = String::new();
    if let Some(message) = &ending.message {
        let shown = |part: &str| escape_line(part, COLUMNS * 4);
        text = problem(&shown(problem_in(message)), &shown(hint_in(message)));
    }
    let why = match (ending.signal, ending.error.and_then(Failure::of_word)) {
        (_, Some(Failure::TimedOut)) => ": its timeout was over".to_owned(),
        (_, Some(Failure::Stopped)) => ": it was stopped".to_owned(),
        (Some(signal), _) => format!(": killed by signal {signal}"),
        (None, _) => String::new(),
    };
    let _ = writeln!(text, "[exit {}{why}]", ending.exit);
    text
}

/// The last line of a call that ends before its command.
pub(super) fn still_running(run: u64) -> String {
    format!("[still running, run {run}: call output with run {run} and wait for the rest, or write or kill]\n")
}

/// The last line of a call that started a command in the background.
pub(super) fn in_background(run: u64) -> String {
    format!("[runs in the background, run {run}: output shows what it writes, kill ends it]\n")
}

/// The last line of a look at a run that goes on.
pub(super) fn running(run: u64, next: u64) -> String {
    format!("[run {run} is running; next: after {next}]\n")
}

/// The note about output that the host does not have any more.
pub(super) fn gone(bytes: u64, run: u64) -> String {
    format!("… rexec: {bytes} bytes before this are no longer kept here; rexec out {run} prints them …\n")
}

/// A problem with a hint.
pub(super) fn problem(problem: &str, hint: &str) -> String {
    if hint.is_empty() {
        Notice::without_hint(1, problem).to_string()
    } else {
        Notice::failed(problem, hint).to_string()
    }
}

pub(super) fn host_error(error: RpcError) -> String {
    let data = error.data.unwrap_or_default();
    // The host's own hints name its methods, which an agent does not know.
    let hint = match (error.code, data.input) {
        (NO_SUCH_RUN, _) => "list has the runs that there are",
        (RUN_IS_OVER, Some(InputFault::Closed)) => "start it with keep_stdin, or with tty",
        (RUN_IS_OVER, None) => "output shows how it ended",
        (NAME_TAKEN, _) => "kill ends that one; or choose another name",
        _ => data.hint.as_deref().unwrap_or_default(),
    };
    let shown = |text: &str| escape_line(text, COLUMNS * 4);
    problem(&shown(&error.message), &shown(hint))
}

pub(super) fn list(RunList { runs }: &RunList) -> String {
    if runs.is_empty() {
        return "nothing runs\n".to_owned();
    }
    let mut text: String = runs.iter().take(LISTED_MAX).map(line).collect();
    if runs.len() > LISTED_MAX {
        let _ = writeln!(text, "… and {} more", runs.len() - LISTED_MAX);
    }
    text
}

fn line(run: &ListedRun) -> String {
    let (card, ms) = (&run.facts.card, run.started_ms_ago);
    let state = run.exit().map_or_else(|| run.state.to_string(), |exit| format!("exit {exit}"));
    let mut parts = vec![format!("run {}", run.number()), state, format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)];
    if run.facts.background {
        parts.push("background".to_owned());
    }
    for (label, fact) in [("name ", &card.name), ("by ", &card.whoami), ("", &card.dir)] {
        if !fact.is_empty() {
            parts.push(format!("{label}{fact}"));
        }
    }
    if !run.ports.is_empty() {
        let ports: Vec<String> = run.ports.iter().map(u16::to_string).collect();
        parts.push(format!("ports {}", ports.join(", ")));
    }
    parts.push(card.command.clone());
    if !run.last_line.is_empty() {
        parts.push(format!("last line: {}", run.last_line));
    }
    let shown: Vec<String> = parts.iter().map(|part| escape_line(part, COLUMNS)).collect();
    shown.join(" · ") + "\n"
}
