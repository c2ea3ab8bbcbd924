//! Guards made ahead of demand, so that a command does not wait for a fork and a terminal.

use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::time::Instant;

use crate::core::process::Pid;
use crate::guard::spawn;
use crate::io::poller::{Poller, Token};
use crate::io::port::Port;
use crate::limits;
use crate::sys::{self, pty};

/// A guard with its registered descriptors.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) pid: Pid,
    pub(super) control: Port,
    pub(super) master: Port,
    made: Instant,
}

/// What a terminal has to read from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstInput {
    /// An end of file. Who waits with poll(2) for input before reading would never be stopped for reading otherwise:
    /// this makes it read, and be seen.
    End,
    /// Nothing: somebody types there.
    Nothing,
}

/// The guards that wait.
#[derive(Debug)]
pub(super) struct Spares {
    waiting: VecDeque<Spare>,
    size: pty::Size,
    paused_until: Option<Instant>,
    /// One died young: another is made when the pause is over.
    replace_at: Option<Instant>,
}

impl Spares {
    /// None yet.
    pub(super) fn new(size: pty::Size) -> Self {
        Self { waiting: VecDeque::new(), size, paused_until: None, replace_at: None }
    }

    /// Whether another one is worth making when there is nothing else to do.
    pub(super) fn wants_another(&self, now: Instant) -> bool {
        self.waiting.len() < limits::SPARE_GUARDS && self.paused_until.is_none_or(|until| now >= until)
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Making one failed, or one died: the next try is not now. Commands make their own meanwhile.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + limits::SPARE_PAUSE);
    }

    /// When one that died is replaced. Nothing wakes up for one that could not be made.
    pub(super) fn replace_at(&self) -> Option<Instant> {
        self.replace_at
    }

    /// Makes one.
    pub(super) fn prepare(&mut self, poller: &mut Poller) -> io::Result<()> {
        self.replace_at = None;
        let spare = make(poller, self.size, &[], FirstInput::End)?;
        self.waiting.push_back(spare);
        Ok(())
    }

    /// One that waits, or a new one.
    pub(super) fn take(&mut self, poller: &mut Poller) -> io::Result<Spare> {
        match self.waiting.pop_front() {
            Some(spare) => Ok(spare),
            None => make(poller, self.size, &[], FirstInput::End),
        }
    }

    /// A new one that holds copies of these descriptors.
    pub(super) fn make_with(&self, poller: &mut Poller, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
        make(poller, self.size, held, first)
    }

    /// Forgets one that died while it waited; whether this was one. Whatever killed one that was just made may kill
    /// the next one, too, so that is not made at once.
    pub(super) fn forget(&mut self, poller: &mut Poller, token: Token, now: Instant) -> bool {
        let Some(at) = self.waiting.iter().position(|spare| spare.control.token() == token) else { return false };
        if let Some(spare) = self.waiting.remove(at) {
            if now.saturating_duration_since(spare.made) < limits::SPARE_PAUSE {
                self.pause(now);
                self.replace_at = self.paused_until;
            }
            spare.close(poller);
        }
        true
    }

    /// The window size from now on.
    pub(super) fn resize(&mut self, size: pty::Size) {
        self.size = size;
        for spare in &self.waiting {
            let _ = pty::resize(spare.master.fd(), size);
        }
    }

    /// The processes that wait.
    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.waiting.iter().map(|spare| spare.pid)
    }
}

impl Spare {
    /// Lets it go: it ends when its control socket does.
    pub(super) fn close(self, poller: &mut Poller) {
        self.control.close(poller);
        self.master.close(poller);
    }
}

fn make(poller: &mut Poller, size: pty::Size, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
    let guard = spawn::make(size, held)?;
    if first == FirstInput::End {
        let _ = sys::write(&guard.master, super::run::END_OF_FILE);
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
