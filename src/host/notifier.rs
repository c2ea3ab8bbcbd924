//! The calls for the human when a run waits for an answer, and `--notify COMMAND`, a command of theirs that runs then, and
//! also for a run that was refused because nobody was there to ask. Of a run that rules ask about it gets the token.
//!
//! Invariants: the loop never waits for it; at most [`limits::NOTIFY_MAX`] run at once for runs that wait, and for refused
//! ones, which take no place of these, [`limits::NOTIFY_REFUSED_MAX`], nor are more started within
//! [`limits::LATER_KEPT`]; the kernel reaps them.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use super::later::LaterAsks;
use super::run::ActiveRun;
use super::runs::Runs;
use super::screen::Screen;
use super::tokens::AnswerTokens;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::Prompt;
use crate::core::job::Job;
use crate::limits;
use crate::sys::background;
use crate::sys::tree::{self, Process};
use crate::text::escape::escape_line;
use crate::text::prompt::{prompt_words, quoted};
use crate::text::reason::reason;
use crate::text::safe_text::SafeText;
use rexec_sh::protocol::process::Pid;

const TOO_MANY_REFUSED: &str =
    "--notify: too many refused commands within 10 minutes; rexec ps --asks lists further ones";

#[derive(Debug)]
pub(super) struct Call {
    run: u64,
    agent: String,
    command: String,
    /// One sentence.
    message: String,
    matter: Matter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Matter {
    /// A program of the run asks.
    Prompt,
    /// It is held.
    Start,
    /// It was refused, because nobody was there.
    NextRun,
}

impl Call {
    fn of(job: JobId, run: &ActiveRun, matter: Matter, message: String) -> Self {
        let card = &run.description.card;
        let [agent, command] = [&card.whoami, &card.command].map(Clone::clone);
        Self { run: job.0, agent, command, message, matter }
    }
}

#[derive(Debug)]
pub(super) struct Notifier {
    command: Option<String>,
    /// The waiting commands for which the human was called.
    called: BTreeSet<JobId>,
    /// The commands that were alive at the last look.
    running: Vec<(Matter, Process)>,
    /// The sessions of the latest commands, in which something may live on in the background.
    sessions: VecDeque<Pid>,
    /// The refused runs of this turn.
    refused: Vec<JobId>,
    /// When a command was started for a refused run, and of which agent that was. Oldest first.
    started: VecDeque<(Instant, String)>,
    /// When the human was told that there are too many of them.
    too_many_told: Option<Instant>,
}

impl Notifier {
    pub(super) fn new(command: Option<String>) -> Self {
        Self {
            command,
            called: BTreeSet::new(),
            running: Vec::new(),
            sessions: VecDeque::new(),
            refused: Vec::new(),
            started: VecDeque::new(),
            too_many_told: None,
        }
    }

    /// Nobody was there to ask about this run.
    pub(super) fn note_refused(&mut self, job: JobId) {
        if self.command.is_some() {
            self.refused.push(job);
        }
    }

    /// Rings for each of these calls for which somebody waits, and runs the human's command for it.
    pub(super) fn call_human(
        &mut self,
        calls: Vec<Call>,
        tokens: &mut AnswerTokens,
        later: &mut LaterAsks,
        screen: &mut Screen,
        now: Instant,
    ) {
        for call in calls {
            if call.matter != Matter::NextRun {
                screen.ring(&SafeText::escaped(&call.message));
            }
            let Some(command) = self.command.clone() else { continue };
            if call.matter == Matter::NextRun && !self.may_start_for_refused(&call.agent, now) {
                if self.too_many_told.is_none_or(|at| now >= at + limits::LATER_KEPT) {
                    self.too_many_told = Some(now);
                    screen.tell(TOO_MANY_REFUSED, now);
                }
                continue;
            }
            match self.run_command(&command, &call, tokens, now) {
                Ok(()) if call.matter == Matter::NextRun => later.note_told(call.run, now),
                Ok(()) => {}
                Err(problem) => screen.tell(problem, now),
            }
        }
    }

    /// The calls for those of the changed commands that began to wait for the human's answer, one for each, and for those
    /// that were refused and of which they were not told.
    pub(super) fn calls(
        &mut self,
        changed: &BTreeSet<JobId>,
        engine: &Engine,
        runs: &Runs,
        later: &LaterAsks,
    ) -> Vec<Call> {
        let mut calls = self.calls_for_refused(runs, later);
        for &job in changed {
            let known = engine.job(job);
            let (matter, message) = match (known.and_then(Job::waiting), known.and_then(Job::held)) {
                (Some(prompt), _) => (Matter::Prompt, prompt_message(job, prompt)),
                (None, Some(hold)) => {
                    (Matter::Start, format!("#{} asks whether it may run: {}", job.0, hold.subject.leaf))
                }
                (None, None) => {
                    self.called.remove(&job);
                    continue;
                }
            };
            let Some(run) = runs.get(job).filter(|_| self.called.insert(job)) else { continue };
            calls.push(Call::of(job, run, matter, message));
        }
        calls
    }

    fn calls_for_refused(&mut self, runs: &Runs, later: &LaterAsks) -> Vec<Call> {
        let refused = std::mem::take(&mut self.refused).into_iter();
        let call = |job: JobId| {
            let (run, leaf) = (runs.get(job)?, later.untold(job.0)?);
            let message = format!("#{} was refused, for nobody is there; may it run next time: {leaf}", job.0);
            Some(Call::of(job, run, Matter::NextRun, message))
        };
        refused.filter_map(call).collect()
    }

    /// Returns true if a command may be started for another refused run of an agent.
    fn may_start_for_refused(&mut self, agent: &str, now: Instant) -> bool {
        self.started.retain(|(at, _)| now < *at + limits::LATER_KEPT);
        let of_agent = self.started.iter().filter(|(_, other)| other == agent).count();
        let most = self.started.len().max(self.running(|matter| matter == Matter::NextRun));
        of_agent < limits::NOTIFY_REFUSED_OF_AGENT_MAX && most < limits::NOTIFY_REFUSED_MAX
    }

    /// The number of commands of these matters that run.
    fn running(&mut self, is_counted: impl Fn(Matter) -> bool) -> usize {
        self.running.retain(|(_, known)| tree::process(known.pid).is_some_and(|now| now.start == known.start));
        self.running.iter().filter(|(matter, _)| is_counted(*matter)).count()
    }

    /// Starts the human's command for a call.
    ///
    /// # Errors
    /// The problem with that, for the human.
    fn run_command(
        &mut self,
        command: &str,
        call: &Call,
        tokens: &mut AnswerTokens,
        now: Instant,
    ) -> Result<(), String> {
        let running = self.running(|matter| matter != Matter::NextRun);
        if call.matter != Matter::NextRun && running >= limits::NOTIFY_MAX {
            return Err(format!("--notify: {running} of them still run; this one was not started"));
        }
        let number = call.run.to_string();
        let variables = [
            ("REXEC_RUN", number.as_str()),
            ("REXEC_AGENT", &call.agent),
            ("REXEC_COMMAND", &call.command),
            ("REXEC_MESSAGE", &call.message),
        ];
        let token = match call.matter {
            Matter::Prompt => Ok(None),
            Matter::Start | Matter::NextRun => tokens.make(JobId(call.run)).map(|token| Some(format!("{token}\n"))),
        };
        let begun = token.and_then(|token| background::start_shell(command, &variables, token.as_deref()));
        let pid = begun.map_err(|error| {
            tokens.end(JobId(call.run));
            format!("--notify: {}", reason(&error))
        })?;
        self.running.extend(tree::process(pid).map(|process| (call.matter, process)));
        self.sessions.push_back(pid);
        if self.sessions.len() > limits::NOTIFY_SESSIONS_MAX {
            self.sessions.pop_front();
        }
        if call.matter == Matter::NextRun {
            self.started.push_back((now, call.agent.clone()));
        }
        Ok(())
    }

    /// The leaders of the sessions in which something may live.
    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.sessions.iter().copied()
    }
}

fn prompt_message(job: JobId, prompt: &Prompt) -> String {
    let program = escape_line(&prompt.program, 32);
    let words = match prompt_words(&prompt.prompt, 80).as_str() {
        "" => String::new(),
        words => format!(": {}", quoted(words)),
    };
    format!("#{} waits for your answer to {program}{words}", job.0)
}
