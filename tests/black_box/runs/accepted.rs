//! A config.toml that changes while a host runs, or between two hosts: what a person has accepted holds beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::rules::{end, host};
use crate::exec::{rexec, said};
use crate::support::host::{Host, PLAIN};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting;

/// Rules in force that deny printf with this word.
fn denies(word: &str) -> String {
    format!("[gate]\nmode = 'enforce'\n[[rule]]\ndo = 'deny'\nrun = 'printf'\nwith = ['{word}']\n")
}

fn file(host: &Host) -> PathBuf {
    host.home.join(".config/rexec/config.toml")
}

/// Runs commands until the console says this.
fn console_says(host: &Host, row: &str) {
    waiting::wait_until(row, || {
        host.run("true");
        host.console_text().contains(row)
    });
}

fn codes<const COUNT: usize>(host: &Host, words: [&str; COUNT]) -> [i32; COUNT] {
    words.map(|word| host.run(&format!("printf {word}")).code())
}

fn config(host: &Host, words: &[&str]) -> (i32, String, String) {
    said(rexec(host, &[&["config"], words].concat()))
}

#[test]
fn a_change_holds_beside_what_was_accepted_until_a_person_accepts_it() {
    let host = host(&denies("old"), PLAIN);
    assert_eq!(codes(&host, ["old", "new"]), [126, 0]);
    assert_eq!(config(&host, &["diff"]), (0, String::new(), String::new()));
    fs::write(file(&host), denies("new")).expect("a file");
    console_says(&host, "config.toml has changed, and the stricter of old and new holds: rexec config diff");
    assert_eq!(codes(&host, ["old", "new", "other"]), [126, 126, 0]);
    let long = format!("printf old {}", "x".repeat(9_000));
    assert_eq!(host.run(&long).code(), 126, "a judge asks both");
    let denied = host.wait_for("a denied one", |journal| {
        journal.of_type("end").find(|end| end["gate"]["rule"] == "accepted config.toml:3").cloned()
    });
    assert_eq!((&denied["gate"]["do"], &denied["exit"]), (&"deny".into(), &126.into()));

    let (code, shown, _) = config(&host, &["diff"]);
    assert_eq!(code, 1);
    assert!(shown.ends_with(" run = 'printf'\n-with = ['old']\n+with = ['new']\n"), "{shown}");
    assert!(config(&host, &[]).1.contains("# it is not as you have accepted it: rexec config diff\n"));
    // An agent, and a person without a terminal.
    let accept = format!("'{}' config accept --yes", programs::rexec().display());
    let refused = host.run(&accept);
    assert_eq!(refused.code(), 1);
    assert!(refused.err().contains("belongs to a command of a host, and no agent changes rules"), "{}", refused.err());
    let unmarked = host.run(&format!("env -u REXEC_INSIDE REXEC_SOCKET='{}' {accept}", host.socket().display()));
    assert_eq!(unmarked.code(), 1, "the guard is seen all the same");
    let (code, _, error) = config(&host, &["accept"]);
    assert!(code == 1 && error.contains("rexec config accept --yes does it without a question"), "{error}");
    assert_eq!(codes(&host, ["old", "new"]), [126, 126]);

    let (code, shown, error) = config(&host, &["accept", "--yes"]);
    assert!(code == 0 && shown.ends_with("config.toml` is accepted\n"), "{shown}{error}");
    assert_eq!(codes(&host, ["old", "new"]), [0, 126], "at once");
    host.console_says("config.toml is as you have accepted it: 1 rule is in force\n");
    assert!(config(&host, &["accept"]).1.ends_with("is as you have accepted it\n"));
    let kept = host.journal_home().join("accepted");
    let names: Vec<_> = fs::read_dir(kept).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    let [kept] = &names[..] else { panic!("{names:?}") };
    assert_eq!(fs::metadata(kept).expect("a file").permissions().mode() & 0o777, 0o600);
    host.finish();
}

#[test]
fn what_was_accepted_holds_in_the_next_host_too_and_where_the_file_is_gone() {
    let first = host(&denies("old"), PLAIN);
    assert_eq!(codes(&first, ["old"]), [126]);
    let path = file(&first);
    let home = first.leave();
    fs::write(&path, "[gate]\nmode = 'watch'\n[[rule]]\ndo = 'deny'\nrun = 'printf'\n").expect("a file");
    let host = Host::in_dir(home, PLAIN);
    let greeting = host.console_text();
    assert!(greeting.contains("rexec: 1 rule is watched and holds no command\n"), "{greeting}");
    assert!(greeting.contains("config.toml has changed, and the stricter of old and new holds"), "{greeting}");
    assert_eq!(codes(&host, ["old", "new"]), [126, 0]);
    assert_eq!(end(&host, 2)["gate"]["by"], "watch", "by the file as it is");
    fs::remove_file(&path).expect("a file");
    console_says(&host, "config.toml is gone, and what you have accepted holds: rexec config accept ends that");
    assert_eq!(codes(&host, ["old", "new"]), [126, 0]);
    let host = Host::in_dir(host.leave(), PLAIN);
    host.console_says("rexec: 1 rule is in force\n");
    assert_eq!(codes(&host, ["old"]), [126]);
    assert_eq!(config(&host, &["accept", "--yes"]).0, 0);
    assert_eq!(codes(&host, ["old"]), [0]);
    host.finish();
}

#[test]
fn a_change_that_cannot_be_used_changes_nothing_and_says_where() {
    let host = host(&denies("old"), PLAIN);
    let file = file(&host);
    fs::write(&file, "[gate]\nmode = 'off'\n").expect("a file");
    console_says(&host, "config.toml:2:8: `mode` cannot be \"off\"; the rules that held before hold on\n");
    assert_eq!(codes(&host, ["old", "new"]), [126, 0]);
    assert_eq!(config(&host, &["accept", "--yes"]).0, 1, "nobody can accept it");
    fs::write(&file, denies("new")).expect("a file");
    console_says(&host, "config.toml has changed");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).expect("our own file");
    console_says(&host, "config.toml: everybody can write to it; the rules that held before hold on\n");
    assert_eq!(codes(&host, ["old", "new"]), [126, 126]);
    fs::remove_file(&file).expect("a file");
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    console_says(&host, "config.toml: it is no regular file; the rules that held before hold on\n");
    assert_eq!(codes(&host, ["old", "new"]), [126, 126]);
    fs::remove_file(&file).expect("a FIFO");
    fs::write(&file, denies("old")).expect("a file");
    console_says(&host, "config.toml is as you have accepted it: 1 rule is in force\n");
    assert_eq!(codes(&host, ["old", "new"]), [126, 0]);
    host.finish();
}

/// A host that has begun without a file looks for none, until a person says that there is one.
#[test]
fn a_host_without_a_file_learns_of_one_by_a_person() {
    let host = Host::in_dir(TempDir::new(None), PLAIN);
    let file = file(&host);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    let (code, _, error) = said(rexec(&host, &["init", "--yes", "--packs", "git", "claude"]));
    assert_eq!((code, error.as_str()), (0, ""));
    host.run("git clean -fd /nowhere/at/all || true");
    assert_eq!(end(&host, 1)["gate"]["by"], "watch");
    let (code, _, error) = said(rexec(&host, &["uninit", "--yes"]));
    assert_eq!((code, error.as_str()), (0, ""));
    host.run("git clean -fd /nowhere/at/all || true");
    assert_eq!(end(&host, 2)["gate"], serde_json::Value::Null);
    let home = host.leave();
    let host = Host::in_dir(home, PLAIN);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, denies("new")).expect("a file");
    assert_eq!(codes(&host, ["new"]), [0], "nobody has said so");
    assert_eq!(config(&host, &["accept", "--yes"]).0, 0);
    assert_eq!(codes(&host, ["new"]), [126]);
    host.finish();
}
