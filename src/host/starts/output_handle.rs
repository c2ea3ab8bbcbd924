//! The command that prints what the caller's copy of the output lacks. It works in the caller's shell.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::place;

use super::Starts;
use crate::core::engine::JobId;
use crate::front::command::Command;
use crate::sys::process;

impl Starts {
    /// The command line, as `rexec out 44`; empty if the journal does not keep long output.
    pub(super) fn output_handle(&self, job: JobId, command: &Command) -> String {
        if self.options.raw_cap == 0 {
            return String::new();
        }
        let run = command.run();
        let variable = |name: &str| {
            let mut entries = run.iter().flat_map(|run| run.env.iter()).map(CStr::to_bytes);
            entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).unwrap_or_default()
        };
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut line = String::new();
        // A command does not see the variables that name the host and its journal.
        let home = Path::new(std::ffi::OsStr::from_bytes(variable("HOME"))).join(".rexec");
        if home != self.options.home {
            line += &format!("REXEC_HOME={} ", quoted(&absolute(&self.options.home)));
        }
        if place::socket_path(None, process::uid()).is_ok_and(|usual| usual != self.options.socket) {
            line += &format!("REXEC_SOCKET={} ", quoted(&absolute(&self.options.socket)));
        }
        let own = std::env::current_exe().unwrap_or_default();
        let is_own = |part: &[u8]| own.parent().is_some_and(|own| own.as_os_str().as_bytes() == part);
        let is_found = variable("PATH").split(|&byte| byte == b':').any(is_own);
        let program = if is_found { PathBuf::from("rexec") } else { own.with_file_name("rexec") };
        format!("{line}{} out {}", quoted(&program), job.0)
    }
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if path.chars().all(is_plain) { path.into_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
