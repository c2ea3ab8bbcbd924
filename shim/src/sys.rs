//! Every system call of the shim, and its C `main`. No other file of the shim has unsafe code.
//!
//! The shim runs without the Rust runtime. The runtime would open closed descriptors 0 to 2 at its start, would ignore
//! SIGPIPE, and takes 65,000 instructions. A command must find descriptors and signals as its caller left them.
//!
//! Invariants: the process has one thread; nothing changes the environment or the copies of the arguments, so they live as
//! long as the process; every descriptor made here is close-on-exec; no flag of an inherited descriptor is ever changed.
#![expect(unsafe_code, reason = "system calls")]

mod arena;
mod arguments;
mod child;
mod file;
mod inherited;
mod process;
mod signal;
mod socket;
mod terminal;

use std::ffi::{CStr, c_char, c_int, c_long};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

pub(crate) use arguments::hide_arguments;
pub(crate) use child::*;
pub(crate) use file::*;
pub(crate) use inherited::*;
pub(crate) use process::*;
pub(crate) use signal::*;
pub(crate) use socket::*;
pub(crate) use terminal::*;

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// The C runtime's entry.
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
    let argc = usize::try_from(argc).unwrap_or(0);
    // SAFETY: execve(2) hands over `argc` strings and a NULL in `argv`, and strings up to a NULL in `envp`; nobody
    // changes those of `envp`, and only copies of those in `argv` are kept.
    let (argv, env) = unsafe { (arguments::copied(strings(argv, argc)), strings(envp, usize::MAX)) };
    crate::run(&argv, &env)
}

/// # Safety
/// `list` must have `most` strings, or strings up to a NULL, and they must live unchanged as long as the result.
unsafe fn strings(list: *const *const c_char, most: usize) -> Vec<&'static CStr> {
    let mut found = Vec::with_capacity(64);
    while found.len() < most {
        // SAFETY: neither the end nor the NULL has been passed.
        let string = unsafe { *list.add(found.len()) };
        if string.is_null() {
            break;
        }
        // SAFETY: it is a NUL-terminated string that lives forever.
        found.push(unsafe { CStr::from_ptr(string) });
    }
    found
}

fn check(result: c_long) -> Result<c_long> {
    if result < 0 { Err(Errno::last()) } else { Ok(result) }
}

fn check_size(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Errno::last())
}

fn own(result: c_long) -> Result<OwnedFd> {
    let fd = RawFd::try_from(check(result)?).expect("a descriptor is an int");
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
