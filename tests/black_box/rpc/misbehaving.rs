//! Clients that break the rules, take nothing, or are gone. Each harms itself alone.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::client::Client;
use crate::support::dice::Dice;
use crate::support::host::{Host, MIRROR};
use crate::support::procs;
use crate::support::programs::can_open;
use crate::support::waiting;

#[test]
fn a_bad_line_costs_one_error_and_nothing_else() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    assert_eq!(client.call("exec.run", &json!({"command": "echo one"}))["stdout"], "one\n");
    for (line, code) in [
        ("nonsense", -32700),
        ("{\"id\":1", -32700),
        ("[{\"id\":1,\"method\":\"hello\"}]", -32600),
        ("\"hello\"", -32600),
        ("{\"method\":1}", -32600),
        ("{\"id\":{},\"method\":\"hello\"}", -32600),
        ("\u{fffd}\0", -32700),
    ] {
        client.say(line);
        let answer = client.hear().expect("the connection stays");
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{line}: {answer}");
    }
    client.say("{\"id\":\"text\",\"method\":\"dance\"}");
    let answer = client.hear().expect("the connection stays");
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32601), &json!("text")));
    // Notifications are never answered, not even with an error.
    client.say("{\"method\":\"dance\"}");
    client.say("{\"method\":\"exec.status\",\"params\":{\"run\":9}}");
    client.say("{\"method\":\"exec.run\",\"params\":{\"command\":\"true\"}}");
    assert_eq!(client.call("exec.run", &json!({"command": "echo two"}))["stdout"], "two\n");
    let mut batch = Client::new(&host);
    batch.say("[]");
    assert_eq!(batch.hear().expect("an error")["error"]["code"], -32600);
}

/// Libraries for language servers put headers in front of each message.
#[test]
fn a_client_that_sends_headers_is_told_how_messages_are_sent() {
    let host = Host::with(MIRROR);
    for header in ["Content-Length: 28\r", "content-type: x\r"] {
        let mut client = Client::new(&host);
        client.say(header);
        let answer = client.hear().expect("an answer in JSON");
        assert_eq!(answer["error"]["message"], "messages with headers are not understood here", "{header}");
        assert!(
            answer["error"]["data"]["hint"].as_str().is_some_and(|hint| hint.contains("one line of JSON")),
            "{answer}"
        );
        assert_eq!(client.hear(), None, "{header}");
    }
    let mut client = Client::new(&host);
    client.call("hello", &json!({}));
    client.say("Content-Length: 28");
    assert_eq!(client.hear().expect("the connection stays")["error"]["code"], -32_700);
}

#[test]
fn a_line_without_an_end_ends_its_connection() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("hello", &json!({}));
    let run = client.start(&json!({"command": "sleep 1000"}));
    let piece = vec![b'x'; 64 << 10];
    while client.stream.write_all(&piece).is_ok() {}
    let last = client.hear().expect("one last word");
    assert_eq!(last["error"]["code"], -32603, "{last}");
    let mut other = Client::new(&host);
    assert_eq!(other.call("exec.wait", &json!({"run": run, "for": "exit"}))["met"], "exit", "its run ends with it");
}

/// The host does not gather answers for it.
#[test]
#[ignore = "long: asks until nothing more is taken"]
fn a_client_that_asks_and_takes_nothing_is_not_heard_for_a_while() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("hello", &json!({}));
    client.stream.set_nonblocking(true).expect("a socket");
    let line = b"{\"id\":1,\"method\":\"hello\"}\n";
    let (mut sent, mut is_full) = (0_usize, 0);
    // Until the socket stays full, because the host reads no more.
    while is_full < 200 {
        match client.stream.write(line) {
            Ok(length) => (sent, is_full) = (sent + length, 0),
            Err(_) => {
                is_full += 1;
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        assert!(sent < 64 << 20, "the host takes everything in");
    }
    let memory = procs::memory(host.pid());
    assert!(memory < 28 << 20, "{memory} bytes");
    assert_eq!(host.run("echo on").out(), "on\n");
    client.stream.set_nonblocking(false).expect("a socket");
    for _ in 0..sent / line.len() {
        assert_eq!(client.hear().expect("an answer")["id"], 1);
    }
}

/// A client whose answers are longer than its requests takes each of them, and still asks faster than it is served.
#[test]
fn a_client_that_asks_faster_than_it_is_served_is_held_back() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    client.call("hello", &json!({}));
    let mut writer = client.stream.try_clone().expect("a descriptor");
    let sent = Arc::new(AtomicUsize::new(0));
    let line = b"{\"id\":1,\"method\":\"hello\"}\n";
    let piece = line.repeat(400);
    let (counted, answered_max) = (sent.clone(), waiting::size(600, 4_000));
    let asking = std::thread::spawn(move || {
        while writer.write_all(&piece).is_ok() {
            counted.fetch_add(piece.len(), Ordering::Relaxed);
        }
    });
    for answered in 1..=answered_max {
        assert_eq!(client.hear().expect("an answer")["id"], 1);
        let waiting = sent.load(Ordering::Relaxed).saturating_sub(answered * line.len());
        // What the socket holds, what is read at once, and a piece.
        assert!(waiting < 1 << 20, "the host has taken {waiting} bytes that it does not serve, after {answered}");
    }
    client.stream.shutdown(std::net::Shutdown::Both).expect("a socket");
    asking.join().expect("the writer ends");
}

/// Answers that a client does not take wait in the bounded memory for all output that was gathered.
#[test]
#[ignore = "long: 100 answers of 2 MB"]
fn long_answers_that_nobody_takes_do_not_fill_the_memory() {
    const RUNS: usize = 100;
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "head -c 2000000 /dev/zero | tr '\\0' x";
    let params = json!({"command": script, "sanitize": "raw", "max_output_bytes": 2_000_000});
    for id in 0..RUNS {
        let request = json!({"id": id, "method": "exec.run", "params": params});
        client.stream.write_all(format!("{request}\n").as_bytes()).expect("it is read");
    }
    // Each ten of them have their own hang guard, because a busy machine takes long for all.
    for ended in (10..=RUNS).step_by(10) {
        host.wait_for("more ends", |journal| (journal.of_type("end").count() >= ended).then_some(()));
    }
    let memory = procs::memory(host.pid());
    // It is about 120 MB, and about 150 where every answer is made at once.
    assert!(memory < 138 << 20, "{memory} bytes");
    let answers: Vec<_> = (0..RUNS).map(|_| client.hear().expect("an answer")).collect();
    assert!(answers.iter().all(|answer| answer["result"]["exit"] == 0));
}

/// What was gathered for an answer is not kept behind it.
#[test]
#[ignore = "long: 64 answers of 1 MiB"]
fn answers_with_much_output_leave_no_memory_behind() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let params = json!({"command": "head -c 1100000 /dev/zero | tr '\\0' x", "sanitize": "raw"});
    for _ in 0..64 {
        let answer = client.call("exec.run", &params);
        let told = answer["stdout"].as_str().expect("text").matches('x').count();
        assert_eq!((told, &answer["omitted_bytes"]), (1 << 20, &json!(1_100_000 - (1 << 20))));
    }
    let memory = procs::memory(host.pid());
    assert!(memory < 48 << 20, "{memory} bytes");
}

#[test]
#[ignore = "long: 1,024 waits and 16 subscriptions"]
fn too_many_waits_runs_and_subscriptions_are_refused_with_the_number() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "sleep 1000"}));
    for _ in 0..1_024 {
        client.ask("exec.wait", &json!({"run": run, "for": "exit"}));
    }
    let (code, sentence) = client.error("exec.wait", &json!({"run": run, "for": "exit"}));
    assert!(code == -32003 && sentence.contains("1024"), "{sentence}");
    let mut client = Client::new(&host);
    for _ in 0..16 {
        client.call("events.subscribe", &json!({}));
    }
    let (code, sentence) = client.error("events.subscribe", &json!({}));
    assert!(code == -32003 && sentence.contains("16"), "{sentence}");
}

/// A line of 1 MiB holds a number half a million times.
#[test]
fn a_run_that_a_subscription_names_again_and_again_is_told_once() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "read x; echo said", "keep_stdin": true}));
    let named = format!("[{}]", vec![run.to_string(); 250_000].join(","));
    for id in 1_000..1_004 {
        client.say(&format!(r#"{{"id":{id},"method":"events.subscribe","params":{{"runs":{named}}}}}"#));
        assert!(client.result(id)["subscription"].is_u64());
    }
    let memory = procs::memory(host.pid());
    assert!(memory < 28 << 20, "{memory} bytes");
    client.call("exec.write", &json!({"run": run, "eof": true}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let story = client.told(run);
    let said = story.iter().filter(|note| note["method"] == "exec.output").count();
    assert_eq!(said, 4, "once by each subscription: {story:?}");
    let many: Vec<u64> = (1..=1_025).collect();
    let (code, sentence) = client.error("events.subscribe", &json!({"runs": many}));
    assert!(code == -32602 && sentence.contains("1024"), "{sentence}");
}

/// Before, each of 900 such answers waited in the memory.
#[test]
fn output_that_a_client_asks_for_and_does_not_take_is_not_gathered() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let run = client.start(&json!({"command": "head -c 1000000 /dev/zero | tr '\\0' x", "background": true}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let mut clients: Vec<Client> = (0..2).map(|_| Client::new(&host)).collect();
    for asking in &mut clients {
        (0..25).for_each(|_| _ = asking.ask("exec.output", &json!({"run": run, "max_bytes": 4 << 20})));
    }
    // Each answer would be a megabyte: when the host sleeps, it has read what fits, and answered what it wants to.
    host.at_rest(|| procs::memory(host.pid()));
    let memory = procs::memory(host.pid());
    assert!(memory < 28 << 20, "{memory} bytes");
    for asking in &mut clients {
        for id in [1, 2] {
            let told: usize = asking.result(id)["chunks"].as_array().expect("chunks").iter().map(length).sum();
            assert_eq!(told, 1_000_000, "answer {id}");
        }
    }
}

fn length(chunk: &Value) -> usize {
    chunk["text"].as_str().expect("a text").len()
}

/// Before, each of them was compared with all output.
#[test]
#[ignore = "long: four megabytes of output, as a debug build searches them"]
fn requests_that_wait_for_texts_are_bounded_and_nearly_matching_output_is_looked_at_once() {
    let host = Host::with(MIRROR);
    let mut client = Client::new(&host);
    let script = "read x; head -c 4000000 /dev/zero | tr '\\0' a; echo b; read y";
    let run = client.start(&json!({"command": script, "keep_stdin": true, "sanitize": "raw", "background": true}));
    let wait = |text: String| json!({"run": run, "for": "text", "text": text});
    let near: Vec<u64> = (0..64_u8)
        .map(|n| client.ask("exec.wait", &wait("a".repeat(255) + &char::from(b'!' + n).to_string())))
        .collect();
    // One client's requests have their turns in order; those of others may come in between.
    client.call("hello", &json!({}));
    for _ in 0..15 {
        let mut other = Client::new(&host);
        let asked: Vec<u64> = (0..100).map(|_| other.ask("exec.wait", &wait("b".to_owned()))).collect();
        for id in asked {
            assert_eq!(other.reply(id)["error"]["code"], -32003);
        }
    }
    assert_eq!(client.error("exec.wait", &wait("a".repeat(257))).0, -32602);
    let before = procs::processor_time(host.pid());
    client.call("exec.write", &json!({"run": run, "text": "\n"}));
    client.call("exec.write", &json!({"run": run, "eof": true}));
    client.call("exec.wait", &json!({"run": run, "for": "exit"}));
    let took = procs::processor_time(host.pid()) - before;
    for id in near {
        let answer = client.result(id);
        assert_eq!(answer["met"], "exit", "{answer}");
    }
    let memory = procs::memory(host.pid());
    assert!(memory < 32 << 20, "{memory} bytes");
    assert_eq!(host.run("echo on").out(), "on\n", "after {took:?}");
}

/// Each look reads what all processes of the run have open.
#[test]
fn a_client_that_asks_for_ports_without_end_costs_few_looks() {
    let host = Host::with(MIRROR);
    // Without a port that somebody listens on, there is nothing to look for.
    let _listens = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut client = Client::new(&host);
    let script = "for n in {1..200}; do sleep 1000 & done; echo begun; wait";
    let run = client.start(&json!({"argv": ["bash", "-c", script]}));
    assert_eq!(client.call("exec.wait", &json!({"run": run, "for": "text", "text": "begun"}))["met"], "text");
    let mut cost_of = |calls: u32, pause| {
        let before = procs::processor_time(host.pid());
        for _ in 0..calls {
            std::thread::sleep(pause);
            assert_eq!(client.call("exec.status", &json!({"run": run}))["state"], "running");
        }
        procs::processor_time(host.pid()) - before
    };
    // What was seen is known for 250 ms, so each of these looks anew.
    let look = cost_of(4, std::time::Duration::from_millis(300)) / 4;
    let since = std::time::Instant::now();
    let took = cost_of(500, std::time::Duration::ZERO);
    // Slow answers leave time for more looks. The answers themselves cost something, too.
    let looks = u32::try_from(since.elapsed().as_millis() / 250).expect("a few") + 200;
    assert!(took < looks * look, "{took:?} for {looks} looks, and a look {look:?}");
}

#[test]
fn an_agent_has_so_many_connections_and_no_more() {
    if !can_open(1_024) {
        return;
    }
    let host = Host::with(MIRROR);
    let greeted = |_| {
        let mut client = Client::new(&host);
        client.call("hello", &json!({}));
        client
    };
    let mut clients: Vec<Client> = (0..128).map(greeted).collect();
    let mut refused = Client::new(&host);
    let (code, sentence) = refused.error("hello", &json!({}));
    assert!(code == -32003 && sentence.contains("128"), "{sentence}");
    assert_eq!(refused.hear(), None, "the connection ends");
    clients.pop();
    waiting::wait_until("one may come again", || {
        let mut other = Client::new(&host);
        let id = other.ask("hello", &json!({}));
        other.reply(id)["result"].is_object()
    });
    assert_eq!(host.run("echo on").out(), "on\n");
}

/// They come and go in every state, with commands that run, wait and write.
#[test]
fn clients_that_die_at_any_moment_leave_nothing_behind() {
    let host = Host::with(MIRROR);
    let mut dice = Dice::new(7);
    for _ in 0..waiting::size(40, 400) {
        let mut client = Client::new(&host);
        for _ in 0..dice.below(6) {
            let run = dice.below(60);
            match dice.below(6) {
                0 => client.ask("exec.run", &json!({"command": "echo x; sleep 1000"})),
                1 => client.ask("exec.start", &json!({"command": "yes", "stream": true})),
                2 => client.ask("exec.start", &json!({"command": "cat", "keep_stdin": true, "mode": "pty"})),
                3 => client.ask("exec.output", &json!({"run": run, "wait_ms": 100_000})),
                4 => client.ask("events.subscribe", &json!({})),
                _ => client.ask("exec.write", &json!({"run": run, "text": "x".repeat(10_000)})),
            };
        }
        if dice.below(2) == 0 {
            let _ = client.stream.write_all(b"{\"id\":1,\"meth");
        }
    }
    let mut last = Client::new(&host);
    waiting::wait_until("their runs have ended", || last.call("exec.list", &json!({}))["runs"] == json!([]));
}
