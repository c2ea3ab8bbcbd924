//! The rules that hold for one command together, each with settings of their own.
//!
//! Invariant: what is strictest counts, whichever rules it comes from.

use std::rc::Rc;

use super::rules::{Finding, FirstLook, Rules};
use super::victims::Victims;
use crate::core::entry::{Consequence, Judgement};
use crate::front::command::Command;
use crate::gate::{Action, Learned, Unlearnable};

#[derive(Debug, Clone)]
pub(super) struct RuleLayers(Rc<[Rc<Rules>]>);

impl RuleLayers {
    /// `None` if there are no rules.
    pub(super) fn of(rules: impl Iterator<Item = Rc<Rules>>) -> Option<Self> {
        let layers: Rc<[Rc<Rules>]> = rules.collect();
        (!layers.is_empty()).then_some(Self(layers))
    }

    /// What they say at once of a command that begins in this directory.
    pub(super) fn look(&self, command: &Command, directory: &[u8], is_attended: bool) -> FirstLook<Judgement> {
        let mut findings = Vec::new();
        for rules in &*self.0 {
            match rules.look(command, directory) {
                FirstLook::Judged(finding) => findings.push(finding),
                FirstLook::ForJudge => return FirstLook::ForJudge,
            }
        }
        let mut findings = findings.into_iter();
        FirstLook::Judged(self.strictest(command, is_attended, |_| findings.next().flatten()))
    }

    /// What a judge answers: a line of each of the rules.
    pub(super) fn encode(&self, command: &Command, directory: &[u8], victims: &Victims<'_>) -> Vec<u8> {
        self.0.iter().flat_map(|rules| rules.encode(rules.judge(command, directory, victims).as_ref())).collect()
    }

    /// What follows from a judge's answer, in which each of them has a line, if the judge came that far.
    pub(super) fn judge_by(
        &self,
        answer: &[u8],
        command: &Command,
        directory: &[u8],
        is_attended: bool,
    ) -> Option<Judgement> {
        let mut lines = answer.split_inclusive(|byte| *byte == b'\n');
        self.strictest(command, is_attended, |rules| {
            let found = lines.next().and_then(|line| rules.decode(line));
            found.unwrap_or_else(|| rules.judge_without(command, directory))
        })
    }

    /// What would always allow what this command of the run `from` asks about.
    pub(super) fn learnable(&self, command: &Command, directory: &[u8], from: &str) -> Result<Learned, Unlearnable> {
        let mut found = Err(Unlearnable::Opaque);
        for rules in &*self.0 {
            found = rules.learnable(command, directory, from);
            if found.is_ok() {
                break;
            }
        }
        found
    }

    fn strictest<'r>(
        &'r self,
        command: &Command,
        is_attended: bool,
        mut find: impl FnMut(&'r Rules) -> Option<Finding<'r>>,
    ) -> Option<Judgement> {
        let mut strictest: Option<Judgement> = None;
        for rules in &*self.0 {
            let Some(finding) = find(rules) else { continue };
            let judgement = rules.judgement(finding, command.caller.agent, is_attended);
            if strictest.as_ref().is_none_or(|other| strictness(&judgement) > strictness(other)) {
                strictest = Some(judgement);
            }
        }
        strictest
    }
}

fn strictness(judgement: &Judgement) -> (u8, bool) {
    let by_consequence = match judgement.consequence {
        Consequence::Unread => 0,
        Consequence::Watched | Consequence::Permitted(_) => 1,
        Consequence::Asked { .. } => 2,
        Consequence::Refused(_) => 3,
    };
    (by_consequence, judgement.verdict == Action::Deny.word())
}
