//! Descriptors that callers have sent, and connections on which they may be waiting.
//!
//! Invariants: the process that holds one never closes it itself where that may wait; a process that is forked while
//! [`are_files_held`] holds may wait when it closes its copies.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::close_kind::CloseKind;
use super::closer;

thread_local! {
    static FILES: Cell<usize> = const { Cell::new(0) };
}

/// A descriptor of a caller. A closer closes it where that may take time.
#[derive(Debug)]
pub struct CallerDescriptor {
    fd: ManuallyDrop<OwnedFd>,
    kind: CloseKind,
}

/// Whether this process holds a descriptor of which each copy may wait when it is closed.
#[must_use]
pub fn are_files_held() -> bool {
    FILES.get() > 0 || !closer::is_done()
}

/// Closes a connection. Descriptors that were sent and not received are closed with it.
pub fn close_connection(fd: OwnedFd) {
    if !super::socket::is_drained(&fd) {
        // It may hold files.
        closer::close(fd, CloseKind::File);
    }
}

impl From<OwnedFd> for CallerDescriptor {
    fn from(fd: OwnedFd) -> Self {
        let kind = CloseKind::of(fd.as_fd());
        FILES.set(FILES.get() + usize::from(kind == CloseKind::File));
        Self { fd: ManuallyDrop::new(fd), kind }
    }
}

impl Drop for CallerDescriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is taken once, here.
        let fd = unsafe { ManuallyDrop::take(&mut self.fd) };
        closer::close(fd, self.kind);
        FILES.set(FILES.get() - usize::from(self.kind == CloseKind::File));
    }
}

impl AsFd for CallerDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for CallerDescriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
