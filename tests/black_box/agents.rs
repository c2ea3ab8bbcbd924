//! `rexec run` and `rexec doctor`: agents that call their shell as the real ones do. `scripts/agents.sh` drives the real ones.

mod callers;
mod doctor;
mod dying;
mod ends;
mod init;
mod launched;
mod nesting;
mod preloaded;
mod recipes;
mod silent;
mod unseen;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::support::host::{Host, MIRROR};
use crate::support::programs;
use crate::support::temp::TempDir;

/// A directory with programs, a host's socket and a journal.
struct Place {
    home: TempDir,
}

/// The preload, beside the programs. Cargo does not build it with them, and what `rexec run` says depends on it.
fn preload() -> &'static Path {
    static PRELOAD: OnceLock<PathBuf> = OnceLock::new();
    PRELOAD.get_or_init(|| {
        programs::build(&["-p", "rexec-preload"]);
        programs::host().with_file_name("librexec_preload.so")
    })
}

impl Place {
    fn new() -> Self {
        programs::shims();
        preload();
        Self { home: TempDir::new(None) }
    }

    /// Writes a program.
    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.join(name);
        programs::write(&path, text.as_bytes());
        path
    }

    /// A call of `program` with the environment of a person.
    fn alone(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = programs::command(program);
        command.env_clear().env("PATH", programs::PATH).env("HOME", self.home.path()).env("SHELL", "/bin/bash");
        command.current_dir(self.home.path()).stdin(Stdio::null());
        command
    }

    /// `rexec run` with these arguments, at this host.
    fn run(&self, host: &Host, args: &[&str]) -> Command {
        let mut command = self.alone(programs::rexec());
        command.env("REXEC_SOCKET", host.socket()).env("REXEC_HOME", host.journal_home()).arg("run").args(args);
        command
    }
}

fn host() -> Host {
    Host::with(MIRROR)
}

/// What a program prints; it must succeed and say nothing, but for what is true of the account that the tests run as, or of
/// an agent that a shell script plays.
fn printed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    let of_account = |line: &str| line.contains(", your login shell, so rexec cannot see them");
    let of_script = |line: &str| line.contains(" takes no preload: it is a shell script, so it gets SHELL");
    let is_silent = said(&output).lines().all(|line| of_account(line) || of_script(line));
    assert!(output.status.success() && is_silent, "{command:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
