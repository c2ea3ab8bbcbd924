//! `rexec exec`: runs one command through the host, with the streams and the terminal of this process.
//!
//! This process becomes the shim in its direct form (`rexec_sh::protocol::direct`). So keys, window sizes, signals, stops
//! and the exit code pass as they do for an agent's command, and nothing is relayed twice.

pub(super) mod whoami;

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use lexopt::prelude::{Long, Short, Value};
use rexec_sh::protocol::direct::DirectCall;
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::mark::is_mark;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::Direct;

use super::verb::{Group, Values, Verb, VerbOption};
use super::{help, installed};
use crate::limits;
use crate::sys::background;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    name: "exec",
    short: None,
    group: Group::Agents,
    arguments: "[--] COMMAND... | -c STRING",
    values: Values::Program(&[]),
    summary: "run a command through the host",
    text: "\
COMMAND is a program with its arguments; -c STRING is a command line for sh.
The command gets your directory, environment, standard input and terminal, and
rexec ends with its exit code. It is on the console and in the journal, and can
be stopped there, like every command of an agent.
",
    options: &[
        VerbOption::taking("why", "TEXT", Values::Nothing, "what it is for, for the console and the journal"),
        VerbOption::flag("tty", "give it a terminal, also where you have none"),
        VerbOption::taking("timeout", "TIME", Values::Nothing, "end it after this time, as 90 or 1.5h; exit code 124"),
        VerbOption::taking("env", "NAME=VALUE", Values::Nothing, "set a variable; may be repeated"),
        VerbOption::taking("dir", "DIR", Values::Nothing, "run it in this directory"),
        VerbOption::taking("as", "NAME", Values::Nothing, "your name on the console and in the journal"),
        VerbOption::taking("command", "STRING", Values::Nothing, "run this line with sh").short('c'),
    ],
    codes: &[
        (124, "the timeout has ended the command"),
        (125, "the host went away, or did not run the command"),
        (126, "the command cannot be executed"),
        (127, "no host runs, or the command was not found"),
    ],
    examples: &[
        "rexec exec -- cargo test",
        "rexec exec --why 'find the slow test' --timeout 10m -c 'make check | tail'",
    ],
    run: |parser| {
        let call = read(parser)?;
        if call.line.is_empty() { super::say(&help::verb_help(&VERB)) } else { Err(call.become_shim()) }
    },
};

/// A command, and how the shim should run it.
#[derive(Debug)]
struct ExecCall {
    environment: Direct,
    why: OsString,
    timeout: Duration,
    /// Variables for the command.
    set: Vec<(OsString, OsString)>,
    /// The shim's own options.
    options: Vec<(&'static str, OsString)>,
    dir: Option<OsString>,
    /// The program and its arguments.
    line: Vec<OsString>,
}

impl ExecCall {
    fn new(environment: Direct) -> Self {
        let (why, set, options, line) = (OsString::new(), Vec::new(), Vec::new(), Vec::new());
        Self { environment, why, timeout: Duration::ZERO, set, options, dir: None, line }
    }

    /// Becomes the shim. Returns only why that failed.
    fn become_shim(self) -> Notice {
        let Some(shim) = installed::shim() else { return super::run::NO_SHIM };
        if let Some(dir) = &self.dir
            && let Err(error) = std::env::set_current_dir(dir)
        {
            let problem = format_args!("{}: {}", Path::new(dir).display(), reason(&error));
            return Notice::new(NOT_EXECUTABLE, problem, "check --dir");
        }
        let timeout_ms = u64::try_from(self.timeout.as_millis()).expect("bounded by TIMEOUT_MAX");
        let why = c_string(self.why);
        let line = self.line.into_iter().map(c_string);
        let words: Vec<CString> =
            DirectCall::words(self.environment, timeout_ms, why).into_iter().chain(line).collect();
        // The command is a run of its own, also where this process is part of one.
        let own = std::env::vars_os().filter(|(name, _)| !is_mark(name));
        let own = own.filter(|(name, _)| self.environment == Direct::Caller || name == super::SOCKET_VARIABLE);
        let host = super::enclosing::path(super::SOCKET_VARIABLE).map(|path| (super::SOCKET_VARIABLE.into(), path));
        // In the place of one that is set to nothing.
        let own = own.filter(|(name, _)| host.is_none() || name != super::SOCKET_VARIABLE).chain(host.clone());
        let set = self.options.into_iter().map(|(name, value)| (OsString::from(name), value)).chain(self.set);
        let set: Vec<(OsString, OsString)> = set.collect();
        let own = own.filter(|(name, _)| set.iter().all(|(other, _)| other != name));
        let mut env: Vec<(OsString, OsString)> = own.collect();
        for (name, value) in &set {
            env.retain(|(other, _)| other != name);
            env.push((name.clone(), value.clone()));
        }
        let env: Vec<CString> = env.iter().map(|(name, value)| entry(name, value)).collect();
        let path = c_string(shim.into_os_string());
        let error = background::execute(&path, &words, &env);
        Notice::without_hint(NOT_EXECUTABLE, format_args!("rexec-sh cannot be executed: {}", reason(&error)))
    }
}

fn entry(name: &OsStr, value: &OsStr) -> CString {
    c_string(OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat()))
}

fn c_string(word: OsString) -> CString {
    CString::new(word.into_vec()).expect("arguments and variables come from C strings")
}

fn read(parser: &mut lexopt::Parser) -> Result<ExecCall, Notice> {
    let mut call = ExecCall::new(Direct::Caller);
    while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
        match argument {
            Long("help") | Short('h') => return Ok(ExecCall::new(Direct::Caller)),
            Long("why") => call.why = raw(&VERB, parser)?,
            Long("tty") => call.options.push(("REXEC_TTY", "always".into())),
            Long("timeout") => call.timeout = timeout(&VERB, parser)?,
            Long("env") => call.set.push(variable(&VERB, parser)?),
            Long("dir") => call.dir = Some(raw(&VERB, parser)?),
            Long("as") => call.options.push(("REXEC_WHOAMI", raw(&VERB, parser)?)),
            Long("command") | Short('c') => call.line = vec!["sh".into(), "-c".into(), raw(&VERB, parser)?],
            Value(word) => {
                call.line.push(word);
                call.line.extend(parser.raw_args().map_err(|error| VERB.wrong(&error))?);
            }
            other => return Err(VERB.unexpected(other)),
        }
    }
    if call.line.is_empty() { Err(VERB.missing("a command")) } else { Ok(call) }
}

fn raw(verb: &Verb, parser: &mut lexopt::Parser) -> Result<OsString, Notice> {
    parser.value().map_err(|error| verb.wrong(&error))
}

/// The variable that `--env` names.
fn variable(verb: &Verb, parser: &mut lexopt::Parser) -> Result<(OsString, OsString), Notice> {
    let given = raw(verb, parser)?;
    let bytes = given.as_bytes();
    match bytes.iter().position(|&byte| byte == b'=') {
        None | Some(0) => Err(verb.not_valid("--env", &given.to_string_lossy(), "a variable is NAME=VALUE")),
        Some(at) => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
        }
    }
}

/// The time that `--timeout` gives: a number of seconds, or with m or h of minutes or hours. Zero means never.
fn timeout(verb: &Verb, parser: &mut lexopt::Parser) -> Result<Duration, Notice> {
    let given = verb.value(parser)?;
    let (number, unit) = match given.trim_end_matches(['s', 'm', 'h']) {
        number if given.len() > number.len() + 1 => (number, f64::NAN),
        number => (
            number,
            match &given[number.len()..] {
                "m" => 60.0,
                "h" => 3_600.0,
                _ => 1.0,
            },
        ),
    };
    let seconds = number.parse().unwrap_or(f64::NAN) * unit;
    if (0.0..=limits::TIMEOUT_MAX.as_secs_f64()).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    let most = limits::TIMEOUT_MAX.as_secs() / 3_600;
    Err(verb.not_valid("--timeout", &given, &format!("seconds as 90, or 10m or 1.5h, up to {most}h")))
}
