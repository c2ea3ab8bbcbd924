//! Ends reported runs for people.
//!
//! Invariant: signals go only to what is below the run's shim, and at last to the shim itself, after it was found
//! again; if it was killed, to what the host saw below it.

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::report::RunKey;

use super::shim_identity::Targets;
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::front::answer::{Answer, Listed, RunState};
use crate::guard::orphans;
use crate::host::Host;
use crate::host::runs::KillRequest;
use crate::host::turn::PeerId;
use crate::limits;
use crate::sink::console::status_line::{StatusRun, Waits};
use crate::sys::namespace;

impl Host {
    /// Ends a command that a shim reports; asked twice, at once.
    pub(in crate::host) fn kill_reported(&mut self, request: KillRequest) -> Result<(), Notice> {
        let KillRequest { peer, job, by, grace } = request;
        let now = self.turn.now;
        let (run, _) = self.reports.found(job)?;
        if peer.is_some() {
            run.answer_at = Some(now + limits::KILL_ANSWER);
        }
        run.waiting.extend(peer);
        run.hurry(now);
        self.engine.stop(job, by, grace, now);
        Ok(())
    }

    /// Signals the processes of a run that has to end, and answers peers that have waited long enough.
    pub(super) fn pursue_reported(&mut self, key: RunKey) {
        let now = self.turn.now;
        let job = self.reports.runs.get(&key).and_then(|run| run.job);
        let Some(known) = job.and_then(|job| self.engine.job(job)).filter(|job| job.is_stopping()) else { return };
        let killed_at = known.killed_at();
        let found = self.reports.targets(key);
        let Some(run) = self.reports.runs.get_mut(&key) else { return };
        if let Some(targets) = found {
            match killed_at {
                Some(_) if run.has_terminated => {}
                Some(_) => {
                    run.has_terminated = true;
                    orphans::terminate(&targets.all());
                }
                None => {
                    orphans::kill(&targets.all());
                    if let Targets::Below(shim) = targets
                        && run.may_kill_shim()
                    {
                        orphans::kill(&[shim]);
                    }
                    run.kills += 1;
                }
            }
            run.unpause();
        }
        run.look_again(now + limits::REPORT_KILL_PAUSE);
        if run.answer_at.is_some_and(|at| at <= now) {
            run.answer_at = None;
            let waiting = std::mem::take(&mut run.waiting);
            let unkillable = run.shim().map(|shim| shim.pid.number());
            let answer = |job: JobId| Answer::Kill {
                seq: job.0,
                unkillable: unkillable.into_iter().collect(),
                grace_left_ms: None,
            };
            if let Some(job) = run.job {
                self.answer_all(&waiting, &answer(job));
            }
        }
    }

    /// Tells peers that a reported command has ended.
    pub(super) fn answer_reported(&mut self, job: Option<JobId>, waiting: Vec<PeerId>) {
        if let Some(job) = job {
            let answer = Answer::Kill { seq: job.0, unkillable: Vec::new(), grace_left_ms: None };
            self.answer_all(&waiting, &answer);
        }
    }

    fn answer_all(&mut self, waiting: &[PeerId], answer: &Answer) {
        for &peer in waiting {
            self.peers.answer(peer, answer, &mut self.turn, &mut self.engine);
        }
    }

    /// The commands that shims report, oldest first.
    pub(in crate::host) fn list_reported(&mut self) -> Vec<Listed> {
        let now = self.turn.now;
        let mut listed: Vec<Listed> = Vec::new();
        for run in self.reports.runs.values_mut() {
            let (Some(job), Some(known)) = (run.job, &run.description) else { continue };
            let is_stopping = self.engine.job(job).is_some_and(Job::is_stopping);
            let mut row = Listed {
                state: match run.paused {
                    _ if is_stopping => RunState::Stopping,
                    Some(_) => RunState::Paused,
                    None => RunState::Running,
                },
                age_ms: u64::try_from(now.saturating_duration_since(run.since).as_millis()).unwrap_or(u64::MAX),
                card: known.card.clone(),
                ..Listed::default()
            };
            let of_shim = run.living_shim().map(|shim| namespace::below(&shim, usize::MAX));
            let processes = of_shim.unwrap_or_else(|| run.survivors().collect());
            row.orphans = processes.iter().map(|process| process.pid.number()).collect();
            listed.push(row);
        }
        listed.sort_by_key(|row| row.card.seq);
        listed
    }

    /// The reported runs for the status line, in no order.
    pub(in crate::host) fn reported_status(&self) -> impl Iterator<Item = StatusRun> {
        self.reports.runs.values().filter_map(|run| {
            let known = run.description.as_ref()?;
            Some(StatusRun {
                number: run.job?.0,
                command: known.card.command.lines().next().unwrap_or_default().to_owned(),
                since: run.since,
                waits: Waits::No,
                unshown: None,
            })
        })
    }
}
