//! A terminal at the caller's end that does not control it: on stdin it travels, on stdout it is somewhere to write to.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::Stdio;

use crate::host::{Place, frames};
use nix::fcntl::{FcntlArg, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use rexec_sh::protocol::wire::{Exit, Stream, encode_exit, encode_output};

/// More than a terminal's buffer holds.
const PLENTY: usize = 200_000;

fn terminal() -> OpenptyResult {
    openpty(&Winsize { ws_row: 33, ws_col: 111, ws_xpixel: 0, ws_ypixel: 0 }, None).unwrap()
}

#[test]
fn a_terminal_on_stdin_travels_as_it_is() {
    let (place, terminal) = (Place::new(), terminal());
    let host = place.answering(frames(|out| encode_exit(Exit::Code(6), out)));
    let kept = terminal.slave.try_clone().unwrap();
    let modes = || nix::sys::termios::tcgetattr(&kept).unwrap();
    let before = modes();
    let output = place.bash("x").stdin(terminal.slave).output().unwrap();
    assert_eq!((output.status.code(), modes() == before), (Some(6), true));
    let stdio = host.join().unwrap().attributes.stdio;
    assert!(stdio.stdin_tty && !stdio.relayed && !stdio.background && !stdio.leader, "{stdio:?}");
}

#[test]
fn a_terminal_on_stdout_travels_with_its_size_and_gets_all_output() {
    let (place, terminal) = (Place::new(), terminal());
    let host = place.answering(frames(|out| {
        encode_output(Stream::Out, &[b'x'; PLENTY], out);
        encode_exit(Exit::Code(6), out);
    }));
    let kept = terminal.slave.try_clone().unwrap();
    let flags = || fcntl(kept.as_fd(), FcntlArg::F_GETFL).unwrap();
    let before = flags();
    let mut child = place.bash("x").stdout(terminal.slave).stderr(Stdio::null()).spawn().unwrap();
    let mut found = vec![0; PLENTY];
    File::from(terminal.master).read_exact(&mut found).unwrap();
    assert!(found.iter().all(|&byte| byte == b'x'));
    assert_eq!((child.wait().unwrap().code(), flags()), (Some(6), before));
    let attributes = host.join().unwrap().attributes;
    assert!(attributes.stdio.stdout_tty && !attributes.stdio.stderr_tty);
    assert_eq!((attributes.rows, attributes.cols), (33, 111));
}
