//! Writes to runs, changes the size of their terminals, signals and ends them.

use std::time::Duration;

use super::Requester;
use super::kept_run::{InputWay, PendingInput};
use super::serve::RpcService;
use crate::core::end::Stopper;
use crate::core::engine::JobId;
use crate::front::TerminalEvent;
use crate::front::rpc::answers::{Cancelled, Done};
use crate::front::rpc::error::{BAD_PARAMS, RpcError};
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::{CancelParams, ResizeParams, RunParams, SignalParams, WriteParams};
use crate::host::context::Context;
use crate::host::refused_order::{Obstacle, RefusedOrder};
use crate::host::runs::KillRequest;
use crate::host::spares::END_OF_FILE;
use crate::host::supervision::Commands;
use crate::limits;
use crate::sys::pty;

/// Queues input for a run. The answer comes when the run has taken it.
impl Serve<method::Write, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: WriteParams) -> Served<method::Write> {
        let bytes = match (params.text, params.base64) {
            (Some(_), Some(_)) => return Err(RpcError::new(BAD_PARAMS, "base64: text is given, too")),
            (Some(text), None) => text.into_bytes(),
            (None, Some(bytes)) => bytes,
            (None, None) if params.eof => Vec::new(),
            (None, None) => return Err(RpcError::new(BAD_PARAMS, "text: missing, and so are base64 and eof")),
        };
        let job = JobId(params.run);
        self.running(job)?;
        let way = self.input_way(to.peer, job)?;
        let run = self.kept(job)?;
        let waiting: usize = run.inputs.iter().map(|input| input.bytes.len()).sum();
        if waiting > 0 && waiting + bytes.len() > limits::RPC_INPUT_BYTES {
            let sentence = format!("run {} has not read what was written before", job.0);
            return Err(RpcError::busy(sentence).hint("wait for the answers to earlier writes"));
        }
        let mut input = PendingInput { to: to.clone(), bytes, taken: 0, is_end: params.eof, way };
        if way == InputWay::Keys && params.eof {
            input.bytes.extend_from_slice(END_OF_FILE);
        }
        run.inputs.push_back(input);
        self.rpc.meet(to.peer).waiting += 1;
        self.commands.turn.touch(job);
        Ok(None)
    }
}

impl RpcService<'_> {
    /// A run that is not over. It is over for a client from the moment its exit can be told, although a process that
    /// it left may hold its output open a little longer.
    fn running(&mut self, job: JobId) -> Result<(), RpcError> {
        match self.kept(job).map(|run| run.end().is_some()) {
            Ok(true) => Err(RpcError::run_is_over(job.0)),
            Ok(false) => Ok(()),
            Err(_) if self.commands.keeper(job).is_some() => Err(RpcError::run_has_left(job.0)),
            Err(unknown) => Err(unknown),
        }
    }

    fn refused(&self, refused: &RefusedOrder) -> RpcError {
        let RefusedOrder { job, why } = refused;
        match why {
            Obstacle::NotThere if !self.rpc.kept.contains_key(job) => RpcError::no_such_run(job.0),
            _ => refused.for_program(),
        }
    }
}

impl Serve<method::Resize, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: ResizeParams) -> Served<method::Resize> {
        let job = JobId(params.run);
        self.running(job)?;
        if params.rows == 0 || params.cols == 0 {
            return Err(RpcError::new(BAD_PARAMS, "rows: rows and cols begin at 1"));
        }
        if self.has_terminal(to.peer, job)? {
            self.commands.runs.size_answer(job, pty::Size { rows: params.rows, cols: params.cols });
            return Ok(Some(Done {}));
        }
        let has_terminal = self.commands.runs.get(job).is_some_and(|run| run.relay.is_some() && run.peer.is_none());
        if !has_terminal {
            let sentence = format!("run: {} has no terminal of its own that has begun", job.0);
            return Err(RpcError::new(BAD_PARAMS, sentence).hint("start it with \"mode\":\"pty\""));
        }
        let size = TerminalEvent::Size(params.rows, params.cols);
        let Commands { turn, engine, peers, runs, .. } = &mut self.commands;
        runs.at_terminal(job, size, &mut Context { turn, engine, peers });
        Ok(Some(Done {}))
    }
}

impl Serve<method::Signal, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: SignalParams) -> Served<method::Signal> {
        let Some(signal) = params.signal.signal() else {
            return Err(RpcError::new(BAD_PARAMS, "signal: neither a number from 1 to 64 nor the name of a signal"));
        };
        let job = JobId(params.run);
        self.running(job)?;
        let done = self.commands.control(job).and_then(|run| run.signal(signal));
        done.map_err(|refused| self.refused(&refused))?;
        Ok(Some(Done {}))
    }
}

impl Serve<method::Pause, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: RunParams) -> Served<method::Pause> {
        let done = self.commands.pause(JobId(params.run), "a client asked");
        done.map_err(|refused| self.refused(&refused))?;
        Ok(Some(Done {}))
    }
}

impl Serve<method::Resume, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: RunParams) -> Served<method::Resume> {
        let done = self.commands.resume(JobId(params.run));
        done.map_err(|refused| self.refused(&refused))?;
        Ok(Some(Done {}))
    }
}

impl Serve<method::Cancel, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: CancelParams) -> Served<method::Cancel> {
        let job = JobId(params.run);
        let grace = params.grace_ms.map_or(self.commands.grace, Duration::from_millis).min(limits::GRACE_MAX);
        if let Some(known) = self.commands.engine.job(job).filter(|known| !known.has_ended()) {
            // An ended command does not run, although some of its output is unread.
            let running = known.is_queued() || known.is_running();
            let is_its_own = self.rpc.meet(to.peer).foreground.contains(&job);
            let by = if is_its_own { Stopper::CallerAsked } else { Stopper::Client };
            if is_its_own {
                self.commands.engine.stop(job, by, grace, self.commands.turn.now);
                return Ok(Some(Cancelled { running }));
            }
            let ended = self.commands.end_run(KillRequest { peer: None, job, by, grace });
            return ended.map(|()| Some(Cancelled { running })).map_err(|refused| self.refused(&refused));
        }
        if self.commands.keeper(job).is_none() {
            self.kept(job)?;
        } else {
            // Processes that it left running end, too.
            let _ = self.commands.end_run(KillRequest { peer: None, job, by: Stopper::Client, grace });
        }
        Ok(Some(Cancelled { running: false }))
    }
}
