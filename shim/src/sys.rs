//! Every system call of the shim, and its C `main`: the only file with unsafe code.
//!
//! There is no Rust runtime below this program. Its start-up would open closed descriptors 0 to 2, would ignore SIGPIPE,
//! and takes 65,000 instructions; a command must find all of that as its caller left it.
//!
//! Invariants: one thread; nothing changes the environment or the arguments, so they live as long as the process; every
//! descriptor made here is close-on-exec; no flag of an inherited descriptor is ever changed.
#![expect(unsafe_code, reason = "system calls")]

use std::ffi::{CStr, c_char, c_int, c_long};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::TerminalModes;

pub(crate) type Result<T> = std::result::Result<T, Errno>;

/// A set of signals; bit N−1 is signal N.
pub(crate) type SignalSet = u64;

/// How many signals there are.
const SIGNALS: u32 = 64;
/// Size of the kernel's signal set, bytes.
const SIGNAL_SET_BYTES: usize = 8;
/// KCMP_FILE of kcmp(2).
const KCMP_FILE: c_int = 0;
/// Room for the descriptors of one message and their header, words.
const CONTROL_WORDS: usize = 24;
/// The most descriptors that a message can carry here.
pub(crate) const DESCRIPTORS_MAX: usize = 20;

/// The C runtime's entry.
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> c_int {
    let argc = usize::try_from(argc).unwrap_or(0);
    // SAFETY: execve(2) hands over `argc` strings and a NULL in `argv`, and strings up to a NULL in `envp`; nobody
    // changes them.
    let (argv, env) = unsafe { (strings(argv, argc), strings(envp, usize::MAX)) };
    crate::run(&argv, &env)
}

/// # Safety
/// `list` must have `most` strings, or strings up to a NULL, and they must live unchanged for ever.
unsafe fn strings(list: *const *const c_char, most: usize) -> Vec<&'static CStr> {
    let mut found = Vec::with_capacity(64);
    while found.len() < most {
        // SAFETY: neither the end nor the NULL has been passed.
        let string = unsafe { *list.add(found.len()) };
        if string.is_null() {
            break;
        }
        // SAFETY: it is a NUL-terminated string that lives for ever.
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

/// Ends the process: no destructors, no handlers at exit.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: _exit takes any code.
    unsafe { libc::_exit(c_int::from(code)) }
}

/// Becomes another program; returns only when that failed.
pub(crate) fn execute(path: &CStr, argv: &[&CStr], env: &[&CStr]) -> Errno {
    let pointers = |strings: &[&CStr]| -> Vec<*const c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end in NULL and outlive the call, as do the strings they point to.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    Errno::last()
}

/// The user whose rights we have, as execve(2) left it: we never change it.
pub(crate) fn effective_uid() -> u32 {
    // SAFETY: getauxval has no preconditions.
    let uid = unsafe { libc::getauxval(libc::AT_EUID) };
    u32::try_from(uid).expect("a user id has 32 bits")
}

/// The path by which this program was executed, whatever argv[0] says.
pub(crate) fn executed_path() -> &'static CStr {
    // SAFETY: getauxval has no preconditions.
    let path = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const c_char;
    if path.is_null() {
        return c"";
    }
    // SAFETY: the kernel put a string there, on the stack that lives as long as the process.
    unsafe { CStr::from_ptr(path) }
}

/// What a descriptor or a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
}

/// The kinds of file that are treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    Pipe,
    Socket,
    /// A character device, which may be a terminal.
    Character,
    Other,
}

impl Status {
    fn from_raw(raw: &libc::stat) -> Self {
        let kind = match raw.st_mode & libc::S_IFMT {
            libc::S_IFREG => Kind::Regular,
            libc::S_IFIFO => Kind::Pipe,
            libc::S_IFSOCK => Kind::Socket,
            libc::S_IFCHR => Kind::Character,
            _ => Kind::Other,
        };
        Self { device: raw.st_dev, inode: raw.st_ino, kind, mode: raw.st_mode }
    }

    /// Whether both are the same file.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// fstat(2); EBADF tells that the descriptor is closed.
pub(crate) fn status_of(fd: RawFd) -> Result<Status> {
    // SAFETY: a stat of zeros is a valid one, and fstat fills it.
    let (result, raw) = unsafe {
        let mut raw = std::mem::zeroed();
        (libc::fstat(fd, &raw mut raw), raw)
    };
    check(result.into()).map(|_| Status::from_raw(&raw))
}

/// stat(2): symbolic links are followed.
pub(crate) fn status_at(path: &CStr) -> Result<Status> {
    // SAFETY: a stat of zeros is a valid one, and stat fills it.
    let (result, raw) = unsafe {
        let mut raw = std::mem::zeroed();
        (libc::stat(path.as_ptr(), &raw mut raw), raw)
    };
    check(result.into()).map(|_| Status::from_raw(&raw))
}

/// Whether this path can be executed by us.
pub(crate) fn is_executable(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::X_OK, libc::AT_EACCESS) == 0 }
}

/// Whether a descriptor is a terminal. (isatty(3) asks more than this.)
pub(crate) fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: a termios of zeros is a valid one, and the kernel fills it. The kernel's own is smaller.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        libc::ioctl(fd, libc::TCGETS, &raw mut modes) == 0
    }
}

/// Which terminal a descriptor is, also one that was opened as /dev/tty; `None` when it is none.
pub(crate) fn terminal_number(fd: RawFd) -> Option<u32> {
    let mut device: libc::c_uint = 0;
    // SAFETY: the kernel writes one unsigned int.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGDEV as _, &raw mut device) };
    (result == 0).then_some(device)
}

/// A terminal's modes, as the kernel keeps them.
#[derive(Clone, Copy)]
pub(crate) struct Modes(libc::termios);

impl std::fmt::Debug for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modes").field("local", &self.0.c_lflag).finish_non_exhaustive()
    }
}

impl Modes {
    /// The same with every key and every byte of output passed on as it is.
    pub(crate) fn raw(mut self) -> Self {
        let modes = &mut self.0;
        modes.c_iflag &= !(libc::IGNBRK
            | libc::BRKINT
            | libc::PARMRK
            | libc::ISTRIP
            | libc::INLCR
            | libc::IGNCR
            | libc::ICRNL
            | libc::IXON
            | libc::IXANY
            | libc::IXOFF);
        modes.c_oflag &= !libc::OPOST;
        modes.c_lflag &= !(libc::ECHO | libc::ECHONL | libc::ICANON | libc::ISIG | libc::IEXTEN | libc::TOSTOP);
        modes.c_cc[libc::VMIN] = 1;
        modes.c_cc[libc::VTIME] = 0;
        self
    }

    /// Whether a line's end is written as carriage return and line feed.
    pub(crate) fn ends_lines(&self) -> bool {
        let both = libc::OPOST | libc::ONLCR;
        self.0.c_oflag & both == both
    }

    /// The same line with the modes that a command has left.
    pub(crate) fn with(mut self, left: &TerminalModes) -> Self {
        (self.0.c_iflag, self.0.c_oflag, self.0.c_lflag) = (left.input, left.output, left.local);
        self.0.c_cc[..left.characters.len()].copy_from_slice(&left.characters);
        self
    }
}

/// The modes of a terminal.
pub(crate) fn modes(fd: RawFd) -> Result<Modes> {
    // SAFETY: a termios of zeros is a valid one, and the kernel fills it. The kernel's own is smaller.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        check(libc::ioctl(fd, libc::TCGETS, &raw mut modes).into()).map(|_| Modes(modes))
    }
}

/// Sets the modes of a terminal at once. A caller in the background must block SIGTTOU.
pub(crate) fn set_modes(fd: RawFd, modes: &Modes) -> Result<()> {
    // SAFETY: the kernel reads its own termios, which is a part of the C library's.
    check(unsafe { libc::ioctl(fd, libc::TCSETS, &raw const modes.0) }.into()).map(drop)
}

/// The foreground group of a terminal, if that is our controlling terminal.
pub(crate) fn foreground_group(fd: RawFd) -> Option<i32> {
    let mut group: libc::pid_t = 0;
    // SAFETY: the kernel writes one pid.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGPGRP, &raw mut group) };
    (result == 0).then_some(group)
}

/// Our process group.
pub(crate) fn own_group() -> i32 {
    // SAFETY: getpgrp has no preconditions.
    unsafe { libc::getpgrp() }
}

/// Whether we lead our session.
pub(crate) fn is_session_leader() -> bool {
    // SAFETY: neither call has preconditions.
    unsafe { libc::getsid(0) == libc::getpid() }
}

/// Stops as a terminal stops its foreground, this process alone or its whole group. Comes back when continued; at once
/// where the kernel stops nobody, because nobody would continue the group.
pub(crate) fn stop_by(signal: u8, is_group: bool) {
    // SAFETY: a process may always signal itself and its group.
    unsafe { libc::kill(if is_group { 0 } else { libc::getpid() }, c_int::from(signal)) };
    let set = bit(u32::from(signal));
    // What is blocked acts now.
    let before = change_mask(libc::SIG_UNBLOCK, set);
    change_mask(libc::SIG_SETMASK, before);
}

/// Dies by a signal, this process alone or with its group; leaves with the code for it where that does not kill.
pub(crate) fn die_by(signal: u8, is_group: bool) -> ! {
    let number = c_int::from(signal);
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls take numbers and a structure that lives; what dumped a core was the command.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::signal(number, libc::SIG_DFL);
        libc::kill(if is_group { 0 } else { libc::getpid() }, number);
    }
    change_mask(libc::SIG_UNBLOCK, bit(u32::from(signal)));
    exit(signal.saturating_add(128))
}

/// Rows and columns of a terminal.
pub(crate) fn window_size(fd: RawFd) -> Option<(u16, u16)> {
    // SAFETY: a winsize of zeros is a valid one, and the kernel fills it.
    let (result, size) = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size), size)
    };
    (result == 0).then_some((size.ws_row, size.ws_col))
}

/// open(2), close-on-exec.
pub(crate) fn open(path: &CStr, flags: c_int) -> Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: the path is a C string; no file is created, so there is no mode. The raw call, because musl's would set
    // close-on-exec a second time.
    own(unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// read(2).
pub(crate) fn read(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    check_size(unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) })
}

/// write(2).
pub(crate) fn write(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the kernel reads within the slice.
    check_size(unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) })
}

/// Receives what has arrived on a socket; EAGAIN when nothing has.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    check_size(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) })
}

/// Sends what a socket takes without waiting, and without SIGPIPE.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads within the slice.
    check_size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// As [`send`], with descriptors on the first byte.
pub(crate) fn send_with_descriptors(fd: RawFd, bytes: &[u8], descriptors: &[RawFd]) -> Result<usize> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "the caller counts them");
    let data_bytes = u32::try_from(size_of_val(descriptors)).expect("bounded by DESCRIPTORS_MAX");
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr of zeros is a valid, empty one. `control` is aligned for a cmsghdr and has room for
    // DESCRIPTORS_MAX descriptors, and everything pointed to lives until sendmsg returns.
    check_size(unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(data_bytes) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(data_bytes) as _;
        let data = libc::CMSG_DATA(header).cast::<RawFd>();
        ptr::copy_nonoverlapping(descriptors.as_ptr(), data, descriptors.len());
        libc::sendmsg(fd, &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    })
}

/// A stream socket of the local domain.
pub(crate) fn socket() -> Result<OwnedFd> {
    // SAFETY: socket has no preconditions.
    own(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) }.into())
}

/// Connects to the socket at this path, which place.rs has found short enough.
pub(crate) fn connect(socket: &OwnedFd, path: &[u8]) -> Result<()> {
    // SAFETY: a sockaddr_un of zeros is a valid one.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    assert!(path.len() < address.sun_path.len(), "place.rs checks the length");
    address.sun_family = u16::try_from(libc::AF_UNIX).expect("it is 1");
    for (to, &from) in address.sun_path.iter_mut().zip(path) {
        *to = from.cast_signed() as c_char;
    }
    let length = u32::try_from(size_of_val(&address)).expect("it is 110");
    // SAFETY: the address is NUL-terminated and of this length.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) }.into()).map(drop)
}

/// The user of the process that listens at the other end.
pub(crate) fn peer_uid(socket: &OwnedFd) -> Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = u32::try_from(size_of_val(&peer)).expect("it is 12");
    // SAFETY: the kernel writes at most `length` bytes to `peer`, which may hold any bits.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    check(result.into()).map(|_| peer.uid)
}

/// Takes the exclusive flock(2) of an open file, until that is closed; whether nobody else holds it.
pub(crate) fn lock(file: &OwnedFd) -> bool {
    // SAFETY: flock takes any descriptor.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Whether somebody holds an exclusive flock(2) on this file.
pub(crate) fn is_locked(path: &CStr) -> bool {
    let Ok(file) = open(path, libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK) else { return false };
    // SAFETY: flock takes any descriptor.
    let result = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
    check(result.into()) == Err(Errno::EWOULDBLOCK)
}

/// Entries of an open directory as getdents64(2) lays them out; 0 bytes at the end.
pub(crate) fn read_directory(directory: &OwnedFd, buffer: &mut [u8]) -> Result<usize> {
    let fd = directory.as_raw_fd();
    // SAFETY: the kernel writes within the buffer.
    let bytes = check(unsafe { libc::syscall(libc::SYS_getdents64, fd, buffer.as_mut_ptr(), buffer.len()) })?;
    Ok(usize::try_from(bytes).expect("check refuses negative numbers"))
}

/// Whether a descriptor is open and would outlive execve(2).
pub(crate) fn is_inheritable(fd: RawFd) -> bool {
    // SAFETY: F_GETFD takes any number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    flags >= 0 && flags & libc::FD_CLOEXEC == 0
}

/// Whether every write to a descriptor goes to the end of its file.
pub(crate) fn is_appending(fd: RawFd) -> bool {
    // SAFETY: F_GETFL takes any number.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_APPEND != 0
}

/// Whether two descriptors of this process share one open file description (kcmp(2)). `None` if the kernel does not say.
pub(crate) fn is_same_description(one: RawFd, other: RawFd) -> Option<bool> {
    // SAFETY: neither call has preconditions.
    let result = unsafe {
        let pid = libc::getpid();
        libc::syscall(libc::SYS_kcmp, pid, pid, KCMP_FILE, one, other)
    };
    (result >= 0).then_some(result == 0)
}

/// umask(2). Reading it takes setting it; for that instant it is the strictest, and nothing is created.
pub(crate) fn umask() -> u32 {
    // SAFETY: umask takes any mask and cannot fail.
    unsafe {
        let mask = libc::umask(0o777);
        libc::umask(mask);
        mask
    }
}

/// Soft and hard limit of this resource; nothing beyond the last one.
pub(crate) fn limit(resource: u32) -> Option<(u64, u64)> {
    let mut limits = [0_u64; 2];
    // SAFETY: the kernel writes a struct rlimit64, two 64-bit numbers, to `limits`.
    let result = unsafe { libc::syscall(libc::SYS_prlimit64, 0, resource, ptr::null::<u64>(), limits.as_mut_ptr()) };
    (result == 0).then_some((limits[0], limits[1]))
}

/// The nice value, −20 to 19.
pub(crate) fn nice() -> i32 {
    // SAFETY: getpriority has no preconditions. The raw call gives 20 − nice, so that no value looks like an error.
    let raw = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    i32::try_from(raw).ok().filter(|raw| *raw > 0).map_or(0, |raw| 20 - raw)
}

/// ioprio_get(2) of this process; 0 when it follows the nice value.
pub(crate) fn io_priority() -> i32 {
    const IOPRIO_WHO_PROCESS: c_int = 1;
    // SAFETY: the call takes numbers.
    let priority = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
    i32::try_from(priority).map_or(0, |priority| priority.max(0))
}

/// Policy and priority of sched(7).
pub(crate) fn scheduler() -> (i32, i32) {
    // SAFETY: the call takes a number.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let Some(policy) = i32::try_from(policy).ok().filter(|&policy| policy > 0) else { return (0, 0) };
    let mut priority: c_int = 0;
    // SAFETY: the kernel writes a struct sched_param, which is one int.
    unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority) };
    (policy, priority)
}

/// personality(2).
pub(crate) fn personality() -> u32 {
    // SAFETY: this number asks and changes nothing.
    let personality = unsafe { libc::personality(0xffff_ffff) };
    u32::try_from(personality).unwrap_or(0)
}

/// The timer slack, nanoseconds.
pub(crate) fn timer_slack() -> Option<u64> {
    // SAFETY: the call takes numbers. The raw one, because the C library's answer is an int.
    let slack = unsafe { libc::syscall(libc::SYS_prctl, libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) };
    u64::try_from(slack).ok()
}

/// Whether huge pages are not for this process.
pub(crate) fn has_no_huge_pages() -> bool {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1 }
}

/// The mask of CPUs we may run on, as the kernel lays it out; how many bytes of the buffer it takes.
pub(crate) fn affinity(buffer: &mut [u8]) -> usize {
    // SAFETY: the kernel writes within the buffer.
    let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, buffer.len(), buffer.as_mut_ptr()) };
    usize::try_from(bytes).unwrap_or(0)
}

/// The signals that are ignored.
pub(crate) fn ignored_signals() -> SignalSet {
    (1..=SIGNALS).filter(|&signal| is_ignored(signal)).fold(0, |set, signal| set | bit(signal))
}

fn is_ignored(signal: u32) -> bool {
    // The kernel's struct sigaction begins with the handler and is shorter than this everywhere.
    let mut action = [0_usize; 16];
    // SAFETY: no action is set, and the kernel writes one to `action`.
    let result = unsafe {
        libc::syscall(libc::SYS_rt_sigaction, signal, ptr::null::<usize>(), action.as_mut_ptr(), SIGNAL_SET_BYTES)
    };
    result == 0 && action[0] == libc::SIG_IGN
}

/// The bit of a signal in a set.
pub(crate) const fn bit(signal: u32) -> SignalSet {
    1 << (signal - 1)
}

/// Blocks more signals and returns those that were blocked before.
pub(crate) fn block_signals(set: SignalSet) -> SignalSet {
    change_mask(libc::SIG_BLOCK, set)
}

/// Blocks exactly these signals.
pub(crate) fn restore_mask(set: SignalSet) {
    change_mask(libc::SIG_SETMASK, set);
}

/// The raw call, because the C library's would leave out the signals it keeps for itself.
fn change_mask(how: c_int, set: SignalSet) -> SignalSet {
    let mut old: SignalSet = 0;
    // SAFETY: the kernel reads and writes one signal set of this size each.
    unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, &raw mut old, SIGNAL_SET_BYTES) };
    old
}

/// A descriptor from which these signals, which must be blocked, are read.
pub(crate) fn signal_descriptor(set: SignalSet) -> Result<OwnedFd> {
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the kernel reads one signal set of this size.
    own(unsafe { libc::syscall(libc::SYS_signalfd4, -1, &raw const set, SIGNAL_SET_BYTES, flags) })
}

/// The next pending signal.
pub(crate) fn next_signal(descriptor: &OwnedFd) -> Option<u8> {
    let mut info = [0; size_of::<libc::signalfd_siginfo>()];
    // The structure begins with the signal's number, 32 bits.
    let read = read(descriptor.as_raw_fd(), &mut info).ok()?;
    let number = u32::from_ne_bytes(*info[..read].first_chunk()?);
    u8::try_from(number).ok()
}

/// Stops this process until SIGCONT.
pub(crate) fn stop_self() {
    // SAFETY: a process may always stop itself.
    unsafe { libc::kill(libc::getpid(), libc::SIGSTOP) };
}

/// Sends these signals to this process. Those that are blocked have their effect when they no longer are, if need be on
/// the program that this process executes.
pub(crate) fn raise(set: SignalSet) {
    for signal in (1..=64).filter(|&signal| set & bit(signal) != 0) {
        // SAFETY: a process may always signal itself.
        unsafe { libc::kill(libc::getpid(), signal.cast_signed()) };
    }
}

/// The parent; 0 when it is outside our PID namespace.
pub(crate) fn parent() -> i32 {
    // SAFETY: getppid has no preconditions.
    unsafe { libc::getppid() }
}

/// A descriptor that becomes readable when this process ends.
pub(crate) fn process_descriptor(pid: i32) -> Result<OwnedFd> {
    // SAFETY: pidfd_open has no preconditions; its descriptor is close-on-exec.
    own(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// Waits for some milliseconds; a signal may cut it short.
pub(crate) fn pause(milliseconds: c_int) {
    let _ = poll(&mut [], milliseconds);
}

/// A descriptor to be polled; one of −1 is passed over.
pub(crate) const fn watch(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// poll(2); a negative time waits for ever.
pub(crate) fn poll(watched: &mut [libc::pollfd], milliseconds: c_int) -> Result<usize> {
    // SAFETY: the kernel reads and writes within the slice.
    let ready = unsafe { libc::poll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, milliseconds) };
    usize::try_from(ready).map_err(|_| Errno::last())
}

/// Whether a descriptor takes output, or has an error, right now.
pub(crate) fn has_room(fd: RawFd) -> bool {
    let mut watched = [watch(fd, libc::POLLOUT)];
    poll(&mut watched, 0).is_ok_and(|ready| ready > 0)
}
