//! The functions that a text defines, and which of their bodies may run with arguments that are not known.
//!
//! A body is walked where it is defined, and again at each call, with what is known there. The leaves of the definition stand
//! for the calls that are not seen: by code that is not read, by another shell, before the definition. Where all calls are
//! seen, or there is none, they are left out.
//!
//! Invariants: a function that has two definitions keeps both; in doubt a definition is kept; time is linear in the leaves'
//! words and in the number of definitions.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use crate::script::leaf::{Argument, ArgumentPiece, Leaf, LeafState};
use crate::script::programs::is_listed;

#[derive(Debug, Default)]
pub(super) struct Functions {
    definitions: Vec<Definition>,
    /// The places of the leaves that call a function whose body was walked for that.
    seen_calls: BTreeSet<usize>,
}

#[derive(Debug)]
struct Definition {
    name: Vec<u8>,
    /// The leaves of its body.
    leaves: Range<usize>,
}

impl Functions {
    pub(super) fn define(&mut self, name: &[u8], leaves: Range<usize>) {
        self.definitions.push(Definition { name: name.to_vec(), leaves });
    }

    /// The leaf that comes to this place calls a function whose body was walked.
    pub(super) fn see_call(&mut self, place: usize) {
        self.seen_calls.insert(place);
    }

    /// The leaves from this place on are taken back.
    pub(super) fn forget_from(&mut self, place: usize) {
        self.definitions.retain(|definition| definition.leaves.end <= place);
        self.seen_calls.split_off(&place);
    }

    /// Leaves out what only says that a function is defined.
    pub(super) fn without_definitions(&self, mut leaves: Vec<Leaf>) -> Vec<Leaf> {
        if self.definitions.is_empty() {
            return leaves;
        }
        let needed = self.needed(&leaves);
        // Those within each other: the outer one ends later.
        let mut open: Vec<(usize, bool)> = Vec::new();
        let mut next = self.outermost_first().into_iter().peekable();
        let mut places = 0..;
        leaves.retain(|_| {
            let Some(place) = places.next() else { return true };
            open.retain(|(end, _)| *end > place);
            while let Some(at) = next.next_if(|&at| self.definitions[at].leaves.start <= place) {
                open.push((self.definitions[at].leaves.end, needed.contains(&at)));
            }
            open.retain(|(end, _)| *end > place);
            open.iter().all(|(_, is_needed)| *is_needed)
        });
        leaves
    }

    fn outermost_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.definitions.len()).collect();
        let place = |at: &usize| {
            let Range { start, end } = self.definitions[*at].leaves;
            (start, std::cmp::Reverse(end))
        };
        order.sort_by_key(place);
        order
    }

    /// The definitions that stand for calls which are not seen.
    fn needed(&self, leaves: &[Leaf]) -> BTreeSet<usize> {
        let mut by_name: HashMap<&[u8], Vec<usize>> = HashMap::new();
        let mut firsts = [false; 257];
        for (at, definition) in self.definitions.iter().enumerate() {
            by_name.entry(&definition.name).or_default().push(at);
            firsts[first_of(&definition.name)] = true;
        }
        let order = self.outermost_first();
        let may_be_name = |name: &&[u8]| firsts[first_of(name)];
        let is_hook = |at: &usize| is_hook(&self.definitions[*at].name);
        let mut needed: BTreeSet<usize> = (0..self.definitions.len()).filter(is_hook).collect();
        let mut is_read = vec![false; leaves.len()];
        // Of a body that is left out, no leaf calls anything. So what is needed grows.
        loop {
            let before = needed.len();
            let (mut open, mut next): (Vec<(usize, bool)>, _) = (Vec::new(), order.iter().peekable());
            for (place, leaf) in leaves.iter().enumerate() {
                open.retain(|(end, _)| *end > place);
                while let Some(&at) = next.next_if(|&&at| self.definitions[at].leaves.start <= place) {
                    open.push((self.definitions[at].leaves.end, needed.contains(&at)));
                }
                open.retain(|(end, _)| *end > place);
                if is_read[place] || !open.iter().all(|(_, is_needed)| *is_needed) {
                    continue;
                }
                is_read[place] = true;
                if calls_unknown_code(leaf) {
                    return (0..self.definitions.len()).collect();
                }
                let is_seen = |of: &[usize]| of.len() == 1 && self.seen_calls.contains(&place);
                if let Some(of) = by_name.get(&leaf.program[..]).filter(|of| !is_seen(of)) {
                    needed.extend(of);
                }
                let words = leaf.arguments.iter().chain(leaf.input.as_deref());
                let named = words.flat_map(names).filter(may_be_name).filter_map(|name| by_name.get(name));
                needed.extend(named.flatten());
            }
            if needed.len() == before {
                return needed;
            }
        }
    }
}

/// Returns true if a shell calls a function of this name by itself: bash for a program that it does not find, zsh at many
/// moments.
fn is_hook(name: &[u8]) -> bool {
    let hooks = " command_not_found_handle command_not_found_handler chpwd precmd preexec periodic zshexit ";
    is_listed(name, hooks) || name.starts_with(b"TRAP")
}

/// Returns true if a leaf may run any function of its text.
fn calls_unknown_code(leaf: &Leaf) -> bool {
    let exports_all = |word: &Argument| word.text().is_none_or(|word| word.starts_with(b"-") && word.contains(&b'a'));
    match &leaf.program[..] {
        b"source" | b"." => true,
        b"set" => {
            leaf.arguments.iter().any(exports_all)
                || leaf.arguments.iter().any(|word| word.text() == Some(b"allexport"))
        }
        _ => matches!(leaf.state, LeafState::Opaque(_)),
    }
}

/// The first byte of a name, or one more than any if it is empty.
fn first_of(name: &[u8]) -> usize {
    name.first().map_or(256, |first| usize::from(*first))
}

/// For each byte, whether the name of a function ends in front of it.
const ENDS_NAME: [bool; 256] = {
    let mut ends = [false; 256];
    let signs = b"\"'`;&|()<>${}=,\\! \t\n\x0c\r";
    let mut at = 0;
    while at < signs.len() {
        ends[signs[at] as usize] = true;
        at += 1;
    }
    ends
};

/// The parts of a word that may be names of functions.
fn names(word: &Argument) -> impl Iterator<Item = &[u8]> {
    let texts = word.pieces.iter().filter_map(|piece| match piece {
        ArgumentPiece::Text(text) => Some(&text[..]),
        ArgumentPiece::Hole(_) => None,
    });
    texts.flat_map(|text| text.split(|byte| ENDS_NAME[usize::from(*byte)]))
}
