//! A reader that goes to sleep just when the foreground was taken from it. The moment cannot be met at will, so the test
//! takes the foreground back without the look that follows. It runs in a copy of this binary that leads the session of a
//! terminal, as a guard does.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Asking, Foreground};
use crate::core::entry::TerminalWish;
use crate::guard::asker;
use crate::guard::control::GuardReport;
use crate::sys::{kill, process, pty, tree};
use rexec_sh::protocol::process::{Pid, Signal};

/// Says in the copy that it is one.
const MARK: &str = "REXEC_TEST_LEADS_A_SESSION";
const NAME: &str = "guard::foreground::tests::a_reader_that_was_missed_when_the_foreground_was_taken_back_is_reported";

#[test]
#[expect(clippy::disallowed_methods, reason = "a test starts programs")]
fn a_reader_that_was_missed_when_the_foreground_was_taken_back_is_reported() {
    if std::env::var_os(MARK).is_some() {
        return as_session_leader();
    }
    let pty = pty::open(pty::Size { rows: 24, cols: 80 }).unwrap();
    let mut copy = Command::new("setsid");
    copy.arg("--ctty")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--include-ignored", "--nocapture"])
        .env(MARK, "1");
    let output = copy.stdin(pty.slave).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    drop(pty.master);
}

#[expect(clippy::disallowed_methods, reason = "a test starts programs and waits")]
fn as_session_leader() {
    // As a guard does, it changes the foreground from the background. The program below has the default again.
    // SAFETY: a disposition without a handler.
    unsafe { nix::libc::signal(nix::libc::SIGTTOU, nix::libc::SIG_IGN) };
    let slave = || File::options().read(true).write(true).open("/dev/tty").unwrap();
    let mut foreground = Foreground::new(slave().into());
    let mut child = Command::new("sh");
    // It reads the terminal once it has read a line from the pipe.
    child.args(["-c", "read go; read line </dev/tty"]).process_group(0).stdin(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let reader = Pid::new(child.id().cast_signed());
    pty::set_foreground(foreground.slave.as_ref().unwrap(), reader.as_group()).unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let reads = || asker::reader(&tree::descendants(process::pid()), false).is_some_and(|found| found.pid == reader);
    for _ in 0..600 {
        if reads() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(reads(), "it reads the terminal");
    let shell = process::pid().as_group();
    let has_members = |group| tree::descendants(process::pid()).iter().any(|found| found.group == group);
    assert_eq!(foreground.interruptible(shell, has_members), reader.as_group());

    (foreground.was_lent, foreground.is_answered) = (true, true);
    assert!(foreground.find_missed_reader().is_none(), "a person answers it");
    foreground.is_answered = false;
    foreground.take_back();
    assert!(reads(), "it reads on in the background");
    foreground.was_lent = false;
    assert!(foreground.find_missed_reader().is_none(), "nobody had the foreground");
    foreground.was_lent = true;
    let report = foreground.find_missed_reader();
    assert!(matches!(report, Some(GuardReport::Stopped { wish: TerminalWish::Input, .. })), "{report:?}");
    assert_eq!(foreground.reported.map(|found| (found.asker, found.how)), Some((reader, Asking::Reading)));
    assert!(foreground.find_missed_reader().is_none(), "it is reported once");
    kill::process(reader, Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_eq!(foreground.interruptible(shell, has_members), shell, "the group that asked is gone");
}
