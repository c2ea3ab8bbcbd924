//! The arguments of this process, which other processes can read (proc_pid_cmdline(5)).
//!
//! A shell that executes a lone command is gone from the process table, so pgrep(1) and pkill(1) never find it there by
//! the command's own words. This process stays, so it hides them.
//!
//! Invariant: everything works with copies, so the area that execve(2) has filled may be overwritten.

use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use nix::libc;

/// The name of this process once it has passed its command on: no name of a shell, and no word of the command.
const NAME: &CStr = c"rexec";

/// The area in which the kernel has put the arguments, and its size in bytes.
static AREA: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
static AREA_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Copies the arguments.
///
/// # Safety
/// `strings` must be the arguments that execve(2) handed over, and nothing else may refer to them.
pub(super) unsafe fn copied(strings: Vec<&CStr>) -> Vec<&'static CStr> {
    let Some(first) = strings.first() else { return Vec::new() };
    let start: *const c_char = first.as_ptr();
    let bytes: Vec<u8> = strings.iter().flat_map(|string| string.to_bytes_with_nul()).copied().collect();
    // They are adjacent, unless somebody has made the list before this program began.
    let places = strings.iter().scan(start, |place, string| {
        let expected = *place;
        *place = expected.wrapping_add(string.count_bytes() + 1);
        Some(expected == string.as_ptr())
    });
    if places.into_iter().all(|is_expected| is_expected) {
        AREA.store(start.cast_mut(), Ordering::Relaxed);
        AREA_BYTES.store(bytes.len(), Ordering::Relaxed);
    }
    let mut rest: &'static [u8] = Vec::leak(bytes);
    let mut copies = Vec::with_capacity(strings.len());
    while let Ok(copy) = CStr::from_bytes_until_nul(rest) {
        copies.push(copy);
        rest = &rest[copy.count_bytes() + 1..];
    }
    copies
}

/// Removes the command from the arguments that others see, and the name of a shell from the name of this process.
pub(crate) fn hide_arguments() {
    let (area, bytes) = (AREA.load(Ordering::Relaxed), AREA_BYTES.load(Ordering::Relaxed));
    let name = NAME.to_bytes();
    // SAFETY: the area belongs to this process and is writable, and only copies of what it held are in use. The last
    // byte stays NUL, so that the kernel does not read on in the environment.
    unsafe {
        if bytes > name.len() {
            ptr::write_bytes(area, 0, bytes);
            ptr::copy_nonoverlapping(NAME.as_ptr(), area, name.len());
        }
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
    }
}
