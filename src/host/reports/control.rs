//! Ends, signals, pauses and resumes reported runs for people.
//!
//! Invariants: signals go only to what is below the run's shim, and at last to the shim itself, after it was found
//! again; if it was killed, to what the host saw below it. What a pause has stopped goes on when the run is resumed, told
//! to end, or forgotten.

use std::time::Instant;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::{Pid, Signal};
use rexec_sh::protocol::report::RunKey;

use super::Reports;
use super::run::ReportedRun;
use super::shim_identity::Targets;
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::answer::Answer;
use crate::guard::orphans;
use crate::host::peers::Peers;
use crate::host::refused_order::{Obstacle, RefusedOrder};
use crate::host::runs::KillRequest;
use crate::host::turn::Turn;
use crate::limits;

impl Reports {
    /// A run and its processes, found again.
    ///
    /// # Errors
    /// There is no such run, or its shim cannot be found.
    fn found(&mut self, job: JobId) -> Result<(&mut ReportedRun, Targets), RefusedOrder> {
        let refused = |why| RefusedOrder::new(job, why);
        let key = self.key_of(job).ok_or_else(|| refused(Obstacle::NotThere))?;
        let found = self.targets(key);
        let run = self.runs.get_mut(&key).ok_or_else(|| refused(Obstacle::NotThere))?;
        match found {
            Some(targets) => Ok((run, targets)),
            None => Err(refused(Obstacle::Lost { sandbox: run.sandbox().to_owned() })),
        }
    }

    /// Ends a command; asked twice, at once. The answer comes when it is over.
    ///
    /// # Errors
    /// See [`Reports::found`]; so with the others.
    pub(in crate::host) fn kill(
        &mut self,
        request: KillRequest,
        engine: &mut Engine,
        now: Instant,
    ) -> Result<(), RefusedOrder> {
        let KillRequest { peer, job, by, grace } = request;
        let (run, _) = self.found(job)?;
        if peer.is_some() {
            run.answer_at = Some(now + limits::KILL_ANSWER);
        }
        run.waiting.extend(peer);
        run.hurry(now);
        engine.stop(job, by, grace, now);
        Ok(())
    }

    /// Sends a signal to every process of a command.
    pub(in crate::host) fn signal(&mut self, job: JobId, signal: Signal) -> Result<(), RefusedOrder> {
        let (_, targets) = self.found(job)?;
        orphans::signal(&targets.all(), signal);
        Ok(())
    }

    /// Stops every process of a command. Returns its shim.
    pub(in crate::host) fn pause(&mut self, job: JobId, engine: &Engine) -> Result<Pid, RefusedOrder> {
        let (run, targets) = self.found(job)?;
        if engine.job(job).is_some_and(Job::is_stopping) {
            return Err(RefusedOrder::new(job, Obstacle::Ending));
        }
        let pid = match &targets {
            Targets::Below(shim) => shim.pid,
            Targets::Left(left) => left.first().ok_or(RefusedOrder::new(job, Obstacle::NotThere))?.pid,
        };
        let paused = run.paused.get_or_insert_default();
        paused.stop(limits::REPORT_PAUSE_ROUNDS_MAX, || targets.whole());
        Ok(pid)
    }

    pub(in crate::host) fn resume(&mut self, job: JobId) -> bool {
        self.of_job(job).is_some_and(ReportedRun::unpause)
    }

    /// The reason why nobody can type for this run. `None` when it is not a reported one.
    pub(in crate::host) fn no_terminal(&self, job: JobId) -> Option<Notice> {
        let (run, seq) = (self.get(job)?, job.0);
        let problem = format_args!("#{seq} runs in its sandbox ({}), where rexec has no terminal of it", run.sandbox());
        let hint = format!("its agent alone can answer it; rexec tail {seq} shows it, rexec kill {seq} ends it");
        Some(Notice::failed(problem, hint))
    }

    /// Signals the processes of a run that has to end, and answers peers that have waited long enough.
    pub(super) fn pursue(&mut self, key: RunKey, turn: &mut Turn, engine: &mut Engine, peers: &mut Peers) {
        let Some(job) = self.runs.get(&key).and_then(|run| run.job) else { return };
        let Some(known) = engine.job(job).filter(|known| known.is_stopping()) else { return };
        let killed_at = known.killed_at();
        let found = self.targets(key);
        let Some(run) = self.runs.get_mut(&key) else { return };
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
        run.look_again(turn.now + limits::REPORT_KILL_PAUSE);
        if run.answer_at.take_if(|at| *at <= turn.now).is_some() {
            let waiting = std::mem::take(&mut run.waiting);
            let unkillable = run.shim.map(|shim| shim.pid.number()).into_iter().collect();
            let answer = Answer::Kill { seq: job.0, unkillable, grace_left_ms: None };
            waiting.into_iter().for_each(|peer| peers.answer(peer, &answer, turn, engine));
        }
    }
}
