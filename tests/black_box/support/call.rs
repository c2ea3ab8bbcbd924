//! One call of a shell, as an agent makes it. The same code calls the real shell and the shim.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::programs;
use super::temp::TempDir;
use super::terminal::Terminal;
use super::waiting::{self, PATIENCE};
use super::warden::{Control, Ended, Plan, State, USUAL, Warden};

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

/// Who answers the call.
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
    (0_u32..).flat_map(|n| format!("{n:x}.").into_bytes()).take(bytes).collect()
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

/// A thread that reads a stream to its end.
#[derive(Debug)]
pub(crate) struct Reader {
    state: Arc<Mutex<(Vec<u8>, bool)>>,
}

impl Reader {
    pub(crate) fn new(source: OwnedFd, most: usize) -> Self {
        let state = Arc::new(Mutex::new((Vec::new(), false)));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let (mut source, mut buffer, mut taken) = (File::from(source), vec![0; 64 << 10], 0);
            while taken < most {
                let room = (most - taken).min(buffer.len());
                // The end of a terminal is an error, that of a pipe is not.
                let Ok(1..) = source.read(&mut buffer[..room]).inspect(|&read| {
                    taken += read;
                    shared.lock().expect("no reader panics").0.extend_from_slice(&buffer[..read]);
                }) else {
                    break;
                };
            }
            drop(source);
            shared.lock().expect("no reader panics").1 = true;
        });
        Self { state }
    }

    pub(crate) fn so_far(&self) -> Vec<u8> {
        self.state.lock().expect("no reader panics").0.clone()
    }

    fn length(&self) -> (usize, bool) {
        let state = self.state.lock().expect("no reader panics");
        (state.0.len(), state.1)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.length().1
    }

    fn to_end(&self, deadline: Instant) -> Option<Vec<u8>> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        waiting::until(left, || self.has_ended().then(|| self.so_far()))
    }

    fn to_silence(&self) -> Vec<u8> {
        waiting::until_steady(Duration::from_millis(80), || self.length());
        self.so_far()
    }

    /// Waits until the stream has brought these bytes.
    pub(crate) fn wait_for(&self, bytes: &[u8], within: Duration) -> bool {
        waiting::until_true(within, || {
            memchr::memmem::find(&self.state.lock().expect("no reader panics").0, bytes).is_some()
        })
    }
}

/// The descriptors of a call, and the test's ends of them.
#[derive(Debug)]
struct Wires {
    ends: Vec<(OwnedFd, i32)>,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
    file: Option<File>,
    keep: Vec<OwnedFd>,
    control: Control,
}

impl Wires {
    fn new(input: Input, output: Output, target: Target<'_>) -> Self {
        let control = Control::None;
        let mut wires = Self { ends: Vec::new(), stdout: None, stderr: None, file: None, keep: Vec::new(), control };
        wires.put_input(input);
        if target == Target::RealOnTerminal {
            wires.put_terminal(output)
        } else {
            wires.put_output(output)
        }
        wires
    }

    fn put_input(&mut self, input: Input) {
        let stdin = match input {
            Input::Closed => return,
            Input::Null => File::open("/dev/null").expect("/dev/null").into(),
            Input::Data(bytes) => feed(bytes.to_vec()),
            Input::Pattern(bytes) => feed(pattern(bytes)),
            Input::File(bytes) => {
                let mut file = nameless_file();
                file.write_all(bytes).expect("a file takes bytes");
                std::io::Seek::rewind(&mut file).expect("a file can be rewound");
                file.into()
            }
            Input::Silent => {
                let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
                self.keep.push(ours.into());
                theirs.into()
            }
        };
        self.ends.push((stdin, 0));
    }

    fn put_output(&mut self, output: Output) {
        let most = if let Output::Head(bytes) = output { bytes } else { usize::MAX };
        match output {
            Output::OneFile => {
                let file = nameless_file();
                let flags = nix::fcntl::FcntlArg::F_SETFL(OFlag::O_APPEND);
                nix::fcntl::fcntl(&file, flags).expect("a file can be appended to");
                self.ends.push((copy(&file), 1));
                self.ends.push((copy(&file), 2));
                self.file = Some(file);
                return;
            }
            Output::OnePipe => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
                self.ends.push((copy(&write), 1));
                self.ends.push((write, 2));
                self.stdout = Some(Reader::new(read, most));
                return;
            }
            Output::Sockets => {
                let readers = [1, 2].map(|fd| {
                    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
                    self.ends.push((theirs.into(), fd));
                    Some(Reader::new(ours.into(), most))
                });
                [self.stdout, self.stderr] = readers;
                return;
            }
            Output::Fifo => {
                let place = TempDir::new(None);
                let path = place.join("fifo");
                nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a named pipe");
                let read = OpenOptions::new().read(true).write(true).open(&path).expect("its reader");
                let write = || OpenOptions::new().write(true).open(&path).expect("its writer").into();
                self.ends.extend([(write(), 1), (write(), 2)]);
                // Opened for both, it would never end for its reader.
                let read = OpenOptions::new().read(true).open(&path).map(|only| (only, drop(read)).0);
                self.stdout = Some(Reader::new(read.expect("its reader").into(), most));
                return;
            }
            Output::Null => {
                let null = || OpenOptions::new().write(true).open("/dev/null").expect("/dev/null").into();
                self.ends.extend([(null(), 1), (null(), 2)]);
                return;
            }
            _ => {}
        }
        if output != Output::NoStdout {
            let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
            self.ends.push((write, 1));
            self.stdout = (most > 0).then(|| Reader::new(read, most));
        }
        if output != Output::NoStderr {
            let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
            self.ends.push((write, 2));
            self.stderr = Some(Reader::new(read, usize::MAX));
        }
    }

    /// The same as [`Self::put_output`], with a terminal in the place of stdout and of whatever is the same as it.
    fn put_terminal(&mut self, output: Output) {
        let terminal = Terminal::for_commands();
        if output != Output::NoStdout {
            self.ends.push((terminal.slave(), 1));
            self.stdout = Some(Reader::new(copy(&terminal.master), usize::MAX));
        }
        match output {
            Output::OneFile | Output::OnePipe => self.ends.push((terminal.slave(), 2)),
            Output::NoStderr => {}
            Output::Apart | Output::NoStdout | Output::Head(_) | Output::Sockets | Output::Fifo | Output::Null => {
                let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
                self.ends.push((write, 2));
                self.stderr = Some(Reader::new(read, usize::MAX));
            }
        }
        self.keep.push(copy(&terminal.master));
        self.control = Control::Background(terminal.slave);
    }
}

fn copy(fd: &impl AsFd) -> OwnedFd {
    fd.as_fd().try_clone_to_owned().expect("a descriptor is to be had")
}

fn nameless_file() -> File {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = nix::libc::O_TMPFILE;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open("/tmp").expect("a file without a name")
}

/// The reading end of a pipe into which a thread writes these bytes.
fn feed(bytes: Vec<u8>) -> OwnedFd {
    let (read, write) = pipe2(OFlag::O_CLOEXEC).expect("a pipe");
    std::thread::spawn(move || {
        // A reader that leaves early is part of some cases.
        _ = File::from(write).write_all(&bytes);
    });
    read
}
