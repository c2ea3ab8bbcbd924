//! `rexec`: its command line. Each verb has a file of its own.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use lexopt::prelude::{Long, Short, Value, ValueExt};
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::{HOST_NOT_FOUND, Notice};

use super::{check, help, kill, list, nearest, print, ps};

/// Runs rexec to its end; returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    super::finish(run())
}

/// What rexec is asked for.
enum Verb {
    Say(&'static str),
    Ps,
    Kill(Vec<u64>),
    Check,
    List(usize),
    Print(String),
}

fn run() -> Result<u8, Notice> {
    match parse()? {
        Verb::Say(text) => super::say(text),
        Verb::Ps => with_output(|out| ps::ps(&super::socket_path()?, out)),
        Verb::Kill(numbers) => with_output(|out| kill::kill(&super::socket_path()?, &numbers, out)),
        Verb::Check if check::is_running(&super::socket_path()?) => super::say("HOST RUNNING\n"),
        Verb::Check => super::say(HOST_NOT_FOUND).map(|_| exit_code::NOT_FOUND),
        Verb::List(count) => with_output(|out| list::list(&super::home()?, count, out)),
        Verb::Print(name) => with_output(|out| Ok(print::print(&super::home()?, &name, out)?)),
    }
}

/// Does this with a buffered standard output; returns the exit code.
fn with_output(work: impl FnOnce(&mut BufWriter<io::StdoutLock<'_>>) -> Result<(), Notice>) -> Result<u8, Notice> {
    let mut out = BufWriter::new(io::stdout().lock());
    work(&mut out)?;
    super::written(out.flush())?;
    Ok(exit_code::SUCCESS)
}

fn parse() -> Result<Verb, Notice> {
    let mut parser = lexopt::Parser::from_env();
    let mut verb: Option<Verb> = None;
    while let Some(argument) = parser.next().map_err(wrong)? {
        let next = match argument {
            Short('h') | Long("help") => return Ok(Verb::Say(verb.as_ref().map_or(help::ALL, Verb::help))),
            Short('V') | Long("version") => return Ok(Verb::Say(concat!("rexec ", env!("CARGO_PKG_VERSION"), "\n"))),
            Short('c') | Long("check-host") => Verb::Check,
            Short('l') | Long("list") => Verb::List(count(&mut parser)?),
            Short('p') | Long("print") => {
                let name = parser.value().and_then(ValueExt::string).map_err(wrong)?;
                if is_help(&name) { help_for("print")? } else { Verb::Print(name) }
            }
            Value(word) if word == "help" && verb.is_none() => return help(&mut parser),
            Value(word) if word == "ps" => Verb::Ps,
            Value(word) if word == "kill" => numbers(&mut parser)?,
            Value(word) if verb.is_some() => {
                let word = super::quoted(&word);
                let problem = format_args!("one thing at a time: {word} is too much");
                return Err(Notice::usage(problem, HINT));
            }
            other => return Err(wrong(other.unexpected())),
        };
        if verb.replace(next).is_some() {
            return Err(Notice::usage("one thing at a time", HINT));
        }
    }
    Ok(verb.unwrap_or(Verb::Say(help::ALL)))
}

const HINT: &str = "rexec --help shows the commands";

fn wrong(error: lexopt::Error) -> Notice {
    super::wrong_call(&error, "rexec", &help::names())
}

impl Verb {
    /// The help for the verb.
    fn help(&self) -> &'static str {
        let name = match self {
            Self::Say(text) => return text,
            Self::Ps => "ps",
            Self::Kill(_) => "kill",
            Self::Check => "check-host",
            Self::List(_) => "list",
            Self::Print(_) => "print",
        };
        help::topic(name).unwrap_or(help::ALL)
    }
}

fn is_help(word: &str) -> bool {
    matches!(word, "-h" | "--help")
}

/// The help for the topic behind `help`, or for everything.
fn help(parser: &mut lexopt::Parser) -> Result<Verb, Notice> {
    let mut words = parser.raw_args().map_err(wrong)?;
    match (words.next(), words.next()) {
        (None, _) => Ok(Verb::Say(help::ALL)),
        (Some(word), None) if is_help(&word.to_string_lossy()) => help_for("help"),
        (Some(word), None) => help_for(&word.to_string_lossy()),
        (Some(_), Some(_)) => Err(Notice::usage("one thing at a time: help takes one topic", HINT)),
    }
}

fn help_for(word: &str) -> Result<Verb, Notice> {
    help::topic(word).map(Verb::Say).ok_or_else(|| {
        let text = format!("there is no help on {}", super::quoted(word));
        match nearest::nearest(word, &help::topics()) {
            Some(meant) => {
                Notice::usage(text, format_args!("did you mean rexec help {meant}? rexec help lists all topics"))
            }
            None => Notice::usage(text, "rexec help lists all topics"),
        }
    })
}

/// The commands' numbers behind `kill`, written as `12` or `#12`.
fn numbers(parser: &mut lexopt::Parser) -> Result<Verb, Notice> {
    let mut numbers = Vec::new();
    for word in parser.raw_args().map_err(wrong)? {
        let text = word.to_string_lossy();
        if is_help(&text) {
            return help_for("kill");
        }
        let number = text.strip_prefix('#').unwrap_or(&text).parse();
        numbers.push(number.map_err(|_| {
            Notice::usage(
                format_args!("kill: {} is not a command number", super::quoted(&word)),
                "rexec ps shows the numbers",
            )
        })?);
    }
    if numbers.is_empty() {
        return Err(Notice::usage("kill needs a command number", "rexec ps shows the numbers, as in rexec kill 12"));
    }
    Ok(Verb::Kill(numbers))
}

/// The number behind --list, if there is one.
fn count(parser: &mut lexopt::Parser) -> Result<usize, Notice> {
    let text = match parser.optional_value() {
        Some(value) => Some(value.string().map_err(wrong)?),
        None => match parser.try_raw_args() {
            Some(mut raw) => match raw.next_if(|next| !next.as_encoded_bytes().starts_with(b"-")) {
                Some(value) => Some(value.string().map_err(wrong)?),
                None => None,
            },
            None => None,
        },
    };
    let Some(text) = text else { return Ok(list::DEFAULT) };
    text.parse().map_err(|_| {
        Notice::usage(
            format_args!("--list: {} is not a number", super::quoted(&text)),
            "a number of journals, as in --list 3",
        )
    })
}
