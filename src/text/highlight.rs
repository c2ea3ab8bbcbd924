//! Colours for output that has none of its own, for the human's console only.
//!
//! Programs on pipes write plain text. The console marks in it the things that a person looks for: errors and warnings
//! where compilers put them, results where test runners put them, the lines of a diff, and places in files.
//!
//! Invariants: only SGR sequences are added, and each line ends without any colour; no byte is taken, moved or held
//! back: a line that does not come in one piece stays plain; once a run has written an escape sequence, its output
//! passes unchanged; each byte is read a bounded number of times.

use memchr::memchr;

/// The longest line that is coloured, bytes. A longer one is data, and stays plain.
const LINE_BYTES_MAX: usize = 1 << 10;

const RED: &[u8] = b"\x1b[31m";
const BOLD_RED: &[u8] = b"\x1b[1;31m";
const GREEN: &[u8] = b"\x1b[32m";
const YELLOW: &[u8] = b"\x1b[33m";
const CYAN: &[u8] = b"\x1b[36m";
const MAGENTA: &[u8] = b"\x1b[35m";
const BOLD: &[u8] = b"\x1b[1m";
const PLAIN: &[u8] = b"\x1b[0m";
/// The tint of standard error: a muted red that is readable on light and dark.
const TINT: &[u8] = b"\x1b[38;5;131m";

/// Words at known places, and their colours.
const FIRST_WORDS: &[(&[u8], &[u8])] = &[
    (b"error:", BOLD_RED),
    (b"error[", BOLD_RED),
    (b"fatal:", BOLD_RED),
    (b"Error:", BOLD_RED),
    (b"ERROR", BOLD_RED),
    (b"FATAL", BOLD_RED),
    (b"panic:", BOLD_RED),
    (b"Traceback (most recent call last):", BOLD_RED),
    (b"npm error", BOLD_RED),
    (b"npm ERR!", BOLD_RED),
    (b"warning:", YELLOW),
    (b"warning[", YELLOW),
    (b"Warning:", YELLOW),
    (b"WARNING", YELLOW),
    (b"WARN", YELLOW),
    (b"npm warn", YELLOW),
    (b"npm WARN", YELLOW),
    (b"note:", CYAN),
    (b"help:", CYAN),
    (b"FAILED", BOLD_RED),
    (b"FAIL", BOLD_RED),
    (b"--- FAIL:", BOLD_RED),
    (b"not ok ", BOLD_RED),
    (b"PASSED", GREEN),
    (b"PASS", GREEN),
    (b"--- PASS:", GREEN),
    ("✓".as_bytes(), GREEN),
    ("✔".as_bytes(), GREEN),
    ("✗".as_bytes(), RED),
    ("✘".as_bytes(), RED),
    ("✕".as_bytes(), RED),
    ("×".as_bytes(), RED),
];

/// Ends of the line of one test, as Rust's, Python's and others' runners write them.
const LAST_WORDS: &[(&[u8], &[u8])] = &[
    (b" ... ok", GREEN),
    (b" ... FAILED", BOLD_RED),
    (b" ... FAIL", BOLD_RED),
    (b" ... ERROR", BOLD_RED),
    (b" ... ignored", YELLOW),
    (b" PASSED", GREEN),
    (b" FAILED", BOLD_RED),
    (b" SKIPPED", YELLOW),
];

/// Words after `FILE:LINE:COLUMN: `, as C compilers and linters write them.
const JUDGEMENTS: &[(&[u8], &[u8])] = &[
    (b"fatal error:", BOLD_RED),
    (b"error:", BOLD_RED),
    (b"error ", BOLD_RED),
    (b"warning:", YELLOW),
    (b"note:", CYAN),
];

/// The colours of one stream of a run.
#[derive(Debug, Default)]
pub struct Highlighter {
    /// The run has colours of its own.
    is_off: bool,
    is_tinted: bool,
    /// A line has begun that did not come in one piece.
    is_in_line: bool,
    /// The lines left in a diff's hunk: of the old file and of the new one.
    hunk: Option<(u32, u32)>,
}

impl Highlighter {
    /// Starts a run's output. `is_tinted` is true for its standard error.
    #[must_use]
    pub fn new(is_tinted: bool) -> Self {
        Self { is_tinted, ..Self::default() }
    }

    /// Appends these bytes with colours.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if !self.is_tinted || bytes.contains(&0x1b) {
            return self.mark(bytes, out);
        }
        let mut marked = Vec::with_capacity(bytes.len());
        self.mark(bytes, &mut marked);
        if self.is_off {
            return out.extend_from_slice(&marked);
        }
        for line in marked.split_inclusive(|&byte| byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            tinted(text, out);
            out.extend_from_slice(&line[text.len()..]);
        }
    }

    fn mark(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.is_off |= memchr(0x1b, bytes).is_some();
        if self.is_off {
            out.extend_from_slice(bytes);
            return;
        }
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let Some(text) = line.strip_suffix(b"\n").filter(|_| !self.is_in_line) else {
                self.is_in_line = !line.ends_with(b"\n");
                out.extend_from_slice(line);
                continue;
            };
            let (text, end) = match text.strip_suffix(b"\r") {
                Some(text) => (text, b"\r\n".as_slice()),
                None => (text, b"\n".as_slice()),
            };
            self.line(text, out);
            out.extend_from_slice(end);
        }
    }

    fn line(&mut self, text: &[u8], out: &mut Vec<u8>) {
        if text.len() > LINE_BYTES_MAX || memchr(b'\r', text).is_some() {
            self.hunk = None;
            out.extend_from_slice(text);
        } else if !self.diff(text, out) {
            judged(text, out);
        }
    }

    /// Colours a line of a unified diff. Returns true if it is one.
    fn diff(&mut self, text: &[u8], out: &mut Vec<u8>) -> bool {
        if let Some((old, new)) = &mut self.hunk {
            let (from_old, from_new, colour) = match text.first() {
                Some(b'+') => (0, 1, GREEN),
                Some(b'-') => (1, 0, RED),
                // A blank line of context may have lost its blank on the way.
                Some(b' ') | None => (1, 1, b"".as_slice()),
                // `\ No newline at end of file`
                Some(b'\\') => (0, 0, CYAN),
                _ => (u32::MAX, 0, b"".as_slice()),
            };
            if let (Some(less_old), Some(less_new)) = (old.checked_sub(from_old), new.checked_sub(from_new)) {
                (*old, *new) = (less_old, less_new);
                coloured(colour, text, out);
                if (*old, *new) == (0, 0) {
                    self.hunk = None;
                }
                return true;
            }
            self.hunk = None;
        }
        if let Some(hunk) = hunk_header(text) {
            self.hunk = Some(hunk).filter(|&hunk| hunk != (0, 0));
            coloured(CYAN, text, out);
            return true;
        }
        let is_header = [b"diff --git ".as_slice(), b"+++ ", b"--- a/", b"--- /dev/null"];
        let is_header = is_header.iter().any(|start| text.starts_with(start));
        if is_header {
            coloured(BOLD, text, out);
        }
        is_header
    }
}

/// B and D of `@@ -A,B +C,D @@`; 1 where they are left out.
fn hunk_header(text: &[u8]) -> Option<(u32, u32)> {
    let text = text.strip_prefix(b"@@ -")?;
    let end = text.windows(3).position(|three| three == b" @@")?;
    let ranges = std::str::from_utf8(&text[..end]).ok()?;
    let (old, new) = ranges.split_once(" +")?;
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => range.parse::<u32>().ok().map(|_| 1),
    };
    Some((length(old)?, length(new)?))
}

/// Colours the words of a compiler or test runner in a line.
fn judged(text: &[u8], out: &mut Vec<u8>) {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let (indent, rest) = text.split_at(blanks);
    out.extend_from_slice(indent);
    if let Some((word, colour)) = FIRST_WORDS.iter().find(|(word, _)| starts_with_word(rest, word)) {
        // `error[E0308]:` and `--- FAIL: TestX` are marked up to their colon.
        let until = if word.ends_with(b"[") { memchr(b']', rest).map_or(word.len(), |at| at + 1) } else { word.len() };
        coloured(colour, &rest[..until], out);
        placed(&rest[until..], out);
    } else if let Some(result) = rest.strip_prefix(b"test result: ") {
        out.extend_from_slice(b"test result: ");
        let until = memchr(b'.', result).unwrap_or(result.len());
        coloured(if result.starts_with(b"ok") { GREEN } else { BOLD_RED }, &result[..until], out);
        out.extend_from_slice(&result[until..]);
    } else if let Some(until) = failed_make(rest) {
        coloured(BOLD_RED, &rest[..until], out);
        out.extend_from_slice(&rest[until..]);
    } else if let Some((word, colour)) = LAST_WORDS.iter().find(|(word, _)| rest.ends_with(word)) {
        let at = rest.len() - word.trim_ascii_start().len();
        let at = at + if word.starts_with(b" ...") { 4 } else { 0 };
        placed(&rest[..at], out);
        coloured(colour, &rest[at..], out);
    } else if is_exception(rest) && blanks == 0 {
        let until = memchr(b':', rest).unwrap_or(rest.len());
        coloured(BOLD_RED, &rest[..until], out);
        out.extend_from_slice(&rest[until..]);
    } else {
        placed(rest, out);
    }
}

/// The end of the stars that begin make's errors: `make: ***`, `make[2]: ***`.
fn failed_make(text: &[u8]) -> Option<usize> {
    let level = text.strip_prefix(b"make")?;
    let stars = memchr(b':', level)?;
    let is_level = level[..stars].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'[' | b']'));
    (is_level && level[stars..].starts_with(b": *** ")).then_some("make".len() + stars + ": ***".len())
}

/// Returns true if a line begins with this word, and not with a longer one.
fn starts_with_word(text: &[u8], word: &[u8]) -> bool {
    let Some(rest) = text.strip_prefix(word) else { return false };
    let is_letter = word.last().is_some_and(u8::is_ascii_alphanumeric);
    !is_letter || !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// `ValueError: …`, `java.io.IOException: …`: the last line of a Python or Java trace.
fn is_exception(text: &[u8]) -> bool {
    let name = &text[..memchr(b':', text).unwrap_or(text.len())];
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    is_name && (name.ends_with(b"Error") || name.ends_with(b"Exception")) && name.len() > "Error".len()
}

/// Colours the file and line at the start of a line, and the judgement after them.
fn placed(text: &[u8], out: &mut Vec<u8>) {
    let arrow = text.strip_prefix(b"--> ").map_or(0, |_| 4);
    let Some((path, number)) = place(&text[arrow..]) else { return out.extend_from_slice(text) };
    let (path, number) = (path + arrow, number + arrow);
    out.extend_from_slice(&text[..arrow]);
    coloured(MAGENTA, &text[arrow..path], out);
    coloured(GREEN, &text[path..number], out);
    let rest = &text[number..];
    let behind = rest.strip_prefix(b": ").unwrap_or_default();
    let Some((word, colour)) = JUDGEMENTS.iter().find(|(word, _)| behind.starts_with(word)) else {
        return out.extend_from_slice(rest);
    };
    out.extend_from_slice(b": ");
    coloured(colour, word, out);
    out.extend_from_slice(&behind[word.len()..]);
}

/// The ends of the path and of the numbers of the `PATH:LINE` or `PATH:LINE:COLUMN` that begins a text.
fn place(text: &[u8]) -> Option<(usize, usize)> {
    let path = text.iter().position(|byte| matches!(byte, b':' | b' ' | b'\t'))?;
    let is_path = text[..path].iter().any(|byte| matches!(byte, b'.' | b'/')) && !text[..path].ends_with(b".");
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = |at: usize| (text.get(at) == Some(&b':')).then(|| digits(at + 1)).filter(|&count| count > 0);
    // `http://127.0.0.1:80` and `12:30:15` are no places in files.
    let is_place = is_path && !text[..path].iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.'));
    let line = number(path).filter(|_| is_place)?;
    let end = path + 1 + line;
    Some((path, end + number(end).map_or(0, |count| count + 1)))
}

/// Appends a marked line, and tints all parts without a mark.
fn tinted(line: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    while !rest.is_empty() {
        let mark = memchr(0x1b, rest).unwrap_or(rest.len());
        coloured(TINT, &rest[..mark], out);
        rest = &rest[mark..];
        let end = memchr::memmem::find(rest, PLAIN).map_or(rest.len(), |at| at + PLAIN.len());
        out.extend_from_slice(&rest[..end]);
        rest = &rest[end..];
    }
}

fn coloured(colour: &[u8], text: &[u8], out: &mut Vec<u8>) {
    if colour.is_empty() || text.is_empty() {
        return out.extend_from_slice(text);
    }
    [colour, text, PLAIN].into_iter().for_each(|part| out.extend_from_slice(part));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with colours named by their first letter, as `<r:text>`.
    fn seen(pieces: &[&str]) -> String {
        let (mut highlighter, mut out) = (Highlighter::new(false), Vec::new());
        pieces.iter().for_each(|piece| highlighter.push(piece.as_bytes(), &mut out));
        let mut text = String::from_utf8(out).unwrap();
        let names = [("1;31", "R"), ("31", "r"), ("32", "g"), ("33", "y"), ("36", "c"), ("35", "m"), ("1", "b")];
        for (code, name) in names {
            text = text.replace(&format!("\x1b[{code}m"), &format!("<{name}:"));
        }
        text.replace("\x1b[0m", ">")
    }

    #[test]
    fn compilers_and_test_runners_are_marked_where_they_speak() {
        let shown = [
            ("error[E0308]: mismatched types\n", "<R:error[E0308]>: mismatched types\n"),
            ("warning: unused variable\n", "<y:warning:> unused variable\n"),
            ("  --> src/main.rs:3:5\n", "  --> <m:src/main.rs><g::3:5>\n"),
            ("a.c:1:20: error: 'x' undeclared\n", "<m:a.c><g::1:20>: <R:error:> 'x' undeclared\n"),
            ("src/lib.rs:12:use std;\n", "<m:src/lib.rs><g::12>:use std;\n"),
            ("test a::b ... ok\n", "test a::b ... <g:ok>\n"),
            ("test a::b ... FAILED\n", "test a::b ... <R:FAILED>\n"),
            ("test result: ok. 3 passed; 0 failed\n", "test result: <g:ok>. 3 passed; 0 failed\n"),
            ("test result: FAILED. 1 passed\n", "test result: <R:FAILED>. 1 passed\n"),
            ("FAILED tests/test_a.py::test_b - assert 1\n", "<R:FAILED> tests/test_a.py::test_b - assert 1\n"),
            ("ValueError: no\n", "<R:ValueError>: no\n"),
            ("--- FAIL: TestX (0.00s)\n", "<R:--- FAIL:> TestX (0.00s)\n"),
            ("make: *** [Makefile:2: test] Error 1\n", "<R:make: ***> [Makefile:2: test] Error 1\n"),
            ("make[2]: *** No rule\n", "<R:make[2]: ***> No rule\n"),
            ("  ✓ adds (2 ms)\n", "  <g:✓> adds (2 ms)\n"),
        ];
        for (line, marked) in shown {
            assert_eq!(seen(&[line]), marked);
        }
        for plain in [
            "errors are values\n",
            "make: ok\n",
            "makes: *** x\n",
            "FAILEDX\n",
            "12:30:15 up\n",
            "http://a.b:80\n",
            "127.0.0.1:80 x\n",
            "ok\n",
            "\n",
        ] {
            assert_eq!(seen(&[plain]), plain);
        }
    }

    #[test]
    fn a_diff_is_marked_as_far_as_its_hunks_reach() {
        assert_eq!(
            seen(&["--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn\n a\n-b\n+c\n-not of it\n"]),
            "<b:--- a/x>\n<b:+++ b/x>\n<c:@@ -1,2 +1,2 @@ fn>\n a\n<r:-b>\n<g:+c>\n-not of it\n"
        );
        assert_eq!(seen(&["@@ -0,0 +1 @@\n+x\n+y\n"]), "<c:@@ -0,0 +1 @@>\n<g:+x>\n+y\n");
        assert_eq!(seen(&["- a list\n+ b\n"]), "- a list\n+ b\n");
    }

    #[test]
    fn standard_error_has_a_tint_around_its_marks() {
        let (mut highlighter, mut out) = (Highlighter::new(true), Vec::new());
        highlighter.push(b"plain\nerror: x\n", &mut out);
        let tint = "\x1b[38;5;131m";
        let expected = format!("{tint}plain\x1b[0m\n\x1b[1;31merror:\x1b[0m{tint} x\x1b[0m\n");
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_has_colours_or_comes_in_pieces_stays_as_it_is() {
        assert_eq!(seen(&["err", "or: x\n", "error: y\n"]), "error: x\n<R:error:> y\n");
        assert_eq!(seen(&["\x1b[31mred\n", "error: y\n"]), "<r:red\nerror: y\n");
        assert_eq!(seen(&["error: a\rb\n"]), "error: a\rb\n");
        assert_eq!(seen(&["error: a\r\n"]), "<R:error:> a\r\n");
        let long = format!("error: {}\n", "x".repeat(LINE_BYTES_MAX));
        assert_eq!(seen(&[&long]), long);
    }
}
