//! How the host asks for the human: the bell, the title, `--notify`.

use std::fs;

use super::{code, start, types};
use crate::support::call::Target;
use crate::support::host::{Host, MIRROR, PLAIN, Setup};
use crate::support::waiting::{self, PATIENCE};

const ASKS: &str = "read -r -p 'your \"name\"? ' line </dev/tty; echo got $line";
/// Says what it was told, then takes its time.
const NOTE: &str =
    "echo \"$REXEC_RUN|$REXEC_AGENT|$REXEC_MESSAGE\" >>told; readlink /proc/self/fd/0 >>told; sleep 1000";

fn told(host: &Host) -> String {
    fs::read_to_string(host.home.join("told")).unwrap_or_default()
}

#[test]
fn a_command_that_waits_rings_once_and_runs_the_humans_command_beside_the_host() {
    let flags = &["--prompts", "ask", "--prompt-wait", "300", "--notify", NOTE];
    let host = Host::with(Setup { terminal: true, flags, wrapper: &["env", "TERM=xterm"], ..MIRROR });
    let mut asks = host.call(ASKS).start(Target::Shim(&host.socket())).expect("the shim starts");
    let is_told = || told(&host).contains("/dev/null");
    assert!(waiting::until_true(PATIENCE, is_told), "{} {}", told(&host), host.console_text());
    let first = told(&host).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first, r#"1|shell|#1 waits for your answer to bash: "your \"name\"?""#);
    let has_title = || host.console_text().contains("\x1b]2;rexec: 1 run, #1 waits\x07");
    assert!(waiting::until_true(PATIENCE, has_title), "{}", host.console_text());
    let is_named = || host.console_text().contains("i answer #1 shell");
    assert!(waiting::until_true(PATIENCE, is_named), "{}", host.console_text());
    types(&host, b"i");
    let is_asked = || host.console_text().contains("your keys go to #1");
    assert!(waiting::until_true(PATIENCE, is_asked), "{}", host.console_text());
    types(&host, b"ann\r");
    let seen = asks.finish(PATIENCE).expect("it ends");
    assert_eq!(seen.out(), "got ann\n");
    // One bell, beside those that end titles. A title may just be on its way.
    let rings_once = || {
        let console = host.console_text();
        console.matches('\x07').count() == console.matches("\x1b]2;").count() + 1
    };
    assert!(waiting::until_true(PATIENCE, rings_once), "{:?}", host.console_text());
    assert_eq!(host.run("echo on").out(), "on\n", "nothing waits for the human's command");
    let sleeper = || host.tree().into_iter().find(|process| process.command() == "sleep 1000");
    let sleeper = waiting::until(PATIENCE, sleeper).expect("it still runs");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(sleeper.pid), nix::sys::signal::Signal::SIGKILL).expect("ours");
}

#[test]
fn a_human_s_command_that_cannot_run_disturbs_nothing() {
    let flags = &["--prompts", "ask", "--prompt-wait", "0.1", "--notify", "/nonexistent; kill -9 $$"];
    let host = Host::with(Setup { terminal: true, flags, ..MIRROR });
    for _ in 0..3 {
        assert_eq!(host.call(ASKS).run(Target::Shim(&host.socket())).out(), "got\n");
    }
}

#[test]
fn the_title_goes_with_the_host() {
    let mut host = Host::with(Setup { terminal: true, wrapper: &["env", "TERM=xterm"], ..PLAIN });
    let mut one = start(&host, "echo ready; exec sleep 1000");
    let has = |text: &str| waiting::until_true(PATIENCE, || host.console_text().contains(text));
    assert!(has("\x1b[22;2t") && has("\x1b]2;rexec: 1 run\x07"), "{}", host.console_text());
    types(&host, b"k1\r");
    assert_eq!(code(&mut one), 143);
    assert!(has("\x1b]2;rexec\x07"), "{}", host.console_text());
    types(&host, b"q");
    host.check_end();
    assert_eq!(host.console_text().matches("\x1b[23;2t").count(), 1);
}
