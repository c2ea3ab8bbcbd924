//! Messages on standard error: notices, and remarks on a result.
//!
//! Invariants: a message is plain text, whoever chose a part of it; on a terminal no line breaks within a word;
//! elsewhere each sentence has one line, for programs that read it.

use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use rexec_sh::protocol::notice::{Notice, remark};

use super::look::columns_of;
use crate::sys::pty;
use crate::text::escape::escape_text;

/// The least columns of a line after its indent.
const COLUMNS_MIN: usize = 20;

/// Prints a message that is not part of the result.
pub(super) fn tell(text: impl Display) {
    put(remark(text));
}

/// Prints a question; the answer is typed in the same line.
fn ask(question: impl Display) {
    // Without a standard error nobody reads it.
    let _ = io::stderr().lock().write_all(escape_text(&question.to_string()).as_bytes());
}

/// Asks a question, and returns true if the answer is yes.
pub(super) fn is_yes(question: impl Display) -> bool {
    ask(question);
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}

/// The same at a terminal. `command` is the command line that does it, with `--yes` without a question.
///
/// # Errors
/// There is no terminal.
pub(super) fn is_wanted(question: impl Display, command: &str) -> Result<bool, Notice> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let hint = format_args!("{command} --yes does it without a question");
        return Err(Notice::failed("nothing was changed, because there is no terminal to ask at", hint));
    }
    Ok(is_yes(question))
}

/// Writes a rendered notice, or several.
pub(super) fn put(text: impl Display) {
    let error = io::stderr();
    let text = escape_text(&text.to_string());
    let text = match pty::size(&error).filter(|size| size.cols > 0) {
        Some(size) => text.lines().map(|line| broken(line, size.cols.into())).collect(),
        None => text,
    };
    // Without a standard error nobody reads it.
    let _ = error.lock().write_all(text.as_bytes());
}

/// The line, broken between words if it is wider than this. Further rows are indented to its prefix, as in `hint: `.
fn broken(line: &str, columns: usize) -> String {
    let indent = ["rexec: ", "hint: "].into_iter().find(|prefix| line.starts_with(prefix)).map_or(0, str::len);
    broken_behind(indent, line, columns)
}

/// The line, broken between words if it is wider than this. Further rows are indented by this many blanks. The first
/// word of the line that may be broken stands after as many.
pub(super) fn broken_behind(indent: usize, line: &str, columns: usize) -> String {
    let columns = columns.max(indent + COLUMNS_MIN);
    let start = line.char_indices().nth(indent).map_or(line.len(), |(at, _)| at);
    let (mut text, mut used) = (line[..start].to_owned(), columns_of(&line[..start]));
    let mut is_first = true;
    for word in line[start..].split(' ') {
        let width = columns_of(word);
        if std::mem::take(&mut is_first) {
            used += width;
        } else if used + 1 + width > columns && used > indent {
            text = text + "\n" + &" ".repeat(indent);
            used = indent + width;
        } else {
            text.push(' ');
            used += 1 + width;
        }
        text.push_str(word);
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_between_its_words() {
        let hint = "hint: rexec ps shows what runs, and rexec log what ran";
        assert_eq!(broken(hint, 80), format!("{hint}\n"));
        assert_eq!(broken(hint, 31), "hint: rexec ps shows what runs,\n      and rexec log what ran\n");
        let path = "rexec: /a/long/path/that/has/no/place/to/break is not there";
        assert_eq!(broken(path, 30), "rexec: /a/long/path/that/has/no/place/to/break\n       is not there\n");
        assert_eq!(broken("HOST NOT FOUND", 4), "HOST NOT FOUND\n");
        assert_eq!(broken("", 80), "\n");
        let finding = "ok      socket  /a/long/path does not exist yet";
        assert_eq!(
            broken_behind(16, finding, 36),
            "ok      socket  /a/long/path does\n                not exist yet\n"
        );
    }
}
