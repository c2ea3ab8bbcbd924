//! `rexec-host`: its command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::{Long, Short, Value};
use rexec_sh::protocol::choice::{self, Sanitize, Tty};
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use crate::host::{Color, Host, HostOptions, PromptChoice};
use crate::limits;
use crate::sink::console::View;
use crate::sys::terminal;
use crate::text::escape::escape_line;

const HELP: &str = include_str!("help/rexec-host.txt");

/// The options, for a hint at a misspelt one.
fn names() -> Vec<&'static str> {
    HELP.split_whitespace().filter(|word| word.starts_with("--")).collect()
}

/// Runs rexec-host to its end; returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    super::finish(run(&mut lexopt::Parser::from_env()))
}

/// What rexec-host is asked for.
enum Invocation {
    Say(&'static str),
    /// To be the host. The paths come from the environment and are still empty.
    Host(Box<HostOptions>),
}

/// What holds without options.
fn defaults() -> HostOptions {
    HostOptions {
        socket: PathBuf::new(),
        home: PathBuf::new(),
        pty_size: None,
        tty: Tty::default(),
        live: false,
        grace: limits::GRACE,
        sanitize: Sanitize::default(),
        view: View::default(),
        color: Color::default(),
        highlights: true,
        markers: false,
        has_status: true,
        notify: None,
        traces: false,
        prompts: PromptChoice::default(),
        prompt_wait: limits::PROMPT_WAIT,
        redact_agents: false,
        raw_cap: limits::RAW_CAP_BYTES,
        records: true,
        environments: true,
        budget: 0,
        allow_sandboxed: false,
        unseen_landlock: false,
        require_descriptor: false,
        end_idle: None,
        reports: true,
    }
}

/// Does what these arguments of rexec-host ask for; returns the exit code.
pub(super) fn run(parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    match parse(parser)? {
        Invocation::Say(text) => super::say(text),
        Invocation::Host(options) => {
            std::panic::set_hook(Box::new({
                let before = std::panic::take_hook();
                move |info| {
                    terminal::restore_in_panic();
                    before(info);
                }
            }));
            if super::installed::shim().is_none() {
                // Agents may use a shell that is installed elsewhere, so the host starts all the same.
                super::told::put(NO_SHIM);
            }
            let (socket, home) = (super::socket_path()?, super::home()?);
            Host::open(HostOptions { socket, home, ..*options })?.run()?;
            Ok(exit_code::SUCCESS)
        }
    }
}

/// The warning when no shell for agents is installed with the host.
const NO_SHIM: Notice = Notice::fixed(
    exit_code::SUCCESS,
    "rexec-sh, the shell for agents, is not installed with this rexec-host",
    "install rexec again, or move its programs together",
);

fn parse(parser: &mut lexopt::Parser) -> Result<Invocation, Notice> {
    let mut options = defaults();
    let mut is_first = true;
    while let Some(argument) = parser.next().map_err(wrong)? {
        match argument {
            Short('h') | Long("help") => return Ok(Invocation::Say(HELP)),
            Value(word) if is_first && word == "help" => return Ok(Invocation::Say(HELP)),
            // `help` as the first word is the only word that rexec-host knows.
            Value(word) => {
                let word = super::quoted(&word);
                let problem = format_args!("rexec-host takes options only, not {word}");
                return Err(Notice::usage(problem, "rexec-host --help shows them"));
            }
            Short('V') | Long("version") => {
                return Ok(Invocation::Say(concat!("rexec-host ", env!("CARGO_PKG_VERSION"), "\n")));
            }
            Long("allow-sandboxed") => options.allow_sandboxed = true,
            Long("unseen-landlock") => options.unseen_landlock = true,
            Long("no-reports") => options.reports = false,
            Long("require-descriptor") => options.require_descriptor = true,
            Long("color") => options.color = word(parser, "--color", color, "auto, always, never")?,
            Long("no-highlight") => options.highlights = false,
            Long("live") => options.live = true,
            Long("markers") => options.markers = true,
            Long("redact-agents") => options.redact_agents = true,
            Long("no-pty") => options.tty = Tty::Never,
            Long("tty") => options.tty = word(parser, "--tty", Tty::named, Tty::WORDS)?,
            Long("sanitize") => {
                options.sanitize = word(parser, "--sanitize", Sanitize::named, Sanitize::WORDS)?;
            }
            Long("trace") => options.traces = true,
            Long("otlp") => {
                let target = escape_line(&value(parser)?, super::ARGUMENT_COLUMNS);
                let hint = format_args!("rexec-host --trace; beside it rexec otlp --follow --to {target}");
                return Err(Notice::usage("--otlp is now a command of rexec", hint));
            }
            Long("notify") => options.notify = Some(value(parser)?),
            Long("no-status") => options.has_status = false,
            Long("console") => options.view = word(parser, "--console", view, "safe, raw")?,
            Long("prompts") => {
                options.prompts = word(parser, "--prompts", PromptChoice::named, PromptChoice::WORDS)?;
            }
            Long("prompt-wait") => {
                options.prompt_wait =
                    seconds("--prompt-wait", &value(parser)?, limits::PROMPT_WAIT_MAX, "as in 60 or 300")?;
            }
            Long("pty-size") => options.pty_size = Some(size(&value(parser)?)?),
            Long("raw-cap") => options.raw_cap = raw_cap(&value(parser)?)?,
            Long("budget") => {
                let chosen = word(parser, "--budget", choice::budget, choice::BUDGET_WORDS)?;
                options.budget = usize::try_from(chosen).unwrap_or(0);
            }
            Long("no-record") => options.records = false,
            Long("no-environments") => options.environments = false,
            Long("end-idle") => options.end_idle = minutes(&value(parser)?)?,
            Long("grace") => {
                options.grace = seconds("--grace", &value(parser)?, limits::GRACE_MAX, "as in 2 or 0.5")?;
            }
            other => return Err(wrong(other.unexpected())),
        }
        is_first = false;
    }
    Ok(Invocation::Host(Box::new(options)))
}

fn wrong(error: lexopt::Error) -> Notice {
    super::wrong_call(&error, "rexec-host", &names())
}

/// The value of an option. What is not UTF-8 in it is replaced, and no such value is valid.
fn value(parser: &mut lexopt::Parser) -> Result<String, Notice> {
    parser.value().map(|value| value.to_string_lossy().into_owned()).map_err(wrong)
}

/// The value of an option that takes one of a few words.
fn word<T>(
    parser: &mut lexopt::Parser,
    option: &str,
    named: impl FnOnce(&[u8]) -> Option<T>,
    allowed: &str,
) -> Result<T, Notice> {
    let word = value(parser)?;
    named(word.as_bytes()).ok_or_else(|| {
        let word = super::quoted(&word);
        let problem = format_args!("{option}: {word} is not a valid value ({allowed})");
        Notice::usage(problem, "rexec-host --help shows what each value does")
    })
}

fn color(word: &[u8]) -> Option<Color> {
    match word {
        b"auto" => Some(Color::Auto),
        b"always" => Some(Color::Always),
        b"never" => Some(Color::Never),
        _ => None,
    }
}

fn view(word: &[u8]) -> Option<View> {
    match word {
        b"safe" => Some(View::Safe),
        b"raw" => Some(View::Raw),
        _ => None,
    }
}

/// Columns and rows.
fn size(text: &str) -> Result<(u16, u16), Notice> {
    let (cols_max, rows_max) = (limits::WINDOW_COLS_MAX, limits::WINDOW_ROWS_MAX);
    let parse = || {
        let (cols, rows) = text.split_once('x')?;
        let (cols, rows) = (cols.parse().ok()?, rows.parse().ok()?);
        ((1..=cols_max).contains(&cols) && (1..=rows_max).contains(&rows)).then_some((cols, rows))
    };
    parse().ok_or_else(|| {
        let hint = format_args!("columns and rows up to {cols_max}x{rows_max}, as in 160x48");
        Notice::usage(format_args!("--pty-size: {} is not a valid size", super::quoted(text)), hint)
    })
}

/// A time of `most` at the longest.
fn seconds(option: &str, text: &str, most: Duration, example: &str) -> Result<Duration, Notice> {
    let seconds = text.parse().ok().and_then(|seconds: f64| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| *time <= most).ok_or_else(|| {
        let hint = format_args!("seconds from 0 to {}, {example}", most.as_secs());
        Notice::usage(format_args!("{option}: {} is not a valid time", super::quoted(text)), hint)
    })
}

/// Minutes; 0 is none.
fn minutes(text: &str) -> Result<Option<Duration>, Notice> {
    let most = limits::END_IDLE_MAX.as_secs() / 60;
    let time = text.parse().ok().and_then(|minutes: f64| Duration::try_from_secs_f64(minutes * 60.0).ok());
    let time = time.filter(|time| *time <= limits::END_IDLE_MAX).ok_or_else(|| {
        let hint = format_args!("minutes from 0 to {most}, as in 30; 0 means never");
        Notice::usage(format_args!("--end-idle: {} is not a valid time", super::quoted(text)), hint)
    })?;
    Ok((!time.is_zero()).then_some(time))
}

/// MiB as bytes.
fn raw_cap(text: &str) -> Result<u64, Notice> {
    let most = limits::RAW_CAP_MAX_MIB;
    text.parse().ok().filter(|mib| *mib <= most).map(|mib: u64| mib << 20).ok_or_else(|| {
        let hint = format_args!("MiB from 0 to {most}, as in 16; 0 keeps nothing");
        Notice::usage(format_args!("--raw-cap: {} is not a valid size", super::quoted(text)), hint)
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
        let grace = |text| seconds("--grace", text, limits::GRACE_MAX, "as in 2 or 0.5");
        assert_eq!(grace("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "soon", "-1", "nan", "inf", "3601"] {
            assert!(grace(text).is_err(), "{text}");
        }
    }
}
