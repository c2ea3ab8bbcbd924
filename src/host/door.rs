//! The door: the socket that callers connect to, the lock that makes this process the only host, and the watch that
//! notices when the socket's file is removed.
//!
//! Invariants: the socket is bound and removed only while the lock is held, and removed only if it is still this host's;
//! the watch is there before the socket, so that every removal is seen, and a socket that cannot be made again is tried
//! again; an accept(2) that fails for lack of descriptors is tried again later and never spins. Callers that are not
//! accepted yet wait in the kernel's queue, where they have already connected.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use crate::text::safe_text::SafeText;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::place;
use rexec_sh::protocol::process::Pid;

use super::screen::Screen;
use super::turn::{Source, Turn};
use crate::io::poller::{Poller, Token};
use crate::limits;
use crate::sys::close_kind::CloseKind;
use crate::sys::{self, caller_descriptor, closer, file, process, socket, tree};
use crate::text::reason::reason;

#[derive(Debug)]
pub(super) struct Door {
    path: PathBuf,
    lock: file::Lock,
    listener: UnixListener,
    identity: Option<(u64, u64)>,
    watch: Option<sys::watch::Watch>,
    /// The listener's registration. Events of another one come from a listener that was replaced.
    token: Token,
    watch_token: Option<Token>,
    /// The next attempt to accept(2), although no event reports a caller.
    retry_at: Option<Instant>,
    /// The next attempt to make the socket again.
    restore_at: Option<Instant>,
    is_closed: bool,
}

/// The outcome of one accept(2).
pub(super) enum Arrival {
    /// A connection of the host's own user.
    Peer(OwnedFd),
    /// A connection that is closed already: another user's, or one that its caller gave up.
    TurnedAway,
    /// Nobody waits.
    Nobody,
}

/// Becomes the host of a socket, unless there is one. The lock alone proves nothing, because its file may have been
/// removed while its host lives.
pub(super) fn claim(path: &Path) -> Result<file::Lock, Notice> {
    let lock = become_next_host(path)?;
    if socket::has_listener(path, lives) {
        return Err(another_host(path, "its lock was removed"));
    }
    Ok(lock)
}

/// Takes the lock. The children of a host that was killed may hold it a moment longer than the host, and a closer for as
/// long as the server does not answer that it waits for. Then the lock becomes another file.
#[expect(clippy::disallowed_methods, reason = "this host has no loop yet that could wait")]
fn become_next_host(path: &Path) -> Result<file::Lock, Notice> {
    let until = Instant::now() + limits::LOCK_PATIENCE;
    loop {
        let result = become_host(path);
        if result.is_ok() || !is_of_dead_host(path) {
            return result;
        }
        if Instant::now() >= until {
            put_lock_aside(path);
            return become_host(path);
        }
        thread::sleep(limits::LOCK_STEP);
    }
}

fn is_of_dead_host(path: &Path) -> bool {
    names_dead_host(&place::lock_path(path))
}

fn names_dead_host(lock: &Path) -> bool {
    let named = std::fs::read_to_string(lock).ok().and_then(|text| text.trim().parse().ok());
    named.is_some_and(|pid: i32| !lives(Pid::new(pid)))
}

fn lives(pid: Pid) -> bool {
    tree::process(pid).is_some_and(|process| !process.is_zombie)
}

/// Moves the lock of a dead host away. Another host that has waited, too, may have put a new one there in between: its
/// lock goes back to its place.
fn put_lock_aside(path: &Path) {
    let lock = place::lock_path(path);
    let aside = lock.with_extension(format!("dead-{}", process::pid()));
    if std::fs::rename(&lock, &aside).is_err() {
        return;
    }
    if !names_dead_host(&aside) {
        // Without it, that host would make another lock as soon as it looks.
        let _ = std::fs::hard_link(&aside, &lock);
    }
    let _ = std::fs::remove_file(&aside);
}

fn another_host(path: &Path, which: &str) -> Notice {
    Notice::failed(
        format_args!("another host is already running for {} ({which})", path.display()),
        "use that one, or end it first",
    )
}

/// Takes the lock that makes this process the host of a socket.
fn become_host(path: &Path) -> Result<file::Lock, Notice> {
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
    /// Opens the socket. A stale socket of this user is replaced; anything else at the path is left alone.
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
        let (retry_at, restore_at, is_closed) = (None, None, false);
        Ok(Self { path, lock, listener, identity, watch, token, watch_token, retry_at, restore_at, is_closed })
    }

    pub(super) fn name_sources(&self, turn: &mut Turn) {
        turn.name(self.token, Source::Door);
        if let Some(token) = self.watch_token {
            turn.name(token, Source::Watch);
        }
    }

    fn watch_directory(&mut self, poller: &mut Poller) {
        if let Some(watch) = self.watch.take() {
            poller.deregister(&watch);
        }
        self.watch = sys::watch::Watch::on(place::directory(&self.path)).ok();
        self.watch_token = self.watch.as_ref().and_then(|watch| poller.register(watch).ok());
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn accept(&mut self, now: Instant) -> Arrival {
        match self.listener.accept() {
            Ok((stream, _)) => {
                let fd = OwnedFd::from(stream);
                let is_ours = socket::peer_uid(&fd).is_ok_and(|uid| uid == process::uid());
                if is_ours && sys::set_nonblocking(&fd).is_ok() {
                    return Arrival::Peer(fd);
                }
                caller_descriptor::close_connection(fd);
                Arrival::TurnedAway
            }
            Err(error) if error.raw_os_error().is_some_and(sys::is_shortage) && !sys::is_transient(&error) => {
                self.retry_at = Some(now + limits::ACCEPT_RETRY);
                Arrival::Nobody
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Arrival::Nobody,
            // The caller was gone before it was accepted.
            Err(_) => Arrival::TurnedAway,
        }
    }

    /// Tries accept(2) again in a while, because there is no room for more callers now.
    pub(super) fn retry_later(&mut self, now: Instant) {
        self.retry_at = Some(now + limits::ACCEPT_RETRY);
    }

    /// A caller has left. If others wait for room, the next intake tries accept(2).
    pub(super) fn on_room(&mut self, turn: &mut Turn) {
        if self.retry_at.take().is_some() {
            turn.queue(self.token);
        }
    }

    /// When [`Door::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.retry_at.into_iter().chain(self.restore_at).min()
    }

    pub(super) fn tick(&mut self, turn: &mut Turn, screen: &mut Screen) {
        if self.retry_at.is_some_and(|at| at <= turn.now) {
            self.on_room(turn);
        }
        if self.restore_at.is_some_and(|at| at <= turn.now) {
            self.check(turn, screen);
        }
    }

    /// Something changed in the socket's directory.
    pub(super) fn visit_watch(&mut self, turn: &mut Turn, screen: &mut Screen) {
        if self.watch.as_ref().is_some_and(sys::watch::Watch::drain) {
            self.check(turn, screen);
        }
    }

    /// Makes the socket again if it is gone.
    pub(super) fn check(&mut self, turn: &mut Turn, screen: &mut Screen) {
        if self.is_closed {
            return;
        }
        let before = [Some(self.token), self.watch_token];
        let has_failed = self.restore_at.take().is_some();
        let line = match self.restore(&mut turn.poller) {
            Ok(false) => return,
            Ok(true) => {
                SafeText::from(format_args!("… the socket was removed and is there again: {}", self.path.display()))
            }
            Err(notice) => {
                self.restore_at = Some(turn.now + limits::SOCKET_RETRY);
                SafeText::from(&notice)
            }
        };
        let is_told = has_failed && self.restore_at.is_some();
        before.into_iter().flatten().for_each(|token| turn.forget(token));
        self.name_sources(turn);
        turn.queue(self.token);
        if !is_told {
            screen.say(line);
        }
    }

    /// Makes the socket again if it is gone. Returns true if it was.
    fn restore(&mut self, poller: &mut Poller) -> Result<bool, Notice> {
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
        // Callers that were not accepted are closed with it.
        closer::close(std::mem::replace(&mut self.listener, listener).into(), CloseKind::File);
        self.identity = file::identity(&self.path);
        if let Ok(token) = poller.register(&self.listener) {
            self.token = token;
        }
        Ok(true)
    }

    /// Removes the socket's file, if it is still this host's. Callers that have connected can still be accepted.
    pub(super) fn hide(&mut self, turn: &mut Turn) {
        self.is_closed = true;
        turn.forget(self.token);
        self.remove_file();
    }

    fn remove_file(&mut self) {
        if self.identity.is_some() && file::identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
        self.identity = None;
    }

    pub(super) fn close(&mut self, poller: &mut Poller) {
        self.is_closed = true;
        self.remove_file();
        poller.deregister(&self.listener);
        (self.retry_at, self.restore_at) = (None, None);
        if let Some(watch) = self.watch.take() {
            poller.deregister(&watch);
        }
    }
}

/// Binds the socket. Only a socket of this user without a listener is replaced. This host holds the lock, but that may
/// be a new file in the place of one that was removed: then the host before may still listen.
fn bind(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    match std::fs::symlink_metadata(path) {
        Ok(there)
            if !there.file_type().is_socket() || there.uid() != process::uid() || socket::has_listener(path, lives) =>
        {
            Err(io::ErrorKind::AddrInUse.into())
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => socket::listen(path),
    }
}
