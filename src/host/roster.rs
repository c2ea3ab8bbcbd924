//! The roster: what runs, as the `rexec` command asks for it, and the end of what a person wants ended.
//!
//! Invariants: only callers that could run commands here learn of others' or end them; who asked for an end is answered
//! once, when the command's tree is empty or its guard has given up, and in any case in time; what is left over after a shell's end gets the same
//! grace as a command that runs.

use std::time::Duration;

use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;

use super::{Host, PeerId};
use crate::core::engine::JobId;
use crate::core::entry::Reason;
use crate::core::job::Order;
use crate::core::process::Pid;
use crate::front::answer::{Answer, Listed, RunState};
use crate::front::command::Command;
use crate::front::protocol::Protocol;
use crate::guard::spawn;
use crate::limits;
use crate::sys::confinement::{Doubt, Purpose};

/// What people want to know of a command while it is there.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) shell: String,
    whoami: String,
    pub(super) dir: String,
    command: String,
    /// It came as words: directory and program are as the caller named them.
    pub(super) is_words: bool,
    pub(super) kills_group: bool,
}

impl Identity {
    pub(super) fn of(command: &Command, dir: &[u8]) -> Self {
        let clipped = |bytes: &[u8]| {
            let most = bytes.len().min(limits::ROSTER_TEXT_BYTES);
            String::from_utf8_lossy(&bytes[..most]).into_owned()
        };
        Self {
            shell: clipped(command.shell.as_bytes()),
            whoami: clipped(command.whoami.as_bytes()),
            dir: clipped(dir),
            command: clipped(&command.text),
            is_words: command.dir.is_some(),
            kills_group: command.kills_group,
        }
    }
}

/// How far the end of what a command left over has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LeftOver {
    /// Nobody asked for it.
    #[default]
    No,
    /// It got TERM, and gets KILL when the grace is over.
    Terminated,
    /// Its guard hunts it.
    Killed,
}

/// The end of a command as a person asked for it.
#[derive(Debug, Default)]
pub(super) struct Ending {
    /// Who waits for it.
    waiting: Vec<PeerId>,
    left_over: LeftOver,
    /// Nothing more can be done about what still lives.
    is_given_up: bool,
    /// What could not be killed, until it was told.
    pub(super) unkillable: Vec<Pid>,
}

impl Ending {
    /// Whether what was left over is to be dead by now.
    pub(super) fn is_killed(&self) -> bool {
        self.left_over == LeftOver::Killed && !self.is_given_up
    }

    /// Whether the end of what was left over is under way.
    pub(super) fn is_pursued(&self) -> bool {
        self.left_over != LeftOver::No && !self.is_given_up
    }
}

impl Host {
    /// Answers with everything that is there.
    pub(super) fn list(&mut self, peer: PeerId) {
        if self.examine_supervisor(peer) {
            self.take_stock();
            let runs = self.runs.keys().map(|&job| self.listed(job)).collect();
            self.answer(peer, &Answer::List { runs });
        }
    }

    /// Sees what lives on without its guard, and continues guards that only watch: no order does that, and one that is
    /// stopped does not notice the end of what it watches.
    fn take_stock(&mut self) {
        for job in self.owing.clone() {
            self.look_after(job);
        }
        for link in self.runs.values().filter_map(|run| run.guard.as_ref()).filter(|link| link.shell_is_over) {
            spawn::wake(link.pid, link.control.fd());
        }
    }

    fn listed(&self, job: JobId) -> Listed {
        let run = &self.runs[&job];
        let state = match self.engine.job(job) {
            Some(known) if known.is_queued() => RunState::Queued,
            Some(known) if known.is_stopping() => RunState::Stopping,
            Some(known) if !known.is_closed() => RunState::Running,
            _ if run.ending.left_over != LeftOver::No => RunState::Stopping,
            _ => RunState::Left,
        };
        let age = self.now.saturating_duration_since(run.accepted);
        Listed {
            seq: job.0,
            state,
            age_ms: u64::try_from(age.as_millis()).unwrap_or(u64::MAX),
            whoami: run.identity.whoami.clone(),
            dir: run.identity.dir.clone(),
            command: run.identity.command.clone(),
            guard: run.guard_pid().map(Pid::number),
            orphans: run
                .bereft
                .iter()
                .flat_map(|bereft| bereft.living.iter().map(|process| process.pid.number()))
                .collect(),
        }
    }

    /// Ends a command or what it left running; asked twice, at once. The answer comes when it is over.
    pub(super) fn kill(&mut self, peer: PeerId, seq: u64) {
        if !self.examine_supervisor(peer) {
            return;
        }
        let (job, grace) = (JobId(seq), self.options.grace);
        let Some(run) = self.runs.get_mut(&job) else {
            let notice = Notice::failed(format_args!("no command #{seq} runs"), "rexec ps shows what runs");
            return self.part(peer, &notice);
        };
        run.ending.waiting.push(peer);
        run.ending.is_given_up = false;
        let is_first = run.ending.left_over == LeftOver::No;
        self.answers.insert((self.now + limits::KILL_ANSWER, job));
        self.end_greeting(peer);
        if self.engine.job(job).is_some_and(|known| !known.is_closed()) {
            self.engine.stop(job, Reason::Asked, grace, self.now);
        } else if is_first {
            self.console.say(&format!("… stopping what #{seq} left running: you asked"), self.screen.out.buffer());
            self.pursue(job, LeftOver::Terminated, Order::Terminate);
            self.endings.insert((self.now + grace, job));
        } else {
            self.pursue(job, LeftOver::Killed, Order::Kill);
        }
        self.dirty.insert(job);
    }

    fn pursue(&mut self, job: JobId, stage: LeftOver, order: Order) {
        if let Some(run) = self.runs.get_mut(&job) {
            run.ending.left_over = stage;
        }
        self.pursue_bereft(job, stage == LeftOver::Killed);
        self.order(job, order);
    }

    /// Gives what a person wants ended no longer than this.
    pub(super) fn hurry_endings(&mut self, grace: Duration) {
        let latest = self.now + grace;
        let endings = std::mem::take(&mut self.endings);
        self.endings = endings.into_iter().map(|(at, job)| (at.min(latest), job)).collect();
    }

    /// Kills what was left over and did not go by itself.
    pub(super) fn tick_endings(&mut self) {
        while let Some(&(at, job)) = self.endings.first().filter(|(at, _)| *at <= self.now) {
            self.endings.remove(&(at, job));
            self.pursue(job, LeftOver::Killed, Order::Kill);
        }
        while let Some(&(at, job)) = self.answers.first().filter(|(at, _)| *at <= self.now) {
            self.answers.remove(&(at, job));
            self.answer_late(job);
        }
    }

    /// Answers those who wait for an end that has not come in time.
    fn answer_late(&mut self, job: JobId) {
        let Some(run) = self.runs.get(&job).filter(|run| !run.ending.waiting.is_empty()) else { return };
        let killed_at = self.endings.iter().find(|(_, other)| *other == job).map(|&(at, _)| at);
        let killed_at = killed_at.or_else(|| self.engine.job(job)?.killed_at());
        let grace_left = killed_at.map(|at| at.saturating_duration_since(self.now));
        let living = run.processes().into_iter().take(limits::STRAGGLERS_NAMED_MAX).map(|process| process.pid.number());
        let unkillable = if grace_left.is_some() { Vec::new() } else { living.collect() };
        let grace_left_ms = grace_left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        self.answer_all(job, &Answer::Kill { seq: job.0, unkillable, grace_left_ms });
    }

    /// Whether a caller may see and end what others run. If not, it has been answered.
    fn examine_supervisor(&mut self, peer: PeerId) -> bool {
        match self.doubt(peer, Purpose::Supervise) {
            None => return true,
            Some(Doubt::Shortage) => self.part(peer, &super::BUSY),
            Some(Doubt::Differs(why)) => {
                let problem = format_args!(
                    "the caller is sandboxed ({why}): it sees and ends no commands outside of its sandbox"
                );
                self.part(peer, &Notice::new(OWN_FAILURE, problem, "run rexec where rexec-host runs"));
            }
        }
        false
    }

    /// A guard has reported what it could not kill, if it has.
    pub(super) fn tell_unkillable(&mut self, job: JobId) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let pids = std::mem::take(&mut run.ending.unkillable);
        if !pids.is_empty() {
            run.ending.is_given_up = true;
            self.answer_ending(job, pids);
        }
    }

    /// A command's tree is empty, or its guard can do no more.
    pub(super) fn answer_ending(&mut self, job: JobId, unkillable: Vec<Pid>) {
        self.answer_all(
            job,
            &Answer::Kill {
                seq: job.0,
                unkillable: unkillable.into_iter().map(Pid::number).collect(),
                grace_left_ms: None,
            },
        );
    }

    fn answer_all(&mut self, job: JobId, answer: &Answer) {
        let Some(run) = self.runs.get_mut(&job) else { return };
        let waiting = std::mem::take(&mut run.ending.waiting);
        waiting.into_iter().for_each(|peer| self.answer(peer, answer));
    }

    fn answer(&mut self, id: PeerId, answer: &Answer) {
        if let Some(peer) = self.peers.get_mut(&id)
            && let Protocol::Jsonl(jsonl) = &mut peer.protocol
        {
            jsonl.answer(answer, peer.out.buffer());
            self.farewell(id);
        }
    }
}
