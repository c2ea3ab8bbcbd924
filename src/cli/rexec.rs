//! `rexec`: the human's command line.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use lexopt::prelude::{Long, Short, Value, ValueExt};

use super::{check, kill, list, print, ps};
use crate::failure::Failure;

const HELP: &str = "\
rexec: looks after rexec-host, which runs the commands of AI coding agents

usage: rexec ps
       rexec kill N...
       rexec --check-host
       rexec --list [N]
       rexec --print NAME

commands:
  ps                show what runs, what waits, and what ended commands left running
  kill N...         end commands, by their numbers, or what they left running: TERM,
                    the host's grace, KILL to their whole trees; wait until it is done

options:
  -c, --check-host  say HOST RUNNING (exit 0) or HOST NOT FOUND (exit 127)
  -l, --list [N]    list the N newest journals (default 10): name and commands
  -p, --print NAME  print a journal as the console showed it
  -h, --help        print this help
  -V, --version     print the version

environment:
  REXEC_SOCKET  the host's socket (default /run/user/UID/rexec/host.sock, else
                /tmp/rexec-UID/host.sock)
  REXEC_HOME    the journals' directory (default ~/.rexec)

examples:
  rexec kill 12
  rexec --list 3
  rexec --print 2026-05-21-09:42:18
";

/// Everything of the program but its start.
#[must_use]
pub fn main() -> ExitCode {
    super::finish(run())
}

enum Call {
    Say(&'static str),
    Ps,
    Kill(Vec<u64>),
    Check,
    List(usize),
    Print(String),
}

fn run() -> Result<u8, Failure> {
    match parse()? {
        Call::Say(text) => super::say(text),
        Call::Ps => with_output(|out| ps::ps(&super::socket_path()?, out)),
        Call::Kill(numbers) => with_output(|out| kill::kill(&super::socket_path()?, &numbers, out)),
        Call::Check if check::is_running(&super::socket_path()?) => super::say("HOST RUNNING\n"),
        Call::Check => super::say("HOST NOT FOUND\n").map(|_| 127),
        Call::List(count) => with_output(|out| {
            list::list(&super::home()?, count, out)
                .map_err(|error| Failure::new(&error, error.hint().unwrap_or_default()).with_code(error.exit_code()))
        }),
        Call::Print(name) => with_output(|out| {
            print::print(&super::home()?, &name, out)
                .map_err(|error| Failure::new(&error, error.hint().unwrap_or_default()).with_code(error.exit_code()))
        }),
    }
}

fn with_output(work: impl FnOnce(&mut BufWriter<io::StdoutLock<'_>>) -> Result<(), Failure>) -> Result<u8, Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    work(&mut out)?;
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format_args!("cannot write: {error}"), ""))
        }
        _ => Ok(0),
    }
}

fn parse() -> Result<Call, Failure> {
    let mut parser = lexopt::Parser::from_env();
    let wrong = |error: lexopt::Error| super::wrong_call(&error, "rexec");
    let mut call = None;
    while let Some(argument) = parser.next().map_err(wrong)? {
        let next = match argument {
            Short('h') | Long("help") => return Ok(Call::Say(HELP)),
            Short('V') | Long("version") => return Ok(Call::Say(concat!("rexec ", env!("CARGO_PKG_VERSION"), "\n"))),
            Short('c') | Long("check-host") => Call::Check,
            Short('l') | Long("list") => Call::List(count(&mut parser)?),
            Short('p') | Long("print") => Call::Print(parser.value().and_then(ValueExt::string).map_err(wrong)?),
            Value(word) if word == "ps" => Call::Ps,
            Value(word) if word == "kill" => Call::Kill(numbers(&mut parser)?),
            other => return Err(wrong(other.unexpected())),
        };
        if call.replace(next).is_some() {
            return Err(Failure::usage("one thing at a time", "rexec --help shows the options"));
        }
    }
    call.ok_or_else(|| Failure::usage("nothing to do", "rexec --help shows the options"))
}

/// The commands' numbers behind `kill`, written as `12` or `#12`.
fn numbers(parser: &mut lexopt::Parser) -> Result<Vec<u64>, Failure> {
    let mut numbers = Vec::new();
    let words = parser.raw_args().map_err(|error| super::wrong_call(&error, "rexec"))?;
    for word in words {
        let text = word.to_string_lossy();
        let number = text.strip_prefix('#').unwrap_or(&text).parse();
        numbers.push(number.map_err(|_| {
            Failure::usage(format_args!("kill: {text:?} is no command's number"), "rexec ps shows the numbers")
        })?);
    }
    if numbers.is_empty() {
        return Err(Failure::usage("kill: which command?", "rexec ps shows the numbers, as in rexec kill 12"));
    }
    Ok(numbers)
}

/// The number behind --list, if there is one.
fn count(parser: &mut lexopt::Parser) -> Result<usize, Failure> {
    let wrong = |error: lexopt::Error| super::wrong_call(&error, "rexec");
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
        Failure::usage(format_args!("--list: {text:?} is no number"), "a number of journals, as in --list 3")
    })
}
