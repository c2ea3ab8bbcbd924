//! Terminals: their numbers, modes, sizes and foreground groups.

use std::os::fd::RawFd;

use nix::libc;
use rexec_sh::protocol::process::ProcessGroup;
use rexec_sh::protocol::wire::TerminalModes;

use super::{Result, check};

/// Returns true if a descriptor is a terminal. (isatty(3) asks more than this.)
pub(crate) fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: a termios of zeros is a valid one, and the kernel fills it. The kernel's own is smaller.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        libc::ioctl(fd, libc::TCGETS, &raw mut modes) == 0
    }
}

/// The number of the terminal of a descriptor, even of one opened as /dev/tty. `None` for anything else.
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
    /// The same modes, changed so that every key and every byte of output passes unchanged.
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

    /// Returns true if output of a line feed becomes carriage return and line feed.
    pub(crate) fn ends_lines(&self) -> bool {
        let both = libc::OPOST | libc::ONLCR;
        self.0.c_oflag & both == both
    }

    /// These modes, with the ones that a command has left in their place. Speed and character size stay.
    pub(crate) fn with(mut self, left: &TerminalModes) -> Self {
        (self.0.c_iflag, self.0.c_oflag, self.0.c_lflag) = (left.input, left.output, left.local);
        self.0.c_cc[..left.characters.len()].copy_from_slice(&left.characters);
        self
    }
}

pub(crate) fn modes(fd: RawFd) -> Result<Modes> {
    // SAFETY: a termios of zeros is a valid one, and the kernel fills it. The kernel's own is smaller.
    unsafe {
        let mut modes: libc::termios = std::mem::zeroed();
        check(libc::ioctl(fd, libc::TCGETS, &raw mut modes).into()).map(|_| Modes(modes))
    }
}

/// Sets the modes of a terminal at once. In the background the caller must block SIGTTOU.
pub(crate) fn set_modes(fd: RawFd, modes: &Modes) -> Result<()> {
    // SAFETY: the kernel reads its own termios, which is a part of the C library's.
    check(unsafe { libc::ioctl(fd, libc::TCSETS, &raw const modes.0) }.into()).map(drop)
}

/// The foreground group of a terminal, if it is this process's controlling terminal.
pub(crate) fn foreground_group(fd: RawFd) -> Option<ProcessGroup> {
    let mut group: libc::pid_t = 0;
    // SAFETY: the kernel writes one pid.
    let result = unsafe { libc::ioctl(fd, libc::TIOCGPGRP, &raw mut group) };
    (result == 0).then(|| ProcessGroup::new(group))
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
