//! Peers that break the rules: too slow, too large, out of order, with too many descriptors. Each gets one error, and
//! nobody else notices.

use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rexec_sh::protocol::choice::Tty;
use rexec_sh::protocol::wire::{Attributes, Decoded, FromHost, HELLO_BYTES, Hello, Stdio, encode_run};
use serde_json::Value;

use crate::support::crowd::{answer, ask};
use crate::support::dice::Dice;
use crate::support::host::Host;
use crate::support::procs;
use crate::support::waiting::{self, PATIENCE};

pub(crate) fn connect(host: &Host) -> UnixStream {
    let stream = UnixStream::connect(host.socket()).expect("a host");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// What comes until the connection ends.
fn last_words(stream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => bytes,
        // What we still sent was not read; what was said before has come.
        Err(error) if error.kind() == ErrorKind::ConnectionReset => bytes,
        Err(error) => panic!("the connection stays: {error}"),
    }
}

/// The one error in the language of the peer, and nothing else: code and text.
fn error_in(bytes: &[u8]) -> Option<(u64, String)> {
    if bytes.first() == Some(&b'{') {
        let answer: Value = serde_json::from_slice(bytes).ok()?;
        return Some((answer["exit"].as_u64()?, answer["message"].as_str()?.to_owned()));
    }
    Hello::decode(bytes).ok()?;
    let frames = bytes.get(HELLO_BYTES..)?;
    match FromHost::decode(frames) {
        Ok(Decoded::Item(FromHost::Fail { code, text }, taken)) if taken == frames.len() => {
            Some((code.into(), String::from_utf8_lossy(text).into_owned()))
        }
        _ => None,
    }
}

fn assert_told(what: &str, bytes: &[u8]) -> String {
    let error = error_in(bytes).unwrap_or_else(|| panic!("{what}: no error, but {}", bytes.escape_ascii()));
    let (code, text) = error;
    assert_eq!(code, 125, "{what}: {text}");
    assert!(text.starts_with("rexec: ") && text.contains("\nhint: "), "{what}: {text}");
    text
}

fn frame(kind: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&Hello::OURS.encode()[..], &[kind], &length.to_le_bytes(), body].concat()
}

/// A whole request of a shim, with so many descriptors to come.
pub(crate) fn request(script: &str, inherited: usize) -> Vec<u8> {
    let stdio = Stdio { stdin: true, stdout: true, stderr: true, ..Stdio::default() };
    let numbers = (3..).take(inherited).collect();
    let attributes =
        Attributes { stdio, tty: Some(Tty::Never), umask: 0o022, inherited: numbers, ..Attributes::default() };
    let mut bytes = Hello::OURS.encode().to_vec();
    let script = std::ffi::CString::new(script).expect("no NUL");
    let argv = [c"bash", c"-c", script.as_c_str()];
    let env = [c"PATH=/usr/bin:/bin"];
    encode_run(&attributes, (b"test", c"/bin/bash"), argv.into_iter(), env.into_iter(), &mut bytes).expect("it fits");
    bytes
}

/// Sends bytes with descriptors on the first of them.
pub(crate) fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[RawFd]) -> nix::Result<usize> {
    let rights = [ControlMessage::ScmRights(descriptors)];
    sendmsg::<()>(stream.as_raw_fd(), &[IoSlice::new(bytes)], &rights, MsgFlags::MSG_NOSIGNAL, None)
}

/// Openings that break a rule at once: the host ends each connection without waiting for more.
fn violations() -> Vec<(&'static str, Vec<u8>)> {
    let mut dice = Dice::new(7);
    vec![
        ("garbage", dice.bytes(4000, 0, 255).into_iter().map(|byte| byte & 0x5f).collect()),
        ("another protocol", b"GET / HTTP/1.0\r\n\r\n".to_vec()),
        ("a request of four gigabytes", frame(0x01, u32::MAX, b"x")),
        ("a signal of four gigabytes", frame(0x02, u32::MAX, b"x")),
        ("an unknown frame", frame(0x7f, 1, b"x")),
        ("a malformed request", frame(0x01, 100, &[0xff; 100])),
        ("a signal before a request", frame(0x02, 1, &[15])),
        ("JSON that is none", b"{nonsense}\n".to_vec()),
        ("JSON of another kind", b"{\"action\": \"no such action\"}\n".to_vec()),
        ("a line without an end", [b"{".as_slice(), &vec![b' '; 3 << 20]].concat()),
    ]
}

#[test]
fn violations_end_the_connection_and_disturb_nobody() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let before = procs::most_data(host.pid());
    for (what, bytes) in violations() {
        let mut stream = connect(&host);
        // The host may have ended it before all is written.
        _ = stream.write_all(&bytes);
        let text = assert_told(what, &last_words(&mut stream));
        assert!(!text.contains("took too long"), "{what}: only time ended it: {text}");
        assert_eq!(host.run("echo on").out(), "on\n", "after {what}");
    }
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (8 << 20), "{before} bytes before, at most {peak}");
}

/// The documented bounds are 5 s for a hello and 10 s for a whole request.
#[test]
#[ignore = "long: waits out the 10 s for a request"]
fn slow_peers_are_ended_and_disturb_nobody() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let before = procs::memory(host.pid());
    let hello = Hello::OURS.encode();
    let half = frame(1, 8 << 20, &[9; 1000]);
    let openings: [(&str, &[u8], u64); 6] = [
        ("silence", b"", 5),
        ("half a hello", &hello[..5], 5),
        ("only a hello", &hello, 10),
        ("half a request", &half, 10),
        ("half a line", b"{\"whoami\": ", 10),
        ("a byte a second", &frame(1, 200, b""), 10),
    ];
    let (_, descriptors) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    let each = if descriptors < 4_000 { 10 } else { 84 };
    let started = Instant::now();
    let open = |&(what, bytes, seconds): &(&'static str, &[u8], u64)| {
        let mut stream = connect(&host);
        stream.write_all(bytes).expect("it takes bytes");
        (what, stream, seconds)
    };
    let mut streams: Vec<_> =
        openings.iter().flat_map(|opening| (0..each).map(|_| open(opening)).collect::<Vec<_>>()).collect();
    let dripping = streams.iter().filter(|(what, ..)| what.starts_with("a byte"));
    let mut dripping: Vec<UnixStream> = dripping.map(|(_, stream, _)| stream.try_clone().expect("a copy")).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..40 {
                dripping.retain_mut(|stream| stream.write_all(b"x").is_ok());
                if dripping.is_empty() {
                    break;
                }
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        while started.elapsed() < Duration::from_secs(3) {
            assert_eq!(host.run("echo on").out(), "on\n");
        }
        let now = procs::memory(host.pid());
        assert!(now <= before + (16 << 20), "{before} bytes before, {now} with {} slow peers", streams.len());
        for (what, stream, seconds) in &mut streams {
            let bytes = last_words(stream);
            let took = started.elapsed();
            assert!(took < Duration::from_secs(*seconds) + PATIENCE, "{what}: ended after {took:?}");
            if bytes.is_empty() {
                assert_eq!(*what, "silence", "one that has spoken is told");
            } else {
                assert!(assert_told(what, &bytes).contains("too long"), "{what}");
            }
        }
    });
}

/// Requests that are not whole yet are bounded all together.
#[test]
fn many_large_requests_at_once_are_bounded() {
    let host = Host::start();
    assert_eq!(host.run("echo warm").out(), "warm\n");
    let before = procs::memory(host.pid());
    let bytes = frame(1, 8 << 20, &vec![9; 7 << 20]);
    let start = |_| {
        let mut stream = connect(&host);
        let is_taken = stream.write_all(&bytes).is_ok();
        (stream, is_taken)
    };
    let begun = Instant::now();
    let streams: Vec<_> = (0..40).map(start).collect();
    // A request that takes too long makes room for others.
    let in_time = begun.elapsed() < Duration::from_secs(9);
    let now = procs::memory(host.pid());
    assert!(now <= before + (100 << 20), "{before} bytes before, {now} with 280 MiB of requests");
    assert_eq!(host.run("echo on").out(), "on\n");
    let taken = streams.iter().filter(|(_, is_taken)| *is_taken).count();
    assert!(taken >= 4 && (taken < 20 || !in_time), "{taken} of 40 are held");
    let told = streams
        .into_iter()
        .filter(|(_, is_taken)| !is_taken)
        .filter_map(|(mut stream, _)| error_in(&last_words(&mut stream)));
    assert!(told.count() > 0 || !in_time, "nobody was told");
}

#[test]
fn descriptors_without_a_request_for_them_end_the_connection() {
    let host = Host::start();
    let null = File::open("/dev/null").expect("/dev/null");
    let hello = Hello::OURS.encode();
    // The kernel takes 253 in one message.
    let many = vec![null.as_raw_fd(); 253];
    let mut stream = connect(&host);
    assert_eq!(send(&stream, &hello, &vec![null.as_raw_fd(); 300]), Err(nix::errno::Errno::EINVAL));
    assert!(send(&stream, &hello, &many).is_ok());
    assert_told("253 in one message", &last_words(&mut stream));

    let mut stream = connect(&host);
    stream.write_all(&hello).expect("it takes bytes");
    let bytes = frame(1, 8 << 20, b"")[HELLO_BYTES..].to_vec();
    for byte in bytes.iter().chain(&[9; 100]) {
        // The host may have ended it before all is written.
        _ = send(&stream, &[*byte], &[null.as_raw_fd()]);
    }
    assert!(assert_told("one after the other", &last_words(&mut stream)).contains("more descriptors"), "");

    let mut stream = connect(&host);
    let dir = File::open(host.home.path()).expect("the directory");
    let bytes = request("echo started; sleep 1000", 0);
    assert!(send(&stream, &bytes, &[dir.as_raw_fd(), null.as_raw_fd()]).is_ok());
    let mut first = [0; 8];
    stream.read_exact(&mut first).expect("the command's output");
    assert!(send(&stream, &[2, 1, 0, 0, 0, 10], &[null.as_raw_fd()]).is_ok());
    assert!(last_words(&mut stream).windows(16).any(|part| part == b"more descriptors"), "after the request");

    let mut stream = connect(&host);
    let bytes = request("echo never", 3);
    assert!(send(&stream, &bytes, &[dir.as_raw_fd(), null.as_raw_fd()]).is_ok());
    assert_told("fewer than announced", &last_words(&mut stream));

    assert_eq!(host.run("echo on").out(), "on\n");
    assert!(waiting::until_true(PATIENCE, || host.tree().iter().all(|process| process.comm != "sleep")), "it runs on");
}

/// A peer that was sent its last answer may still be reading the output before it. The host keeps nothing that the peer
/// sends meanwhile.
#[test]
fn a_peer_that_is_let_go_cannot_fill_the_host() {
    let host = Host::start();
    let (dir, null) =
        (File::open(host.home.path()).expect("the directory"), File::open("/dev/null").expect("/dev/null"));
    let mut stream = connect(&host);
    assert!(send(&stream, &request("echo >> ready; exec yes", 0), &[dir.as_raw_fd(), null.as_raw_fd()]).is_ok());
    assert!(waiting::until_true(PATIENCE, || host.home.join("ready").exists()));
    // Its output is not read, so the error cannot be sent.
    procs::wait_until_held(host.pid(), "yes");
    stream.write_all(&[0x7f, 1, 0, 0, 0, 0]).expect("it takes bytes");
    let is_over = || host.tree().iter().all(|process| process.comm != "yes");
    assert!(waiting::until_true(PATIENCE, is_over), "its command runs on");
    let before = procs::data(host.pid());
    stream.write_all(&vec![0; 50 << 20]).expect("it takes bytes");
    let peak = procs::most_data(host.pid());
    assert!(peak <= before + (8 << 20), "{before} bytes before, at most {peak}");
    drop(stream);
}

/// One line holds the answer, so what is beyond a bound is only counted.
#[test]
#[ignore = "long: an answer of 9 MB"]
fn a_long_answer_in_json_is_cut() {
    let host = Host::start();
    let total: u64 = 9_000_000;
    let answer = answer(ask(&host, &["sh", "-c", &format!("yes | head -c {total}")]));
    let shown = answer["output"].as_str().expect("output").len() as u64;
    assert_eq!((answer["exit"].as_u64(), shown), (Some(0), 8 << 20));
    assert_eq!(answer["output_omitted"].as_u64(), Some(total - shown));
}
