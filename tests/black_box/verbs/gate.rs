//! `rexec gate`: what rules say of a text. Nothing is run.

use std::fs;

use super::{rexec, said};
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
