//! The rules of the person's file, which an agent may have changed since the person has accepted it.
//!
//! Invariants: the accepted text and the file as it is both hold until the person accepts the change, over restarts, too;
//! a change that cannot be used changes nothing.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use super::rules::Rules;
use super::watched_file::{Content, Texts, WatchedFile, Whose};
use crate::gate::{self, LearnedList, RulesError};
use crate::recorder;
use crate::sys::process;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Columns of a sentence about the file.
const SENTENCE_COLUMNS: usize = 400;
const ACCEPT: &str = "rexec config diff shows what, rexec config accept accepts it";

/// How the file stands to what the person has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Same,
    Changed,
    Gone,
    /// It cannot be used.
    Wrong,
}

#[derive(Debug)]
pub(super) struct OwnRules {
    watched: WatchedFile,
    /// A host that has begun without a file does not look for one, until a person says that there is one.
    looks: bool,
    accepted: Option<Vec<u8>>,
    accepted_rules: Option<Rc<Rules>>,
    /// What the person always allows, whatever asks about it.
    learned: LearnedList,
    /// Those of the file as it is, if it differs from what is accepted.
    changed_rules: Option<Rc<Rules>>,
    standing: Standing,
    /// What the person was told last of which content, while the file is not as accepted.
    told: Option<(String, Content)>,
}

impl OwnRules {
    /// Reads the file at this path when the host begins. If nothing was accepted yet, the file counts as accepted. Returns
    /// what a person should know, too.
    pub(super) fn open(path: PathBuf, home: &Path) -> (Self, Vec<String>) {
        let mut own = Self {
            watched: WatchedFile::new(path, Whose::Persons, home),
            looks: false,
            accepted: None,
            accepted_rules: None,
            learned: LearnedList::default(),
            changed_rules: None,
            standing: Standing::Same,
            told: None,
        };
        let Some(mut texts) = own.watched.look_at_start() else { return (own, Vec::new()) };
        let mut said = Vec::new();
        if let (Content::Text(text), None) = (&texts.file, &texts.accepted) {
            if let Err(error) = recorder::accept(home, process::uid(), &own.watched.path, text) {
                said.push(format!("cannot keep what {} says now: {}", own.shown(), reason(&error)));
            }
            texts.accepted = Some(text.clone());
        }
        own.looks = texts.file != Content::Nothing || texts.accepted.is_some();
        let remark = own.take(texts);
        said.extend(own.layers().map(|rules| rules.greeting()).take(1));
        said.extend(remark);
        (own, said)
    }

    /// Those that hold.
    pub(super) fn layers(&self) -> impl Iterator<Item = Rc<Rules>> {
        self.all().filter(|rules| rules.are_used()).cloned()
    }

    /// Those whose settings say most.
    pub(super) fn strictest(&self) -> Option<&Rc<Rules>> {
        self.all().find(|rules| rules.are_in_force()).or(self.all().next())
    }

    fn all(&self) -> impl Iterator<Item = &Rc<Rules>> {
        self.changed_rules.iter().chain(&self.accepted_rules)
    }

    /// Looks whether the file has changed, if that is due. Returns what a person should know of it.
    pub(super) fn look(&mut self, now: Instant) -> Option<String> {
        if !self.looks {
            return None;
        }
        let texts = self.watched.look(now)?;
        self.take(texts)
    }

    /// A person has changed what is accepted.
    pub(super) fn look_again(&mut self, now: Instant) -> Option<String> {
        self.looks = true;
        self.watched.look_again();
        let texts = self.watched.look(now)?;
        if texts.accepted.is_none() && texts.file == Content::Nothing {
            self.accepted = None;
        }
        self.take(texts)
    }

    fn take(&mut self, Texts { file, accepted }: Texts) -> Option<String> {
        // What was accepted is not given up because its copy is gone.
        let first = || match &file {
            Content::Text(text) => Some(text.clone()),
            Content::Nothing | Content::Unfit(_) | Content::Far => None,
        };
        self.accepted = accepted.or_else(|| self.accepted.take()).or_else(first);
        let before = self.standing;
        let accepted = self.accepted.as_deref();
        let remark = match (&file, accepted) {
            (Content::Unfit(why), _) => self.wrong(&format!("{}: {why}", self.shown())),
            (Content::Text(text), Some(accepted)) if text != accepted => match self.rules(text, &self.name()) {
                Ok(rules) => {
                    (self.changed_rules, self.standing) = (Some(rules), Standing::Changed);
                    format!("{} has changed, and the stricter of old and new holds: {ACCEPT}", self.shown())
                }
                Err(error) => self.wrong(&format!("{}:{error}", self.shown())),
            },
            (Content::Nothing, Some(_)) => {
                (self.changed_rules, self.standing) = (None, Standing::Gone);
                format!("{} is gone, and what you have accepted holds: rexec config accept ends that", self.shown())
            }
            (Content::Text(_) | Content::Nothing | Content::Far, _) => {
                (self.changed_rules, self.standing) = (None, Standing::Same);
                String::new()
            }
        };
        let name = if self.standing == Standing::Same { self.name() } else { format!("accepted {}", self.name()) };
        let rules = self.accepted.as_ref().map(|text| self.rules(text, &name)).transpose();
        let problem = rules
            .as_ref()
            .err()
            .map(|error| format!("what you have accepted of {} says nothing to this rexec: {error}", self.shown()));
        self.accepted_rules = rules.unwrap_or_default();
        let remark = problem.unwrap_or(remark);
        match (remark.is_empty(), before) {
            (false, _) => {
                let told = Some((escape_line(&remark, SENTENCE_COLUMNS), file));
                let is_new = told != self.told;
                self.told = told;
                self.told.as_ref().map(|(remark, _)| remark.clone()).filter(|_| is_new)
            }
            (true, Standing::Same) => None,
            (true, _) => {
                self.told = None;
                let rules = self.layers().next().map_or_else(|| "it has no rules".to_owned(), |rules| rules.greeting());
                Some(format!("{} is as you have accepted it: {rules}", self.shown()))
            }
        }
    }

    /// The file cannot be used: what it said before goes on holding.
    fn wrong(&mut self, problem: &str) -> String {
        self.standing = Standing::Wrong;
        format!("{problem}; the rules that held before hold on")
    }

    /// The rules of a text.
    fn rules(&self, text: &[u8], name: &str) -> Result<Rc<Rules>, RulesError> {
        let learned = self.learned.clone();
        gate::load(text, name).map(|loaded| Rc::new(Rules::new(loaded.gate).with_learned(learned)))
    }

    pub(super) fn set_learned(&mut self, learned: &LearnedList) {
        self.learned = learned.clone();
        for rules in self.accepted_rules.iter_mut().chain(&mut self.changed_rules) {
            *rules = Rc::new(rules.with_learned(learned.clone()));
        }
    }

    fn name(&self) -> String {
        self.watched.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn shown(&self) -> String {
        self.watched.path.display().to_string()
    }
}
