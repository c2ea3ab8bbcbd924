//! The journal keeps no secret of the environment, the command or the output, wherever the output is cut.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::support::call::Target;
use crate::support::crowd;
use crate::support::host::Host;
use crate::support::temp::TempDir;
use rexec_host::journal::frame::{Frame, encode_end, encode_output, encode_start};
use rexec_host::journal::record::{PublishedCard, RunEnd, StartRecord};
use rexec_host::recorder::{Bounds, Session, journals, serve};
use serde_json::{Value, json};

/// Forty secret variables. Their names are of all known kinds, and their values of many alphabets.
fn environment() -> Vec<(String, String)> {
    const NAMES: [&str; 8] = ["KEY", "ACCESS_TOKEN", "SECRET", "DB_PASSWORD", "PASSWD", "AUTH", "COOKIE", "SENTRY_DSN"];
    let value = |n: usize| match n % 5 {
        0 => format!("q{n:02}#f72hs!"),
        1 => format!("correct horse {n} battery"),
        2 => format!("zz{n}пароль"),
        3 => format!("first {n} line\nsecond {n} line"),
        _ => format!("{n}{}", "Zm9vYmFy/+".repeat(6)),
    };
    (0..40).map(|n| (format!("V{n}_{}", NAMES[n % NAMES.len()]), value(n))).collect()
}

/// Secrets that are known by their shape, whatever the variable is called.
fn tokens() -> Vec<String> {
    let letters = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2fG4hJ6kL8n";
    ["ghp_", "sk-ant-api03-", "glpat-", "xoxb-123456789012-", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0."]
        .map(|start| format!("{start}{letters}"))
        .to_vec()
}

const NEAR_MISSES: &str = "PWD=/srv/me PATH=/usr/bin:/bin KEYBOARD=dvorak-intl q01#f72h correct horse https://user@host/x \
                           ghp_short sk-learn==1.4.2 a-string-of-words";

fn entries() -> Vec<Vec<u8>> {
    let ordinary = ["PATH=/usr/bin:/bin", "PWD=/srv/me", "KEYBOARD=dvorak-intl", "SHORT_KEY=correct"];
    let entries = environment().into_iter().map(|(name, value)| format!("{name}={value}"));
    entries.chain(ordinary.map(str::to_owned)).map(String::into_bytes).collect()
}

/// A run: its start, and the number of the stream and the bytes of each frame of output.
type Written<'a> = (StartRecord, Vec<(u8, &'a [u8])>);

/// Records runs. Returns the records, and the bytes of all files.
fn record(home: &Path, runs: &[Written<'_>], bounds: Bounds) -> (Vec<Value>, Vec<u8>) {
    let session = Session::new(home, fs::metadata(home).unwrap().uid(), std::process::id());
    let (mut socket, theirs) = UnixStream::pair().unwrap();
    let recorder = thread::spawn(move || serve(session, theirs, bounds));
    let entries = entries();
    let mut frames = Vec::new();
    for (start, output) in runs {
        encode_start(start, entries.iter().map(Vec::as_slice), &mut frames);
        output
            .iter()
            .for_each(|(stream, bytes)| encode_output(start.card.seq, *stream, Duration::ZERO, bytes, &mut frames));
        let bytes = output.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        encode_end(RunEnd { seq: start.card.seq, bytes, ..RunEnd::default() }, &mut frames);
    }
    Frame::Close.encode(&mut frames);
    socket.write_all(&frames).unwrap();
    drop(socket);
    recorder.join().unwrap();
    let (_, path) = journals(home).unwrap().remove(0);
    let mut all = fs::read(&path).unwrap();
    let records = all.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let records = records.map(|line| serde_json::from_slice(line).unwrap()).collect();
    for raw in fs::read_dir(home.join("raw")).into_iter().flatten().flatten() {
        all.extend(fs::read(raw.path()).unwrap());
    }
    (records, all)
}

/// Checks that no secret is left, nor the first thirty characters of its first line.
fn assert_clean(kept: &[u8], what: &str) {
    let kept = String::from_utf8_lossy(kept).into_owned();
    let values = environment().into_iter().map(|(_, value)| value);
    for secret in values.chain(tokens().into_iter().map(|token| token[token.len() - 30..].to_owned())) {
        let part: String = secret.lines().next().unwrap_or_default().chars().take(30).collect();
        assert!(!kept.contains(&part) && !kept.contains(&secret), "{what}: {part:?} of {secret:?} is left in {kept}");
    }
}

fn probe() -> String {
    let lines = environment().into_iter().map(|(name, value)| format!("{name}={value}\n"));
    lines.chain(tokens().into_iter().map(|token| format!("found {token}\n"))).collect::<String>() + NEAR_MISSES
}

#[test]
fn the_fields_of_a_start_are_masked() {
    let home = TempDir::new(None);
    let all = probe();
    let mut start = StartRecord {
        card: PublishedCard {
            seq: 1,
            command: format!("{all} end"),
            whoami: environment()[0].1.clone(),
            why: format!("to use {}", environment()[1].1),
            name: format!("service {}", environment()[1].1),
            agent: environment()[1].1.clone(),
            agent_version: tokens()[0].clone(),
            session: format!("session {}", environment()[1].1),
            call: tokens()[1].clone(),
            role: environment()[1].1.clone(),
            shell: format!("/{}", environment()[1].1),
            sandbox: Some(format!("sandbox {}", environment()[1].1)),
            ..PublishedCard::default()
        },
        envs: environment().into_iter().collect(),
        ..StartRecord::default()
    };
    start.envs.insert("PIN_KEY".into(), "1234".into());
    start.envs.insert("PLAIN".into(), "1234".into());
    start.set_dir(format!("/srv/{}", environment()[1].1).as_bytes());
    start.set_exec([&b"sh"[..], b"-c", all.as_bytes()].into_iter());
    let mut odd = StartRecord { card: PublishedCard { seq: 2, ..PublishedCard::default() }, ..StartRecord::default() };
    odd.set_dir(&[b"/\xff/", environment()[1].1.as_bytes()].concat());
    odd.set_exec([&b"sh\xff"[..], all.as_bytes()].into_iter());
    // This command is cut to its bound in the middle of a secret.
    let filler = "x".repeat((192 << 10) - 10);
    let long = StartRecord {
        card: PublishedCard { seq: 3, command: format!("{filler}{}", environment()[4].1), ..PublishedCard::default() },
        ..StartRecord::default()
    };
    let (records, kept) = record(home.path(), &[(start, vec![]), (odd, vec![]), (long, vec![])], Bounds::default());
    assert_clean(&kept, "start");
    for record in records.iter().filter(|record| record["seq"] == 1) {
        let command = record["command"].as_str().unwrap();
        assert!(command.ends_with(&format!("{NEAR_MISSES} end")), "{command}");
        assert!(command.contains("V0_KEY=«redacted:V0_KEY»\n"), "{command}");
        assert_eq!(record["envs"]["PIN_KEY"], "«redacted:PIN_KEY»");
        assert_eq!(record["envs"]["PLAIN"], "1234");
        assert_eq!(record["dir"], "/srv/«redacted:V1_ACCESS_TOKEN»");
    }
    for record in records.iter().filter(|record| record["seq"] == 2) {
        let encoded = record["exec_b64"][1].as_str().unwrap();
        let bytes = rexec_host::text::encode::from_base64(encoded).unwrap();
        assert_clean(&bytes, "base64");
        assert!(String::from_utf8_lossy(&bytes).contains("«redacted:V0_KEY»"));
        assert_eq!(record["exec_b64"][0], "c2j/");
        assert!(
            rexec_host::text::encode::from_base64(record["dir_b64"].as_str().unwrap())
                .unwrap()
                .ends_with("»".as_bytes())
        );
    }
    let cut = records.iter().find(|record| record["seq"] == 3).unwrap()["command"].as_str().unwrap();
    assert_eq!((cut.len(), &cut[cut.len() - 5..]), (filler.len() + 3, "xx…"));
}

/// Longer than a token, and than a name with its value.
const PIECE_BYTES: usize = 151;

#[test]
fn output_is_masked_wherever_it_is_cut_into_frames() {
    let home = TempDir::new(None);
    let output = format!("{}\n", probe()).replace('\n', "\r\n");
    let bytes = output.as_bytes();
    // The excerpt is short, so that the output goes to raw files, too.
    let bounds = Bounds { head_bytes: 700, tail_bytes: 900, ..Bounds::default() };
    let start = |seq: usize| StartRecord {
        card: PublishedCard { seq: seq as u64, command: "env".into(), ..PublishedCard::default() },
        ..StartRecord::default()
    };
    // Each run is cut at every so many bytes, each from another byte on, so that every place is a cut in one of them and
    // has many whole bytes on both sides.
    let mut runs: Vec<_> = (0..PIECE_BYTES)
        .map(|at| {
            let (first, rest) = bytes.split_at(at);
            let pieces = [first].into_iter().chain(rest.chunks(PIECE_BYTES)).filter(|piece| !piece.is_empty());
            (start(at), pieces.map(|piece| (0, piece)).collect::<Vec<_>>())
        })
        .collect();
    runs.push((start(PIECE_BYTES), bytes.chunks(1).map(|byte| (0, byte)).collect()));
    // Another stream writes between any two pieces.
    let mixed = bytes.chunks(7).flat_map(|piece| [(1, piece), (2, &b"."[..])]).collect();
    runs.push((start(PIECE_BYTES + 1), mixed));
    let (records, kept) = record(home.path(), &runs, bounds);
    assert_clean(&kept, "output");
    let ends: Vec<&Value> = records.iter().filter(|record| record["type"] == "end").collect();
    assert_eq!(ends.len(), runs.len());
    for (end, (_, frames)) in ends.iter().zip(&runs) {
        let sent: u64 = frames.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        assert_eq!((end["bytes"].as_u64(), end.get("raw_error")), (Some(sent), None));
        assert!(end["output_omitted"].as_u64().is_some_and(|omitted| omitted > 0 && omitted < sent));
        let raw = fs::read_to_string(home.join(end["raw"].as_str().unwrap())).unwrap();
        if frames.iter().all(|(stream, _)| *stream == 0) {
            assert_eq!(raw.lines().last(), Some(NEAR_MISSES));
            assert_eq!(raw.matches("«redacted:").count(), 45);
        }
    }
}

/// A terminal shows each of these as one word, and so does the record.
#[test]
fn escape_sequences_and_overwriting_hide_no_secret() {
    let home = TempDir::new(None);
    let token = tokens()[0].clone();
    let (first, rest) = token.split_at(9);
    let outputs = [
        format!("{first}\x1b[0m{rest}\n"),
        format!("API_\x1b[1mKEY=\x1b[31mEe5{rest}\x1b[0m\n"),
        format!("{first}x\x08{rest}\n"),
        format!("{}\r{token}\n", "-".repeat(token.len())),
        format!("{first}\x1b]0;title\x07{rest}\n"),
    ];
    let start = |seq: usize| StartRecord {
        card: PublishedCard { seq: seq as u64, ..PublishedCard::default() },
        ..StartRecord::default()
    };
    let runs: Vec<_> = outputs.iter().enumerate().map(|(at, text)| (start(at), vec![(0, text.as_bytes())])).collect();
    let (records, _) = record(home.path(), &runs, Bounds::default());
    let ends: Vec<&Value> = records.iter().filter(|record| record["type"] == "end").collect();
    assert_eq!(ends.len(), outputs.len());
    for (end, output) in ends.iter().zip(&outputs) {
        let kept = end["output"].as_str().unwrap();
        assert!(kept.contains("«redacted:") && !kept.contains(&rest[..8]), "{output:?}: {kept}");
    }
}

/// The raw file and the recording of a long output keep its colours, and no secret for that.
#[test]
fn a_colour_in_a_secret_hides_it_in_no_file() {
    let home = TempDir::new(None);
    let token = tokens()[0].clone();
    let (first, rest) = token.split_at(9);
    let value = &environment()[1].1;
    let (head, tail) = value.split_at(3);
    let padding = "some words that nobody has to read twice\n".repeat(4_000);
    let output = format!("{padding}{first}\x1b[0;1m{rest}\x1b[m\n{padding}{head}\x1b[32m{tail}\n{padding}");
    let start = StartRecord { card: PublishedCard { seq: 1, ..PublishedCard::default() }, ..StartRecord::default() };
    let (records, kept) = record(home.path(), &[(start, vec![(0, output.as_bytes())])], Bounds::default());
    let end = records.iter().find(|record| record["type"] == "end").unwrap();
    let kept = String::from_utf8_lossy(&kept).into_owned() + &end.to_string();
    assert!(end["raw"].is_string() && kept.contains("\x1b[0;1m") && kept.contains("«redacted:"), "{end}");
    assert!(!kept.contains(&rest[..8]) && !kept.contains(tail), "{end}");
}

/// Both streams end in bytes that may begin a secret.
#[test]
fn bytes_that_may_begin_a_secret_are_kept_if_no_secret_comes() {
    let home = TempDir::new(None);
    let run = (
        StartRecord { card: PublishedCard { seq: 1, ..PublishedCard::default() }, ..StartRecord::default() },
        vec![(1, &b"out q00#f72"[..]), (2, b"err gh")],
    );
    let (records, _) = record(home.path(), &[run], Bounds::default());
    assert_eq!((&records[2]["output"], &records[2]["bytes"]), (&"out q00#f72err gh".into(), &17.into()));
    assert_eq!(records[2].get("output_omitted"), None);
}

#[test]
fn a_host_masks_in_the_journal_what_an_agent_sees() {
    let host = Host::start();
    let run = |script: &str| {
        let mut call = host.call(script);
        call.env.extend(entries());
        call.run(Target::Shim(&host.socket()))
    };
    let (secret, token) = (environment()[0].1.clone(), tokens()[0].clone());
    let probe = format!("env; : '{secret}' {token}");
    let seen = run(&probe);
    assert!(seen.out().contains(&secret) && seen.code() == 0, "{seen:?}");
    let long = run(&format!("for n in {{1..200}}; do env; done; echo {token}; echo the end"));
    assert!(long.out().contains(&token) && long.out().ends_with("the end\n"));
    let request = format!(
        "{{\"whoami\":\"Words\",\"exec\":[\"sh\",\"-c\",\"echo $API_TOKEN words\"],\"dir\":\"/\",\"envs\":{{\"API_TOKEN\":\"{secret}\"}}}}\n"
    );
    let mut words = UnixStream::connect(host.socket()).unwrap();
    words.write_all(request.as_bytes()).unwrap();
    host.wait_for("three ends", |journal| (journal.of_type("end").count() == 3).then_some(()));
    drop(words);
    let journal = host.journal();
    // An end waits only for its own run's output, so these are in any order.
    let mut ends: Vec<&Value> = journal.of_type("end").collect();
    ends.sort_by_key(|end| end["seq"].as_u64());
    let output = |at: usize| ends[at]["output"].as_str().unwrap();
    assert!(output(0).contains("V0_KEY=«redacted:V0_KEY»\n") && output(0).contains("KEYBOARD=dvorak-intl\n"));
    assert_eq!(ends[0]["command"], "env; : '«redacted:V0_KEY»' «redacted:GITHUB_TOKEN»");
    assert_eq!(
        (output(2), &ends[2]["envs"]["API_TOKEN"]),
        ("«redacted:API_TOKEN» words\n", &"«redacted:API_TOKEN»".into())
    );
    let mut kept = journal.records.iter().flat_map(|(_, record)| record.to_string().into_bytes()).collect::<Vec<u8>>();
    kept.extend(fs::read(host.journal_home().join(ends[1]["raw"].as_str().unwrap())).unwrap());
    assert_clean(&kept, "host");
}

/// What a program gets under a name that tells nothing is found in words as it is in a shell's line.
#[test]
fn arguments_are_masked_as_a_shell_command_is() {
    let host = Host::start();
    let lines: [&[&str]; 6] = [
        &["mysql", "-pS3cretW0rd"],
        &["curl", "-u", "ann:S3cretW0rd", "http://127.0.0.1:1/"],
        &["sshpass", "-p", "S3cretW0rd", "true"],
        &["/usr/bin/zip", "-P", "S3cretW0rd", "a.zip"],
        &["env", "DB_PASSWORD=S3cretW0rd", "true"],
        &["bash", "-c", "mysql -pS3cretW0rd"],
    ];
    for words in lines {
        let mut stream = UnixStream::connect(host.socket()).unwrap();
        let call = json!({"id": 1, "method": "exec.run", "params": {"argv": words, "dir": "/"}});
        stream.write_all(format!("{call}\n").as_bytes()).unwrap();
        let answer = crowd::answer(stream);
        assert!(answer["result"]["run"].is_u64(), "{answer}");
        crowd::answer(crowd::ask(&host, words));
    }
    host.wait_for("all ends", |journal| (journal.of_type("end").count() == 2 * lines.len()).then_some(()));
    for (_, record) in &host.journal().records {
        assert!(!record.to_string().contains("S3cretW0rd"), "{record}");
    }
    let journal = host.journal();
    let starts = journal.of_type("start").filter(|start| start["exec"].to_string().contains("«redacted:"));
    assert_eq!(starts.count(), 2 * lines.len());
}
