//! What commands write, as far as their words tell: for a shell, `xargs` or `read` behind a pipe.

use std::rc::Rc;

use super::git::git_verb;
use super::{LeafStreams, StandardInput};
use crate::script::leaf::{Argument, ArgumentPiece, HoleKind, HoleReach};

/// What a command writes, if its words tell.
pub(super) fn written(words: &[Argument], streams: &LeafStreams) -> Option<StandardInput> {
    let (program, arguments) = words.split_first()?;
    let name = program.text()?;
    if name == b"cat" && arguments.is_empty() {
        return Some(streams.input()).filter(|input| matches!(input, StandardInput::Text(_) | StandardInput::Lines(_)));
    }
    if passes_lines(name, arguments) {
        return match streams.input() {
            StandardInput::Text(text) | StandardInput::Lines(text) => Some(StandardInput::Lines(text)),
            _ => None,
        };
    }
    written_text(name, words).map(StandardInput::Text)
}

/// Returns true if a program writes some lines of its input, as they are.
fn passes_lines(name: &[u8], arguments: &[Argument]) -> bool {
    let is_number = |text: &[u8]| text.iter().all(u8::is_ascii_digit);
    let is_option = |word: &&Argument| word.text().is_some_and(|text| text.len() > 1 && text[0] == b'-');
    match name {
        b"head" | b"tail" | b"sort" | b"uniq" | b"tac" => {
            arguments.iter().all(|word| is_option(&word) || word.text().is_some_and(is_number))
        }
        b"grep" | b"egrep" | b"fgrep" => {
            let changes_nothing = |word: &Argument| {
                let letters = word.text().unwrap_or_default();
                letters[1..].iter().all(|letter| b"EFGPaivwxz".contains(letter))
            };
            let operands = arguments.iter().filter(|word| !is_option(word)).count();
            operands == 1 && arguments.iter().filter(is_option).all(changes_nothing)
        }
        _ => false,
    }
}

/// The text that a program writes: words of `echo` and `printf`, and names of files.
fn written_text(name: &[u8], words: &[Argument]) -> Option<Rc<Argument>> {
    let arguments = &words[1..];
    match name {
        b"echo" => {
            let begin = arguments.iter().take_while(|word| matches!(word.text(), Some(b"-n" | b"-e" | b"-E"))).count();
            joined_lines(&arguments[begin..], b" ")
        }
        b"printf" => match arguments {
            [text] if !text.with_marks().contains(&b'%') => {
                // The usual line ends; what else a backslash stands for is not known.
                let lines = |piece: &ArgumentPiece| match piece {
                    ArgumentPiece::Text(text) => ArgumentPiece::Text(with_line_ends(text)),
                    hole @ ArgumentPiece::Hole(_) => hole.clone(),
                };
                joined_lines(&[Argument { pieces: text.pieces.iter().map(lines).collect() }], b"")
            }
            // What ends in a NUL may have ends of lines in it.
            [format, texts @ ..] if format.text() == Some(b"%s\\0") && texts.iter().any(has_line_end) => None,
            [format, texts @ ..] if matches!(format.text(), Some(b"%s" | b"%s\\n" | b"%s\\0")) => {
                let between: &[u8] = if format.text() == Some(b"%s") { b"" } else { b"\n" };
                joined_lines(texts, between)
            }
            _ => None,
        },
        b"ls" => {
            let is_option = |word: &&Argument| word.with_marks().starts_with(b"-");
            let names_itself = arguments.iter().filter(is_option).any(|word| word.with_marks().contains(&b'd'));
            let operands: Vec<Argument> = arguments.iter().filter(|word| !is_option(word)).cloned().collect();
            let files = if names_itself { operands } else { vec![below(&Argument::of_text(b"."))] };
            joined_lines(&files, b"\n")
        }
        b"find" => {
            let prints_otherwise = arguments.iter().filter_map(Argument::text).any(|word| {
                [&b"-exec"[..], b"-ok", b"-print", b"-fprint", b"-ls"].iter().any(|name| word.starts_with(name))
                    && !matches!(word, b"-print" | b"-print0")
            });
            if prints_otherwise { None } else { joined_lines(&found_files("find", words), b"\n") }
        }
        b"fd" | b"fdfind" => joined_lines(&found_files("fd", words), b"\n"),
        b"git" => lists_files_of_git(words).then(|| joined_lines(&[below(&Argument::of_text(b"."))], b"\n"))?,
        b"grep" | b"egrep" | b"fgrep" | b"rg" => joined_lines(&files_of_grep(arguments)?, b"\n"),
        _ => None,
    }
}

/// Returns true if git prints names of files in its directory, one a line.
fn lists_files_of_git(words: &[Argument]) -> bool {
    let verb = git_verb(words);
    let Some(arguments) = words.get(verb + 1..).filter(|_| verb == 1) else { return false };
    let has = |option: &[u8]| arguments.iter().any(|word| word.text() == Some(option));
    let goes_up = |word: &Argument| word.with_marks().windows(2).any(|two| two == b"..");
    match words[verb].text() {
        Some(b"ls-files") => !arguments.iter().any(goes_up),
        Some(b"diff" | b"show" | b"diff-tree") => has(b"--name-only"),
        _ => false,
    }
}

/// The files that `grep -l` may name. `None` if it prints something else.
fn files_of_grep(arguments: &[Argument]) -> Option<Vec<Argument>> {
    let has_letter = |text: &[u8], letters: &[u8]| {
        text.len() > 1 && text[0] == b'-' && text[1] != b'-' && text[1..].iter().any(|letter| letters.contains(letter))
    };
    let options = || arguments.iter().filter_map(Argument::text).filter(|text| text.starts_with(b"-"));
    let lists = options().any(|text| has_letter(text, b"lL") || text.starts_with(b"--files-with"));
    let has_pattern = options().any(|text| has_letter(text, b"ef") || text.starts_with(b"--regexp"));
    let operands = arguments.iter().filter(|word| !word.with_marks().starts_with(b"-")).skip(1);
    let files: Vec<Argument> = operands.map(below).collect();
    let here = || vec![below(&Argument::of_text(b"."))];
    (lists && !has_pattern).then(|| if files.is_empty() { here() } else { files })
}

fn has_line_end(word: &Argument) -> bool {
    word.with_marks().contains(&b'\n')
}

/// The text with a line's end for each `\n`.
fn with_line_ends(text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|two| two[0] == b'\\') {
        match rest[at + 1] {
            b'n' => lines.extend_from_slice(&[&rest[..at], b"\n"].concat()),
            _ => lines.extend_from_slice(&rest[..at + 2]),
        }
        rest = &rest[at + 2..];
    }
    lines.extend_from_slice(rest);
    lines
}

/// Words with a text between them. A backslash stands for another byte in some shells, so nothing is known of it.
fn joined_lines(words: &[Argument], between: &[u8]) -> Option<Rc<Argument>> {
    let mut whole = Argument::default();
    for (at, word) in words.iter().enumerate() {
        if word.with_marks().contains(&b'\\') {
            return None;
        }
        if at > 0 {
            whole.push_text(between);
        }
        whole.pieces.extend(word.pieces.iter().cloned());
    }
    whole.push_text(b"\n");
    Some(Rc::new(whole.joined()))
}

/// The files that `find` or `fd` with these words may name.
pub(super) fn found_files(name: &str, words: &[Argument]) -> Vec<Argument> {
    let lead = |word: &Argument| word.with_marks().first().copied();
    let mut starts: Vec<&Argument> = match name {
        "find" => {
            let is_option = |word: &&Argument| matches!(word.text(), Some(b"-H" | b"-L" | b"-P"));
            let behind = words.iter().skip(1).skip_while(is_option);
            behind.take_while(|word| !matches!(lead(word), Some(b'-' | b'(' | b'!'))).collect()
        }
        // Its first operand is a pattern.
        _ => words.iter().skip(1).filter(|word| lead(word) != Some(b'-')).skip(1).collect(),
    };
    let here = Argument::of_text(b".");
    if starts.is_empty() {
        starts.push(&here);
    }
    let name = sought_name(words);
    let files = starts.into_iter().map(|start| {
        let mut file = below(start);
        if let Some(name) = name {
            file.push_text(&[b"/", name].concat());
        }
        file
    });
    files.collect()
}

/// A file in a directory.
fn below(directory: &Argument) -> Argument {
    let mut file = directory.clone();
    file.push_text(b"/");
    file.push_hole(HoleKind::Filled, HoleReach::Within);
    file
}

/// The name that all found files have: of `-name` without a pattern, if nothing stands beside it.
fn sought_name(words: &[Argument]) -> Option<&[u8]> {
    let has_others = |word: &Argument| matches!(word.text(), Some(b"-o" | b"-or" | b"!" | b"-not" | b","));
    let at = words.iter().position(|word| word.text() == Some(b"-name"))?;
    let name = words.get(at + 1).and_then(Argument::text)?;
    let is_plain = !name.iter().any(|byte| b"*?[\\".contains(byte)) && !words.iter().any(has_others);
    is_plain.then_some(name)
}
