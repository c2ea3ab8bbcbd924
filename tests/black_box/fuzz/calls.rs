//! The lines of JSON-RPC: whatever is in them, each becomes one call, however it comes in pieces.

use rexec_host::front::PeerRequest;
use rexec_host::front::rpc::RpcLanguage;
use rexec_host::front::rpc::methods::{Call, METHODS};

use super::mutation::mutated;
use crate::support::dice::{Dice, rounds, tell};
use crate::support::waiting;

const PARAMS: [&str; 14] = [
    "{}",
    r#"{"run":1}"#,
    r#"{"command":"echo a","env":{"A":"b"},"timeout":1.5,"stream":true}"#,
    r#"{"argv":["ls","-l"],"dir":"/","stdin_base64":"aGk=","encoding":"base64","profile":"ci"}"#,
    r#"{"command":"vi","mode":"pty","size":{"rows":24,"cols":80},"sanitize":"raw"}"#,
    r#"{"command":"x","name":"web","restart":true,"background":true,"notify":["exit","output"]}"#,
    r#"{"run":1,"text":"\u0003","eof":true}"#,
    r#"{"run":1,"base64":"AAEC"}"#,
    r#"{"run":1,"rows":65535,"cols":1}"#,
    r#"{"run":18446744073709551615,"signal":"SIGINT"}"#,
    r#"{"run":1,"after":7,"max_bytes":65536,"wait_ms":1000,"encoding":"text"}"#,
    r#"{"run":1,"for":"text","text":"ready","timeout_ms":5}"#,
    r#"{"runs":[1,2],"events":["start","prompt"],"encoding":"base64"}"#,
    "[1,2,3]",
];

fn lines(dice: &mut Dice) -> Vec<u8> {
    let mut lines = Vec::new();
    for at in 0..=dice.below(8) {
        let (method, params) = (METHODS[dice.below(METHODS.len())], PARAMS[dice.below(PARAMS.len())]);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{at},\"method\":\"{method}\",\"params\":{params}}}");
        let line = if dice.below(4) == 0 { line.into_bytes() } else { mutated(dice, line.as_bytes()) };
        lines.extend(line);
        lines.push(b'\n');
    }
    lines
}

fn calls(pieces: &[&[u8]]) -> Vec<String> {
    let (mut language, mut inbox, mut calls) = (RpcLanguage::default(), Vec::new(), Vec::new());
    for piece in pieces {
        inbox.extend_from_slice(piece);
        while let Some(request) = language.take(&mut inbox).expect("no line is too long") {
            let PeerRequest::Rpc(call) = request else { panic!("not a call: {request:?}") };
            if let Ok(Call::Run(start) | Call::Start(start) | Call::RunBackground(start)) = &call.call
                && let Ok(request) = start.request(Some("me"), "/")
            {
                assert!(request.dir.starts_with('/') && !request.exec[0].is_empty());
                assert!(!request.exec.iter().any(|word| word.contains('\0')));
            }
            calls.push(format!("{call:?}"));
        }
    }
    calls
}

#[test]
fn what_programs_call() {
    let mut count = 0;
    rounds(waiting::size(5_000, 250_000) as u64, |dice| {
        let stream = lines(dice);
        let whole = calls(&[&stream]);
        let written = stream.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        // A mutation may have left no newline behind the last one.
        assert!(whole.len().abs_diff(written.count()) <= 1);
        count += whole.len();
        assert_eq!(calls(&dice.pieces(&stream)), whole);
    });
    if waiting::is_long() {
        tell(&format!("{count} lines"));
    }
}
