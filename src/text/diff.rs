//! Finds the lines that two texts do not share: Myers' algorithm in linear space ("An O(ND) Difference Algorithm and
//! Its Variations", 1986), and the parts that vary between two runs of the same command.
//!
//! Invariants: applied to the first text, the changes make the second one; time and memory are bounded. If the texts
//! have hardly anything in common, a smaller set of changes may exist.

use std::collections::BTreeMap;
use std::ops::Range;

/// The limit on removed and added lines; beyond it a region counts as replaced as a whole. Time grows with the square.
const CHANGES_MAX: usize = 2_000;

/// The lines that differ between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineChanges {
    /// True for each line of the first text that the second one lacks.
    pub removed: Vec<bool>,
    /// True for each line of the second text that the first one lacks.
    pub added: Vec<bool>,
}

/// Compares two texts line by line.
#[must_use]
pub fn compare<T: Ord>(first: &[T], second: &[T]) -> LineChanges {
    let mut known = BTreeMap::new();
    let mut number = |line| {
        let next = known.len();
        *known.entry(line).or_insert(next)
    };
    let a: Vec<usize> = first.iter().map(&mut number).collect();
    let b: Vec<usize> = second.iter().map(&mut number).collect();
    let mut changes = LineChanges { removed: vec![false; a.len()], added: vec![false; b.len()] };
    // Regions still to be compared. Each is smaller than the one that contains it.
    let mut regions = vec![(0..a.len(), 0..b.len())];
    while let Some((of_a, of_b)) = regions.pop() {
        let (of_a, of_b) = without_ends(&a, &b, of_a, of_b);
        let middle = if of_a.is_empty() || of_b.is_empty() { None } else { middle(&a[of_a.clone()], &b[of_b.clone()]) };
        match middle {
            Some((x, y)) => {
                let (x, y) = (of_a.start + x, of_b.start + y);
                regions.push((of_a.start..x, of_b.start..y));
                regions.push((x..of_a.end, y..of_b.end));
            }
            None => {
                changes.removed[of_a].fill(true);
                changes.added[of_b].fill(true);
            }
        }
    }
    changes
}

/// The region without the lines that both sides begin and end with.
fn without_ends(
    a: &[usize],
    b: &[usize],
    mut of_a: Range<usize>,
    mut of_b: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    let shared = a[of_a.clone()].iter().zip(&b[of_b.clone()]).take_while(|(x, y)| x == y).count();
    (of_a.start, of_b.start) = (of_a.start + shared, of_b.start + shared);
    let shared = a[of_a.clone()].iter().rev().zip(b[of_b.clone()].iter().rev()).take_while(|(x, y)| x == y).count();
    (of_a.end, of_b.end) = (of_a.end - shared, of_b.end - shared);
    (of_a, of_b)
}

/// The furthest places that paths of some length reach, by diagonal.
struct Reach {
    places: Vec<usize>,
    offset: isize,
}

impl Reach {
    fn new(changes_max: usize) -> Self {
        let offset = changes_max.cast_signed() + 1;
        Self { places: vec![0; 2 * changes_max + 3], offset }
    }

    fn at(&self, diagonal: isize) -> usize {
        self.places.get((diagonal + self.offset).cast_unsigned()).copied().unwrap_or(0)
    }

    fn set(&mut self, diagonal: isize, place: usize) {
        self.places[(diagonal + self.offset).cast_unsigned()] = place;
    }

    /// The start of the run of equal lines of the best path with `changes` changes on a diagonal.
    fn begin(&self, diagonal: isize, changes: isize) -> usize {
        let is_below = diagonal == -changes || (diagonal != changes && self.at(diagonal - 1) < self.at(diagonal + 1));
        if is_below { self.at(diagonal + 1) } else { self.at(diagonal - 1) + 1 }
    }
}

/// A place in the middle of a shortest path between two texts that begin and end with different lines. `None` if the
/// path is too long.
fn middle(a: &[usize], b: &[usize]) -> Option<(usize, usize)> {
    let (n, m) = (a.len(), b.len());
    let delta = n.cast_signed() - m.cast_signed();
    let is_odd = delta % 2 != 0;
    let most = (n + m).div_ceil(2).min(CHANGES_MAX);
    let (mut forward, mut backward) = (Reach::new(most), Reach::new(most));
    for changes in 0..=most.cast_signed() {
        for diagonal in (-changes..=changes).rev().step_by(2) {
            let x = forward.begin(diagonal, changes);
            let y = (x.cast_signed() - diagonal).cast_unsigned();
            let end = x + equal(a.get(x..), b.get(y..));
            forward.set(diagonal, end);
            let is_near = (diagonal - delta).abs() < changes;
            if is_odd && is_near && end + backward.at(delta - diagonal) >= n {
                return Some((x, y));
            }
        }
        for diagonal in (-changes..=changes).rev().step_by(2) {
            let x = backward.begin(diagonal, changes);
            let y = (x.cast_signed() - diagonal).cast_unsigned();
            let ends = (n.checked_sub(x).map(|end| &a[..end]), m.checked_sub(y).map(|end| &b[..end]));
            let end = x + equal_at_end(ends.0, ends.1);
            backward.set(diagonal, end);
            let is_near = (diagonal - delta).abs() <= changes;
            if !is_odd && is_near && end + forward.at(delta - diagonal) >= n {
                let y = (end.cast_signed() - diagonal).cast_unsigned();
                return Some((n.checked_sub(end)?, m.checked_sub(y)?));
            }
        }
    }
    None
}

/// The number of lines that both texts begin with.
fn equal(a: Option<&[usize]>, b: Option<&[usize]>) -> usize {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// The number of lines that both texts end with.
fn equal_at_end(a: Option<&[usize]>, b: Option<&[usize]>) -> usize {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

/// The line with placeholders for the parts that vary from run to run: times, durations, and ids in hexadecimal.
#[must_use]
pub fn normalized(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let is_inside = text.chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_');
        let length = if c.is_ascii_hexdigit() && !is_inside { word_end(rest) } else { 0 };
        match placeholder(&rest[..length], &rest[length..]) {
            Some((placeholder, more)) => {
                text.push_str(placeholder);
                rest = &rest[length + more..];
            }
            None => {
                let length = length.max(c.len_utf8());
                text.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    text
}

/// The length of a possible number, time or id at the beginning of a text.
fn word_end(text: &str) -> usize {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':' | '-' | '+' | '_');
    let end = text.find(|c| !goes_on(c)).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', ':', '-', '+']).len()
}

/// The placeholder for a word that varies, and the number of bytes after the word that belong to it.
fn placeholder(word: &str, rest: &str) -> Option<(&'static str, usize)> {
    if word.is_empty() {
        return None;
    }
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    if shape.starts_with("0000-00-00") || shape.starts_with("00:00:00") || shape.starts_with("0:00:00") {
        // A date and a time of day that a blank separates are one.
        let time = rest.strip_prefix(' ').filter(|_| shape == "0000-00-00").map_or(0, word_end);
        let is_time = time > 0 && rest.as_bytes()[1].is_ascii_digit() && rest[1..].contains(':');
        return Some(("<time>", if is_time { 1 + time } else { 0 }));
    }
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if unit.len() < word.len() && is_unit(unit) {
        return Some(("<duration>", 0));
    }
    let next = rest.strip_prefix(' ').map_or("", |rest| &rest[..word_end(rest)]);
    if unit.is_empty() && is_unit(next) {
        return Some(("<duration>", 1 + next.len()));
    }
    let hex = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = hex.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    let (digits, letters) =
        (hex.contains(|c: char| c.is_ascii_digit()), hex.contains(|c: char| c.is_ascii_alphabetic()));
    let is_id = is_hex && hex.len() >= ID_CHARS_MIN && digits && letters;
    (is_id || (is_hex && hex.len() < word.len())).then_some(("<id>", 0))
}

/// The fewest characters of an id, as in git's short ones.
const ID_CHARS_MIN: usize = 7;

fn is_unit(word: &str) -> bool {
    matches!(word, "ns" | "us" | "µs" | "ms" | "s" | "sec" | "secs" | "second" | "seconds" | "min" | "m" | "h")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the changes turn one text into the other.
    fn holds<T: Ord + Clone + PartialEq + std::fmt::Debug>(first: &[T], second: &[T], changes: &LineChanges) -> bool {
        let kept = first.iter().zip(&changes.removed).filter(|(_, removed)| !**removed).map(|(line, _)| line);
        let stayed = second.iter().zip(&changes.added).filter(|(_, added)| !**added).map(|(line, _)| line);
        kept.eq(stayed)
    }

    #[test]
    fn the_changes_are_the_fewest() {
        let cases: [(&str, &str, usize); 8] = [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "", 3),
            ("", "abc", 3),
            ("abcabba", "cbabac", 5),
            ("abcdefgh", "abXdefgh", 2),
            ("abcdef", "fedcba", 10),
            ("aaaa", "aaaaaa", 2),
        ];
        for (first, second, fewest) in cases {
            let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
            let changes = compare(&first, &second);
            let count = [&changes.removed, &changes.added].into_iter().flatten().filter(|is| **is).count();
            assert!(holds(&first, &second, &changes) && count == fewest, "{first:?} {second:?}: {changes:?}");
        }
    }

    #[test]
    fn any_two_texts_can_be_compared() {
        let mut seed = 7_u32;
        let mut next = |most: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % most
        };
        for round in 0..2_000 {
            let letters = 1 + round % 7;
            let text = |next: &mut dyn FnMut(u32) -> u32| -> Vec<u32> {
                let length = next(30);
                (0..length).map(|_| next(letters)).collect()
            };
            let (first, second) = (text(&mut next), text(&mut next));
            let changes = compare(&first, &second);
            assert!(holds(&first, &second, &changes), "{first:?} {second:?}: {changes:?}");
        }
        let (first, second): (Vec<u32>, Vec<u32>) = ((0..50_000).collect(), (50_000..100_000).collect());
        let changes = compare(&first, &second);
        assert!(changes.removed.iter().chain(&changes.added).all(|is| *is));
    }

    #[test]
    fn what_varies_has_placeholders() {
        for (line, expected) in [
            ("finished in 0.39s", "finished in <duration>"),
            ("took 12 ms, then 3 s.", "took <duration>, then <duration>."),
            ("2026-11-22T03:04:05.678Z start", "<time> start"),
            ("2026-11-22 03:04:05 start", "<time> start"),
            ("2026-11-22 start", "<time> start"),
            ("[12:03:51] GET", "[<time>] GET"),
            ("commit 3f2a9bc1 by ann", "commit <id> by ann"),
            ("at 0x7ffe12 in main", "at <id> in main"),
            ("id 123e4567-e89b-12d3-a456-426614174000", "id <id>"),
            ("1234567 lines and 5 tests", "1234567 lines and 5 tests"),
            ("a decade, added; v1.2.3", "a decade, added; v1.2.3"),
            ("größe 5 s ∎", "größe <duration> ∎"),
            ("", ""),
        ] {
            assert_eq!(normalized(line), expected, "{line}");
        }
    }
}
