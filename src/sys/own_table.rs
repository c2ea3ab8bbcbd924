//! The birth of a guard or a helper while the host holds files of callers.
//!
//! A child of fork(2) has a copy of every descriptor, and closing its copy of a file may take time: each close(2) asks
//! the file's server. So the child shares the host's table at first (CLONE_FILES) and then leaves it with only the
//! lowest numbers (CLOSE_RANGE_UNSHARE): it never has the others. A few low numbers are reserved for its own
//! descriptors.
//!
//! The kernel copies a table in parts of `TABLE_PART` numbers and closes the numbers beyond the kept ones in the last
//! part. So all free numbers of the first part are taken when the host begins.
//!
//! Invariants: a caller's descriptor never has a number in the part that is copied, because that was full when the host
//! began; while a child shares the table, the reserved numbers are its own.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, RawFd};

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{closer, kill, process};
use crate::limits;
use rexec_sh::protocol::process::{Pid, Signal};

/// The most descriptors that a child can keep.
const KEPT_MAX: usize = 2;
/// The number of descriptors that the kernel copies together (`BITS_PER_LONG`, `sane_fdtable_size` of fs/file.c).
const TABLE_PART: RawFd = 64;
/// A process with a lower limit on descriptors keeps none free of callers.
const FILLED_LIMIT_MIN: u64 = 512;

thread_local! {
    static RESERVED: RefCell<Option<Reserved>> = const { RefCell::new(None) };
}

/// The reserved numbers, and their fillers while they are not in use.
#[derive(Debug)]
struct Reserved {
    kept: [RawFd; KEPT_MAX],
    /// The number by which the child reports that it has a table of its own.
    said: RawFd,
    placeholder: File,
}

/// The side of a birth on which this process is.
#[derive(Debug)]
pub(crate) enum Birth {
    /// The child has this number.
    Parent(Pid),
    /// The kept descriptors have these numbers here, in their order.
    Child(Vec<RawFd>),
}

/// Reserves the lowest numbers that are free, and fills the part of the table that a child copies.
///
/// # Errors
/// EMFILE, as open(2).
pub fn reserve() -> io::Result<()> {
    let null = || File::open("/dev/null");
    let kept = [null()?.into_raw_fd(), null()?.into_raw_fd()];
    let said = null()?.into_raw_fd();
    let placeholder = null()?;
    // A host with a low limit needs them. A birth then waits if a caller's file hangs, and is given up.
    while process::descriptor_limit() >= FILLED_LIMIT_MIN {
        let filler = placeholder.try_clone()?;
        if filler.as_raw_fd() >= TABLE_PART {
            break;
        }
        // It lives as long as the host.
        let _ = filler.into_raw_fd();
    }
    RESERVED.set(Some(Reserved { kept, said, placeholder }));
    Ok(())
}

/// Forks a child that has these descriptors, the host's first ones, and none of those that came later.
///
/// # Errors
/// As pipe(2), dup2(2) and fork(2); `WouldBlock` if the child does not begin, and EINVAL for too many descriptors.
pub(crate) fn fork(kept: &[RawFd]) -> io::Result<Birth> {
    RESERVED.with_borrow(|reserved| {
        let reserved = reserved.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        if kept.len() > KEPT_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (hear, say) = super::pipe()?;
        let mut pairs = kept.iter().copied().zip(reserved.kept).chain([(say.as_raw_fd(), reserved.said)]);
        let born = pairs.try_for_each(|(fd, number)| place(fd, number)).and_then(|()| closer::clone_with_table());
        if matches!(born, Ok(0)) {
            leave_table(reserved.said);
            // Their numbers mean nothing here any more.
            std::mem::forget((hear, say));
            return Ok(Birth::Child(reserved.kept[..kept.len()].to_vec()));
        }
        let has_left = born.and_then(|child| wait_for(Pid::new(child), &hear));
        for number in reserved.kept.into_iter().chain([reserved.said]) {
            let _ = place(reserved.placeholder.as_raw_fd(), number);
        }
        has_left.map(Birth::Parent)
    })
}

/// Gives a number the meaning of this descriptor. Nothing may own its earlier meaning.
pub(super) fn place(fd: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: the caller says so.
    super::check(unsafe { libc::dup3(fd, number, libc::O_CLOEXEC) }).map(drop)
}

/// In the child: keeps the descriptors up to `said`, the last of the reserved numbers, and reports that.
fn leave_table(said: RawFd) {
    // SAFETY: the calls take numbers and a byte. The owners of the other descriptors are never dropped in this process.
    unsafe {
        let left = libc::syscall(libc::SYS_close_range, said + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE);
        if left != 0 || libc::write(said, c"+".as_ptr().cast(), 1) != 1 {
            process::exit(1);
        }
    }
}

/// In the host: waits until the child has a table of its own.
fn wait_for(child: Pid, hear: &impl AsFd) -> io::Result<Pid> {
    let patience = PollTimeout::try_from(limits::OWN_TABLE_PATIENCE).unwrap_or(PollTimeout::ZERO);
    let mut said = [PollFd::new(hear.as_fd(), PollFlags::POLLIN)];
    let is_said = super::uninterrupted(|| poll(&mut said, patience).map_err(super::io)).is_ok_and(|ready| ready > 0);
    if is_said {
        return Ok(child);
    }
    let _ = kill::process(child, Signal::KILL);
    Err(io::Error::from_raw_os_error(libc::EAGAIN))
}
