//! Masks secrets in text that is kept, each as `«redacted:NAME»`: the values of secret-named variables wherever they
//! stand, any value behind a secret's name, and tokens known by their shape.
//!
//! ```text
//! bytes ──▶ Values ──▶ Stream ──▶ text with masks
//!           the environment's     names at the place of use, shapes
//! ```
//!
//! This is best effort and says so: a program that encodes a secret, or prints it in two parts with something in between,
//! is not caught. Caught are a value without the white space around it, with its lines ended as a terminal ends them or as
//! JSON spells them, and with U+FFFD for what is not UTF-8.
//!
//! Invariants:
//! * the way the input was split never shows: a byte is passed only once no secret can begin with it;
//! * what is held back for that is bounded, see [`crate::limits::SECRET_PATTERN_BYTES_MAX`]; for names and shapes by 4 KiB;
//! * what a byte costs does not depend on how many values there are;
//! * text without a secret comes through as it is.

mod anchors;
mod assigned;
mod automaton;
mod keys;
mod names;
mod options;
mod plausible;
mod prefixed;
mod stream;
mod swallow;
mod text;
mod tokens;
mod urls;
mod value;
mod values;

pub use names::is_secret_name;

use stream::Stream;
use values::{Known, Values};

/// Shorter values are too likely to be ordinary words.
const VALUE_BYTES_MIN: usize = 8;

/// The masker of one stream; see the module's text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Nothing, if there are none to be found.
    values: Option<Values>,
    stream: Stream,
    /// Empty between calls; see [`Pieces`].
    small: Vec<u8>,
    count: u64,
}

/// On the way from one to the other, small pieces become one.
struct Pieces<'a> {
    stream: &'a mut Stream,
    small: &'a mut Vec<u8>,
    out: &'a mut Vec<u8>,
}

impl Pieces<'_> {
    fn push(&mut self, bytes: &[u8]) {
        const LARGE: usize = 4 << 10;
        if bytes.len() < LARGE {
            self.small.extend_from_slice(bytes);
            if self.small.len() < LARGE {
                return;
            }
            self.flush();
        } else {
            self.flush();
            self.stream.push(bytes, self.out);
        }
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.stream.push(self.small, self.out);
            self.small.clear();
        }
    }
}

impl Redactor {
    /// A masker for a run with this environment. Only variables count that [`is_secret`].
    pub fn new<N: AsRef<[u8]>, V: AsRef<[u8]>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in environment {
            if is_secret(name.as_ref(), value.as_ref()) {
                add(name.as_ref(), value.as_ref(), &mut secrets);
            }
        }
        Self { values: Known::new(secrets).map(Values::new), ..Self::default() }
    }

    /// Another masker of the same secrets, for another stream.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self { values: self.values.as_ref().map(Values::fresh), ..Self::default() }
    }

    /// Takes the next bytes and appends what is certain to hold no secret, and masks for those that did.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        match &mut self.values {
            None => self.stream.push(input, out),
            Some(values) => {
                let mut pieces = Pieces { stream: &mut self.stream, small: &mut self.small, out };
                self.count += values.push(input, &mut |bytes| pieces.push(bytes));
                pieces.flush();
            }
        }
    }

    /// The stream has ended: appends what was held back. The masker is as new afterwards, except for the count.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(values) = &mut self.values {
            let mut pieces = Pieces { stream: &mut self.stream, small: &mut self.small, out };
            self.count += values.finish(&mut |bytes| pieces.push(bytes));
            pieces.flush();
        }
        self.stream.finish(out);
    }

    /// Masks a text that is there as a whole, such as a command.
    pub fn redact(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        whole.finish(out);
        self.count += whole.count();
    }

    /// The same for a text whose end was cut off: what may be the beginning of a secret there is left out.
    pub fn redact_cut(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        self.count += whole.count();
    }

    /// Masks one argument of a command, which may be the value of the option `before` it.
    pub fn redact_argument(&mut self, before: &[&[u8]], argument: &[u8], out: &mut Vec<u8>) {
        match options::argument(before, argument) {
            Some((start, name)) => {
                self.redact(&argument[..start], out);
                mask(&name, out);
                self.count += 1;
            }
            None => self.redact(argument, out),
        }
    }

    /// Whether the last bytes were held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.values.as_ref().is_some_and(Values::is_holding) || self.stream.is_holding()
    }

    /// How many masks were written.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count + self.stream.count
    }
}

/// Whether a variable holds a secret that can be told from other words: by its name, and its value is long enough.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    value.len() >= VALUE_BYTES_MIN && is_secret_name(name) && !value.trim_ascii().is_empty()
}

/// Adds a secret in the forms in which it is found in text.
fn add(name: &[u8], value: &[u8], secrets: &mut Vec<(String, Vec<u8>)>) {
    let lines: Vec<&[u8]> = value.split(|&byte| byte == b'\n').collect();
    let forms = [
        value.to_vec(),
        value.trim_ascii().to_vec(),
        lines.join(&b"\r\n"[..]),
        lines.join(&b"\r\n"[..]).trim_ascii().to_vec(),
        lines.join(&b"\\n"[..]),
        String::from_utf8_lossy(value).into_owned().into_bytes(),
    ];
    secrets.extend(forms.into_iter().map(|form| (shown(name), form)));
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
