//! Subscriptions to what runs write, as they write it.

use serde_json::{Value, json};

use super::client::{Client, text_of};
use crate::support::host::{Host, MIRROR};
use crate::support::waiting;

const BAD_PARAMS: i64 = -32_602;
const NO_SUCH_RUN: i64 = -32_001;
const RUN_IS_OVER: i64 = -32_002;
const BUSY: i64 = -32_003;

fn see(client: &mut Client, run: u64) -> Value {
    client.call("events.subscribe", &json!({"runs": [run], "encoding": "terminal"}))["subscription"].clone()
}

/// What a subscription has told of a run until its end, and how much it says is lost.
fn seen(client: &mut Client, run: u64) -> (Vec<u8>, u64) {
    let story = client.story(run);
    let chunks = story.iter().filter(|note| note["method"] == "exec.output").map(|note| &note["params"]);
    let lost = story.iter().filter_map(|note| note["params"]["lost_bytes"].as_u64()).sum();
    let numbers: Vec<u64> = chunks.clone().filter_map(|chunk| chunk["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert_eq!(story.last().map(|note| &note["params"]["last_seq"]), Some(&json!(numbers.len())));
    (chunks.flat_map(|chunk| decoded(chunk["base64"].as_str().expect("base64"))).collect(), lost)
}

/// The bytes that base64 stands for.
pub(super) fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |four: &[u8]| {
        let digits = four.iter().filter_map(|digit| DIGITS.iter().position(|known| known == digit));
        let number =
            digits.clone().fold(0_usize, |number, digit| number << 6 | digit) << (6 * (4 - digits.clone().count()));
        number.to_be_bytes()[5..][..digits.count() - 1].to_vec()
    };
    text.as_bytes().chunks(4).flat_map(group).collect()
}

#[test]
fn output_comes_as_it_was_written_behind_the_line_as_it_stands() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "printf 'a line\\nthe word? '; read word; printf '10%%\\r\\033[1mdone\\033[0m\\377\\n'";
    let run = client.start(&json!({"command": script, "keep_stdin": true, "stream": true}));
    client.call("exec.wait", &json!({"run": run, "for": "text", "text": "word?"}));
    let mut other = Client::new(&host);
    see(&mut other, run);
    client.call("exec.write", &json!({"run": run, "text": "yes\n"}));
    let (output, lost) = seen(&mut other, run);
    assert_eq!((output.as_slice(), lost), (&b"the word? 10%\r\x1b[1mdone\x1b[0m\xff\n"[..], 0));
    let clean = text_of(&client.story(run));
    assert!(clean.contains("done") && !clean.contains('\x1b'), "others read as before: {clean:?}");
}

#[test]
fn the_size_of_the_terminal_is_told_at_first_and_when_it_changes() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "cat", "mode": "pty", "size": {"rows": 30, "cols": 90}}));
    client.call("exec.write", &json!({"run": run, "text": "it has begun\n"}));
    client.call("exec.wait", &json!({"run": run, "for": "text", "text": "begun"}));
    let mut other = Client::new(&host);
    see(&mut other, run);
    assert_eq!(other.note("exec.resized", run), json!({"run": run, "rows": 30, "cols": 90}));
    client.call("exec.resize", &json!({"run": run, "rows": 31, "cols": 91}));
    assert_eq!(other.note("exec.resized", run), json!({"run": run, "rows": 31, "cols": 91}));
    client.call("exec.write", &json!({"run": run, "eof": true}));
    other.note("exec.closed", run);
}

#[test]
fn one_that_takes_nothing_holds_nothing_and_learns_how_much_it_has_missed() {
    const BYTES: usize = 12_000_000;
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = format!("read go; head -c {BYTES} /dev/zero | tr '\\0' x");
    let run = client.start(&json!({"command": script, "keep_stdin": true, "background": true}));
    let mut slow = Client::new(&host);
    see(&mut slow, run);
    client.call("exec.write", &json!({"run": run, "text": "go\n"}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let (output, lost) = seen(&mut slow, run);
    assert!(lost > 0 && output.iter().all(|&byte| byte == b'x'), "{lost} lost");
    assert_eq!(output.len() as u64 + lost, BYTES as u64);
}

#[test]
fn what_such_a_subscription_cannot_do_is_refused_and_it_ends_as_others_do() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let over = client.call("exec.run", &json!({"command": "true"}))["run"].clone();
    let run = client.start(&json!({"command": "cat", "keep_stdin": true}));
    for (params, code) in [
        (json!({"encoding": "terminal"}), BAD_PARAMS),
        (json!({"encoding": "terminal", "runs": [run], "events": ["output"]}), BAD_PARAMS),
        (json!({"encoding": "terminal", "runs": [run], "after": "now"}), BAD_PARAMS),
        (json!({"encoding": "terminal", "runs": (1..20).collect::<Vec<u64>>()}), BAD_PARAMS),
        (json!({"encoding": "terminal", "runs": [run, over]}), RUN_IS_OVER),
        (json!({"encoding": "terminal", "runs": [run, 77]}), NO_SUCH_RUN),
    ] {
        assert_eq!(client.error("events.subscribe", &params).0, code, "{params}");
    }
    assert_eq!(client.error("exec.start", &json!({"command": "true", "encoding": "terminal"})).0, BAD_PARAMS);
    assert_eq!(client.error("exec.output", &json!({"run": run, "encoding": "terminal"})).0, BAD_PARAMS);
    let mut other = Client::new(&host);
    let first = see(&mut other, run);
    (1..16).for_each(|_| _ = see(&mut other, run));
    let wish = json!({"encoding": "terminal", "runs": [run]});
    assert_eq!(client.error("events.subscribe", &wish).0, BUSY);
    other.call("events.unsubscribe", &json!({"subscription": first}));
    see(&mut client, run);
    // A client that is gone makes room for all its subscriptions.
    drop(other);
    let mut third = Client::new(&host);
    waiting::wait_until("there is room", || {
        let id = third.ask("events.subscribe", &wish);
        third.reply(id).get("error").is_none()
    });
}
