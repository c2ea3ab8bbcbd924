//! The resources of each command: the sums over its processes. This program reads them from /proc, so that the host
//! never has to.

use std::time::Duration;

use rexec_sh::protocol::process::Pid;
use serde::Serialize;

use super::Listed;
use crate::sys::tree;
use crate::sys::usage::{self, Listening};

/// The most processes of a command that are examined. Further ones are only counted.
const PROCESSES_MAX: usize = 1_024;

/// A command and its resources.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    #[serde(flatten)]
    pub(super) listed: Listed,
    /// Processor time divided by the time since its arrival, percent.
    pub(super) cpu_percent: u64,
    /// Memory of its processes, bytes.
    pub(super) rss_bytes: u64,
    /// TCP ports on which its processes listen.
    pub(super) ports: Vec<u16>,
    /// Its living processes, nearest to the guard first.
    pub(super) processes: Vec<RunProcess>,
}

/// A process of a command.
#[derive(Debug, Serialize)]
pub(super) struct RunProcess {
    pub(super) pid: i32,
    pub(super) program: String,
    pub(super) rss_bytes: u64,
    pub(super) ports: Vec<u16>,
}

pub(super) fn all(runs: Vec<Listed>) -> Vec<Measured> {
    let mut listening = Listening::default();
    runs.into_iter().map(|listed| measure(listed, &mut listening)).collect()
}

fn measure(listed: Listed, listening: &mut Listening) -> Measured {
    let guard = listed.guard.map(Pid::new);
    let guarded = guard.into_iter().flat_map(tree::walk);
    let orphans = listed.orphans.iter().filter_map(|&pid| tree::process(Pid::new(pid)));
    // The guard adopts and reaps orphans, so it has their time.
    let mut time = guard.and_then(usage::of).map_or(Duration::ZERO, |usage| usage.children_time);
    let mut processes = Vec::new();
    for process in guarded.chain(orphans).take(PROCESSES_MAX) {
        let usage = usage::of(process.pid).unwrap_or_default();
        time += usage.own_time + usage.children_time;
        processes.push(RunProcess {
            pid: process.pid.number(),
            program: process.program.to_string(),
            rss_bytes: usage.resident,
            ports: listening.ports(process.pid),
        });
    }
    let mut ports: Vec<u16> = processes.iter().flat_map(|process| process.ports.iter().copied()).collect();
    ports.sort_unstable();
    ports.dedup();
    let percent = time.as_millis() * 100 / u128::from(listed.age_ms.max(1));
    Measured {
        cpu_percent: u64::try_from(percent).unwrap_or(u64::MAX),
        rss_bytes: processes.iter().map(|process| process.rss_bytes).sum(),
        ports,
        processes,
        listed,
    }
}
