//! `--notify COMMAND`: a command of the human's that runs when a run waits for an answer.
//!
//! Invariants: the loop never waits for it; at most [`limits::NOTIFY_MAX`] run at once; the kernel reaps them.

use std::collections::VecDeque;

use crate::limits;
use crate::sys::background;
use crate::sys::tree::{self, Process};
use crate::text::reason::reason;
use rexec_sh::protocol::process::Pid;

#[derive(Debug)]
pub(super) struct Call {
    pub(super) run: u64,
    pub(super) agent: String,
    pub(super) command: String,
    /// One sentence.
    pub(super) message: String,
}

#[derive(Debug)]
pub(super) struct Notifier {
    command: Option<String>,
    /// The commands that were alive at the last look.
    running: Vec<Process>,
    /// The sessions of the latest commands, in which something may live on in the background.
    sessions: VecDeque<Pid>,
}

impl Notifier {
    pub(super) fn new(command: Option<String>) -> Self {
        Self { command, running: Vec::new(), sessions: VecDeque::new() }
    }

    /// Starts the command. Returns the problem with that, for the human.
    pub(super) fn call(&mut self, call: &Call) -> Option<String> {
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
        match background::start_shell(command, &variables) {
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
