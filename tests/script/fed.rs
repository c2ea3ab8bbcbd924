//! Whether a text feeds a program that may read answers.

use rexec_host::script::{self, Excuse, Fed, Problem, SudoAsks};

use crate::shown::lossy;

const FED: &str = include_str!("../data/script/fed.txt");

fn told(fed: Fed) -> String {
    match fed {
        Fed::Nothing => "no".to_owned(),
        Fed::Program { name, .. } if name.is_empty() => "?".to_owned(),
        Fed::Program { name, .. } => lossy(&name),
        Fed::ControlsJobs => "jobs".to_owned(),
        Fed::NamesTerminal => "tty".to_owned(),
        Fed::NotUnderstood(_) => "bad".to_owned(),
    }
}

fn fed(text: &str) -> String {
    told(script::feeds(text.as_bytes(), SudoAsks::Perhaps))
}

/// Each text of the file with what is expected of it.
fn cases() -> Vec<(String, String)> {
    let rows = FED.lines().filter_map(|line| line.split_once('\t'));
    let cases: Vec<_> = rows.map(|(wanted, text)| (wanted.to_owned(), text.replace('⏎', "\n"))).collect();
    assert!(cases.len() > 120, "the file is complete: {}", cases.len());
    cases
}

#[test]
fn each_text_feeds_what_the_rule_says() {
    for (wanted, text) in cases() {
        assert_eq!(fed(&text), wanted, "{text}");
    }
}

/// Where the text stands does not matter: bash runs the same.
#[test]
fn a_text_feeds_the_same_within_other_code() {
    for (wanted, text) in cases().iter().filter(|(wanted, _)| wanted != "bad") {
        for around in ["true; {}\n", "if true; then {}\nfi", "( {}\n)", "cd /tmp && {}\n", "# comment\n\n{}"] {
            let around = around.replace("{}", text);
            assert_eq!(&fed(&around), wanted, "{around}");
        }
        if text.contains('#') {
            // Within quotes nothing tells a comment from other words.
            continue;
        }
        let quoted = format!("eval '{}'", text.replace('\'', "'\\''"));
        assert_eq!(&fed(&quoted), wanted, "{quoted}");
    }
}

/// One decision for the whole text: a fed program somewhere takes the terminal from all of it.
#[test]
fn two_texts_feed_what_either_of_them_feeds() {
    let cases = cases();
    let fed_one = "printf p | ssh-keygen -f k";
    for (wanted, text) in cases.iter().filter(|(wanted, text)| wanted == "no" && !text.contains("<<")) {
        // A function or an alias of the text's own is in force behind it.
        let both = format!("{text}\n{fed_one}");
        assert_eq!(fed(&both), "ssh-keygen", "{wanted}: {both}");
    }
}

#[test]
fn sudo_of_root_is_looked_through() {
    let feeds = |text: &str| told(script::feeds(text.as_bytes(), SudoAsks::Never));
    assert_eq!(feeds("printf p | sudo -u ann ssh-keygen -f k"), "ssh-keygen");
    assert_eq!(feeds("curl https://x.example | sudo bash"), "bash");
    assert_eq!(feeds("echo data | sudo tee f"), "no");
    assert_eq!(feeds("yes | sudo -n git push"), "no");
    assert_eq!(fed("curl https://x.example | sudo bash"), "no");
}

#[test]
fn each_fed_program_is_told_with_its_reason() {
    let feeding = script::feeding(b"cat k | ssh h id && ./x < f && sort <<< a", SudoAsks::Perhaps);
    let told: Vec<_> = feeding.commands.iter().map(|fed| (lossy(&fed.name), fed.excuse)).collect();
    let wanted = [("ssh", Some(Excuse::AsksElsewhere)), ("./x", None), ("sort", Some(Excuse::Filter))];
    assert_eq!(told, wanted.map(|(name, excuse)| (name.to_owned(), excuse)));
}

/// What is not understood is fed, and says why.
#[test]
fn a_text_beyond_the_bounds_is_fed() {
    let deep = format!("{}x{}", "( ".repeat(300), ")".repeat(300));
    assert_eq!(script::feeds(deep.as_bytes(), SudoAsks::Perhaps), Fed::NotUnderstood(Problem::TooDeep));
    let many = "a ".repeat(5_000);
    assert_eq!(script::feeds(many.as_bytes(), SudoAsks::Perhaps), Fed::NotUnderstood(Problem::TooMany));
    let long = "#".repeat((1 << 20) + 1);
    assert_eq!(script::feeds(long.as_bytes(), SudoAsks::Perhaps), Fed::NotUnderstood(Problem::TooLong));
}
