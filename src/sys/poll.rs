//! poll(2), for programs that wait for a few descriptors and do not have the host's loop.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

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

/// As [`readable`], for this long at most.
///
/// # Errors
/// As poll(2), but for EINTR.
pub fn readable_within<const N: usize>(descriptors: [BorrowedFd<'_>; N], most: Duration) -> io::Result<[bool; N]> {
    let watched = descriptors.map(|descriptor| Watched { descriptor, reads: true, writes: false });
    let mut found = ready(&watched, Some(most))?.into_iter();
    Ok(descriptors.map(|_| found.next().is_some_and(|found| found.readable)))
}

/// A descriptor that is waited for.
#[derive(Debug)]
pub struct Watched<'a> {
    /// The descriptor.
    pub descriptor: BorrowedFd<'a>,
    /// Wait until it can be read.
    pub reads: bool,
    /// Wait until it can be written.
    pub writes: bool,
}

/// What a descriptor is ready for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Readiness {
    /// It can be read, or it is over.
    pub readable: bool,
    /// It can be written, or it is over.
    pub writable: bool,
    /// Its other side is gone, or it has failed. There may still be something to read.
    pub is_over: bool,
}

/// Waits until one of these is ready or the time is over; says of each what it is ready for. That a descriptor is over
/// is found whatever it waits for.
///
/// # Errors
/// As poll(2), but for EINTR, which counts as nothing ready.
pub fn ready(watched: &[Watched<'_>], most: Option<Duration>) -> io::Result<Vec<Readiness>> {
    let wanted = watched.iter().map(|watched| {
        let mut events = PollFlags::empty();
        events.set(PollFlags::POLLIN, watched.reads);
        events.set(PollFlags::POLLOUT, watched.writes);
        PollFd::new(watched.descriptor, events)
    });
    let mut wanted: Vec<PollFd<'_>> = wanted.collect();
    // A wait of a part of a millisecond is one of a whole one.
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
