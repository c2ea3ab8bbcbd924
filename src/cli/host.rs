//! `rexec-host`: the arguments.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::{Long, Short, Value, ValueExt};
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use crate::front::treatment::Policy;
use crate::host::{Host, HostOptions, TerminalUse};
use crate::limits;
use crate::sink::console::View;
use crate::sys::terminal;
use crate::text::escape::escape_line;

const HELP: &str = include_str!("help/rexec-host.txt");

/// The options, for a hint to who misspelt one.
fn names() -> Vec<&'static str> {
    HELP.split_whitespace().filter(|word| word.starts_with("--")).collect()
}

/// Everything of the program but its start.
#[must_use]
pub fn main() -> ExitCode {
    std::panic::set_hook(Box::new({
        let before = std::panic::take_hook();
        move |info| {
            terminal::restore();
            before(info);
        }
    }));
    super::finish(run())
}

enum Call {
    Say(&'static str),
    Host(Arguments),
}

#[derive(Default)]
struct Arguments {
    pty_size: Option<(u16, u16)>,
    tty: TerminalUse,
    live: bool,
    grace: Option<Duration>,
    sanitize: Policy,
    redact_agents: bool,
    view: View,
    raw_cap: Option<u64>,
    allow_sandboxed: bool,
    unseen_landlock: bool,
    require_descriptor: bool,
}

fn run() -> Result<u8, Notice> {
    match parse()? {
        Call::Say(text) => super::say(text),
        Call::Host(arguments) => {
            if !has_shim() {
                // Agents may be told of a shell elsewhere, so the host starts all the same.
                let _ = write!(io::stderr(), "{NO_SHIM}");
            }
            let options = HostOptions {
                socket: super::socket_path()?,
                home: super::home()?,
                pty_size: arguments.pty_size,
                tty: arguments.tty,
                live: arguments.live,
                grace: arguments.grace.unwrap_or(limits::GRACE),
                sanitize: arguments.sanitize,
                redact_agents: arguments.redact_agents,
                view: arguments.view,
                raw_cap: arguments.raw_cap.unwrap_or(limits::RAW_CAP_BYTES),
                allow_sandboxed: arguments.allow_sandboxed,
                unseen_landlock: arguments.unseen_landlock,
                require_descriptor: arguments.require_descriptor,
            };
            Host::open(options)?.run()?;
            Ok(exit_code::SUCCESS)
        }
    }
}

/// Said when nothing that agents could call was installed along with the host, as `cargo install` does it.
const NO_SHIM: Notice = Notice::fixed(
    exit_code::SUCCESS,
    "rexec-sh, the shell for agents, is not installed with this rexec-host",
    "scripts/install.sh installs it with its links; cargo install does not",
);

/// Whether the shim lies where it is built or installed: beside this program, or in `../lib/rexec`.
fn has_shim() -> bool {
    let Ok(program) = std::env::current_exe() else { return true };
    ["rexec-sh", "../lib/rexec/rexec-sh"].iter().any(|place| program.with_file_name(place).exists())
}

fn parse() -> Result<Call, Notice> {
    let mut parser = lexopt::Parser::from_env();
    let mut arguments = Arguments::default();
    let wrong = |error: lexopt::Error| super::wrong_call(&error, "rexec-host", &names());
    let mut is_first = true;
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Short('h') | Long("help") => return Ok(Call::Say(HELP)),
            Value(word) if is_first && word == "help" => return Ok(Call::Say(HELP)),
            // The only word there is stands first, so any other is a mistake.
            Value(word) => {
                let word = escape_line(&word.to_string_lossy(), 80);
                return Err(Notice::usage(
                    format_args!("rexec-host takes options only, not `{word}`"),
                    "rexec-host --help shows them",
                ));
            }
            Short('V') | Long("version") => {
                return Ok(Call::Say(concat!("rexec-host ", env!("CARGO_PKG_VERSION"), "\n")));
            }
            Long("allow-sandboxed") => arguments.allow_sandboxed = true,
            Long("unseen-landlock") => arguments.unseen_landlock = true,
            Long("require-descriptor") => arguments.require_descriptor = true,
            Long("live") => arguments.live = true,
            Long("no-pty") => arguments.tty = TerminalUse::Never,
            Long("tty") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.tty = terminal_use(&text)?;
            }
            Long("pty-size") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.pty_size = Some(size(&text)?);
            }
            Long("console") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.view = view(&text)?;
            }
            Long("redact-agents") => arguments.redact_agents = true,
            Long("sanitize") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.sanitize = policy(&text)?;
            }
            Long("raw-cap") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.raw_cap = Some(raw_cap(&text)?);
            }
            Long("grace") => {
                let text = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                arguments.grace = Some(grace(&text)?);
            }
            other => return Err(wrong(other.unexpected())),
        }
        is_first = false;
    }
    Ok(Call::Host(arguments))
}

fn size(text: &str) -> Result<(u16, u16), Notice> {
    let parse = || {
        let (cols, rows) = text.split_once('x')?;
        let size = (cols.parse().ok()?, rows.parse().ok()?);
        let is_possible =
            (1..=limits::WINDOW_COLS_MAX).contains(&size.0) && (1..=limits::WINDOW_ROWS_MAX).contains(&size.1);
        is_possible.then_some(size)
    };
    parse().ok_or_else(|| {
        Notice::usage(
            format_args!("--pty-size: {text:?} is no size"),
            format_args!(
                "at most {} columns and {} rows, as in 160x48",
                limits::WINDOW_COLS_MAX,
                limits::WINDOW_ROWS_MAX
            ),
        )
    })
}

fn terminal_use(text: &str) -> Result<TerminalUse, Notice> {
    match text {
        "auto" => Ok(TerminalUse::Auto),
        "always" => Ok(TerminalUse::Always),
        "never" => Ok(TerminalUse::Never),
        _ => Err(Notice::usage(format_args!("--tty: {text:?} is no use of it"), "auto, always or never")),
    }
}

fn policy(text: &str) -> Result<Policy, Notice> {
    match text {
        "collapse" => Ok(Policy::Collapse),
        "strip" => Ok(Policy::Strip),
        "raw" => Ok(Policy::Raw),
        "tidy" => Ok(Policy::Tidy),
        _ => Err(Notice::usage(format_args!("--sanitize: {text:?} is no treatment"), "collapse, strip, tidy or raw")),
    }
}

fn view(text: &str) -> Result<View, Notice> {
    match text {
        "safe" => Ok(View::Safe),
        "raw" => Ok(View::Raw),
        _ => Err(Notice::usage(format_args!("--console: {text:?} is no view"), "safe or raw")),
    }
}

fn grace(text: &str) -> Result<Duration, Notice> {
    let seconds = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|grace| *grace <= limits::GRACE_MAX).ok_or_else(|| {
        let most = limits::GRACE_MAX.as_secs();
        Notice::usage(
            format_args!("--grace: {text:?} is no time"),
            format_args!("seconds from 0 to {most}, as in 2 or 0.5"),
        )
    })
}

/// MiB as bytes.
fn raw_cap(text: &str) -> Result<u64, Notice> {
    let most = limits::RAW_CAP_MAX_MIB;
    text.parse().ok().filter(|mib| *mib <= most).map(|mib: u64| mib << 20).ok_or_else(|| {
        Notice::usage(
            format_args!("--raw-cap: {text:?} is not a size"),
            format_args!("MiB from 0 to {most}, as in 16; 0 keeps nothing"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_checked() {
        assert_eq!(size("160x48"), Ok((160, 48)));
        for text in ["", "x", "160", "160x", "0x48", "-1x5", "70000x1", "1001x48", "160x301", "160x48x1"] {
            assert!(size(text).is_err(), "{text}");
        }
        assert_eq!([raw_cap("0").unwrap(), raw_cap("16").unwrap()], [0, limits::RAW_CAP_BYTES]);
        for text in ["", "-1", "1.5", "16M", "99999999"] {
            assert!(raw_cap(text).is_err(), "{text}");
        }
        assert_eq!(grace("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "soon", "-1", "nan", "inf", "3601"] {
            assert!(grace(text).is_err(), "{text}");
        }
    }
}
