//! Unix sockets: the listener, messages with descriptors, and the process at the other end.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use nix::libc;
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, sendmsg, socketpair};

use rexec_sh::protocol::process::Pid;

/// The most descriptors of a request: those of a RUN frame and two pipes.
pub const DESCRIPTORS_MAX: usize = rexec_sh::protocol::wire::INHERITED_MAX + 5;
/// The most descriptors that the kernel lets travel with one message (SCM_MAX_FD). Those without room would be closed in
/// the receiving call, which may wait.
const MESSAGE_DESCRIPTORS_MAX: usize = 253;

/// Makes a connected pair, closed on exec. The first socket does not block.
///
/// # Errors
/// EMFILE or ENFILE, as socketpair(2).
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (near, far) =
        socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).map_err(super::io)?;
    super::set_nonblocking(&near)?;
    Ok((near, far))
}

/// Sends bytes, with descriptors on the first byte, without waiting and without SIGPIPE. Returns the number of bytes
/// sent.
///
/// # Errors
/// As sendmsg(2).
pub fn send(socket: &impl AsFd, bytes: &[u8], descriptors: &[RawFd]) -> io::Result<usize> {
    let rights = [ControlMessage::ScmRights(descriptors)];
    let messages = if descriptors.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
    let (fd, parts) = (socket.as_fd().as_raw_fd(), [IoSlice::new(bytes)]);
    super::uninterrupted(|| sendmsg::<()>(fd, &parts, messages, flags, None).map_err(super::io))
}

/// Receives bytes without waiting. 0 is the end.
///
/// # Errors
/// As recv(2).
pub fn receive(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let fd = socket.as_fd().as_raw_fd();
    super::uninterrupted(|| nix::sys::socket::recv(fd, buffer, MsgFlags::MSG_DONTWAIT).map_err(super::io))
}

/// The result of receiving one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// The number of bytes; 0 at the end.
    pub bytes: usize,
    /// True if descriptors were lost, because this process has reached its limit on descriptors (MSG_CTRUNC).
    pub lost_descriptors: bool,
    /// The process that sent the bytes, if [`tell_senders`] was called. Only root can fake it.
    pub sender: Option<Pid>,
}

/// Room for control messages with [`MESSAGE_DESCRIPTORS_MAX`] descriptors and a sender, in words, so that headers are aligned.
#[expect(clippy::cast_possible_truncation, reason = "about a thousand bytes")]
const CONTROL_WORDS: usize =
    // SAFETY: the calls only compute sizes.
    (unsafe {
        libc::CMSG_SPACE((MESSAGE_DESCRIPTORS_MAX * size_of::<RawFd>()) as u32)
            + libc::CMSG_SPACE(size_of::<libc::ucred>() as u32)
    } as usize)
        .div_ceil(size_of::<u64>());

/// Room for a sender, in words.
#[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
const SENDER_WORDS: usize =
    // SAFETY: the call only computes a size.
    (unsafe { libc::CMSG_SPACE(size_of::<libc::ucred>() as u32) } as usize).div_ceil(size_of::<u64>());

/// Receives bytes and the descriptors that come with them, which are closed on exec. This does not use nix, which loses
/// all descriptors if some did not fit.
///
/// # Errors
/// As recvmsg(2).
pub fn receive_with_descriptors<T: From<OwnedFd>>(
    socket: &impl AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<T>,
) -> io::Result<Received> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a msghdr of zeros is valid and empty. Everything it points to outlives the calls, and the kernel writes
    // within the given lengths. The descriptors were made for this process by this call.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let fd = socket.as_fd().as_raw_fd();
        let bytes = super::uninterrupted(|| {
            let received = libc::recvmsg(fd, &raw mut message, libc::MSG_CMSG_CLOEXEC);
            usize::try_from(received).map_err(|_| io::Error::last_os_error())
        })?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        let mut sender = None;
        while let Some(there) = header.as_ref() {
            if (there.cmsg_level, there.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
                // cmsg_len is a size_t with glibc and a socklen_t with musl.
                let length: usize = there.cmsg_len as _;
                let count = (length - libc::CMSG_LEN(0) as usize) / size_of::<RawFd>();
                let first = libc::CMSG_DATA(header).cast::<RawFd>();
                let numbers = (0..count).map(|n| first.add(n).read_unaligned());
                descriptors.extend(numbers.map(|fd| OwnedFd::from_raw_fd(fd).into()));
            }
            sender = sender_in(there).or(sender);
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        Ok(Received { bytes, lost_descriptors: message.msg_flags & libc::MSG_CTRUNC != 0, sender })
    }
}

/// The next message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peeked {
    /// The number of bytes that can be received without descriptors, or up to the end of the message that has them; 0 at
    /// the end.
    pub bytes: usize,
    /// True if descriptors come with them.
    pub has_descriptors: bool,
    pub sender: Option<Pid>,
}

/// Peeks at the next bytes of a socket that names its senders, and takes nothing. The look ends after a message with
/// descriptors.
///
/// # Errors
/// As recvmsg(2).
pub fn peek(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Peeked> {
    // There is room for the sender alone, so the kernel reports descriptors and keeps them.
    let mut control = [0_u64; SENDER_WORDS];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a msghdr of zeros is valid and empty. Everything it points to outlives the call, and the kernel writes
    // within the given lengths.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let fd = socket.as_fd().as_raw_fd();
        let bytes = super::uninterrupted(|| {
            let seen = libc::recvmsg(fd, &raw mut message, libc::MSG_PEEK | libc::MSG_DONTWAIT);
            usize::try_from(seen).map_err(|_| io::Error::last_os_error())
        })?;
        let sender = libc::CMSG_FIRSTHDR(&raw const message).as_ref().and_then(|header| sender_in(header));
        Ok(Peeked { bytes, has_descriptors: message.msg_flags & libc::MSG_CTRUNC != 0, sender })
    }
}

/// The process in a control message, if that names one.
///
/// # Safety
/// The kernel has written the whole message.
unsafe fn sender_in(header: &libc::cmsghdr) -> Option<Pid> {
    let is_sender = (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS);
    // SAFETY: as the caller says. The structure may lie anywhere.
    is_sender.then(|| Pid::new(unsafe { libc::CMSG_DATA(header).cast::<libc::ucred>().read_unaligned() }.pid))
}

/// Makes urgent bytes (MSG_OOB) arrive in their place among the others, with their descriptors. Otherwise the kernel
/// drops them in the call that reaches them.
pub fn keep_urgent_in_line(socket: &impl AsFd) {
    // A kernel without urgent bytes for Unix sockets may refuse it.
    let _ = nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::OobInline, &true);
}

/// Returns true if a connection that is about to be closed has nothing unread. Nothing more comes.
#[must_use]
pub fn is_drained(socket: &impl AsFd) -> bool {
    nix::sys::socket::shutdown(socket.as_fd().as_raw_fd(), nix::sys::socket::Shutdown::Read).is_ok()
        && unread(socket) == Some(0)
}

/// Returns true if the other side has sent bytes that were not received yet.
#[must_use]
pub fn has_unread(socket: &impl AsFd) -> bool {
    unread(socket).is_some_and(|bytes| bytes > 0)
}

/// The bytes that can be received (FIONREAD).
fn unread(socket: &impl AsFd) -> Option<libc::c_int> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one number.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    (result == 0).then_some(bytes)
}

/// Shuts the socket down for writing: the other side reads the end.
///
/// # Errors
/// As shutdown(2).
pub fn shut_writing(socket: &impl AsFd) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    nix::sys::socket::shutdown(fd, nix::sys::socket::Shutdown::Write).map_err(super::io)
}

/// Returns true if the other side is closed (POLLHUP), and not only shut down for writing (POLLRDHUP); poll(2).
#[must_use]
pub fn is_hung_up(socket: &impl AsFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut watched = [PollFd::new(socket.as_fd(), PollFlags::empty())];
    let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
    super::uninterrupted(|| poll(&mut watched, PollTimeout::ZERO).map_err(super::io)).is_err()
        || watched[0].revents().is_some_and(|events| events.intersects(gone))
}

/// The user of the other side at the time of its connect(2) or listen(2).
///
/// # Errors
/// As getsockopt(2).
pub fn peer_uid(socket: &impl AsFd) -> io::Result<u32> {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
    Ok(credentials.map_err(super::io)?.uid())
}

/// Returns true if a process that `lives` listens at a path. It sees a connection that closes silently. An ended one
/// does not count, although another process may still have its socket.
#[must_use]
pub fn has_listener(path: &Path, lives: impl Fn(Pid) -> bool) -> bool {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let connect = || {
        let socket = nix::sys::socket::socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        nix::sys::socket::connect(socket.as_raw_fd(), &nix::sys::socket::UnixAddr::new(path)?)?;
        Ok(peer_pid(&socket).is_ok_and(|pid| pid.number() <= 0 || lives(pid)))
    };
    // EAGAIN: a process listens, but its backlog is full.
    connect().unwrap_or_else(|error: nix::errno::Errno| error == nix::errno::Errno::EAGAIN)
}

/// The process that connected; 0 if it is in a pid namespace that cannot be seen from here.
///
/// # Errors
/// As getsockopt(2).
pub fn peer_pid(socket: &impl AsFd) -> io::Result<Pid> {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
    Ok(Pid::new(credentials.map_err(super::io)?.pid()))
}

/// Makes each received message name the process that sent it (SO_PASSCRED, unix(7)). Connections that a listener accepts
/// inherit this, so that messages sent before the accept have it, too.
///
/// # Errors
/// As setsockopt(2).
pub fn tell_senders(socket: &impl AsFd) -> io::Result<()> {
    nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::PassCred, &true).map_err(super::io)
}

/// Listens at a path, replacing an existing socket. The socket file has mode 0600 from the start. It is bound beside
/// the path and renamed once it listens, so that a process that finds it can connect.
///
/// # Errors
/// As bind(2), listen(2) and rename(2).
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("~");
    let beside = Path::new(&beside);
    if beside.as_os_str().len() > rexec_sh::protocol::place::PATH_BYTES_MAX || !remove_socket(beside)? {
        // The longer name does not fit. A caller that comes between bind(2) and listen(2) is refused, and tries again.
        remove_socket(path)?;
        return bind(path);
    }
    let listener = bind(beside)?;
    std::fs::rename(beside, path).inspect_err(|_| drop(std::fs::remove_file(beside)))?;
    Ok(listener)
}

/// Removes a socket. Returns true if the name is free.
fn remove_socket(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => Ok(false),
        Ok(_) => std::fs::remove_file(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    // The umask decides the mode. The process has one thread, so no other file is made with this umask.
    let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_retain(0o177));
    let bound = UnixListener::bind(path);
    nix::sys::stat::umask(before);
    let listener = bound?;
    let mode = std::fs::symlink_metadata(path)?.permissions().mode() & 0o777;
    if mode & 0o177 != 0 {
        return Err(io::Error::other(format!("the new socket has mode {mode:04o}")));
    }
    listener.set_nonblocking(true)?;
    tell_senders(&listener)?;
    // std listens with a backlog of 128. The kernel permits more, and a full backlog makes callers wait.
    // SAFETY: the call takes numbers.
    super::check(unsafe { libc::listen(listener.as_raw_fd(), libc::SOMAXCONN) })?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_travel_with_the_first_byte_and_close_on_exec() {
        let (near, far) = pair().unwrap();
        let (read, write) = super::super::pipe().unwrap();
        assert_eq!(send(&near, b"run", &[write.as_raw_fd()]).unwrap(), 3);
        drop(write);
        let (mut buffer, mut fds) = ([0; 8], Vec::<OwnedFd>::new());
        let received = receive_with_descriptors(&far, &mut buffer, &mut fds).unwrap();
        assert_eq!((received.bytes, received.lost_descriptors, fds.len()), (3, false, 1));
        super::super::write(&fds[0], b"x").unwrap();
        fds.clear();
        assert_eq!(super::super::read(&read, &mut buffer).unwrap(), 1);
        // A child that another test is just starting has a copy until it executes its program.
        let end = loop {
            match super::super::read(&read, &mut buffer) {
                Err(error) if super::super::is_transient(&error) => std::thread::yield_now(),
                end => break end,
            }
        };
        assert_eq!(end.unwrap(), 0, "no copy of the write end is left");
        let write = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(send(&near, b"many", &[write.as_raw_fd(); 100]).unwrap(), 4);
        let received = receive_with_descriptors(&far, &mut buffer, &mut fds).unwrap();
        assert!(!received.lost_descriptors && fds.len() == 100, "each of them is owned");
        assert_eq!(peer_uid(&near).unwrap(), nix::unistd::geteuid().as_raw());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_message_tells_which_process_sent_it() {
        let (near, far) = pair().unwrap();
        let (mut buffer, mut fds) = ([0; 8], Vec::<OwnedFd>::new());
        send(&near, b"before", &[]).unwrap();
        assert_eq!(receive_with_descriptors(&far, &mut buffer, &mut fds).unwrap().sender, None);
        tell_senders(&far).unwrap();
        send(&near, b"mine", &[]).unwrap();
        let mine = receive_with_descriptors(&far, &mut buffer, &mut fds).unwrap().sender;
        assert_eq!(mine, Some(super::super::process::pid()));
        let child = std::process::Command::new("sh").args(["-c", "echo x"]).stdout(near).spawn();
        let mut child = child.unwrap();
        child.wait().unwrap();
        let theirs = receive_with_descriptors(&far, &mut buffer, &mut fds).unwrap().sender;
        assert_eq!(theirs, Some(Pid::new(child.id().cast_signed())));
    }

    #[test]
    fn whoever_finds_the_socket_can_connect() {
        use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
        let dir = std::env::temp_dir().join(format!("rexec-listen-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, is_over) = (dir.join("s"), AtomicBool::new(false));
        let refused = std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let connect = || std::os::unix::net::UnixStream::connect(&path);
                let refused = || connect().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
                std::iter::repeat_with(refused)
                    .take_while(|_| !is_over.load(Relaxed))
                    .filter(|&refused| refused)
                    .count()
            });
            let mut listeners = Vec::new();
            for _ in 0..500 {
                listeners.push(listen(&path).unwrap());
                std::fs::remove_file(&path).unwrap();
            }
            is_over.store(true, Relaxed);
            caller.join().unwrap()
        });
        let left = std::fs::read_dir(&dir).unwrap().count();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!((refused, left), (0, 0));
    }
}
