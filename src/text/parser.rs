//! A streaming parser for terminal output: bytes in; text, controls and sequences out.
//!
//! It follows Williams' parser for DEC terminals (vt100.net/emu/dec_ansi_parser) and ECMA-48, but decodes UTF-8 first: the
//! bytes 0x80 to 0x9F are never C1 controls, and C1 code points are dropped.
//!
//! Invariants:
//! * text passed to a [`Sink`] is valid UTF-8 and holds no control but TAB and LF;
//! * a character that a control interrupts becomes U+FFFD at once, so deleting a sequence never joins two halves;
//! * a sequence keeps at most [`SEQUENCE_BYTES_MAX`] bytes; a string keeps none, only a count;
//! * an unterminated string costs at most its own line, or [`STRING_GRACE_BYTES`] where line feeds are data.

use super::{scan, utf8};

/// The most parameter and intermediate bytes of a sequence; the next byte is text.
const SEQUENCE_BYTES_MAX: usize = 256;
/// Bytes into a string with data (sixel, base64) within which a line feed is part of the data.
const STRING_GRACE_BYTES: u64 = 64 << 10;
/// The OSC numbers whose payload is wrapped base64: the clipboard and iTerm2's files.
const OSC_WITH_DATA: [u32; 2] = [52, 1337];
/// In text shorter than this between two other bytes, looking ahead over whole blocks does not pay.
const BINARY_RUN_BYTES: usize = 64;
const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1A;
const ESC: u8 = 0x1B;
const DEL: u8 = 0x7F;

pub(crate) trait Sink {
    /// True if this sink uses the contents of sequences; otherwise they are passed empty.
    const READS_SEQUENCES: bool;
    /// The most bytes of text per call. A sink that only copies is fastest with pieces that fit the processor's cache.
    const PIECE_BYTES: usize = usize::MAX;

    /// Takes some of `input`, which begins with a control, on its own: text and control sequences (`CSI …`) only.
    /// Returns the number of bytes.
    #[inline]
    fn shortcut(&mut self, _input: &[u8]) -> usize {
        0
    }
    /// Receives text, TAB and LF; never empty, only whole characters.
    fn text(&mut self, run: &[u8]);
    /// Receives a C0 control other than NUL, TAB, LF, ESC, CAN and SUB.
    fn control(&mut self, byte: u8);
    /// Receives an escape sequence that is neither CSI nor a string.
    fn escape(&mut self, intermediates: &[u8], last: u8);
    /// Receives a control sequence, with its parameter and intermediate bytes as they came.
    fn csi(&mut self, body: &[u8], last: u8);
    /// Receives the number of an operating system command that begins.
    fn osc(&mut self, _number: u32) {}
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
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

/// Returns true if a byte means nothing between characters and sequences.
fn is_ignored(byte: u8) -> bool {
    matches!(byte, 0 | CAN | SUB | DEL)
}

/// The bytes at the start that mean nothing.
fn ignored_len(input: &[u8]) -> usize {
    input.iter().position(|&byte| !is_ignored(byte)).unwrap_or(input.len())
}

#[derive(Debug, Clone)]
pub(crate) struct Parser {
    state: ParserState,
    /// The first bytes of a character that is not complete yet.
    partial: [u8; 4],
    partial_len: u8,
    /// Bytes of the current sequence, also if `sequence` is not filled.
    sequence_len: usize,
    sequence: Vec<u8>,
    string_len: u64,
}

impl Default for Parser {
    fn default() -> Self {
        Self {
            state: ParserState::Ground,
            partial: [0; 4],
            partial_len: 0,
            sequence_len: 0,
            sequence: Vec::new(),
            string_len: 0,
        }
    }
}

impl Parser {
    /// Returns true if the parser is between characters and sequences.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state == ParserState::Ground && self.partial_len == 0
    }

    pub(crate) fn push<S: Sink>(&mut self, input: &[u8], sink: &mut S) {
        let mut rest = input;
        while !rest.is_empty() {
            let taken = match self.state {
                ParserState::Ground => self.ground(rest, sink),
                ParserState::String(kind) => self.string(kind, rest, sink),
                ParserState::Escape | ParserState::EscapeIntermediate | ParserState::Csi => {
                    self.sequence_byte(rest[0], sink);
                    1
                }
            };
            rest = &rest[taken..];
        }
    }

    /// Ends the stream. An incomplete character becomes U+FFFD, an incomplete sequence is dropped.
    pub(crate) fn finish<S: Sink>(&mut self, sink: &mut S) {
        self.give_up_partial(sink);
        *self = Self::default();
    }

    /// Takes text up to the next control, and that control. Returns the number of bytes, at least one.
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
        // Binary data has long runs of them. Each byte would cost a search for text.
        let ignored = ignored_len(&input[run.len..]);
        if ignored > 0 {
            return run.len + ignored;
        }
        let taken = sink.shortcut(&input[run.len..]);
        if taken > 0 {
            return run.len + taken;
        }
        match input[run.len] {
            ESC => {
                if let Some(body) = whole_csi(&input[run.len + 1..]) {
                    sink.csi(&input[run.len + 2..][..body], input[run.len + 2 + body]);
                    return run.len + body + 3;
                }
                self.enter_escape();
            }
            byte => self.execute(byte, sink),
        }
        run.len + 1
    }

    /// Takes text with bytes above 0x7F. `open` says that the input ends here, so the next piece may complete a character.
    fn decode<S: Sink>(&mut self, run: &[u8], open: bool, sink: &mut S) {
        let (mut rest, mut is_binary) = (run, false);
        while !rest.is_empty() {
            let (clean, doubtful) = rest.split_at(if is_binary { 0 } else { utf8::clean_len(rest) });
            emit(clean, sink);
            rest = doubtful;
            match std::str::from_utf8(rest) {
                Ok(_) => return text_without_c1(rest, sink),
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    text_without_c1(good, sink);
                    // Where bytes that are no text are close to each other, a look ahead finds only the next one.
                    is_binary = good.len() < BINARY_RUN_BYTES;
                    match error.error_len() {
                        None if open => {
                            self.partial[..bad.len()].copy_from_slice(bad);
                            self.partial_len = u8::try_from(bad.len()).expect("less than a character");
                            return;
                        }
                        None => return Self::replace(sink),
                        Some(len) => {
                            Self::replace(sink);
                            rest = &bad[len..];
                        }
                    }
                }
            }
        }
    }

    /// Takes the byte after an incomplete character. Returns 1, or 0 if the byte is not part of the character.
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
            Self::replace(sink);
        }
    }

    fn replace<S: Sink>(sink: &mut S) {
        sink.text(REPLACEMENT);
    }

    /// Carries out a control, which may stand in the middle of a sequence.
    #[inline]
    fn execute<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        match byte {
            b'\t' | b'\n' => sink.text(&[byte]),
            byte if is_ignored(byte) => {}
            _ => sink.control(byte),
        }
    }

    fn enter_escape(&mut self) {
        self.state = ParserState::Escape;
        self.clear_sequence();
    }

    fn clear_sequence(&mut self) {
        self.sequence_len = 0;
        self.sequence.clear();
    }

    /// Takes one byte of an escape or control sequence.
    fn sequence_byte<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        match byte {
            CAN | SUB => self.state = ParserState::Ground,
            ESC => self.enter_escape(),
            0..=0x1F | DEL => self.execute(byte, sink),
            0x80.. => self.abandon(byte, sink),
            0x20..=0x2F if self.state != ParserState::Csi => {
                self.state = ParserState::EscapeIntermediate;
                self.collect(byte, sink);
            }
            0x20..=0x3F if self.state == ParserState::Csi => self.collect(byte, sink),
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

    /// Gives up the sequence; this byte is text.
    fn abandon<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        self.state = ParserState::Ground;
        self.ground(&[byte], sink);
    }

    fn end_sequence<S: Sink>(&mut self, byte: u8, sink: &mut S) {
        let was = self.state;
        self.state = ParserState::Ground;
        if was == ParserState::Csi {
            sink.csi(&self.sequence, byte);
        } else if was == ParserState::EscapeIntermediate {
            sink.escape(&self.sequence, byte);
        } else {
            match byte {
                b'[' => {
                    self.state = ParserState::Csi;
                    self.clear_sequence();
                    return;
                }
                b']' => self.state = ParserState::String(StringKind::Osc { number: 0, digits: true }),
                b'P' => self.state = ParserState::String(StringKind::Dcs),
                b'X' | b'^' | b'_' => self.state = ParserState::String(StringKind::Other),
                _ => sink.escape(&[], byte),
            }
            self.string_len = 0;
        }
    }

    /// Takes the inside of a string, up to its end. Returns the number of bytes, at least one.
    fn string<S: Sink>(&mut self, kind: StringKind, input: &[u8], sink: &mut S) -> usize {
        let mut kind = kind;
        if let StringKind::Osc { number, digits: true } = kind {
            let digit = input[0];
            let digits = digit.is_ascii_digit();
            let number = if digits { (number * 10 + u32::from(digit - b'0')).min(99_999) } else { number };
            kind = StringKind::Osc { number, digits };
            self.state = ParserState::String(kind);
            if digits {
                self.string_len += 1;
                return 1;
            }
            sink.osc(number);
        }
        let end = input.iter().position(|&b| matches!(b, BEL | b'\n' | CAN | SUB | ESC));
        let Some(at) = end else {
            self.string_len += input.len() as u64;
            return input.len();
        };
        self.string_len += at as u64;
        match input[at] {
            ESC => self.enter_escape(),
            CAN | SUB => self.state = ParserState::Ground,
            BEL if matches!(kind, StringKind::Osc { .. }) => self.state = ParserState::Ground,
            b'\n' if !kind.carries_data() || self.string_len >= STRING_GRACE_BYTES => {
                self.state = ParserState::Ground;
                sink.text(b"\n");
            }
            _ => self.string_len += 1,
        }
        at + 1
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

/// The length of the body of the complete control sequence in `input`, which starts after the ESC.
#[inline]
fn whole_csi(input: &[u8]) -> Option<usize> {
    let body = input.strip_prefix(b"[")?;
    let len = body.iter().take(SEQUENCE_BYTES_MAX + 1).position(|b| !matches!(b, 0x20..=0x3F))?;
    matches!(body[len], 0x40..=0x7E).then_some(len)
}

/// Emits valid UTF-8 without the code points U+0080 to U+009F.
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
