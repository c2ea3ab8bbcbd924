//! A descriptor of our own that does not block, with its remembered readiness.

use std::io;
use std::os::fd::OwnedFd;

use super::poller::{Poller, Ready, Token};
use crate::sys;

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// This many bytes; there may be more.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// Nothing ever again: the end, or the hang-up of a terminal.
    End,
}

/// A registered descriptor.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    token: Token,
    readable: bool,
    writable: bool,
}

impl Port {
    /// Registers a descriptor that does not block. It counts as ready until it is tried.
    ///
    /// # Errors
    /// As [`Poller::register`].
    pub fn new(poller: &mut Poller, fd: OwnedFd) -> io::Result<Self> {
        let token = poller.register(&fd)?;
        Ok(Self { fd, token, readable: true, writable: true })
    }

    /// Its name in the poll.
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

    /// Something outside says that it is worth a read.
    pub fn expect_input(&mut self) {
        self.readable = true;
    }

    /// Whether a read may give something.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether a write may take something.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Reads once with this call.
    pub fn read(&mut self, read: impl FnOnce(&OwnedFd) -> io::Result<usize>) -> Input {
        match read(&self.fd) {
            Ok(0) => Input::End,
            Ok(length) => Input::Bytes(length),
            Err(error) if sys::is_transient(&error) => {
                self.readable = false;
                Input::Nothing
            }
            Err(_) => Input::End,
        }
    }

    /// Writes once with this call; `None` when there is no room, an error when there never will be.
    ///
    /// # Errors
    /// What the call gives, but not `WouldBlock`.
    pub fn write(&mut self, write: impl FnOnce(&OwnedFd) -> io::Result<usize>) -> io::Result<Option<usize>> {
        match write(&self.fd) {
            Err(error) if sys::is_transient(&error) => {
                self.writable = false;
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }

    /// Gives the descriptor up, no longer registered.
    #[must_use]
    pub fn into_fd(self, poller: &mut Poller) -> OwnedFd {
        poller.deregister(&self.fd);
        self.fd
    }

    /// Closes the descriptor.
    pub fn close(self, poller: &mut Poller) {
        drop(self.into_fd(poller));
    }
}
