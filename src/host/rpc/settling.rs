//! Answers the requests that wait for something about a run, and passes on what clients write to it.
//!
//! Invariant: each request is answered once, when what it waits for has come, or when its time is over.

use std::time::Instant;

use super::kept_run::KeptRun;
use super::pending_reply::Awaiting;
use super::{Requester, RpcClients};
use crate::core::engine::JobId;
use crate::front::rpc::answers::{Met, OutputRest, RpcAnswer, WholeAnswer};
use crate::front::rpc::error::RpcError;
use crate::front::rpc::params::Encoding;
use crate::front::rpc::reply::put_chunks;
use crate::host::peers::Peers;
use crate::host::runs::{INPUT_PIECE_BYTES, InputState, Runs};
use crate::host::turn::Turn;
use crate::limits;

impl KeptRun {
    /// Answers the requests that wait no more.
    pub(super) fn settle(
        &mut self,
        job: JobId,
        clients: &mut RpcClients,
        now: Instant,
        peers: &mut Peers,
        runs: &Runs,
    ) {
        for mut reply in std::mem::take(&mut self.replies) {
            let is_late = reply.until.is_some_and(|until| until <= now);
            let answer = match &mut reply.waiting {
                Awaiting::Output { after, most, encoding } => {
                    let (after, most, encoding) = (*after, *most, *encoding);
                    let is_there = self.output.ring().last_seq() > after || self.end().is_some();
                    if is_there || is_late {
                        self.answer_output(&reply.to, (after, most, encoding), job, clients, peers);
                        clients.end_wait(reply.to.peer);
                        continue;
                    }
                    None
                }
                Awaiting::Restart(restart) => {
                    if self.is_closed() {
                        clients.end_wait(reply.to.peer);
                        clients.restarts.extend(restart.take().map(|restart| *restart));
                        continue;
                    }
                    None
                }
                Awaiting::Answer { parses } => {
                    let is_over = self.is_closed() && self.is_told(reply.to.peer);
                    let has_room = is_over && clients.has_room(reply.to.peer, job, peers);
                    has_room.then(|| self.whole_answer(job, *parses))
                }
                waiting => self
                    .awaited(job, &reply.to, waiting, now, runs)
                    .or(is_late.then(|| Met { met: "time", ..Met::default() }))
                    .map(RpcAnswer::Met),
            };
            match answer {
                Some(answer) => {
                    clients.answer(&reply.to, &answer, peers);
                    clients.end_wait(reply.to.peer);
                }
                None => self.replies.push(reply),
            }
        }
    }

    /// The answer to `exec.wait`, if there is one.
    fn awaited(&self, job: JobId, to: &Requester, waiting: &mut Awaiting, now: Instant, runs: &Runs) -> Option<Met> {
        match waiting {
            Awaiting::Text(search) => {
                for chunk in self.output.ring().after(search.seen) {
                    search.seen = chunk.seq;
                    if let Some(line) = search.look(chunk.stream, &chunk.bytes) {
                        return Some(Met { met: "text", line: Some(line), ..Met::default() });
                    }
                }
                if !self.is_closed() {
                    return None;
                }
            }
            Awaiting::Port { port, look_at } => {
                let wanted = *port;
                if now >= *look_at {
                    *look_at = now + limits::RPC_PORT_LOOK;
                    let is_wanted = |open: &u16| wanted.is_none_or(|port| port == *open);
                    if let Some(open) = runs.ports(job).into_iter().find(is_wanted) {
                        return Some(Met { met: "port", port: Some(open), ..Met::default() });
                    }
                }
            }
            _ => {}
        }
        let end = self.end().filter(|_| self.is_told(to.peer))?;
        Some(Met { met: "exit", exit: Some(end.exit), ..Met::default() })
    }

    /// The answer to `exec.run`.
    fn whole_answer(&mut self, job: JobId, parses: bool) -> RpcAnswer {
        let end = self.end().cloned().unwrap_or_default();
        let gathering = self.output.take_gathering();
        let answer = WholeAnswer::new(job.0, end, &gathering, parses).with_port_held(self.held().cloned());
        RpcAnswer::Whole(Box::new(answer))
    }

    fn answer_output(
        &self,
        to: &Requester,
        (after, most, encoding): (u64, usize, Encoding),
        job: JobId,
        clients: &mut RpcClients,
        peers: &mut Peers,
    ) {
        let (Some(id), Some(peer)) = (&to.id, peers.get_mut(to.peer)) else { return };
        let ring = self.output.ring();
        let mut bytes = 0;
        let chunks = ring.after(after).take_while(|chunk| {
            let fits = bytes == 0 || bytes + chunk.bytes.len() <= most;
            bytes += chunk.bytes.len();
            fits
        });
        let chunks: Vec<_> = chunks.collect();
        let (last, exit) = (chunks.last().map(|last| last.seq), self.end().map(|end| end.exit));
        let rest = OutputRest::new(job.0, ring, after, last, exit, self.is_closed());
        put_chunks(id, chunks.into_iter(), encoding, &rest, peer.out.buffer());
        clients.touched.insert(to.peer);
    }

    /// Passes on what clients have written, as far as the run takes it, and answers them.
    pub(super) fn feed(
        &mut self,
        job: JobId,
        clients: &mut RpcClients,
        turn: &mut Turn,
        peers: &mut Peers,
        runs: &mut Runs,
    ) {
        let is_over = self.end().is_some();
        while let Some(input) = self.inputs.front_mut() {
            match runs.input_state(job) {
                InputState::Full => return,
                InputState::Closed => {
                    let error = if is_over { RpcError::run_is_over(job.0) } else { RpcError::input_is_closed(job.0) };
                    clients.fail(&input.to, &error, peers);
                }
                InputState::Open => {
                    let rest = &input.bytes[input.taken..];
                    let piece = &rest[..rest.len().min(INPUT_PIECE_BYTES)];
                    let is_last = piece.len() == rest.len();
                    runs.write_input(job, piece, input.is_end && is_last, turn, peers);
                    input.taken += piece.len();
                    if !is_last {
                        continue;
                    }
                    clients.answer(&input.to, &RpcAnswer::Accepted { accepted: input.taken }, peers);
                }
            }
            if let Some(input) = self.inputs.pop_front() {
                clients.end_wait(input.to.peer);
            }
        }
    }
}
