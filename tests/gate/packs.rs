//! The packs: what they ask about, and that they ask rarely.

use rexec_host::gate::{Action, Gate, packs};

use crate::support::{FACTS, gate, judged, judged_with};

fn all() -> Gate {
    gate(&format!("[gate]\npacks = {:?}\n", packs::NAMES))
}

/// The lines of a data file that are not empty and no comments, with their line breaks.
fn texts(file: &str) -> Vec<String> {
    let is_text = |line: &&str| !line.is_empty() && !line.starts_with('#');
    file.lines().filter(is_text).map(|line| line.replace('⏎', "\n")).collect()
}

/// The commands about which all packs ask.
fn asked(texts: &[String]) -> Vec<String> {
    let gate = all();
    let asks = texts.iter().filter_map(|text| match judged(&gate, text) {
        (Action::Allow, _) => None,
        (_, why) => Some(format!("{text}: {why}")),
    });
    asks.collect()
}

#[test]
fn every_pack_asks_and_none_denies() {
    assert!(all().rules.len() > 50);
    assert!(all().rules.iter().all(|rule| rule.action == Action::Ask && rule.why.is_some() && rule.name.is_some()));
}

#[test]
fn the_packs_ask_about_what_users_reported() {
    let texts = texts(include_str!("../data/gate/incidents.txt"));
    assert_eq!(texts.len(), 13 * 3);
    let gate = all();
    let missed: Vec<&String> = texts.iter().filter(|text| judged(&gate, text).0 != Action::Ask).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// The home is no project, also where a command begins in it.
#[test]
fn the_home_is_never_a_part_of_a_project() {
    for project in [None, Some(&b"/people/ann"[..])] {
        let facts = rexec_host::gate::Facts { directory: Some(b"/people/ann"), project, ..FACTS };
        for text in ["rm -rf ~", "rm -rf .", "rm -rf \"$HOME\"/", "rm -rf ../ann", "rm -rf /people"] {
            assert_eq!(judged_with(&all(), text, &facts).0, Action::Ask, "{text}");
        }
    }
}

#[test]
fn the_packs_ask_about_no_words_in_prose() {
    let texts = texts(include_str!("../data/gate/harmless.txt"));
    assert_eq!(texts.len(), 200);
    let asked = asked(&texts);
    assert!(asked.len() <= 1, "{asked:#?}");
}

#[test]
fn the_packs_ask_rarely_on_an_everyday() {
    let texts = texts(include_str!("../data/everyday/commands.txt"));
    let asked = asked(&texts);
    assert!(asked.len() * 100 <= texts.len() * 3, "{} of {}: {asked:#?}", asked.len(), texts.len());
}

/// A directory without a git project stands for one, unless it is the home.
#[test]
fn a_directory_stands_for_a_project() {
    let within = |directory, text: &str| {
        let facts = rexec_host::gate::Facts { directory: Some(directory), project: None, ..FACTS };
        judged_with(&all(), text, &facts).0
    };
    assert_eq!(within(b"/srv/shop", "rm -rf build"), Action::Allow);
    assert_eq!(within(b"/srv/shop", "rm -rf ../other"), Action::Ask);
    assert_eq!(within(b"/srv/shop", "rm -rf \"$(pwd)\""), Action::Ask);
    assert_eq!(within(b"/people/ann", "rm -rf Documents"), Action::Ask);
    assert_eq!(within(b"/people", "rm -rf bob"), Action::Ask);
}

/// A word that may be `--force` holds nothing, and is not passed over either.
#[test]
fn a_pack_tells_what_it_does_not_know() {
    let told = "rule push-force (pack git) may match `git`, depending on what is not known (perhaps = \"allow\"): ";
    for text in ["git push $x", "git push \"$(cat flags)\"", "git $x --hard", "git push \"${x:---force}\""] {
        let (action, why) = judged(&all(), text);
        assert!(action == Action::Allow && why.starts_with("rule "), "{text}: {why}");
    }
    assert!(judged(&all(), "git push $x").1.starts_with(told));
    assert_eq!(judged(&all(), "rm -rf \"$x/build\"").1, "no rule matches `rm`");
}

#[test]
fn the_files_pack_asks_about_what_a_program_removes() {
    assert_eq!(judged(&all(), "rm -rf build >~/log 2>/var/log/x").0, Action::Allow);
    assert_eq!(judged(&all(), "xargs -I{} rm -rf {} <list").0, Action::Allow);
    assert_eq!(judged(&all(), "xargs -I{} rm -rf /srv/{} <list").0, Action::Ask);
    assert_eq!(judged(&all(), "xargs -I{} rm -rf ./{} <list").0, Action::Allow);
    assert_eq!(judged(&all(), "f() { cd build; rm -rf a; }; f").0, Action::Allow);
    assert_eq!(judged(&all(), "cd build; rm -rf *").0, Action::Allow);
    assert_eq!(judged(&all(), "rm -rf *").0, Action::Ask);
    assert_eq!(judged(&all(), "rm -rf *.o .cache").0, Action::Allow);
}

/// A person's own rule stands above the packs, and lifts them.
#[test]
fn a_rule_of_a_person_lifts_a_pack() {
    let rules = "[gate]\npacks = ['git']\n[[rule]]\ndo = 'allow'\nrun = 'git clean'\n";
    assert_eq!(judged(&gate(rules), "git clean -fd").0, Action::Allow);
    let (action, why) = judged(&gate(rules), "git stash drop");
    let wanted = "rule stash-drop (pack git) asks about `git`: It loses changes that were put aside.";
    assert_eq!((action, why.as_str()), (Action::Ask, wanted));
}
