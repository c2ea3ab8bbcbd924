//! Callers' claims about shells and commands that they run without this host: their own words, without any effect.
//!
//! Invariant: the console does not show claims beyond a number in a second, and says so once.

use std::time::Instant;

use super::{interactive_line, left_line};
use crate::host::Host;
use crate::host::rate_count::RateCount;
use crate::host::turn::PeerId;
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
}

impl Host {
    /// A caller says that it runs this command itself.
    pub(in crate::host) fn note_left(&mut self, id: PeerId, whoami: &str, command: &str) {
        self.show_claim(id, &left_line(whoami, "its directory cannot be entered", command));
    }

    /// A caller says that it has begun an interactive shell.
    pub(in crate::host) fn note_interactive(&mut self, id: PeerId, whoami: &str) {
        self.show_claim(id, &interactive_line(whoami));
    }

    /// Shows a claim. That of a caller whose commands would not run here is quoted as such.
    fn show_claim(&mut self, id: PeerId, claim: &str) {
        let most = limits::CLAIMS_A_SECOND;
        if self.claims.shown.take(most, self.turn.now) {
            match self.may_decide(id) {
                Ok(()) => self.screen.say_if_room(format_args!("… {claim}")),
                Err(Doubt::Shortage) => {}
                Err(Doubt::Differs(why)) => {
                    self.screen.say_if_room(format_args!("… an unproven caller ({why}) says: {claim}"));
                }
            }
        } else if !std::mem::replace(&mut self.claims.is_excess_told, true) {
            self.screen.say(format_args!(
                "… more than {most} callers a second tell of shells of their own: others are not shown"
            ));
        }
        self.peers.let_go(id, &mut self.turn, &mut self.engine);
    }
}
