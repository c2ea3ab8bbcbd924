//! Commands that come as words (JSONL): they get the host's own environment, by the rules that hold for a shim's, and its
//! attributes.
//!
//! Invariant: nothing here looks at a file system that a request names. Directory and program are found in the command's
//! own process, as execvp(3) does it, because one of them may lie where a look never ends.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rexec_sh::protocol::choice::Sanitize;
use rexec_sh::protocol::environment::{Rules, names_shim};
use rexec_sh::protocol::exit_code::NOT_EXECUTABLE;
use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::wire::{self, Attributes, Extras, Stdio};

use crate::core::entry::StartError;
use crate::front::command::Command;
use crate::front::jsonl::CommandRequest;
use crate::guard::baseline;
use crate::limits;
use crate::sys::file;
use crate::text::escape::name_of;
use crate::text::reason::reason;

/// What commands inherit that come as words.
#[derive(Debug)]
pub(super) struct Inherited {
    attributes: Attributes,
    environment: BTreeMap<OsString, OsString>,
    /// What takes the place of a SHELL that leads to the shim.
    shell: CString,
    /// Globs of names that commands do not get, as the host's own environment has them.
    drop: Vec<u8>,
}

impl Inherited {
    /// The process's own, before the host changes any of it.
    pub(super) fn read() -> Self {
        let mut environment: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        let drop = environment.get(OsStr::new("REXEC_ENV_DROP")).map(|value| value.as_bytes().to_vec());
        let given = environment.get(OsStr::new("SHELL")).map(|value| value.as_bytes().to_vec()).unwrap_or_default();
        let shell = real_shell(&given);
        if leads_to_shim(Path::new(OsStr::from_bytes(&given))) {
            environment.insert("SHELL".into(), OsString::from_vec(shell.as_bytes().to_vec()));
        }
        Self { attributes: baseline::attributes(), environment, shell, drop: drop.unwrap_or_default() }
    }
}

/// The shell that a link of ours stands for.
fn real_shell(link: &[u8]) -> CString {
    let name = Shell::named(link).unwrap_or(Shell::Sh).word();
    let places = ["/bin", "/usr/bin", "/usr/local/bin"].map(|folder| format!("{folder}/{name}"));
    let is_real = |path: &&String| Path::new(path).exists() && !leads_to_shim(Path::new(path));
    let found = places.iter().find(is_real).map_or("/bin/sh", String::as_str);
    CString::new(found).expect("no NUL in it")
}

/// Whether a path is the shim's, or a link to it by another name.
fn leads_to_shim(path: &Path) -> bool {
    let is_ours = |path: &Path| names_shim(path.as_os_str().as_bytes());
    is_ours(path) || path.canonicalize().is_ok_and(|real| is_ours(&real))
}

/// The command of a request, and its descriptors or why it cannot be started.
pub(super) fn command(request: &CommandRequest, own: &Inherited) -> (Command, Result<Vec<OwnedFd>, StartError>) {
    let mut attributes = own.attributes.clone();
    attributes.stdio = Stdio { stdin: true, stdout: true, stderr: true, same_output: true, ..Stdio::default() };
    let directory = Some(c_string(request.dir.as_bytes()));
    attributes.extras = Extras { directory, ..attributes.extras };
    let frame = encode(&attributes, request, own);
    let exec: Vec<Vec<u8>> = request.exec.iter().map(|word| word.clone().into_bytes()).collect();
    let command = Command {
        frame: frame.clone().unwrap_or_default(),
        stdio: attributes.stdio,
        tty: attributes.tty,
        live: attributes.extras.live,
        is_bare: request.clear_env,
        descriptors: 1,
        sanitize: Some(Sanitize::Strip),
        window: None,
        true_window: None,
        whoami: name_of(&request.whoami, limits::WHOAMI_COLUMNS),
        shell: request.exec[0].clone(),
        text: exec.join(&b' '),
        is_unwrapped: false,
        exec,
        dir: Some(request.dir.clone()),
        envs: request.envs.clone(),
        timeout: Some(request.timeout).filter(|&seconds| seconds > 0.0).map(Duration::from_secs_f64),
        is_probe: false,
        is_for_program: false,
        kills_group: false,
    };
    let descriptors = frame.and_then(|_| Ok(vec![stdin(request)?]));
    (command, descriptors)
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("requests with a NUL are refused")
}

fn encode(attributes: &Attributes, request: &CommandRequest, own: &Inherited) -> Result<Vec<u8>, StartError> {
    let mut env = if request.clear_env { BTreeMap::new() } else { own.environment.clone() };
    env.extend(request.envs.iter().map(|(name, value)| (name.into(), value.into())));
    let entries = env.iter().map(|(name, value)| c_string(&[name.as_bytes(), b"=", value.as_bytes()].concat()));
    let entries: Vec<CString> = entries.collect();
    // Who wants nothing but its own variables wants no defaults either.
    let rules = Rules::new(&own.shell, &own.drop);
    let env = rules.apply(entries.iter().map(CString::as_c_str));
    let argv: Vec<CString> = request.exec.iter().map(|word| c_string(word.as_bytes())).collect();
    let names = (request.whoami.as_bytes(), argv[0].as_c_str());
    let mut frame = Vec::new();
    wire::encode_run(attributes, names, argv.iter().map(CString::as_c_str), env.into_iter(), &mut frame).map_err(
        |error| StartError { code: NOT_EXECUTABLE, problem: error.to_string(), hint: "pass less".to_owned() },
    )?;
    Ok(frame)
}

fn stdin(request: &CommandRequest) -> Result<OwnedFd, StartError> {
    let stdin = match &request.stdin {
        None => file::null().map(OwnedFd::from),
        Some(text) => file::in_memory(text.as_bytes()),
    };
    stdin.map_err(|error| StartError {
        code: NOT_EXECUTABLE,
        problem: format!("standard input: {}", reason(&error)),
        hint: "raise the host's limits (ulimit -n)".to_owned(),
    })
}
