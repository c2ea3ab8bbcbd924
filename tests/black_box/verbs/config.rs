//! config.toml: what it says reaches the host, what is wrong in it is refused with its place, and `rexec config` shows it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use super::said;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;

/// The file of a home, with this text.
fn write(home: &Path, text: &str) -> PathBuf {
    let folder = home.join(".config/rexec");
    fs::create_dir_all(&folder).expect("a directory");
    let file = folder.join("config.toml");
    fs::write(&file, text).expect("a file");
    file
}

/// A program of ours in a home without a host.
fn run(program: &Path, home: &Path, args: &[&str]) -> Output {
    let mut command = programs::command(program);
    command.args(args).env_clear().env("PATH", programs::PATH).env("HOME", home).stdin(Stdio::null());
    command.env("REXEC_HOME", home.join("journal")).env("REXEC_SOCKET", "/nonexistent/host.sock");
    command.output().expect("it starts")
}

#[test]
fn a_host_takes_its_options_from_the_file_and_says_so() {
    let home = TempDir::new(None);
    write(home.path(), "[host]\nmarkers = true\nno-record = false\ngrace = 7\n");
    let host = Host::in_dir(home, PLAIN);
    assert_eq!(host.run("echo seq $REXEC_SEQ").out(), "seq 1\n");
    let said = host.console_text();
    assert!(said.contains("config.toml: markers = true, no-record = false, grace = 7\n"), "{said}");
    host.finish();
}

#[test]
fn the_command_line_counts_before_the_file() {
    let home = TempDir::new(None);
    write(home.path(), "[host]\ntty = 'never'\n");
    // A test's host is started with --tty always.
    let host = Host::in_dir(home, PLAIN);
    assert_eq!(host.run("test -t 1; echo $?").out(), "0\n");
    let home = host.leave();
    write(home.path(), "[host]\nmarkers = 3\n");
    let host = Host::in_dir(home, Setup { flags: &["--no-config"], ..PLAIN });
    assert_eq!(host.run("echo seq=$REXEC_SEQ.").out(), "seq=.\n");
    host.finish();
}

#[test]
fn a_file_with_a_mistake_keeps_the_host_from_starting() {
    let home = TempDir::new(None);
    let start = |args: &[&str]| run(programs::host(), home.path(), args);
    for (text, problem) in [
        ("[host]\nprompt = 'ask'\n", "2:1: there is no option `prompt`\nhint: did you mean prompts?"),
        ("[host]\ngrace = 'soon'\n", "2:1: grace: `soon` is not a valid time\nhint: seconds from 0 to"),
        ("[host]\ngrace = ['2']\n", "2:1: `grace` is a text or a number\nhint: "),
        ("[host]\nlive = 'yes'\n", "2:1: `live` is true or false\nhint: live = true\n"),
        (
            "[host]\nallow-sandboxed = true\n",
            "2:1: `allow-sandboxed` is for the command line alone\nhint: rexec-host --allow-sandboxed\n",
        ),
        ("[host]\nno-config = true\n", "2:1: `no-config` is for the command line alone\n"),
        ("[[rule]]\nrun = 'rm'\n", "1:1: this rule has no `do`\n"),
        ("[host]\nlive = true\n[hosts]\n", "3:1: the table `hosts` is not known\nhint: did you mean host?\n"),
        ("[host.x]\n", "1:1: `host.x` is not a table of this kind\n"),
    ] {
        let file = write(home.path(), text);
        let told = start(&[]);
        let error = String::from_utf8(told.stderr).expect("text");
        assert!(error.contains(&format!("{}:{problem}", file.display())), "{text}: {error}");
        assert_eq!((told.status.code(), told.stdout.len()), (Some(1), 0), "{text}");
        assert_eq!(run(programs::rexec(), home.path(), &["config"]).status.code(), Some(1), "{text}");
    }
    let findings = String::from_utf8(run(programs::rexec(), home.path(), &["doctor"]).stdout).expect("text");
    assert!(findings.lines().any(|line| line.starts_with("broken  config  ")), "{findings}");
    assert!(start(&["--help"]).status.success() && start(&["--version"]).status.success());

    let file = write(home.path(), "[host]\nlive = true\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).expect("our own file");
    let error = String::from_utf8(start(&[]).stderr).expect("text");
    assert!(error.contains("everybody can write to it\nhint: chmod o-w"), "{error}");
    fs::remove_file(&file).expect("our own file");
    let path = std::ffi::CString::new(file.to_str().expect("text")).expect("no NUL");
    nix::unistd::mkfifo(path.as_c_str(), nix::sys::stat::Mode::S_IRWXU).expect("a FIFO");
    let error = String::from_utf8(start(&[]).stderr).expect("text");
    assert!(error.contains("it is no regular file\n"), "nobody writes to it: {error}");
}

/// What `rexec config` prints is a file that says the same.
#[test]
fn config_shows_each_option_and_where_it_comes_from() {
    let home = TempDir::new(None);
    let config = |args: &[&str]| {
        let told = run(programs::rexec(), home.path(), &[&["config"], args].concat());
        assert!(told.status.success() && told.stderr.is_empty(), "{told:?}");
        String::from_utf8(told.stdout).expect("text")
    };
    let text = config(&[]);
    assert!(text.starts_with(&format!("# {}/.config/rexec/config.toml is not there\n", home.path().display())));
    assert!(text.contains("\nprompts = \"auto\"") && text.contains("\n# notify is not set\n"), "{text}");
    assert!(text.contains("\n[gate]\nmode = \"watch\""), "{text}");

    let notify = r#"tmux display "$REXEC_MESSAGE" \ é"#;
    let own = format!("[host]\nprompts = 'ask'\nno-status = true\nnotify = '{notify}'\n[gate]\npacks = ['git']\n");
    write(home.path(), &own);
    let text = config(&[]);
    let line = |key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    assert!(line("prompts = \"ask\"  ").ends_with("  # line 2"), "{text}");
    assert!(line("packs = [\"git\"]").ends_with("# line 6") && line("grace = 2 ").ends_with("# default"), "{text}");
    assert!(text.contains("\n# 0 rules of your own, "), "{text}");
    let forms =
        |text: String| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect() };
    let before = forms(config(&["--json"]));
    write(home.path(), &text);
    let after = forms(config(&["--json"]));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((&before["key"], &before["value"]), (&after["key"], &after["value"]));
        assert_eq!(after["from"] == "file", !after["value"].is_null(), "{after}");
    }
    let notified = before.iter().find(|form| form["key"] == "notify").expect("a form");
    assert_eq!(notified["value"], r#""tmux display \"$REXEC_MESSAGE\" \\ é""#);
    let schema: Value = serde_json::from_str(&said(&["schema", "config"])).expect("JSON");
    let known = schema["properties"].as_object().expect("fields");
    assert!(
        before.iter().flat_map(|form| form.as_object().expect("an object").keys()).all(|key| known.contains_key(key))
    );
}
