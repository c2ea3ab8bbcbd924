//! One rule, and whether it matches a leaf.
//!
//! Invariant: where words can be read in several ways, a rule that asks or denies takes any of them, and one that allows
//! needs all.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use super::answer::{Answer, Glob};
use super::kills;
use super::places::{self, Path, Place};
use super::subject::Subject;
use super::words::{Reading, Wanted, Words};
use crate::script::{Argument, Leaf, LeafState, Via, base_name};

/// What is done with a command. The larger one is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Action {
    #[default]
    Allow,
    Ask,
    Deny,
}

impl Action {
    /// As it is written in a file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What an ask becomes when nobody is at the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Away {
    #[default]
    Deny,
    Wait,
}

/// Where a rule is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RuleSource {
    #[default]
    Nowhere,
    /// The name of a file, and the line.
    File(Rc<str>, usize),
    Pack(&'static str),
}

impl fmt::Display for RuleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => Ok(()),
            Self::File(name, line) => write!(f, "{name}:{line}"),
            Self::Pack(name) => write!(f, "pack {name}"),
        }
    }
}

/// Parts of `-f|--force|+*`, one of which must be there.
pub(super) type Group = Vec<Wanted>;

/// A rule.
#[derive(Debug, Clone, Default)]
pub struct Rule {
    pub name: Option<String>,
    pub source: RuleSource,
    pub action: Action,
    pub why: Option<String>,
    pub away: Option<Away>,
    pub wait: Option<Duration>,
    /// What is not known holds nothing, `--help` passes, the shell's redirections are no operands, and of SQL only the
    /// statements count.
    pub(super) is_lenient: bool,
    /// The program, then its operands.
    pub(super) run: Vec<Glob>,
    pub(super) with: Vec<Group>,
    pub(super) without: Vec<Group>,
    pub(super) outside: Vec<Place>,
    pub(super) inside: Vec<Place>,
    pub(super) writes: Vec<Place>,
    pub(super) kills_others: bool,
    pub(super) agent: Option<Glob>,
    pub(super) session: Option<Glob>,
    pub(super) cwd: Vec<Place>,
    pub(super) via: Option<Glob>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name} ({})", self.source),
            None => write!(f, "{}", self.source),
        }
    }
}

impl Rule {
    fn reading(&self) -> Reading {
        if self.action == Action::Allow { Reading::All } else { Reading::Any }
    }

    /// The names of its program, if they are all known in full.
    pub(super) fn program_names(&self) -> Option<&[Vec<u8>]> {
        self.run.first().and_then(Glob::texts)
    }

    pub(super) fn is_pack(&self) -> bool {
        matches!(self.source, RuleSource::Pack(_))
    }

    /// Whether it has a condition on the command itself.
    pub(super) fn has_subject(&self) -> bool {
        let lists = !self.run.is_empty() || !self.with.is_empty() || !self.writes.is_empty();
        lists || !self.outside.is_empty() || !self.inside.is_empty() || self.kills_others || self.via.is_some()
    }

    /// Returns true if it asks whose processes a command signals.
    #[must_use]
    pub fn looks_at_processes(&self) -> bool {
        self.kills_others
    }

    /// Returns true if it has no condition but `run`.
    fn is_plain(&self) -> bool {
        let lists = [&self.outside, &self.inside, &self.writes, &self.cwd].iter().all(|list| list.is_empty());
        let globs = [&self.agent, &self.session, &self.via].iter().all(|glob| glob.is_none());
        lists && globs && self.with.is_empty() && self.without.is_empty() && !self.kills_others && !self.run.is_empty()
    }

    /// Returns true if every leaf that another rule matches is matched by this one, which allows it.
    #[must_use]
    pub fn hides(&self, other: &Self) -> bool {
        self.action == Action::Allow && self.is_plain() && other.run.starts_with(&self.run)
    }

    /// Returns true if an earlier rule that allows a program does not lift this one: it is about written files alone, and
    /// that one does not speak of them.
    pub(super) fn outlasts(&self, allowed: &Self) -> bool {
        self.run.is_empty() && !self.writes.is_empty() && allowed.writes.is_empty()
    }

    /// Whether it matches a leaf.
    pub(super) fn answer(&self, subject: &Subject<'_>) -> Answer {
        let answer = self.answer_on_command(subject);
        if answer == Answer::No {
            return answer;
        }
        let facts = subject.facts;
        let asked = |glob: &Option<Glob>, value: Option<&str>| match (glob, value) {
            (None, _) => Answer::Yes,
            (Some(_), None) => Answer::Perhaps,
            (Some(glob), Some(value)) => Answer::of(glob.matches(value.as_bytes())),
        };
        let here = match &self.cwd[..] {
            [] => Answer::Yes,
            places => {
                let here = Path::of_directory(subject.leaf, facts);
                self.answer_on_path(&here, places, subject)
            }
        };
        answer.min(asked(&self.agent, facts.agent)).min(asked(&self.session, facts.session)).min(here)
    }

    /// The same, but for who runs it and where.
    pub(super) fn answer_on_command(&self, subject: &Subject<'_>) -> Answer {
        let leaf = subject.leaf;
        let program = self.answer_on_program(leaf);
        // Nothing is known of what an opaque leaf runs; `opaque` says what is done with it.
        let is_nothing =
            leaf.program.is_empty() && (matches!(leaf.state, LeafState::Opaque(_)) || !self.run.is_empty());
        if program == Answer::No || is_nothing && self.via.is_none() {
            return Answer::No;
        }
        let (run, skipped) = self.answer_on_operands(subject);
        let mut answer = run.min(program).min(self.answer_on_layers(leaf));
        if answer == Answer::No || self.is_lenient && !self.run.is_empty() && subject.words().ask_for_help() {
            return Answer::No;
        }
        answer = answer.min(self.answer_on_words(subject, skipped));
        if answer == Answer::No {
            return answer;
        }
        answer = answer.min(self.answer_on_places(subject, skipped));
        answer = answer.min(match &self.writes[..] {
            [] => Answer::Yes,
            wanted => Answer::any(subject.written().iter().map(|path| self.answer_on_path(path, wanted, subject))),
        });
        if self.kills_others {
            answer = answer.min(kills::answer(subject.leaf, subject.facts.processes));
        }
        answer
    }

    /// Whether `with` and `without` hold. Each statement of SQL counts for itself.
    fn answer_on_words(&self, subject: &Subject<'_>, skipped: usize) -> Answer {
        if self.with.is_empty() && self.without.is_empty() {
            return Answer::Yes;
        }
        let statements = subject.statements();
        let each = statements.iter().map(|statement| self.answer_on_options(&Words::of_statement(statement), 0));
        let answer = Answer::any(each);
        if self.is_lenient && !statements.is_empty() {
            answer
        } else {
            answer.max(self.answer_on_options(subject.words(), skipped))
        }
    }

    fn answer_on_options(&self, words: &Words<'_>, skipped: usize) -> Answer {
        let reading = self.reading();
        let opposite = if reading == Reading::Any { Reading::All } else { Reading::Any };
        let has = |group: &Group, reading| Answer::any(group.iter().map(|one| one.answer(words, skipped, reading)));
        let with = Answer::all(self.with.iter().map(|group| has(group, reading)));
        with.min(Answer::all(self.without.iter().map(|group| match reading {
            // Only what is surely there lifts a strict rule.
            Reading::Any => Answer::of(has(group, opposite) == Answer::Yes).negated(),
            Reading::All if words.may_have_more_options() => Answer::Perhaps.min(has(group, opposite).negated()),
            Reading::All => has(group, opposite).negated(),
        })))
    }

    fn answer_on_program(&self, leaf: &Leaf) -> Answer {
        let Some(program) = self.run.first() else { return Answer::Yes };
        if program.matches(&leaf.program) {
            return Answer::Yes;
        }
        let name = base_name(&leaf.program);
        if name.len() == leaf.program.len() {
            return Answer::No;
        }
        // A path is another program, or the same one.
        let most = if self.reading() == Reading::All { Answer::Perhaps } else { Answer::Yes };
        Answer::of(program.matches(name)).min(most)
    }

    /// Whether the operands begin as the rule says, and how many of them do.
    fn answer_on_operands(&self, subject: &Subject<'_>) -> (Answer, usize) {
        let mut answer = Answer::Yes;
        let mut at = 0;
        for wanted in self.run.iter().skip(1) {
            loop {
                let Some(operand) = subject.words().operands.get(at) else { return (Answer::No, at) };
                if operand.is_open() {
                    return (Answer::Perhaps, at);
                }
                at += 1;
                let found = wanted.answer(operand.word);
                if found == Answer::No && operand.is_certain {
                    return (Answer::No, at);
                }
                if !operand.is_certain && self.reading() == Reading::All {
                    answer = Answer::Perhaps;
                }
                if found != Answer::No {
                    answer = answer.min(found);
                    break;
                }
            }
        }
        (answer, at)
    }

    fn answer_on_layers(&self, leaf: &Leaf) -> Answer {
        match &self.via {
            Some(glob) => Answer::of(leaf.via.iter().any(|via| glob.matches(via.to_string().as_bytes()))),
            // A variable in front may make the program another one.
            None if self.reading() == Reading::All && leaf.via.iter().any(|via| matches!(via, Via::Variable(_))) => {
                Answer::Perhaps
            }
            None => Answer::Yes,
        }
    }

    fn answer_on_places(&self, subject: &Subject<'_>, skipped: usize) -> Answer {
        if self.outside.is_empty() && self.inside.is_empty() {
            return Answer::Yes;
        }
        let (leaf, facts) = (subject.leaf, subject.facts);
        let words = subject.words().operands.iter().map(|operand| operand.word);
        let operands = subject.operands().iter().zip(words).skip(skipped);
        // A lenient rule is about what its program does, not about where the shell writes.
        let written = places::written_targets(leaf).filter(|_| !self.is_lenient);
        let targets: Vec<(Path, &Argument)> = written.map(|word| (Path::of(word, leaf, facts), word)).collect();
        let any = |wanted: &dyn Fn(&Path, &Argument) -> Answer| {
            let targets = targets.iter().map(|(path, word)| wanted(path, word));
            Answer::any(operands.clone().map(|(path, word)| wanted(path, word)).chain(targets))
        };
        let is_elsewhere = self.is_elsewhere(subject);
        let in_one = |path: &Path, place: &Place| match place {
            // Another machine does not have them, or others.
            Place::Home(_) | Place::Project(_) if is_elsewhere => place.holds(path, facts).min(Answer::Perhaps),
            place => place.holds(path, facts),
        };
        let in_any = |path: &Path| Answer::any(self.outside.iter().map(|place| in_one(path, place)));
        let outside = |path: &Path, word: &Argument| match in_any(path).negated() {
            _ if path.holds_home(facts) => Answer::Yes,
            Answer::Yes if is_elsewhere => Answer::Perhaps,
            Answer::Perhaps if self.is_lenient && places::can_be_root(word, leaf, facts) => Answer::Yes,
            Answer::Yes if path.is_filled && self.reading() == Reading::All => Answer::Perhaps,
            answer => answer,
        };
        let inside = |path: &Path, _: &Argument| match self.answer_on_path(path, &self.inside, subject) {
            Answer::Yes if (path.is_open() || path.is_filled) && self.reading() == Reading::All => Answer::Perhaps,
            answer => answer,
        };
        let is_asked = |places: &[Place]| !places.is_empty();
        let mut answer = Answer::Yes;
        if is_asked(&self.outside) {
            answer = answer.min(any(&outside));
        }
        if is_asked(&self.inside) {
            answer = answer.min(any(&inside));
        }
        answer
    }

    /// Whether a path lies in one of these places.
    fn answer_on_path(&self, path: &Path, places: &[Place], subject: &Subject<'_>) -> Answer {
        let is_elsewhere = self.is_elsewhere(subject);
        Answer::any(places.iter().map(|place| match place {
            Place::Absolute(_) | Place::Home(_) | Place::Project(_) if is_elsewhere => {
                place.holds(path, subject.facts).min(Answer::Perhaps)
            }
            place => place.holds(path, subject.facts),
        }))
    }

    /// Returns true if the paths of a leaf are those of another machine or of a container. A lenient rule takes them for those
    /// of here: what lies on another machine lies outside of the project, and is as precious.
    fn is_elsewhere(&self, subject: &Subject<'_>) -> bool {
        !self.is_lenient && subject.is_elsewhere()
    }

    /// Returns true if it says nothing where it may match or not: a lenient rule about paths, since most are not known.
    pub(super) fn is_silent_if_perhaps(&self) -> bool {
        self.is_lenient && [&self.outside, &self.inside, &self.writes].iter().any(|places| !places.is_empty())
    }

    /// What is done if it may match or not. What a lenient rule does not know is told, and holds nothing.
    pub(super) fn action_if_perhaps(&self, perhaps: Action) -> Action {
        if self.is_lenient { Action::Allow } else { self.action.min(perhaps) }
    }
}
