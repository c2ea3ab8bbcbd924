//! The rules of the person's file: the host asks them about every command that it runs. Rules that are only watched hold
//! none.
//!
//! Invariants: without rules nothing is read; the host itself reads no call of more than `RULES_CALL_BYTES_MAX`, and looks
//! at no process (`judges.rs`); what a judgement says has no secret of the command's environment or of its text; what an agent is told
//! of it has no word that the agent takes for its own sandbox.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;

use memchr::memmem;

use super::victims::Victims;
use crate::core::end::{Refusal, RefusalCause, Subject};
use crate::core::entry::{Consequence, Judgement, Permit};
use crate::front::caller::patience;
use crate::front::command::{Command, Concern};
use crate::gate::{
    self, Action, Away, Cause, Facts, Gate, GateMode, Judged, Learned, LearnedList, Processes, Reach, Rule, RuleList,
    Unlearnable, Verdict, sandbox_words, shown_leaf, signals_others,
};
use crate::journal::record::{self, DAY_BYTES};
use crate::limits;
use crate::script::{Argument, Leaf};
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::redact::Redactor;

/// Columns of a leaf in a judgement.
const LEAF_COLUMNS: usize = 400;
/// Columns of a process that a command would signal.
const VICTIM_COLUMNS: usize = 120;
/// What a judge answers if there is no finding.
const NOTHING_FOUND: &str = "nothing\n";
/// Columns of a leaf in what an agent is told.
const TOLD_COLUMNS: usize = 80;

#[derive(Debug)]
pub(super) struct Rules {
    gate: Gate,
    /// One of them asks whose processes a command signals.
    look_at_processes: bool,
}

/// What the host itself can say of a command.
#[derive(Debug)]
pub(super) enum FirstLook<F> {
    /// `None` if the rules allow it, and all of it was read.
    Judged(Option<F>),
    /// A judge is to look at it.
    ForJudge,
}

/// A verdict that does not allow a command, or allows one of which not all was read or which the person always allows; and the leaf that it is on, as it is
/// shown.
#[derive(Debug)]
pub(super) struct Finding<'r> {
    verdict: Verdict<'r>,
    leaf: String,
    /// A process of others that it would signal. Empty if that is not asked.
    victim: String,
}

impl Rules {
    pub(super) fn new(gate: Gate) -> Self {
        Self { look_at_processes: gate.looks_at_processes(), gate }
    }

    /// Returns true if they may do anything but allow.
    pub(super) fn are_used(&self) -> bool {
        self.gate.is_used()
    }

    /// The rules of the project with this top, and the settings of these.
    pub(super) fn for_project(&self, top: &[u8], rules: RuleList, reach: Reach) -> Self {
        Self::new(self.gate.for_project(top, rules, reach))
    }

    /// Those of these directories into which a command goes from where it begins. Of a call that the host does not read,
    /// those whose name stands in it: the rules then say more exactly whether it does.
    pub(super) fn entered<'t>(&self, command: &Command, directory: &[u8], others: Vec<&'t Path>) -> Vec<&'t Path> {
        if others.is_empty() {
            return others;
        }
        let names = |name: &OsStr| {
            let name = memmem::Finder::new(name.as_bytes());
            command.exec.iter().any(|word| name.find(word).is_some())
        };
        let is_long = is_long(command);
        let leaves = if is_long { Vec::new() } else { self.leaves(command, directory) };
        let home = value(command, directory, b"HOME").filter(|home| !home.is_empty());
        let facts = facts_around(command, directory, home.as_deref());
        let goes_into = |other: &&Path| match other.file_name().filter(|_| is_long) {
            Some(name) => names(name),
            None => leaves.iter().any(|leaf| gate::goes_into(leaf, &facts, other.as_os_str().as_bytes())),
        };
        others.into_iter().filter(goes_into).collect()
    }

    /// Returns true if they refuse and hold commands.
    pub(super) fn are_in_force(&self) -> bool {
        self.gate.mode == GateMode::Enforce
    }

    /// What the person reads of them when the host begins.
    pub(super) fn greeting(&self) -> String {
        let count = self.gate.rules.len() as u64;
        match (count, self.gate.mode) {
            (0, GateMode::Watch) => "the settings of [gate] are watched and hold no command".to_owned(),
            (1, GateMode::Watch) => "1 rule is watched and holds no command".to_owned(),
            (_, GateMode::Watch) => format!("{} are watched and hold no command", counted(count, "rule", "rules")),
            (0, GateMode::Enforce) => "the settings of [gate] are in force".to_owned(),
            (1, GateMode::Enforce) => "1 rule is in force".to_owned(),
            (_, GateMode::Enforce) => format!("{} are in force", counted(count, "rule", "rules")),
        }
    }

    /// What they find at once in a command that begins in this directory.
    pub(super) fn look(&self, command: &Command, directory: &[u8]) -> FirstLook<Finding<'_>> {
        if is_long(command) {
            return FirstLook::ForJudge;
        }
        let leaves = self.leaves(command, directory);
        if self.look_at_processes && leaves.iter().any(signals_others) {
            return FirstLook::ForJudge;
        }
        FirstLook::Judged(self.find(command, directory, leaves, None))
    }

    /// What a judge finds. `None` if they have read all of it and none asks or denies.
    pub(super) fn judge(&self, command: &Command, directory: &[u8], victims: &Victims<'_>) -> Option<Finding<'_>> {
        let leaves = self.leaves(command, directory);
        let mut finding = self.find(command, directory, leaves, Some(victims))?;
        if finding.verdict.cause.rule().is_some_and(Rule::looks_at_processes) {
            finding.victim = escape_line(&victims.take_hit().unwrap_or_default(), VICTIM_COLUMNS);
        }
        Some(finding)
    }

    /// What is found in a command about which no judge has answered.
    pub(super) fn judge_without(&self, command: &Command, directory: &[u8]) -> Option<Finding<'_>> {
        let leaves = if is_long(command) { vec![Leaf::too_long()] } else { self.leaves(command, directory) };
        self.find(command, directory, leaves, None)
    }

    fn leaves(&self, command: &Command, directory: &[u8]) -> Vec<Leaf> {
        self.gate.leaves_of_call(&command.exec, &|name| value(command, directory, name))
    }

    fn find(
        &self,
        command: &Command,
        directory: &[u8],
        leaves: Vec<Leaf>,
        processes: Option<&Victims<'_>>,
    ) -> Option<Finding<'_>> {
        self.with_judged(command, directory, leaves, processes, |judged, _| {
            let strictest = judged.strictest().filter(|&at| judged.verdicts[at].action != Action::Allow);
            let learned = || judged.verdicts.iter().position(|verdict| matches!(verdict.cause, Cause::Learned(_)));
            let at = strictest.or_else(|| judged.leaves.iter().position(Leaf::is_unread)).or_else(learned)?;
            let redactor = command.redactor();
            let leaf = redactor.masked_command(&shown_leaf(&without_secrets(&judged.leaves[at], &redactor)));
            let leaf = escape_line(&leaf, LEAF_COLUMNS);
            Some(Finding { verdict: judged.verdicts[at], leaf, victim: String::new() })
        })?
    }

    /// What would always allow what this command of the run `from` asks about.
    pub(super) fn learnable(&self, command: &Command, directory: &[u8], from: &str) -> Result<Learned, Unlearnable> {
        if is_long(command) {
            return Err(Unlearnable::Long);
        }
        let redactor = command.redactor();
        let is_secret = |words: &[&[u8]]| {
            let masked = |words: &[&[u8]]| redactor.clone().redact_arguments(words) != words;
            masked(words) || words.iter().any(|word| masked(&[b"", word]))
        };
        let leaves = self.leaves(command, directory);
        let learned = self.with_judged(command, directory, leaves, None, |judged, facts| {
            let at = judged.strictest().filter(|&at| judged.verdicts[at].action == Action::Ask);
            let at = at.ok_or(Unlearnable::Opaque)?;
            self.gate.learnable(&judged.leaves[at], &judged.verdicts[at], facts, from, is_secret)
        });
        learned.unwrap_or(Err(Unlearnable::Opaque))
    }

    /// These, with what the person always allows.
    pub(super) fn with_learned(&self, learned: LearnedList) -> Self {
        let mut gate = self.gate.clone();
        gate.learned = learned;
        Self::new(gate)
    }

    /// Judges a command, and does something with that. `None` for a command without an environment.
    fn with_judged<'r, T>(
        &'r self,
        command: &Command,
        directory: &[u8],
        leaves: Vec<Leaf>,
        processes: Option<&Victims<'_>>,
        then: impl FnOnce(Judged<'r>, &Facts<'_>) -> T,
    ) -> Option<T> {
        command.run()?;
        let home = value(command, directory, b"HOME").filter(|home| !home.is_empty());
        let today = record::timestamp(SystemTime::now());
        let facts = Facts {
            processes: processes.map(|victims| victims as &dyn Processes),
            today: today.get(..DAY_BYTES),
            ..facts_around(command, directory, home.as_deref())
        };
        Some(then(Judged::of(&self.gate, leaves, &facts), &facts))
    }

    /// What follows from a finding about a command of this agent. `is_attended` says that a person is there to answer.
    pub(super) fn judgement(&self, finding: Finding<'_>, agent: &str, is_attended: bool) -> Judgement {
        let consequence = self.consequence(&finding, agent, is_attended);
        let Finding { verdict, leaf, victim } = finding;
        Judgement {
            verdict: verdict.action.word(),
            rule: match verdict.cause {
                Cause::Learned(learned) => learned.rule().map(str::to_owned),
                cause => cause.rule().map(ToString::to_string),
            },
            why: with_victim(verdict.sentence(&leaf), &victim),
            consequence,
            leaf,
        }
    }

    /// What a judge answers: a line with the action, the cause, the place of the rule, the leaf, and behind a tab the victim.
    pub(super) fn encode(&self, finding: Option<&Finding<'_>>) -> Vec<u8> {
        let Some(Finding { verdict, leaf, victim }) = finding else { return NOTHING_FOUND.into() };
        let place = |rule| self.gate.rules.iter().position(|own| std::ptr::eq(own, rule)).unwrap_or(usize::MAX);
        let (cause, place) = match verdict.cause {
            Cause::NoRule => ("none", 0),
            Cause::Rule(rule) => ("rule", place(rule)),
            Cause::PerhapsRule(rule) => ("perhaps", place(rule)),
            Cause::Opaque => ("opaque", 0),
            Cause::Foreign => ("foreign", 0),
            Cause::Learned(learned) => ("learned", self.gate.learned.place_of(learned).unwrap_or(usize::MAX)),
        };
        format!("{} {cause} {place} {leaf}\t{victim}\n", verdict.action.word()).into_bytes()
    }

    /// Decodes a judge's answer: `Some(None)` if there is no finding, `None` if it is not an answer.
    pub(super) fn decode(&self, answer: &[u8]) -> Option<Option<Finding<'_>>> {
        let answer = std::str::from_utf8(answer).ok()?;
        if answer == NOTHING_FOUND {
            return Some(None);
        }
        let (line, victim) = answer.strip_suffix('\n')?.split_once('\t')?;
        let [action, cause, place, leaf] = line.splitn(4, ' ').collect::<Vec<_>>().try_into().ok()?;
        let action = [Action::Allow, Action::Ask, Action::Deny].into_iter().find(|known| known.word() == action)?;
        let rule = || self.gate.rules.get(place.parse::<usize>().ok()?);
        let cause = match cause {
            "none" => Cause::NoRule,
            "rule" => Cause::Rule(rule()?),
            "perhaps" => Cause::PerhapsRule(rule()?),
            "opaque" => Cause::Opaque,
            "foreign" => Cause::Foreign,
            "learned" => Cause::Learned(self.gate.learned.get(place.parse().ok()?)?),
            _ => return None,
        };
        Some(Some(Finding { verdict: Verdict { action, cause }, leaf: leaf.to_owned(), victim: victim.to_owned() }))
    }

    fn consequence(&self, finding: &Finding<'_>, agent: &str, is_attended: bool) -> Consequence {
        let verdict = &finding.verdict;
        let subject = subject(finding);
        let refused = |cause| Consequence::Refused(Refusal { subject: subject.clone(), cause });
        let rule = verdict.cause.rule();
        match verdict.action {
            Action::Allow if matches!(verdict.cause, Cause::Learned(_)) => Consequence::Permitted(Permit::Learned),
            Action::Allow => Consequence::Unread,
            Action::Ask | Action::Deny if !self.are_in_force() => Consequence::Watched,
            Action::Deny => refused(RefusalCause::Denied),
            Action::Ask => self.asked(subject, rule, agent, is_attended),
        }
    }

    /// What follows where a person is asked, by a rule or without one.
    fn asked(&self, subject: Subject, rule: Option<&Rule>, agent: &str, is_attended: bool) -> Consequence {
        match rule.and_then(|rule| rule.away).unwrap_or(self.gate.away) {
            Away::Deny if !is_attended => Consequence::Refused(Refusal { subject, cause: RefusalCause::Away }),
            Away::Deny | Away::Wait => {
                let wait = rule.and_then(|rule| rule.wait).unwrap_or(self.gate.ask_wait);
                // A command that its agent kills is an error for its model, which tries again. A refusal says more.
                let most = patience(agent).map(|patience| patience.saturating_sub(limits::PATIENCE_LEFT));
                Consequence::Asked { subject, wait: most.map_or(wait, |most| wait.min(most)) }
            }
        }
    }

    /// What follows for a command that the person is asked about for this reason.
    pub(super) fn judgement_on(&self, concern: &Concern, command: &Command, is_attended: bool) -> Judgement {
        let redactor = command.redactor();
        let masked = |text: &str| escape_line(&redactor.masked_command(text), LEAF_COLUMNS);
        let leaf = masked(&command.line.text);
        let (brief, why) = match concern {
            Concern::Restore { run } => {
                let why = format!("`{leaf}` brings back what #{run} has destroyed; rexec kept {run} names it");
                (format!("rexec undo {run}"), why)
            }
            Concern::Unkept { what } => ("the command".to_owned(), format!("it {} (unkept = \"ask\")", masked(what))),
        };
        let told = if sandbox_words(&leaf).is_none() { leaf.clone() } else { brief };
        let subject = Subject { leaf: escape_line(&told, TOLD_COLUMNS), rule: None, why: None };
        let consequence = self.asked(subject, None, command.caller.agent, is_attended);
        Judgement { verdict: Action::Ask.word(), rule: None, leaf, why, consequence }
    }
}

/// What an agent is told of a finding.
fn subject(finding: &Finding<'_>) -> Subject {
    let Finding { verdict, leaf, victim } = finding;
    let is_told = |text: &str| sandbox_words(text).is_none();
    let program = leaf.split(' ').next().unwrap_or_default();
    let shown = [&**leaf, program, "the command"].into_iter().find(|text| is_told(text)).unwrap_or_default();
    let rule = verdict.cause.rule();
    let why = match verdict.cause {
        Cause::Opaque => Some("it is not known what it runs".to_owned()),
        Cause::Foreign => Some("it runs code of another language".to_owned()),
        Cause::NoRule | Cause::Rule(_) | Cause::PerhapsRule(_) | Cause::Learned(_) => {
            rule.and_then(|rule| rule.why.clone())
        }
    };
    let why = match why {
        Some(why) if is_told(victim) => Some(with_victim(why, victim)),
        why => why,
    };
    Subject {
        leaf: escape_line(shown, TOLD_COLUMNS),
        rule: rule.and_then(|rule| rule.name.clone()).filter(|name| is_told(name)),
        why,
    }
}

/// A sentence, with the process that would be hit.
fn with_victim(sentence: String, victim: &str) -> String {
    if victim.is_empty() { sentence } else { format!("{sentence} It would hit {victim}.") }
}

/// Returns true if the host itself does not read a command.
pub(super) fn is_long(command: &Command) -> bool {
    command.exec.iter().map(Vec::len).sum::<usize>() > limits::RULES_CALL_BYTES_MAX
}

/// What is known of a command without looking.
fn facts_around<'a>(command: &'a Command, directory: &'a [u8], home: Option<&'a [u8]>) -> Facts<'a> {
    let caller = &command.caller;
    Facts {
        agent: Some(if caller.agent.is_empty() { &caller.whoami } else { caller.agent }),
        session: Some(caller.session.as_str()).filter(|session| !session.is_empty()),
        directory: Some(directory),
        project: command.depth.and_then(|depth| above(directory, depth)),
        home,
        processes: None,
        today: None,
    }
}

/// The value of a variable where a command begins.
pub(super) fn value(command: &Command, directory: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    if name == b"PWD" {
        return Some(directory.to_vec());
    }
    let mut env = command.run()?.env.iter();
    env.find_map(|entry| entry.to_bytes().strip_prefix(name)?.strip_prefix(b"=")).map(<[u8]>::to_vec)
}

/// A leaf without secrets. It may have the values of variables that the text only names, and quotes would hide them.
fn without_secrets(leaf: &Leaf, redactor: &Redactor) -> Leaf {
    let shown: Vec<Vec<u8>> =
        std::iter::once(leaf.program.clone()).chain(leaf.arguments.iter().map(Argument::shown)).collect();
    let words: Vec<&[u8]> = shown.iter().map(Vec::as_slice).collect();
    let masked = redactor.clone().redact_arguments(&words).into_iter().skip(1);
    // The first word of a command is never masked. Here it may be the value of a variable.
    let word = |word: &[u8]| redactor.clone().redact_arguments(&[b"", word]).pop().unwrap_or_default();
    let targets: Vec<Vec<u8>> = leaf.redirects.iter().map(|redirect| word(&redirect.target.shown())).collect();
    let mut leaf = Leaf { program: word(&leaf.program), ..leaf.clone() };
    let places = leaf.arguments.iter_mut().chain(leaf.redirects.iter_mut().map(|redirect| &mut redirect.target));
    for (place, masked) in places.zip(masked.chain(targets)) {
        if place.shown() != masked {
            *place = Argument::from(&masked[..]);
        }
    }
    leaf
}

/// The directory that lies so many steps above this one.
pub(super) fn above(directory: &[u8], depth: u8) -> Option<&[u8]> {
    let mut top = directory;
    for _ in 0..depth {
        let at = memchr::memrchr(b'/', top)?;
        top = if at == 0 { b"/" } else { &top[..at] };
    }
    Some(top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::load;

    #[test]
    fn a_judge_answers_in_a_line_and_half_of_it_is_no_answer() {
        let text = b"[[rule]]\ndo = 'deny'\nrun = 'rm'\n[[rule]]\nname = 'push'\ndo = 'ask'\nrun = 'git push'\n";
        let rules = Rules::new(load(text, "config.toml").expect("rules").gate);
        let [list, push] = &rules.gate.rules[..] else { panic!("two rules") };
        for (action, cause, leaf) in [
            (Action::Deny, Cause::Rule(list), "rm -r a  b"),
            (Action::Ask, Cause::PerhapsRule(push), "git $x"),
            (Action::Ask, Cause::Opaque, ""),
            (Action::Deny, Cause::Foreign, "awk 'é'"),
            (Action::Allow, Cause::NoRule, "(it is too long)"),
        ] {
            let verdict = Verdict { action, cause };
            let (leaf, victim) = (leaf.to_owned(), "node (process 12)".to_owned());
            let answer = rules.encode(Some(&Finding { verdict, leaf: leaf.clone(), victim: victim.clone() }));
            let found = rules.decode(&answer).expect("an answer").expect("a finding");
            assert_eq!((found.verdict.sentence("x"), found.leaf), (verdict.sentence("x"), leaf));
            assert_eq!(found.victim, victim);
            assert!(rules.decode(&answer[..answer.len() - 1]).is_none());
        }
        assert!(rules.decode(&rules.encode(None)).is_some_and(|found| found.is_none()));
        for other in [
            "",
            "nothing",
            "ask rule 2 x\t\n",
            "ask rule 0 x\n",
            "ask rule\t\n",
            "maybe opaque 0 x\t\n",
            "deny other 0 x\t\n",
        ] {
            assert!(rules.decode(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn no_question_lasts_longer_than_its_agents_patience() {
        let text = b"[gate]\nmode = 'enforce'\nask_wait = '10m'\n[[rule]]\ndo = 'ask'\nrun = 'rm'\nwait = '15s'\n";
        let rules = Rules::new(load(text, "config.toml").expect("rules").gate);
        let wait = |cause, agent| {
            let verdict = Verdict { action: Action::Ask, cause };
            match rules
                .judgement(Finding { verdict, leaf: String::new(), victim: String::new() }, agent, true)
                .consequence
            {
                Consequence::Asked { wait, .. } => wait.as_secs(),
                other => panic!("{other:?}"),
            }
        };
        for (agent, seconds) in [
            ("", 600),
            ("Claude Code", 600),
            ("mini-swe-agent", 20),
            ("opencode", 110),
            ("Qwen Code", 110),
            ("Gemini CLI", 290),
        ] {
            assert_eq!(wait(Cause::Opaque, agent), seconds, "{agent}");
            assert_eq!(wait(Cause::Rule(&rules.gate.rules[0]), agent), 15, "{agent}");
        }
    }

    #[test]
    fn a_project_lies_some_steps_above_a_directory() {
        for (directory, depth, top) in
            [("/a/b/c", 0, Some("/a/b/c")), ("/a/b/c", 2, Some("/a")), ("/a", 1, Some("/")), ("a", 1, None)]
        {
            assert_eq!(above(directory.as_bytes(), depth), top.map(str::as_bytes), "{directory} {depth}");
        }
    }
}
