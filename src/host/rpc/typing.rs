//! A person's client types at the terminal of a run whose input is not its own: it answers a prompt, or, while it sees the
//! terminal, uses it as `rexec attach` does.
//!
//! Invariants: one person at a time has a run's terminal; a client that sees it has it from the first key or size until
//! it sees it no more, any other one while it types; each write is answered once.

use super::RpcClients;
use super::kept_run::{InputWay, KeptRun, PendingInput};
use super::serve::RpcService;
use crate::core::engine::{Engine, JobId};
use crate::core::entry::AnswerPlace;
use crate::front::rpc::answers::Accepted;
use crate::front::rpc::error::RpcError;
use crate::front::rpc::methods::method;
use crate::host::answering::Answerer;
use crate::host::context::Context;
use crate::host::peers::Peers;
use crate::host::runs::{AnswerOver, AnswerWish, InputState, NoAnswer, Runs};
use crate::host::turn::{PeerId, Turn};

impl RpcService<'_> {
    /// The way on which what a client writes reaches a run.
    ///
    /// # Errors
    /// Nothing reaches it now.
    pub(in crate::host) fn input_way(&self, peer: PeerId, job: JobId) -> Result<InputWay, RpcError> {
        if self.commands.runs.input_state(job) != InputState::Closed {
            return Ok(InputWay::Input);
        }
        let sees = self.rpc.sees_terminal(peer, job);
        match self.commands.runs.check_answer(job, sees, self.commands.engine) {
            Ok(()) => Ok(InputWay::Keys),
            Err(NoAnswer::Taken(by)) if by == Answerer::Peer(peer) => Ok(InputWay::Keys),
            Err(why) => Err(no_keys(job, why)),
        }
    }

    /// Returns true if a client has the terminal of a run that it sees: from now on, if nobody has it.
    ///
    /// # Errors
    /// Somebody else has it.
    pub(super) fn has_terminal(&mut self, peer: PeerId, job: JobId) -> Result<bool, RpcError> {
        let by = Answerer::Peer(peer);
        if self.commands.runs.answerer(job) == Some(by) {
            return Ok(true);
        }
        let is_open = self.commands.runs.input_state(job) != InputState::Closed;
        if is_open || !self.rpc.sees_terminal(peer, job) {
            return Ok(false);
        }
        let wish = AnswerWish { by, place: AnswerPlace::Client, is_forced: true };
        let begun = self.commands.runs.begin_answer(job, wish, self.commands.engine);
        begun.map(|()| true).map_err(|why| no_keys(job, why))
    }
}

/// Nothing can be typed for a run whose input is not open.
fn no_keys(job: JobId, why: NoAnswer) -> RpcError {
    let run = job.0;
    match why {
        NoAnswer::NotRunning | NoAnswer::NotWaiting | NoAnswer::NoTerminal => RpcError::input_is_closed(run),
        NoAnswer::AtItsCaller => {
            let message = format!("run {run} is on its caller's terminal");
            RpcError { message, ..RpcError::input_is_closed(run) }.hint("the person there types for it")
        }
        NoAnswer::Taken(_) => {
            RpcError::busy(format!("somebody else types for run {run}")).hint("wait until that is over")
        }
        NoAnswer::TooManyKeys => {
            RpcError::busy(format!("run {run} has not read what was typed before")).hint("try again later")
        }
    }
}

impl RpcClients {
    /// Returns true if a client sees what a run's terminal shows.
    pub(super) fn sees_terminal(&self, peer: PeerId, job: JobId) -> bool {
        self.terminals.get(&job).is_some_and(|watchers| watchers.iter().any(|watcher| watcher.is_of(peer)))
    }

    /// Takes the terminals of these runs from a client that does not see them any more.
    pub(super) fn leave_terminals(&self, peer: PeerId, jobs: &[JobId], runs: &mut Runs, engine: &mut Engine) {
        for &job in jobs {
            if runs.answerer(job) == Some(Answerer::Peer(peer)) && !self.sees_terminal(peer, job) {
                runs.leave_answer(job, engine);
            }
        }
    }

    /// A person's answer is over. Returns false if no client of this door has given it.
    pub(in crate::host) fn on_typed(&mut self, over: &AnswerOver, turn: &mut Turn, peers: &mut Peers) -> bool {
        let Answerer::Peer(peer) = over.by else { return false };
        if !self.all.contains_key(&peer) {
            return false;
        }
        let Some(mut run) = self.kept.remove(&over.job) else { return true };
        let is_its = |input: &PendingInput| input.way == InputWay::Typed && input.to.peer == peer;
        if run.inputs.front().is_some_and(is_its)
            && let Some(input) = run.inputs.pop_front()
        {
            if over.is_complete {
                self.answer::<method::Write>(&input.to, &Accepted { accepted: input.bytes.len() }, peers);
            } else {
                self.fail(&input.to, &RpcError::run_is_over(over.job.0), peers);
            }
            self.end_wait(peer);
            turn.touch(over.job);
        }
        self.kept.insert(over.job, run);
        true
    }
}

impl KeptRun {
    /// Types the first input, which goes to the terminal. Returns true if that is done, and false while it waits.
    pub(super) fn type_first(&mut self, clients: &mut RpcClients, runs: &mut Runs, cx: &mut Context<'_>) -> bool {
        let job = self.job();
        let Some(input) = self.inputs.front_mut() else { return false };
        let (by, sees) = (Answerer::Peer(input.to.peer), clients.sees_terminal(input.to.peer, job));
        let begun = if runs.answerer(job) == Some(by) {
            Ok(())
        } else {
            let wish = AnswerWish { by, place: AnswerPlace::Client, is_forced: sees };
            runs.begin_answer(job, wish, cx.engine)
        };
        let typed = begun.and_then(|()| runs.type_answer(job, &input.bytes, cx.engine));
        runs.prompts.on_key(cx.turn.now);
        // What is over is told in the next turn.
        cx.turn.touch(job);
        match typed {
            Ok(()) if sees => {
                clients.answer::<method::Write>(&input.to, &Accepted { accepted: input.bytes.len() }, cx.peers);
                true
            }
            Ok(()) => {
                input.way = InputWay::Typed;
                runs.finish_answer(job, cx.engine);
                false
            }
            Err(why) => {
                if !sees {
                    runs.end_answer_of(job, by, cx.engine);
                }
                let error = match why {
                    NoAnswer::NotRunning => RpcError::run_is_over(job.0),
                    why => no_keys(job, why),
                };
                clients.fail(&input.to, &error, cx.peers);
                true
            }
        }
    }
}
