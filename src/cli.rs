//! The command lines: `rexec-host` ([`host`]) and `rexec` ([`rexec`]), one file per subcommand.
//!
//! Output goes through `io::Write`, because the printing macros panic when nobody reads: that of verbs through
//! `output`, remarks and notices through `told`. A broken pipe is a success. What fails ends as one [`Notice`] on
//! standard error, with one of the codes in `rexec_sh::protocol::exit_code`.

mod accepted;
mod acted;
mod answer;
pub mod ask;
mod attach;
mod awaited;
pub mod check;
mod chosen;
mod columns;
mod completions;
mod config;
mod config_file;
mod diff;
mod doctor;
mod enclosing;
mod events;
mod exec;
mod exec_server;
mod explain;
mod export;
mod gate;
mod help;
pub mod host;
mod host_calls;
mod init;
mod installed;
mod kept;
pub mod kill;
pub mod list;
pub mod log;
mod look;
mod man;
mod mcp;
mod otlp;
mod out;
mod output;
mod pause;
mod person;
pub mod print;
mod project_file;
mod projects;
pub mod ps;
mod record_reference;
mod replay;
mod rerun;
pub mod rexec;
mod run;
pub mod run_reference;
mod schema;
mod send;
mod service;
mod services;
mod sessions;
mod sheet;
mod show;
mod start;
mod stats;
mod status;
mod stdio_server;
mod stop_host;
mod tail;
mod told;
mod trust;
mod undo;
mod unified;
mod verb;
mod verbs;
mod wait;
mod when;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place;
use serde::Serialize;

use self::output::{say, say_bytes, with_output};
use crate::front::json_line::put_line;
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::hidden::{is_bar, is_hidden};
use crate::text::nearest::nearest;
use crate::text::reason::reason;

/// The environment variable that names the host's socket.
pub const SOCKET_VARIABLE: &str = "REXEC_SOCKET";
/// The environment variable that names the journals' directory.
pub const HOME_VARIABLE: &str = "REXEC_HOME";

/// Columns of a wrong argument that are shown. The rest is cut.
const ARGUMENT_COLUMNS: usize = 80;

/// Turns a program's result into its exit code; a notice goes to standard error.
fn finish(result: Result<u8, Notice>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(notice) => {
            told::put(&notice);
            ExitCode::from(notice.code)
        }
    }
}

/// Writes each form with its version as a line of JSON.
fn put_json<T: Serialize>(values: impl Iterator<Item = T>, out: &mut impl Write) -> Result<(), Notice> {
    values.into_iter().try_for_each(|value| written(out.write_all(json_line(&value).as_bytes())))
}

/// The version of what `--json` prints, see `rexec schema`.
const FORM_VERSION: u32 = 1;

/// What `--json` prints of a form.
#[derive(Serialize)]
struct Versioned<'a, T> {
    v: u32,
    #[serde(flatten)]
    form: &'a T,
}

/// A form with its version as a line of JSON.
fn json_line(form: &impl Serialize) -> String {
    bare_json_line(&Versioned { v: FORM_VERSION, form })
}

/// The value as a line of JSON that a terminal may show.
fn bare_json_line(value: &impl Serialize) -> String {
    let mut line = Vec::new();
    put_line(value, &mut line);
    shown_json(&line)
}

/// Lines of JSON in which hidden characters, all control characters and the host's bar are spelled out, so that a terminal
/// may show them.
fn shown_json(lines: &[u8]) -> String {
    let mut shown = String::with_capacity(lines.len());
    for c in String::from_utf8_lossy(lines).chars() {
        if c == '\n' || !(c.is_control() || is_hidden(c) || is_bar(c)) {
            shown.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        }
    }
    shown
}

/// The outcome of writing to standard output. A reader that has gone is not an error.
fn written(result: io::Result<()>) -> Result<(), Notice> {
    match result {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_write(&error)),
        _ => Ok(()),
    }
}

/// The notice for standard output that takes nothing.
fn cannot_write(error: &io::Error) -> Notice {
    let hint = "check where standard output leads: the disk may be full";
    Notice::failed(format_args!("cannot write: {}", reason(error)), hint)
}

/// The path of the host's socket.
fn socket_path() -> Result<PathBuf, Notice> {
    use std::os::unix::ffi::OsStrExt;
    let explicit = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty());
    let explicit = explicit.or_else(|| enclosing::path(SOCKET_VARIABLE));
    place::socket_path(explicit.as_deref().map(OsStr::as_bytes), process::uid())
        .map_err(|error| Notice::failed(error, format_args!("set {SOCKET_VARIABLE} to a shorter path")))
}

/// The directory of the journals.
fn home() -> Result<PathBuf, Notice> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(home) = set(HOME_VARIABLE).or_else(|| enclosing::path(HOME_VARIABLE)) {
        return Ok(PathBuf::from(home));
    }
    set("HOME").map(|home| PathBuf::from(home).join(".rexec")).ok_or_else(|| {
        Notice::failed(
            "there is no place for the journal: HOME is not set",
            format_args!("set {HOME_VARIABLE} to a directory"),
        )
    })
}

/// A word of the command line as notices show it: in backquotes, escaped and cut.
fn quoted(word: impl AsRef<OsStr>) -> String {
    format!("`{}`", escape_line(&word.as_ref().to_string_lossy(), ARGUMENT_COLUMNS))
}

/// The notice on a command line that lexopt does not take. It names the argument, and the known name nearest to it.
fn wrong_call(error: &lexopt::Error, program: &str, names: &[&str]) -> Notice {
    let (problem, given) = match error {
        lexopt::Error::UnexpectedOption(option) => (format!("there is no option {}", quoted(option)), option.clone()),
        lexopt::Error::UnexpectedArgument(word) => {
            (format!("there is no command {}", quoted(word)), word.to_string_lossy().into_owned())
        }
        lexopt::Error::MissingValue { option: Some(option) } => (format!("{option} needs a value"), String::new()),
        lexopt::Error::UnexpectedValue { option, value } => {
            (format!("{option} takes no value, but was given {}", quoted(value)), String::new())
        }
        other => (escape_line(&other.to_string(), ARGUMENT_COLUMNS), String::new()),
    };
    match nearest(&given, names) {
        Some(meant) => Notice::usage(problem, format_args!("did you mean {meant}? {program} --help shows all")),
        None => Notice::usage(problem, format_args!("{program} --help shows the commands and options")),
    }
}
