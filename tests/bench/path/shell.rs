//! One way to run a command: a shell, called as an agent calls it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Bench;
use crate::host::Host;

/// A shell and the environment it is called with.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    program: PathBuf,
    env: Vec<(String, String)>,
}

/// Where the three kinds of shell come from.
impl Shell {
    /// The system's own.
    pub(crate) fn real(name: &str) -> Self {
        Self { program: Path::new("/bin").join(name), env: environment() }
    }

    /// The shim, under the name that stands for that shell.
    pub(crate) fn ours(bench: &Bench, host: &Host, name: &str) -> Self {
        Self::shim(bench, host.socket(), name)
    }

    /// The shim, with any socket.
    pub(crate) fn shim(bench: &Bench, socket: &Path, name: &str) -> Self {
        let program = bench.scratch.path().join(format!("rexec-{name}"));
        Self { program, env: environment() }.with("REXEC_SOCKET", &socket.to_string_lossy())
    }

    /// The same with one more variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// `SHELL -c TEXT`, stdin from /dev/null, the outputs still to be set.
    pub(crate) fn command(&self, text: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(text).env_clear().stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Like [`Shell::command`], behind another program that runs it.
    pub(crate) fn command_below(&self, wrapper: &[&str], text: &str) -> Command {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(&self.program).arg("-c").arg(text).env_clear().stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Like [`Shell::command`], both outputs one open file to nowhere: the cheapest that an agent does.
    pub(crate) fn silent(&self, text: &str, nowhere: &File) -> io::Result<Command> {
        let mut command = self.command(text);
        command.stdout(nowhere.try_clone()?).stderr(nowhere.try_clone()?);
        Ok(command)
    }

    /// Runs a command from spawn to end; it must succeed.
    pub(crate) fn time(&self, text: &str, nowhere: &File) -> io::Result<Duration> {
        let mut command = self.silent(text, nowhere)?;
        let start = Instant::now();
        let status = command.spawn()?.wait()?;
        let took = start.elapsed();
        if status.success() { Ok(took) } else { Err(Error::other(format!("{:?}: {status}", self.program))) }
    }
}

/// Lays the links of the shim: the name it is called by says which shell it stands for.
pub(crate) fn lay_links(bench: &Bench) -> io::Result<()> {
    for name in ["sh", "bash"] {
        std::os::unix::fs::symlink(bench.bin.join("rexec-sh"), bench.scratch.path().join(format!("rexec-{name}")))?;
    }
    Ok(())
}

/// Stops early, in words, when a command does not come through.
pub(crate) fn check(bench: &Bench) -> io::Result<()> {
    let host = Host::start(bench)?;
    let (mut output, writer) = io::pipe()?;
    let mut command = Shell::ours(bench, &host, "sh").command("echo through the host");
    command.stdout(writer.try_clone()?).stderr(writer);
    let status = command.spawn()?.wait()?;
    drop(command);
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    if !status.success() || text != "through the host\n" {
        return Err(Error::other(format!("a first command through the host: {status}, output {text:?}")));
    }
    Ok(())
}

/// One open file to nowhere.
pub(crate) fn nowhere() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}

/// The environment of every command on either side: about as large as an agent's, and the same on every machine.
pub(crate) fn environment() -> Vec<(String, String)> {
    let mut env = vec![
        ("PATH".to_owned(), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOME".to_owned(), "/nonexistent".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ("TERM".to_owned(), "xterm-256color".to_owned()),
        ("REXEC_WHOAMI".to_owned(), "bench".to_owned()),
    ];
    env.extend((0..25).map(|n| (format!("AGENT_VARIABLE_{n}"), "x".repeat(20 + n))));
    env
}

/// Writes a file of `bytes` bytes or a little more by repeating lines.
pub(crate) fn write_lines(path: &Path, bytes: usize, mut line: impl FnMut(usize) -> String) -> io::Result<usize> {
    let mut text = String::with_capacity(bytes + 256);
    let mut at = 0;
    while text.len() < bytes {
        text.push_str(&line(at));
        at += 1;
    }
    fs::write(path, &text)?;
    Ok(text.len())
}
