//! What the keys on the console do to the host.
//!
//! Invariant: a key acts in the turn in which it was read, and nothing here waits.

use std::time::Duration;

use super::Host;
use super::answering::Answerer;
use super::runs::KillRequest;
use crate::core::engine::JobId;
use crate::core::entry::{AnswerPlace, Reason};
use crate::core::job::Job;
use crate::io::poller::Token;
use crate::sink::console::keyboard::{KeyAction, Situation};

/// What `?` shows.
const HELP: &str = include_str!("../cli/help/keys.txt");

impl Host {
    /// The human typed something.
    pub(super) fn visit_keys(&mut self, token: Token) {
        let (situation, now) = (self.situation(), self.turn.now);
        let Some(actions) = self.screen.take_keys(&mut self.turn.poller, situation, now) else {
            self.turn.forget(token);
            return self.on_console_gone();
        };
        if !actions.is_empty() {
            self.runs.prompts.on_key(now);
        }
        actions.into_iter().for_each(|action| self.on_key(action));
        self.screen.show_question(situation.running, now);
    }

    fn situation(&self) -> Situation {
        Situation {
            running: self.engine.jobs().filter(|(_, job)| !job.is_closed()).count(),
            shown: self.screen.said_to_stop().unwrap_or_else(|| self.interruptible()).map(|job| job.0),
            asks: self.waiting().map(|job| job.0),
            follows: self.screen.follows(),
            is_ending: self.is_closing(),
        }
    }

    /// The command that ^C stops: the one that is being shown, else the one that began last.
    pub(super) fn interruptible(&self) -> Option<JobId> {
        let is_alive = |job: &JobId| self.engine.job(*job).is_some_and(Job::is_running);
        self.screen.shown().filter(is_alive).or_else(|| self.engine.jobs().map(|(job, _)| job).filter(is_alive).last())
    }

    fn on_key(&mut self, action: KeyAction) {
        // What the last key did must not hide what this one does.
        self.screen.forget_message();
        match action {
            KeyAction::Help => self.screen.say(HELP.trim_end()),
            KeyAction::Interrupt { run, is_second } => self.interrupt(JobId(run), is_second),
            KeyAction::End => self.ask_to_end(),
            KeyAction::Kill(run) => self.kill_by_key(JobId(run)),
            KeyAction::Follow(run) => self.follow(run.map(JobId)),
            KeyAction::Freeze => self.screen.freeze(),
            KeyAction::Answer => self.answer_by_key(),
            KeyAction::Input(keys) => self.type_at_console(&keys),
            KeyAction::Leave => self.leave_by_key(),
            KeyAction::Blank => self.screen.say(""),
            KeyAction::Redraw => self.screen.redraw(self.turn.now),
            KeyAction::Typing => {}
            KeyAction::Refused(why) => self.screen.tell(why, self.turn.now),
        }
    }

    fn interrupt(&mut self, job: JobId, is_second: bool) {
        let number = job.0;
        if !self.is_alive(job) {
            self.screen.tell(format_args!("#{number} has ended"), self.turn.now);
        } else if self.engine.job(job).is_some_and(Job::is_reported) {
            self.kill_by_key(job);
        } else if is_second {
            self.engine.stop(job, Reason::Asked, Duration::ZERO, self.turn.now);
        } else {
            self.engine.interrupt(job, self.turn.now);
            self.screen.tell(format_args!("#{number} is interrupted; ^C again kills it"), self.turn.now);
        }
    }

    /// The command that `i` answers: the one that is being shown, else the one that began first, of those that wait.
    fn waiting(&self) -> Option<JobId> {
        let waits = |job: &JobId| self.engine.job(*job).is_some_and(|known| known.waiting().is_some());
        let is_free = |job: &JobId| waits(job) && self.runs.answerer(*job).is_none();
        self.screen.shown().filter(is_free).or_else(|| self.runs.jobs().find(is_free))
    }

    fn answer_by_key(&mut self) {
        let Some(job) = self.waiting() else { return self.screen.end_answering() };
        let at_console = (Answerer::Console, AnswerPlace::Console);
        match self.runs.begin_answer(job, at_console, false, &mut self.engine) {
            Ok(()) => {
                self.screen.mark_pastes(false);
                self.screen.tell(format_args!("your keys go to #{}; ^] takes them back", job.0), self.turn.now);
            }
            Err(why) => {
                let problem = self.no_answer(job.0, why).problem;
                self.screen.tell(problem, self.turn.now);
                self.screen.end_answering();
            }
        }
    }

    fn type_at_console(&mut self, keys: &[u8]) {
        let Some(job) = self.runs.answered_by(Answerer::Console) else { return };
        if let Err(why) = self.runs.type_answer(job, keys, &mut self.engine) {
            let problem = self.no_answer(job.0, why).problem;
            self.screen.tell(problem, self.turn.now);
        }
    }

    fn leave_by_key(&mut self) {
        if let Some(job) = self.runs.answered_by(Answerer::Console) {
            self.runs.leave_answer(job, &mut self.engine);
        }
    }

    fn kill_by_key(&mut self, job: JobId) {
        let request = KillRequest { peer: None, job, grace: self.options.grace };
        if let Err(notice) = self.end_run(request) {
            self.screen.tell(notice.problem, self.turn.now);
        }
    }

    fn follow(&mut self, job: Option<JobId>) {
        match job.filter(|&job| !self.is_alive(job)) {
            Some(gone) => self.screen.tell(format_args!("no command #{} runs", gone.0), self.turn.now),
            None => self.screen.follow(job, self.turn.now),
        }
    }

    fn is_alive(&self, job: JobId) -> bool {
        self.engine.job(job).is_some_and(|known| !known.is_closed())
    }
}
