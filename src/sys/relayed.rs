//! A caller's terminal that its shim relays: the modes it had, for the command's own and for the end.
//!
//! The shim puts the terminal back itself on every way out but SIGKILL. Then the host does, and if the host is killed
//! too, the guard. Invariants: modes are set only where those are in force that the shim left, so that nobody's who came
//! after it are touched; nothing is read or written, and no call waits.

use std::os::fd::{AsRawFd, OwnedFd};

use rexec_sh::protocol::wire::TerminalModes;

use nix::libc;
use nix::sys::termios::{InputFlags, LocalFlags, OutputFlags, SetArg, Termios, tcgetattr, tcsetattr};

/// The terminal.
#[derive(Debug)]
pub struct Relayed {
    terminal: OwnedFd,
    before: Termios,
}

impl Relayed {
    /// A terminal that its shim is about to take; `None` when it is none.
    #[must_use]
    pub fn new(terminal: OwnedFd) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        Some(Self { terminal, before })
    }

    /// Takes on the modes that another shim has found, if that has taken the same terminal.
    pub fn borrow_from<'a>(&mut self, others: impl IntoIterator<Item = &'a Self>) {
        let number = number_of(&self.terminal);
        if is_raw(&self.before)
            && number.is_some()
            && let Some(other) = others.into_iter().find(|other| number_of(&other.terminal) == number)
        {
            self.before = other.before.clone();
        }
    }

    /// Takes on the modes of another terminal, whose output is not processed so far.
    pub fn borrow_modes(&mut self, from: &OwnedFd) {
        if let Ok(modes) = tcgetattr(from) {
            self.before = modes;
            self.before.output_flags.insert(OutputFlags::OPOST);
        }
    }

    /// The terminal with the modes that this one, which has taken them on, has.
    #[must_use]
    pub fn like(terminal: OwnedFd, other: &OwnedFd) -> Option<Self> {
        let before = tcgetattr(other).ok()?;
        Some(Self { terminal, before })
    }

    /// Gives another terminal the same modes.
    pub fn lend_modes(&self, to: &OwnedFd) {
        let _ = tcsetattr(to, SetArg::TCSANOW, &self.before);
    }

    /// Puts the modes back, if they are as a shim leaves them that was killed.
    pub fn restore(&self) {
        if tcgetattr(&self.terminal).is_ok_and(|now| is_raw(&now)) {
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
        }
    }
}

/// Which terminal a descriptor leads to, also one that was opened as /dev/tty.
fn number_of(terminal: &OwnedFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the kernel writes one unsigned int.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGDEV as _, &raw mut number) };
    (result == 0).then_some(number)
}

/// What a command can have made of a terminal's modes; `None` when it has none.
#[must_use]
pub fn modes_of(terminal: &OwnedFd) -> Option<TerminalModes> {
    let modes = tcgetattr(terminal).ok()?;
    Some(TerminalModes {
        input: modes.input_flags.bits(),
        output: modes.output_flags.bits(),
        local: modes.local_flags.bits(),
        characters: *modes.control_chars.first_chunk()?,
    })
}

/// Editors of lines keep output processing or signals on; only who passes everything on keeps nothing.
fn is_raw(modes: &Termios) -> bool {
    let local = LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::ISIG | LocalFlags::IEXTEN;
    let input = InputFlags::ICRNL | InputFlags::INLCR | InputFlags::IXON;
    !modes.local_flags.intersects(local)
        && !modes.input_flags.intersects(input)
        && !modes.output_flags.contains(OutputFlags::OPOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::pty::{self, Size};

    #[test]
    fn modes_come_back_only_where_everything_was_passed_on() {
        let size = Size { rows: 24, cols: 80 };
        let (callers, commands) = (pty::open(size).unwrap(), pty::open(size).unwrap());
        let mut before = tcgetattr(&callers.slave).unwrap();
        before.output_flags.insert(OutputFlags::OPOST);
        before.control_chars[nix::libc::VERASE] = 8;
        tcsetattr(&callers.slave, SetArg::TCSANOW, &before).unwrap();
        let relayed = Relayed::new(callers.slave.try_clone().unwrap()).unwrap();
        relayed.lend_modes(&commands.master);
        assert_eq!(tcgetattr(&commands.slave).unwrap(), before, "a terminal's modes can be set from its other side");
        let mut raw = before.clone();
        nix::sys::termios::cfmakeraw(&mut raw);
        tcsetattr(&callers.slave, SetArg::TCSANOW, &raw).unwrap();
        relayed.restore();
        assert_eq!(tcgetattr(&callers.slave).unwrap(), before);
        let mut edited = before.clone();
        edited.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
        tcsetattr(&callers.slave, SetArg::TCSANOW, &edited).unwrap();
        relayed.restore();
        assert_eq!(tcgetattr(&callers.slave).unwrap(), edited, "somebody else's modes");
    }
}
