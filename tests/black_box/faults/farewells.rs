//! Callers that do not read what is left for them: the host waits for them for a long time, but not for ever.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::peers::{connect, request, send};
use crate::support::clock;
use crate::support::host::{Host, Setup};
use crate::support::procs::{self, Process};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// The documented bound.
const FAREWELL: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);
/// Bytes of output, more than the connection takes and what is queued before it.
const LONG: usize = 500_000;

/// A host whose clock can be set, where connections hold as much as is usual.
fn setup() -> Option<Setup> {
    let usual = fs::read_to_string("/proc/sys/net/core/wmem_default").is_ok_and(|bytes| bytes.trim() == "212992");
    if !usual {
        programs::skipped("the connections of this machine hold more or less than is usual");
    }
    clock::setup().filter(|_| usual)
}

/// Asks for a command as a shim does, and reads nothing.
fn ask_and_be_silent(host: &Host, script: &str) -> UnixStream {
    let stream = connect(host);
    let dir = File::open(host.home.path()).expect("the directory");
    let null = File::open("/dev/null").expect("/dev/null");
    assert!(send(&stream, &request(script, 0), &[dir.as_raw_fd(), null.as_raw_fd()]).is_ok());
    stream
}

/// Whether the host has let go of a connection, whatever is still to be read from it.
fn is_let_go(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    poll(&mut fds, PollTimeout::ZERO).expect("poll") > 0
}

/// Lets so much time have passed for the host alone since its start, and then sees it have a turn of its loop.
fn pass(host: &Host, time: Duration) {
    clock::pass(host, time);
    assert_eq!(host.run("echo on").out(), "on\n");
}

/// What a command does last, so that [`wait_for_end`] sees its end.
const OVER: &str = "echo $PPID > over.new; mv over.new over";

/// Waits until a command is over and its guard has told the host. The guard has no child then and waits, or has left.
fn wait_for_end(host: &Host) {
    let guard = || fs::read_to_string(host.home.join("over")).ok()?.trim().parse().ok();
    let guard = waiting::until(PATIENCE, guard).expect("it never came to its end");
    let waits = || procs::descendants(guard).is_empty() && Process::of(guard).is_none_or(|now| now.state == 'S');
    assert!(waiting::until_true(PATIENCE, waits), "{:#?}", host.tree());
    pass(host, Duration::ZERO);
}

/// Most of the output is in the socket and the rest before it; of the longer one some is still in the command's log.
#[test]
fn a_caller_that_does_not_take_its_last_frames_is_let_go_in_the_end() {
    let Some(setup) = setup() else { return };
    for bytes in [300_000, LONG] {
        let host = Host::with(setup);
        let stream = ask_and_be_silent(&host, &format!("head -c {bytes} /dev/zero; {OVER}; exit 3"));
        wait_for_end(&host);
        pass(&host, FAREWELL / 2);
        assert!(!is_let_go(&stream), "{bytes}: too soon");
        pass(&host, FAREWELL + SECOND);
        assert!(is_let_go(&stream), "{bytes}: it is waited for");
        host.finish();
    }
}

#[test]
fn a_caller_that_takes_something_is_waited_for_afresh() {
    let Some(setup) = setup() else { return };
    let host = Host::with(setup);
    let mut stream = ask_and_be_silent(&host, &format!("head -c {LONG} /dev/zero; {OVER}"));
    wait_for_end(&host);
    pass(&host, FAREWELL / 2);
    // Nearly all of what the connection holds: the kernel tells the host of room once most of it is free.
    stream.read_exact(&mut vec![0; 215_000]).expect("what was sent");
    pass(&host, FAREWELL / 2);
    pass(&host, FAREWELL / 4 * 5);
    assert!(!is_let_go(&stream), "it has taken something");
    pass(&host, FAREWELL * 2);
    assert!(is_let_go(&stream), "it is waited for");
    host.finish();
}

/// A command that cannot write is not over, and has all the time of its caller.
#[test]
fn a_caller_of_a_command_that_goes_on_is_waited_for() {
    let Some(setup) = setup() else { return };
    let host = Host::with(setup);
    let stream = ask_and_be_silent(&host, "echo >> ready; exec yes");
    assert!(waiting::until_true(PATIENCE, || host.home.join("ready").exists()));
    pass(&host, FAREWELL * 10);
    assert!(!is_let_go(&stream), "its command goes on");
    waiting::wait_until("it has become yes", || host.tree().iter().any(|process| process.comm == "yes"));
    drop(stream);
    host.finish();
}
