//! A connection whose last close(2) waits for minutes, because its other end reads nothing (SO_LINGER, socket(7)).

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};

/// It, and its other end, with which it is over. To be called within [`super::warden::with_own_descriptors`].
pub(crate) fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("its port")).expect("a connection");
    let (far, _) = listener.accept().expect("its other end");
    stream.set_nonblocking(true).expect("a socket");
    while (&stream).write(&[0; 64 << 10]).is_ok() {}
    stream.set_nonblocking(false).expect("a socket");
    setsockopt(&stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 300 }).expect("a socket");
    (stream.into(), far)
}
