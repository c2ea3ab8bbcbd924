//! The three values of a rule's conditions, and globs on words that may have holes.

use crate::limits;
use crate::script::{Argument, ArgumentPiece, HoleKind};

/// Whether a condition holds. The smaller of two answers is that of both conditions together, the larger that of one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    No,
    /// It depends on something that is not known.
    Perhaps,
    Yes,
}

impl Answer {
    #[must_use]
    pub fn of(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }

    #[must_use]
    pub fn negated(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Perhaps => Self::Perhaps,
            Self::Yes => Self::No,
        }
    }

    /// The answer of one of several.
    #[must_use]
    pub fn any(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().max().unwrap_or(Self::No)
    }

    /// The answer of all of several.
    #[must_use]
    pub fn all(answers: impl IntoIterator<Item = Self>) -> Self {
        answers.into_iter().min().unwrap_or(Self::Yes)
    }
}

/// Patterns of which one must match, as in `push|send-*`. In a pattern, `*` is any text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Vec<u8>>);

impl Glob {
    #[must_use]
    pub fn new(written: &str) -> Self {
        Self(written.split('|').map(|pattern| pattern.as_bytes().to_vec()).collect())
    }

    /// A glob of one pattern.
    #[must_use]
    pub fn of_pattern(pattern: &[u8]) -> Self {
        Self(vec![pattern.to_vec()])
    }

    /// The texts that it matches, if none of its patterns has a `*`.
    pub(super) fn texts(&self) -> Option<&[Vec<u8>]> {
        let is_text = |pattern: &Vec<u8>| !pattern.contains(&b'*');
        self.0.iter().all(is_text).then_some(&self.0[..])
    }

    #[must_use]
    pub fn matches(&self, text: &[u8]) -> bool {
        self.0.iter().any(|pattern| pattern_matches(pattern, text))
    }

    /// Whether it matches a word, whatever its holes become.
    #[must_use]
    pub fn answer(&self, word: &Argument) -> Answer {
        if let Some(text) = word.text() {
            return Answer::of(self.matches(text));
        }
        let parts = parts(word);
        Answer::any(self.0.iter().map(|pattern| answer(pattern, &parts)))
    }
}

/// Whether a pattern matches a text. Each part between stars is searched once.
pub(super) fn pattern_matches(pattern: &[u8], text: &[u8]) -> bool {
    if pattern.first().is_some_and(|first| *first != b'*' && text.first() != Some(first)) {
        return false;
    }
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A part of a word with holes.
#[derive(Debug, Clone, Copy)]
enum Part {
    Byte(u8),
    /// Any text.
    Any,
    Digits {
        may_be_empty: bool,
        may_be_negative: bool,
    },
}

impl From<&HoleKind> for Part {
    fn from(kind: &HoleKind) -> Self {
        match *kind {
            HoleKind::Arithmetic => Self::Digits { may_be_empty: false, may_be_negative: true },
            HoleKind::Digits { may_be_empty, .. } => Self::Digits { may_be_empty, may_be_negative: false },
            _ => Self::Any,
        }
    }
}

/// The bytes and the holes of a word.
fn parts(word: &Argument) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in &word.pieces {
        match piece {
            ArgumentPiece::Text(text) => parts.extend(text.iter().copied().map(Part::Byte)),
            ArgumentPiece::Hole(hole) => parts.push(Part::from(&hole.kind)),
        }
        if parts.len() > limits::RULE_WORD_BYTES_MAX {
            parts.truncate(limits::RULE_WORD_BYTES_MAX);
            parts.push(Part::Any);
            break;
        }
    }
    parts
}

fn answer(pattern: &[u8], parts: &[Part]) -> Answer {
    if reaches_end(pattern, parts, false) {
        Answer::Yes
    } else {
        Answer::of(reaches_end(pattern, parts, true)).min(Answer::Perhaps)
    }
}

/// Follows all ways of a pattern through a word at once. A hole can become its texts if it `may`, else it matches a star alone.
fn reaches_end(pattern: &[u8], parts: &[Part], may: bool) -> bool {
    let mut ways = vec![false; pattern.len() + 1];
    ways[0] = true;
    let pass_stars = |ways: &mut Vec<bool>| {
        for at in 0..pattern.len() {
            if pattern[at] == b'*' && ways[at] {
                ways[at + 1] = true;
            }
        }
    };
    pass_stars(&mut ways);
    for part in parts {
        let mut next = vec![false; ways.len()];
        for at in (0..ways.len()).filter(|at| ways[*at]) {
            match (part, pattern.get(at)) {
                (Part::Any, _) if may => {
                    next[at..].fill(true);
                    break;
                }
                (&Part::Digits { may_be_empty, may_be_negative }, _) if may => {
                    next[at] |= may_be_empty;
                    let is_sign = |place| place == at && may_be_negative && pattern.get(place) == Some(&b'-');
                    let mut place = at;
                    while let Some(byte) =
                        pattern.get(place).filter(|byte| **byte == b'*' || byte.is_ascii_digit() || is_sign(place))
                    {
                        place += 1;
                        next[place] |= byte.is_ascii_digit();
                        next[place - 1] |= *byte == b'*';
                    }
                }
                (_, Some(b'*')) => next[at] = true,
                (Part::Byte(byte), Some(wanted)) if byte == wanted => next[at + 1] = true,
                _ => {}
            }
        }
        ways = next;
        pass_stars(&mut ways);
        if !ways.contains(&true) {
            return false;
        }
    }
    ways[pattern.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    fn word(text: &str) -> Argument {
        let leaves = script::leaves(format!("x {text}").as_bytes(), &|_| None).leaves;
        leaves[0].arguments[0].clone()
    }

    #[test]
    fn globs_have_three_values() {
        for (glob, text, wanted) in [
            ("push", "push", Answer::Yes),
            ("push", "pushy", Answer::No),
            ("pu*h|x", "pu-sh", Answer::Yes),
            ("a*b*c", "abc", Answer::Yes),
            ("a*bc*c", "abc", Answer::No),
            ("*", "\"$x\"", Answer::Yes),
            ("push", "\"$x\"", Answer::Perhaps),
            ("+*", "+\"$x\"", Answer::Yes),
            ("+*", "a\"$x\"", Answer::No),
            ("*b", "a\"$x\"", Answer::Perhaps),
            ("a*b", "a\"$x\"b", Answer::Yes),
            ("abc", "a\"$x\"d", Answer::No),
            ("marker x", "\"marker $?\"", Answer::No),
            ("marker *", "\"marker $?\"", Answer::Yes),
            ("a12b*", "\"a${#x}b\"", Answer::Perhaps),
            ("a1*2b", "a$$\"b\"", Answer::Perhaps),
            ("a-2", "a$((x))", Answer::Perhaps),
            ("a2-", "a$((x))", Answer::No),
            ("a", "a$?", Answer::No),
            ("a", "a$!", Answer::Perhaps),
            ("push", "$?", Answer::No),
            ("push", "\"$RANDOM\"", Answer::No),
            ("*h", "$((x))", Answer::No),
            ("-f", "$((x))", Answer::No),
        ] {
            assert_eq!(Glob::new(glob).answer(&word(text)), wanted, "{glob} {text}");
        }
    }
}
