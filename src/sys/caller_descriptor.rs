//! Descriptors that callers have sent, and connections on which they may be waiting.
//!
//! Invariants: the holder of one never closes it itself if that may wait; a process forked while
//! [`are_slow_held`] returns true may wait when it closes its copies.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use super::close_kind::{CloseKind, is_local_socket};
use super::closer;

thread_local! {
    /// The number of held descriptors for which [`is_slow`] returns true.
    static SLOW: Cell<usize> = const { Cell::new(0) };
}

/// A caller's descriptor. A closer closes it if that may take time.
#[derive(Debug)]
pub struct CallerDescriptor {
    fd: ManuallyDrop<OwnedFd>,
    kind: CloseKind,
    is_slow: bool,
}

/// Returns true if this process holds a descriptor whose copy may make another process wait when it closes that.
#[must_use]
pub fn are_slow_held() -> bool {
    SLOW.get() > 0 || !closer::is_done()
}

/// Returns true if closing a copy may wait: each copy of a file, and the last one of a connection to another machine.
fn is_slow(fd: BorrowedFd<'_>, kind: CloseKind) -> bool {
    match kind {
        CloseKind::AtOnce => false,
        CloseKind::Socket => !is_local_socket(fd),
        CloseKind::File => true,
    }
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
        let is_slow = is_slow(fd.as_fd(), kind);
        SLOW.set(SLOW.get() + usize::from(is_slow));
        Self { fd: ManuallyDrop::new(fd), kind, is_slow }
    }
}

impl Drop for CallerDescriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is taken once, here.
        let fd = unsafe { ManuallyDrop::take(&mut self.fd) };
        closer::close(fd, self.kind);
        SLOW.set(SLOW.get() - usize::from(self.is_slow));
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
