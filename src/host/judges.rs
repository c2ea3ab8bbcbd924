//! Judges: helper processes that ask the person's rules about calls that are too long to be read within a turn, or that
//! signal processes, which one has to look at.
//!
//! Invariants: the loop never waits for one; at most [`limits::JUDGES_MAX`] work at once, and the other calls wait in the
//! order in which they came; one that has not answered within [`limits::JUDGE_WAIT`] is killed, and what it was to
//! find counts as not known.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use super::rule_layers::RuleLayers;
use super::turn::{Source, Turn};
use crate::core::engine::JobId;
use crate::guard::orphans;
use crate::io::poller::Ready;
use crate::io::port::{Port, ReadOutcome};
use crate::limits;
use crate::sys::{self, helper};
use rexec_sh::protocol::process::Pid;

#[derive(Debug, Default)]
pub(super) struct Judges {
    at_work: Vec<Judge>,
    waiting: VecDeque<OpenCall>,
}

/// A call that is to be judged.
#[derive(Debug)]
pub(super) struct OpenCall {
    pub(super) job: JobId,
    /// Where it begins.
    pub(super) directory: Vec<u8>,
    /// Those that held when it came.
    pub(super) rules: RuleLayers,
}

#[derive(Debug)]
struct Judge {
    call: OpenCall,
    pid: Pid,
    port: Port,
    answer: Vec<u8>,
    until: Instant,
}

impl Judges {
    pub(super) fn add(&mut self, call: OpenCall) {
        self.waiting.push_back(call);
    }

    /// The next call that a judge can be made for.
    pub(super) fn next_waiting(&mut self) -> Option<OpenCall> {
        if self.at_work.len() >= limits::JUDGES_MAX {
            return None;
        }
        self.waiting.pop_front()
    }

    /// Makes a judge that answers with what `judge` returns.
    ///
    /// # Errors
    /// The call. There is no room for another process or descriptor.
    pub(super) fn begin(
        &mut self,
        call: OpenCall,
        judge: impl FnOnce() -> Vec<u8>,
        turn: &mut Turn,
    ) -> Result<(), OpenCall> {
        let begun = || -> io::Result<(Port, Pid)> {
            let (near, far) = sys::pipe()?;
            let pid = helper::fork(c"rexec-judge", &[far.as_raw_fd()], || _ = sys::write(&far, &judge()))?;
            Ok((Port::new(&mut turn.poller, near)?, pid))
        };
        let Ok((port, pid)) = begun() else { return Err(call) };
        turn.name(port.token(), Source::Judge(call.job));
        self.at_work.push(Judge { call, pid, port, answer: Vec::new(), until: turn.now + limits::JUDGE_WAIT });
        Ok(())
    }

    pub(super) fn remember(&mut self, job: JobId, event: Ready) -> bool {
        let judge = self.at_work.iter_mut().find(|judge| judge.call.job == job);
        judge.into_iter().for_each(|judge| judge.port.remember(event));
        event.readable
    }

    /// Reads what the judge of a call says. Returns the call and the answer once that is whole.
    pub(super) fn visit(&mut self, job: JobId, turn: &mut Turn) -> Option<(OpenCall, Vec<u8>)> {
        let at = self.at_work.iter().position(|judge| judge.call.job == job)?;
        let judge = &mut self.at_work[at];
        let mut piece = [0; 4 << 10];
        loop {
            match judge.port.read(|fd| sys::read(fd, &mut piece)) {
                ReadOutcome::Bytes(length) => judge.answer.extend_from_slice(&piece[..length]),
                ReadOutcome::Nothing => return None,
                ReadOutcome::End => return Some(self.end(at, turn)),
            }
        }
    }

    /// A call whose judge has taken too long.
    pub(super) fn next_late(&mut self, turn: &mut Turn) -> Option<OpenCall> {
        let at = self.at_work.iter().position(|judge| judge.until <= turn.now)?;
        orphans::kill_child(self.at_work[at].pid);
        Some(self.end(at, turn).0)
    }

    fn end(&mut self, at: usize, turn: &mut Turn) -> (OpenCall, Vec<u8>) {
        let Judge { call, port, answer, .. } = self.at_work.swap_remove(at);
        turn.close(port);
        (call, answer)
    }

    /// When the next one has taken too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.at_work.iter().map(|judge| judge.until).min()
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.at_work.iter().map(|judge| judge.pid)
    }

    /// Ends the judges with the host.
    pub(super) fn close(&self) {
        self.pids().for_each(orphans::kill_child);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::super::rules::Rules;
    use super::*;
    use crate::gate::Gate;
    use crate::io::poller::Poller;
    use crate::sys::process;

    fn call(job: u64) -> OpenCall {
        let rules = Rc::new(Rules::new(Gate::default()));
        let rules = RuleLayers::of(std::iter::once(rules)).expect("a layer");
        OpenCall { job: JobId(job), directory: b"/".to_vec(), rules }
    }

    fn jobs_left(judges: &mut Judges) -> Vec<u64> {
        std::iter::from_fn(|| judges.next_waiting()).map(|call| call.job.0).collect()
    }

    #[test]
    fn one_that_does_not_answer_is_killed_and_makes_room_for_the_next() {
        let mut turn = Turn::new(Poller::new().expect("a poll"));
        let mut judges = Judges::default();
        for job in 0..limits::JUDGES_MAX as u64 {
            let never = || loop {
                std::thread::park();
            };
            judges.begin(call(job), never, &mut turn).expect("a judge");
        }
        judges.add(call(8));
        judges.add(call(9));
        assert_eq!(jobs_left(&mut judges), [0; 0]);
        let pid = judges.pids().next().expect("a judge");
        assert!(judges.next_late(&mut turn).is_none());
        turn.now = judges.deadline().expect("a deadline");
        assert_eq!(judges.next_late(&mut turn).map(|call| call.job), Some(JobId(0)));
        assert!(process::comes_true_within(limits::JUDGE_WAIT, || !process::is_living_child(pid)));
        assert_eq!(jobs_left(&mut judges), [8, 9]);
        judges.close();
        for pid in judges.pids() {
            assert!(process::comes_true_within(limits::JUDGE_WAIT, || !process::is_living_child(pid)));
        }
    }
}
