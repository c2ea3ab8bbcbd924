//! Masks what can be told by its name or its shape, in one stream.
//!
//! Invariants: how the stream was split never shows: a place is judged by at most [`CONTEXT`] bytes before it, which are
//! kept, and by a bounded number of bytes behind it, for which it waits.

use super::anchors;
use super::keys;
use super::swallow::Swallow;
use super::text::Text;
use super::{assigned, mask, names, options, tokens, urls};

/// How many bytes before a place its verdict may depend on.
pub(super) const CONTEXT: usize = 128;

/// A secret, as places in the text.
#[derive(Debug)]
pub(super) struct Secret {
    pub(super) start: usize,
    pub(super) end: usize,
    /// For the mask.
    pub(super) name: String,
    /// What goes on after `end` belongs to it too.
    pub(super) swallow: Option<Swallow>,
}

/// It depends on bytes that are not there yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Undecided;

#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    /// The last bytes that have passed, and then those that are held back.
    buffer: Vec<u8>,
    passed: usize,
    swallow: Option<Swallow>,
    pub(super) count: u64,
}

impl Stream {
    pub(super) fn is_holding(&self) -> bool {
        self.buffer.len() > self.passed
    }

    /// Takes the next bytes and appends what is certain.
    pub(super) fn push(&mut self, input: &[u8], out: &mut Vec<u8>) {
        let old = self.buffer.len();
        if old == 0 {
            let taken = self.scan(Text { bytes: input, last: false }, 0, out);
            self.keep(input, taken);
            return;
        }
        // The input's beginning is read behind what was kept, the rest where it is.
        let (first, rest) = input.split_at(input.len().min(2 * CONTEXT));
        let mut joined = std::mem::take(&mut self.buffer);
        joined.extend_from_slice(first);
        let mut taken = self.scan(Text { bytes: &joined, last: false }, self.passed, out);
        if !rest.is_empty() && taken >= old + CONTEXT {
            let taken = self.scan(Text { bytes: input, last: false }, taken - old, out);
            self.buffer = joined;
            self.keep(input, taken);
            return;
        }
        if !rest.is_empty() {
            joined.extend_from_slice(rest);
            taken = self.scan(Text { bytes: &joined, last: false }, taken, out);
        }
        self.passed = taken.min(CONTEXT);
        joined.drain(..taken - self.passed);
        self.buffer = joined;
    }

    fn keep(&mut self, text: &[u8], taken: usize) {
        self.passed = taken.min(CONTEXT);
        self.buffer.clear();
        self.buffer.extend_from_slice(&text[taken - self.passed..]);
    }

    /// The stream has ended: appends what was held back.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        let buffer = std::mem::take(&mut self.buffer);
        self.scan(Text { bytes: &buffer, last: true }, self.passed, out);
        (self.passed, self.swallow) = (0, None);
    }

    /// Reads the text as far as it can be decided, and returns how far that is.
    fn scan(&mut self, text: Text<'_>, from: usize, out: &mut Vec<u8>) -> usize {
        let Text { bytes, last } = text;
        let (mut at, mut copied) = (from, from);
        while at < bytes.len() {
            if let Some(swallow) = &mut self.swallow {
                let Some((len, goes_on)) = swallow.take(&bytes[at..], last) else { break };
                at += len;
                copied = at;
                if !goes_on {
                    let is_key = matches!(self.swallow.take(), Some(Swallow::Key(_)));
                    if is_key && at > 0 && bytes[at - 1] == b'\n' {
                        // A key without an end: the line it stood in has one.
                        out.push(b'\n');
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
                    out.extend_from_slice(&bytes[copied..secret.start]);
                    mask(&secret.name, out);
                    self.count += 1;
                    at = secret.end;
                    copied = at;
                    self.swallow = secret.swallow;
                }
            }
        }
        out.extend_from_slice(&bytes[copied..at]);
        at
    }
}

/// What there is at a place that the anchors found.
#[inline(never)]
fn judge(text: Text<'_>, at: usize) -> Result<Option<Secret>, Undecided> {
    match text.bytes[at] {
        b':' => match text.peek(at + 1)? {
            Some(b'/') => urls::judge(text, at),
            Some(b'A') => tokens::bot(text, at),
            _ => Ok(None),
        },
        b'-' => match keys::judge(text, at)? {
            None if !text.before(at).last().is_some_and(|&byte| names::is_part(byte)) => options::judge(text, at),
            found => Ok(found),
        },
        _ => match tokens::judge(text, at)? {
            None => assigned::of_name(text, at),
            found => Ok(found),
        },
    }
}
