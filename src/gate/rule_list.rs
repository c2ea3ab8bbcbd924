//! Rules in their order, with an index by the program that they name: a leaf meets only those that may match it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;

use super::rule::Rule;
use crate::script::base_name;

#[derive(Debug, Clone, Default)]
pub struct RuleList {
    rules: Vec<Rule>,
    /// For each name that a rule gives its program in full, the places of all rules that may match it.
    named: HashMap<Vec<u8>, Vec<usize>>,
    /// The places of the rules that may match any program.
    unnamed: Vec<usize>,
}

impl RuleList {
    pub(super) fn push(&mut self, rule: Rule) {
        let at = self.rules.len();
        match rule.program_names() {
            Some(names) => {
                for name in names {
                    let places = self.named.entry(name.clone()).or_insert_with(|| self.unnamed.clone());
                    if places.last() != Some(&at) {
                        places.push(at);
                    }
                }
            }
            None => {
                self.unnamed.push(at);
                self.named.values_mut().for_each(|places| places.push(at));
            }
        }
        self.rules.push(rule);
    }

    /// The rules that may match a leaf with this program, in their order.
    pub(super) fn on_program(&self, program: &[u8]) -> impl Iterator<Item = &Rule> {
        let places = match (self.named.get(base_name(program)), self.named.get(program)) {
            (Some(one), Some(other)) if !std::ptr::eq(one, other) => {
                let mut places = [&one[..], other].concat();
                places.sort_unstable();
                places.dedup();
                Cow::Owned(places)
            }
            (Some(places), _) | (None, Some(places)) => Cow::Borrowed(&places[..]),
            (None, None) => Cow::Borrowed(&self.unnamed[..]),
        };
        (0..places.len()).map(move |at| &self.rules[places[at]])
    }

    #[must_use]
    pub fn into_rules(self) -> Vec<Rule> {
        self.rules
    }
}

impl Deref for RuleList {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        &self.rules
    }
}

impl Extend<Rule> for RuleList {
    fn extend<I: IntoIterator<Item = Rule>>(&mut self, rules: I) {
        rules.into_iter().for_each(|rule| self.push(rule));
    }
}

#[cfg(test)]
mod tests {
    use crate::gate::answer::Answer;
    use crate::gate::subject::Subject;
    use crate::gate::{Facts, load};
    use crate::script;

    #[test]
    fn a_leaf_meets_every_rule_that_may_match_it_in_their_order() {
        let programs = ["git", "git|rm", "/usr/bin/git", "mkfs.*", "rm push", "*", "g*t|rm"];
        let rules = programs.map(|run| format!("[[rule]]\ndo = 'ask'\nrun = '{run}'\n")).concat();
        let others = "[[rule]]\ndo = 'ask'\nwrites = ['/a']\n[[rule]]\ndo = 'ask'\nvia = 'sudo'\n";
        let gate = load(format!("{rules}{others}").as_bytes(), "c").unwrap().gate;
        let facts = Facts::default();
        for text in ["git push >/a", "/usr/bin/git", "./git", "/sbin/mkfs.ext4", ">/a", "sudo rm push", "$x", "tool"] {
            for leaf in script::leaves(text.as_bytes(), &|_| None).leaves {
                let subject = Subject::of(&leaf, &gate.programs, &facts);
                let matches: Vec<_> = gate.rules.iter().filter(|rule| rule.answer(&subject) != Answer::No).collect();
                let met: Vec<_> = gate.rules.on_program(&leaf.program).collect();
                assert!(met.is_sorted_by_key(|rule| std::ptr::from_ref(*rule)), "{text}");
                assert!(matches.iter().all(|rule| met.iter().any(|own| std::ptr::eq(*own, *rule))), "{text}");
                assert!(met.len() < gate.rules.len(), "{text}");
            }
        }
    }
}
