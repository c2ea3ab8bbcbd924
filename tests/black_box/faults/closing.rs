//! Descriptors whose close(2) waits: a connection that lingers, and a file of a server that does not answer. No caller
//! can make the host wait with them.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use rexec_sh::protocol::wire::Hello;

use super::peers::{connect, request, send};
use crate::support::crowd;
use crate::support::file_server::FileServer;
use crate::support::host::{Host, MIRROR};
use crate::support::lingering::lingering;
use crate::support::procs;
use crate::support::waiting::{self, PATIENCE, wait_until};
use crate::support::warden::with_own_descriptors;

/// Sends a descriptor with bytes, and then a byte that is out of place. No other copy of the descriptor is left: the host
/// does not come to its own before this one is closed.
fn send_last_copy(host: &Host, bytes: &[u8], fd: OwnedFd) -> UnixStream {
    let mut stream = connect(host);
    host.stop();
    send(&stream, bytes, &[fd.as_raw_fd()]).expect("it takes bytes");
    drop(fd);
    _ = stream.write_all(&[0xff]);
    host.signal(Signal::SIGCONT);
    stream
}

#[test]
fn a_connection_that_lingers_does_not_hold_up_the_host() {
    with_own_descriptors(send_lingering);
}

fn send_lingering() {
    let host = Host::with(MIRROR);
    let hello = Hello::OURS.encode();
    let with_request = [&hello[..], &[1, 100, 0, 0, 0, 9]].concat();
    for (what, bytes) in
        [("no hello", b"x".as_slice()), ("a blank", b"\n"), ("a hello", &hello), ("a part", &with_request)]
    {
        let (lingers, _far) = lingering();
        let stream = send_last_copy(&host, bytes, lingers);
        assert_eq!(host.run("echo on").out(), "on\n", "after {what}");
        drop(stream);
        assert_eq!(host.run("echo on").out(), "on\n", "after the end of {what}");
    }
}

/// Has the host hold so many descriptors of a file, and close them while its server does not answer.
pub(super) fn hang_closes(host: &Host, server: &FileServer, count: usize) {
    let files: Vec<File> = (0..count).map(|_| server.open()).collect();
    let mut peers: Vec<UnixStream> = Vec::new();
    for some in files.chunks(20) {
        let numbers: Vec<RawFd> = some.iter().map(AsRawFd::as_raw_fd).collect();
        let stream = connect(host);
        send(&stream, &[&Hello::OURS.encode()[..], &[1]].concat(), &numbers).expect("it takes bytes");
        peers.push(stream);
    }
    // Answered still: whatever else these tests start has a copy of it until then.
    drop(files);
    host.run("true");
    server.freeze();
    // Bytes that are out of place end the connections, and what came with them is closed.
    peers.iter_mut().for_each(|stream| stream.write_all(&[0xff; 64]).expect("it takes bytes"));
}

#[test]
fn a_server_that_answers_no_close_holds_up_nobody_else_however_often() {
    const CLOSES: usize = 40;
    let Some(server) = FileServer::start() else { return };
    let host = Host::with(MIRROR);
    host.run("true");
    hang_closes(&host, &server, CLOSES);
    // Another agent's command whose input is a socket: the agent sees its end at once.
    wait_until("somebody waits for the server", || server.waiting() > 0);
    let (near, far) = UnixStream::pair().expect("sockets");
    near.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let status = crowd::shim(&host, "true").stdin(OwnedFd::from(far)).status().expect("a shim");
    assert!(status.success());
    assert_eq!((&near).read(&mut [0]).expect("the end of the socket"), 0);
    // Each of these closes waits, and what is closed later is closed all the same.
    wait_until("all wait for the server", || server.waiting() == CLOSES);
    let before = procs::descriptors(host.pid());
    let status = crowd::shim(&host, "true").stdin(File::open("/etc/passwd").expect("a file")).status();
    assert!(status.expect("a shim").success());
    wait_until("the file of a later command is closed", || procs::descriptors(host.pid()) <= before);
    // A helper has none of these files.
    host.kill_recorder(&host.recorder());
    host.run("echo later");
    host.wait_for("what came after the recorder", |journal| journal.end_of("echo later").cloned());
    drop(server);
}

/// What still closes for a killed host has its sockets, and cannot be killed.
#[test]
fn a_killed_host_is_dead_for_all_although_a_server_answers_no_close() {
    let Some(server) = FileServer::start() else { return };
    let host = Host::with(MIRROR);
    let mut running = crowd::quiet(&host, "sleep 1000");
    host.wait_for("the command", |journal| journal.of_type("start").next().cloned());
    hang_closes(&host, &server, 1);
    wait_until("somebody waits for the server", || server.waiting() > 0);
    assert_eq!(host.run("echo on").out(), "on\n");
    let others = || host.tree().into_iter().filter(|process| process.comm != "rexec-closer").collect::<Vec<_>>();
    let is_sleep = |process: &procs::Process| process.command().starts_with("sleep");
    let others = waiting::until(PATIENCE, || Some(others()).filter(|all| all.iter().any(is_sleep))).expect("it runs");
    let (home, warden) = host.kill();
    let code = waiting::until(PATIENCE, || running.try_wait().expect("a child"));
    assert_eq!(code.expect("its shim leaves").code(), Some(125));
    wait_until("recorder, guards and the command end", || !others.iter().any(procs::Process::is_alive));
    drop((server, warden, home));
}

/// What closes for a host shares its table, with the socket and its lock in it, and cannot be killed while it waits.
#[test]
fn another_host_takes_the_place_of_a_killed_one_although_a_server_does_not_answer() {
    let Some(server) = FileServer::start() else { return };
    let host = Host::with(MIRROR);
    let dir = File::open(host.home.path()).expect("the directory");
    let file = server.open();
    let whole = request("cat >/dev/null; echo done", 0);
    let mut stream = connect(&host);
    send(&stream, &whole[..whole.len() - 1], &[dir.as_raw_fd(), file.as_raw_fd()]).expect("it takes bytes");
    drop(file);
    host.run("true");
    server.freeze();
    // A byte that is out of place ends the connection, and what came with it is closed.
    stream.write_all(&[0xff; 4096]).expect("it takes bytes");
    wait_until("somebody waits for the server", || server.waiting() > 0);
    assert_eq!(host.run("echo on").out(), "on\n");
    let (home, warden) = host.kill();
    let next = Host::in_dir(home, MIRROR);
    assert_eq!(next.run("echo next").out(), "next\n");
    drop((server, warden));
}

#[test]
fn a_file_whose_server_does_not_answer_holds_up_its_own_command_only() {
    let Some(server) = FileServer::start() else { return };
    let host = Host::with(MIRROR);
    let dir = File::open(host.home.path()).expect("the directory");
    let file = server.open();
    let whole = request("cat >/dev/null; echo done", 0);
    let (begin, end) = whole.split_at(whole.len() - 1);
    let mut stream = connect(&host);
    send(&stream, begin, &[dir.as_raw_fd(), file.as_raw_fd()]).expect("it takes bytes");
    // Answered still: whatever else these tests start has a copy of it until then.
    drop(file);
    host.run("true");
    server.freeze();
    // The host holds the file and makes guards for others.
    let mut others: Vec<_> = (0..8).map(|_| crowd::quiet(&host, "sleep 0.3")).collect();
    assert_eq!(crowd::codes(&mut others), vec![Some(0); 8]);
    stream.write_all(end).expect("it takes bytes");
    wait_until("somebody waits for the server", || server.waiting() > 0);
    for _ in 0..5 {
        assert_eq!(host.run("echo on").out(), "on\n");
    }
    drop(server);
    let mut said = Vec::new();
    stream.read_to_end(&mut said).expect("the end of the command");
    assert!(said.windows(5).any(|part| part == b"done\n"), "{}", said.escape_ascii());
}
