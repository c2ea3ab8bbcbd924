//! The effects of the console's keys on the host.
//!
//! Invariant: a key acts in the turn in which it was read, and nothing here waits.

use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::Host;
use super::always::Proposal;
use super::answering::Answerer;
use super::prompt_policy::young_until;
use super::runs::{AnswerWish, KillRequest, NoAnswer};
use super::screen::KeyboardTick;
use crate::core::end::Stopper;
use crate::core::engine::JobId;
use crate::core::entry::{AnswerPlace, Decider, Decision};
use crate::core::job::Job;
use crate::gate::sandbox_words;
use crate::io::poller::Token;
use crate::limits;
use crate::sink::console::keyboard::{KeyAction, Situation};
use crate::text::escape::escape_text;

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

    /// Lets the keyboard know the time. Comes after the keys typed until then were read.
    pub(super) fn tick_keys(&mut self) {
        let now = self.turn.now;
        match self.screen.tick_keys(now) {
            KeyboardTick::Nothing => {}
            KeyboardTick::Question => self.screen.show_question(self.situation().running, now),
            KeyboardTick::Released => {
                self.screen.show_question(self.situation().running, now);
                self.screen.tell("your keys are the console's again", now);
            }
        }
    }

    /// Tells the keyboard which commands wait, where no status line names them.
    pub(super) fn note_prompts(&mut self) {
        let waiting = self.waiting().map(|job| job.0).collect();
        let held = self.held().map(|job| job.0).collect();
        self.screen.note_prompts(waiting, held, self.turn.now);
    }

    fn situation(&self) -> Situation {
        Situation {
            running: self.engine.jobs().filter(|(_, job)| !job.has_ended()).count(),
            shown: self.screen.said_to_stop().unwrap_or_else(|| self.interruptible()).map(|job| job.0),
            asks: self.screen.asks(self.waiting().map(|job| job.0), self.turn.now),
            held: self.screen.decides(self.held().map(|job| job.0), self.turn.now),
            follows: self.screen.follows(),
            is_ending: self.is_closing(),
        }
    }

    /// The command that ^C stops: the one that the console is showing, else the one that began last.
    pub(super) fn interruptible(&self) -> Option<JobId> {
        let is_alive = |job: &JobId| self.engine.job(*job).is_some_and(Job::is_running);
        self.screen.shown().filter(is_alive).or_else(|| self.engine.jobs().map(|(job, _)| job).filter(is_alive).last())
    }

    fn on_key(&mut self, action: KeyAction) {
        // The last key's message must not hide this one's.
        self.screen.forget_message();
        match action {
            KeyAction::Help => self.screen.say(HELP.trim_end()),
            KeyAction::Interrupt { run, is_second } => self.interrupt(JobId(run), is_second),
            KeyAction::End => self.ask_to_end(),
            KeyAction::Kill(run) => self.kill_by_key(JobId(run)),
            KeyAction::Follow(run) => self.follow(run.map(JobId)),
            KeyAction::Freeze => self.screen.freeze(),
            KeyAction::Answer(run) => self.answer_by_key(JobId(run)),
            KeyAction::Input(run, keys) => self.type_at_console(JobId(run), &keys),
            KeyAction::Leave(run) => self.leave_by_key(JobId(run)),
            KeyAction::Decide { run, is_yes, why } => self.decide_by_key(JobId(run), is_yes, why),
            KeyAction::Propose(run) => match self.propose(JobId(run)) {
                Ok(Proposal { words, .. }) => {
                    if words.chars().count() > limits::KEYS_REASON_SHOWN {
                        self.screen.say(format_args!("… y would allow from now on: {words}"));
                    }
                    self.screen.propose(JobId(run), words, self.turn.now);
                }
                Err(problem) => self.screen.tell(problem, self.turn.now),
            },
            KeyAction::Always { run, what } => {
                if let Err(problem) = self.allow_always(JobId(run), &what) {
                    self.screen.tell(problem, self.turn.now);
                }
            }
            KeyAction::Explain(run) => self.explain(JobId(run)),
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
            self.engine.stop(job, Stopper::Console, Duration::ZERO, self.turn.now);
        } else {
            self.engine.interrupt(job, self.turn.now);
            self.screen.tell(format_args!("#{number} is interrupted; ^C again kills it"), self.turn.now);
        }
    }

    /// The commands that wait for an answer and that nobody answers.
    fn waiting(&self) -> impl Iterator<Item = JobId> {
        let waits = |job: &JobId| self.engine.job(*job).is_some_and(|known| known.waiting().is_some());
        self.runs.jobs().filter(move |job| waits(job) && self.runs.answerer(*job).is_none())
    }

    /// The commands on which a person decides.
    fn held(&self) -> impl Iterator<Item = JobId> {
        let is_held = |job: &JobId| self.engine.job(*job).is_some_and(|known| known.held().is_some());
        self.runs.jobs().filter(is_held)
    }

    fn decide_by_key(&mut self, job: JobId, is_yes: bool, why: Option<String>) {
        if self.engine.job(job).and_then(Job::held).is_none() {
            return self.screen.tell(format_args!("#{} asks nothing any more", job.0), self.turn.now);
        }
        if let Some(words) = why.as_deref().and_then(sandbox_words) {
            let problem = format_args!("#{} still asks: \"{words}\" is what agents read of their own sandbox", job.0);
            return self.screen.tell(problem, self.turn.now);
        }
        self.engine.decide(job, Decision { is_yes, by: Decider::Console, why }, self.turn.now);
    }

    /// What would always allow what a held command asks about; or why there is no such thing.
    fn propose(&mut self, job: JobId) -> Result<Proposal, String> {
        let number = job.0;
        let is_held = self.engine.job(job).and_then(Job::held).is_some();
        let pending = self.runs.pending(job).filter(|_| is_held);
        let pending = pending.ok_or_else(|| format!("#{number} asks nothing any more"))?;
        let proposed = self.rules.propose(pending, &self.recorder.reference(job), self.turn.now, &mut self.screen);
        proposed.map_err(|why| format!("#{number} can be allowed only once (y): {}", why.words()))
    }

    /// Lets a held command begin, and saves what would always allow what it asks about. `shown` is what the person has read
    /// of that.
    fn allow_always(&mut self, job: JobId, shown: &str) -> Result<(), String> {
        let proposal = self.propose(job)?;
        if proposal.words != shown {
            return Err(format!("#{} asks about something else by now; look, then press a again", job.0));
        }
        self.rules.learn(proposal, &mut self.screen)?;
        self.decide_by_key(job, true, None);
        Ok(())
    }

    /// Shows all of a held command.
    fn explain(&mut self, job: JobId) {
        if let Some(run) = self.runs.get(job) {
            let command = escape_text(&run.description.card.command);
            self.screen.say(format_args!("… #{} is: {command}", job.0));
        }
    }

    /// Returns true if a key may answer this command's prompt now: a key that comes too soon was meant for something
    /// else.
    fn may_be_answered(&self, job: JobId, now: Instant) -> bool {
        let waiting = self.engine.job(job).and_then(Job::waiting);
        waiting.is_none_or(|prompt| now >= young_until(prompt))
    }

    fn answer_by_key(&mut self, job: JobId) {
        let number = job.0;
        if !self.may_be_answered(job, self.turn.now) {
            return self.hold_keys(job, format!("#{number} has just begun to ask"));
        }
        let wish = AnswerWish { by: Answerer::Console, place: AnswerPlace::Console, is_forced: false };
        match self.runs.begin_answer(job, wish, &mut self.engine) {
            Ok(()) => {
                self.screen.mark_pastes(false);
                let name = self.screen.name_of(number);
                self.screen.tell(format_args!("your keys go to {name}; ^] takes them back"), self.turn.now);
            }
            Err(NoAnswer::NotRunning) => self.hold_keys(job, format!("#{number} has ended")),
            Err(why) => {
                let problem = self.no_answer(number, why).problem;
                self.hold_keys(job, problem.into());
            }
        }
    }

    /// The answer to this command is over, or did not begin. Unless that was the human's key, the next keys do nothing.
    pub(super) fn hold_keys(&mut self, job: JobId, why: String) {
        let now = self.turn.now;
        self.screen.end_answering(job, why, now);
        self.screen.show_question(self.situation().running, now);
    }

    fn type_at_console(&mut self, job: JobId, keys: &[u8]) {
        if self.runs.answerer(job) != Some(Answerer::Console) {
            // It has just ended.
            return;
        }
        if let Err(why) = self.runs.type_answer(job, keys, &mut self.engine) {
            let problem = self.no_answer(job.0, why).problem;
            self.screen.tell(problem, self.turn.now);
        }
    }

    fn leave_by_key(&mut self, job: JobId) {
        if self.runs.answerer(job) == Some(Answerer::Console) {
            self.runs.leave_answer(job, &mut self.engine);
        }
    }

    fn kill_by_key(&mut self, job: JobId) {
        let request = KillRequest { peer: None, job, by: Stopper::Console, grace: self.options.grace };
        if let Err(refused) = self.commands().end_run(request) {
            self.screen.tell(Notice::from(refused).problem, self.turn.now);
        }
    }

    fn follow(&mut self, job: Option<JobId>) {
        match job.filter(|&job| !self.is_alive(job)) {
            Some(gone) => self.screen.tell(format_args!("no command #{} runs", gone.0), self.turn.now),
            None => self.screen.follow(job, self.turn.now),
        }
    }

    fn is_alive(&self, job: JobId) -> bool {
        self.engine.job(job).is_some_and(|known| !known.has_ended())
    }
}
