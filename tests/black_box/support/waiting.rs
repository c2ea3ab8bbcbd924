//! Waiting for facts, with a deadline. A deadline guards against hanging and never measures speed.

use std::time::{Duration, Instant};

/// How long a fact may take that has no bound of its own, on a machine with too few processors.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(4);

/// Lets others work between two questions.
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// Asks until there is an answer; `None` when the time is over.
pub(crate) fn until<T>(within: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + within;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        pause();
    }
}

/// The same as long as somebody works on the answer: the time begins again when `work` has grown, but not for ever.
pub(crate) fn until_at_rest<T>(mut work: impl FnMut() -> Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let (begun, mut done) = (Instant::now(), Duration::ZERO);
    loop {
        if let Some(answer) = until(PATIENCE, &mut ask) {
            return Some(answer);
        }
        let now = work();
        if now <= done || begun.elapsed() >= 5 * PATIENCE {
            return None;
        }
        done = now;
    }
}

/// Asks until it is so; false when the time is over.
pub(crate) fn until_true(within: Duration, mut ask: impl FnMut() -> bool) -> bool {
    until(within, || ask().then_some(())).is_some()
}

/// Waits until it is so; panics when the patience is over.
pub(crate) fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(until_true(PATIENCE, is_so), "waited in vain until {what}");
}

/// Waits until a number that grows has reached `enough`, as long as it grows within `step`.
pub(crate) fn wait_until_grown(what: &str, enough: usize, step: Duration, mut sample: impl FnMut() -> usize) {
    let mut last = 0;
    while last < enough {
        let next = until(step, || Some(sample()).filter(|&now| now > last));
        last = next.unwrap_or_else(|| panic!("waited in vain until {what}: {last} of {enough}"));
    }
}

/// Waits until `sample` has given the same answer for `quiet`, and returns that answer.
pub(crate) fn until_steady<T: PartialEq>(quiet: Duration, mut sample: impl FnMut() -> T) -> T {
    let (mut last, mut since, deadline) = (sample(), Instant::now(), Instant::now() + PATIENCE);
    while since.elapsed() < quiet && Instant::now() < deadline {
        pause();
        let now = sample();
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    last
}

/// Whether the long form of the tests was asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("REXEC_TEST_LONG").is_some_and(|value| value == "1")
}

/// The size of a test: the usual one, or the one of the long form.
pub(crate) fn size(usual: usize, long: usize) -> usize {
    if is_long() { long } else { usual }
}
