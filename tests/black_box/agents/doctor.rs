//! `rexec doctor` names what is wrong, and proves with `--live` that commands arrive.

use nix::sys::signal::Signal;

use super::{Place, host, printed};
use crate::support::host::Host;
use crate::support::temp::TempDir;

const AGENTS: [&str; 11] =
    ["claude", "codex", "gemini", "qwen", "opencode", "pi", "copilot", "cline", "cn", "mini", "aider"];

/// What it prints, and its exit code.
pub(super) fn doctor(place: &Place, host: &Host, args: &[&str], more: &[(&str, &str)]) -> (String, Option<i32>) {
    let path = format!("{}:{}", place.home.path().display(), crate::support::programs::PATH);
    let mut command = place.alone(crate::support::programs::rexec());
    command.env("PATH", path).env("REXEC_SOCKET", host.socket()).envs(more.iter().copied()).arg("doctor").args(args);
    let output = command.output().expect("the program starts");
    assert!(output.stderr.is_empty(), "{output:?}");
    (String::from_utf8(output.stdout).expect("text"), output.status.code())
}

#[test]
fn each_installed_agent_is_proven_to_be_caught() {
    let (place, host) = (Place::new(), host());
    for agent in AGENTS {
        place.program(agent, "#!/bin/sh\n");
    }
    let (text, code) = doctor(&place, &host, &["--live"], &[]);
    assert_eq!(text.matches("arrived at the host").count(), AGENTS.len(), "{text}");
    assert_eq!(code, Some(i32::from(text.contains("\nbroken"))), "{text}");
    for (shell, by) in [
        ("shells/rexec-bash", "CLAUDE_CODE_SHELL"),
        ("shells/bash-only/bash", "PATH"),
        ("/bin/bash", "its own choice, and BASH_ENV hands its commands on"),
    ] {
        let is_told =
            |line: &str| line.trim_start().starts_with("shell: ") && line.ends_with(&format!("{shell}, by {by}"));
        assert!(text.lines().any(is_told), "{shell} by {by}: {text}");
    }
    // No column runs into the next one.
    assert!(text.lines().all(|line| !line.contains(", livea")), "{text}");
    let arrived = |journal: &crate::support::journal::Journal| {
        let ends = journal.of_type("end").filter(|end| end["whoami"] == "rexec doctor" && end["exit"] == 0);
        (ends.count() == AGENTS.len()).then_some(())
    };
    host.wait_for("each probe", arrived);
    let (json, _) = doctor(&place, &host, &["--json"], &[]);
    let findings: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert!(findings.iter().any(|finding| finding["check"] == "host" && finding["state"] == "ok"), "{json}");
    host.finish();
}

#[test]
fn an_agent_with_the_preload_is_proven_by_its_link_and_one_that_takes_none_is_named() {
    let (place, host) = (Place::new(), host());
    place.program("kilo", "#!/bin/sh\n");
    let (text, _) = doctor(&place, &host, &[], &[]);
    assert!(text.contains("it is a shell script, so some of its commands may go unseen"), "{text}");
    if crate::support::programs::has("python3") {
        place.program("kilo", "#!/usr/bin/env python3\n");
        let (text, _) = doctor(&place, &host, &["--live"], &[]);
        assert!(text.contains("shells/rexec-bash, by the preload"), "{text}");
        assert_eq!(text.matches("arrived at the host").count(), 1, "{text}");
    }
    host.finish();
}

#[test]
fn agents_whose_commands_rules_do_not_see_are_named_where_there_are_rules() {
    let (place, host) = (Place::new(), host());
    for agent in ["claude", "codex", "crush"] {
        place.program(agent, "#!/bin/sh\n");
    }
    let has_rules = |text: &str| text.lines().any(|line| line.starts_with("note    rules "));
    assert!(!has_rules(&doctor(&place, &host, &[], &[]).0));
    let folder = place.home.join(".config/rexec");
    std::fs::create_dir_all(&folder).expect("a directory");
    std::fs::write(folder.join("config.toml"), "[gate]\npacks = ['git']\n").expect("a file");
    let (text, _) = doctor(&place, &host, &[], &[]);
    assert!(has_rules(&text) && text.contains("your rules see not all commands, or none, of Crush\n"), "{text}");
    assert!(text.contains("they see those of Claude Code, Codex only where rexec run starts it\n"), "{text}");
    let mut init = place.alone(crate::support::programs::rexec());
    assert!(init.args(["init", "--yes", "claude"]).output().expect("it starts").status.success());
    let (text, _) = doctor(&place, &host, &[], &[]);
    assert!(text.contains("they see those of Codex only where rexec run starts it\n"), "{text}");
    host.finish();
}

#[test]
fn what_is_wrong_is_named_with_what_to_do() {
    let (place, host) = (Place::new(), host());
    let recipe = [("BASH_ENV", "/x/rexec-env.sh"), ("SHELL", "/x/rexec-bash"), ("REXEC_FALLBACK", "shell")];
    let (text, _) = doctor(&place, &host, &[], &recipe);
    for name in ["BASH_ENV", "SHELL", "fallback"] {
        assert!(text.lines().any(|line| line.starts_with("note") && line.contains(name)), "{name}: {text}");
    }
    let open = TempDir::new(None);
    let socket = open.join("host.sock");
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(open.path(), permissions).expect("it is ours");
    let (text, code) =
        doctor(&place, &host, &["--live"], &[("REXEC_SOCKET", socket.to_str().expect("a path in UTF-8"))]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("0755") && text.contains("fix: ") && text.contains("no host runs"), "{text}");
    host.finish();
}

#[test]
#[ignore = "long: waits out the 5 s for an answer"]
fn a_host_that_was_killed_is_told_from_one_that_does_not_answer() {
    let (place, host) = (Place::new(), host());
    let (text, _) = doctor(&place, &host, &[], &[]);
    assert!(text.contains(&format!("{}, process {}, up ", env!("CARGO_PKG_VERSION"), host.pid())), "{text}");
    host.signal(Signal::SIGSTOP);
    let (text, code) = doctor(&place, &host, &[], &[]);
    assert!(text.contains("did not answer in time") && code == Some(1), "{text}");
    host.signal(Signal::SIGCONT);
    let socket = host.socket();
    let (_home, _warden) = host.kill();
    let left = printed(place.alone(crate::support::programs::rexec()).env("REXEC_SOCKET", &socket).arg("doctor"));
    assert!(left.contains("none runs; one that was killed has left its socket"), "{left}");
}
