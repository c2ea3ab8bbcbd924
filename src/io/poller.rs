//! The poll: the only call of the host that sleeps.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll};

/// The number of a registration, never used again, so that a late event of a closed descriptor finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(usize);

/// An event: what a registration may be ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The registration.
    pub token: Token,
    /// There may be something to read, an end or an error.
    pub readable: bool,
    /// There may be room to write, or an error.
    pub writable: bool,
}

/// mio's poll with tokens that are never used again.
#[derive(Debug)]
pub struct Poller {
    poll: Poll,
    events: Events,
    last: usize,
}

impl Poller {
    /// A poll without registrations.
    ///
    /// # Errors
    /// EMFILE or ENFILE, as epoll_create(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self { poll: Poll::new()?, events: Events::with_capacity(256), last: 0 })
    }

    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    /// As epoll_ctl(2): EPERM for a regular file, ENOMEM or ENOSPC when the system has no room.
    pub fn register(&mut self, fd: &impl AsRawFd) -> io::Result<Token> {
        self.last += 1;
        let raw = fd.as_raw_fd();
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&raw), mio::Token(self.last), both)?;
        Ok(Token(self.last))
    }

    /// Removes a registration. The descriptor must still be open. If it were closed first, a copy of it in another
    /// process would keep the registration alive.
    pub fn deregister(&mut self, fd: &impl AsRawFd) {
        // It fails only for a descriptor that is not registered.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd.as_raw_fd()));
    }

    /// Sleeps until something may be ready or the time is over. Returns the events.
    ///
    /// # Errors
    /// As epoll_wait(2), other than EINTR.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        self.events.clear();
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        // An end or an error counts as both, because it is found out by reading or writing.
        Ok(self.events.iter().map(|event| {
            let over = event.is_read_closed() || event.is_write_closed() || event.is_error();
            Ready {
                token: Token(event.token().0),
                readable: event.is_readable() || over,
                writable: event.is_writable() || over,
            }
        }))
    }
}
