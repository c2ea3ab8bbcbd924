//! A person's client decides whether a held run begins.

use super::Requester;
use super::serve::RpcService;
use crate::core::engine::JobId;
use crate::core::entry::{Decider, Decision};
use crate::core::job::Job;
use crate::front::rpc::answers::Done;
use crate::front::rpc::error::{BAD_PARAMS, NOT_HELD, RpcError};
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::DecideParams;
use crate::gate::{SANDBOX_WORDS_HINT, sandbox_words};
use crate::limits;

impl Serve<method::Decide, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: DecideParams) -> Served<method::Decide> {
        let DecideParams { run, allow, why } = params;
        if let Some(why) = &why {
            check_why(why, allow)?;
        }
        let job = JobId(run);
        let engine = &mut self.commands.engine;
        if engine.job(job).and_then(Job::held).is_none() {
            return match engine.count() < run {
                true => Err(RpcError::no_such_run(run)),
                false => {
                    Err(RpcError::new(NOT_HELD, format!("run {run} is not held")).hint("rexec ps shows what asks"))
                }
            };
        }
        let now = self.commands.turn.now;
        engine.decide(job, Decision { is_yes: allow, by: Decider::Client, why }, now);
        self.commands.runs.prompts.on_key(now);
        Ok(Some(Done {}))
    }
}

fn check_why(why: &str, is_yes: bool) -> Result<(), RpcError> {
    let bad = |sentence: String| RpcError::new(BAD_PARAMS, sentence);
    if is_yes {
        return Err(bad("why: only a refusal has a reason".to_owned()));
    }
    if why.trim().is_empty() || why.chars().any(char::is_control) || why.len() > limits::NO_WHY_BYTES_MAX {
        return Err(bad(format!("why: not one line of 1 to {} bytes", limits::NO_WHY_BYTES_MAX)));
    }
    match sandbox_words(why) {
        Some(words) => Err(bad(format!("why: it says \"{words}\"")).hint(SANDBOX_WORDS_HINT)),
        None => Ok(()),
    }
}
