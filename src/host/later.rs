//! Asks that ended without an answer, because their time was over or nobody was there. The person may still answer one:
//! after a yes, the next run of the same command passes.
//!
//! Invariants: a yes is for the same bytes in the same directory, with the same values of the variables that they name, by
//! the same agent in the same session, and for what the person was asked about them; one run uses it up. At most
//! [`limits::LATER_ASKS_MAX`] asks with [`limits::LATER_BYTES_MAX`] of commands are kept, each for
//! [`limits::LATER_KEPT`]; those go first of which nobody was told and to which nobody said yes.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

use super::always::Proposed;
use super::runs::Runs;
use crate::core::end::{Refusal, RefusalCause};
use crate::core::engine::JobId;
use crate::core::entry::{Consequence, Judgement, Permit};
use crate::core::job::Question;
use crate::front::command::Command;
use crate::front::rpc::answers::{AskState, ListedAsk};
use crate::limits;
use crate::text::redact::split_entry;

#[derive(Debug, Default)]
pub(super) struct LaterAsks {
    /// Oldest first.
    all: VecDeque<LaterAsk>,
    /// Of the values of variables, which may be secret, only a hash with these keys is kept.
    keys: RandomState,
}

#[derive(Debug)]
struct LaterAsk {
    run: u64,
    whoami: String,
    dir: String,
    question: Question,
    call: CallIdentity,
    has_yes: bool,
    /// When it is forgotten.
    until: Instant,
    /// The latest call of `--notify` about it.
    told: Option<Told>,
    proposed: Proposed,
}

/// A command that has not begun, because nobody has answered.
#[derive(Debug)]
pub(super) struct Unanswered {
    pub(super) job: JobId,
    pub(super) question: Question,
    /// A command of `--notify` has its token.
    pub(super) is_told: bool,
    pub(super) proposed: Proposed,
}

/// A call of `--notify`, whose command got a token.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// The token's run, which may be an earlier one of the same command.
    run: u64,
    /// When the person is told again if the command is tried again.
    until: Instant,
}

/// What two runs of the same command have in common.
#[derive(Debug, PartialEq, Eq)]
struct CallIdentity {
    exec: Vec<Vec<u8>>,
    shell: String,
    directory: Vec<u8>,
    /// Steps from there up to the top of the project.
    depth: Option<u8>,
    whoami: String,
    session: String,
    variables: u64,
}

impl CallIdentity {
    fn of(command: &Command, directory: &[u8], keys: &RandomState) -> Self {
        Self {
            exec: command.exec.clone(),
            shell: command.line.shell.clone(),
            directory: directory.to_vec(),
            depth: command.depth,
            whoami: command.caller.whoami.clone(),
            session: command.session_key.clone(),
            variables: keys.hash_one(named_variables(command)),
        }
    }

    fn bytes(&self) -> usize {
        self.exec.iter().map(Vec::len).sum::<usize>() + self.directory.len()
    }
}

/// The variables that a command names, and the one that ~ stands for. The host's own are other ones in each run.
fn named_variables(command: &Command) -> Vec<(Vec<u8>, Vec<u8>)> {
    let run = command.run();
    let entries = run.iter().flat_map(|run| run.env.iter()).map(CStr::to_bytes).filter_map(split_entry);
    let is_named = |name: &[u8]| match name {
        b"HOME" => true,
        b"_" | b"REXEC_SEQ" | b"REXEC_AGENT" | b"REXEC_WHOAMI" | b"TRACEPARENT" => false,
        _ => command.exec.iter().any(|word| has_name(word, name)),
    };
    entries.filter(|(name, _)| is_named(name)).map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Returns true if a name stands in a text, and not as a part of a longer one.
fn has_name(text: &[u8], name: &[u8]) -> bool {
    let is_other = |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
    let mut places = memchr::memmem::find_iter(text, name);
    places.any(|at| {
        is_other(at.checked_sub(1).and_then(|before| text.get(before))) && is_other(text.get(at + name.len()))
    })
}

/// What a person would have been asked, where nobody was there.
pub(super) fn unanswered(judgement: &Judgement, now: Instant) -> Option<Question> {
    let is_away = matches!(&judgement.consequence, Consequence::Refused(Refusal { cause: RefusalCause::Away, .. }));
    is_away.then(|| Question::of(judgement, now))
}

impl LaterAsks {
    /// The person may answer it from now on.
    pub(super) fn add(&mut self, unanswered: Unanswered, runs: &Runs, now: Instant) {
        let Unanswered { job, question, is_told, proposed } = unanswered;
        let (Some(pending), Some(run)) = (runs.pending(job), runs.get(job)) else { return };
        let directory = pending.directory();
        let call = CallIdentity::of(&pending.command, directory.as_os_str().as_bytes(), &self.keys);
        let card = &run.description.card;
        let [whoami, dir] = [&card.whoami, &card.dir].map(Clone::clone);
        let until = now + limits::LATER_KEPT;
        let told = is_told.then_some(Told { run: job.0, until });
        let run = job.0;
        self.keep(LaterAsk { run, whoami, dir, question, call, has_yes: false, until, told, proposed }, now);
    }

    fn keep(&mut self, mut ask: LaterAsk, now: Instant) {
        self.all.retain(|known| now < known.until);
        // An agent that tries again and again asks one thing.
        while let Some(at) = self.all.iter().position(|known| !known.has_yes && known.is_same(&ask.call, &ask.question))
        {
            let known = self.all.remove(at);
            ask.told = ask.told.or(known.and_then(|known| known.told).filter(|told| now < told.until));
        }
        self.all.push_back(ask);
        let bytes = |all: &VecDeque<LaterAsk>| all.iter().map(|ask| ask.call.bytes()).sum::<usize>();
        while self.all.len() > limits::LATER_ASKS_MAX || bytes(&self.all) > limits::LATER_BYTES_MAX {
            let older = self.all.iter().take(self.all.len() - 1);
            let is_idle = |ask: &LaterAsk| !ask.has_yes && ask.told.is_none_or(|told| told.until <= now);
            let at = older.enumerate().find(|(_, ask)| is_idle(ask)).map_or(0, |(at, _)| at);
            self.all.remove(at);
        }
    }

    /// The part of a run that nobody was there to answer for, if the person was not told of it.
    pub(super) fn untold(&self, run: u64) -> Option<&str> {
        let ask = self.all.iter().find(|ask| ask.run == run && ask.told.is_none())?;
        Some(&ask.question.leaf)
    }

    /// A command of `--notify` has the token of a run.
    pub(super) fn note_told(&mut self, run: u64, now: Instant) {
        let told = Some(Told { run, until: now + limits::LATER_KEPT });
        self.all.iter_mut().filter(|ask| ask.run == run).for_each(|ask| ask.told = told);
    }

    /// Returns true if the token of a run answers one of these.
    pub(super) fn is_answered_by_token_of(&self, run: u64, now: Instant) -> bool {
        let is_it = |ask: &LaterAsk| ask.told.is_some_and(|told| told.run == run);
        self.all.iter().any(|ask| is_it(ask) && !ask.has_yes && now < ask.until)
    }

    /// What follows from a judgement: a yes to an earlier run of the command counts once.
    pub(super) fn permitted(
        &mut self,
        judgement: Judgement,
        command: &Command,
        directory: &[u8],
        now: Instant,
    ) -> Judgement {
        let is_asked =
            matches!(judgement.consequence, Consequence::Asked { .. }) || unanswered(&judgement, now).is_some();
        if !is_asked || !self.all.iter().any(|ask| ask.has_yes) {
            return judgement;
        }
        let (call, question) = (CallIdentity::of(command, directory, &self.keys), Question::of(&judgement, now));
        match self.take(&call, &question, now) {
            Some(run) => Judgement { consequence: Consequence::Permitted(Permit::Later { run }), ..judgement },
            None => judgement,
        }
    }

    /// Uses up the yes to this question about this command. Returns the run to which it was said.
    fn take(&mut self, call: &CallIdentity, question: &Question, now: Instant) -> Option<u64> {
        let is_it = |ask: &LaterAsk| ask.has_yes && now < ask.until && ask.is_same(call, question);
        let at = self.all.iter().position(is_it)?;
        self.all.remove(at).map(|ask| ask.run)
    }

    /// Answers an ask. A yes holds for [`limits::LATER_KEPT`] from now.
    pub(super) fn answer(&mut self, ask: &ListedAsk, is_yes: bool, now: Instant) {
        match self.all.iter().position(|known| known.run == ask.run) {
            Some(at) if is_yes => (self.all[at].has_yes, self.all[at].until) = (true, now + limits::LATER_KEPT),
            Some(at) => _ = self.all.remove(at),
            None => {}
        }
    }

    /// The ask of a run, or of a later one of the same command; and what would always allow that.
    pub(super) fn find(&self, run: u64, now: Instant) -> Option<(ListedAsk, &Proposed)> {
        let is_it = |ask: &&LaterAsk| ask.run == run || ask.told.is_some_and(|told| told.run == run);
        let ask = self.all.iter().filter(is_it).find(|ask| now < ask.until)?;
        Some((ask.listed(now), &ask.proposed))
    }

    /// All that are kept, oldest first.
    pub(super) fn list(&self, now: Instant) -> impl Iterator<Item = ListedAsk> {
        self.all.iter().filter(move |ask| now < ask.until).map(move |ask| ask.listed(now))
    }
}

impl LaterAsk {
    fn listed(&self, now: Instant) -> ListedAsk {
        let state = if self.has_yes { AskState::Allowed } else { AskState::Expired };
        ListedAsk::new(self.run, state, [&self.whoami, &self.dir], &self.question, self.until, now)
    }

    fn is_same(&self, call: &CallIdentity, question: &Question) -> bool {
        let Question { leaf, rule, since: _ } = question;
        self.call == *call && (&self.question.leaf, &self.question.rule) == (leaf, rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Unlearnable;

    fn call(text: &str) -> CallIdentity {
        CallIdentity {
            exec: vec![text.into()],
            shell: String::new(),
            directory: Vec::new(),
            depth: None,
            whoami: String::new(),
            session: String::new(),
            variables: 0,
        }
    }

    fn question(now: Instant) -> Question {
        Question { leaf: "git push".to_owned(), rule: None, since: now }
    }

    fn ask(run: u64, text: &str, now: Instant) -> LaterAsk {
        let [whoami, dir] = [String::new(), String::new()];
        LaterAsk {
            run,
            whoami,
            dir,
            question: question(now),
            call: call(text),
            has_yes: false,
            until: now + limits::LATER_KEPT,
            told: None,
            proposed: Err(Unlearnable::Open),
        }
    }

    fn answer(asks: &mut LaterAsks, run: u64, is_yes: bool, now: Instant) -> bool {
        let found = asks.find(run, now).map(|(ask, _)| ask);
        found.as_ref().into_iter().for_each(|ask| asks.answer(ask, is_yes, now));
        found.is_some()
    }

    #[test]
    fn a_yes_holds_once_for_the_same_call_and_question_and_not_for_ever() {
        let (mut asks, now) = (LaterAsks::default(), Instant::now());
        let late = now + limits::LATER_KEPT;
        asks.keep(ask(1, "a", now), now);
        assert_eq!(asks.take(&call("a"), &question(now), now), None, "nobody has said yes");
        assert!(!answer(&mut asks, 2, true, now) && !answer(&mut asks, 1, true, late));
        assert!(answer(&mut asks, 1, true, now));
        let others = [
            CallIdentity { directory: b"/".to_vec(), ..call("a") },
            CallIdentity { session: "s".to_owned(), ..call("a") },
            CallIdentity { variables: 1, ..call("a") },
            CallIdentity { depth: Some(0), ..call("a") },
            call("b"),
        ];
        assert!(others.iter().all(|other| asks.take(other, &question(now), now).is_none()));
        let other = Question { leaf: "git pull".to_owned(), ..question(now) };
        assert_eq!(asks.take(&call("a"), &other, now), None);
        assert_eq!(asks.take(&call("a"), &question(now), late), None);
        assert_eq!(asks.take(&call("a"), &question(late), now), Some(1));
        assert_eq!(asks.take(&call("a"), &question(now), now), None, "once");
        asks.keep(ask(3, "a", now), now);
        assert!(answer(&mut asks, 3, false, now) && asks.list(now).next().is_none());
    }

    #[test]
    fn one_thing_is_asked_once_and_the_oldest_of_too_many_go() {
        let (mut asks, now) = (LaterAsks::default(), Instant::now());
        for run in 1..=3 {
            asks.keep(ask(run, "again", now), now);
        }
        let runs = |asks: &LaterAsks| asks.list(now).map(|ask| ask.run).collect::<Vec<_>>();
        assert_eq!(runs(&asks), [3]);
        asks.keep(ask(4, &"x".repeat(limits::LATER_BYTES_MAX), now), now);
        assert_eq!(runs(&asks), [4]);
        for run in 5..5 + limits::LATER_ASKS_MAX as u64 {
            asks.keep(ask(run, &run.to_string(), now), now);
        }
        assert_eq!((runs(&asks).len(), runs(&asks)[0]), (limits::LATER_ASKS_MAX, 5));
        assert_eq!(asks.list(now + limits::LATER_KEPT).count(), 0);
    }

    #[test]
    fn the_token_of_an_ask_is_good_for_one_answer_to_any_of_its_runs() {
        let (mut asks, now) = (LaterAsks::default(), Instant::now());
        let later = now + limits::LATER_KEPT / 2;
        asks.keep(ask(1, "a", now), now);
        assert!(asks.untold(1).is_some() && !asks.is_answered_by_token_of(1, now));
        asks.note_told(1, now);
        asks.keep(ask(2, "a", later), later);
        assert_eq!((asks.untold(1), asks.untold(2)), (None, None), "once");
        assert!(asks.is_answered_by_token_of(1, later) && !asks.is_answered_by_token_of(2, later));
        let late = now + limits::LATER_KEPT;
        asks.keep(ask(3, "a", late), late);
        assert!(asks.untold(3).is_some() && !asks.is_answered_by_token_of(1, late), "after a while, again");
        asks.note_told(3, late);
        asks.keep(ask(4, "a", late), late);
        assert!(answer(&mut asks, 3, true, late) && !asks.is_answered_by_token_of(3, late));
        assert_eq!(asks.take(&call("a"), &question(now), late), Some(4));
    }

    #[test]
    fn what_a_person_was_told_of_or_has_allowed_goes_last() {
        let (mut asks, now) = (LaterAsks::default(), Instant::now());
        for run in [1, 2] {
            asks.keep(ask(run, &run.to_string(), now), now);
        }
        asks.note_told(1, now);
        assert!(answer(&mut asks, 2, true, now));
        for run in 3..3 + limits::LATER_ASKS_MAX as u64 {
            asks.keep(ask(run, &run.to_string(), now), now);
        }
        assert_eq!(asks.list(now).map(|ask| ask.run).take(3).collect::<Vec<_>>(), [1, 2, 5]);
    }

    #[test]
    fn a_variable_is_named_by_its_whole_name() {
        for (text, is_named) in
            [("rm $AB", true), ("rm ${AB:-x}", true), ("rm $ABC $xAB", false), ("AB", true), ("", false)]
        {
            assert_eq!(has_name(text.as_bytes(), b"AB"), is_named, "{text}");
        }
    }
}
