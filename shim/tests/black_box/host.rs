//! A host that the test plays itself: it listens, reads one request, and answers what the test tells it to.

use std::ffi::{CStr, OsStr};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{SigHandler, Signal};
use rexec_sh::protocol::wire::{Attributes, CallerStream, Decoded, FromShim, HELLO_BYTES, Hello};

/// How long anything may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Closes what the test's own parents left open above 2, before a script opens something itself.
pub(crate) const CLOSE_OTHERS: &str = "for fd in /proc/$$/fd/*; do fd=${fd##*/}; \
                                       case $fd in [012]) ;; *) eval \"exec $fd>&-\" ;; esac; done";

/// A directory of the test's own, with links to the shim; removed at its end.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
}

/// Programs that the tests start should have the usual signals. Whoever started the tests may ignore some: nohup(1)
/// does, and a shell for its jobs in the background.
#[expect(unsafe_code, reason = "sigaction(2)")]
fn heed_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // These have handlers of the standard library's, or are ignored by it, which gives programs the default back.
        let kept = [Signal::SIGPIPE, Signal::SIGSEGV, Signal::SIGBUS];
        for signal in Signal::iterator().filter(|signal| !kept.contains(signal)) {
            // SAFETY: no handler is installed, and the test program has none of its own. SIGKILL and SIGSTOP have no other.
            _ = unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) };
        }
    });
}

impl Place {
    pub(crate) fn new() -> Self {
        heed_signals();
        // Not the usual place for temporary files, whose path may be too long for a socket's name.
        let dir = nix::unistd::mkdtemp("/tmp/rxs-XXXXXX").unwrap();
        for name in ["rexec-bash", "rexec-sh", "bash"] {
            symlink(env!("CARGO_BIN_EXE_shim"), dir.join(name)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.join("host.sock")
    }

    /// The shim under this name, with an environment of nothing but the socket's path, PATH, and a home without profiles:
    /// a login shell reads those of its home, and without HOME those of the user who runs the tests.
    pub(crate) fn shim(&self, name: &str) -> Command {
        self.program(&self.dir.join(name))
    }

    pub(crate) fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command
            .env_clear()
            .env("HOME", &self.dir)
            .env("PATH", "/bin:/usr/bin")
            .env("REXEC_SOCKET", self.socket())
            .stdin(Stdio::null());
        command
    }

    /// The shim as bash, with this command string.
    pub(crate) fn bash(&self, script: &str) -> Command {
        let mut command = self.shim("rexec-bash");
        command.args(["-c", script]);
        command
    }

    /// The real shell, which runs `script` with the shim as `$0`; for what only a shell can set up.
    pub(crate) fn real_shell(&self, script: &str) -> Command {
        let mut command = self.program(Path::new("/bin/bash"));
        command.args([OsStr::new("-c"), OsStr::new(script), self.dir.join("rexec-bash").as_os_str()]);
        command
    }

    /// Starts a host that takes one connection and its request, and then plays.
    pub(crate) fn host<T: Send + 'static>(&self, play: impl FnOnce(Peer) -> T + Send + 'static) -> JoinHandle<T> {
        let listener = UnixListener::bind(self.socket()).unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            play(Peer::new(stream))
        })
    }

    /// A host that answers its one request with these frames and reads to the end of the connection.
    pub(crate) fn answering(&self, frames: Vec<u8>) -> JoinHandle<Request> {
        self.host(move |mut peer| {
            let request = peer.request();
            peer.say(&frames);
            peer.drain();
            request
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A request as the host got it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) attributes: Attributes,
    pub(crate) whoami: Vec<u8>,
    pub(crate) shell: Vec<u8>,
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<Vec<u8>>,
}

impl Request {
    pub(crate) fn has(&self, entry: &str) -> bool {
        self.env.iter().any(|found| found == entry.as_bytes())
    }

    pub(crate) fn has_name(&self, name: &str) -> bool {
        let prefix = format!("{name}=");
        self.env.iter().any(|found| found.starts_with(prefix.as_bytes()))
    }
}

/// What the shim says after its request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Signal(u8),
    Abort,
    Closed(CallerStream),
    Keys(Vec<u8>),
    Size(u16, u16),
    Resume(bool),
    Hangup,
    LetGo,
}

/// The shim, as the host sees it.
pub(crate) struct Peer {
    pub(crate) stream: UnixStream,
    buffer: Vec<u8>,
}

impl Peer {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Greets, and reads hello and request. Descriptors are dropped by the kernel, because nothing asks for them.
    pub(crate) fn request(&mut self) -> Request {
        self.request_as(Hello::OURS)
    }

    /// The same as a host that speaks these versions.
    pub(crate) fn request_as(&mut self, hello: Hello) -> Request {
        self.stream.write_all(&hello.encode()).unwrap();
        while self.buffer.len() < HELLO_BYTES {
            assert!(self.read() > 0, "the shim left before its hello was whole");
        }
        assert!(matches!(Hello::decode(&self.buffer), Ok(Decoded::Item(Hello::OURS, HELLO_BYTES))));
        self.buffer.drain(..HELLO_BYTES);
        loop {
            match FromShim::decode(&self.buffer).unwrap() {
                Decoded::Item(FromShim::Run(run), taken) => {
                    let owned = |string: &CStr| string.to_bytes().to_vec();
                    let request = Request {
                        attributes: run.attributes.clone(),
                        whoami: run.whoami.to_vec(),
                        shell: owned(run.shell),
                        argv: run.argv.iter().map(owned).collect(),
                        env: run.env.iter().map(owned).collect(),
                    };
                    self.buffer.drain(..taken);
                    return request;
                }
                Decoded::Incomplete => assert!(self.read() > 0, "the shim left before its request was whole"),
                other => panic!("{other:?} in place of a request"),
            }
        }
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// What the shim says next; nothing when it has left.
    pub(crate) fn hear(&mut self) -> Option<Said> {
        loop {
            let (said, taken) = match FromShim::decode(&self.buffer).unwrap() {
                Decoded::Skip(_) => panic!("the shim says nothing that may be skipped"),
                Decoded::Incomplete => {
                    if self.read() == 0 {
                        return None;
                    }
                    continue;
                }
                Decoded::Item(FromShim::Signal(signal), taken) => (Said::Signal(signal.number()), taken),
                Decoded::Item(FromShim::Abort, taken) => (Said::Abort, taken),
                Decoded::Item(FromShim::Closed(stream), taken) => (Said::Closed(stream), taken),
                Decoded::Item(FromShim::Keys(keys), taken) => (Said::Keys(keys.to_vec()), taken),
                Decoded::Item(FromShim::Size((rows, cols)), taken) => (Said::Size(rows, cols), taken),
                Decoded::Item(FromShim::Resume { foreground }, taken) => (Said::Resume(foreground), taken),
                Decoded::Item(FromShim::Hangup, taken) => (Said::Hangup, taken),
                Decoded::Item(FromShim::LetGo, taken) => (Said::LetGo, taken),
                Decoded::Item(FromShim::Run(_) | FromShim::Left { .. } | FromShim::Interactive { .. }, _) => {
                    panic!("a second request")
                }
            };
            self.buffer.drain(..taken);
            return Some(said);
        }
    }

    /// Returns true if the shim has not said anything more, and has not left.
    pub(crate) fn is_silent(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let read = self.stream.read(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        let is_empty = matches!(read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        is_empty && self.buffer.is_empty()
    }

    /// Reads until the shim has left.
    pub(crate) fn drain(&mut self) -> Vec<Said> {
        std::iter::from_fn(|| self.hear()).collect()
    }

    /// Reads until the shim has left, whatever it says.
    pub(crate) fn drain_bytes(&mut self) -> usize {
        while self.read() > 0 {}
        self.buffer.len()
    }

    fn read(&mut self) -> usize {
        let mut bytes = [0; 65536];
        let read = loop {
            match self.stream.read(&mut bytes) {
                // A socket with a timeout does not go on by itself (signal(7)): while one thread starts a child, with all
                // signals blocked, this one may be woken for the end of another child.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break 0,
                result => break result.expect("the shim says something, or leaves, within the test's patience"),
            }
        };
        self.buffer.extend_from_slice(&bytes[..read]);
        read
    }
}

/// Frames made by these calls of the wire's encoders.
pub(crate) fn frames(build: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    build(&mut out);
    out
}

/// Exit code, stdout and stderr, as text.
pub(crate) fn outcome(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Waits until a fact holds.
pub(crate) fn wait_for(what: &str, mut fact: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !fact() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The letter of a process's state in /proc.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}
