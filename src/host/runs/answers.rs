//! Gives a run's terminal to the person who answers its prompt, and passes that person's keys on.
//!
//! Invariants: one person at a time has a run's terminal; keys reach it only between the guard's word that it has given
//! the foreground and the order to take it back.

use std::time::Instant;

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::{AnswerPlace, Stream};
use crate::core::job::Job;
use crate::host::answering::{Answerer, Answering};
use crate::limits;
use crate::sys::{self, pty};
use crate::text::prompt::asks_for_secret;

/// ^L, at which full-screen programs draw their screen again.
const DRAW_AGAIN: &[u8] = &[0x0c];

/// Why a person cannot answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum NoAnswer {
    /// There is no such run, or its shell does not run.
    NotRunning,
    /// It does not ask for anything.
    NotWaiting,
    /// It has no terminal: none was given, or nobody answered at it.
    NoTerminal,
    /// Its terminal is its caller's: the prompt is there.
    AtItsCaller,
    /// This person has it.
    Taken(Answerer),
    /// The terminal has not read the earlier keys.
    TooManyKeys,
}

/// A person wants to type for a run.
#[derive(Debug, Clone, Copy)]
pub(in crate::host) struct AnswerWish {
    pub(in crate::host) by: Answerer,
    pub(in crate::host) place: AnswerPlace,
    /// A run that does not ask gets the keys, too.
    pub(in crate::host) is_forced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) struct AnswerOver {
    pub(in crate::host) job: JobId,
    pub(in crate::host) by: Answerer,
    /// The number that reached the terminal.
    pub(in crate::host) bytes: u64,
    /// That is all of it.
    pub(in crate::host) is_complete: bool,
}

impl Runs {
    /// Gives a person the terminal of a run.
    pub(in crate::host) fn begin_answer(
        &mut self,
        job: JobId,
        wish: AnswerWish,
        engine: &mut Engine,
    ) -> Result<(), NoAnswer> {
        let AnswerWish { by, place, is_forced } = wish;
        self.check_answer(job, is_forced, engine)?;
        let Some(run) = self.get_mut(job) else { return Err(NoAnswer::NotRunning) };
        let has_own_terminal = run.has_own_terminal();
        let is_waiting = engine.job(job).is_some_and(|known| known.waiting().is_some());
        // A command with a terminal of its own has its foreground, too.
        let mut answering = Answering::new(by, place, is_waiting);
        answering.is_given = has_own_terminal;
        run.answering = Some(answering);
        self.answered.insert(job);
        if !has_own_terminal {
            engine.answer(job);
        }
        Ok(())
    }

    /// Checks that a person may have the terminal of a run.
    pub(in crate::host) fn check_answer(&self, job: JobId, is_forced: bool, engine: &Engine) -> Result<(), NoAnswer> {
        let known = engine.job(job).filter(|known| known.is_running() && !known.is_stopping());
        let is_waiting = known.ok_or(NoAnswer::NotRunning)?.waiting().is_some();
        let run = self.get(job).filter(|run| !run.is_unbegun()).ok_or(NoAnswer::NotRunning)?;
        let has_own_terminal = run.has_own_terminal();
        if run.relay.is_some() && !has_own_terminal {
            return Err(NoAnswer::AtItsCaller);
        }
        if let Some(other) = &run.answering {
            return Err(NoAnswer::Taken(other.by));
        }
        if run.streams[Stream::Tty as usize].is_none() {
            return Err(NoAnswer::NoTerminal);
        }
        if !is_waiting && !is_forced && !has_own_terminal {
            return Err(NoAnswer::NotWaiting);
        }
        Ok(())
    }

    /// The place from which a person types into a run's terminal; `None` when nobody does.
    pub(in crate::host) fn answerer(&self, job: JobId) -> Option<Answerer> {
        self.get(job)?.answering.as_ref().map(|answering| answering.by)
    }

    pub(in crate::host) fn answered_by(&self, by: Answerer) -> Option<JobId> {
        self.answered.iter().copied().find(|&job| self.answerer(job) == Some(by))
    }

    /// How large the run's terminal is; `None` if it has none, or not yet.
    pub(in crate::host) fn terminal_size(&self, job: JobId) -> Option<pty::Size> {
        pty::size(self.get(job)?.streams[Stream::Tty as usize].as_ref()?.fd())
    }

    /// The person's terminal, which stands for the run's, has this size.
    pub(in crate::host) fn size_answer(&mut self, job: JobId, size: pty::Size) {
        if let Some(answering) = self.get_mut(job).and_then(|run| run.answering.as_mut()) {
            let rows = size.rows.clamp(1, limits::WINDOW_ROWS_MAX);
            answering.size = Some(pty::Size { rows, cols: size.cols.clamp(1, limits::WINDOW_COLS_MAX) });
        }
        self.fit_answer(job);
    }

    fn fit_answer(&mut self, job: JobId) {
        let Some(run) = self.get_mut(job) else { return };
        let (Some(answering), Some(port)) = (&mut run.answering, &mut run.streams[Stream::Tty as usize]) else {
            return;
        };
        let size = answering.fit(port);
        if size.is_some() && run.screen.is_on() && answering.begins_in_read() {
            // It was stopped in read(2), and will not heed the signal of the new size before a key comes. Any other program
            // heeds it, and to an editor in which somebody types this key would be text.
            let _ = port.write(|fd| sys::write(fd, DRAW_AGAIN));
        }
        self.resized.extend(size.map(|size| (job, size)));
    }

    /// The person's terminal does not stand for the run's any more.
    pub(in crate::host) fn give_size_back(&mut self, job: JobId) {
        let Some(run) = self.get_mut(job) else { return };
        let (Some(answering), Some(port)) = (&mut run.answering, &run.streams[Stream::Tty as usize]) else { return };
        let size = answering.unfit(port);
        self.resized.extend(size.map(|size| (job, size)));
    }

    pub(in crate::host) fn take_resized(&mut self) -> Vec<(JobId, pty::Size)> {
        std::mem::take(&mut self.resized)
    }

    /// Returns true if a program of the run draws on the alternate screen.
    pub(in crate::host) fn is_full_screen(&self, job: JobId) -> bool {
        self.get(job).is_some_and(|run| run.screen.is_on())
    }

    pub(in crate::host) fn type_answer(
        &mut self,
        job: JobId,
        keys: &[u8],
        engine: &mut Engine,
    ) -> Result<(), NoAnswer> {
        let answering = self.get_mut(job).and_then(|run| run.answering.as_mut()).ok_or(NoAnswer::NotRunning)?;
        if answering.pending() + keys.len() > limits::ANSWER_BYTES {
            return Err(NoAnswer::TooManyKeys);
        }
        answering.push(keys);
        self.flush_answer(job, engine);
        Ok(())
    }

    /// Ends an answer once the terminal has all keys.
    pub(in crate::host) fn finish_answer(&mut self, job: JobId, engine: &mut Engine) {
        if let Some(answering) = self.get_mut(job).and_then(|run| run.answering.as_mut()) {
            answering.is_leaving = true;
            self.flush_answer(job, engine);
        }
    }

    /// Ends an answer at once, and drops keys that the terminal had no room for.
    pub(in crate::host) fn end_answer(&mut self, job: JobId, engine: &mut Engine) {
        self.answered.remove(&job);
        self.give_size_back(job);
        let Some(run) = self.get_mut(job) else { return };
        let Some(answering) = run.answering.take() else { return };
        run.secret.person_left(Instant::now());
        let is_complete = answering.is_leaving && answering.is_given && !answering.has_keys();
        self.answers_over.push(AnswerOver { job, by: answering.by, bytes: answering.written, is_complete });
        if let Some(typed) = answering.unfinished() {
            engine.on_answered(job, typed);
        }
        engine.leave(job);
    }

    /// The guard has given the foreground to the command.
    pub(super) fn on_given(&mut self, job: JobId, engine: &mut Engine) {
        if let Some(answering) = self.get_mut(job).and_then(|run| run.answering.as_mut()) {
            answering.is_given = true;
            self.fit_answer(job);
            self.flush_answer(job, engine);
        }
    }

    pub(in crate::host) fn flush_answer(&mut self, job: JobId, engine: &mut Engine) {
        let Some(run) = self.get_mut(job) else { return };
        let Some(answering) = &mut run.answering else { return };
        let Some(port) = run.streams[Stream::Tty as usize].as_mut() else { return };
        let is_screen = run.screen.is_on();
        let asks = |known: &Job| !is_screen && known.asked().into_iter().any(asks_for_secret);
        let asks_for_secret = || engine.job(job).is_some_and(asks);
        let answers = answering.flush(port, &mut run.secret, asks_for_secret);
        if answering.has_ended_line() {
            engine.on_line_typed(job);
        }
        for typed in answers {
            engine.on_answered(job, typed);
        }
        let has_shown_line = answering.take_shown_line();
        if answering.is_leaving && answering.is_given && !answering.has_keys() {
            self.end_answer(job, engine);
        }
        if has_shown_line {
            self.await_echo(job);
        }
    }

    /// Ends the answers to runs that have ended, and those of people who are gone.
    pub(in crate::host) fn end_lost_answers(&mut self, engine: &mut Engine, is_gone: impl Fn(Answerer) -> bool) {
        for job in self.answered.clone() {
            let is_over = !engine.job(job).is_some_and(Job::is_running);
            if is_over {
                self.end_answer(job, engine);
            } else if self.answerer(job).is_none_or(&is_gone) {
                self.leave_answer(job, engine);
            }
        }
    }

    /// The person has left. Keys typed before the guard gives the foreground are written then.
    pub(in crate::host) fn leave_answer(&mut self, job: JobId, engine: &mut Engine) {
        match self.get_mut(job).and_then(|run| run.answering.as_mut()) {
            Some(answering) if !answering.is_given => answering.is_leaving = true,
            _ => self.end_answer(job, engine),
        }
    }

    /// Ends the answer of this person, and of nobody else.
    pub(in crate::host) fn end_answer_of(&mut self, job: JobId, by: Answerer, engine: &mut Engine) {
        if self.answerer(job) == Some(by) {
            self.end_answer(job, engine);
        }
    }

    pub(in crate::host) fn take_over(&mut self) -> Vec<AnswerOver> {
        std::mem::take(&mut self.answers_over)
    }
}
