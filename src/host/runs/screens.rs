//! Keeps the end of what was written to the terminals of runs, for terminals that come later.
//!
//! Invariants: each run's end is bounded, and so are all together; nothing is shown that a person typed as a secret.

use std::ops::Range;

use super::Runs;
use crate::core::engine::JobId;
use crate::host::run::ActiveRun;
use crate::limits;
use crate::text::redact::Redactor;
use crate::text::terminal_tail::ShownSoFar;

impl Runs {
    /// A run has written this to its terminal. These parts show a secret that a person types.
    pub(super) fn keep_shown(&mut self, job: JobId, output: &[u8], secrets: &[Range<usize>]) {
        let Some(run) = self.get_mut(job) else { return };
        let (before, most) = (run.tail.weight(), limits::TERMINAL_TAIL_BYTES);
        let mut from = 0;
        for part in secrets {
            run.tail.push(&output[from..part.start], most);
            run.tail.push_secret(most);
            from = part.end;
        }
        run.tail.push(&output[from..], most);
        let after = run.tail.weight();
        self.tail_bytes = (self.tail_bytes + after).saturating_sub(before);
        if self.tail_bytes > limits::TERMINAL_TAILS_BYTES {
            self.share_tails();
        }
    }

    /// Gives each run its share of three quarters of the bound, so that this is seldom needed. Runs that are gone have
    /// been counted until now.
    fn share_tails(&mut self) {
        let share = limits::TERMINAL_TAILS_BYTES / 4 * 3 / self.all.len().max(1);
        self.all.values_mut().for_each(|run| run.tail.shed(share));
        self.tail_bytes = self.all.values().map(|run| run.tail.weight()).sum();
    }

    /// What the terminal shows to which a run writes. `None` if it writes to none. The redactor goes on with its output.
    pub(in crate::host) fn shown_so_far(&self, job: JobId, redactor: Option<&mut Redactor>) -> Option<ShownSoFar> {
        Some(self.get(job).filter(|run| run.writes_to_terminal())?.tail.shown(redactor))
    }

    /// What a program of the run has drawn on the alternate screen. `None` if none does.
    pub(in crate::host) fn full_screen(&self, job: JobId) -> Option<ShownSoFar> {
        Some(self.get(job).filter(|run| run.screen.is_on())?.tail.alternate())
    }
}

impl ActiveRun {
    /// Returns true if its output is on its terminal, or the output of a program that has the terminal's whole screen.
    fn writes_to_terminal(&self) -> bool {
        self.relay.is_some() || self.tty.is_some() || self.screen.is_on()
    }
}
