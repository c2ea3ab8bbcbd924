//! The end of a host that nobody sees: by a verb, and by itself.

use std::fs;

use super::Place;
use crate::support::host::{Host, MIRROR, SHUTDOWN, Setup};
use crate::support::waiting::{self, PATIENCE};
use crate::verbs::live::{rexec, start};

#[test]
fn a_host_is_ended_by_a_verb_unless_commands_run() {
    let mut host = Host::with(MIRROR);
    let mut running = start(&host, "Ann", "echo >begun; sleep 1000");
    assert!(waiting::until_true(PATIENCE, || host.home.join("begun").exists()));
    let refused = rexec(&host, &["--stop-host"]);
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{}", refused.err);
    assert!(
        refused.err.contains("#1") && refused.err.contains("hint: ") && refused.err.contains("--force"),
        "{}",
        refused.err
    );
    assert_eq!(host.run("echo on").out(), "on\n", "the host goes on");
    let pid = host.pid();
    let ended = rexec(&host, &["--stop-host", "--force"]);
    assert_eq!((ended.code, ended.out), (0, format!("the host {pid} has ended\n")), "{}", ended.err);
    running.finish(PATIENCE).expect("the command was ended");
    assert_eq!(host.warden.wait(SHUTDOWN).map(|ended| ended.code()), Some(0));
    host.check_gone();
    assert_eq!(rexec(&host, &["--stop-host"]).code, 127);
}

#[test]
fn a_host_that_nobody_needs_ends_by_itself() {
    let place = Place::new();
    let mut host = Host::with(Setup { flags: &["--end-idle", "0.01"], ..MIRROR });
    let agent =
        place.program("pi", "#!/bin/sh\necho $$ >\"$HOME/begun\"\nuntil test -e \"$HOME/go\"; do sleep 0.05; done\n");
    let mut agent = place.run(&host, &[agent.to_str().expect("UTF-8")]).spawn().expect("it starts");
    assert!(waiting::until_true(PATIENCE, || place.home.join("begun").exists()));
    // Several looks have come and gone.
    assert_eq!(host.run("sleep 0.8; echo on").out(), "on\n", "an agent of rexec run is there");
    assert!(host.warden.wait(std::time::Duration::from_millis(1_500)).is_none(), "it is still there");
    fs::write(place.home.join("go"), "").expect("a file");
    assert!(agent.wait().expect("it ends").success());
    assert_eq!(host.warden.wait(PATIENCE).map(|ended| ended.code()), Some(0), "{}", host.console_text());
    host.console_says("nobody has needed this host");
    host.check_gone();
}
