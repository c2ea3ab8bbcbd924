//! A person types a password while prompts end, begin and are doubled: no key acts on the console, and none reaches
//! another command.

use std::time::{Duration, Instant};

use super::held::HeldKeys;
use super::named::NamedPrompts;
use super::*;

/// Scenarios. In each, some things happen at random moments.
const SCENARIOS: u64 = 2_000;
/// The step of a scenario's clock.
const STEP: Duration = Duration::from_millis(10);
/// The keys of which passwords are made: those that do something on the console.
const KEYS: &[u8] = b"qyYkfip?123n \x0cabc";
const RUNS: usize = 3;

/// Numbers that look random, the same in each run (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % end
    }

    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }
}

/// A command: when it begins to ask, when that is over, and when it ends.
#[derive(Debug, Clone, Copy)]
struct AskingCommand {
    asks_at: Duration,
    asks_until: Duration,
    ends_at: Duration,
}

impl AskingCommand {
    fn asks(&self, at: Duration) -> bool {
        self.asks_at <= at && at < self.asks_until && at < self.ends_at
    }
}

/// What the host does, as far as the keyboard is concerned.
struct Desk {
    keyboard: Keyboard,
    named: NamedPrompts,
    commands: [AskingCommand; RUNS],
    answered: Option<u64>,
    start: Instant,
    /// What the status line has named, and since when.
    drawn: Vec<(Duration, Vec<u64>)>,
    draw_at: Duration,
}

impl Desk {
    fn command(&self, run: u64) -> Option<&AskingCommand> {
        usize::try_from(run).ok().and_then(|run| self.commands.get(run.checked_sub(1)?))
    }

    fn waiting(&self, at: Duration) -> Vec<u64> {
        let asks = |run: &u64| self.command(*run).is_some_and(|it| it.asks(at)) && self.answered != Some(*run);
        (1..=RUNS as u64).filter(asks).collect()
    }

    fn may_be_answered(&self, run: u64, at: Duration) -> bool {
        self.command(run).is_some_and(|it| it.asks(at) && at - it.asks_at >= limits::PROMPT_YOUNG)
    }

    /// Time passes: commands end, the line is drawn, the keyboard is told the time.
    fn step(&mut self, at: Duration) {
        if let Some(run) = self.answered.filter(|run| self.command(*run).is_none_or(|it| at >= it.ends_at)) {
            self.answered = None;
            self.keyboard.end_answering(run, format!("#{run} has ended"), self.start + at);
        }
        self.keyboard.tick(self.start + at);
        if at >= self.draw_at {
            let is_shown = self.keyboard.question(1, |run| run.to_string()).is_none();
            let named = self.waiting(at).into_iter().filter(|&run| is_shown && self.may_be_answered(run, at));
            let named: Vec<u64> = named.collect();
            self.named.note(named.clone(), self.start + at);
            self.drawn.push((at, named));
            self.draw_at = at + limits::STATUS_EVERY;
        }
    }

    /// What stood on the line then.
    fn seen(&self, at: Duration) -> &[u64] {
        self.drawn.iter().rev().find(|(drawn, _)| *drawn <= at).map_or(&[], |(_, named)| named)
    }

    /// A read of keys. Returns what acted on the console, and what a command got.
    fn read(&mut self, keys: &[u8], at: Duration) -> (Vec<KeyAction>, Vec<u64>) {
        let situation = Situation {
            running: self.commands.iter().filter(|it| at < it.ends_at).count(),
            shown: Some(1),
            asks: self.named.asks(self.waiting(at).into_iter(), self.start + at),
            ..Situation::default()
        };
        let mut acted = Vec::new();
        let mut reached = Vec::new();
        for action in self.keyboard.push(keys, situation, self.start + at) {
            match action {
                KeyAction::Answer(run) if self.may_be_answered(run, at) => self.answered = Some(run),
                KeyAction::Answer(run) => self.keyboard.end_answering(run, "gone".to_owned(), self.start + at),
                KeyAction::Input(run, _) if self.answered == Some(run) => reached.push(run),
                KeyAction::Leave(_) => self.answered = None,
                KeyAction::Input(..) | KeyAction::Typing => {}
                acts => acted.push(acts),
            }
        }
        (acted, reached)
    }
}

/// The key that answers, a password, and return.
fn password(dice: &mut Dice) -> Vec<u8> {
    let length = 6 + dice.below(14);
    let mut text: Vec<u8> =
        (0..length).map(|_| KEYS[usize::try_from(dice.below(KEYS.len() as u64)).unwrap()]).collect();
    // A password is no number.
    text.insert(usize::try_from(dice.below(2)).unwrap(), b'x');
    text.push(b'\r');
    text.insert(0, b'i');
    text
}

/// The person looks, and gets the console back.
fn has_the_console_again(desk: &mut Desk, mut at: Duration) {
    for _ in 0..120 {
        at += STEP;
        desk.step(at);
    }
    if desk.keyboard.is_answering() {
        desk.read(b"\x1d", at);
        at += 2 * limits::KEYS_SEQUENCE;
        desk.step(at);
    }
    if desk.keyboard.is_held() {
        desk.read(b"\x1b", at);
        at += 2 * limits::KEYS_SEQUENCE;
        desk.step(at);
    }
    assert_eq!(desk.read(b"p", at).0, [KeyAction::Freeze], "{:?}", desk.keyboard);
}

/// One scenario: whether an answer began, and whether it ended while the person typed.
fn scenario(dice: &mut Dice) -> (bool, bool) {
    let commands = std::array::from_fn(|_| {
        let asks_at = dice.millis(0, 6_000);
        let asks_until = asks_at + dice.millis(50, 6_000);
        AskingCommand { asks_at, asks_until, ends_at: asks_at + dice.millis(50, 6_000) }
    });
    let mut desk = Desk {
        keyboard: Keyboard::default(),
        named: NamedPrompts::default(),
        commands,
        answered: None,
        start: Instant::now(),
        drawn: Vec::new(),
        draw_at: Duration::ZERO,
    };
    let reaction = dice.millis(100, 1_500);
    let mut at = Duration::ZERO;
    // The person presses the key some time after one command was named.
    while desk.seen(at.saturating_sub(reaction)).len() != 1 {
        desk.step(at);
        at += STEP;
        if at > Duration::from_secs(15) {
            return (false, false);
        }
    }
    let meant = desk.seen(at.saturating_sub(reaction))[0];
    let text = password(dice);
    let mut has_begun = false;
    let mut has_ended = false;
    let mut rest = text.as_slice();
    while !rest.is_empty() {
        // Some keys come together, because the machine is busy.
        let (keys, later) = rest.split_at(if dice.below(20) == 0 { rest.len().min(3) } else { 1 });
        rest = later;
        let before = desk.answered;
        let (acted, reached) = desk.read(keys, at);
        assert_eq!(acted, [], "{keys:?} of {text:?} at {at:?}: {commands:?}");
        assert!(reached.iter().all(|run| *run == meant), "{reached:?} and not {meant} at {at:?}: {commands:?}");
        assert!(before.is_some() || reached.is_empty(), "the key that begins an answer is no answer");
        has_begun |= desk.answered.is_some();
        for _ in 0..1 + dice.below(25) {
            at += STEP;
            desk.step(at);
        }
        has_ended |= has_begun && desk.answered.is_none();
    }
    has_the_console_again(&mut desk, at);
    (has_begun, has_ended)
}

#[test]
fn a_password_that_is_typed_while_prompts_come_and_go_does_nothing_and_reaches_no_other_command() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut begun = 0;
    let mut ended = 0;
    let mut played = 0;
    while played < SCENARIOS {
        let (has_begun, has_ended) = scenario(&mut dice);
        played += 1;
        begun += u64::from(has_begun);
        ended += u64::from(has_ended);
    }
    assert!(begun > SCENARIOS / 3 && ended > SCENARIOS / 10, "{begun} began, {ended} ended");
}

const BUSY: Situation = Situation {
    running: 2,
    shown: Some(46),
    asks: Asks::One(46),
    held: Asks::Nobody,
    follows: false,
    is_ending: false,
};

/// A keyboard behind an answer that has just ended.
fn held(now: Instant) -> Keyboard {
    let mut keyboard = Keyboard::default();
    assert_eq!(keyboard.push(b"i", BUSY, now), [KeyAction::Answer(46)]);
    keyboard.end_answering(46, "#46 has ended".to_owned(), now);
    keyboard
}

fn acts(keyboard: &mut Keyboard, at: Instant) -> bool {
    keyboard.push(b"p", BUSY, at) == [KeyAction::Freeze]
}

#[test]
fn keys_behind_an_answer_are_held_until_a_return_and_a_silence() {
    let now = Instant::now();
    let step = Duration::from_millis(1);
    let mut keyboard = held(now);
    let question = keyboard.question(2, |_| String::new()).unwrap();
    assert_eq!(question, "#46 has ended: no key acts until return and 1 s of silence");
    assert_eq!(keyboard.way_out(), Some("Esc ends this"));
    let mut at = now;
    for keys in [b"q".as_slice(), b"y", b"k1\r", b"\x1b[A", b"\x1b[200~\x03\x1d\r\x1b[201~", b"word"] {
        at += Duration::from_millis(900);
        assert_eq!(keyboard.push(keys, BUSY, at), [KeyAction::Typing], "{keys:?}");
    }
    // A silence is not enough, and neither is a return.
    at += 5 * limits::KEYS_SILENCE;
    assert!(!keyboard.tick(at) && keyboard.is_held());
    keyboard.push(b"\r", BUSY, at);
    assert!(!keyboard.tick(at + limits::KEYS_SILENCE));
    keyboard.push(b"y\r", BUSY, at + limits::KEYS_SILENCE);
    assert_eq!(keyboard.deadline(), Some(at + 2 * limits::KEYS_SILENCE));
    assert!(keyboard.tick(at + 2 * limits::KEYS_SILENCE + step));
    assert!(acts(&mut keyboard, at + 2 * limits::KEYS_SILENCE + step));
}

#[test]
fn a_lone_escape_and_the_ways_out_let_go_without_acting() {
    let now = Instant::now();
    let step = Duration::from_millis(1);
    let later = now + 2 * limits::KEYS_SEQUENCE;
    for out in [b"\x03".as_slice(), b"\x1d", b"abc\x03"] {
        let mut keyboard = held(now);
        assert_eq!(keyboard.push(out, BUSY, now), [KeyAction::Typing], "{out:?}");
        assert!(!keyboard.is_held(), "{out:?}");
        assert_eq!(keyboard.push(b"q", BUSY, now + step), [], "a text with such a key in it was pasted");
        assert!(acts(&mut keyboard, later), "{out:?}");
    }
    let mut keyboard = held(now);
    keyboard.push(b"\x1b", BUSY, now);
    assert!(!keyboard.tick(now + limits::KEYS_SEQUENCE) && keyboard.tick(now + limits::KEYS_SEQUENCE + step));
    assert!(acts(&mut keyboard, later));
    let not_alone: [&[&[u8]]; 6] = [
        &[b"\x1b", b"[A"],
        &[b"\x1b", b"q"],
        &[b"\x1b[200~", b"\x1b"],
        &[b"\x1b[200~\x1d"],
        &[b"\x1bO", b"q"],
        &[b"q\x1dq", b"\x03y"],
    ];
    for not_alone in not_alone {
        let mut keyboard = held(now);
        not_alone.iter().for_each(|keys| _ = keyboard.push(keys, BUSY, now));
        assert!(!keyboard.tick(later) && keyboard.is_held(), "{not_alone:?}");
    }
    let mut keyboard = held(now);
    assert!(!keyboard.tick(now + limits::KEYS_HELD_MAX) && keyboard.tick(now + limits::KEYS_HELD_MAX + step));
}

/// A host that was held up reads late what was typed early.
#[test]
fn a_key_that_is_read_late_does_not_end_a_silence() {
    let now = Instant::now();
    let mut keys = HeldKeys::new(now);
    assert_eq!(keys.push(b"\r", now), Hold::Goes);
    assert_eq!(keys.push(b"q", now + 2 * limits::KEYS_SILENCE), Hold::Goes);
    assert!(!keys.is_over(now + 4 * limits::KEYS_SILENCE));
}

#[test]
fn an_answer_begins_only_by_a_key_of_its_own_that_was_meant_for_it() {
    let now = Instant::now();
    let asks = |asks| Situation { asks, ..BUSY };
    let mut keyboard = Keyboard::default();
    for together in [b"iabc".as_slice(), b"xi", b"ii"] {
        assert!(!keyboard.push(together, BUSY, now).iter().any(|action| matches!(action, KeyAction::Answer(_))));
        assert!(keyboard.is_held(), "{together:?}");
        keyboard = Keyboard::default();
    }
    assert_eq!(keyboard.push(b"i", asks(Asks::NotNow), now), [KeyAction::Typing]);
    assert!(keyboard.is_held());
    keyboard = Keyboard::default();
    for key in [b"i", b"4", b"7"] {
        assert_eq!(keyboard.push(key, asks(Asks::Several), now), [KeyAction::Typing]);
    }
    assert_eq!(keyboard.question(2, |_| String::new()).unwrap(), "answer which run? #47_");
    assert_eq!(keyboard.push(b"\r", asks(Asks::Several), now), [KeyAction::Answer(47)]);
    keyboard.end_answering(46, "another one".to_owned(), now);
    assert!(keyboard.is_answering(), "the end of another answer changes nothing");
    keyboard = Keyboard::default();
    for keys in [b"i".as_slice(), b"4", b"x", b"q", b"y"] {
        assert_eq!(keyboard.push(keys, asks(Asks::Several), now), [KeyAction::Typing], "a password and no number");
    }
    assert!(keyboard.is_held());
    let mut keyboard = Keyboard::default();
    keyboard.push(b"i", asks(Asks::Several), now);
    keyboard.push(b"2\r", asks(Asks::Several), now);
    assert!(keyboard.is_held(), "the return came with another key");
}

#[test]
fn the_host_does_not_end_by_the_letters_of_a_word() {
    let now = Instant::now();
    let mut keyboard = Keyboard::default();
    assert_eq!(keyboard.push(b"qy", BUSY, now), [KeyAction::Typing]);
    assert_eq!(keyboard.question(2, |_| String::new()).unwrap(), "2 commands run: end them and the host?");
    assert!(!keyboard.takes_answer());
    assert_eq!(keyboard.push(b"y", BUSY, now + limits::KEYS_CONFIRM), [], "the question is not asked yet");
    assert!(keyboard.tick(now + limits::KEYS_CONFIRM) && keyboard.takes_answer());
    assert_eq!(keyboard.question(2, |_| String::new()).unwrap(), "2 commands run: end them and the host? y/n");
    assert_eq!(keyboard.push(b"y", BUSY, now + limits::KEYS_CONFIRM), [KeyAction::End]);
    keyboard.push(b"q", BUSY, now);
    assert_eq!(keyboard.push(b"n", BUSY, now), [KeyAction::Typing]);
    assert_eq!((keyboard.question(2, |_| String::new()), keyboard.deadline()), (None, None));
}
