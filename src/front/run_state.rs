//! The state of a run, decided once for every list and door.

use serde::{Deserialize, Serialize};

use crate::core::job::Job;
use crate::limits;
use crate::text::escape::escape_line;

/// The state of a run in lists for people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    Queued,
    /// A person decides whether it runs.
    Asks,
    /// Its shell runs.
    Running,
    /// A program of it waits for a person's answer.
    Waiting,
    /// Its processes are stopped until a person resumes them.
    Paused,
    /// It was told to end.
    Stopping,
    /// Its shell has ended; processes that it started go on.
    Left,
    /// A state that only a newer host knows.
    #[default]
    #[serde(other)]
    Unknown,
}

impl RunState {
    /// The word for the state in `rexec ps`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Asks => "asks",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Stopping => "stopping",
            Self::Left => "left",
            Self::Unknown => "?",
        }
    }
}

/// The facts that decide the state of a run.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'a> {
    /// `None` once nobody reads its log any more.
    pub job: Option<&'a Job>,
    pub is_paused: bool,
    /// A person wants what it left running to end.
    pub ends_left: bool,
}

impl Standing<'_> {
    /// The state for people. That somebody wants the run to end is more to them than what its shell does.
    #[must_use]
    pub fn state(self) -> RunState {
        match self.job {
            Some(job) if job.held().is_some() => RunState::Asks,
            Some(job) if job.is_queued() => RunState::Queued,
            Some(job) if job.is_stopping() => RunState::Stopping,
            _ if self.ends_left => RunState::Stopping,
            _ if self.is_paused => RunState::Paused,
            Some(job) if job.waiting().is_some() => RunState::Waiting,
            Some(job) if !job.has_ended() => RunState::Running,
            _ => RunState::Left,
        }
    }

    /// The part of the command on which a person decides, in one line.
    #[must_use]
    pub fn held(self) -> Option<String> {
        self.job.and_then(Job::held).map(|hold| escape_line(&hold.subject.leaf, limits::PROMPT_BYTES))
    }

    /// The word in JSON-RPC. There the shell's own state counts, and the rest of the output after its end has a state.
    #[must_use]
    pub fn word_for_programs(self) -> &'static str {
        match self.job.filter(|job| !job.has_ended()) {
            None => "closed",
            Some(job) if job.held().is_some() => "held",
            Some(job) if job.is_queued() => "queued",
            Some(_) if self.is_paused => "paused",
            Some(job) if job.waiting().is_some() => "asks",
            Some(job) if job.is_running() => "running",
            Some(_) => "exited",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use rexec_sh::protocol::process::Exit;

    use super::*;
    use crate::core::end::{Stopper, Subject};
    use crate::core::entry::{Consequence, Judgement, Stream, Streams};

    #[test]
    fn each_state_of_a_run_has_one_word_for_people_and_one_for_programs() {
        let now = Instant::now();
        let queued = Job::new();
        let mut held = Job::new();
        let subject = Subject { leaf: String::new(), rule: None, why: None };
        let consequence = Consequence::Asked { subject, wait: Duration::from_secs(60) };
        let [leaf, why] = [String::new(), String::new()];
        held.on_judged(Judgement { verdict: "ask", rule: None, leaf, why, consequence }, now);
        let mut running = Job::new();
        let _ = running.on_started(Duration::ZERO, Streams::default(), now);
        let mut exited = Job::new();
        let _ = exited.on_started(Duration::ZERO, Streams::of(&[Stream::Out]), now);
        exited.on_exit(Exit::Code(0), now);
        let mut stopping = Job::reported(now);
        let _ = stopping.stop(Stopper::Kill, Duration::from_secs(9), now);
        let words = |job: Option<&Job>, is_paused: bool, ends_left: bool| {
            let standing = Standing { job, is_paused, ends_left };
            (standing.state(), standing.word_for_programs())
        };
        let cases = [
            (Some(&queued), false, false, (RunState::Queued, "queued")),
            (Some(&queued), true, false, (RunState::Queued, "queued")),
            (Some(&held), false, false, (RunState::Asks, "held")),
            (Some(&running), false, false, (RunState::Running, "running")),
            (Some(&running), true, false, (RunState::Paused, "paused")),
            (Some(&exited), false, false, (RunState::Running, "exited")),
            (Some(&stopping), false, false, (RunState::Stopping, "running")),
            (Some(&stopping), true, false, (RunState::Stopping, "paused")),
            (None, false, false, (RunState::Left, "closed")),
            (None, true, false, (RunState::Paused, "closed")),
            (None, true, true, (RunState::Stopping, "closed")),
        ];
        for (job, is_paused, ends_left, expected) in cases {
            assert_eq!(words(job, is_paused, ends_left), expected, "{job:?} {is_paused} {ends_left}");
        }
    }
}
