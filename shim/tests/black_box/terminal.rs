//! A caller's terminal that is not its controlling terminal: on stdin it travels, on stdout it is a place to write to.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use crate::host::{Place, frames};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::{CallerStream, FromHost, encode_output};

/// More than a terminal's buffer holds.
const PLENTY: usize = 200_000;

/// A terminal of 33 rows and 111 columns: the side that a person would see, and the program's. Neither is inherited by
/// what other tests start meanwhile.
fn terminal() -> (PtyMaster, OwnedFd) {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let mut options = OpenOptions::new();
    let slave = options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(ptsname_r(&master).unwrap());
    let slave = OwnedFd::from(slave.unwrap());
    let size = Command::new("stty").args(["rows", "33", "cols", "111"]).stdin(slave.try_clone().unwrap()).status();
    assert!(size.unwrap().success());
    (master, slave)
}

#[test]
fn a_terminal_on_stdin_travels_as_it_is() {
    let (place, (_master, slave)) = (Place::new(), terminal());
    let host = place.answering(frames(|out| FromHost::Exit(Exit::Code(6)).encode(out)));
    let kept = slave.try_clone().unwrap();
    let modes = || nix::sys::termios::tcgetattr(&kept).unwrap();
    let before = modes();
    let output = place.bash("x").stdin(slave).output().unwrap();
    assert_eq!((output.status.code(), modes() == before), (Some(6), true));
    let stdio = host.join().unwrap().attributes.stdio;
    assert!(stdio.stdin_tty && !stdio.relayed && !stdio.background, "{stdio:?}");
}

#[test]
fn a_terminal_on_stdout_travels_with_its_size_and_gets_all_output() {
    let (place, (master, slave)) = (Place::new(), terminal());
    let host = place.answering(frames(|out| {
        encode_output(CallerStream::Out, &[b'x'; PLENTY], out);
        FromHost::Exit(Exit::Code(6)).encode(out);
    }));
    let kept = slave.try_clone().unwrap();
    let flags = || fcntl(kept.as_fd(), FcntlArg::F_GETFL).unwrap();
    let before = flags();
    let mut child = place.bash("x").stdout(slave).stderr(Stdio::null()).spawn().unwrap();
    let mut found = vec![0; PLENTY];
    File::from(OwnedFd::from(master)).read_exact(&mut found).unwrap();
    assert!(found.iter().all(|&byte| byte == b'x'));
    assert_eq!((child.wait().unwrap().code(), flags()), (Some(6), before));
    let attributes = host.join().unwrap().attributes;
    assert!(attributes.stdio.stdout_tty && !attributes.stdio.stderr_tty);
    assert_eq!((attributes.rows, attributes.cols), (33, 111));
}
