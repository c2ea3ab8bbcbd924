//! Pseudoterminals: one pair per command.
//!
//! They are made with posix_openpt(O_CLOEXEC) and TIOCGPTPEER. The descriptors of openpty(3) and forkpty(3) are not closed
//! on exec, so another command could inherit them and hold or read this terminal.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::termios::{FlushArg, LocalFlags, OutputFlags, SetArg, tcflush, tcgetattr, tcsetattr};
use nix::unistd::{Pid, tcgetpgrp, tcsetpgrp};

use rexec_sh::protocol::process::ProcessGroup;

/// A window size in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub rows: u16,
    pub cols: u16,
}

/// Both sides of a new pseudoterminal.
#[derive(Debug)]
pub struct Pty {
    /// The host's side, non-blocking.
    pub master: OwnedFd,
    /// The command's side.
    pub slave: OwnedFd,
}

/// Opens a pair with the usual modes, except that output processing is off: output arrives as it was written, and three
/// times as fast.
///
/// # Errors
/// ENOSPC if the system has no more terminals; EMFILE or ENFILE if there are no more descriptors.
pub fn open(size: Size) -> io::Result<Pty> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let master = nix::pty::posix_openpt(flags).map_err(super::io)?;
    nix::pty::unlockpt(&master).map_err(super::io)?;
    let master: OwnedFd = master.into();
    let slave_flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the ioctl takes an integer and returns a new descriptor.
    let slave = super::check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, slave_flags) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let slave = unsafe { <OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(slave) };
    let mut modes = tcgetattr(&slave).map_err(super::io)?;
    modes.output_flags.remove(OutputFlags::OPOST);
    tcsetattr(&slave, SetArg::TCSANOW, &modes).map_err(super::io)?;
    resize(&master, size)?;
    Ok(Pty { master, slave })
}

/// Returns true if [`open`] failed because the system has no more terminals (ENOSPC).
#[must_use]
pub fn is_none_left(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOSPC)
}

/// Sets the window size; a foreground group gets SIGWINCH.
///
/// # Errors
/// As ioctl_tty(2).
pub fn resize(tty: &OwnedFd, size: Size) -> io::Result<()> {
    let size = libc::winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the ioctl reads the structure during the call only.
    super::check(unsafe { libc::ioctl(tty.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) })?;
    Ok(())
}

/// The window size of a terminal, `None` for anything else and for a terminal that does not know it.
#[must_use]
pub fn size(tty: &impl AsRawFd) -> Option<Size> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the ioctl fills the structure during the call only.
    super::check(unsafe { libc::ioctl(tty.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) }).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(Size { rows: size.ws_row, cols: size.ws_col })
}

/// The foreground process group of a terminal that controls this process's session.
///
/// # Errors
/// ENOTTY, as tcgetpgrp(3).
pub fn foreground(slave: &OwnedFd) -> io::Result<ProcessGroup> {
    tcgetpgrp(slave).map(|group| ProcessGroup::new(group.as_raw())).map_err(super::io)
}

/// Makes a group the foreground process group of such a terminal.
///
/// # Errors
/// ENOTTY, or EPERM for a group of another session, as tcsetpgrp(3).
pub fn set_foreground(slave: &OwnedFd, group: ProcessGroup) -> io::Result<()> {
    tcsetpgrp(slave, Pid::from_raw(group.number())).map_err(super::io)
}

/// Unread keys of a terminal, bytes; in line mode, only whole lines (FIONREAD).
pub fn unread(slave: &OwnedFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes one int.
    let result = unsafe { libc::ioctl(slave.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
    if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// Makes opening the terminal by name fail (TIOCSPTLCK): open(2) of `/dev/tty` or its path returns EIO. Open
/// descriptors stay valid.
pub fn lock(master: &OwnedFd) {
    let yes: libc::c_int = 1;
    // SAFETY: the kernel reads one int.
    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &raw const yes) };
}

/// Leaves the calling session leader and its whole session without a controlling terminal (TIOCNOTTY). The kernel sends
/// SIGHUP and SIGCONT to the terminal's foreground group.
pub fn give_up(terminal: &impl AsRawFd) {
    // SAFETY: the ioctl takes no argument.
    unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCNOTTY) };
}

/// Drops unread keys.
pub fn drop_unread(slave: &OwnedFd) {
    let _ = tcflush(slave, FlushArg::TCIFLUSH);
}

/// Returns true if a terminal does not show keys, but takes keys such as ^C for signals: as for a password.
pub fn hides_keys(tty: &OwnedFd) -> bool {
    tcgetattr(tty).is_ok_and(|modes| {
        !modes.local_flags.contains(LocalFlags::ECHO) && modes.local_flags.contains(LocalFlags::ISIG)
    })
}

/// Returns true if a terminal shows keys (ECHO).
pub fn shows_keys(tty: &OwnedFd) -> bool {
    tcgetattr(tty).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ECHO))
}

/// Returns true if a terminal hands keys to its readers line by line (ICANON).
pub fn reads_lines(slave: &OwnedFd) -> bool {
    tcgetattr(slave).is_ok_and(|modes| modes.local_flags.contains(LocalFlags::ICANON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_as_they_were_written_and_both_sides_close_on_exec() {
        let pty = open(Size { rows: 48, cols: 160 }).unwrap();
        assert_eq!(size(&pty.slave), Some(Size { rows: 48, cols: 160 }));
        assert_eq!(super::super::write(&pty.slave, b"a\r\nb\n").unwrap(), 5);
        let mut buffer = [0; 16];
        let length = super::super::read(&pty.master, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"a\r\nb\n");
        for fd in [&pty.master, &pty.slave] {
            let flags = nix::fcntl::fcntl(fd, nix::fcntl::FcntlArg::F_GETFD).unwrap();
            assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
        }
        let pending = super::super::read(&pty.master, &mut buffer).unwrap_err();
        assert!(super::super::is_transient(&pending));
        drop(pty.slave);
        // A child that another test is just starting has a copy until it executes its program.
        let end = loop {
            let end = super::super::read(&pty.master, &mut buffer).unwrap_err();
            if !super::super::is_transient(&end) {
                break end;
            }
            std::thread::yield_now();
        };
        assert!(super::super::is_hangup(&end));
    }
}
