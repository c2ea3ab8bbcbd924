//! Answers the requests that wait for something about a run, and passes on the input that clients write to it.
//!
//! Invariant: each request is answered once, when what it waits for has come, or when its time is over.

use std::collections::BTreeMap;
use std::time::Instant;

use super::kept_run::{InputWay, KeptRun};
use super::pending_reply::{Awaiting, PendingReply, WantedOutput};
use super::{Requester, RpcClients};
use crate::front::rpc::answers::{Accepted, Met, OutputRest, WholeAnswer};
use crate::front::rpc::error::RpcError;
use crate::front::rpc::methods::method;
use crate::front::rpc::reply::put_chunks;
use crate::host::context::Context;
use crate::host::peers::Peers;
use crate::host::runs::{INPUT_PIECE_BYTES, InputPiece, InputState, Runs};
use crate::limits;

impl KeptRun {
    /// Answers the requests whose wait is over.
    pub(super) fn settle(&mut self, clients: &mut RpcClients, runs: &mut Runs, now: Instant, peers: &mut Peers) {
        let job = self.job();
        self.texts.follow(self.output.ring());
        let found = self.texts.take_found();
        let (before, waits_for_text) = (self.replies.len(), |reply: &PendingReply| reply.text().is_some());
        let has_texts = self.replies.iter().any(waits_for_text);
        for mut reply in std::mem::take(&mut self.replies) {
            let is_late = reply.until.is_some_and(|until| until <= now);
            let is_answered = match &mut reply.waiting {
                Awaiting::Output { wanted, is_due } => {
                    let wanted = *wanted;
                    *is_due |= is_late || self.output.ring().last_seq() > wanted.after || self.end().is_some();
                    if *is_due {
                        // From now on it waits for room, and not for a time.
                        reply.until = None;
                    }
                    if *is_due && clients.has_room(reply.to.peer, job, peers) {
                        self.answer_output(&reply.to, wanted, clients, peers);
                        true
                    } else {
                        false
                    }
                }
                Awaiting::Restart(restart) => {
                    if self.is_closed() {
                        clients.restarts.extend(restart.take().map(|restart| *restart));
                    }
                    self.is_closed()
                }
                Awaiting::Answer { parses } => {
                    let is_over = self.is_closed() && self.is_told(reply.to.peer);
                    let has_room = is_over && clients.has_room(reply.to.peer, job, peers);
                    if has_room {
                        let answer = self.whole_answer(*parses);
                        clients.answer::<method::Run>(&reply.to, &answer, peers);
                    }
                    has_room
                }
                Awaiting::Exit | Awaiting::Port { .. } | Awaiting::Text(_) | Awaiting::Time => {
                    let met = self.awaited(&mut reply, &found, now, runs);
                    let met = met.or(is_late.then(|| Met { met: "time".into(), ..Met::default() }));
                    if let Some(met) = &met {
                        clients.answer::<method::Wait>(&reply.to, met, peers);
                    }
                    met.is_some()
                }
            };
            if is_answered {
                clients.end_wait(reply.to.peer);
            } else {
                self.replies.push(reply);
            }
        }
        if has_texts && self.replies.len() < before {
            self.forget_texts();
        }
    }

    /// The answer to `exec.wait`, if there is one.
    fn awaited(
        &self,
        reply: &mut PendingReply,
        found: &BTreeMap<Box<[u8]>, String>,
        now: Instant,
        runs: &mut Runs,
    ) -> Option<Met> {
        match &mut reply.waiting {
            Awaiting::Text(text) => {
                if let Some(line) = found.get(text) {
                    return Some(Met::text(line.clone()));
                }
                if !self.is_closed() {
                    return None;
                }
            }
            Awaiting::Port { port, look_at } => {
                let wanted = *port;
                if now >= *look_at {
                    let is_wanted = |open: &u16| wanted.is_none_or(|port| port == *open);
                    let (ports, next) = runs.awaited_ports(self.job(), now);
                    *look_at = next;
                    if let Some(open) = ports.into_iter().flatten().find(is_wanted) {
                        return Some(Met { met: "port".into(), port: Some(open), ..Met::default() });
                    }
                }
            }
            _ => {}
        }
        let end = self.end().filter(|_| self.is_told(reply.to.peer))?;
        Some(Met { met: "exit".into(), exit: Some(end.exit), ..Met::default() })
    }

    fn whole_answer(&mut self, parses: bool) -> WholeAnswer {
        let end = self.end().cloned().unwrap_or_default();
        let gathering = self.output.take_gathering();
        WholeAnswer::new(self.job().0, end, &gathering, parses).with_port_held(self.held().cloned())
    }

    fn answer_output(&self, to: &Requester, wanted: WantedOutput, clients: &mut RpcClients, peers: &mut Peers) {
        let WantedOutput { after, most_bytes, encoding } = wanted;
        let most = if clients.unread(peers) > limits::RPC_UNREAD_BYTES { 0 } else { most_bytes };
        let (Some(id), Some(peer)) = (&to.id, peers.get_mut(to.peer)) else { return };
        let ring = self.output.ring();
        let (mut bytes, mut length) = (0, 0);
        let chunks = ring.after(after).take_while(|chunk| {
            length += encoding.length(&chunk.bytes);
            let fits = bytes + chunk.bytes.len() <= most && length <= limits::RPC_READ_JSON_BYTES;
            bytes += chunk.bytes.len();
            fits || bytes == chunk.bytes.len()
        });
        let chunks: Vec<_> = chunks.collect();
        let (last, exit) = (chunks.last().map(|last| last.seq), self.end().map(|end| end.exit));
        let rest = OutputRest::new(self.job().0, ring, after, last, exit, self.is_closed());
        let before = peer.out.pending();
        put_chunks(id, chunks.into_iter(), encoding, &rest, peer.out.buffer());
        clients.written += peer.out.pending() - before;
        clients.touched.insert(to.peer);
    }

    /// Passes on as much of the clients' input as the run takes, and answers them.
    pub(super) fn feed(&mut self, clients: &mut RpcClients, runs: &mut Runs, cx: &mut Context<'_>) {
        let (job, is_over) = (self.job(), self.end().is_some());
        while let Some(input) = self.inputs.front_mut() {
            match runs.input_state(job) {
                _ if input.way == InputWay::Typed => return,
                _ if input.way == InputWay::Keys => {
                    if !self.type_first(clients, runs, cx) {
                        return;
                    }
                }
                InputState::Full => return,
                InputState::Closed => {
                    let error = if is_over { RpcError::run_is_over(job.0) } else { RpcError::input_is_closed(job.0) };
                    clients.fail(&input.to, &error, cx.peers);
                }
                InputState::Open => {
                    let rest = &input.bytes[input.taken..];
                    let piece = &rest[..rest.len().min(INPUT_PIECE_BYTES)];
                    let is_last = piece.len() == rest.len();
                    runs.write_input(
                        job,
                        InputPiece { bytes: piece, is_end: input.is_end && is_last },
                        cx.turn,
                        cx.peers,
                    );
                    input.taken += piece.len();
                    if !is_last {
                        continue;
                    }
                    clients.answer::<method::Write>(&input.to, &Accepted { accepted: input.taken }, cx.peers);
                }
            }
            if let Some(input) = self.inputs.pop_front() {
                clients.end_wait(input.to.peer);
            }
        }
    }
}
