//! A line from a JSONL client: a command to run, or an action.
//!
//! Invariant: what [`JsonLine::read`] returns can be run. No text in it holds a NUL, and no name of a variable is empty or
//! holds a `=`.

use std::collections::BTreeMap;
use std::fmt::Display;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::front::profile::Profile;
use crate::limits;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandRequest {
    /// The caller's name for itself.
    pub whoami: String,
    pub dir: String,
    /// Variables added to the host's environment.
    #[serde(default)]
    pub envs: BTreeMap<String, String>,
    /// The program, which is searched in PATH, and its arguments. Never empty.
    pub exec: Vec<String>,
    /// The command's standard input; /dev/null if it is missing.
    #[serde(default)]
    pub stdin: Option<String>,
    /// True if the command gets only `envs`, and nothing of the host's environment.
    #[serde(default)]
    pub clear_env: bool,
    /// Seconds after which the command is ended, up to [`limits::TIMEOUT_MAX`]; 0 means never.
    #[serde(default)]
    pub timeout: f64,
    /// The variables that are set before `envs`.
    #[serde(default)]
    pub profile: Profile,
    /// The destination of the output. Requests in JSONL leave it to the host.
    #[serde(skip)]
    pub place: OutputPlace,
    /// The standard input, if it is not `stdin`.
    #[serde(skip)]
    pub input: CommandInput,
    /// The program's own name for itself (`argv[0]`), if that is not its first word.
    #[serde(skip)]
    pub arg0: Option<String>,
    /// A person's name for the command, if that is not all words.
    #[serde(skip)]
    pub text: Option<String>,
    /// Tells the caller's session from its others.
    #[serde(skip)]
    pub session: String,
    /// The command's purpose, in its caller's words.
    #[serde(skip)]
    pub why: Option<String>,
    /// The name of its service.
    #[serde(skip)]
    pub name: Option<String>,
    /// Its umask(2), if that is not the host's.
    #[serde(skip)]
    pub umask: Option<u32>,
    /// Its limits, soft and hard, in the order of their numbers, if they are not the host's.
    #[serde(skip)]
    pub limits: Option<Vec<(u64, u64)>>,
    /// The run whose files it brings back, which the person is asked about.
    #[serde(skip)]
    pub restores: Option<u64>,
}

/// The destination of the output of a command given as words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputPlace {
    /// Both outputs to one place, a pipe or the terminal, as the host's options say.
    #[default]
    HostsChoice,
    /// Both outputs to one pipe.
    OnePipe,
    /// Each output to a pipe.
    TwoPipes,
    /// Everything to a terminal of this size, which is the standard input, too.
    Terminal {
        /// Rows.
        rows: u16,
        /// Columns.
        cols: u16,
    },
}

/// The standard input of a command given as words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CommandInput {
    /// The value of `stdin`.
    #[default]
    Nothing,
    /// These bytes, and then its end.
    Bytes(Vec<u8>),
    /// These bytes, and then further input from its caller.
    Kept(Vec<u8>),
}

/// An answer to a command's prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendRequest {
    pub seq: u64,
    #[serde(default)]
    pub text: String,
    /// True if ^D is typed after it.
    #[serde(default)]
    pub eof: bool,
    /// True if it is typed even though the command does not ask.
    #[serde(default)]
    pub force: bool,
    /// The signal that replaces the text if the command has no terminal of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
}

impl SendRequest {
    /// The request as a line of JSON, without its newline.
    #[must_use]
    pub fn line(&self) -> String {
        action_line("send", self)
    }

    #[must_use]
    pub fn keys(&self) -> Vec<u8> {
        let end: &[u8] = if self.eof { b"\x04" } else { b"" };
        [self.text.as_bytes(), end].concat()
    }
}

/// `rexec run` starts an agent in the process that asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequest {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl AgentRequest {
    /// The request as a line of JSON, without its newline.
    #[must_use]
    pub fn line(&self) -> String {
        action_line("agent", self)
    }
}

/// A person who wants to see a command's terminal, and to type there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachRequest {
    pub seq: u64,
    /// True if the person only watches.
    #[serde(default)]
    pub watch: bool,
    /// The rows of the person's terminal.
    #[serde(default)]
    pub rows: u16,
    #[serde(default)]
    pub cols: u16,
}

impl AttachRequest {
    /// The request as a line of JSON, without its newline.
    #[must_use]
    pub fn line(&self) -> String {
        action_line("attach", self)
    }
}

fn action_line(action: &'static str, request: &impl Serialize) -> String {
    #[derive(Serialize)]
    struct Line<'a, T> {
        action: &'static str,
        #[serde(flatten)]
        request: &'a T,
    }
    serde_json::to_string(&Line { action, request }).expect("these types always serialize into memory")
}

/// A console elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatchRequest {
    /// The only command that is shown; without it, all of them.
    #[serde(default)]
    pub seq: Option<u64>,
    /// The columns of the terminal; 0 if it reports none.
    #[serde(default)]
    pub columns: u16,
    #[serde(default)]
    pub look: WatchLook,
    /// True if it gets colours.
    #[serde(default)]
    pub colours: bool,
}

/// The abilities of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchLook {
    /// Everything that the host's own console shows.
    Terminal,
    /// Characters in UTF-8, and nothing that moves the cursor.
    Dumb,
    /// ASCII.
    Ascii,
    /// It is a file or a pipe: lines as in a printed journal.
    #[default]
    Text,
}

/// A request that is not a command.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Action {
    Ping {},
    Abort {},
    List {},
    Kill {
        seq: u64,
        /// A signal's number. Without it the command is ended.
        #[serde(default)]
        signal: Option<u8>,
    },
    Pause {
        seq: u64,
    },
    Resume {
        seq: u64,
    },
    Status {},
    Agent(AgentRequest),
    /// Ends the host; with `force` also if commands run.
    Stop {
        #[serde(default)]
        force: bool,
    },
    Watch(WatchRequest),
    Resize {
        columns: u16,
    },
    Send(SendRequest),
    Attach(AttachRequest),
    /// The transcript of all commands, as published clients request it.
    #[serde(skip)]
    Transcript {
        ansi: bool,
    },
}

#[derive(Debug)]
pub(super) enum JsonLine {
    Command(Box<CommandRequest>),
    Action(Action),
}

impl JsonLine {
    /// Reads a line of JSON. A line whose `action` is missing or null is a command.
    pub(super) fn read(line: &[u8]) -> Result<Self, Notice> {
        let not_valid = |error: serde_json::Error| violation(format_args!("not a valid request: {error}"));
        let mut value: Value = serde_json::from_slice(line).map_err(not_valid)?;
        if value.get("action").is_some_and(|action| !action.is_null()) {
            if let Some(transcript) = transcript_action(&value) {
                return Ok(Self::Action(transcript));
            }
            let action = Action::deserialize(value);
            return action.map(Self::Action).map_err(|error| violation(format_args!("not a valid action: {error}")));
        }
        value.as_object_mut().and_then(|fields| fields.remove("action"));
        let request = CommandRequest::deserialize(value).map_err(not_valid)?;
        request.check().map_err(|why| violation(format_args!("not a valid request: {why}")))?;
        Ok(Self::Command(Box::new(request)))
    }
}

/// The published clients' `attach`, which names no command; its `ansi` selects escape sequences.
fn transcript_action(value: &Value) -> Option<Action> {
    let has_no_other = value.as_object().is_some_and(|fields| fields.len() == 2);
    let ansi = value.get("ansi")?.as_bool()?;
    (has_no_other && value["action"] == "attach").then_some(Action::Transcript { ansi })
}

/// The notice to a client that breaks the language's rules.
pub(super) fn violation(problem: impl Display) -> Notice {
    Notice::new(OWN_FAILURE, problem, "send one line of JSON with whoami, dir and exec, or an action")
}

impl CommandRequest {
    /// Checks for values that no command can have.
    ///
    /// # Errors
    /// The first such value, in words.
    pub fn check(&self) -> Result<(), String> {
        let has_nul = |text: &String| text.contains('\0');
        let is_bad = |(name, value): (&String, &String)| {
            name.is_empty() || name.contains('=') || has_nul(name) || has_nul(value)
        };
        if self.exec.first().is_none_or(String::is_empty) {
            return Err("exec is empty".to_owned());
        }
        if self.exec.iter().chain(&self.arg0).any(has_nul) || has_nul(&self.dir) {
            return Err("exec or dir holds a NUL".to_owned());
        }
        let most = limits::TIMEOUT_MAX;
        if !(0.0..=most.as_secs_f64()).contains(&self.timeout) {
            return Err(format!("timeout is not a number of seconds from 0 to {}", most.as_secs()));
        }
        if self.envs.iter().any(is_bad) {
            return Err("envs holds a name or value that no environment can hold".to_owned());
        }
        Ok(())
    }
}
