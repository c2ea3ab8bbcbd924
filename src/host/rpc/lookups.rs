//! Lookups in the journal for programs: processes that run `rexec log`, `show` or `out`, whose lines become answers.
//!
//! Invariants: the loop never waits for one, nor for its disk; at most [`limits::HISTORY_LOOKUPS_MAX`] run at once, and one
//! that no signal ends keeps its place; each question has its answer within [`limits::HISTORY_WAIT`]; what is kept of one
//! is bounded by [`limits::HISTORY_BYTES`]; nobody begins one who has not taken the answers before it.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use super::{Requester, RpcClients, watcher};
use crate::front::rpc::error::{FAILED, RpcError};
use crate::front::rpc::history::{PastAnswer, PastQuestion};
use crate::front::rpc::reply::put_lines;
use crate::guard::orphans;
use crate::host::peers::Peers;
use crate::host::turn::{PeerId, Source, Turn};
use crate::io::poller::Ready;
use crate::io::port::{Port, ReadOutcome};
use crate::limits;
use crate::sys;
use crate::sys::background;
use crate::text::reason::reason;
use rexec_sh::protocol::process::Pid;

#[derive(Debug)]
struct Waiting {
    to: Requester,
    question: PastQuestion,
    until: Instant,
}

#[derive(Debug)]
struct Lookup {
    number: u64,
    /// Who waits for the answer. `None` once that one has one, or is gone.
    to: Option<Requester>,
    code: i32,
    pid: Pid,
    port: Port,
    said: Vec<u8>,
    /// It says more than is kept.
    is_cut: bool,
    has_ended: bool,
    until: Instant,
}

#[derive(Debug, Default)]
pub(in crate::host) struct Lookups {
    waiting: VecDeque<Waiting>,
    at_work: Vec<Lookup>,
    count: u64,
    /// The program's variables, beside those of the host.
    environment: Vec<CString>,
}

impl Lookups {
    /// Lookups of a host with these journals and this socket.
    pub(super) fn new(home: &Path, socket: &Path) -> Self {
        let own = std::env::vars_os().filter(|(name, _)| name != "REXEC_HOME" && name != "REXEC_SOCKET");
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
        let places = [("REXEC_HOME".into(), absolute(home)), ("REXEC_SOCKET".into(), absolute(socket))];
        let all = own.chain(places).map(|(name, value)| [name.as_bytes(), value.as_bytes()].join(&b'='));
        Self { environment: all.filter_map(|entry| CString::new(entry).ok()).collect(), ..Self::default() }
    }

    /// Adds a question.
    ///
    /// # Errors
    /// Too many wait.
    pub(super) fn add(&mut self, to: Requester, question: PastQuestion, now: Instant) -> Result<(), RpcError> {
        if self.waiting.len() >= limits::HISTORY_WAITING_MAX {
            let sentence = format!("{} questions about the past wait already", self.waiting.len());
            return Err(RpcError::busy(sentence).hint("wait for the answer to one of them"));
        }
        self.waiting.push_back(Waiting { to, question, until: now + limits::HISTORY_WAIT });
        Ok(())
    }

    /// Begins the questions for which there is room, of clients that have taken their earlier answers. Returns those that
    /// could not begin.
    fn begin(&mut self, turn: &mut Turn, peers: &Peers) -> Vec<(Requester, io::Error)> {
        let mut failed = Vec::new();
        while self.at_work.len() < limits::HISTORY_LOOKUPS_MAX {
            let is_ready = |peer| peers.get(peer).is_some_and(|peer| !watcher::is_full(peer.out.pending()));
            let Some(at) = self.waiting.iter().position(|waiting| is_ready(waiting.to.peer)) else { break };
            let Some(Waiting { to, question, until }) = self.waiting.remove(at) else { break };
            let begun = Self::start(&question, &self.environment)
                .and_then(|(pid, output)| Ok((pid, Port::new(&mut turn.poller, output)?)));
            match begun {
                Ok((pid, port)) => {
                    self.count += 1;
                    let (number, code) = (self.count, question.code);
                    turn.name(port.token(), Source::Lookup(number));
                    let to = Some(to);
                    let (said, is_cut, has_ended) = (Vec::new(), false, false);
                    self.at_work.push(Lookup { number, to, code, pid, port, said, is_cut, has_ended, until });
                }
                Err(error) => failed.push((to, error)),
            }
        }
        failed
    }

    fn start(question: &PastQuestion, environment: &[CString]) -> io::Result<(Pid, std::os::fd::OwnedFd)> {
        let program = std::env::current_exe()?.with_file_name("rexec");
        let failed = format!("rexec: {} cannot be started\nhint: install it beside rexec-host\n", program.display());
        let program = CString::new(program.into_os_string().as_bytes())?;
        let words = question.words.iter().map(|word| CString::new(word.as_str()));
        let words: Result<Vec<CString>, _> = std::iter::once(Ok(program.clone())).chain(words).collect();
        background::start_read(&program, &words?, environment, &failed)
    }

    pub(in crate::host) fn remember(&mut self, number: u64, event: Ready) -> bool {
        let lookup = self.at_work.iter_mut().find(|lookup| lookup.number == number);
        lookup.into_iter().for_each(|lookup| lookup.port.remember(event));
        event.readable
    }

    /// Reads what a lookup says.
    pub(in crate::host) fn visit(&mut self, number: u64, turn: &mut Turn) {
        let Some(lookup) = self.at_work.iter_mut().find(|lookup| lookup.number == number) else { return };
        let buffer = &mut turn.buffer;
        match lookup.port.read(|fd| sys::read(fd, buffer)) {
            ReadOutcome::Bytes(length) => {
                let room = limits::HISTORY_BYTES - lookup.said.len();
                lookup.said.extend_from_slice(&turn.buffer[..length.min(room)]);
                if length > room {
                    lookup.is_cut = true;
                    lookup.said.shrink_to_fit();
                    orphans::kill_child(lookup.pid);
                }
                turn.queue(lookup.port.token());
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => lookup.has_ended = true,
        }
    }

    /// Ends the lookups of a client that is gone.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.waiting.retain(|waiting| waiting.to.peer != peer);
        for lookup in self.at_work.iter_mut().filter(|lookup| lookup.to.as_ref().is_some_and(|to| to.peer == peer)) {
            lookup.to = None;
            orphans::kill_child(lookup.pid);
        }
    }

    /// When the next question has waited for too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let open = self.at_work.iter().filter(|lookup| lookup.to.is_some()).map(|lookup| lookup.until);
        open.chain(self.waiting.iter().map(|waiting| waiting.until)).min()
    }

    pub(in crate::host) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.at_work.iter().map(|lookup| lookup.pid)
    }

    /// Ends the lookups with the host.
    pub(in crate::host) fn close(&self) {
        self.pids().for_each(orphans::kill_child);
    }
}

impl RpcClients {
    /// Answers the questions about the past whose lookups have ended, or that have waited for too long.
    pub(super) fn answer_lookups(&mut self, turn: &mut Turn, peers: &mut Peers) {
        let now = turn.now;
        let mut late = Vec::new();
        while self.lookups.waiting.front().is_some_and(|waiting| waiting.until <= now) {
            late.extend(self.lookups.waiting.pop_front().map(|waiting| waiting.to));
        }
        for lookup in self.lookups.at_work.iter_mut().filter(|lookup| lookup.until <= now && !lookup.has_ended) {
            late.extend(lookup.to.take());
            orphans::kill_child(lookup.pid);
        }
        for to in late {
            let sentence = format!("the journal was not read within {} seconds", limits::HISTORY_WAIT.as_secs());
            let error = RpcError::new(FAILED, sentence).hint("ask for less, or try again later");
            self.fail(&to, &error, peers);
            self.end_wait(to.peer);
        }
        while let Some(at) = self.lookups.at_work.iter().position(|lookup| lookup.has_ended) {
            let Lookup { to, code, port, said, is_cut, .. } = self.lookups.at_work.swap_remove(at);
            turn.close(port);
            let Some(to) = to else { continue };
            let answer = PastAnswer::read(&said);
            match answer.refusal {
                Some((sentence, hint)) => self.fail(&to, &RpcError::new(code, sentence).hint(hint), peers),
                None => {
                    if let (Some(id), Some(peer)) = (&to.id, peers.get_mut(to.peer)) {
                        put_lines(id, &answer.lines, is_cut, peer.out.buffer());
                        self.touched.insert(to.peer);
                    }
                }
            }
            self.end_wait(to.peer);
        }
    }

    /// Begins further lookups.
    pub(super) fn begin_lookups(&mut self, turn: &mut Turn, peers: &mut Peers) {
        for (to, error) in self.lookups.begin(turn, peers) {
            let error = RpcError::new(FAILED, format!("rexec cannot be started: {}", reason(&error)));
            self.fail(&to, &error.hint("install rexec beside rexec-host, or try again later"), peers);
            self.end_wait(to.peer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::rpc::error::{BAD_PARAMS, BUSY};
    use crate::io::poller::Poller;

    fn ask(lookups: &mut Lookups, peer: u64, now: Instant) -> Result<(), RpcError> {
        let question = PastQuestion { words: Vec::new(), code: BAD_PARAMS };
        lookups.add(Requester { peer: PeerId(peer), id: None }, question, now)
    }

    #[test]
    fn questions_that_wait_are_bounded_and_go_with_their_client() {
        let (mut lookups, now) = (Lookups::default(), Instant::now());
        assert_eq!(lookups.deadline(), None);
        for peer in 0..limits::HISTORY_WAITING_MAX as u64 {
            ask(&mut lookups, peer % 2, now).expect("room");
        }
        assert_eq!(ask(&mut lookups, 2, now).map_err(|error| error.code), Err(BUSY));
        assert_eq!(lookups.deadline(), Some(now + limits::HISTORY_WAIT));
        lookups.forget(PeerId(0));
        assert_eq!(lookups.waiting.len(), limits::HISTORY_WAITING_MAX / 2);
        assert!(ask(&mut lookups, 2, now).is_ok());
        let mut turn = Turn::new(Poller::new().expect("a poll"));
        assert!(lookups.begin(&mut turn, &Peers::new()).is_empty(), "clients that are gone begin none");
        assert_eq!(lookups.pids().count(), 0);
    }
}
