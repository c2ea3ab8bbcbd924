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

use rexec_sh::protocol::direct::DirectCall;
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::mark::is_mark;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::wire::Direct;

use self::background::BackgroundOptions;
use super::awaited::Wanted;
use super::verb::{Call, Given, Group, Opt, Values, Verb, Words};
use super::{installed, wait};
use crate::sys;
use crate::text::reason::reason;

pub(super) const VERB: Verb = Verb {
    term: "exec",
    group: Group::Agents,
    summary: "run a command through the host",
    text: include_str!("help/exec.txt"),
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
    call: &Call::<ExecWords> {
        options: &[
            Opt::value("--why TEXT", |q, v| q.run.why = v.raw(), "what it is for, for the console and the journal"),
            Opt::flag("--tty", |q| q.run.tty = true, "give it a terminal, also where you have none"),
            Opt::value(
                "--timeout TIME",
                |q, v| q.run.timeout = v.time().unwrap_or_default(),
                "end it after this time, as 90 or 1.5h; exit code 124",
            ),
            Opt::value("--env NAME=VALUE", |q, v| q.run.set.extend(variable(v)), "set a variable; may be repeated"),
            Opt::flag("--clear-env", |q| q.run.is_bare = true, "give it only the variables of --env"),
            Opt::value("--dir DIR", |q, v| q.run.dir = Some(v.raw()), "run it in this directory"),
            Opt::value("--as NAME", |q, v| q.run.whoami = Some(v.raw()), "your name on the console and in the journal"),
            Opt::value(
                "-c, --command STRING",
                |q, v| q.run.line = vec!["sh".into(), "-c".into(), v.raw()],
                "run this line with sh",
            ),
            Opt::flag("--bg", |q| q.is_background = true, "start it in the background, and return"),
            Opt::value(
                "--name NAME",
                |q, v| q.background.name = Some(v.text()),
                "with --bg: make it a service of this name",
            ),
            Opt::flag(
                "--restart",
                |q| q.background.restarts = true,
                "with --name: end the service of this name first, if it runs",
            ),
            Opt::value(
                "--wait-port PORT",
                |q, v| q.background.awaited.extend(v.port().map(Wanted::Port)),
                "with --bg: wait until it listens on this TCP port",
            ),
            Opt::value(
                "--wait-text TEXT",
                |q, v| q.background.awaited.extend(wait::text(v)),
                "with --bg: wait until it has written this text",
            ),
            Opt::value(
                "--wait TIME",
                |q, v| q.background.awaited.extend(v.time().map(Wanted::Time)),
                "with --bg: watch it for this time, as 10s",
            ),
            Opt::value(
                "--wait-timeout TIME",
                |q, v| q.background.timeout = v.time(),
                "how long a port or text is awaited (default 60)",
            ),
            Opt::flag(
                "--keep-stdin",
                |q| q.background.keeps_stdin = true,
                "with --bg: keep its standard input open, for rexec send",
            ),
            Opt::flag("--json", |q| q.background.is_json = true, "with --bg: print one JSON object"),
        ],
        words: Words::line("[--] COMMAND... | -c STRING", Values::Program(&[]), |q, w| q.run.line.push(w.raw())),
        run: |ExecWords { run, background, is_background }| {
            if run.line.is_empty() {
                return Err(VERB.missing("a command"));
            }
            if let Some(option) = background.given().filter(|_| !is_background) {
                return Err(VERB.missing(&format!("--bg with {option}")));
            }
            background.check()?;
            if is_background { background::start(&run, &background) } else { Err(run.become_shim()) }
        },
    },
};

#[derive(Default)]
struct ExecWords {
    run: ExecCall,
    background: BackgroundOptions,
    is_background: bool,
}

/// A command, and the options for the shim.
#[derive(Debug, Default)]
struct ExecCall {
    environment: Direct,
    why: OsString,
    timeout: Duration,
    set: Vec<(OsString, OsString)>,
    /// True if the command gets no other variables.
    is_bare: bool,
    tty: bool,
    whoami: Option<OsString>,
    /// Options for the shim.
    options: Vec<(&'static str, OsString)>,
    dir: Option<OsString>,
    line: Vec<OsString>,
}

impl ExecCall {
    /// Enters the command's directory.
    fn enter_dir(&self) -> Result<(), Notice> {
        let Some(dir) = &self.dir else { return Ok(()) };
        std::env::set_current_dir(dir).map_err(|error| {
            let problem = format_args!("{}: {}", Path::new(dir).display(), reason(&error));
            Notice::new(NOT_EXECUTABLE, problem, "check --dir")
        })
    }

    /// The variables of the command: this process's own and the set ones. The command is a run of its own, even if this
    /// process is part of one.
    fn command_environment(&self) -> Vec<(OsString, OsString)> {
        let is_rexecs = |name: &OsStr| name.as_bytes().starts_with(b"REXEC_");
        let passes = |name: &OsStr| match self.environment {
            Direct::Caller => !self.is_bare || is_rexecs(name),
            _ => name == super::SOCKET_VARIABLE,
        };
        let own = std::env::vars_os().filter(|(name, _)| !is_mark(name) && passes(name));
        // The host's value replaces one that is set to nothing.
        let host = super::enclosing::path(super::SOCKET_VARIABLE).map(|path| (super::SOCKET_VARIABLE.into(), path));
        with(with(own.collect(), host.into_iter()), self.set.iter().cloned())
    }

    /// Becomes the shim. Returns only the reason for a failure.
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

/// Sets variables; each name stays unique, and the last value wins.
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

fn variable(given: &mut Given<'_>) -> Option<(OsString, OsString)> {
    let bytes = given.raw().into_vec();
    let at = bytes.iter().position(|&byte| byte == b'=').filter(|&at| at > 0);
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    given.or_refuse(at.map(|at| (part(&bytes[..at]), part(&bytes[at + 1..]))), "a variable is NAME=VALUE")
}
