//! A command whose directory is on a file server that does not answer: every verb shows, replays and ends it.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::rpc::client::Client;
use crate::support::call::{Target, dir};
use crate::support::file_server::FileServer;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::waiting::PATIENCE;

/// The exit code of timeout(1) for a program that it had to end.
const HANGS: i32 = 124;

/// The verbs. FAR is the directory.
const LINES: [&str; 38] = [
    "ps",
    "ps -v",
    "ps --json",
    "status",
    "status --json",
    "services",
    "services --all",
    "services --json",
    "projects",
    "projects --json",
    "log",
    "log --json",
    "log --cwd FAR",
    "show 1",
    "show 3",
    "show 3 --json",
    "out 1",
    "diff 1 2",
    "stats",
    "sessions",
    "export 1 --md",
    "export 1 --cast",
    "export 1 --text",
    "rerun 2 --dry-run",
    "replay 1 --speed 100",
    "replay --since 1h --max-idle 1s --speed 100",
    "tail 1",
    "--list",
    "doctor",
    "wait 2",
    "send 3 x",
    "pause 3",
    "resume 3",
    "exec --bg -- true",
    "projects --pause FAR",
    "projects --resume FAR",
    "kill 3",
    "projects --end FAR",
];

/// What a verb prints. It is called elsewhere, on a disk of this machine.
fn said(host: &Host, args: &[&str]) -> String {
    let mut command = Command::new("timeout");
    command.arg(PATIENCE.as_secs().to_string()).arg(programs::rexec()).args(args).env_clear();
    command.env("PATH", programs::PATH).env("HOME", host.home.path()).current_dir("/").stdin(Stdio::null());
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home());
    let output = command.output().expect("timeout is there");
    assert_ne!(output.status.code(), Some(HANGS), "rexec {args:?} hangs");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn no_verb_waits_for_the_server_of_a_commands_directory() {
    let Some(server) = FileServer::start() else { return };
    let host = Host::with(MIRROR);
    let far = server.dir().to_str().expect("its name is text");
    let mut calls = ["echo one", "exit 2", "echo ready; exec sleep 1000"].map(|script| {
        let mut call = host.call(script);
        call.dir = dir(server.dir());
        let mut calling = call.start(Target::Shim(&host.socket())).expect("the shim starts");
        if script.contains("ready") {
            assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "it never began");
        } else {
            calling.finish(PATIENCE).expect("it ends");
        }
        calling
    });
    let mut client = Client::new(&host);
    client.start(&json!({"command": "sleep 1000", "dir": far, "name": "web", "background": true}));
    client.call("session.create", &json!({"dir": far, "name": "shop"}));
    server.freeze_all();
    for line in LINES {
        let args: Vec<&str> = line.split(' ').map(|word| if word == "FAR" { far } else { word }).collect();
        let text = said(&host, &args);
        match line {
            "ps" => assert!(text.contains("sleep 1000") && text.contains(&far[far.len() - 9..]), "{text}"),
            "projects --end FAR" => assert!(text.contains("shop: 1 command ended"), "{text}"),
            _ => {}
        }
    }
    assert_eq!(server.waiting(), 0, "the server was asked");
    server.thaw();
    calls[2].finish(PATIENCE).expect("it was ended");
    drop(client);
    host.finish();
}
