//! Brace expansion, as bash does it before all others: `a{b,c}` is `ab ac`, and `{1..3}` is `1 2 3`.

use super::words::WordBuilder;
use crate::limits;
use crate::script::tree::{Quoting, ShellWord, WordPart};

/// A byte written without quotes, or another part of a word.
#[derive(Debug, Clone)]
enum Unit<'w> {
    Byte(u8),
    Part(&'w WordPart),
}

/// A part of a word with braces.
#[derive(Debug)]
enum Node<'w> {
    Unit(Unit<'w>),
    /// One of these texts.
    Choice(Vec<Vec<Node<'w>>>),
}

/// Braces that are open.
#[derive(Debug, Default)]
struct Open<'w> {
    before: Vec<Vec<Node<'w>>>,
    last: Vec<Node<'w>>,
}

impl ShellWord {
    /// The words that its braces make. `None` if it has none, or if they make more than `most` words.
    pub(in crate::script) fn spread(&self, most: usize) -> Option<Vec<Self>> {
        if !self.parts.iter().any(|part| matches!(part, WordPart::Pattern(written) if written.contains(&b'{'))) {
            return None;
        }
        let units = units(&self.parts)?;
        let nodes = nodes(&units);
        let has_choice = nodes.iter().any(|node| matches!(node, Node::Choice(_)));
        let words = product(&nodes, most).filter(|_| has_choice)?;
        Some(words.iter().map(|units| word(units)).collect())
    }
}

/// The units of a word, if they are not too many.
fn units(parts: &[WordPart]) -> Option<Vec<Unit<'_>>> {
    let mut units = Vec::new();
    for part in parts {
        match part {
            // An extended pattern is one piece.
            WordPart::Pattern(bytes) if bytes.starts_with(b"(") => units.push(Unit::Part(part)),
            WordPart::Pattern(bytes) | WordPart::Literal { bytes, quoting: Quoting::Unquoted } => {
                units.extend(bytes.iter().map(|byte| Unit::Byte(*byte)));
            }
            _ => units.push(Unit::Part(part)),
        }
        if units.len() > limits::SCRIPT_BRACES_UNITS_MAX {
            return None;
        }
    }
    Some(units)
}

/// Reads the braces. One that is not closed, or that has no alternatives, is text.
fn nodes<'w>(units: &[Unit<'w>]) -> Vec<Node<'w>> {
    let mut around: Vec<Open<'w>> = Vec::new();
    let mut now = Open::default();
    let byte = |byte| Node::Unit(Unit::Byte(byte));
    for unit in units {
        match unit {
            Unit::Byte(b'{') => around.push(std::mem::take(&mut now)),
            Unit::Byte(b',') if !around.is_empty() => now.before.push(std::mem::take(&mut now.last)),
            Unit::Byte(b'}') if !around.is_empty() => {
                let Open { before: mut choices, last } = std::mem::replace(&mut now, around.pop().unwrap_or_default());
                if !choices.is_empty() {
                    choices.push(last);
                    now.last.push(Node::Choice(choices));
                } else if let Some(choices) = sequence(&last) {
                    now.last.push(Node::Choice(choices));
                } else {
                    now.last.push(byte(b'{'));
                    now.last.extend(last);
                    now.last.push(byte(b'}'));
                }
            }
            unit => now.last.push(Node::Unit(unit.clone())),
        }
    }
    while let Some(mut outer) = around.pop() {
        outer.last.push(byte(b'{'));
        for (at, text) in now.before.into_iter().chain([now.last]).enumerate() {
            if at > 0 {
                outer.last.push(byte(b','));
            }
            outer.last.extend(text);
        }
        now = outer;
    }
    now.last
}

/// The texts of `1..3` or `a..c`.
fn sequence<'w>(nodes: &[Node<'w>]) -> Option<Vec<Vec<Node<'w>>>> {
    let byte = |node: &Node<'_>| if let Node::Unit(Unit::Byte(byte)) = node { Some(*byte) } else { None };
    let text = String::from_utf8(nodes.iter().map(byte).collect::<Option<Vec<u8>>>()?).ok()?;
    let mut ends = text.splitn(3, "..");
    let (from, to) = (ends.next()?, ends.next()?);
    let step: i64 = ends.next().map_or(Some(1), |step| step.parse().ok())?;
    let step = step.unsigned_abs().max(1);
    let letter = |end: &str| matches!(end.as_bytes(), [letter] if letter.is_ascii_alphabetic());
    let is_letters = letter(from) && letter(to);
    let value = |end: &str| if is_letters { Some(i64::from(end.as_bytes()[0])) } else { end.parse::<i64>().ok() };
    let (from, to) = (value(from)?, value(to)?);
    let count = usize::try_from(from.abs_diff(to) / step).ok().filter(|count| *count < limits::SCRIPT_BRACES_MAX)? + 1;
    let shown = |value: i64| match u8::try_from(value).ok().filter(|_| is_letters) {
        Some(letter) => vec![letter],
        None => value.to_string().into_bytes(),
    };
    let step = i64::try_from(step).ok()? * if from > to { -1 } else { 1 };
    let mut next = from;
    let mut texts = Vec::new();
    for _ in 0..count {
        texts.push(shown(next).into_iter().map(|byte| Node::Unit(Unit::Byte(byte))).collect());
        next = next.wrapping_add(step);
    }
    Some(texts)
}

/// Each text that the nodes make, in bash's order.
fn product<'w>(nodes: &[Node<'w>], most: usize) -> Option<Vec<Vec<Unit<'w>>>> {
    let mut made = vec![Vec::new()];
    for node in nodes {
        match node {
            Node::Unit(unit) => made.iter_mut().for_each(|text| text.push(unit.clone())),
            Node::Choice(choices) => {
                let mut ends = Vec::new();
                for choice in choices {
                    ends.extend(product(choice, most)?);
                }
                if made.len() * ends.len() > most {
                    return None;
                }
                let with_ends =
                    |text: Vec<Unit<'w>>| ends.iter().map(move |end| [&text[..], end].concat()).collect::<Vec<_>>();
                made = made.into_iter().flat_map(with_ends).collect();
            }
        }
    }
    Some(made)
}

/// A word of these units. A tilde that the braces have brought to its beginning counts.
fn word(units: &[Unit<'_>]) -> ShellWord {
    let mut word = WordBuilder::default();
    let mut rest = units;
    if let [Unit::Byte(b'~'), after @ ..] = units
        && matches!(after.first(), None | Some(Unit::Byte(b'/')))
    {
        word.part(WordPart::Tilde(Vec::new()));
        rest = after;
    }
    for unit in rest {
        match unit {
            Unit::Byte(byte) => word.push(*byte, Quoting::Unquoted),
            Unit::Part(part) => word.part((*part).clone()),
        }
    }
    word.finish()
}
