//! Calls to the host in JSON-RPC, for verbs that wait for the answers. Many calls may be under way at once.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Pid;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ask::{self, AskError};
use crate::front::rpc::client::{AnswerValue, HostLine, call_line};
use crate::front::rpc::error::{BAD_PARAMS, NAME_TAKEN, NO_SUCH_RUN, RpcError};
use crate::front::rpc::methods::RpcMethod;
use crate::limits;
use crate::sys::{file, socket};
use crate::text::escape::escape_line;

/// Columns of a host's sentence that are shown. The rest is cut.
const SENTENCE_COLUMNS: usize = 1_024;

/// The reason for a missing answer.
#[derive(Debug)]
pub(super) enum CallError {
    /// The host does not answer, or went away.
    Ask(AskError),
    Refused(RpcError),
}

impl From<CallError> for Notice {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Ask(error) => error.into(),
            CallError::Refused(error) => refused(&error),
        }
    }
}

impl CallError {
    fn lost(error: io::Error) -> Self {
        Self::Ask(AskError::Lost(error))
    }

    /// Returns true if there is no such run, or nothing is kept of it.
    pub(super) fn is_no_such_run(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code == NO_SUCH_RUN)
    }

    /// The run that has the wanted name, if that is the reason for the refusal.
    pub(super) fn holder(&self) -> Option<u64> {
        match self {
            Self::Refused(RpcError { code: NAME_TAKEN, data, .. }) => data.as_ref()?.run,
            _ => None,
        }
    }
}

/// The notice for a refused call.
fn refused(error: &RpcError) -> Notice {
    let shown = |text: &str| escape_line(text, SENTENCE_COLUMNS);
    let code = if error.code == NO_SUCH_RUN { exit_code::NO_SUCH_RUN } else { exit_code::FAILURE };
    match error.data.as_ref().and_then(|data| data.hint.as_ref()) {
        Some(hint) => Notice::new(code, shown(&error.message), shown(hint)),
        None => Notice::without_hint(code, shown(&error.message)),
    }
}

/// An answer: the number of its call, and the result.
pub(super) type CallAnswer = (u64, Result<AnswerValue, CallError>);

#[derive(Debug)]
pub(super) struct HostCalls {
    stream: BufReader<UnixStream>,
    /// Goes with the first byte, because a relay of bytes could not pass a descriptor on.
    proof: Option<File>,
    last_id: u64,
    /// Answers that came before the awaited one.
    early: VecDeque<CallAnswer>,
}

impl HostCalls {
    pub(super) fn connect(path: &Path) -> Result<Self, CallError> {
        let stream = ask::connect(path).map_err(CallError::Ask)?;
        stream.set_write_timeout(Some(ask::PATIENCE)).map_err(CallError::lost)?;
        let proof = file::null().map_err(CallError::lost)?;
        Ok(Self { stream: BufReader::new(stream), proof: Some(proof), last_id: 0, early: VecDeque::new() })
    }

    /// The process of the host, if that is seen from here.
    pub(super) fn host(&self) -> Option<Pid> {
        socket::peer_pid(self.stream.get_ref()).ok()
    }

    /// Sends a call; returns its number.
    pub(super) fn send<M: RpcMethod<Params: Serialize>>(&mut self, params: &M::Params) -> Result<u64, CallError> {
        self.last_id += 1;
        let line = call_line::<M>(self.last_id, params).map_err(|_| {
            let message = format!("the call is too long: the host takes {} bytes", limits::JSON_LINE_BYTES_MAX);
            CallError::Refused(RpcError::new(BAD_PARAMS, message).hint("shorten arguments or environment"))
        })?;
        let mut sent = 0;
        if let Some(proof) = self.proof.take() {
            sent = socket::send(self.stream.get_ref(), &line, &[proof.as_raw_fd()]).map_err(CallError::lost)?;
        }
        self.stream.get_mut().write_all(&line[sent..]).map_err(CallError::lost)?;
        Ok(self.last_id)
    }

    /// Waits for the next answer to any call: for `patience`, or without end.
    pub(super) fn next_answer(&mut self, patience: Option<Duration>) -> Result<CallAnswer, CallError> {
        match self.early.pop_front() {
            Some(answer) => Ok(answer),
            None => self.read(patience),
        }
    }

    /// Waits for the next event, as its line came. `None` at the host's end.
    pub(super) fn next_event(&mut self) -> Result<Option<Vec<u8>>, CallError> {
        self.read_line(None).map(|line| Some(line).filter(|line| !line.is_empty()))
    }

    fn read(&mut self, patience: Option<Duration>) -> Result<CallAnswer, CallError> {
        let line = self.read_line(patience)?;
        if line.is_empty() {
            return Err(CallError::lost(io::ErrorKind::UnexpectedEof.into()));
        }
        match HostLine::read(&line) {
            Some(HostLine::Answer(id, answer)) => Ok((id, answer.map_err(CallError::Refused))),
            _ => Err(CallError::Ask(AskError::Unclear)),
        }
    }

    /// Reads a line of the host, which is empty at its end.
    fn read_line(&mut self, patience: Option<Duration>) -> Result<Vec<u8>, CallError> {
        self.stream.get_ref().set_read_timeout(patience).map_err(CallError::lost)?;
        let mut line = Vec::new();
        self.stream.by_ref().take(ask::ANSWER_BYTES_MAX).read_until(b'\n', &mut line).map_err(CallError::lost)?;
        Ok(line)
    }

    /// Sends a call and waits for its answer: for `patience`, or without end.
    pub(super) fn call_within<M: RpcMethod<Params: Serialize>>(
        &mut self,
        params: &M::Params,
        patience: Option<Duration>,
    ) -> Result<AnswerValue, CallError> {
        let id = self.send::<M>(params)?;
        loop {
            let (of, answer) = self.read(patience)?;
            if of == id {
                return answer;
            }
            self.early.push_back((of, answer));
        }
    }

    /// Sends a call that the host answers at once, and returns the answer.
    pub(super) fn call<M: RpcMethod<Params: Serialize, Answer: DeserializeOwned>>(
        &mut self,
        params: &M::Params,
    ) -> Result<M::Answer, CallError> {
        let answer = self.call_within::<M>(params, Some(ask::PATIENCE))?;
        answer.form().ok_or(CallError::Ask(AskError::Unclear))
    }
}
