//! Commands that ran without a host: the next one tells of them, whatever lies where the notes should.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use serde_json::Value;

use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

/// A call of the shim at this socket, which runs its command itself where no host is.
fn shim(home: &Path, command: &str) -> Command {
    let mut shim = programs::command(programs::shims().join("rexec-bash"));
    shim.env_clear().env("PATH", programs::PATH).env("HOME", home).env("REXEC_FALLBACK", "shell");
    shim.env("REXEC_SOCKET", home.join("host.sock")).current_dir(home).stdin(Stdio::null()).args(["-c", command]);
    shim
}

fn runs(command: &mut Command, expected: &str) {
    let output = command.output().expect("it starts");
    assert_eq!(
        (output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()),
        (Some(0), expected),
        "{output:?}"
    );
    assert!(output.stderr.is_empty(), "{output:?}");
}

/// How many unseen commands the journals in this directory have.
fn told(host: &Host) -> u64 {
    host.journal().of_type("unseen").filter_map(|record| record["count"].as_u64()).sum()
}

fn says(host: &Host, text: &str) {
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains(text)), "{text}: {}", host.console_text());
}

#[test]
fn the_next_host_tells_how_many_commands_of_whom_ran_without_one() {
    let home = TempDir::new(None);
    let nested = format!("exec {} -c 'echo three'", programs::shims().join("rexec-bash").display());
    for (command, expected) in [("echo one", "one\n"), ("echo two", "two\n"), (nested.as_str(), "three\n")] {
        runs(shim(home.path(), command).env("CODEX_CI", "1"), expected);
    }
    runs(shim(home.path(), "echo secret-word").env("REXEC_WHOAMI", "Ann~2/x"), "secret-word\n");
    let notes = fs::read_to_string(home.join("unseen")).expect("notes");
    assert_eq!(fs::metadata(home.join("unseen")).expect("a file").mode() & 0o7777, 0o600);
    assert!(!notes.contains("secret-word") && notes.lines().count() == 5, "{notes}");
    let host = Host::in_dir(home, MIRROR);
    says(&host, "… 3 commands of codex ran unseen since ");
    says(&host, "… 1 command of Ann-2-x ran unseen since ");
    let record = host.wait_for("its record", |journal| {
        journal.of_type("unseen").find(|record| record["whoami"] == "Codex").cloned()
    });
    assert_eq!((&record["count"], &record["reason"]), (&Value::from(3), &Value::from("no host ran")));
    assert!(
        record["since"].as_str() <= record["until"].as_str() && record["until"].as_str() <= record["time"].as_str()
    );
    let host = Host::in_dir(host.leave(), MIRROR);
    assert_eq!(host.run("echo seen").out(), "seen\n");
    assert_eq!(host.console_text().matches("ran unseen").count(), 2, "it is told once: {}", host.console_text());
    host.finish();
}

/// Shims add notes while hosts come, take them and go: each command is either run by a host or told of.
#[test]
fn no_note_is_lost_while_a_host_takes_them() {
    let mut home = TempDir::new(None);
    let begin = |home: &TempDir, count: usize| -> Vec<Child> {
        let start = |_| shim(home.path(), ":").stdout(Stdio::null()).spawn().expect("it starts");
        (0..count).map(start).collect()
    };
    let mut all = 0;
    for _ in 0..3 {
        let shims = begin(&home, 20);
        all += shims.len();
        let host = Host::in_dir(home, MIRROR);
        let more = begin(&host.home, 5);
        all += more.len();
        for mut shim in shims.into_iter().chain(more) {
            assert!(shim.wait().expect("it ends").success());
        }
        home = host.leave();
    }
    let host = Host::in_dir(home, MIRROR);
    let is_complete = || {
        let seen = host.journal().of_type("end").count();
        usize::try_from(told(&host)).is_ok_and(|told| told + seen == all)
    };
    assert!(waiting::until_true(PATIENCE, is_complete), "{} of {all}", told(&host));
    host.finish();
}

#[test]
fn a_note_that_cannot_be_written_changes_nothing_for_the_command() {
    let home = TempDir::new(None);
    let path = home.join("unseen");
    let limited = |command: &str| {
        let shim = programs::shims().join("rexec-bash");
        let mut call = shim_by(home.path(), "ulimit -f 0; exec \"$0\" -c \"$1\"");
        call.arg(shim).arg(command);
        call
    };
    runs(&mut limited("echo limited; grep SigPnd /proc/$$/status"), "limited\nSigPnd:\t0000000000000000\n");
    assert_eq!(fs::metadata(&path).map_or(0, |data| data.len()), 0, "no file may grow there");
    let _ = fs::remove_file(&path);

    fs::write(home.join("victim"), "precious").expect("a file");
    symlink(home.join("victim"), &path).expect("a link");
    runs(&mut shim(home.path(), "echo linked"), "linked\n");
    assert_eq!(fs::read_to_string(home.join("victim")).expect("a file"), "precious");
    fs::remove_file(&path).expect("it is there");

    fs::hard_link(home.join("victim"), &path).expect("a link");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    runs(&mut shim(home.path(), "echo hard"), "hard\n");
    assert_eq!(fs::read_to_string(home.join("victim")).expect("a file"), "precious");
    fs::remove_file(&path).expect("it is there");

    nix::unistd::mkfifo(&path, Mode::S_IRWXU).expect("a FIFO");
    runs(&mut shim(home.path(), "echo queued"), "queued\n");
    let host = Host::in_dir(home, MIRROR);
    says(&host, "was not a file of notes about unseen commands, and was removed");
    assert!(!host.home.join("unseen").exists());
    host.finish();
}

/// `bash -c SCRIPT` with the shim's environment.
fn shim_by(home: &Path, script: &str) -> Command {
    let mut call = programs::command("/bin/bash");
    call.env_clear().env("PATH", programs::PATH).env("HOME", home).env("REXEC_FALLBACK", "shell");
    call.env("REXEC_SOCKET", home.join("host.sock")).current_dir(home).stdin(Stdio::null()).args(["-c", script]);
    call
}

#[test]
fn a_forged_file_of_notes_is_bounded() {
    let home = TempDir::new(None);
    let path = home.join("unseen");
    let forged = "1 5 n 100 1 \u{1b}[31mforged\u{202e}\n".repeat(100_000) + &"junk\n".repeat(1_000_000);
    fs::write(&path, forged).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    runs(&mut shim(home.path(), "echo full"), "full\n");
    let host = Host::in_dir(home, MIRROR);
    says(&host, "… at least ");
    assert_eq!(host.console_text().matches("ran unseen").count(), 1, "{}", host.console_text());
    assert!(!host.console_text().contains(['\u{1b}', '\u{202e}']), "{:?}", host.console_text());
    assert!(!host.home.join("unseen").exists() && told(&host) < 20_000);
    host.finish();
}

/// A host that runs is told of a command that could not reach it.
#[test]
fn a_running_host_is_told_of_commands_that_could_not_reach_it() {
    let host = Host::with(MIRROR);
    fs::write(host.home.join("new"), "1 1790000000000 s 9 1 Claude Code\n").expect("a file");
    fs::set_permissions(host.home.join("new"), fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::write(host.home.join("other"), "").expect("a file");
    fs::rename(host.home.join("new"), host.home.join("unseen")).expect("it is ours");
    fs::write(host.home.join("another"), "").expect("a file");
    says(&host, "… 1 command of claude ran unseen since 2026-09-21 ");
    says(&host, "they were sandboxed, and no host took reports");
    host.finish();
}
