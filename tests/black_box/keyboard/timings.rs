//! Keys typed while prompts come up and go: none of them reaches a command, because nobody has pressed the key that
//! answers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::call::Target;
use crate::support::dice::Dice;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::waiting::{self, PATIENCE};

/// Each prompt is there for a moment.
const FLEETING: Setup = Setup {
    terminal: true,
    flags: &["--prompts", "ask", "--prompt-wait", "0.05"],
    wrapper: &["env", "TERM=xterm"],
    ..MIRROR
};
const ASKS: &str = "read -r -p 'name? ' line </dev/tty; echo \"got [$line]\"";
const KEYS: usize = 1_000;
/// At least so many come up while they are typed.
const PROMPTS: usize = 10;

#[test]
#[ignore = "long: 1,000 keys at random times"]
fn keys_at_a_thousand_random_timings_around_prompts_reach_no_command() {
    let host = Host::with(FLEETING);
    let (asked, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let askers = (0..3).map(|_| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let seen = host.call(ASKS).run(Target::Shim(&host.socket()));
                    assert_eq!(seen.out(), "got []\n", "{}", seen.err());
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        let askers: Vec<_> = askers.collect();
        let mut dice = Dice::new(1);
        // Letters that mean nothing, digits, return, a blank, an arrow.
        let keys: Vec<&[u8]> = vec![b"a", b"s", b"x", b"7", b"\r", b" ", b"\x1b[A", b"\t", b"\x04"];
        let mut typed = 0;
        // On a busy machine prompts come up more slowly.
        while typed < KEYS || (asked.load(Ordering::Relaxed) < PROMPTS && !askers.iter().any(|it| it.is_finished())) {
            super::types(&host, keys[dice.below(keys.len())]);
            let pause = Duration::from_micros(dice.roll() % 8_000);
            waiting::until_true(pause, || false);
            typed += 1;
        }
        is_over.store(true, Ordering::Relaxed);
        askers.into_iter().for_each(|asker| asker.join().expect("each prompt got end of file"));
    });
    let inputs = host.journal().of_type("input").count();
    assert_eq!(inputs, 0, "nothing was typed for a command");
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("got []")));
}
