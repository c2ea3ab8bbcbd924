//! The door: the socket that callers connect to, the lock that makes this process the only host, and the watch that
//! notices when somebody cleans the socket away.
//!
//! Invariants: the socket is bound and removed only while the lock is held, and removed only if it is still ours; the
//! watch is there before the socket, so that no removal goes unseen, and what fails to come back is tried again; an
//! accept that fails for want of descriptors is tried again later and never spins. Callers who are not let in yet wait
//! in the kernel's queue, where they have already connected.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place;

use crate::io::poller::{Poller, Token};
use crate::limits;
use crate::sys::{self, file, process, socket};
use crate::text::reason::reason;

/// The listening socket and what guards it.
#[derive(Debug)]
pub(super) struct Door {
    path: PathBuf,
    lock: file::Lock,
    listener: UnixListener,
    identity: Option<(u64, u64)>,
    watch: Option<sys::watch::Watch>,
    /// The listener's token; events of another one are of a listener that was replaced.
    pub(super) token: Token,
    /// The watch's token.
    pub(super) watch_token: Option<Token>,
    /// When accept(2) is to be tried again although nothing tells so.
    pub(super) retry_at: Option<Instant>,
    /// When the socket, which could not be made again, is to be looked after once more.
    pub(super) restore_at: Option<Instant>,
}

/// What accept gave.
pub(super) enum Arrival {
    /// A connection of our own user.
    Peer(OwnedFd),
    /// Somebody who may not speak with us, already gone.
    TurnedAway,
    /// Nobody more at the moment.
    Nobody,
}

/// Becomes the host of that socket, if nobody is. The lock alone does not tell: somebody may have removed its file from
/// under a host that lives.
pub(super) fn claim(path: &Path) -> Result<file::Lock, Notice> {
    let lock = become_host(path)?;
    if socket::has_listener(path) {
        return Err(another_host(path, "its lock was removed"));
    }
    Ok(lock)
}

fn another_host(path: &Path, which: &str) -> Notice {
    Notice::failed(
        format_args!("another host is already running for {} ({which})", path.display()),
        "use that one, or end it first",
    )
}

/// Takes the lock that makes this process the host of that socket.
pub(super) fn become_host(path: &Path) -> Result<file::Lock, Notice> {
    let directory = place::directory(path);
    file::make_private_directory(directory).map_err(|error| {
        Notice::failed(
            format_args!("the socket's directory {} cannot be made: {}", directory.display(), reason(&error)),
            "set REXEC_SOCKET to a path in a directory that only you can enter",
        )
    })?;
    place::check_directory(directory, process::uid()).map_err(|error| {
        let advice = "set REXEC_SOCKET to a path in a directory that only you can enter";
        Notice::failed(format_args!("{}: {error}", directory.display()), advice)
    })?;
    let lock_path = place::lock_path(path);
    match file::Lock::take(&lock_path) {
        Ok(Some(lock)) => {
            lock.write_pid(std::process::id());
            Ok(lock)
        }
        Ok(None) => {
            let pid = std::fs::read_to_string(&lock_path).unwrap_or_default();
            let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() };
            Err(another_host(path, &format!("process {pid}")))
        }
        Err(error) => Err(Notice::failed(
            format_args!("the lock {} cannot be taken: {}", lock_path.display(), reason(&error)),
            "remove that file if it is not yours, or set REXEC_SOCKET to another path",
        )),
    }
}

impl Door {
    /// Opens the door. A stale socket of ours is replaced; anything else at the path is left alone.
    pub(super) fn open(poller: &mut Poller, path: PathBuf, lock: file::Lock) -> Result<Self, Notice> {
        let failed = |error: &io::Error| {
            Notice::failed(
                format_args!("cannot listen on {}: {}", path.display(), reason(error)),
                "remove what is at that path, or set REXEC_SOCKET to another one",
            )
        };
        let watch = sys::watch::Watch::on(place::directory(&path)).ok();
        let watch_token = watch.as_ref().and_then(|watch| poller.register(watch).ok());
        let listener = bind(&path).map_err(|error| failed(&error))?;
        let token = poller.register(&listener).map_err(|error| failed(&error))?;
        let identity = file::identity(&path);
        Ok(Self { path, lock, listener, identity, watch, token, watch_token, retry_at: None, restore_at: None })
    }

    fn watch_directory(&mut self, poller: &mut Poller) {
        if let Some(watch) = self.watch.take() {
            poller.deregister(&watch);
        }
        self.watch = sys::watch::Watch::on(place::directory(&self.path)).ok();
        self.watch_token = self.watch.as_ref().and_then(|watch| poller.register(watch).ok());
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets one caller in.
    pub(super) fn accept(&mut self, now: Instant) -> Arrival {
        match self.listener.accept() {
            Ok((stream, _)) => {
                let fd = OwnedFd::from(stream);
                let is_ours = socket::peer_uid(&fd).is_ok_and(|uid| uid == process::uid());
                if is_ours && sys::set_nonblocking(&fd).is_ok() { Arrival::Peer(fd) } else { Arrival::TurnedAway }
            }
            Err(error) if error.raw_os_error().is_some_and(sys::is_shortage) && !sys::is_transient(&error) => {
                self.retry_at = Some(now + limits::ACCEPT_RETRY);
                Arrival::Nobody
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Arrival::Nobody,
            // The caller was gone before it was let in.
            Err(_) => Arrival::TurnedAway,
        }
    }

    /// Whether the watch saw something.
    pub(super) fn has_changed(&self) -> bool {
        self.watch.as_ref().is_some_and(sys::watch::Watch::drain)
    }

    /// Makes the socket again if it is gone; tells whether it was.
    pub(super) fn restore(&mut self, poller: &mut Poller) -> Result<bool, Notice> {
        if !self.lock.is_at(&place::lock_path(&self.path)) {
            self.lock = become_host(&self.path)?;
        }
        if self.identity.is_some() && file::identity(&self.path) == self.identity {
            return Ok(false);
        }
        self.watch_directory(poller);
        let listener = bind(&self.path).map_err(|error| {
            Notice::failed(
                format_args!("the socket {} is gone and cannot be made again: {}", self.path.display(), reason(&error)),
                "see to it that its directory can be written; the host tries again every second",
            )
        })?;
        poller.deregister(&self.listener);
        self.listener = listener;
        self.identity = file::identity(&self.path);
        if let Ok(token) = poller.register(&self.listener) {
            self.token = token;
        }
        Ok(true)
    }

    /// Takes the socket away, if it is still ours. Those who have connected can still be let in.
    pub(super) fn hide(&mut self) {
        if self.identity.is_some() && file::identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
        self.identity = None;
    }

    /// Closes the door.
    pub(super) fn close(&mut self, poller: &mut Poller) {
        self.hide();
        poller.deregister(&self.listener);
        (self.retry_at, self.restore_at) = (None, None);
        if let Some(watch) = self.watch.take() {
            poller.deregister(&watch);
        }
    }
}

/// Binds, in place of a socket of ours that nobody listens on any more, and of nothing else. The lock is held, but it may be
/// a new one in the place of one that was removed: then the host before still listens.
fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() || there.uid() != process::uid() || socket::has_listener(path) => {
            Err(io::ErrorKind::AddrInUse.into())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => socket::listen(path),
    }
}
