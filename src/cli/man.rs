//! The manual pages in roff (man(7)), made of the table of verbs.
//!
//! Invariant: no text begins a line of roff with a dot or an apostrophe, and every backslash in it is escaped, so all of it
//! is printed as it stands. `man -l` and `mandoc -T lint` take the pages without a warning.

use std::fmt::Write;

use super::help::{self, ABOUT, ENVIRONMENT, PAGES};
use super::verb::{Group, Verb};

/// The day of the last change of the pages' text, as man(7) wants it.
const DATE: &str = "2026-11-22";

/// The bytes of a line of text, before its escapes.
const FILL_BYTES: usize = 68;

pub(super) fn page(verb: &Verb) -> String {
    let title = format!("rexec-{}", verb.bare());
    let mut page = head(&title, verb.summary);
    synopsis(&mut page, &[verb]);
    page.push_str(".SH DESCRIPTION\n");
    paragraphs(&mut page, verb.text);
    let options = verb.options();
    if !options.is_empty() {
        page.push_str(".SH OPTIONS\n");
        options.iter().for_each(|option| item(&mut page, option.term().trim_start(), option.help));
    }
    page.push_str(".SH EXIT STATUS\n");
    help::codes(verb).iter().for_each(|(code, says)| item(&mut page, &code.to_string(), says));
    if !verb.examples.is_empty() {
        page.push_str(".SH EXAMPLES\n");
        preformatted(&mut page, &verb.examples.join("\n"));
    }
    page.push_str(".SH SEE ALSO\n.BR rexec (1)\n");
    page
}

/// The page of rexec itself.
pub(super) fn overview(verbs: &[&Verb]) -> String {
    let mut page = head("rexec", ABOUT);
    synopsis(&mut page, verbs);
    page.push_str(".SH DESCRIPTION\n");
    paragraphs(
        &mut page,
        "rexec is the command line of rexec-host, which runs the commands of AI coding agents in a terminal of yours. \
         Each command of rexec has a page of its own, as rexec-ps(1).",
    );
    for (group, heading) in Group::ALL {
        if !verbs.iter().any(|verb| verb.group == group) {
            continue;
        }
        let _ = writeln!(page, ".SS \"{}\"", escaped(heading));
        for verb in verbs.iter().filter(|verb| verb.group == group) {
            item(&mut page, format!("{} {}", verb.term, verb.words().usage).trim_end(), verb.summary);
        }
    }
    page.push_str(".SH ENVIRONMENT\n");
    ENVIRONMENT.iter().for_each(|(name, says)| item(&mut page, name, says));
    page.push_str(".SH TOPICS\n");
    PAGES.iter().for_each(|topic| item(&mut page, &format!("rexec help {}", topic.name), topic.about));
    page
}

fn head(title: &str, summary: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (upper, title) = (title.to_uppercase(), escaped(title));
    let mut page = format!(".TH {upper} 1 {DATE} \"rexec {version}\" \"rexec manual\"\n.SH NAME\n{title} \\-\n");
    fill(&mut page, summary);
    page
}

fn synopsis(page: &mut String, verbs: &[&Verb]) {
    page.push_str(".SH SYNOPSIS\n");
    let lines: Vec<String> = verbs.iter().map(|verb| verb.usage()).collect();
    preformatted(page, &lines.join("\n"));
}

/// A term and its meaning.
fn item(page: &mut String, term: &str, says: &str) {
    let _ = writeln!(page, ".TP\n.B {}", escaped(term));
    fill(page, says);
}

/// Paragraphs with an empty line between them. Lines that begin with two spaces stay unchanged.
fn paragraphs(page: &mut String, text: &str) {
    for (at, paragraph) in text.trim_end().split("\n\n").enumerate() {
        if at > 0 {
            page.push_str(".PP\n");
        }
        if paragraph.starts_with("  ") {
            preformatted(page, paragraph);
        } else {
            fill(page, paragraph);
        }
    }
}

/// Text that roff may break into lines anywhere.
fn fill(page: &mut String, text: &str) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + word.len() >= FILL_BYTES {
            let _ = writeln!(page, "{}", escaped(&line));
            line.clear();
        }
        let space = if line.is_empty() { "" } else { " " };
        let _ = write!(line, "{space}{word}");
    }
    let _ = writeln!(page, "{}", escaped(&line));
}

fn preformatted(page: &mut String, text: &str) {
    page.push_str(".nf\n");
    text.lines().for_each(|line| _ = writeln!(page, "{}", escaped(line)));
    page.push_str(".fi\n");
}

/// Text that roff prints unchanged.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('"', "\\(dq");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_an_order_to_roff() {
        assert_eq!(escaped(".nf"), "\\&.nf");
        assert_eq!(escaped("a\\b \"c\" --d"), "a\\eb \\(dqc\\(dq \\-\\-d");
    }
}
