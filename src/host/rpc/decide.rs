//! A person's client decides whether a held run begins, also when that has ended because nobody answered.

use super::Requester;
use super::serve::RpcService;
use crate::core::engine::JobId;
use crate::core::entry::{Decider, Decision};
use crate::core::job::Job;
use crate::front::rpc::answers::{Answered, AskList, AskState, DecidedNote, ListedAsk};
use crate::front::rpc::error::{BAD_PARAMS, NOT_HELD, RpcError};
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::{DecideParams, NoParams};
use crate::gate::{SANDBOX_WORDS_HINT, sandbox_words};
use crate::journal::entry_words::decider_words;
use crate::limits;

impl Serve<method::Decide, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: DecideParams) -> Served<method::Decide> {
        let DecideParams { run, allow, why, token } = params;
        if let Some(why) = &why {
            check_why(why, allow)?;
        }
        let by = if token.is_some() { Decider::Token } else { Decider::Client };
        let job = JobId(run);
        let engine = &mut self.commands.engine;
        if engine.job(job).and_then(Job::held).is_none() {
            return match engine.count() < run {
                true => Err(RpcError::no_such_run(run)),
                false => self.decide_later(run, Decision { is_yes: allow, by, why }),
            };
        }
        let now = self.commands.turn.now;
        engine.decide(job, Decision { is_yes: allow, by, why }, now);
        self.commands.runs.prompts.on_key(now);
        Ok(Some(Answered::default()))
    }
}

impl RpcService<'_> {
    /// Decides on the next run of a command, when nobody has decided on this one in time.
    fn decide_later(&mut self, run: u64, decision: Decision) -> Served<method::Decide> {
        let now = self.commands.turn.now;
        let Decision { is_yes, by, why } = decision;
        let Some(ask) = self.later.find(run, now) else {
            let hint = "rexec ps --asks shows what may be answered";
            return Err(RpcError::new(NOT_HELD, format!("run {run} is not held")).hint(hint));
        };
        if why.is_some() {
            let sentence = format!("why: run {run} has ended, and its agent reads no more of it");
            return Err(RpcError::new(BAD_PARAMS, sentence));
        }
        self.later.answer(&ask, is_yes, now);
        self.commands.runs.prompts.on_key(now);
        let (run, who) = (ask.run, decider_words(by));
        let answered = if is_yes {
            self.commands.screen.say(format_args!("… what #{run} asked about may run next time: {who} yes"));
            Answered::for_next(limits::LATER_KEPT)
        } else {
            self.commands.screen.say(format_args!("… #{run} asks no more: {who} no"));
            Answered::default()
        };
        self.rpc.tell_late_decision(&DecidedNote::late(&ask, is_yes, by, &answered), self.commands.peers);
        Ok(Some(answered))
    }
}

impl Serve<method::ListAsks, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, _: NoParams) -> Served<method::ListAsks> {
        let now = self.commands.turn.now;
        let held = self.commands.runs.iter().filter_map(|(job, run)| {
            let hold = self.commands.engine.job(job)?.held()?;
            let card = &run.description.card;
            Some(ListedAsk::new(job.0, AskState::Held, [&card.whoami, &card.dir], &hold.question, hold.until, now))
        });
        let mut asks: Vec<ListedAsk> = self.later.list(now).chain(held).collect();
        asks.sort_by_key(|ask| ask.run);
        Ok(Some(AskList { asks }))
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
