//! `rexec schema rpc`: the document is OpenRPC, and the host does what it says.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::client::Client;
use crate::runs::rules::host;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;

const BAD_PARAMS: i64 = -32_602;

fn said(args: &[&str]) -> String {
    let seen = programs::command(env!("CARGO_BIN_EXE_rexec")).args(args).output().expect("it runs");
    String::from_utf8(seen.stdout).expect("text")
}

fn document() -> Value {
    serde_json::from_str(&said(&["schema", "rpc"])).expect("JSON")
}

/// Checks a value against a JSON Schema, with the words that the specification of OpenRPC and the document use. What
/// refers to another document is not looked at. Returns the first mistake.
fn mistake(value: &Value, schema: &Value, root: &Value) -> Option<String> {
    let schema = schema.as_object()?;
    if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
        let place = path.strip_prefix('#')?;
        let there = root.pointer(place).unwrap_or_else(|| panic!("no {path}"));
        return mistake(value, there, root);
    }
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => panic!("no type {name}"),
    };
    let is_wanted = match schema.get("type") {
        Some(Value::String(name)) => is_type(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(is_type),
        _ => true,
    };
    if !is_wanted || schema.get("enum").and_then(Value::as_array).is_some_and(|words| !words.contains(value)) {
        return Some(format!("{value} is not of {schema:?}"));
    }
    if schema.get("minLength").is_some() && value == "" {
        return Some("an empty text".to_owned());
    }
    if let Some(forms) = schema.get("oneOf").and_then(Value::as_array) {
        let fitting = forms.iter().filter(|form| mistake(value, form, root).is_none()).count();
        if fitting != 1 {
            return Some(format!("{fitting} forms of {forms:?} fit {value}"));
        }
    }
    if let (Some(items), Some(schema)) = (value.as_array(), schema.get("items")) {
        let of = |at: usize| schema.as_array().map_or(Some(schema), |all| all.get(at));
        return items.iter().enumerate().find_map(|(at, item)| mistake(item, of(at)?, root));
    }
    let fields = value.as_object()?;
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            return Some(format!("no {name} in {value}"));
        }
    }
    fields.iter().find_map(|(name, field)| match known.get(name) {
        Some(schema) => mistake(field, schema, root).map(|what| format!("{name}: {what}")),
        None if name.starts_with("x-") => None,
        None => match schema.get("additionalProperties") {
            Some(Value::Bool(false))
                if schema.get("patternProperties").is_none_or(|all| all.get("[0-z]+").is_none()) =>
            {
                Some(format!("{name} is not known"))
            }
            Some(schema) => mistake(field, schema, root),
            None => None,
        },
    })
}

#[test]
fn the_document_is_open_rpc_and_has_all_methods() {
    let document = document();
    let meta: Value = serde_json::from_str(include_str!("../../data/openrpc/schema.json")).expect("JSON");
    assert_eq!(mistake(&document, &meta, &meta), None);
    for spoiled in ["openrpc", "info", "methods"] {
        let mut broken = document.clone();
        broken[spoiled] = json!(7);
        assert!(mistake(&broken, &meta, &meta).is_some(), "{spoiled}");
    }
    let mut broken = document.clone();
    broken["methods"][3]["params"][0]["colour"] = json!("red");
    assert!(mistake(&broken, &meta, &meta).is_some(), "an unknown field, deep down");
    let host = Host::with(MIRROR);
    let greeting = Client::new(&host).call("hello", &json!({}));
    let names = |all: &Value| -> BTreeSet<String> {
        all.as_array().expect("a list").iter().map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    let listed: Value =
        document["methods"].as_array().expect("methods").iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names(&listed), names(&greeting["methods"]));
}

/// Returns true if an interface declares this name.
fn declared(types: &str, block: &str, name: &str) -> bool {
    let lines = types.lines().skip_while(|line| *line != format!("export interface {block} {{"));
    lines.take_while(|line| *line != "}").any(|line| line.trim_start().starts_with(&format!("{name}:")))
}

#[test]
fn the_types_of_typescript_have_all_that_the_document_has() {
    let (document, types) = (document(), said(&["schema", "rpc", "--typescript"]));
    for method in document["methods"].as_array().expect("methods") {
        assert!(declared(&types, "Methods", &method["name"].to_string()), "{}", method["name"]);
    }
    for event in document["x-notifications"].as_array().expect("events") {
        assert!(declared(&types, "Events", &event["title"].to_string()), "{}", event["title"]);
    }
    for (name, schema) in document["components"]["schemas"].as_object().expect("schemas") {
        for (field, _) in schema["properties"].as_object().expect("fields") {
            let is_required = schema["required"].as_array().is_some_and(|all| all.iter().any(|known| known == field));
            let mark = if is_required { "" } else { "?" };
            assert!(declared(&types, name, &format!("{field}{mark}")), "{name}.{field}");
        }
    }
    for code in document["components"]["errors"].as_object().expect("errors").keys() {
        assert!(types.contains(&format!("\n  | {code}")), "{code}");
    }
    assert_eq!(types.matches('{').count(), types.matches('}').count());
}

/// A client may be newer than the host, and may not be older than what that serves.
#[test]
fn hello_settles_the_number_of_the_protocol() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    for spoken in [json!(null), json!(1), json!(2), json!(4_000_000_000_u32)] {
        assert_eq!(client.call("hello", &json!({"protocol": spoken}))["protocol"], 1, "{spoken}");
    }
    let id = client.ask("hello", &json!({"protocol": 0, "whoami": "old"}));
    let error = client.reply(id)["error"].take();
    assert_eq!(error["code"], BAD_PARAMS);
    assert_eq!(error["message"], "protocol: this host serves 1 and later ones, not 0");
    assert_eq!(error["data"]["hint"], "update the client");
}

/// A value that a schema allows.
fn valid(name: &str, schema: &Value) -> Value {
    match (name, schema["type"].as_str()) {
        ("command", _) => json!("true"),
        ("argv", _) => json!(["true"]),
        _ if schema["enum"].is_array() => schema["enum"][0].clone(),
        _ if schema["oneOf"].is_array() => valid(name, &schema["oneOf"][0]),
        (_, Some("boolean")) => json!(true),
        (_, Some("integer" | "number")) => json!(1),
        (_, Some("string")) => json!("YQ=="),
        (_, Some("array")) => match &schema["items"] {
            Value::Array(parts) => parts.iter().map(|part| valid("", part)).collect(),
            item => json!([valid("", item)]),
        },
        (_, Some("object")) => match schema["properties"].as_object() {
            Some(fields) => {
                fields.iter().map(|(name, schema)| (name.clone(), valid(name, schema))).collect::<Map<_, _>>().into()
            }
            None => json!({"NAME": valid("", &schema["additionalProperties"])}),
        },
        _ => json!("anything"),
    }
}

/// A value of another type than the schema's; `None` if it allows any.
fn wrong(schema: &Value) -> Option<Value> {
    if schema["oneOf"].is_array() {
        return Some(json!(true));
    }
    Some(match schema["type"].as_str()? {
        "string" if schema["enum"].is_array() => json!("no such word"),
        "string" => json!(7),
        _ => json!("a text"),
    })
}

/// Returns true if the host could not read the parameters at all. What they say may still be refused.
fn is_unread(error: &Value) -> bool {
    let words = [
        "invalid type",
        "invalid value",
        "invalid length",
        "unknown variant",
        "unknown field",
        "missing field",
        "neither",
        "expected",
    ];
    let message = error["message"].as_str().expect("a sentence");
    error["code"] == BAD_PARAMS && words.iter().any(|word| message.contains(word))
}

#[test]
fn the_host_reads_the_parameters_of_the_document_and_answers_as_it_says() {
    let document = document();
    let host = host(HOLDS, MIRROR);
    let mut client = Client::new(&host);
    let dir = host.home.path().display().to_string();
    client.call("exec.run", &json!({"command": "true"}));
    let mut answered = BTreeSet::new();
    let mut seen = 0;
    for method in document["methods"].as_array().expect("methods") {
        let name = method["name"].as_str().expect("a name");
        let params = method["params"].as_array().expect("parameters");
        let takes_run = ["write", "resize", "signal", "pause"].iter().any(|end| name.ends_with(end));
        let is_start = params.len() > 20;
        let result = &method["result"]["schema"];
        let mut ask = |params: &Map<String, Value>, client: &mut Client| {
            let id = client.ask(name, &Value::Object(params.clone()));
            seen += 1;
            client.reply(id)
        };
        let base = |client: &mut Client| {
            let mut given = Map::new();
            for param in params.iter().filter(|param| param["required"] == true) {
                let own = param["name"].as_str().expect("a name");
                let value = match own {
                    "run" if takes_run => client.call("pty.spawn", &json!({"command": "cat"}))["run"].clone(),
                    "run" if name == "exec.resume" => {
                        let run = client.call("exec.start", &json!({"command": "sleep 1000"}))["run"].clone();
                        client.call("exec.pause", &json!({"run": run}));
                        run
                    }
                    "run" if name == "exec.decide" => {
                        client.call("exec.start", &json!({"command": "echo"}))["run"].clone()
                    }
                    "dir" => json!(dir),
                    "session" => {
                        // It may be there already.
                        let id = client.ask("session.create", &json!({"dir": dir}));
                        client.reply(id);
                        json!(dir)
                    }
                    _ => valid(own, &param["schema"]),
                };
                given.insert(own.to_owned(), value);
            }
            if is_start {
                given.insert("command".to_owned(), json!("true"));
            }
            given
        };
        for param in params.iter().map(Some).chain([None]) {
            let (mut good, mut bad) = (base(&mut client), None);
            if let Some(param) = param {
                let own = param["name"].as_str().expect("a name");
                if own == "argv" {
                    good.remove("command");
                }
                bad = wrong(&param["schema"]).map(|value| {
                    let mut bad = good.clone();
                    bad.insert(own.to_owned(), value);
                    (own, bad)
                });
                good.entry(own).or_insert_with(|| valid(own, &param["schema"]));
                if param["required"] == true {
                    let mut lacking = good.clone();
                    lacking.remove(own);
                    assert!(is_unread(&ask(&lacking, &mut client)["error"]), "{name} without {own}");
                }
            }
            let reply = ask(&good, &mut client);
            match reply.get("error") {
                Some(error) => assert!(!is_unread(error), "{name} {good:?}: {error}"),
                None => {
                    assert_eq!(mistake(&reply["result"], result, &document), None, "{name} {good:?}: {reply}");
                    answered.insert(name);
                }
            }
            if let Some((own, bad)) = bad {
                let reply = ask(&bad, &mut client);
                assert!(is_unread(&reply["error"]), "{name} {bad:?}: {reply}");
                let message = reply["error"]["message"].as_str().expect("a sentence");
                assert!(message.starts_with(own), "{name} {own}: {message}");
            }
        }
    }
    let all = document["methods"].as_array().expect("methods").iter().filter_map(|method| method["name"].as_str());
    let silent: Vec<&str> = all.filter(|name| !answered.contains(name)).collect();
    assert!(silent.is_empty(), "no good answer of {silent:?}");
    assert!(seen > 250, "{seen} calls");
}

/// Rules that hold a command.
const HOLDS: &str = "[gate]\nmode = 'enforce'\naway = 'wait'\n[[rule]]\ndo = 'ask'\nrun = 'echo'\n";

/// Listens on a port, and asks at its terminal.
const ASKER: &str = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); \
                     print('the word?', flush=True); open('/dev/tty').read()";

#[test]
fn the_host_tells_the_events_of_the_document_as_it_says() {
    if !programs::has("python3") {
        return;
    }
    let mut document = document();
    let forms: Vec<Value> = document["x-notifications"].as_array().expect("events").clone();
    // No field but those that it names.
    document["components"]["schemas"]["ListedRun"]["additionalProperties"] = json!(false);
    let host = host(HOLDS, Setup { flags: &["--prompts", "ask", "--prompt-wait", "300"], ..MIRROR });
    let mut client = Client::new(&host);
    let events = ["start", "held", "output", "prompt", "port", "remark", "exit"];
    client.call("events.subscribe", &json!({"events": events}));
    client.call("events.subscribe", &json!({"after": "now", "events": ["held"]}));
    let held = client.start(&json!({"command": "echo"}));
    client.call("exec.decide", &json!({"run": held, "allow": false, "why": "not now"}));
    let run = client.start(&json!({"argv": ["python3", "-c", ASKER], "why": "to be told"}));
    client.call("events.subscribe", &json!({"runs": [run], "encoding": "terminal"}));
    let resized = client.note("exec.resized", run);
    let early = [client.note("exec.port", run), client.note("exec.prompt", run)];
    client.call("exec.cancel", &json!({"run": run}));
    let mut told = client.story(run);
    told.extend(client.story(held));
    told.extend(
        ["exec.port", "exec.prompt"].into_iter().zip(early).map(|(name, note)| json!({"method": name, "params": note})),
    );
    told.push(json!({"method": "exec.resized", "params": resized}));
    told.push(json!({"method": "events.cursor", "params": client.cursor()}));
    let mut seen = BTreeSet::new();
    for event in &told {
        let name = event["method"].as_str().expect("a name");
        let form = forms.iter().find(|form| form["title"] == name).unwrap_or_else(|| panic!("{name} is not there"));
        let mut strict = form.clone();
        strict["additionalProperties"] = json!(false);
        assert_eq!(mistake(&event["params"], &strict, &document), None, "{event}");
        seen.insert(name);
    }
    assert_eq!(seen, forms.iter().filter_map(|form| form["title"].as_str()).collect());
    let lines: Vec<_> = told.iter().filter_map(|event| event["params"]["line"].as_str()).collect();
    assert!(lines.iter().any(|line| line.starts_with("… stopping: ")), "{lines:?}");
    assert!(told.iter().any(|event| event["method"] == "exec.started" && event["params"]["why"] == "to be told"));
}
