//! Finds the values of variables, wherever they are in a text.
//!
//! A quick look reads a word of four bytes at every eighth place: wherever a value stands, one of these words begins
//! within its first eight bytes. Where one matches, the places around it are compared with the first four bytes of the
//! values, and then with the values, which are sorted.
//!
//! Values that overlap are one secret, with the name of the one that begins first.
//!
//! Invariant: the cost of a byte grows with the logarithm of the number of values.

use std::ops::Range;
use std::sync::Arc;

use crate::limits;

/// The shortest value, in bytes, that the quick look can find.
const BYTES_MIN: usize = 8;
const WORD: usize = 4;
const BLOCK: usize = 64;
/// The distance in bytes between the words that the quick look reads.
const STRIDE: usize = 4;
/// The distance if each value is long enough to contain one of these words.
const LONG_STRIDE: usize = 8;
const TABLE_BITS: u32 = 16;

/// The values of one environment, shared by the maskers of its streams.
#[derive(Debug)]
pub(super) struct KnownValues {
    /// Sorted, and distinct.
    values: Vec<KnownValue>,
    /// The words at the first places of values, as many as a stride has.
    words: WordTable,
    /// The first words.
    first: WordTable,
    /// The first bytes.
    begins: Box<[bool; 256]>,
    is_long: bool,
}

#[derive(Debug)]
struct KnownValue {
    name: String,
    value: Vec<u8>,
    /// The longest other value that this one begins with.
    within: Option<usize>,
}

/// The values in a text of which more may come.
#[derive(Debug)]
pub(super) struct FoundValues<'a> {
    /// Their places in order, each with its name; none for the rest of a value that was found before.
    pub(super) places: Vec<(Range<usize>, Option<&'a str>)>,
    /// From here on the text may be the beginning of a value.
    pub(super) open: usize,
    /// How many bytes from there on certainly belong to the last of the places.
    pub(super) rest: usize,
}

/// One bit for each hash of a word.
#[derive(Debug)]
struct WordTable(Box<[u64; 1 << (TABLE_BITS - 6)]>);

impl WordTable {
    fn new() -> Self {
        Self(Box::new([0; 1 << (TABLE_BITS - 6)]))
    }

    /// The place of the first four bytes in the table.
    #[inline]
    fn place(bytes: &[u8; WORD]) -> (usize, u32) {
        let hash = u32::from_le_bytes(*bytes).wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS);
        ((hash >> 6) as usize, hash & 63)
    }

    fn add(&mut self, word: Option<&[u8; WORD]>) {
        if let Some((at, bit)) = word.map(Self::place) {
            self.0[at] |= 1 << bit;
        }
    }

    /// Returns 1 in the last bit if it may have this word; other bits mean nothing.
    #[inline]
    fn get(&self, word: &[u8; WORD]) -> u64 {
        let (at, bit) = Self::place(word);
        self.0[at] >> bit
    }
}

impl KnownValues {
    /// The values with their names; the most plausible ones if there are too many, `None` if there are none.
    pub(super) fn new(secrets: impl IntoIterator<Item = (String, Vec<u8>)>) -> Option<Arc<Self>> {
        let mut secrets: Vec<_> = secrets.into_iter().filter(|(_, value)| value.len() >= BYTES_MIN).collect();
        secrets.sort_by(|a, b| a.1.cmp(&b.1));
        secrets.dedup_by(|a, b| a.1 == b.1);
        let total = |secrets: &[(String, Vec<u8>)]| secrets.iter().map(|(_, value)| value.len()).sum::<usize>();
        if secrets.len() > limits::SECRETS_MAX || total(&secrets) > limits::SECRETS_BYTES_MAX {
            secrets.sort_by_key(|(_, value)| std::cmp::Reverse(plausibility(value)));
            secrets.truncate(limits::SECRETS_MAX);
            let mut room = limits::SECRETS_BYTES_MAX;
            secrets.retain(|(_, value)| {
                let fits = value.len() <= room;
                room -= if fits { value.len() } else { 0 };
                fits
            });
        }
        let mut values: Vec<KnownValue> = secrets.iter().flat_map(|(name, value)| parts(name, value)).collect();
        values.sort_by(|a, b| a.value.cmp(&b.value));
        values.dedup_by(|a, b| a.value == b.value);
        for at in 1..values.len() {
            let mut shorter = Some(at - 1);
            while let Some(other) = shorter.filter(|&other| !values[at].value.starts_with(&values[other].value)) {
                shorter = values[other].within;
            }
            values[at].within = shorter;
        }
        let is_long = values.iter().all(|value| value.value.len() >= LONG_STRIDE + WORD - 1);
        let (mut words, mut first) = (WordTable::new(), WordTable::new());
        let mut begins = Box::new([false; 256]);
        for KnownValue { value, .. } in &values {
            (0..if is_long { LONG_STRIDE } else { STRIDE }).for_each(|at| words.add(value[at..].first_chunk()));
            first.add(value.first_chunk());
            begins[usize::from(value[0])] = true;
        }
        (!values.is_empty()).then(|| Arc::new(Self { values, words, first, begins, is_long }))
    }

    /// The places of the values in a whole text, in order, each with its name. Those that overlap are one.
    pub(super) fn places(&self, text: &[u8]) -> impl Iterator<Item = (Range<usize>, &str)> {
        self.search(text, 0, true).places.into_iter().filter_map(|(place, name)| Some((place, name?)))
    }

    /// Finds the values in a text whose first `rest` bytes belong to one that was found before. Unless it is the `last`
    /// text, more may come.
    pub(super) fn search(&self, text: &[u8], rest: usize, last: bool) -> FoundValues<'_> {
        let mut found = FoundValues { places: Vec::new(), open: text.len(), rest: 0 };
        if rest > 0 {
            found.places.push((0..rest.min(text.len()), None));
        }
        let mut from = 0;
        while from < text.len() {
            let near =
                if self.is_long { self.near::<LONG_STRIDE>(text, from) } else { self.near::<STRIDE>(text, from) };
            from = near.end;
            for at in near {
                let may_begin = match text[at..].first_chunk() {
                    Some(word) => self.first.get(word) & 1 == 1,
                    None => self.begins[usize::from(text[at])],
                };
                let (value, is_begin) = if may_begin { self.at_start_of(&text[at..]) } else { continue };
                if is_begin && !last {
                    found.open = found.open.min(at);
                }
                let Some(KnownValue { name, value, .. }) = value.filter(|_| at < found.open) else { continue };
                let end = at + value.len();
                match found.places.last_mut().filter(|(place, _)| place.end > at) {
                    Some((place, _)) => place.end = place.end.max(end),
                    None => found.places.push((at..end, Some(name))),
                }
            }
        }
        if let Some((place, _)) = found.places.last_mut() {
            found.rest = place.end.saturating_sub(found.open);
            place.end -= found.rest;
        }
        found.places.retain(|(place, _)| !place.is_empty());
        found
    }

    /// The longest value that this text begins with, and whether the text is the beginning of a longer one.
    fn at_start_of(&self, text: &[u8]) -> (Option<&KnownValue>, bool) {
        let behind = self.values.partition_point(|value| *value.value <= *text);
        let is_begin = self.values.get(behind).is_some_and(|value| value.value.starts_with(text));
        // Each value that the text begins with is one that the last value before the text begins with.
        let mut before = behind.checked_sub(1).map(|at| &self.values[at]);
        while let Some(value) = before.filter(|value| !text.starts_with(&value.value)) {
            before = value.within.map(|at| &self.values[at]);
        }
        (before, is_begin)
    }

    /// The next places from `from` on where a value may begin, even one that the text cuts off.
    fn near<const STRIDE: usize>(&self, text: &[u8], from: usize) -> Range<usize> {
        let (blocks, _) = text[from..].as_chunks::<BLOCK>();
        // One branch for a block of words.
        let block = blocks.iter().position(|block| {
            block.as_chunks::<STRIDE>().0.iter().fold(0, |hit, word| hit | self.has_word(word)) & 1 != 0
        });
        let start = from + block.unwrap_or(blocks.len()) * BLOCK;
        let word = text[start..].as_chunks::<STRIDE>().0.iter().position(|word| self.has_word(word) & 1 != 0);
        // A value with this word begins less than a stride before it; one whose word the end cuts off begins less than two
        // strides before the end.
        match word.map(|word| start + word * STRIDE) {
            Some(hit) => hit.saturating_sub(STRIDE - 1).max(from)..hit + 1,
            None => text.len().saturating_sub(2 * STRIDE - 2).max(from)..text.len(),
        }
    }

    #[inline]
    fn has_word<const STRIDE: usize>(&self, bytes: &[u8; STRIDE]) -> u64 {
        bytes.first_chunk().map_or(0, |word| self.words.get(word))
    }
}

/// The value in parts that are held back at most. Each overlaps the next one.
fn parts(name: &str, value: &[u8]) -> impl Iterator<Item = KnownValue> {
    const STEP: usize = limits::SECRET_PATTERN_BYTES_MAX / 2;
    let starts = (0..value.len().saturating_sub(STEP).max(1)).step_by(STEP);
    starts.map(move |start| {
        let part = &value[start..value.len().min(start + 2 * STEP)];
        KnownValue { name: name.to_owned(), value: part.to_vec(), within: None }
    })
}

/// How much a value looks generated or carefully chosen: its kinds of characters, then its length.
fn plausibility(value: &[u8]) -> (usize, usize) {
    let kinds: [fn(&u8) -> bool; 4] =
        [u8::is_ascii_lowercase, u8::is_ascii_uppercase, u8::is_ascii_digit, u8::is_ascii_punctuation];
    let kinds = kinds.iter().filter(|&is| value.iter().any(is)).count();
    // A value longer than any token is more likely a document.
    (kinds, if value.len() > 4096 { 0 } else { value.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a look at each byte, for texts cut at each place.
    #[test]
    fn each_value_is_found_and_each_beginning_is_seen() {
        let short =
            [&b"abababab"[..], b"babababa", b"ababababcd", b"xyzxyzxyz", b"zxyzxyzx", b"12345678", b"123456789"];
        let long = [&b"abababababab"[..], b"babababababa", b"xyzxyzxyzxy", b"12345678901", b"123456789012"];
        let text = b"--ababababcd..xyzxyzxyzxyz 123456789abababababababa 12345678901 12345678901234 babababababa xyzxy";
        for values in [short.to_vec(), long.to_vec()] {
            let known = KnownValues::new(values.iter().map(|value| (String::new(), value.to_vec()))).unwrap();
            for start in 0..text.len() {
                for end in start..=text.len() {
                    let text = &text[start..end];
                    let is_begin = |at: &usize| {
                        values.iter().any(|value| value.len() > text.len() - at && value.starts_with(&text[*at..]))
                    };
                    let open = (0..text.len()).find(is_begin).unwrap_or(text.len());
                    let mut secret = vec![false; text.len()];
                    for at in 0..text.len() {
                        let here = values.iter().filter(|value| text[at..].starts_with(value));
                        here.for_each(|value| secret[at..at + value.len()].fill(true));
                    }
                    let found = known.search(text, 0, false);
                    assert_eq!(found.open, open, "{start}..{end}");
                    let places = |found: &FoundValues<'_>| {
                        let mut there = vec![false; text.len()];
                        found.places.iter().for_each(|(place, _)| there[place.clone()].fill(true));
                        there
                    };
                    assert_eq!(places(&known.search(text, 0, true)), secret, "{start}..{end}");
                    assert!(places(&found)[..open].iter().zip(&secret).all(|(a, b)| a <= b), "{start}..{end}");
                }
            }
        }
    }
}
