//! A test that changes what a whole process shares, such as a limit, a mount or a memory peak, runs in a process of its
//! own: a copy of the test binary that runs nothing else.

use std::process::{Command, Stdio};

use super::programs;

/// Names the test that a copy of the test binary was started for.
const MARK: &str = "REXEC_TEST_ALONE";

/// The arguments with which a copy of this binary runs one test, long or not, and nothing else.
pub(crate) fn only(name: &str) -> [&str; 4] {
    ["--exact", name, "--include-ignored", "--nocapture"]
}

/// Runs `body` in a copy of this binary that runs nothing but the test `name`, started by the program `wrapper`. Where
/// the wrapper does not work, the test is skipped.
pub(crate) fn alone(name: &str, wrapper: &[&str], body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some_and(|mark| mark == name) {
        return body();
    }
    let works = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        return programs::skipped(&format!("{} does not work here", wrapper[0]));
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(std::env::current_exe().expect("a test is a file"));
    let output = command.args(only(name)).env(MARK, name).output().expect("the wrapper works");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter_map(|line| line.split_once(": ")).for_each(|(head, why)| {
        if head.starts_with("SKIPPED in ") {
            programs::skipped(why);
        }
    });
}
