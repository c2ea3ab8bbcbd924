//! Subscriptions to what runs write, as they write it.

use serde_json::{Value, json};

use super::client::{Client, text_of};
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::screen::Screen;
use crate::support::waiting::{self, PATIENCE};

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
pub(crate) fn decoded(text: &str) -> Vec<u8> {
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

/// Draws a screen, and the answer to what it is told, until it is told to end.
const DRAWS: &str = "stty -echo; printf 'before\\n\\033[?1049h\\033[?25l\\033[2J\\033[c\\033[3;5H\\033[31mred\\033[0m\\033[6;1H'; \
                     while read -r word; do printf '<%s>' \"$word\"; done; printf '\\033[?1049lafter\\n'";

#[test]
fn one_that_comes_late_gets_the_screen_and_then_each_byte_once() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": DRAWS, "mode": "pty", "size": {"rows": 20, "cols": 40}}));
    client.call("exec.wait", &json!({"run": run, "for": "text", "text": "before"}));
    client.call("exec.write", &json!({"run": run, "text": "early\n"}));
    let mut first = Client::new(&host);
    see(&mut first, run);
    waiting::wait_until("it draws", || {
        let note = first.note("exec.output", run);
        decoded(note["base64"].as_str().expect("base64")).ends_with(b"<early>")
    });
    let mut late = Client::new(&host);
    see(&mut late, run);
    assert_eq!(late.note("exec.resized", run), json!({"run": run, "rows": 20, "cols": 40}));
    let drawn = late.note("exec.output", run);
    let drawn = decoded(drawn["base64"].as_str().expect("base64"));
    let screen = Screen::of(&drawn, (40, 20)).text();
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert_eq!((rows[2], rows[5]), ("    red", "<early>"), "{screen}");
    let text = String::from_utf8_lossy(&drawn);
    assert!(text.contains("\x1b[31mred") && text.contains("\x1b[?25l") && !text.contains("\x1b[c"), "{text:?}");
    client.call("exec.write", &json!({"run": run, "text": "later\n"}));
    client.call("exec.write", &json!({"run": run, "eof": true}));
    let rest: Vec<u8> =
        late.story(run).iter().filter_map(|note| note["params"]["base64"].as_str()).flat_map(decoded).collect();
    assert_eq!(String::from_utf8_lossy(&rest), "<later>\x1b[?1049lafter\r\n");
}

#[test]
fn what_is_gone_of_a_long_output_is_counted() {
    const BYTES: usize = 600_000;
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = format!("head -c {BYTES} /dev/zero | tr '\\0' x; echo; echo there; read -r word");
    let run = client.start(&json!({"command": script, "mode": "pty"}));
    client.call("exec.wait", &json!({"run": run, "for": "text", "text": "there"}));
    let mut late = Client::new(&host);
    see(&mut late, run);
    client.call("exec.write", &json!({"run": run, "eof": true}));
    let (output, lost) = seen(&mut late, run);
    assert_eq!(output.len() as u64 + lost, BYTES as u64 + 9);
    assert!(output.len() > 100_000 && output.len() <= 256 << 10, "{} bytes", output.len());
}

/// A host where somebody answers.
const ATTENDED: Setup = Setup { flags: &["--prompts", "ask", "--prompt-wait", "300"], ..MIRROR };

/// A client within a command of the host.
const TYPES: &str = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); \
                     s.sendall(b'{\"id\":1,\"method\":\"exec.write\",\"params\":{\"run\":1,\"text\":\"no\"}}\\n'); \
                     print(s.makefile().readline())";

#[test]
fn a_persons_client_answers_what_an_agents_command_asks() {
    let host = Host::with(ATTENDED);
    let script = "printf 'the word? '; read -r word </dev/tty; echo \"<$word>\"";
    let mut call = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
    let mut client = Client::new(&host);
    client.call("events.subscribe", &json!({"events": ["prompt"]}));
    assert_eq!(client.note("exec.prompt", 1)["line"], "the word?");
    if programs::has("python3") {
        let argv = json!(["python3", "-c", TYPES, host.socket()]);
        let agents = client.call("exec.run", &json!({"argv": argv}))["stdout"].clone();
        assert!(agents.as_str().is_some_and(|said| said.contains("-32008")), "{agents}");
    }
    assert_eq!(client.call("exec.write", &json!({"run": 1, "text": "sesame\n"})), json!({"accepted": 7}));
    assert!(call.finish(PATIENCE).expect("it ends").out().contains("<sesame>"));
    let answers = host.wait_for("the record", |journal| {
        let inputs: Vec<Value> = journal.of_type("input").cloned().collect();
        (!inputs.is_empty()).then_some(inputs)
    });
    assert_eq!((&answers[0]["from"], &answers[0]["bytes"]), (&json!("client"), &json!(7)));
    assert_eq!(client.error("exec.write", &json!({"run": 1, "text": "more\n"})).0, RUN_IS_OVER);
}

#[test]
fn a_client_that_sees_a_terminal_has_it_alone_until_it_sees_it_no_more() {
    let host = Host::with(ATTENDED);
    let script = "while printf 'word? '; read -r word </dev/tty && [ \"$word\" != end ]; do echo \"<$word>\"; done";
    let mut call = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
    let (mut client, mut other) = (Client::new(&host), Client::new(&host));
    other.call("events.subscribe", &json!({"events": ["prompt"]}));
    other.note("exec.prompt", 1);
    let seen = see(&mut client, 1);
    client.call("exec.resize", &json!({"run": 1, "rows": 11, "cols": 33}));
    waiting::wait_until("the size", || client.note("exec.resized", 1)["rows"] == 11);
    for word in ["one", "two"] {
        client.call("exec.write", &json!({"run": 1, "text": format!("{word}\n")}));
        other.call("exec.wait", &json!({"run": 1, "for": "text", "text": format!("<{word}>")}));
    }
    assert_eq!(other.error("exec.write", &json!({"run": 1, "text": "three\n"})).0, BUSY);
    client.call("events.unsubscribe", &json!({"subscription": seen}));
    other.note("exec.prompt", 1);
    other.call("exec.write", &json!({"run": 1, "text": "end\n"}));
    assert!(call.finish(PATIENCE).expect("it ends").out().contains("<two>"));
}
