//! `rexec rerun N`: runs a past command again, with its own words, directory and variables.
//!
//! This process becomes the shim, so the host, the console and the journal treat the command like any other, and its
//! output and exit code are those of any other.
//!
//! Invariants: no secret comes from the journal, because the journal has none; a command is not run if the journal
//! lacks a part of it; a command that ran in a sandbox is not run outside of it.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rexec_sh::protocol::direct::{self, DirectCall};
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::invocation::{Shell, is_command};
use rexec_sh::protocol::notice::{Notice, remark};
use rexec_sh::protocol::wire::Direct;

use super::run_reference::{NO_SUCH_RUN, RunReference, unreadable};
use super::told::tell;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words};
use super::{HOME_VARIABLE, SOCKET_VARIABLE, installed};
use crate::history::RunBeginning;
use crate::journal::record::{KeptEnvironment, StartRecord};
use crate::text::agent_name::short_name;
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::reason::reason;
use crate::text::redact::is_masked;
use crate::text::unwrap::shell_word;

pub(super) const VERB: Verb = Verb {
    term: "rerun",
    group: Group::Past,
    summary: "run a command of the past again",
    text: "\
N is a number, SESSION:N or -1. The command runs through the host with the
arguments, directory and variables that it had, on pipes or on a terminal as
then. Output and exit code are the command's. Standard input is your own.

It is shown under its agent's name, as in claude-rerun, or as NAME.

The journal keeps the values of variables that are known to hold no secret,
such as PATH, LANG and VIRTUAL_ENV. All others are taken from your own
environment, and rerun names those that are not set there. Limits (ulimit) and
umask are your own. A run that an older host recorded, or one with
--no-environments, gets your environment.
",
    codes: &[(1, "the journal lacks a part of it, or it ran in a sandbox"), NO_SUCH_RUN, NO_HOST],
    examples: &["rexec rerun 44", "rexec rerun -1 --as me", "GITHUB_TOKEN=$(gh auth token) rexec rerun -1"],
    call: &Call::<RerunCall> {
        options: &[
            Opt::value(
                "--as NAME",
                |q, v| q.name = Some(v.text()).filter(|name| !name.is_empty()),
                "show it under this name",
            ),
            Opt::flag("--dry-run", |q| q.is_dry = true, "print directory, variables and call, and run nothing"),
        ],
        words: Words::run("N", Values::Nothing, |q, w| q.reference = w.reference()),
        run,
    },
};

#[derive(Default)]
struct RerunCall {
    reference: Option<RunReference>,
    name: Option<String>,
    is_dry: bool,
}

fn run(RerunCall { reference, name, is_dry }: RerunCall) -> Result<u8, Notice> {
    let reference = reference.ok_or_else(|| VERB.missing("the number of a command, as in rexec rerun 44"))?;
    let home = super::home()?;
    let run = reference.find(&home, &super::socket_path()?)?;
    let beginning = run.beginning().map_err(|error| unreadable(&home, &error))?;
    let name = name.unwrap_or_else(|| rerun_name(&run.start.card.whoami));
    let repetition = Repetition::of(&beginning)?;
    if is_dry {
        return super::say(&repetition.shown());
    }
    repetition.become_it(&beginning.start, &name)
}

/// The caller's name for a repeated command of an agent.
fn rerun_name(whoami: &str) -> String {
    const REMARK: &str = "-rerun";
    let short = Some(short_name(whoami)).filter(|short| !short.is_empty()).unwrap_or(whoami);
    if short.ends_with(REMARK) { short.to_owned() } else { format!("{short}{REMARK}") }
}

const NAMES_COLUMNS: usize = 400;

/// The call to repeat.
enum RepeatedCall {
    /// A shell with a command string, by its argument vector.
    Shell(Vec<OsString>),
    /// A program and its arguments, as they came in words.
    Words(Vec<OsString>),
}

/// A run to repeat.
struct Repetition {
    call: RepeatedCall,
    dir: PathBuf,
    /// `None`: this process's own environment.
    environment: Option<Vec<(OsString, OsString)>>,
    /// Remarks for the person, printed first.
    remarks: Vec<String>,
}

impl Repetition {
    fn of(beginning: &RunBeginning) -> Result<Self, Notice> {
        let start = &beginning.start;
        let call = RepeatedCall::of(start)?;
        let dir = PathBuf::from(OsString::from_vec(start.directory()));
        if !dir.is_dir() {
            let problem = format!("the directory {} of command {} is not there", dir.display(), start.card.seq);
            return Err(Notice::failed(problem, "make it again, or run the command yourself in another place"));
        }
        let mut remarks = Vec::new();
        let environment = match &beginning.environment {
            Some(environment) => Some(variables(environment, &dir, &mut remarks)),
            None => {
                remarks.push(format!("the journal has no environment of command {}: it gets this one", start.card.seq));
                None
            }
        };
        Ok(Self { call, dir, environment, remarks })
    }

    fn shown(&self) -> String {
        let word = |word: &OsStr| escape_line(&String::from_utf8_lossy(&shell_word(word.as_bytes())), usize::MAX);
        let mut text = format!("cd {}\n", word(self.dir.as_os_str()));
        for (name, value) in self.environment.iter().flatten() {
            text += &format!("{}={}\n", escape_line(&name.to_string_lossy(), usize::MAX), word(value));
        }
        text += &self.call.words().iter().map(|argument| word(argument)).collect::<Vec<_>>().join(" ");
        self.remarks.iter().fold(text + "\n", |text, sentence| text + &remark(sentence))
    }

    /// Becomes the shim that runs it. Returns only the reason for a failure.
    fn become_it(&self, start: &StartRecord, name: &str) -> Result<u8, Notice> {
        let shim = installed::shim().ok_or(super::run::NO_SHIM)?;
        for sentence in &self.remarks {
            tell(sentence);
        }
        let mut command = Command::new(&shim);
        command.current_dir(&self.dir);
        match &self.call {
            RepeatedCall::Shell(argv) => command.arg0(&argv[0]).args(&argv[1..]),
            RepeatedCall::Words(argv) => {
                let call = DirectCall::words(Direct::Caller, 0, CString::default());
                let call = call.iter().map(|word| OsStr::from_bytes(word.as_bytes()));
                command.arg0(OsStr::from_bytes(direct::NAME.to_bytes())).args(call.skip(1)).args(argv)
            }
        };
        if let Some(environment) = &self.environment {
            let own = |name| std::env::var_os(name).map(|value| (OsString::from(name), value));
            command.env_clear().envs(environment.iter().cloned());
            command.envs([SOCKET_VARIABLE, HOME_VARIABLE].into_iter().filter_map(own));
        }
        command.envs(super::enclosing::path(SOCKET_VARIABLE).map(|path| (SOCKET_VARIABLE, path)));
        // A run's mark would make the shim run it itself. A budget is for agents.
        command.env_remove("REXEC_INSIDE").env("REXEC_WHOAMI", name).env("REXEC_BUDGET", "off");
        let shell = Path::new(&start.card.shell);
        // For a program that came in words, `shell` is the program itself.
        match self.call {
            RepeatedCall::Shell(_) if shell.is_absolute() && shell.is_file() => command.env("REXEC_SHELL", shell),
            _ => command.env_remove("REXEC_SHELL"),
        };
        if !start.terminal {
            command.env("REXEC_TTY", "never");
            if io::stdin().is_terminal() {
                // The keys are for the host's console, which passes them on if the command asks.
                command.stdin(Stdio::null());
            }
        } else if !io::stdout().is_terminal() {
            command.env("REXEC_TTY", "always");
        }
        let error = command.exec();
        Err(Notice::without_hint(NOT_EXECUTABLE, format!("{} cannot be executed: {}", shim.display(), reason(&error))))
    }
}

impl RepeatedCall {
    fn words(&self) -> &[OsString] {
        let (Self::Shell(words) | Self::Words(words)) = self;
        words
    }

    /// The call that repeats the run.
    fn of(start: &StartRecord) -> Result<Self, Notice> {
        let arguments = arguments(start)?;
        let shell = Shell::named(&arguments[0]);
        let is_shells = shell.is_some_and(|shell| is_command(shell, arguments.iter().map(Vec::as_slice)));
        let argv = arguments.into_iter().map(OsString::from_vec).collect();
        Ok(if is_shells { Self::Shell(argv) } else { Self::Words(argv) })
    }
}

/// The run's arguments, at least one.
fn arguments(start: &StartRecord) -> Result<Vec<Vec<u8>>, Notice> {
    let seq = start.card.seq;
    let lacks = |why: &str, hint: &str| Err(Notice::failed(format_args!("command {seq} {why}"), hint));
    if let Some(sandbox) = &start.card.sandbox {
        let why = format!("ran in a sandbox ({}), and rexec would run it outside", escape_line(sandbox, 80));
        return lacks(&why, "run it in that sandbox: rexec show prints it");
    }
    let arguments = start.arguments();
    if arguments.is_empty() {
        return lacks("has no call in the journal", "rexec show prints what the journal knows");
    }
    if start.is_cut() {
        return lacks("is longer than what the journal kept of it", "run it as you ran it before");
    }
    if arguments.iter().any(|argument| is_masked(argument)) || is_masked(start.card.dir.as_bytes()) {
        let hint = "rexec show prints it with «redacted:…» in the places of secrets; run it yourself with those";
        return lacks("has a secret in it, which the journal does not keep", hint);
    }
    if arguments.iter().any(|argument| argument.contains(&0)) {
        return lacks("has a NUL in its call, as no command has", "its journal was changed by hand");
    }
    Ok(arguments)
}

/// The run's variables. The ones missing in the journal come from this process's own environment.
fn variables(environment: &KeptEnvironment, dir: &Path, remarks: &mut Vec<String>) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> =
        environment.set.iter().map(|(name, value)| (name.into(), value.into())).collect();
    if !environment.set.contains_key("PWD") && !environment.left_out.contains("PWD") {
        all.push(("PWD".into(), dir.into()));
    }
    let (mut taken, mut missing) = (Vec::new(), Vec::new());
    for name in &environment.left_out {
        match std::env::var_os(name) {
            Some(value) => {
                taken.push(name.as_str());
                all.push((name.into(), value));
            }
            None => missing.push(name.as_str()),
        }
    }
    for (names, what) in
        [(taken, "taken from this environment"), (missing, "in neither the journal nor this environment")]
    {
        if !names.is_empty() {
            let count = counted(names.len() as u64, "variable", "variables");
            remarks.push(format!("{count} {what}: {}", escape_line(&names.join(" "), NAMES_COLUMNS)));
        }
    }
    all
}
