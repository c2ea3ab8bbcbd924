//! Spare guards, made ahead of demand, so that a command does not wait for a fork and a terminal.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

use crate::guard::spawn;
use crate::io::poller::{Poller, Token};
use crate::io::port::Port;
use crate::limits;
use crate::sys::{self, pty};
use rexec_sh::protocol::process::Pid;

/// ^D, which a reader in line mode takes for the end of its input.
pub(super) const END_OF_FILE: &[u8] = &[4];

/// A guard with its registered descriptors.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) pid: Pid,
    pub(super) control: Port,
    pub(super) master: Port,
    made: Instant,
}

/// What a new terminal holds for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstInput {
    /// An end of file. A program that waits for input with poll(2) before it reads would never be stopped for reading.
    /// With this it reads, is stopped, and is noticed.
    End,
    /// Nothing, because a person types there.
    Nothing,
}

/// The guards that wait for a command.
#[derive(Debug)]
pub(super) struct Spares {
    waiting: VecDeque<Spare>,
    size: pty::Size,
    paused_until: Option<Instant>,
    /// When a guard that died soon after its birth is replaced.
    replace_at: Option<Instant>,
}

impl Spares {
    /// No guards yet. Their terminals get this size.
    pub(super) fn new(size: pty::Size) -> Self {
        Self { waiting: VecDeque::new(), size, paused_until: None, replace_at: None }
    }

    /// Whether to make another guard when there is nothing else to do.
    pub(super) fn wants_another(&self, now: Instant) -> bool {
        self.waiting.len() < limits::SPARE_GUARDS && self.paused_until.is_none_or(|until| now >= until)
    }

    /// Whether no guard waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A guard could not be made, or died: the next attempt waits. Commands make their own guards meanwhile.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + limits::SPARE_PAUSE);
    }

    /// When a guard that died is replaced. A guard that could not be made is not a reason to wake up.
    pub(super) fn replace_at(&self) -> Option<Instant> {
        self.replace_at
    }

    /// Makes a guard.
    ///
    /// # Errors
    /// No terminal, process or descriptor is left.
    pub(super) fn prepare(&mut self, poller: &mut Poller) -> io::Result<()> {
        self.replace_at = None;
        let spare = make(poller, self.size, &[], FirstInput::End)?;
        self.waiting.push_back(spare);
        Ok(())
    }

    /// Takes a guard that waits, or makes one.
    pub(super) fn take(&mut self, poller: &mut Poller) -> io::Result<Spare> {
        match self.waiting.pop_front() {
            Some(spare) => Ok(spare),
            None => make(poller, self.size, &[], FirstInput::End),
        }
    }

    /// Makes a guard that inherits copies of these descriptors.
    pub(super) fn make_with(&self, poller: &mut Poller, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
        make(poller, self.size, held, first)
    }

    /// Forgets the guard with this registration, which died while it waited. Whatever killed a guard that was just made
    /// may kill the next one too, so that one is not made at once.
    pub(super) fn forget(&mut self, poller: &mut Poller, token: Token, now: Instant) {
        let Some(at) = self.waiting.iter().position(|spare| spare.control.token() == token) else { return };
        if let Some(spare) = self.waiting.remove(at) {
            if now.saturating_duration_since(spare.made) < limits::SPARE_PAUSE {
                self.pause(now);
                self.replace_at = self.paused_until;
            }
            spare.close(poller);
        }
    }

    /// Gives the terminals of all guards this size, now and from now on.
    pub(super) fn resize(&mut self, size: pty::Size) {
        self.size = size;
        for spare in &self.waiting {
            let _ = pty::resize(spare.master.fd(), size);
        }
    }

    /// The processes of the guards that wait.
    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.waiting.iter().map(|spare| spare.pid)
    }
}

impl Spare {
    /// Lets the guard go. It ends when its control socket is closed.
    pub(super) fn close(self, poller: &mut Poller) {
        self.control.close(poller);
        self.master.close(poller);
    }
}

fn make(poller: &mut Poller, size: pty::Size, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
    let guard = spawn::make(size, held)?;
    if first == FirstInput::End {
        let _ = sys::write(&guard.master, END_OF_FILE);
    }
    let control = Port::new(poller, guard.control)?;
    let master = match Port::new(poller, guard.master) {
        Ok(master) => master,
        Err(error) => {
            control.close(poller);
            return Err(error);
        }
    };
    Ok(Spare { pid: guard.pid, control, master, made: Instant::now() })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn after_a_failure_none_is_tried_for_a_while() {
        let (mut spares, now) = (Spares::new(pty::Size { rows: 48, cols: 160 }), Instant::now());
        assert!(spares.wants_another(now));
        spares.pause(now);
        let over = now + limits::SPARE_PAUSE;
        assert!(!spares.wants_another(now) && !spares.wants_another(over - Duration::from_millis(1)));
        assert!(spares.wants_another(over));
        assert_eq!(spares.replace_at(), None, "nothing wakes up for it");
    }
}
