//! `rexec exec` and `rexec --whoami`: one command through the host, for people, scripts and programs.

use std::io::Write;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::host::{Host, MIRROR};
use crate::support::journal;
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

pub(crate) fn rexec(host: &Host, args: &[&str]) -> Command {
    programs::shims();
    let mut command = programs::command(programs::rexec());
    command.args(args).env_clear().env("PATH", programs::PATH).env("REXEC_SOCKET", host.socket());
    command
        .env("REXEC_HOME", host.journal_home())
        .env("HOME", host.home.path())
        .env("OWN", "caller")
        .current_dir(host.home.path())
        .stdin(Stdio::null());
    command
}

/// Exit code, standard output and standard error.
pub(crate) fn said(mut command: Command) -> (i32, String, String) {
    let output = command.output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn exec_passes_streams_arguments_environment_directory_and_code_on() {
    let host = Host::with(MIRROR);
    let script = "printf '%s|' \"$@\" \"$OWN\" \"$MINE\"; pwd; echo error >&2; exit 7";
    let (code, out, err) =
        said(rexec(&host, &["exec", "--env", "MINE=a=b", "--dir", "/usr", "--", "sh", "-c", script, "0", "a b", ""]));
    assert_eq!((code, out.as_str(), err.as_str()), (7, "a b||caller|a=b|/usr\n", "error\n"));
    let (code, out, _) = said(rexec(&host, &["exec", "-c", "echo $0 $1; kill -9 $$", "zero", "one"]));
    assert_eq!((code, out.as_str()), (137, "zero one\n"));
    let (code, out, err) = said(rexec(&host, &["exec", "no-such-program"]));
    assert_eq!((code, out.as_str()), (127, ""));
    assert!(err.starts_with("rexec: no-such-program: not found\nhint: "), "{err}");
    assert_eq!(said(rexec(&host, &["exec", "--", "/etc/passwd"])).0, 126);
}

#[test]
fn exec_says_what_the_command_is_for_and_ends_it_in_time() {
    let host = Host::with(MIRROR);
    let args = ["exec", "--as", "Ann", "--why", "wait for \x1b[31mnothing", "--timeout", "0.2", "--", "sleep", "1000"];
    assert_eq!(said(rexec(&host, &args)).0, 124);
    let record = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.end_of("sleep 1000").cloned());
    let record = record.expect("a record");
    assert_eq!((record["whoami"].as_str(), record["error"].as_str()), (Some("Ann"), Some("timeout")));
    assert_eq!(record["why"].as_str(), Some("wait for \x1b[31mnothing"));
    waiting::wait_until("the console tells", || {
        let console = host.console_text();
        console.contains("Ann:") && console.contains(" · why: wait for ")
    });
    assert!(!host.console_text().contains('\x1b'), "{:?}", host.console_text());
}

#[test]
fn exec_inside_of_a_run_is_a_run_of_its_own() {
    let host = Host::with(MIRROR);
    let program = programs::rexec().display();
    let inner = format!("REXEC_SOCKET={} {program} exec -- sh -c 'echo $REXEC_INSIDE'", host.socket().display());
    assert_eq!(said(rexec(&host, &["exec", "-c", &inner])).1, "1\n");
    let inner =
        journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.end_of("echo $REXEC_INSIDE").cloned());
    assert!(inner.is_some());
}

#[test]
fn exec_streams_standard_input_without_a_bound() {
    let host = Host::with(MIRROR);
    for args in [&["exec", "--", "wc", "-c"][..], &["--whoami", "A", "--dir", "/", "--read-stdin", "--", "wc", "-c"]] {
        let mut command = rexec(&host, args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        let block = vec![b'x'; 1 << 20];
        (0..8).for_each(|_| stdin.write_all(&block).expect("it is read"));
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), (8 << 20).to_string());
    }
}

fn plain<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["--whoami", "Codex", "--dir", "/usr"].into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn the_plain_client_prints_one_clean_text_and_exits_as_the_command() {
    let host = Host::with(MIRROR);
    let script = "printf '\\033[31mred\\033[0m\\n'; echo error >&2; pwd; echo ${OWN-unset} $MINE; cat; exit 4";
    let (code, out, err) = said(rexec(&host, &plain(&["--env", "MINE=1", "--", "sh", "-c", script])));
    assert_eq!((code, out.as_str(), err.as_str()), (4, "red\nerror\n/usr\nunset 1\n", ""));
    assert_eq!(said(rexec(&host, &plain(&["--", "sh", "-c", "kill -TERM $$"]))).0, 143);
    assert_eq!(said(rexec(&host, &plain(&["--timeout", "0.1", "--", "sleep", "1000"]))).0, 124);
    let (_, out, _) = said(rexec(&host, &plain(&["--clear-env", "--env", "A=1", "--", "/usr/bin/env"])));
    assert!(out.lines().all(|line| line == "A=1" || line.starts_with("REXEC_")) && out.contains("A=1\n"), "{out}");
    let (code, out, err) = said(rexec(&host, &["--dir", "/usr", "--whoami", "Codex", "--", "no-such-program"]));
    assert_eq!((code, out.as_str(), err.lines().next()), (127, "", Some("no-such-program: not found")));
    assert_eq!(said(rexec(&host, &["--whoami", "A", "--dir", "/no/such/place", "--", "ls"])).0, 127);
    assert_eq!(said(rexec(&host, &plain(&["--", "/etc/passwd"]))).0, 127);
    for wrong in [&["--whoami", "A", "--", "ls"][..], &["--dir", "/", "--", "ls"], &["--whoami", "A", "--dir", "/"]] {
        assert_eq!(said(rexec(&host, wrong)).0, 2, "{wrong:?}");
    }
    let mut absent = rexec(&host, &plain(&["--", "ls"]));
    absent.env("REXEC_SOCKET", host.home.join("none.sock"));
    let (code, _, err) = said(absent);
    assert_eq!((code, err.lines().next()), (127, Some("HOST NOT FOUND")));
}

#[test]
fn a_signal_to_the_plain_client_aborts_a_command_that_ignores_it() {
    let host = Host::with(MIRROR);
    let script = "trap '' TERM; echo ready; sleep 1000";
    let mut child =
        rexec(&host, &plain(&["--", "sh", "-c", script])).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut ready).expect("output comes while it runs");
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a pid")), Signal::SIGTERM).expect("it is alive");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    let end = journal::wait_for(&host.journal_home(), PATIENCE, |journal| journal.of_type("end").next().cloned());
    assert_eq!(end.expect("a record")["error"].as_str(), Some("aborted"));
}
