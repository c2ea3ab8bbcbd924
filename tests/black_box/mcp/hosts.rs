//! The server's life: it outlives hosts, and leaves nothing behind when it ends.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::agent::{Agent, run_in};
use crate::support::host::{Host, MIRROR};
use crate::support::own_process::alone;
use crate::support::procs::Process;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE, wait_until};

#[test]
fn the_server_lives_on_when_the_host_dies_and_finds_the_next_one() {
    let host = Host::with(MIRROR);
    let mut agent = Agent::of(&host);
    assert_eq!(agent.run("echo one"), "one\n");
    let id = agent.begin("exec", &json!({"command": "echo begun; touch begun; sleep 300"}));
    wait_until("it runs", || host.home.join("begun").exists());
    // The server has read the run's number when it has an answer to what it asked later.
    assert!(agent.call("list", &json!({})).text.contains("running"));
    let (home, _warden) = host.kill();
    let lost = agent.result(id);
    assert!(lost.is_error && lost.text.contains("rexec: the host went away while run "), "{}", lost.text);
    let absent = agent.call("exec", &json!({"command": "echo two"}));
    assert!(
        absent.is_error && absent.text.starts_with("HOST NOT FOUND\nrexec: no rexec-host is listening on "),
        "{}",
        absent.text
    );
    assert_eq!(agent.call("check_host", &json!({})).text, "HOST NOT FOUND\n");
    let host = Host::in_dir(home, MIRROR);
    assert_eq!(agent.call("check_host", &json!({})).text, "HOST RUNNING\n");
    assert_eq!(agent.run("echo three"), "three\n");
    let former = agent.call("output", &json!({"run": run_in(&lost.text)}));
    assert!(former.is_error && former.text.contains("an earlier host's"), "{}", former.text);
    drop(agent);
    host.kill();
}

/// Codex and others keep all variables of rexec from the servers that they start.
#[test]
fn the_server_finds_the_host_of_its_user_without_a_variable() {
    let name = "mcp::hosts::the_server_finds_the_host_of_its_user_without_a_variable";
    alone(name, &["unshare", "--map-root-user", "--mount"], || {
        // Not /tmp, below which the test itself may have been built.
        let mut mount = programs::command("mount");
        if !mount.args(["-t", "tmpfs", "-o", "mode=755", "none", "/run"]).status().is_ok_and(|status| status.success())
        {
            return programs::skipped("nothing can be mounted here");
        }
        let place = Path::new("/run/user/0/rexec");
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).recursive(true).create("/run/user/0").expect("a directory");
        let host = Host::with(MIRROR);
        let mut command = programs::command(programs::rexec());
        command.arg("mcp").current_dir("/").env_clear().env("HOME", host.home.path()).env("PATH", programs::PATH);
        let mut agent = Agent::start(command);
        agent.shake_hands("codex-mcp-client");
        assert_eq!(agent.call("check_host", &json!({})).text, "HOST NOT FOUND\n");
        private.create(place).expect("a directory");
        std::os::unix::fs::symlink(host.socket(), place.join("host.sock")).expect("a link");
        assert_eq!(agent.call("check_host", &json!({})).text, "HOST RUNNING\n");
        assert_eq!(agent.run("echo found"), "found\n");
        drop(agent);
        host.finish();
    });
}

/// What a way of ending the server leaves: the foreground command ends, the background one stays.
fn end_by(end: impl FnOnce(Agent)) {
    let host = Host::with(MIRROR);
    let mut agent = Agent::of(&host);
    let stays =
        run_in(&agent.call("exec", &json!({"command": "echo $$ >stays; exec sleep 300", "background": true})).text);
    agent.begin("exec", &json!({"command": "sleep 300 & echo $! >child; wait"}));
    let number = |name: &str| {
        let read = || fs::read_to_string(host.home.join(name)).ok().filter(|text| text.ends_with('\n'));
        waiting::until(PATIENCE, read).expect("a number").trim().parse::<i32>().expect("a number")
    };
    let (child, background) = (number("child"), number("stays"));
    let lives = |pid: i32| Process::of(pid).is_some_and(|process| !process.is_zombie());
    end(agent);
    wait_until("the foreground command is gone", || !lives(child));
    assert!(lives(background));
    let mut next = Agent::of(&host);
    // The host hears of the end of the other one after its processes are gone.
    wait_until("the background one alone is listed", || {
        let listed = next.call("list", &json!({})).text;
        listed.contains(&format!("run {stays} · running")) && listed.lines().count() == 1
    });
    next.call("kill", &json!({"run": stays}));
    wait_until("it is ended", || !lives(background));
}

#[test]
fn a_killed_server_leaves_only_what_it_started_in_the_background() {
    end_by(|mut agent| agent.child.kill().expect("it runs"));
}

#[test]
fn an_agent_that_closes_its_side_ends_the_server() {
    end_by(|agent| assert_eq!(agent.leave(), Some(0)));
}

#[test]
fn signals_end_the_server() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        end_by(|mut agent| {
            kill(Pid::from_raw(agent.process().pid), signal).expect("it runs");
            assert_eq!(agent.exit_code(), Some(0), "{signal}");
        });
    }
}
