//! Splits the text of a shell command into the words of its simple commands, as far as finding secrets needs it.
//!
//! Words are places in the text, without the quotes around them. Nothing is expanded: a word such as `a"b c"d` keeps its
//! inner quotes. The cost is linear in the text.

use std::ops::Range;

/// A simple command: its words, and what it is connected with.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<Range<usize>>,
    /// Its output is the input of the next one.
    pub(super) is_piped: bool,
    /// The lines of its here-documents.
    pub(super) documents: Vec<Range<usize>>,
}

/// A here-document whose lines have not come yet.
struct AwaitedLines {
    command: usize,
    end: Range<usize>,
    has_tabs: bool,
}

/// The simple commands of a text, in order, those in parentheses and substitutions, too.
pub(super) fn simple_commands(text: &[u8]) -> Vec<SimpleCommand> {
    let mut commands = vec![SimpleCommand::default()];
    let mut documents: Vec<AwaitedLines> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\\' if text.get(at + 1) == Some(&b'\n') => at += 2,
            b' ' | b'\t' | b'\r' => at += 1,
            b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'`' => {
                let is_pipe = byte == b'|'
                    && text.get(at + 1) != Some(&b'|')
                    && at.checked_sub(1).map(|at| text[at]) != Some(b'|');
                if let Some(last) = commands.last_mut().filter(|last| !last.words.is_empty()) {
                    last.is_piped = is_pipe;
                    commands.push(SimpleCommand::default());
                }
                at += 1;
                for document in documents.drain(..documents.len() * usize::from(byte == b'\n')) {
                    let (lines, next) = lines_of(text, at, &document);
                    commands[document.command].documents.push(lines);
                    at = next;
                }
            }
            b'<' | b'>' => {
                let end = at + text[at..].iter().take_while(|byte| matches!(byte, b'<' | b'>')).count();
                if &text[at..end] == b"<<" {
                    let has_tabs = text.get(end) == Some(&b'-');
                    let start = end + usize::from(has_tabs);
                    let start = start + text[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                    at = word_end(text, start);
                    let end = unquoted(text, start..at);
                    documents.push(AwaitedLines { command: commands.len() - 1, end, has_tabs });
                } else {
                    add(&mut commands, at..end);
                    at = end;
                }
            }
            _ => {
                let end = word_end(text, at);
                add(&mut commands, unquoted(text, at..end));
                at = end;
            }
        }
    }
    commands.retain(|command| !command.words.is_empty());
    commands
}

/// The lines of a document that begins here, and the place of what follows them.
fn lines_of(text: &[u8], start: usize, document: &AwaitedLines) -> (Range<usize>, usize) {
    let mut at = start;
    while at < text.len() {
        let len = memchr::memchr(b'\n', &text[at..]).unwrap_or(text.len() - at);
        let line = &text[at..at + len];
        let tabs = line.iter().take_while(|&&byte| document.has_tabs && byte == b'\t').count();
        if line[tabs..] == text[document.end.clone()] {
            return (start..at, at + len);
        }
        at += len + 1;
    }
    (start.min(text.len())..text.len(), text.len())
}

fn add(commands: &mut [SimpleCommand], word: Range<usize>) {
    if let Some(last) = commands.last_mut() {
        last.words.push(word);
    }
}

/// Where the word that begins at this place ends.
fn word_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut quote = None;
    while let Some(&byte) = text.get(at) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None | Some(b'"'), b'\\') => at += 1,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' | b'`') => break,
            (None, _) => {}
        }
        at += 1;
    }
    at.min(text.len())
}

/// The word without the quotes around it.
pub(super) fn unquoted(text: &[u8], word: Range<usize>) -> Range<usize> {
    let start = word.start + usize::from(word.len() >= 3 && text[word.start] == b'$' && text[word.start + 1] == b'\'');
    match text[start..word.end] {
        [open @ (b'\'' | b'"'), .., close] if open == close => start + 1..word.end - 1,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_shell() {
        for (text, expected) in [
            ("a b;c", "a b; c"),
            ("echo 'x y' \"z\\\"w\" | cat", "echo x y z\\\"w| cat"),
            ("a || b && c", "a; b; c"),
            ("x=1 a\\ b --k=\"v w\"", "x=1 a\\ b --k=\"v w\""),
            ("cat <<<'x y' >f", "cat <<< x y > f"),
            ("a $(b c) `d`", "a $; b c; d"),
            ("cat <<E; a b\nx y\nE\nc d", "cat; a b; c d"),
            ("cat <<-'E' |b\n\tx\n\tE\nc", "cat| b; c"),
            ("cat <<E", "cat"),
            ("'open", "'open"),
            ("$'a\\n' \\", "a\\n \\"),
            ("", ""),
        ] {
            let shown: Vec<String> = simple_commands(text.as_bytes())
                .iter()
                .map(|command| {
                    let words: Vec<&str> = command.words.iter().map(|word| &text[word.clone()]).collect();
                    words.join(" ") + if command.is_piped { "|" } else { ";" }
                })
                .collect();
            assert_eq!(shown.join(" ").trim_end_matches(';'), expected, "{text}");
        }
    }
}
