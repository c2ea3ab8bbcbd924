//! A program in a sandbox that speaks JSON-RPC: it gets one error, and nothing of it runs.

use rexec_sh::protocol::wire::{FromShim, Hello, Rest, encode_left};

use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, Setup};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

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

/// Asks, enters a sandbox that every kernel has, and asks again.
const ENTER: &str = "import ctypes,socket,sys\ns=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);f=s.makefile()\n\
                     s.sendall(b'{\"id\":1,\"method\":\"exec.list\"}\\n{\"id\":2,\"method\":\"exec.list\"}\\n')\n\
                     print(f.readline(), f.readline())\n\
                     assert ctypes.CDLL(None).prctl(38,1,0,0,0) == 0\n\
                     s.sendall(b'{\"id\":3,\"method\":\"exec.list\"}\\n')\nprint(f.read())";

/// One look counts for all that was read with it, and for nothing that comes later.
#[test]
fn a_program_that_enters_a_sandbox_is_refused_from_then_on() {
    if !programs::has("python3") || !super::has_sight() {
        return programs::skipped("there is no python3, or sandboxes cannot be seen");
    }
    let host = Host::with(MIRROR);
    let seen = programs::command("python3").args(["-c", ENTER]).arg(host.socket()).output().expect("it starts");
    let seen = String::from_utf8_lossy(&[seen.stdout, seen.stderr].concat()).into_owned();
    let lines: Vec<&str> = seen.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert!(lines.len() == 3 && lines[..2].iter().all(|line| line.contains("\"runs\"")), "{seen}");
    assert!(lines[2].contains("\"id\":3") && lines[2].contains("-32004"), "{seen}");
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

/// Such a caller may look at commands and end them: see `relays`.
#[test]
fn a_login_with_other_groups_neither_types_nor_configures() {
    let login = &["setpriv", "--groups=4242"];
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root || !programs::has("setpriv") || !programs::has("python3") || !super::has_sight() {
        return programs::skipped("only root can take on other groups");
    }
    let host = Host::with(MIRROR);
    let mut calling =
        host.call("while ! test -e done; do sleep .02; done").start(Target::Shim(&host.socket())).expect("a shim");
    host.wait_for("its start", |journal| journal.of_type("start").next().cloned());
    let session = format!("{{\"dir\":\"{}\",\"env\":{{\"LD_PRELOAD\":\"/x.so\"}}}}", host.home.join("").display());
    for (method, params) in [
        ("session.create", &*session),
        ("session.env", "{\"session\":\"p1\"}"),
        ("exec.write", "{\"run\":1,\"text\":\"yes\\n\"}"),
        ("exec.resize", "{\"run\":1,\"rows\":3,\"cols\":3}"),
        ("exec.start", "{\"command\":\"true\",\"session\":\"/no/such/project\",\"ports\":2}"),
    ] {
        let seen = say(&host, login, &[&format!("{{\"id\":1,\"method\":\"{method}\",\"params\":{params}}}")]);
        assert!(seen.contains("-32004") && seen.contains("other groups"), "{method}: {seen}");
    }
    for line in ["{\"action\":\"send\",\"seq\":1,\"text\":\"yes\"}", "{\"action\":\"attach\",\"seq\":1}"] {
        let seen = say(&host, login, &[line]);
        assert!(seen.contains("other groups") && seen.contains("types for no commands"), "{line}: {seen}");
    }
    let seen = say(&host, login, &["{\"id\":1,\"method\":\"session.list\"}"]);
    assert!(seen.contains("\"result\"") && !seen.contains("/no/such/project"), "nothing was made of it: {seen}");
    let seen = say(&host, login, &["{\"id\":1,\"method\":\"exec.list\"}"]);
    assert!(seen.contains("test -e done"), "it may look: {seen}");
    let seen = say(&host, login, &["{\"id\":1,\"method\":\"exec.cancel\",\"params\":{\"run\":1}}"]);
    assert!(seen.contains("\"result\""), "it may end: {seen}");
    assert!(calling.finish(PATIENCE).is_some(), "it ended");
}

/// Connects again and again, and says this each time.
const REPEAT: &str = "import socket,sys\nfor n in range(int(sys.argv[3])):\n s=socket.socket(socket.AF_UNIX)\n \
                      s.connect(sys.argv[1]);s.sendall(bytes.fromhex(sys.argv[2]));s.recv(99);s.close()";

#[test]
fn what_a_sandboxed_caller_says_of_shells_without_this_host_is_its_own_word() {
    if !programs::has("setpriv") || !programs::has("python3") || !super::has_sight() {
        return programs::skipped("there is no setpriv or python3, or sandboxes cannot be seen");
    }
    let host = Host::with(MIRROR);
    let (mut left, mut shell) = (Hello::OURS.encode().to_vec(), Hello::OURS.encode().to_vec());
    encode_left(b"Claude Code", [c"rm", c"-rf"].into_iter(), &mut left);
    FromShim::Interactive { whoami: Rest(b"Claude Code") }.encode(&mut shell);
    let tell = |words: &[u8], times: &str| {
        let hex: String = words.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut command = programs::command("setpriv");
        command.args(["--no-new-privs", "python3", "-c", REPEAT]).arg(host.socket()).args([&hex, times]);
        assert!(command.status().expect("it starts").success());
    };
    tell(&left, "1");
    tell(&shell, "1");
    let has = |text: &str| waiting::until_true(PATIENCE, || host.console_text().contains(text));
    assert!(has("… an unproven caller (no_new_privs) says: Claude Code runs a command"), "{}", host.console_text());
    assert!(has("… an unproven caller (no_new_privs) says: not shown: interactive"), "{}", host.console_text());
    // Words that a terminal would obey, and a row that would look like the host's.
    let mut left = Hello::OURS.encode().to_vec();
    let mut shell = Hello::OURS.encode().to_vec();
    encode_left("evil\x1b]0;X\x07\n▌\u{9b}".as_bytes(), [c"touch", c"\x1b[2J\n#9 x\xc2\x9b"].into_iter(), &mut left);
    FromShim::Interactive { whoami: Rest("evil\x1b]0;X\x07\n▌\u{202e}".as_bytes()) }.encode(&mut shell);
    tell(&left, "1");
    tell(&shell, "1");
    assert!(has("says: evil__0_X___") && has("interactive shell of evil__0_X___"), "{}", host.console_text());
    let console = host.console_text();
    assert!(!console.contains(['\x1b', '\x07', '\u{9b}', '▌', '\u{202e}']), "{console:?}");
    // More of them than ten in a second are named once.
    let is_bounded = || {
        tell(&left, "50");
        host.console_text().contains("more than 10 callers a second tell of shells of their own: others are not shown")
    };
    assert!(waiting::until_true(PATIENCE, is_bounded), "{}", host.console_text());
}
