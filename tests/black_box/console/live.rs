//! The console of a real host on a real terminal.

use std::fs;

use crate::sandbox::{caged, can_run};
use crate::support::call::Target;
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::reader::Reader;
use crate::support::strip::strip;
use crate::support::terminal::Terminal;
use crate::support::waiting::{self, PATIENCE};

fn shown(host: &Host) -> String {
    String::from_utf8_lossy(&strip(host.console_text().as_bytes())).into_owned()
}

fn sees(host: &Host, text: &str) {
    assert!(waiting::until_true(PATIENCE, || shown(host).contains(text)), "{text:?} is not there: {}", shown(host));
}

#[test]
fn sessions_of_an_agent_and_places_in_a_project_are_told_apart() {
    let host = Host::with(Setup { terminal: true, flags: &["--no-status"], ..PLAIN });
    fs::create_dir_all(host.home.join(".git")).expect("a directory");
    let project = host.home.path().file_name().expect("a name").to_string_lossy().into_owned();
    for (session, command) in [("a", "echo one"), ("b", "echo two"), ("a", "echo three")] {
        let call = host.call(command).env("CLAUDECODE=1").env(&format!("CLAUDE_CODE_SESSION_ID={session}"));
        assert_eq!(call.run(Target::Shim(&host.socket())).code(), 0);
    }
    sees(&host, &format!("#1 claude {project}  echo one\n"));
    sees(&host, &format!("#2 claude~2 {project}  echo two\n"));
    sees(&host, &format!("#3 claude {project}  echo three\n"));
    if can_run() {
        assert_eq!(caged(&host, "echo four").run(Target::Real).code(), 0);
        sees(&host, &format!(" shell {project}  echo four · in its sandbox ("));
    }
    host.finish();
}

/// On a pipe the block stays as in a journal that is printed.
#[test]
fn a_command_of_the_past_is_shown_on_a_terminal_as_the_console_showed_it() {
    let host = Host::start();
    let script = "printf '\\033[32mgreen\\033[0m\\n'; echo 'warning: unused'; exit 3";
    assert_eq!(host.call(script).env("CLAUDECODE=1").run(Target::Shim(&host.socket())).code(), 3);
    host.wait_for("its end", |journal| journal.of_type("end").next().map(drop));
    let mut command = programs::command(programs::rexec());
    command.args(["show", "1"]).env_clear().env("LANG", "C.UTF-8");
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home());
    let on_pipe = command.env("TERM", "xterm").output().expect("the program starts");
    let on_pipe = String::from_utf8_lossy(&on_pipe.stdout).into_owned();
    assert!(on_pipe.contains(" #1 claude:/") && !on_pipe.contains(['▌', '\x1b']), "{on_pipe}");
    let terminal = Terminal::new(80, 40);
    let reader = Reader::new(terminal.master_file().into(), usize::MAX);
    assert!(command.stdout(terminal.slave()).status().expect("the program starts").success());
    let text = String::from_utf8(strip(&reader.to_silence())).expect("text").replace('\r', "");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with('▌')).expect("a banner");
    assert!(lines[at].contains(" #1 claude ") && lines[at].contains("printf"), "{lines:#?}");
    assert_eq!(lines[at + 1..at + 3], ["green", "warning: unused"], "{lines:#?}");
    assert!(lines[at + 3].starts_with("▌✗ exit 3 · "), "{lines:#?}");
    assert!(lines[0].starts_with("run        #1 of session "), "{lines:#?}");
    host.finish();
}

#[test]
#[ignore = "long: 30 commands behind one that is silent"]
fn short_commands_are_shown_whole_behind_one_that_is_silent() {
    let host = Host::with(Setup { terminal: true, flags: &["--no-status"], ..PLAIN });
    let call = host.call("echo ready; while [ ! -e end ]; do sleep 0.1; done");
    let mut silent = call.start(Target::Shim(&host.socket())).expect("the shim starts");
    sees(&host, "\nready\n");
    for number in 0..30 {
        assert_eq!(host.run(&format!("echo first {number}; echo last {number}")).code(), 0);
        sees(&host, &format!("\nfirst {number}\nlast {number}\n▌✓ "));
    }
    assert_eq!(shown(&host).matches("#1 runs on").count(), 1, "who has nothing to show never has a turn");
    fs::write(host.home.join("end"), "").expect("a file");
    assert_eq!(silent.finish(PATIENCE).expect("it ends").code(), 0);
    host.finish();
}
