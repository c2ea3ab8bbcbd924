//! What rules say of a command as a whole: the verdicts on its leaves, of which the strictest counts.

use super::kills::FoundBeside;
use super::{Action, Facts, Gate, GateMode, Processes, Verdict, shown_leaf};
use crate::script::Leaf;

/// It is in force, and not allowed; and what is done.
type Rank = (bool, Action);

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

    /// The same by several gates: of each leaf the strictest verdict, where one that is in force goes before one that is
    /// watched. `leaves` reads the command as a gate does.
    #[must_use]
    pub fn of_all(gates: &'g [Gate], leaves: impl Fn(&Gate) -> Vec<Leaf>, facts: &Facts<'_>) -> Self {
        let rank = |gate: &Gate, verdict: &Verdict<'_>| {
            (verdict.action != Action::Allow && gate.mode == GateMode::Enforce, verdict.action)
        };
        let mut all: Option<(&Gate, Self, Vec<Rank>)> = None;
        for gate in gates {
            match &mut all {
                Some((reader, judged, ranks)) if gate.reads_like(reader) => {
                    for (at, leaf) in judged.leaves.iter().enumerate() {
                        let verdict = gate.judge(leaf, facts);
                        if rank(gate, &verdict) > ranks[at] {
                            (judged.verdicts[at], ranks[at]) = (verdict, rank(gate, &verdict));
                        }
                    }
                }
                _ => {
                    let other = Self::of(gate, leaves(gate), facts);
                    let other_ranks: Vec<_> = other.verdicts.iter().map(|verdict| rank(gate, verdict)).collect();
                    if all.as_ref().is_none_or(|(_, _, ranks)| other_ranks.iter().max() > ranks.iter().max()) {
                        all = Some((gate, other, other_ranks));
                    }
                }
            }
        }
        all.map_or_else(|| Self { leaves: Vec::new(), verdicts: Vec::new() }, |(_, judged, _)| judged)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::load;

    fn gate(text: &str) -> Gate {
        load(text.as_bytes(), "c").unwrap().gate
    }

    #[test]
    fn of_several_gates_the_strictest_counts_for_each_leaf_and_one_in_force_goes_first() {
        let rule = |action: &str, run: &str| format!("[[rule]]\ndo = '{action}'\nrun = '{run}'\n");
        let enforce = |rules: &str| gate(&format!("[gate]\nmode = 'enforce'\n{rules}"));
        let judged = |gates: &[Gate]| {
            let read = |gate: &Gate| gate.leaves(b"a; wrap b", &|_| None);
            let judged = Judged::of_all(gates, read, &Facts::default());
            judged.verdicts.iter().map(|verdict| verdict.action.word()).collect::<Vec<_>>().join(" ")
        };
        let allows = gate(&(rule("allow", "a") + &rule("ask", "wrap")));
        let denies = gate(&rule("deny", "a"));
        assert_eq!(judged(&[]), "");
        assert_eq!(judged(std::slice::from_ref(&allows)), "allow ask");
        for gates in [[allows.clone(), denies.clone()], [denies.clone(), allows.clone()]] {
            assert_eq!(judged(&gates), "deny ask", "one that allows lifts nothing of another");
        }
        assert_eq!(judged(&[denies.clone(), enforce(&rule("ask", "a"))]), "ask allow");
        // A gate that finds more leaves counts with all of them, if it is stricter.
        let wraps = gate("[gate]\nwrappers = ['wrap']\n[[rule]]\ndo = 'deny'\nrun = 'b'\n");
        assert_eq!(judged(&[allows.clone(), wraps.clone()]), "allow allow deny");
        assert_eq!(judged(&[denies, wraps]), "deny allow");
    }
}
