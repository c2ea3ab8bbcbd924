//! Who may decide on a held command: a person, from any process of theirs, and no agent for itself.
//!
//! A process counts as an agent's if a guard of this host or an agent ([`Callers::agent_in`]) is above it. What leaves the tree of its agent (a terminal multiplexer's server, a service
//! manager) is not seen.
//!
//! Invariants: only what `/proc/PID/stat` says is read; a process whose ancestors cannot all be found may not decide.

use std::collections::BTreeSet;

use rexec_sh::protocol::process::Pid;

use super::callers::Callers;
use crate::limits;
use crate::sys::tree;

/// Why a process may not decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoDecider {
    /// It belongs to a command of this host.
    OfRun,
    /// It belongs to the agent of this name.
    OfAgent(String),
    /// A process above it could not be found.
    Unknown,
}

impl NoDecider {
    /// What it is, as the rest of a sentence that names it.
    pub(super) fn words(&self) -> String {
        match self {
            Self::OfRun => "belongs to a command of this host".to_owned(),
            Self::OfAgent(name) => format!("belongs to {name}"),
            Self::Unknown => "has no known origin".to_owned(),
        }
    }
}

/// The processes from which others are known to be an agent's, or a person's.
#[derive(Debug)]
pub(super) struct Origins<'a> {
    pub(super) guards: BTreeSet<Pid>,
    /// What the host has started for its person, and the guards of what runs after that person's yes.
    pub(super) helpers: Vec<Pid>,
    pub(super) callers: &'a Callers,
}

impl Origins<'_> {
    /// Checks that a process is a person's own.
    pub(super) fn check(&self, pid: Pid) -> Result<(), NoDecider> {
        let mut next = pid;
        for _ in 0..limits::DECIDER_ANCESTORS_MAX {
            if self.helpers.contains(&next) {
                return Ok(());
            }
            // What a command left when its guard died is below the host itself.
            if self.guards.contains(&next) || next == Pid::new(std::process::id().cast_signed()) {
                return Err(NoDecider::OfRun);
            }
            let process = tree::process(next).ok_or(NoDecider::Unknown)?;
            if let Some(name) = self.callers.agent_in(&process) {
                return Err(NoDecider::OfAgent(name));
            }
            if process.parent.number() <= 1 {
                return Ok(());
            }
            next = process.parent;
        }
        Err(NoDecider::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_a_command_or_an_agent_does_not_decide_and_a_helper_does() {
        // This test stands for the host. Its parent is a process like any other.
        let parent = tree::process(Pid::new(std::process::id().cast_signed())).expect("it runs").parent;
        let none = Callers::default();
        let origins = |guards: &[Pid], helpers: &[Pid], callers| {
            Origins { guards: guards.iter().copied().collect(), helpers: helpers.to_vec(), callers }.check(parent)
        };
        assert_eq!(origins(&[], &[], &none), Ok(()));
        assert_eq!(origins(&[parent], &[], &none), Err(NoDecider::OfRun));
        assert_eq!(origins(&[parent], &[parent], &none), Ok(()));
        let mut callers = Callers::default();
        callers.expect(parent, "my agent", std::time::Instant::now());
        assert_eq!(origins(&[], &[], &callers), Err(NoDecider::OfAgent("my agent".to_owned())));
        let of = |pid| Origins { guards: BTreeSet::new(), helpers: Vec::new(), callers: &none }.check(pid);
        assert_eq!(
            of(Pid::new(std::process::id().cast_signed())),
            Err(NoDecider::OfRun),
            "what a dead guard left is below the host"
        );
        assert_eq!(of(Pid::new(i32::MAX)), Err(NoDecider::Unknown));
    }
}
