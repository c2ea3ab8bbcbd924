//! Both sides of a test's pseudo-terminal: the one that a person would sit at, or the oracle's.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::termios::{OutputFlags, SetArg, Termios, tcgetattr, tcsetattr};

nix::ioctl_write_ptr_bad!(set_size, libc::TIOCSWINSZ, libc::winsize);

#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) master: PtyMaster,
    pub(crate) slave: OwnedFd,
}

impl Terminal {
    /// A terminal of the size that the host gives its commands, which passes their bytes on unchanged.
    pub(crate) fn for_commands() -> Self {
        let terminal = Self::new(160, 48);
        let mut modes = tcgetattr(&terminal.slave).expect("it is a terminal");
        modes.output_flags.remove(OutputFlags::OPOST);
        tcsetattr(&terminal.slave, SetArg::TCSANOW, &modes).expect("it is ours");
        terminal
    }

    /// A terminal as a person has it.
    pub(crate) fn new(cols: u16, rows: u16) -> Self {
        let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let master = posix_openpt(flags).expect("a pseudo terminal is available");
        grantpt(&master).expect("the terminal is ours");
        unlockpt(&master).expect("the terminal is ours");
        let name = ptsname_r(&master).expect("it has a name");
        let mut options = OpenOptions::new();
        let slave = options.read(true).write(true).custom_flags(libc::O_NOCTTY).open(name).expect("it can be opened");
        let terminal = Self { master, slave: slave.into() };
        terminal.resize(cols, rows);
        terminal
    }

    /// Changes its size.
    #[expect(unsafe_code, reason = "TIOCSWINSZ has no safe wrapper")]
    pub(crate) fn resize(&self, cols: u16, rows: u16) {
        let size = libc::winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the descriptor is open and the kernel reads one winsize from the pointer.
        unsafe { set_size(std::os::fd::AsRawFd::as_raw_fd(&self.slave), &raw const size) }.expect("it takes a size");
    }

    /// The modes it has now.
    pub(crate) fn modes(&self) -> Termios {
        tcgetattr(&self.slave).expect("it is a terminal")
    }

    /// Gives it other modes, as a shell does when the program in its foreground was stopped.
    pub(crate) fn set_modes(&self, modes: &Termios) {
        tcsetattr(&self.slave, SetArg::TCSANOW, modes).expect("it is a terminal");
    }

    /// Waits until the keys that were written have come to the other side, where a key may have an effect by itself: the
    /// kernel passes them on at the latest when somebody asks for them.
    pub(crate) fn settle(&self) {
        let mut asked = [PollFd::new(self.slave.as_fd(), PollFlags::POLLIN)];
        poll(&mut asked, PollTimeout::ZERO).expect("poll");
    }

    /// A second descriptor for the part that a program uses.
    pub(crate) fn slave(&self) -> OwnedFd {
        self.slave.try_clone().expect("a descriptor is available")
    }

    /// The part that a person uses, as a file to read from and write to.
    pub(crate) fn master_file(&self) -> File {
        self.master.as_fd().try_clone_to_owned().expect("a descriptor is available").into()
    }
}
