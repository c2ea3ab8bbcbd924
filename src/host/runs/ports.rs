//! Finds the TCP ports on which commands listen, and the command that holds a port on which another one could not.
//!
//! Invariants: what looks cost is bounded, because the loop waits for them: [`limits::PORT_PROCESSES_MAX`] processes and
//! [`limits::PORT_DESCRIPTORS_MAX`] descriptors, for all clients together within [`limits::PORTS_KNOWN`], and one in
//! [`limits::PORT_LOOKS_SHARE`] of the time. Nothing looks while nobody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::PortHeld;
use crate::host::run::ActiveRun;
use crate::limits;
use crate::sys::tree::Process;
use crate::sys::usage::Listening;

/// The ports that a command has open, and its processes.
#[derive(Debug, Clone, Default)]
pub(in crate::host) struct InUse {
    /// The ports on which it listens, smallest first.
    pub(in crate::host) ports: Vec<u16>,
    pub(in crate::host) processes: usize,
    /// The first of them, up to [`limits::PORT_LIST_PROCESSES_MAX`].
    pub(in crate::host) first: Vec<Process>,
}

/// The findings of the last moments.
#[derive(Debug, Default)]
pub(super) struct PortBook {
    since: Option<Instant>,
    /// The time that the looks since then have taken.
    spent: Duration,
    listening: Listening,
    /// Processes that may still be looked at.
    processes: usize,
    found: BTreeMap<JobId, InUse>,
    /// The findings before those. They stand in for a command at which nothing may look now.
    before: BTreeMap<JobId, InUse>,
}

impl PortBook {
    fn renew(&mut self, now: Instant) {
        let known = (self.spent * limits::PORT_LOOKS_SHARE).clamp(limits::PORTS_KNOWN, limits::PORTS_KNOWN_MAX);
        if self.since.is_none_or(|since| now >= since + known) {
            self.since = Some(now);
            self.spent = Duration::ZERO;
            self.listening = Listening::within(limits::PORT_DESCRIPTORS_MAX);
            self.processes = limits::PORT_PROCESSES_MAX;
            self.before = std::mem::take(&mut self.found);
        }
    }

    /// The findings about a command, after a look if there was none lately.
    fn of(&mut self, job: JobId, processes: impl FnOnce() -> Vec<Process>) -> InUse {
        if let Some(known) = self.found.get(&job) {
            return known.clone();
        }
        if self.processes == 0 {
            return self.before.get(&job).cloned().unwrap_or_default();
        }
        let begun = Instant::now();
        let own = processes();
        let looked_at = own.len().min(self.processes);
        // A command without processes costs a look, too.
        self.processes -= looked_at.max(1);
        let ports: BTreeSet<u16> =
            own[..looked_at].iter().flat_map(|process| self.listening.ports(process.pid)).collect();
        let first = own[..looked_at.min(limits::PORT_LIST_PROCESSES_MAX)].to_vec();
        let found = InUse { ports: ports.into_iter().collect(), processes: own.len(), first };
        self.found.insert(job, found.clone());
        self.spent += begun.elapsed();
        found
    }
}

impl Runs {
    /// The ports on which a command listens, and its number of processes, as seen within [`limits::PORTS_KNOWN_MAX`].
    pub(in crate::host) fn in_use(&mut self, job: JobId, now: Instant) -> InUse {
        let Some(run) = self.all.get(&job) else { return InUse::default() };
        self.port_book.renew(now);
        self.port_book.of(job, || run.processes())
    }

    /// The same of a command that no guard keeps, with these processes.
    pub(in crate::host) fn in_use_of(
        &mut self,
        job: JobId,
        processes: impl FnOnce() -> Vec<Process>,
        now: Instant,
    ) -> InUse {
        self.port_book.renew(now);
        self.port_book.of(job, processes)
    }

    /// A command has failed. If it could not listen on a port on which another command listens, reports which one.
    pub(super) fn name_port_holder(&mut self, job: JobId, now: Instant, engine: &mut Engine) {
        let Some(run) = self.get(job) else { return };
        let candidates = run.bind_failure.candidates(run.description.card.command.as_bytes());
        let is_early = self.sought_holder.is_some_and(|at| now < at + limits::PORT_HOLDER_PAUSE);
        if candidates.is_empty() || is_early {
            return;
        }
        self.sought_holder = Some(now);
        if let Some(held) = self.port_holder(job, &candidates) {
            engine.on_port_held(job, held);
        }
    }

    /// The command, other than `job`, that listens on one of these ports.
    fn port_holder(&self, job: JobId, candidates: &[u16]) -> Option<PortHeld> {
        let mut listening = Listening::within(limits::PORT_DESCRIPTORS_MAX);
        let others = self.iter().filter(|&(other, _)| other != job);
        let processes = others.flat_map(|(other, run)| processes(run).map(move |process| (other, run, process)));
        processes.take(limits::PORT_PROCESSES_MAX).find_map(|(other, run, process)| {
            let ports = listening.ports(process.pid);
            let port = candidates.iter().copied().find(|port| ports.contains(port))?;
            Some(PortHeld {
                port,
                run: other.0,
                whoami: run.description.card.whoami.clone(),
                process: (process.program.to_string(), process.pid.number()),
            })
        })
    }
}

fn processes(run: &ActiveRun) -> impl Iterator<Item = Process> {
    run.processes().into_iter().take(limits::PORT_PROCESSES_MAX)
}
