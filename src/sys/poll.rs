//! poll(2) without a time limit, for programs that wait for a few descriptors and have no loop of their own.

use std::io;
use std::os::fd::BorrowedFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits until one of the descriptors can be read or is at its end; says of each whether it is one of those.
///
/// # Errors
/// As poll(2), but for EINTR.
pub fn readable<const N: usize>(descriptors: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
    let mut wanted = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
    super::uninterrupted(|| poll(&mut wanted, PollTimeout::NONE).map_err(super::io))?;
    Ok(wanted.map(|found| found.revents().is_some_and(|events| !events.is_empty())))
}
