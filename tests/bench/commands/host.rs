//! A host for a measurement: its start, what /proc says about it, and its end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::libc;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{OutputFlags, SetArg, tcgetattr, tcsetattr};
use nix::unistd::Pid;

use crate::Bench;
use crate::shell::{Shell, environment};

const START_MAX: Duration = Duration::from_secs(10);
const STOP_MAX: Duration = Duration::from_secs(5);
/// How long a host gets to make its spare guards before anything is measured.
const SETTLE: Duration = Duration::from_millis(500);

/// What the human has in front of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Console {
    /// `/dev/null`, for which the host writes everything, as for a file.
    Nowhere,
    /// A terminal of 80 columns and 24 rows, which this program reads.
    Terminal,
}

/// A running host; its end comes with the drop.
#[derive(Debug)]
pub(crate) struct Host {
    child: Child,
    /// Where its socket and the links of its shim are.
    folder: PathBuf,
    bin: PathBuf,
    /// Whether it knows modes of terminals.
    pub(crate) has_modes: bool,
    started_in: Duration,
}

impl Host {
    /// Starts a host and waits until it has settled.
    pub(crate) fn start(bench: &Bench, bin: &Path, console: Console) -> io::Result<Self> {
        let host = Self::start_cold(bench, bin, console)?;
        std::thread::sleep(SETTLE);
        Ok(host)
    }

    /// Starts a host and measures the time until it takes a connection.
    pub(crate) fn start_cold(bench: &Bench, bin: &Path, console: Console) -> io::Result<Self> {
        let folder = bench.scratch.folder()?;
        let socket = folder.join("host.sock");
        let mut command = Command::new(bin.join("rexec-host"));
        command.env_clear().envs(environment()).env_remove("REXEC_WHOAMI");
        command.env("REXEC_SOCKET", &socket).env("REXEC_HOME", folder.join("home")).env("XDG_CONFIG_HOME", &folder);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        if console == Console::Terminal {
            let master = on_terminal(&mut command)?;
            set_size(&master, 24, 80)?;
            // It ends with the host, which has the other side open.
            std::thread::spawn(move || read_console(master));
        }
        command.stderr(File::create(folder.join("stderr"))?);
        let start = Instant::now();
        let mut child = command.spawn()?;
        drop(command);
        while UnixStream::connect(&socket).is_err() {
            if let Some(status) = child.try_wait()? {
                let said = fs::read_to_string(folder.join("stderr"))?;
                return Err(Error::other(format!("the host ended at its start: {status}: {}", said.trim())));
            }
            if start.elapsed() > START_MAX {
                return Err(Error::other("the host does not listen"));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        let started_in = start.elapsed();
        Ok(Self { child, folder, bin: bin.to_owned(), has_modes: has_modes(bin)?, started_in })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.join("host.sock")
    }

    /// Its shim, under the name that stands for this shell.
    pub(crate) fn shell(&self, name: &str) -> io::Result<Shell> {
        let link = self.folder.join(format!("rexec-{name}"));
        std::os::unix::fs::symlink(self.bin.join("rexec-sh"), &link)?;
        let shell = Shell::at(link).with("REXEC_SOCKET", &self.socket().to_string_lossy());
        Ok(if self.has_modes { shell } else { shell.with("REXEC_TTY", "never") })
    }

    /// The value of `REXEC_TTY` with which a command writes to a terminal although its caller has none.
    pub(crate) fn always_tty(&self) -> &'static str {
        if self.has_modes { "always" } else { "auto" }
    }

    pub(crate) fn started_in(&self) -> Duration {
        self.started_in
    }

    /// A number from the host's /proc/PID/status, such as VmRSS (KiB).
    pub(crate) fn status(&self, field: &str) -> io::Result<u64> {
        status(self.child.id(), field)
    }

    /// Makes VmHWM start afresh.
    pub(crate) fn reset_peak(&self) -> io::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.child.id()), "5")
    }

    /// The CPU time that the host has used so far, and its recorder.
    pub(crate) fn cpu(&self) -> io::Result<[Duration; 2]> {
        let recorder = self.children()?.into_iter().find(|pid| {
            fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with("rexec-recorder"))
        });
        let recorder = recorder.ok_or_else(|| Error::other("the host has no recorder"))?;
        Ok([cpu(self.child.id())?, cpu(recorder)?])
    }

    /// The host's children: guards, and what it keeps for its console and journal.
    pub(crate) fn children(&self) -> io::Result<Vec<u32>> {
        let pid = self.child.id();
        let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        Ok(list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        // A host that is gone already has been waited for by nobody else, so the pid is still its own.
        let _ = kill(pid, Signal::SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < STOP_MAX {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The CPU time of a process (/proc/PID/schedstat).
fn cpu(pid: u32) -> io::Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| Error::other(format!("schedstat: {text:?}")))
}

/// A number from /proc/PID/status.
pub(crate) fn status(pid: u32, field: &str) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value
        .and_then(|value| value.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| Error::other(format!("/proc/{pid}/status has no {field}")))
}

/// Whether a build has modes of terminals. In older ones stdout is one unless `REXEC_TTY` is `never`.
fn has_modes(bin: &Path) -> io::Result<bool> {
    let help = Command::new(bin.join("rexec-host")).arg("--help").output()?;
    Ok(help.stdout.windows(5).any(|word| word == b"--tty"))
}

/// Makes a command the leader of a session on a new terminal, and returns the side of the terminal to read.
#[expect(unsafe_code, reason = "a session and its terminal are set between fork and exec")]
pub(crate) fn on_terminal(command: &mut Command) -> io::Result<File> {
    let (master, slave) = terminal()?;
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    // SAFETY: only system calls, on descriptors that are open.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            }
        });
    }
    Ok(master)
}

#[expect(unsafe_code, reason = "nix has no call for a terminal's size")]
fn set_size(terminal: &File, rows: u16, columns: u16) -> io::Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the kernel reads a winsize that outlives the call.
    match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

fn read_console(mut terminal: File) {
    let mut buffer = [0; 16 << 10];
    while matches!(terminal.read(&mut buffer), Ok(1..)) {}
}

/// A pseudo-terminal that leaves output as it was written: the side to read, and the side of the program.
pub(crate) fn terminal() -> io::Result<(File, OwnedFd)> {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave =
        OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits()).open(ptsname_r(&master)?)?;
    let mut mode = tcgetattr(slave.as_fd())?;
    mode.output_flags.remove(OutputFlags::OPOST);
    tcsetattr(slave.as_fd(), SetArg::TCSANOW, &mode)?;
    Ok((File::from(OwnedFd::from(master)), slave.into()))
}
