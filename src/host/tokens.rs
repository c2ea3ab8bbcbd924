//! Tokens of commands that a person is asked about: who has one may answer, whatever process that is. The command of
//! `--notify` gets it.
//!
//! Invariants: a token is for one run and one answer, and is gone when nobody is asked about that run any more, nor about
//! the next one of the same command; nothing but the standard input of that command ever has it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::time::Instant;

use super::later::LaterAsks;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::sys;

/// Random bytes of a token. It is written in twice as many digits.
const TOKEN_BYTES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct AnswerTokens(BTreeMap<JobId, String>);

impl AnswerTokens {
    /// Makes the token of a run.
    pub(super) fn make(&mut self, job: JobId) -> io::Result<&str> {
        let mut token = String::new();
        sys::random::<TOKEN_BYTES>()?.iter().for_each(|byte| _ = write!(token, "{byte:02x}"));
        self.0.insert(job, token);
        Ok(&self.0[&job])
    }

    /// Returns true if this is the token of a run. The time that takes does not tell how much of it is right.
    pub(super) fn is_of(&self, job: JobId, token: &str) -> bool {
        let differs = |own: &String| own.bytes().zip(token.bytes()).fold(0, |bits, (own, given)| bits | (own ^ given));
        self.0.get(&job).is_some_and(|own| own.len() == token.len() && differs(own) == 0)
    }

    pub(super) fn has(&self, job: JobId) -> bool {
        self.0.contains_key(&job)
    }

    /// Nobody has got it.
    pub(super) fn end(&mut self, job: JobId) {
        self.0.remove(&job);
    }

    /// Ends those of runs about which nobody is asked any more.
    pub(super) fn end_answered(&mut self, engine: &Engine, later: &LaterAsks, now: Instant) {
        let is_held = |job| engine.job(job).and_then(Job::held).is_some();
        self.0.retain(|&job, _| is_held(job) || later.is_answered_by_token_of(job.0, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_one_run_until_that_asks_no_more() {
        let mut tokens = AnswerTokens::default();
        let [one, other] = [JobId(1), JobId(2)].map(|job| tokens.make(job).expect("random bytes").to_owned());
        assert!(one.len() == 2 * TOKEN_BYTES && one != other);
        assert!(tokens.is_of(JobId(1), &one) && tokens.is_of(JobId(2), &other));
        let wrong = [(1, other.as_str()), (3, &one), (1, ""), (1, &one[1..]), (1, &(one.clone() + "0"))];
        assert!(wrong.iter().all(|(run, token)| !tokens.is_of(JobId(*run), token)));
        tokens.end(JobId(1));
        assert!(!tokens.is_of(JobId(1), &one) && tokens.is_of(JobId(2), &other));
    }
}
