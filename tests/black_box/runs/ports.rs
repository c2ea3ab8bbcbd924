//! Ports: the line that names the command which holds a port on which another one could not listen.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::journal::Journal;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Listens on any port, says which, and waits.
const SERVER: &str = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); \
                      print(s.getsockname()[1], flush=True); time.sleep(1000)";

/// Says what Node.js and Go say, from its own attempt.
const CLIENT: &str = "import socket, sys\n\
                      port = int(sys.argv[1])\n\
                      try: socket.socket().bind(('127.0.0.1', port))\n\
                      except OSError as error: sys.exit(f'listen tcp 127.0.0.1:{port}: {error.strerror}')";

fn server(host: &Host) -> (Calling, String) {
    let calling = host.call(&format!("exec python3 -c \"{SERVER}\"")).env("REXEC_WHOAMI=Ann");
    let calling = calling.start(Target::Shim(&host.socket())).expect("it starts");
    let out = calling.stdout.as_ref().expect("a pipe");
    assert!(out.wait_for(b"\n", PATIENCE), "it says its port");
    let port = String::from_utf8_lossy(&out.so_far()).trim().to_owned();
    (calling, port)
}

#[test]
fn a_port_that_another_command_holds_is_named() {
    if !programs::has("python3") {
        return;
    }
    let host = Host::with(MIRROR);
    let (mut server, port) = server(&host);
    let fails = format!("python3 -c \"{CLIENT}\" {port}");
    let ours = format!("listen tcp 127.0.0.1:{port}: Address already in use\n");
    let named = format!("port {port} is held by #1 Ann (python3, process ");
    let seen = host.run(&fails);
    assert_eq!((seen.code(), seen.err()), (1, ours.clone()), "a program's own output is as it would be");
    let end = host.wait_for("its end", |journal| journal.of_type("end").next().cloned());
    assert_eq!(end["port_held"], serde_json::json!({"port": port.parse::<u16>().expect("a port"), "seq": 1}), "{end}");
    let agent = || host.call(&fails).env("CLAUDECODE=1").run(Target::Shim(&host.socket()));
    let told = waiting::until(PATIENCE, || {
        // Two looks keep a distance in time.
        let seen = agent();
        assert!(seen.err().starts_with(&ours), "{}", seen.err());
        seen.err().contains(&named).then_some(seen)
    });
    assert!(told.is_some_and(|seen| seen.err().lines().count() == 2));
    let (well, other) = (
        format!("echo 'address already in use: 127.0.0.1:{port}'"),
        "echo 'address already in use: 127.0.0.1:1' >&2; exit 1",
    );
    assert_eq!((host.run(&well).code(), host.run(other).code()), (0, 1));
    let ends = |journal: &Journal| Some([&well, other].map(|command| journal.end_of(command).cloned()));
    let ends = host.wait_for("both ends", |journal| ends(journal).filter(|ends| ends.iter().all(Option::is_some)));
    assert!(ends.iter().flatten().all(|end| end["port_held"].is_null()), "one did not fail, one names another port");
    // The journal has every end by now, and the console says it as often.
    let held = host.journal().of_type("end").filter(|end| !end["port_held"].is_null()).count();
    assert!(held >= 2, "{held}");
    let console = || host.console_text().matches(&named).count() == held;
    assert!(waiting::until_true(PATIENCE, console), "{held}: {}", host.console_text());
    kill(Pid::from_raw(server.pid()), Signal::SIGTERM).expect("it runs");
    server.finish(PATIENCE).expect("it ends");
}
