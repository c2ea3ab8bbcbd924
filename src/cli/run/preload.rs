//! Decides if the preload (`shim/preload`) can be loaded into an agent, and finds the agent's own programs.
//!
//! An agent is a program, or a script whose first line names one. The C library's loader loads the preload. So it
//! reaches no program without that loader, such as a statically linked one. Nor does it reach the children of an
//! interpreter that is a shell, because the agent is then one of the programs that the shell starts.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::elf::{HEAD_BYTES, is_loaded};
use rexec_sh::protocol::invocation::Shell;

/// Programs that start an agent with a shell: that shell would be one command, which never ends.
const STARTERS: [&str; 8] = ["npx", "npm", "pnpm", "pnpx", "yarn", "bunx", "uvx", "pipx"];

/// The way to load the preload into an agent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Preload {
    pub(super) library: PathBuf,
    /// The program that executes the agent.
    pub(super) program: PathBuf,
    /// The folder that was installed with it.
    pub(super) package: Option<PathBuf>,
}

/// The reason why the preload cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPreload {
    /// It is not installed, or a path has a character that ends a path in `LD_PRELOAD`.
    NoLibrary,
    /// A shell executes the agent.
    Shell,
    /// It is a program that starts others.
    Starter,
    /// The agent is not a program of this machine that the C library's loader loads.
    NoLoader,
}

impl NoPreload {
    /// The sentence for the user.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::NoLibrary => "librexec_preload.so is not installed with this rexec",
            Self::Shell => "it is a shell script",
            Self::Starter => "it only starts another program",
            Self::NoLoader => "no library can be loaded into it",
        }
    }

    /// Returns true if the agent may be another program that this one starts.
    pub(super) fn starts_another(self) -> bool {
        matches!(self, Self::Shell | Self::Starter)
    }
}

impl Preload {
    /// Finds the way to load the preload into the program at this path. `on_path` finds a program as a shell does.
    pub(super) fn of(
        agent: &Path,
        library: Option<PathBuf>,
        on_path: impl Fn(&OsStr) -> Option<PathBuf>,
    ) -> Result<Self, NoPreload> {
        let ends_path = |byte: &u8| matches!(byte, b':' | b' ');
        let library = library.filter(|library| !library.as_os_str().as_bytes().iter().any(ends_path));
        let library = library.ok_or(NoPreload::NoLibrary)?;
        if agent.file_name().is_some_and(|name| STARTERS.iter().any(|starter| name == *starter)) {
            return Err(NoPreload::Starter);
        }
        let agent = agent.canonicalize().map_err(|_| NoPreload::NoLoader)?;
        let head = head(&agent).ok_or(NoPreload::NoLoader)?;
        let named = match script_program(&head) {
            None => agent.clone(),
            Some(Interpreter::Path(path)) => path.into(),
            Some(Interpreter::Name(name)) => on_path(name).ok_or(NoPreload::NoLoader)?,
        };
        let program = named.canonicalize().map_err(|_| NoPreload::NoLoader)?;
        if Shell::named(program.as_os_str().as_bytes()).is_some() {
            return Err(NoPreload::Shell);
        }
        let found = self::head(&program).filter(|head| is_loaded(head));
        match found {
            Some(_) => Ok(Self { library, package: package(&agent, &named), program }),
            // pyenv and its like: a script that looks for the program.
            None if self::head(&program).is_some_and(|head| head.starts_with(b"#!")) => Err(NoPreload::Shell),
            None => Err(NoPreload::NoLoader),
        }
    }
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

#[derive(Debug, PartialEq, Eq)]
enum Interpreter<'a> {
    Path(&'a OsStr),
    /// A name that is searched in `PATH`.
    Name(&'a OsStr),
}

/// The interpreter in the first line of a file, if that is a script (execve(2)).
fn script_program(head: &[u8]) -> Option<Interpreter<'_>> {
    let mut lines = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n');
    let first = lines.next()?;
    let mut words = first.split(|byte| matches!(byte, b' ' | b'\t' | b'\r')).filter(|word| !word.is_empty());
    let program = words.next()?;
    let file = program.rsplit(|&byte| byte == b'/').next()?;
    if file == b"env" {
        let name = words.find(|word| !word.starts_with(b"-") && !word.contains(&b'='))?;
        return Some(match name.contains(&b'/') {
            true => Interpreter::Path(OsStr::from_bytes(name)),
            false => Interpreter::Name(OsStr::from_bytes(name)),
        });
    }
    // If the path is too long for a first line, or has a blank, Python installers write one that is also a string.
    let python = lines.next().and_then(|line| line.strip_prefix(b"'''exec' "));
    let python = python.and_then(|line| match line.strip_prefix(b"\"") {
        Some(quoted) => quoted.split(|&byte| byte == b'"').next(),
        None => line.split(|&byte| byte == b' ').next(),
    });
    Some(Interpreter::Path(OsStr::from_bytes(python.filter(|_| file == b"sh").unwrap_or(program))))
}

/// The folder that was installed with an agent: npm's outermost one, or the virtual environment whose Python executes
/// it. `named` is the interpreter as the script names it.
fn package(agent: &Path, named: &Path) -> Option<PathBuf> {
    const NPM: &str = "node_modules";
    let npm = agent.ancestors().filter(|folder| folder.file_name().is_some_and(|name| name == NPM)).last();
    let venv = || named.parent()?.parent().filter(|folder| folder.join("pyvenv.cfg").is_file());
    npm.or_else(venv)?.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interpreter(script: &str) -> Option<(bool, String)> {
        match script_program(script.as_bytes())? {
            Interpreter::Path(path) => Some((true, path.to_string_lossy().into_owned())),
            Interpreter::Name(name) => Some((false, name.to_string_lossy().into_owned())),
        }
    }

    #[test]
    fn the_first_line_names_the_program() {
        let path = |path: &str| Some((true, path.to_owned()));
        let name = |name: &str| Some((false, name.to_owned()));
        assert_eq!(interpreter("#!/usr/bin/env node\nx"), name("node"));
        assert_eq!(interpreter("#! /usr/bin/env -S node --no-warnings\n"), name("node"));
        assert_eq!(interpreter("#!/usr/bin/env A=1 /opt/py\n"), path("/opt/py"));
        assert_eq!(interpreter("#!/v/bin/python -I\n"), path("/v/bin/python"));
        assert_eq!(interpreter("#!/bin/sh\n'''exec' \"/a b/python\" \"$0\" \"$@\"\n' '''\n"), path("/a b/python"));
        assert_eq!(interpreter("#!/bin/sh\n'''exec' /v/python \"$0\" \"$@\"\n"), path("/v/python"));
        assert_eq!(interpreter("#!/bin/bash\nexec node x\n"), path("/bin/bash"));
        assert_eq!((interpreter("\x7fELF"), interpreter(""), interpreter("#!\n")), (None, None, None));
    }
}
