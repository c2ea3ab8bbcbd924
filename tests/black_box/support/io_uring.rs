//! A descriptor that the kernel lets through no socket.
#![expect(unsafe_code, reason = "the C library has no function for it")]

use std::os::fd::{FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc;

use super::programs::skipped;

/// The size of a struct io_uring_params, bytes.
const PARAMETERS_BYTES: usize = 120;

/// A new io_uring. `None` where the system allows none, which is said.
pub(crate) fn io_uring() -> Option<OwnedFd> {
    let mut parameters = [0_u64; PARAMETERS_BYTES / 8];
    // SAFETY: the kernel reads and writes one struct io_uring_params, and zeros are valid ones.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr()) };
    let Some(fd) = i32::try_from(fd).ok().filter(|fd| *fd >= 0) else {
        skipped(&format!("no io_uring can be made: {}", Errno::last()));
        return None;
    };
    // SAFETY: the kernel just made it for us.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}
