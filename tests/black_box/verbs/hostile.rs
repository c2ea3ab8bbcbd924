//! What others chose, in the output of every verb: commands, directories, names, errors and whole records. Nothing of it is
//! a control, is hidden, or makes a row that looks like one of the host's.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rexec_host::journal::frame::{Frame, encode_end, encode_output, encode_start};
use rexec_host::journal::record::{PublishedCard, RunEnd, StartRecord, Straggler};
use rexec_host::recorder::{Bounds, Session, journals, serve};
use rexec_host::text::hidden::{is_bar, is_hidden};
use serde_json::json;

use super::verbs;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::typist::{At, Typist};

/// What a terminal obeys, hides, or takes for the host's.
const EVIL: &str = "y\x1b]0;X\x07\x1b[2J\r\u{9b}31m\u{202e}z\u{200b}\n▌#9 claude  ls\n$(touch ran)\u{e0041}";

/// The colours that verbs use.
const COLOURS: [&str; 9] = ["", "0", "1", "2", "31", "32", "33", "36", "38;5;244"];

fn assert_clean(what: &str, text: &str) {
    let wrong = |c: char| c != '\n' && c != '\t' && (c.is_control() || is_hidden(c) || is_bar(c));
    let found: Vec<char> = text.chars().filter(|&c| wrong(c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
    assert!(!text.contains("\n#9 claude") && !text.contains("\n▌"), "{what}: a row of the host's: {text:?}");
}

/// A journal of an older host, or one that somebody has written.
fn journal(home: &Path) {
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;
    let session = Session::new(home, fs::metadata(home).unwrap().uid(), u32::MAX >> 1);
    let (mut socket, theirs) = UnixStream::pair().unwrap();
    let recorder = std::thread::spawn(move || serve(session, theirs, Bounds::default()));
    let mut frames = Vec::new();
    let evil = || EVIL.to_owned();
    for seq in 1..=3 {
        let start = StartRecord {
            card: PublishedCard {
                seq,
                time: "2026-05-21T10:00:00.000Z".into(),
                whoami: evil(),
                dir: format!("/srv/{EVIL}"),
                command: evil(),
                why: evil(),
                name: evil(),
                shell: evil(),
                agent: evil(),
                agent_version: evil(),
                session: evil(),
                call: evil(),
                role: evil(),
                sandbox: Some(evil()),
                ..PublishedCard::default()
            },
            exec: vec!["bash".into(), "-c".into(), evil()],
            envs: [(evil(), evil())].into(),
            ..StartRecord::default()
        };
        encode_start(&start, [EVIL.as_bytes()], &mut frames);
        encode_output(seq, 0, Duration::from_millis(seq), EVIL.as_bytes(), &mut frames);
        let left = vec![Straggler { pid: 9, comm: evil(), ..Straggler::default() }];
        let end = RunEnd {
            seq,
            exit: 3,
            bytes: EVIL.len() as u64,
            error: Some(evil()),
            left,
            left_count: 1,
            duration_ms: 11_000,
            ..RunEnd::default()
        };
        if seq < 3 {
            encode_end(end, &mut frames);
        }
    }
    Frame::Close.encode(&mut frames);
    socket.write_all(&frames).unwrap();
    drop(socket);
    recorder.join().unwrap();
    let spelled: String = EVIL.chars().map(|c| format!("\\U{:08X}", u32::from(c))).collect();
    let word = format!("\"{spelled}\"");
    let learned = format!(
        "[[learned]]\nwords = [{word}]\nin = '/'\nvia = 'x'\nrule = 'x'\nagent = 'x'\nproject = '/'\nsaved = '2026-05-21'\n"
    );
    fs::write(home.join("learned.toml"), learned).unwrap();
    fs::create_dir(home.join("rexec")).unwrap();
    fs::write(home.join("rexec/config.toml"), format!("[host]\nnotify = \"{spelled}\"\n")).unwrap();
}

/// Command lines of verbs about the past, and of those that need no host.
fn of_the_past(name: &str) -> Vec<Vec<String>> {
    let words: &[&[&str]] = &[
        &["log"],
        &["log", "--json"],
        &["log", "--agent", EVIL],
        &["log", "--cwd", EVIL],
        &["log", "--since", EVIL],
        &["show", "1"],
        &["show", "3"],
        &["show", "1", "--json"],
        &["show", EVIL],
        &["out", EVIL],
        &["out", "1", "--grep", "y"],
        &["out", "1", "--json"],
        &["diff", "1", "2"],
        &["config"],
        &["config", "--json"],
        &["config", "diff"],
        &["config", EVIL],
        &["trust", EVIL],
        &["trust", "--list"],
        &["untrust", EVIL],
        &["stats"],
        &["stats", "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["export", "1", "--md"],
        &["export", "1", "--cast"],
        &["export", "1", "--text", "-o", EVIL],
        &["export", "1", "--md", "-o", EVIL],
        &["rerun", "1", "--dry-run"],
        &["rerun", "1"],
        &["kept"],
        &["kept", "--json"],
        &["kept", "s:7"],
        &["kept", "s:7", "--json"],
        &["kept", EVIL],
        &["undo", "s:7", "--dry-run"],
        &["undo", "s:7", "--json", "--dry-run"],
        &["undo", "s:7", EVIL, "--dry-run"],
        &["undo", EVIL],
        &["--print", name],
        &["--print", EVIL],
        &["--list"],
        &["replay", "--since", EVIL],
        &["schema"],
        &["otlp"],
        &["otlp", "--to", EVIL],
        &["doctor"],
        &["status"],
        &["help", EVIL],
        &["man", EVIL],
        &["completions", EVIL],
        &["explain", EVIL],
        &["explain", "--json", EVIL],
        &["gate", "test", EVIL],
        &["gate", "test", "--json", "--cwd", EVIL, "--agent", EVIL, EVIL],
        &["gate", "test", "--rules", EVIL, "x"],
        &["gate", "pack", EVIL],
        &["gate", "explain", EVIL],
        &["gate", "replay", "--since", EVIL],
        &["gate", "replay", "--agent", EVIL, "--rules", EVIL],
        &["gate", "learn", EVIL],
        &["gate", "learn", "--agent", EVIL, "--rules", EVIL],
        &["gate", "learned"],
        &["gate", "learned", "--json"],
        &["gate", "forget", EVIL],
        &["gate", EVIL],
        &["init", EVIL],
        &["uninit", EVIL],
        &["run", "--list"],
        &["--check-host"],
        &["--check-host", EVIL],
        &["--whoami", EVIL, "--dir", EVIL, "--", EVIL],
        &["--start-host", EVIL],
        &["--attach", EVIL],
        &["shell", EVIL],
        &[EVIL],
    ];
    words.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// Command lines of verbs about what runs now.
fn of_the_present() -> Vec<Vec<String>> {
    let words: &[&[&str]] = &[
        &["ps"],
        &["ps", "--json"],
        &["ps", "--asks"],
        &["ps", "--asks", "--json"],
        &["status"],
        &["status", "--json"],
        &["services", "--all"],
        &["services", "--json"],
        &["projects"],
        &["projects", "--json"],
        &["projects", "--pause", EVIL],
        &["projects", "--end", EVIL],
        &["log"],
        &["show", "1"],
        &["stats"],
        &["wait", EVIL],
        &["wait", "1", "--text", EVIL, "--timeout", "1s"],
        &["answer", EVIL, "yes"],
        &["answer", "99", EVIL],
        &["answer", EVIL, "always", "--yes"],
        &["answer", "99", "no", "--why", EVIL],
        &["send", EVIL, "x"],
        &["send", "99", EVIL],
        &["pause", EVIL],
        &["pause", "--agent", EVIL],
        &["resume", EVIL],
        &["kill", EVIL],
        &["kill", "--agent", EVIL],
        &["attach", EVIL],
        &["tail", EVIL],
        &["events", EVIL],
        &["events", "2"],
        &["events", "--json", "2"],
        &["events", "--json", "--after", EVIL],
        &["events", "--after", "now"],
        &["events", "--json", "--after", "now", "2"],
        &["exec", "--bg", "--name", EVIL, "--", "true"],
        &["exec", "--dir", EVIL, "--", "true"],
        &["doctor"],
        &["--stop-host", EVIL],
        &["shell", EVIL],
    ];
    words.iter().map(|words| words.iter().map(|word| (*word).to_owned()).collect()).collect()
}

/// Verbs that speak a protocol.
const NOT_ITS_OWN: [&str; 3] = ["exec-server", "mcp", "--mcp-stdio"];

fn environment(home: &Path, socket: &Path) -> Vec<(String, PathBuf)> {
    [("REXEC_HOME", home), ("XDG_CONFIG_HOME", home), ("REXEC_SOCKET", socket)]
        .map(|(name, path)| (name.to_owned(), path.to_owned()))
        .into()
}

/// All that a command line prints into pipes.
fn piped(words: &[String], home: &Path, socket: &Path) -> String {
    let mut command = programs::command("timeout");
    command.arg("60").arg(programs::rexec()).args(words);
    command.envs(environment(home, socket)).env("HOME", home).current_dir(home).stdin(Stdio::null());
    let output = command.output().expect("the program starts");
    assert!(!output.stderr.starts_with(b"thread"), "{words:?} panics: {output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// The same at a terminal, without the colours of its own.
fn at_terminal(words: &[String], home: &Path, socket: &Path) -> String {
    let mut env: Vec<String> =
        environment(home, socket).into_iter().map(|(name, path)| format!("{name}={}", path.display())).collect();
    env.push("LC_ALL=C.UTF-8".to_owned());
    let arguments: Vec<&str> = ["rexec"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let mut typist = Typist::start(programs::rexec(), &arguments, &env, home, [At::Terminal; 3]);
    typist.ends();
    let mut text = typist.screen().replace("\r\n", "\n");
    for colour in COLOURS {
        text = text.replace(&format!("\x1b[{colour}m"), "");
    }
    text
}

#[test]
fn no_verb_prints_what_a_terminal_obeys_of_a_hostile_journal() {
    let home = TempDir::new(None);
    journal(home.path());
    crate::undo::hostile_record(home.path(), EVIL);
    let (name, _) = journals(home.path()).unwrap().remove(0);
    let nowhere = home.join("none");
    for words in of_the_past(&name) {
        assert_clean(&format!("{words:?}, piped"), &piped(&words, home.path(), &nowhere));
    }
    for words in of_the_past(&name)
        .into_iter()
        .filter(|words| words[0] != "show")
        .chain([vec!["out".to_owned(), "1".to_owned()], vec!["export".to_owned(), "1".to_owned(), "--text".to_owned()]])
    {
        assert_clean(&format!("{words:?}, at a terminal"), &at_terminal(&words, home.path(), &nowhere));
    }
    assert!(!home.join("ran").exists());
}

#[test]
#[ignore = "long: every verb about the present, twice each"]
fn no_verb_prints_what_a_terminal_obeys_of_hostile_commands() {
    let host = Host::with(MIRROR);
    let dir = host.home.join(&EVIL.replace('/', ""));
    fs::create_dir_all(dir.join(".git")).expect("a directory");
    let mut client = crate::rpc::client::Client::new(&host);
    let start = json!({"command": format!("printf '%s' '{EVIL}'; sleep 1000"), "dir": dir, "whoami": EVIL,
        "caller_session": EVIL, "why": EVIL, "background": true});
    client.start(&start);
    let short = json!({"command": format!("false '{EVIL}'"), "dir": dir, "whoami": EVIL});
    client.start(&short);
    for (method, params) in [
        ("exec.start", json!({"command": "true", "name": EVIL})),
        ("exec.start", json!({"command": "true", "name": "$(touch ran)"})),
        ("session.create", json!({"dir": dir, "name": EVIL})),
        ("session.create", json!({"dir": dir, "name": "p4"})),
    ] {
        let id = client.ask(method, &params);
        assert_eq!(client.reply(id)["error"]["code"], -32_602, "{method} {params}");
    }
    let id = client.ask("session.list", &json!({}));
    let sessions = client.reply(id)["result"]["sessions"].clone();
    let made = &sessions.as_array().expect("an array")[0];
    let name = made["name"].as_str().expect("a name").to_owned();
    assert_clean("the name of a project", &name);
    assert!(!name.contains(['$', '`', '\n', ':', '#']), "{name}");
    for method in ["session.suspend", "session.resume"] {
        let id = client.ask(method, &json!({"session": made["session"]}));
        assert!(client.reply(id)["error"].is_null());
    }
    let home = host.journal_home();
    for words in of_the_present() {
        assert_clean(&format!("{words:?}, piped"), &piped(&words, &home, &host.socket()));
    }
    for words in of_the_present().into_iter().filter(|words| words[0] != "show" && words[0] != "attach") {
        assert_clean(&format!("{words:?}, at a terminal"), &at_terminal(&words, &home, &host.socket()));
    }
    let console = host.console_text();
    let console: String = console.replace("\r\n", "\n");
    let own = console.lines().filter(|line| line.contains("project session")).collect::<Vec<_>>().join("\n");
    assert!(own.contains("is suspended, as a program asked"), "{console}");
    assert_clean("the console's own sentences", &own);
    client.call("session.destroy", &json!({"session": made["session"]}));
    drop(client);
    host.finish();
}

#[test]
fn every_verb_was_looked_at() {
    let seen: BTreeSet<String> =
        of_the_past("x").into_iter().chain(of_the_present()).map(|words| words[0].clone()).collect();
    for verb in verbs() {
        assert!(seen.contains(&verb) || NOT_ITS_OWN.contains(&verb.as_str()), "{verb} is not looked at");
    }
}
