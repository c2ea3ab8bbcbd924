//! Chaos: eight callers run mixed commands while a saboteur kills shims, guards, callers and the recorder, and stops
//! and continues guards, the recorder and the host, and an enemy forges reports and sends what makes others wait. Every
//! caller that survives gets what the real shell prints, the journal has every end, and afterwards the host holds
//! exactly what it held at the start.
//!
//! `scripts/chaos.sh` runs this for longer. `main.rs` lists the variables.

mod caller;
mod enemy;
mod errand;
mod sabotage;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use caller::Caller;
use enemy::Enemy;

use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::procs;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::with_own_descriptors;
use errand::Errand;
use sabotage::Chaos;

const CALLERS: usize = 8;
/// How much larger an idle host may be after everything: buffers of its allocator, not one run's leftovers each.
const GROWTH: u64 = 4 << 20;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[expect(clippy::print_stderr, reason = "the seed and the figures are for a person")]
fn say(what: &str) {
    eprintln!("chaos: {what}");
}

/// What an idle host holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holding {
    descriptors: usize,
    terminals: usize,
    /// The recorder and the guards in reserve.
    children: usize,
}

impl Holding {
    fn of(host: &Host) -> Self {
        let descriptors = procs::descriptor_list(host.pid());
        let terminals = descriptors.iter().filter(|name| name.ends_with("/ptmx")).count();
        Self { descriptors: descriptors.len(), terminals, children: procs::descendants(host.pid()).len() }
    }
}

/// Ends the chaos when its thread panics, so that the test ends with these words.
struct EndsWithPanic<'a>(&'a Chaos);

impl Drop for EndsWithPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

/// A host that has done a bit of everything already, and what it holds when it is idle.
fn warm(seed: u64) -> (Host, Holding, u64) {
    let host = Host::start();
    let holding = host.at_rest(|| Holding::of(&host));
    let chaos = Chaos::new(&host, seed);
    std::thread::scope(|scope| {
        for n in 0..CALLERS {
            let chaos = &chaos;
            scope.spawn(move || {
                let (mut caller, mut dice) = (Caller::new(chaos, 100 + n), Dice::new(n as u64));
                (0..10).for_each(|_| caller.undisturbed(&Errand::roll(&mut dice)));
            });
        }
    });
    assert_eq!(chaos.faults(), Vec::<String>::new(), "before anything is killed");
    host.wait_idle();
    let memory = procs::memory(host.pid());
    (host, holding, memory)
}

/// Everything is as it was, once it is idle; ends the host, which checks the rest.
fn check(host: Host, before: Holding, memory: u64, chaos: &Chaos) {
    let faults = chaos.faults();
    assert!(faults.is_empty(), "seed {}: {} faults:\n{}", chaos.seed, faults.len(), faults.join("\n"));
    host.wait_idle();
    let is_same = waiting::until_true(PATIENCE, || Holding::of(&host) == before);
    assert!(is_same, "seed {}: {before:?} at first, now {:?}: {:#?}", chaos.seed, Holding::of(&host), host.tree());
    let now = procs::memory(host.pid());
    say(&format!("{:?}; {before:?}; resident {memory} bytes, then {now}", chaos.counts));
    assert!(now <= memory + GROWTH, "seed {}: {memory} bytes at first, now {now}", chaos.seed);
    let is_told = waiting::until_true(PATIENCE, || chaos.misreported(&host).is_empty());
    assert!(is_told, "seed {}: {:#?}", chaos.seed, chaos.misreported(&host));
    assert_eq!(host.errors(), "", "the host complained");
    host.finish();
}

#[test]
#[ignore = "long: kills at random for 8 s"]
fn callers_that_are_not_killed_get_what_the_real_shell_prints() {
    let seed = number("REXEC_CHAOS_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        u64::from(now.subsec_nanos())
    });
    let time = Duration::from_secs(number("REXEC_CHAOS_SECONDS").unwrap_or(8));
    say(&format!("seed {seed}"));
    let (host, before, memory) = warm(seed);
    let chaos = Chaos::new(&host, seed);
    std::thread::scope(|scope| {
        for n in 0..CALLERS {
            let chaos = &chaos;
            scope.spawn(move || {
                let (mut caller, _ends) = (Caller::new(chaos, n), EndsWithPanic(chaos));
                while chaos.goes_on() {
                    caller.round();
                }
            });
        }
        scope.spawn(|| chaos.sabotage());
        scope.spawn(|| chaos.harass(&host));
        scope.spawn(|| with_own_descriptors(|| Enemy::new(&chaos, &host).attack()));
        chaos.watch(time, time + 2 * PATIENCE);
    });
    check(host, before, memory, &chaos);
}

#[test]
#[ignore = "long: 560 commands by 8 callers"]
fn thousands_of_commands_leave_nothing() {
    let (host, before, memory) = warm(1);
    let chaos = Chaos::new(&host, 1);
    let (idle, mixed) = (waiting::size(400, 10_000), waiting::size(80, 1_000));
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..CALLERS {
            let (chaos, next) = (&chaos, &next);
            scope.spawn(move || {
                let (mut caller, mut dice) = (Caller::new(chaos, n), Dice::new(n as u64));
                loop {
                    match next.fetch_add(1, Relaxed) {
                        n if n >= idle + mixed => break,
                        n if n % (idle / mixed + 1) == 0 => caller.undisturbed(&Errand::roll(&mut dice)),
                        _ => caller.undisturbed(&Errand::nothing()),
                    }
                }
            });
        }
    });
    check(host, before, memory, &chaos);
}
