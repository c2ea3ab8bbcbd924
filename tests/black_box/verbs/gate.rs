//! `rexec gate`: what rules say of a text, and of the commands in journals. Nothing is run.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::{rexec, said};
use crate::history::samples::Sample;
use crate::support::programs;
use crate::support::temp::TempDir;

#[test]
fn gate_prints_packs_and_tests_commands_with_them() {
    let folder = TempDir::new(None);
    let file = folder.path().join("rules.toml");
    fs::write(&file, said(&["gate", "pack", "git"])).expect("a file");
    let rules = file.to_str().expect("text");
    let told = rexec(&["gate", "test", "--rules", rules, "cd web && sudo git clean -fd"]);
    let text = String::from_utf8(told.stdout).expect("text");
    assert_eq!(told.status.code(), Some(3), "{text}");
    let last = text.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("ask: rule clean (rules.toml:") && last.contains("asks about `git clean -fd`: "),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("ask ") && line.contains("sudo")).count(), 1, "{text}");

    fs::write(&file, "[[rule]]\ndo = 'deny'\nrun = 'rm'\noutside = ['$PROJECT']\nagent = 'codex'\n").expect("a file");
    fs::create_dir_all(folder.path().join("shop/.git")).expect("a project");
    let shop = folder.path().join("shop").display().to_string();
    for (agent, text, code) in [("codex", "rm ../x", 4), ("codex", "rm x", 0), ("gemini", "rm ../x", 0)] {
        let told = rexec(&["gate", "test", "--rules", rules, "--agent", agent, "--cwd", &shop, text]);
        assert_eq!(told.status.code(), Some(code), "{agent}: {text}: {told:?}");
    }
}

#[test]
fn gate_says_where_a_file_of_rules_is_wrong() {
    let folder = TempDir::new(None);
    let file = folder.path().join("rules.toml");
    fs::write(&file, "[gate]\nmod = 'watch'\n").expect("a file");
    let told = rexec(&["gate", "test", "--rules", file.to_str().expect("text"), "ls"]);
    assert_eq!(told.status.code(), Some(1));
    let error = String::from_utf8(told.stderr).expect("text");
    assert!(error.contains("rules.toml:2:1: [gate] has no key `mod`\nhint: did you mean mode?"), "{error}");
}

/// Without a file, no rule is asked. In JSON, there are the fields that `rexec schema` lists.
#[test]
fn gate_prints_json_with_the_fields_of_its_schema() {
    let json: serde_json::Value = serde_json::from_str(&said(&["gate", "test", "--json", "rm -rf /"])).expect("JSON");
    let schema: serde_json::Value = serde_json::from_str(&said(&["schema", "gate"])).expect("JSON");
    let names = |value: &serde_json::Value| value.as_object().map(|object| object.keys().cloned().collect::<Vec<_>>());
    assert_eq!(names(&json), names(&schema["properties"]));
    assert_eq!((&json["do"], &json["leaves"][0]["program"]), (&"allow".into(), &"rm".into()));
    assert_eq!(json["why"], "no rule matches `rm -rf /`");
}

/// `rexec gate` over the journals of a directory, which is also the home.
fn gate_over(home: &Path, args: &[&str]) -> Output {
    let mut command = programs::command(programs::rexec());
    command.arg("gate").args(args).env_clear().env("PATH", programs::PATH);
    command.env("HOME", home).env("REXEC_HOME", home).env("REXEC_SOCKET", "/nonexistent/host.sock");
    command.output().expect("it starts")
}

#[test]
fn gate_replays_the_commands_of_journals_through_earlier_and_later_rules() {
    let home = TempDir::new(None);
    let path = home.path();
    let first = Sample::new("2026-05-21-10:00:00")
        .run(1, "git push -f origin x", "\"exit\":0,\"output\":\"\"")
        .run(2, "echo 'git push -f'", "\"exit\":0,\"output\":\"\"")
        .line(r#"{"v":1,"type":"environment","id":1,"set":{"HOME":"/root","TREE":"/srv"}}"#)
        .line(
            r#"{"v":1,"type":"start","seq":3,"time":"2026-05-21T10:00:03Z","whoami":"Claude Code","dir":"/srv/api","exec":["/opt/rexec-bash","-lc","rm -rf $TREE/x"],"command":"hidden","env":{"id":1}}"#,
        )
        .line(
            r#"{"v":1,"type":"start","seq":4,"time":"2026-05-21T10:00:04Z","whoami":"Codex","dir":"/srv/api","exec":["bash","-c","git push -f"],"command":"git push -f","sandbox":"codex"}"#,
        )
        .start(5, "git push --force");
    first.write(path);
    // It begins with the start of the run that goes on.
    first.continues("2026-05-21-11:00:00").start(5, "git push --force").write(path);
    fs::write(path.join("new.toml"), "[gate]\npacks = ['git']\n[[rule]]\nname = 'trees'\ndo = 'deny'\nrun = 'rm'\nwith = ['-r']\noutside = ['/tmp']\n")
        .expect("a file");
    let new = path.join("new.toml").display().to_string();
    let replay = |args: &[&str]| gate_over(path, &[&["replay", "--since", "2026-05-01"], args].concat());
    let told = replay(&["--rules", &new]);
    let text = String::from_utf8(told.stdout).expect("text");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |run: &str| rows.iter().find(|row| row[0] == run).map(|row| row[4..6].join(" "));
    assert_eq!(row("#1").as_deref(), Some("allow ask"), "{text}");
    assert_eq!(row("#3").as_deref(), Some("allow deny"), "{text}");
    assert_eq!(row("#5").as_deref(), Some("allow ask"), "{text}");
    assert!(text.contains("rm -rf /srv/x") && !text.contains("hidden"), "the value of that time: {text}");
    assert!(text.contains("of 4 commands, 3 are judged in another way: 1 deny, 2 ask\n"), "{text}");
    assert!(text.ends_with("no rule reaches into a sandbox: 1 command\n") && told.status.success(), "{text}");

    // Against rules that say the same of pushes, only the rest differs.
    fs::create_dir_all(path.join(".config/rexec")).expect("a directory");
    fs::write(path.join(".config/rexec/config.toml"), "[gate]\npacks = ['git']\n").expect("a file");
    let told = replay(&["--rules", &new, "--json"]);
    let forms: Vec<serde_json::Value> =
        String::from_utf8_lossy(&told.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(forms.len(), 1, "{forms:?}");
    assert_eq!(
        (&forms[0]["run"], &forms[0]["before"], &forms[0]["do"]),
        (&"3".into(), &"allow".into(), &"deny".into())
    );
    let schema: serde_json::Value = serde_json::from_str(&said(&["schema", "gate-replay"])).expect("JSON");
    let known = schema["properties"].as_object().expect("fields");
    assert!(forms[0].as_object().is_some_and(|form| form.keys().all(|name| known.contains_key(name))), "{forms:?}");
    let told = replay(&["--rules", &new, "--agent", "codex"]);
    assert!(String::from_utf8_lossy(&told.stdout).starts_with("of 3 commands, none is judged"), "{told:?}");
    assert_eq!(told.status.code(), Some(1));

    let told = gate_over(path, &["explain", "--rules", &new, "3"]);
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(text.contains("deny: rule trees (new.toml:3) denies `rm -rf /srv/x`"), "{text}");
    assert_eq!(told.status.code(), Some(4));
    // A code of its own would be that of a rule that asks.
    assert_eq!(gate_over(path, &["explain", "99"]).status.code(), Some(1));
}
