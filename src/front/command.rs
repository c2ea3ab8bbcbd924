//! A command as the host handles it: the caller's own RUN frame, and what people want to know of it.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::time::Duration;

use rexec_sh::protocol::choice::{Sanitize, Tty};
use rexec_sh::protocol::wire::{Decoded, FromShim, Run, Stdio};

use super::caller;
use crate::limits;
use crate::text::redact::Redactor;
use crate::text::unwrap;

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The RUN frame, which goes to the guard as it came.
    pub frame: Vec<u8>,
    /// What the caller's descriptors are.
    pub stdio: Stdio,
    /// Which of its descriptors are to be the run's terminal.
    pub tty: Option<Tty>,
    /// Whether its output on pipes is not to be held back; `None` as the host was told to.
    pub live: Option<bool>,
    /// It has exactly the environment that its caller gave: nothing is added to it.
    pub is_bare: bool,
    /// How many descriptors come with the frame.
    pub descriptors: usize,
    /// The treatment of output that the caller wants.
    pub sanitize: Option<Sanitize>,
    /// The caller's window, rows and columns, if it has one.
    pub window: Option<(u16, u16)>,
    /// Who calls.
    pub whoami: String,
    /// The shell's path.
    pub shell: String,
    /// The arguments.
    pub exec: Vec<Vec<u8>>,
    /// The command without the agent's wrapper.
    pub text: Vec<u8>,
    /// A wrapper was left out of the text.
    pub is_unwrapped: bool,
    /// The working directory, where the caller named it; a shim sends the directory itself.
    pub dir: Option<String>,
    /// Variables that the caller gave by name (JSONL); never those of a shim's environment.
    pub envs: BTreeMap<String, String>,
    /// An agent's look at the shell, known to its last byte.
    pub is_probe: bool,
    /// Its output is for the agent's own program and not for a model: it passes as it is.
    pub is_for_program: bool,
    /// How long the caller lets it run (JSONL).
    pub timeout: Option<Duration>,
    /// The caller kills what is left of the shell's group once it has the result.
    pub kills_group: bool,
}

impl Command {
    /// The command of a RUN frame.
    #[must_use]
    pub fn of(run: &Run<'_>, frame: &[u8]) -> Self {
        let env = || run.env.iter().map(CStr::to_bytes);
        let entries: Vec<&[u8]> = env().collect();
        let unwrapped = unwrap::unwrap(run.argv.iter().map(CStr::to_bytes), &entries, caller::agent(env()));
        let (rows, cols) = (run.attributes.rows, run.attributes.cols);
        Self {
            frame: frame.to_vec(),
            stdio: run.attributes.stdio,
            tty: run.attributes.tty,
            live: run.attributes.extras.live,
            is_bare: false,
            descriptors: run.descriptor_count(),
            sanitize: run.attributes.sanitize,
            window: (rows > 0 && cols > 0)
                .then_some((rows.min(limits::WINDOW_ROWS_MAX), cols.min(limits::WINDOW_COLS_MAX))),
            whoami: caller::name(run.whoami, env()),
            shell: run.shell.to_string_lossy().into_owned(),
            exec: run.argv.iter().map(|argument| argument.to_bytes().to_vec()).collect(),
            text: unwrapped.command,
            is_unwrapped: unwrapped.is_unwrapped,
            dir: None,
            envs: BTreeMap::new(),
            is_probe: unwrapped.is_probe,
            is_for_program: unwrapped.is_probe || unwrapped.is_for_program || caller::is_harness(env()),
            timeout: None,
            kills_group: caller::kills_group(env()),
        }
    }

    /// What it takes while it waits for its start, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.frame.len() + self.text.len() + self.exec.iter().map(Vec::len).sum::<usize>()
    }

    /// A masker of the secrets in its environment.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        let run = self.run();
        let entries = run.iter().flat_map(|run| run.env.iter());
        Redactor::new(entries.filter_map(|entry| {
            let entry = entry.to_bytes();
            let at = memchr::memchr(b'=', entry)?;
            Some((&entry[..at], &entry[at + 1..]))
        }))
    }

    /// The frame, read again.
    #[must_use]
    pub fn run(&self) -> Option<Box<Run<'_>>> {
        match FromShim::decode(&self.frame) {
            Ok(Decoded::Item(FromShim::Run(run), _)) => Some(run),
            _ => None,
        }
    }
}
