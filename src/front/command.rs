//! A command for the host: the caller's RUN frame, and the facts that the host reads from it.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::time::Duration;

use rexec_sh::protocol::agents::known_name;
use rexec_sh::protocol::choice::{Sanitize, Tty};
use rexec_sh::protocol::mark::INSIDE;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::report::ValueMasks;
use rexec_sh::protocol::wire::{Decoded, Direct, FromShim, OutputBudget, RunRequest, Stdio};

use super::caller::{self, CallerMarks};
use super::projects::ProjectId;
use super::span::TraceContext;
use crate::core::card::{Caller, CommandLine};
use crate::limits;
use crate::text::redact::{Redactor, split_entry};
use crate::text::unwrap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The RUN frame. The guard gets it unchanged.
    pub frame: Vec<u8>,
    /// The kinds of the caller's descriptors.
    pub stdio: Stdio,
    /// The descriptors that are the run's terminal; `None`: the host's choice holds.
    pub tty: Option<Tty>,
    /// True if runtimes are asked not to buffer output on pipes; `None`: the host's choice holds.
    pub live: Option<bool>,
    /// The amount of output for its caller; `None`: the host's choice holds.
    pub budget: Option<OutputBudget>,
    /// True if its caller is an agent known by its own variables.
    pub is_agents: bool,
    /// True if nothing is added to the environment that its caller gave.
    pub is_bare: bool,
    /// True if it finds its caller's name in `REXEC_WHOAMI`, as the commands of plain clients do.
    pub knows_caller: bool,
    /// Its place in a trace, if it has one of its own.
    pub trace: Option<TraceContext>,
    /// The number of descriptors that come with the frame.
    pub descriptors: usize,
    /// The filter that the caller wants for the output; `None`: the host's choice holds.
    pub sanitize: Option<Sanitize>,
    /// The caller's window in rows and columns, if it has one, within the limits of a screen here.
    pub window: Option<(u16, u16)>,
    /// The size of the caller's terminal in rows and columns, as reported: it may be 0×0, or larger than any screen
    /// here.
    pub true_window: Option<(u16, u16)>,
    pub caller: Caller,
    /// The process that `rexec run` has started, if its caller is below that.
    pub started: Option<Pid>,
    /// The command as texts.
    pub line: CommandLine,
    pub exec: Vec<Vec<u8>>,
    /// The command's text without the agent's wrapper.
    pub text: Vec<u8>,
    /// The key that tells its caller's session from others.
    pub session_key: String,
    /// True if the caller gave no name; its name is then a fallback.
    pub is_unnamed: bool,
    /// True if that wrapper is the one of the agent's own sandbox.
    pub is_in_agents_sandbox: bool,
    /// The number of directories from the working directory up to the top of its git project.
    pub depth: Option<u8>,
    /// The project session that its caller names.
    pub project: Option<ProjectId>,
    /// The working directory, if the caller named it. A shim sends a descriptor instead.
    pub dir: Option<String>,
    /// Variables that its caller named one by one; never those of a shim's environment.
    pub envs: BTreeMap<String, String>,
    /// True if its output is for the agent's own program and not for a model. Then it passes unchanged.
    pub is_for_program: bool,
    /// True if the caller kills the rest of the shell's process group once it has the result.
    pub kills_group: bool,
    /// Why the person is asked about it, whatever the rules say.
    pub concern: Option<Concern>,
    /// The variables that its project has added.
    pub added: Vec<CString>,
}

/// A reason for which a person is asked about a command, besides the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concern {
    /// It brings back the files of this run. After the yes it counts as the person's own.
    Restore { run: u64 },
    /// It destroys what cannot be kept for undo: the rest of a sentence about it.
    Unkept { what: String },
}

impl Command {
    /// Returns true if it brings back files of a run.
    #[must_use]
    pub fn is_restore(&self) -> bool {
        matches!(self.concern, Some(Concern::Restore { .. }))
    }

    /// The bytes of each stream that its caller gets; `None` means all. `hosts_choice` is for known agents that choose
    /// nothing. Another caller's file may be for a program.
    #[must_use]
    pub fn output_budget(&self, hosts_choice: usize) -> Option<usize> {
        let bytes = match self.budget {
            Some(OutputBudget { is_file: true, .. }) if !self.is_agents => 0,
            Some(chosen) => usize::try_from(chosen.bytes).unwrap_or(0),
            None if self.is_agents => hosts_choice,
            None => 0,
        };
        (bytes > 0).then_some(bytes)
    }

    #[must_use]
    pub fn of(run: &RunRequest<'_>, frame: &[u8]) -> Self {
        let env = || run.env.iter().map(CStr::to_bytes);
        let entries: Vec<&[u8]> = env().collect();
        let extras = &run.attributes.extras;
        let started = extras.agent.as_slice();
        let known = known_name(started, env());
        let unwrapped = unwrap::unwrap(run.argv.iter().map(CStr::to_bytes), &entries, caller::agent(known));
        let marks = CallerMarks::read(started, known, &entries, unwrapped.is_probe);
        let (rows, cols) = (run.attributes.rows, run.attributes.cols);
        Self {
            frame: frame.to_vec(),
            stdio: run.attributes.stdio,
            tty: run.attributes.tty,
            live: extras.live,
            budget: extras.budget,
            is_agents: !started.is_empty() || known.is_some(),
            is_bare: extras.direct == Some(Direct::Bare),
            trace: None,
            knows_caller: matches!(extras.direct, Some(Direct::Host | Direct::Bare)),
            descriptors: run.descriptor_count(),
            sanitize: run.attributes.sanitize,
            window: (rows > 0 && cols > 0)
                .then_some((rows.min(limits::WINDOW_ROWS_MAX), cols.min(limits::WINDOW_COLS_MAX))),
            true_window: (run.attributes.stdio.stdout_tty || run.attributes.stdio.stderr_tty).then_some((rows, cols)),
            is_unnamed: run.whoami.is_empty() && started.is_empty() && marks.caller.agent.is_empty(),
            caller: Caller { whoami: caller::name(run.whoami, started, known), ..marks.caller },
            started: marks.started,
            line: CommandLine {
                text: lossy(&unwrapped.command),
                words: extras.direct.is_some().then(|| run.argv.iter().map(|word| lossy(word.to_bytes())).collect()),
                shell: run.shell.to_string_lossy().into_owned(),
                is_unwrapped: unwrapped.is_unwrapped,
                is_probe: unwrapped.is_probe,
                why: lossy(&extras.why).trim().to_owned(),
                service: String::new(),
                timeout: (extras.timeout_ms > 0)
                    .then(|| Duration::from_millis(extras.timeout_ms).min(limits::TIMEOUT_MAX)),
            },
            text: unwrapped.command,
            session_key: marks.key,
            exec: run.argv.iter().map(|argument| argument.to_bytes().to_vec()).collect(),
            is_in_agents_sandbox: unwrapped.is_sandboxed,
            depth: run.attributes.extras.project,
            project: None,
            dir: None,
            envs: given(run),
            is_for_program: unwrapped.is_probe || unwrapped.is_for_program || caller::is_harness(env()),
            kills_group: extras.direct.is_none() && caller::kills_group(env()),
            concern: None,
            added: Vec::new(),
        }
    }

    /// The memory that it takes while it waits for its start, bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.frame.len() + self.text.len() + self.line.text.len() + self.exec.iter().map(Vec::len).sum::<usize>()
    }

    /// A redactor that masks the secrets of its environment and of its text.
    #[must_use]
    pub fn redactor(&self) -> Redactor {
        let run = self.run();
        let variables = self.variables(run.as_deref()).filter_map(split_entry);
        Redactor::of_command(variables, &self.exec.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Its caller's variables and those that its project has added, `NAME=value`. `run` is its decoded frame.
    pub fn variables<'a>(&'a self, run: Option<&'a RunRequest<'_>>) -> impl Iterator<Item = &'a [u8]> {
        let own = run.into_iter().flat_map(|run| run.env.iter());
        own.chain(self.added.iter().map(CString::as_c_str)).map(CStr::to_bytes)
    }

    /// The arguments as a shim reports them.
    #[must_use]
    pub fn reported_arguments(&self) -> Vec<Vec<u8>> {
        let run = self.run();
        let masks = ValueMasks::of(run.iter().flat_map(|run| run.env.iter()).map(|entry| entry.to_bytes()));
        self.exec.iter().map(|argument| masks.masked(argument)).collect()
    }

    /// Decodes the frame again.
    #[must_use]
    pub fn run(&self) -> Option<Box<RunRequest<'_>>> {
        match FromShim::decode(&self.frame) {
            Ok(Decoded::Item(FromShim::Run(run), _)) => Some(run),
            _ => None,
        }
    }
}

/// The variables that a caller named one by one: all in the frame, except rexec's own mark.
fn given(run: &RunRequest<'_>) -> BTreeMap<String, String> {
    if !matches!(run.attributes.extras.direct, Some(Direct::Host | Direct::Bare)) {
        return BTreeMap::new();
    }
    let pairs = run.env.iter().filter(|entry| *entry != INSIDE).map(CStr::to_bytes);
    let pairs = pairs.filter_map(|entry| memchr::memchr(b'=', entry).map(|at| (&entry[..at], &entry[at + 1..])));
    pairs.map(|(name, value)| (lossy(name), lossy(value))).collect()
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
