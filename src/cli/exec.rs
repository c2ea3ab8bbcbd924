//! `rexec exec`: runs one command through the host, with the streams and the terminal of this process.
//!
//! This process becomes the shim in its direct form (`rexec_sh::protocol::direct`). So keys, window sizes, signals, stops
//! and the exit code pass as they do for an agent's command, and nothing is relayed twice.

mod background;
pub(super) mod shell;
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

use self::background::BackgroundOptions;
use super::awaited::Wanted;
use super::verb::{Group, JSON, Values, Verb, VerbOption};
use super::{help, installed, wait};
use crate::sys;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    name: "exec",
    short: None,
    group: Group::Agents,
    arguments: "[--] COMMAND... | -c STRING",
    values: Values::Program(&[]),
    summary: "run a command through the host",
    text: include_str!("help/exec.txt"),
    options: &[
        VerbOption::taking("why", "TEXT", Values::Nothing, "what it is for, for the console and the journal"),
        VerbOption::flag("tty", "give it a terminal, also where you have none"),
        VerbOption::taking("timeout", "TIME", Values::Nothing, "end it after this time, as 90 or 1.5h; exit code 124"),
        VerbOption::taking("env", "NAME=VALUE", Values::Nothing, "set a variable; may be repeated"),
        VerbOption::flag("clear-env", "give it only the variables of --env"),
        VerbOption::taking("dir", "DIR", Values::Nothing, "run it in this directory"),
        VerbOption::taking("as", "NAME", Values::Nothing, "your name on the console and in the journal"),
        VerbOption::taking("command", "STRING", Values::Nothing, "run this line with sh").short('c'),
        VerbOption::flag("bg", "start it in the background, and return"),
        VerbOption::taking("name", "NAME", Values::Nothing, "with --bg: make it a service of this name"),
        VerbOption::flag("restart", "with --name: end the service of this name first, if it runs"),
        VerbOption::taking("wait-port", "PORT", Values::Nothing, "with --bg: wait until it listens on this TCP port"),
        VerbOption::taking("wait-text", "TEXT", Values::Nothing, "with --bg: wait until it has written this text"),
        VerbOption::taking("wait", "TIME", Values::Nothing, "with --bg: watch it for this time, as 10s"),
        VerbOption::taking("wait-timeout", "TIME", Values::Nothing, "how long a port or text is awaited (default 60)"),
        VerbOption::flag("keep-stdin", "with --bg: keep its standard input open, for rexec send"),
        VerbOption { help: "with --bg: print one JSON object", ..JSON },
    ],
    codes: &[
        (1, "with --bg: another command has the name, or it ended with 0 before it was ready"),
        (124, "the timeout has ended the command; with --bg: it is not ready in time, and runs on"),
        (125, "the host went away, or did not run the command"),
        (126, "the command cannot be executed"),
        (127, "no host runs, or the command was not found"),
    ],
    examples: &[
        "rexec exec -- cargo test",
        "rexec exec --why 'find the slow test' --timeout 10m -c 'make check | tail'",
        "rexec exec --bg --name web --wait-port 3000 -- npm run dev",
    ],
    run: |parser| {
        let (call, background) = read(parser)?;
        match background {
            _ if call.line.is_empty() => help::say(&help::verb_help(&VERB)),
            Some(options) => background::start(&call, &options),
            None => Err(call.become_shim()),
        }
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
    /// Whether it gets no others.
    is_bare: bool,
    tty: bool,
    whoami: Option<OsString>,
    /// The shim's own options.
    options: Vec<(&'static str, OsString)>,
    dir: Option<OsString>,
    /// The program and its arguments.
    line: Vec<OsString>,
}

impl ExecCall {
    fn new(environment: Direct) -> Self {
        Self {
            environment,
            why: OsString::new(),
            timeout: Duration::ZERO,
            set: Vec::new(),
            is_bare: false,
            tty: false,
            whoami: None,
            options: Vec::new(),
            dir: None,
            line: Vec::new(),
        }
    }

    /// Enters the directory in which the command runs.
    fn enter_dir(&self) -> Result<(), Notice> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::env::set_current_dir(dir).map_err(|error| {
            let problem = format_args!("{}: {}", Path::new(dir).display(), reason(&error));
            Notice::new(NOT_EXECUTABLE, problem, "check --dir")
        })
    }

    /// The variables of the command: this process's own and those that were set. It is a run of its own, also where this
    /// process is part of one.
    fn command_environment(&self) -> Vec<(OsString, OsString)> {
        let is_rexecs = |name: &OsStr| name.as_bytes().starts_with(b"REXEC_");
        let passes = |name: &OsStr| match self.environment {
            Direct::Caller => !self.is_bare || is_rexecs(name),
            _ => name == super::SOCKET_VARIABLE,
        };
        let own = std::env::vars_os().filter(|(name, _)| !is_mark(name) && passes(name));
        // In the place of one that is set to nothing.
        let host = super::enclosing::path(super::SOCKET_VARIABLE).map(|path| (super::SOCKET_VARIABLE.into(), path));
        with(with(own.collect(), host.into_iter()), self.set.iter().cloned())
    }

    /// Becomes the shim. Returns only why that failed.
    fn become_shim(self) -> Notice {
        let Some(shim) = installed::shim() else { return super::run::NO_SHIM };
        if let Err(notice) = self.enter_dir() {
            return notice;
        }
        let own = |name: &str, value: OsString| (OsString::from(name), value);
        let mut options: Vec<_> = self.options.iter().map(|(name, value)| own(name, value.clone())).collect();
        options.extend(self.tty.then(|| own("REXEC_TTY", "always".into())));
        options.extend(self.whoami.clone().map(|name| own("REXEC_WHOAMI", name)));
        let env = with(self.command_environment(), options.into_iter());
        let env: Vec<CString> = env.iter().map(|(name, value)| entry(name, value)).collect();
        let timeout_ms = u64::try_from(self.timeout.as_millis()).expect("bounded by TIMEOUT_MAX");
        let why = c_string(self.why);
        let line = self.line.into_iter().map(c_string);
        let words: Vec<CString> =
            DirectCall::words(self.environment, timeout_ms, why).into_iter().chain(line).collect();
        let path = c_string(shim.into_os_string());
        let error = sys::background::execute(&path, &words, &env);
        Notice::without_hint(NOT_EXECUTABLE, format_args!("rexec-sh cannot be executed: {}", reason(&error)))
    }
}

/// Variables of which each is there once: those that are set last win.
fn with(
    mut env: Vec<(OsString, OsString)>,
    set: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    for (name, value) in set {
        env.retain(|(other, _)| *other != name);
        env.push((name, value));
    }
    env
}

fn entry(name: &OsStr, value: &OsStr) -> CString {
    c_string(OsString::from_vec([name.as_bytes(), b"=", value.as_bytes()].concat()))
}

fn c_string(word: OsString) -> CString {
    CString::new(word.into_vec()).expect("arguments and variables come from C strings")
}

/// Reads the command line. A call without a command asks for help.
fn read(parser: &mut lexopt::Parser) -> Result<(ExecCall, Option<BackgroundOptions>), Notice> {
    let (mut call, mut options, mut is_background) =
        (ExecCall::new(Direct::Caller), BackgroundOptions::default(), false);
    while let Some(argument) = parser.next().map_err(|error| VERB.wrong(&error))? {
        match argument {
            Long("help") | Short('h') => return Ok((ExecCall::new(Direct::Caller), None)),
            Long("why") => call.why = raw(&VERB, parser)?,
            Long("tty") => call.tty = true,
            Long("timeout") => call.timeout = VERB.time("--timeout", parser)?,
            Long("env") => call.set.push(variable(&VERB, parser)?),
            Long("clear-env") => call.is_bare = true,
            Long("dir") => call.dir = Some(raw(&VERB, parser)?),
            Long("as") => call.whoami = Some(raw(&VERB, parser)?),
            Long("command") | Short('c') => call.line = vec!["sh".into(), "-c".into(), raw(&VERB, parser)?],
            Long("bg") => is_background = true,
            Long("name") => options.name = Some(VERB.value(parser)?),
            Long("restart") => options.restarts = true,
            Long("wait-port") => options.awaited.push(Wanted::Port(VERB.port("--wait-port", parser)?)),
            Long("wait-text") => options.awaited.push(wait::text(&VERB, "--wait-text", parser)?),
            Long("wait") => options.awaited.push(Wanted::Time(VERB.time("--wait", parser)?)),
            Long("wait-timeout") => options.timeout = Some(VERB.time("--wait-timeout", parser)?),
            Long("keep-stdin") => options.keeps_stdin = true,
            Long("json") => options.is_json = true,
            Value(word) => {
                call.line.push(word);
                call.line.extend(parser.raw_args().map_err(|error| VERB.wrong(&error))?);
            }
            other => return Err(VERB.unexpected(other)),
        }
    }
    if call.line.is_empty() {
        return Err(VERB.missing("a command"));
    }
    if let Some(option) = options.given().filter(|_| !is_background) {
        return Err(VERB.missing(&format!("--bg with {option}")));
    }
    options.check()?;
    Ok((call, is_background.then_some(options)))
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
