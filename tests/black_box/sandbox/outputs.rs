//! The output of commands in their callers' sandboxes: whole for the caller, shown and counted for the host.

use super::reports::{begin, caged, can_run, ended, plain};
use crate::support::call::{Call, Outcome, Output, Target};
use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::waiting::{self, PATIENCE};

/// Most of it is moved unread and counted.
#[test]
fn a_flood_of_a_sandboxed_command_is_whole_for_its_caller_and_counted_for_the_host() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "yes 0123456789 | head -n 2000000; echo last";
    let [real, ours]: [Outcome; 2] = [plain(&host, script), caged(&host, script)].map(|call| call.run(Target::Real));
    assert_eq!(ours.stdout.len(), real.stdout.len());
    assert!(ours.stdout == real.stdout, "it is not the same");
    let end = ended(&host, script);
    assert_eq!((end["exit"].as_i64(), end["bytes"].as_u64()), (Some(0), Some(22_000_005)));
    let text = end["output"].as_str().expect("it is text");
    assert!(text.starts_with("0123456789\n") && text.ends_with("\n0123456789\nlast\n"), "{end:#}");
    // A reader that leaves ends the writer.
    let shim = programs::shims().join("bash");
    for shell in ["bash", shim.to_str().expect("text")] {
        let cage = format!("unset REXEC_INSIDE; setpriv --no-new-privs '{shell}' -c yes");
        let call = host.call(&format!("{cage} | head -c 5000000 | wc -c; echo ${{PIPESTATUS[0]}}"));
        let seen = call.env(&format!("REXEC_SOCKET={}", host.socket().display())).run(Target::Real);
        assert_eq!(seen.out(), "5000000\n141\n", "{shell}");
    }
    assert_eq!(ended(&host, "yes")["signal"], 13);
}

/// Nobody knows beforehand which bytes of a flood are its last ones.
#[test]
fn the_end_of_each_flood_is_shown_while_the_command_goes_on() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "for at in 1 2 3; do yes 0123456789 | head -n 500000; echo \"end of $at\" >&$at; \
                  until test -e go$at; do sleep .02; done; done 3>&1";
    let (mut calling, _) = begin(&host, script);
    for at in 1..=3 {
        let is_shown = || host.console_text().contains(&format!("end of {at}\n"));
        assert!(waiting::until_true(PATIENCE, is_shown), "{at}: {}", host.console_text());
        std::fs::write(host.home.join(&format!("go{at}")), "").expect("the directory is ours");
    }
    let seen = calling.finish(PATIENCE).expect("it ends");
    assert_eq!((seen.stdout.len(), seen.err().as_str()), (16_500_018, "end of 2\n"));
    assert_eq!(ended(&host, script)["bytes"].as_u64(), Some(16_500_027));
}

/// The kernel takes up to 25 ms to end a watch (inotify(7)), for which each command of Claude Code's sandbox waited.
#[test]
fn the_end_of_a_command_that_writes_to_a_file_waits_for_no_watch() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "sleep .1; readlink /proc/$PPID/fd/* | grep -c -e inotify -e fanotify";
    let call = Call { output: Output::OneFile, ..caged(&host, script) };
    assert_eq!(call.run(Target::Real).out(), "0\n");
    assert_eq!(ended(&host, script)["output"], "0\n");
}

#[test]
fn a_file_stays_the_commands_own_and_what_it_gets_is_reported() {
    if !can_run() {
        return;
    }
    let host = Host::with(MIRROR);
    let script = "echo one; test -f /dev/stdout && echo file; sleep .05; echo two >&2";
    let call = Call { output: Output::OneFile, ..caged(&host, script) };
    let seen = call.run(Target::Real);
    assert_eq!(seen.out(), "one\nfile\ntwo\n");
    assert_eq!(ended(&host, script)["output"], "one\nfile\ntwo\n");
}
