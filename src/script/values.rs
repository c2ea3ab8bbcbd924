//! The values of variables that a text tells, and the directory after its `cd`s.
//!
//! Every change is noted, so that the changes of a subshell are taken back, and those of a branch become unknown.

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::leaf::{Argument, ArgumentPiece, HoleKind, HoleReach, OutputOf};
use crate::limits;

/// The text's environment.
pub type VariableLookup<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// Tells if a started program sees a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Shell,
    Exported,
}

#[derive(Debug, Clone)]
struct VariableEntry {
    value: Argument,
    scope: Scope,
}

pub(super) struct KnownVariables<'a> {
    environment: VariableLookup<'a>,
    entries: HashMap<Vec<u8>, VariableEntry>,
    /// The replaced value of each change, in order.
    changes: Vec<(Vec<u8>, Option<VariableEntry>)>,
    /// Names that functions set. Their values are unknown from then on.
    unsteady: HashSet<Vec<u8>>,
    /// The variables that the text sets; true for those that become nothing but temporary files.
    temporary: HashMap<Vec<u8>, bool>,
    /// True if only values set here are known: the body of a function runs at another time.
    is_elsewhere: bool,
    /// True if the environment is still the one in which the text began.
    has_own_environment: bool,
    /// There were too many names, so no value is known any more.
    has_given_up: bool,
    /// The work since it was asked for.
    weight: usize,
}

impl fmt::Debug for KnownVariables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownVariables").field("entries", &self.entries).finish_non_exhaustive()
    }
}

/// The name of the directory's entry. No variable has it.
const DIRECTORY: &[u8] = b"";

/// A moment to which the values can return.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValuesMark(usize);

/// The known values at the definition of a function.
#[derive(Debug)]
pub(super) struct Outside(HashMap<Vec<u8>, VariableEntry>, bool, ValuesMark);

impl<'a> KnownVariables<'a> {
    pub(super) fn new(environment: VariableLookup<'a>) -> Self {
        let entries = HashMap::new();
        let changes = Vec::new();
        Self {
            environment,
            entries,
            changes,
            unsteady: HashSet::new(),
            weight: 0,
            temporary: HashMap::new(),
            is_elsewhere: false,
            has_own_environment: true,
            has_given_up: false,
        }
    }

    /// The work since the last call, in the units of [`limits::SCRIPT_WEIGHT_MAX`].
    pub(super) fn take_weight(&mut self) -> usize {
        std::mem::take(&mut self.weight)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Argument> {
        match self.entries.get(name) {
            _ if self.has_given_up => None,
            Some(entry) => Some(entry.value.clone()),
            None if name == b"PWD" && self.is_set(DIRECTORY) => self.whole_directory(),
            None if name == b"OLDPWD" && self.is_set(DIRECTORY) => None,
            None if self.is_elsewhere || !self.has_own_environment => None,
            None => (self.environment)(name).map(|value| Argument::of_text(&value)),
        }
    }

    /// Returns true if the text has set it.
    pub(super) fn is_set(&self, name: &[u8]) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns true if neither the text nor its environment has set it, nor anything that is not known.
    pub(super) fn is_untouched(&self, name: &[u8]) -> bool {
        let is_own = self.has_own_environment && !self.has_given_up && !self.unsteady.contains(name);
        is_own && !self.is_set(name) && (self.environment)(name).is_none()
    }

    /// Sets a variable as the text says.
    pub(super) fn set(&mut self, name: &[u8], value: Argument, scope: Scope) {
        self.note(name, is_temporary_file(&value));
        self.replace(name, value, scope);
    }

    fn note(&mut self, name: &[u8], is_temporary: bool) {
        if let Some(always) = self.temporary.get_mut(name) {
            *always &= is_temporary;
        } else if self.temporary.len() < limits::SCRIPT_VARIABLES_MAX {
            self.temporary.insert(name.to_vec(), is_temporary);
        }
    }

    fn replace(&mut self, name: &[u8], value: Argument, scope: Scope) {
        let is_new = !self.entries.contains_key(name);
        let length = value.length();
        self.weight += length + limits::SCRIPT_CHANGE_WEIGHT;
        let is_long =
            length > limits::SCRIPT_VALUE_BYTES_MAX || value.pieces.len() > limits::SCRIPT_VALUE_BYTES_MAX / 64;
        let is_unsteady = self.unsteady.contains(name);
        if is_new && self.entries.len() >= limits::SCRIPT_VARIABLES_MAX {
            self.has_given_up = true;
            return;
        }
        let value = if is_long || is_unsteady { unknown(name) } else { value };
        let before = self.entries.insert(name.to_vec(), VariableEntry { value, scope });
        self.changes.push((name.to_vec(), before));
    }

    /// Makes a variable unknown, because the text sets it to something unknown.
    pub(super) fn forget(&mut self, name: &[u8]) {
        self.note(name, false);
        self.blind(name);
    }

    /// Makes a variable unknown, because it is not known which of its values it has.
    fn blind(&mut self, name: &[u8]) {
        self.replace(name, unknown(name), Scope::Exported);
    }

    pub(super) fn export(&mut self, name: &[u8]) {
        let value = self.get(name).unwrap_or_else(|| unknown(name));
        self.replace(name, value, Scope::Exported);
    }

    /// Returns true if a variable is a temporary file or empty wherever the text uses it.
    pub(super) fn is_only_temporary(&self, name: &[u8]) -> bool {
        let is_only = self.temporary.get(name).is_some_and(|always| *always);
        is_only && self.has_own_environment && !self.has_given_up && (self.environment)(name).is_none()
    }

    pub(super) fn directory(&self) -> Option<Argument> {
        if self.has_given_up || (self.is_elsewhere && !self.is_set(DIRECTORY)) {
            return Some(unknown(b"PWD"));
        }
        self.entries.get(DIRECTORY).map(|entry| entry.value.clone())
    }

    /// The path of the directory after a `cd`, with the one in front of it in which the text began.
    fn whole_directory(&self) -> Option<Argument> {
        let after = self.entries.get(DIRECTORY)?.value.clone();
        let is_relative = matches!(after.pieces.first(), Some(ArgumentPiece::Text(text)) if !text.starts_with(b"/"));
        if !is_relative {
            return Some(after);
        }
        let mut whole = (self.environment)(b"PWD").filter(|_| self.has_own_environment)?;
        whole.push(b'/');
        let pieces = [ArgumentPiece::Text(whole)].into_iter().chain(after.pieces).collect();
        Some(Argument { pieces }.joined())
    }

    pub(super) fn set_directory(&mut self, directory: Option<Argument>) {
        let directory = directory.unwrap_or_else(|| unknown(b"PWD"));
        self.replace(DIRECTORY, directory, Scope::Exported);
    }

    pub(super) fn mark(&self) -> ValuesMark {
        ValuesMark(self.changes.len())
    }

    /// Takes back the changes since the mark.
    pub(super) fn restore(&mut self, mark: ValuesMark) {
        while self.changes.len() > mark.0
            && let Some((name, before)) = self.changes.pop()
        {
            match before {
                Some(entry) => self.entries.insert(name, entry),
                None => self.entries.remove(&name),
            };
        }
    }

    /// Takes back the changes between two marks. What was changed again after the second one becomes unknown.
    pub(super) fn take_back(&mut self, from: ValuesMark, to: ValuesMark) {
        let earlier = self.changes[from.0..to.0].to_vec();
        for (at, (name, before)) in earlier.iter().enumerate() {
            let is_name = |(other, _): &(Vec<u8>, Option<VariableEntry>)| other == name;
            if earlier[..at].iter().any(is_name) {
                continue;
            }
            if self.changes[to.0..].iter().any(is_name) {
                self.blind(name);
                continue;
            }
            let replaced = match before {
                Some(entry) => self.entries.insert(name.clone(), entry.clone()),
                None => self.entries.remove(name),
            };
            self.changes.push((name.clone(), replaced));
        }
    }

    /// Makes the changes since the mark unknown: they may have happened or not.
    pub(super) fn blur(&mut self, mark: ValuesMark) {
        self.weight += (self.changes.len() - mark.0) * limits::SCRIPT_CHANGE_WEIGHT;
        let changed =
            self.changes[mark.0..].iter().filter(|(name, before)| before.is_some() || !self.is_temporary(name));
        let mut names: Vec<Vec<u8>> = changed.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names.iter().for_each(|name| self.blind(name));
    }

    /// Returns true if a variable that was not set has become a temporary file. It is that file, or empty, whether it is set
    /// or not.
    fn is_temporary(&self, name: &[u8]) -> bool {
        let was_unset = !self.is_elsewhere && self.has_own_environment && (self.environment)(name).is_none();
        was_unset && self.entries.get(name).is_some_and(|entry| is_temporary_file(&entry.value))
    }

    /// Hides variables that a started program does not see.
    pub(super) fn hide_unexported(&mut self) {
        let own = self.entries.iter().filter(|(_, entry)| entry.scope == Scope::Shell);
        let names: Vec<Vec<u8>> = own.map(|(name, _)| name.clone()).collect();
        names.iter().for_each(|name| self.blind(name));
    }

    /// Makes every value unknown from now on: a name may stand for another.
    pub(super) fn give_up(&mut self) {
        self.has_given_up = true;
    }

    /// Makes all variables that the text has set unknown, and the environment with them.
    pub(super) fn forget_set(&mut self) {
        let names: Vec<Vec<u8>> = self.entries.keys().filter(|name| *name != DIRECTORY).cloned().collect();
        names.iter().for_each(|name| self.blind(name));
        self.has_own_environment = false;
    }

    /// Lets the variables that functions set have values, for a body that runs at a known time. Returns their names.
    pub(super) fn steady(&mut self) -> HashSet<Vec<u8>> {
        std::mem::take(&mut self.unsteady)
    }

    /// Makes the variables that functions set unknown again.
    pub(super) fn unsteady(&mut self, names: HashSet<Vec<u8>>) {
        self.unsteady.extend(names);
    }

    /// Forgets everything for code that runs at another time.
    pub(super) fn go_elsewhere(&mut self) -> Outside {
        let outside = Outside(std::mem::take(&mut self.entries), self.is_elsewhere, self.mark());
        self.is_elsewhere = true;
        outside
    }

    /// Comes back. The variables set there may be set at any time.
    pub(super) fn come_back(&mut self, outside: Outside) {
        let Outside(entries, is_elsewhere, mark) = outside;
        let names: Vec<Vec<u8>> = self.changes.drain(mark.0..).map(|(name, _)| name).collect();
        self.entries = entries;
        self.is_elsewhere = is_elsewhere;
        for name in names {
            if !self.unsteady.contains(&name) {
                self.has_given_up |= self.unsteady.len() >= limits::SCRIPT_VARIABLES_MAX;
                self.unsteady.insert(name.clone());
            }
            if self.has_given_up {
                return;
            }
            self.blind(&name);
        }
    }
}

fn is_temporary_file(value: &Argument) -> bool {
    value.is_only(&HoleKind::Output(OutputOf::Mktemp))
}

/// The value of an unknown variable.
pub(super) fn unknown(name: &[u8]) -> Argument {
    let name = if name.is_empty() { b"PWD".as_slice() } else { name };
    Argument::of_hole(HoleKind::Variable(name.to_vec()), HoleReach::Words)
}
