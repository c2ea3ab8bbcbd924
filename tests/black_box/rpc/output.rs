//! Output for later reading: numbers without gaps, bounds, and what is said of what is gone.

use serde_json::{Value, json};

use super::client::{Client, text_of};
use crate::support::dice::tell;
use crate::support::host::{Host, MIRROR};
use crate::support::procs;
use crate::support::waiting;

/// All chunks behind a number, as far as they are there.
fn read_on(client: &mut Client, run: u64, mut after: u64) -> (Vec<Value>, u64, u64) {
    let (mut chunks, mut gone) = (Vec::new(), (0, 0));
    loop {
        let seen = client.call("exec.output", &json!({"run": run, "after": after, "wait_ms": 60_000}));
        gone.0 += seen["gone"]["chunks"].as_u64().unwrap_or(0);
        gone.1 += seen["gone"]["bytes"].as_u64().unwrap_or(0);
        chunks.extend(seen["chunks"].as_array().expect("chunks").iter().cloned());
        after = seen["next"].as_u64().expect("a number");
        if seen["closed"] == true {
            return (chunks, gone.0, gone.1);
        }
    }
}

#[test]
fn a_reader_from_a_cursor_gets_every_byte_once() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run =
        client.start(&json!({"command": "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; sleep 0.02; done"}));
    let (chunks, gone, _) = read_on(&mut client, run, 0);
    let numbers: Vec<u64> = chunks.iter().filter_map(|chunk| chunk["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    for stream in ["stdout", "stderr"] {
        let its = chunks.iter().filter(|chunk| chunk["stream"] == stream);
        let text: String = its.filter_map(|chunk| chunk["text"].as_str()).collect();
        let word = if stream == "stdout" { "out" } else { "err" };
        assert_eq!(text, (1..=5).map(|i| format!("{word} {i}\n")).collect::<String>());
    }
    assert_eq!(gone, 0);
    let (rest, ..) = read_on(&mut client, run, 1);
    assert_eq!(rest, chunks[1..], "beyond its end, too");
}

#[test]
fn what_is_beyond_the_bound_is_gone_and_counted_to_the_byte() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "head -c 5000000 /dev/zero | tr '\\0' x", "encoding": "base64"}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let (chunks, gone_chunks, gone_bytes) = read_on(&mut client, run, 0);
    let kept: usize = chunks.iter().filter_map(|chunk| chunk["text"].as_str()).map(str::len).sum();
    assert_eq!(gone_bytes + kept as u64, 5_000_000);
    assert!((900_000..2_000_000).contains(&kept), "{kept} bytes are kept");
    assert!(gone_chunks > 0);
    let seen = client.call("exec.output", &json!({"run": run, "max_bytes": 1}));
    assert_eq!(seen["gone"]["journal"], format!("rexec out {run} --raw"));
}

/// The command waits, no other command does, and nothing is lost.
#[test]
fn a_slow_client_of_a_stream_holds_that_command_only() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script =
        "i=0; while [ $i -lt 300 ]; do head -c 10000 /dev/zero | tr '\\0' x; i=$((i+1)); echo $i >> progress; done";
    let run = client.start(&json!({"command": script, "dir": host.home.path(), "stream": true}));
    let progress = || std::fs::read_to_string(host.home.join("progress")).map_or(0, |text| text.lines().count());
    waiting::wait_until("it writes", || progress() > 0);
    let stuck = waiting::until_steady(std::time::Duration::from_secs(1), progress);
    assert!(stuck < 300, "it is held");
    // A connection that has said nothing for five seconds is ended, so this one does not wait for the other.
    let mut other = Client::new(&host);
    assert_eq!(other.call("exec.run", &json!({"command": "echo on"}))["stdout"], "on\n");
    let story = client.story(run);
    assert_eq!(text_of(&story).len(), 3_000_000);
    assert!(story.iter().all(|note| note["params"].get("lost_bytes").is_none()));
}

/// Bytes behind the line that tells of them, whatever they are: newlines, halves of characters, JSON.
#[test]
fn output_is_told_as_the_bytes_that_were_written() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "printf '{\\377\\n\\0\\303'; printf 'oops\\n' >&2; head -c 300000 /dev/zero; printf '}\\n'";
    let params = json!({"command": script, "stream": true, "sanitize": "raw", "encoding": "binary"});
    client.call("events.subscribe", &json!({"encoding": "binary", "events": ["output"]}));
    let run = client.start(&params);
    let (mut told, mut closed) = ([Vec::new(), Vec::new(), Vec::new()], false);
    let wanted = 300_007;
    while !closed || told.iter().map(Vec::len).sum::<usize>() < 2 * (wanted + 5) {
        let line = client.hear().expect("the connection stays");
        closed |= line["method"] == "exec.closed";
        if let Some(length) = line["params"]["bytes"].as_u64() {
            let place = usize::from(line["params"]["stream"] == "stderr");
            told[place].extend(client.bytes(length));
        }
    }
    let mut written = b"{\xff\n\0\xc3".to_vec();
    written.resize(5 + 300_000, 0);
    written.extend(b"}\n");
    assert!(told[0].len() == 2 * wanted && told[1] == b"oops\noops\n", "{} {:?}", told[0].len(), told[1]);
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    assert_eq!((sum(&told[0]), &told[0][..5]), (2 * sum(&written), &written[..5]));
    let (code, sentence) = client.error("exec.output", &json!({"run": run, "encoding": "binary"}));
    assert_eq!((code, sentence.starts_with("encoding: ")), (-32602, true), "{sentence}");
}

/// A command that writes more at once than the host reads in a turn ends while its pipe still holds the rest.
#[test]
fn the_end_comes_behind_the_last_output_that_was_there() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let (command, most) = ("seq 100001 120000", 2 << 20);
    for round in 0..waiting::size(8, 50) {
        let run = client.start(&json!({"command": command, "stream": true}));
        let waiting = client.ask("exec.wait", &json!({"run": run, "for": "exit"}));
        let exited = client.note("exec.exited", run);
        let story = client.told(run);
        assert_eq!((exited["exit"].as_u64(), text_of(&story).len()), (Some(0), 140_000), "round {round}");
        assert_eq!(client.result(waiting)["met"], "exit");
        let (mut seen, mut after) = (0, 0);
        loop {
            let read = client.call("exec.output", &json!({"run": run, "after": after}));
            assert_eq!(read["exited"], true, "round {round}: {read}");
            let chunks = read["chunks"].as_array().expect("chunks");
            seen += chunks.iter().filter_map(|chunk| chunk["text"].as_str()).map(str::len).sum::<usize>();
            if chunks.is_empty() {
                break;
            }
            after = read["next"].as_u64().expect("a number");
        }
        assert_eq!(seen, 140_000, "round {round}");
    }
    for round in 0..waiting::size(8, 50) {
        let params = json!({"command": command, "stream": true, "combined": true, "max_output_bytes": most});
        let asked = client.ask("exec.run", &params);
        let answer = loop {
            // The stream comes first, on a connection that has both.
            let line = client.hear().expect("the connection stays");
            if line["id"] == asked {
                break line;
            }
            client.keep(line);
        };
        let text = answer["result"]["output"].as_str().expect("output");
        assert!(text.len() == 140_000 && text.ends_with("120000\n"), "round {round}: {}", text.len());
        let run = answer["result"]["run"].as_u64().expect("a number");
        assert_eq!(text_of(&client.told(run)).len(), 140_000, "round {round}");
    }
}

/// A process that writes on when its shell has ended does not put off the word of the end for ever.
#[test]
fn the_end_comes_although_another_process_goes_on_writing() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "yes & exit 3", "stream": true}));
    assert_eq!(client.note("exec.exited", run)["exit"], 3);
    client.note("exec.closed", run);
    client.call("exec.cancel", &json!({"run": run}));
}

/// A client that reads on takes everything at once now and then, so that no event tells of room.
#[test]
fn a_long_stream_comes_whole_to_a_client_that_reads_on() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run =
        client.start(&json!({"command": "head -c 5000000 /dev/zero | tr '\\0' x", "stream": true, "sanitize": "raw"}));
    let story = client.story(run);
    assert_eq!(text_of(&story).len(), 5_000_000);
}

#[test]
#[ignore = "long: 8 MB for a slow subscriber"]
fn a_slow_subscriber_holds_nothing_and_learns_what_it_lost() {
    let host = Host::with(MIRROR);
    let (mut client, mut other) = (Client::new(&host), Client::new(&host));
    client.call("events.subscribe", &json!({"encoding": "base64"}));
    let done =
        other.call("exec.run", &json!({"command": "head -c 8000000 /dev/zero | tr '\\0' x", "max_output_bytes": 10}));
    let run = done["run"].as_u64().expect("a number");
    let story = client.story(run);
    let (mut seen, mut lost) = (0, 0);
    for note in &story {
        let params = &note["params"];
        lost += params["lost_bytes"].as_u64().unwrap_or(0);
        seen += params["base64"].as_str().map_or(0, |text| text.len() / 4 * 3 - text.matches('=').count()) as u64;
    }
    assert_eq!(seen + lost, 8_000_000, "seen {seen}, lost {lost}");
    assert!(lost > 0, "nobody could have taken that");
}

/// A thousand take minutes on a busy machine: they are for the long form.
#[test]
#[ignore = "long: 100 runs in the background, 20 subscribers"]
fn background_runs_and_subscribers_stay_within_the_memory_of_a_host() {
    let runs = waiting::size(100, 1_000);
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let subscribe = |_| {
        let mut subscriber = Client::new(&host);
        subscriber.call("events.subscribe", &json!({}));
        subscriber
    };
    let subscribers: Vec<Client> = (0..waiting::size(20, 100)).map(subscribe).collect();
    let script = "head -c 20000 /dev/zero | tr '\\0' x; echo; echo up; read _";
    let started: Vec<u64> =
        (0..runs).map(|_| client.start(&json!({"command": script, "background": true, "keep_stdin": true}))).collect();
    for &run in &started {
        let met = client.call("exec.wait", &json!({"run": run, "for": "text", "text": "up"}));
        assert_eq!(met["met"], "text", "{met}");
    }
    assert_eq!(client.call("exec.list", &json!({}))["runs"].as_array().map(Vec::len), Some(runs));
    assert_eq!(host.run("echo on").out(), "on\n");
    for &run in &started {
        client.ask("exec.write", &json!({"run": run, "eof": true}));
    }
    for &run in &started {
        assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "exit"}))["met"], "exit");
    }
    let peak = procs::most_data(host.pid());
    if waiting::is_long() {
        tell(&format!("{runs} runs, {} subscribers: {peak} bytes", subscribers.len()));
    }
    assert!(peak < 52 << 20, "the host took {peak} bytes");
    drop(subscribers);
    waiting::wait_until("spare guards only are left", || procs::children(host.pid()).len() < 10);
}
