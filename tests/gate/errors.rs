//! Files that are refused: each with the place, the problem, and what to write instead.

use rexec_host::gate::{load, packs};

/// `line:column: problem (hint)` of a file that is refused.
fn refused(text: &str) -> String {
    match load(text.as_bytes(), "x") {
        Ok(_) => "nothing".to_owned(),
        Err(error) => format!("{error} ({})", error.hint),
    }
}

const RULE: &str = "[[rule]]\ndo = 'ask'\n";

#[test]
fn what_is_no_strict_toml_is_refused_with_what_to_write() {
    for (text, wanted) in [
        ("[gate", "1:6: `]` is missing (as in [gate] and [[rule]])"),
        ("[gate]\nmode", "2:5: `=` is missing (as in mode = \"text\")"),
        ("[gate]\nmode =", "2:7: a value is missing (as in \"text\", 3, true or [\"a\", \"b\"])"),
        ("[gate]\nmode = watch", "2:8: a text stands without quotes (write \"watch\")"),
        (
            "[gate]\nmode = 1.5",
            "2:8: no numbers but whole ones, and no times, are read (write a whole number in digits, or \"1.5\")",
        ),
        (
            "[gate]\nmode = 1_000",
            "2:8: no numbers but whole ones, and no times, are read (write a whole number in digits, or \"1_000\")",
        ),
        (
            "[gate]\nmode = 0x1f",
            "2:8: no numbers but whole ones, and no times, are read (write a whole number in digits, or \"0x1f\")",
        ),
        (
            "[gate]\nmode = 2026-01-01",
            "2:8: no numbers but whole ones, and no times, are read (write a whole number in digits, or \"2026-01-01\")",
        ),
        ("[gate]\nmode = 99999999999999999999", "2:8: this number is too large (64 bits are the most)"),
        ("[gate]\nmode = {a = 1}", "2:8: a table stands within a line (write its pairs below a [header] of its own)"),
        (
            "[gate]\nmode = \"\"\"a\"\"\"",
            "2:8: a text has several lines (write it on one line, with \\n for a line break)",
        ),
        ("[gate]\nmode = \"a", "2:8: a text has no end (close the quotes on the same line)"),
        (
            "[gate]\nmode = \"\\d\"",
            "2:8: a backslash in this text means nothing (write \\\\ for a backslash, or 'text' in single quotes)",
        ),
        ("[gate]\nmode = 'a' 'b'", "2:12: this is too much on the line (begin a new line before it)"),
        ("[gate]\npacks = ['a' 'b']", "2:14: a comma is missing (as in [\"a\", \"b\"])"),
        ("[gate]\npacks = [1]", "2:10: an array has something else than texts (as in [\"a\", \"b\"])"),
        ("[gate]\npacks = ['a',\n", "2:9: a bracket is not closed (as in [\"a\", \"b\"])"),
        ("gate.mode = 'watch'", "1:1: a key has a dot (write `mode = …` below [gate])"),
        ("[gate]\n'mode' = 'watch'", "2:1: a key stands in quotes (write it without them: letters, digits, - and _)"),
        ("[gate]\nmode = 'watch'\nmode = 'watch'", "3:1: `mode` is there already (keep one of the two)"),
        ("[gate]\n[gate]", "2:1: `gate` is there already (write all of its lines below the first one)"),
        ("[gate]\n[[gate]]", "2:1: `gate` is there already (write all of its lines below the first one)"),
        ("[gate]\nä = 1", "2:1: a key is missing or not valid (a key has letters, digits, - and _)"),
        ("[gate]\n# \u{7}", "2:3: a control character stands here (write \\uXXXX for it, in a text in double quotes)"),
    ] {
        assert_eq!(refused(text), wanted, "{text}");
    }
    let not_utf8 = load(b"[gate]\nmode = '\xff'", "x").unwrap_err();
    assert_eq!(not_utf8.to_string(), "2:9: this is not UTF-8");
}

#[test]
fn what_no_rule_has_is_refused_with_what_was_meant() {
    for (text, wanted) in [
        ("mode = 'watch'", "1:1: `mode` stands above all tables (write it below [host], [undo], [gate] or [[rule]])"),
        ("[gate]\nmod = 'watch'", "2:1: [gate] has no key `mod` (did you mean mode?)"),
        ("[gate]\nmode = 'wach'", "2:8: `mode` cannot be \"wach\" (did you mean watch?)"),
        ("[gate]\nmode = 1", "2:8: `mode` is a text (write it in double quotes)"),
        ("[gate]\nask_wait = 'soon'", "2:12: `ask_wait` is not a length of time (as in \"60s\" or \"5m\")"),
        ("[gate]\npacks = ['gti']", "2:9: there is no pack `gti` (did you mean git?)"),
        ("[gate]\nwrappers = 'a'", "2:12: `wrappers` is an array of texts (as in [\"a\", \"b\"])"),
        (
            "[rule]\ndo = 'ask'",
            "1:1: `rule` is not a table of this kind (write [host], [undo], [gate], [[rule]] or [program.NAME])",
        ),
        ("[program.x]\nvalues = ['t']", "2:10: `t` is not an option (as in values = [\"-C\", \"--file\"])"),
        ("[[rule]]\nrun = 'x'", "1:1: this rule has no `do` (write do = \"ask\", \"deny\" or \"allow\")"),
        (
            RULE,
            "1:1: this rule says nothing of a command (write `run`, `with`, `outside`, `inside`, `writes`, `kills` or `via`)",
        ),
        ("[[rule]]\ndo = 'ask'\nrun = 'rm'\nwiht = ['-r']", "4:1: [rule] has no key `wiht` (did you mean with?)"),
        ("[[rule]]\ndo = 'ask'\nrun = 'rm -r'", "3:7: `run` has the option -r (write with = [\"-r\"])"),
        ("[[rule]]\ndo = 'ask'\nrun = 'a||b'", "3:7: a part of `a||b` is empty (write words with | between them)"),
        ("[[rule]]\ndo = 'ask'\nrun = ' '", "3:7: `run` is empty (take the line out, or fill it)"),
        ("[[rule]]\ndo = 'ask'\nwith = []", "3:8: `with` is empty (take the line out, or fill it)"),
        (
            "[[rule]]\ndo = 'ask'\noutside = ['a']",
            "3:11: `a` has no beginning (write a path that begins with /, ~, $HOME or $PROJECT)",
        ),
        ("[[rule]]\nlenient = 'yes'", "2:11: `lenient` is true or false (write it without quotes)"),
        ("[[rule]]\ndo = 'ask'\nkills = 'all'", "3:9: `kills` cannot be \"all\" (one of others)"),
        ("[[rule]]\ndo = 'ask'\nrun = 'x'\nwhy = 'a\\nb'", "nothing"),
        (
            "[[rule]]\ndo = 'ask'\nrun = 'x'\nwhy = \"a\\nb\"",
            "4:7: `why` has a control character (write one line of text)",
        ),
    ] {
        assert_eq!(refused(text), wanted, "{text}");
    }
}

/// Words by which an agent would take a refusal for that of its own sandbox.
#[test]
fn a_reason_never_says_what_a_sandbox_says() {
    for words in [
        "Permission denied",
        "operation not permitted",
        "the Sandbox",
        "seccomp",
        "landlock",
        "Read-only file system",
        "failed to write file",
    ] {
        let refusal = refused(&format!("{RULE}run = 'x'\nwhy = 'a {words} b'"));
        assert!(refusal.starts_with("4:7: `why` says"), "{words}: {refusal}");
    }
}

#[test]
fn examples_are_checked_when_the_file_is_read() {
    let rule = format!("{RULE}run = 'git push'\n");
    for (line, wanted) in [
        (
            "yes = ['git pull']",
            "4:7: this rule does not match `git pull` (change the rule, or take the command out of `yes`)",
        ),
        (
            "no = ['cd x; git push']",
            "4:6: this rule matches `cd x; git push` (change the rule, or take the command out of `no`)",
        ),
        (
            "no = ['git $x']",
            "4:6: this rule may match or not, depending on what is not known, `git $x` (change the rule, or take the command out of `no`)",
        ),
        ("yes = ['git push']\nno = ['git pull']", "nothing"),
    ] {
        assert_eq!(refused(&format!("{rule}{line}")), wanted);
    }
}

#[test]
fn a_rule_that_never_counts_is_refused() {
    let allow = "[[rule]]\nname = 'a'\ndo = 'allow'\nrun = 'git'\n";
    let hidden = refused(&format!("{allow}{RULE}run = 'git push'"));
    assert_eq!(
        hidden,
        "5:1: this rule never counts, because rule a (x:1) allows all that it matches (write it above that one)"
    );
    assert_eq!(refused(&format!("{allow}agent = 'x'\n{RULE}run = 'git push'")), "nothing");
    assert_eq!(refused(&format!("{allow}{RULE}run = 'rm'")), "nothing");
}

#[test]
fn a_table_or_a_place_that_is_nearly_known_is_refused() {
    for (text, wanted) in [
        ("[gat]\n", "1:1: the table `gat` is not known (did you mean gate?)"),
        ("[Gate]\n", "1:1: the table `Gate` is not known (did you mean gate?)"),
        ("[[rules]]\n", "1:1: the table `rules` is not known (did you mean rule?)"),
        (
            "[[rule]]\ndo = 'ask'\nrun = 'rm'\noutside = ['$PROJEKT']",
            "4:11: `$PROJEKT` is not known (did you mean PROJECT?)",
        ),
        ("[[rule]]\ndo = 'ask'\nwrites = ['$TMP/a']", "3:10: `$TMP` is not known (one of HOME, PROJECT)"),
        (
            "[[rule]]\ndo = 'ask'\nrun = 'rm'\noutside = ['$PROJECT/../a']",
            "4:11: `$PROJECT/../a` has `..` in it (write where it leads: paths are compared as they are written)",
        ),
    ] {
        assert_eq!(refused(text), wanted, "{text}");
    }
}

/// A person may change a pack in a file of their own.
#[test]
fn a_pack_is_a_file_of_rules_as_well() {
    for name in packs::NAMES {
        let text = packs::text(name).expect("a pack");
        assert_eq!(refused(text), "nothing", "{name}");
    }
    let unknown = "yes = ['rm -rf \"$x\"/*']\n[gate]\nperhaps = 'allow'";
    let may = "may match or not, depending on what is not known,";
    assert_eq!(
        refused(&format!("{RULE}run = 'rm'\noutside = ['/tmp']\n{unknown}")),
        format!("5:7: this rule {may} `rm -rf \"$x\"/*` (change the rule, or take the command out of `yes`)")
    );
}

#[test]
fn a_table_that_is_not_known_is_warned_of() {
    let loaded = load(b"[spans]\nkeep = '7d'\n", "x").expect("loads");
    let warnings: Vec<String> = loaded.warnings.iter().map(|warning| format!("{warning} ({})", warning.hint)).collect();
    assert_eq!(warnings, ["1:1: the table `spans` is not known, and is passed over ()"]);
}
