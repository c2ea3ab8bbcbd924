//! The relay of a caller's terminal: what a run and its peer each hold of it.
//!
//! The caller's shim has its terminal in raw mode and passes everything on. The run's terminal has the modes and the
//! size of the caller's, so its line discipline does with the keys what the caller's would have done. Invariant: when
//! the shim was killed, the host puts the modes of the caller's terminal back.

use std::os::fd::OwnedFd;

use rexec_sh::protocol::wire::{self, Stdio, TerminalModes};

use crate::guard::saved_terminal::{SavedTerminal, modes_of, process_output};
use crate::io::outlet::Outlet;
use crate::sys::caller_descriptor::CallerDescriptor;
use rexec_sh::protocol::process::Signal;

/// The caller's terminal on the way to a run's start. Its peer gets it then.
#[derive(Debug)]
pub(super) struct LentTerminal {
    terminal: Option<SavedTerminal>,
    is_background: bool,
    /// The caller is a program, which passes keys on and brings no terminal.
    is_programs: bool,
    lent: Option<TerminalModes>,
}

impl LentTerminal {
    /// Finds the terminal among a command's descriptors, after its directory. `others` are the terminals that shims
    /// relay already.
    pub(super) fn new<'a>(
        descriptors: &[CallerDescriptor],
        stdio: Stdio,
        others: impl IntoIterator<Item = &'a SavedTerminal>,
    ) -> Self {
        let at = usize::from(stdio.stdin && stdio.brings_terminal());
        let mut terminal = descriptors.get(at).and_then(SavedTerminal::of);
        if let Some(terminal) = &mut terminal {
            terminal.take_modes_of_same(others);
        }
        let is_programs = descriptors.is_empty();
        Self { terminal, is_background: stdio.background, is_programs, lent: None }
    }

    /// Gives the run's terminal the modes of the caller's. In the background those belong to another program. There the
    /// run's terminal keeps the usual modes, and the caller's gets them at the end.
    ///
    /// A program in the caller's place has no terminal: then the run's own gets the usual modes.
    pub(super) fn lend_modes(&mut self, master: &OwnedFd) {
        if self.is_programs {
            process_output(master);
        }
        if let Some(terminal) = &mut self.terminal {
            if self.is_background {
                terminal.take_modes_from(master);
            }
            terminal.apply_modes_to(master);
            self.lent = modes_of(master);
        }
    }

    /// The run's part of the relay, once its terminal has its modes.
    pub(super) fn relay(&self, stdio: Stdio) -> TerminalRelay {
        TerminalRelay {
            is_on_demand: stdio.on_demand,
            resuming: u32::from(!stdio.background && !stdio.on_demand),
            is_returned: false,
            is_stopped: false,
            continued: 0,
            keys: Outlet::default(),
            unread: 0,
            known_modes: self.lent,
            last_modes: None,
        }
    }

    /// The terminal, to put its modes back when its shim was killed.
    pub(super) fn into_inner(self) -> Option<SavedTerminal> {
        self.terminal
    }
}

#[derive(Debug)]
pub(super) struct TerminalRelay {
    /// Keys come only while the command asks for them, and count as taken once it has read them.
    pub(super) is_on_demand: bool,
    /// The number of times that the command comes to the foreground before it may get keys: at its beginning, if it
    /// begins there, and by each resumption that the guard has not obeyed yet.
    pub(super) resuming: u32,
    /// The command has given its terminal back and has not asked again.
    pub(super) is_returned: bool,
    /// The shell was stopped, and the host told the caller to stop with it.
    pub(super) is_stopped: bool,
    /// The number of times that the host has continued the caller for a shell that went on by itself, until the caller
    /// says so.
    pub(super) continued: u32,
    pub(super) keys: Outlet,
    /// Bytes that the host wrote to the terminal on demand, and that nobody is known to have read.
    pub(super) unread: usize,
    /// The modes of the run's terminal that the shim knows.
    pub(super) known_modes: Option<TerminalModes>,
    /// The modes of the run's terminal when its last user was gone.
    pub(super) last_modes: Option<TerminalModes>,
}

impl TerminalRelay {
    /// Returns true if the command is in the foreground. Keys wait for that: a signal of theirs would go to the guard
    /// instead.
    pub(super) fn takes_keys(&self) -> bool {
        self.resuming == 0 && !self.is_returned
    }
}

/// News that a peer gets once it has all output before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelayEvent {
    /// The shell was stopped by this signal.
    Stopped(Signal),
    /// The command does not ask for keys any more.
    TerminalReturned,
    /// No process of the command can write to this output any more.
    OutputEnded(wire::CallerStream),
}

impl RelayEvent {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        match self {
            Self::Stopped(signal) => wire::FromHost::Stopped(signal).encode(out),
            Self::TerminalReturned => wire::FromHost::Return.encode(out),
            Self::OutputEnded(stream) => wire::FromHost::OutputEnded(stream).encode(out),
        }
    }
}
