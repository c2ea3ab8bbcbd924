//! Many callers at once, without a warden each, and a gate at which their commands wait.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::call::usual_env;
use super::host::Host;
use super::programs;
use super::waiting::{self, PATIENCE};

/// A shim without a warden, for when there are many of them.
pub(crate) fn shim(host: &Host, script: &str) -> Command {
    use std::os::unix::ffi::OsStringExt;
    let mut command = programs::command(programs::shims().join("bash"));
    command.args(["-c", script]).stdin(Stdio::null()).current_dir(host.home.path()).env_clear();
    for entry in usual_env(host.home.path()) {
        let text = String::from_utf8(entry).expect("the usual environment is text");
        let (name, value) = text.split_once('=').expect("an entry");
        command.env(name, std::ffi::OsString::from_vec(value.into()));
    }
    command.env("REXEC_SOCKET", host.socket()).env("REXEC_SANITIZE", "raw");
    command
}

/// Asks for a command as words, in JSON; its one answer comes over the connection.
pub(crate) fn ask(host: &Host, exec: &[&str]) -> UnixStream {
    ask_in_json(host, &json!({ "whoami": "test", "dir": host.home.path(), "exec": exec }))
}

/// Sends a request as it is.
pub(crate) fn ask_in_json(host: &Host, request: &Value) -> UnixStream {
    let mut stream = UnixStream::connect(host.socket()).expect("a host");
    stream.write_all(format!("{request}\n").as_bytes()).expect("it takes bytes");
    // A long answer comes in one line, when the command is over.
    stream.set_read_timeout(Some(3 * PATIENCE)).expect("a socket");
    stream
}

/// The answer to a command that was asked for in JSON.
pub(crate) fn answer(stream: UnixStream) -> Value {
    let mut bytes = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut bytes).expect("an answer");
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()))
}

/// Starts a shim whose output nobody wants.
pub(crate) fn quiet(host: &Host, script: &str) -> Child {
    shim(host, script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a shim")
}

/// Waits for the end of all of them.
pub(crate) fn codes(shims: &mut [Child]) -> Vec<Option<i32>> {
    shims.iter_mut().map(|shim| shim.wait().expect("a child").code()).collect()
}

/// A FIFO from which each command takes one line, and a file to which each has written one before.
#[derive(Debug)]
pub(crate) struct Gate {
    lines: File,
    arrived: PathBuf,
}

/// What a command does at the gate, in the directory of the gate.
pub(crate) const WAIT_AT_GATE: &str = "echo >> arrived; read -r _ < gate";

impl Gate {
    pub(crate) fn new(dir: &Path, user: Option<u32>) -> Self {
        let path = dir.join("gate");
        mkfifo(&path, Mode::S_IRWXU).expect("a FIFO");
        std::os::unix::fs::chown(&path, user, user).expect("the FIFO is ours to give away");
        // Both ends, so that a command never waits for the opening.
        let lines = OpenOptions::new().read(true).write(true).open(&path).expect("the FIFO");
        Self { lines, arrived: dir.join("arrived") }
    }

    /// How many commands have come to it so far.
    pub(crate) fn arrived(&self) -> usize {
        fs::metadata(&self.arrived).map_or(0, |data| usize::try_from(data.len()).expect("a small file"))
    }

    /// Waits until so many have, as long as one comes after the other.
    pub(crate) fn wait_for(&self, count: usize) {
        waiting::wait_until_grown("the commands have come to the gate", count, PATIENCE, || self.arrived());
    }

    /// Lets so many through, of those that wait and of those that are still to come.
    pub(crate) fn let_through(&mut self, count: usize) {
        self.lines.write_all(&vec![b'\n'; count]).expect("the FIFO takes them");
    }
}
