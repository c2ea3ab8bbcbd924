//! The folder through which agents find rexec's shell: links to `rexec-sh` under the names of shells, and the files of
//! the recipes. That of `rexec run` lies beside the host's socket, so it is private and goes away with the session.
//! That of `rexec init` lies in the user's data and stays.
//!
//! Invariants: right entries stay untouched, because agents may be using them; wrong ones are replaced in one step
//! (rename(2)), so that an agent never meets half of one.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place;

use crate::sys::{file, process};
use crate::text::reason::reason;

/// The folder's name, beside the socket.
const NAME: &str = "shells";

/// The folder for `ZDOTDIR`.
pub(super) const ZSH_FOLDER: &str = "rexec-zdotdir";

const FOLDERS: [&str; 3] = ["bash-only", "python", ZSH_FOLDER];

/// Links to `rexec-sh`. A name tells which real shell runs a command. Some agents want a name that contains bash or
/// zsh, and opencode treats one that is just `bash` in another way.
const LINKS: [&str; 10] = [
    "rexec-sh",
    "rexec-bash",
    "rexec-zsh",
    "rexec-dash",
    "rexec-ksh",
    "rexec-mksh",
    "rexec-fish",
    "sh",
    "zsh",
    "bash-only/bash",
];

/// The files and their contents.
const FILES: [(&str, &str); 3] = [
    ("rexec-env.sh", include_str!("rexec-env.sh")),
    ("rexec-zdotdir/.zshenv", include_str!("rexec-zshenv")),
    ("python/rexec_mini.py", include_str!("rexec_mini.py")),
];

/// The folder for the host of this socket.
pub(in crate::cli) fn folder(socket: &Path) -> PathBuf {
    place::directory(socket).join(NAME)
}

/// Makes or repairs the folder; returns its path. The links lead to `shim`.
pub(in crate::cli) fn provide(socket: &Path, shim: &Path) -> Result<PathBuf, Notice> {
    let above = place::directory(socket);
    let failed = |error: &io::Error| {
        let problem = format_args!("the links for agents cannot be made in {}: {}", above.display(), reason(error));
        Notice::failed(problem, "set REXEC_SOCKET to a path in a directory of your own")
    };
    file::make_private_directory(above).map_err(|error| failed(&error))?;
    place::check_directory(above, process::uid()).map_err(|error| {
        let problem =
            format_args!("the directory of the host's socket cannot be trusted: {error}: {}", above.display());
        Notice::failed(problem, "make it a directory of your own with mode 0700, or set REXEC_SOCKET")
    })?;
    // Agents change their directory, so a relative path would lead elsewhere.
    let folder = std::path::absolute(folder(socket)).map_err(|error| failed(&error))?;
    fill(&folder, shim).map_err(|error| failed(&error))?;
    Ok(folder)
}

/// Makes the folder at this place, or repairs it.
///
/// # Errors
/// As of the calls that make directories, links and files.
pub(in crate::cli) fn fill(folder: &Path, shim: &Path) -> io::Result<()> {
    file::make_private_directory(folder)?;
    for name in FOLDERS {
        file::make_private_directory(&folder.join(name))?;
    }
    for name in LINKS {
        if !is_link(&folder.join(name), shim) {
            replace(&folder.join(name), |place| symlink(shim, place))?;
        }
    }
    for (name, text) in FILES {
        if !holds(&folder.join(name), text) {
            replace(&folder.join(name), |place| std::fs::write(place, text))?;
        }
    }
    Ok(())
}

/// The names of missing and wrong entries of the folder.
pub(in crate::cli) fn faults(folder: &Path, shim: &Path) -> Vec<&'static str> {
    let links = LINKS.into_iter().filter(|name| !is_link(&folder.join(name), shim));
    let files = FILES.into_iter().filter(|(name, text)| !holds(&folder.join(name), text)).map(|(name, _)| name);
    links.chain(files).collect()
}

/// Removes the entries of [`fill`], and the folder if nothing else is in it.
pub(in crate::cli) fn remove(folder: &Path) {
    // Missing entries, and those in use, stay without harm.
    for name in LINKS.into_iter().chain(FILES.map(|(name, _)| name)) {
        let _ = std::fs::remove_file(folder.join(name));
    }
    for path in FOLDERS.map(|name| folder.join(name)).iter().chain([&folder.to_owned()]) {
        let _ = std::fs::remove_dir(path);
    }
}

fn is_link(path: &Path, shim: &Path) -> bool {
    std::fs::read_link(path).is_ok_and(|target| target == shim)
}

fn holds(path: &Path, text: &str) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
        && std::fs::read(path).is_ok_and(|found| found == text.as_bytes())
}

/// Makes a new entry under a name of its own, and moves it to its place.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let mut name = OsString::from(path);
    name.push(format!(".{}", process::pid()));
    let new = PathBuf::from(name);
    // A killed process of this number may have left it behind.
    let _ = std::fs::remove_file(&new);
    make(&new).and_then(|()| std::fs::rename(&new, path)).inspect_err(|_| {
        let _ = std::fs::remove_file(&new);
    })
}
