//! Rules for commands: what a person wants done with the leaves of a command's text.
//!
//! ```text
//!   text ──script──▶ leaves ─┐
//!   file ──document, config──┴─▶ Gate::judge ─▶ Verdict: allow, ask or deny, and the rule
//! ```
//!
//! Invariants: nothing is run, and nothing is looked up on the disk or in /proc. A command is judged as strictly as its
//! strictest leaf. A rule that allows never acts on what it does not know. More rules that ask or deny, below none that
//! allows, never loosen a verdict.

mod answer;
mod config;
mod document;
mod habits;
mod judged;
mod kept;
mod kills;
mod leaf_words;
mod learned;
pub mod packs;
mod places;
mod rule;
mod rule_list;
mod statements;
mod subject;
mod words;

use std::fmt::Write;
use std::rc::Rc;
use std::time::Duration;

pub use answer::{Answer, Glob};
pub use config::{GATE_KEYS, Loaded, PROJECT_FILE, SANDBOX_WORDS_HINT, load, load_project, sandbox_words};
pub use document::{Document, Pair, RulesError, Table, TextPlace, Value};
pub use habits::{Habit, ToolUse};
pub use judged::Judged;
pub use kept::{KeepingBounds, UNDO_KEYS, UndoSettings, Unkept};
pub use kills::{Aim, Finder, Processes, signals_others};
pub use leaf_words::{leaf_words, problem_in_words, redirection_words, shown_leaf, why_opaque};
pub use learned::{Learned, LearnedList, Unlearnable};
pub use places::{Facts, goes_into};
pub use rule::{Action, Away, Rule, RuleSource};
pub use rule_list::RuleList;
pub use words::{ValueOptions, Words};

use subject::Subject;

use rexec_sh::protocol::invocation::{Shell, is_command};

use crate::limits;
use crate::script::{self, Argument, Leaf, LeafState, OpaqueReason, Problem, VariableLookup, Via, base_name};

/// What verdicts do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GateMode {
    /// They are shown, and nothing is held.
    #[default]
    Watch,
    Enforce,
}

/// The leaves that a gate judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    #[default]
    All,
    /// Those of a command from elsewhere that goes into its project.
    Entering,
}

/// All rules, in their order, and what is done where none decides.
#[derive(Debug, Clone)]
pub struct Gate {
    pub mode: GateMode,
    /// What is done with leaves of which it is not known what runs.
    pub opaque: Action,
    /// What is done with code of another language.
    pub foreign: Action,
    /// What is done if a stricter rule may match or not.
    pub perhaps: Action,
    pub away: Away,
    pub ask_wait: Duration,
    wrappers: Vec<String>,
    programs: Vec<ValueOptions>,
    /// Those that are named. [`load`] puts their rules behind the others.
    packs: Vec<&'static str>,
    pub rules: RuleList,
    /// The top of the project whose rules these are.
    project: Option<Vec<u8>>,
    reach: Reach,
    /// What the person always allows, whatever asks about it.
    pub learned: LearnedList,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            mode: GateMode::Watch,
            opaque: Action::Allow,
            foreign: Action::Allow,
            perhaps: Action::Ask,
            away: Away::Deny,
            ask_wait: limits::ASK_WAIT,
            wrappers: Vec::new(),
            programs: Vec::new(),
            packs: Vec::new(),
            rules: RuleList::default(),
            project: None,
            reach: Reach::All,
            learned: LearnedList::default(),
        }
    }
}

/// What is done with a leaf, and why.
#[derive(Debug, Clone, Copy)]
pub struct Verdict<'g> {
    pub action: Action,
    pub cause: Cause<'g>,
}

/// What a verdict comes from.
#[derive(Debug, Clone, Copy)]
pub enum Cause<'g> {
    NoRule,
    Rule(&'g Rule),
    /// A rule that may match or not.
    PerhapsRule(&'g Rule),
    Opaque,
    Foreign,
    /// What the person always allows, although rules ask.
    Learned(&'g Learned),
}

impl<'g> Cause<'g> {
    #[must_use]
    pub fn rule(&self) -> Option<&'g Rule> {
        match self {
            Self::Rule(rule) | Self::PerhapsRule(rule) => Some(rule),
            Self::NoRule | Self::Opaque | Self::Foreign | Self::Learned(_) => None,
        }
    }
}

impl Verdict<'_> {
    /// The verdict on a leaf in one sentence. `leaf` is how the leaf is shown.
    #[must_use]
    pub fn sentence(&self, leaf: &str) -> String {
        let action = self.action.word();
        let acts = match self.action {
            Action::Allow => "allows",
            Action::Ask => "asks about",
            Action::Deny => "denies",
        };
        let mut sentence = match &self.cause {
            Cause::NoRule => format!("no rule matches `{leaf}`"),
            Cause::Rule(rule) => format!("rule {rule} {acts} `{leaf}`"),
            Cause::PerhapsRule(rule) => {
                format!("rule {rule} may match `{leaf}`, depending on what is not known (perhaps = \"{action}\")")
            }
            Cause::Opaque => format!("it is not known what `{leaf}` runs (opaque = \"{action}\")"),
            Cause::Foreign => format!("`{leaf}` runs code of another language (foreign = \"{action}\")"),
            Cause::Learned(learned) => {
                let asks =
                    learned.rule().map_or_else(|| "a setting asks".to_owned(), |rule| format!("rule {rule} asks"));
                format!("you always allow `{leaf}` here, although {asks} (rexec gate learned)")
            }
        };
        if let Some(why) = self.cause.rule().and_then(|rule| rule.why.as_deref()) {
            let _ = write!(sentence, ": {why}");
        }
        sentence
    }
}

impl Gate {
    /// The leaves of a text, and what the programs run that its rules call wrappers.
    #[must_use]
    pub fn leaves(&self, text: &[u8], environment: VariableLookup<'_>) -> Vec<Leaf> {
        self.with_wrapped(script::leaves(text, environment).leaves, environment)
    }

    /// Returns true if it may do anything but allow.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.rules.is_empty() || [self.opaque, self.foreign].iter().any(|&action| action != Action::Allow)
    }

    /// The gate with further rules: behind its own ones, in front of those of its packs.
    #[must_use]
    pub fn extended(mut self, rules: Vec<Rule>) -> Self {
        let mut own = std::mem::take(&mut self.rules).into_rules();
        let packs = own.split_off(own.iter().position(Rule::is_pack).unwrap_or(own.len()));
        self.rules.extend(own.into_iter().chain(rules).chain(packs));
        self
    }

    /// Returns true if a rule asks whose processes a command signals.
    #[must_use]
    pub fn looks_at_processes(&self) -> bool {
        self.rules.iter().any(Rule::looks_at_processes)
    }

    /// The rules of the project with this top, and the settings of this gate, which say what verdicts do. What no rule
    /// matches is allowed.
    #[must_use]
    pub fn for_project(&self, top: &[u8], rules: RuleList, reach: Reach) -> Self {
        let (opaque, foreign, project) = (Action::Allow, Action::Allow, Some(top.to_vec()));
        Self { opaque, foreign, packs: Vec::new(), rules, project, reach, ..self.clone() }
    }

    /// What is known around a command. A project's rules are about that project, whichever git project the command is in.
    fn own_facts<'f>(&'f self, facts: &Facts<'f>) -> Facts<'f> {
        Facts { project: self.project.as_deref().or(facts.project), ..*facts }
    }

    /// Of several gates the one whose settings say most: one that is in force goes before one that is watched.
    pub fn strictest<'g>(gates: impl IntoIterator<Item = &'g Self>) -> Option<&'g Self> {
        let mut gates = gates.into_iter().peekable();
        let first = gates.peek().copied();
        gates.find(|gate| gate.mode == GateMode::Enforce).or(first)
    }

    /// Returns true if both gates find the same leaves.
    #[must_use]
    pub fn reads_like(&self, other: &Self) -> bool {
        self.wrappers == other.wrappers
    }

    /// The leaves of a call as the host gets it. If it gives a shell a text, those of the text.
    #[must_use]
    pub fn leaves_of_call(&self, call: &[Vec<u8>], environment: VariableLookup<'_>) -> Vec<Leaf> {
        let shell = call.first().and_then(|name| Shell::named(name));
        let shell = shell.filter(|&shell| is_command(shell, call.iter().map(Vec::as_slice)));
        let mut words: Vec<Argument> = call.iter().map(|word| Argument::from(&word[..])).collect();
        if let Some(shell) = shell {
            words[0] = Argument::from(shell.word().as_bytes());
        }
        let mut leaves = script::leaves_of_arguments(words, environment).leaves;
        // A shell whose language is not read stands for its text.
        let is_read = |leaf: &Leaf| matches!(leaf.state, LeafState::Known | LeafState::Open);
        if shell.is_some() && leaves.first().is_some_and(is_read) {
            leaves.remove(0);
        }
        self.with_wrapped(leaves, environment)
    }

    fn with_wrapped(&self, mut leaves: Vec<Leaf>, environment: VariableLookup<'_>) -> Vec<Leaf> {
        let mut from = 0;
        let mut words_left = limits::SCRIPT_PARTS_MAX;
        for depth in 0..=limits::SCRIPT_LAYERS_MAX {
            let before = leaves.len();
            for at in from..before {
                for begin in self.wrapped(&leaves[at]) {
                    let via = leaves[at].via.iter().cloned();
                    let layer = Via::Layer(base_name(&leaves[at].program).to_vec());
                    let via: Rc<[Via]> = via.chain([layer]).collect();
                    let words = &leaves[at].arguments[begin..];
                    if depth == limits::SCRIPT_LAYERS_MAX || words.len() > words_left {
                        leaves[at].state = LeafState::Opaque(OpaqueReason::NotRead(Problem::TooDeep));
                        continue;
                    }
                    words_left -= words.len();
                    let words = words.to_vec();
                    for mut leaf in script::leaves_of_arguments(words, environment).leaves {
                        leaf.via = via.iter().chain(leaf.via.iter()).cloned().collect();
                        leaf.directory = leaf.directory.or_else(|| leaves[at].directory.clone());
                        leaves.push(leaf);
                    }
                }
            }
            from = before;
        }
        leaves
    }

    /// Where the programs begin that a wrapper may run. A word behind an option may be its value.
    fn wrapped(&self, leaf: &Leaf) -> Vec<usize> {
        let name = base_name(&leaf.program);
        let word = |at: usize| leaf.arguments.get(at).and_then(Argument::text);
        if !self.wrappers.iter().any(|wrapper| wrapper.as_bytes() == name) {
            return Vec::new();
        }
        let mut at = 0;
        let mut is_behind_option = false;
        while word(at).is_some_and(|word| word.starts_with(b"-")) {
            is_behind_option = word(at) != Some(b"--") && word(at).is_some_and(|word| !word.contains(&b'='));
            at += 1;
        }
        let count = if is_behind_option { 2 } else { 1 };
        (at..at + count).filter(|at| *at < leaf.arguments.len()).collect()
    }

    /// The verdict on a leaf: the strictest rule that matches, up to the first that allows, and of those behind it the ones
    /// on written files. A rule that asks about what the person always allows does not count.
    #[must_use]
    pub fn judge(&self, leaf: &Leaf, facts: &Facts<'_>) -> Verdict<'_> {
        let mut verdict = Verdict { action: Action::Allow, cause: Cause::NoRule };
        let is_meant = |top: &Vec<u8>| self.reach == Reach::All || goes_into(leaf, facts, top);
        if !self.project.as_ref().is_none_or(is_meant) {
            return verdict;
        }
        let (mut allowed, mut lifted): (Option<&Rule>, Option<&Learned>) = (None, None);
        let facts = self.own_facts(facts);
        let subject = Subject::of(leaf, &self.programs, &facts);
        for rule in self.rules.on_program(&leaf.program) {
            if allowed.is_some_and(|allowed| !rule.outlasts(allowed)) {
                continue;
            }
            let (action, cause) = match (rule.answer(&subject), rule.action) {
                (Answer::No, _) | (Answer::Perhaps, Action::Allow) => continue,
                (Answer::Perhaps, _) if rule.is_silent_if_perhaps() => continue,
                (Answer::Yes, Action::Allow) => {
                    allowed = Some(rule);
                    if verdict.action == Action::Allow {
                        verdict.cause = Cause::Rule(rule);
                    }
                    continue;
                }
                (Answer::Yes, action) => (action, Cause::Rule(rule)),
                (Answer::Perhaps, _) => (rule.action_if_perhaps(self.perhaps), Cause::PerhapsRule(rule)),
            };
            match self.lifting(action, Some(rule), &subject) {
                Some(learned) => lifted = Some(learned),
                None => verdict.tighten(action, cause),
            }
        }
        let setting = match leaf.state {
            _ if allowed.is_some() => None,
            LeafState::Opaque(_) => Some((self.opaque, Cause::Opaque)),
            LeafState::Foreign => Some((self.foreign, Cause::Foreign)),
            LeafState::Known | LeafState::Open => None,
        };
        if let Some((action, cause)) = setting {
            match self.lifting(action, None, &subject) {
                Some(learned) => lifted = Some(learned),
                None => verdict.tighten(action, cause),
            }
        }
        match lifted {
            Some(learned) if verdict.action == Action::Allow => Verdict { cause: Cause::Learned(learned), ..verdict },
            _ => verdict,
        }
    }

    /// What the person always allows, if this ask is about that.
    fn lifting(&self, action: Action, rule: Option<&Rule>, subject: &Subject<'_>) -> Option<&Learned> {
        if action == Action::Ask && !self.learned.is_empty() { self.learned.lifting(rule, subject) } else { None }
    }
}

impl<'g> Verdict<'g> {
    fn tighten(&mut self, action: Action, cause: Cause<'g>) {
        if action > self.action || (action == self.action && matches!(self.cause, Cause::NoRule)) {
            *self = Verdict { action, cause };
        }
    }
}
