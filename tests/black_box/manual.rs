//! The manual says what the code does: the pages of `rexec help`, the two help texts and the README are compared with
//! constants, sources and scripts.
//!
//! The pages are asked of the program. They are compared without regard to where their lines break.

use crate::support::programs;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rexec_host::limits::*;
use rexec_host::recorder::Bounds;
use rexec_sh::protocol::environment::{DEFAULTS, LIVE};
use rexec_sh::protocol::wire;

const REXEC: &str = env!("CARGO_BIN_EXE_rexec");
const HOST: &str = env!("CARGO_BIN_EXE_rexec-host");

/// Long options in the manual that belong to other programs.
const FOREIGN: [&str; 8] =
    ["--oneline", "--stat", "--path", "--workspace", "--bash-env", "--environment-class", "--sandbox", "--token"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).expect("the README")
}

/// What a program prints on standard output; it must succeed and print nothing else.
fn said(program: &str, args: &[&str]) -> String {
    let output = programs::command(program).args(args).output().expect("the program starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The names of the topics, as `rexec help` lists them.
fn topics() -> Vec<String> {
    let all = said(REXEC, &["help"]);
    let list = all.split("\ntopics").nth(1).expect("a list of topics").lines().skip(1);
    list.map_while(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// The verbs, and the flags that act as verbs without their dashes.
fn verbs() -> Vec<String> {
    crate::verbs::verbs().iter().map(|verb| verb.trim_start_matches('-').to_owned()).collect()
}

/// All pages with their names.
fn pages() -> Vec<(String, String)> {
    topics().into_iter().map(|name| (name.clone(), said(REXEC, &["help", &name]))).collect()
}

fn page(name: &str) -> String {
    said(REXEC, &["help", name])
}

/// The pages, the help texts and the README.
fn manual() -> Vec<(String, String)> {
    let mut texts = pages();
    texts.push(("rexec --help".to_owned(), said(REXEC, &["--help"])));
    texts.push(("rexec-host --help".to_owned(), said(HOST, &["--help"])));
    texts.push(("README.md".to_owned(), readme()));
    texts
}

/// A text whose lines do not break.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All words that begin with `start` and go on with characters that `goes_on` takes.
fn words<'a>(text: &'a str, start: &str, goes_on: impl Fn(char) -> bool) -> BTreeSet<&'a str> {
    let begins = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let found = text.match_indices(start).filter(|&(at, _)| begins(at)).map(|(at, _)| &text[at..]);
    let cut = found.map(|rest| {
        let end = rest[start.len()..].find(|c| !goes_on(c)).map_or(rest.len(), |end| start.len() + end);
        &rest[..end]
    });
    cut.filter(|word| word.len() > start.len()).collect()
}

/// The programs' sources without their tests and comments.
fn code() -> String {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    sources(&root().join("shim/src"), &mut files);
    let mut all = String::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let text = text.split("#[cfg(test)]\nmod ").next().expect("a first part");
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            all.push_str(line);
            all.push('\n');
        }
    }
    all
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

fn is_of_a_variable(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}

fn is_of_an_option(c: char) -> bool {
    c.is_ascii_lowercase() || c == '-'
}

/// The long options of a text.
fn options(text: &str) -> BTreeSet<&str> {
    let all = words(text, "--", is_of_an_option);
    all.into_iter().filter(|option| option[2..].starts_with(|c: char| c.is_ascii_lowercase())).collect()
}

#[test]
fn each_variable_of_the_code_has_its_entry_and_no_other_is_named() {
    let code = code();
    let mut read = BTreeSet::new();
    for line in code.lines() {
        // A name that is read stands in a string; the prefix alone stands for all of them.
        let is_in_a_string = |at: usize| line[..at].matches('"').count() % 2 == 1;
        for (at, _) in line.match_indices("REXEC_").filter(|&(at, _)| is_in_a_string(at)) {
            let rest = &line[at..];
            let word = &rest[..rest.find(|c| !is_of_a_variable(c)).unwrap_or(rest.len())];
            if word != "REXEC_" {
                read.insert(word);
            }
        }
    }
    assert!(read.len() >= 10, "the search finds what it looks for: {read:?}");
    let page = page("environment");
    let entries = page.lines().filter_map(|line| line.strip_prefix("* `REXEC_")?.split('`').next());
    let entries: BTreeSet<String> = entries.map(|name| format!("REXEC_{name}")).collect();
    assert_eq!(entries.iter().map(String::as_str).collect::<BTreeSet<_>>(), read, "entries and code");
    for (name, text) in manual() {
        for variable in words(&text, "REXEC_", is_of_a_variable) {
            assert!(read.contains(variable), "{name} names {variable}, which nothing reads");
        }
    }
    for variable in DEFAULTS.iter().chain(&LIVE) {
        let variable = variable.to_str().expect("text").split('=').next().expect("a name");
        assert!(page.contains(&format!("`{variable}`")), "{variable}");
    }
}

#[test]
fn each_agent_that_is_known_by_a_variable_is_listed() {
    let source = fs::read_to_string(root().join("shim/src/protocol/agents.rs")).expect("a source");
    let known = source.lines().filter_map(|line| {
        let (variable, name) = line.trim().strip_prefix("(b\"")?.split_once("\", \"")?;
        Some((variable, name.split('"').next()?))
    });
    let (environment, agents) = (page("environment"), flat(&page("agents")));
    let mut count = 0;
    for (variable, agent) in known {
        count += 1;
        let variable = variable.trim_end_matches('=');
        let is_listed = environment.lines().any(|line| line.contains(variable) && line.ends_with(agent));
        assert!(is_listed, "{variable} of {agent}");
        assert!(agents.contains(agent), "{agent}");
    }
    assert!(count > 10, "the search finds what it looks for: {count}");
}

#[test]
fn each_exit_code_is_explained() {
    let source = fs::read_to_string(root().join("shim/src/protocol/exit_code.rs")).expect("a source");
    let ours = source.lines().filter_map(|line| line.split_once(": u8 = ")?.1.strip_suffix(';'));
    let ours: BTreeSet<&str> = ours.collect();
    assert!(ours.len() > 5, "the search finds what it looks for: {ours:?}");
    let page = page("exit-codes");
    let listed = page.lines().filter_map(|line| line.strip_prefix("    ")?.split_whitespace().next());
    let listed: BTreeSet<&str> = listed.filter(|word| word.parse::<u8>().is_ok()).collect();
    assert_eq!(listed, ours);
}

/// A number with a comma in front of each group of three digits.
fn number(value: impl TryInto<u64>) -> String {
    let digits = value.try_into().ok().expect("no negative number").to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit that leaves no rest.
fn bytes(value: impl TryInto<u64>) -> String {
    let value: u64 = value.try_into().ok().expect("no negative number");
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let (unit, shift) = units.into_iter().find(|(_, shift)| value.is_multiple_of(1 << shift)).expect("a round number");
    format!("{} {unit}", value >> shift)
}

fn seconds(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{} s", number(time.as_secs())),
        millis => format!("{}.{} s", time.as_secs(), millis / 100),
    }
}

#[test]
fn each_number_is_the_one_of_the_code() {
    let journal = Bounds::default();
    let days = |time: Duration| time.as_secs() / (24 * 3_600);
    let inherited = wire::INHERITED_MAX;
    let inline = journal.head_bytes + journal.tail_bytes;
    let mut texts: BTreeMap<_, _> = pages().into_iter().map(|(name, text)| (name, flat(&text))).collect();
    for (name, words) in [
        ("limits", format!("{} commands run at once", number(RUNNING_MAX))),
        ("limits", format!("{} are known at once, queued ones included; more get exit code 125", number(JOBS_MAX))),
        ("limits", format!("{} of one command's output", bytes(LOG_BYTES as u64))),
        ("limits", format!("{} wait over all commands", bytes(LOGS_BYTES as u64))),
        ("limits", format!("nobody reads keeps {}", bytes(CONSOLE_HELD_BYTES as u64))),
        ("limits", format!("A request is {}", bytes(wire::RUN_BYTES_MAX as u64))),
        ("limits", format!("inherits {inherited} descriptors")),
        ("limits", format!("{STRAGGLERS_MAX} ended commands with processes left")),
        ("limits", format!("{} columns and {WINDOW_ROWS_MAX} rows", number(WINDOW_COLS_MAX))),
        ("limits", format!("complete after {} of silence", seconds(DRAIN_IDLE))),
        ("limits", format!("after {} in any case", seconds(DRAIN_MAX))),
        ("limits", format!("more than {} after the last output", seconds(DRAIN_IDLE))),
        ("limits", format!("tried again for {}", seconds(START_TIMEOUT))),
        ("limits", format!("A JSON request is {}", bytes(JSON_LINE_BYTES_MAX as u64))),
        ("limits", format!("its output {}", bytes(JSON_OUTPUT_BYTES_MAX as u64))),
        ("limits", format!("its timeout {} days", days(TIMEOUT_MAX))),
        ("limits", format!("`--grace` is at most {}", seconds(GRACE_MAX))),
        ("limits", format!("after {} of silence, later after up to {}", seconds(LOOK_AFTER), seconds(LOOK_EVERY_MAX))),
        ("limits", format!("{} values and {} are looked for", number(SECRETS_MAX), bytes(SECRETS_BYTES_MAX as u64))),
        ("json", format!("at most {}", bytes(JSON_OUTPUT_BYTES_MAX as u64))),
        ("json", format!("A line may have {}", bytes(JSON_LINE_BYTES_MAX as u64))),
        ("console", format!("succeeded within {}", seconds(CONSOLE_LONG))),
        ("console", format!("had the floor for {}", seconds(CONSOLE_FLOOR))),
        ("console", format!("the first {CONSOLE_LIVE_LINES} lines")),
        ("console", format!("more than {CONSOLE_LINE_ROWS} rows")),
        ("console", format!("silent for {}", seconds(CONSOLE_QUIET))),
        ("console", format!("its last {CONSOLE_TAIL_LINES} lines")),
        ("console", format!("the last {CONSOLE_COMEBACK_LINES} lines")),
        ("console", format!("writes over {}", bytes(PROBE_BYTES_MAX as u64))),
        ("console", format!("takes over {}", seconds(PROBE_TIME_MAX))),
        ("console", format!("more than {BANNER_COLUMNS} columns")),
        ("console", format!("within {}", seconds(SHUTDOWN_MAX))),
        ("console", format!("`--grace` ({})", seconds(GRACE))),
        ("commands", format!("`--grace` ({})", seconds(GRACE))),
        ("commands", format!("SIGTERM, {}, SIGKILL", seconds(GRACE_CALLER_GONE))),
        ("commands", format!("more than {} after the shell's end", seconds(DRAIN_IDLE))),
        ("commands", format!("{PTY_COLS} columns and {PTY_ROWS} rows")),
        ("commands", format!("at most {inherited} of them")),
        ("exit-codes", format!("more than {inherited} descriptors")),
        ("environment", format!("at most {WHOAMI_COLUMNS} columns")),
        (
            "journal",
            format!(
                "more than {} the record has {} of each end",
                bytes(inline as u64),
                bytes(journal.head_bytes as u64)
            ),
        ),
        ("journal", format!("longer than {}", bytes(journal.file_bytes))),
        ("journal", format!("An argument of more than {}", bytes(JOURNAL_ARGUMENT_BYTES as u64))),
        ("journal", format!("whole up to {}", bytes(2 * journal.raw_cap))),
        ("journal", format!("{} of each end (`--raw-cap`)", bytes(journal.raw_cap))),
        ("journal", format!("the newest {}, for {} days", bytes(journal.raw_bytes), days(journal.raw_age))),
        ("changes", format!("| the journal | {} |", rexec_host::journal::record::VERSION)),
        ("changes", format!("| JSON-RPC | {} |", rexec_host::front::rpc::PROTOCOL)),
        ("changes", format!("| between rexec-sh and rexec-host | {} |", wire::VERSION)),
        ("changes", format!("This one understands {} to {}", wire::VERSION_MIN, wire::VERSION)),
        ("changes", format!("## {} The first release", env!("CARGO_PKG_VERSION"))),
    ] {
        let page = texts.get_mut(name).expect("a page");
        assert!(page.contains(&words), "{name} does not say: {words}");
        *page = page.replace(&words, "");
    }
    let rest = texts["limits"].split("## Numbers").nth(1).expect("a section");
    let is_unchecked = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let unchecked: Vec<_> = rest.split_whitespace().filter(is_unchecked).collect();
    // Descriptors 0, 1 and 2, and the system's own limit on an argument.
    assert_eq!(unchecked, ["128", "0,", "1", "2."], "{rest}");
    let help = said(HOST, &["--help"]);
    for words in [
        format!("default {PTY_COLS}x{PTY_ROWS}"),
        format!("(default {})", GRACE.as_secs()),
        format!("(default {}; 0 keeps nothing)", RAW_CAP_BYTES >> 20),
    ] {
        assert!(flat(&help).contains(&words), "rexec-host --help does not say: {words}");
    }
}

/// What the manual quotes of the programs' own words, so that a reader finds it by them.
const QUOTED: [(&str, &str); 8] = [
    ("README.md", "HOST NOT FOUND"),
    ("README.md", "another host is already running"),
    ("README.md", "journal cannot be written"),
    ("README.md", "its command runs in its sandbox, unseen"),
    ("security", "is sandboxed ("),
    ("console", "(goes on"),
    ("console", "(unwrapped)"),
    ("console", "left running:"),
];

#[test]
fn each_message_that_the_manual_quotes_is_in_the_code() {
    let (code, texts) = (code(), manual());
    for (name, words) in QUOTED {
        let text = &texts.iter().find(|(other, _)| other == name).expect("a text").1;
        assert!(flat(text).contains(words), "{name} no longer quotes: {words}");
        assert!(code.contains(words), "{name} quotes what nothing says: {words}");
    }
}

#[test]
fn each_option_is_in_the_manual_and_no_other() {
    let (rexec, host) = (said(REXEC, &["--help"]), said(HOST, &["--help"]));
    let mut known: BTreeSet<&str> = FOREIGN.into();
    let verbs = verbs();
    let helps: Vec<String> = verbs.iter().map(|verb| said(REXEC, &["help", verb])).collect();
    for help in [&rexec, &host].into_iter().chain(&helps) {
        known.extend(options(help));
    }
    let scripts: Vec<_> = scripts().iter().map(|path| fs::read_to_string(path).expect("a script")).collect();
    for script in &scripts {
        known.extend(options(script));
    }
    let mut named = BTreeSet::new();
    let pages = pages();
    let readme = readme();
    for (name, text) in pages.iter().map(|(name, text)| (name.as_str(), text)).chain([("README.md", &readme)]) {
        for option in options(text) {
            assert!(known.contains(option), "{name} names {option}");
            named.insert(option);
        }
    }
    for option in options(&rexec).union(&options(&host)) {
        let is_plain = ["--help", "--version"].contains(option);
        assert!(is_plain || named.contains(option), "no page has {option}");
    }
}

fn scripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("scripts")).expect("the scripts") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "sh") {
            found.push(path);
        }
    }
    found
}

#[test]
fn each_command_of_the_manual_exists() {
    let (topics, verbs) = (topics(), verbs());
    for (name, text) in manual() {
        for script in words(&text, "scripts/", |c| c.is_ascii_lowercase() || c == '.') {
            let path = root().join(script.trim_end_matches('.'));
            let mode = fs::metadata(&path).map(|found| found.permissions().mode());
            assert!(mode.is_ok_and(|mode| mode & 0o111 != 0), "{name} names {script}");
        }
        let flat = flat(&text);
        for topic in words(&flat, "rexec help ", is_of_an_option) {
            let topic = topic.trim_start_matches("rexec help ");
            // In a sentence, "rexec help" may stand for itself.
            let is_a_sentence = ["lists", "prints"].contains(&topic);
            let is_known = topics.iter().any(|known| known == topic) || verbs.iter().any(|verb| verb == topic);
            assert!(is_a_sentence || is_known, "{name} names rexec help {topic}");
        }
    }
    let readme = readme();
    for script in scripts() {
        let name = script.file_name().expect("a name").to_str().expect("text");
        assert!(readme.contains(&format!("scripts/{name}")), "the README does not name {name}");
    }
    for topic in topics {
        assert!(readme.contains(&format!("rexec help {topic}")), "the README does not lead to {topic}");
    }
}
