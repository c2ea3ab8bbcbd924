//! A port: a non-blocking descriptor of the host, with its remembered readiness.

use std::io;
use std::os::fd::OwnedFd;

use super::poller::{Poller, Ready, RoomWatch, Token};
use crate::sys;

/// The outcome of one read.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// This many bytes were read, and there may be more.
    Bytes(usize),
    /// There is nothing to read now.
    Nothing,
    /// There never will be: the end was read, or the terminal hung up.
    End,
}

/// A registered descriptor.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    token: Token,
    room: RoomWatch,
    readable: bool,
    writable: bool,
}

impl Port {
    /// Registers a non-blocking descriptor. If there is something to read already, an event says so. It counts as
    /// writable until a write finds that it is not.
    ///
    /// # Errors
    /// As [`Poller::register`].
    pub fn new(poller: &mut Poller, fd: OwnedFd) -> io::Result<Self> {
        let (token, room) = poller.register_reader(&fd)?;
        Ok(Self { fd, token, room, readable: false, writable: true })
    }

    /// The same, but a descriptor that cannot be registered is given back.
    ///
    /// # Errors
    /// The descriptor.
    pub fn new_or_back(poller: &mut Poller, fd: OwnedFd) -> Result<Self, OwnedFd> {
        match poller.register_reader(&fd) {
            Ok((token, room)) => Ok(Self { fd, token, room, readable: false, writable: true }),
            Err(_) => Err(fd),
        }
    }

    /// The registration.
    #[must_use]
    pub fn token(&self) -> Token {
        self.token
    }

    /// The descriptor.
    #[must_use]
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Remembers an event.
    pub fn remember(&mut self, ready: Ready) {
        self.readable |= ready.readable;
        self.writable |= ready.writable;
    }

    /// Counts the descriptor as readable, for a reason other than an event.
    pub fn expect_input(&mut self) {
        self.readable = true;
    }

    /// Whether a read may return something.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether a write may take something.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Reads once with this call, which is repeated when a signal interrupts it.
    pub fn read(&mut self, mut read: impl FnMut(&OwnedFd) -> io::Result<usize>) -> ReadOutcome {
        match sys::uninterrupted(|| read(&self.fd)) {
            Ok(0) => ReadOutcome::End,
            Ok(length) => ReadOutcome::Bytes(length),
            Err(error) if sys::is_transient(&error) => {
                self.readable = false;
                ReadOutcome::Nothing
            }
            Err(_) => ReadOutcome::End,
        }
    }

    /// Writes once with this call, which is repeated when a signal interrupts it. `None` when there is no room now.
    ///
    /// # Errors
    /// Those of the call, other than `WouldBlock` and `Interrupted`.
    pub fn write(&mut self, mut write: impl FnMut(&OwnedFd) -> io::Result<usize>) -> io::Result<Option<usize>> {
        match sys::uninterrupted(|| write(&self.fd)) {
            Err(error) if sys::is_transient(&error) => {
                self.writable = false;
                self.room.begin(&self.fd, self.token);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Removes the registration. The descriptor stays open.
    pub fn release(self, poller: &mut Poller) -> OwnedFd {
        poller.deregister(&self.fd);
        self.fd
    }

    /// Removes the registration and closes the descriptor.
    pub fn close(self, poller: &mut Poller) {
        poller.deregister(&self.fd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_call_is_repeated_and_leaves_readiness_alone() {
        let mut poller = Poller::new().unwrap();
        let mut port = Port::new(&mut poller, sys::pipe().unwrap().0).unwrap();
        port.expect_input();
        let script = |results: [Result<usize, io::ErrorKind>; 2]| {
            let mut results = results.into_iter();
            move |_: &OwnedFd| results.next().expect("two calls").map_err(io::Error::from)
        };
        assert_eq!(port.read(script([Err(io::ErrorKind::Interrupted), Ok(3)])), ReadOutcome::Bytes(3));
        assert!(port.is_readable());
        let written = port.write(script([Err(io::ErrorKind::Interrupted), Ok(5)]));
        assert_eq!((written.unwrap(), port.is_writable()), (Some(5), true));
        assert_eq!(port.read(script([Err(io::ErrorKind::WouldBlock), Ok(1)])), ReadOutcome::Nothing);
        assert!(!port.is_readable());
    }
}
