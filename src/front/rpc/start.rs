//! The parameters of `exec.run` and `exec.start`, and the command made from them.

use std::collections::BTreeMap;

use rexec_sh::protocol::wire::LIMITS_MAX;
use serde::{Deserialize, Serialize};

use super::error::{BAD_PARAMS, RpcError};
use super::params::{Encoding, RunEvent, SizeParams, UndoParams, decoded, encoded};
use crate::front::jsonl::{CommandInput, CommandRequest, OutputPlace};
use crate::front::profile::Profile;
use crate::limits;
use crate::text::name::{NAME_FORM, is_service_name};
use crate::text::unwrap::unwrap;

/// The use of the host's environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvMode {
    /// The command gets it, and `env` in addition.
    #[default]
    Add,
    /// The command gets `env` and nothing else.
    Whole,
}

/// The kind of the command's descriptors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// Pipes, with standard output and error apart.
    #[default]
    Pipes,
    Pty,
}

/// The filter for the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleaning {
    /// Removes escape sequences and earlier states of rewritten lines.
    Tidy,
    /// Removes escape sequences and control characters.
    Strip,
    /// Leaves the text that a terminal would end up with.
    Collapse,
    /// Changes nothing.
    Raw,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StartParams {
    /// A command for `sh -c`.
    pub command: Option<String>,
    /// Instead of `command`, a program and its arguments.
    pub argv: Option<Vec<String>>,
    /// The program's own name for itself.
    pub arg0: Option<String>,
    /// The working directory; the default is the host's.
    pub dir: Option<String>,
    pub env: BTreeMap<String, String>,
    pub env_mode: EnvMode,
    pub whoami: Option<String>,
    /// Tells the caller's session from its others.
    pub caller_session: Option<String>,
    /// The reason for the run, for people.
    pub why: Option<String>,
    /// A name that no other running command of the same directory has.
    pub name: Option<String>,
    pub stdin: Option<String>,
    #[serde(deserialize_with = "decoded", serialize_with = "encoded")]
    pub stdin_base64: Option<Vec<u8>>,
    /// True if more input comes by `exec.write`.
    pub keep_stdin: bool,
    pub mode: StreamMode,
    pub size: Option<SizeParams>,
    /// The time limit in seconds; 0 means none.
    pub timeout: f64,
    /// True if it outlives the connection.
    pub background: bool,
    /// True if its output is sent as it comes.
    pub stream: bool,
    pub sanitize: Option<Cleaning>,
    pub encoding: Encoding,
    /// The most bytes of output in the answer of `exec.run`.
    pub max_output_bytes: Option<usize>,
    /// True if standard output is parsed as JSON for the answer.
    pub parse: bool,
    /// True if the answer has both outputs in one text.
    pub combined: bool,
    /// The events of the run for this connection.
    pub notify: Vec<RunEvent>,
    /// True if a running command of the same name is ended first.
    pub restart: bool,
    /// The variables that are set by one word.
    pub profile: Profile,
    /// The project session: its identifier, name or directory.
    pub session: Option<String>,
    /// The number of ports that this project session gets, if it has none.
    pub ports: Option<u16>,
    /// Its umask(2); the default is the host's.
    pub umask: Option<u32>,
    /// Its resource limits, soft and hard, in the order of their numbers; the default is the host's.
    pub limits: Option<Vec<(u64, u64)>>,
    /// The shell of a project session.
    #[serde(skip)]
    pub shell: Option<String>,
    /// The run whose files it brings back.
    #[serde(skip)]
    pub restores: Option<u64>,
}

/// Words as a shell reads them.
fn spelled<'a>(words: impl Iterator<Item = &'a String>) -> String {
    String::from_utf8_lossy(&unwrap(words.map(String::as_bytes), &[], None).command).into_owned()
}

/// The words of `rexec undo --yes SESSION:N --` in front of the paths.
const UNDO_WORDS: usize = 5;

impl UndoParams {
    /// The command that brings the files back: `program` is the path of rexec, and `record` the run with its session.
    #[must_use]
    pub fn start(self, program: String, record: String) -> StartParams {
        let words: [String; UNDO_WORDS] = [program, "undo".to_owned(), "--yes".to_owned(), record, "--".to_owned()];
        StartParams {
            argv: Some(words.into_iter().chain(self.paths).collect()),
            dir: self.dir,
            whoami: self.whoami,
            caller_session: self.caller_session,
            combined: true,
            stream: self.stream,
            restores: Some(self.run),
            ..StartParams::default()
        }
    }
}

fn bad(field: &str, problem: &str) -> RpcError {
    RpcError::new(BAD_PARAMS, format!("{field}: {problem}"))
}

impl StartParams {
    /// Returns true if the output is on the command's terminal.
    #[must_use]
    pub fn is_pty(&self) -> bool {
        self.mode == StreamMode::Pty
    }

    /// The wanted command; `client` is the client's name for itself.
    ///
    /// # Errors
    /// A field is missing, or has a value that no command can have.
    pub fn request(&self, client: Option<&str>, host_dir: &str) -> Result<CommandRequest, RpcError> {
        let (exec, text) = match (&self.command, &self.argv) {
            (Some(_), Some(_)) => return Err(bad("argv", "command is given, too")),
            (None, None) => return Err(bad("command", "missing, and so is argv")),
            (Some(command), None) => {
                let shell = self.shell.clone().unwrap_or_else(|| "/bin/sh".to_owned());
                (vec![shell, "-c".to_owned(), command.clone()], Some(command.clone()))
            }
            (None, Some(argv)) if argv.first().is_none_or(String::is_empty) => return Err(bad("argv", "no program")),
            (None, Some(argv)) => {
                let shown = match self.restores {
                    None => spelled(argv.iter()),
                    // As a person would write it.
                    Some(run) => {
                        let given = ["rexec".to_owned(), "undo".to_owned(), run.to_string()];
                        spelled(given.iter().chain(argv.iter().skip(UNDO_WORDS)))
                    }
                };
                (argv.clone(), Some(shown))
            }
        };
        let dir = self.dir.clone().unwrap_or_else(|| host_dir.to_owned());
        if !dir.starts_with('/') {
            return Err(bad("dir", "not an absolute path"));
        }
        if self.arg0.is_some() && self.argv.is_none() {
            return Err(bad("arg0", "it goes with argv"));
        }
        if self.name.as_ref().is_some_and(|name| !is_service_name(name, limits::RPC_NAME_BYTES)) {
            return Err(bad("name", NAME_FORM));
        }
        if self.restart && self.name.is_none() {
            return Err(bad("restart", "it goes with name"));
        }
        if self.limits.as_ref().is_some_and(|limits| limits.len() > LIMITS_MAX) {
            return Err(bad("limits", &format!("more than {LIMITS_MAX}")));
        }
        let place = self.place()?;
        let request = CommandRequest {
            whoami: self.whoami.clone().or_else(|| client.map(str::to_owned)).unwrap_or_else(|| "rpc".to_owned()),
            dir,
            envs: self.env.clone(),
            exec,
            stdin: None,
            clear_env: self.env_mode == EnvMode::Whole,
            timeout: self.timeout,
            place,
            input: self.input()?,
            arg0: self.arg0.clone(),
            text,
            profile: self.profile,
            why: self.why.clone(),
            name: self.name.clone(),
            umask: self.umask,
            limits: self.limits.clone(),
            session: self.caller_session.clone().unwrap_or_default(),
            restores: self.restores,
        };
        request.check().map_err(|why| RpcError::new(BAD_PARAMS, format!("params: {why}")))?;
        Ok(request)
    }

    /// The destination of the output.
    fn place(&self) -> Result<OutputPlace, RpcError> {
        Ok(match (self.mode, self.size) {
            (StreamMode::Pty, size) => {
                let size = size.unwrap_or(SizeParams { rows: limits::UNSEEN_ROWS, cols: limits::UNSEEN_COLS });
                if size.rows == 0 || size.cols == 0 {
                    return Err(bad("size", "rows and cols begin at 1"));
                }
                OutputPlace::Terminal { rows: size.rows, cols: size.cols }
            }
            (StreamMode::Pipes, Some(_)) => return Err(bad("size", "only a run in mode pty has one")),
            (StreamMode::Pipes, None) if self.combined => OutputPlace::OnePipe,
            (StreamMode::Pipes, None) => OutputPlace::TwoPipes,
        })
    }

    fn input(&self) -> Result<CommandInput, RpcError> {
        let given = match (&self.stdin, &self.stdin_base64) {
            (Some(_), Some(_)) => return Err(bad("stdin_base64", "stdin is given, too")),
            (Some(text), None) => Some(text.as_bytes().to_vec()),
            (None, bytes) => bytes.clone(),
        };
        Ok(match (given, self.keep_stdin) {
            (given, _) if self.is_pty() => CommandInput::Kept(given.unwrap_or_default()),
            (given, true) => CommandInput::Kept(given.unwrap_or_default()),
            (Some(bytes), false) => CommandInput::Bytes(bytes),
            (None, false) => CommandInput::Nothing,
        })
    }
}
