//! A host in the background, for agents that are started where no host runs.
//!
//! It has no terminal: its console goes nowhere, and its messages go to a file beside its socket. Its journal is
//! complete, it ends when nobody needs it, and `rexec tail` shows what its console would.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rexec_sh::protocol::mark::is_mark;
use rexec_sh::protocol::notice::{Notice, problem_in};
use rexec_sh::protocol::process::Pid;

use crate::cli::config_file::ConfigFile;
use crate::cli::{check, host, installed};
use crate::limits;
use crate::sys::background;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The time in which a new host must answer.
const START: Duration = Duration::from_secs(10);
/// The pause between two looks at a starting host.
const PAUSE: Duration = Duration::from_millis(20);
/// Columns of a failed host's message that are shown. The rest is cut.
const SAID_COLUMNS: usize = 400;

/// The file for the messages of the host on this socket.
fn log(socket: &Path) -> PathBuf {
    let mut path = socket.as_os_str().to_owned();
    path.push(".log");
    PathBuf::from(path)
}

/// Starts a host in the background and waits until it answers; returns its process. `None` if another host was faster.
pub(super) fn start(socket: &Path) -> Result<Option<Pid>, Notice> {
    let hint = "start rexec-host in a terminal, or start the agent with --host never";
    let program = installed::program("rexec-host").ok_or_else(|| {
        Notice::failed(
            "rexec-host is not installed with this rexec",
            "install rexec again, or move its programs together",
        )
    })?;
    let log = log(socket);
    let failed = |error: &std::io::Error| {
        Notice::failed(format_args!("no host can be started in the background: {}", reason(error)), hint)
    };
    let file = open_log(&log).map_err(|error| failed(&error))?;
    // The mark is only for commands inside a run. The host would pass it on to commands that come as JSON.
    let env = std::env::vars_os().filter(|(name, _)| !is_mark(name));
    let env: Vec<CString> = env.filter_map(|(name, value)| entry(&name, &value)).collect();
    let path = CString::new(program.as_os_str().as_bytes()).expect("a path that was found has no NUL");
    let minutes = CString::new(limits::END_IDLE_MINUTES.to_string()).expect("a number has no NUL");
    let mut line = vec![path.clone()];
    if !host::says(ConfigFile::own()?.as_ref(), "end-idle") {
        line.extend([c"--end-idle".to_owned(), minutes]);
    }
    let pid = background::start(&path, &line, &env, &file).map_err(|error| failed(&error))?;
    let until = Instant::now() + START;
    loop {
        let lives = !background::has_ended_within(pid, PAUSE);
        if check::is_running(socket) {
            return Ok(lives.then_some(pid));
        }
        if !lives || Instant::now() > until {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let said = escape_line(problem_in(&said), SAID_COLUMNS);
            let problem = format_args!("the host that was started in the background does not answer: {said}");
            return Err(Notice::failed(problem, format_args!("{} has all that it said; {hint}", log.display())));
        }
    }
}

fn open_log(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().create(true).truncate(true).write(true).mode(0o600).open(path)
}

/// A variable as execve(2) takes it.
pub(super) fn entry(name: &OsStr, value: &OsStr) -> Option<CString> {
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
}
