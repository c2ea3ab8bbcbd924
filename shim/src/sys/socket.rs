//! Sockets of the local domain, and descriptors sent through them.

use std::ffi::c_char;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::libc;

use super::{Result, check, check_size, own};

/// Room for the descriptors of one message and their header, words.
const CONTROL_WORDS: usize = 24;
/// The most descriptors of a message here.
pub(crate) const DESCRIPTORS_MAX: usize = 20;

/// Receives the bytes that have arrived on a socket. EAGAIN if there are none.
pub(crate) fn receive(fd: RawFd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the kernel writes within the buffer.
    check_size(unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) })
}

/// Sends as many bytes as a socket takes without waiting. Raises no SIGPIPE.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the kernel reads within the slice.
    check_size(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// As [`send`], with descriptors attached to the first byte.
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

/// Connects to the socket at this path. `place::socket_path` has checked that it is short enough.
pub(crate) fn connect(socket: &OwnedFd, path: &[u8]) -> Result<()> {
    // SAFETY: a sockaddr_un of zeros is a valid one.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    assert!(path.len() < address.sun_path.len(), "socket_path checks the length");
    address.sun_family = u16::try_from(libc::AF_UNIX).expect("it is 1");
    for (to, &from) in address.sun_path.iter_mut().zip(path) {
        *to = from.cast_signed() as c_char;
    }
    let length = u32::try_from(size_of_val(&address)).expect("it is 110");
    // SAFETY: the address is NUL-terminated and of this length.
    check(unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length) }.into()).map(drop)
}

/// The user of the process that listens at the other end (SO_PEERCRED).
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
