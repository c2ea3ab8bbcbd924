//! Finds secrets that have a telling name or shape, in one stream and in whole texts.
//!
//! Invariant: how the stream was split never shows. A verdict about a place depends on at most [`CONTEXT`] bytes before it,
//! and on a bounded number of bytes after it, which it waits for.
//!
//! [`CONTEXT`]: super::searched_text::CONTEXT

use std::cell::Cell;

use super::escapes::Edit;
use super::finding::{Finding, Swallow};
use super::mask::mask;
use super::searched_text::SearchedText;
use super::{Secret, anchors, assigned, command_options, names, private_keys, tokens, urls};

/// What of one stream is masked beyond the text that was read.
#[derive(Debug, Clone, Default)]
pub(super) struct PatternMasker {
    swallow: Option<Swallow>,
    /// Masks written so far.
    pub(super) count: u64,
}

impl PatternMasker {
    /// Reads the text from this place on, as far as verdicts are certain; all of the `last` text. Returns how far.
    pub(super) fn search(&mut self, text: &[u8], from: usize, last: bool, edits: &mut Vec<Edit>) -> usize {
        let is_short = Cell::new(false);
        let searched = SearchedText::new(text, &is_short);
        let mut at = from;
        while at < text.len() {
            if let Some(swallow) = &mut self.swallow {
                let Some((len, goes_on)) = swallow.take(&text[at..], last) else { break };
                if len > 0 {
                    edits.push(Edit { place: at..at + len, text: String::new() });
                }
                at += len;
                if !goes_on {
                    let is_key = matches!(self.swallow.take(), Some(Swallow::Key(_)));
                    if is_key && at > 0 && text[at - 1] == b'\n' {
                        // The key had no last line, but the line before this one ended.
                        edits.push(Edit { place: at..at, text: "\n".to_owned() });
                    }
                }
                continue;
            }
            at = anchors::find(text, at).unwrap_or(text.len());
            if at == text.len() {
                break;
            }
            is_short.set(false);
            let found = judge(searched, at);
            if is_short.get() && !last {
                break;
            }
            let Some(secret) = found else {
                at += 1;
                continue;
            };
            self.count += 1;
            at = secret.end;
            edits.push(Edit { place: secret.start..secret.end, text: mask(&secret.name) });
            self.swallow = secret.swallow;
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
            let is_short = Cell::new(false);
            let text = SearchedText::new(&text[..bounds.text(at)], &is_short);
            let found = judge(text, at);
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
fn judge(text: SearchedText<'_>, at: usize) -> Option<Finding> {
    match text.bytes[at] {
        b':' => match text.peek(at + 1) {
            Some(b'/') => urls::judge(text, at),
            Some(b'A') => tokens::bot(text, at),
            _ => tokens::judge(text, at),
        },
        b'-' => private_keys::judge(text, at).or_else(|| {
            let is_apart = !text.before(at).last().is_some_and(|&byte| names::is_part(byte));
            if is_apart { command_options::judge(text, at) } else { tokens::judge(text, at) }
        }),
        _ => tokens::judge(text, at).or_else(|| assigned::of_name(text, at)),
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
