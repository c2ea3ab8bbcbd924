//! A client that sees what a run writes as it is written, as `rexec attach` does, behind what the run's terminal shows.
//!
//! Invariants: it reads the run's log by a cursor of its own, which never holds the run back; what it has missed is counted
//! to the byte; secrets are masked as for the run's caller; the readers of one run are bounded by
//! [`limits::RPC_TERMINALS_MAX`], because each entry of a log costs every one of them.

use super::RpcClients;
use super::watcher::is_full;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Stream};
use crate::core::job::Job;
use crate::core::log::{Item, Taken};
use crate::front::rpc::answers::{ClosedNote, ResizedNote};
use crate::front::rpc::error::RpcError;
use crate::front::rpc::events::event;
use crate::front::rpc::params::Encoding;
use crate::front::rpc::reply::{put_event, put_output};
use crate::front::rpc::ring::OutputChunk;
use crate::host::peers::Peers;
use crate::host::runs::Runs;
use crate::host::turn::PeerId;
use crate::limits;
use crate::text::echo::TYPED;
use crate::text::redact::Redactor;
use crate::text::terminal_tail::ShownSoFar;

#[derive(Debug)]
pub(super) struct TerminalWatcher {
    peer: PeerId,
    subscription: u64,
    /// `None` at the end of the run.
    cursor: Option<Cursor>,
    redactor: Option<Redactor>,
    /// The number of its last chunk.
    seq: u64,
    /// Bytes before its next chunk that it has missed.
    lost: u64,
    /// It knows how large the terminal is.
    is_sized: bool,
    /// What the run's terminal showed when it came, or the line as it stood, if it has not got that.
    shown: Vec<u8>,
}

impl TerminalWatcher {
    /// A watcher of what this run writes from now on, behind what its terminal shows. Without a terminal, that is the line
    /// as it stands.
    pub(super) fn new(
        (peer, subscription): (PeerId, u64),
        job: JobId,
        mut redactor: Option<Redactor>,
        runs: &Runs,
        engine: &mut Engine,
    ) -> Self {
        let ShownSoFar { bytes, gone } = runs.shown_so_far(job, redactor.as_mut()).unwrap_or_else(|| {
            let line = engine.job(job).map(Job::last_line).unwrap_or_default();
            ShownSoFar { bytes: masked(redactor.as_mut(), line), gone: 0 }
        });
        let cursor = engine.attach_behind_output(job);
        Self { peer, subscription, cursor, redactor, seq: 0, lost: gone, is_sized: false, shown: bytes }
    }

    pub(super) fn is_of(&self, peer: PeerId) -> bool {
        self.peer == peer
    }

    /// Tells output, without its secrets.
    fn tell(&mut self, job: JobId, stream: Stream, output: &[u8], out: &mut Vec<u8>) {
        let bytes = masked(self.redactor.as_mut(), output);
        self.put(job, stream, bytes.into(), out);
    }

    /// Tells what was shown when it came.
    fn tell_shown(&mut self, job: JobId, out: &mut Vec<u8>) {
        for piece in std::mem::take(&mut self.shown).chunks(limits::RPC_CHUNK_BYTES) {
            self.put(job, Stream::Tty, piece.into(), out);
        }
    }

    fn put(&mut self, job: JobId, stream: Stream, bytes: Box<[u8]>, out: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.seq += 1;
        let chunk = OutputChunk { seq: self.seq, stream, bytes, at_ms: 0, before: 0 };
        put_output(job.0, &chunk, std::mem::take(&mut self.lost), Encoding::Terminal, out);
    }

    fn tell_size(&mut self, run: u64, rows: u16, cols: u16, out: &mut Vec<u8>) {
        self.is_sized = true;
        put_event::<event::Resized>(&ResizedNote { run, rows, cols }, out);
    }

    /// Tells an item of the log. Returns true if nothing follows.
    fn take(&mut self, job: JobId, item: &Item<'_>, out: &mut Vec<u8>) -> bool {
        match item {
            Item::Missed { bytes } => self.lost += bytes,
            Item::Entry(Entry::Output { stream, bytes, echo, .. }) => {
                self.tell(job, *stream, echo.hidden(bytes, TYPED), out);
            }
            Item::Entry(Entry::Resized { rows, cols, .. }) => self.tell_size(job.0, *rows, *cols, out),
            Item::Entry(Entry::Ended(_)) => {
                let mut rest = Vec::new();
                self.redactor.iter_mut().for_each(|redactor| redactor.finish(&mut rest));
                self.put(job, Stream::Tty, rest.into(), out);
                let lost_bytes = Some(self.lost).filter(|&lost| lost > 0);
                put_event::<event::Closed>(&ClosedNote { run: job.0, last_seq: self.seq, lost_bytes }, out);
                return true;
            }
            Item::Entry(_) => {}
        }
        false
    }
}

/// Output without the secrets that the redactor finds.
fn masked(redactor: Option<&mut Redactor>, output: &[u8]) -> Vec<u8> {
    let Some(redactor) = redactor else { return output.to_vec() };
    let mut masked = Vec::new();
    redactor.push(output, &mut masked);
    masked
}

impl RpcClients {
    /// Checks that one more client may see what a run writes.
    ///
    /// # Errors
    /// The run is over, or too many see it.
    pub(super) fn check_terminal(&self, job: JobId, engine: &Engine) -> Result<(), RpcError> {
        if engine.job(job).is_none_or(Job::has_ended) {
            let is_known = (1..=engine.count()).contains(&job.0);
            return Err(if is_known { RpcError::run_is_over(job.0) } else { RpcError::no_such_run(job.0) });
        }
        if self.terminals.get(&job).is_some_and(|all| all.len() >= limits::RPC_TERMINALS_MAX) {
            let sentence = format!("{} subscriptions see the terminal of run {}", limits::RPC_TERMINALS_MAX, job.0);
            return Err(RpcError::busy(sentence).hint("end one of them, with events.unsubscribe"));
        }
        Ok(())
    }

    /// Tells the clients that see what a run writes the news, up to the limit of each.
    pub(super) fn tell_terminals(&mut self, job: JobId, runs: &Runs, engine: &mut Engine, peers: &mut Peers) {
        let Some(mut watchers) = self.terminals.remove(&job) else { return };
        let is_sized = watchers.iter().all(|watcher| watcher.is_sized);
        let size = if is_sized { None } else { runs.terminal_size(job) };
        for watcher in &mut watchers {
            let Some(cursor) = watcher.cursor else { continue };
            let Some(peer) = peers.get_mut(watcher.peer).filter(|peer| !peer.is_leaving) else { continue };
            if let Some(size) = size.filter(|_| !watcher.is_sized) {
                watcher.tell_size(job.0, size.rows, size.cols, peer.out.buffer());
            }
            watcher.tell_shown(job, peer.out.buffer());
            let mut is_behind = false;
            let goes_on = engine.read(cursor, |item| {
                is_behind = is_full(peer.out.pending()) && (!peer.send() || is_full(peer.out.pending()));
                if is_behind {
                    return Taken::Not;
                }
                if watcher.take(job, item, peer.out.buffer()) { Taken::Last } else { Taken::All }
            });
            watcher.cursor = watcher.cursor.filter(|_| goes_on);
            self.touched.insert(watcher.peer);
            if is_behind && let Some(client) = self.all.get_mut(&watcher.peer) {
                client.behind.insert(job);
            }
        }
        watchers.retain(|watcher| watcher.cursor.is_some());
        if !watchers.is_empty() {
            self.terminals.insert(job, watchers);
        }
    }

    /// Ends these subscriptions of a client to what runs write, or all of them. Returns the runs.
    pub(super) fn forget_terminals(
        &mut self,
        peer: PeerId,
        subscription: Option<u64>,
        engine: &mut Engine,
    ) -> Vec<JobId> {
        let mut jobs = Vec::new();
        self.terminals.retain(|&job, watchers| {
            watchers.retain(|watcher| {
                let is_meant = watcher.peer == peer && subscription.is_none_or(|wanted| wanted == watcher.subscription);
                jobs.extend(is_meant.then_some(job));
                watcher.cursor.filter(|_| is_meant).into_iter().for_each(|cursor| engine.detach(cursor));
                !is_meant
            });
            !watchers.is_empty()
        });
        jobs
    }
}
