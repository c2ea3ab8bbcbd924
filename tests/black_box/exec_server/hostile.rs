//! Clients that say nonsense, and clients that do not read.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{self, Client};
use crate::support::dice::Dice;
use crate::support::host::{Host, MIRROR};
use crate::support::procs;
use crate::support::temp::TempDir;
use crate::support::waiting;

#[test]
fn nonsense_is_answered_and_the_next_request_is_served() {
    let home = TempDir::new(None);
    let mut client = Client::start(&home.join("host.sock"), &[]);
    let early = client.refusal("process/start", &json!({}));
    assert_eq!(early["message"], "client must call initialize before using exec methods");
    for line in ["{not json", "[]", "7", r#"{"id":1}{"#, r#"{"method":"nosuch/notification"}"#, "\u{fffd}"] {
        client.raw(line);
        let answer: Value = serde_json::from_str(&client.line().expect("an answer")).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(-1), &json!(-32600)), "{line}");
    }
    client.raw(r#"{"id":99,"result":{}}"#);
    client.ask("initialize", &json!({"clientName": "probe"}));
    assert_eq!(client.refusal("initialize", &json!({}))["code"], -32600);
    assert_eq!(client.ask("environment/status", &json!({})), json!({"status": "ready"}));
}

#[test]
fn mutated_lines_neither_end_it_nor_make_it_grow() {
    let home = TempDir::new(None);
    let mut client = Client::greeted(&home.join("host.sock"));
    let samples = [
        json!({"id": 7, "method": "process/start", "params": client::start("p", "true", &json!({}))}),
        json!({"id": 8, "method": "process/write", "params": {"processId": "p", "chunk": "aGVsbG8K", "writeId": "1"}}),
        json!({"id": 9, "method": "process/read", "params": {"processId": "p", "afterSeq": 1, "maxBytes": 7, "waitMs": 1}}),
        json!({"id": 10, "method": "fs/readFile", "params": {"path": "file:///nonexistent/%41", "sandbox": null}}),
        json!({"id": 11, "method": "fs/getMetadata", "params": {"path": "file:///nonexistent", "sandbox": null}}),
    ];
    let samples: Vec<Vec<u8>> = samples.iter().map(|line| line.to_string().into_bytes()).collect();
    let mut dice = Dice::new(11);
    for _ in 0..waiting::size(40, 2_000) {
        let mut block = Vec::new();
        for _ in 0..100 {
            let mut line = samples[dice.below(samples.len())].clone();
            for _ in 0..=dice.below(4) {
                let at = dice.below(line.len());
                line[at] = b"\"{}[]:,0-\\u\xff\x00a"[dice.below(14)];
            }
            line.push(b'\n');
            block.extend(line);
        }
        client.bytes(&block);
        client.ask("environment/status", &json!({}));
    }
    let peak = procs::most_data(client.pid());
    assert!(peak < 32 << 20, "{peak} bytes");
}

#[test]
#[ignore = "long: 60 MB that nobody reads at first"]
fn a_client_that_does_not_read_holds_its_command_back_and_gets_everything_later() {
    let host = Host::with(MIRROR);
    let mut client = Client::paused(&host.socket());
    let script = "head -c 60000000 /dev/zero | tr '\\0' x";
    client.raw(&json!({"id": 1, "method": "initialize", "params": {"clientName": "slow"}}).to_string());
    client.raw(r#"{"method":"initialized"}"#);
    client.send("process/start", &client::start("flood", script, &json!({})));
    let pid = client.pid();
    waiting::until_steady(Duration::from_millis(500), || procs::data(pid));
    client.read_on();
    let told = client.until_closed("flood");
    assert_eq!(client::text(&told, "stdout").len(), 60_000_000);
    let peak = procs::most_data(pid);
    assert!(peak < 32 << 20, "{peak} bytes");
}
