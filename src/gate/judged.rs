//! What rules say of a command as a whole: the verdicts on its leaves, of which the strictest counts.

use super::kills::FoundBeside;
use super::{Action, Facts, Gate, Processes, Verdict, shown_leaf};
use crate::script::Leaf;

/// The leaves of a command, each with its verdict.
#[derive(Debug)]
pub struct Judged<'g> {
    pub leaves: Vec<Leaf>,
    pub verdicts: Vec<Verdict<'g>>,
}

impl<'g> Judged<'g> {
    #[must_use]
    pub fn of(gate: &'g Gate, leaves: Vec<Leaf>, facts: &Facts<'_>) -> Self {
        let processes = facts.processes.map(|processes| FoundBeside::new(&leaves, processes));
        let facts = &Facts { processes: processes.as_ref().map(|processes| processes as &dyn Processes), ..*facts };
        let verdicts = leaves.iter().map(|leaf| gate.judge(leaf, facts)).collect();
        Self { leaves, verdicts }
    }

    /// What is done with the command.
    #[must_use]
    pub fn action(&self) -> Action {
        self.strictest().map_or(Action::Allow, |at| self.verdicts[at].action)
    }

    /// The place of the leaf whose verdict is that of the command. `None` if it runs nothing.
    #[must_use]
    pub fn strictest(&self) -> Option<usize> {
        // Of verdicts that are alike, one that a rule gives says more.
        let worth = |verdict: &Verdict<'_>| (verdict.action, verdict.cause.rule().is_some());
        (0..self.verdicts.len()).rev().max_by_key(|at| worth(&self.verdicts[*at]))
    }

    /// The verdict on the command in a sentence.
    #[must_use]
    pub fn why(&self) -> String {
        self.strictest().map_or_else(
            || "it runs nothing".to_owned(),
            |at| self.verdicts[at].sentence(&shown_leaf(&self.leaves[at])),
        )
    }
}
