//! Masks the values of variables, wherever they stand in a stream.
//!
//! What several values that overlap cover is one secret, with the name of the one that begins first.
//!
//! Invariants: how the stream was split never shows; what is held back is the beginning of a value, or several that
//! overlap; the cost of a byte does not depend on the number of values.

use std::sync::Arc;

use super::automaton::{Automaton, PATTERN_BYTES_MIN, ROOT};
use super::mask;
use crate::limits;

/// The values of one environment; copies of a masker share them.
#[derive(Debug)]
pub(super) struct Known {
    values: Vec<Secret>,
    automaton: Automaton,
}

#[derive(Debug)]
struct Secret {
    name: String,
    value: Vec<u8>,
}

impl Secret {
    /// What the automaton knows of it; the rest is compared once that was found.
    fn pattern(&self) -> &[u8] {
        &self.value[..self.value.len().min(limits::SECRET_PATTERN_BYTES_MAX)]
    }
}

impl Known {
    /// Of these names and values, if there are any; the most plausible ones, if there are too many.
    pub(super) fn new(secrets: impl IntoIterator<Item = (String, Vec<u8>)>) -> Option<Arc<Self>> {
        let mut values: Vec<Secret> = secrets
            .into_iter()
            .filter(|(_, value)| value.len() >= PATTERN_BYTES_MIN)
            .map(|(name, value)| Secret { name, value })
            .collect();
        values.sort_by(|a, b| a.value.cmp(&b.value));
        values.dedup_by(|a, b| a.value == b.value);
        let total = |values: &[Secret]| values.iter().map(|secret| secret.value.len()).sum::<usize>();
        if values.len() > limits::SECRETS_MAX || total(&values) > limits::SECRETS_BYTES_MAX {
            values.sort_by_key(|secret| std::cmp::Reverse(plausibility(&secret.value)));
            values.truncate(limits::SECRETS_MAX);
            let mut room = limits::SECRETS_BYTES_MAX;
            values.retain(|secret| {
                let fits = secret.value.len() <= room;
                room -= if fits { secret.value.len() } else { 0 };
                fits
            });
            values.sort_by(|a, b| a.value.cmp(&b.value));
        }
        // Of those that begin alike for longer than the automaton reads, it knows one.
        let mut patterns: Vec<&[u8]> = values.iter().map(Secret::pattern).collect();
        patterns.dedup();
        if patterns.len() < values.len() {
            values.dedup_by(|a, b| a.pattern() == b.pattern());
        }
        let automaton = Automaton::new(&values.iter().map(Secret::pattern).collect::<Vec<_>>());
        (!values.is_empty()).then(|| Arc::new(Self { values, automaton }))
    }
}

/// How much a value looks like what a machine or a careful person made up: longer, and of more kinds of characters.
fn plausibility(value: &[u8]) -> (usize, usize) {
    let kinds: [fn(&u8) -> bool; 4] =
        [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit, u8::is_ascii_punctuation];
    let kinds = kinds.iter().filter(|&is| value.iter().any(is)).count();
    // Beyond any token's length, a value is more likely to be a document.
    (kinds, if value.len() > 4096 { 0 } else { value.len() })
}

/// One stream.
#[derive(Debug, Clone)]
pub(super) struct Values {
    known: Arc<Known>,
    node: u32,
    /// The last bytes: the beginning of a value, and what values were found in before.
    held: Vec<u8>,
    hits: Vec<Hit>,
    /// A value that is longer than the automaton reads, and how much of it has passed.
    rest: Option<(usize, usize)>,
}

/// What is covered by values, as places in what is held.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
    value: usize,
}

impl Values {
    pub(super) fn new(known: Arc<Known>) -> Self {
        Self { known, node: ROOT, held: Vec::new(), hits: Vec::new(), rest: None }
    }

    pub(super) fn fresh(&self) -> Self {
        Self::new(Arc::clone(&self.known))
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes bytes, and hands on what is certain, in pieces. Returns how many masks were among them.
    pub(super) fn push(&mut self, input: &[u8], sink: &mut impl FnMut(&[u8])) -> u64 {
        let (mut at, mut count) = (0, 0);
        while at < input.len() {
            if let Some((value, passed)) = self.rest {
                let rest = &self.known.values[value].value[passed..];
                let same = rest.iter().zip(&input[at..]).take_while(|(a, b)| a == b).count();
                at += same;
                let goes_on = at == input.len() && same < rest.len();
                self.rest = goes_on.then_some((value, passed + same));
            } else if self.held.is_empty() {
                let len = self.known.automaton.skip(&input[at..]);
                sink(&input[at..at + len]);
                at += len;
                // One step at least is the automaton's.
                if let Some(&byte) = input.get(at) {
                    count += self.step(byte, sink);
                    at += 1;
                }
            } else {
                count += self.step(input[at], sink);
                at += 1;
            }
        }
        count + self.settle(sink)
    }

    /// The stream has ended.
    pub(super) fn finish(&mut self, sink: &mut impl FnMut(&[u8])) -> u64 {
        self.node = ROOT;
        self.rest = None;
        self.settle(sink)
    }

    fn step(&mut self, byte: u8, sink: &mut impl FnMut(&[u8])) -> u64 {
        self.held.push(byte);
        self.node = self.known.automaton.step(self.node, byte);
        if let Some(value) = self.known.automaton.value(self.node) {
            let secret = &self.known.values[value];
            let (len, whole) = (secret.pattern().len(), secret.value.len());
            self.hit(Hit { start: self.held.len() - len, end: self.held.len(), value });
            if len < whole {
                self.rest = Some((value, len));
                self.node = ROOT;
            }
        }
        let is_far = self.held.len() > 2 * limits::SECRET_PATTERN_BYTES_MAX;
        if self.node == ROOT || is_far { self.settle(sink) } else { 0 }
    }

    fn hit(&mut self, mut hit: Hit) {
        while let Some(last) = self.hits.pop_if(|last| last.end > hit.start) {
            if last.start < hit.start {
                (hit.start, hit.value) = (last.start, last.value);
            }
        }
        self.hits.push(hit);
    }

    /// Hands on what no value can begin in any more.
    fn settle(&mut self, sink: &mut impl FnMut(&[u8])) -> u64 {
        let open = self.held.len() - self.known.automaton.depth(self.node);
        let (mut at, mut count) = (0, 0);
        while let Some(&hit) = self.hits.first().filter(|hit| hit.end <= open) {
            sink(&self.held[at..hit.start]);
            let mut out = Vec::new();
            mask(&self.known.values[hit.value].name, &mut out);
            sink(&out);
            at = hit.end;
            count += 1;
            self.hits.remove(0);
        }
        let safe = self.hits.first().map_or(open, |hit| open.min(hit.start));
        if safe > at {
            sink(&self.held[at..safe]);
            at = safe;
        }
        self.held.drain(..at);
        for hit in &mut self.hits {
            (hit.start, hit.end) = (hit.start - at, hit.end - at);
        }
        count
    }
}
