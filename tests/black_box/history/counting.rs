//! `rexec stats`, `sessions` and `schema`.

use std::fs;
use std::path::Path;

use rexec_host::journal::record::{
    EndRecord, GateRecord, LostRecord, PublishedCard, RecordedOutput, RunEnd, StartRecord, Straggler, line,
};
use serde_json::Value;

use super::reading::said;
use super::samples::Sample;
use crate::support::host::Host;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::verbs::live;

fn json(home: &Path, args: &[&str]) -> Vec<Value> {
    let (text, _) = said(home, args);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn stats_count_each_agent() {
    let home = TempDir::new(None);
    let home = home.path();
    assert_eq!(said(home, &["stats"]).1, 1);
    Sample::new("2026-05-21-09:42:18")
        .run(1, "cargo test", "\"exit\":101,\"duration_ms\":5000,\"bytes\":10,\"secrets\":2")
        .run(2, "cargo test", "\"exit\":0,\"duration_ms\":7000,\"bytes\":20,\"received\":5,\"hidden\":3")
        .run(3, "ls", "\"exit\":0,\"duration_ms\":1")
        .start(4, "runs")
        .line("{\"v\":1,\"type\":\"lost\",\"seq\":5,\"whoami\":\"Claude Code\",\"command\":\"x\\u001b[2J\"}")
        .write(home);
    let lines = json(home, &["stats", "--json"]);
    let codex = lines.iter().find(|line| line["agent"] == "codex").unwrap();
    for (field, value) in [("commands", 3), ("failed", 1), ("lost", 0), ("duration_ms", 12_001), ("bytes", 30)]
        .into_iter()
        .chain([("secrets", 2), ("received", 15), ("saved", 15), ("hidden", 3)])
    {
        assert_eq!(codex[field], value, "{field}");
    }
    let claude = lines.iter().find(|line| line["agent"] == "claude").unwrap();
    assert_eq!((&claude["failed"], &claude["lost"]), (&1.into(), &1.into()));
    let (text, _) = said(home, &["stats"]);
    assert!(text.contains("7.0 s  codex  #2  cargo test") && text.contains("1 of 2  cargo test"), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
    assert_eq!(json(home, &["stats", "--json", "--since", "2026-05-21T10:00:02Z"])[0]["commands"], 2);
    assert_eq!(said(home, &["stats", "--today"]).1, 1);
}

#[test]
fn conditions_hold_for_a_record_in_any_spelling() {
    let home = TempDir::new(None);
    let home = home.path();
    let fields = "\"output\":\"\\\"exit\\\":7\",\"time\":\"2026-05-21T10:00:00Z\",\"command\":\"c\"}";
    let record = |seq: u32, caller: &str, dir: &str, exit: &str| {
        format!("{{\"v\":1,\"type\":\"end\",\"seq\":{seq},\"whoami\":{caller},\"dir\":{dir},\"exit\":{exit},{fields}")
    };
    Sample::new("2026-05-21-09:42:18")
        .line(&record(1, "\"Codex\"", "\"/a b/é\"", "7"))
        .line(&record(2, "\"C\\u006fdex\"", "\"\\/a\\u0020b\\/\\u00e9\"", "7"))
        .line(&record(3, "\"Codex\"", "\"/a b/é\"", "7").replace(':', " : ").replace("T10 : 00 : 00Z", "T10:00:00Z"))
        .line(&record(4, "\"Cline\"", "\"/a b\"", "77"))
        .write(home);
    for args in [["--exit", "7"], ["--cwd", "/a b/é"], ["--agent", "codex"]] {
        let lines = json(home, &[&["log", "--json"][..], &args].concat());
        let found: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert_eq!(found, [1, 2, 3], "{args:?}");
    }
    assert_eq!(json(home, &["stats", "--json"]).len(), 2, "one row for Codex, one for Cline");
}

#[test]
fn sessions_have_their_files_and_their_numbers() {
    let home = TempDir::new(None);
    let home = home.path();
    assert_eq!(said(home, &["sessions"]).1, 1);
    for verb in ["log", "stats", "sessions"] {
        let output = programs::command(programs::rexec())
            .arg(verb)
            .env("REXEC_HOME", home)
            .output()
            .expect("the program starts");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(told, format!("rexec: nothing found in the journals in {}\n", home.display()), "{verb}");
    }
    let close = "{\"v\":1,\"type\":\"close\",\"time\":\"2026-05-21T12:00:00.000Z\",\"commands\":2}";
    let first = Sample::new("2026-05-21-09:42:18").run(1, "a", "\"exit\":0").run(2, "b", "\"exit\":0");
    first.continues("2026-05-21-09:42:18-2").run(3, "c", "\"exit\":0").write(home);
    first.line(close).write(home);
    fs::write(
        home.join("2026-05-20-17:03:55.jsonl"),
        "{\"exec\":[\"id\"],\"exit\":0,\"time\":\"2026-05-20T17:04:00Z\"}\n",
    )
    .unwrap();
    fs::write(home.join("2026-05-19-17:03:55.jsonl"), "").unwrap();
    let lines = json(home, &["sessions", "--json"]);
    let of = |name: &str| lines.iter().find(|line| line["session"] == name).unwrap();
    let (newest, prior) = (of("2026-05-21-09:42:18"), of("2026-05-20-17:03:55"));
    assert_eq!((&newest["commands"], &newest["files"], &newest["is_running"]), (&3.into(), &2.into(), &false.into()));
    assert_eq!(newest["began"], "2026-05-21T09:00:00.000Z");
    assert_eq!((&prior["commands"], &prior["began"]), (&1.into(), &"2026-05-20T17:04:00Z".into()));
    assert_eq!(of("2026-05-19-17:03:55")["commands"], 0);
    assert!(said(home, &["sessions"]).0.lines().last().unwrap().starts_with("2026-05-21-09:42:18  "));
}

/// Checks a value against the parts of JSON Schema that `rexec schema` uses.
fn check(value: &Value, schema: &Value, place: &str) {
    if let Some(fixed) = schema.get("const") {
        return assert_eq!(value, fixed, "{place}");
    }
    let kinds = match &schema["type"] {
        Value::Array(kinds) => kinds.clone(),
        kind => vec![kind.clone()],
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) => {
            if number.is_u64() || number.is_i64() {
                "integer"
            } else {
                "number"
            }
        }
        Value::String(_) => "string",
        Value::Array(items) => {
            items.iter().for_each(|item| check(item, &schema["items"], place));
            "array"
        }
        Value::Object(fields) => {
            if let Some(values) = schema.get("additionalProperties") {
                fields.values().for_each(|value| check(value, values, place));
            }
            if let Some(properties) = schema.get("properties") {
                for (name, value) in fields {
                    let field = properties.get(name).unwrap_or_else(|| panic!("{place} lacks {name}"));
                    check(value, field, &format!("{place}: {name}"));
                }
            }
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(name.as_str().unwrap()), "{place} has no {name}");
            }
            "object"
        }
    };
    assert!(kinds.contains(&kind.into()), "{place}: {value} is not {kinds:?}");
}

/// A record of a run with every field.
fn full_record() -> Vec<u8> {
    let start = StartRecord {
        card: PublishedCard { unwrapped: true, probe: true, ..PublishedCard::default() },
        exec_b64: Some(vec!["YQ==".into()]),
        dir_b64: Some("YQ==".into()),
        clipped: true,
        exec_text: [(0, rexec_host::journal::record::TextRef::default())].into(),
        ..StartRecord::default()
    };
    let end = RunEnd {
        signal: Some(2),
        error: Some("aborted".into()),
        left: vec![Straggler { pid: 9, comm: "node".into(), ports: Vec::new() }],
        left_count: 2,
        unkillable: vec![11],
        gate: Some(GateRecord { rule: Some("x".into()), ..GateRecord::default() }),
        ..RunEnd::default()
    };
    let output = RecordedOutput {
        text: "x".into(),
        omitted: Some(1),
        cut: Some(1),
        lost: Some(1),
        raw: Some("raw/x".into()),
        raw_bytes: Some(1),
        raw_omitted: Some(1),
        raw_cut: Some(1),
        raw_error: Some("x".into()),
        secrets: 1,
        recording: Some("raw/x.rec".into()),
        recording_at: Some((1, 2)),
        recording_omitted: Some(1),
        recording_error: Some("x".into()),
    };
    let lost = line("lost", &LostRecord { start: start.clone() });
    [line("start", &start), EndRecord { start, end, output }.line(), lost].concat()
}

#[test]
fn the_schema_holds_for_real_records_and_for_every_json_form() {
    let host = Host::start();
    std::fs::create_dir(host.home.join(".git")).expect("a directory");
    let long = format!("true {}", "x".repeat(8_000));
    for script in ["echo hi; exit 3", "seq 1 100000", "kill -9 $$", "sleep 1 >/dev/null 2>&1 & true", &long] {
        host.run(script);
    }
    let home = host.journal_home();
    let titled = |schema: Value| (schema["title"].as_str().unwrap().to_owned(), schema);
    let schemas: std::collections::BTreeMap<_, _> = json(&home, &["schema"]).into_iter().map(titled).collect();
    let check_as = |title: &str, value: &Value| {
        let schema = schemas.get(title).unwrap_or_else(|| panic!("no schema of {title}: {value}"));
        check(value, schema, title);
    };
    let full = String::from_utf8(full_record()).unwrap();
    let made = full.lines().map(|line| serde_json::from_str(line).unwrap());
    let real = host.wait_for("five ends", |journal| {
        (journal.of_type("end").count() == 5)
            .then(|| journal.records.iter().map(|(_, record)| record.clone()).collect())
    });
    let real: Vec<Value> = real;
    for record in real.into_iter().chain(made) {
        check_as(&format!("record {}", record["type"].as_str().unwrap()), &record);
    }
    for (title, args) in [
        ("json log", &["log", "--json"][..]),
        ("json show", &["show", "2", "--json"]),
        ("json show", &["show", "-1", "--json"]),
        ("json out", &["out", "1", "--json"]),
        ("json stats", &["stats", "--json"]),
        ("json sessions", &["sessions", "--json"]),
        ("json diff", &["diff", "1", "3", "--json"]),
    ] {
        let lines = json(&home, args);
        assert!(!lines.is_empty(), "{args:?}");
        lines.iter().for_each(|line| check_as(title, line));
    }
    let _runs = live::start(&host, "Codex", "sleep 1000");
    host.wait_for("a sixth start", |journal| (journal.of_type("start").count() == 6).then_some(()));
    for (title, verb) in [("json ps", "ps"), ("json status", "status"), ("json doctor", "doctor")] {
        let text = live::rexec(&host, &[verb, "--json"]).out;
        assert!(!text.is_empty(), "{verb}");
        text.lines().for_each(|line| check_as(title, &serde_json::from_str(line).expect("JSON")));
    }
    let project = host.home.path().file_name().expect("a name").to_string_lossy().into_owned();
    let background = ["exec", "--bg", "--json", "--name", "job", "--wait", "60", "--", "sh", "-c", "echo no; exit 3"];
    for (title, args) in [
        ("json wait", &background[..]),
        ("json wait", &["wait", "job", "--json"]),
        ("json services", &["services", "--json"]),
        ("json projects", &["projects", "--json"]),
        ("json projects", &["projects", "--pause", &project, "--json"]),
        ("json ended-project", &["projects", "--end", &project, "--json"]),
    ] {
        let text = live::rexec(&host, args).out;
        assert!(!text.is_empty(), "{args:?}");
        text.lines().for_each(|line| check_as(title, &serde_json::from_str(line).expect("JSON")));
    }
    assert_eq!(said(&home, &["schema", "end"]).0.lines().count(), 1);
    assert_eq!(said(&home, &["schema", "nothing"]).1, 1);
}
