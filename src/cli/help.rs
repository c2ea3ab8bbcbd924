//! The output of `rexec help`: the help made from the table of verbs, and the pages of the manual.
//!
//! Invariants: every verb and every page is listed in [`all`]; no line of the help has over 79 columns, no page's line
//! over 80. The pages' facts are checked against the code in `tests/black_box/manual.rs`.

mod narrow;

use std::fmt::Write;

use rexec_sh::protocol::notice::Notice;

use super::look::Look;
use super::verb::{Group, OptionText, Verb};
use crate::text::nearest::nearest;

/// A page of the manual.
#[derive(Debug)]
pub(super) struct Page {
    /// As in `rexec help NAME`.
    pub(super) name: &'static str,
    /// The topic, as a phrase.
    pub(super) about: &'static str,
    pub(super) text: &'static str,
}

/// A page from its name and its topic.
macro_rules! page {
    ($name:literal, $about:literal) => {
        Page { name: $name, about: $about, text: include_str!(concat!("help/", $name, ".md")) }
    };
}

/// The pages of the manual, in the order of [`all`]: Markdown that reads well as it is.
pub(super) const PAGES: [Page; 14] = [
    page!("agents", "how to start each agent so that you see its commands"),
    page!("codex", "how Codex runs commands through rexec exec-server"),
    page!("console", "how to read the console, and what it never lets through"),
    page!("commands", "what a command gets, and how the real shell differs"),
    page!("environment", "the variables for callers, rexec-host and rexec"),
    page!("exit-codes", "what each exit code says"),
    page!("journal", "what is kept, in which format, and which secrets are masked"),
    page!("security", "who can use the host, and what happens to sandboxed agents"),
    page!("json", "requests from programs"),
    page!("protocol", "many commands on one connection: JSON-RPC"),
    page!("clients", "clients of JSON-RPC in Python and JavaScript"),
    page!("limits", "what rexec does not do, and its numbers"),
    page!("measured", "what it costs"),
    page!("changes", "what is new, and what each format's version promises"),
];

/// The variables that every verb reads, and their meanings.
pub(super) const ENVIRONMENT: [(&str, &str); 2] = [
    ("REXEC_SOCKET", "the host's socket (default /run/user/UID/rexec/host.sock, else /tmp/rexec-UID/host.sock)"),
    ("REXEC_HOME", "the journals' directory (default ~/.rexec)"),
];

/// rexec's purpose, in a phrase.
pub(super) const ABOUT: &str = "looks after rexec-host, which runs the commands of AI coding agents";

/// Columns of a line of help.
const COLUMNS: usize = 79;
/// The column in which explanations begin.
const INDENT: usize = 20;

/// [`INDENT`] in the help for rexec-host.
const HOST_INDENT: usize = 28;
/// The text after its options.
const HOST_END: &str = include_str!("help/rexec-host.txt");

/// Prints a help, in the width of the terminal.
pub(super) fn say(text: &str) -> Result<u8, Notice> {
    super::say(&narrow::fitted(text, Look::of_output().columns))
}

/// Runs a verb, or prints its help if the command line wants that.
pub(super) fn run(verb: &Verb, parser: &mut lexopt::Parser) -> Result<u8, Notice> {
    verb.run(parser)?.map_or_else(|| say(&verb_help(verb)), Ok)
}

/// `rexec --help`.
pub(super) fn all(verbs: &[&Verb]) -> String {
    let mut text = format!("rexec: {ABOUT}\n\nusage: rexec COMMAND [options] [arguments]\n");
    text.push_str("       rexec help [COMMAND | TOPIC]\n");
    for (group, heading) in Group::ALL {
        if !verbs.iter().any(|verb| verb.group == group) {
            continue;
        }
        let _ = writeln!(text, "\n{heading}:");
        for verb in verbs.iter().filter(|verb| verb.group == group) {
            line(&mut text, &term(verb), verb.summary);
        }
        if group == Group::Flag {
            line(&mut text, "-h, --help", "print this help; after a command, the help for that command");
            line(&mut text, "-V, --version", "print the version");
        }
    }
    text.push_str("\ntopics, as in rexec help agents:\n");
    PAGES.iter().for_each(|page| line(&mut text, page.name, page.about));
    text.push_str("\nenvironment:\n");
    ENVIRONMENT.iter().for_each(|(name, says)| line(&mut text, name, says));
    text.push_str("\nexamples:\n  rexec ps\n  rexec kill 12\n  rexec help agents | less\n");
    text
}

/// A verb in the list of verbs: `kill N...`, `-l, --list [N]`.
fn term(verb: &Verb) -> String {
    // The first form of the arguments is enough in a list.
    let arguments = verb.words().usage.split(" | ").next().unwrap_or_default();
    format!("{} {arguments}", verb.term).trim_end().to_owned()
}

/// Writes a term and its explanation, which begins in a column of its own.
fn line(text: &mut String, term: &str, explanation: &str) {
    let mut column = 2 + term.len();
    let _ = write!(text, "  {term}");
    if column >= INDENT {
        text.push('\n');
        column = 0;
    }
    let mut is_first = true;
    for word in explanation.split(' ') {
        if is_first || column + 1 + word.len() > COLUMNS {
            if !is_first {
                text.push('\n');
                column = 0;
            }
            let _ = write!(text, "{:1$}{word}", "", INDENT - column);
            column = INDENT + word.len();
            is_first = false;
        } else {
            let _ = write!(text, " {word}");
            column += 1 + word.len();
        }
    }
    text.push('\n');
}

/// `rexec VERB --help`.
pub(super) fn verb_help(verb: &Verb) -> String {
    let Verb { summary, text, .. } = verb;
    let mut text = format!("{}: {summary}\n\nusage: {}\n\n{text}\noptions:\n", verb.program(), verb.usage());
    let own = OptionText::help("print this help");
    let mut options = verb.options();
    if verb.group == Group::Program {
        // The last row is that of the version.
        options.insert(options.len() - 1, own);
        options.iter().for_each(|option| explain(&mut text, option));
        return text + "\n" + HOST_END;
    }
    options.push(own);
    options.iter().for_each(|option| line(&mut text, &option.term(), option.help));
    text.push_str("\nexit codes:\n");
    codes(verb).iter().for_each(|(code, says)| line(&mut text, &code.to_string(), says));
    if !verb.examples.is_empty() {
        text.push_str("\nexamples:\n");
        verb.examples.iter().for_each(|example| _ = writeln!(text, "  {example}"));
    }
    text
}

/// Writes an option of rexec-host, whose explanations have their own lines.
fn explain(text: &mut String, option: &OptionText) {
    let explanation = option.help.replace('\n', &format!("\n{:HOST_INDENT$}", ""));
    let _ = writeln!(text, "  {:1$}{explanation}", option.term(), HOST_INDENT - 2);
}

/// All exit codes of a verb, smallest first.
pub(super) fn codes(verb: &Verb) -> Vec<(u8, &'static str)> {
    let mut codes = verb.codes.to_vec();
    for usual in [(0, "done"), (2, "the call is wrong")] {
        if codes.iter().all(|(code, _)| *code != usual.0) {
            codes.push(usual);
        }
    }
    codes.sort_unstable();
    codes
}

/// The verb of this name, with or without its dashes.
pub(super) fn verb(verbs: &[&'static Verb], word: &str) -> Result<&'static Verb, Notice> {
    let bare = word.trim_start_matches('-');
    let exact = verbs.iter().copied().find(|verb| verb.names().any(|name| name == word));
    let found = exact.or_else(|| verbs.iter().copied().find(|verb| verb.bare() == bare));
    found.ok_or_else(|| no_help(word, &verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>()))
}

/// The help for a verb, or a page of the manual.
pub(super) fn topic(verbs: &[&'static Verb], word: &str) -> Result<String, Notice> {
    if let Some(page) = PAGES.iter().find(|page| page.name == word) {
        return Ok(page.text.to_owned());
    }
    let names = || verbs.iter().map(|verb| verb.name()).chain(PAGES.iter().map(|page| page.name));
    verb(verbs, word).map(verb_help).map_err(|_| no_help(word, &names().collect::<Vec<_>>()))
}

fn no_help(word: &str, names: &[&str]) -> Notice {
    let text = format!("there is no help on {}", super::quoted(word));
    match nearest(word, names) {
        Some(meant) => {
            Notice::usage(text, format_args!("did you mean rexec help {meant}? rexec help lists all topics"))
        }
        None => Notice::usage(text, "rexec help lists all topics"),
    }
}
