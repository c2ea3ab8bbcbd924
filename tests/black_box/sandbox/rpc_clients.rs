//! A program in a sandbox that speaks JSON-RPC: it gets one error, and nothing of it runs.

use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;

/// Says all of its arguments at once, a line each, and prints what comes until the connection ends.
const SAY: &str = "import socket,sys\ns=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])\n\
                   s.sendall(''.join(line+'\\n' for line in sys.argv[2:]).encode())\n\
                   s.shutdown(socket.SHUT_WR)\nprint(s.makefile().read())";

fn say(host: &Host, wrapper: &[&str], lines: &[&str]) -> String {
    let words: Vec<&str> = wrapper.iter().copied().chain(["python3", "-c", SAY]).collect();
    let mut command = programs::command(words[0]);
    let seen = command.args(&words[1..]).arg(host.socket()).args(lines).output().expect("it starts");
    String::from_utf8_lossy(&[seen.stdout, seen.stderr].concat()).into_owned()
}

#[test]
fn a_sandboxed_program_is_refused_whatever_it_calls() {
    if !programs::has("setpriv") || !programs::has("python3") || !super::has_sight() {
        return programs::skipped("there is no setpriv or python3, or sandboxes cannot be seen");
    }
    let host = Host::with(MIRROR);
    let file = host.home.join("ran");
    let run = format!("{{\"id\":1,\"method\":\"exec.run\",\"params\":{{\"command\":\"touch {}\"}}}}", file.display());
    for line in [&*run, "{\"id\":1,\"method\":\"exec.list\"}", "{\"id\":1,\"method\":\"events.subscribe\"}"] {
        let seen = say(&host, &["setpriv", "--no-new-privs"], &[line, &run]);
        let is_refused = seen.contains("\"id\":1") && seen.contains("-32004") && seen.contains("no_new_privs");
        assert!(is_refused && seen.trim().lines().count() == 1, "{line}: {seen}");
    }
    assert!(!file.exists());
    assert_eq!(host.journal().of_type("start").count(), 0);
    assert!(say(&host, &["env"], &[&run]).contains("\"exit\":0"), "outside of it");
    assert!(file.exists());
}

#[test]
fn a_program_without_the_descriptor_that_a_host_requires_is_refused() {
    if !programs::has("python3") {
        return programs::skipped("there is no python3");
    }
    let host = Host::with(Setup { flags: &["--require-descriptor"], ..MIRROR });
    let seen = say(&host, &["env"], &["{\"id\":1,\"method\":\"exec.run\",\"params\":{\"command\":\"true\"}}"]);
    assert!(seen.contains("-32004") && seen.contains("descriptor"), "{seen}");
    assert_eq!(host.journal().of_type("start").count(), 0);
}
