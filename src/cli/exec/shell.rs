//! `rexec shell`: a person's own interactive shell in the host, on the same console and in the same journal as the
//! commands of agents.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rexec_sh::protocol::environment::names_shim;
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::notice::Notice;

use super::ExecCall;
use crate::cli::host_calls::HostCalls;
use crate::cli::quoted;
use crate::cli::service;
use crate::cli::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::sys::{process, project};

pub(in crate::cli) const VERB: Verb = Verb {
    term: "shell",
    group: Group::Live,
    summary: "start your own shell in the host",
    text: "\
An interactive shell ($SHELL) in directory DIR, or in the one where you are. It
is like the shell of any terminal: full-screen programs, ^C, ^Z and jobs work.
What it shows is on the console and in the journal under your name, so that you
find your own commands beside those of agents. What you type is recorded only
where the terminal shows it: passwords are not. In a project session it has the
session's variables. DIR may also be the name of a
project that the host knows. It ends as your shell ends, and with its code.
",
    codes: &[
        (1, "there is no terminal, or no such directory or project"),
        (125, "the host went away, or did not run the shell"),
        (127, "no host runs"),
    ],
    examples: &["rexec shell", "rexec shell ~/shop"],
    call: &Call::<ShellCall> {
        options: &[Opt::value(
            "--as NAME",
            |q, v| q.whoami = Some(v.raw()),
            "your name on the console and in the journal",
        )],
        words: Words::one("[DIR]", Values::Nothing, |q, w| q.dir = Some(w.raw())),
        run: |ShellCall { dir, whoami }| {
            if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
                return Err(Notice::failed("shell needs a terminal", "rexec exec runs a command without one"));
            }
            let dir = dir.map(place).transpose()?;
            let given = || std::env::var_os("REXEC_WHOAMI").filter(|name| !name.is_empty());
            let whoami = whoami.or_else(given).or_else(|| process::account_name().map(OsString::from));
            let set = variables(dir.as_deref());
            let call = ExecCall { dir, whoami, set, line: vec![shell()], ..ExecCall::default() };
            let notice = call.become_shim();
            Err(if notice.code == NOT_EXECUTABLE { notice.with_code(1) } else { notice })
        },
    },
};

#[derive(Default)]
struct ShellCall {
    dir: Option<OsString>,
    whoami: Option<OsString>,
}

/// The directory that a word names: itself, or that of a project of this name.
fn place(word: OsString) -> Result<OsString, Notice> {
    if Path::new(&word).is_dir() {
        return Ok(word);
    }
    let mut calls = HostCalls::connect(&crate::cli::socket_path()?)?;
    let dir = service::project_dir(&word.to_string_lossy(), &mut calls)?;
    dir.map(OsString::from).ok_or_else(|| {
        let problem = format!("{} is neither a directory nor a project of the host", quoted(&word));
        Notice::failed(problem, "rexec services shows the projects of services")
    })
}

/// The variables of the project session that a directory belongs to. A shell without them is better than none, so
/// failures are ignored here: a host that does not answer cannot run the shell either, and that is reported.
fn variables(dir: Option<&OsStr>) -> Vec<(OsString, OsString)> {
    let dir = dir.map_or_else(std::env::current_dir, |dir| Path::new(dir).canonicalize());
    let Ok(dir) = dir else { return Vec::new() };
    let dir = project::top(&dir).unwrap_or(dir);
    let asked = crate::cli::socket_path().ok().and_then(|path| HostCalls::connect(&path).ok());
    let env = asked.and_then(|mut calls| service::project_env(&dir.to_string_lossy(), &mut calls).ok());
    env.unwrap_or_default().into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// The person's shell: `SHELL`, else that of the account. A path that leads to the shim does not count.
fn shell() -> OsString {
    let is_real = |shell: &OsString| {
        let leads = |path: &Path| names_shim(path.as_os_str().as_bytes());
        let path = Path::new(shell);
        path.is_file() && !leads(path) && !path.canonicalize().is_ok_and(|real| leads(&real))
    };
    let own = std::env::var_os("SHELL").filter(is_real);
    let own = own.or_else(|| process::login_shell().map(OsString::from).filter(is_real));
    own.unwrap_or_else(|| OsStr::new("/bin/sh").to_owned())
}
