//! poll(2), for programs that wait for a few descriptors and do not have the host's loop.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits until one of the descriptors can be read or is at its end. Returns true for each such one.
///
/// # Errors
/// As poll(2), except EINTR.
pub fn readable<const N: usize>(descriptors: [BorrowedFd<'_>; N]) -> io::Result<[bool; N]> {
    let mut wanted = descriptors.map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
    super::uninterrupted(|| poll(&mut wanted, PollTimeout::NONE).map_err(super::io))?;
    Ok(wanted.map(|found| found.revents().is_some_and(|events| !events.is_empty())))
}

/// As [`readable`], for at most this long.
///
/// # Errors
/// As poll(2), except EINTR.
pub fn readable_within<const N: usize>(descriptors: [BorrowedFd<'_>; N], most: Duration) -> io::Result<[bool; N]> {
    let watched = descriptors.map(|descriptor| Watched { descriptor, reads: true, writes: false });
    let mut found = ready(&watched, Some(most))?.into_iter();
    Ok(descriptors.map(|_| found.next().is_some_and(|found| found.readable)))
}

#[derive(Debug)]
pub struct Watched<'a> {
    pub descriptor: BorrowedFd<'a>,
    pub reads: bool,
    pub writes: bool,
}

/// The readiness of a descriptor.
#[derive(Debug, Clone, Copy, Default)]
pub struct Readiness {
    /// It can be read, or it is over.
    pub readable: bool,
    /// It can be written, or it is over.
    pub writable: bool,
    /// Its other side is gone, or it has failed. There may still be something to read.
    pub is_over: bool,
}

/// Waits until one of these is ready or the time is over; returns the readiness of each. The end of a descriptor is
/// found in any case.
///
/// # Errors
/// As poll(2), except EINTR, which counts as nothing ready.
pub fn ready(watched: &[Watched<'_>], most: Option<Duration>) -> io::Result<Vec<Readiness>> {
    let wanted = watched.iter().map(|watched| {
        let mut events = PollFlags::empty();
        events.set(PollFlags::POLLIN, watched.reads);
        events.set(PollFlags::POLLOUT, watched.writes);
        PollFd::new(watched.descriptor, events)
    });
    let mut wanted: Vec<PollFd<'_>> = wanted.collect();
    // A fraction of a millisecond is rounded up.
    let timeout = most.map_or(PollTimeout::NONE, |most| {
        PollTimeout::try_from(most + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut wanted, timeout) {
        Err(nix::errno::Errno::EINTR) => return Ok(vec![Readiness::default(); watched.len()]),
        answer => answer.map_err(super::io)?,
    };
    let found = wanted.iter().map(|found| {
        let events = found.revents().unwrap_or(PollFlags::empty());
        let is_over = events.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL);
        let (readable, writable) = (events.contains(PollFlags::POLLIN), events.contains(PollFlags::POLLOUT));
        Readiness { readable: readable || is_over, writable: writable || is_over, is_over }
    });
    Ok(found.collect())
}
