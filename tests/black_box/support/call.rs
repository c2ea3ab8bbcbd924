//! One call of a shell, as an agent makes it. The same code calls the real shell and the shim.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;

use super::programs;
use super::reader::Reader;
use super::waiting::PATIENCE;
use super::warden::{Ended, Plan, State, USUAL, Warden};
use super::wires::Wires;

/// What the call has as descriptor 0.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input {
    Null,
    Closed,
    /// A pipe with these bytes, then its end.
    Data(&'static [u8]),
    /// A pipe with so many bytes of a known pattern, then its end.
    Pattern(usize),
    /// A file with these bytes, opened at its start.
    File(&'static [u8]),
    /// A socket that is never readable and never ends.
    Silent,
}

/// What the call has as descriptors 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// A pipe each.
    Apart,
    /// One file for both, opened for appending.
    OneFile,
    /// One pipe for both.
    OnePipe,
    /// Descriptor 1 is closed, 2 a pipe.
    NoStdout,
    /// Descriptor 2 is closed, 1 a pipe.
    NoStderr,
    /// A pipe each; the reader of the first takes so many bytes and leaves. One of none has left before the call.
    Head(usize),
    /// A socket each, as Node.js gives its children.
    Sockets,
    /// A named pipe for both, opened once for each.
    Fifo,
    /// `/dev/null` for both.
    Null,
}

/// What runs the command: the real shell, or the shim with a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// The real shell, on pipes or whatever the call has.
    Real,
    /// The real shell; what the call's reader gets went through a terminal as the host would make it.
    RealOnTerminal,
    /// The shim, with the socket of its host.
    Shim(&'a Path),
}

impl Target<'_> {
    /// The program that answers a call of the shell with this name.
    pub(crate) fn program(self, name: &str) -> PathBuf {
        match self {
            Target::Real | Target::RealOnTerminal => real_shell(name).into(),
            Target::Shim(_) => programs::shims().join(name),
        }
    }
}

/// What to call. The environment is complete; the target adds what it needs.
#[derive(Debug)]
pub(crate) struct Call {
    /// The link of the shim that is used: `bash`, `sh`, `rexec-bash`, …
    pub(crate) name: &'static str,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) dir: OwnedFd,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) state: State,
    pub(crate) user: Option<u32>,
    /// Descriptors beyond the usual three.
    pub(crate) extra: Vec<(OwnedFd, i32)>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) ended: Ended,
}

impl Outcome {
    pub(crate) fn code(&self) -> i32 {
        self.ended.code()
    }

    pub(crate) fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// The environment that every call starts from.
pub(crate) fn usual_env(home: &Path) -> Vec<Vec<u8>> {
    let home = format!("HOME={}", home.display());
    let path = format!("PATH={}", programs::PATH);
    [&home, &path, "LANG=C.UTF-8", "TERM=xterm-256color", "AGENT=test"].iter().map(|s| s.as_bytes().to_vec()).collect()
}

/// A directory as a descriptor.
pub(crate) fn dir(path: &Path) -> OwnedFd {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (OFlag::O_PATH | OFlag::O_DIRECTORY).bits();
    OpenOptions::new().read(true).custom_flags(flags).open(path).expect("a directory").into()
}

/// The pattern of [`Input::Pattern`].
pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes + 16);
    for n in 0_u32.. {
        if all.len() >= bytes {
            break;
        }
        write!(all, "{n:x}.").expect("memory takes everything");
    }
    all.truncate(bytes);
    all
}

impl Call {
    /// `bash -c SCRIPT` in a directory that is also its home, with the usual everything.
    pub(crate) fn bash(script: &(impl AsRef<[u8]> + ?Sized), home: &Path) -> Self {
        Self {
            name: "bash",
            argv: vec![b"bash".to_vec(), b"-c".to_vec(), script.as_ref().to_vec()],
            env: usual_env(home),
            dir: dir(home),
            input: Input::Null,
            output: Output::Apart,
            state: USUAL,
            user: None,
            extra: Vec::new(),
        }
    }

    pub(crate) fn env(mut self, entry: &str) -> Self {
        self.env.push(entry.as_bytes().to_vec());
        self
    }

    /// Starts it.
    pub(crate) fn start(self, target: Target<'_>) -> std::io::Result<Calling> {
        let wires = Wires::new(self.input, self.output, target);
        let mut env = self.env;
        let program = target.program(self.name);
        env.push(format!("SHELL={}", program.display()).into_bytes());
        match target {
            Target::Real | Target::RealOnTerminal => env.push(b"REXEC_INSIDE=1".to_vec()),
            Target::Shim(socket) => env.push(format!("REXEC_SOCKET={}", socket.display()).into_bytes()),
        }
        let mut plan = Plan::new(&program, &self.argv, &env);
        plan.dir = Some(self.dir);
        plan.state = self.state;
        plan.user = self.user;
        if self.user.is_some() {
            // An agent's streams are its own.
            for (fd, _) in &wires.ends {
                _ = std::os::unix::fs::fchown(fd, self.user, self.user);
            }
        }
        plan.descriptors = wires.ends;
        plan.descriptors.extend(self.extra);
        plan.control = wires.control;
        let warden = Warden::start(plan)?;
        Ok(Calling { warden, stdout: wires.stdout, stderr: wires.stderr, file: wires.file, keep: wires.keep })
    }

    /// Starts it and waits for its end, without mercy for one that hangs.
    pub(crate) fn run(self, target: Target<'_>) -> Outcome {
        let what =
            format!("{:?} by {target:?}", self.argv.iter().map(|a| a.escape_ascii().to_string()).collect::<Vec<_>>());
        let mut calling = self.start(target).unwrap_or_else(|error| panic!("{what}: {error}"));
        // Much output takes its time on a busy machine.
        let mut read = 0;
        while calling.warden.wait(PATIENCE).is_none() && calling.read_so_far() > read {
            read = calling.read_so_far();
        }
        calling.finish(PATIENCE).unwrap_or_else(|| panic!("{what} hangs; processes: {:#?}", calling.warden.tree()))
    }
}

/// The shell that the shim stands for under a name.
pub(crate) fn real_shell(name: &str) -> &'static str {
    match name {
        name if name.ends_with("bash") => "/bin/bash",
        name if name.ends_with("zsh") => "/bin/zsh",
        _ => "/bin/sh",
    }
}

/// A call that is under way.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) warden: Warden,
    pub(crate) stdout: Option<Reader>,
    pub(crate) stderr: Option<Reader>,
    file: Option<File>,
    /// The other end of a socket that never ends, and of terminals.
    #[expect(dead_code, reason = "only held: it ends with the call")]
    keep: Vec<OwnedFd>,
}

impl Calling {
    pub(crate) fn pid(&self) -> i32 {
        self.warden.pid()
    }

    /// How many bytes of its output have come.
    fn read_so_far(&self) -> usize {
        [&self.stdout, &self.stderr].into_iter().flatten().map(|reader| reader.length().0).sum()
    }

    /// Waits for the exit, then for the end of the streams.
    pub(crate) fn finish(&mut self, within: Duration) -> Option<Outcome> {
        let deadline = Instant::now() + within;
        let ended = self.warden.wait(within)?;
        let stdout = collect(self.stdout.as_ref(), |reader| reader.to_end(deadline))?;
        let stderr = collect(self.stderr.as_ref(), |reader| reader.to_end(deadline))?;
        Some(self.outcome(ended, stdout, stderr))
    }

    /// Waits for the exit; then takes what has come, without waiting for those who hold the streams open.
    pub(crate) fn finish_early(&mut self, within: Duration) -> Option<Outcome> {
        let ended = self.warden.wait(within)?;
        let stdout = collect(self.stdout.as_ref(), |reader| Some(reader.to_silence()))?;
        let stderr = collect(self.stderr.as_ref(), |reader| Some(reader.to_silence()))?;
        Some(self.outcome(ended, stdout, stderr))
    }

    fn outcome(&mut self, ended: Ended, mut stdout: Vec<u8>, stderr: Vec<u8>) -> Outcome {
        if let Some(file) = &mut self.file {
            use std::io::Seek;
            file.rewind().expect("a file can be rewound");
            file.read_to_end(&mut stdout).expect("a file can be read");
        }
        Outcome { stdout, stderr, ended }
    }
}

fn collect(reader: Option<&Reader>, take: impl FnOnce(&Reader) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    reader.map_or(Some(Vec::new()), take)
}
