//! The command lines: `rexec-host` ([`host`]) and `rexec` ([`rexec`]), one file per subcommand.
//!
//! Output goes through `io::Write`, because the printing macros panic when nobody reads. A broken pipe is success.

pub mod ask;
pub mod check;
mod help;
pub mod host;
pub mod kill;
pub mod list;
mod nearest;
pub mod print;
pub mod ps;
pub mod rexec;

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place;

use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The variable that names the socket.
pub const SOCKET_VARIABLE: &str = "REXEC_SOCKET";
/// The variable that names the journal's directory.
pub const HOME_VARIABLE: &str = "REXEC_HOME";

/// The most of a wrong argument that is shown, columns.
const ARGUMENT_COLUMNS: usize = 80;

/// Ends a program: words on standard error if it failed.
fn finish(result: Result<u8, Notice>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // Nobody is left to be told when this fails.
            let _ = write!(io::stderr(), "{failure}");
            ExitCode::from(failure.code)
        }
    }
}

/// Writes to standard output.
fn say(text: &str) -> Result<u8, Notice> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(cannot_write(&error)),
        _ => Ok(exit_code::SUCCESS),
    }
}

/// Standard output does not take what was asked for.
fn cannot_write(error: &io::Error) -> Notice {
    Notice::failed(
        format_args!("cannot write: {}", reason(error)),
        "standard output must lead to something that takes it",
    )
}

/// Where the socket is.
fn socket_path() -> Result<PathBuf, Notice> {
    use std::os::unix::ffi::OsStrExt;
    let explicit = std::env::var_os(SOCKET_VARIABLE);
    place::socket_path(explicit.as_deref().map(OsStr::as_bytes), process::uid())
        .map_err(|error| Notice::failed(error, format_args!("set {SOCKET_VARIABLE} to a shorter path")))
}

/// Where the journals are.
fn home() -> Result<PathBuf, Notice> {
    let set = |name| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    if let Some(home) = set(HOME_VARIABLE) {
        return Ok(PathBuf::from(home));
    }
    set("HOME").map(|home| PathBuf::from(home).join(".rexec")).ok_or_else(|| {
        Notice::failed(
            "there is no place for the journal: HOME is not set",
            format_args!("set {HOME_VARIABLE} to a directory"),
        )
    })
}

/// What is wrong with a call, in words that name the argument, and the known name that is nearest to it.
fn wrong_call(error: &lexopt::Error, program: &str, names: &[&str]) -> Notice {
    let shown = |text: &str| escape_line(text, ARGUMENT_COLUMNS);
    let (text, given) = match error {
        lexopt::Error::UnexpectedOption(option) => (format!("there is no option {}", shown(option)), option.clone()),
        lexopt::Error::UnexpectedArgument(word) => {
            let word = word.to_string_lossy().into_owned();
            (format!("there is no command `{}`", shown(&word)), word)
        }
        lexopt::Error::MissingValue { option: Some(option) } => (format!("{option} needs a value"), String::new()),
        lexopt::Error::UnexpectedValue { option, value } => {
            (format!("{option} takes no value, not even `{}`", shown(&value.to_string_lossy())), String::new())
        }
        other => (shown(&other.to_string()), String::new()),
    };
    match nearest::nearest(&given, names) {
        Some(meant) => Notice::usage(text, format_args!("did you mean {meant}? {program} --help shows all")),
        None => Notice::usage(text, format_args!("{program} --help shows what there is")),
    }
}
