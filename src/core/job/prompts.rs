//! The prompts of a job: which program asks for terminal input, with which words, and whether somebody answers.
//!
//! ```text
//! nobody asks ──a stop, with time to wait──▶ waits ──answered──▶ answered ──left──▶ nobody asks
//!      │                                       └──the time is over──▶ end of file
//!      └──a stop, without──▶ end of file
//! ```
//!
//! A terminal that the command's output does not go through is given up when nobody answers: the first program that asks
//! reads end of file, and what asks again is left at a terminal that is gone. ^D would be a character to programs that
//! read keys, and they would ask for ever.

use std::time::{Duration, Instant};

use super::look::LookSchedule;
use super::{Job, JobState, Order, Stop};
use crate::core::entry::{Entry, Prompt, TerminalWish, Typed};
use crate::core::log::Log;
use crate::limits;

#[derive(Debug, Default)]
enum Asking {
    #[default]
    Nobody,
    Waits(Prompt),
    /// A person types.
    Answered,
}

/// The state of a job's prompts.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    /// The log has said that the command got end of file. That happens once.
    has_told_end: bool,
    /// The program that asked last reads keys, see [`TerminalWish::Keys`].
    reads_keys: bool,
    /// The terminal is given up when nobody answers.
    is_given_up: bool,
    /// Stops for terminal input since the last [`Order::HangUp`].
    stops: u32,
    asking: Asking,
    tail: Vec<u8>,
    /// The end of the output when the command began to wait for the answer that has no end yet. Others may write
    /// meanwhile.
    asked: Vec<u8>,
}

impl Prompts {
    pub(super) fn on_output(&mut self, bytes: &[u8]) {
        let newest = &bytes[bytes.len().saturating_sub(limits::PROMPT_BYTES)..];
        let surplus = (self.tail.len() + newest.len()).saturating_sub(limits::PROMPT_BYTES);
        self.tail.drain(..surplus);
        self.tail.extend_from_slice(newest);
    }

    /// A program stopped because it reads the terminal. With a time to wait, a person may answer until then; without
    /// one, it gets end of file.
    pub(super) fn on_read(
        &mut self,
        program: String,
        wait: Option<Duration>,
        now: Instant,
        log: &mut Log,
    ) -> Option<Order> {
        if self.is_answered() {
            return Some(Order::GiveForeground);
        }
        // A program that asks again has had its time.
        let wait = wait.filter(|_| !(self.is_given_up && self.has_told_end));
        let Some(wait) = wait else { return Some(self.end_input(program, log)) };
        self.asked.clone_from(&self.tail);
        let waiting = Prompt { program, prompt: self.last_line(), since: now, until: now + wait };
        log.push(Entry::Waits(Box::new(waiting.clone())));
        self.asking = Asking::Waits(waiting);
        None
    }

    /// Nobody answers. A program that keeps asking gets SIGHUP in the end.
    fn end_input(&mut self, program: String, log: &mut Log) -> Order {
        self.asking = Asking::Nobody;
        let is_first = !std::mem::replace(&mut self.has_told_end, true);
        if is_first {
            log.push(Entry::WantedInput { program, has_ended: !self.reads_keys || self.is_given_up });
        }
        if self.is_given_up && (self.reads_keys || !is_first) {
            return Order::GiveUpTerminal;
        }
        if self.reads_keys {
            return Order::LeaveKeys;
        }
        self.stops += 1;
        if self.stops < limits::INPUT_STOPS_MAX {
            return Order::EndInput;
        }
        // The next process that asks may be another one, which accepts end of file.
        self.stops = 0;
        Order::HangUp
    }

    /// The last line with something in it. A prompt seldom ends with a newline, but a menu may.
    fn last_line(&self) -> Box<[u8]> {
        let lines = self.tail.split(|byte| matches!(byte, b'\n' | b'\r'));
        lines.rev().find(|line| !line.trim_ascii().is_empty()).unwrap_or_default().into()
    }

    /// A person begins to answer, or watches and may type. Input may also be sent before a program asks.
    pub(super) fn answer(&mut self) -> Order {
        if self.waiting().is_none() {
            self.asked.clone_from(&self.tail);
        }
        self.asking = Asking::Answered;
        // Somebody is there, so what asks again is not a loop around end of file.
        self.stops = 0;
        Order::GiveForeground
    }

    pub(super) fn leave(&mut self) -> Option<Order> {
        let is_answered = self.is_answered();
        if is_answered {
            self.asking = Asking::Nobody;
        }
        is_answered.then_some(Order::TakeForeground)
    }

    pub(super) fn forget(&mut self) {
        self.asking = Asking::Nobody;
    }

    pub(super) fn on_asker_gone(&mut self) {
        if self.waiting().is_some() {
            self.forget();
        }
    }

    /// Ends the wait for an answer whose time is over.
    pub(super) fn tick(&mut self, now: Instant, log: &mut Log) -> Option<Order> {
        let program = self.waiting().filter(|waiting| now >= waiting.until)?.program.clone();
        Some(self.end_input(program, log))
    }

    pub(super) fn waiting(&self) -> Option<&Prompt> {
        match &self.asking {
            Asking::Waits(waiting) => Some(waiting),
            Asking::Nobody | Asking::Answered => None,
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self.asking, Asking::Answered)
    }
}

impl Job {
    /// A process group of the command was stopped because it read the terminal or changed its modes. A group that reads
    /// waits for a person's answer, for the time `wait`; without one, it gets end of file. A group that keeps asking gets
    /// SIGHUP in the end. A change of modes is let pass: a read that follows is a stop of its own. What reads keys in
    /// another session is left alone.
    #[must_use]
    pub fn on_input_stop(
        &mut self,
        wish: TerminalWish,
        program: String,
        wait: Option<Duration>,
        now: Instant,
    ) -> Option<Order> {
        if !self.guard || !self.is_alive() {
            return None;
        }
        self.look = Some(LookSchedule::new(limits::LOOK_AGAIN, now));
        if wish == TerminalWish::Modes {
            return Some(Order::PassModes);
        }
        self.prompts.reads_keys = wish == TerminalWish::Keys;
        let wait = wait.filter(|_| self.stop == Stop::No);
        self.prompts.on_read(program, wait, now, &mut self.log)
    }

    /// Gives the terminal up when nobody answers at it.
    pub fn give_up_unanswered(&mut self) {
        self.prompts.is_given_up = true;
    }

    /// The process group that waited for an answer has ended.
    pub fn on_asker_gone(&mut self) {
        self.prompts.on_asker_gone();
    }

    /// Gives the terminal's foreground to the command, for a person who answers its prompt or attends to it. `None` if
    /// its shell does not run.
    #[must_use]
    pub fn answer(&mut self) -> Option<Order> {
        (self.state == JobState::Running && self.guard).then(|| self.prompts.answer())
    }

    /// A person has ended a line. What was asked before it has its answer.
    pub fn on_line_typed(&mut self) {
        self.prompts.asked.clear();
    }

    pub fn on_answered(&mut self, typed: Typed) {
        if !self.has_ended() {
            self.log.push(Entry::Answered(typed));
        }
    }

    #[must_use]
    pub fn leave(&mut self) -> Option<Order> {
        self.prompts.leave().filter(|_| self.guard)
    }

    /// The last line of its output that is not blank, from its beginning, with what follows: the words of a prompt.
    #[must_use]
    pub fn last_line(&self) -> &[u8] {
        let tail = &self.prompts.tail;
        let words = tail.trim_ascii_end();
        let start = words.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        &tail[start..]
    }

    /// The end of its output when it began to wait for the answer that a person types, and the end of its output now.
    #[must_use]
    pub fn asked(&self) -> [&[u8]; 2] {
        [&self.prompts.asked, &self.prompts.tail]
    }

    #[must_use]
    pub fn waiting(&self) -> Option<&Prompt> {
        self.prompts.waiting()
    }
}
