//! The exit codes of rexec-sh, rexec-host and rexec that are not a command's own. The shim's follow the shells (bash(1),
//! "EXIT STATUS") and env(1), so that an agent reads them as it reads those.

pub const SUCCESS: u8 = 0;
/// `rexec` and `rexec-host`: the request failed, or nothing was found.
pub const FAILURE: u8 = 1;
/// `rexec` and `rexec-host`: the command line is wrong.
pub const USAGE: u8 = 2;
/// `rexec`: the named run does not run, or no journal has it.
pub const NO_SUCH_RUN: u8 = 3;
/// JSONL: the request's timeout ended the command, as with timeout(1).
pub const TIMED_OUT: u8 = 124;
/// rexec itself failed between the caller and the command: the command did not run, or its end is unknown.
pub const OWN_FAILURE: u8 = 125;
/// The command or its shell was found and cannot be executed, or the person's rules refuse it.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no host, or the command or its shell was not found.
pub const NOT_FOUND: u8 = 127;
