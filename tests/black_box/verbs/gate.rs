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

/// A journal of an agent that uses docker, git and npm as agents do.
fn everyday() -> Sample {
    let mut sample = Sample::new("2026-05-21-10:00:00");
    let mut seq = 0;
    let mut add = |times: usize, command: &str, end: &str| {
        for _ in 0..times {
            seq += 1;
            sample = std::mem::replace(&mut sample, Sample::new("")).run(seq, command, end);
        }
    };
    let ended = "\"exit\":0,\"output\":\"\"";
    add(8, "cd /srv && docker ps -a | head", ended);
    add(3, "docker compose -f a.yml logs web", ended);
    add(2, "timeout 60 bash -c 'docker ps'; curl x.example", ended);
    add(8, "git -C /srv status && git diff", ended);
    add(4, "git push -u origin topic", ended);
    add(1, "git push -f", ended);
    add(3, "git checkout main", ended);
    add(3, "python3 -c 'print(1)'", ended);
    add(1, "npm run dev", ended);
    add(2, "cd web && npm run dev", "\"exit\":143,\"by\":\"console\",\"output\":\"\"");
    add(4, "npm run build && npm run dev", "\"exit\":143,\"by\":\"kill\",\"output\":\"\"");
    add(2, "npm run deploy", "\"exit\":130,\"by\":\"console\",\"output\":\"\"");
    add(4, "npm test", "\"exit\":143,\"by\":\"caller\",\"output\":\"\"");
    sample.line(
        r#"{"v":1,"type":"start","seq":90,"time":"2026-05-22T10:00:04Z","whoami":"Ev\nil]","dir":"/srv","exec":["bash","-c","docker ps"],"command":"x"}"#,
    )
}

#[test]
fn gate_learns_rules_from_what_agents_do_and_from_what_a_person_stopped() {
    let home = TempDir::new(None);
    let path = home.path();
    everyday().write(path);
    let learned = |args: &[&str]| {
        let told = gate_over(path, &[&["learn", "--since", "2026-05-01"], args].concat());
        (told.status.code(), String::from_utf8(told.stdout).expect("text"))
    };
    let (code, text) = learned(&[]);
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "[gate]\npacks = [\"git\", ",
        "# 11 commands of Ev_il_, codex; the last is #90, 2026-05-22.\n[[rule]]\ndo = \"allow\"\nrun = \"docker ps\"\n",
        "run = \"docker compose logs\"\n",
        "# All else of docker: of the 46 commands it asks about 0.\n[[rule]]\nname = \"docker-seldom\"\ndo = \"ask\"\nrun = \"docker\"\n",
        "run = \"git push\"\nwithout = [\"-f|--force|",
        "# All else of git: too often asked for a rule, of the 46 commands it asks about 3.\n# [[rule]]\n",
        "# 7 commands of codex, 2 stopped by you; the last is #",
        "# 2 commands of codex, 2 stopped by you; the last is #41, 2026-05-21.\n[[rule]]\ndo = \"ask\"\nrun = \"npm run deploy\"\n",
        "the packs ask about: git 1, files 0,",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("\"python3\"") && !text.contains("\"bash\"") && !text.contains("git checkout"), "{text}");
    assert!(text.ends_with("\n# of 46 commands, 3 are judged in another way: 3 ask\n"), "{text}");

    let file = path.join("learned.toml");
    fs::write(&file, &text).expect("a file");
    let rules = file.display().to_string();
    let judged = |text: &str| gate_over(path, &["test", "--rules", &rules, text]).status.code();
    for (command, code) in [
        ("docker ps", 0),
        ("docker system prune -f", 3),
        ("docker compose down -v", 3),
        ("docker $x", 3),
        ("git push origin a", 0),
        ("git push --force origin a", 3),
        ("git diff > /dev/sda", 3),
        ("npm run dev", 0),
        ("npm run deploy -- x", 3),
        ("npm publish", 3),
    ] {
        assert_eq!(judged(command), Some(code), "{command}\n{text}");
    }
    let told = gate_over(path, &["replay", "--since", "2026-05-01", "--rules", &rules]);
    assert!(String::from_utf8_lossy(&told.stdout).ends_with("of 46 commands, 3 are judged in another way: 3 ask\n"));

    let schema: serde_json::Value = serde_json::from_str(&said(&["schema", "gate-learn"])).expect("JSON");
    let known = schema["properties"].as_object().expect("fields");
    let (_, json) = learned(&["--json"]);
    let forms: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(
        forms.iter().all(|form| form.as_object().is_some_and(|form| form.keys().all(|key| known.contains_key(key))))
    );
    assert!(forms.iter().any(|form| form["run"] == "git" && form["active"] == false && form["runs"] == 3), "{json}");
    assert_eq!(learned(&["--agent", "gemini"]).0, Some(1));
}

/// What is learned stands behind a person's own rules: the file with both is right, and no own rule is lifted.
#[test]
fn gate_learns_rules_that_go_behind_those_of_a_person() {
    let home = TempDir::new(None);
    let path = home.path();
    everyday().write(path);
    fs::create_dir_all(path.join(".config/rexec")).expect("a directory");
    let config = path.join(".config/rexec/config.toml");
    let own = "[gate]\npacks = ['git']\n[[rule]]\ndo = 'allow'\nrun = 'git'\n[[rule]]\ndo = 'ask'\nrun = 'docker ps'\nwith = ['-a']\n";
    fs::write(&config, own).expect("a file");
    let learn = |since: &str| {
        let told = gate_over(path, &["learn", "--since", since]);
        String::from_utf8(told.stdout).expect("text")
    };
    let text = learn("2026-05-01");
    assert!(!text.contains("[gate]") && !text.contains("run = \"git"), "an own rule allows all of git: {text}");
    assert!(text.contains("run = \"docker ps\"\n"), "{text}");
    fs::write(&config, format!("{own}{text}")).expect("a file");
    let judged = |text: &str| gate_over(path, &["test", text]).status.code();
    assert_eq!([judged("docker ps"), judged("docker ps -a"), judged("docker rm x")], [Some(0), Some(3), Some(3)]);
    // Those rules are there already.
    assert!(!learn("2026-05-01").contains("run = \"docker ps\"\n"));
}
