//! What a terminal shows of a text: a secret is searched in that, whatever colours are in its middle.
//!
//! ```text
//! gh ␛[1m p_0123…         what came
//! ghp_0123…               what is searched; the sequence's place is noted
//! «redacted:…» ␛[1m       what goes on: a sequence within a secret follows the mask
//! ```
//!
//! A sequence that moves the cursor separates what stands around it. A control byte is searched in its place, which is part
//! of no secret. What a sequence carries, such as the address of a link, is searched by itself.
//!
//! Invariant: each sequence is put back once, between the same visible bytes unless those are masked.

use std::ops::Range;

/// The most bytes of a sequence that is taken out.
const SEQUENCE_BYTES_MAX: usize = 4 << 10;
const ESC: u8 = 0x1B;
/// What is searched in the place of a sequence that moves the cursor.
const SEPARATOR: u8 = ESC;

/// What is shown of a raw text that comes in pieces. Each byte is read once, so that a mask never changes what is a sequence.
#[derive(Debug, Clone, Default)]
pub(super) struct ShownText {
    pub(super) text: Vec<u8>,
    /// How many bytes of the text have passed: of the raw text that they came from nothing is left.
    pub(super) passed: usize,
    raw: Vec<u8>,
    /// How far the raw text was read: up to a sequence whose end has not come.
    read: usize,
    sequences: Vec<HiddenSequence>,
}

/// A sequence that was taken out.
#[derive(Debug, Clone, Copy)]
struct HiddenSequence {
    /// How many bytes of the text are before it.
    at: usize,
    /// Where it begins in the raw text.
    start: usize,
    len: usize,
    /// The byte of the text there stands for it.
    is_separator: bool,
}

/// What takes the place of a part of the shown text.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) place: Range<usize>,
    pub(super) text: String,
}

impl ShownText {
    /// What is shown of this text, up to a sequence whose end has not come.
    pub(super) fn of(text: &[u8]) -> Self {
        let mut shown = Self::default();
        shown.push(text, false);
        shown
    }

    /// Takes the next raw bytes. Nothing follows the `last` ones. Returns the index of the first new sequence if one of them
    /// carries something.
    pub(super) fn push(&mut self, bytes: &[u8], last: bool) -> Option<usize> {
        let (before, from) = (self.sequences.len(), self.read);
        self.raw.extend_from_slice(bytes);
        let mut start = from + memchr::memchr(ESC, &self.raw[from..]).unwrap_or(self.raw.len() - from);
        self.text.extend_from_slice(&self.raw[from..start]);
        if start == self.raw.len() {
            self.read = start;
            return None;
        }
        let mut carries = false;
        let mut len = self.text.len();
        self.text.resize(len + self.raw.len() - start + WORD, 0);
        let (raw, text) = (&self.raw[..], &mut self.text[..]);
        while start < raw.len() {
            let rest = &raw[start..];
            if rest[0] != ESC {
                let plain = copy_to_escape(rest, &mut text[len..]);
                (len, start) = (len + plain, start + plain);
                continue;
            }
            let colour = colour_len(rest).map(|len| EscapeSequence::Whole { len, is_separator: false });
            let plain = match colour.unwrap_or_else(|| {
                carries |= is_carrier(rest);
                EscapeSequence::of(rest)
            }) {
                // What a sequence without an end carries is no part of the text before it either.
                EscapeSequence::Open if last => {
                    self.sequences.push(HiddenSequence { at: len, start, len: rest.len(), is_separator: false });
                    start = raw.len();
                    continue;
                }
                EscapeSequence::Open => break,
                EscapeSequence::Whole { len: whole, is_separator } => {
                    self.sequences.push(HiddenSequence { at: len, start, len: whole, is_separator });
                    text[len] = SEPARATOR;
                    (len, start) = (len + usize::from(is_separator), start + whole);
                    continue;
                }
                EscapeSequence::Text(plain) => plain,
            };
            text[len..len + plain].copy_from_slice(&rest[..plain]);
            (len, start) = (len + plain, start + plain);
        }
        self.text.truncate(len);
        self.read = start;
        carries.then_some(before)
    }

    /// Masks what is carried by the sequences behind the first ones. Of one at the end of the `last` bytes, which may be no
    /// sequence, all but the escape byte is searched.
    pub(super) fn mask_carried(&mut self, first: usize, last: bool, mut mask: impl FnMut(&[u8], &mut Vec<u8>)) {
        let new = &self.sequences[first..];
        let Some(carrier) = new.iter().position(|sequence| is_carrier(&self.raw[sequence.start..])) else { return };
        let old = self.raw.split_off(new[carrier].start);
        let (mut from, base) = (0, self.raw.len());
        for sequence in &mut self.sequences[first + carrier..] {
            let start = sequence.start - base;
            let end = start + sequence.len;
            self.raw.extend_from_slice(&old[from..start]);
            sequence.start = self.raw.len();
            if is_carrier(&old[start..]) {
                let inner = start + if last && end == old.len() { 1 } else { 2 };
                self.raw.extend_from_slice(&old[start..inner]);
                mask(&old[inner..end], &mut self.raw);
            } else {
                self.raw.extend_from_slice(&old[start..end]);
            }
            sequence.len = self.raw.len() - sequence.start;
            from = end;
        }
        self.raw.extend_from_slice(&old[from..]);
        self.read = self.read + self.raw.len() - base - old.len();
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.raw.len()
    }

    /// The place in the raw text before the sequences at this place of the text.
    pub(super) fn before(&self, at: usize) -> usize {
        self.raw_place(at, self.sequences.partition_point(|sequence| sequence.at < at))
    }

    /// The place in the raw text behind the sequences at this place of the text, but for one that stands for its byte.
    fn behind(&self, at: usize) -> usize {
        self.raw_place(at, self.count_before(at))
    }

    fn count_before(&self, at: usize) -> usize {
        self.sequences.partition_point(|sequence| sequence.at + usize::from(sequence.is_separator) <= at)
    }

    /// The place in the raw text of one in the text that has so many sequences before it.
    fn raw_place(&self, at: usize, sequences: usize) -> usize {
        let last = self.sequences[..sequences].last();
        last.map_or(at - self.passed, |last| last.start + last.len + at - last.at - usize::from(last.is_separator))
    }

    /// Makes these edits in the part that has not passed. What follows the sequences in an edited place are these.
    pub(super) fn edit(&mut self, edits: &[Edit]) {
        let Some(first) = edits.first().map(|edit| edit.place.start.max(self.passed)) else { return };
        let (count, start) = (self.count_before(first), self.behind(first));
        let old = Self {
            text: self.text.split_off(first),
            raw: self.raw.split_off(start),
            sequences: self.sequences.split_off(count),
            ..*self
        };
        let (mut at, mut from, mut next) = (first, start, 0);
        for Edit { place, text } in edits {
            let count = old.sequences[next..].iter();
            let count = next + count.take_while(|next| next.at + usize::from(next.is_separator) <= place.start).count();
            let to = place.start.max(at);
            from = self.take(&old, (first, start), (at, to), from, next..count);
            self.raw.extend_from_slice(text.as_bytes());
            self.text.extend_from_slice(text.as_bytes());
            (at, next) = (to, count);
            while let Some(&inner) = old.sequences.get(next).filter(|inner| inner.at < place.end) {
                self.sequences.push(HiddenSequence { at: self.text.len(), start: self.raw.len(), ..inner });
                self.raw.extend_from_slice(&old.raw[inner.start - start..inner.start + inner.len - start]);
                self.text.extend_from_slice(&[SEPARATOR][..usize::from(inner.is_separator)]);
                from += inner.len + inner.at - at;
                at = inner.at + usize::from(inner.is_separator);
                next += 1;
            }
            from += place.end - at;
            at = place.end;
        }
        from = self.take(&old, (first, start), (at, first + old.text.len()), from, next..old.sequences.len());
        let tail = &old.raw[from - start..];
        self.read = self.raw.len();
        self.raw.extend_from_slice(tail);
    }

    /// Appends a part of the old text, whose own beginning has these places, with these sequences. Returns where its raw
    /// text ends.
    fn take(
        &mut self,
        old: &Self,
        (first, start): (usize, usize),
        (at, to): (usize, usize),
        from: usize,
        sequences: Range<usize>,
    ) -> usize {
        let (text, raw) = (self.text.len(), self.raw.len());
        let inner = &old.sequences[sequences];
        let hidden: usize = inner.iter().map(|inner| inner.len - usize::from(inner.is_separator)).sum();
        let end = from + (to - at) + hidden;
        self.text.extend_from_slice(&old.text[at - first..to - first]);
        self.raw.extend_from_slice(&old.raw[from - start..end - start]);
        let moved = |inner: &HiddenSequence| HiddenSequence {
            at: inner.at - at + text,
            start: inner.start - from + raw,
            ..*inner
        };
        self.sequences.extend(inner.iter().map(moved));
        end
    }

    /// Appends the raw text up to this place of the text, with these edits in it. What follows the sequences in an edited
    /// place are these.
    pub(super) fn pass(&mut self, edits: &[Edit], to: usize, out: &mut Vec<u8>) {
        if to < self.passed {
            return;
        }
        let mut from = 0;
        for Edit { place, text } in edits.iter().filter(|edit| edit.place.start.max(edit.place.end) >= self.passed) {
            if place.end == self.passed && !place.is_empty() {
                continue;
            }
            let start = self.behind(place.start.max(self.passed)).max(from);
            out.extend_from_slice(&self.raw[from..start]);
            out.extend_from_slice(text.as_bytes());
            let inner = &self.sequences[self.sequences.partition_point(|sequence| sequence.start < start)..];
            for sequence in inner.iter().take_while(|sequence| sequence.at < place.end) {
                out.extend_from_slice(&self.raw[sequence.start..sequence.start + sequence.len]);
            }
            from = self.before(place.end).max(start);
        }
        let (count, end) = (self.count_before(to), self.behind(to).max(from));
        out.extend_from_slice(&self.raw[from..end]);
        self.raw.drain(..end);
        self.sequences.drain(..count);
        self.sequences.iter_mut().for_each(|sequence| sequence.start -= end);
        (self.read, self.passed) = (self.read - end, to);
    }

    /// Forgets the first bytes of the text, which have passed.
    pub(super) fn forget(&mut self, len: usize) {
        self.text.drain(..len);
        self.sequences.iter_mut().for_each(|sequence| sequence.at -= len);
        self.passed -= len;
    }
}

/// A sequence at the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
enum EscapeSequence {
    /// It has this length.
    Whole { len: usize, is_separator: bool },
    /// Its end has not come.
    Open,
    /// It is none, or too long: its first bytes are text.
    Text(usize),
}

impl EscapeSequence {
    /// The sequence at the beginning of this text, whose first byte is an escape.
    fn of(text: &[u8]) -> Self {
        let most = text.len().min(SEQUENCE_BYTES_MAX);
        let unfinished = if text.len() < SEQUENCE_BYTES_MAX { Self::Open } else { Self::Text(2) };
        match text.get(1) {
            None => Self::Open,
            Some(b'[') => {
                let len = text[2..most.max(2)].iter().take_while(|byte| matches!(byte, b' '..=b'?')).count();
                match text.get(2 + len) {
                    Some(end @ b'@'..=b'~') => Self::Whole { len: len + 3, is_separator: moves_cursor(*end) },
                    Some(_) => Self::Text(2),
                    None => unfinished,
                }
            }
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                for at in 2..most {
                    match text[at] {
                        0x07 => return Self::Whole { len: at + 1, is_separator: false },
                        0x18 | 0x1A | b'\n' => return Self::Text(2),
                        ESC if text.get(at + 1) == Some(&b'\\') => {
                            return Self::Whole { len: at + 2, is_separator: false };
                        }
                        ESC if at + 1 < text.len() => return Self::Text(2),
                        _ => {}
                    }
                }
                unfinished
            }
            Some(b' '..=b'/') => {
                let len = text[2..most].iter().take_while(|byte| matches!(byte, b' '..=b'/')).count();
                match text.get(2 + len) {
                    Some(b'0'..=b'~') => Self::Whole { len: len + 3, is_separator: false },
                    Some(_) => Self::Text(2),
                    None => unfinished,
                }
            }
            Some(b'7' | b'=' | b'>' | b'\\') => Self::Whole { len: 2, is_separator: false },
            Some(b'0'..=b'~') => Self::Whole { len: 2, is_separator: true },
            Some(_) => Self::Text(1),
        }
    }
}

/// Returns true if a control sequence with this end moves the cursor, or the text on the screen.
fn moves_cursor(end: u8) -> bool {
    !matches!(end, b'm' | b'K' | b'J' | b'X' | b'h' | b'l' | b'q' | b'n' | b'c' | b't' | b'p')
}

/// Returns true if a sequence that begins so carries a text.
fn is_carrier(sequence: &[u8]) -> bool {
    matches!(sequence.get(1), Some(b']' | b'P' | b'X' | b'^' | b'_'))
}

/// The length of the sequence for a colour, or for the rest of the line, that this text begins with.
fn colour_len(text: &[u8]) -> Option<usize> {
    const MOST: usize = 24;
    if text.get(1) != Some(&b'[') {
        return None;
    }
    let len = text.iter().take(MOST).skip(2).take_while(|byte| matches!(byte, b'0'..=b';')).count();
    matches!(text.get(len + 2), Some(b'm' | b'K')).then_some(len + 3)
}

/// The bytes of a word of the processor.
const WORD: usize = size_of::<u64>();

/// Copies the bytes before the first escape; after them, some that mean nothing. Returns how many are before it.
fn copy_to_escape(from: &[u8], to: &mut [u8]) -> usize {
    /// Behind so many bytes a search that takes a while to begin is faster.
    const NEAR: usize = 4 * WORD;
    const ONES: u64 = u64::MAX / 0xFF;
    for ((at, word), to) in
        (0..).step_by(WORD).zip(from.as_chunks::<WORD>().0).zip(to.as_chunks_mut::<WORD>().0).take(NEAR / WORD)
    {
        *to = *word;
        let differs = u64::from_le_bytes(*word) ^ (ONES * u64::from(ESC));
        // The lowest byte that is zero here has the lowest of these bits.
        let equal = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        if equal != 0 {
            return at + equal.trailing_zeros() as usize / 8;
        }
    }
    let near = from.len().min(NEAR) / WORD * WORD;
    let far = &from[near..];
    let len = memchr::memchr(ESC, far).unwrap_or(far.len());
    to[near..near + len].copy_from_slice(&far[..len]);
    near + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_told_from_what_follows_it() {
        let whole = |len, is_separator| EscapeSequence::Whole { len, is_separator };
        for (text, expected) in [
            ("\x1b[31mred", whole(5, false)),
            ("\x1b[Kx", whole(3, false)),
            ("\x1b[?25lx", whole(6, false)),
            ("\x1b[3;4Hx", whole(6, true)),
            ("\x1b[3", EscapeSequence::Open),
            ("\x1b", EscapeSequence::Open),
            ("\x1b[3\nx", EscapeSequence::Text(2)),
            ("\x1b(Bx", whole(3, false)),
            ("\x1bMx", whole(2, true)),
            ("\x1b]8;;http://x\x1b\\y", whole(15, false)),
            ("\x1b]0;title\x07y", whole(10, false)),
            ("\x1b]0;title", EscapeSequence::Open),
            ("\x1b]0;title\ny", EscapeSequence::Text(2)),
            ("\x1b\x1b[m", EscapeSequence::Text(1)),
            ("\x1b\n", EscapeSequence::Text(1)),
        ] {
            assert_eq!(EscapeSequence::of(text.as_bytes()), expected, "{text:?}");
        }
        let long = [b"\x1b[".as_slice(), &[b'1'; SEQUENCE_BYTES_MAX]].concat();
        assert_eq!(EscapeSequence::of(&long), EscapeSequence::Text(2));
    }
}
