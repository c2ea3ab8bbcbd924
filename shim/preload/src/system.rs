//! Stands in the place of system(3), which starts its shell where no preload sees it.
//!
//! Invariants: while any caller waits, SIGINT and SIGQUIT are ignored, and SIGCHLD is blocked in its thread; after the last
//! one they are as before. Two threads that begin or end at once wait for each other, as in the C library.
#![expect(unsafe_code, reason = "a function of the C library")]

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute, zeroed};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{self, pid_t, posix_spawnattr_t, sigaction, sigset_t};

use crate::calls::{SYSTEM, posix_spawn, told};
use crate::sys;

/// The signals that a terminal sends to a shell and to who waits for it.
const KEYS: [c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// What signals did before somebody waited.
struct Before {
    is_busy: AtomicBool,
    state: UnsafeCell<(usize, [MaybeUninit<sigaction>; 2])>,
}

// SAFETY: `with` gives the state to one thread at a time.
unsafe impl Sync for Before {}

static BEFORE: Before =
    Before { is_busy: AtomicBool::new(false), state: UnsafeCell::new((0, [const { MaybeUninit::uninit() }; 2])) };

impl Before {
    fn with<R>(&self, act: impl FnOnce(&mut usize, &mut [MaybeUninit<sigaction>; 2]) -> R) -> R {
        while self.is_busy.swap(true, Ordering::Acquire) {
            // SAFETY: it takes nothing.
            unsafe { libc::sched_yield() };
        }
        // SAFETY: nobody else has it.
        let (waiting, actions) = unsafe { &mut *self.state.get() };
        let result = act(waiting, actions);
        self.is_busy.store(false, Ordering::Release);
        result
    }

    /// Somebody begins to wait. Returns the signals that the shell must not ignore.
    fn begin(&self) -> sigset_t {
        self.with(|waiting, actions| {
            let mut default = empty();
            for (signal, action) in KEYS.into_iter().zip(actions) {
                if *waiting == 0 {
                    // SAFETY: an action of zeros with this handler is a whole one, and there is room for the one before.
                    unsafe {
                        let mut ignore: sigaction = zeroed();
                        ignore.sa_sigaction = libc::SIG_IGN;
                        libc::sigaction(signal, &raw const ignore, action.as_mut_ptr());
                    }
                }
                // SAFETY: the first who waits has filled it.
                let handler = unsafe { action.assume_init_ref() }.sa_sigaction;
                if handler != libc::SIG_IGN {
                    // SAFETY: it is a set and a signal.
                    unsafe { libc::sigaddset(&raw mut default, signal) };
                }
            }
            *waiting += 1;
            default
        })
    }

    fn end(&self) {
        self.with(|waiting, actions| {
            *waiting -= 1;
            for (signal, action) in KEYS.into_iter().zip(actions).filter(|_| *waiting == 0) {
                // SAFETY: `begin` has filled it.
                unsafe { libc::sigaction(signal, action.as_ptr(), ptr::null_mut()) };
            }
        });
    }
}

fn empty() -> sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset(3) fills the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// As system(3).
///
/// # Safety
/// As system(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn system(command: *const c_char) -> c_int {
    // SAFETY: it is of this type; a null pointer is `None`.
    let real = unsafe { transmute::<*mut c_void, Option<unsafe extern "C" fn(*const c_char) -> c_int>>(SYSTEM.get()) };
    match real {
        // SAFETY: as the caller says.
        Some(real) if command.is_null() || told().is_none() => unsafe { real(command) },
        _ => run(command),
    }
}

fn run(command: *const c_char) -> c_int {
    let default = BEFORE.begin();
    let (mut blocked, mut mask) = (empty(), empty());
    let mut attributes = MaybeUninit::<posix_spawnattr_t>::uninit();
    let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
    let argv = [c"sh".as_ptr(), c"-c".as_ptr(), command, ptr::null()];
    let mut pid: pid_t = 0;
    let mut status = -1;
    // SAFETY: all that is handed over lives here; posix_spawnattr_init(3) fills the attributes.
    unsafe {
        libc::sigaddset(&raw mut blocked, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut mask);
        libc::posix_spawnattr_init(attributes.as_mut_ptr());
        libc::posix_spawnattr_setsigmask(attributes.as_mut_ptr(), &raw const mask);
        libc::posix_spawnattr_setsigdefault(attributes.as_mut_ptr(), &raw const default);
        libc::posix_spawnattr_setflags(attributes.as_mut_ptr(), i16::try_from(flags).unwrap_or(0));
        let list = sys::environment().list();
        let error =
            posix_spawn(&raw mut pid, c"/bin/sh".as_ptr(), ptr::null(), attributes.as_ptr(), argv.as_ptr(), list);
        libc::posix_spawnattr_destroy(attributes.as_mut_ptr());
        if error == 0 {
            while libc::waitpid(pid, &raw mut status, 0) < 0 {
                if sys::errno() != libc::EINTR {
                    status = -1;
                    break;
                }
            }
        } else {
            // What a shell that cannot be executed ends with.
            status = 127 << 8;
        }
    }
    BEFORE.end();
    // SAFETY: the mask is the one from above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) };
    status
}
