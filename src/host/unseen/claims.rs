//! Callers' claims about shells and commands that they run without this host: their own words, without any effect.
//!
//! Invariant: the console does not show claims beyond a number in a second, and says so once.

use std::time::Instant;

use crate::host::rate_count::RateCount;
use crate::host::screen::Screen;
use crate::limits;
use crate::sys::confinement::Doubt;

/// The count of claims that the console has shown.
#[derive(Debug)]
pub(in crate::host) struct Claims {
    shown: RateCount,
    is_excess_told: bool,
}

impl Claims {
    pub(in crate::host) fn new(now: Instant) -> Self {
        Self { shown: RateCount::new(now), is_excess_told: false }
    }

    /// Shows a claim. That of a caller whose commands would not run here is quoted as such.
    pub(in crate::host) fn show(
        &mut self,
        claim: &str,
        may_run: impl FnOnce() -> Result<(), Doubt>,
        screen: &mut Screen,
        now: Instant,
    ) {
        let most = limits::CLAIMS_A_SECOND;
        if self.shown.take(most, now) {
            match may_run() {
                Ok(()) => screen.say_if_room(format_args!("… {claim}")),
                Err(Doubt::Shortage) => {}
                Err(Doubt::Differs(why)) => {
                    screen.say_if_room(format_args!("… an unproven caller ({why}) says: {claim}"));
                }
            }
        } else if !std::mem::replace(&mut self.is_excess_told, true) {
            screen.say(format_args!(
                "… more than {most} callers a second tell of shells of their own: others are not shown"
            ));
        }
    }
}
