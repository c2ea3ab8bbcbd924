//! The texts of results. Each ends with a newline: some clients join texts without one.

use std::fmt::Write as _;

use rexec_sh::protocol::notice::{Notice, hint_in, problem_in};
use serde::Deserialize;
use serde_json::Value;

use super::call::RunEnding;
use crate::core::end::Failure;
use crate::front::rpc::error::{InputFault, NAME_TAKEN, NO_SUCH_RUN, RUN_IS_OVER, RpcError};
use crate::text::escape::escape_line;

/// Columns of a command or another text in a list. The rest is cut.
const COLUMNS: usize = 160;
/// Runs that a list names. The others are counted.
const LISTED_MAX: usize = 50;

/// The end of a command's result: the failure, if the host reports one, and the exit code.
pub(super) fn ending(ending: &RunEnding) -> String {
    let mut text = String::new();
    if let Some(message) = &ending.message {
        let shown = |part: &str| escape_line(part, COLUMNS * 4);
        text = problem(&shown(problem_in(message)), &shown(hint_in(message)));
    }
    let why = match (&ending.signal, ending.error.as_deref().and_then(Failure::of_word)) {
        (_, Some(Failure::TimedOut)) => ": its timeout was over".to_owned(),
        (_, Some(Failure::Stopped)) => ": it was stopped".to_owned(),
        (Some(signal), _) => format!(": killed by signal {}", escape_line(signal, COLUMNS)),
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
pub(super) fn gone(gone: &Value, run: u64) -> String {
    let bytes = gone.get("bytes").and_then(Value::as_u64).unwrap_or_default();
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

pub(super) fn host_error(error: &Value) -> String {
    let Ok(error) = RpcError::deserialize(error) else {
        return problem("the host refused without a reason", "");
    };
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

pub(super) fn list(answer: &Value) -> String {
    let runs = answer.get("runs").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if runs.is_empty() {
        return "nothing runs\n".to_owned();
    }
    let mut text = String::new();
    for run in runs.iter().take(LISTED_MAX) {
        text.push_str(&line(run));
    }
    if runs.len() > LISTED_MAX {
        let _ = writeln!(text, "… and {} more", runs.len() - LISTED_MAX);
    }
    text
}

fn line(run: &Value) -> String {
    let of = |name: &str| run.get(name).and_then(Value::as_str).unwrap_or_default();
    let number = |name: &str| run.get(name).and_then(Value::as_u64);
    let mut parts = vec![format!("run {}", number("run").unwrap_or_default())];
    parts.push(match run.get("exit").and_then(Value::as_i64) {
        Some(exit) => format!("exit {exit}"),
        None => of("state").to_owned(),
    });
    parts.extend(number("started_ms_ago").map(|ms| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)));
    if run.get("background").and_then(Value::as_bool) == Some(true) {
        parts.push("background".to_owned());
    }
    for (name, label) in [("name", "name "), ("whoami", "by "), ("dir", "")] {
        if !of(name).is_empty() {
            parts.push(format!("{label}{}", of(name)));
        }
    }
    let ports: Vec<String> =
        run.get("ports").and_then(Value::as_array).into_iter().flatten().map(Value::to_string).collect();
    if !ports.is_empty() {
        parts.push(format!("ports {}", ports.join(", ")));
    }
    parts.push(of("command").to_owned());
    if !of("last_line").is_empty() {
        parts.push(format!("last line: {}", of("last_line")));
    }
    let shown: Vec<String> = parts.iter().map(|part| escape_line(part, COLUMNS)).collect();
    shown.join(" · ") + "\n"
}
