//! Escape sequences among the keys: which bytes belong to one, and which are keys.
//!
//! A terminal sends them for arrow keys, mouse and focus reports, pasted text, and as replies (ECMA-48, xterm's control
//! sequences). The console asks for none but the marks of pasted text.
//!
//! Invariants: a sequence is swallowed however it is split; one that does not go on for [`limits::KEYS_SEQUENCE`] is over,
//! so a lost end does not make the keyboard deaf; pasted text ends by its mark or by ^C, because it may stop for long.

use std::time::Instant;

use super::{ESC, INTERRUPT};
use crate::limits;

const BELL: u8 = 0x07;
/// The longest parameters that a mark of pasted text has, bytes.
const MARK_BYTES: usize = 3;
const PASTE_BEGIN: &[u8] = b"200";
const PASTE_END: &[u8] = b"201";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    None,
    /// Behind ESC, which may have been the key.
    Begun,
    /// Within a control sequence, up to its final byte: its first parameter bytes, and how many there were.
    Control([u8; MARK_BYTES], usize),
    /// This many bytes still belong to it.
    Rest(u8),
    /// Within a string, up to BEL or ESC \.
    Text,
}

/// The state after the bytes so far.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    state: State,
    /// Between the marks of pasted text.
    is_paste: bool,
    /// When the last byte came.
    last: Option<Instant>,
}

impl Sequence {
    /// Takes a byte. Returns true if it is a key. As the last byte of a read, ESC is the key Esc, although a sequence
    /// may follow.
    pub(super) fn is_key(&mut self, byte: u8, is_last: bool, now: Instant) -> bool {
        let is_late = self.last.is_some_and(|last| now.saturating_duration_since(last) > limits::KEYS_SEQUENCE);
        self.last = Some(now);
        if is_late {
            self.state = State::None;
        }
        if byte == INTERRUPT && !matches!(self.state, State::Rest(_)) {
            let is_key = !self.is_paste;
            (self.state, self.is_paste) = (State::None, false);
            return is_key;
        }
        let before = self.state;
        self.state = next(before, byte);
        if let (State::Control(parameters, length), b'~') = (before, byte) {
            match &parameters[..length.min(MARK_BYTES)] {
                PASTE_BEGIN if length == MARK_BYTES => self.is_paste = true,
                PASTE_END if length == MARK_BYTES => self.is_paste = false,
                _ => {}
            }
        }
        before == State::None && !self.is_paste && (byte != ESC || is_last)
    }
}

fn next(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::None | State::Begun | State::Text, ESC) => State::Begun,
        (State::Begun, b'[') => State::Control([0; MARK_BYTES], 0),
        // SS3, which one more byte follows.
        (State::Begun, b'O') => State::Rest(1),
        (State::Begun, b']' | b'P' | b'_' | b'^' | b'X') => State::Text,
        // An old mouse report: button, column and row follow.
        (State::Control(_, 0), b'M') => State::Rest(3),
        (State::Control(mut parameters, length), 0x20..=0x3f) => {
            if let Some(parameter) = parameters.get_mut(length) {
                *parameter = byte;
            }
            State::Control(parameters, length + 1)
        }
        (State::Control(..), ESC) => State::Begun,
        (State::Rest(more @ 2..), _) => State::Rest(more - 1),
        (State::Text, BELL) => State::None,
        (State::Text, _) => State::Text,
        (State::None | State::Begun | State::Control(..) | State::Rest(_), _) => State::None,
    }
}
