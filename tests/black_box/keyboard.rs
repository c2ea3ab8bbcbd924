//! The human's hands on the console: what each key does, and what does nothing.

mod attention;
mod keys;
mod status_line;
mod timings;

use std::io::Write;
use std::time::Duration;

use crate::support::call::{Calling, Target};
use crate::support::host::{Host, PLAIN, Setup};
use crate::support::strip::strip;
use crate::support::waiting::{self, PATIENCE};

const TERMINAL: Setup = Setup { terminal: true, flags: &["--no-status"], ..PLAIN };

fn types(host: &Host, keys: &[u8]) {
    host.terminal.as_ref().expect("a terminal").master_file().write_all(keys).expect("the terminal takes keys");
}

/// Asks for help until it comes: a key in one read with others may be pasted, or belong to a sequence.
fn is_heard(host: &Host) {
    const HELP: &str = "k N    stop command N";
    let before = shown(host).matches(HELP).count();
    let is_there = || {
        types(host, b"?");
        waiting::until_true(Duration::from_millis(300), || shown(host).matches(HELP).count() > before)
    };
    assert!(waiting::until_true(PATIENCE, is_there), "the keyboard is deaf: {}", shown(host));
}

/// What the console has shown, without escape sequences.
fn shown(host: &Host) -> String {
    String::from_utf8_lossy(&strip(host.console_text().as_bytes())).into_owned()
}

/// Waits until the console has shown this so often.
fn sees_times(host: &Host, text: &str, times: usize) {
    let is_there = waiting::until_true(PATIENCE, || shown(host).matches(text).count() >= times);
    assert!(is_there, "{text:?} is not there {times} times: {}", shown(host));
}

fn sees(host: &Host, text: &str) {
    sees_times(host, text, 1);
}

/// Starts a script that says `ready`, and waits until the console has shown that.
fn start(host: &Host, script: &str) -> Calling {
    let before = shown(host).matches("\nready").count();
    let calling = host.call(script).start(Target::Shim(&host.socket())).expect("the shim starts");
    sees_times(host, "\nready", before + 1);
    calling
}

fn code(calling: &mut Calling) -> i32 {
    calling.finish(PATIENCE).expect("the command ends").code()
}
