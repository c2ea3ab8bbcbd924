//! The caller's terminal while the command has one that stands for it: its modes, its keys, its foreground.
//!
//! Every key goes to the command's terminal, whose line discipline does what the caller's would have done: echo, ^C, ^D.
//! Invariants: modes are changed only while the host relays and this process is in the foreground; they are put back
//! before this process stops or ends; no flag of the inherited descriptor changes.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::wire::KEYS_BYTES_MAX;

use crate::sys::{self, Modes, SignalSet, bit};

/// Read at once, bytes: as much as a terminal keeps.
const READ_BYTES: usize = 4096;

/// What a terminal gave.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    Keys(&'a [u8]),
    Nothing,
    /// It hung up.
    End,
}

/// The terminal on descriptor 0.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// A second, non-blocking opening.
    keys: Option<OwnedFd>,
    is_attached: bool,
    has_hung_up: bool,
    /// The modes to put back, while ours are in force.
    before: Option<Modes>,
    /// Keys that the command's terminal has not taken yet, bytes.
    in_flight: usize,
    buffer: [u8; READ_BYTES],
}

impl Terminal {
    /// The terminal, left as it is until the host relays.
    pub(crate) fn new() -> Self {
        Self { keys: None, is_attached: false, has_hung_up: false, before: None, in_flight: 0, buffer: [0; READ_BYTES] }
    }

    /// The command has begun.
    pub(crate) fn attach(&mut self) {
        self.is_attached = true;
        self.keys = sys::open(c"/proc/self/fd/0", libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY).ok();
        self.take();
    }

    /// Whether the host relays.
    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// Whether keys come here.
    pub(crate) fn is_taken(&self) -> bool {
        self.before.is_some()
    }

    /// Takes the terminal if we are in its foreground; whether we are.
    pub(crate) fn take(&mut self) -> bool {
        let is_foreground = sys::foreground_group(libc::STDIN_FILENO) == Some(sys::own_group());
        if is_foreground
            && self.before.is_none()
            && !self.has_hung_up
            && let Ok(modes) = sys::modes(libc::STDIN_FILENO)
        {
            set(&modes.raw());
            self.before = Some(modes);
        }
        is_foreground
    }

    /// Puts the modes back.
    pub(crate) fn release(&mut self) {
        if let Some(modes) = self.before.take() {
            set(&modes);
        }
    }

    /// What is to be polled.
    pub(crate) fn watch(&self) -> libc::pollfd {
        let wants_keys = self.is_taken() && self.in_flight < KEYS_BYTES_MAX;
        sys::watch(if wants_keys { self.fd() } else { -1 }, libc::POLLIN)
    }

    fn fd(&self) -> RawFd {
        self.keys.as_ref().map_or(libc::STDIN_FILENO, AsRawFd::as_raw_fd)
    }

    /// Reads once; to be called when it polled as readable.
    pub(crate) fn read(&mut self) -> Input<'_> {
        let room = self.buffer.len().min(KEYS_BYTES_MAX - self.in_flight);
        match sys::read(self.fd(), &mut self.buffer[..room]) {
            Ok(length @ 1..) => {
                self.in_flight += length;
                Input::Keys(&self.buffer[..length])
            }
            Err(Errno::EAGAIN | Errno::EINTR) => Input::Nothing,
            Ok(_) | Err(_) => {
                self.has_hung_up = true;
                self.before = None;
                Input::End
            }
        }
    }

    /// The command's terminal has taken so many bytes.
    pub(crate) fn on_taken(&mut self, bytes: u32) {
        self.in_flight = self.in_flight.saturating_sub(usize::try_from(bytes).unwrap_or(usize::MAX));
    }
}

/// Sets modes, from the background too.
fn set(modes: &Modes) {
    const TTOU: SignalSet = bit(libc::SIGTTOU as u32);
    let before = sys::block_signals(TTOU);
    let _ = sys::set_modes(libc::STDIN_FILENO, modes);
    sys::restore_mask(before);
}
