//! A running host and running shims under fire: mutated frames over real sockets.

use std::io::{IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use rexec_sh::protocol::process::Signal;
use rexec_sh::protocol::wire::{self, Hello};

use super::mutation::{host_stream, lines, mutated, run_frame, shim_stream};
use crate::support::call::{Call, Target, dir};
use crate::support::dice::{Dice, rounds, tell};
use crate::support::host::Host;
use crate::support::procs;
use crate::support::reader::read_some;
use crate::support::temp::TempDir;
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::Ended;

/// How much a host may grow: one request of 8 MiB, and what its allocator keeps.
const GROWTH: u64 = 24 << 20;

/// A stream of many frames, and how many they are.
fn flood(dice: &mut Dice) -> (Vec<u8>, usize) {
    match dice.below(4) {
        0 => (lines(dice), 3),
        1 => (shim_stream(dice), 6),
        _ => {
            let mut stream = Hello::OURS.encode().to_vec();
            let count = dice.below(200);
            for _ in 0..count {
                let length = dice.below(40);
                stream.push([0x80, 0x91, 0xff, 0xaa][dice.below(4)]);
                stream.extend_from_slice(&u32::try_from(length).expect("small").to_le_bytes());
                stream.extend(dice.bytes(length, 0, 255));
            }
            stream.extend(run_frame(dice));
            wire::FromShim::Signal(Signal::TERM).encode(&mut stream);
            (stream, count + 3)
        }
    }
}

/// Sends a stream, with descriptors at its beginning, and leaves when the host has had its say, or before.
fn send(host: &Host, dice: &mut Dice, stream: &[u8]) {
    let socket = UnixStream::connect(host.socket());
    let mut socket =
        socket.unwrap_or_else(|error| panic!("the host does not listen any more: {error}; {}", host.errors()));
    let here = dir(host.home.path());
    let fds = vec![here.as_raw_fd(); dice.below(5)];
    let rights = [ControlMessage::ScmRights(&fds)];
    let first = dice.below(stream.len() + 1);
    let (head, tail) = stream.split_at(first);
    let control = if fds.is_empty() { &rights[..0] } else { &rights[..] };
    // The host may have ended the connection by now.
    _ = sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(head)], control, MsgFlags::MSG_NOSIGNAL, None);
    _ = socket.write_all(tail);
    if dice.below(2) == 0 {
        _ = socket.shutdown(std::net::Shutdown::Write);
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let answer = socket.read_to_end(&mut Vec::new());
        let is_ended = answer.is_ok() || answer.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(is_ended, "a caller that hung up is kept: {}", stream.escape_ascii());
    }
}

#[test]
fn a_host_outlives_whatever_is_sent_to_it() {
    let host = Host::start();
    assert_eq!(host.run("seq 1 20000 | cksum").out(), "3231941463 108894\n");
    let memory = procs::data(host.pid());
    let mut frames = 0;
    let mut rounds_done = 0_u32;
    rounds(waiting::size(250, 5_000) as u64, |dice| {
        let (stream, count) = flood(dice);
        frames += count;
        let stream = if dice.below(8) == 0 { stream } else { mutated(dice, &stream) };
        send(&host, dice, &stream);
        rounds_done += 1;
        if rounds_done.is_multiple_of(100) {
            assert_eq!(host.run(&format!("echo {rounds_done}")).out(), format!("{rounds_done}\n"));
        }
    });
    let most = procs::most_data(host.pid());
    assert!(most <= memory + GROWTH, "{memory} bytes at first, at most {most}, after {frames} frames");
    assert_eq!(host.errors(), "", "the host complained");
    tell(&format!("{frames} frames to a living host of {memory} bytes at first, at most {most}"));
    host.finish();
}

#[test]
fn a_shim_ends_whatever_its_host_says() {
    let home = TempDir::new(None);
    let listener = UnixListener::bind(home.join("host.sock")).expect("a socket");
    rounds(waiting::size(30, 300) as u64, |dice| {
        let stream = host_stream(dice);
        let stream = mutated(dice, &stream);
        let mut calling = Call::bash("true", home.path()).start(Target::Shim(&home.join("host.sock"))).expect("a shim");
        let (mut socket, _) = listener.accept().expect("the shim connects");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        // Its request, or a part of it: what a host says does not depend on that.
        assert!(read_some(&mut socket, &mut [0; 4096]).is_ok_and(|length| length > 0));
        for piece in dice.pieces(&stream) {
            if socket.write_all(piece).is_err() {
                break;
            }
        }
        drop(socket);
        let seen = calling.finish(PATIENCE);
        let seen = seen.unwrap_or_else(|| panic!("the shim hangs after {}", stream.escape_ascii()));
        assert!(matches!(seen.ended, Ended::Code(_)), "{seen:?} after {}", stream.escape_ascii());
    });
}
