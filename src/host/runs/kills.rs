//! Ends commands, and what they left running, for people, and answers the peers that wait for it.
//!
//! Invariants: a peer that asked for an end is answered once: when the command's tree is empty, when its guard has given
//! up, or when the time for an answer is over; what a shell left running gets the same grace as a running command.

use std::time::{Duration, Instant};

use super::{Due, Runs};
use crate::core::end::Stopper;
use crate::core::engine::{Engine, JobId};
use crate::core::job::{Job, Order};
use crate::front::answer::Answer;
use crate::host::context::Context;
use crate::host::run::LeftOver;
use crate::host::turn::{PeerId, Turn};
use crate::limits;
use rexec_sh::protocol::process::Pid;

/// A request to [`Runs::kill`].
#[derive(Debug, Clone, Copy)]
pub(in crate::host) struct KillRequest {
    /// The peer that waits for the answer. The console does not.
    pub(in crate::host) peer: Option<PeerId>,
    pub(in crate::host) job: JobId,
    pub(in crate::host) by: Stopper,
    pub(in crate::host) grace: Duration,
}

impl Runs {
    /// Ends a command or what it left running; asked twice, at once. The answer comes when it is over. Returns true if
    /// that begins to end what was left.
    pub(in crate::host) fn kill(&mut self, request: KillRequest, turn: &mut Turn, engine: &mut Engine) -> bool {
        let KillRequest { peer, job, by, grace } = request;
        let Some(run) = self.get_mut(job) else { return false };
        run.ending.waiting.extend(peer);
        run.ending.is_given_up = false;
        let is_first = run.ending.left_over == LeftOver::Untouched;
        if peer.is_some() {
            self.timers.set_by(Due::KillAnswer(job), turn.now + limits::KILL_ANSWER);
        }
        let is_left = engine.job(job).is_none_or(Job::has_ended);
        if !is_left {
            engine.stop(job, by, grace, turn.now);
        } else if is_first {
            self.pursue(job, LeftOver::Terminated, turn, engine);
            self.timers.set(Due::Kill(job), turn.now + grace);
        } else {
            self.pursue(job, LeftOver::Killed, turn, engine);
        }
        turn.touch(job);
        is_left && is_first
    }

    /// Ends what a command left running, in this way.
    pub(super) fn pursue(&mut self, job: JobId, stage: LeftOver, turn: &mut Turn, engine: &mut Engine) {
        if let Some(run) = self.get_mut(job) {
            run.ending.left_over = stage;
        }
        let is_kill = stage == LeftOver::Killed;
        self.pursue_orphans(job, is_kill, turn, engine);
        self.order(job, if is_kill { Order::Kill } else { Order::Terminate }, turn.now);
    }

    /// Returns true while the host ends anything that was left running.
    pub(in crate::host) fn are_pursued(&self) -> bool {
        self.all.values().any(|run| run.ending.is_pursued())
    }

    /// The host ends: ends that a person asked for take no longer than this.
    pub(in crate::host) fn hurry_endings(&mut self, grace: Duration, now: Instant) {
        let kills = self.all.keys().map(|&job| Due::Kill(job)).filter(|&due| self.timers.at(due).is_some());
        kills.collect::<Vec<_>>().into_iter().for_each(|due| self.timers.set_by(due, now + grace));
    }

    /// Answers the peers that wait for an end that has not come in time.
    pub(super) fn answer_late(&mut self, job: JobId, cx: &mut Context<'_>) {
        let Some(run) = self.get(job).filter(|run| !run.ending.waiting.is_empty()) else { return };
        let killed_at = self.timers.at(Due::Kill(job)).or_else(|| cx.engine.job(job)?.killed_at());
        let grace_left = killed_at.map(|at| at.saturating_duration_since(cx.turn.now));
        let living = run.processes().into_iter().take(limits::STRAGGLERS_NAMED_MAX).map(|process| process.pid.number());
        let unkillable = if grace_left.is_some() { Vec::new() } else { living.collect() };
        let grace_left_ms = grace_left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        let answer = Answer::Kill { seq: job.0, unkillable, grace_left_ms };
        self.answer_all(job, &answer, cx);
    }

    /// A command's tree is empty, or these processes of it cannot be killed.
    pub(super) fn answer_ending(&mut self, job: JobId, unkillable: Vec<Pid>, cx: &mut Context<'_>) {
        let unkillable = unkillable.into_iter().map(Pid::number).collect();
        let answer = Answer::Kill { seq: job.0, unkillable, grace_left_ms: None };
        self.answer_all(job, &answer, cx);
    }

    fn answer_all(&mut self, job: JobId, answer: &Answer, cx: &mut Context<'_>) {
        let Some(run) = self.get_mut(job) else { return };
        let waiting = std::mem::take(&mut run.ending.waiting);
        waiting.into_iter().for_each(|peer| cx.peers.answer(peer, answer, cx.turn, cx.engine));
    }
}
