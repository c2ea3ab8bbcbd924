//! The values of variables that a text tells, and the directory after its `cd`s.
//!
//! Every change is noted, so that the changes of a subshell are taken back, and those of a branch become unknown.

use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

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
    /// `None` if it is unknown.
    value: Option<Argument>,
    scope: Scope,
}

/// A name that the text sets, by its place among all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NamePlace(usize);

/// The names that the text sets, in the order in which they come.
#[derive(Debug)]
struct SetNames {
    places: HashMap<Rc<[u8]>, NamePlace>,
    names: Vec<Rc<[u8]>>,
}

impl SetNames {
    /// In front is the place of the directory's entry, which no name has.
    fn new() -> Self {
        Self { places: HashMap::new(), names: vec![Rc::from(&b""[..])] }
    }

    fn place(&self, name: &[u8]) -> Option<NamePlace> {
        self.places.get(name).copied()
    }

    fn add(&mut self, name: &[u8]) -> NamePlace {
        if let Some(place) = self.place(name) {
            return place;
        }
        let (name, place): (Rc<[u8]>, _) = (name.into(), NamePlace(self.names.len()));
        self.places.insert(Rc::clone(&name), place);
        self.names.push(name);
        place
    }
}

/// The place of the directory's entry.
const DIRECTORY: NamePlace = NamePlace(0);

/// Something for each of some names.
#[derive(Debug)]
struct ByName<T> {
    all: Vec<Option<T>>,
    count: usize,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self { all: Vec::new(), count: 0 }
    }
}

impl<T> ByName<T> {
    fn get(&self, place: NamePlace) -> Option<&T> {
        self.all.get(place.0)?.as_ref()
    }

    fn get_mut(&mut self, place: NamePlace) -> Option<&mut T> {
        self.all.get_mut(place.0)?.as_mut()
    }

    /// Puts in another one, or none. Returns the one before.
    fn replace(&mut self, place: NamePlace, new: Option<T>) -> Option<T> {
        if self.all.len() <= place.0 {
            self.all.resize_with(place.0 + 1, || None);
        }
        self.count += usize::from(new.is_some());
        let before = std::mem::replace(&mut self.all[place.0], new);
        self.count -= usize::from(before.is_some());
        before
    }

    fn iter(&self) -> impl Iterator<Item = (NamePlace, &T)> {
        self.all.iter().enumerate().filter_map(|(at, one)| Some((NamePlace(at), one.as_ref()?)))
    }
}

pub(super) struct KnownVariables<'a> {
    environment: VariableLookup<'a>,
    names: SetNames,
    entries: ByName<VariableEntry>,
    /// The replaced value of each change, in order.
    changes: Vec<(NamePlace, Option<VariableEntry>)>,
    /// Names that functions set. Their values are unknown from then on.
    unsteady: ByName<()>,
    /// The variables that the text sets; true for those that become nothing but temporary files.
    temporary: ByName<bool>,
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
        let (names, entries) = (&self.names, &self.entries);
        f.debug_struct("KnownVariables").field("names", names).field("entries", entries).finish_non_exhaustive()
    }
}

/// A moment to which the values can return.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValuesMark(usize);

/// The known values at the definition of a function.
#[derive(Debug)]
pub(super) struct Outside(ByName<VariableEntry>, bool, ValuesMark);

/// Names that functions set.
#[derive(Debug)]
pub(super) struct Unsteady(ByName<()>);

impl<'a> KnownVariables<'a> {
    pub(super) fn new(environment: VariableLookup<'a>) -> Self {
        Self {
            environment,
            names: SetNames::new(),
            entries: ByName::default(),
            changes: Vec::new(),
            unsteady: ByName::default(),
            weight: 0,
            temporary: ByName::default(),
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
        if self.has_given_up {
            return None;
        }
        match self.names.place(name).and_then(|place| self.entries.get(place)) {
            Some(entry) => Some(entry.value.clone().unwrap_or_else(|| unknown(name))),
            None if name == b"PWD" && self.entries.get(DIRECTORY).is_some() => self.whole_directory(),
            None if name == b"OLDPWD" && self.entries.get(DIRECTORY).is_some() => None,
            None if self.is_elsewhere || !self.has_own_environment => None,
            None => (self.environment)(name).map(|value| Argument::of_text(&value)),
        }
    }

    /// Returns true if the text has set it.
    pub(super) fn is_set(&self, name: &[u8]) -> bool {
        self.names.place(name).is_some_and(|place| self.entries.get(place).is_some())
    }

    /// Returns true if neither the text nor its environment has set it, nor anything that is not known.
    pub(super) fn is_untouched(&self, name: &[u8]) -> bool {
        let place = self.names.place(name);
        let is_set = place.is_some_and(|at| self.entries.get(at).is_some() || self.unsteady.get(at).is_some());
        self.has_own_environment && !self.has_given_up && !is_set && (self.environment)(name).is_none()
    }

    /// Sets a variable as the text says.
    pub(super) fn set(&mut self, name: &[u8], value: Argument, scope: Scope) {
        let place = self.names.add(name);
        self.note(place, is_temporary_file(&value));
        self.replace(place, Some(value), scope);
    }

    fn note(&mut self, place: NamePlace, is_temporary: bool) {
        if let Some(always) = self.temporary.get_mut(place) {
            *always &= is_temporary;
        } else if self.temporary.count < limits::SCRIPT_VARIABLES_MAX {
            self.temporary.replace(place, Some(is_temporary));
        }
    }

    fn replace(&mut self, place: NamePlace, value: Option<Argument>, scope: Scope) {
        let is_new = self.entries.get(place).is_none();
        // What is unknown is one hole.
        let length = value.as_ref().map_or(1, Argument::length);
        self.weight += length + limits::SCRIPT_CHANGE_WEIGHT;
        let is_long = |value: &Argument| {
            length > limits::SCRIPT_VALUE_BYTES_MAX || value.pieces.len() > limits::SCRIPT_VALUE_BYTES_MAX / 64
        };
        let is_unsteady = self.unsteady.get(place).is_some();
        if is_new && self.entries.count >= limits::SCRIPT_VARIABLES_MAX {
            self.has_given_up = true;
            return;
        }
        let value = value.filter(|value| !is_unsteady && !is_long(value));
        let before = self.entries.replace(place, Some(VariableEntry { value, scope }));
        self.changes.push((place, before));
    }

    /// Makes a variable unknown, because the text sets it to something unknown.
    pub(super) fn forget(&mut self, name: &[u8]) {
        let place = self.names.add(name);
        self.note(place, false);
        self.blind(place);
    }

    /// Makes a variable unknown, because it is not known which of its values it has.
    fn blind(&mut self, place: NamePlace) {
        self.replace(place, None, Scope::Exported);
    }

    pub(super) fn export(&mut self, name: &[u8]) {
        let value = self.get(name);
        let place = self.names.add(name);
        self.replace(place, value, Scope::Exported);
    }

    /// Returns true if a variable is a temporary file or empty wherever the text uses it.
    pub(super) fn is_only_temporary(&self, name: &[u8]) -> bool {
        let is_only = self.names.place(name).and_then(|place| self.temporary.get(place)).is_some_and(|always| *always);
        is_only && self.has_own_environment && !self.has_given_up && (self.environment)(name).is_none()
    }

    pub(super) fn directory(&self) -> Option<Argument> {
        if self.has_given_up || (self.is_elsewhere && self.entries.get(DIRECTORY).is_none()) {
            return Some(unknown(b"PWD"));
        }
        self.set_to_directory()
    }

    /// The directory that the text has set.
    fn set_to_directory(&self) -> Option<Argument> {
        let entry = self.entries.get(DIRECTORY)?;
        Some(entry.value.clone().unwrap_or_else(|| unknown(b"PWD")))
    }

    /// The path of the directory after a `cd`, with the one in front of it in which the text began.
    fn whole_directory(&self) -> Option<Argument> {
        let after = self.set_to_directory()?;
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
        self.replace(DIRECTORY, directory, Scope::Exported);
    }

    pub(super) fn mark(&self) -> ValuesMark {
        ValuesMark(self.changes.len())
    }

    /// Takes back the changes since the mark.
    pub(super) fn restore(&mut self, mark: ValuesMark) {
        while self.changes.len() > mark.0
            && let Some((place, before)) = self.changes.pop()
        {
            self.entries.replace(place, before);
        }
    }

    /// Takes back the changes between two marks. What was changed again after the second one becomes unknown.
    pub(super) fn take_back(&mut self, from: ValuesMark, to: ValuesMark) {
        let earlier = self.changes[from.0..to.0].to_vec();
        for (at, (place, before)) in earlier.iter().enumerate() {
            let is_name = |(other, _): &(NamePlace, Option<VariableEntry>)| other == place;
            if earlier[..at].iter().any(is_name) {
                continue;
            }
            if self.changes[to.0..].iter().any(is_name) {
                self.blind(*place);
                continue;
            }
            let replaced = self.entries.replace(*place, before.clone());
            self.changes.push((*place, replaced));
        }
    }

    /// Makes the changes since the mark unknown: they may have happened or not.
    pub(super) fn blur(&mut self, mark: ValuesMark) {
        self.weight += (self.changes.len() - mark.0) * limits::SCRIPT_CHANGE_WEIGHT;
        let changed =
            self.changes[mark.0..].iter().filter(|(place, before)| before.is_some() || !self.is_temporary(*place));
        let mut places: Vec<NamePlace> = changed.map(|(place, _)| *place).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().for_each(|place| self.blind(place));
    }

    /// Returns true if a variable that was not set has become a temporary file. It is that file, or empty, whether it is set
    /// or not.
    fn is_temporary(&self, place: NamePlace) -> bool {
        let value = self.entries.get(place).and_then(|entry| entry.value.as_ref());
        let may_be_unset = !self.is_elsewhere && self.has_own_environment;
        let is_file = may_be_unset && value.is_some_and(is_temporary_file);
        is_file && (self.environment)(&self.names.names[place.0]).is_none()
    }

    /// Hides variables that a started program does not see.
    pub(super) fn hide_unexported(&mut self) {
        let own = self.entries.iter().filter(|(_, entry)| entry.scope == Scope::Shell);
        let places: Vec<NamePlace> = own.map(|(place, _)| place).collect();
        places.into_iter().for_each(|place| self.blind(place));
    }

    /// Makes every value unknown from now on: a name may stand for another.
    pub(super) fn give_up(&mut self) {
        self.has_given_up = true;
    }

    /// Makes all variables that the text has set unknown, and the environment with them.
    pub(super) fn forget_set(&mut self) {
        let set = self.entries.iter().map(|(place, _)| place);
        let places: Vec<NamePlace> = set.filter(|place| *place != DIRECTORY).collect();
        places.into_iter().for_each(|place| self.blind(place));
        self.has_own_environment = false;
    }

    /// Lets the variables that functions set have values, for a body that runs at a known time. Returns their names.
    pub(super) fn steady(&mut self) -> Unsteady {
        Unsteady(std::mem::take(&mut self.unsteady))
    }

    /// Makes the variables that functions set unknown again.
    pub(super) fn unsteady(&mut self, names: Unsteady) {
        names.0.iter().for_each(|(place, ())| _ = self.unsteady.replace(place, Some(())));
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
        let places: Vec<NamePlace> = self.changes.drain(mark.0..).map(|(place, _)| place).collect();
        self.entries = entries;
        self.is_elsewhere = is_elsewhere;
        for place in places {
            if self.unsteady.get(place).is_none() {
                self.has_given_up |= self.unsteady.count >= limits::SCRIPT_VARIABLES_MAX;
                self.unsteady.replace(place, Some(()));
            }
            if self.has_given_up {
                return;
            }
            self.blind(place);
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
