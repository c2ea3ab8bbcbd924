//! Masks the values of variables, wherever they are in a stream.
//!
//! Values that overlap are masked as one secret, with the name of the one that begins first.
//!
//! Invariants: how the stream was split never shows; only the beginning of a value, or values that overlap, are held back;
//! the cost of a byte does not depend on the number of values.

use std::ops::Range;
use std::sync::Arc;

use super::automaton::{Automaton, PATTERN_BYTES_MIN, ROOT};
use crate::limits;

/// The values of one environment, shared by the maskers of its streams.
#[derive(Debug)]
pub(super) struct KnownValues {
    values: Vec<KnownValue>,
    automaton: Automaton,
}

#[derive(Debug)]
struct KnownValue {
    name: String,
    value: Vec<u8>,
}

impl KnownValue {
    /// The part that the automaton knows; the rest is compared once that part was found.
    fn pattern(&self) -> &[u8] {
        &self.value[..self.value.len().min(limits::SECRET_PATTERN_BYTES_MAX)]
    }
}

impl KnownValues {
    /// The values with their names; the most plausible ones if there are too many, `None` if there are none.
    pub(super) fn new(secrets: impl IntoIterator<Item = (String, Vec<u8>)>) -> Option<Arc<Self>> {
        let mut values: Vec<KnownValue> = secrets
            .into_iter()
            .filter(|(_, value)| value.len() >= PATTERN_BYTES_MIN)
            .map(|(name, value)| KnownValue { name, value })
            .collect();
        values.sort_by(|a, b| a.value.cmp(&b.value));
        values.dedup_by(|a, b| a.value == b.value);
        let total = |values: &[KnownValue]| values.iter().map(|secret| secret.value.len()).sum::<usize>();
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
        // Of values that differ only after the part that the automaton knows, one is kept.
        let mut patterns: Vec<&[u8]> = values.iter().map(KnownValue::pattern).collect();
        patterns.dedup();
        if patterns.len() < values.len() {
            values.dedup_by(|a, b| a.pattern() == b.pattern());
        }
        let automaton = Automaton::new(&values.iter().map(KnownValue::pattern).collect::<Vec<_>>());
        (!values.is_empty()).then(|| Arc::new(Self { values, automaton }))
    }

    /// The places of the values in a whole text, in order, each with its name. Those that overlap are one.
    pub(super) fn places(&self, text: &[u8]) -> Vec<(Range<usize>, &str)> {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        let (mut at, mut node) = (0, ROOT);
        while at < text.len() {
            if node == ROOT {
                at += self.automaton.skip(&text[at..]);
                if at == text.len() {
                    break;
                }
            }
            node = self.automaton.step(node, text[at]);
            at += 1;
            let Some(secret) = self.automaton.value(node).map(|value| &self.values[value]) else { continue };
            let start = at - secret.pattern().len();
            let rest = &secret.value[secret.pattern().len()..];
            let more = rest.iter().zip(&text[at..]).take_while(|(a, b)| a == b).count();
            if more > 0 {
                (at, node) = (at + more, ROOT);
            }
            let (mut place, mut name) = (start..at, secret.name.as_str());
            while let Some((last, of)) = found.pop_if(|(last, _)| last.end > place.start) {
                if last.start < place.start {
                    (place.start, name) = (last.start, of);
                }
            }
            found.push((place, name));
        }
        found
    }
}

/// How much a value looks generated or carefully chosen: its kinds of characters, then its length.
fn plausibility(value: &[u8]) -> (usize, usize) {
    let kinds: [fn(&u8) -> bool; 4] =
        [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit, u8::is_ascii_punctuation];
    let kinds = kinds.iter().filter(|&is| value.iter().any(is)).count();
    // A value longer than any token is more likely a document.
    (kinds, if value.len() > 4096 { 0 } else { value.len() })
}

/// The masker of one stream.
#[derive(Debug, Clone)]
pub(super) struct ValueMasker {
    known: Arc<KnownValues>,
    node: u32,
    /// The bytes held back: the beginning of a value, and before it the values found.
    held: Vec<u8>,
    /// How many of them were let go all the same.
    released: usize,
    hits: Vec<Hit>,
    /// A found value that is longer than the automaton's part, and how many of its bytes were read.
    rest: Option<(usize, usize)>,
}

/// A stretch covered by values, as places in `held`.
#[derive(Debug, Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
    value: usize,
}

/// Where a [`ValueMasker`] puts what it lets pass.
pub(super) trait Passage {
    /// Text passes.
    fn text(&mut self, text: &[u8]);
    /// A mask with this name takes the place of so many bytes.
    fn mask(&mut self, name: &str, len: usize);
    /// So many bytes are left out.
    fn skip(&mut self, len: usize);
}

impl ValueMasker {
    pub(super) fn new(known: Arc<KnownValues>) -> Self {
        Self { known, node: ROOT, held: Vec::new(), released: 0, hits: Vec::new(), rest: None }
    }

    pub(super) fn fresh(&self) -> Self {
        Self::new(Arc::clone(&self.known))
    }

    pub(super) fn known(&self) -> &KnownValues {
        &self.known
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.len() - self.released
    }

    /// Whether what comes next may belong to a value that was masked.
    pub(super) fn is_dropping(&self) -> bool {
        self.rest.is_some()
    }

    /// Takes bytes, and passes on those about which the verdict is certain. Returns the number of masks among them.
    pub(super) fn push(&mut self, input: &[u8], sink: &mut impl Passage) -> u64 {
        let (mut at, mut count) = (0, 0);
        while at < input.len() {
            if let Some((value, passed)) = self.rest {
                let rest = &self.known.values[value].value[passed..];
                let same = rest.iter().zip(&input[at..]).take_while(|(a, b)| a == b).count();
                at += same;
                sink.skip(same);
                let goes_on = at == input.len() && same < rest.len();
                self.rest = goes_on.then_some((value, passed + same));
            } else if self.held.is_empty() {
                let len = self.known.automaton.skip(&input[at..]);
                sink.text(&input[at..at + len]);
                at += len;
                // The automaton takes at least one step.
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

    /// Lets go what is held back. What comes after it is still read together with it, so that the rest of a value is
    /// masked.
    pub(super) fn release(&mut self, sink: &mut impl Passage) {
        if self.hits.is_empty() {
            sink.text(&self.held[self.released..]);
            self.released = self.held.len();
        }
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, sink: &mut impl Passage) -> u64 {
        self.node = ROOT;
        self.rest = None;
        self.settle(sink)
    }

    fn step(&mut self, byte: u8, sink: &mut impl Passage) -> u64 {
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

    /// Passes on the bytes in which no value can begin any more.
    fn settle(&mut self, sink: &mut impl Passage) -> u64 {
        let open = self.held.len() - self.known.automaton.depth(self.node);
        let (mut at, mut count) = (0, 0);
        while let Some(&hit) = self.hits.first().filter(|hit| hit.end <= open) {
            self.pass(at..hit.start, sink);
            // Of a value that was let go, only the rest is left to mask.
            let from = hit.start.max(self.released);
            if from < hit.end {
                sink.mask(&self.known.values[hit.value].name, hit.end - from);
                count += 1;
            }
            at = hit.end;
            self.hits.remove(0);
        }
        let safe = self.hits.first().map_or(open, |hit| open.min(hit.start));
        if safe > at {
            self.pass(at..safe, sink);
            at = safe;
        }
        self.held.drain(..at);
        self.released = self.released.saturating_sub(at);
        for hit in &mut self.hits {
            (hit.start, hit.end) = (hit.start - at, hit.end - at);
        }
        count
    }

    /// Passes on these held bytes, unless they were let go.
    fn pass(&self, part: Range<usize>, sink: &mut impl Passage) {
        let from = part.start.max(self.released);
        if from < part.end {
            sink.text(&self.held[from..part.end]);
        }
    }
}
