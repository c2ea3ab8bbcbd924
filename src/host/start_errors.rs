//! The errors of commands that could not be started, in the words for their callers.

use std::io;

use rexec_sh::protocol::exit_code::{NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE};

use crate::core::end::StartError;
use crate::guard::control::StartStage;
use crate::sys::pty;
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// Columns that the path of a shell may take in a sentence.
const SHELL_COLUMNS: usize = 256;

/// There is no guard, or the command cannot be sent to it.
pub(super) fn without_guard(error: &io::Error) -> StartError {
    if pty::is_none_left(error) {
        let hint = "end what is not needed, or let there be more terminals (sysctl kernel.pty.max)";
        return start_error(OWN_FAILURE, "the command cannot be started: no terminals are left", hint);
    }
    let hint = "end what is not needed, or raise the limits of the host (ulimit -n, ulimit -u)";
    start_error(OWN_FAILURE, &format!("the command cannot be started: {}", reason(error)), hint)
}

/// Every guard that got the command died before it began.
pub(super) fn without_beginning() -> StartError {
    let hint = "see what stops or kills the processes named rexec-guard, then run the command again";
    start_error(OWN_FAILURE, "the command could not be started: its guards do not begin", hint)
}

/// The guard could not start the shell. Where a shell would report the error, the words and the code are a shell's.
pub(super) fn at_stage(shell: &str, stage: StartStage, errno: i32) -> StartError {
    let error = io::Error::from_raw_os_error(errno);
    let words = reason(&error);
    let shell = escape_line(shell, SHELL_COLUMNS);
    let check_path = "check the path of the shell (REXEC_SHELL)";
    match (stage, error.kind()) {
        (StartStage::Exec, io::ErrorKind::NotFound) => {
            start_error(NOT_FOUND, &format!("{shell}: not found"), check_path)
        }
        (StartStage::Exec, io::ErrorKind::ArgumentListTooLong) => {
            start_error(NOT_EXECUTABLE, &format!("{shell}: {words}"), "pass the data in a file or on standard input")
        }
        (StartStage::Exec, _) => start_error(NOT_EXECUTABLE, &format!("{shell}: {words}"), check_path),
        (StartStage::Directory, _) => start_error(
            NOT_EXECUTABLE,
            &format!("the working directory cannot be entered: {words}"),
            "change to a directory that you may enter",
        ),
        (StartStage::Fork | StartStage::Descriptors, _) => start_error(
            OWN_FAILURE,
            &format!("the command cannot be started: {words}"),
            "raise the limits of the host (ulimit -n, ulimit -u)",
        ),
    }
}

/// The guard could not start the command of a JSON request: this program in this directory.
pub(super) fn of_words(program: &str, dir: &str, stage: StartStage, errno: i32) -> StartError {
    let error = io::Error::from_raw_os_error(errno);
    let (program, dir) = (escape_line(program, SHELL_COLUMNS), escape_line(dir, SHELL_COLUMNS));
    match (stage, error.kind()) {
        (StartStage::Exec, io::ErrorKind::NotFound) => start_error(
            NOT_FOUND,
            &format!("{program}: not found"),
            "check the name, and PATH in envs or in the host's environment",
        ),
        (StartStage::Exec, _) => {
            start_error(NOT_EXECUTABLE, &format!("{program}: {}", reason(&error)), "check the program's path")
        }
        (StartStage::Directory, _) => start_error(NOT_EXECUTABLE, &format!("{dir}: {}", reason(&error)), "check dir"),
        (StartStage::Fork | StartStage::Descriptors, _) => at_stage(&program, stage, errno),
    }
}

/// Why nothing is kept for undo any more.
pub(super) const GAVE_WAY: &str = "what was kept is gone again: its disk has no room to spare, or it was dropped";
/// Why nothing is kept for undo where the caller does not want it.
pub(super) const UNWANTED: &str = "nothing is kept: REXEC_UNDO=off";

/// Why not all is kept for undo; 0 means that what kept it was ended.
pub(super) fn collector_failure(errno: i32) -> String {
    match errno {
        0 => "keeping was cut off, so not all is kept".to_owned(),
        errno => format!("nothing is kept: {}", reason(&io::Error::from_raw_os_error(errno))),
    }
}

/// A descriptor of the caller has a number beyond the limit of every process below this host.
pub(super) fn out_of_reach(descriptor: i32, limit: u32) -> StartError {
    let text = format!(
        "the command cannot be started: it inherits descriptor {descriptor}, and the host may have {limit} at most"
    );
    let hint =
        format!("close descriptor {descriptor} in the caller, or start the host with a higher limit (ulimit -Hn)");
    start_error(OWN_FAILURE, &text, &hint)
}

fn start_error(code: u8, problem: &str, hint: &str) -> StartError {
    StartError { code, problem: problem.to_owned(), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexec_sh::protocol::notice::Notice;

    #[test]
    fn a_shortage_names_what_is_short() {
        let told = |errno| Notice::from(&without_guard(&io::Error::from_raw_os_error(errno))).to_string();
        let (no_space, no_descriptors) = (28, 24);
        assert!(told(no_space).contains("no terminals are left") && told(no_space).contains("kernel.pty.max"));
        assert!(told(no_descriptors).contains("Too many open files") && told(no_descriptors).contains("ulimit -n"));
    }
}
