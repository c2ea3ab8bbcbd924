//! Stands in the place of the C library's functions that start programs: execve(2), those of exec(3), and posix_spawn(3).
//!
//! Invariant: what they return, and what they do where nothing is changed, is what the C library's own ones do.
#![expect(unsafe_code, reason = "functions of the C library")]

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use nix::libc::{self, pid_t, posix_spawn_file_actions_t, posix_spawnattr_t};

use crate::entries::{Receiver, for_receiver};
use crate::start::Start;
use crate::sys::{self, Strings};
use crate::target::{self, Input, Named, PATH_BYTES, Target, TextBuffer};

pub(crate) type List = *const *const c_char;
type Execve = unsafe extern "C" fn(*const c_char, List, List) -> c_int;
type Spawn = unsafe extern "C" fn(
    *mut pid_t,
    *const c_char,
    *const posix_spawn_file_actions_t,
    *const posix_spawnattr_t,
    List,
    List,
) -> c_int;

/// Entries of an environment that have room on a stack that may be small.
const FEW: usize = 500;
/// The same for one that the agent has filled. What has more passes unchanged.
const MANY: usize = 20_000;

/// What tells the shim that a pipe feeds its shell, or may.
const FED: &CStr = c"REXEC_PRELOAD_FED=1";
const FED_IF_PIPE: &CStr = c"REXEC_PRELOAD_FED=if-pipe";

/// A function of the C library's.
pub(crate) struct Real {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Real {
    const fn new(name: &'static CStr) -> Self {
        Self { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Finds it. Later callers may be in a child where this would wait for ever for a lock of another thread's.
    pub(crate) fn get(&self) -> *mut c_void {
        let found = self.found.load(Ordering::Acquire);
        if !found.is_null() {
            return found;
        }
        // SAFETY: the name ends with NUL.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.found.store(found, Ordering::Release);
        found
    }

    /// # Safety
    /// The function must be of this type.
    unsafe fn execve(&self) -> Option<Execve> {
        // SAFETY: the caller vouches for it; a null pointer is `None`.
        unsafe { transmute::<*mut c_void, Option<Execve>>(self.get()) }
    }

    /// # Safety
    /// The function must be of this type.
    unsafe fn spawn(&self) -> Option<Spawn> {
        // SAFETY: the caller vouches for it; a null pointer is `None`.
        unsafe { transmute::<*mut c_void, Option<Spawn>>(self.get()) }
    }
}

static EXECVE: Real = Real::new(c"execve");
static EXECVPE: Real = Real::new(c"execvpe");
static POSIX_SPAWN: Real = Real::new(c"posix_spawn");
static POSIX_SPAWNP: Real = Real::new(c"posix_spawnp");
pub(crate) static SYSTEM: Real = Real::new(c"system");

/// What this process was told.
struct Told {
    start: UnsafeCell<Start>,
    is_own: AtomicBool,
}

// SAFETY: it is written before `is_own` is set, by the loader's thread, and only read after that.
unsafe impl Sync for Told {}

static TOLD: Told = Told { start: UnsafeCell::new(Start::EMPTY), is_own: AtomicBool::new(false) };

/// What this process was told, if it is a program of the agent's.
pub(crate) fn told() -> Option<&'static Start> {
    // SAFETY: nobody writes any more once it is set.
    TOLD.is_own.load(Ordering::Acquire).then(|| unsafe { &*TOLD.start.get() })
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// The loader calls this before the program's `main`.
extern "C" fn begin() {
    for real in [&EXECVE, &EXECVPE, &POSIX_SPAWN, &POSIX_SPAWNP, &SYSTEM] {
        real.get();
    }
    // SAFETY: only the loader's thread is there, and `told` returns nothing yet.
    let start = unsafe { &mut *TOLD.start.get() };
    let mut program = [0; PATH_BYTES];
    if start.take(sys::environment())
        && let Some(program) = sys::own_program(&mut program)
        && target::is_own(start, program)
    {
        TOLD.is_own.store(true, Ordering::Release);
    }
}

/// How a program is started.
#[derive(Clone, Copy)]
enum Instead {
    /// The program that the caller names.
    Same,
    /// The program at this path.
    Link(*const c_char),
}

/// Starts a program by `call`, which gets the environment for it.
///
/// # Safety
/// As execve(2).
unsafe fn start_program(
    (file, named, input): (*const c_char, Named, Input),
    argv: List,
    envp: List,
    call: impl FnOnce(Instead, List) -> c_int,
) -> c_int {
    let Some(start) = told().filter(|_| !file.is_null()) else { return call(Instead::Same, envp) };
    // SAFETY: as the caller says.
    let (file, argv, given) = unsafe { (CStr::from_ptr(file), Strings::new(argv), Strings::new(envp)) };
    let (mut link, mut shell) = (TextBuffer::default(), TextBuffer::default());
    let search = sys::environment().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let kind = target::of(start, (file, named), search, (argv, input), (&mut link, &mut shell));
    let fed = if input == Input::Later { FED_IF_PIPE } else { FED };
    let told = [shell.text().unwrap_or(c""), fed];
    let (instead, receiver) = match (kind, link.text(), shell.text()) {
        (Target::Shell, Some(link), Some(_)) => (Instead::Link(link.as_ptr()), Receiver::Shim(&told[..1])),
        (Target::FedShell, Some(link), Some(_)) => (Instead::Link(link.as_ptr()), Receiver::Shim(&told)),
        (Target::Own, ..) => (Instead::Same, Receiver::Own),
        _ => (Instead::Same, Receiver::Other),
    };
    // Two for the shell, one for the NULL.
    match given.count() + start.count() + 3 {
        count if count <= FEW => with_environment::<FEW>(receiver, start, given, |list| call(instead, list)),
        count if count <= MANY => with_environment::<MANY>(receiver, start, given, |list| call(instead, list)),
        _ => call(Instead::Same, envp),
    }
}

/// Calls with the environment that the receiver gets. There must be room for it.
#[inline(never)]
fn with_environment<const N: usize>(
    receiver: Receiver<'_>,
    start: &Start,
    given: Strings,
    call: impl FnOnce(List) -> c_int,
) -> c_int {
    let mut list = [ptr::null(); N];
    let mut count = 0;
    let given = given.map(|entry| -> &CStr { entry });
    for_receiver(receiver, start, given, |entry| {
        if let Some(place) = list[..N - 1].get_mut(count) {
            *place = entry.as_ptr();
            count += 1;
        }
    });
    call(list.as_ptr())
}

/// The input of a program that takes the place of this process, or inherits its own.
fn input() -> Input {
    if told().is_some() && sys::has_piped_input() { Input::Pipe } else { Input::Other }
}

/// The input of a program that is spawned with these file actions, whose form is the C library's own.
fn spawned_input(actions: *const posix_spawn_file_actions_t) -> Input {
    if actions.is_null() { input() } else { Input::Later }
}

fn failed() -> c_int {
    sys::set_errno(libc::ENOSYS);
    -1
}

/// As execve(2).
///
/// # Safety
/// As execve(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, argv: List, envp: List) -> c_int {
    let call = |instead, list| {
        let path = if let Instead::Link(link) = instead { link } else { path };
        // SAFETY: as the caller says; the list ends with NULL.
        unsafe { EXECVE.execve().map_or_else(failed, |execve| execve(path, argv, list)) }
    };
    // SAFETY: as the caller says.
    unsafe { start_program((path, Named::ByPath, input()), argv, envp, call) }
}

/// As execv(3).
///
/// # Safety
/// As execv(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, argv: List) -> c_int {
    // SAFETY: as the caller says.
    unsafe { execve(path, argv, sys::environment().list()) }
}

/// As execvpe(3).
///
/// # Safety
/// As execvpe(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, argv: List, envp: List) -> c_int {
    let call = |instead, list| match instead {
        // SAFETY: as the caller says; the list ends with NULL.
        Instead::Link(link) => unsafe { EXECVE.execve().map_or_else(failed, |execve| execve(link, argv, list)) },
        // SAFETY: the same.
        Instead::Same => unsafe { EXECVPE.execve().map_or_else(failed, |execvpe| execvpe(file, argv, list)) },
    };
    // SAFETY: as the caller says.
    unsafe { start_program((file, Named::ByName, input()), argv, envp, call) }
}

/// As execvp(3).
///
/// # Safety
/// As execvp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, argv: List) -> c_int {
    // SAFETY: as the caller says.
    unsafe { execvpe(file, argv, sys::environment().list()) }
}

/// As posix_spawn(3).
///
/// # Safety
/// As posix_spawn(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut pid_t,
    path: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    argv: List,
    envp: List,
) -> c_int {
    let call = |instead, list| {
        let path = if let Instead::Link(link) = instead { link } else { path };
        // SAFETY: as the caller says; the list ends with NULL.
        let spawn = unsafe { POSIX_SPAWN.spawn() };
        // SAFETY: the same.
        spawn.map_or(libc::ENOSYS, |spawn| unsafe { spawn(pid, path, actions, attributes, argv, list) })
    };
    // SAFETY: as the caller says.
    unsafe { start_program((path, Named::ByPath, spawned_input(actions)), argv, envp, call) }
}

/// As posix_spawnp(3).
///
/// # Safety
/// As posix_spawnp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut pid_t,
    file: *const c_char,
    actions: *const posix_spawn_file_actions_t,
    attributes: *const posix_spawnattr_t,
    argv: List,
    envp: List,
) -> c_int {
    let call = |instead, list| {
        let (real, path) = match instead {
            Instead::Link(link) => (&POSIX_SPAWN, link),
            Instead::Same => (&POSIX_SPAWNP, file),
        };
        // SAFETY: as the caller says; the list ends with NULL.
        let spawn = unsafe { real.spawn() };
        // SAFETY: the same.
        spawn.map_or(libc::ENOSYS, |spawn| unsafe { spawn(pid, path, actions, attributes, argv, list) })
    };
    // SAFETY: as the caller says.
    unsafe { start_program((file, Named::ByName, spawned_input(actions)), argv, envp, call) }
}
