//! The rules of a project's `.rexec.toml`: they count once a person trusts them, and hold as they were then.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::rules::{end, host};
use crate::exec::{rexec, said};
use crate::rpc::client::Client;
use crate::support::call::{Call, Target, dir};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting;

const OWN: &str = "[gate]\nmode = 'enforce'\n[[rule]]\ndo = 'allow'\nrun = 'printf'\nwith = ['free']\n";

/// Rules of a project that deny printf with this word, in line 2.
fn denies(word: &str) -> String {
    format!("# Ours.\n[[rule]]\ndo = \"deny\"\nrun = \"printf\"\nwith = [\"{word}\"]\nwhy = \"CI does it.\"\n")
}

/// A project in the home, with this file of rules.
fn project(host: &Host, name: &str, rules: &str) -> PathBuf {
    let top = host.home.join(name);
    fs::create_dir_all(top.join(".git")).expect("a directory");
    fs::create_dir_all(top.join("src/deep")).expect("a directory");
    fs::write(top.join(".rexec.toml"), rules).expect("a file");
    top
}

/// The code of printf with this word, in this directory.
fn code(host: &Host, directory: &Path, word: &str) -> i32 {
    let call = Call { dir: dir(directory), ..host.call(&format!("printf {word}")) };
    call.run(Target::Shim(&host.socket())).code()
}

fn console_says(host: &Host, directory: &Path, row: &str) {
    waiting::wait_until(row, || {
        code(host, directory, "x");
        host.console_text().contains(row)
    });
}

fn rexec_in(host: &Host, directory: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = rexec(host, words);
    command.current_dir(directory);
    said(command)
}

#[test]
fn rules_of_a_project_count_once_they_are_trusted_and_as_they_were_then() {
    let host = host(OWN, PLAIN);
    let top = project(&host, "web", &denies("push"));
    let (deep, shown) = (top.join("src/deep"), top.join(".rexec.toml").display().to_string());
    assert_eq!(code(&host, &deep, "push"), 0);
    let row = format!("… {shown} is not trusted, and does not count: rexec trust {} shows it", top.display());
    assert_eq!(host.console_text().matches(&row).count(), 1, "{}", host.console_text());
    assert_eq!(code(&host, &top, "push"), 0);

    // Not for an agent.
    let refused = host.run(&format!("'{}' trust --yes '{}'", programs::rexec().display(), top.display()));
    assert!(refused.code() == 1 && refused.err().contains("no agent changes rules"), "{}", refused.err());
    let (code_, out, error) = rexec_in(&host, &deep, &["trust"]);
    assert!(code_ == 1 && error.contains("rexec trust --yes does it without a question"), "{error}");
    assert!(out.contains("+do = \"deny\"\n"), "{out}");
    let (code_, out, error) = rexec_in(&host, &deep, &["trust", "--yes"]);
    assert!(code_ == 0 && out.ends_with("/.rexec.toml` is trusted: 1 rule\n"), "{out}{error}");
    assert_eq!(rexec_in(&host, &top, &["trust"]).1, format!("`{shown}` is trusted already\n"));
    assert_eq!(rexec_in(&host, &top, &["trust", "--list"]).1, format!("trusted  {shown}\n"));

    for directory in [&deep, &top] {
        assert_eq!([code(&host, directory, "push"), code(&host, directory, "pull")], [126, 0]);
    }
    assert_eq!(code(&host, host.home.path(), "push"), 0, "another directory");
    let last = host.journal().of_type("start").count() as u64 - 2;
    assert_eq!(end(&host, last)["gate"]["rule"], ".rexec.toml:2");
    assert_eq!(code(&host, &top, "free push"), 126, "it tightens what your own rules allow");
    let long = format!("push {}", "x".repeat(9_000));
    assert_eq!(code(&host, &top, &long), 126, "a judge has them, too");
    let (tested, said, _) = rexec_in(&host, &deep, &["gate", "test", "printf push"]);
    assert!(tested == 4 && said.contains("deny     .rexec.toml:2"), "{said}");
    assert_eq!(rexec_in(&host, host.home.path(), &["gate", "test", "printf push"]).0, 0);
    assert!(rexec_in(&host, &deep, &["config"]).1.ends_with(&format!("# {shown} is trusted\n")));

    // An agent changes the file, takes it away, or puts something else there.
    fs::write(top.join(".rexec.toml"), denies("nothing")).expect("a file");
    console_says(&host, &top, &format!("… {shown} has changed, and what you have trusted holds: rexec trust"));
    assert_eq!([code(&host, &top, "push"), code(&host, &top, "nothing")], [126, 0]);
    assert_eq!(rexec_in(&host, &top, &["trust", "--list"]).1, format!("changed  {shown}\n"));
    fs::remove_file(top.join(".rexec.toml")).expect("a file");
    console_says(&host, &top, &format!("… {shown} is gone, and what you have trusted holds: rexec untrust"));
    assert_eq!(code(&host, &top, "push"), 126);
    nix::unistd::mkfifo(&top.join(".rexec.toml"), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    console_says(&host, &top, &format!("… {shown}: it is no regular file; what you have trusted holds"));
    assert_eq!(code(&host, &top, "push"), 126);

    // The next host has it, too.
    let host = Host::in_dir(host.leave(), PLAIN);
    assert_eq!(code(&host, &top, "push"), 126);
    assert_eq!(rexec_in(&host, &deep, &["untrust"]).0, 0);
    assert_eq!(code(&host, &top, "push"), 0);
    assert_eq!(rexec_in(&host, &deep, &["untrust"]).0, 1);
    host.finish();
}

/// A command goes into a project from elsewhere: its rules hold for what the command does there.
#[test]
fn rules_of_a_trusted_project_hold_for_a_command_that_goes_there() {
    let host = host(OWN, PLAIN);
    let top = project(&host, "web", &denies("push"));
    project(&host, "other", "");
    assert_eq!(rexec_in(&host, &top, &["trust", "--yes"]).0, 0);
    let code = |text: &str| host.run(text).code();
    let padding = format!(": {}", "x".repeat(9_000));
    for there in
        ["cd web && printf push", "P=web; cd $P/src; printf push", "env -C web printf push", "(cd ~/web; printf push)"]
    {
        assert_eq!(code(there), 126, "{there}");
        assert_eq!(code(&format!("{padding}; {there}")), 126, "a judge has them, too: {there}");
        assert_eq!(rexec_in(&host, host.home.path(), &["gate", "test", there]).0, 4, "{there}");
    }
    for elsewhere in [
        "printf push",
        "cd other && printf push",
        "(cd web); printf push",
        "printf push; cd web",
        "cd web && printf pull",
        "cd \"$(git rev-parse --show-toplevel 2>/dev/null)\" && printf push",
    ] {
        assert_ne!(code(elsewhere), 126, "{elsewhere}");
        assert_ne!(code(&format!("{padding}; {elsewhere}")), 126, "{elsewhere}");
        assert_eq!(rexec_in(&host, host.home.path(), &["gate", "test", elsewhere]).0, 0, "{elsewhere}");
    }
    host.finish();
}

/// Without rules of the person's, a project's are watched; without any, a host says nothing of a command.
#[test]
fn a_projects_rules_have_the_settings_of_the_persons() {
    let host = host("[host]\ngrace = 2\n", PLAIN);
    let top = project(&host, "web", &denies("push"));
    assert_eq!(rexec_in(&host, &top, &["trust", "--yes"]).0, 0);
    assert_eq!(code(&host, &top, "push"), 0);
    assert_eq!(end(&host, 1)["gate"]["by"], "watch");
    let home = host.leave();
    let host = Host::in_dir(home, Setup { flags: &["--no-config"], ..PLAIN });
    assert_eq!(code(&host, &top, "push"), 0);
    let ended = host.wait_for("both ends", |journal| {
        let gates: Vec<Value> = journal.of_type("end").map(|end| end["gate"].clone()).collect();
        (gates.len() == 2).then_some(gates)
    });
    assert_eq!(ended.iter().filter(|gate| gate.is_null()).count(), 1, "{ended:?}");
    host.finish();
}

#[test]
fn what_may_not_stand_in_a_projects_file_is_refused_with_its_place() {
    let host = host(OWN, PLAIN);
    let top = project(&host, "web", "");
    let file = top.join(".rexec.toml");
    for (text, problem) in [
        ("[[rule]]\nrun = 'rm'\ndo = 'allow'\n", "3:6: a project's rule cannot allow\nhint: write do = \"ask\""),
        ("[gate]\nmode = 'watch'\n", "1:1: a project's file has no table `gate`\nhint: "),
        ("[host]\nlive = true\n", "1:1: a project's file has no table `host`\nhint: "),
        ("[[lane]]\nname = 'a'\n", "1:1: lanes are not known yet\nhint: "),
        ("[[rule]]\nrun = 'rm'\n", "1:1: this rule has no `do`\n"),
        ("name = 'a'\n", "1:1: `name` stands above all tables\nhint: "),
    ] {
        fs::write(&file, text).expect("a file");
        let (code, out, error) = rexec_in(&host, &top, &["trust", "--yes"]);
        assert_eq!((code, out.as_str()), (1, ""), "{text}");
        assert!(error.contains(&format!("{}:{problem}", file.display())), "{text}: {error}");
    }
    fs::write(&file, "#".repeat((256 << 10) + 1)).expect("a file");
    assert!(rexec_in(&host, &top, &["trust"]).2.contains("it is too long\n"));
    fs::remove_file(&file).expect("a file");
    assert!(rexec_in(&host, &top, &["trust"]).2.contains("there is no .rexec.toml in"));
    std::os::unix::fs::symlink("/dev/zero", &file).expect("a link");
    assert!(rexec_in(&host, &top, &["trust"]).2.contains("it is no regular file\n"));
    let none = std::env::temp_dir();
    assert!(rexec_in(&host, &none, &["trust"]).2.contains("is in no git project\n"));
    host.finish();
}

/// A command is in all projects whose directories it lies in, whatever its agent has made there.
#[test]
fn no_repository_within_a_project_is_free_of_its_rules() {
    let host = host(OWN, PLAIN);
    let project_rule = "[[rule]]\ndo = 'deny'\nrun = 'touch'\noutside = ['$PROJECT']\n";
    let top = project(&host, "web", &(denies("push") + project_rule));
    assert_eq!(rexec_in(&host, &top, &["trust", "--yes"]).0, 0);
    let inner = top.join("src/deep");
    fs::create_dir_all(inner.join(".git")).expect("a directory");
    assert_eq!([code(&host, &inner, "push"), code(&host, &inner, "pull")], [126, 0]);
    assert_eq!(rexec_in(&host, &inner, &["gate", "test", "printf push"]).0, 4);

    // The inner one's own rules count, too.
    fs::write(inner.join(".rexec.toml"), denies("pull")).expect("a file");
    assert_eq!(rexec_in(&host, &inner, &["trust", "--yes"]).0, 0);
    assert_eq!([code(&host, &inner, "push"), code(&host, &inner, "pull"), code(&host, &inner, "x")], [126, 126, 0]);
    assert_eq!(code(&host, &top, "pull"), 0);
    let ended = end(&host, host.journal().of_type("start").count() as u64);
    assert!(ended["gate"].is_null(), "{ended}");

    // The project of a rule is the one whose rule it is.
    let touch = |directory: &Path, file: &str| {
        let call = Call { dir: dir(directory), ..host.call(&format!("touch {file}")) };
        call.run(Target::Shim(&host.socket())).code()
    };
    assert_eq!([touch(&inner, "../a"), touch(&inner, "../../../b")], [0, 126]);
    // Nor does it help to write the directory in another way.
    fs::create_dir(host.home.join("other")).expect("a directory");
    let back = host.home.join("other/../web/src");
    let answer = Client::new(&host).call("exec.run", &json!({"command": "printf push", "dir": back}));
    assert_eq!(answer["stdout"], "", "{answer}");
    let free = host.home.join("websites");
    fs::create_dir(&free).expect("a directory");
    assert_eq!(code(&host, &free, "push"), 0, "its name only begins like the project's");
    assert_eq!(rexec_in(&host, &top, &["untrust"]).0, 0);
    assert_eq!([code(&host, &inner, "push"), code(&host, &inner, "pull")], [0, 126]);
    host.finish();
}
