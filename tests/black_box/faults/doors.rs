//! Clients of every door that read nothing, stop in the middle of a line, say nonsense, stand still, or die. Each harms
//! itself alone: other callers are served meanwhile, and in the end nothing is left of it.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rexec_host::sys;
use serde_json::{Value, json};

use crate::exec::rexec;
use crate::support::host::{Host, MIRROR};
use crate::support::procs::{self, Process};
use crate::support::waiting::{self, PATIENCE};
use crate::support::{programs, warden};

/// A way into the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Door {
    /// JSON-RPC on the socket.
    Rpc,
    /// One request and one answer on the socket.
    Jsonl,
    Mcp,
    ExecServer,
    /// `rexec exec`, which has one command and no language.
    Exec,
}

use Door::{Exec, ExecServer, Jsonl, Mcp, Rpc};

/// The memory that a host, and a server that is its client, may ever have in these tests, MiB: a debug build's.
const HOST_MIB: u64 = 84;
/// The longest line of `rexec exec-server`, which has whole files, and what it takes to read it.
const SERVER_MIB: u64 = 288;

/// A client that has been greeted.
struct Caller {
    door: Door,
    child: Option<Child>,
    input: Option<ChildStdin>,
    socket: Option<UnixStream>,
    output: Option<Box<dyn Read>>,
}

impl Caller {
    fn new(host: &Host, door: Door, script: &str) -> Self {
        let words: &[&str] = match door {
            Rpc | Jsonl => return Self::on_socket(host, door),
            Mcp => &["mcp"],
            ExecServer => &["exec-server"],
            Exec => &["exec", "-c", script],
        };
        warden::keep_descriptors_to_ourselves();
        let mut command = rexec(host, words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        sys::set_nonblocking(&input).expect("a pipe");
        let output: Option<Box<dyn Read>> = Some(Box::new(child.stdout.take().expect("a pipe")));
        let mut caller = Self { door, child: Some(child), input: Some(input), socket: None, output };
        let greeting = match door {
            Mcp => {
                let client = json!({"name": "door", "version": "1"});
                let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
                [message("initialize", &params), br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec()]
            }
            ExecServer => {
                [message("initialize", &json!({"clientName": "door"})), br#"{"method":"initialized"}"#.to_vec()]
            }
            _ => return caller,
        };
        caller.send_all(&greeting.join(&b'\n'));
        caller.send_all(b"\n");
        assert!(caller.hears(b"\n"), "{door:?} greets");
        caller
    }

    fn on_socket(host: &Host, door: Door) -> Self {
        let socket = UnixStream::connect(host.socket()).expect("a host");
        let output: Option<Box<dyn Read>> = Some(Box::new(socket.try_clone().expect("a socket")));
        let mut caller = Self { door, child: None, input: None, socket: Some(socket), output };
        if door == Rpc {
            caller.send_all(&message("hello", &json!({})));
            caller.send_all(b"\n");
            assert!(caller.hears(b"\n"), "it greets");
        }
        caller
    }

    /// Sends as much as is taken. It ends when the other side is gone, or has taken nothing for a while.
    fn send(&mut self, bytes: &[u8], patience: Duration) -> usize {
        let (mut sent, mut since) = (0, Instant::now());
        while sent < bytes.len() {
            let answer = match (&self.input, &self.socket) {
                (Some(input), _) => sys::write(input, &bytes[sent..]),
                (None, Some(socket)) => sys::socket::send(&socket.as_fd(), &bytes[sent..], &[]),
                (None, None) => return sent,
            };
            match answer {
                Ok(length) => (sent, since) = (sent + length, Instant::now()),
                Err(error) if sys::is_transient(&error) && since.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(_) => return sent,
            }
        }
        sent
    }

    fn send_all(&mut self, bytes: &[u8]) {
        assert_eq!(self.send(bytes, PATIENCE), bytes.len(), "{:?} takes a line", self.door);
    }

    /// Starts a command, if it has not started as the door's only one.
    fn start(&mut self, host: &Host, script: &str) {
        let argv = json!(["/bin/sh", "-c", script]);
        let line = match self.door {
            Rpc => message("exec.start", &json!({"command": script, "stream": true})),
            Jsonl => json!({"whoami": "door", "dir": host.home.path(), "exec": argv}).to_string().into(),
            Mcp => message("tools/call", &json!({"name": "exec", "arguments": {"command": script}})),
            ExecServer => {
                let env = json!({"PATH": programs::PATH});
                message(
                    "process/start",
                    &json!({"processId": script, "argv": argv, "cwd": "file:///", "env": env, "tty": false}),
                )
            }
            Exec => return,
        };
        self.send_all(&line);
        self.send_all(b"\n");
    }

    /// Reads until this comes. False at the end.
    fn hears(&mut self, wanted: &[u8]) -> bool {
        let (mut seen, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
        let output = self.output.as_mut().expect("it is open");
        while !seen.windows(wanted.len()).any(|piece| piece == wanted) {
            match output.read(&mut buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return false,
                Ok(length) => {
                    seen.drain(..seen.len().saturating_sub(wanted.len()));
                    seen.extend_from_slice(&buffer[..length]);
                }
            }
        }
        true
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.as_ref().expect("a process").id().cast_signed();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).expect("it lives");
    }

    /// Closes both sides. Its process ends by itself, within its bounds.
    fn leave(mut self) {
        (self.input, self.output) = (None, None);
        if let Some(socket) = self.socket.take() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        let Some(mut child) = self.child.take() else { return };
        let peak = procs::most_data(child.id().cast_signed()) >> 20;
        let has_ended = || child.try_wait().expect("a child").is_some();
        if !waiting::until_true(PATIENCE, has_ended) {
            let _ = child.kill();
            panic!("{:?} lives on", self.door);
        }
        assert!(peak < SERVER_MIB, "{:?} had {peak} MiB", self.door);
    }
}

fn message(method: &str, params: &Value) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string().into()
}

/// Has a client on each of these doors do something wrong while others are served, and looks at what is left of it.
fn on_each(doors: &[Door], script: &str, fault: impl Fn(&Host, &mut Caller)) {
    for &door in doors {
        let host = Host::with(MIRROR);
        let mut caller = Caller::new(&host, door, script);
        fault(&host, &mut caller);
        assert_eq!(host.run("echo served").out(), "served\n", "others beside {door:?}");
        caller.leave();
        host.wait_idle();
        let peak = procs::most_data(host.pid()) >> 20;
        assert!(peak < HOST_MIB, "{door:?}: the host had {peak} MiB");
        host.finish();
    }
}

/// The process of this name in the host, once there is one.
fn held(host: &Host, name: &str) -> Process {
    let find = || host.tree().into_iter().find(|process| process.comm == name);
    waiting::until(PATIENCE, find).unwrap_or_else(|| panic!("there is no {name}"))
}

#[test]
#[ignore = "long: output that nobody reads, at each door"]
fn a_client_that_reads_nothing_holds_up_itself() {
    on_each(&[Rpc, Mcp, ExecServer, Exec, Jsonl], "exec yes", |host, caller| {
        caller.start(host, "exec yes");
        held(host, "yes");
    });
}

#[test]
fn half_a_line_is_nothing() {
    on_each(&[Rpc, Mcp, ExecServer, Jsonl], "", |host, caller| {
        if caller.door != Jsonl {
            caller.start(host, "exec sleep 1000");
            held(host, "sleep");
        }
        caller.send_all(br#"{"jsonrpc":"2.0","id":7,"meth"#);
    });
}

#[test]
#[ignore = "long: a line of 100 MB at each door"]
fn a_line_of_a_hundred_megabytes_is_not_kept() {
    on_each(&[Rpc, Mcp, ExecServer, Jsonl], "", |host, caller| {
        if caller.door != Jsonl {
            caller.start(host, "exec sleep 1000");
            held(host, "sleep");
        }
        let piece = vec![b'x'; 1 << 20];
        let is_taken = |_: &u64| caller.send(&piece, PATIENCE) == piece.len();
        let taken = (0..100_u64).take_while(is_taken).count();
        assert!(taken == 100 || matches!(caller.door, Rpc | Jsonl), "{:?} took {taken} MiB", caller.door);
        caller.send(b"\n", PATIENCE);
    });
}

#[test]
fn a_client_that_closes_in_the_middle_of_output_ends_its_command() {
    on_each(&[Rpc, ExecServer, Exec], "exec yes", |host, caller| {
        caller.start(host, "exec yes");
        assert!(caller.hears(if caller.door == Exec { b"y\ny" } else { b"utput" }), "{:?}", caller.door);
    });
}

/// A server on standard input and output is itself a client on the socket: the host has two that stand still.
#[test]
fn a_client_that_is_stopped_holds_up_itself_and_goes_on() {
    on_each(&[Mcp, ExecServer, Exec], "exec yes", |host, caller| {
        caller.start(host, "exec yes");
        held(host, "yes");
        caller.signal(Signal::SIGSTOP);
        assert_eq!(host.run("echo served").out(), "served\n", "others beside {:?}", caller.door);
        caller.signal(Signal::SIGCONT);
    });
}

#[test]
fn a_client_that_is_killed_takes_its_command_along() {
    on_each(&[Mcp, ExecServer, Exec], "exec sleep 1000", |host, caller| {
        caller.start(host, "exec sleep 1000");
        let sleeper = held(host, "sleep");
        caller.signal(Signal::SIGKILL);
        assert!(waiting::until_true(PATIENCE, || !sleeper.is_alive()), "{:?} left it", caller.door);
    });
}

#[test]
#[ignore = "long: floods 3 doors until they take nothing"]
fn a_flood_of_requests_is_not_gathered() {
    on_each(&[Rpc, Mcp, ExecServer], "", |_, caller| {
        let many = [message("nonsense", &json!({})), Vec::new()].join(&b'\n').repeat(1_000);
        let is_taken = |_: &u64| caller.send(&many, Duration::from_secs(1)) == many.len();
        let taken = (0..1_000_u64).take_while(is_taken).count();
        assert!(taken < 1_000, "{:?} takes what it cannot answer", caller.door);
    });
}

#[test]
fn nonsense_is_answered_and_the_next_request_is_served() {
    let nested = |open: &str, count: usize| open.repeat(count).into_bytes();
    let lines = [
        b"\xff\xfe{\"id\":1}".to_vec(),
        nested("[", 100_000),
        nested("{\"a\":", 50_000),
        br#"{"id":1e999,"method":"hello"}"#.to_vec(),
        format!("{{\"id\":{},\"method\":\"hello\"}}", "9".repeat(5_000)).into_bytes(),
        br#"{"id":1,"id":1,"method":"hello","method":"hello"}"#.to_vec(),
        b"\0\0\r\r".to_vec(),
    ];
    on_each(&[Rpc, Mcp, ExecServer], "", |host, caller| {
        for line in &lines {
            caller.send_all(line);
            caller.send_all(b"\n");
        }
        caller.start(host, "printf %s-%s th ree");
        let printed: &[u8] = if caller.door == ExecServer { b"dGgtcmVl" } else { b"th-ree" };
        assert!(caller.hears(printed), "{:?}", caller.door);
    });
    // What each of them is on a connection that has said nothing yet is told, whatever becomes of the connection.
    for line in &lines {
        on_each(&[Jsonl], "", |_, caller| {
            caller.send(line, PATIENCE);
            caller.send(b"\n", PATIENCE);
            assert!(caller.hears(b"\n"), "{}", line[..line.len().min(40)].escape_ascii());
        });
    }
}
