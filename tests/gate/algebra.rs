//! The algebra of verdicts, over rules and commands from a generator.

use rexec_host::gate::{Action, Cause, Gate, Judged, load};

use crate::dice::{Dice, rounds};
use crate::support::FACTS;

const PROGRAMS: [&str; 8] = ["git", "git push", "git *", "rm", "rm|git", "make", "g*t pull|push", "deploy prod"];
const GROUPS: [&str; 6] = ["-f|--force", "-r", "+*", "--", "main|origin", "--mode=h*"];
const PLACES: [&str; 5] = ["$PROJECT", "/tmp", "~/x", "/etc/*", "/"];
const COMMANDS: [&str; 26] = [
    "git push",
    "git push -f",
    "git push \"$x\"",
    "git $x",
    "git push $x",
    "rm -rf build",
    "rm -rf ~",
    "rm -rf \"$x\"/*",
    "rm {a,b}",
    "make -j4",
    "deploy -t prod prod",
    "sudo git push +main",
    "cd /tmp && rm -r x",
    "$x y",
    "python3 -c 1",
    "curl x | sh",
    "bash -c \"rm $x\"",
    "echo a > /etc/b",
    "tee /tmp/\"$x\"",
    "./git push origin main",
    "PATH=. git pull",
    "f() { rm x; }; f",
    "kill 1",
    "git -- push",
    "ls | xargs rm -r",
    "npx deploy --mode hard prod",
];

fn one_of<'a>(dice: &mut Dice, words: &[&'a str]) -> &'a str {
    words[dice.below(words.len())]
}

/// A rule. An empty text where it has no action that is wanted.
fn rule(dice: &mut Dice, actions: &[&str]) -> String {
    let mut rule = format!("[[rule]]\ndo = '{}'\nrun = '{}'\n", one_of(dice, actions), one_of(dice, &PROGRAMS));
    for (key, values) in [
        ("with", &GROUPS[..]),
        ("without", &GROUPS),
        ("outside", &PLACES),
        ("inside", &PLACES),
        ("writes", &PLACES),
        ("cwd", &PLACES),
    ] {
        if dice.below(5) == 0 {
            rule += &format!("{key} = ['{}']\n", one_of(dice, values));
        }
    }
    for (key, values) in [("agent", ["codex", "x*"]), ("via", ["sudo", "xargs"])] {
        if dice.below(8) == 0 {
            rule += &format!("{key} = '{}'\n", one_of(dice, &values));
        }
    }
    rule
}

fn rules(dice: &mut Dice, actions: &[&str]) -> Vec<String> {
    (0..dice.below(5)).map(|_| rule(dice, actions)).collect()
}

/// The settings of `[gate]`, in which nothing is stricter than a rule.
fn settings(dice: &mut Dice) -> String {
    let mut one = || one_of(dice, &["allow", "ask", "deny"]);
    format!("[gate]\nopaque = '{}'\nforeign = '{}'\nperhaps = '{}'\n", one(), one(), one())
}

/// `None` where a rule never counts.
fn gate(settings: &str, rules: &[String]) -> Option<Gate> {
    load((settings.to_owned() + &rules.concat()).as_bytes(), "x").ok().map(|loaded| loaded.gate)
}

fn command(dice: &mut Dice) -> String {
    let count = 1 + dice.below(3);
    (0..count).map(|_| one_of(dice, &COMMANDS)).collect::<Vec<_>>().join("; ")
}

fn actions(gate: &Gate, text: &str) -> Vec<Action> {
    gate.leaves(text.as_bytes(), &|_| None).iter().map(|leaf| gate.judge(leaf, &FACTS).action).collect()
}

const ALL: [&str; 3] = ["allow", "ask", "deny"];

#[test]
fn more_strict_rules_below_none_that_allows_never_loosen() {
    let mut tightened = 0;
    rounds(600, |dice| {
        let (settings, above, below) = (settings(dice), rules(dice, &["ask", "deny"]), rules(dice, &ALL));
        let (added, text) = (rule(dice, &["ask", "deny"]), command(dice));
        let before = gate(&settings, &[&above[..], &below].concat());
        let after = gate(&settings, &[&above[..], &[added], &below].concat());
        let (Some(before), Some(after)) = (before, after) else { return };
        for (before, after) in actions(&before, &text).into_iter().zip(actions(&after, &text)) {
            assert!(after >= before, "{text}: {before:?} {after:?}");
            tightened += usize::from(after > before);
        }
    });
    assert!(tightened > 20, "the generator makes rules that count: {tightened}");
}

/// A rule that allows lifts nothing from a leaf that it may match or not.
#[test]
fn allow_never_acts_on_perhaps() {
    let mut unsure = 0;
    rounds(900, |dice| {
        let (settings, below) = (settings(dice), rules(dice, &["ask", "deny"]));
        let (allows, text) = (rule(dice, &["allow"]), command(dice));
        let Some(alone) = gate(&settings, std::slice::from_ref(&allows)) else { return };
        let (Some(without), Some(with)) = (gate(&settings, &below), gate(&settings, &[&[allows], &below[..]].concat()))
        else {
            return;
        };
        for leaf in with.leaves(text.as_bytes(), &|_| None) {
            let (before, after) = (without.judge(&leaf, &FACTS).action, with.judge(&leaf, &FACTS).action);
            let is_sure = matches!(alone.judge(&leaf, &FACTS).cause, Cause::Rule(_));
            assert!(is_sure || before == after, "{text}: {before:?} {after:?}");
            unsure += usize::from(!is_sure);
        }
    });
    assert!(unsure > 50, "the generator makes leaves that are not known: {unsure}");
}

#[test]
fn a_command_is_as_strict_as_its_strictest_leaf() {
    rounds(1_500, |dice| {
        let Some(gate) = gate(&settings(dice), &rules(dice, &ALL)) else { return };
        let text = command(dice);
        let leaves = gate.leaves(text.as_bytes(), &|_| None);
        let judged = Judged::of(&gate, leaves, &FACTS);
        let strictest = judged.strictest().map(|at| judged.verdicts[at].action);
        assert_eq!(strictest, judged.verdicts.iter().map(|verdict| verdict.action).max(), "{text}");
        for one in text.split("; ").filter(|one| !one.contains("()")) {
            let alone = actions(&gate, one).into_iter().max();
            assert!(strictest >= alone || text.contains("cd ") || text.contains("f()"), "{text}: {one}");
        }
    });
}

/// Bytes that are no shell, rules that are no rules: nothing panics, and each ends.
#[test]
fn nothing_that_is_judged_panics() {
    let bytes = b" \n\t;&|<>(){}[]$`'\"\\*?~=-+/.#!%^:,a1rmgitpush\x00\x01\xff";
    let packs = load(b"[gate]\npacks = ['git', 'files', 'database', 'publish', 'cloud']", "x").expect("packs").gate;
    rounds(1_000, |dice| {
        let start = one_of(dice, &COMMANDS).as_bytes().to_vec();
        let noise = (0..dice.below(60)).map(|_| bytes[dice.below(bytes.len())]);
        let text: Vec<u8> = start.into_iter().chain(noise).collect();
        packs.leaves(&text, &|_| None).iter().for_each(|leaf| _ = packs.judge(leaf, &FACTS).sentence("x"));
    });
    for text in [
        "npx ".repeat(20_000),
        "npx -x ".repeat(20_000),
        format!("psql -c '{}'", "DROP".repeat(20_000)),
        format!("rm -rf {}", "../".repeat(40_000)),
        format!("rm -rf {}", "\"$x\"/a".repeat(15_000)),
        format!("git push {}", "+\"$x\" ".repeat(15_000)),
        "rm -rf ~; ".repeat(10_000),
    ] {
        packs.leaves(text.as_bytes(), &|_| None).iter().for_each(|leaf| _ = packs.judge(leaf, &FACTS).sentence("x"));
    }
}
