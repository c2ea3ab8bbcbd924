//! The command of a JSON request, and what the host hands down to it: its own attributes and environment, to which the
//! rules of `rexec_sh::protocol::environment` apply as to a shim's.
//!
//! Invariant: nothing here looks at a file system that a request names. The command's own process looks for directory and
//! program, as execvp(3) does, because one of them may lie where a look never ends.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use rexec_sh::protocol::choice::{Sanitize, Tty};
use rexec_sh::protocol::environment::{Rules, names_shim};
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::shell_places::places;
use rexec_sh::protocol::wire::{self, Attributes, Direct, Extras, Stdio};

use crate::core::card::{Caller, CommandLine};
use crate::core::end::StartError;
use crate::front::caller::CallerMarks;
use crate::front::command::{Command, Concern};
use crate::front::jsonl::{CommandInput, CommandRequest, OutputPlace};
use crate::front::profile::ProfileFacts;
use crate::guard::baseline;
use crate::limits;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::sys::file;
use crate::text::name::name_of;
use crate::text::reason::reason;

type Environment = BTreeMap<OsString, OsString>;

/// The host's attributes and environment, which such commands inherit.
#[derive(Debug)]
pub(super) struct Inherited {
    attributes: Attributes,
    environment: Environment,
    /// The host's `SHELL`, if that leads to the shim; else empty.
    link: Vec<u8>,
    /// The real shell, which takes the place of such a `SHELL`.
    shell: CString,
    /// The value of `REXEC_ENV_DROP`.
    drop: Vec<u8>,
}

impl Inherited {
    /// Reads this process's own, before the host changes any of it.
    pub(super) fn read() -> Self {
        let environment: Environment = std::env::vars_os().collect();
        let value = |name: &str| environment.get(OsStr::new(name)).map(|value| value.as_bytes().to_vec());
        let mut link = value("SHELL").unwrap_or_default();
        let shell = real_shell(Shell::named(&link).unwrap_or(Shell::Sh));
        if !leads_to_shim(Path::new(OsStr::from_bytes(&link))) {
            link.clear();
        }
        let drop = value("REXEC_ENV_DROP").unwrap_or_default();
        Self { attributes: own_attributes(), environment, link, shell, drop }
    }
}

/// This process's umask, limits and scheduling.
#[must_use]
pub fn own_attributes() -> Attributes {
    baseline::attributes()
}

/// The path of a real shell of this kind, or of sh.
fn real_shell(kind: Shell) -> CString {
    let path = |place: &CStr| Path::new(OsStr::from_bytes(place.to_bytes())).to_owned();
    let is_real = |place: &&&CStr| path(place).exists() && !leads_to_shim(&path(place));
    places(kind).iter().find(is_real).map_or(c"/bin/sh", |place| place).to_owned()
}

/// Returns true if a path is the shim's, or a link to the shim by another name.
fn leads_to_shim(path: &Path) -> bool {
    let is_ours = |path: &Path| names_shim(path.as_os_str().as_bytes());
    is_ours(path) || path.canonicalize().is_ok_and(|real| is_ours(&real))
}

/// The command of a request, and its descriptors or why it cannot be started.
pub(super) fn command(
    request: &CommandRequest,
    inherited: &Inherited,
    facts: ProfileFacts,
) -> (Command, Result<Vec<CallerDescriptor>, StartError>) {
    let mut attributes = inherited.attributes.clone();
    attributes.stdio = stdio(request.place);
    attributes.tty = (request.place != OutputPlace::HostsChoice).then_some(Tty::Auto);
    attributes.umask = request.umask.map_or(attributes.umask, |umask| umask & 0o777);
    if let Some(limits) = &request.limits {
        attributes.limits.clone_from(limits);
    }
    let size = match request.place {
        OutputPlace::Terminal { rows, cols } => Some((rows, cols)),
        _ => None,
    };
    let directory = Some(c_string(request.dir.as_bytes()));
    // As the shim does with its caller's.
    let keeps_nothing = request.envs.get("REXEC_UNDO").is_some_and(|how| how == "off");
    attributes.extras = Extras { directory, keeps_nothing, ..attributes.extras };
    let mut env = if request.clear_env { Environment::new() } else { inherited.environment.clone() };
    request.profile.apply(&mut env, facts);
    env.extend(request.envs.iter().map(|(name, value)| (name.into(), value.into())));
    if size.is_some() && !request.clear_env {
        // A host without a terminal of its own has none, and programs do not know then what theirs can do.
        env.entry("TERM".into()).or_insert("xterm-256color".into());
    }
    let program = c_string(request.exec[0].as_bytes());
    let first = request.arg0.as_ref().unwrap_or(&request.exec[0]);
    let argv = [first].into_iter().chain(&request.exec[1..]).map(|word| c_string(word.as_bytes()));
    let argv: Vec<CString> = argv.collect();
    let frame = encode(
        &attributes,
        request.whoami.as_bytes(),
        &Invoked { program: &program, argv: &argv, env: &env },
        inherited,
    );
    let exec: Vec<Vec<u8>> = request.exec.iter().map(|word| word.clone().into_bytes()).collect();
    let line = CommandLine {
        text: request.text.clone().unwrap_or_else(|| request.exec.join(" ")),
        words: Some(request.exec.clone()),
        shell: request.exec[0].clone(),
        why: request.why.clone().unwrap_or_default(),
        service: request.name.clone().unwrap_or_default(),
        timeout: Some(request.timeout).filter(|&seconds| seconds > 0.0).map(Duration::from_secs_f64),
        ..CommandLine::default()
    };
    let marks = CallerMarks::named(&request.session);
    let command = Command {
        frame: frame.clone().unwrap_or_default(),
        stdio: attributes.stdio,
        tty: attributes.tty,
        live: attributes.extras.live,
        is_bare: request.clear_env,
        trace: None,
        knows_caller: request.place == OutputPlace::HostsChoice,
        descriptors: 1,
        sanitize: Some(Sanitize::Strip),
        window: size.map(|(rows, cols)| (rows.min(limits::WINDOW_ROWS_MAX), cols.min(limits::WINDOW_COLS_MAX))),
        budget: None,
        is_agents: false,
        true_window: size,
        caller: Caller { whoami: name_of(&request.whoami, limits::WHOAMI_COLUMNS), ..marks.caller },
        started: marks.started,
        session_key: marks.key,
        is_unnamed: false,
        text: line.text.clone().into_bytes(),
        line,
        is_in_agents_sandbox: false,
        exec,
        depth: None,
        project: None,
        dir: Some(request.dir.clone()),
        envs: set_on_purpose(request),
        is_for_program: false,
        kills_group: false,
        concern: request.restores.map(|run| Concern::Restore { run }),
        added: Vec::new(),
    };
    let descriptors = frame.and_then(|_| Ok(vec![stdin(request)?.into()]));
    (command, descriptors)
}

/// The variables for the journal. A program that gives a whole environment passes on its own: nobody chose those values,
/// and they stay out of it.
fn set_on_purpose(request: &CommandRequest) -> BTreeMap<String, String> {
    let is_passed_on = request.clear_env && request.place != OutputPlace::HostsChoice;
    if is_passed_on { BTreeMap::new() } else { request.envs.clone() }
}

/// The kinds of the command's descriptors.
fn stdio(place: OutputPlace) -> Stdio {
    let open = Stdio { stdin: true, stdout: true, stderr: true, ..Stdio::default() };
    match place {
        OutputPlace::HostsChoice | OutputPlace::OnePipe => Stdio { same_output: true, ..open },
        OutputPlace::TwoPipes => open,
        // As for a shim that relays its caller's terminal: the command leads a session with the terminal, and every key
        // is its own.
        OutputPlace::Terminal { .. } => Stdio {
            same_output: true,
            stdin_tty: true,
            stdout_tty: true,
            stderr_tty: true,
            relayed: true,
            leader: true,
            ..open
        },
    }
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("requests with a NUL are refused")
}

/// Adds the host's environment to that of a command whose caller asks for it.
pub(super) fn add_environment(command: &mut Command, inherited: &Inherited) -> Result<(), StartError> {
    let Some(run) = command.run().filter(|run| run.attributes.extras.direct == Some(Direct::Host)) else {
        return Ok(());
    };
    let mut env = inherited.environment.clone();
    env.extend(run.env.iter().filter_map(|entry| {
        let entry = entry.to_bytes();
        let at = memchr::memchr(b'=', entry)?;
        let part = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        Some((part(&entry[..at]), part(&entry[at + 1..])))
    }));
    let argv: Vec<CString> = run.argv.iter().map(CStr::to_owned).collect();
    command.frame =
        encode(&run.attributes, run.whoami, &Invoked { program: run.shell, argv: &argv, env: &env }, inherited)?;
    Ok(())
}

/// The three arguments of execve(2).
struct Invoked<'a> {
    program: &'a CStr,
    argv: &'a [CString],
    env: &'a Environment,
}

fn encode(
    attributes: &Attributes,
    whoami: &[u8],
    invoked: &Invoked<'_>,
    inherited: &Inherited,
) -> Result<Vec<u8>, StartError> {
    let Invoked { program, argv, env } = *invoked;
    let entries = env.iter().map(|(name, value)| c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
    let entries: Vec<CString> = entries.collect();
    let rules = Rules::new(inherited.shell.to_bytes(), &inherited.drop).with_link(&inherited.link);
    let env = rules.apply(entries.iter().map(CString::as_c_str));
    let names = (whoami, program);
    let mut frame = Vec::new();
    wire::encode_run(attributes, names, argv.iter().map(CString::as_c_str), env.into_iter(), &mut frame).map_err(
        |error| StartError {
            code: NOT_EXECUTABLE,
            problem: error.to_string(),
            hint: "pass fewer or shorter arguments and variables".to_owned(),
        },
    )?;
    Ok(frame)
}

fn stdin(request: &CommandRequest) -> Result<OwnedFd, StartError> {
    let stdin = match (&request.stdin, &request.input) {
        (Some(text), _) => file::in_memory(text.as_bytes()),
        (None, CommandInput::Bytes(bytes)) => file::in_memory(bytes),
        // The host puts a pipe or the terminal in its place.
        (None, CommandInput::Nothing | CommandInput::Kept(_)) => file::null().map(OwnedFd::from),
    };
    stdin.map_err(|error| StartError {
        code: NOT_EXECUTABLE,
        problem: format!("standard input: {}", reason(&error)),
        hint: "raise the host's limits (ulimit -n)".to_owned(),
    })
}
