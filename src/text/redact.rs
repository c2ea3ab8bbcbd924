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
//! | `command_secrets`, `command_words`, `known_programs` | in commands: `zip -P value`, `echo value \| sudo -S true` |
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
mod command_secrets;
mod command_words;
mod finding;
mod key_body;
mod known_programs;
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

use std::ops::Range;

use mask::{mask, shown};
use pattern_masker::PatternMasker;
use value_masker::{KnownValues, ValueMasker};

/// The shortest value that is masked, in bytes. Shorter ones are too likely to be ordinary words.
const VALUE_BYTES_MIN: usize = 8;
/// The name of a secret that a program's name gives away.
const COMMAND_SECRET: &str = "PASSWORD";

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
        Self::of_command(environment, &[])
    }

    /// A masker for a run with this environment and these arguments of its command. It masks the secrets in them wherever
    /// they are, too, if they differ from plain words.
    pub fn of_command<N: AsRef<[u8]>, V: AsRef<[u8]>>(
        environment: impl IntoIterator<Item = (N, V)>,
        arguments: &[&[u8]],
    ) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in environment {
            if is_secret(name.as_ref(), value.as_ref()) {
                add(name.as_ref(), value.as_ref(), &mut secrets);
            }
        }
        for (argument, found) in arguments.iter().zip(secrets_of_arguments(arguments)) {
            for secret in found {
                let value = &argument[secret.place];
                if is_telling(value) {
                    add(secret.name.as_bytes(), value, &mut secrets);
                }
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

    /// Masks the text of a shell command, in which the names of programs give secrets away.
    pub fn redact_command(&mut self, text: &[u8], out: &mut Vec<u8>) {
        self.redact_around(text, command_secrets::of_text(text), out);
    }

    /// Masks the arguments of a command.
    pub fn redact_arguments(&mut self, arguments: &[&[u8]]) -> Vec<Vec<u8>> {
        let found = command_secrets::of_arguments(arguments);
        let each = arguments.iter().zip(found).enumerate();
        each.map(|(at, (argument, secrets))| {
            let mut out = Vec::new();
            match command_options::argument(near(&arguments[..at]), argument) {
                Some((start, name)) if secrets.is_empty() => {
                    self.redact(&argument[..start], &mut out);
                    mask(&name, &mut out);
                    self.count += 1;
                }
                _ => self.redact_around(argument, secrets, &mut out),
            }
            out
        })
        .collect()
    }

    /// Masks these places, and what else is a secret in the text.
    fn redact_around(&mut self, text: &[u8], secrets: Vec<Range<usize>>, out: &mut Vec<u8>) {
        let mut start = 0;
        for secret in secrets {
            self.redact(&text[start..secret.start], out);
            mask(COMMAND_SECRET, out);
            self.count += 1;
            start = secret.end;
        }
        self.redact(&text[start..], out);
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

/// A secret in a text.
struct Secret {
    place: Range<usize>,
    name: String,
}

/// The secrets in the arguments of a command: for each argument, those in it.
fn secrets_of_arguments(arguments: &[&[u8]]) -> Vec<Vec<Secret>> {
    let mut found: Vec<Vec<Secret>> = Vec::with_capacity(arguments.len());
    for (at, (argument, places)) in arguments.iter().zip(command_secrets::of_arguments(arguments)).enumerate() {
        let mut secrets: Vec<Secret> = pattern_masker::secrets(argument).collect();
        secrets.extend(places.into_iter().map(|place| Secret { place, name: COMMAND_SECRET.to_owned() }));
        let of_option = command_options::argument(near(&arguments[..at]), argument);
        secrets.extend(of_option.map(|(start, name)| Secret { place: start..argument.len(), name }));
        found.push(secrets);
    }
    found
}

/// The last few of these arguments, among which the command's name may be.
fn near<'a, 'b>(before: &'b [&'a [u8]]) -> &'b [&'a [u8]] {
    &before[before.len().saturating_sub(16)..]
}

/// Whether a value of a command differs from the words that a program may print for other reasons.
fn is_telling(value: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| value.iter().any(is);
    let is_mark = |byte: &u8| byte.is_ascii_punctuation() && !matches!(byte, b'-' | b'_' | b'.' | b'/' | b':' | b',');
    let is_mixed = has(u8::is_ascii_alphabetic) && (has(u8::is_ascii_digit) || has(is_mark));
    let is_phrase = value.len() >= 2 * VALUE_BYTES_MIN && value.iter().filter(|&&byte| byte == b' ').count() >= 2;
    value.len() >= VALUE_BYTES_MIN && (is_mixed || is_phrase)
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
