//! Masks secrets in text that is kept: the values of secret-named variables, and tokens known by their shape.
//!
//! A secret becomes `«redacted:NAME»`. This is best effort and says so: a program that encodes or quotes a secret, or
//! prints it in two parts with something in between, an escape sequence for example, is not caught. Caught are a value
//! without the white space around it, with its lines ended as a terminal ends them, and with U+FFFD for what is not UTF-8.
//!
//! Invariants:
//! * the way the input was split never shows: a byte is passed only once no secret can begin with it;
//! * what is held back for that is bounded by the longest value (a variable is at most 128 KiB) or by 2 KiB;
//! * text without a secret comes through as it is.

mod names;
mod shapes;
mod starts;

use std::sync::Arc;

pub use names::is_secret_name;

use shapes::{Shape, Swallow};
use starts::Starts;

/// Shorter values are too likely to be ordinary words.
const VALUE_BYTES_MIN: usize = 8;

/// The masker of one stream; see the module's text.
#[derive(Debug, Clone)]
pub struct Redactor {
    known: Arc<Known>,
    held: Vec<u8>,
    /// The last two bytes before `held`.
    before: [u8; 2],
    swallow: Option<Swallow>,
    count: u64,
}

/// What is looked for; copies of a masker share it.
#[derive(Debug)]
struct Known {
    /// Longest first, so that the first match is the longest.
    values: Vec<Secret>,
    /// What a value or a shape can begin with.
    starts: Starts,
}

#[derive(Debug)]
struct Secret {
    name: String,
    value: Vec<u8>,
    /// The value's first bytes once more: most comparisons need no others.
    start: [u8; VALUE_BYTES_MIN],
}

/// What there is at the start of some bytes.
#[derive(Debug)]
enum Verdict {
    Nothing,
    /// It depends on bytes that are not there yet.
    Undecided,
    /// The value of a variable, by its place in the list.
    Value(usize),
    Shape(Shape),
}

impl Redactor {
    /// A masker for a run with this environment. Only variables count that [`is_secret`].
    pub fn new<N: AsRef<[u8]>, V: AsRef<[u8]>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values = Vec::new();
        for (name, value) in environment {
            if is_secret(name.as_ref(), value.as_ref()) {
                add(name.as_ref(), value.as_ref(), &mut values);
            }
        }
        values.sort_by(|a, b| b.value.len().cmp(&a.value.len()).then_with(|| a.value.cmp(&b.value)));
        values.dedup_by(|a, b| a.value == b.value);
        let starts = Starts::new(shapes::STARTS.iter().copied().chain(values.iter().map(|secret| &secret.start[..])));
        let known = Arc::new(Known { values, starts });
        Self { known, held: Vec::new(), before: [0; 2], swallow: None, count: 0 }
    }

    /// Another masker of the same secrets, for another stream.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self { known: Arc::clone(&self.known), held: Vec::new(), before: [0; 2], swallow: None, count: 0 }
    }

    /// Takes the next bytes and appends what is certain to hold no secret, and masks for those that did.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() {
            let taken = self.scan(input, false, out);
            self.held.extend_from_slice(&input[taken..]);
        } else {
            let mut held = std::mem::take(&mut self.held);
            held.extend_from_slice(input);
            let taken = self.scan(&held, false, out);
            held.drain(..taken);
            self.held = held;
        }
    }

    /// The stream has ended: appends what was held back. The masker is as new afterwards, except for the count.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.scan(&held, true, out);
        self.before = [0; 2];
        self.swallow = None;
    }

    /// Masks a text that is there as a whole, such as a command.
    pub fn redact(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.scan(text, true, out);
        self.count += whole.count;
    }

    /// The same for a text whose end was cut off: what may be the beginning of a secret there is left out.
    pub fn redact_cut(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.scan(text, false, out);
        self.count += whole.count;
    }

    /// Whether the last bytes were held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// How many masks were written.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Reads `text` as far as it can be decided, and returns how far that is: all of it, if it is the `last`.
    fn scan(&mut self, text: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        let (mut at, mut copied) = (0, 0);
        while at < text.len() {
            if let Some(swallow) = &mut self.swallow {
                let Some((len, goes_on)) = swallow.take(&text[at..], last) else { break };
                self.note(&text[at..at + len]);
                at += len;
                copied = at;
                if !goes_on {
                    self.swallow = None;
                    if self.before[1] == b'\n' {
                        // A key without an end: the line it stood in has one.
                        out.push(b'\n');
                    }
                }
                continue;
            }
            let Some(next) = self.known.starts.find(&text[at..]) else {
                self.note(&text[at..]);
                at = text.len();
                break;
            };
            self.note(&text[at..at + next]);
            at += next;
            match self.judge(&text[at..], last) {
                Verdict::Undecided => break,
                Verdict::Nothing => {
                    self.note(&text[at..=at]);
                    at += 1;
                }
                found => {
                    out.extend_from_slice(&text[copied..at]);
                    let len = self.replace(&found, &text[at..], out);
                    self.note(&text[at..at + len]);
                    at += len;
                    copied = at;
                }
            }
        }
        out.extend_from_slice(&text[copied..at]);
        at
    }

    fn judge(&self, text: &[u8], last: bool) -> Verdict {
        let first = text.first_chunk();
        for (at, Secret { value, start, .. }) in self.known.values.iter().enumerate() {
            if first.is_some_and(|first| first != start) {
                continue;
            }
            if text.starts_with(value) {
                return Verdict::Value(at);
            }
            if !last && value.starts_with(text) {
                return Verdict::Undecided;
            }
        }
        shapes::judge(text, self.before, last)
    }

    /// Writes the mask for what was found at the start of `text`, and returns how long that is.
    fn replace(&mut self, found: &Verdict, text: &[u8], out: &mut Vec<u8>) -> usize {
        self.count += 1;
        match found {
            Verdict::Value(at) => {
                let Secret { name, value, .. } = &self.known.values[*at];
                mask(name, out);
                value.len()
            }
            Verdict::Shape(Shape::Token { name, len, swallow }) => {
                mask(name, out);
                self.swallow = swallow.clone();
                *len
            }
            Verdict::Shape(Shape::Url { password_at, len }) => {
                // The user's part can be a secret too.
                let mut user = self.fresh();
                out.push(text[0]);
                user.scan(&text[1..*password_at], true, out);
                self.count += user.count;
                let password = &text[*password_at..*len];
                let known = self.known.values.iter().find(|secret| secret.value == password);
                mask(known.map_or("URL_PASSWORD", |secret| &secret.name), out);
                *len
            }
            Verdict::Nothing | Verdict::Undecided => 0,
        }
    }

    fn note(&mut self, passed: &[u8]) {
        match passed {
            [.., first, second] => self.before = [*first, *second],
            [only] => self.before = [self.before[1], *only],
            [] => {}
        }
    }
}

/// Whether a variable holds a secret that can be told from other words: by its name, and its value is long enough.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    value.len() >= VALUE_BYTES_MIN && is_secret_name(name) && !value.trim_ascii().is_empty()
}

/// Adds a secret in the forms in which it is found in text.
fn add(name: &[u8], value: &[u8], values: &mut Vec<Secret>) {
    let lines: Vec<&[u8]> = value.split(|&byte| byte == b'\n').collect();
    let forms = [
        value.to_vec(),
        value.trim_ascii().to_vec(),
        lines.join(&b"\r\n"[..]),
        lines.join(&b"\r\n"[..]).trim_ascii().to_vec(),
        String::from_utf8_lossy(value).into_owned().into_bytes(),
    ];
    for value in forms {
        if let Some(&start) = value.first_chunk() {
            values.push(Secret { name: shown(name), value, start });
        }
    }
}

/// What stands in the place of the value of this variable.
#[must_use]
pub fn masked(name: &[u8]) -> String {
    let mut out = Vec::new();
    mask(&shown(name), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes the mask of a secret of this name.
fn mask(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice("«redacted:".as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice("»".as_bytes());
}

/// A variable's name as it stands in the mask.
fn shown(name: &[u8]) -> String {
    let safe = |&byte: &u8| if byte.is_ascii_alphanumeric() || byte == b'_' { char::from(byte) } else { '_' };
    name.iter().take(64).map(safe).collect()
}
