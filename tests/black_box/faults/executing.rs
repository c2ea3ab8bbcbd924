//! Processes that stand in execve(2), because the server of a file that is closed there does not answer. Whoever reads
//! their /proc/PID/stat waits with them, also these tests: they look at nothing while one stands.

use std::process::{Child, Stdio};

use rexec_sh::protocol::report::{Report, ShimPlace};

use crate::sandbox::reporters::{beginning, own_namespace, records, write};
use crate::support::crowd;
use crate::support::file_server::FileServer;
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE, wait_until};

/// Begins a child that becomes a program once the second file is there, and then executes another itself, with the first
/// file open until then. With a path of a socket, it has connected before, and the child asks there.
const STAND: &str = "import os,socket,sys,time\n\
    file,go,path,words=sys.argv[1],sys.argv[2],sys.argv[3],sys.argv[4:]\n\
    s=socket.socket(socket.AF_UNIX)\n\
    if path: s.connect(path)\n\
    if os.fork()==0:\n\
    \x20while not os.path.exists(go): time.sleep(0.01)\n\
    \x20if not path: os.execvp(words[0],words)\n\
    \x20s.sendall(words[0].encode()+b'\\n')\n\
    \x20print(s.makefile().readline())\n\
    \x20os._exit(0)\n\
    held=os.open(file,os.O_RDONLY)\n\
    os.execvp('sleep',['sleep','1000'])";

/// A server whose file nobody can close, and the place of a file that lets a child go on.
struct Stand {
    server: FileServer,
    host: Host,
}

impl Stand {
    fn new() -> Option<Self> {
        if !programs::has("python3") {
            programs::skipped("there is no python3");
            return None;
        }
        let server = FileServer::start()?;
        let host = Host::with(MIRROR);
        host.run("true");
        server.freeze();
        Some(Self { server, host })
    }

    /// The words of a program that stands.
    fn words(&self, socket: &str, child: &[&str]) -> Vec<String> {
        let (file, go) = (self.server.path(), self.go());
        let own = ["python3", "-c", STAND, &file.to_string_lossy(), &go.to_string_lossy(), socket];
        own.iter().chain(child).map(|&word| word.to_owned()).collect()
    }

    fn go(&self) -> std::path::PathBuf {
        self.host.home.join("go")
    }

    /// Begins it, as a child of these tests, and waits until it stands.
    fn begin(&self, socket: &str, child: &[&str]) -> Child {
        let words = self.words(socket, child);
        let mut command = programs::command(&words[0]);
        command.args(&words[1..]).env("REXEC_SOCKET", self.host.socket()).stdout(Stdio::piped());
        let child = command.spawn().expect("python3");
        self.wait();
        child
    }

    fn wait(&self) {
        wait_until("it stands", || self.server.waiting() > 0);
    }

    fn let_child_go(&self) {
        std::fs::write(self.go(), "").expect("a file");
    }

    /// Others' commands run.
    fn check_others(&self) {
        for _ in 0..5 {
            assert_eq!(self.host.run("echo on").out(), "on\n");
        }
    }

    fn end(self, child: Option<Child>) {
        self.server.thaw();
        if let Some(mut child) = child {
            child.kill().expect("it is ours");
            child.wait().expect("it is ours");
        }
        self.check_others();
    }
}

#[test]
fn a_caller_whose_parent_stands_holds_up_nobody() {
    let Some(stand) = Stand::new() else { return };
    let shim = programs::shims().join("bash");
    let child = stand.begin("", &[&shim.to_string_lossy(), "-c", "echo asked"]);
    stand.let_child_go();
    stand.check_others();
    stand.end(Some(child));
}

#[test]
fn a_client_that_stands_holds_up_nobody() {
    let Some(stand) = Stand::new() else { return };
    let child = stand.begin(&stand.host.socket().to_string_lossy(), &["{\"id\":1,\"method\":\"exec.list\"}"]);
    stand.let_child_go();
    stand.check_others();
    stand.end(Some(child));
}

#[test]
fn a_process_that_stands_and_is_reported_holds_up_nobody() {
    let Some(stand) = Stand::new() else { return };
    let child = stand.begin("", &["true"]);
    let place = ShimPlace { namespace: own_namespace(), pid: child.id().cast_signed(), ..ShimPlace::default() };
    let begun = beginning("far away", place);
    write(&stand.host, &records([1; 16], &[Report::Begin { piece: &begun, is_last: true }]));
    stand.check_others();
    let host = &stand.host;
    wait_until("it is not believed", || host.console_text().contains("rexec-sh is not there"));
    stand.end(Some(child));
}

#[test]
#[ignore = "long: what cannot be killed is told of after some seconds"]
fn a_command_that_stands_holds_up_nobody_and_is_ended() {
    let Some(stand) = Stand::new() else { return };
    let words = stand.words("", &["sleep", "1000"]);
    let mut command = crowd::shim(&stand.host, "exec \"$@\"");
    let mut calling = command.arg("x").args(&words).stdout(Stdio::null()).spawn().expect("a shim");
    stand.wait();
    stand.check_others();
    let start = stand.host.wait_for("its start", |journal| {
        journal.of_type("start").find(|start| start["exec"][3].as_str() == Some("x")).cloned()
    });
    let rexec = |args: &[&str]| {
        let mut rexec = programs::command(programs::rexec());
        let output = rexec.args(args).env("REXEC_SOCKET", stand.host.socket()).output().expect("it starts");
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let seq = start["seq"].as_u64().expect("a number").to_string();
    let listed = rexec(&["ps", "-v"]);
    assert!(listed.contains("python3"), "{listed}");
    let said = rexec(&["kill", &seq]);
    stand.check_others();
    assert!(said.contains(&format!("#{seq}")), "{said}");
    let status = waiting::until(PATIENCE, || calling.try_wait().expect("a child"));
    assert!(status.is_some(), "the agent has its answer");
    stand.end(None);
}
