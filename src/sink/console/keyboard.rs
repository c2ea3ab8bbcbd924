//! The console's keyboard: bytes that were typed become what the human wants.
//!
//! A key acts at once. A key that needs a run's number collects it on the status line, until return or Esc. While the
//! human answers a run, every byte but ^] is passed to that run.
//!
//! Invariants: pure, the time is told; no byte that came before the answering began is passed to a run, so what was typed
//! while a prompt came up stays here; an escape sequence (an arrow key, a mouse report, a terminal's reply) is swallowed
//! whole, however it is split; pasted text does nothing.

mod sequence;
#[cfg(test)]
mod tests;

use std::time::Instant;

use crate::limits;
use sequence::Sequence;

const INTERRUPT: u8 = 0x03;
const BACKSPACE: u8 = 0x08;
const FORM_FEED: u8 = 0x0c;
const SUSPEND: u8 = 0x1a;
const ESC: u8 = 0x1b;
/// ^], which takes the keys back from a run.
const LEAVE: u8 = 0x1d;
const DELETE: u8 = 0x7f;

/// What the human wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyAction {
    /// See what each key does.
    Help,
    /// Interrupt this run; the second time, kill it.
    Interrupt { run: u64, is_second: bool },
    /// End the host and everything that runs.
    End,
    /// Stop this run, shown or not.
    Kill(u64),
    /// See all output of this run; `None` ends that.
    Follow(Option<u64>),
    /// Have the screen stand still, or go on.
    Freeze,
    /// Answer the run that waits.
    Answer,
    /// Type these bytes for the run that is being answered.
    Input(Vec<u8>),
    /// Answer no longer.
    Leave,
    /// A blank row.
    Blank,
    /// Have the screen drawn again.
    Redraw,
    /// Nothing, but what [`Keyboard::question`] returns has changed.
    Typing,
    /// Something that cannot be done now, for this reason.
    Refused(&'static str),
}

/// What decides on the meaning of a key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Situation {
    /// The number of runs that have not ended.
    pub running: usize,
    /// The run that ^C stops.
    pub shown: Option<u64>,
    /// The run that waits for the human, and that `i` answers.
    pub asks: Option<u64>,
    /// Whether a run is followed.
    pub follows: bool,
    /// Whether the host is ending.
    pub is_ending: bool,
}

/// A key that needs a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Kill,
    Follow,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Mode {
    #[default]
    Commands,
    /// The number's digits, up to return.
    Number(Verb, String),
    /// Whether the host ends: `y` or any other key.
    Confirm,
    /// Keys go to this run.
    Answering(u64),
}

/// The last ^C.
#[derive(Debug, Clone, Copy)]
struct Interrupted {
    at: Instant,
    /// The run that it was for; `None` when nothing ran.
    run: Option<u64>,
}

/// The console's keyboard.
#[derive(Debug, Default)]
pub struct Keyboard {
    mode: Mode,
    sequence: Sequence,
    interrupted: Option<Interrupted>,
}

impl Keyboard {
    /// Takes the bytes of one read.
    pub fn push(&mut self, bytes: &[u8], situation: Situation, now: Instant) -> Vec<KeyAction> {
        if self.is_answering() {
            return self.pass(bytes);
        }
        let mut keys = bytes.to_vec();
        let mut left = keys.len();
        keys.retain(|&byte| {
            left -= 1;
            self.sequence.is_key(byte, left == 0, now)
        });
        if keys.len() >= limits::KEYS_PASTED_BYTES {
            return vec![KeyAction::Refused("pasted text does nothing here")];
        }
        let mut actions = Vec::new();
        for key in keys {
            actions.extend(self.key(key, situation, now));
            if self.is_answering() {
                // What came together with the key that begins it was typed before it began.
                break;
            }
        }
        actions
    }

    /// Whether every key goes to a run.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        matches!(self.mode, Mode::Answering(_))
    }

    /// The keys are the console's again: the run has ended, or it cannot be answered.
    pub fn end_answering(&mut self) {
        if self.is_answering() {
            (self.mode, self.sequence) = (Mode::Commands, Sequence::default());
        }
    }

    /// What the human is asked on the status line, if anything.
    #[must_use]
    pub fn question(&self, running: usize) -> Option<String> {
        match &self.mode {
            Mode::Commands => None,
            Mode::Number(Verb::Kill, digits) => Some(format!("stop which run? #{digits}_")),
            Mode::Number(Verb::Follow, digits) => Some(format!("follow which run? #{digits}_")),
            Mode::Confirm => Some(match running {
                0 => "end the host? y/n".to_owned(),
                1 => "1 command runs: end it and the host? y/n".to_owned(),
                many => format!("{many} commands run: end them and the host? y/n"),
            }),
            Mode::Answering(run) => Some(format!("your keys go to #{run}")),
        }
    }

    /// The key that ends the question, with its effect.
    #[must_use]
    pub fn way_out(&self) -> Option<&'static str> {
        match &self.mode {
            Mode::Commands | Mode::Confirm => None,
            Mode::Number(..) => Some("return does it · Esc leaves"),
            Mode::Answering(_) => Some("^] takes them back"),
        }
    }

    /// Passes bytes to the run that is answered, up to the key that ends that. What follows it was typed for the run, too,
    /// and does nothing.
    fn pass(&mut self, bytes: &[u8]) -> Vec<KeyAction> {
        let end = bytes.iter().position(|&byte| byte == LEAVE);
        let input = &bytes[..end.unwrap_or(bytes.len())];
        let mut actions = Vec::new();
        if !input.is_empty() {
            actions.push(KeyAction::Input(input.to_vec()));
        }
        if end.is_some() {
            self.end_answering();
            actions.push(KeyAction::Leave);
        }
        actions
    }

    fn key(&mut self, byte: u8, situation: Situation, now: Instant) -> Option<KeyAction> {
        if byte == INTERRUPT {
            self.mode = Mode::Commands;
            return Some(self.interrupt(situation, now));
        }
        match std::mem::take(&mut self.mode) {
            Mode::Commands => self.command(byte, situation),
            Mode::Number(verb, digits) => Some(self.number(verb, digits, byte)),
            Mode::Confirm if matches!(byte, b'y' | b'Y') => Some(KeyAction::End),
            Mode::Confirm => Some(KeyAction::Typing),
            Mode::Answering(_) => None,
        }
    }

    /// The second ^C is for the run that the first one was for, even if another one is shown meanwhile.
    fn interrupt(&mut self, situation: Situation, now: Instant) -> KeyAction {
        if situation.is_ending {
            return KeyAction::End;
        }
        let before = self.interrupted.take();
        let before = before.map(|last| (now.saturating_duration_since(last.at), last.run));
        match (before, situation.shown) {
            (Some((since, Some(run))), _) if since <= limits::KEYS_KILL => {
                KeyAction::Interrupt { run, is_second: true }
            }
            (_, Some(run)) => {
                self.interrupted = Some(Interrupted { at: now, run: Some(run) });
                KeyAction::Interrupt { run, is_second: false }
            }
            (_, None) if situation.running > 0 => KeyAction::Refused("no run is shown; k and a number stop any"),
            (Some((since, None)), None) if since <= limits::KEYS_END => KeyAction::End,
            (_, None) => {
                self.interrupted = Some(Interrupted { at: now, run: None });
                KeyAction::Refused("nothing runs; ^C again, or q, ends the host")
            }
        }
    }

    fn command(&mut self, byte: u8, situation: Situation) -> Option<KeyAction> {
        let (mode, action) = match byte {
            b'q' if situation.running == 0 || situation.is_ending => (Mode::Commands, KeyAction::End),
            b'q' => (Mode::Confirm, KeyAction::Typing),
            b'k' if situation.running == 0 => (Mode::Commands, KeyAction::Refused("nothing runs")),
            b'k' => (Mode::Number(Verb::Kill, String::new()), KeyAction::Typing),
            b'f' if situation.follows => (Mode::Commands, KeyAction::Follow(None)),
            b'f' if situation.running == 0 => (Mode::Commands, KeyAction::Refused("nothing runs")),
            b'f' => (Mode::Number(Verb::Follow, String::new()), KeyAction::Typing),
            b'i' => match situation.asks {
                Some(run) => (Mode::Answering(run), KeyAction::Answer),
                None => (Mode::Commands, KeyAction::Refused("no run waits for input")),
            },
            b'?' => (Mode::Commands, KeyAction::Help),
            b'p' => (Mode::Commands, KeyAction::Freeze),
            b' ' | b'\r' | b'\n' => (Mode::Commands, KeyAction::Blank),
            FORM_FEED => (Mode::Commands, KeyAction::Redraw),
            SUSPEND => (
                Mode::Commands,
                KeyAction::Refused("the host does not stop, because agents use it; p freezes the screen"),
            ),
            _ => return None,
        };
        self.mode = mode;
        Some(action)
    }

    fn number(&mut self, verb: Verb, mut digits: String, byte: u8) -> KeyAction {
        match byte {
            b'0'..=b'9' if digits.len() < limits::KEYS_DIGITS_MAX => digits.push(byte.into()),
            b'\r' | b'\n' => {
                return match (verb, digits.parse()) {
                    (_, Err(_)) => KeyAction::Typing,
                    (Verb::Kill, Ok(number)) => KeyAction::Kill(number),
                    (Verb::Follow, Ok(number)) => KeyAction::Follow(Some(number)),
                };
            }
            DELETE | BACKSPACE => _ = digits.pop(),
            ESC => return KeyAction::Typing,
            _ => {}
        }
        self.mode = Mode::Number(verb, digits);
        KeyAction::Typing
    }
}
