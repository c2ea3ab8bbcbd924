//! Words that `xargs`, `parallel` and their like put into the command that they run.

use super::{LeafStreams, StandardInput};
use crate::script::leaf::{Argument, HoleReach};

/// Puts words from another program in the place of a text, or behind the last word. Within a word they are a hole.
pub(super) fn put_in_words(words: &mut Vec<Argument>, replaced: Option<&[u8]>, given: &[Argument]) {
    let mut has_place = false;
    for mut word in std::mem::take(words) {
        if replaced.is_some() && word.text() == replaced {
            has_place = true;
            words.extend_from_slice(given);
        } else {
            has_place |= replaced.is_some_and(|replaced| word.fill(replaced));
            words.push(word);
        }
    }
    if !has_place {
        words.extend_from_slice(given);
    }
}

/// The words that `xargs` with these options reads on its input: those that the text tells, or any.
pub(super) fn given_words(options: &[Argument], streams: &LeafStreams) -> Vec<Argument> {
    let has = |names: &[&[u8]]| {
        options.iter().filter_map(Argument::text).any(|option| names.iter().any(|name| option.starts_with(name)))
    };
    let has_lines = replaced_text(options).is_some() || has(&[b"-0", b"--null", b"-d", b"--delimiter"]);
    let known = match streams.input() {
        StandardInput::Text(text) | StandardInput::Lines(text) if !has(&[b"-a", b"--arg-file"]) => {
            let blanks: &[u8] = if has_lines { b"\n" } else { b" \t\n" };
            text.split(blanks).filter(|_| has_lines || !text.with_marks().iter().any(|byte| b"'\"\\".contains(byte)))
        }
        _ => None,
    };
    known.unwrap_or_else(|| vec![Argument::filled(HoleReach::Words)])
}

/// The words of the code that `parallel` runs: its program, and in the place of `{}`, or at the end, what stands behind `:::`
/// or on its input. Without a program, it runs these words as code.
pub(super) fn parallel_words(mut words: Vec<Argument>, options: &[Argument], streams: &LeafStreams) -> Vec<Argument> {
    let is_separator = |word: &Argument| matches!(word.text(), Some(b":::" | b":::+" | b"::::" | b"::::+"));
    let Some(at) = words.iter().position(is_separator) else {
        // It reads lines.
        let given = given_words(&[options, &[Argument::of_text(b"-0")]].concat(), streams);
        put_in_code(&mut words, &given);
        return words;
    };
    let behind = words.split_off(at);
    let reads_files = behind.iter().any(|word| word.text().is_some_and(|text| text.starts_with(b"::::")));
    let given: Vec<Argument> = match reads_files {
        true => vec![Argument::filled(HoleReach::Words)],
        false => behind.into_iter().filter(|word| !is_separator(word)).collect(),
    };
    if words.is_empty() {
        return given.iter().flat_map(|code| [code.clone(), Argument::of_text(b";")]).collect();
    }
    put_in_code(&mut words, &given);
    words
}

/// Puts words into those of a code: in the place of `{}`, or behind the last one. What stands for a part of a word, or for one
/// of several, is a hole.
fn put_in_code(code: &mut Vec<Argument>, given: &[Argument]) {
    for part in [&b"{.}"[..], b"{/}", b"{//}", b"{/.}", b"{#}", b"{1}", b"{2}", b"{3}"] {
        code.iter_mut().for_each(|word| _ = word.fill(part));
    }
    let quoted: Vec<Argument> = given.iter().map(|word| Argument::of_text(&word.as_code())).collect();
    put_in_words(code, Some(b"{}"), &quoted);
}

/// The text that `xargs` with these options replaces. `None` if it adds words at the end.
pub(super) fn replaced_text(options: &[Argument]) -> Option<&[u8]> {
    let mut replaced = None;
    let mut words = options.iter().map(Argument::text);
    while let Some(word) = words.next() {
        replaced = match word {
            Some(b"-I" | b"-J") => words.next().flatten(),
            Some(b"-i" | b"--replace") => Some(&b"{}"[..]),
            Some([b'-', b'I' | b'J' | b'i', text @ ..]) => Some(text),
            Some(word) => word.strip_prefix(b"--replace=").or(replaced),
            None => replaced,
        };
    }
    replaced.filter(|text| !text.is_empty())
}
