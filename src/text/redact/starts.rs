//! Finds the places where one of many strings may begin, by their first three bytes.
//!
//! Every string is in one of 32 groups, and a table for each of the three places says which groups a byte fits. What
//! is found is a place worth a closer look; no place is ever missed.

/// How many bytes are looked at.
const PLACES: usize = 3;
const GROUPS: usize = 32;

#[derive(Debug)]
pub(super) struct Starts {
    tables: [[u32; 256]; PLACES],
}

impl Starts {
    /// For strings of three bytes and more.
    pub(super) fn new<'a>(strings: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut tables = [[0; 256]; PLACES];
        for (at, string) in strings.enumerate() {
            for (table, &byte) in tables.iter_mut().zip(string) {
                table[usize::from(byte)] |= 1 << (at % GROUPS);
            }
        }
        Self { tables }
    }

    /// The first place where a string may begin, or begin to: at the end of the text fewer bytes are enough.
    pub(super) fn find(&self, text: &[u8]) -> Option<usize> {
        let [first, second, third] = &self.tables;
        let is_start = |bytes: &[u8; PLACES]| {
            first[usize::from(bytes[0])] & second[usize::from(bytes[1])] & third[usize::from(bytes[2])] != 0
        };
        let mut windows = text.windows(PLACES).map(|bytes| bytes.first_chunk().expect("a window's length"));
        windows.position(is_start).or_else(|| {
            let end = text.len().saturating_sub(PLACES - 1);
            (end..text.len()).find(|&at| {
                let groups = text[at..].iter().zip(&self.tables).map(|(&byte, table)| table[usize::from(byte)]);
                groups.fold(u32::MAX, |all, fitting| all & fitting) != 0
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_place_is_missed() {
        let strings: Vec<Vec<u8>> =
            (0..100_u8).map(|n| vec![n.wrapping_mul(37), n.wrapping_mul(11), n, n, n]).collect();
        let starts = Starts::new(strings.iter().map(Vec::as_slice));
        for string in &strings {
            for before in 0..20 {
                let text = [&vec![b' '; before], &string[..]].concat();
                for len in before + 1..=text.len() {
                    assert!(starts.find(&text[..len]).is_some_and(|at| at <= before), "{text:?}");
                }
            }
        }
        let words = Starts::new([&b"token"[..], b"key"].into_iter());
        assert_eq!(words.find(b"no such word in the phrase"), None);
        assert_eq!(words.find(b"a monkey"), Some(5));
        assert_eq!(words.find(b"stop it"), Some(6));
        assert_eq!(words.find(b"what"), Some(3));
        assert_eq!(words.find(b""), None);
    }
}
