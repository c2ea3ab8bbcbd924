//! The console's keyboard: turns typed bytes into the human's wishes.
//!
//! A key acts at once. A key that needs a run's number collects it on the status line, until return or Esc. While the
//! human answers a run, every byte but ^] is passed to that run. What is typed behind the end of an answer is held
//! (`keyboard/held.rs`), and which run `i` answers depends on what was drawn (`keyboard/named.rs`).
//!
//! Invariants: pure, the caller passes the time; no byte that came before the answering began is passed to a run, so
//! what was typed while a prompt came up stays here; the keys of one read never both begin an answer and do anything
//! else; no byte that was typed for a run acts on the host or reaches another run; an escape sequence (an arrow key, a
//! mouse report, a terminal's reply) is swallowed whole, however it is split; pasted text does nothing but add to a reason.

pub mod held;
pub mod named;
mod sequence;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod typing_tests;

use std::time::Instant;

use crate::limits;
use held::{HeldKeys, Hold};
use named::Asks;
use sequence::Sequence;

const INTERRUPT: u8 = 0x03;
const BACKSPACE: u8 = 0x08;
const FORM_FEED: u8 = 0x0c;
const SUSPEND: u8 = 0x1a;
const ESC: u8 = 0x1b;
/// ^], which takes the keys back from a run.
const LEAVE: u8 = 0x1d;
const DELETE: u8 = 0x7f;

/// A wish of the human.
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
    /// Freeze the screen, or let it go on.
    Freeze,
    /// Answer this run.
    Answer(u64),
    /// Type these bytes for this run, which is being answered.
    Input(u64, Vec<u8>),
    /// Answer this run no longer.
    Leave(u64),
    /// Let this held run begin, or refuse it. A refusal may have a reason.
    Decide { run: u64, is_yes: bool, why: Option<String> },
    /// See what would always allow what this held run asks about.
    Propose(u64),
    /// Let this held run begin, and always allow this.
    Always { run: u64, what: String },
    /// See all of the command of this held run.
    Explain(u64),
    /// A blank row.
    Blank,
    /// Draw the screen again.
    Redraw,
    /// Nothing, but what [`Keyboard::question`] returns has changed.
    Typing,
    /// Something that cannot be done now, for this reason.
    Refused(&'static str),
}

/// The facts that decide on the meaning of a key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Situation {
    /// How many runs have not ended.
    pub running: usize,
    /// The run that ^C stops.
    pub shown: Option<u64>,
    /// The run that `i` answers.
    pub asks: Asks,
    /// The held run on which `y`, `n`, `N` and `a` decide.
    pub held: Asks,
    pub follows: bool,
    pub is_ending: bool,
}

/// A key that needs a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Kill,
    Follow,
    Answer,
    Yes,
    No,
    NoBecause,
    Always,
}

impl Verb {
    /// The verb of a key that decides on a held run.
    fn deciding(byte: u8) -> Self {
        match byte {
            b'y' => Self::Yes,
            b'N' => Self::NoBecause,
            b'a' => Self::Always,
            _ => Self::No,
        }
    }

    fn decides(self) -> bool {
        matches!(self, Self::Yes | Self::No | Self::NoBecause | Self::Always)
    }
}

#[derive(Debug, Default)]
enum Mode {
    #[default]
    Commands,
    /// The number's digits, up to return.
    Number(Verb, String),
    /// The reason why this held run does not begin, up to return.
    Reason(u64, Vec<u8>),
    /// Asks whether to allow this always: `y` or any other key. As for the question about the end.
    Always { run: u64, what: String, asked_at: Option<Instant> },
    /// Asks whether to end the host: `y` or any other key. Before the time, a `y` was typed together with `q`, and the
    /// question is not asked yet.
    Confirm { asked_at: Option<Instant> },
    /// Keys go to this run.
    Answering(u64),
    /// An answer has ended by itself, or did not begin, for this reason. Keys do nothing.
    Held(HeldKeys, String),
}

#[derive(Debug, Clone, Copy)]
struct Interrupted {
    at: Instant,
    /// The run that it was for. `None` if nothing ran.
    run: Option<u64>,
}

#[derive(Debug, Default)]
pub struct Keyboard {
    mode: Mode,
    sequence: Sequence,
    interrupted: Option<Interrupted>,
    /// When the last key came that led out of an answer or followed such a key without a pause. These keys are dropped:
    /// a text with such a key in it was pasted.
    led_out: Option<Instant>,
}

impl Keyboard {
    /// Takes the bytes of one read.
    pub fn push(&mut self, bytes: &[u8], situation: Situation, now: Instant) -> Vec<KeyAction> {
        match &mut self.mode {
            _ if bytes.is_empty() => return Vec::new(),
            &mut Mode::Answering(run) => return self.pass(run, bytes, now),
            Mode::Held(held, _) => {
                if held.push(bytes, now) == Hold::Ends {
                    self.lead_out(now);
                }
                return vec![KeyAction::Typing];
            }
            Mode::Commands | Mode::Number(..) | Mode::Reason(..) | Mode::Always { .. } | Mode::Confirm { .. } => {}
        }
        let mut keys = bytes.to_vec();
        let mut left = keys.len();
        keys.retain(|&byte| {
            left -= 1;
            self.sequence.is_key(byte, left == 0, now)
        });
        if self.led_out.take_if(|last| now.saturating_duration_since(*last) <= limits::KEYS_SEQUENCE).is_some() {
            self.led_out = Some(now);
            return Vec::new();
        }
        if keys.len() >= limits::KEYS_PASTED_BYTES {
            return match &mut self.mode {
                Mode::Reason(_, typed) => {
                    let left = limits::NO_WHY_BYTES_MAX - typed.len();
                    typed.extend(keys.iter().map(|&key| if key < b' ' { b' ' } else { key }).take(left));
                    vec![KeyAction::Typing]
                }
                _ => vec![KeyAction::Refused("pasted text does nothing here")],
            };
        }
        let mut actions = Vec::new();
        let is_deciding = match self.mode {
            Mode::Number(verb, _) => verb.decides(),
            Mode::Reason(..) => true,
            _ => false,
        };
        for &key in &keys {
            let mut action = self.key(key, situation, now);
            let decides =
                matches!(action, Some(KeyAction::Decide { .. } | KeyAction::Propose(_) | KeyAction::Always { .. }))
                    || matches!(self.mode, Mode::Reason(..));
            if keys.len() > 1 && !is_deciding && decides {
                // It may be a part of a text.
                self.mode = Mode::Commands;
                action = Some(KeyAction::Refused("a key that decides comes alone"));
            }
            if self.is_answering() && keys.len() > 1 {
                // Keys that came together with the key that begins an answer may be a part of it, or the key a part of
                // a text.
                self.hold("i came with other keys".to_owned(), now);
                actions.push(KeyAction::Typing);
            } else {
                actions.extend(action);
            }
            if self.is_answering() || self.is_held() {
                break;
            }
        }
        actions
    }

    /// Notes that no key has come until now. Returns true if that changes [`Keyboard::question`].
    pub fn tick(&mut self, now: Instant) -> bool {
        match &mut self.mode {
            Mode::Confirm { asked_at } | Mode::Always { asked_at, .. } => asked_at.take_if(|at| now >= *at).is_some(),
            Mode::Held(held, _) if held.is_over(now) => {
                (self.mode, self.sequence) = (Mode::Commands, Sequence::default());
                true
            }
            _ => false,
        }
    }

    /// When [`Keyboard::tick`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match &self.mode {
            Mode::Confirm { asked_at } | Mode::Always { asked_at, .. } => *asked_at,
            Mode::Held(held, _) => Some(held.deadline()),
            Mode::Commands | Mode::Number(..) | Mode::Reason(..) | Mode::Answering(_) => None,
        }
    }

    /// Returns true if every key goes to a run.
    #[must_use]
    pub fn is_answering(&self) -> bool {
        matches!(self.mode, Mode::Answering(_))
    }

    /// Returns true if keys do nothing, because an answer has ended by itself.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(self.mode, Mode::Held(..))
    }

    /// The answer to this run is over, or did not begin, for this reason. If that is not the human's doing, the keys that
    /// follow are held.
    pub fn end_answering(&mut self, run: u64, why: String, now: Instant) {
        if matches!(self.mode, Mode::Answering(answered) if answered == run) {
            self.hold(why, now);
        }
    }

    /// Asks whether to allow this always, which a held run asks about.
    pub fn propose(&mut self, run: u64, what: String, now: Instant) {
        if matches!(self.mode, Mode::Commands) {
            self.mode = Mode::Always { run, what, asked_at: Some(now + limits::KEYS_CONFIRM) };
        }
    }

    fn hold(&mut self, why: String, now: Instant) {
        self.mode = Mode::Held(HeldKeys::new(now), why);
    }

    /// A key has led out of an answer.
    fn lead_out(&mut self, now: Instant) {
        self.mode = Mode::Commands;
        self.sequence = Sequence::default();
        self.led_out = Some(now);
    }

    /// The question or the message for the human on the status line, if there is one. `name` names the run of a number.
    #[must_use]
    pub fn question(&self, running: usize, name: impl Fn(u64) -> String) -> Option<String> {
        match &self.mode {
            Mode::Commands => None,
            Mode::Number(Verb::Kill, digits) => Some(format!("stop which run? #{digits}_")),
            Mode::Number(Verb::Follow, digits) => Some(format!("follow which run? #{digits}_")),
            Mode::Number(Verb::Answer, digits) => Some(format!("answer which run? #{digits}_")),
            Mode::Number(Verb::Yes, digits) => Some(format!("let which run begin? #{digits}_")),
            Mode::Number(Verb::Always, digits) => Some(format!("always allow what which run asks? #{digits}_")),
            Mode::Always { what, asked_at: None, .. } => Some(format!("always allow {what}? y/n")),
            Mode::Always { what, .. } => Some(format!("always allow {what}?")),
            Mode::Number(Verb::No | Verb::NoBecause, digits) => Some(format!("refuse which run? #{digits}_")),
            Mode::Reason(run, typed) => Some(format!("why does #{run} not run? {}_", shown_end(&reason(typed)))),
            Mode::Confirm { asked_at } => {
                let what = match running {
                    0 => "end the host?".to_owned(),
                    1 => "1 command runs: end it and the host?".to_owned(),
                    many => format!("{many} commands run: end them and the host?"),
                };
                Some(if asked_at.is_none() { format!("{what} y/n") } else { what })
            }
            Mode::Answering(run) => Some(format!("your keys go to {}", name(*run))),
            Mode::Held(_, why) => Some(format!("{why}: no key acts until return and 1 s of silence")),
        }
    }

    /// Returns true if an answer to the question counts by now.
    #[must_use]
    pub fn takes_answer(&self) -> bool {
        !matches!(self.mode, Mode::Confirm { asked_at: Some(_) } | Mode::Always { asked_at: Some(_), .. })
    }

    /// The key that ends the question, with its effect.
    #[must_use]
    pub fn way_out(&self) -> Option<&'static str> {
        match &self.mode {
            Mode::Commands | Mode::Confirm { .. } | Mode::Always { .. } => None,
            Mode::Number(..) => Some("return does it · Esc leaves"),
            Mode::Reason(..) => Some("return refuses it · Esc leaves"),
            Mode::Answering(_) => Some("^] takes them back"),
            Mode::Held(..) => Some("Esc ends this"),
        }
    }

    /// Passes bytes to the run that is answered, up to the key that ends that. Bytes after it were typed for the run,
    /// too, and do nothing.
    fn pass(&mut self, run: u64, bytes: &[u8], now: Instant) -> Vec<KeyAction> {
        let end = bytes.iter().position(|&byte| byte == LEAVE);
        let input = &bytes[..end.unwrap_or(bytes.len())];
        let mut actions = Vec::new();
        if !input.is_empty() {
            actions.push(KeyAction::Input(run, input.to_vec()));
        }
        if end.is_some() {
            self.lead_out(now);
            actions.push(KeyAction::Leave(run));
        }
        actions
    }

    fn key(&mut self, byte: u8, situation: Situation, now: Instant) -> Option<KeyAction> {
        if byte == INTERRUPT {
            self.mode = Mode::Commands;
            return Some(self.interrupt(situation, now));
        }
        match std::mem::take(&mut self.mode) {
            Mode::Commands => self.command(byte, situation, now),
            Mode::Number(verb, digits) => Some(self.number(verb, digits, byte, now)),
            Mode::Reason(run, typed) => Some(self.reason(run, typed, byte)),
            Mode::Confirm { asked_at: None } if matches!(byte, b'y' | b'Y') => Some(KeyAction::End),
            unasked @ Mode::Confirm { asked_at: Some(_) } if matches!(byte, b'y' | b'Y') => {
                self.mode = unasked;
                None
            }
            Mode::Always { run, what, asked_at: None } if matches!(byte, b'y' | b'Y') => {
                Some(KeyAction::Always { run, what })
            }
            unasked @ Mode::Always { asked_at: Some(_), .. } if matches!(byte, b'y' | b'Y') => {
                self.mode = unasked;
                None
            }
            Mode::Confirm { .. } | Mode::Always { .. } => Some(KeyAction::Typing),
            Mode::Answering(_) | Mode::Held(..) => None,
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

    fn command(&mut self, byte: u8, situation: Situation, now: Instant) -> Option<KeyAction> {
        let (mode, action) = match byte {
            b'q' if situation.running == 0 || situation.is_ending => (Mode::Commands, KeyAction::End),
            b'q' => (Mode::Confirm { asked_at: Some(now + limits::KEYS_CONFIRM) }, KeyAction::Typing),
            b'k' if situation.running == 0 => (Mode::Commands, KeyAction::Refused("nothing runs")),
            b'k' => (Mode::Number(Verb::Kill, String::new()), KeyAction::Typing),
            b'f' if situation.follows => (Mode::Commands, KeyAction::Follow(None)),
            b'f' if situation.running == 0 => (Mode::Commands, KeyAction::Refused("nothing runs")),
            b'f' => (Mode::Number(Verb::Follow, String::new()), KeyAction::Typing),
            b'i' => match situation.asks {
                Asks::One(run) => (Mode::Answering(run), KeyAction::Answer(run)),
                Asks::Several => (Mode::Number(Verb::Answer, String::new()), KeyAction::Typing),
                Asks::NotNow => {
                    self.hold("what asked has ended, or has just begun to ask".to_owned(), now);
                    return Some(KeyAction::Typing);
                }
                Asks::Nobody => (Mode::Commands, KeyAction::Refused("no run waits for input")),
            },
            b'y' | b'n' | b'N' | b'a' => match situation.held {
                Asks::One(run) if byte == b'a' => (Mode::Commands, KeyAction::Propose(run)),
                Asks::One(run) if byte == b'N' => (Mode::Reason(run, Vec::new()), KeyAction::Typing),
                Asks::One(run) => (Mode::Commands, KeyAction::Decide { run, is_yes: byte == b'y', why: None }),
                Asks::Several => (Mode::Number(Verb::deciding(byte), String::new()), KeyAction::Typing),
                Asks::NotNow => (Mode::Commands, KeyAction::Refused("look what asks, then press the key again")),
                Asks::Nobody => return None,
            },
            b'e' => match situation.held {
                Asks::One(run) => (Mode::Commands, KeyAction::Explain(run)),
                Asks::Several | Asks::NotNow | Asks::Nobody => return None,
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

    fn number(&mut self, verb: Verb, mut digits: String, byte: u8, now: Instant) -> KeyAction {
        match byte {
            b'0'..=b'9' if digits.len() < limits::KEYS_DIGITS_MAX => digits.push(byte.into()),
            b'\r' | b'\n' => {
                return match (verb, digits.parse()) {
                    (_, Err(_)) => KeyAction::Typing,
                    (Verb::Kill, Ok(number)) => KeyAction::Kill(number),
                    (Verb::Follow, Ok(number)) => KeyAction::Follow(Some(number)),
                    (Verb::Yes, Ok(run)) => KeyAction::Decide { run, is_yes: true, why: None },
                    (Verb::No, Ok(run)) => KeyAction::Decide { run, is_yes: false, why: None },
                    (Verb::Always, Ok(run)) => KeyAction::Propose(run),
                    (Verb::NoBecause, Ok(run)) => {
                        self.mode = Mode::Reason(run, Vec::new());
                        KeyAction::Typing
                    }
                    (Verb::Answer, Ok(number)) => {
                        self.mode = Mode::Answering(number);
                        KeyAction::Answer(number)
                    }
                };
            }
            DELETE | BACKSPACE => _ = digits.pop(),
            ESC => return KeyAction::Typing,
            // The person takes this for the prompt, and types the answer.
            _ if verb == Verb::Answer => {
                self.hold("no answer has begun".to_owned(), now);
                return KeyAction::Typing;
            }
            _ => {}
        }
        self.mode = Mode::Number(verb, digits);
        KeyAction::Typing
    }

    fn reason(&mut self, run: u64, mut typed: Vec<u8>, byte: u8) -> KeyAction {
        match byte {
            b'\r' | b'\n' => {
                let why = Some(reason(&typed)).filter(|why| !why.is_empty());
                return KeyAction::Decide { run, is_yes: false, why };
            }
            ESC => return KeyAction::Typing,
            DELETE | BACKSPACE => while typed.pop().is_some_and(|last| last & 0xc0 == 0x80) {},
            b' '.. if typed.len() < limits::NO_WHY_BYTES_MAX => typed.push(byte),
            _ => {}
        }
        self.mode = Mode::Reason(run, typed);
        KeyAction::Typing
    }
}

/// The reason that was typed.
fn reason(typed: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(typed).chars().filter(|c| !c.is_control() && *c != '\u{fffd}').collect();
    text.trim().to_owned()
}

/// The end of what is typed, as far as the status line has room for it.
fn shown_end(text: &str) -> String {
    let count = text.chars().count();
    let end: String = text.chars().skip(count.saturating_sub(limits::KEYS_REASON_SHOWN)).collect();
    if count > limits::KEYS_REASON_SHOWN { format!("…{end}") } else { end }
}
