//! Keys that act on nothing, because they were meant for an answer that has ended by itself.
//!
//! A person who types a password does not see that the command has ended. What follows would end the host, stop another
//! command, or stand in a shell's history. So it is dropped until the person has surely noticed: a return, and then
//! [`limits::KEYS_SILENCE`] without a key. A lone Esc, ^C and ^] let go at once, and so does a long silence.
//!
//! Invariants: pure, the caller passes the time; no byte that is pushed here means anything else; the end of a silence
//! counts only where the caller asks [`HeldKeys::is_over`] after it looked for keys and found none, so that a program
//! that was held up takes no old key for a new one.

use std::time::Instant;

use super::sequence::Sequence;
use super::{ESC, INTERRUPT, LEAVE};
use crate::limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastKey {
    Return,
    /// Nothing has followed it so far.
    Escape,
    Other,
}

/// How the keys that follow are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// They are held, too.
    Goes,
    /// They mean something again.
    Ends,
}

/// The keys behind the end of an answer.
#[derive(Debug)]
pub struct HeldKeys {
    sequence: Sequence,
    key: LastKey,
    /// When it came.
    at: Instant,
}

impl HeldKeys {
    /// The answer has ended now.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { sequence: Sequence::default(), key: LastKey::Other, at: now }
    }

    /// Takes the bytes of one read. A key that lets go is the last one of them: within a text it was pasted.
    pub fn push(&mut self, bytes: &[u8], now: Instant) -> Hold {
        let mut left = bytes.len();
        for &byte in bytes {
            left -= 1;
            self.at = now;
            let is_key = self.sequence.is_key(byte, left == 0, now);
            self.key = match byte {
                LEAVE | INTERRUPT if is_key && left == 0 => return Hold::Ends,
                b'\r' | b'\n' if is_key => LastKey::Return,
                ESC if is_key => LastKey::Escape,
                _ => LastKey::Other,
            };
        }
        Hold::Goes
    }

    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.at
            + match self.key {
                LastKey::Return => limits::KEYS_SILENCE,
                LastKey::Escape => limits::KEYS_SEQUENCE,
                LastKey::Other => limits::KEYS_HELD_MAX,
            }
    }

    /// Returns true if the silence has been long enough.
    #[must_use]
    pub fn is_over(&self, now: Instant) -> bool {
        now > self.deadline()
    }
}
