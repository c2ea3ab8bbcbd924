//! Masks secrets that have a telling name or shape, in one stream.
//!
//! Invariant: how the stream was split never shows. A verdict about a place depends on at most [`CONTEXT`] bytes before it,
//! which are kept, and on a bounded number of bytes after it, which it waits for.

use super::escapes::SearchSink;
use super::finding::{Finding, Swallow};
use super::mask::mask;
use super::partial_text::{CONTEXT, PartialText, Undecided};
use super::{Secret, anchors, assigned, command_options, names, private_keys, tokens, urls};

#[derive(Debug, Clone, Default)]
pub(super) struct PatternMasker {
    /// The last bytes that have passed, and after them those that are held back.
    buffer: Vec<u8>,
    passed: usize,
    /// How far the buffer was let go without a verdict, if that is further.
    released: usize,
    swallow: Option<Swallow>,
    /// Masks written so far.
    pub(super) count: u64,
}

impl PatternMasker {
    pub(super) fn held_bytes(&self) -> usize {
        self.buffer.len() - self.passed.max(self.released)
    }

    /// Whether what comes next may belong to a secret that was masked.
    pub(super) fn is_dropping(&self) -> bool {
        self.swallow.is_some()
    }

    /// Takes the next bytes. Appends those about which the verdict is certain.
    pub(super) fn push(&mut self, input: &[u8], sink: &mut SearchSink<'_>) {
        let old = self.buffer.len();
        if old == 0 {
            let taken = self.scan(PartialText { bytes: input, last: false }, 0, sink);
            self.keep(input, taken);
            return;
        }
        // The beginning of the input is read after the kept bytes, the rest in place.
        let (first, rest) = input.split_at(input.len().min(2 * CONTEXT));
        let mut joined = std::mem::take(&mut self.buffer);
        joined.extend_from_slice(first);
        let mut taken = self.scan(PartialText { bytes: &joined, last: false }, self.passed, sink);
        if !rest.is_empty() && taken >= old + CONTEXT {
            self.released = 0;
            let taken = self.scan(PartialText { bytes: input, last: false }, taken - old, sink);
            self.buffer = joined;
            self.keep(input, taken);
            return;
        }
        if !rest.is_empty() {
            joined.extend_from_slice(rest);
            taken = self.scan(PartialText { bytes: &joined, last: false }, taken, sink);
        }
        self.passed = taken.min(CONTEXT);
        self.released = self.released.saturating_sub(taken - self.passed);
        joined.drain(..taken - self.passed);
        self.buffer = joined;
    }

    fn keep(&mut self, text: &[u8], taken: usize) {
        self.passed = taken.min(CONTEXT);
        self.buffer.clear();
        self.buffer.extend_from_slice(&text[taken - self.passed..]);
    }

    /// Lets go what is held back. What comes after it is still read together with it, so that the rest of a secret is
    /// masked.
    pub(super) fn release(&mut self, sink: &mut SearchSink<'_>) {
        if self.swallow.is_none() {
            sink.text(&self.buffer[self.passed.max(self.released)..]);
            self.released = self.buffer.len();
        }
    }

    /// Ends the stream: appends the bytes that were held back.
    pub(super) fn finish(&mut self, sink: &mut SearchSink<'_>) {
        let buffer = std::mem::take(&mut self.buffer);
        self.scan(PartialText { bytes: &buffer, last: true }, self.passed, sink);
        self.passed = 0;
        self.released = 0;
        self.swallow = None;
    }

    /// Reads the text as far as verdicts are certain. Returns how far.
    fn scan(&mut self, text: PartialText<'_>, from: usize, sink: &mut SearchSink<'_>) -> usize {
        let PartialText { bytes, last } = text;
        let mut at = from;
        let mut copied = from.max(self.released);
        while at < bytes.len() {
            if let Some(swallow) = &mut self.swallow {
                let Some((len, goes_on)) = swallow.take(&bytes[at..], last) else { break };
                at += len;
                sink.skip(at.saturating_sub(copied));
                copied = copied.max(at);
                if !goes_on {
                    let is_key = matches!(self.swallow.take(), Some(Swallow::Key(_)));
                    if is_key && at > 0 && bytes[at - 1] == b'\n' {
                        // The key had no last line, but the line before this one ended.
                        sink.insert(b"\n");
                    }
                }
                continue;
            }
            let Some(next) = anchors::find(bytes, at) else {
                at = bytes.len();
                break;
            };
            at = next;
            match judge(text, at) {
                Err(Undecided) => break,
                Ok(None) => at += 1,
                Ok(Some(secret)) => {
                    if copied < secret.start {
                        sink.text(&bytes[copied..secret.start]);
                        copied = secret.start;
                    }
                    // Of a secret that was let go, nothing is left to mask.
                    if copied < secret.end || secret.swallow.is_some() {
                        sink.settle();
                        mask(&secret.name, sink.out);
                        self.count += 1;
                    }
                    sink.skip(secret.end.saturating_sub(copied));
                    at = secret.end;
                    copied = copied.max(at);
                    self.swallow = secret.swallow;
                }
            }
        }
        if copied < at {
            sink.text(&bytes[copied..at]);
        }
        at
    }
}

/// How far the values of a text may go.
pub(super) trait ValueBounds {
    /// Where the text ends of which the verdict about this place is made.
    fn text(&self, at: usize) -> usize;
    /// Where a value that begins at this place must end; `None` if none can begin there.
    fn value(&self, start: usize) -> Option<usize>;
}

/// The secrets in a whole text.
pub(super) fn secrets(text: &[u8], bounds: impl ValueBounds) -> impl Iterator<Item = Secret> {
    secrets_at(text, anchors::find, bounds)
}

/// The same with this search for places.
fn secrets_at(
    text: &[u8],
    find: fn(&[u8], usize) -> Option<usize>,
    bounds: impl ValueBounds,
) -> impl Iterator<Item = Secret> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at = find(text, at)?;
            let text = PartialText { bytes: &text[..bounds.text(at)], last: true };
            let found = judge(text, at).ok().flatten();
            let Some((mut found, bound)) =
                found.and_then(|found| bounds.value(found.start).map(|bound| (found, bound)))
            else {
                at += 1;
                continue;
            };
            let bound = bound.clamp(found.end, text.bytes.len());
            let mut end = found.end;
            while let Some((len, goes_on)) =
                found.swallow.as_mut().and_then(|rest| rest.take(&text.bytes[end..bound], true))
            {
                end += len;
                if !goes_on || len == 0 {
                    break;
                }
            }
            at = end.max(at + 1);
            let is_key = matches!(found.swallow, Some(Swallow::Key(_)));
            return Some(Secret { place: found.start..end, name: found.name, is_key });
        }
    })
}

/// The verdict about a place that the anchors found.
#[inline(never)]
fn judge(text: PartialText<'_>, at: usize) -> Result<Option<Finding>, Undecided> {
    match text.bytes[at] {
        b':' => match text.peek(at + 1)? {
            Some(b'/') => urls::judge(text, at),
            Some(b'A') => tokens::bot(text, at),
            _ => tokens::judge(text, at),
        },
        b'-' => match private_keys::judge(text, at)? {
            None if !text.before(at).last().is_some_and(|&byte| names::is_part(byte)) => {
                command_options::judge(text, at)
            }
            None => tokens::judge(text, at),
            found => Ok(found),
        },
        _ => match tokens::judge(text, at)? {
            None => assigned::of_name(text, at),
            found => Ok(found),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in each run (xorshift64).
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 >> 33).expect("31 bits") % end
        }

        fn pick<T: Copy>(&mut self, among: &[T]) -> T {
            among[self.below(among.len())]
        }

        /// A byte, a value, or the begin of a secret, sometimes with an error in it.
        fn add_fragment(&mut self, tokens: &[Vec<Vec<u8>>], text: &mut Vec<u8>) {
            const OTHERS: [&[u8]; 10] = [
                b"://u:",
                b"https://",
                b"9:AA",
                b"-----BEGIN ",
                b" --user ",
                b" --proxy-user=",
                b" -u ",
                b"@h",
                b"=",
                b": \"",
            ];
            let before = text.len();
            match self.below(10) {
                0 => text.push(u8::try_from(self.below(256)).expect("a byte")),
                1 | 2 => text.push(self.pick(b" :-=/._\"'\n\x1b[mA0aZ,;&")),
                3 => text.extend_from_slice(self.pick(&OTHERS)),
                4 | 5 => (0..self.below(50)).for_each(|_| text.push(self.pick(b"abcXYZ0189abcdef_Q"))),
                6 | 7 => tokens[self.below(tokens.len())].iter().for_each(|class| text.push(self.pick(class))),
                _ => text.extend_from_slice(names::WORDS[self.below(names::WORDS.len())].text),
            }
            let added = text.len() - before;
            match self.below(8) {
                0 => text[before..].make_ascii_uppercase(),
                1 => text.truncate(before + self.below(added + 1)),
                2 if added > 0 => {
                    let at = before + self.below(added);
                    text[at] = text[at].wrapping_add(1);
                }
                _ => {}
            }
        }
    }

    /// A text without a grammar, of this length.
    struct Whole(usize);

    impl ValueBounds for Whole {
        fn text(&self, _: usize) -> usize {
            self.0
        }

        fn value(&self, _: usize) -> Option<usize> {
            Some(self.0)
        }
    }

    #[test]
    fn the_fast_search_finds_the_secrets_that_a_look_at_each_byte_finds() {
        let tokens: Vec<_> = tokens::starts().collect();
        let (mut dice, mut count) = (Dice(0x9e37_79b9_7f4a_7c15), 0);
        for _ in 0..30_000 {
            let (mut text, len) = (Vec::new(), dice.below(160));
            while text.len() < len {
                dice.add_fragment(&tokens, &mut text);
            }
            let found = |find| -> Vec<_> {
                secrets_at(&text, find, Whole(text.len())).map(|secret| (secret.place, secret.name)).collect()
            };
            let fast = found(anchors::find);
            assert_eq!(fast, found(anchors::find_slowly), "{}", text.escape_ascii());
            count += fast.len();
        }
        assert!(count > 3_000, "{count} secrets");
    }
}
