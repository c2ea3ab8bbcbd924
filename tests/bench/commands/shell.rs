//! One way to run a command: a shell, called as an agent calls it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A shell and the environment it is called with.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    program: PathBuf,
    env: Vec<(String, String)>,
}

impl Shell {
    /// The system's own.
    pub(crate) fn real(name: &str) -> Self {
        Self::at(Path::new("/bin").join(name))
    }

    /// Another program that takes `-c TEXT`.
    pub(crate) fn at(program: PathBuf) -> Self {
        Self { program, env: environment() }
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

/// Writes a file of `bytes` bytes or a little more by repeating lines. Returns its bytes and its lines.
pub(crate) fn write_lines(
    path: &Path,
    bytes: usize,
    mut line: impl FnMut(usize) -> String,
) -> io::Result<(usize, usize)> {
    let mut text = String::with_capacity(bytes + 256);
    let mut lines = 0;
    while text.len() < bytes {
        text.push_str(&line(lines));
        lines += 1;
    }
    fs::write(path, &text)?;
    Ok((text.len(), lines))
}
