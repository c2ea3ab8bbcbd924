//! Commands that ran without a host: the next one tells of them, whatever lies where the notes should.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::stat::Mode;
use serde_json::Value;

use crate::support::host::{Host, MIRROR};
use crate::support::programs::{self, skipped};
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};

/// A call of the shim at this socket, which runs its command itself where no host is.
fn shim(home: &Path, command: &str) -> Command {
    let mut shim = Command::new(programs::shims().join("rexec-bash"));
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
    let mut call = Command::new("/bin/bash");
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

/// Leaves a note about one command.
fn note(host: &Host) {
    let new = host.home.join("new");
    fs::write(&new, "1 1790000000000 s 9 1 Claude Code\n").expect("a file");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600)).expect("it is ours");
    fs::rename(new, host.home.join("unseen")).expect("nothing else is there");
}

/// A host that runs is told of a command that could not reach it.
#[test]
fn a_running_host_is_told_of_commands_that_could_not_reach_it() {
    let host = Host::with(MIRROR);
    fs::write(host.home.join("other"), "").expect("a file");
    note(&host);
    fs::write(host.home.join("another"), "").expect("a file");
    says(&host, "… 1 command of claude ran unseen since 2026-09-21 ");
    says(&host, "they were sandboxed, and no host took reports");
    host.finish();
}

/// What lies in the place of notes is never in the way of those that come.
#[test]
fn a_directory_in_the_place_of_notes_is_renamed_and_later_notes_are_told() {
    let home = TempDir::new(None);
    let path = home.join("unseen");
    let foreign = || {
        fs::create_dir(&path).expect("nothing is there");
        fs::write(path.join("mine"), "precious").expect("a file");
    };
    fs::write(home.join("unseen.aside-1"), "also precious").expect("a file");
    foreign();
    let host = Host::in_dir(home, MIRROR);
    let [first, second] = ["unseen.aside-2", "unseen.aside-3"].map(|name| host.home.join(name));
    says(&host, &format!("was not a file of notes about unseen commands, and was renamed to {}", first.display()));
    foreign();
    says(&host, &format!("was renamed to {}", second.display()));
    for place in [first, second] {
        assert_eq!(fs::read_to_string(place.join("mine")).expect("it is kept"), "precious");
    }
    assert_eq!(fs::read_to_string(host.home.join("unseen.aside-1")).expect("it is kept"), "also precious");
    note(&host);
    says(&host, "… 1 command of claude ran unseen since ");
    assert!(!host.console_text().contains("removed"), "{}", host.console_text());
    host.finish();
}

#[test]
fn notes_that_a_process_does_not_let_go_are_put_aside_and_later_ones_are_told() {
    let home = TempDir::new(None);
    fs::write(home.join("unseen"), "").expect("a file");
    let file = fs::File::open(home.join("unseen")).expect("it is there");
    let held = Flock::lock(file, FlockArg::LockShared).expect("nobody else has it");
    let host = Host::in_dir(home, MIRROR);
    let aside = host.home.join("unseen.aside-1");
    says(&host, &format!("unseen was held by a process, and was renamed to {}", aside.display()));
    note(&host);
    says(&host, "… 1 command of claude ran unseen since ");
    drop(held);
    host.finish();
}

#[test]
fn what_cannot_be_moved_out_of_the_place_of_notes_is_told_once() {
    let home = TempDir::new(None);
    let path = home.join("unseen");
    fs::create_dir(&path).expect("nothing is there");
    if let Err(error) = mount(Some("rexec-test"), &path, Some("tmpfs"), MsFlags::empty(), None::<&str>) {
        return skipped(&format!("nothing can be mounted: {error}"));
    }
    let host = Host::in_dir(home, MIRROR);
    let told = "unseen is not a file of notes about unseen commands, and cannot be renamed: ";
    says(&host, told);
    umount2(&path, MntFlags::MNT_DETACH).expect("it is mounted");
    fs::remove_dir(&path).expect("it is empty");
    note(&host);
    says(&host, "… 1 command of claude ran unseen since ");
    assert_eq!(host.console_text().matches(told).count(), 1, "{}", host.console_text());
    host.finish();
}
