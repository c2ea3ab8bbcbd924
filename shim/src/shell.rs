//! Finds the real shell, and becomes it.
//!
//! Invariants: a shell comes from fixed places, never from PATH, which may lead to the shim; a file that is the shim
//! (same device and inode) is never taken, so the shim never executes itself.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

use rexec_sh::protocol::exit_code::{NOT_EXECUTABLE, NOT_FOUND, OWN_FAILURE};
use rexec_sh::protocol::invocation::Shell;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::run_changes;
use rexec_sh::protocol::shell_places::{is_in, places};

use crate::sys::{self, FileKind, FileStatus};

/// Returns true if this `argv[0]`, without the dash of a login shell, leads to the shim. The usual path of a real shell
/// counts as the real shell, even if the shim has replaced it.
pub(crate) fn leads_to_shim(shell: Shell, name: &[u8]) -> bool {
    if places(shell).iter().any(|place| place.to_bytes() == name) {
        return false;
    }
    let executed = sys::executed_path().to_bytes();
    if !name.contains(&b'/') {
        return executed.rsplit(|&byte| byte == b'/').next() == Some(name) && !name.is_empty();
    }
    executed == name || CString::new(name).is_ok_and(|path| sys::status_at(&path).is_ok_and(|found| is_myself(&found)))
}

/// This program's file. Without /proc it is found by the path of the execution.
fn myself() -> Option<FileStatus> {
    static MYSELF: OnceLock<Option<FileStatus>> = OnceLock::new();
    *MYSELF.get_or_init(|| sys::status_at(c"/proc/self/exe").or_else(|_| sys::status_at(sys::executed_path())).ok())
}

fn is_myself(found: &FileStatus) -> bool {
    myself().is_some_and(|myself| myself.is_same_file(found))
}

/// The real shell's path: the one in `REXEC_SHELL`, or the place that the caller of `env` would have found, or the
/// first.
pub(crate) fn find<'a>(shell: Shell, chosen: Option<&'a CStr>, env: &[&CStr]) -> Result<&'a CStr, Notice> {
    if let Some(path) = chosen.filter(|path| !path.is_empty()) {
        return check_chosen(path).map(|()| path);
    }
    let (name, places) = (shell.word(), places(shell));
    let usable = |found: FileStatus| found.kind == FileKind::Regular && found.mode & 0o111 != 0 && !is_myself(&found);
    let likely = likely_places(places, env).chain(places.iter().copied());
    likely.into_iter().find(|path| sys::status_at(path).is_ok_and(usable)).ok_or_else(|| {
        let (first, last) = (places[0].to_string_lossy(), places[places.len() - 1].to_string_lossy());
        Notice::new(
            NOT_FOUND,
            format_args!("there is no {name} in the usual places ({first} to {last})"),
            "set REXEC_SHELL to the absolute path of the shell that is to run commands",
        )
    })
}

/// The notice about a link with the name of a shell that the shim cannot be.
pub(crate) fn cannot_be(name: &str) -> Notice {
    let known = Shell::ALL.map(Shell::word).join(", ");
    Notice::new(
        NOT_FOUND,
        format_args!("rexec-sh cannot stand for {name}, only for {known}"),
        "call it by another name, or set REXEC_SHELL to the absolute path of the shell that is to run commands",
    )
}

/// The places that the caller would have found without the shim. If PATH led to the shim, they are in the order of
/// PATH; otherwise it is the user's shell.
fn likely_places(places: &'static [&'static CStr], env: &[&CStr]) -> impl Iterator<Item = &'static CStr> {
    let value = |name: &[u8]| env.iter().find_map(|entry| entry.to_bytes().strip_prefix(name)).unwrap_or_default();
    let executed = sys::executed_path().to_bytes();
    let folder = executed.iter().rposition(|&byte| byte == b'/').map_or(&[][..], |at| &executed[..at]);
    let path = value(b"PATH=").split(|&byte| byte == b':');
    let is_from_path = path.clone().any(|other| other == folder);
    let in_path: Vec<_> = path.filter_map(|folder| places.iter().find(|place| is_in(place, folder))).copied().collect();
    let own = Some(run_changes::own_value(env, b"SHELL")).filter(|own| !own.is_empty()).unwrap_or(value(b"SHELL="));
    let users = places.iter().find(|place| place.to_bytes() == own && !is_from_path).copied();
    in_path.into_iter().filter(move |_| is_from_path).chain(users)
}

fn check_chosen(path: &CStr) -> Result<(), Notice> {
    let wrong = |why: &str| {
        let problem = format!("REXEC_SHELL is `{}`, which {why}", path.to_bytes().escape_ascii());
        Err(Notice::new(OWN_FAILURE, problem, "set REXEC_SHELL to the absolute path of a real shell, or unset it"))
    };
    match sys::status_at(path) {
        _ if !path.to_bytes().starts_with(b"/") => wrong("is not an absolute path"),
        Err(error) => wrong(&format!("cannot be found ({})", error.desc())),
        Ok(found) if is_myself(&found) => wrong("is rexec-sh itself"),
        Ok(found) if found.kind != FileKind::Regular || !sys::is_executable(path) => wrong("is not an executable file"),
        Ok(_) => Ok(()),
    }
}

/// The entry for a `PATH` of this value without the folders that lead to the shim; `None` if it has none.
pub(crate) fn path_without_links(path: &[u8]) -> Option<CString> {
    let kept = run_changes::without_folders(path, |folder| {
        let Ok(link) = CString::new([folder, b"/bash"].concat()) else { return false };
        sys::status_at(&link).is_ok_and(|found| is_myself(&found))
    })?;
    CString::new([b"PATH=".as_slice(), &kept].concat()).ok()
}

/// The environment without the entries of the preload.
pub(crate) fn without_agent<'e>(env: &[&'e CStr]) -> Vec<&'e CStr> {
    let put = || run_changes::AGENTS.into_iter().chain([run_changes::PRELOAD_FED, "REXEC_SHELL"]);
    let name = |entry: &CStr| entry.to_bytes().split(|&byte| byte == b'=').next().unwrap_or_default().to_vec();
    env.iter().copied().filter(|entry| !put().any(|put| name(entry) == put.as_bytes())).collect()
}

/// Becomes the real shell, with unchanged arguments. Returns only if that failed.
pub(crate) fn become_shell(path: &CStr, argv: &[&CStr], env: &[&CStr]) -> Notice {
    let error = sys::execute(path, argv, env);
    let code = if error == nix::errno::Errno::ENOENT { NOT_FOUND } else { NOT_EXECUTABLE };
    Notice::without_hint(code, format_args!("{} cannot be executed: {}", path.to_string_lossy(), error.desc()))
}
