//! Programs that run code of other languages, which is not read.

use super::{LeafStreams, StandardInput};
use crate::script::leaf::{Argument, HoleKind};

/// Interpreters of other languages, and the letters of their options with code.
const INTERPRETERS: [(&str, &str); 15] = [
    ("python", "c"),
    ("pypy", "c"),
    ("node", "ep"),
    ("nodejs", "ep"),
    ("bun", "ep"),
    ("deno", ""),
    ("tsx", "ep"),
    ("perl", "eE"),
    ("ruby", "e"),
    ("php", "rBRE"),
    ("lua", "e"),
    ("Rscript", "e"),
    ("osascript", "e"),
    ("tclsh", ""),
    ("expect", "c"),
];

/// Returns true if a program runs code of another language: in an option, or on its input.
pub(super) fn is_foreign(name: &str, words: &[Argument], streams: &LeafStreams) -> bool {
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
        let runs: [&[u8]; 6] = [b"system(", b"| \"", b"|\"", b"|&", b"| getline", b"|getline"];
        let has = |text: &[u8]| runs.iter().any(|part| text.windows(part.len()).any(|window| window == *part));
        return words[1..].iter().any(|word| has(&word.with_marks()));
    }
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, letters)) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == base) else { return false };
    let has_code = |word: &[u8]| {
        let is_long = matches!(word, b"--eval" | b"--print" | b"eval") || word.starts_with(b"--eval=");
        let is_short = word.len() > 1 && word[0] == b'-' && word[1] != b'-';
        is_long || (is_short && word[1..].iter().any(|letter| letters.as_bytes().contains(letter)))
    };
    let mut operands =
        words[1..].iter().filter(|word| !word.text().is_some_and(|text| text.len() > 1 && text[0] == b'-'));
    let operand = operands.next().and_then(Argument::text);
    let is_fed = !matches!(streams.input(), StandardInput::Outer);
    let reads_input = words.get(1).is_some_and(|word| word.is_only(&HoleKind::Process))
        || matches!(operand, Some(b"-" | b"/dev/stdin"))
        || (operand.is_none() && is_fed);
    let first_options =
        words[1..].iter().take_while(|word| word.text().is_none_or(|text| text.starts_with(b"-") || text == b"eval"));
    reads_input || first_options.filter_map(Argument::text).any(has_code)
}
