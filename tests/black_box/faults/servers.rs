//! Servers of files that answer nothing: whatever a process has there, the host and the commands of others go on.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use rexec_sh::protocol::report::{Report, ShimPlace};

use crate::sandbox::{begin, beginning, can_run, own_namespace, records, rexec, write};
use crate::support::call::Target;
use crate::support::file_server::FileServer;
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE, wait_until};

/// A process that writes to the server's file.
fn writer(server: &FileServer) -> Child {
    let file = OpenOptions::new().write(true).open(server.path()).expect("its file");
    let mut sleep = Command::new("sleep");
    sleep.arg("1000").stdin(Stdio::null()).stdout(file).stderr(Stdio::null()).spawn().expect("sleep")
}

/// A report can name any process, and that one can have opened any file: also one with the number of the host's FIFO.
#[test]
fn a_reported_process_whose_file_has_no_answer_holds_up_nobody() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let node = fs::symlink_metadata(host.home.join("report")).expect("there is a FIFO").ino();
    let Some(server) = FileServer::with(node, b"") else { return };
    let mut process = writer(&server);
    host.run("true");
    server.freeze_all();
    let place = ShimPlace { namespace: own_namespace(), pid: process.id().cast_signed(), ..ShimPlace::default() };
    let begun = beginning("far away", place);
    write(&host, &records([1; 16], &[Report::Begin { piece: &begun, is_last: true }]));
    let is_told = || host.console_text().contains("rexec-sh is not there");
    assert!(waiting::until_true(PATIENCE, is_told), "{}", host.console_text());
    assert_eq!(host.run("echo on").out(), "on\n");
    assert_eq!(server.waiting(), 0, "the server was asked");
    server.thaw();
    process.kill().expect("it lives");
    process.wait().expect("it is ours");
}

/// Who lists or ends a reported command looks at the programs below its shim.
#[test]
fn a_reported_command_whose_program_has_no_answer_is_listed_and_ended() {
    if !can_run() {
        return;
    }
    let sleep = programs::find("sleep").expect("every system has it");
    let Some(server) = FileServer::with(2, &fs::read(sleep).expect("a program")) else { return };
    let host = Host::with(MIRROR);
    let script = format!("echo ready; {} 1000; exit 3", server.path().display());
    let (mut calling, seq) = begin(&host, &script);
    assert!(calling.stdout.as_ref().expect("a pipe").wait_for(b"ready\n", PATIENCE), "it never began");
    let is_executed = || calling.warden.tree().iter().any(|process| process.comm == "file");
    assert!(waiting::until_true(PATIENCE, is_executed), "{:#?}", calling.warden.tree());
    server.freeze_all();
    assert!(rexec(&host, &["ps", "-v"]).contains("in its sandbox"), "it is listed");
    assert_eq!(host.run("echo on").out(), "on\n");
    let said = rexec(&host, &["kill", &seq.to_string()]);
    server.thaw();
    assert!(said.contains(&format!("#{seq} ")), "{said}");
    calling.finish(PATIENCE).expect("it ends");
}

/// A console that is a file, as its errors are. The program that starts the host opens it.
#[test]
fn a_console_in_a_file_that_has_no_answer_holds_up_nobody() {
    let Some(server) = FileServer::with(2, b"") else { return };
    let open = format!("exec \"$0\" \"$@\" >>'{}' 2>&1", server.path().display());
    let wrapper: &'static [&'static str] = Box::leak(Box::new(["bash", "-c", Box::leak(open.into_boxed_str())]));
    let host = Host::with(Setup { wrapper, is_stuck: true, ..PLAIN });
    let text = || String::from_utf8_lossy(&server.content()).into_owned();
    wait_until("it says what it is", || text().contains("rexec journal: "));
    server.freeze_all();
    for number in 0..20 {
        assert_eq!(host.run(&format!("echo {number}")).out(), format!("{number}\n"));
    }
    wait_until("somebody waits for the server", || server.waiting() > 0);
    assert_eq!(host.run("seq 300000 | tail -c 2000000; seq 300000 | tail -c 100").code(), 0);
    assert_eq!(host.call("exit 7").run(Target::Shim(&host.socket())).code(), 7);
    server.thaw();
    wait_until("what came last is shown", || text().contains("exit 7"));
    assert!(text().contains("not shown"), "what had no room is counted: {}", text().len());
}
