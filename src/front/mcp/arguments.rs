//! The arguments of a tool call. Each mistake becomes a sentence for the agent's model, which tries again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::front::keys;
use crate::front::numbers::make_whole;
use crate::front::rpc::params::{SignalName, SignalParams, UndoParams};
use crate::front::rpc::start::{EnvMode, StartParams, StreamMode};
use crate::limits;

/// A parsed tool call.
#[derive(Debug)]
pub(super) enum ToolCall {
    /// A start, without the caller's name.
    Exec(Box<StartParams>),
    Output {
        run: u64,
        after: Option<u64>,
        wait: Duration,
    },
    Write(WriteArguments),
    Kill {
        run: u64,
        signal: Option<SignalName>,
    },
    /// The same for bringing back files.
    Undo(Box<UndoParams>),
    List {
        all: bool,
    },
    CheckHost,
}

/// Something to type.
#[derive(Debug)]
pub(super) struct WriteArguments {
    pub(super) run: u64,
    pub(super) text: String,
    pub(super) key: Option<keys::Key>,
    /// The signal for the run after the host has taken the text.
    pub(super) next: Option<SignalParams>,
    pub(super) eof: bool,
    pub(super) wait: Duration,
}

/// The default time for which `write` waits for output, seconds.
const WRITE_WAIT: f64 = 0.5;

impl ToolCall {
    /// Reads a call of this tool; `None` for an unknown tool. Directories are relative to `dir`.
    ///
    /// # Errors
    /// A sentence on the first argument that is wrong.
    pub(super) fn read(tool: &str, mut arguments: Map<String, Value>, dir: &str) -> Option<Result<Self, String>> {
        arguments.values_mut().for_each(make_whole);
        let mut given = Arguments { tool: tool.to_owned(), given: arguments };
        let call = match tool {
            "exec" => exec(&mut given, dir),
            "output" => output(&mut given),
            "write" => write(&mut given),
            "kill" => kill(&mut given),
            "undo" => undo(&mut given, dir),
            "list" => given.flag("all").map(|all| Self::List { all }),
            "check_host" => Ok(Self::CheckHost),
            _ => return None,
        };
        Some(call.and_then(|call| given.end().map(|()| call)))
    }
}

fn exec(given: &mut Arguments, dir: &str) -> Result<ToolCall, String> {
    let (command, argv) = match (given.text("command")?, given.texts("argv")?) {
        (Some(_), Some(_)) => return Err(given.wrong("takes command or argv, and not both")),
        (Some(command), None) if !command.trim().is_empty() => (Some(command), None),
        (None, Some(argv)) if argv.first().is_some_and(|program| !program.is_empty()) => (None, Some(argv)),
        _ => return Err(given.wrong("needs command, a string, or argv, a list of strings that begins with a program")),
    };
    let dir = Some(absolute(given.text("dir")?, dir));
    let env = environment(given)?;
    let env_mode = if given.flag("clear_env")? { EnvMode::Whole } else { EnvMode::Add };
    let (tty, background) = (given.flag("tty")?, given.flag("background")?);
    Ok(ToolCall::Exec(Box::new(StartParams {
        command,
        argv,
        dir,
        env,
        env_mode,
        mode: if tty { StreamMode::Pty } else { StreamMode::Pipes },
        combined: !tty,
        stream: true,
        background,
        stdin: given.text("stdin")?,
        name: given.text("name")?,
        why: given.text("why")?,
        keep_stdin: given.flag("keep_stdin")?,
        timeout: given.seconds("timeout", limits::TIMEOUT_MAX)?.unwrap_or_default(),
        ..StartParams::default()
    })))
}

/// The directory, made absolute. The host checks it.
fn absolute(given: Option<String>, base: &str) -> String {
    match given {
        None => base.to_owned(),
        Some(dir) if dir.starts_with('/') => dir,
        Some(dir) => format!("{}/{dir}", base.trim_end_matches('/')),
    }
}

/// `envs` and `env`, each an object or a list of `VAR=VAL`.
fn environment(given: &mut Arguments) -> Result<BTreeMap<String, String>, String> {
    const FORMS: &str = "an object of strings, or a list of strings like VAR=VAL";
    let mut env = BTreeMap::new();
    for name in ["envs", "env"] {
        match given.take(name) {
            None => {}
            Some(Value::Object(entries)) => {
                for (key, value) in entries {
                    let Value::String(value) = value else { return Err(given.wrong_value(name, FORMS)) };
                    env.insert(key, value);
                }
            }
            Some(Value::Array(entries)) => {
                let pairs = entries.iter().map(|entry| entry.as_str()?.split_once('='));
                for pair in pairs {
                    let Some((key, value)) = pair else { return Err(given.wrong_value(name, "strings like VAR=VAL")) };
                    env.insert(key.to_owned(), value.to_owned());
                }
            }
            Some(_) => return Err(given.wrong_value(name, FORMS)),
        }
    }
    Ok(env)
}

fn output(given: &mut Arguments) -> Result<ToolCall, String> {
    let (run, after) = (given.run()?, given.whole("after")?);
    let wait = given.wait(0.0)?;
    Ok(ToolCall::Output { run, after, wait })
}

fn write(given: &mut Arguments) -> Result<ToolCall, String> {
    let (run, text, key) = (given.run()?, given.text("text")?.unwrap_or_default(), given.text("key")?);
    let (eof, wait) = (given.flag("eof")?, given.wait(WRITE_WAIT)?);
    let key = match key {
        None => None,
        Some(name) => Some(keys::Key::named(&name).ok_or_else(|| given.wrong_value("key", keys::NAMES))?),
    };
    if text.is_empty() && key.is_none() && !eof {
        return Err(given.wrong("needs text, key or eof"));
    }
    Ok(ToolCall::Write(WriteArguments { run, text, key, next: None, eof, wait }))
}

fn kill(given: &mut Arguments) -> Result<ToolCall, String> {
    let run = given.run()?;
    let signal = match given.take("signal") {
        None => None,
        Some(Value::String(signal)) => Some(signal.trim().to_ascii_uppercase()),
        Some(Value::Number(number)) => Some(number.to_string()),
        Some(_) => return Err(given.wrong_value("signal", "a signal's name or number")),
    };
    let signal = signal.map(|word| word.parse().map_or(SignalName::Name(word), SignalName::Number));
    Ok(ToolCall::Kill { run, signal })
}

fn undo(given: &mut Arguments, dir: &str) -> Result<ToolCall, String> {
    let (run, paths) = (given.run()?, given.texts("paths")?.unwrap_or_default());
    let params = UndoParams { run, paths, dir: Some(dir.to_owned()), stream: true, ..UndoParams::default() };
    Ok(ToolCall::Undo(Box::new(params)))
}

/// The arguments that were not read yet.
struct Arguments {
    tool: String,
    given: Map<String, Value>,
}

impl Arguments {
    /// Takes an argument. Null is the same as none.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong_value(name, "a string")),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let texts = value.as_array().and_then(|values| {
            values.iter().map(|value| value.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        });
        texts.map(Some).ok_or_else(|| self.wrong_value(name, "a list of strings"))
    }

    /// A flag. Models also write it as a string.
    fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(Value::String(text)) if ["true", "false"].contains(&text.as_str()) => Ok(text == "true"),
            Some(_) => Err(self.wrong_value(name, "true or false")),
        }
    }

    /// A whole number, which may be a string of digits.
    fn whole(&mut self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::String(digits) => digits.parse().ok(),
            number => number.as_u64(),
        };
        number.map(Some).ok_or_else(|| self.wrong_value(name, "a whole number"))
    }

    fn run(&mut self) -> Result<u64, String> {
        self.whole("run")?.ok_or_else(|| self.wrong("needs run, the number of a run; list shows the numbers"))
    }

    fn seconds(&mut self, name: &str, most: Duration) -> Result<Option<f64>, String> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::String(digits) => digits.parse().ok(),
            number => number.as_f64(),
        };
        let most = most.as_secs_f64();
        let valid = number.filter(|number| (0.0..=most).contains(number));
        valid.map(Some).ok_or_else(|| self.wrong_value(name, &format!("a number of seconds from 0 to {most}")))
    }

    /// The time to wait, cut to the longest time of a call.
    fn wait(&mut self, usual: f64) -> Result<Duration, String> {
        let wait = self.seconds("wait", limits::TIMEOUT_MAX)?.unwrap_or(usual);
        Ok(Duration::from_secs_f64(wait).min(limits::MCP_CALL))
    }

    fn wrong(&self, what: &str) -> String {
        format!("{} {what}", self.tool)
    }

    fn wrong_value(&self, name: &str, wanted: &str) -> String {
        self.wrong(&format!("takes as {name}: {wanted}"))
    }

    /// Checks that no argument was ignored.
    fn end(&self) -> Result<(), String> {
        match self.given.iter().find(|(_, value)| !value.is_null()) {
            None => Ok(()),
            Some((name, _)) => {
                let name: String = name.chars().take(40).collect();
                Err(self.wrong(&format!("has no argument `{}`", name.escape_debug())))
            }
        }
    }
}
