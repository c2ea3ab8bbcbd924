//! Child processes, pipes, and a process's view of its own confinement.

use std::ffi::c_int;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::process::{Exit, Pid, Signal};

use super::{Result, SignalSet, bit, check, check_size, own, restore_mask};

/// The process in which a fork returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forked {
    Child,
    Parent(Pid),
}

/// fork(2). The process has one thread, so the child may go on as an ordinary process.
pub(crate) fn fork() -> Result<Forked> {
    // SAFETY: there is one thread.
    match check(unsafe { libc::fork() }.into())? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(Pid::new(i32::try_from(pid).expect("a pid is an int")))),
    }
}

/// Waits for a child's end; without `blocks`, only looks. `None` while it lives, and if it is not a child.
pub(crate) fn wait(child: Pid, blocks: bool) -> Option<Exit> {
    let mut status: c_int = 0;
    let options = if blocks { 0 } else { libc::WNOHANG };
    loop {
        // SAFETY: the kernel writes one int.
        let result = unsafe { libc::waitpid(child.number(), &raw mut status, options) };
        if result < 0 && Errno::last() == Errno::EINTR {
            continue;
        }
        if result <= 0 {
            return None;
        }
        let byte = |number: c_int| number.to_le_bytes()[0];
        return Some(if libc::WIFSIGNALED(status) {
            Exit::Signal(Signal::new(byte(libc::WTERMSIG(status))))
        } else {
            Exit::Code(byte(libc::WEXITSTATUS(status)))
        });
    }
}

/// Returns true if a child is stopped by SIGSTOP. This does not count as waiting for it.
pub(crate) fn is_stopped(child: Pid) -> bool {
    let Ok(id) = libc::id_t::try_from(child.number()) else { return false };
    let options = libc::WSTOPPED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: a siginfo of zeros is a valid one, and waitid fills it where there is a child to tell of.
    unsafe {
        let mut info: libc::siginfo_t = mem::zeroed();
        let result = libc::waitid(libc::P_PID, id, &raw mut info, options);
        result == 0 && info.si_pid() == child.number() && info.si_status() == libc::SIGSTOP
    }
}

/// Sends a signal to a process that has not been waited for.
pub(crate) fn signal_child(child: Pid, signal: Signal) {
    // SAFETY: the call takes numbers.
    unsafe { libc::kill(child.number(), signal.number().into()) };
}

/// Makes the kernel kill this process when its parent dies. Exits at once if that has happened already.
pub(crate) fn die_with(parent: Pid) {
    // SAFETY: the calls take numbers.
    let now = unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::getppid()
    };
    if now != parent.number() {
        super::exit(1);
    }
}

pub(crate) fn own_pid() -> Pid {
    // SAFETY: getpid has no preconditions.
    Pid::new(unsafe { libc::getpid() })
}

/// Begins a session of its own. Signals for the earlier process group do not reach this process any more.
pub(crate) fn leave_session() {
    // SAFETY: setsid has no preconditions.
    unsafe { libc::setsid() };
}

/// Goes to the root directory, so that no file system stays in use.
pub(crate) fn leave_directory() {
    // SAFETY: the path is a C string.
    unsafe { libc::chdir(c"/".as_ptr()) };
}

/// Names this process (prctl(2)).
pub(crate) fn set_name(name: &std::ffi::CStr) {
    // SAFETY: the kernel reads a C string.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Sleeps until the end of this process, whatever signals come.
pub(crate) fn sleep_for_ever() -> ! {
    restore_mask(SignalSet::MAX);
    loop {
        // SAFETY: pause has no preconditions.
        unsafe { libc::pause() };
    }
}

/// Gives SIGCHLD its default effect. Returns true if it was ignored: then wait(2) would not report a child's end.
pub(crate) fn heed_children() -> bool {
    // SAFETY: SIG_DFL is a disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) == libc::SIG_IGN }
}

/// Ignores SIGCHLD again.
pub(crate) fn ignore_children() {
    // SAFETY: SIG_IGN is a disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// A non-blocking pipe, read end first.
pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: the kernel writes two descriptors, which are new and have no other owner.
    unsafe {
        check(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC).into())?;
        libc::fcntl(ends[0], libc::F_SETFL, libc::O_NONBLOCK);
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// The signals pending for a process (`ShdPnd` of proc_pid_status(5)). None if /proc does not show them.
pub(crate) fn pending_signals(pid: Pid) -> SignalSet {
    signal_set(&status_of(pid), "ShdPnd:")
}

/// Returns true if a process is about to end, which can take long while one of its threads waits for a disk: it has no
/// memory any more, or SIGKILL is pending for its first thread (`VmSize` and `SigPnd` of proc_pid_status(5)).
pub(crate) fn is_dying(pid: Pid) -> bool {
    let text = status_of(pid);
    let has_memory = text.lines().any(|line| line.starts_with("VmSize:"));
    !text.is_empty() && (!has_memory || signal_set(&text, "SigPnd:") & bit(Signal::KILL) != 0)
}

/// `/proc/PID/status`; empty if it cannot be read.
fn status_of(pid: Pid) -> String {
    let mut text = [0; 4096];
    let path = std::ffi::CString::new(format!("/proc/{pid}/status")).expect("a number has no NUL");
    let Ok(file) = super::open(&path, libc::O_RDONLY) else { return String::new() };
    let length = super::read(file.as_raw_fd(), &mut text).unwrap_or(0);
    String::from_utf8_lossy(&text[..length]).into_owned()
}

fn signal_set(status: &str, name: &str) -> SignalSet {
    let set = status.lines().find_map(|line| line.strip_prefix(name));
    set.and_then(|set| SignalSet::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

/// Makes a descriptor number another name of an open one; an executed program inherits it.
pub(crate) fn duplicate_onto(from: &OwnedFd, number: RawFd) {
    // SAFETY: the call takes numbers. Nothing here owns the number.
    unsafe { libc::dup2(from.as_raw_fd(), number) };
}

/// A second name of an open descriptor, close-on-exec.
pub(crate) fn duplicate(fd: &OwnedFd) -> Result<OwnedFd> {
    // SAFETY: the call takes numbers; the descriptor is new.
    own(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) }.into())
}

/// Closes a descriptor that nothing here owns.
pub(crate) fn close(number: RawFd) {
    // SAFETY: the caller's own descriptors are not used again.
    unsafe { libc::close(number) };
}

/// Replaces a descriptor that nothing here owns by `/dev/null`, so that no later one gets its number.
pub(crate) fn let_go(number: RawFd) {
    match super::open(c"/dev/null", libc::O_RDWR) {
        // SAFETY: the call takes numbers. Nothing here owns the number.
        Ok(null) => _ = unsafe { libc::dup3(null.as_raw_fd(), number, libc::O_CLOEXEC) },
        Err(_) => close(number),
    }
}

/// Closes every descriptor of this process. If close_range(2) is missing or denied, those below a usual bound.
pub(crate) fn close_all() {
    const USUAL_MAX: RawFd = 1024;
    // SAFETY: this process uses none of them again.
    if unsafe { libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0) } < 0 {
        (0..USUAL_MAX).for_each(close);
    }
}

/// Bytes waiting in a pipe, seen from either end.
pub(crate) fn queued(fd: RawFd) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int.
    let result = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut bytes) };
    if result < 0 { 0 } else { usize::try_from(bytes).unwrap_or(0) }
}

/// Memory of the bytes that were sent to a socket and that its reader has not taken, bytes.
pub(crate) fn untaken(fd: RawFd) -> usize {
    let mut bytes: c_int = 0;
    // SAFETY: the kernel writes one int.
    let result = unsafe { libc::ioctl(fd, libc::TIOCOUTQ, &raw mut bytes) };
    if result < 0 { 0 } else { usize::try_from(bytes).unwrap_or(0) }
}

/// The capacity of a pipe, bytes. `None` if the kernel does not report it.
pub(crate) fn capacity(fd: RawFd) -> Option<usize> {
    // SAFETY: F_GETPIPE_SZ takes any descriptor.
    usize::try_from(unsafe { libc::fcntl(fd, libc::F_GETPIPE_SZ) }).ok()
}

/// Asks for a pipe of this size. Beyond the user's limit it keeps its usual one.
pub(crate) fn enlarge(fd: RawFd, bytes: c_int) {
    // SAFETY: F_SETPIPE_SZ takes a number.
    unsafe { libc::fcntl(fd, libc::F_SETPIPE_SZ, bytes) };
}

/// Returns true if a pipe is empty and nobody can write to it any more.
pub(crate) fn is_hung_up(read_end: &OwnedFd) -> bool {
    let mut watched = [super::watch(read_end.as_raw_fd(), libc::POLLIN)];
    super::poll(&mut watched, 0).is_ok() && watched[0].revents & (libc::POLLIN | libc::POLLHUP) == libc::POLLHUP
}

/// Moves bytes from one pipe to another without waiting (splice(2)).
pub(crate) fn splice(from: &OwnedFd, to: RawFd, bytes: usize) -> Result<usize> {
    let (none, flags) = (std::ptr::null_mut(), libc::SPLICE_F_NONBLOCK | libc::SPLICE_F_MOVE);
    // SAFETY: the offsets are absent, as pipes have none.
    check_size(unsafe { libc::splice(from.as_raw_fd(), none, to, none, bytes, flags) })
}

/// Puts the first bytes of one pipe into another without waiting, and leaves them in the first one (tee(2)).
pub(crate) fn tee(from: &OwnedFd, to: &OwnedFd, bytes: usize) -> Result<usize> {
    // SAFETY: tee takes two descriptors and no memory.
    check_size(unsafe { libc::tee(from.as_raw_fd(), to.as_raw_fd(), bytes, libc::SPLICE_F_NONBLOCK) })
}

/// pread(2).
pub(crate) fn read_at(fd: &OwnedFd, buffer: &mut [u8], offset: i64) -> Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    check_size(unsafe { libc::pread64(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), offset) })
}

/// The place in a file of a descriptor's next write.
pub(crate) fn write_place(fd: RawFd) -> Option<i64> {
    if super::is_appending(fd) {
        return file_size(fd);
    }
    // SAFETY: the call takes numbers and moves nothing.
    Some(unsafe { libc::lseek64(fd, 0, libc::SEEK_CUR) }).filter(|&at| at >= 0)
}

pub(crate) fn file_size(fd: RawFd) -> Option<i64> {
    // SAFETY: a stat of zeros is a valid one, and fstat fills it.
    unsafe {
        let mut raw: libc::stat64 = mem::zeroed();
        (libc::fstat64(fd, &raw mut raw) == 0).then_some(raw.st_size)
    }
}

/// Sixteen bytes that nobody can guess.
pub(crate) fn random() -> Result<[u8; 16]> {
    let mut bytes = [0; 16];
    // SAFETY: the kernel writes within the buffer.
    let got = check_size(unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), libc::GRND_NONBLOCK) })?;
    if got == bytes.len() { Ok(bytes) } else { Err(Errno::EAGAIN) }
}

/// Returns true if the file system of the working directory is mounted read-only.
pub(crate) fn is_directory_read_only() -> bool {
    // SAFETY: a statvfs of zeros is a valid one, and the kernel fills it.
    unsafe {
        let mut raw: libc::statvfs = mem::zeroed();
        libc::statvfs(c".".as_ptr(), &raw mut raw) == 0 && raw.f_flag & libc::ST_RDONLY != 0
    }
}

/// The `no_new_privs` flag of this process, and `true` if it has a seccomp filter.
pub(crate) fn confinement() -> (bool, bool) {
    // SAFETY: the calls take numbers and change nothing.
    unsafe { (libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1, libc::prctl(libc::PR_GET_SECCOMP) == 2) }
}

/// Reads a FIFO's owner and mode; `None` for any other kind of file.
pub(crate) fn fifo_status(fd: &OwnedFd) -> Option<(u32, u32)> {
    // SAFETY: a stat of zeros is a valid one, and fstat fills it.
    let raw = unsafe {
        let mut raw: libc::stat = mem::zeroed();
        check(libc::fstat(fd.as_raw_fd(), &raw mut raw).into()).ok()?;
        raw
    };
    (raw.st_mode & libc::S_IFMT == libc::S_IFIFO).then_some((raw.st_uid, raw.st_mode & 0o7777))
}
