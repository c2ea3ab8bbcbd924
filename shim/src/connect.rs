//! Connects to the host: finds its socket, checks that it can be trusted, and opens it.
//!
//! Invariants: no byte is sent before the directory is checked and the listener is known to run as the same user; a
//! process that may not use sockets at all is in a sandbox, and its command runs in the real shell there.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rexec_sh::protocol::exit_code::NOT_FOUND;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::options::{ShimOptions, given};
use rexec_sh::protocol::place::{self, PlaceError};

use crate::sys;

/// The number of retries, and the pause between them in milliseconds, while a host restarts.
const RETRIES_MAX: u32 = 3;
const RETRY_PAUSE_MS: i32 = 50;

/// The reason why there is no connection.
#[derive(Debug)]
pub(crate) enum NoHost {
    /// No process listens.
    Absent(Notice),
    /// This process may not use sockets.
    Denied,
    /// The socket cannot be trusted or used.
    Unfit(Notice),
}

pub(crate) fn to_host(options: &ShimOptions<'_>) -> Result<OwnedFd, NoHost> {
    // Before the check of the directory, because a sandbox may hide that too.
    let socket = sys::socket().map_err(|error| denied(error, Path::new("a socket")))?;
    let uid = sys::effective_uid();
    let path = place::socket_path(options.socket.map(|path| path.to_bytes()), uid).map_err(|error| {
        let path = given(options.socket).escape_ascii();
        NoHost::Unfit(Notice::new(
            NOT_FOUND,
            format_args!("REXEC_SOCKET cannot be used: {error}: {path}"),
            "set REXEC_SOCKET to a shorter path, or unset it",
        ))
    })?;
    // connect(2) reports a missing directory, and also a sandbox that denies it.
    match place::check_directory(place::directory(&path), uid) {
        Ok(()) | Err(PlaceError::Missing | PlaceError::Unreadable(_)) => {}
        Err(error) => return Err(NoHost::Unfit(unfit(&path, error))),
    }
    connect_patiently(&socket, &path)?;
    match sys::peer_uid(&socket) {
        Ok(peer) if peer == uid => Ok(socket),
        Ok(peer) => Err(NoHost::Unfit(Notice::new(
            NOT_FOUND,
            format_args!("the process that listens on {} belongs to another user (uid {peer})", path.display()),
            "start rexec-host as the user you are, with REXEC_SOCKET set to the same path on both sides",
        ))),
        Err(error) => Err(denied(error, &path)),
    }
}

fn connect_patiently(socket: &OwnedFd, path: &Path) -> Result<(), NoHost> {
    let mut retries = 0;
    loop {
        match sys::connect(socket, path.as_os_str().as_bytes()) {
            Ok(()) | Err(Errno::EISCONN) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(Errno::ENOENT | Errno::ECONNREFUSED) if retries < RETRIES_MAX && is_starting(path) => {
                retries += 1;
                sys::pause(RETRY_PAUSE_MS);
            }
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ECONNREFUSED) => {
                return Err(NoHost::Absent(Notice::host_not_found(path)));
            }
            Err(error) => return Err(denied(error, path)),
        }
    }
}

/// Returns true if a host holds the lock although its socket does not answer. It is then about to listen.
fn is_starting(path: &Path) -> bool {
    let lock: PathBuf = place::lock_path(path);
    CString::new(lock.into_os_string().into_vec()).is_ok_and(|lock| sys::is_locked(&lock))
}

#[cold]
fn unfit(path: &Path, error: PlaceError) -> Notice {
    let directory = place::directory(path).display();
    Notice::new(
        NOT_FOUND,
        format_args!("the directory of the host's socket cannot be trusted: {error}: {directory}"),
        "make it a directory of your own with mode 0700 (or set REXEC_SOCKET to a path in one), start rexec-host, \
         then run the command again",
    )
}

#[cold]
fn denied(error: Errno, path: &Path) -> NoHost {
    match error {
        Errno::EPERM | Errno::EACCES | Errno::EAFNOSUPPORT => NoHost::Denied,
        _ => NoHost::Unfit(Notice::new(
            NOT_FOUND,
            format_args!("{} cannot be connected to: {}", path.display(), error.desc()),
            "restart rexec-host in a terminal, then run the command again",
        )),
    }
}
