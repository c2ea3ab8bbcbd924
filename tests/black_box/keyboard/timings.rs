//! Keys typed while prompts come up and go: none of them reaches a command, because nobody has pressed the key that
//! answers.

use std::sync::atomic::{AtomicUsize, Ordering};
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

#[test]
fn keys_at_a_thousand_random_timings_around_prompts_reach_no_command() {
    let host = Host::with(FLEETING);
    let typed = AtomicUsize::new(0);
    let asked = std::thread::scope(|scope| {
        let askers = (0..3).map(|_| {
            scope.spawn(|| {
                let mut rounds = 0;
                while typed.load(Ordering::Relaxed) < KEYS {
                    let seen = host.call(ASKS).run(Target::Shim(&host.socket()));
                    assert_eq!(seen.out(), "got []\n", "{}", seen.err());
                    rounds += 1;
                }
                rounds
            })
        });
        let askers: Vec<_> = askers.collect();
        let mut dice = Dice::new(1);
        // Letters that mean nothing, digits, return, a blank, an arrow.
        let keys: Vec<&[u8]> = vec![b"a", b"s", b"x", b"7", b"\r", b" ", b"\x1b[A", b"\t", b"\x04"];
        for _ in 0..KEYS {
            super::types(&host, keys[dice.below(keys.len())]);
            let pause = Duration::from_micros(dice.roll() % 8_000);
            waiting::until_true(pause, || false);
            typed.fetch_add(1, Ordering::Relaxed);
        }
        askers.into_iter().map(|asker| asker.join().expect("each prompt got end of file")).sum::<u32>()
    });
    assert!(asked >= 10, "only {asked} prompts came up");
    let inputs = host.journal().of_type("input").count();
    assert_eq!(inputs, 0, "nothing was typed for a command");
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("got []")));
}
