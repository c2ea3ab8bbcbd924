//! Commands that come as words (JSONL): they get the host's own environment and attributes, the program is found by
//! PATH as execvp(3) does it.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use rexec_sh::environment;
use rexec_sh::wire::{self, Attributes, Sanitize, Stdio};

use crate::core::entry::StartError;
use crate::front::command::Command;
use crate::front::jsonl::Request;
use crate::limits;
use crate::sys::{file, process};
use crate::text::escape::name_of;
use crate::text::reason::reason;

/// What commands inherit that come as words.
#[derive(Debug)]
pub(super) struct Own {
    attributes: Attributes,
    environment: BTreeMap<OsString, OsString>,
}

impl Own {
    /// The process's own, before the host changes any of it.
    pub(super) fn read() -> Self {
        Self { attributes: process::attributes(), environment: std::env::vars_os().collect() }
    }
}

/// Where execvp looks when PATH is not set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The command of a request, and its descriptors or why it cannot be started.
pub(super) fn command(request: &Request, own: &Own) -> (Command, Result<Vec<OwnedFd>, StartError>) {
    let mut env = own.environment.clone();
    env.retain(|name, _| !name.as_bytes().starts_with(b"REXEC_"));
    env.extend(request.envs.iter().map(|(name, value)| (name.into(), value.into())));
    for default in environment::DEFAULTS {
        if let Some((name, value)) = split(default.to_bytes()) {
            env.entry(name).or_insert(value);
        }
    }
    let inside = split(environment::INSIDE.to_bytes());
    env.extend(inside);
    let program = find(&request.exec[0], &request.dir, env.get(std::ffi::OsStr::new("PATH")));
    let shell = program.clone().unwrap_or_else(|_| request.exec[0].clone().into_bytes());
    let mut attributes = own.attributes.clone();
    attributes.stdio = Stdio { stdin: true, stdout: true, stderr: true, same_output: true, ..Stdio::default() };
    let frame = encode(&attributes, request, &shell, &env);
    let exec: Vec<Vec<u8>> = request.exec.iter().map(|word| word.clone().into_bytes()).collect();
    let command = Command {
        frame: frame.clone().unwrap_or_default(),
        stdio: attributes.stdio,
        descriptors: 2,
        sanitize: Sanitize::Strip,
        window: None,
        whoami: name_of(&request.whoami, limits::WHOAMI_COLUMNS),
        shell: String::from_utf8_lossy(&shell).into_owned(),
        text: exec.join(&b' '),
        is_unwrapped: false,
        exec,
        dir: Some(request.dir.clone()),
        envs: request.envs.clone(),
        is_probe: false,
        is_for_program: false,
        kills_group: false,
    };
    let descriptors = frame.and(program).and_then(|_| descriptors(request));
    (command, descriptors)
}

fn split(entry: &[u8]) -> Option<(OsString, OsString)> {
    let at = entry.iter().position(|&byte| byte == b'=')?;
    Some((OsString::from_vec(entry[..at].to_vec()), OsString::from_vec(entry[at + 1..].to_vec())))
}

fn encode(
    attributes: &Attributes,
    request: &Request,
    program: &[u8],
    env: &BTreeMap<OsString, OsString>,
) -> Result<Vec<u8>, StartError> {
    let c_string = |bytes: Vec<u8>| CString::new(bytes).expect("requests with a NUL are refused");
    let argv: Vec<CString> = request.exec.iter().map(|word| c_string(word.clone().into_bytes())).collect();
    let entries = env.iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat());
    let env: Vec<CString> = entries.map(c_string).collect();
    let program = c_string(program.to_vec());
    let mut frame = Vec::new();
    let names = (request.whoami.as_bytes(), program.as_c_str());
    wire::encode_run(attributes, names, argv.iter().map(AsRef::as_ref), env.iter().map(AsRef::as_ref), &mut frame)
        .map_err(|error| StartError { code: 126, text: format!("rexec: {error}\nhint: pass less\n") })?;
    Ok(frame)
}

/// The program's path. A name without a slash is looked for in PATH; the first that may be executed is taken.
fn find(name: &str, dir: &str, path: Option<&OsString>) -> Result<Vec<u8>, StartError> {
    if name.contains('/') {
        return Ok(name.as_bytes().to_vec());
    }
    let path = path.map_or(DEFAULT_PATH.as_bytes(), |path| path.as_bytes());
    let candidates = path.split(|&byte| byte == b':').map(|folder| {
        let folder = if folder.is_empty() { Path::new(dir) } else { Path::new(std::ffi::OsStr::from_bytes(folder)) };
        Path::new(dir).join(folder).join(name)
    });
    let found = candidates.into_iter().find(|candidate| file::is_executable(candidate));
    found.map(|path| path.into_os_string().into_vec()).ok_or_else(|| StartError {
        code: 127,
        text: format!("rexec: {name}: not found\nhint: check the name and the host's PATH\n"),
    })
}

fn descriptors(request: &Request) -> Result<Vec<OwnedFd>, StartError> {
    let failed = |what: String, error: &std::io::Error| StartError {
        code: 126,
        text: format!("rexec: {what}: {}\nhint: check the path and the host's limits\n", reason(error)),
    };
    let dir = file::open_directory(Path::new(&request.dir)).map_err(|error| failed(request.dir.clone(), &error))?;
    let stdin = match &request.stdin {
        None => file::null().map(OwnedFd::from),
        Some(text) => file::in_memory(text.as_bytes()),
    };
    Ok(vec![dir, stdin.map_err(|error| failed("standard input".to_owned(), &error))?])
}
