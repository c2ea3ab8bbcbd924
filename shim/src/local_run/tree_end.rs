//! The end of a command whose agent has ended: SIGTERM for every process of it, and SIGKILL for those that are left a
//! moment later, as in the host.
//!
//! A process that left the tree before cannot be found: a daemon whose parent has ended is the child of another
//! process.
//!
//! Invariant: a process is signalled through a descriptor that was opened while it was in the tree, so no other process
//! with its number is.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rexec_sh::protocol::process::{Pid, Signal};

use crate::inside;
use crate::sys;

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(200);
/// The time for killed processes to disappear, before the tree is searched for others again …
const ROUND_PAUSE: Duration = Duration::from_millis(20);
/// … and the most such rounds.
const ROUNDS_MAX: u32 = 50;

/// A tree that ends.
#[derive(Debug)]
pub(super) struct TreeEnd {
    root: Pid,
    members: BTreeMap<Pid, OwnedFd>,
    kills_at: Instant,
    rounds: u32,
}

impl TreeEnd {
    /// Asks every process below `root` to end, except `spared`.
    pub(super) fn begin(root: Pid, spared: Option<Pid>) -> Self {
        let mut tree = Self { root, members: BTreeMap::new(), kills_at: Instant::now() + GRACE, rounds: 0 };
        tree.find(spared);
        for member in tree.members.values() {
            sys::signal_through(member, Signal::TERM);
            // A stopped process acts on it as soon as it goes on.
            sys::signal_through(member, sys::CONT);
        }
        tree
    }

    /// Adds new processes, also those below members that are not below the root any more.
    fn find(&mut self, spared: Option<Pid>) {
        self.members.retain(|_, member| !sys::has_ended(member));
        let is_new = |pid: &Pid| Some(*pid) != spared && !self.members.contains_key(pid);
        let is_in_tree =
            |pid: &Pid| inside::is_below(*pid, |above| above == self.root || self.members.contains_key(&above));
        let found = inside::processes().filter(|pid| is_new(pid) && is_in_tree(pid)).filter_map(|pid| {
            let member = sys::process_descriptor(pid).ok()?;
            // The number may have passed to another process meanwhile.
            is_in_tree(&pid).then_some((pid, member))
        });
        let found: Vec<_> = found.collect();
        self.members.extend(found);
    }

    /// Kills the processes that are due. Returns the time of the next call; `None` if all have ended, or do not end.
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
