//! Finds the TCP ports on which commands listen, and the command that holds a port on which another one could not.
//!
//! Invariant: what one look costs is bounded, because the loop waits for it: [`limits::PORT_PROCESSES_MAX`] processes and
//! [`limits::PORT_DESCRIPTORS_MAX`] descriptors. Nothing looks while nobody asks.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::Runs;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::PortHeld;
use crate::host::run::ActiveRun;
use crate::limits;
use crate::sys::tree::Process;
use crate::sys::usage::Listening;

impl Runs {
    /// The ports on which a command listens now, smallest first.
    pub(in crate::host) fn ports(&self, job: JobId) -> Vec<u16> {
        let mut listening = Listening::within(limits::PORT_DESCRIPTORS_MAX);
        let ports = self.get(job).into_iter().flat_map(processes).flat_map(|process| listening.ports(process.pid));
        ports.collect::<BTreeSet<u16>>().into_iter().collect()
    }

    /// The ports on which these commands listen now, and how many processes each has: of the first ones, as far as
    /// [`limits::PORT_LIST_PROCESSES_MAX`] goes.
    pub(in crate::host) fn in_use(&self, jobs: impl Iterator<Item = JobId>) -> BTreeMap<JobId, (Vec<u16>, usize)> {
        let mut listening = Listening::within(limits::PORT_DESCRIPTORS_MAX);
        let (mut found, mut room) = (BTreeMap::new(), limits::PORT_LIST_PROCESSES_MAX);
        for (job, run) in jobs.filter_map(|job| Some((job, self.get(job)?))) {
            let own = run.processes();
            let Some(rest) = room.checked_sub(own.len()) else { break };
            room = rest;
            let ports: BTreeSet<u16> = own.iter().flat_map(|process| listening.ports(process.pid)).collect();
            found.insert(job, (ports.into_iter().collect(), own.len()));
        }
        found
    }

    /// A command has failed. If it could not listen on a port on which another command listens, it is told which one.
    pub(super) fn name_port_holder(&mut self, job: JobId, now: Instant, engine: &mut Engine) {
        let Some(run) = self.get(job) else { return };
        let candidates = run.bind_failure.candidates(run.description.command.as_bytes());
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
                whoami: run.description.whoami.clone(),
                process: (process.program.to_string(), process.pid.number()),
            })
        })
    }
}

fn processes(run: &ActiveRun) -> impl Iterator<Item = Process> {
    run.processes().into_iter().take(limits::PORT_PROCESSES_MAX)
}
