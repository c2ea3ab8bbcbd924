//! The policy for a command that asks for terminal input: it waits for a person, or not, and for how long.

use std::time::{Duration, Instant};

use crate::core::entry::Prompt;
use crate::limits;

/// A person's choice with `--prompts`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PromptChoice {
    /// Wait while somebody is at the console.
    #[default]
    Auto,
    /// Wait.
    Ask,
    /// End of file at once.
    Fail,
}

impl PromptChoice {
    pub const WORDS: &'static str = "auto, ask, fail";

    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        match word {
            b"auto" => Some(Self::Auto),
            b"ask" => Some(Self::Ask),
            b"fail" => Some(Self::Fail),
            _ => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct PromptPolicy {
    choice: PromptChoice,
    wait: Duration,
    /// When a person pressed a key on the console, or answered from another terminal.
    last_key: Option<Instant>,
}

impl PromptPolicy {
    /// The policy of a console on which no key was pressed yet.
    pub(super) fn new(choice: PromptChoice, wait: Duration) -> Self {
        Self { choice, wait, last_key: None }
    }

    /// A person pressed a key on the console, or answered from another terminal.
    pub(super) fn on_key(&mut self, now: Instant) {
        self.last_key = Some(now);
    }

    /// How long a prompt that comes up now waits for an answer; `None` if nobody can answer.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let is_attended = || self.last_key.is_some_and(|key| now.saturating_duration_since(key) < limits::ATTENDED);
        match self.choice {
            PromptChoice::Ask => Some(self.wait),
            PromptChoice::Auto if is_attended() => Some(self.wait),
            PromptChoice::Auto | PromptChoice::Fail => None,
        }
    }
}

/// When a key may answer this prompt.
pub(super) fn young_until(prompt: &Prompt) -> Instant {
    prompt.since + limits::PROMPT_YOUNG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_waits_while_somebody_is_at_the_console() {
        let (wait, now) = (limits::PROMPT_WAIT, Instant::now());
        let mut auto = PromptPolicy::new(PromptChoice::Auto, wait);
        assert_eq!(auto.wait(now), None, "no key yet");
        auto.on_key(now);
        assert_eq!(auto.wait(now + limits::ATTENDED - Duration::from_secs(1)), Some(wait));
        assert_eq!(auto.wait(now + limits::ATTENDED), None);
        assert_eq!(PromptPolicy::new(PromptChoice::Ask, wait).wait(now), Some(wait));
        let mut fail = PromptPolicy::new(PromptChoice::Fail, wait);
        fail.on_key(now);
        assert_eq!(fail.wait(now), None);
    }
}
