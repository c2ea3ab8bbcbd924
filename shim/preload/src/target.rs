//! What a program that is about to be started is for the agent.
//!
//! Invariants: a program is found as the C library finds it; a shell counts only if it is there, because the caller goes on
//! to the next one if it is not.

use std::ffi::CStr;

use rexec_sh::protocol::invocation::{Shell, is_command};
use rexec_sh::protocol::run_changes::{PRELOAD_LINKS, PRELOAD_PACKAGE, PRELOAD_PROGRAM};

use crate::start::Start;
use crate::sys;

/// The longest path that the kernel takes, bytes, with its NUL.
pub const PATH_BYTES: usize = 4_096;

/// Where programs are looked for without a `PATH`, as in execvp(3).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";
/// What names the shell for the shim.
const SHELL_ENTRY: &[u8] = b"REXEC_SHELL=";

/// Room for a text that ends with NUL.
#[derive(Debug)]
pub struct TextBuffer {
    bytes: [u8; PATH_BYTES + SHELL_ENTRY.len()],
    length: usize,
}

impl Default for TextBuffer {
    fn default() -> Self {
        Self { bytes: [0; PATH_BYTES + SHELL_ENTRY.len()], length: 0 }
    }
}

impl TextBuffer {
    /// Puts these parts together. `None` if there is no room for them.
    fn join(&mut self, parts: &[&[u8]]) -> Option<&CStr> {
        self.length = 0;
        for part in parts.iter().chain([&&b"\0"[..]]) {
            let room = self.bytes.get_mut(self.length..self.length + part.len())?;
            room.copy_from_slice(part);
            self.length += part.len();
        }
        self.text()
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> Option<&CStr> {
        CStr::from_bytes_with_nul(self.bytes.get(..self.length)?).ok()
    }
}

/// A program as the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A shell with a command string. Its link and its entry are in the buffers.
    Shell,
    /// The same for a shell without arguments whose commands come by a pipe, or may come so.
    FedShell,
    /// A program of the agent's own.
    Own,
    /// Any other program.
    Other,
}

/// How a program is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// By a path.
    ByPath,
    /// By a name that is looked for in `PATH`, unless it is a path.
    ByName,
}

/// What its standard input will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A pipe.
    Pipe,
    /// What the C library opens, which the shim sees.
    Later,
    /// Something else.
    Other,
}

/// What a program is. For a shell, `link` gets the path that is executed in its place, and `shell` the entry that names it.
pub fn of<'a>(
    start: &Start,
    (file, named): (&CStr, Named),
    search: Option<&[u8]>,
    (argv, input): (impl Iterator<Item = &'a CStr> + Clone, Input),
    (link, shell): (&mut TextBuffer, &mut TextBuffer),
) -> Target {
    let mut place = TextBuffer::default();
    let is_path = named == Named::ByPath || file.to_bytes().contains(&b'/');
    let path = if is_path { Some(file) } else { find(file, search.unwrap_or(DEFAULT_PATH), &mut place) };
    let Some(path) = path.filter(|path| sys::is_executable(path)) else { return Target::Other };
    // A login shell's name begins with `-`.
    let is_bare = |name: &CStr| !name.to_bytes().starts_with(b"-") && argv.clone().count() == 1;
    let is_fed = input != Input::Other && argv.clone().next().is_some_and(is_bare);
    let target = if is_fed { Target::FedShell } else { Target::Shell };
    let kind = shell_of(path.to_bytes()).filter(|&kind| is_fed || is_command(kind, argv.map(CStr::to_bytes)));
    if let Some(kind) = kind {
        let links = [start.value(PRELOAD_LINKS), b"/rexec-", kind.word().as_bytes()];
        let is_there = link.join(&links).is_some_and(sys::is_executable);
        let is_named = shell.join(&[SHELL_ENTRY, path.to_bytes()]).is_some();
        return if is_there && is_named { target } else { Target::Other };
    }
    let mut real = [0; PATH_BYTES];
    let is_own = sys::real_path(path, &mut real).is_some_and(|real| is_own(start, real)) && sys::takes_preload(path);
    if is_own { Target::Own } else { Target::Other }
}

/// Whether the program at this path, which no link is in, is one of the agent's own.
#[must_use]
pub fn is_own(start: &Start, path: &[u8]) -> bool {
    let below =
        |folder: &[u8]| !folder.is_empty() && path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    path == start.value(PRELOAD_PROGRAM) || below(start.value(PRELOAD_PACKAGE))
}

/// The kind of shell at a path. One that is named by no absolute path may be another one for the shim.
fn shell_of(path: &[u8]) -> Option<Shell> {
    let file = path.rsplit(|&byte| byte == b'/').next()?;
    let is_there = path.starts_with(b"/") && !file.starts_with(b"rexec-");
    Shell::named(file).filter(|&kind| is_there && kind != Shell::Busybox)
}

/// Finds a program in a list of folders.
fn find<'p>(file: &CStr, search: &[u8], place: &'p mut TextBuffer) -> Option<&'p CStr> {
    let is_there = |folder: &[u8], place: &mut TextBuffer| {
        let folder = if folder.is_empty() { b"." } else { folder };
        place.join(&[folder, b"/", file.to_bytes()]).is_some_and(sys::is_executable)
    };
    search.split(|&byte| byte == b':').find(|folder| is_there(folder, place))?;
    place.text()
}
