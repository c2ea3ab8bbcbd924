//! The socket: who may own it, who may bind it, what is said over it, and how long a peer may take.

mod json;
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rexec_sh::protocol::wire::{self, Hello};

use crate::support::call::{Call, Outcome, Target};
use crate::support::crowd::{Gate, WAIT_AT_GATE};
use crate::support::host::{self, Host, PLAIN, Setup};
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{Plan, Warden};

/// The shim must say what is wrong in one sentence with a hint, and not run anything.
fn assert_refused(what: &str, seen: &Outcome) {
    let text = seen.err();
    assert_eq!((seen.code(), seen.out().as_str()), (127, ""), "{what}: {text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("rexec: ")).count(), 1, "{what}: {text}");
    assert!(text.lines().any(|line| line.starts_with("hint: ")), "{what}: {text}");
}

fn call_at(socket: &Path) -> Outcome {
    let home = TempDir::new(None);
    Call::bash("echo ran", home.path()).run(Target::Shim(socket))
}

/// Bytes that a listener got from everyone who connected.
fn received(listener: &UnixListener) -> usize {
    listener.set_nonblocking(true).expect("a socket");
    let mut count = 0;
    while let Ok((mut stream, _)) = listener.accept() {
        let mut bytes = Vec::new();
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        count += stream.read_to_end(&mut bytes).unwrap_or(usize::MAX);
    }
    count
}

/// Somebody has removed the lock from under a host that lives, and perhaps stands still.
#[test]
fn a_second_host_does_not_take_over_although_the_lock_was_removed() {
    for is_stopped in [true, false] {
        let host = Host::start();
        if is_stopped {
            host.stop();
        }
        fs::remove_file(host.home.join("host.sock.lock")).expect("a lock");
        let mut second = host::launch(host.home.path(), &PLAIN, None);
        let ended = second.wait(PATIENCE).expect("it does not stay");
        assert!(ended.code() != 0 && host.errors().contains("another host is already running"), "{}", host.errors());
        host.signal(Signal::SIGCONT);
        assert_eq!(host.run("echo on").out(), "on\n");
        // It has its lock again.
        let locked = || {
            fs::read_to_string(host.home.join("host.sock.lock")).is_ok_and(|text| text.trim() == host.pid().to_string())
        };
        assert!(waiting::until_true(PATIENCE, locked));
        assert!(!host.journal().records.iter().any(|(_, record)| record["type"] == "lost"));
        host.finish();
    }
}

#[test]
fn nothing_is_sent_to_a_socket_in_a_directory_of_others() {
    type Spoil = fn(&TempDir) -> PathBuf;
    let mut spoils: Vec<(&str, Spoil)> = vec![
        ("a directory that others may list", |dir| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("ours");
            dir.path().to_owned()
        }),
        ("a directory that the group may write", |dir| {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o720)).expect("ours");
            dir.path().to_owned()
        }),
        ("a link to a directory", |dir| {
            let link = dir.path().with_extension("link");
            symlink(dir.path(), &link).expect("a link");
            link
        }),
    ];
    if nix::unistd::geteuid().is_root() {
        spoils.push(("a directory of another user", |dir| {
            chown(dir.path(), Some(65534), Some(65534)).expect("we are root");
            dir.path().to_owned()
        }));
    } else {
        programs::skipped("only root can give a directory away");
    }
    for (what, spoil) in spoils {
        let dir = TempDir::new(None);
        let listener = UnixListener::bind(dir.join("host.sock")).expect("a socket");
        let place = spoil(&dir);
        let seen = call_at(&place.join("host.sock"));
        _ = fs::remove_file(dir.path().with_extension("link"));
        assert_refused(what, &seen);
        assert_eq!(received(&listener), 0, "{what}: bytes were sent");
    }
}

#[test]
fn what_is_no_socket_is_no_host() {
    let dir = TempDir::new(None);
    let socket = dir.join("host.sock");
    assert_refused("nothing", &call_at(&socket));
    fs::write(&socket, "text").expect("a file");
    assert_refused("a file", &call_at(&socket));
    fs::remove_file(&socket).expect("the file");
    mkfifo(&socket, Mode::S_IRWXU).expect("a FIFO");
    assert_refused("a FIFO", &call_at(&socket));
    fs::remove_file(&socket).expect("the FIFO");
    fs::create_dir(&socket).expect("a directory");
    assert_refused("a directory", &call_at(&socket));
    fs::remove_dir(&socket).expect("the directory");
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert_refused("a socket that nobody listens on", &call_at(&socket));
}

#[test]
fn nothing_is_sent_to_a_listener_of_another_user() {
    if !nix::unistd::geteuid().is_root() || !programs::has("python3") {
        return programs::skipped("a listener of another user needs root and python3");
    }
    let (theirs, ours) = (TempDir::new(Some(65534)), TempDir::new(None));
    let script = "import socket
s = socket.socket(socket.AF_UNIX); s.bind('host.sock'); s.listen(9); open('ready', 'w').write('x')
while True:
    c, _ = s.accept(); c.settimeout(5)
    try: n = len(c.recv(1000))
    except Exception: n = 0
    open('got', 'a').write('%d\\n' % n)";
    let path = programs::find("python3").expect("it is installed");
    let mut plan = Plan::new(&path, &["python3", "-c", script], &[format!("PATH={}", programs::PATH)]);
    (plan.user, plan.dir) = (Some(65534), Some(crate::support::call::dir(theirs.path())));
    let squatter = Warden::start(plan).expect("python");
    assert!(waiting::until_true(PATIENCE, || theirs.join("ready").exists()));
    fs::rename(theirs.join("host.sock"), ours.join("host.sock")).expect("we are root");
    let seen = call_at(&ours.join("host.sock"));
    assert_refused("a listener of another user", &seen);
    let got =
        waiting::until(PATIENCE, || fs::read_to_string(theirs.join("got")).ok().filter(|got| got.ends_with('\n')));
    assert_eq!(got.as_deref(), Some("0\n"), "bytes were sent");
    drop(squatter);
}

#[test]
#[ignore = "long: 4 rounds of 50 hosts"]
fn of_many_hosts_at_once_one_lives() {
    for round in 0..waiting::size(4, 100) {
        let home = TempDir::new(None);
        let mut hosts: Vec<Warden> = (0..50).map(|_| host::launch(home.path(), &PLAIN, None)).collect();
        let mut alive = 50;
        let one_is_left = waiting::until_true(PATIENCE, || {
            alive = hosts.iter_mut().filter_map(|host| host.wait(Duration::ZERO).is_none().then_some(())).count();
            alive <= 1
        });
        assert!(one_is_left, "round {round}: {alive} hosts live");
        assert_eq!(alive, 1, "round {round}: {}", fs::read_to_string(home.join("errors")).unwrap_or_default());
        let ready = || fs::read_to_string(home.join("console")).is_ok_and(|text| text.contains("rexec journal: "));
        assert!(waiting::until_true(PATIENCE, ready));
        assert_eq!(Call::bash("echo one", home.path()).run(Target::Shim(&home.join("host.sock"))).out(), "one\n");
        for host in &mut hosts {
            host.signal(Signal::SIGTERM);
            assert!(host.wait(PATIENCE).is_some() && host.is_empty_within(PATIENCE));
        }
        assert!(!home.join("host.sock").exists(), "round {round}");
    }
}

#[test]
fn a_stale_socket_is_replaced() {
    let (home, mut warden) = Host::start().kill();
    assert!(home.join("host.sock").exists(), "SIGKILL leaves the socket");
    // A guard that was being forked has the listener for a moment longer.
    assert!(warden.is_empty_within(PATIENCE));
    assert_refused("a dead host's socket", &call_at(&home.join("host.sock")));
    let next = Host::in_dir(home, PLAIN);
    assert_eq!(next.run("echo next").out(), "next\n");
}

#[test]
fn a_deleted_socket_is_made_again() {
    let host = Host::start();
    for _ in 0..3 {
        fs::remove_file(host.socket()).expect("the socket");
        assert!(waiting::until_true(PATIENCE, || host.socket().exists()), "the socket stays away");
        let mode = fs::metadata(host.socket()).expect("the socket").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(waiting::until_true(PATIENCE, || host.run("echo back").out() == "back\n"));
    }
}

/// The children of a host that was killed have its lock for a moment longer than the host.
#[test]
fn a_host_waits_for_the_lock_of_one_that_is_dead() {
    let home = TempDir::new(None);
    let lock = home.join("host.sock.lock");
    let mut dead = programs::command("true").spawn().expect("a program");
    dead.wait().expect("it ends");
    fs::write(&lock, dead.id().to_string()).expect("a file");
    let held = Flock::lock(File::open(&lock).expect("a file"), FlockArg::LockExclusive).expect("nobody has it");
    let mut host = host::launch(home.path(), &PLAIN, None);
    assert!(host.wait(Duration::from_millis(300)).is_none(), "it does not give up at once");
    drop(held);
    assert!(waiting::until_true(PATIENCE, || UnixStream::connect(home.join("host.sock")).is_ok()), "it begins");
}

/// A cleaner of temporary files may remove everything: socket, lock, directory and journal.
#[test]
fn a_removed_directory_is_made_again() {
    let host = Host::start();
    assert_eq!(host.run("echo before").out(), "before\n");
    host.wait_for("its end", |journal| journal.end_of("echo before").map(|_| ()));
    for _ in 0..10 {
        // The host puts its socket back in the middle of that, at any moment.
        assert!(waiting::until_true(PATIENCE, || fs::remove_dir_all(host.home.path()).is_ok()), "it is ours");
        assert!(waiting::until_true(PATIENCE, || host.socket().exists()), "the socket stays away");
    }
    let mode = fs::metadata(host.home.path()).expect("the directory").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert!(waiting::until_true(PATIENCE, || host.run("echo back").out() == "back\n"));
    host.wait_for("a command after that", |journal| journal.end_of("echo back").map(|_| ()));
    let (code, text) = {
        let mut second = host::launch(host.home.path(), &PLAIN, None);
        (second.wait(PATIENCE).expect("it leaves").code(), host.errors())
    };
    assert!(code != 0 && text.contains("another host is already running"), "{code}: {text}");
}

#[test]
fn a_socket_that_cannot_be_made_again_is_tried_again() {
    let host = Host::with(Setup { pipe: true, ..PLAIN });
    let in_place_of_it = || {
        _ = fs::remove_dir_all(host.home.path());
        fs::write(host.home.path(), "").is_ok()
    };
    assert!(waiting::until_true(PATIENCE, in_place_of_it), "the host was always faster");
    assert!(waiting::until_true(PATIENCE, || host.console_text().contains("\nhint: ")), "it never failed");
    fs::remove_file(host.home.path()).expect("it is ours");
    assert!(waiting::until_true(PATIENCE, || host.socket().exists()), "the socket stays away");
    assert!(waiting::until_true(PATIENCE, || host.run("echo back").out() == "back\n"));
}

/// Two hosts may share a home: each has a journal of its own, and neither takes the other's commands for lost.
#[test]
fn two_hosts_with_one_home_keep_apart() {
    let host = Host::start();
    let other = TempDir::new(None);
    let socket = other.join("host.sock");
    let wrapper = vec!["env", format!("REXEC_SOCKET={}", socket.display()).leak()].leak();
    let mut gate = Gate::new(host.home.path(), None);
    let mut first = host.call(&format!("{WAIT_AT_GATE}; exit 3")).start(Target::Shim(&host.socket())).expect("a shim");
    gate.wait_for(1);
    let mut second = host::launch(host.home.path(), &host::Setup { wrapper, ..PLAIN }, None);
    assert!(waiting::until_true(PATIENCE, || UnixStream::connect(&socket).is_ok()), "{}", host.errors());
    assert_eq!(host.call("echo second").run(Target::Shim(&socket)).out(), "second\n");
    second.signal(Signal::SIGTERM);
    assert!(second.wait(PATIENCE).is_some() && second.is_empty_within(PATIENCE));
    gate.let_through(1);
    assert_eq!(first.finish(PATIENCE).map(|seen| seen.code()), Some(3));
    let journal = host.wait_for("both ends", |journal| (journal.of_type("end").count() == 2).then(|| host.journal()));
    let files: std::collections::BTreeSet<_> = journal.records.iter().map(|(path, _)| path).collect();
    assert_eq!((files.len(), journal.of_type("lost").count()), (2, 0), "{journal:#?}");
}

#[test]
fn a_second_host_refuses_and_harms_nothing() {
    let host = Host::start();
    let mut second = host::launch(host.home.path(), &PLAIN, None);
    let ended = second.wait(PATIENCE).expect("it leaves");
    assert!(ended.code() != 0);
    let text = host.errors();
    assert!(text.contains("rexec: ") && text.contains("hint: "), "{text}");
    assert_eq!(host.run("echo first").out(), "first\n");
}

/// What a shim of protocol 3 sends for `sh -c 'echo "$VALUE"; exit 7'` in an environment of `VALUE=kept`. An agent keeps
/// the shim that it has found at its start.
const RECORDED_REQUEST: &str = "\
    5258454303000300017500000006000000120000000000000000000000000000000000000000000000000000000000000000\
    00000000000400000074657374080000002f62696e2f736800030000001c0000007368002d63006563686f20222456414c55\
    45223b2065786974203700010000000b00000056414c55453d6b65707400";

/// It is asked for nothing that it cannot do, and not waited for.
#[test]
fn a_shim_of_a_version_before_is_served() {
    use std::os::fd::AsRawFd;
    let host = Host::start();
    let request: Vec<u8> = (0..RECORDED_REQUEST.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&RECORDED_REQUEST[at..at + 2], 16).expect("two digits"))
        .collect();
    for version in wire::VERSION_MIN..wire::VERSION_THAT_LETS_GO {
        let hello = Hello { newest: version, oldest: 3 }.encode();
        let request = [&hello, &request[wire::HELLO_BYTES..]].concat();
        let mut socket = UnixStream::connect(host.socket()).expect("a host");
        let here = crate::support::call::dir(host.home.path());
        let (bytes, fds) = ([IoSlice::new(&request)], [here.as_raw_fd()]);
        sendmsg::<()>(socket.as_raw_fd(), &bytes, &[ControlMessage::ScmRights(&fds)], MsgFlags::empty(), None)
            .expect("it takes all");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).expect("an answer and the end");
        let (greeting, frames) = answer.split_at(wire::HELLO_BYTES);
        // What that shim checks of a greeting.
        assert!(greeting[6] <= 3 && greeting[4] >= 3, "{greeting:?}");
        assert_eq!(frames, b"\x11\x05\0\0\0kept\n\x14\x02\0\0\0\0\x07", "{version}: {}", host.console_text());
    }
}

#[test]
fn a_client_of_another_version_is_told() {
    let host = Host::start();
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.write_all(&Hello { newest: 9, oldest: 9 }.encode()).expect("it takes bytes");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer and an end");
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains('9') && text.contains("protocol"), "{text:?}");
    assert_eq!(host.run("echo on").out(), "on\n");
}

#[test]
fn a_host_of_another_version_is_named() {
    let dir = TempDir::new(None);
    let socket = dir.join("host.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the shim");
        stream.write_all(&Hello { newest: 9, oldest: 9 }.encode()).expect("it takes bytes");
        _ = stream.read_to_end(&mut Vec::new());
    });
    let seen = call_at(&socket);
    assert_eq!((seen.code(), seen.out().as_str()), (125, ""));
    let ours = format!("protocol {} and", Hello::OURS.versions());
    assert!(seen.err().contains(&ours) && seen.err().contains('9'), "both versions: {}", seen.err());
    assert!(seen.err().starts_with("rexec: ") && seen.err().contains("\nhint: "), "{}", seen.err());
    answering.join().expect("the listener");
}

/// What a shim sends whose caller dies in that very moment: the request and its end in one piece.
#[test]
fn a_request_that_is_taken_back_at_once_is_not_run() {
    use std::os::fd::AsRawFd;
    let host = Host::start();
    let ran = host.home.join("ran");
    let attributes = wire::Attributes { umask: 0o22, ..wire::Attributes::default() };
    let script = std::ffi::CString::new(format!("echo > {}", ran.display())).expect("no NUL");
    let mut stream = Hello::OURS.encode().to_vec();
    let argv = [c"sh", c"-c", &script].into_iter();
    wire::encode_run(&attributes, (b"test", c"/bin/sh"), argv, std::iter::empty(), &mut stream).expect("it is short");
    wire::FromShim::Abort.encode(&mut stream);
    for _ in 0..50 {
        let mut socket = UnixStream::connect(host.socket()).expect("a host");
        let here = crate::support::call::dir(host.home.path());
        let (bytes, fds) = ([IoSlice::new(&stream)], [here.as_raw_fd()]);
        let rights = [ControlMessage::ScmRights(&fds)];
        sendmsg::<()>(socket.as_raw_fd(), &bytes, &rights, MsgFlags::empty(), None).expect("it takes all");
        let mut answer = Vec::new();
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.read_to_end(&mut answer).expect("an answer and the end");
        assert!(
            memchr::memmem::find(&answer, b"ended before the command could start").is_some(),
            "{answer:?}\n{}",
            host.console_text()
        );
    }
    assert_eq!(host.run("echo well").out(), "well\n");
    host.wait_idle();
    assert!(!ran.exists(), "it ran");
}
