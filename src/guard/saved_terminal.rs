//! A caller's terminal that the shim relays, and the modes it had before.
//!
//! The shim restores the modes whenever it ends, except by SIGKILL. Then the host restores them, and if the host is
//! killed too, the guard does. Invariants: modes are restored only while those of the shim are in force, so the modes
//! of a later program are not touched; the terminal is neither read nor written, and no call waits.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::termios::{InputFlags, LocalFlags, OutputFlags, SetArg, Termios, tcgetattr, tcsetattr};
use rexec_sh::protocol::wire::TerminalModes;

#[derive(Debug)]
pub struct SavedTerminal {
    terminal: OwnedFd,
    before: Termios,
}

impl SavedTerminal {
    /// A terminal with its present modes, before the shim makes it raw. `None` if it is not a terminal.
    #[must_use]
    pub fn new(terminal: OwnedFd) -> Option<Self> {
        let before = tcgetattr(&terminal).ok()?;
        Some(Self { terminal, before })
    }

    /// As [`SavedTerminal::new`], for a terminal that is held elsewhere too. Other files are not copied: closing a copy
    /// may take time.
    #[must_use]
    pub fn of(terminal: &impl AsFd) -> Option<Self> {
        let before = tcgetattr(terminal).ok()?;
        Some(Self { terminal: terminal.as_fd().try_clone_to_owned().ok()?, before })
    }

    /// Takes the modes to restore from another shim's record, if this terminal is raw because that shim has taken it.
    pub fn take_modes_of_same<'a>(&mut self, others: impl IntoIterator<Item = &'a Self>) {
        let number = number_of(&self.terminal);
        if is_raw(&self.before)
            && number.is_some()
            && let Some(other) = others.into_iter().find(|other| number_of(&other.terminal) == number)
        {
            self.before = other.before.clone();
        }
    }

    /// Takes the modes to restore from another terminal, but with output processing on.
    pub fn take_modes_from(&mut self, from: &OwnedFd) {
        if let Ok(modes) = tcgetattr(from) {
            self.before = modes;
            self.before.output_flags.insert(OutputFlags::OPOST);
        }
    }

    /// A terminal to which the modes of the other one must be restored. `None` if the other is not a terminal.
    #[must_use]
    pub fn with_modes_of(terminal: OwnedFd, other: &OwnedFd) -> Option<Self> {
        let before = tcgetattr(other).ok()?;
        Some(Self { terminal, before })
    }

    /// Sets another terminal to these modes.
    pub fn apply_modes_to(&self, to: &OwnedFd) {
        let _ = tcsetattr(to, SetArg::TCSANOW, &self.before);
    }

    /// Restores the modes, if the terminal is raw, as a killed shim leaves it.
    pub fn restore(&self) {
        if tcgetattr(&self.terminal).is_ok_and(|now| is_raw(&now)) {
            let _ = tcsetattr(&self.terminal, SetArg::TCSANOW, &self.before);
        }
    }
}

/// Makes a terminal turn newlines into CR LF in its output, as terminals do by default (OPOST and ONLCR of termios(3)).
pub fn process_output(terminal: &OwnedFd) {
    if let Ok(mut modes) = tcgetattr(terminal) {
        modes.output_flags.insert(OutputFlags::OPOST | OutputFlags::ONLCR);
        let _ = tcsetattr(terminal, SetArg::TCSANOW, &modes);
    }
}

/// The device number of a terminal, even of one opened as /dev/tty.
fn number_of(terminal: &OwnedFd) -> Option<u32> {
    let mut number: libc::c_uint = 0;
    // SAFETY: the kernel writes one unsigned int.
    let result = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCGDEV as _, &raw mut number) };
    (result == 0).then_some(number)
}

/// The modes of a terminal that a command may change; `None` if it is not a terminal.
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

/// Returns true if a terminal passes everything on, as under a shim. Line editors keep output processing or signals on.
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
        let relayed = SavedTerminal::new(callers.slave.try_clone().unwrap()).unwrap();
        relayed.apply_modes_to(&commands.master);
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
