//! The environment of a run: its variables, and how a record says them.
//!
//! Invariant: values come from the recorder, which leaves out all that may be secret.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::fields::is_default;

/// The variables of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptEnvironment {
    /// The variables whose values may be written down.
    pub set: BTreeMap<String, String>,
    /// The names of the others, whose values are secret, too long or not UTF-8.
    pub left_out: BTreeSet<String>,
}

/// An environment that runs of this file had, type `environment`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentRecord {
    /// Unique within its file.
    pub id: u64,
    #[serde(flatten)]
    pub environment: KeptEnvironment,
}

/// The environment of one run: a record's, and what differs from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EnvironmentRef {
    /// The number of the [`EnvironmentRecord`].
    pub id: u64,
    /// Variables that the record lacks, or has with other values.
    #[serde(skip_serializing_if = "is_default")]
    pub set: BTreeMap<String, String>,
    /// Names that the record has and the run lacks.
    #[serde(skip_serializing_if = "is_default")]
    pub unset: BTreeSet<String>,
    /// Names that are left out here and not in the record.
    #[serde(skip_serializing_if = "is_default")]
    pub left_out: BTreeSet<String>,
}

impl KeptEnvironment {
    fn has(&self, name: &str) -> bool {
        self.set.contains_key(name) || self.left_out.contains(name)
    }

    /// Its approximate length in JSON, bytes.
    pub(super) fn weight(&self) -> usize {
        weight(&self.set) + self.left_out.iter().map(|name| name.len() + 3).sum::<usize>()
    }

    /// The difference from the environment of the record `id`.
    pub(super) fn refer(&self, id: u64, base: &KeptEnvironment) -> EnvironmentRef {
        let differs = |(name, value): &(&String, &String)| base.set.get(*name) != Some(value);
        let names = base.set.keys().chain(&base.left_out);
        EnvironmentRef {
            id,
            set: self.set.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect(),
            unset: names.filter(|name| !self.has(name)).cloned().collect(),
            left_out: self.left_out.difference(&base.left_out).cloned().collect(),
        }
    }
}

impl EnvironmentRef {
    /// Its approximate length in JSON, bytes.
    pub(super) fn weight(&self) -> usize {
        weight(&self.set) + self.unset.iter().chain(&self.left_out).map(|name| name.len() + 3).sum::<usize>()
    }

    /// The run's environment. `base` is the one of the record that this names.
    #[must_use]
    pub fn applied(&self, base: &KeptEnvironment) -> KeptEnvironment {
        let mut environment = base.clone();
        for name in self.unset.iter().chain(self.set.keys()).chain(&self.left_out) {
            environment.set.remove(name);
            environment.left_out.remove(name);
        }
        environment.set.extend(self.set.clone());
        environment.left_out.extend(self.left_out.iter().cloned());
        environment
    }
}

fn weight(set: &BTreeMap<String, String>) -> usize {
    set.iter().map(|(name, value)| name.len() + value.len() + 6).sum()
}
