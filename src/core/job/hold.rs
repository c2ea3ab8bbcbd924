//! A job is judged by the person's rules: it is refused, or held until that person has decided, or nobody has.
//!
//! Invariant: a job that was held starts only after a person's yes.

use std::time::Instant;

use super::{Job, JobState};
use crate::core::end::{How, Refusal, RefusalCause, Subject};
use crate::core::entry::{Consequence, Decider, Decision, Entry, Judgement};
use crate::limits;

/// What a person is asked of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// As in [`Judgement`].
    pub leaf: String,
    pub rule: Option<String>,
    pub since: Instant,
}

/// A job that waits for a person's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub subject: Subject,
    pub question: Question,
    /// When nobody is waited for any longer.
    pub until: Instant,
    /// When its caller is told that it waits. `None` once that is done.
    tell_at: Option<Instant>,
}

impl Question {
    #[must_use]
    pub fn of(judgement: &Judgement, now: Instant) -> Self {
        Self { leaf: judgement.leaf.clone(), rule: judgement.rule.clone(), since: now }
    }
}

impl Hold {
    /// When the job has something to do.
    pub(super) fn deadline(&self) -> Instant {
        self.tell_at.map_or(self.until, |at| at.min(self.until))
    }
}

impl Job {
    /// The person's rules do not allow all of it.
    pub fn on_judged(&mut self, judgement: Judgement, now: Instant) {
        if self.has_ended() {
            return;
        }
        let consequence = judgement.consequence.clone();
        let question = Question::of(&judgement, now);
        self.log.push(Entry::Judged(Box::new(judgement)));
        match consequence {
            Consequence::Watched | Consequence::Unread | Consequence::Permitted(_) => {}
            Consequence::Refused(refusal) => self.refuse(refusal),
            Consequence::Asked { subject, wait } => {
                let (until, tell_at) = (now + wait, Some(now + limits::HOLD_TOLD_AFTER));
                self.state = JobState::Held(Box::new(Hold { subject, question, until, tell_at }));
            }
        }
    }

    /// Nothing of it runs.
    pub fn refuse(&mut self, refusal: Refusal) {
        if !self.has_ended() {
            self.end(How::Refused(Box::new(refusal)), None);
        }
    }

    /// Its hold, while a person decides on it.
    #[must_use]
    pub fn held(&self) -> Option<&Hold> {
        match &self.state {
            JobState::Held(hold) => Some(hold),
            _ => None,
        }
    }

    /// It was decided whether it runs. Returns true if it may. A job that is not held stays as it is.
    pub fn decide(&mut self, decision: Decision, now: Instant) -> bool {
        let Some(Hold { subject, question, .. }) = self.held().cloned() else { return false };
        let Decision { is_yes, by, why } = &decision;
        let waited = now.saturating_duration_since(question.since);
        let cause = match (is_yes, by) {
            (true, _) => None,
            (false, Decider::Timeout) => Some(RefusalCause::Unanswered(waited)),
            (false, Decider::Console | Decider::Client | Decider::Token) => Some(RefusalCause::Person(why.clone())),
        };
        self.log.push(Entry::Decided(Box::new(decision), waited));
        match cause {
            None => self.state = JobState::Queued,
            Some(cause) => self.refuse(Refusal { subject, cause }),
        }
        self.is_queued()
    }

    pub(super) fn tick_hold(&mut self, now: Instant) {
        let JobState::Held(hold) = &mut self.state else { return };
        if hold.tell_at.take_if(|at| now >= *at).is_some() {
            self.log.push(Entry::StillHeld { leaf: hold.subject.leaf.clone().into() });
        }
        if now >= hold.until {
            self.decide(Decision { is_yes: false, by: Decider::Timeout, why: None }, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::core::end::Stopper;
    use crate::core::entry::Permit;
    use crate::core::log::{CursorId, Item, Lag};
    use rexec_sh::protocol::process::Signal;

    const WAIT: Duration = Duration::from_secs(60);

    fn subject() -> Subject {
        Subject { leaf: "git push".to_owned(), rule: Some("push".to_owned()), why: Some("Open a PR.".to_owned()) }
    }

    fn judgement(consequence: Consequence) -> Judgement {
        let [leaf, why] = ["git push".to_owned(), "rule push asks".to_owned()];
        Judgement { verdict: "ask", rule: None, leaf, why, consequence }
    }

    struct Judged {
        job: Job,
        reader: CursorId,
    }

    impl Judged {
        fn new(consequence: Consequence, now: Instant) -> Self {
            let mut job = Job::new();
            let reader = job.log.attach(Lag::Hold);
            job.on_judged(judgement(consequence), now);
            job.log.advance(reader);
            Self { job, reader }
        }

        fn asked(now: Instant) -> Self {
            Self::new(Consequence::Asked { subject: subject(), wait: WAIT }, now)
        }

        /// The entries since the last call, without the judgement.
        fn entries(&mut self) -> Vec<Entry> {
            let mut entries = Vec::new();
            while let Some(Item::Entry(entry)) = self.job.log.next(self.reader) {
                entries.push(entry.clone());
                self.job.log.advance(self.reader);
            }
            entries
        }

        fn end(&mut self) -> How {
            match self.entries().pop() {
                Some(Entry::Ended(end)) => end.how,
                other => panic!("{other:?}"),
            }
        }
    }

    fn refused(cause: RefusalCause) -> How {
        How::Refused(Box::new(Refusal { subject: subject(), cause }))
    }

    #[test]
    fn a_held_job_waits_for_a_yes_and_is_queued_then() {
        let now = Instant::now();
        let mut held = Judged::asked(now);
        assert!(held.job.is_queued() && held.job.held().is_some() && !held.job.has_ended());
        let yes = Decision { is_yes: true, by: Decider::Console, why: None };
        assert!(held.job.decide(yes.clone(), now + Duration::from_secs(3)));
        assert!(held.job.is_queued() && held.job.held().is_none());
        assert_eq!(held.entries(), [Entry::Decided(Box::new(yes.clone()), Duration::from_secs(3))]);
        assert!(!held.job.decide(yes, now), "once");
        assert_eq!(held.job.deadline(), None);
    }

    #[test]
    fn a_no_and_a_wait_that_is_over_end_it_without_a_start() {
        let now = Instant::now();
        let mut held = Judged::asked(now);
        let why = Some("not on a Friday".to_owned());
        assert!(!held.job.decide(Decision { is_yes: false, by: Decider::Client, why: why.clone() }, now));
        assert_eq!(held.end(), refused(RefusalCause::Person(why)));

        let mut held = Judged::asked(now);
        assert_eq!(held.job.deadline(), Some(now + limits::HOLD_TOLD_AFTER));
        let _ = held.job.tick(now + limits::HOLD_TOLD_AFTER);
        assert_eq!(held.entries(), [Entry::StillHeld { leaf: "git push".into() }]);
        assert_eq!(held.job.deadline(), Some(now + WAIT));
        let _ = held.job.tick(now + WAIT);
        assert_eq!(held.end(), refused(RefusalCause::Unanswered(WAIT)));
        assert!(!held.job.decide(Decision { is_yes: true, by: Decider::Console, why: None }, now), "it is too late");
        assert!(held.job.has_ended());
    }

    #[test]
    fn a_held_job_that_is_stopped_or_killed_never_runs() {
        let now = Instant::now();
        let mut held = Judged::asked(now);
        let _ = held.job.stop(Stopper::Caller, WAIT, now);
        assert_eq!(held.end(), How::NeverRun);
        let mut held = Judged::asked(now);
        assert_eq!(held.job.signal(Signal::TERM, true), None);
        assert!(held.job.has_ended());
    }

    #[test]
    fn rules_that_deny_end_it_and_rules_that_are_watched_do_nothing() {
        let now = Instant::now();
        let refusal = Refusal { subject: subject(), cause: RefusalCause::Denied };
        assert_eq!(Judged::new(Consequence::Refused(refusal), now).end(), refused(RefusalCause::Denied));
        for consequence in [Consequence::Watched, Consequence::Permitted(Permit::Later { run: 1 })] {
            let job = Judged::new(consequence, now).job;
            assert!(job.is_queued() && job.held().is_none());
        }
    }
}
