//! Spare guards: ready ahead of demand, so that a command does not wait for a fork and a terminal.
//!
//! A guard whose command has left nothing is parked, without a terminal. It becomes a spare guard again when it gets a
//! new one. Parked guards are used newest first, so those that were not needed lately are the oldest ones, and they go.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use crate::guard::control::RENEW;
use crate::guard::spawn;
use crate::io::poller::{Poller, Token};
use crate::io::port::Port;
use crate::limits;
use crate::sys::{self, pty, socket};
use rexec_sh::protocol::process::Pid;

/// ^D, which a reader in line mode takes for the end of its input.
pub(super) const END_OF_FILE: &[u8] = &[4];

#[derive(Debug)]
pub(super) struct Spare {
    pub(super) pid: Pid,
    pub(super) control: Port,
    pub(super) master: Port,
    /// When it was forked, unless it has served before.
    made: Option<Instant>,
}

/// A guard whose terminal is not registered yet.
#[derive(Debug)]
struct Unready {
    pid: Pid,
    control: Port,
    /// When it was forked, unless it has served before.
    made: Option<Instant>,
}

/// A guard that has served and has no terminal.
#[derive(Debug)]
struct Parked {
    pid: Pid,
    control: Port,
    since: Instant,
}

/// The input that a new terminal holds for a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstInput {
    /// An end of file. A program that waits for input with poll(2) before it reads would never be stopped for reading.
    /// With this it reads, is stopped, and is noticed.
    End,
    /// Nothing, because a person types there.
    Nothing,
}

#[derive(Debug)]
pub(super) struct Spares {
    waiting: VecDeque<Spare>,
    /// Oldest first.
    parked: VecDeque<Parked>,
    size: pty::Size,
    paused_until: Option<Instant>,
    /// When a guard that died soon after its birth is replaced.
    replace_at: Option<Instant>,
}

impl Spares {
    /// No guards yet. `size` is that of their terminals.
    pub(super) fn new(size: pty::Size) -> Self {
        Self { waiting: VecDeque::new(), parked: VecDeque::new(), size, paused_until: None, replace_at: None }
    }

    /// Returns true if another guard is to be made when there is nothing else to do.
    pub(super) fn wants_another(&self, now: Instant) -> bool {
        self.waiting.len() < limits::SPARE_GUARDS && self.paused_until.is_none_or(|until| now >= until)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts off the next attempt, after a guard could not be made or died. Commands make their own guards meanwhile.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused_until = Some(now + limits::SPARE_PAUSE);
    }

    /// When a guard that died is replaced. A guard that could not be made is not a reason to wake up.
    pub(super) fn replace_at(&self) -> Option<Instant> {
        self.replace_at
    }

    /// Makes a guard ready.
    ///
    /// # Errors
    /// No terminal, process or descriptor is left.
    pub(super) fn prepare(&mut self, poller: &mut Poller) -> io::Result<()> {
        self.replace_at = None;
        let spare = self.renew_or_make(poller)?;
        self.waiting.push_back(spare);
        Ok(())
    }

    /// Takes a guard that waits, or makes one ready.
    ///
    /// # Errors
    /// As [`Spares::prepare`].
    pub(super) fn take(&mut self, poller: &mut Poller) -> io::Result<Spare> {
        match self.waiting.pop_front() {
            Some(spare) => Ok(spare),
            None => self.renew_or_make(poller),
        }
    }

    pub(super) fn park(&mut self, poller: &mut Poller, pid: Pid, control: Port, now: Instant) {
        if self.parked.len() < limits::PARKED_GUARDS_MAX {
            self.parked.push_back(Parked { pid, control, since: now });
        } else {
            dismiss(poller, pid, control);
        }
    }

    /// When the next parked guard goes.
    pub(super) fn leave_at(&self) -> Option<Instant> {
        let is_one_of_many = self.parked.len() > limits::PARKED_GUARDS;
        let patience = if is_one_of_many { limits::PARKED_TIME } else { limits::PARKED_IDLE };
        self.parked.front().map(|oldest| oldest.since + patience)
    }

    /// Lets go of parked guards that were not needed for a while.
    pub(super) fn let_go(&mut self, poller: &mut Poller, now: Instant) {
        while self.leave_at().is_some_and(|at| at <= now)
            && let Some(oldest) = self.parked.pop_front()
        {
            dismiss(poller, oldest.pid, oldest.control);
        }
    }

    /// Lets go of all parked guards, because descriptors or processes are short.
    pub(super) fn let_all_go(&mut self, poller: &mut Poller) {
        self.parked.drain(..).for_each(|parked| dismiss(poller, parked.pid, parked.control));
    }

    /// Gives a parked guard a new terminal, or makes a guard. Without a terminal for it, the guard stays parked.
    fn renew_or_make(&mut self, poller: &mut Poller) -> io::Result<Spare> {
        while !self.parked.is_empty() {
            let pty = pty::open(self.size)?;
            let Some(Parked { pid, mut control, .. }) = self.parked.pop_back() else { break };
            let slave = [pty.slave.as_raw_fd()];
            // After one that has died, or does not listen, try the next.
            if let Ok(Some(_)) = control.write(|fd| socket::send(fd, &RENEW, &slave)) {
                let guard = Unready { pid, control, made: None };
                return guard.with_terminal(poller, pty.master, FirstInput::End);
            }
            dismiss(poller, pid, control);
        }
        make(poller, self.size, &[], FirstInput::End)
    }

    /// Makes a guard that inherits copies of these descriptors.
    pub(super) fn make_with(&self, poller: &mut Poller, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
        make(poller, self.size, held, first)
    }

    /// Forgets the guard with this registration, which died while it waited. Whatever killed a guard that was just made
    /// may kill the next one too, so the next one waits.
    pub(super) fn forget(&mut self, poller: &mut Poller, token: Token, now: Instant) {
        if let Some(at) = self.parked.iter().position(|parked| parked.control.token() == token) {
            self.parked.remove(at).into_iter().for_each(|parked| parked.control.close(poller));
        }
        let Some(at) = self.waiting.iter().position(|spare| spare.control.token() == token) else { return };
        if let Some(spare) = self.waiting.remove(at) {
            if spare.made.is_some_and(|made| now.saturating_duration_since(made) < limits::SPARE_PAUSE) {
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

    pub(super) fn pids(&self) -> impl Iterator<Item = Pid> {
        self.waiting.iter().map(|spare| spare.pid).chain(self.parked.iter().map(|parked| parked.pid))
    }
}

impl Spare {
    /// Lets the guard go. It ends when its control socket is closed.
    pub(super) fn close(self, poller: &mut Poller) {
        self.control.close(poller);
        self.master.close(poller);
    }
}

/// Ends a guard that serves nobody. Its socket's end alone would not end one that somebody has stopped.
fn dismiss(poller: &mut Poller, pid: Pid, control: Port) {
    spawn::kill(pid, control.fd());
    control.close(poller);
}

fn make(poller: &mut Poller, size: pty::Size, held: &[RawFd], first: FirstInput) -> io::Result<Spare> {
    let guard = spawn::make(size, held)?;
    let control = Port::new(poller, guard.control)?;
    let made = Some(Instant::now());
    Unready { pid: guard.pid, control, made }.with_terminal(poller, guard.master, first)
}

impl Unready {
    /// The guard with its terminal, which is registered and gets its first input.
    fn with_terminal(self, poller: &mut Poller, master: OwnedFd, first: FirstInput) -> io::Result<Spare> {
        let Self { pid, control, made } = self;
        if first == FirstInput::End {
            let _ = sys::write(&master, END_OF_FILE);
        }
        match Port::new(poller, master) {
            Ok(master) => Ok(Spare { pid, control, master, made }),
            Err(error) => {
                control.close(poller);
                Err(error)
            }
        }
    }
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
