//! Masks secrets in text that is kept, each as `«redacted:NAME»`: the values of secret-named variables wherever they
//! are, any value after a secret's name, and tokens of a known shape.
//!
//! ```text
//! bytes ──▶ ShownText ──▶ KnownValues ──▶ PatternMasker ──▶ text with masks
//!           what a         values of the   names in the text,
//!           terminal       environment     shapes
//!           shows
//! ```
//!
//! | module | what it is for |
//! | --- | --- |
//! | `escapes` | takes escape sequences out of what is searched, and puts them back |
//! | `known_values` | the values of the environment's secret variables |
//! | `pattern_masker`, `anchors`, `searched_text` | looks for places that need a verdict, in output that comes in pieces |
//! | `assigned`, `names`, `plausible`, `value` | `NAME=value` and its kin: which names, and which values behind them |
//! | `phrases` | names of several words: `mot de passe : value` |
//! | `command_options`, `urls` | `--token value`, `scheme://user:password@host` |
//! | `command_secrets`, `command_words`, `known_programs` | in commands: `zip -P value`, `echo value \| sudo -S true` |
//! | `grammar`, `letters`, `program_names` | in commands: where a value must end, and the names of programs |
//! | `tokens`, `prefixed`, `private_keys`, `key_body` | shapes that their issuers document, in two tables |
//! | `streams` | the masker of a run, whose output comes on several streams |
//! | `finding`, `mask` | a secret that was found, and what takes its place |
//!
//! Masking is best effort: a secret that a program encodes, or prints in two parts with something between them, is not
//! found. A value is found without the white space around it, with its lines ended as a terminal ends them or as JSON
//! spells them, and with U+FFFD for bytes that are not UTF-8.
//!
//! Invariants:
//! * how the input was split never shows: a byte is passed only once no secret can begin with it;
//! * the bytes held back are bounded: see [`crate::limits::SECRET_PATTERN_BYTES_MAX`]; for names and shapes by 4 KiB;
//! * in a command a value is part of a word: no name of a program is masked, and nothing that separates words;
//! * the cost of a byte grows with the logarithm of the number of values;
//! * text without a secret is unchanged.

mod anchors;
mod assigned;
mod command_options;
mod command_secrets;
mod command_words;
mod escapes;
mod finding;
mod grammar;
mod key_body;
mod known_programs;
mod known_values;
mod letters;
mod mask;
mod names;
mod pattern_masker;
mod phrases;
mod plausible;
mod prefixed;
mod private_keys;
mod program_names;
mod searched_text;
mod streams;
mod tokens;
mod urls;
mod value;

pub use mask::{is_masked, masked};
pub use names::is_secret_name;
pub use streams::StreamRedactor;

use std::cell::LazyCell;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memchr::memmem;

use escapes::{Edit, ShownText};
use grammar::Grammar;
use known_values::KnownValues;
use mask::{mask, shown};
use pattern_masker::{PatternMasker, ValueBounds};
use searched_text::CONTEXT;

/// The shortest value that is masked, in bytes. Shorter ones are too likely to be ordinary words.
const VALUE_BYTES_MIN: usize = 8;
/// The most bytes that are held back, with the sequences among them: the longest value has room with a colour of 24 bits
/// for each byte.
const HELD_BYTES_MAX: usize = 128 << 10;
/// The name of a secret that a program's name gives away.
const COMMAND_SECRET: &str = "PASSWORD";

/// The masker of one stream; see the module's text.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// `None` without known values.
    values: Option<Arc<KnownValues>>,
    shown: ShownText,
    /// How far names and shapes are judged in the text.
    judged: usize,
    /// How far known values are masked in it.
    searched: usize,
    /// How many of the shown bytes from there on belong to a known value whose mask is written.
    rest: usize,
    patterns: PatternMasker,
    count: u64,
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
        for (argument, found) in arguments.iter().zip(secrets_of_arguments(arguments, None)) {
            for secret in found.into_iter().filter(|secret| !secret.is_key) {
                let value = &argument[secret.place];
                if is_telling(value) {
                    add(secret.name.as_bytes(), value, &mut secrets);
                }
            }
        }
        Self { values: KnownValues::new(secrets), ..Self::default() }
    }

    /// A masker of the same secrets for another stream.
    #[must_use]
    pub fn fresh(&self) -> Self {
        Self { values: self.values.clone(), ..Self::default() }
    }

    /// Takes the next bytes. Appends those that are certainly no part of a secret, and masks for secrets.
    pub fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        /// So much stays in the processor's cache.
        const PIECE: usize = 16 << 10;
        for piece in input.chunks(PIECE) {
            self.search(piece, false, out);
            if self.held_bytes() > HELD_BYTES_MAX {
                self.release(out);
            }
        }
    }

    /// Searches the bytes that are held back and these. Appends those that have a certain verdict; all of them if nothing
    /// follows.
    fn search(&mut self, piece: &[u8], last: bool, out: &mut Vec<u8>) {
        if let Some(first) = self.shown.push(piece, last) {
            let mut whole = self.fresh();
            self.shown.mask_carried(first, last, |text, out| {
                whole.push(text, out);
                whole.finish(out);
            });
            self.count += whole.count();
        }
        self.mask_values(last);
        let mut edits = Vec::new();
        self.judged = self.patterns.search(&self.shown.text[..self.searched], self.judged, last, &mut edits);
        self.shown.pass(&edits, self.judged, out);
        self.forget();
    }

    /// Lets go what is held back, because too many sequences are in it. What follows is still searched together with it, so
    /// that the rest of a secret is masked.
    fn release(&mut self, out: &mut Vec<u8>) {
        let rest = Edit { place: self.searched..self.searched + self.rest, text: String::new() };
        self.shown.pass(&[rest], self.shown.text.len(), out);
        self.forget();
    }

    /// Forgets the text on which no verdict depends any more.
    fn forget(&mut self) {
        let len = self.judged.saturating_sub(CONTEXT).min(self.searched);
        self.shown.forget(len);
        (self.judged, self.searched) = (self.judged - len, self.searched - len);
    }

    /// Masks the known values in the text that was not searched for them.
    fn mask_values(&mut self, last: bool) {
        let (from, len) = (self.searched, self.shown.text.len());
        let Some(values) = &self.values else {
            self.searched = len;
            return;
        };
        let found = values.search(&self.shown.text[from..], self.rest, last);
        self.rest = found.rest;
        self.searched = from + found.open;
        if found.places.is_empty() {
            return;
        }
        let edit = |(place, name): (Range<usize>, Option<&str>)| Edit {
            place: from + place.start..from + place.end,
            text: name.map(mask).unwrap_or_default(),
        };
        self.count += found.places.iter().filter(|(_, name)| name.is_some()).count() as u64;
        let edits: Vec<Edit> =
            found.places.into_iter().map(edit).filter(|edit| edit.place.end > self.shown.passed).collect();
        self.shown.edit(&edits);
        self.searched = self.searched + self.shown.text.len() - len;
    }

    /// Ends the stream: appends the bytes that were held back. Afterwards the masker is as new, but for the count.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.search(&[], true, out);
        let count = self.count();
        *self = Self { count, ..self.fresh() };
    }

    /// Masks a whole text, such as a command.
    pub fn redact(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        whole.finish(out);
        self.count += whole.count();
    }

    /// A whole text with its secrets masked.
    #[must_use]
    pub fn masked_text(&self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.fresh().redact(text.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A command's text with its secrets masked.
    #[must_use]
    pub fn masked_command(&self, text: &str) -> String {
        let mut out = Vec::with_capacity(text.len());
        self.fresh().redact_command(text.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Masks a text whose end was cut off: what may be the beginning of a secret there is left out.
    pub fn redact_cut(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let mut whole = self.fresh();
        whole.push(text, out);
        self.count += whole.count();
    }

    /// Masks the text of a shell command. There a value is a word or a part of one, the names of programs give secrets away,
    /// and are never masked themselves.
    pub fn redact_command(&mut self, text: &[u8], out: &mut Vec<u8>) {
        let secrets = secrets_of_command(text, self.values.as_deref());
        self.mask_places(text, &secrets, out);
    }

    /// Masks a command whose end was cut off: what may be the beginning of a secret there is left out.
    pub fn redact_cut_command(&mut self, text: &[u8], out: &mut Vec<u8>) {
        // Each search has the text itself: the shapes behind the values would have masks of other lengths in it.
        let shown = ShownText::of(text);
        let of_values = self.values.as_ref().map_or(shown.text.len(), |values| {
            let found = values.search(&shown.text, 0, false);
            // The last value may go on behind the edge.
            let last = found.places.last().filter(|(place, _)| found.rest > 0 || place.end == shown.text.len());
            last.map_or(found.open, |(place, _)| place.start)
        });
        let of_shapes = PatternMasker::default().search(&shown.text, 0, false, &mut Vec::new());
        let certain = shown.before(of_values.min(of_shapes));
        let mut secrets = secrets_of_command(text, self.values.as_deref());
        secrets.retain(|secret| secret.place.start < certain);
        // Of a secret on the edge no part is shown.
        let end = secrets.last().map_or(certain, |secret| certain.max(secret.place.end));
        self.mask_places(&text[..end], &secrets, out);
    }

    /// Masks the arguments of a command.
    pub fn redact_arguments(&mut self, arguments: &[&[u8]]) -> Vec<Vec<u8>> {
        let found = secrets_of_arguments(arguments, self.values.as_deref());
        let each = arguments.iter().zip(found);
        each.map(|(argument, secrets)| {
            let mut out = Vec::new();
            self.mask_places(argument, &secrets, &mut out);
            out
        })
        .collect()
    }

    /// The arguments of a command with its secrets masked.
    #[must_use]
    pub fn masked_arguments(&self, arguments: &[String]) -> Vec<String> {
        let arguments: Vec<&[u8]> = arguments.iter().map(String::as_bytes).collect();
        let masked = self.fresh().redact_arguments(&arguments);
        masked.into_iter().map(|argument| String::from_utf8_lossy(&argument).into_owned()).collect()
    }

    fn mask_places(&mut self, text: &[u8], secrets: &[Secret], out: &mut Vec<u8>) {
        let mut start = 0;
        for secret in secrets {
            out.extend_from_slice(&text[start..secret.place.start]);
            out.extend_from_slice(mask(&secret.name).as_bytes());
            start = secret.place.end;
        }
        self.count += secrets.len() as u64;
        out.extend_from_slice(&text[start..]);
    }

    /// Returns true if some of the last bytes are held back.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.held_bytes() > 0
    }

    fn held_bytes(&self) -> usize {
        self.shown.held_bytes()
    }

    /// The number of masks written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count + self.patterns.count
    }
}

/// The name and the value of a variable.
#[must_use]
pub fn split_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', entry)?;
    Some((&entry[..at], &entry[at + 1..]))
}

/// Returns true if a variable has a secret's name, and a value that is long enough to be told from other words.
#[must_use]
pub fn is_secret(name: &[u8], value: &[u8]) -> bool {
    value.len() >= VALUE_BYTES_MIN && is_secret_name(name) && !value.trim_ascii().is_empty()
}

/// A secret in a text.
struct Secret {
    place: Range<usize>,
    name: String,
    /// It is a private key.
    is_key: bool,
}

impl Secret {
    fn new(place: Range<usize>, name: &str) -> Self {
        Self { place, name: name.to_owned(), is_key: false }
    }
}

/// The secrets in the text of a command, in order.
fn secrets_of_command(text: &[u8], known: Option<&KnownValues>) -> Vec<Secret> {
    let grammar = LazyCell::new(|| Grammar::of_text(text));
    let mut words = command_secrets::of_text(text);
    if has_quoted_quotes(text) {
        words.extend(grammar.in_scripts(command_secrets::of_text));
    }
    let words = words.into_iter().filter_map(|place| grammar.fit(place));
    let words = words.map(|place| Secret::new(place, COMMAND_SECRET)).collect();
    merged(known_secrets(text, known, 0, &grammar), words, telling_secrets(text, 0, &grammar))
}

/// The secrets in the arguments of a command: for each argument, those in it.
fn secrets_of_arguments(arguments: &[&[u8]], known: Option<&KnownValues>) -> Vec<Vec<Secret>> {
    let grammar = LazyCell::new(|| Grammar::of_arguments(arguments));
    let mut all: Vec<Vec<Secret>> = Vec::with_capacity(arguments.len());
    let mut start = 0;
    for (at, (argument, places)) in arguments.iter().zip(command_secrets::of_arguments(arguments)).enumerate() {
        let fit = |place: Range<usize>| {
            let fit = grammar.fit(start + place.start..start + place.end)?;
            Some(fit.start - start..fit.end - start)
        };
        let inner = has_quoted_quotes(argument).then(|| Grammar::of_text(argument));
        let inner = inner.iter().flat_map(|inner| inner.in_scripts(command_secrets::of_text));
        let words =
            places.into_iter().chain(inner).filter_map(fit).map(|place| Secret::new(place, COMMAND_SECRET)).collect();
        let of_option = command_options::argument(near(&arguments[..at]), argument);
        // What stands behind an option is its value, whatever is in it.
        let of_option = of_option.filter(|(from, _)| grammar.bound(start + from).is_some());
        let mut telling = telling_secrets(argument, start, &grammar);
        telling.extend(of_option.map(|(from, name)| Secret::new(from..argument.len(), &name)));
        all.push(merged(known_secrets(argument, known, start, &grammar), words, telling));
        start += argument.len() + 1;
    }
    all
}

/// Returns true if quotes in quotes make it hard to see the words in a word.
fn has_quoted_quotes(text: &[u8]) -> bool {
    [&b"'\\''"[..], b"\\\"", b"'\"'"].iter().any(|quotes| memmem::find(text, quotes).is_some())
}

/// The known values in a text that begins at `start` in its command.
fn known_secrets(
    text: &[u8],
    known: Option<&KnownValues>,
    start: usize,
    grammar: &impl Deref<Target = Grammar>,
) -> Vec<Secret> {
    let places = known.into_iter().flat_map(|known| known.places(text));
    let parts = places.flat_map(|(place, name)| {
        let parts = grammar.parts(start + place.start..start + place.end).into_iter();
        parts.map(move |part| Secret::new(part.start - start..part.end - start, name))
    });
    parts.collect()
}

/// The bounds of values in a text of this length that begins at `start` in its command.
struct InCommand<'a, G> {
    grammar: &'a G,
    start: usize,
    len: usize,
}

impl<G: Deref<Target = Grammar>> ValueBounds for InCommand<'_, G> {
    fn text(&self, at: usize) -> usize {
        (self.grammar.command_end(self.start + at) - self.start).min(self.len)
    }

    fn value(&self, start: usize) -> Option<usize> {
        let bound = self.grammar.bound(self.start + start)?;
        Some((bound - self.start).min(self.len))
    }
}

/// The secrets in such a text that a name in front of them or their shape gives away.
fn telling_secrets(text: &[u8], start: usize, grammar: &impl Deref<Target = Grammar>) -> Vec<Secret> {
    let bounds = InCommand { grammar, start, len: text.len() };
    let fit = |mut secret: Secret| {
        let place = grammar.fit(start + secret.place.start..start + secret.place.end)?;
        secret.place = place.start - start..place.end - start;
        // The key had no last line, but the line before this one ended.
        secret.place.end -= usize::from(secret.is_key && text[secret.place.clone()].ends_with(b"\n"));
        Some(secret)
    };
    pattern_masker::secrets(text, bounds).filter_map(fit).collect()
}

/// All of these in order; those that overlap are one, with the name of the one that begins first. What is known of a program
/// tells better where the secret is than a name in front of it.
fn merged(known: Vec<Secret>, of_programs: Vec<Secret>, mut telling: Vec<Secret>) -> Vec<Secret> {
    let holds = |outer: &Range<usize>, inner: &Range<usize>| outer.start <= inner.start && inner.end <= outer.end;
    telling.retain(|secret| !of_programs.iter().any(|inner| holds(&secret.place, &inner.place)));
    let mut all = known;
    all.extend(of_programs);
    all.extend(telling);
    all.sort_by_key(|secret| secret.place.start);
    all.dedup_by(|next, last| {
        let is_same = next.place.start < last.place.end;
        if is_same {
            last.place.end = last.place.end.max(next.place.end);
        }
        is_same
    });
    all
}

/// The last few of these arguments, among which the command's name may be.
fn near<'a, 'b>(before: &'b [&'a [u8]]) -> &'b [&'a [u8]] {
    &before[before.len().saturating_sub(16)..]
}

/// Returns true if a value of a command differs from the words that a program may print for other reasons.
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
