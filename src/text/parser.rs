//! The grammar of terminal output, as a streaming machine: bytes in; text, controls and sequences out.
//!
//! It follows Williams' parser for DEC terminals (vt100.net/emu/dec_ansi_parser) and ECMA-48, changed where the stream
//! is UTF-8: characters are decoded first, so the bytes 0x80 to 0x9F are never C1 controls, and C1 code points vanish.
//!
//! Invariants:
//! * text given to a [`Sink`] is valid UTF-8 and holds no control but TAB and LF;
//! * a character that any control interrupts is U+FFFD at once, so deleting a sequence never joins two halves;
//! * a sequence keeps at most [`SEQUENCE_BYTES_MAX`] bytes; a string keeps none, only a count;
//! * an unterminated string costs at most its own line, or [`STRING_GRACE_BYTES`] where line feeds are data.

use super::{scan, utf8};

/// Parameter and intermediate bytes of one sequence; the next one is text.
const SEQUENCE_BYTES_MAX: usize = 256;
/// How far into a string that carries data (sixel, base64) a line feed is part of the data.
const STRING_GRACE_BYTES: u64 = 64 << 10;
/// The OSC numbers whose payload is wrapped base64: the clipboard and iTerm2's files.
const OSC_WITH_DATA: [u32; 2] = [52, 1337];
const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1A;
const ESC: u8 = 0x1B;
const DEL: u8 = 0x7F;

/// Receives what the parser found, in order.
pub(crate) trait Sink {
    /// Whether the contents of sequences matter to this sink; if not they are passed empty.
    const READS_SEQUENCES: bool;
    /// The most text that it takes at once, bytes. What is only copied is best had in pieces that a processor still has at
    /// hand after they were looked at.
    const PIECE_BYTES: usize = usize::MAX;

    /// A chance to take a prefix of ordinary text and plain control sequences (`CSI …` only) on its own, from a
    /// control on. Returns how much it took, and how many sequences.
    #[inline]
    fn shortcut(&mut self, _input: &[u8]) -> (usize, u64) {
        (0, 0)
    }
    /// Text, TAB and LF; never empty, only whole characters.
    fn text(&mut self, run: &[u8]);
    /// A C0 control other than TAB, LF, ESC, CAN and SUB.
    fn control(&mut self, byte: u8);
    /// An escape sequence that is neither CSI nor a string.
    fn escape(&mut self, intermediates: &[u8], last: u8);
    /// A control sequence, with its parameter and intermediate bytes as they came.
    fn csi(&mut self, body: &[u8], last: u8);
    /// An operating system command has begun, and this is its number.
    fn osc(&mut self, _number: u32) {}
}

/// What was dropped on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Escape sequences of any kind.
    pub sequences: u64,
    /// Bytes inside of strings: titles, links, clipboard contents, images.
    pub string_bytes: u64,
    /// Replacement characters written for bytes that are not UTF-8.
    pub invalid_utf8: u64,
    /// NUL bytes.
    pub nul_bytes: u64,
    /// Text written to the alternate screen, which leaves no trace. Counted in `Collapse` only.
    pub alt_screen_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    String(StringKind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringKind {
    /// The number before the first `;`, and whether its digits are still coming.
    Osc {
        number: u32,
        digits: bool,
    },
    Dcs,
    Other,
}

/// The machine's memory between two pushes.
#[derive(Debug)]
pub(crate) struct Parser {
    state: State,
    /// The bytes of a character that is not complete yet.
    partial: [u8; 4],
    partial_len: u8,
    /// Bytes of the current sequence, also where `sequence` is not filled.
    sequence_len: usize,
    sequence: Vec<u8>,
    string_len: u64,
    stats: Stats,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            state: State::Ground,
            partial: [0; 4],
            partial_len: 0,
            sequence_len: 0,
            sequence: Vec::new(),
            string_len: 0,
            stats: Stats::default(),
        }
    }
}

impl Parser {
    pub(crate) fn stats(&self) -> Stats {
        self.stats
    }

    /// Whether nothing is half read.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state == State::Ground && self.partial_len == 0
    }

    pub(crate) fn push<S: Sink>(&mut self, input: &[u8], sink: &mut S) {
        let mut rest = input;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Ground => self.ground(rest, sink),
                State::String(kind) => self.string(kind, rest, sink),
                State::Escape | State::EscapeIntermediate | State::Csi => {
                    self.sequence_byte(rest[0], sink);
                    1
                }
            };
            rest = &rest[taken..];
        }
    }

    /// The stream ends: half a character is U+FFFD, half a sequence is nothing.
    pub(crate) fn finish<S: Sink>(&mut self, sink: &mut S) {
        self.give_up_partial(sink);
        *self = Self { stats: self.stats, ..Self::default() };
    }

    /// Text up to the next control, and that control. Returns how many bytes it took, at least one.
    #[inline]
    fn ground<S: Sink>(&mut self, input: &[u8], sink: &mut S) -> usize {
        if self.partial_len > 0 {
            return self.continue_partial(input[0], sink);
        }
        let piece = &input[..input.len().min(S::PIECE_BYTES)];
        let run = scan::clean_run(piece);
        let at_end = run.len == piece.len();
        if run.ascii {
            emit(&input[..run.len], sink);
        } else {
            self.decode(&input[..run.len], at_end, sink);
        }
        if at_end {
            return run.len;
        }
        let (taken, sequences) = sink.shortcut(&input[run.len..]);
        if taken > 0 {
            self.stats.sequences += sequences;
            return run.len + taken;
        }
        match input[run.len] {
            ESC => {
                if let Some(body) = whole_csi(&input[run.len + 1..]) {
                    self.stats.sequences += 1;
                    sink.csi(&input[run.len + 2..][..body], input[run.len + 2 + body]);
                    return run.len + body + 3;
                }
                self.enter_escape();
            }
            byte => self.execute(byte, sink),
        }
        run.len + 1
    }

    /// Text with bytes above 0x7F. `open` says that the input ends here, and half a character may go on in the next.
    fn decode<S: Sink>(&mut self, run: &[u8], open: bool, sink: &mut S) {
        let mut rest = run;
        while !rest.is_empty() {
            let (clean, doubtful) = rest.split_at(utf8::clean_len(rest));
            emit(clean, sink);
            rest = doubtful;
            match std::str::from_utf8(rest) {
                Ok(_) => return text_without_c1(rest, sink),
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text_without_c1(good, sink);
                    match error.error_len() {
                        None if open => {
                            self.partial[..bad.len()].copy_from_slice(bad);
                            self.partial_len = bad.len() as u8;
                            return;
                        }
                        None => return self.replace(sink),
                        Some(len) => {
                            self.replace(sink);
                            rest = &bad[len..];
                        }
                    }
                }
            }
        }
    }

    /// The byte after an incomplete character. Returns 1, or 0 when the byte is not part of it and has to be read anew.
    fn continue_partial<S: Sink>(&mut self, byte: u8, sink: &mut S) -> usize {
        let len = usize::from(self.partial_len);
        self.partial[len] = byte;
        let bytes = self.partial;
        match std::str::from_utf8(&bytes[..=len]) {
            Ok(_) => {
                self.partial_len = 0;
                text_without_c1(&bytes[..=len], sink);
                1
            }
            Err(error) if error.error_len().is_none() => {
                self.partial_len += 1;
                1
            }
            Err(_) => {
                self.give_up_partial(sink);
                0
            }
        }
    }

    fn give_up_partial<S: Sink>(&mut self, sink: &mut S) {
        if self.partial_len > 0 {
            self.partial_len = 0;
            self.replace(sink);
        }
    }

    fn replace<S: Sink>(&mut self, sink: &mut S) {
        self.stats.invalid_utf8 += 1;
        sink.text(REPLACEMENT);
    }

    /// A control that is carried out wherever it stands, also in the middle of a sequence.
    #[inline]
    fn execute<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        match byte {
            b'\t' | b'\n' => sink.text(&[byte]),
            CAN | SUB | DEL => {}
            0 => self.stats.nul_bytes += 1,
            _ => sink.control(byte),
        }
    }

    fn enter_escape(&mut self) {
        self.state = State::Escape;
        self.clear_sequence();
    }

    fn clear_sequence(&mut self) {
        self.sequence_len = 0;
        self.sequence.clear();
    }

    /// One byte of an escape or control sequence.
    fn sequence_byte<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        match byte {
            CAN | SUB => self.state = State::Ground,
            ESC => self.enter_escape(),
            0..=0x1F | DEL => self.execute(byte, sink),
            0x80.. => self.abandon(byte, sink),
            0x20..=0x2F if self.state != State::Csi => {
                self.state = State::EscapeIntermediate;
                self.collect(byte, sink);
            }
            0x20..=0x3F if self.state == State::Csi => self.collect(byte, sink),
            _ => self.end_sequence(byte, sink),
        }
    }

    fn collect<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        if self.sequence_len >= SEQUENCE_BYTES_MAX {
            return self.abandon(byte, sink);
        }
        self.sequence_len += 1;
        if S::READS_SEQUENCES {
            self.sequence.push(byte);
        }
    }

    /// The sequence is given up and this byte is text.
    fn abandon<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        self.state = State::Ground;
        self.ground(&[byte], sink);
    }

    fn end_sequence<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        let was = self.state;
        self.state = State::Ground;
        if was == State::Csi {
            sink.csi(&self.sequence, byte);
        } else if was == State::EscapeIntermediate {
            sink.escape(&self.sequence, byte);
        } else {
            match byte {
                b'[' => {
                    self.state = State::Csi;
                    self.clear_sequence();
                    return;
                }
                b']' => self.state = State::String(StringKind::Osc { number: 0, digits: true }),
                b'P' => self.state = State::String(StringKind::Dcs),
                b'X' | b'^' | b'_' => self.state = State::String(StringKind::Other),
                _ => sink.escape(&[], byte),
            }
            self.string_len = 0;
        }
        self.stats.sequences += 1;
    }

    /// The inside of a string up to its end. Returns how many bytes it took, at least one.
    fn string<S: Sink>(&mut self, kind: StringKind, input: &[u8], sink: &mut S) -> usize {
        let mut kind = kind;
        if let StringKind::Osc { number, digits: true } = kind {
            let digit = input[0];
            let digits = digit.is_ascii_digit();
            let number = if digits { (number * 10 + u32::from(digit - b'0')).min(99_999) } else { number };
            kind = StringKind::Osc { number, digits };
            self.state = State::String(kind);
            if digits {
                self.swallow(1);
                return 1;
            }
            sink.osc(number);
        }
        let end = input.iter().position(|&b| matches!(b, BEL | b'\n' | CAN | SUB | ESC));
        let Some(at) = end else {
            self.swallow(input.len());
            return input.len();
        };
        self.swallow(at);
        match input[at] {
            ESC => self.enter_escape(),
            CAN | SUB => self.state = State::Ground,
            BEL if matches!(kind, StringKind::Osc { .. }) => self.state = State::Ground,
            b'\n' if !kind.carries_data() || self.string_len >= STRING_GRACE_BYTES => {
                self.state = State::Ground;
                sink.text(b"\n");
            }
            _ => self.swallow(1),
        }
        at + 1
    }

    fn swallow(&mut self, bytes: usize) {
        self.string_len += bytes as u64;
        self.stats.string_bytes += bytes as u64;
    }
}

impl StringKind {
    fn carries_data(self) -> bool {
        match self {
            Self::Osc { number, .. } => OSC_WITH_DATA.contains(&number),
            Self::Dcs => true,
            Self::Other => false,
        }
    }
}

/// The length of the body of a control sequence that is whole and plain in `input`, which starts after its ESC.
#[inline]
fn whole_csi(input: &[u8]) -> Option<usize> {
    let body = input.strip_prefix(b"[")?;
    let len = body.iter().take(SEQUENCE_BYTES_MAX + 1).position(|b| !matches!(b, 0x20..=0x3F))?;
    matches!(body[len], 0x40..=0x7E).then_some(len)
}

/// Valid UTF-8 without the code points U+0080 to U+009F, which are dropped and introduce nothing.
fn text_without_c1<S: Sink>(run: &[u8], sink: &mut S) {
    let mut start = 0;
    for at in memchr::memchr_iter(0xC2, run) {
        if (0x80..=0x9F).contains(&run[at + 1]) {
            emit(&run[start..at], sink);
            start = at + 2;
        }
    }
    emit(&run[start..], sink);
}

#[inline]
fn emit<S: Sink>(run: &[u8], sink: &mut S) {
    if !run.is_empty() {
        sink.text(run);
    }
}
