//! Signals, pauses and resumes reported runs for people.
//!
//! Invariants: signals go only to what is below the run's shim, after the shim was found again; what a pause has
//! stopped goes on when the run is resumed, told to end, or forgotten.

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::{Pid, Signal};

use super::Reports;
use super::run::ReportedRun;
use super::shim_identity::Targets;
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::guard::orphans;
use crate::host::Host;
use crate::host::run::Description;
use crate::host::supervision::not_there;
use crate::limits;
use crate::text::redact::Redactor;

impl Reports {
    /// A run and its processes, found again.
    ///
    /// # Errors
    /// There is no such run, or its shim cannot be found.
    pub(super) fn found(&mut self, job: JobId) -> Result<(&mut ReportedRun, Targets), Notice> {
        let key = self.key_of(job).ok_or_else(|| not_there(job))?;
        let found = self.targets(key);
        let run = self.of_job(job).ok_or_else(|| not_there(job))?;
        if let Some(targets) = found {
            return Ok((run, targets));
        }
        let problem =
            format_args!("#{} runs in its sandbox ({}), and its process cannot be found", job.0, run.sandbox());
        Err(Notice::failed(problem, "end it in its agent"))
    }

    pub(in crate::host) fn description(&mut self, job: JobId) -> Option<&Description> {
        self.of_job(job)?.description.as_ref()
    }

    /// Masks a reported run's secrets for agents. `None` if the host does not do that.
    pub(in crate::host) fn secrets(&self, job: JobId) -> Option<&Redactor> {
        let run = self.runs.values().find(|run| run.job == Some(job))?;
        run.description.as_ref()?.secrets.as_ref()
    }

    /// The reason why nobody can type for this run. `None` when it is not a reported one.
    pub(in crate::host) fn no_terminal(&mut self, job: JobId) -> Option<Notice> {
        let (run, seq) = (self.of_job(job)?, job.0);
        let problem = format_args!("#{seq} runs in its sandbox ({}), where rexec has no terminal of it", run.sandbox());
        let hint = format!("its agent alone can answer it; rexec tail {seq} shows it, rexec kill {seq} ends it");
        Some(Notice::failed(problem, hint))
    }
}

impl Host {
    /// Sends a signal to every process of a reported command.
    pub(in crate::host) fn signal_reported(&mut self, job: JobId, signal: Signal) -> Result<(), Notice> {
        let (_, targets) = self.reports.found(job)?;
        orphans::signal(&targets.all(), signal);
        Ok(())
    }

    /// Stops every process of a reported command. Returns its shim.
    pub(in crate::host) fn pause_reported(&mut self, job: JobId) -> Result<Pid, Notice> {
        let (run, targets) = self.reports.found(job)?;
        if self.engine.job(job).is_some_and(Job::is_stopping) {
            let problem = format_args!("#{} cannot be paused: it is about to end", job.0);
            return Err(Notice::failed(problem, "rexec ps shows what runs"));
        }
        let pid = match &targets {
            Targets::Below(shim) => shim.pid,
            Targets::Left(left) => left.first().ok_or_else(|| not_there(job))?.pid,
        };
        let paused = run.paused.get_or_insert_default();
        paused.stop(limits::REPORT_PAUSE_ROUNDS_MAX, || targets.whole());
        Ok(pid)
    }

    /// Resumes a reported command. Returns `false` when it is not paused.
    pub(in crate::host) fn resume_reported(&mut self, job: JobId) -> bool {
        self.reports.of_job(job).is_some_and(ReportedRun::unpause)
    }
}
