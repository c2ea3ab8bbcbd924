//! The poll: the only call of the host that sleeps.

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll};

/// A registration's name, never used again: a late event for something gone finds nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(usize);

/// Which ways may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// Whose.
    pub token: Token,
    /// There may be something to read, or an end, or an error.
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
    /// EMFILE or ENFILE.
    pub fn new() -> io::Result<Self> {
        Ok(Self { poll: Poll::new()?, events: Events::with_capacity(256), last: 0 })
    }

    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    /// EPERM for a regular file, ENOMEM or ENOSPC when the system has no room.
    pub fn register(&mut self, fd: &impl AsRawFd) -> io::Result<Token> {
        self.last += 1;
        let raw = fd.as_raw_fd();
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&raw), mio::Token(self.last), both)?;
        Ok(Token(self.last))
    }

    /// Removes a registration. The descriptor must still be open: a copy of it in another process would otherwise
    /// keep the registration alive.
    pub fn deregister(&mut self, fd: &impl AsRawFd) {
        // It fails only for what is not registered.
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd.as_raw_fd()));
    }

    /// Sleeps until something may be ready or the time is over, and gives what may be.
    ///
    /// # Errors
    /// As epoll_wait(2), but an interruption is no error.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        self.events.clear();
        match self.poll.poll(&mut self.events, timeout) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        // Ends and errors count as both: reading or writing is how they are found out.
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
