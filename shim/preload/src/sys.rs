//! System calls, and the strings of those who call the C library.
//!
//! Invariant: every function may be called in a child of a program with threads (signal-safety(7)).
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;

use nix::libc;
use rexec_sh::protocol::elf::{HEAD_BYTES, is_loaded};

/// A list of strings as execve(2) takes it: it ends with NULL, and may be NULL itself.
#[derive(Debug, Clone, Copy)]
pub struct Strings {
    next: *const *const c_char,
}

impl Strings {
    /// The strings of a list.
    ///
    /// # Safety
    /// It must be NULL or a list of strings that ends with NULL, and stay unchanged as long as this is used.
    #[must_use]
    pub unsafe fn new(list: *const *const c_char) -> Self {
        Self { next: list }
    }

    /// The list that is left.
    #[must_use]
    pub fn list(self) -> *const *const c_char {
        self.next
    }
}

impl Iterator for Strings {
    type Item = &'static CStr;

    fn next(&mut self) -> Option<&'static CStr> {
        // SAFETY: as `new` asks for; the NULL at the end is not passed.
        let string = unsafe { self.next.as_ref() }.copied().filter(|string| !string.is_null())?;
        // SAFETY: there is one more entry, as this was not the NULL.
        self.next = unsafe { self.next.add(1) };
        // SAFETY: it is a string, as `new` asks for.
        Some(unsafe { CStr::from_ptr(string) })
    }
}

/// The environment of this process.
#[must_use]
pub fn environment() -> Strings {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: it is what execve(2) takes. Who changes it while others read it breaks the rules of setenv(3).
    unsafe { Strings::new(environ) }
}

/// Whether this user may execute the file at a path.
#[must_use]
pub fn is_executable(path: &CStr) -> bool {
    let before = errno();
    // SAFETY: the string ends with NUL.
    let is = unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0;
    set_errno(before);
    is
}

/// Whether standard input is a pipe, or the socket that some have for one.
#[must_use]
pub fn has_piped_input() -> bool {
    let before = errno();
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for a status.
    let found = unsafe { libc::fstat(libc::STDIN_FILENO, status.as_mut_ptr()) } == 0;
    set_errno(before);
    // SAFETY: fstat(2) has filled it.
    found && matches!(unsafe { status.assume_init() }.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
}

/// Whether the loader loads the preload into the program at a path, or the program that a script there names may take it. It
/// does not into one that runs as another user, which would hand on the rest of what `rexec run` has set.
#[must_use]
pub fn takes_preload(path: &CStr) -> bool {
    let before = errno();
    // SAFETY: the string ends with NUL. Opening a FIFO does not wait.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK) };
    if fd < 0 {
        set_errno(before);
        return false;
    }
    let mut status = MaybeUninit::<libc::stat>::uninit();
    let mut head = [0; HEAD_BYTES];
    // SAFETY: there is room for a status, the buffer has this length, and the descriptor was opened here.
    let (found, length) = unsafe {
        let found = libc::fstat(fd, status.as_mut_ptr()) == 0;
        let length = libc::read(fd, head.as_mut_ptr().cast(), head.len());
        libc::close(fd);
        (found, length)
    };
    set_errno(before);
    let head = head.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default();
    // SAFETY: fstat(2) has filled it.
    let is_other_users = !found || unsafe { status.assume_init() }.st_mode & (libc::S_ISUID | libc::S_ISGID) != 0;
    !is_other_users && (head.starts_with(b"#!") || is_loaded(head))
}

/// The path of a file without links, as /proc knows it.
pub fn real_path<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let before = errno();
    // SAFETY: the string ends with NUL.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
    let real = if fd < 0 { None } else { link_of(fd, buffer) };
    if fd >= 0 {
        // SAFETY: it was opened here.
        unsafe { libc::close(fd) };
    }
    set_errno(before);
    real
}

fn link_of(fd: c_int, buffer: &mut [u8]) -> Option<&[u8]> {
    const FOLDER: &[u8] = b"/proc/self/fd/";
    let mut path = *b"/proc/self/fd/0000000000\0";
    let mut rest = fd.unsigned_abs();
    for digit in path[FOLDER.len()..].iter_mut().rev().skip(1) {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    // The kernel takes no leading zeros.
    let zeros = path[FOLDER.len()..path.len() - 2].iter().take_while(|&&digit| digit == b'0').count();
    path.copy_within(FOLDER.len() + zeros.., FOLDER.len());
    read_link(CStr::from_bytes_until_nul(&path).ok()?, buffer)
}

/// The path of the program that this process executes.
pub fn own_program(buffer: &mut [u8]) -> Option<&[u8]> {
    read_link(c"/proc/self/exe", buffer)
}

fn read_link<'b>(path: &CStr, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    // SAFETY: the string ends with NUL, and the buffer has this length.
    let length = unsafe { libc::readlink(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) };
    buffer.get(..usize::try_from(length).ok()?)
}

/// The error of the last call of the C library.
#[must_use]
pub fn errno() -> c_int {
    // SAFETY: it is this thread's own.
    unsafe { *libc::__errno_location() }
}

/// Sets what [`errno`] returns.
pub fn set_errno(error: c_int) {
    // SAFETY: it is this thread's own.
    unsafe { *libc::__errno_location() = error };
}
