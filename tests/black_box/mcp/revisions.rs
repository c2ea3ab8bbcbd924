//! The revisions of the protocol: how each begins, and what each refuses. No host runs.

use serde_json::{Value, json};

use super::agent::Agent;
use crate::support::programs;
use crate::support::temp::TempDir;

/// A server without a host.
fn alone() -> (TempDir, Agent) {
    let home = TempDir::new(None);
    let agent = Agent::at(home.path(), &["mcp"]);
    (home, agent)
}

/// What the server answers to this line.
fn answer_to(agent: &mut Agent, line: &str) -> Value {
    let before = agent.said().len();
    agent.say_line(line);
    let more = || agent.said().into_iter().nth(before);
    crate::support::waiting::until(super::agent::CALL_PATIENCE, more).unwrap_or_else(|| panic!("no answer to {line}"))
}

/// A result without the parts that have tests of their own.
fn bare(mut answer: Value) -> Value {
    if let Some(result) = answer.get_mut("result").and_then(Value::as_object_mut) {
        for (name, known) in [("instructions", "string"), ("tools", "array")] {
            let is_right = |value: &Value| if known == "string" { value.is_string() } else { value.is_array() };
            if result.get(name).is_some_and(is_right) {
                result.insert(name.to_owned(), json!("…"));
            }
        }
    }
    answer
}

#[test]
fn each_revision_with_a_handshake_is_spoken() {
    let server = json!({"name": "rexec", "title": "rexec", "version": env!("CARGO_PKG_VERSION")});
    for (asked, spoken) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let (_home, mut agent) = alone();
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let line = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
        let expected = json!({"jsonrpc": "2.0", "id": 0, "result": {
            "protocolVersion": spoken, "capabilities": {"tools": {}}, "serverInfo": server, "instructions": "…",
        }});
        assert_eq!(bare(answer_to(&mut agent, &line)), expected);
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        let listed = answer_to(&mut agent, r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}"#);
        assert_eq!(bare(listed), json!({"jsonrpc": "2.0", "id": "a", "result": {"tools": "…"}}));
        let ping = answer_to(&mut agent, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(ping, json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert_eq!(agent.leave(), Some(0));
    }
}

#[test]
fn the_stateless_revision_is_spoken() {
    let (_home, mut agent) = alone();
    let meta = |version: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
        })
    };
    let line = |id: &Value, method: &str, version: &str, more: Value| {
        let mut params = more;
        params["_meta"] = meta(version);
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let server = json!({"name": "rexec", "title": "rexec", "version": env!("CARGO_PKG_VERSION")});
    let own = json!({"io.modelcontextprotocol/serverInfo": server});
    let probe = line(&json!("server-discover-probe-1"), "server/discover", "2026-07-28", json!({}));
    let expected = json!({"jsonrpc": "2.0", "id": "server-discover-probe-1", "result": {
        "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": "…",
        "ttlMs": 3_600_000, "cacheScope": "private", "resultType": "complete", "_meta": own,
    }});
    assert_eq!(bare(answer_to(&mut agent, &probe)), expected);
    let list = line(&json!(2), "tools/list", "2026-07-28", json!({}));
    let expected = json!({"jsonrpc": "2.0", "id": 2, "result": {
        "tools": "…", "ttlMs": 3_600_000, "cacheScope": "private", "resultType": "complete", "_meta": own,
    }});
    assert_eq!(bare(answer_to(&mut agent, &list)), expected);
    let call = line(&json!(3), "tools/call", "2026-07-28", json!({"name": "check_host", "arguments": {}}));
    let expected = json!({"jsonrpc": "2.0", "id": 3, "result": {
        "content": [{"type": "text", "text": "HOST NOT FOUND\n"}], "isError": false,
        "resultType": "complete", "_meta": own,
    }});
    assert_eq!(answer_to(&mut agent, &call), expected);
    let unknown = answer_to(&mut agent, &line(&json!(4), "tools/list", "2031-01-01", json!({})));
    let data = json!({"supported": ["2026-07-28"], "requested": "2031-01-01"});
    assert_eq!((&unknown["error"]["code"], &unknown["error"]["data"]), (&json!(-32_022), &data));
    for method in ["subscriptions/listen", "ping", "resources/list"] {
        let refused = answer_to(&mut agent, &line(&json!(5), method, "2026-07-28", json!({})));
        assert_eq!(refused["error"]["code"], -32_601, "{method}");
    }
}

#[test]
fn what_is_not_understood_is_refused_at_once() {
    let (_home, mut agent) = alone();
    for (line, id, code) in [
        ("nonsense", json!(null), -32_700),
        ("[]", json!(null), -32_600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, json!(null), -32_600),
        ("7", json!(null), -32_600),
        (r#"{"jsonrpc":"2.0","id":8}"#, json!(8), -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), -32_600),
        (r#"{"jsonrpc":"2.0","id":8,"method":"ping","params":[]}"#, json!(8), -32_600),
        (r#"{"jsonrpc":"2.0","id":9,"method":"prompts/list"}"#, json!(9), -32_601),
        (r#"{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}"#, json!(9), -32_601),
        (r#"{"jsonrpc":"2.0","id":9,"method":"logging/setLevel"}"#, json!(9), -32_601),
        (r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{}}"#, json!(10), -32_602),
        (r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"sudo"}}"#, json!(10), -32_602),
    ] {
        let answer = answer_to(&mut agent, line);
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{line}");
    }
    // Nobody answers these.
    for line in [
        r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
        "",
    ] {
        agent.say_line(line);
    }
    let ping = answer_to(&mut agent, r#"{"jsonrpc":"2.0","id":11,"method":"ping"}"#);
    assert_eq!(ping["id"], 11);
}

#[test]
fn a_batch_is_taken_in_the_revision_that_has_them() {
    let (_home, mut agent) = alone();
    let hands =
        json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    agent.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hands}));
    agent.answer(0);
    agent.say_line(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"},7]"#);
    assert_eq!(agent.answer(1)["result"], json!({}));
    assert!(agent.answer(2)["result"]["tools"].is_array());
    agent.wait_for("error for the third", |message| message["error"]["code"] == -32_600);
}

#[test]
fn a_long_line_is_skipped() {
    let (_home, mut agent) = alone();
    agent.say_line(&"x".repeat(5 << 20));
    let error = agent.wait_for("error", |message| message["error"]["code"] == -32_600);
    assert!(error["error"]["message"].as_str().expect("text").contains("4194304 bytes"), "{error}");
    let id = agent.ask("ping", &json!({}));
    agent.answer(id);
}

#[test]
fn tools_are_described_as_agents_need_it() {
    let (_home, mut agent) = alone();
    let id = agent.ask("tools/list", &json!({}));
    let answer = agent.answer(id);
    let tools = answer["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["exec", "output", "write", "kill", "undo", "list", "check_host"]);
    for tool in tools {
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "or Claude Code hides it");
        assert!(tool["_meta"]["anthropic/maxResultSizeChars"].as_u64() > Some(10_000));
        let only_reads = ["output", "list", "check_host"].contains(&tool["name"].as_str().expect("a name"));
        assert_eq!(tool["annotations"]["readOnlyHint"], only_reads, "{tool}");
        assert_eq!((&tool["inputSchema"]["type"], tool.get("outputSchema")), (&json!("object"), None));
    }
    let given = tools[0]["inputSchema"]["properties"].as_object().expect("properties");
    for name in ["dir", "argv", "envs", "stdin", "timeout", "clear_env", "command", "background", "name", "tty", "why"]
    {
        assert!(given.contains_key(name), "{name}");
    }
}

#[test]
fn the_help_has_the_numbers_of_the_code() {
    use rexec_host::limits::{MCP_BACKGROUND_LOOK, MCP_CALL, MCP_PROGRESS_EVERY, MCP_TEXT_BYTES};
    let help = programs::command(programs::rexec()).args(["help", "mcp"]).output();
    let help = String::from_utf8(help.expect("rexec").stdout).expect("text");
    assert_eq!((MCP_TEXT_BYTES, MCP_CALL.as_secs(), MCP_BACKGROUND_LOOK.as_secs()), (10_000, 45, 1));
    assert_eq!(MCP_PROGRESS_EVERY.as_millis(), 250);
    for words in ["more than 10,000 bytes", "longer than 45 seconds", "after a second", "up to four\ntimes a second"] {
        assert!(help.contains(words), "{words}");
    }
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(help.contains(version), "{version}");
    }
}

#[test]
fn wrong_arguments_are_results_that_a_model_can_read() {
    let (_home, mut agent) = alone();
    for (tool, arguments, says) in [
        ("exec", json!({}), "needs command, a string, or argv"),
        ("exec", json!({"command": " "}), "needs command"),
        ("exec", json!({"argv": []}), "needs command"),
        ("exec", json!({"argv": ["ls"], "command": "ls"}), "and not both"),
        ("exec", json!({"argv": ["ls", 7]}), "as argv: a list of strings"),
        ("exec", json!({"command": "ls", "cwd": "/"}), "has no argument `cwd`"),
        ("exec", json!({"command": "ls", "envs": ["A"]}), "VAR=VAL"),
        ("exec", json!({"command": "ls", "env": {"A": 1}}), "as env: an object of strings"),
        ("exec", json!({"command": "ls", "timeout": -1}), "as timeout: a number of seconds"),
        ("exec", json!({"command": "ls", "tty": "yes"}), "as tty: true or false"),
        ("output", json!({}), "needs run"),
        ("output", json!({"run": "x"}), "as run: a whole number"),
        ("write", json!({"run": 1}), "needs text, key or eof"),
        ("write", json!({"run": 1, "key": "hyper-x"}), "as key: ctrl-c"),
        ("kill", json!({"run": 1, "signal": []}), "as signal"),
        ("list", json!({"all": 3}), "as all"),
    ] {
        let result = agent.call(tool, &arguments);
        assert!(result.is_error && result.text.contains(says), "{tool} {arguments}: {}", result.text);
        assert!(result.text.starts_with(&format!("rexec: {tool} ")), "{}", result.text);
    }
}
