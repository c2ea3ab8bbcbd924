//! Watches a directory for entries that come and go, without a timer (inotify(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::Path;

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// A watch on one directory.
#[derive(Debug)]
pub struct Watch(Inotify);

impl Watch {
    /// Watches a directory for new and removed entries, for changes of their modes and links, and for its own removal.
    ///
    /// # Errors
    /// EMFILE or ENOSPC, as inotify_init(2) and inotify_add_watch(2).
    pub fn on(directory: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).map_err(super::io)?;
        let events = AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVED_FROM
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF;
        inotify.add_watch(directory, events).map_err(super::io)?;
        Ok(Self(inotify))
    }

    /// Reads all events. Returns true if there was one.
    pub fn drain(&self) -> bool {
        let mut seen = false;
        while self.0.read_events().is_ok_and(|events| !events.is_empty()) {
            seen = true;
        }
        seen
    }
}

impl AsRawFd for Watch {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}
