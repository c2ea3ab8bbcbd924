//! Takes escape sequences out of a text before it is searched, and puts them back afterwards: a secret is what a terminal
//! shows, whatever colours are in its middle.
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
//! Invariants: each sequence is put back once, between the same visible bytes unless those are masked; a sequence or the
//! sequences that wait for a verdict take no more than [`BYTES_MAX`] bytes and one piece of text.

use std::collections::VecDeque;

/// The most bytes of a sequence that is taken out, and of those that wait.
pub(super) const BYTES_MAX: usize = 4 << 10;
pub(super) const ESC: u8 = 0x1B;
/// What is searched in the place of a sequence that moves the cursor.
const SEPARATOR: u8 = ESC;

/// A sequence that was taken out.
#[derive(Debug, Clone, Copy)]
struct EscapePlace {
    /// How many searched bytes are before it.
    at: u64,
    len: usize,
    /// The searched byte there stands for it.
    is_separator: bool,
}

/// The sequences of one stream that wait for a verdict about the text around them.
#[derive(Debug, Clone, Default)]
pub(super) struct Escapes {
    /// A sequence whose end has not come.
    open: Vec<u8>,
    /// The sequences that wait, and how many of these bytes were put back.
    bytes: Vec<u8>,
    put_back: usize,
    /// Their places in the text that is searched for known values, and in the one that is searched for names and shapes.
    early: VecDeque<EscapePlace>,
    late: VecDeque<EscapePlace>,
    /// How many bytes the first search has got, and of how many its verdict is known.
    taken: u64,
    passed: u64,
    /// The same of the second search.
    fed: u64,
    given: u64,
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
        let most = text.len().min(BYTES_MAX);
        let unfinished = if text.len() < BYTES_MAX { Self::Open } else { Self::Text(2) };
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

/// Whether a control sequence with this end moves the cursor, or the text on the screen.
fn moves_cursor(end: u8) -> bool {
    !matches!(end, b'm' | b'K' | b'J' | b'X' | b'h' | b'l' | b'q' | b'n' | b'c' | b't' | b'p')
}

/// The beginning of a piece without its sequences, before it is known whether any of them has to wait.
pub(super) struct StrippedPiece<'a> {
    piece: &'a [u8],
    pub(super) text: Vec<u8>,
    /// How much of the piece was read: up to a sequence that is searched by itself, or whose end has not come.
    pub(super) len: usize,
    sequences: Vec<StrippedSequence>,
}

/// A sequence of such a piece.
struct StrippedSequence {
    /// How many bytes of the text are before it.
    at: usize,
    /// Where it begins in the piece.
    start: usize,
    len: usize,
    /// The byte of the text there stands for it.
    is_separator: bool,
}

impl<'a> StrippedPiece<'a> {
    pub(super) fn of(piece: &'a [u8]) -> Self {
        let mut text = vec![0; piece.len() + WORD];
        // Where each character has its colour, a sequence and its text take six bytes.
        let mut sequences = Vec::with_capacity(piece.len() / 6);
        let mut len = 0;
        let mut read = 0;
        loop {
            let plain = copy_to_escape(&piece[read..], &mut text[len..]);
            (len, read) = (len + plain, read + plain);
            let rest = &piece[read..];
            if rest.is_empty() {
                break;
            }
            match colour_len(rest) {
                Some(colour) => {
                    sequences.push(StrippedSequence { at: len, start: read, len: colour, is_separator: false });
                    read += colour;
                }
                None => match EscapeSequence::of(rest) {
                    EscapeSequence::Whole { len: whole, is_separator } if !is_carrier(rest) => {
                        sequences.push(StrippedSequence { at: len, start: read, len: whole, is_separator });
                        text[len] = SEPARATOR;
                        len += usize::from(is_separator);
                        read += whole;
                    }
                    EscapeSequence::Whole { .. } | EscapeSequence::Open => break,
                    EscapeSequence::Text(plain) => {
                        text[len..len + plain].copy_from_slice(&rest[..plain]);
                        (len, read) = (len + plain, read + plain);
                    }
                },
            }
        }
        text.truncate(len);
        Self { piece, text, len: read, sequences }
    }

    /// The part of the piece before the sequences at this place of the text, and these and all behind it.
    fn split(&self, at: usize) -> (&'a [u8], &[StrippedSequence]) {
        let before = self.sequences.partition_point(|sequence| sequence.at < at);
        let (before, behind) = self.sequences.split_at(before);
        let len =
            before.last().map_or(at, |last| last.start + last.len + (at - last.at - usize::from(last.is_separator)));
        (&self.piece[..len], behind)
    }
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

/// Whether a sequence that begins so carries a text.
fn is_carrier(sequence: &[u8]) -> bool {
    matches!(sequence.get(1), Some(b']' | b'P' | b'X' | b'^' | b'_'))
}

impl Escapes {
    /// Whether no sequence is open or waits.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.put_back == self.bytes.len() && self.early.is_empty() && self.late.is_empty()
    }

    /// How many bytes of the input it holds, those not counted that are searched in their places.
    pub(super) fn held_bytes(&self) -> usize {
        let separators = self.early.iter().chain(&self.late).filter(|place| place.is_separator).count();
        (self.open.len() + self.bytes.len() - self.put_back).saturating_sub(separators)
    }

    /// Whether so much waits that the text around it has to go on.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() - self.put_back > BYTES_MAX
    }

    /// Takes the sequences out of the next piece and returns the text between them, which the masker searches. `mask` masks
    /// the text that a sequence carries.
    pub(super) fn take_out(&mut self, piece: &[u8], mut mask: impl FnMut(&[u8], &mut Vec<u8>)) -> Vec<u8> {
        let joined;
        let piece = if self.open.is_empty() {
            piece
        } else {
            self.open.extend_from_slice(piece);
            joined = std::mem::take(&mut self.open);
            &joined
        };
        let mut text = Vec::with_capacity(piece.len());
        let mut rest = piece;
        while let Some(at) = memchr::memchr(ESC, rest) {
            text.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            match EscapeSequence::of(rest) {
                EscapeSequence::Whole { len, is_separator } => {
                    let before = self.bytes.len();
                    // Colours carry nothing.
                    if is_carrier(rest) {
                        mask(&rest[..len], &mut self.bytes);
                    } else {
                        self.bytes.extend_from_slice(&rest[..len]);
                    }
                    self.note(text.len(), self.bytes.len() - before, is_separator);
                    if is_separator {
                        text.push(SEPARATOR);
                    }
                    rest = &rest[len..];
                }
                EscapeSequence::Open => {
                    self.open.extend_from_slice(rest);
                    rest = &[];
                }
                EscapeSequence::Text(len) => {
                    // The escape itself separates what stands around it.
                    text.extend_from_slice(&rest[..len]);
                    rest = &rest[len..];
                }
            }
        }
        text.extend_from_slice(rest);
        text
    }

    /// All of a stripped piece was searched, and nothing masked. Returns what of the piece passes if its text passes up to
    /// this place. The sequences behind it wait.
    pub(super) fn wait_behind<'a>(&mut self, stripped: &StrippedPiece<'a>, at: usize) -> &'a [u8] {
        let (passed, waiting) = stripped.split(at);
        for sequence in waiting {
            self.bytes.extend_from_slice(&stripped.piece[sequence.start..sequence.start + sequence.len]);
            let behind = (stripped.text.len() - sequence.at) as u64;
            let place = EscapePlace { at: self.taken - behind, len: sequence.len, is_separator: sequence.is_separator };
            self.early.push_back(place);
        }
        self.pass(0);
        passed
    }

    fn note(&mut self, ahead: usize, len: usize, is_separator: bool) {
        self.early.push_back(EscapePlace { at: self.taken + ahead as u64, len, is_separator });
    }

    /// The sequence whose end has not come, which is not waited for.
    pub(super) fn give_up(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.open)
    }

    /// The first search gets this many bytes.
    pub(super) fn take(&mut self, len: usize) {
        self.taken += len as u64;
    }

    /// The second search gets this many bytes, and there is no first one.
    pub(super) fn take_late(&mut self, len: usize) {
        self.late.append(&mut self.early);
        self.taken += len as u64;
        (self.passed, self.fed) = (self.taken, self.taken);
    }

    /// The first search passes on this many bytes.
    pub(super) fn pass(&mut self, len: usize) {
        self.passed += len as u64;
        while let Some(place) = pop_if(&mut self.early, |place| place.at <= self.passed) {
            let at = self.fed + len as u64 - (self.passed - place.at);
            self.late.push_back(EscapePlace { at, ..place });
        }
        self.fed += len as u64;
    }

    /// The first search passes on `mask` bytes in the place of `len` ones.
    pub(super) fn pass_mask(&mut self, len: usize, mask: usize) {
        self.pass(0);
        (self.passed, self.fed) = (self.passed + len as u64, self.fed + mask as u64);
        while let Some(place) = pop_if(&mut self.early, |place| place.at <= self.passed) {
            let is_separator = place.is_separator && place.at == self.passed;
            self.late.push_back(EscapePlace { at: self.fed, is_separator, ..place });
        }
    }

    /// Appends the next sequence that waits.
    fn put_back(&mut self, place: EscapePlace, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[self.put_back..self.put_back + place.len]);
        self.put_back += place.len;
        if self.put_back == self.bytes.len() {
            self.bytes.clear();
            self.put_back = 0;
        }
    }
}

/// The first place, if it is one of these.
fn pop_if(places: &mut VecDeque<EscapePlace>, is_one: impl FnOnce(&EscapePlace) -> bool) -> Option<EscapePlace> {
    places.front().filter(|place| is_one(place))?;
    places.pop_front()
}

/// Where a search puts what it lets pass.
pub(super) struct SearchSink<'a> {
    pub(super) escapes: &'a mut Escapes,
    pub(super) out: &'a mut Vec<u8>,
}

impl SearchSink<'_> {
    /// Text passes, with the sequences in it.
    pub(super) fn text(&mut self, mut text: &[u8]) {
        let escapes = &mut *self.escapes;
        while let Some(place) = pop_if(&mut escapes.late, |place| place.at < escapes.given + text.len() as u64) {
            let len = usize::try_from(place.at.saturating_sub(escapes.given)).unwrap_or(0);
            self.out.extend_from_slice(&text[..len]);
            text = &text[len + usize::from(place.is_separator)..];
            escapes.given += (len + usize::from(place.is_separator)) as u64;
            escapes.put_back(place, self.out);
        }
        self.out.extend_from_slice(text);
        escapes.given += text.len() as u64;
        self.settle();
    }

    /// This many bytes of the text are left out. The sequences among them stay.
    pub(super) fn skip(&mut self, len: usize) {
        let escapes = &mut *self.escapes;
        escapes.given += len as u64;
        while let Some(place) = pop_if(&mut escapes.late, |place| place.at < escapes.given) {
            escapes.put_back(place, self.out);
        }
        self.settle();
    }

    /// Adds what was not in the text.
    pub(super) fn insert(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Puts back all sequences that wait, before the text around them.
    pub(super) fn put_back_all(&mut self) {
        let escapes = &mut *self.escapes;
        self.out.extend_from_slice(&escapes.bytes[escapes.put_back..]);
        escapes.bytes.clear();
        escapes.put_back = 0;
        for places in [&mut escapes.late, &mut escapes.early] {
            // What is searched in the place of one is still to be taken out.
            places.retain_mut(|place| {
                place.len = 0;
                place.is_separator
            });
        }
    }

    /// Puts back the sequences behind all that has passed.
    pub(super) fn settle(&mut self) {
        let escapes = &mut *self.escapes;
        let given = escapes.given;
        while let Some(place) = pop_if(&mut escapes.late, |place| place.at <= given && !place.is_separator) {
            escapes.put_back(place, self.out);
        }
    }
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
        let long = [b"\x1b]".as_slice(), &[b'x'; BYTES_MAX]].concat();
        assert_eq!(EscapeSequence::of(&long), EscapeSequence::Text(2));
    }
}
