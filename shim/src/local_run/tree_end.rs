//! The end of a command whose agent has ended: SIGTERM for every process of it, and SIGKILL for those that are left a
//! moment later, as the host does it.
//!
//! What has left the tree cannot be found: a daemon whose parent has ended is the child of another process.
//!
//! Invariant: a process is signalled through a descriptor that was opened while it was in the tree, so no other process of
//! its number is.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rexec_sh::protocol::process::{Pid, Signal};

use crate::inside;
use crate::sys;

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(200);
/// How long a killed process may take to be gone before it is looked for others again …
const ROUND_PAUSE: Duration = Duration::from_millis(20);
/// … and how often that happens.
const ROUNDS_MAX: u32 = 50;

/// A tree that ends.
#[derive(Debug)]
pub(super) struct TreeEnd {
    root: Pid,
    /// By number.
    members: BTreeMap<i32, OwnedFd>,
    /// When the next SIGKILL is due.
    kills_at: Instant,
    rounds: u32,
}

impl TreeEnd {
    /// Asks every process below `root` to end.
    pub(super) fn begin(root: Pid, spared: Option<Pid>) -> Self {
        let mut tree = Self { root, members: BTreeMap::new(), kills_at: Instant::now() + GRACE, rounds: 0 };
        tree.find(spared);
        for member in tree.members.values() {
            sys::signal_through(member, Signal::TERM);
            // A stopped one acts on it as soon as it goes on.
            sys::signal_through(member, sys::CONT);
        }
        tree
    }

    fn find(&mut self, spared: Option<Pid>) {
        for pid in inside::below(self.root).into_iter().filter(|&pid| Some(pid) != spared) {
            if let Ok(member) = sys::process_descriptor(pid) {
                self.members.entry(pid.number()).or_insert(member);
            }
        }
        self.members.retain(|_, member| !sys::has_ended(member));
    }

    /// Kills what is due. Returns when to come again; `None` when everything has ended, or does not end.
    pub(super) fn tick(&mut self, spared: Option<Pid>, now: Instant) -> Option<Instant> {
        self.find(spared);
        if now >= self.kills_at {
            self.rounds += 1;
            self.members.values().for_each(|member| sys::signal_through(member, Signal::KILL));
            self.kills_at = now + ROUND_PAUSE;
        }
        let goes_on = !self.members.is_empty() && self.rounds < ROUNDS_MAX;
        goes_on.then(|| self.kills_at.min(now + ROUND_PAUSE))
    }
}
