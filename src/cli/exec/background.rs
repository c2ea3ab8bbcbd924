//! `rexec exec --bg`: starts a command that outlives its caller, and waits until it is ready if that is wanted.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rexec_sh::protocol::agents::known_name;
use rexec_sh::protocol::exit_code::{FAILURE, OWN_FAILURE};
use rexec_sh::protocol::notice::Notice;

use super::{ExecCall, VERB};
use crate::cli::ask::AskError;
use crate::cli::awaited::{AwaitedEnd, BackgroundRun, Wanted};
use crate::cli::host_calls::{CallError, HostCalls};
use crate::cli::output::{VerbOutput, say};
use crate::cli::service;
use crate::cli::told::tell;
use crate::cli::{json_line, quoted, wait};
use crate::front::caller;
use crate::front::rpc::answers::Started;
use crate::front::rpc::listing::ListedRun;
use crate::front::rpc::methods::method;
use crate::front::rpc::params::RunParams;
use crate::front::rpc::start::{EnvMode, StartParams, StreamMode};
use crate::host::own_attributes;
use crate::journal::record::PublishedCard;
use crate::limits;
use crate::sys::project;
use crate::text::escape::escape_line;
use crate::text::unwrap::unwrap;

/// The default time limit for a port or a text.
const READY: Duration = Duration::from_secs(60);
/// The time for which a command is watched that need not become ready: one that cannot be started ends in this time.
const GLANCE: Duration = Duration::from_millis(100);
/// Columns of a command that are shown.
const COMMAND_COLUMNS: usize = 200;

/// The options for a command in the background.
#[derive(Debug, Default)]
pub(super) struct BackgroundOptions {
    pub(super) name: Option<String>,
    pub(super) awaited: Vec<Wanted>,
    pub(super) timeout: Option<Duration>,
    pub(super) restarts: bool,
    pub(super) keeps_stdin: bool,
    pub(super) is_json: bool,
}

impl BackgroundOptions {
    /// The first given one of the options.
    pub(super) fn given(&self) -> Option<&'static str> {
        let options = [
            ("--name", self.name.is_some()),
            ("--wait, --wait-port or --wait-text", !self.awaited.is_empty()),
            ("--wait-timeout", self.timeout.is_some()),
            ("--restart", self.restarts),
            ("--keep-stdin", self.keeps_stdin),
            ("--json", self.is_json),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }

    /// Checks that the options fit together.
    pub(super) fn check(&self) -> Result<(), Notice> {
        if self.awaited.len() > 1 {
            return Err(VERB.missing("only one of --wait, --wait-port and --wait-text"));
        }
        if let Some(name) = self.name.as_ref().filter(|name| !service::is_name(name)) {
            return Err(VERB.not_valid("--name", name, service::NAME_FORM));
        }
        if self.restarts && self.name.is_none() {
            return Err(VERB.missing("--name with --restart"));
        }
        let waits = matches!(self.awaited[..], [Wanted::Port(_) | Wanted::Text(_)]);
        if self.timeout.is_some() && !waits {
            return Err(VERB.missing("--wait-port or --wait-text with --wait-timeout"));
        }
        Ok(())
    }
}

/// Starts a command and reports the result; returns the exit code.
pub(super) fn start(call: &ExecCall, options: &BackgroundOptions) -> Result<u8, Notice> {
    call.enter_dir()?;
    let params = params(call, options)?;
    let mut calls = HostCalls::connect(&crate::cli::socket_path()?).map_err(not_run)?;
    let (run, is_new) = match calls.call_within::<method::Start>(&params, None) {
        Ok(answer) => {
            let started: Option<Started> = answer.form();
            (started.ok_or(AskError::Unclear)?.run, true)
        }
        Err(error) => (error.holder().ok_or_else(|| not_run(error))?, false),
    };
    let status = calls.call::<method::Status>(&RunParams { run }).map_err(|error| wait::failed(error, run))?;
    if !is_new && !is_same(call, &status) {
        return refuse(&status, options.is_json);
    }
    if !is_new {
        return be_present(&status, options, &mut calls);
    }
    become_ready(&status, options, &mut calls)
}

/// The notice for a failed start: the host has not run the command.
fn not_run(error: CallError) -> Notice {
    match error {
        CallError::Ask(error @ AskError::NoHost { .. }) => error.into(),
        error => Notice::from(error).with_code(OWN_FAILURE),
    }
}

/// Waits for a command that was just started.
fn become_ready(run: &ListedRun, options: &BackgroundOptions, calls: &mut HostCalls) -> Result<u8, Notice> {
    let glance = Wanted::Time(GLANCE);
    let mut out = VerbOutput::standard();
    let Some(awaited) = options.awaited.first() else {
        let end = await_run(run.number(), &glance, None, calls)?;
        if end.run.result == "ready" {
            return say_running(&BackgroundRun { result: "started", ..end.run }, run, "runs", options.is_json);
        }
        end.say(options.is_json, &mut out)?;
        return Ok(end.code());
    };
    if !options.is_json {
        say_running(&BackgroundRun::default(), run, "runs", false)?;
    }
    let end = await_run(run.number(), awaited, options.timeout, calls)?;
    end.say(options.is_json, &mut out)?;
    Ok(end.code())
}

/// Reports that the service runs already, and waits for it as for a new one.
fn be_present(run: &ListedRun, options: &BackgroundOptions, calls: &mut HostCalls) -> Result<u8, Notice> {
    let Some(awaited) = options.awaited.first().filter(|awaited| !matches!(awaited, Wanted::Time(_))) else {
        return say_running(&BackgroundRun::of(run, "present"), run, "runs already", options.is_json);
    };
    if !options.is_json {
        say_running(&BackgroundRun::default(), run, "runs already", false)?;
    }
    let end = await_run(run.number(), awaited, options.timeout, calls)?;
    end.say(options.is_json, &mut VerbOutput::standard())?;
    Ok(end.code())
}

fn await_run(
    run: u64,
    awaited: &Wanted,
    timeout: Option<Duration>,
    calls: &mut HostCalls,
) -> Result<AwaitedEnd, Notice> {
    let began = Instant::now();
    let params = awaited.params(run, Some(timeout.unwrap_or(READY)));
    let answer = calls.call_within::<method::Wait>(&params, None);
    let end = answer.and_then(|answer| AwaitedEnd::read(answer, (run, awaited, began.elapsed()), calls));
    end.map_err(|error| wait::failed(error, run))
}

/// Prints a line about a running command.
fn say_running(form: &BackgroundRun, run: &ListedRun, words: &str, is_json: bool) -> Result<u8, Notice> {
    let line = match is_json {
        true => json_line(form),
        false => {
            format!("{} {words}: {}\n", service::title(run), escape_line(&run.facts.card.command, COMMAND_COLUMNS))
        }
    };
    say(&line)
}

/// Reports that another command has the name.
fn refuse(run: &ListedRun, is_json: bool) -> Result<u8, Notice> {
    if is_json {
        say_running(&BackgroundRun::of(run, "present"), run, "", true)?;
        return Ok(FAILURE);
    }
    let PublishedCard { command, name, .. } = &run.facts.card;
    let problem = format_args!("{} runs already: {}", service::title(run), escape_line(command, COMMAND_COLUMNS));
    Err(Notice::failed(
        problem,
        format_args!("nothing was started; --restart ends it first, rexec kill {name} ends it"),
    ))
}

/// Returns true if the running service is the wanted command.
fn is_same(call: &ExecCall, run: &ListedRun) -> bool {
    let wanted = unwrap(call.line.iter().map(|word| word.as_bytes()), &[], None).command;
    let wanted = String::from_utf8_lossy(&wanted);
    let listed = &run.facts.card.command;
    // The host's list has only the beginning of a long command.
    let is_long = listed.len() + 4 >= limits::ROSTER_TEXT_BYTES;
    wanted == *listed || (is_long && wanted.starts_with(listed.trim_end_matches('…')))
}

fn params(call: &ExecCall, options: &BackgroundOptions) -> Result<StartParams, Notice> {
    let dir = std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
    let dir = dir.ok_or_else(|| not_text("the directory"))?;
    let text = |word: &OsString| word.to_str().map(str::to_owned).ok_or_else(|| not_text(&quoted(word)));
    let argv: Result<Vec<String>, Notice> = call.line.iter().map(text).collect();
    let (env, own) = (call.command_environment(), own_attributes());
    let top = project::top(Path::new(&dir)).and_then(|top| top.into_os_string().into_string().ok());
    Ok(StartParams {
        argv: Some(argv?),
        dir: Some(dir),
        whoami: Some(name(call, &env)),
        env: texts(env),
        env_mode: EnvMode::Whole,
        name: options.name.clone(),
        why: Some(call.why.to_string_lossy().into_owned()).filter(|why| !why.is_empty()),
        session: top,
        background: true,
        mode: if call.tty { StreamMode::Pty } else { StreamMode::Pipes },
        timeout: call.timeout.as_secs_f64(),
        restart: options.restarts,
        keep_stdin: options.keeps_stdin,
        umask: Some(own.umask),
        limits: Some(own.limits),
        ..StartParams::default()
    })
}

/// The variables that are text. Others are skipped with a message.
fn texts(env: Vec<(OsString, OsString)>) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, value) in env {
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => _ = texts.insert(name, value),
            (name, _) => {
                let name = name.map_or_else(quoted, quoted);
                tell(format_args!("{name} is not UTF-8 and is left out"));
            }
        }
    }
    texts
}

/// The caller's name, as a shim's caller has one.
fn name(call: &ExecCall, env: &[(OsString, OsString)]) -> String {
    let variable = |name: &str| std::env::var_os(name).unwrap_or_default();
    let given = call.whoami.clone().unwrap_or_else(|| variable("REXEC_WHOAMI"));
    let entries: Vec<Vec<u8>> =
        env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
    let run = variable("REXEC_RUN_AGENT");
    let known = known_name(run.as_bytes(), entries.iter().map(Vec::as_slice));
    caller::name(given.as_bytes(), run.as_bytes(), known)
}

fn not_text(what: &(impl AsRef<OsStr> + ?Sized)) -> Notice {
    let problem = format!("{} is not UTF-8", what.as_ref().to_string_lossy());
    Notice::new(OWN_FAILURE, problem, "a command in the background is text; a script can have any bytes")
}
