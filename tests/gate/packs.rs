//! The packs: what they ask about, and that they ask rarely.

use std::collections::{BTreeMap, BTreeSet};

use rexec_host::gate::{Action, Document, Gate, Habit, Value, packs};

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
    assert_eq!(judged(&all(), "xargs -I{} rm -rf /srv/{} <list").0, Action::Ask);
    assert_eq!(judged(&all(), "xargs -I{} rm -rf ./{} <list").0, Action::Allow);
    assert_eq!(judged(&all(), "f() { cd build; rm -rf a; }; f").0, Action::Allow);
    assert_eq!(judged(&all(), "cd build; rm -rf *").0, Action::Allow);
    assert_eq!(judged(&all(), "rm -rf *").0, Action::Ask);
    assert_eq!(judged(&all(), "rm -rf *.o .cache").0, Action::Allow);
}

/// A list of files may name the root. Names below a known directory cannot.
#[test]
fn the_files_pack_asks_about_files_that_another_program_names() {
    let all = all();
    for text in [
        "xargs rm -rf <list",
        "cat list | xargs rm -rf",
        "xargs -0 rm -rf -- <list",
        "xargs -I{} rm -rf {} <list",
        "awk '{ print $2 }' a | xargs rm -rf",
        "cat list | parallel rm -rf {}",
        "parallel rm -rf ::: build ~",
        "parallel rm -rf :::: list",
        "echo 'rm -rf ~' | parallel",
        "parallel ::: 'rm -rf ~' make",
        "find / -name x | sort -u | head -n 5 | xargs rm -rf",
        "grep -rl x /etc | xargs rm -rf",
        "rg -l x ~ | xargs rm -rf",
        "fd x ~ | xargs rm -rf",
        "git -C ~ ls-files | xargs rm -rf",
        "git ls-files .. | xargs rm -rf",
    ] {
        assert_eq!(judged(&all, text).0, Action::Ask, "{text}");
    }
    for text in [
        "xargs rm -f <list",
        "find . -name x -print0 | xargs -0 rm -rf",
        "find . -name x | grep -v keep | sort -u | head -n 5 | xargs rm -rf",
        "git ls-files -o | xargs rm -rf",
        "git diff --name-only main | xargs rm -rf",
        "grep -rl x . | xargs rm -rf",
        "rg -l x src | xargs rm -rf",
        "fd -t d build | xargs rm -rf",
        "parallel rm -rf {} ::: build dist",
        "find \"$d\" -name '*.o' -exec rm -rf {} +",
        "ls a | sort | while read f; do rm -rf \"a/$f\"; done",
    ] {
        assert_eq!(judged(&all, text).0, Action::Allow, "{text}");
    }
}

/// A function may run before or after its variable is set. A temporary file may be removed, if it can be nothing else.
#[test]
fn a_function_may_remove_a_temporary_file() {
    let all = all();
    let clean = "cleanup() { rm -rf \"$t\"; }; ";
    for text in [
        "t=$(mktemp -d); trap cleanup EXIT; make",
        "trap cleanup EXIT; t=$(mktemp -d) && make",
        "start() { t=$(mktemp -d); }; start; make; cleanup",
        "if x; then t=$(mktemp -d); else t=$(mktemp -d -p /tmp); fi; cleanup",
        "t=$(mktemp -d); export t; cleanup",
    ] {
        assert_eq!(judged(&all, &format!("{clean}{text}")).0, Action::Allow, "{text}");
    }
    for text in [
        "t=$HOME; cleanup",
        "cleanup",
        "t=$(mktemp -d); cleanup; t=/; cleanup",
        "t=$(mktemp -d); read t; cleanup",
        "t=$(mktemp -d); t+=/../..; cleanup",
        "for t in *; do cleanup; done; t=$(mktemp -d)",
        "t=$(mktemp -d); . ./env; cleanup",
        "t=$(mktemp -d); unset t; : ${t:=/}; cleanup",
        "t=${1:-$(mktemp -d)}; cleanup",
    ] {
        assert_eq!(judged(&all, &format!("{clean}{text}")).0, Action::Ask, "{text}");
    }
    // Whose variable it is on another machine is not known, nor what stands in front of a slash.
    assert_eq!(judged(&all, "t=$(mktemp -d); ssh h 'rm -rf \"$t\"'").0, Action::Ask);
    assert_eq!(judged(&all, "cleanup() { rm -rf \"$t\"/*; }; t=$(mktemp -d); trap cleanup EXIT").0, Action::Ask);
}

/// Agents define helpers, and many shells have functions that nobody calls.
#[test]
fn a_definition_asks_only_if_a_call_may_be_unseen() {
    let all = all();
    let clean = "clean() { rm -rf \"$1\"; git checkout -f \"$2\"; }; ";
    let verdict = |text: &str| judged(&all, &format!("{clean}{text}")).0;
    assert_eq!(["make", "echo clean"].map(verdict), [Action::Allow, Action::Ask]);
    assert_eq!(["clean build main", ". ./lib.sh", "clean /"].map(verdict), [Action::Ask; 3]);
    let remove = "clean() { rm -rf \"$1\"; }; ";
    let verdict = |text: &str| judged(&all, &format!("{remove}{text}")).0;
    assert_eq!(["clean build", "clean ./a && clean b/"].map(verdict), [Action::Allow; 2]);
    assert_eq!(["clean ~", "clean / x", "clean \"$x\"/", "cd /; clean etc"].map(verdict), [Action::Ask; 4]);
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

/// The commands that the packs themselves give as examples of what they ask about.
fn examples() -> Vec<String> {
    let document = |pack| Document::read(packs::text(pack).unwrap_or_default().as_bytes()).unwrap();
    let tables = packs::NAMES.into_iter().flat_map(|pack| document(pack).tables);
    let pairs = tables.flat_map(|table| table.pairs).filter(|pair| pair.key == "yes");
    pairs.flat_map(|pair| if let Value::List(texts) = pair.value { texts } else { Vec::new() }).collect()
}

/// What a habit allows never has a part that a pack asks about, whatever else its words are.
#[test]
fn no_habit_lifts_a_pack() {
    let all = all();
    let mut texts = examples();
    texts.extend(self::texts(include_str!("../data/gate/incidents.txt")));
    assert!(texts.len() > 150, "{}", texts.len());
    let mut habits = BTreeMap::new();
    let mut uses = Vec::new();
    for text in texts {
        let leaves = all.leaves(text.as_bytes(), &|name| (name == b"HOME").then(|| b"/people/ann".to_vec()));
        let runs: BTreeSet<String> = leaves.iter().filter_map(|leaf| all.tool_use(leaf)?.run).collect();
        for run in &runs {
            habits.entry(run.clone()).or_insert_with(|| Habit::of(run.clone()).unwrap());
        }
        uses.push((text, runs));
    }
    assert!(habits.len() > 20 && habits.values().filter(|habit| habit.is_some()).count() > 10, "{habits:#?}");
    for (text, runs) in uses {
        let allows = runs.iter().filter_map(|run| habits[run].as_ref()).map(|habit| {
            let without = match &habit.without[..] {
                [] => String::new(),
                groups => format!("without = {groups:?}\n"),
            };
            format!("[[rule]]\ndo = 'allow'\nrun = {:?}\n{without}", habit.run)
        });
        let allows = allows.collect::<String>();
        if allows.is_empty() {
            continue;
        }
        let learned = all.clone().extended(gate(&allows).rules.into_rules());
        for behind in ["", " -f", " a b", " > /dev/sda", " delete", " --hard x"] {
            let text = format!("{text}{behind}");
            let (without, with) = (judged(&all, &text).0, judged(&learned, &text));
            assert_eq!(without, with.0, "{text}: {}\n{allows}", with.1);
        }
    }
}

#[test]
fn a_habit_is_a_subcommand_and_no_more() {
    let gate = all();
    for (text, run) in [
        ("git status -sb", Some("git status")),
        ("git -C x push -u origin a", Some("git push")),
        ("gh pr view 3", Some("gh pr view")),
        ("npm run build -- --watch", Some("npm run build")),
        ("docker compose -f x.yml ps", Some("docker compose ps")),
        ("docker compose ps", Some("docker compose ps")),
        ("docker exec web ls", None),
        ("docker run --rm x", None),
        ("gh --repo a/b pr view", None),
        ("git $x", None),
        ("PATH=/x git status", None),
        ("git -c alias.s='!rm x' s", Some("git s")),
        ("/opt/git status", None),
        ("bash -c ls", None),
        ("curl x", None),
        ("gh api x", None),
    ] {
        let leaves = gate.leaves(text.as_bytes(), &|_| None);
        let used = leaves.first().and_then(|leaf| gate.tool_use(leaf)).and_then(|used| used.run);
        assert_eq!(used.as_deref(), run, "{text}");
    }
    let without = |run: &str| Habit::of(run.to_owned()).unwrap().map(|habit| habit.without);
    assert_eq!(without("git status"), Some(Vec::new()));
    assert_eq!(without("git stash"), Some(vec!["drop|clear".to_owned()]));
    assert_eq!(without("git checkout"), None);
    assert!(without("git push").is_some_and(|groups| groups[0].starts_with("-f|--force")));
}

/// A person may print a pack and change it: what is left of it means what it meant.
#[test]
fn a_printed_pack_means_the_same_as_rules_of_a_person() {
    let mut texts = examples();
    texts.extend(self::texts(include_str!("../data/gate/incidents.txt")));
    let more =
        ["rm -r --help", "rm -rf build > /etc/x", "git push --help", "git push $x", "rm -rf $x", "psql -c \"DROP $x\""];
    texts.extend(more.map(str::to_owned));
    for pack in packs::NAMES {
        let printed = gate(packs::text(pack).unwrap_or_default());
        let named = gate(&format!("[gate]\npacks = [{pack:?}]\n"));
        for text in &texts {
            assert_eq!(judged(&printed, text).0, judged(&named, text).0, "{pack}: {text}");
        }
    }
}

/// What is unknown alone asks nobody; what is beside the folder for temporary files does.
#[test]
fn the_files_pack_knows_what_lies_beside_temporary_files() {
    for (text, wanted) in [
        ("rm -rf $TMPDIR/../x", Action::Ask),
        ("rm -rf \"$TMPDIR\"/x", Action::Allow),
        ("rm -rf \"$TMPDIR/x/../y\"", Action::Allow),
        ("rm -rf \"$DIR/../build\"", Action::Allow),
        ("TMPDIR=/tmp/a; rm -rf $TMPDIR/../x", Action::Allow),
    ] {
        assert_eq!(judged(&all(), text).0, wanted, "{text}");
    }
}

/// Who allows a program has not allowed that the shell writes its output over a disk.
#[test]
fn a_rule_that_allows_a_program_does_not_lift_one_on_written_files() {
    for (rule, wanted) in [
        ("run = 'cat'", Action::Ask),
        ("run = 'cat'\nwrites = ['/dev/sdb']", Action::Allow),
        ("writes = ['/dev/sdb']", Action::Allow),
        ("writes = ['/dev/sdc']", Action::Ask),
    ] {
        let rules = format!("[gate]\npacks = ['files']\n[[rule]]\ndo = 'allow'\n{rule}\n");
        assert_eq!(judged(&gate(&rules), "cat x.iso > /dev/sdb").0, wanted, "{rule}");
    }
}
