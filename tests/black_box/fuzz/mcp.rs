//! What agents and hosts send to `rexec mcp`, mutated.

use std::time::{Duration, Instant};

use rexec_host::front::lines::{ArrivedLine, Lines};
use rexec_host::front::mcp::{McpIdentity, McpServer};
use rexec_host::limits;
use serde_json::Value;

use super::mutation::mutated;
use crate::support::dice::{Dice, rounds};
use crate::support::waiting;

const FROM_AGENTS: [&str; 16] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"codex-mcp-client"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"é"}}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"exec","arguments":{"command":"make","dir":"a","env":{"A":"1"},"envs":["B=2"],"timeout":1.5,"stdin":"x"},"_meta":{"progressToken":"t"}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"exec","arguments":{"argv":["a","\u00e9"],"background":true,"tty":true,"name":"web"},"_meta":{"progressToken":4}}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"output","arguments":{"run":1,"after":0,"wait":0.5}}}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"write","arguments":{"run":"2","text":"y","key":"ctrl-c","eof":"true"}}}"#,
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"kill","arguments":{"run":2,"signal":"INT"}}}"#,
    r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"kill","arguments":{"run":1}}}"#,
    r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list","arguments":{"all":true}}}"#,
    r#"{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{"name":"check_host","arguments":null}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"x"}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#,
    r#"[{"jsonrpc":"2.0","id":11,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"resources/list"},[]]"#,
    r#"{"jsonrpc":"2.0","id":12,"result":{}}"#,
];

const FROM_HOSTS: [&str; 11] = [
    r#"{"jsonrpc":"2.0","id":1,"result":{"run":1}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"run":2}}"#,
    r#"{"jsonrpc":"2.0","id":3,"result":{"run":2,"running":true,"runs":[{"run":1,"state":"running","started_ms_ago":1,"ports":[3000],"command":"x"}]}}"#,
    r#"{"jsonrpc":"2.0","id":4,"result":{"chunks":[{"seq":1,"stream":"stdout","text":"one\n","at_ms":1}],"next":1,"gone":{"chunks":1,"bytes":9,"journal":"j"},"exited":false,"closed":false}}"#,
    r#"{"jsonrpc":"2.0","id":5,"result":{"chunks":[],"next":1,"exited":true,"exit":3,"signal":9,"closed":true}}"#,
    r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"no such run","data":{"hint":"x"}}}"#,
    r#"{"jsonrpc":"2.0","method":"exec.output","params":{"run":1,"seq":2,"stream":"stdout","text":"line\u001b[1m\nmore"}}"#,
    r#"{"jsonrpc":"2.0","method":"exec.output","params":{"run":2,"seq":9,"stream":"pty","text":"x","lost_bytes":7}}"#,
    r#"{"jsonrpc":"2.0","method":"exec.exited","params":{"run":1,"exit":1,"error":"aborted","message":"m","duration_ms":1}}"#,
    r#"{"jsonrpc":"2.0","method":"exec.exited","params":{"run":2,"exit":0,"duration_ms":1}}"#,
    r#"{"jsonrpc":"2.0","method":"exec.closed","params":{"run":1,"last_seq":2}}"#,
];

/// Checks and takes what waits: lines of JSON, within the bounds.
fn check(waiting: &mut Vec<u8>) {
    assert!(waiting.len() < 2 * limits::STDIO_QUEUE_BYTES);
    for line in waiting.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let value: Value = serde_json::from_slice(line).expect("a line of JSON");
        assert_eq!(value["jsonrpc"], "2.0");
        assert!(value.get("id").is_some() || value["method"].is_string(), "{value}");
        let text = value["result"]["content"][0]["text"].as_str().unwrap_or("\n");
        assert!(text.ends_with('\n') && text.len() < 2 * limits::MCP_TEXT_BYTES, "{value}");
    }
    waiting.clear();
}

/// The lines that arrive; `None` for one that is too long.
fn heard(dice: &mut Dice, from: &[&str], lines: &mut Lines) -> Vec<Option<Vec<u8>>> {
    let line = from[dice.below(from.len())];
    let mut bytes = mutated(dice, line.as_bytes());
    bytes.push(b'\n');
    let mut found = Vec::new();
    for piece in dice.pieces(&bytes) {
        lines.room()[..piece.len()].copy_from_slice(piece);
        lines.arrived(piece.len());
        while let Some(line) = lines.take() {
            found.push(if let ArrivedLine::Whole(line) = line { Some(line.to_vec()) } else { None });
        }
    }
    found
}

#[test]
fn what_agents_and_hosts_send_to_the_mcp_server() {
    let (mut asked, mut answered) = (0_u64, 0_u64);
    let all = rounds(waiting::size(1_000, 20_000) as u64, |dice| {
        let identity = McpIdentity { whoami: None, session: "s".to_owned(), dir: "/".to_owned() };
        let (mut server, mut now) = (McpServer::new(identity), Instant::now());
        let (mut agent, mut host) = (Lines::new(4_096), Lines::new(4_096));
        for _ in 0..25 {
            match dice.below(8) {
                0..=3 => {
                    for line in heard(dice, &FROM_AGENTS, &mut agent) {
                        match line {
                            Some(line) => server.client_line(&line, now),
                            None => server.client_line_too_long(),
                        }
                    }
                }
                4..=5 => {
                    for line in heard(dice, &FROM_HOSTS, &mut host).into_iter().flatten() {
                        server.host_line(&line, now);
                    }
                }
                6 => {
                    now += Duration::from_millis(dice.below(20_000) as u64);
                    server.tick(now);
                }
                _ if dice.below(9) == 0 => server.host_is_gone(),
                _ => {}
            }
            if server.wants_host() {
                if dice.below(4) == 0 { server.host_is_absent("none\n") } else { server.host_is_up(now) }
            }
            asked += u64::from(!server.to_host().is_empty());
            answered += u64::from(!server.to_client().is_empty());
            check(server.to_client());
            check(server.to_host());
        }
        // Whatever was said, every call ends by itself.
        for _ in 0..1_000 {
            let Some(deadline) = server.deadline() else { break };
            now = now.max(deadline);
            server.tick(now);
            check(server.to_client());
            check(server.to_host());
        }
        assert_eq!(server.deadline(), None, "a call never ends");
    });
    assert!(asked > all && answered > all, "{asked} and {answered} of {all}");
}
