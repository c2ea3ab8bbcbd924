//! Programs that this process starts and does not wait for, and the program that it becomes.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork};
use rexec_sh::protocol::process::Pid;

use super::{helper, process};

/// Starts a program in a session of its own, with `/dev/null` as its standard input and output, `log` as its standard
/// error and `/` as its directory; returns its number. It is not a child of this process.
///
/// # Errors
/// As pipe(2) and fork(2). A program that cannot be executed ends at once with 127.
pub fn start(program: &CStr, argv: &[CString], env: &[CString], log: &File) -> io::Result<Pid> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let (told, tell) = super::pipe()?;
    // SAFETY: the process has one thread, so the child may go on as an ordinary process.
    match unsafe { fork() }.map_err(super::io)? {
        ForkResult::Parent { child } => {
            drop(tell);
            // The child ends at once, and with it the last writer.
            super::uninterrupted(|| nix::sys::wait::waitpid(child, None).map_err(super::io))?;
            let mut number = [0; 4];
            match super::read(&told, &mut number)? {
                4 => Ok(Pid::new(i32::from_ne_bytes(number))),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        ForkResult::Child => {
            let _ = nix::unistd::setsid();
            let _ = nix::unistd::chdir("/");
            let _ = dup2_stdin(&null).and_then(|()| dup2_stdout(&null)).and_then(|()| dup2_stderr(log.as_fd()));
            // SAFETY: as above.
            match unsafe { fork() } {
                Ok(ForkResult::Parent { child }) => {
                    let _ = super::write(&tell, &child.as_raw().to_ne_bytes());
                    process::exit(0)
                }
                Ok(ForkResult::Child) => {
                    process::close_all_but(&[0, 1, 2]);
                    let _ = execute(program, argv, env);
                    process::exit(127)
                }
                Err(_) => process::exit(1),
            }
        }
    }
}

/// Starts `sh -c COMMAND` with these variables beside its own, in a session of its own, with `/dev/null` as its standard
/// descriptors, or a pipe that has a short text as its standard input; returns its number. It is a child of this process,
/// and nothing waits for it.
///
/// # Errors
/// EINVAL for a command with a zero byte; else as pipe(2) and fork(2).
pub fn start_shell(command: &str, variables: &[(&str, &str)], input: Option<&str>) -> io::Result<Pid> {
    let piped = |text: &str| {
        let (reader, writer) = super::pipe()?;
        super::write(&writer, text.as_bytes()).map(|_| reader)
    };
    let input = input.map(piped).transpose()?;
    let kept: Vec<_> = input.iter().map(AsRawFd::as_raw_fd).collect();
    let shell = |words: [&str; 3]| words.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
    let argv = shell(["sh", "-c", command])?;
    let own = std::env::vars_os().map(|(name, value)| [name.into_encoded_bytes(), value.into_encoded_bytes()]);
    let added = variables.iter().map(|(name, value)| [name.as_bytes().to_vec(), value.replace('\0', "").into_bytes()]);
    let env: Vec<CString> = own.chain(added).filter_map(|pair| CString::new(pair.join(&b'=')).ok()).collect();
    helper::fork(c"rexec-notify", &kept, || {
        set_default_signals();
        let _ = nix::unistd::setsid();
        // A descriptor opened for this process alone would be closed in the program.
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let given = input.as_ref().map_or(null.as_fd(), AsFd::as_fd);
            let _ = dup2_stdin(given).and_then(|()| dup2_stdout(&null)).and_then(|()| dup2_stderr(&null));
        }
        let _ = execute(c"/bin/sh", &argv, &env);
    })
}

/// Starts a program whose output and errors this process reads, with `/dev/null` as its standard input; returns its number
/// and the end of the pipe, which does not block. It is a child of this process, and nothing waits for it.
///
/// # Errors
/// As pipe(2) and fork(2). If the program cannot be executed, its output is `failed`.
pub fn start_read(program: &CStr, argv: &[CString], env: &[CString], failed: &str) -> io::Result<(Pid, OwnedFd)> {
    let (near, far) = super::pipe()?;
    let pid = helper::fork(c"rexec-lookup", &[far.as_raw_fd()], || {
        set_default_signals();
        if dup2_stdout(&far).and_then(|()| dup2_stderr(&far)).is_ok() {
            let _ = execute(program, argv, env);
            let _ = super::write(&far, failed.as_bytes());
        }
    })?;
    Ok((pid, near))
}

/// Gives each signal the disposition that programs begin with.
fn set_default_signals() {
    for number in 1..=nix::libc::SIGRTMAX() {
        // SAFETY: a disposition without a handler. For some signals the call is refused, which does no harm.
        unsafe { nix::libc::signal(number, nix::libc::SIG_DFL) };
    }
}

/// Makes `/dev/null` this process's standard input.
///
/// # Errors
/// As open(2) and dup2(2).
pub fn read_nothing() -> io::Result<()> {
    dup2_stdin(File::open("/dev/null")?).map_err(super::io)
}

/// Becomes another program. Returns only when that fails.
pub fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    // Rust ignores SIGPIPE in its programs, and that would be inherited.
    // SAFETY: no handler is set, so nothing of this process runs in one.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
    match nix::unistd::execve(program, argv, env) {
        Ok(never) => match never {},
        Err(error) => super::io(error),
    }
}

/// Waits up to `time` for the end of a process. A process that cannot be watched counts as ended.
#[must_use]
pub fn has_ended_within(pid: Pid, time: Duration) -> bool {
    let Some(process) = super::kill::Pidfd::open(pid) else { return true };
    let mut watched = [nix::poll::PollFd::new(process.as_fd(), nix::poll::PollFlags::POLLIN)];
    let timeout = nix::poll::PollTimeout::try_from(time).unwrap_or(nix::poll::PollTimeout::MAX);
    nix::poll::poll(&mut watched, timeout).is_ok_and(|ready| ready > 0)
}
