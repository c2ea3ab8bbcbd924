//! The poll: the only call of the host that sleeps.

use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry};

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
    registry: Rc<Registry>,
    events: Events,
    last: usize,
}

impl Poller {
    /// A poll without registrations.
    ///
    /// # Errors
    /// EMFILE or ENFILE, as epoll_create(2).
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = Rc::new(poll.registry().try_clone()?);
        Ok(Self { poll, registry, events: Events::with_capacity(256), last: 0 })
    }

    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    /// As epoll_ctl(2): EPERM for a regular file, ENOMEM or ENOSPC when the system has no room.
    pub fn register(&mut self, fd: &impl AsRawFd) -> io::Result<Token> {
        let (token, mut room) = self.register_reader(fd)?;
        room.begin(fd, token);
        Ok(token)
    }

    /// Registers a descriptor for reading, and for writing from the first [`RoomWatch::begin`] on.
    ///
    /// # Errors
    /// As [`Poller::register`].
    pub fn register_reader(&mut self, fd: &impl AsRawFd) -> io::Result<(Token, RoomWatch)> {
        self.last += 1;
        let raw = fd.as_raw_fd();
        self.registry.register(&mut SourceFd(&raw), mio::Token(self.last), Interest::READABLE)?;
        Ok((Token(self.last), RoomWatch { registry: Rc::clone(&self.registry), has_begun: false }))
    }

    /// Removes a registration. The descriptor must still be open. If it were closed first, a copy of it in another
    /// process would keep the registration alive.
    pub fn deregister(&mut self, fd: &impl AsRawFd) {
        // It fails only for a descriptor that is not registered.
        let _ = self.registry.deregister(&mut SourceFd(&fd.as_raw_fd()));
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

/// The watch for room to write. It begins when there was none for the first time: otherwise everything that the other
/// side reads would wake the host.
#[derive(Debug)]
pub struct RoomWatch {
    registry: Rc<Registry>,
    has_begun: bool,
}

impl RoomWatch {
    /// Events tell of room from now on, and of room that has come meanwhile.
    pub fn begin(&mut self, fd: &impl AsRawFd, token: Token) {
        if !self.has_begun {
            let (raw, both) = (fd.as_raw_fd(), Interest::READABLE | Interest::WRITABLE);
            self.has_begun = self.registry.reregister(&mut SourceFd(&raw), mio::Token(token.0), both).is_ok();
        }
    }
}
