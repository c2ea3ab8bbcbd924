//! A person's client decides whether a held run begins, also when that has ended because nobody answered, and what is
//! allowed from then on.

use std::time::Duration;

use super::Requester;
use super::serve::RpcService;
use crate::core::engine::JobId;
use crate::core::entry::{Decider, Decision};
use crate::core::job::Hold;
use crate::front::rpc::answers::{Answered, AskList, AskState, DecidedNote, ListedAsk};
use crate::front::rpc::error::{BAD_PARAMS, FAILED, NOT_HELD, RUN_NOT_READY, RpcError};
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::{AskParams, DecideParams};
use crate::gate::{SANDBOX_WORDS_HINT, Unlearnable, sandbox_words};
use crate::host::always::Proposed;
use crate::journal::entry_words::decider_words;
use crate::limits;

/// How long a yes for always holds.
const LEARNED_FOR: Duration = Duration::from_secs(limits::LEARNED_DAYS.unsigned_abs() * 24 * 3600);

/// How far a yes goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Once,
    /// It is saved, and allows what follows.
    Always,
}

impl Serve<method::Decide, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: DecideParams) -> Served<method::Decide> {
        let DecideParams { run, allow, why, token, always } = params;
        if let Some(why) = &why {
            check_why(why, allow)?;
        }
        let by = if token.is_some() { Decider::Token } else { Decider::Client };
        let extent = if always.is_some() { Extent::Always } else { Extent::Once };
        if let Some(shown) = always {
            if !allow || by == Decider::Token {
                let sentence = "always: it goes with a yes and without a token, which is for one answer";
                return Err(RpcError::new(BAD_PARAMS, sentence));
            }
            self.learn(run, &shown)?;
        }
        let decision = Decision { is_yes: allow, by, why };
        let (now, job) = (self.commands.turn.now, JobId(run));
        if self.held(job).is_none() {
            return self.decide_later(run, decision, extent);
        }
        self.commands.engine.decide(job, decision, now);
        self.commands.runs.prompts.on_key(now);
        Ok(Some(Answered::default()))
    }
}

impl RpcService<'_> {
    fn held(&self, job: JobId) -> Option<&Hold> {
        self.commands.engine.job(job)?.held()
    }

    fn not_asked(&self, run: u64) -> RpcError {
        if self.commands.engine.count() < run {
            return RpcError::no_such_run(run);
        }
        RpcError::new(NOT_HELD, format!("run {run} is not held")).hint("rexec ps --asks shows what may be answered")
    }

    /// Decides on the next run of a command, when nobody has decided on this one in time.
    fn decide_later(&mut self, run: u64, decision: Decision, extent: Extent) -> Served<method::Decide> {
        let now = self.commands.turn.now;
        let Decision { is_yes, by, why } = decision;
        let (ask, _) = self.later.find(run, now).ok_or_else(|| self.not_asked(run))?;
        if why.is_some() {
            let sentence = format!("why: run {run} has ended, and its agent reads no more of it");
            return Err(RpcError::new(BAD_PARAMS, sentence));
        }
        // What is always allowed asks no more.
        self.later.answer(&ask, is_yes && extent == Extent::Once, now);
        self.commands.runs.prompts.on_key(now);
        let (run, who, screen) = (ask.run, decider_words(by), &mut *self.commands.screen);
        let answered = match (is_yes, extent) {
            (true, Extent::Once) => {
                screen.say(format_args!("… what #{run} asked about may run next time: {who} yes"));
                Answered::for_next(limits::LATER_KEPT)
            }
            (true, Extent::Always) => Answered::for_next(LEARNED_FOR),
            (false, _) => {
                screen.say(format_args!("… #{run} asks no more: {who} no"));
                Answered::default()
            }
        };
        self.rpc.tell_late_decision(&DecidedNote::late(&ask, is_yes, by, &answered), self.commands.peers);
        Ok(Some(answered))
    }

    /// Saves what always allows what a run asks about. `shown` is what the person has read of that.
    fn learn(&mut self, run: u64, shown: &str) -> Result<(), RpcError> {
        let not_ready = |sentence: String| RpcError::new(RUN_NOT_READY, sentence);
        let (_, proposed) = self.proposed(run)?;
        let proposal = proposed.map_err(|why| {
            not_ready(format!("run {run} can be allowed only once: {}", why.words()))
                .hint(format!("rexec answer {run} yes"))
        })?;
        if proposal.words != shown {
            return Err(not_ready(format!("run {run} asks about something else by now: {}", proposal.words))
                .hint("read that, then answer again"));
        }
        self.rules.learn(proposal, self.commands.screen).map_err(|problem| RpcError::new(FAILED, problem))
    }

    /// What is asked about a run, and what would always allow it.
    fn proposed(&mut self, run: u64) -> Result<(ListedAsk, Proposed), RpcError> {
        let (job, now) = (JobId(run), self.commands.turn.now);
        let Some(ask) = self.held_ask(job) else {
            let found = self.later.find(run, now).map(|(ask, proposed)| (ask, proposed.clone()));
            return found.ok_or_else(|| self.not_asked(run));
        };
        let from = self.commands.recorder.reference(job);
        let pending = self.commands.runs.pending(job).ok_or_else(|| self.not_asked(run))?;
        Ok((ask, self.rules.propose(pending, &from, now, self.commands.screen)))
    }

    fn held_ask(&self, job: JobId) -> Option<ListedAsk> {
        let (hold, run) = (self.held(job)?, self.commands.runs.get(job)?);
        let (card, now) = (&run.description.card, self.commands.turn.now);
        Some(ListedAsk::new(job.0, AskState::Held, [&card.whoami, &card.dir], &hold.question, hold.until, now))
    }
}

impl Serve<method::ListAsks, Requester> for RpcService<'_> {
    fn serve(&mut self, _: &Requester, params: AskParams) -> Served<method::ListAsks> {
        if let Some(run) = params.run {
            let (ask, proposed) = self.proposed(run)?;
            let proposed = proposed.map(|proposal| proposal.words).map_err(Unlearnable::words);
            return Ok(Some(AskList { asks: vec![ask.with_proposed(proposed)] }));
        }
        let now = self.commands.turn.now;
        let held = self.commands.runs.jobs().filter_map(|job| self.held_ask(job));
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
