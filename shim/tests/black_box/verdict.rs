//! How a command ends for the caller: exit codes, the host's messages, and a host that breaks the protocol.

use std::os::unix::process::ExitStatusExt;

use crate::host::{Place, Said, frames, outcome, wait_for};
use nix::sys::signal::Signal;
use rexec_sh::protocol::process::{self, Exit};
use rexec_sh::protocol::wire::{CallerStream, FromHost, Hello, encode_output};

/// The exit code and the signal that the caller is told.
fn ends(exit: Exit) -> (Option<i32>, Option<i32>) {
    let place = Place::new();
    let host = place.answering(frames(|out| FromHost::Exit(exit).encode(out)));
    let status = place.bash("true").status().unwrap();
    host.join().unwrap();
    assert!(!status.core_dumped());
    (status.code(), status.signal())
}

#[test]
fn a_caller_is_told_the_commands_own_code_or_signal() {
    for code in [0, 1, 2, 44, 125, 126, 127, 128, 137, 255] {
        assert_eq!(ends(Exit::Code(code)), (Some(i32::from(code)), None));
    }
    for signal in [1, 2, 3, 6, 9, 11, 13, 15, 32, 34, 64] {
        assert_eq!(ends(Exit::Signal(process::Signal::new(signal))), (None, Some(i32::from(signal))));
    }
}

#[test]
fn output_arrives_on_its_stream_and_in_order_before_the_exit() {
    let place = Place::new();
    let host = place.answering(frames(|out| {
        encode_output(CallerStream::Out, b"one ", out);
        encode_output(CallerStream::Err, b"two ", out);
        encode_output(CallerStream::Out, b"three ", out);
        FromHost::Note(b"rexec: a note without its newline").encode(out);
        FromHost::Note(b"rexec: a note with it\n").encode(out);
        encode_output(CallerStream::Err, b"four", out);
        FromHost::Exit(Exit::Code(3)).encode(out);
    }));
    let merged = place.real_shell("exec \"$0\" -c x 2>&1").output().unwrap();
    let expected = "one two three rexec: a note without its newline\nrexec: a note with it\nfour";
    assert_eq!(outcome(&merged), (Some(3), expected.into(), String::new()));
    assert!(host.join().unwrap().attributes.stdio.same_output);
}

#[test]
fn a_failure_is_told_on_stderr_with_its_code() {
    let place = Place::new();
    let host =
        place.answering(frames(|out| FromHost::Fail { code: 126, text: b"rexec: /bin/bash: too long" }.encode(out)));
    let output = place.bash("true").output().unwrap();
    assert_eq!(outcome(&output), (Some(126), String::new(), "rexec: /bin/bash: too long\n".into()));
    host.join().unwrap();
}

#[test]
fn a_refusal_is_the_real_shell_and_silent() {
    let place = Place::new();
    let host = place.answering(frames(|out| FromHost::Refuse.encode(out)));
    let script = "exec \"$0\" -c 'echo $1; grep -E \"Sig(Blk|Ign|Pnd)\" /proc/self/status; exit 7' name one";
    let shim = place.real_shell(&format!("trap '' USR1; {script}")).output().unwrap();
    let real = place.real_shell(&format!("trap '' USR1; set -- /bin/bash; {}", script.replace("$0", "$1")));
    assert_eq!(outcome(&shim), outcome(&{ real }.output().unwrap()));
    assert_eq!(shim.status.code(), Some(7));
    host.join().unwrap();
}

/// A signal that the host was told of, and that it has no command for, is the real shell's.
#[test]
fn a_signal_before_a_refusal_ends_what_the_refusal_starts() {
    for (signal, ignored) in
        [(Signal::SIGTERM, false), (Signal::SIGINT, false), (Signal::SIGUSR1, false), (Signal::SIGTERM, true)]
    {
        let place = Place::new();
        let (send, sent) = std::sync::mpsc::channel();
        let host = place.host(move |mut peer| {
            peer.request();
            let said = if ignored { sent.recv().ok().and(None) } else { peer.hear() };
            peer.say(&frames(|out| FromHost::Refuse.encode(out)));
            peer.drain();
            said
        });
        let trap = if ignored { "trap '' TERM; " } else { "" };
        let mut command = place.real_shell(&format!("{trap}exec \"$0\" -c 'echo ran; exit 7'"));
        let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
        // It takes signals over from the moment at which it has blocked them.
        wait_for("the shim", || std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("shim")));
        if !ignored {
            let blocks = |status: String| {
                status.lines().any(|line| line.starts_with("SigBlk:") && !line.ends_with("0000000000"))
            };
            wait_for("its mask", || std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(blocks));
        }
        nix::sys::signal::kill(pid, signal).unwrap();
        let _ = send.send(());
        let output = child.wait_with_output().unwrap();
        if ignored {
            assert_eq!(outcome(&output), (Some(7), "ran\n".into(), String::new()));
        } else {
            assert_eq!(
                (output.status.signal(), output.stdout.as_slice()),
                (Some(signal as i32), b"".as_slice()),
                "{signal}"
            );
            assert_eq!(host.join().unwrap(), Some(Said::Signal((signal as i32).try_into().unwrap())));
        }
    }
}

#[test]
fn a_host_that_leaves_in_mid_run_makes_the_outcome_unknown() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.request();
        peer.say(&frames(|out| encode_output(CallerStream::Out, b"half", out)));
    });
    let (code, stdout, stderr) = outcome(&place.bash("true").output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(125), "half"));
    let expected = "rexec: the host went away in mid-run; whether the command finished is unknown\nhint: ";
    assert!(stderr.starts_with(expected), "{stderr}");
    assert_eq!(stderr.lines().count(), 2);
    host.join().unwrap();
}

/// A person replaces the programs while an old host runs.
#[test]
fn a_host_of_the_version_before_is_understood() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        let request = peer.request_as(Hello { newest: 3, oldest: 3 });
        peer.say(RECORDED_ANSWER);
        peer.drain();
        request
    });
    let seen = outcome(&place.bash("echo $VALUE").env("VALUE", "kept").output().unwrap());
    assert_eq!(seen, (Some(7), "out\n".into(), "err\n".into()));
    let request = host.join().unwrap();
    assert!(request.argv.last().is_some_and(|script| script == b"echo $VALUE") && request.has("VALUE=kept"));
}

/// What a host of protocol 3 said of a command that wrote to both outputs and was sent a signal.
const RECORDED_ANSWER: &[u8] = b"\x81\0\0\0\0\
    \x11\x04\0\0\0out\n\
    \x12\x04\0\0\0err\n\
    \x14\x02\0\0\0\0\x07";

#[test]
fn a_host_of_another_version_is_named_with_both_versions() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.say(&Hello { newest: 9, oldest: 8 }.encode());
        peer.drain_bytes();
    });
    let (code, stdout, stderr) = outcome(&place.bash("true").output().unwrap());
    assert_eq!((code, stdout.as_str()), (Some(125), ""));
    let told = format!("rexec: rexec-sh speaks protocol {} and rexec-host 8 to 9,", Hello::OURS.versions());
    assert!(stderr.starts_with(&told), "{stderr}");
    host.join().unwrap();
}

#[test]
fn a_stranger_on_the_socket_is_told_apart() {
    let place = Place::new();
    let host = place.host(|mut peer| {
        peer.say(b"SSH-2.0-OpenSSH\r\n");
        peer.drain_bytes();
    });
    let (code, _, stderr) = outcome(&place.bash("true").output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("is not rexec-host"), "{stderr}");
    host.join().unwrap();
}

#[test]
fn a_frame_that_cannot_be_understood_ends_the_run() {
    let place = Place::new();
    let host = place.answering(vec![0x7f, 0, 0, 0, 0]);
    let (code, _, stderr) = outcome(&place.bash("true").output().unwrap());
    assert_eq!(code, Some(125));
    assert!(stderr.contains("unknown frame kind 0x7f"), "{stderr}");
    host.join().unwrap();
}

#[test]
fn a_frame_that_may_be_skipped_is() {
    let place = Place::new();
    let mut bytes = vec![0x90, 3, 0, 0, 0, 1, 2, 3];
    FromHost::Exit(Exit::Code(6)).encode(&mut bytes);
    let host = place.answering(bytes);
    assert_eq!(outcome(&place.bash("true").output().unwrap()), (Some(6), String::new(), String::new()));
    host.join().unwrap();
}
