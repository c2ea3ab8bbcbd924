//! The end of what was written to a terminal, for one that comes later and has to show the same.
//!
//! It is no screen: a terminal that gets all that draws of these bytes shows what the first one shows, colours and all, and
//! can leave the alternate screen for what is behind it. Of what is gone from their front, the modes are known.
//!
//! Invariants: bounded by its owner; it begins at a line or a sequence, if there is one near; what a person typed as a
//! secret is not in it; what it shows asks a terminal nothing, because the answer would be typed for the program, which has
//! had one.

use memchr::{memchr_iter, memchr2, memmem};

use super::echo::TYPED;
use super::playable::PlayableFilter;
use super::redact::Redactor;
use super::whole::whole_len;

/// How far from a cut a line or a sequence is looked for.
const CUT_LOOK_BYTES: usize = 4 << 10;
/// A terminal that masks secrets shows nothing of the first bytes after a cut: a secret may have begun before it.
const SECRET_BYTES: usize = 16 << 10;

/// The private modes that matter to who draws. The alternate screen comes first: it has a cursor of its own.
const DRAWING_MODES: [u16; 8] = [1049, 1047, 47, 1, 5, 6, 7, 25];
/// Those by which a terminal sends what a program reads: the mouse, the focus, pasted text.
const REPORTING_MODES: [u16; 8] = [1000, 1002, 1003, 1004, 1005, 1006, 1015, 2004];
/// Those that are set in a terminal that is new.
const SET_AT_FIRST: [u16; 2] = [7, 25];
const ALTERNATE_SCREENS: [u16; 3] = [1049, 1047, 47];
/// Makes a terminal a new one.
const FULL_RESET: &[u8] = b"\x1bc";

#[derive(Debug, Default)]
pub struct TerminalTail {
    bytes: Vec<u8>,
    /// How many bytes are gone from the front.
    gone: u64,
    /// The modes at the front.
    modes: Modes,
    /// It ends with a secret that a person typed.
    is_in_secret: bool,
}

/// What a terminal that comes later is shown first.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ShownSoFar {
    pub bytes: Vec<u8>,
    /// How many bytes before them are not there.
    pub gone: u64,
}

impl TerminalTail {
    /// Adds output. Of more than `most` bytes, the last ones stay.
    pub fn push(&mut self, output: &[u8], most: usize) {
        if output.is_empty() {
            return;
        }
        self.is_in_secret = false;
        self.add(output, most);
    }

    /// Adds output that shows a secret which a person types: one word stands in its place.
    pub fn push_secret(&mut self, most: usize) {
        if !std::mem::replace(&mut self.is_in_secret, true) {
            self.add(TYPED.as_bytes(), most);
        }
    }

    fn add(&mut self, output: &[u8], most: usize) {
        if self.bytes.len() + output.len() <= most {
            return self.bytes.extend_from_slice(output);
        }
        // A part of the room stays free, so that not all bytes move each time.
        let room = most / 4 * 3;
        self.drop_front(self.bytes.len().saturating_sub(room.saturating_sub(output.len())));
        self.bytes.extend_from_slice(output);
        self.drop_front(self.bytes.len().saturating_sub(room));
    }

    /// Drops bytes from the front, until this many are left or fewer, and takes no more memory than that.
    pub fn shed(&mut self, most: usize) {
        self.drop_front(self.bytes.len().saturating_sub(most));
        self.bytes.shrink_to(most);
    }

    fn drop_front(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let cut = place_to_cut(&self.bytes, count);
        self.modes.follow(&self.bytes[..cut]);
        self.bytes.drain(..cut);
        self.gone += u64::try_from(cut).expect("a length fits 64 bits");
    }

    /// The memory that it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.bytes.capacity()
    }

    /// What a terminal that is new has to get, without the secrets that the redactor finds. That goes on with what follows.
    #[must_use]
    pub fn shown(&self, redactor: Option<&mut Redactor>) -> ShownSoFar {
        let reset = memmem::rfind(&self.bytes, FULL_RESET).map_or(0, |at| at + FULL_RESET.len());
        let Some(redactor) = redactor else { return self.behind(reset, 0, self.bytes[reset..].to_vec()) };
        let hidden = if self.gone > 0 { place_to_cut(&self.bytes, SECRET_BYTES) } else { 0 };
        let (from, mut masked) = (hidden.max(reset), Vec::new());
        redactor.push(&self.bytes[..from], &mut masked);
        masked.clear();
        redactor.push(&self.bytes[from..], &mut masked);
        self.behind(from, hidden, masked)
    }

    /// The same of what was written since the program took the alternate screen, with all secrets.
    #[must_use]
    pub fn alternate(&self) -> ShownSoFar {
        let takes = |modes: &[u8]| numbers(modes).any(|mode| ALTERNATE_SCREENS.contains(&mode));
        let last = Modes::all(&self.bytes).filter(|(_, modes, is_set)| *is_set && takes(modes)).last();
        let from = last.map_or(0, |(at, ..)| at);
        self.behind(from, 0, self.bytes[from..].to_vec())
    }

    /// What draws of these bytes, which stand here behind `from`. `hidden` of those before them are not shown.
    fn behind(&self, from: usize, hidden: usize, output: Vec<u8>) -> ShownSoFar {
        let (mut modes, mut bytes) = (self.modes.clone(), Vec::new());
        modes.follow(&self.bytes[..from]);
        modes.set(&DRAWING_MODES, &mut bytes);
        let (whole, rest) = output.split_at(whole_len(&output));
        PlayableFilter::default().push(whole, &mut bytes);
        modes.follow(&self.bytes[from..]);
        modes.set(&REPORTING_MODES, &mut bytes);
        // What follows goes on with this.
        bytes.extend_from_slice(rest);
        ShownSoFar { bytes, gone: self.gone + u64::try_from(hidden).expect("a length fits 64 bits") }
    }
}

/// The first place from here on where a line or a sequence begins, if there is one near.
fn place_to_cut(bytes: &[u8], from: usize) -> usize {
    let from = from.min(bytes.len());
    let near = &bytes[from..bytes.len().min(from + CUT_LOOK_BYTES)];
    let found = memchr2(b'\n', b'\x1b', near).map(|at| if near[at] == b'\n' { at + 1 } else { at });
    from + found.unwrap_or(0)
}

fn numbers(modes: &[u8]) -> impl Iterator<Item = u16> {
    modes.split(|byte| *byte == b';').filter_map(|digits| std::str::from_utf8(digits).ok()?.parse().ok())
}

/// The modes of a terminal that are not as in a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Modes(Vec<u16>);

impl Modes {
    /// Every place in the output where private modes are set (`true`) or reset, with their numbers.
    fn all(output: &[u8]) -> impl Iterator<Item = (usize, &[u8], bool)> {
        memchr_iter(b'\x1b', output).filter_map(|at| {
            let numbers = output[at + 1..].strip_prefix(b"[?")?;
            let end = numbers.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
            match numbers[end] {
                b'h' => Some((at, &numbers[..end], true)),
                b'l' => Some((at, &numbers[..end], false)),
                _ => None,
            }
        })
    }

    fn follow(&mut self, output: &[u8]) {
        let reset = memmem::rfind(output, FULL_RESET);
        if reset.is_some() {
            self.0.clear();
        }
        let is_known = |mode: &u16| DRAWING_MODES.contains(mode) || REPORTING_MODES.contains(mode);
        for (_, modes, is_set) in Self::all(&output[reset.unwrap_or(0)..]) {
            for mode in numbers(modes).filter(is_known) {
                self.0.retain(|changed| *changed != mode);
                if is_set != SET_AT_FIRST.contains(&mode) {
                    self.0.push(mode);
                }
            }
        }
    }

    /// Appends what gives a new terminal those of these modes.
    fn set(&self, wanted: &[u16], out: &mut Vec<u8>) {
        for mode in wanted.iter().filter(|mode| self.0.contains(mode)) {
            let last = if SET_AT_FIRST.contains(mode) { 'l' } else { 'h' };
            out.extend_from_slice(format!("\x1b[?{mode}{last}").as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 40_000;

    #[test]
    fn what_fits_is_shown_as_it_was_drawn_and_asks_nothing() {
        let mut tail = TerminalTail::default();
        tail.push(b"a\r\n\x1b[?1006h\x1b[c\x1b[?1049h\x1b[2J\x1b[1;1Hhere", MOST);
        tail.push(b"\x1b[31m!\x1b[4", MOST);
        let drawn = |before: &str| format!("{before}\x1b[?1049h\x1b[2J\x1b[1;1Hhere\x1b[31m!\x1b[?1006h\x1b[4");
        let shown = tail.shown(None);
        assert_eq!((String::from_utf8_lossy(&shown.bytes).into_owned(), shown.gone), (drawn("a\r\n"), 0));
        assert_eq!(String::from_utf8_lossy(&tail.alternate().bytes), drawn(""));
        tail.push(b"m\x1bcnew", MOST);
        assert_eq!(tail.shown(None).bytes, b"new", "a reset leaves nothing");
    }

    #[test]
    fn the_modes_of_what_is_gone_are_set_and_its_bytes_are_counted() {
        let (mut tail, mut written) = (TerminalTail::default(), 0_u64);
        let push = |tail: &mut TerminalTail, output: &[u8]| {
            tail.push(output, MOST);
            output.len() as u64
        };
        written += push(&mut tail, b"\x1b[?25l\x1b[?1049;1006h\x1b[?2004h\x1b[?2004l");
        for row in 0..9_000 {
            written += push(&mut tail, format!("\x1b[{};1Hrow {row}", row % 24 + 1).as_bytes());
            assert!(tail.bytes.len() <= MOST && tail.weight() <= 2 * MOST);
        }
        let shown = tail.shown(None);
        let (front, end) = (b"\x1b[?1049h\x1b[?25l", b"\x1b[?1006h");
        let drawn = shown.bytes.strip_prefix(front).and_then(|rest| rest.strip_suffix(end)).expect("the modes");
        assert!(drawn.starts_with(b"\x1b["));
        assert_eq!(shown.gone + drawn.len() as u64, written);
        assert_eq!(tail.alternate(), shown, "its switch is gone, too");
        tail.shed(MOST / 4);
        assert!(tail.weight() <= MOST / 4 && !tail.shown(None).bytes.is_empty());
        written += push(&mut tail, b"\x1bc");
        written += push(&mut tail, &[b'x'; 3 * MOST]);
        let shown = tail.shown(None);
        assert_eq!(shown.gone + shown.bytes.len() as u64, written, "a reset leaves no mode");
        assert!(shown.bytes.iter().all(|&byte| byte == b'x'));
    }

    #[test]
    fn a_typed_secret_is_one_word_however_it_is_cut() {
        let mut tail = TerminalTail::default();
        tail.push(b"word: ", MOST);
        tail.push_secret(MOST);
        tail.push(b"", MOST);
        tail.push_secret(MOST);
        tail.push(b"\r\n", MOST);
        assert_eq!(tail.shown(None).bytes, format!("word: {TYPED}\r\n").as_bytes());
    }

    #[test]
    fn a_secret_that_the_cut_has_parted_is_not_shown() {
        let mut tail = TerminalTail::default();
        let key: String = (0..150).map(|at| format!("{at:03}{}\n", "MIIEvQIBADANBgkqhkiG9w0BAQ".repeat(2))).collect();
        tail.push(format!("-----BEGIN PRIVATE KEY-----\n{key}").as_bytes(), MOST);
        tail.push(b"-----END PRIVATE KEY-----\n", MOST);
        // The cut is in the key.
        for _ in 0..(MOST - 2_000) / 20 {
            tail.push(b"a line of output ...\n", MOST);
        }
        assert!(tail.gone > 0);
        let mut redactor = Redactor::default();
        let shown = tail.shown(Some(&mut redactor));
        assert!(!String::from_utf8_lossy(&shown.bytes).contains("MIIEv"));
        assert!(shown.bytes.starts_with(b"a line"));
    }
}
