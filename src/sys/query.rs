//! Programs that are asked something, by a process that may wait.
//!
//! Invariants: what is asked is gone when the answer is there, or the time is over, or the asking process has ended. An answer is
//! bounded.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use nix::libc;

use super::poll;

/// What a program says on its standard output, if it ends with 0.
///
/// # Errors
/// It cannot be started; it takes too long (`TimedOut`) or says too much (`FileTooLarge`); it ends otherwise (`Other`).
#[expect(clippy::disallowed_methods, reason = "it is no command, and the process that asks may wait")]
pub fn answer(mut call: Command, until: Instant, most: usize) -> io::Result<Vec<u8>> {
    call.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let above = std::process::id();
    // SAFETY: both calls may be made between fork(2) and execve(2).
    unsafe {
        call.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // Whoever asks may have ended before that.
            let is_orphan = u32::try_from(libc::getppid()).is_ok_and(|now| now != above);
            if is_orphan { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(()) }
        });
    }
    let mut child = call.spawn()?;
    let read = child.stdout.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into()).and_then(|pipe| {
        let read = read(pipe, until, most);
        if read.is_ok() { end_of(&mut child, until).and(read) } else { read }
    });
    let _ = child.kill();
    let _ = child.wait();
    read
}

fn read(mut pipe: ChildStdout, until: Instant, most: usize) -> io::Result<Vec<u8>> {
    let (mut said, mut part) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if !poll::readable_within([pipe.as_fd()], left)?[0] {
            continue;
        }
        match pipe.read(&mut part)? {
            0 => return Ok(said),
            length if said.len() + length > most => return Err(io::ErrorKind::FileTooLarge.into()),
            length => said.extend_from_slice(&part[..length]),
        }
    }
}

/// Waits for the end of a program that has said all.
fn end_of(child: &mut Child, until: Instant) -> io::Result<()> {
    let pid = rexec_sh::protocol::process::Pid::new(child.id().cast_signed());
    if !super::background::has_ended_within(pid, until.saturating_duration_since(Instant::now())) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    if child.wait()?.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn ask(code: &str, time: Duration, most: usize) -> io::Result<Vec<u8>> {
        let mut call = Command::new("sh");
        call.args(["-c", code]);
        answer(call, Instant::now() + time, most)
    }

    #[test]
    fn an_answer_is_whole_bounded_and_in_time() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(ask("printf 'a\\0b'", hour, 3).expect("an answer"), b"a\0b");
        assert_eq!(ask("printf abcd", hour, 3).map_err(|error| error.kind()), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(ask("echo x; exit 3", hour, 9).map_err(|error| error.kind()), Err(io::ErrorKind::Other));
        let soon = Duration::from_millis(50);
        assert_eq!(ask("exec sleep 1000", soon, 9).map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert_eq!(ask("exec >&-; sleep 1000", soon, 9).map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }
}
