//! Masks secrets in text that is kept, each as `«redacted:NAME»`: the values of secret-named variables wherever they
//! are, any value after a secret's name, and tokens of a known shape.
//!
//! ```text
//! bytes ──▶ ValueMasker ──▶ PatternMasker ──▶ text with masks
//!           values of the    names in the text,
//!           environment      shapes
//! ```
//!
//! | module | what it is for |
//! | --- | --- |
//! | `value_masker`, `automaton` | the values of the environment's secret variables |
//! | `pattern_masker`, `anchors`, `partial_text` | looks for places that need a verdict, in output that comes in pieces |
//! | `assigned`, `names`, `plausible`, `value` | `NAME=value` and its kin: which names, and which values behind them |
//! | `command_options`, `urls` | `--token value`, `scheme://user:password@host` |
//! | `tokens`, `prefixed`, `private_keys`, `key_body` | shapes that their issuers document |
//! | `finding`, `mask` | a secret that was found, and what takes its place |
//!
//! Masking is best effort: a secret that a program encodes, or prints in two parts with something between them, is not
//! found. A value is found without the white space around it, with its lines ended as a terminal ends them or as JSON
//! spells them, and with U+FFFD for bytes that are not UTF-8.
//!
//! Invariants:
//! * how the input was split never shows: a byte is passed only once no secret can begin with it;
//! * the bytes held back are bounded: see [`crate::limits::SECRET_PATTERN_BYTES_MAX`]; for names and shapes by 4 KiB;
//! * the cost of a byte does not depend on the number of values;
//! * text without a secret is unchanged.

mod anchors;
mod assigned;
mod automaton;
mod command_options;
mod finding;
mod key_body;
mod mask;
mod names;
mod partial_text;
mod pattern_masker;
mod plausible;
mod prefixed;
mod private_keys;
mod tokens;
mod urls;
mod value;
mod value_masker;

pub use mask::{is_masked, masked};
pub use names::is_secret_name;

use mask::{mask, shown};
use pattern_masker::PatternMasker;
use value_masker::{KnownValues, ValueMasker};

/// The shortest value that is masked, in bytes. Shorter ones are too likely to be ordinary words.
const VALUE_BYTES_MIN: usize = 8;

/// The masker of one stream; see the module's text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// `None` without known values.
    values: Option<ValueMasker>,
    patterns: PatternMasker,
    /// Empty between calls; see [`Pieces`].
    small: Vec<u8>,
    count: u64,
}

/// Joins small pieces on the way from one masker to the next.
struct Pieces<'a> {
    patterns: &'a mut PatternMasker,
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
            self.patterns.push(bytes, self.out);
        }
    }

    fn flush(&mut self) {
        if !self.small.is_empty() {
            self.patterns.push(self.small, self.out);
            self.small.clear();
        }
    }
}

impl Redactor {
    /// A masker for a run with this environment. It masks the values of variables that [`is_secret`].
    pub fn new<N: AsRef<[u8]>, V: AsRef<[u8]>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in environment {
            if is_secret(name.as_ref(), value.as_ref()) {
                add(name.as_ref(), value.as_ref(), &mut secrets);
            }
        }
        Self { values: KnownValues::new(secrets).map(ValueMasker::new), ..Self::default() }
    }

    /// A masker of the same secrets for another stream.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self { values: self.values.as_ref().map(ValueMasker::fresh), ..Self::default() }
    }

    /// Takes the next bytes. Appends those that are certainly no part of a secret, and masks for secrets.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        match &mut self.values {
            None => self.patterns.push(input, out),
            Some(values) => {
                let mut pieces = Pieces { patterns: &mut self.patterns, small: &mut self.small, out };
                self.count += values.push(input, &mut |bytes| pieces.push(bytes));
                pieces.flush();
            }
        }
    }

    /// Ends the stream: appends the bytes that were held back. Afterwards the masker is as new, but for the count.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(values) = &mut self.values {
            let mut pieces = Pieces { patterns: &mut self.patterns, small: &mut self.small, out };
            self.count += values.finish(&mut |bytes| pieces.push(bytes));
            pieces.flush();
        }
        self.patterns.finish(out);
    }

    /// Masks a whole text, such as a command.
    pub fn redact(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        whole.finish(out);
        self.count += whole.count();
    }

    /// Masks a text whose end was cut off: what may be the beginning of a secret there is left out.
    pub fn redact_cut(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        self.count += whole.count();
    }

    /// Masks one argument of a command, which may be the value of an option. `before` are the arguments before it.
    pub fn redact_argument(&mut self, before: &[&[u8]], argument: &[u8], out: &mut Vec<u8>) {
        match command_options::argument(before, argument) {
            Some((start, name)) => {
                self.redact(&argument[..start], out);
                mask(&name, out);
                self.count += 1;
            }
            None => self.redact(argument, out),
        }
    }

    /// Whether some of the last bytes are held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.values.as_ref().is_some_and(ValueMasker::is_holding) || self.patterns.is_holding()
    }

    /// The number of masks written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count + self.patterns.count
    }
}

/// Whether a variable has a secret's name, and a value that is long enough to be told from other words.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    value.len() >= VALUE_BYTES_MIN && is_secret_name(name) && !value.trim_ascii().is_empty()
}

/// Adds a secret in the forms in which text may contain it.
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
