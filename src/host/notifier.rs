//! The calls for the human when a run waits for an answer, and `--notify COMMAND`, a command of theirs that runs then. Of
//! a held run it gets the token.
//!
//! Invariants: the loop never waits for it; at most [`limits::NOTIFY_MAX`] run at once; the kernel reaps them.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

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

#[derive(Debug)]
pub(super) struct Call {
    run: u64,
    agent: String,
    command: String,
    /// One sentence.
    message: String,
    /// It is held, and who gets its token may answer.
    is_held: bool,
}

#[derive(Debug)]
pub(super) struct Notifier {
    command: Option<String>,
    /// The waiting commands for which the human was called.
    called: BTreeSet<JobId>,
    /// The commands that were alive at the last look.
    running: Vec<Process>,
    /// The sessions of the latest commands, in which something may live on in the background.
    sessions: VecDeque<Pid>,
}

impl Notifier {
    pub(super) fn new(command: Option<String>) -> Self {
        Self { command, called: BTreeSet::new(), running: Vec::new(), sessions: VecDeque::new() }
    }

    /// Rings for each of these calls, and runs the human's command for it.
    pub(super) fn call_human(
        &mut self,
        calls: Vec<Call>,
        tokens: &mut AnswerTokens,
        screen: &mut Screen,
        now: Instant,
    ) {
        for call in calls {
            screen.ring(&SafeText::escaped(&call.message));
            if let Some(problem) = self.run_command(&call, tokens) {
                screen.tell(problem, now);
            }
        }
    }

    /// The calls for those of the changed commands that began to wait for the human's answer, one for each.
    pub(super) fn calls(
        &mut self,
        changed: &BTreeSet<JobId>,
        engine: &Engine,
        runs: &Runs,
        tokens: &mut AnswerTokens,
    ) -> Vec<Call> {
        let mut calls = Vec::new();
        for &job in changed {
            let known = engine.job(job);
            let message = match (known.and_then(Job::waiting), known.and_then(Job::held)) {
                (Some(prompt), _) => prompt_message(job, prompt),
                (None, Some(hold)) => format!("#{} asks whether it may run: {}", job.0, hold.subject.leaf),
                (None, None) => {
                    tokens.end(job);
                    self.called.remove(&job);
                    continue;
                }
            };
            let Some(run) = runs.get(job).filter(|_| self.called.insert(job)) else { continue };
            calls.push(Call {
                run: job.0,
                agent: run.description.card.whoami.clone(),
                command: run.description.card.command.clone(),
                message,
                is_held: known.is_some_and(|known| known.held().is_some()),
            });
        }
        calls
    }

    /// Starts the human's command for a call. Returns the problem with that, for the human.
    fn run_command(&mut self, call: &Call, tokens: &mut AnswerTokens) -> Option<String> {
        let command = self.command.as_deref()?;
        self.running.retain(|known| tree::process(known.pid).is_some_and(|now| now.start == known.start));
        if self.running.len() >= limits::NOTIFY_MAX {
            return Some(format!("--notify: {} of them still run; this one was not started", self.running.len()));
        }
        let number = call.run.to_string();
        let variables = [
            ("REXEC_RUN", number.as_str()),
            ("REXEC_AGENT", &call.agent),
            ("REXEC_COMMAND", &call.command),
            ("REXEC_MESSAGE", &call.message),
        ];
        let token = call.is_held.then(|| tokens.make(JobId(call.run)).map(|token| format!("{token}\n"))).transpose();
        match token.and_then(|token| background::start_shell(command, &variables, token.as_deref())) {
            Ok(pid) => {
                self.running.extend(tree::process(pid));
                self.sessions.push_back(pid);
                if self.sessions.len() > limits::NOTIFY_SESSIONS_MAX {
                    self.sessions.pop_front();
                }
            }
            Err(error) => return Some(format!("--notify: {}", reason(&error))),
        }
        None
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
