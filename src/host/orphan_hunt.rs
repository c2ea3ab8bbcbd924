//! The hunt for what a dead guard left: its state for one command.
//!
//! Processes of a guard that died are children of the host. The host kills those of a
//! command whose shell still ran, or that was asked to end. It only looks at those of an ended command, until a person
//! ends them.

use std::time::{Duration, Instant};

use crate::guard::orphans::Orphans;
use crate::guard::paused_tree::PausedTree;
use crate::limits;
use crate::sys::tree::Process;
use rexec_sh::protocol::process::ProcessGroup;

/// The interval between two looks at orphans that are killed.
pub(super) const HUNT_PAUSE: Duration = Duration::from_millis(20);

/// The interval between two looks while a look may miss something: a guard is just dying, or children change.
pub(super) const SOON: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct OrphanHunt {
    pub(super) orphans: Orphans,
    /// The orphans are killed until then. `None` when they are only looked at.
    pub(super) kills_until: Option<Instant>,
    pub(super) look_at: Instant,
    pub(super) is_first_look: bool,
    /// The first look waits for the guard's death until then.
    dead_by: Instant,
    /// The process group of the ended shell; see [`super::run::GuardLink::left_by`].
    pub(super) left_by: Option<ProcessGroup>,
    /// The orphans that lived at the last look.
    pub(super) living: Vec<Process>,
    /// The processes that a person's pause has stopped, as the dead guard knew them. The first look finds them.
    paused: Paused,
}

/// A pause that outlives its guard, as far as it is known.
#[derive(Debug)]
enum Paused {
    /// The command was not paused, or goes on.
    No,
    /// Nobody has looked since the guard died.
    Unseen,
    /// The same, and the processes found go on.
    UnseenResumed,
    /// These processes stand still.
    Tree(PausedTree),
}

impl OrphanHunt {
    /// A hunt whose first look is due now.
    pub(super) fn new(orphans: Orphans, is_killing: bool, left_by: Option<ProcessGroup>, now: Instant) -> Self {
        Self {
            orphans,
            kills_until: is_killing.then(|| now + limits::ORPHAN_HUNT),
            look_at: now,
            is_first_look: true,
            dead_by: now + limits::DEATH_PATIENCE,
            left_by,
            living: Vec::new(),
            paused: Paused::No,
        }
    }

    /// The same hunt, for a command that a person has paused.
    pub(super) fn of_paused(self) -> Self {
        Self { paused: Paused::Unseen, ..self }
    }

    /// The same hunt, for a command whose pause is over, and whose guard may have died before it heard so.
    pub(super) fn of_resumed(self) -> Self {
        Self { paused: Paused::UnseenResumed, ..self }
    }

    /// Notes after a look which of the orphans a pause has stopped. Only the guard knew which ones had been stopped before.
    pub(super) fn note_paused(&mut self) {
        let is_resumed = match self.paused {
            Paused::Unseen => false,
            Paused::UnseenResumed => true,
            Paused::No | Paused::Tree(_) => return,
        };
        let stopped = self.living.iter().filter(|process| process.is_stopped);
        let mut tree = PausedTree::of(stopped.copied().collect());
        if is_resumed {
            tree.resume();
            self.paused = Paused::No;
        } else {
            // The guard may have died before it heard of the pause.
            tree.stop(1, || self.living.clone());
            self.paused = Paused::Tree(tree);
        }
    }

    /// Continues what a pause has stopped, at the first look if that is still to come.
    pub(super) fn resume(&mut self) {
        self.paused = match std::mem::replace(&mut self.paused, Paused::No) {
            Paused::Tree(tree) => {
                tree.resume();
                Paused::No
            }
            Paused::Unseen | Paused::UnseenResumed => Paused::UnseenResumed,
            Paused::No => Paused::No,
        };
    }

    /// Puts the first look off while the guard is still dying, because its children are not the host's before. Returns
    /// true if it did.
    pub(super) fn waits_for_death(&mut self, now: Instant) -> bool {
        let waits = self.is_first_look && self.orphans.is_guard_alive() && now < self.dead_by;
        if waits {
            self.look_at = now + SOON;
        }
        waits
    }
}
