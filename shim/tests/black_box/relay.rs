//! A running command: signals, readers that are slow or leave, and a parent that dies.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::host::{Place, Said, frames, outcome, state, wait_for};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rexec_sh::protocol::process::{self, Exit};
use rexec_sh::protocol::wire::{CallerStream, FRAME_BYTES_MAX, FromHost, encode_output};

/// More than any pipe or socket between shim and reader holds.
const PLENTY: usize = 5_000_000;

fn exit(code: u8) -> Vec<u8> {
    frames(|out| FromHost::Exit(Exit::Code(code)).encode(out))
}

fn output(stream: CallerStream, bytes: &[u8]) -> Vec<u8> {
    frames(|out| encode_output(stream, bytes, out))
}

/// Bytes in which no piece looks like another.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[2]
    };
    (0..bytes).map(|_| next()).collect()
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

#[test]
fn signals_go_to_the_command_and_the_shim_waits_for_its_end() {
    let place = Place::new();
    let (ready, started) = mpsc::channel();
    let host = place.host(move |mut peer| {
        peer.request();
        ready.send(()).unwrap();
        let heard: Vec<_> = (0..6).map(|_| peer.hear()).collect();
        peer.say(&frames(|out| FromHost::Exit(Exit::Signal(process::Signal::TERM)).encode(out)));
        heard
    });
    let mut child = place.bash("x").spawn().unwrap();
    started.recv().unwrap();
    let signals = [Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGUSR1, Signal::SIGUSR2, Signal::SIGTERM];
    for signal in signals {
        send(&child, signal);
    }
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    let mut heard = host.join().unwrap();
    heard.sort_by_key(|said| format!("{said:?}"));
    let mut expected: Vec<_> = signals.map(|signal| Some(Said::Signal(signal as u8))).into();
    expected.sort_by_key(|said| format!("{said:?}"));
    assert_eq!(heard, expected);
}

#[test]
fn an_ignored_signal_is_not_forwarded() {
    let place = Place::new();
    let (ready, started) = mpsc::channel();
    let host = place.host(move |mut peer| {
        peer.request();
        ready.send(()).unwrap();
        let heard = peer.hear();
        peer.say(&exit(0));
        heard
    });
    let mut child = place.real_shell("trap '' INT; exec \"$0\" -c x").spawn().unwrap();
    started.recv().unwrap();
    send(&child, Signal::SIGINT);
    send(&child, Signal::SIGUSR1);
    assert!(child.wait().unwrap().success());
    assert_eq!(host.join().unwrap(), Some(Said::Signal(Signal::SIGUSR1 as u8)));
}

#[test]
fn a_stop_stops_the_command_and_the_shim_and_both_go_on() {
    let place = Place::new();
    let (say, heard) = mpsc::channel();
    let host = place.host(move |mut peer| {
        peer.request();
        say.send(None).unwrap();
        say.send(peer.hear()).unwrap();
        say.send(peer.hear()).unwrap();
        peer.say(&exit(8));
    });
    let mut child = place.bash("x").spawn().unwrap();
    assert_eq!(heard.recv().unwrap(), None);
    send(&child, Signal::SIGTSTP);
    assert_eq!(heard.recv().unwrap(), Some(Said::Signal(Signal::SIGTSTP as u8)));
    wait_for("the shim to stop", || state(child.id()) == Some('T'));
    send(&child, Signal::SIGCONT);
    assert_eq!(heard.recv().unwrap(), Some(Said::Signal(Signal::SIGCONT as u8)));
    assert_eq!(child.wait().unwrap().code(), Some(8));
    host.join().unwrap();
}

/// A host that says a lot on both streams.
fn talkative(place: &Place) -> (std::thread::JoinHandle<()>, Vec<u8>) {
    let bytes = noise(PLENTY);
    let sent = bytes.clone();
    let host = place.host(move |mut peer| {
        peer.request();
        for chunk in sent.chunks(100_001) {
            peer.say(&output(CallerStream::Out, chunk));
        }
        peer.say(&output(CallerStream::Err, &sent[..FRAME_BYTES_MAX]));
        peer.say(&exit(5));
    });
    (host, bytes)
}

#[test]
fn five_megabytes_arrive_as_they_were_sent() {
    let place = Place::new();
    let (host, bytes) = talkative(&place);
    let output = place.bash("x").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(output.stdout == bytes && output.stderr == bytes[..FRAME_BYTES_MAX]);
    host.join().unwrap();
}

#[test]
fn a_regular_file_gets_all_of_it() {
    let place = Place::new();
    let (host, bytes) = talkative(&place);
    let script = "exec \"$0\" -c x >>\"${0%/*}/file\" 2>/dev/null";
    assert_eq!(place.real_shell(script).status().unwrap().code(), Some(5));
    assert!(std::fs::read(place.dir.join("file")).unwrap() == bytes);
    host.join().unwrap();
}

#[test]
fn a_reader_that_waits_loses_nothing_and_signals_pass_meanwhile() {
    let place = Place::new();
    let bytes = noise(PLENTY);
    let sent = bytes.clone();
    let (say, heard) = mpsc::channel();
    let host = place.host(move |mut peer| {
        peer.request();
        let mut writer = peer.stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            writer.write_all(&output(CallerStream::Out, &sent)).unwrap();
            writer.write_all(&exit(0)).unwrap();
        });
        say.send(peer.hear()).unwrap();
        writer.join().unwrap();
    });
    let mut child = place.bash("x").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // The first byte tells that the shim writes; nobody takes the rest, so it blocks.
    stdout.read_exact(&mut [0]).unwrap();
    send(&child, Signal::SIGUSR1);
    assert_eq!(heard.recv_timeout(crate::host::PATIENCE).unwrap(), Some(Said::Signal(Signal::SIGUSR1 as u8)));
    let mut rest = Vec::new();
    stdout.read_to_end(&mut rest).unwrap();
    assert!(rest == bytes[1..]);
    assert!(child.wait().unwrap().success());
    host.join().unwrap();
}

/// The host hears of a command's death late where the guard that kills it gets no processor, and passes on what the command
/// writes meanwhile.
#[test]
fn a_death_is_found_behind_much_output_that_nobody_reads() {
    const BYTES: usize = 2_000_000;
    let place = Place::new();
    let host = place.host(move |mut peer| {
        peer.request();
        peer.say(&output(CallerStream::Out, &noise(FRAME_BYTES_MAX)));
        let heard = peer.hear();
        peer.say(&output(CallerStream::Out, &noise(BYTES)));
        peer.say(&frames(|out| FromHost::Exit(Exit::Signal(process::Signal::TERM)).encode(out)));
        heard
    });
    let mut child = place.bash("x").stdout(Stdio::piped()).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    send(&child, Signal::SIGTERM);
    wait_for("the shim to end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(host.join().unwrap(), Some(Said::Signal(Signal::SIGTERM as u8)));
}

#[test]
fn an_inherited_pipe_or_socket_keeps_its_flags() {
    for is_socket in [false, true] {
        let place = Place::new();
        let (host, bytes) = talkative(&place);
        let (mut reader, writer): (Box<dyn Read>, std::os::fd::OwnedFd) = if is_socket {
            let (reader, writer) = UnixStream::pair().unwrap();
            (Box::new(reader), writer.into())
        } else {
            let (reader, writer) = std::io::pipe().unwrap();
            (Box::new(reader), writer.into())
        };
        let kept = writer.try_clone().unwrap();
        let flags = || OFlag::from_bits_retain(fcntl(kept.as_fd(), FcntlArg::F_GETFL).unwrap());
        let before = flags();
        let mut child = place.bash("x").stdout(writer).stderr(Stdio::null()).spawn().unwrap();
        let mut found = vec![0; PLENTY];
        reader.read_exact(&mut found).unwrap();
        assert!(found == bytes);
        assert_eq!(flags(), before);
        assert!(!before.contains(OFlag::O_NONBLOCK));
        assert_eq!(child.wait().unwrap().code(), Some(5));
        host.join().unwrap();
    }
}

#[test]
fn a_reader_that_leaves_is_told_to_the_host_and_the_exit_code_stays() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        peer.say(&output(CallerStream::Out, b"first\n"));
        let heard = peer.hear();
        // A command may well go on: what it still says is for nobody.
        peer.say(&output(CallerStream::Out, &noise(300_000)));
        peer.say(&exit(33));
        (heard, peer.drain())
    });
    let mut child = place.bash("x").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(33));
    assert_eq!((line.as_str(), host.join().unwrap()), ("first\n", (Some(Said::Closed(CallerStream::Out)), vec![])));
}

#[test]
fn a_reader_that_leaves_in_the_middle_of_a_write_is_told_too() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        let mut writer = peer.stream.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            writer.write_all(&[output(CallerStream::Out, &noise(PLENTY)), exit(1)].concat())
        });
        let heard = peer.hear();
        writer.join().unwrap().unwrap();
        heard
    });
    let mut child = place.bash("x").stdout(Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 1000]).unwrap();
    drop(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(host.join().unwrap(), Some(Said::Closed(CallerStream::Out)));
}

#[test]
fn output_that_fits_nowhere_costs_a_line_but_not_the_exit_code() {
    let place = Place::new();
    let host = place.answering([output(CallerStream::Out, b"x"), exit(2)].concat());
    let found = outcome(&place.real_shell("exec \"$0\" -c x >/dev/full").output().unwrap());
    let expected = "rexec: the command's output cannot be written: No space left on device\n";
    assert_eq!(found, (Some(2), String::new(), expected.into()));
    host.join().unwrap();
}

#[test]
fn output_that_fits_nowhere_is_no_success() {
    let place = Place::new();
    let host = place.answering([output(CallerStream::Out, b"x"), output(CallerStream::Out, b"y"), exit(0)].concat());
    let found = outcome(&place.real_shell("exec \"$0\" -c x >/dev/full").output().unwrap());
    let expected = "rexec: the command's output cannot be written: No space left on device\n";
    assert_eq!(found, (Some(1), String::new(), expected.into()), "said once, and 1 as programs do then");
    host.join().unwrap();
}

/// Errors that fit nowhere are lost, as they would be without rexec, and nothing else is.
#[test]
fn a_full_disk_below_stderr_leaves_stdout_and_the_exit_code_alone() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        peer.say(&[output(CallerStream::Err, b"lost"), output(CallerStream::Out, b"kept"), exit(0)].concat());
        peer.drain()
    });
    let found = outcome(&place.real_shell("exec \"$0\" -c x 2>/dev/full").output().unwrap());
    assert_eq!(found, (Some(0), "kept".into(), String::new()));
    assert_eq!(host.join().unwrap(), [], "a full disk is not a reader that has left");
}

/// Something has to end a command that writes for ever to where nothing fits.
#[test]
fn output_without_end_that_fits_nowhere_is_closed_in_the_end() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        for _ in 0..20 {
            peer.say(&output(CallerStream::Out, &[b'x'; 64 << 10]));
        }
        let heard = peer.hear();
        peer.say(&exit(141));
        heard
    });
    let found = outcome(&place.real_shell("exec \"$0\" -c x >/dev/full").output().unwrap());
    assert_eq!(found.0, Some(141));
    assert_eq!(host.join().unwrap(), Some(Said::Closed(CallerStream::Out)));
}

#[test]
fn a_closed_stdout_takes_nothing_and_harms_nothing() {
    let place = Place::new();
    let host =
        place.answering([output(CallerStream::Out, b"lost"), output(CallerStream::Err, b"kept"), exit(2)].concat());
    let found = outcome(&place.real_shell("exec \"$0\" -c x >&-").output().unwrap());
    assert_eq!(found, (Some(2), String::new(), "kept".into()));
    host.join().unwrap();
}

#[test]
fn the_parents_death_waits_for_the_last_reader() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        peer
    });
    let mut parent: Command = place.real_shell("\"$0\" -c x 2>/dev/null & wait");
    let mut parent = parent.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = BufReader::new(parent.stdout.take().unwrap());
    let mut peer = host.join().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Once the shim has passed on the second line, it has handled all that was there with the first.
    for line in ["first\n", "second\n"] {
        peer.say(&output(CallerStream::Out, line.as_bytes()));
        let mut read = String::new();
        out.read_line(&mut read).unwrap();
        assert_eq!(read, line);
    }
    assert!(peer.is_silent(), "the command still has a reader");
    drop(out);
    // Where the shim has not seen the parent's end by then, it sees it when the reader leaves.
    let said = peer.hear();
    if said == Some(Said::Closed(CallerStream::Out)) {
        assert_eq!(peer.hear(), Some(Said::Abort));
    } else {
        assert_eq!(said, Some(Said::Abort));
    }
    peer.say(&exit(0));
}

#[test]
fn an_ignored_hangup_outlives_the_parent() {
    let place = Place::new();
    let (ready, started) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let host = place.host(move |mut peer| {
        peer.request();
        ready.send(()).unwrap();
        wait.recv().unwrap();
        peer.say(&[output(CallerStream::Out, b"done"), exit(0)].concat());
        peer.drain()
    });
    let script = "trap '' HUP; \"$0\" -c x >\"${0%/*}/file\" & echo $!; wait";
    let mut parent = place.real_shell(script).stdout(Stdio::piped()).spawn().unwrap();
    started.recv().unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    go.send(()).unwrap();
    assert_eq!(host.join().unwrap(), []);
    assert_eq!(std::fs::read(place.dir.join("file")).unwrap(), b"done");
}

/// The real shell would be the only one that holds them.
#[test]
fn what_the_command_may_let_go_of_is_let_go_of_once_the_host_accepts_it() {
    let place = Place::new();
    let (tell, accepted) = mpsc::channel();
    let (let_go, go_on) = mpsc::channel::<()>();
    let host = place.host(move |mut peer| {
        peer.request();
        peer.say(&frames(|out| FromHost::Accepted.encode(out)));
        tell.send(peer.hear()).unwrap();
        go_on.recv().unwrap();
        peer.say(&exit(0));
    });
    let mut child = place.real_shell("exec 7</etc/passwd; exec \"$0\" -c x").spawn().unwrap();
    assert_eq!(accepted.recv().unwrap(), Some(Said::LetGo));
    let process = std::path::PathBuf::from(format!("/proc/{}", child.id()));
    assert_eq!(std::fs::read_link(process.join("cwd")).unwrap(), std::path::Path::new("/"));
    let held =
        std::fs::read_dir(process.join("fd")).unwrap().filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok());
    let held: Vec<_> = held.filter(|path| path.ends_with("passwd") || path.is_dir()).collect();
    assert!(held.is_empty(), "{held:?}");
    let_go.send(()).unwrap();
    assert!(child.wait().unwrap().success());
    host.join().unwrap();
}

/// Frames that come together, for a caller that reads both outputs by turns. It may be slow, so that some calls are wrong.
#[test]
fn a_reader_of_both_outputs_gets_them_in_order() {
    let frames: Vec<u8> =
        [(CallerStream::Out, b"1"), (CallerStream::Err, b"2"), (CallerStream::Out, b"3"), (CallerStream::Err, b"4")]
            .into_iter()
            .flat_map(|(stream, bytes)| output(stream, bytes))
            .chain(exit(0))
            .collect();
    let is_in_order = || {
        let place = Place::new();
        let host = place.answering(frames.clone());
        let mut child = place.bash("x").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut pipes: [Box<dyn Read>; 2] =
            [Box::new(unwaiting(child.stdout.take().unwrap())), Box::new(unwaiting(child.stderr.take().unwrap()))];
        let (mut seen, mut buffer) = (Vec::new(), [0; 16]);
        while seen.len() < 4 {
            for pipe in &mut pipes {
                let read = pipe.read(&mut buffer).unwrap_or(0);
                seen.extend_from_slice(&buffer[..read]);
            }
        }
        child.wait().unwrap();
        host.join().unwrap();
        seen == b"1234"
    };
    assert_eq!((0..100).filter(|_| is_in_order()).take(20).count(), 20);
}

/// A pipe whose reads return at once.
fn unwaiting<T: AsFd>(pipe: T) -> T {
    fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    pipe
}
