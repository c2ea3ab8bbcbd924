//! `rexec diff`: what changed between the outputs of two commands.

use std::fs;

use super::live::rexec;
use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::programs;

/// Runs a command that prints this file, and waits until the journal has it.
fn print(host: &Host, seq: u64, text: &str) {
    fs::write(host.home.join("text"), text).expect("a file");
    assert_eq!(host.run("cat text").out(), text);
    host.wait_for("its end", |journal| journal.of_type("end").find(|end| end["seq"] == seq).map(|_| ()));
}

#[test]
fn a_diff_is_what_patch_takes() {
    let host = Host::start();
    let mut dice = Dice::new(11);
    let mut texts = Vec::new();
    for _ in 0..8 {
        let lines = 1 + dice.below(60);
        let line = |dice: &mut Dice| format!("line {}\n", dice.below(12));
        texts.push((0..lines).map(|_| line(&mut dice)).collect::<String>());
    }
    for (seq, text) in (1..).zip(&texts) {
        print(&host, seq, text);
    }
    for (a, b) in [(1, 2), (3, 4), (5, 6), (7, 8), (2, 7)] {
        let said = rexec(&host, &["diff", &a.to_string(), &b.to_string()]);
        assert_eq!(said.code, i32::from(texts[a - 1] != texts[b - 1]), "{}", said.out);
        // The program that such a diff is for turns the first text into the second one.
        fs::write(host.home.join("patched"), &texts[a - 1]).expect("a file");
        let renamed = said.out.replacen(said.out.lines().next().expect("a head"), "--- patched", 1);
        let renamed = renamed.replacen(said.out.lines().nth(1).expect("a head"), "+++ patched", 1);
        fs::write(host.home.join("changes"), renamed).expect("a file");
        let mut git = programs::command("git");
        let output = git.args(["apply", "-p0", "changes"]).current_dir(host.home.path()).output().expect("git");
        assert!(output.status.success(), "{a} {b}: {output:?}\n{}", said.out);
        assert_eq!(fs::read_to_string(host.home.join("patched")).expect("the file"), texts[b - 1], "{a} {b}");
    }
    let same = rexec(&host, &["diff", "4", "4"]);
    assert_eq!((same.code, same.out.as_str()), (0, ""));
    host.finish();
}

#[test]
fn a_command_is_compared_with_its_run_before() {
    let host = Host::start();
    print(&host, 1, "ok 1 in 0.31s\nok 2\n");
    assert_eq!(host.run("echo other").code(), 0);
    print(&host, 3, "ok 1 in 0.44s\nFAILED 2\n");
    let said = rexec(&host, &["diff", "--last"]);
    let lines: Vec<&str> = said.out.lines().skip(2).collect();
    let expected = ["@@ -1,2 +1,2 @@", "-ok 1 in 0.31s", "-ok 2", "+ok 1 in 0.44s", "+FAILED 2"];
    assert_eq!((said.code, lines.as_slice()), (1, expected.as_slice()), "{}", said.out);
    let said = rexec(&host, &["diff", "--last", "-n", "3"]);
    assert!(said.out.ends_with("@@ -1,2 +1,2 @@\n ok 1 in 0.31s\n-ok 2\n+FAILED 2\n"), "{}", said.out);
    let said = rexec(&host, &["diff", "-n", "--json", "1", "-1"]);
    let expected = "{\"v\":1,\"change\":\"removed\",\"line\":2,\"text\":\"ok 2\"}\n\
                    {\"v\":1,\"change\":\"added\",\"line\":2,\"text\":\"FAILED 2\"}\n";
    assert_eq!((said.code, said.out.as_str()), (1, expected));
    for (args, code, words) in [
        (&["diff", "--last", "2"][..], 1, "#2 is the first run of its command"),
        (&["diff", "1", "77"], 3, "no run 77"),
        (&["diff", "1"], 2, "diff needs two commands"),
        (&["diff", "--last", "1", "2"], 2, "one command with --last"),
        (&["diff", "1", "2", "3"], 2, "`3` is too much"),
    ] {
        let said = rexec(&host, args);
        assert!(said.code == code && said.err.contains(words) && said.err.contains("hint: "), "{args:?}: {}", said.err);
    }
    host.finish();
}
