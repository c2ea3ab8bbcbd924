//! The parameters of requests about processes, and their translation for the host.

use std::path::Path;
use std::time::Duration;

use rexec_sh::protocol::environment::names_shim;
use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::shell_places::places;
use serde::Deserialize;
use serde_json::{Value, json};

use super::environment::{ChosenVariables, EnvPolicy, own};
use super::message::{BAD_PARAMS, FAILED, Refusal};
use super::place::path_of;
use crate::front::rpc::params::{Encoding, SizeParams};
use crate::front::rpc::start::{Cleaning, EnvMode, StartParams, StreamMode};
use crate::limits;
use crate::sys::process;
use crate::text::encode::from_base64;

#[derive(Debug)]
pub(super) struct Identity {
    /// The name that the user has chosen, or the client's name for itself.
    pub(super) whoami: Option<String>,
    /// Tells this session from others.
    pub(super) session: String,
}

impl Identity {
    /// Takes the client's name for itself.
    pub(super) fn meet(&mut self, client: &str) {
        let name = if client.starts_with("codex") { "Codex" } else { client };
        if self.whoami.is_none() && !name.is_empty() {
            self.whoami = Some(name.to_owned());
        }
    }
}

/// `process/start`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartAsk {
    pub(super) process_id: String,
    argv: Vec<String>,
    cwd: String,
    #[serde(default)]
    env: ChosenVariables,
    #[serde(default)]
    env_policy: Option<EnvPolicy>,
    #[serde(default)]
    pub(super) tty: bool,
    #[serde(default)]
    pub(super) pipe_stdin: bool,
    #[serde(default)]
    arg0: Option<String>,
    #[serde(default)]
    size: Option<TerminalSize>,
    #[serde(default)]
    sandbox: Option<Value>,
    #[serde(default)]
    enforce_managed_network: bool,
    #[serde(default)]
    managed_network: Option<Value>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

/// `command/exec`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldStartAsk {
    process_id: String,
    argv: Vec<String>,
    cwd: String,
    env: ChosenVariables,
    tty: bool,
    /// The bytes of each stream that the server may retain. It sends all output at once and retains none, so no cap is
    /// exceeded. The number is only checked.
    #[serde(default, rename = "outputBytesCap")]
    _cap: Option<u64>,
    #[serde(default)]
    arg0: Option<String>,
}

impl From<OldStartAsk> for StartAsk {
    fn from(old: OldStartAsk) -> Self {
        let OldStartAsk { process_id, argv, cwd, env, tty, arg0, .. } = old;
        Self {
            process_id,
            argv,
            cwd,
            env,
            tty,
            arg0,
            env_policy: None,
            pipe_stdin: false,
            size: None,
            sandbox: None,
            enforce_managed_network: false,
            managed_network: None,
            metadata: None,
        }
    }
}

/// The client's facts about the call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    thread_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct TerminalSize {
    rows: u16,
    cols: u16,
}

impl StartAsk {
    /// Returns true if the client relies on a sandbox, or on a filter of the network.
    pub(super) fn wants_sandbox(&self) -> bool {
        let is_given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
        is_given(&self.sandbox) || is_given(&self.managed_network) || self.enforce_managed_network
    }

    /// Checks the parameters, and makes a path of the directory. `names_uri`: it came as a URI.
    pub(super) fn check(mut self, names_uri: bool) -> Result<Self, Refusal> {
        let bad = |problem: &str| Err(Refusal::new(BAD_PARAMS, problem));
        if self.argv.is_empty() {
            return bad("argv must not be empty");
        }
        if names_uri {
            let path = path_of(&self.cwd)?.into_os_string().into_string();
            self.cwd = path.map_err(|_| Refusal::new(FAILED, "cwd is not UTF-8, which the host needs"))?;
        }
        if !self.cwd.starts_with('/') {
            return bad("cwd is not an absolute path");
        }
        if self.process_id.len() > limits::EXEC_SERVER_NAME_BYTES_MAX {
            return bad("processId is too long");
        }
        Ok(self)
    }

    /// The call to the host.
    pub(super) fn call(self, identity: &Identity) -> StartParams {
        let mut env = self.env_policy.map(|policy| policy.apply(own())).unwrap_or_default();
        env.extend(self.env);
        let thread = self.metadata.and_then(|metadata| metadata.thread_id);
        let size = self.size.filter(|size| self.tty && size.rows > 0 && size.cols > 0);
        StartParams {
            argv: Some(self.argv),
            arg0: self.arg0,
            dir: Some(self.cwd),
            env,
            env_mode: EnvMode::Whole,
            whoami: identity.whoami.clone(),
            caller_session: Some(thread.unwrap_or_else(|| identity.session.clone())),
            keep_stdin: self.pipe_stdin && !self.tty,
            mode: if self.tty { StreamMode::Pty } else { StreamMode::Pipes },
            size: size.map(|TerminalSize { rows, cols }| SizeParams { rows, cols }),
            stream: true,
            sanitize: Some(Cleaning::Raw),
            encoding: Encoding::Binary,
            ..StartParams::default()
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessAsk {
    pub(super) process_id: String,
}

/// `process/read`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadAsk {
    pub(super) process_id: String,
    #[serde(default)]
    pub(super) after_seq: Option<u64>,
    #[serde(default)]
    pub(super) max_bytes: Option<usize>,
    #[serde(default)]
    wait_ms: Option<u64>,
}

impl ReadAsk {
    /// The time for which the client waits.
    pub(super) fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms.unwrap_or(0)).min(limits::EXEC_SERVER_WAIT_MAX)
    }
}

/// `process/write`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WriteAsk {
    pub(super) process_id: String,
    /// In base64.
    chunk: String,
    #[serde(default)]
    pub(super) write_id: String,
}

impl WriteAsk {
    /// The bytes to write.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        from_base64(&self.chunk).ok_or_else(|| Refusal::new(BAD_PARAMS, "chunk is not base64 with padding"))
    }
}

/// `process/signal`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SignalAsk {
    pub(super) process_id: String,
    pub(super) signal: SignalWord,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SignalWord {
    Interrupt,
}

impl SignalWord {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Interrupt => "INT",
        }
    }
}

/// `process/resize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResizeAsk {
    pub(super) process_id: String,
    #[serde(default)]
    size: Option<TerminalSize>,
    #[serde(default)]
    rows: u16,
    #[serde(default)]
    cols: u16,
}

impl ResizeAsk {
    pub(super) fn size(&self) -> Result<(u16, u16), Refusal> {
        let (rows, cols) = self.size.map_or((self.rows, self.cols), |size| (size.rows, size.cols));
        if rows == 0 || cols == 0 {
            return Err(Refusal::new(BAD_PARAMS, "rows and cols begin at 1"));
        }
        Ok((rows, cols))
    }
}

/// The description of the place where the client's commands run: with the user's shell, and never the shim.
pub(super) fn environment() -> Value {
    let named = std::env::var("SHELL").ok().filter(|shell| !names_shim(shell.as_bytes()));
    let login = process::login_shell().and_then(|shell| shell.into_os_string().into_string().ok());
    let chosen = named.into_iter().chain(login).find(|shell| {
        Shell::named(shell.as_bytes()).is_some() && !names_shim(shell.as_bytes()) && Path::new(shell).is_file()
    });
    let usual = || {
        let real = places(Shell::Bash).iter().chain(places(Shell::Sh));
        real.map(|place| place.to_string_lossy().into_owned()).find(|place| Path::new(place).is_file())
    };
    let path = chosen.or_else(usual).unwrap_or_else(|| "/bin/sh".to_owned());
    let name = path.rsplit('/').next().unwrap_or_default();
    json!({"shell": {"name": name, "path": path}})
}
