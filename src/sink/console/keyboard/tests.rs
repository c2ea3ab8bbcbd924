//! Every key, in every mode, with the time told.

use std::time::{Duration, Instant};

use super::*;

const IDLE: Situation =
    Situation { running: 0, shown: None, asks: Asks::Nobody, held: Asks::Nobody, follows: false, is_ending: false };
const BUSY: Situation = Situation { running: 2, shown: Some(46), asks: Asks::One(46), ..IDLE };
/// Run 47 is held.
const HELD: Situation = Situation { running: 1, held: Asks::One(47), ..IDLE };

fn question(keyboard: &Keyboard, running: usize) -> Option<String> {
    keyboard.question(running, |run| format!("#{run} claude"))
}

/// Keys that are typed one by one; what the last one does.
fn press(keyboard: &mut Keyboard, keys: &[u8], situation: Situation) -> Option<KeyAction> {
    let now = Instant::now();
    keys.iter().flat_map(|key| keyboard.push(&[*key], situation, now)).last()
}

#[test]
fn each_key_has_its_meaning() {
    let does = |key: u8, situation| press(&mut Keyboard::default(), &[key], situation);
    let plain = [
        (b'?', KeyAction::Help),
        (b'p', KeyAction::Freeze),
        (b' ', KeyAction::Blank),
        (b'\r', KeyAction::Blank),
        (b'\n', KeyAction::Blank),
        (0x0c, KeyAction::Redraw),
    ];
    for (key, action) in plain {
        assert_eq!(does(key, IDLE), Some(action.clone()));
        assert_eq!(does(key, BUSY), Some(action));
    }
    assert!(matches!(does(0x1a, BUSY), Some(KeyAction::Refused(why)) if why.contains("p freezes")));
    assert!(matches!(does(b'i', IDLE), Some(KeyAction::Refused(_))));
    for key in (0..=u8::MAX).filter(|key| !b"?p \r\n\x0c\x1a\x03ikfq".contains(key)) {
        assert_eq!(does(key, BUSY), None, "{key:#x}");
    }
}

#[test]
fn a_key_decides_on_the_held_run_that_is_named_and_on_no_other() {
    let decides = |run, is_yes| Some(KeyAction::Decide { run, is_yes, why: None });
    let does = |keys: &[u8], situation| press(&mut Keyboard::default(), keys, situation);
    assert_eq!((does(b"y", HELD), does(b"n", HELD)), (decides(47, true), decides(47, false)));
    assert_eq!(does(b"e", HELD), Some(KeyAction::Explain(47)));
    let unseen = Situation { held: Asks::NotNow, ..HELD };
    let several = Situation { held: Asks::Several, ..HELD };
    for key in [b"y", b"n"] {
        assert!(matches!(does(key, unseen), Some(KeyAction::Refused(_))));
        assert_eq!(does(key, BUSY), None);
    }
    assert_eq!((does(b"y12\r", several), does(b"n12\r", several)), (decides(12, true), decides(12, false)));
    assert_eq!((does(b"y\x1b", several), does(b"e", several)), (Some(KeyAction::Typing), None));
    assert_eq!(does(b"qy", HELD), Some(KeyAction::Typing), "the host asks something of its own");
}

#[test]
fn what_is_always_allowed_is_shown_first_and_a_hasty_y_does_nothing() {
    let (now, what) = (Instant::now(), || "`git push` in ~/p for codex".to_owned());
    let later = now + limits::KEYS_CONFIRM;
    let mut keyboard = Keyboard::default();
    assert_eq!(keyboard.push(b"a", HELD, now), [KeyAction::Propose(47)]);
    keyboard.propose(47, what(), now);
    assert_eq!(question(&keyboard, 1).as_deref(), Some("always allow `git push` in ~/p for codex?"));
    assert_eq!((keyboard.push(b"y", HELD, now), keyboard.takes_answer()), (vec![], false));
    assert!(keyboard.deadline() == Some(later) && keyboard.tick(later) && keyboard.takes_answer());
    assert_eq!(question(&keyboard, 1).as_deref(), Some("always allow `git push` in ~/p for codex? y/n"));
    assert_eq!(keyboard.push(b"y", HELD, later), [KeyAction::Always { run: 47, what: what() }]);
    assert_eq!(question(&keyboard, 1), None);
    for keys in [b"n".as_slice(), b" ", b"a", b"\x1b"] {
        keyboard.propose(47, what(), now);
        keyboard.tick(later);
        assert_eq!(keyboard.push(keys, HELD, later), [KeyAction::Typing], "{keys:?}");
        assert_eq!(question(&keyboard, 1), None);
    }
    let mut keyboard = Keyboard::default();
    keyboard.propose(47, what(), now);
    keyboard.tick(later);
    let actions = keyboard.push(b"yes", HELD, later);
    assert!(!actions.iter().any(|action| matches!(action, KeyAction::Always { .. })), "{actions:?}");
    let several = Situation { held: Asks::Several, ..HELD };
    assert_eq!(press(&mut Keyboard::default(), b"a12\r", several), Some(KeyAction::Propose(12)));
    assert_eq!(press(&mut Keyboard::default(), b"a", BUSY), None);
    // The host asks something of its own.
    let mut asked = Keyboard::default();
    asked.push(b"q", HELD, now);
    asked.propose(47, what(), now);
    assert!(question(&asked, 1).is_some_and(|question| question.contains("the host")));
}

/// What a person types blindly, or pastes, may have a `y` in it.
#[test]
fn a_key_that_comes_with_others_decides_nothing() {
    let now = Instant::now();
    for keys in [b"yes".as_slice(), b"ny", b"\ry", b"y\r", b"ay", b"always"] {
        let actions = Keyboard::default().push(keys, HELD, now);
        let acts = |action: &KeyAction| matches!(action, KeyAction::Decide { .. } | KeyAction::Propose(_));
        assert!(!actions.iter().any(acts), "{keys:?}: {actions:?}");
    }
    let several = Situation { held: Asks::Several, ..HELD };
    let mut keyboard = Keyboard::default();
    keyboard.push(b"y12\r", several, now);
    assert_eq!(question(&keyboard, 1), None, "all of it was refused");
    keyboard.push(b"y", several, now);
    let yes = KeyAction::Decide { run: 12, is_yes: true, why: None };
    assert_eq!(keyboard.push(b"12\r", several, now).pop(), Some(yes));
}

#[test]
fn a_refusal_has_the_reason_that_is_typed_or_pasted_and_none_without_return() {
    let now = Instant::now();
    let refusal = |run, why: Option<&str>| KeyAction::Decide { run, is_yes: false, why: why.map(str::to_owned) };
    let mut keyboard = Keyboard::default();
    assert_eq!(press(&mut keyboard, b"N", HELD), Some(KeyAction::Typing));
    assert_eq!(question(&keyboard, 1).unwrap(), "why does #47 not run? _");
    assert_eq!(press(&mut keyboard, "no\tyé\x7f\x7f n".as_bytes(), HELD), Some(KeyAction::Typing));
    keyboard.push(b"ot on\na Friday\r", HELD, now);
    assert_eq!(question(&keyboard, 1).unwrap(), "why does #47 not run? no not on a Friday_");
    assert_eq!(keyboard.push(b"!\r", HELD, now).pop(), Some(refusal(47, Some("no not on a Friday !"))));
    assert_eq!(question(&keyboard, 1), None);
    let several = Situation { held: Asks::Several, ..HELD };
    assert_eq!(press(&mut keyboard, b"N12\r\r", several), Some(refusal(12, None)));
    assert_eq!(press(&mut keyboard, b"Nno\x1b", HELD), Some(KeyAction::Typing));
    assert_eq!(question(&keyboard, 1), None);
    // A text that begins with this key.
    let actions = keyboard.push(b"No\r", HELD, now);
    assert!(!actions.iter().any(|action| matches!(action, KeyAction::Decide { .. })), "{actions:?}");
    assert_eq!(question(&keyboard, 1), None);
    press(&mut keyboard, b"N", HELD);
    let long = "0123456789".repeat(30);
    keyboard.push(long.as_bytes(), HELD, now);
    assert_eq!(question(&keyboard, 1).unwrap(), format!("why does #47 not run? …{}_", "0123456789".repeat(4)));
    assert_eq!(press(&mut keyboard, b"x\r", HELD), Some(refusal(47, Some(&long[..limits::NO_WHY_BYTES_MAX]))));
}

#[test]
fn a_number_is_typed_and_a_run_is_stopped() {
    let mut keyboard = Keyboard::default();
    press(&mut keyboard, b"k4x9\x7f1", BUSY);
    assert_eq!(question(&keyboard, 2).unwrap(), "stop which run? #41_");
    assert_eq!(press(&mut keyboard, b"\r", BUSY), Some(KeyAction::Kill(41)));
    assert_eq!((question(&keyboard, 2), keyboard.way_out()), (None, None));
    assert_eq!(press(&mut keyboard, b"f7\n", BUSY), Some(KeyAction::Follow(Some(7))));
    assert_eq!(press(&mut keyboard, b"f", Situation { follows: true, ..BUSY }), Some(KeyAction::Follow(None)));
    for left in [b"k5\x1b".as_slice(), b"k\r", b"k\x7f\x08\r", b"k9999999999999999999999999\x1b"] {
        let mut keyboard = Keyboard::default();
        assert_eq!(press(&mut keyboard, left, BUSY), Some(KeyAction::Typing), "{left:?}");
        assert_eq!(question(&keyboard, 2), None);
    }
    assert!(matches!(press(&mut keyboard, b"k5\x03", BUSY), Some(KeyAction::Interrupt { .. })));
    assert!(matches!(press(&mut keyboard, b"k", IDLE), Some(KeyAction::Refused(_))));
}

#[test]
fn the_host_ends_when_that_is_meant() {
    let mut keyboard = Keyboard::default();
    assert_eq!(press(&mut keyboard, b"q", IDLE), Some(KeyAction::End));
    assert_eq!(press(&mut keyboard, b"q", BUSY), Some(KeyAction::Typing));
    let later = Instant::now() + limits::KEYS_CONFIRM;
    assert!(keyboard.tick(later));
    assert_eq!(question(&keyboard, 2).unwrap(), "2 commands run: end them and the host? y/n");
    assert_eq!(question(&keyboard, 1).unwrap(), "1 command runs: end it and the host? y/n");
    assert_eq!(press(&mut keyboard, b"n", BUSY), Some(KeyAction::Typing));
    assert_eq!(press(&mut keyboard, b"q", BUSY), Some(KeyAction::Typing));
    assert!(keyboard.tick(later + limits::KEYS_CONFIRM));
    assert_eq!(press(&mut keyboard, b"y", BUSY), Some(KeyAction::End));
    assert_eq!(press(&mut keyboard, b"y", BUSY), None);
    let ending = Situation { is_ending: true, ..BUSY };
    assert_eq!(press(&mut keyboard, b"\x03", ending), Some(KeyAction::End));
    assert_eq!(press(&mut keyboard, b"q", ending), Some(KeyAction::End));
}

#[test]
fn a_second_interrupt_is_for_the_same_run_and_ends_no_host() {
    let mut keyboard = Keyboard::default();
    let now = Instant::now();
    let mut at = |after, situation| keyboard.push(b"\x03", situation, now + after).pop().unwrap();
    let stop = |run, is_second| KeyAction::Interrupt { run, is_second };
    let other = Situation { shown: Some(47), ..BUSY };
    assert_eq!(at(Duration::ZERO, BUSY), stop(46, false));
    assert_eq!(at(limits::KEYS_KILL, other), stop(46, true), "whatever is shown now");
    assert_eq!(at(limits::KEYS_KILL, other), stop(47, false), "a third press is a first one");
    let later = 2 * limits::KEYS_KILL + Duration::from_millis(1);
    assert_eq!(at(later, other), stop(47, false), "too late to be a second one");
    assert_eq!(at(later, IDLE), stop(47, true), "it may have ended meanwhile");
    assert!(matches!(at(later, IDLE), KeyAction::Refused(_)));
    assert_eq!(at(later + limits::KEYS_END, IDLE), KeyAction::End);
    assert!(matches!(at(later + limits::KEYS_END, IDLE), KeyAction::Refused(_)));
    let late = later + 2 * limits::KEYS_END + Duration::from_millis(1);
    assert!(matches!(at(late, IDLE), KeyAction::Refused(_)));
    assert!(matches!(at(late, Situation { shown: None, ..BUSY }), KeyAction::Refused(_)));
}

const SEQUENCES: &[&[u8]] = &[
    b"\x1b[A",
    b"\x1b[1;5q",
    b"\x1b[<0;12;3M",
    b"\x1b[M qk",
    b"\x1b[I",
    b"\x1b[O",
    b"\x1bOq",
    b"\x1bq",
    b"\x1b\x1bq",
    b"\x1b]11;rgb:q/q\x07",
    b"\x1b]11;rgb:q/q\x1b\\",
    b"\x1bP>|q\x1b\\",
    b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b]10;q\x07\x1b[?6;4;22c\x1b[0n\x1b[12;40R\x1bP>|q\x1b\\",
    b"\x1b[?6;4c",
    b"\x1b[200~q\x1b[201~",
    b"\x1b[200~q\ry\rk1\r\x1b[A\x1b[2~\x03q\x1b[201~",
    b"\x1b[200~a long text with \x1bq in it\r\n\x1b[201~",
];

#[test]
fn escape_sequences_and_pasted_text_do_nothing_however_they_are_split() {
    let now = Instant::now();
    for &sequence in SEQUENCES.iter().filter(|sequence| !sequence.contains(&3)) {
        for split in 0..sequence.len() {
            let mut keyboard = Keyboard::default();
            let (first, rest) = sequence.split_at(split);
            assert_eq!([keyboard.push(first, BUSY, now), keyboard.push(rest, BUSY, now)].concat(), [], "{sequence:?}");
            assert_eq!(keyboard.push(b"p", BUSY, now), [KeyAction::Freeze], "{sequence:?}");
        }
        let mut keyboard = Keyboard::default();
        assert_eq!(press(&mut keyboard, sequence, BUSY), None, "{sequence:?}");
    }
    let actions = Keyboard::default().push(b"quit\rqy\rk1\r", BUSY, now);
    assert!(matches!(actions[..], [KeyAction::Refused(_)]));
}

#[test]
fn no_sequence_makes_the_keyboard_deaf() {
    let now = Instant::now();
    for begun in [b"\x1b".as_slice(), b"\x1b[", b"\x1b[<0;1", b"\x1bO", b"\x1b]11;rgb", b"\x1b[M"] {
        let mut keyboard = Keyboard::default();
        assert_eq!(keyboard.push(begun, BUSY, now), []);
        let later = now + limits::KEYS_SEQUENCE + Duration::from_millis(1);
        assert_eq!(keyboard.push(b"p", BUSY, later), [KeyAction::Freeze], "{begun:?}");
    }
    let mut keyboard = Keyboard::default();
    keyboard.push(b"\x1b[200~half of it", BUSY, now);
    assert_eq!(keyboard.push(b"q", IDLE, now + 100 * limits::KEYS_SEQUENCE), [], "it may have stopped");
    assert_eq!(keyboard.push(b"\x03", BUSY, now), [], "this only ends the paste");
    assert_eq!(keyboard.push(b"p", BUSY, now), [KeyAction::Freeze]);
}

#[test]
fn escape_leaves_a_question_at_once() {
    let now = Instant::now();
    let mut keyboard = Keyboard::default();
    keyboard.push(b"k5", BUSY, now);
    assert_eq!(keyboard.push(b"\x1b", BUSY, now), [KeyAction::Typing]);
    assert_eq!(question(&keyboard, 2), None);
}

#[test]
fn only_what_is_typed_while_answering_reaches_the_run() {
    let mut keyboard = Keyboard::default();
    let now = Instant::now();
    assert_eq!(keyboard.push(b"secret", BUSY, now), []);
    assert_eq!(keyboard.push(b"i", BUSY, now), [KeyAction::Answer(46)]);
    assert!(keyboard.is_answering());
    assert_eq!(question(&keyboard, 2).unwrap(), "your keys go to #46 claude");
    let keys = b"\x1b[Aq\x03\x1b[200~pasted\x1b[201~";
    assert_eq!(keyboard.push(keys, BUSY, now), [KeyAction::Input(46, keys.to_vec())]);
    let left = [KeyAction::Input(46, b"x".to_vec()), KeyAction::Leave(46)];
    assert_eq!(keyboard.push(b"x\x1dq", BUSY, now), left);
    assert!(!keyboard.is_answering() && !keyboard.is_held());
    assert_eq!(keyboard.push(b"i", BUSY, now), [], "right behind the way out");
    let later = now + 2 * limits::KEYS_SEQUENCE;
    assert_eq!(keyboard.push(b"i", BUSY, later), [KeyAction::Answer(46)]);
}
