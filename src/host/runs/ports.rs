//! Finds the TCP ports on which commands listen, and the command that holds a port on which another one could not.
//!
//! Invariants: what looks cost is bounded, because the loop waits for them: [`limits::PORT_PROCESSES_MAX`] processes and
//! [`limits::PORT_DESCRIPTORS_MAX`] descriptors, for all clients together within [`limits::PORTS_KNOWN`], and one in
//! [`limits::PORT_LOOKS_SHARE`] of the time. Those who wait for a port have looks of their own, in a share of their
//! own ([`limits::AWAITED_LOOKS_SHARE`]), so that others who ask often do not make them late; each command that is waited
//! for has its turn. Nothing looks while nobody asks.

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
    awaited: AwaitedPorts,
}

/// The looks at commands for those who wait for a port.
#[derive(Debug, Default)]
struct AwaitedPorts {
    looks: BTreeMap<JobId, AwaitedLook>,
    /// When the next command may have its turn.
    free_from: Option<Instant>,
    /// The time for a turn, by what the last look took.
    pause: Duration,
}

#[derive(Debug)]
enum AwaitedLook {
    /// The command has its turn then.
    Turn(Instant),
    /// It listened on these ports then.
    Seen(Instant, Vec<u16>),
}

impl AwaitedPorts {
    /// The ports of a command, unless it has its turn later, and when the next look may be. `look` finds the ports,
    /// and how long that took.
    fn of(
        &mut self,
        job: JobId,
        now: Instant,
        look: impl FnOnce() -> (Vec<u16>, Duration),
    ) -> (Option<Vec<u16>>, Instant) {
        match self.looks.get(&job) {
            Some(AwaitedLook::Seen(at, ports)) if now < *at + limits::RPC_PORT_LOOK => {
                return (Some(ports.clone()), *at + limits::RPC_PORT_LOOK);
            }
            Some(AwaitedLook::Turn(at)) if now < *at => return (None, *at),
            Some(AwaitedLook::Turn(_)) => {}
            Some(AwaitedLook::Seen(..)) | None => {
                let turn = self.free_from.map_or(now, |at| at.max(now));
                self.free_from = Some(turn + self.pause);
                if now < turn {
                    self.looks.insert(job, AwaitedLook::Turn(turn));
                    return (None, turn);
                }
            }
        }
        let (ports, took) = look();
        self.pause = (took * limits::AWAITED_LOOKS_SHARE).min(limits::AWAITED_LOOK_PAUSE_MAX);
        self.free_from = self.free_from.max(Some(now + self.pause));
        // Nobody waits any more where a turn has passed.
        self.looks.retain(|_, look| {
            let (AwaitedLook::Turn(at) | AwaitedLook::Seen(at, _)) = look;
            now < *at + limits::RPC_PORT_LOOK
        });
        self.looks.insert(job, AwaitedLook::Seen(now, ports.clone()));
        (Some(ports), now + limits::RPC_PORT_LOOK)
    }
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

    /// The ports on which a command listens, for those who wait for one, unless it is looked at later; and when to ask
    /// again.
    pub(in crate::host) fn awaited_ports(&mut self, job: JobId, now: Instant) -> (Option<Vec<u16>>, Instant) {
        let Some(run) = self.all.get(&job) else { return (None, now + limits::RPC_PORT_LOOK) };
        self.port_book.awaited.of(job, now, || {
            let (begun, mut listening) = (Instant::now(), Listening::within(limits::PORT_DESCRIPTORS_MAX));
            let ports = processes(run).flat_map(|process| listening.ports(process.pid)).collect();
            (ports, begun.elapsed())
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_is_waited_for_has_its_turn() {
        let (begin, mut looked) = (Instant::now(), BTreeMap::<JobId, u32>::new());
        let (mut awaited, took) = (AwaitedPorts::default(), Duration::from_millis(20) / limits::AWAITED_LOOKS_SHARE);
        let mut asks_at: BTreeMap<JobId, Instant> = (0..20).map(|job| (JobId(job), begin)).collect();
        for passed in 0..2_000 {
            let now = begin + Duration::from_millis(passed);
            for (&job, at) in asks_at.iter_mut().filter(|(_, at)| **at <= now) {
                let (ports, next) = awaited.of(job, now, || {
                    *looked.entry(job).or_default() += 1;
                    (vec![8_000], took)
                });
                assert!(next > now && ports.is_none_or(|ports| ports == [8_000]));
                *at = next;
            }
        }
        let (least, most) = (looked.values().min(), looked.values().max());
        assert!(looked.len() == 20 && most <= least.map(|least| least + 1).as_ref(), "{looked:?}");
        assert!((90..=101).contains(&looked.values().sum::<u32>()), "{looked:?}");
    }

    #[test]
    fn what_was_just_seen_is_told_to_all_who_wait() {
        let (now, mut awaited) = (Instant::now(), AwaitedPorts::default());
        let (ports, next) = awaited.of(JobId(1), now, || (vec![80], Duration::ZERO));
        assert_eq!((ports, next), (Some(vec![80]), now + limits::RPC_PORT_LOOK));
        assert_eq!(awaited.of(JobId(1), now, || panic!("it was looked at")).0, Some(vec![80]));
        assert_eq!(
            awaited.of(JobId(1), now + limits::RPC_PORT_LOOK * 40, || (vec![81], Duration::ZERO)).0,
            Some(vec![81])
        );
    }
}
