//! The client's part of job control: signals from other processes, keys and size of the caller's terminal, and stops.
//!
//! On a relayed terminal the line discipline of the command's terminal stops the command's shell. This process then
//! stops itself and its group by the same signal, as the real shell would have stopped. When it goes on, the command
//! gets the foreground if this process has it.

use std::time::Instant;

use rexec_sh::protocol::process::{Exit, Signal};
use rexec_sh::protocol::wire::{FromShim, TerminalModes};

use super::{ABORTED, Client, ClientEnd, DEATH_PATIENCE, ENDING, SIGNAL_PATIENCE};
use crate::controlling_terminal::{ControllingTerminal, KeyInput};
use crate::sys::{self, bit};

impl Client {
    /// The terminal, if the host relays it.
    fn attached(&mut self) -> Option<&mut ControllingTerminal> {
        self.terminal.as_mut().filter(|terminal| terminal.is_attached())
    }

    pub(super) fn attach(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.begin();
            // The size may have changed since the request was sent.
            self.send_size();
        }
    }

    /// The end of this process after the command's: the same one, so that its caller's wait(2) returns the same as for
    /// the real shell.
    pub(super) fn end_of(&self, exit: Exit) -> ClientEnd {
        let is_relayed = self.terminal.as_ref().is_some_and(ControllingTerminal::is_relayed);
        match exit {
            // Whatever the command did, its caller has asked for its end.
            _ if self.is_plain && self.aborting.is_some() => ClientEnd::Exit(ABORTED.code()),
            Exit::Signal(signal) if self.is_shell || is_relayed => {
                let keys = bit(Signal::INT) | bit(Signal::QUIT);
                ClientEnd::Die { signal, is_group: is_relayed && keys & bit(signal) & !self.came != 0 }
            }
            exit => ClientEnd::Exit(exit.code()),
        }
    }

    /// Restores the terminal to its state before the command.
    pub(super) fn reset_terminal(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.reset();
        }
    }

    /// Leaves the terminal in its earlier state, or with the modes that the command has left.
    pub(super) fn release_terminal(&mut self) {
        if let Some(terminal) = &mut self.terminal {
            terminal.release();
        }
    }

    /// Gives the terminal back, because the command asks for keys no longer.
    pub(super) fn return_terminal(&mut self) {
        if let Some(terminal) = self.terminal.as_mut().filter(|terminal| terminal.is_on_demand()) {
            terminal.detach();
        }
    }

    /// Tries to take the terminal again: another shim may have left it by now.
    pub(super) fn retry_terminal(&mut self) {
        let is_due = |terminal: &&mut ControllingTerminal| terminal.retry_at().is_some_and(|at| at <= Instant::now());
        if let Some(terminal) = self.terminal.as_mut().filter(is_due) {
            terminal.take();
        }
    }

    pub(super) fn on_modes(&mut self, modes: &TerminalModes) {
        if let Some(terminal) = &mut self.terminal {
            terminal.leave_with(modes);
        }
    }

    pub(super) fn on_taken(&mut self, bytes: u32) {
        if let Some(terminal) = &mut self.terminal {
            terminal.on_taken(bytes);
        }
    }

    pub(super) fn on_keys(&mut self) {
        let Some(terminal) = &mut self.terminal else { return };
        match terminal.read() {
            KeyInput::Keys(keys) => FromShim::Keys(keys).encode(&mut self.outgoing),
            KeyInput::Nothing => {}
            KeyInput::End => FromShim::Hangup.encode(&mut self.outgoing),
        }
    }

    fn send_size(&mut self) {
        if let Some(size) = self.window.and_then(sys::window_size) {
            FromShim::Size(size).encode(&mut self.outgoing);
        }
    }

    pub(super) fn on_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.signals) {
            let is_attached = self.attached().is_some();
            match signal {
                sys::WINCH if self.window.is_some() => self.send_size(),
                sys::CONT if is_attached => {
                    self.listen_again();
                    self.resume();
                }
                sys::CONT => {
                    FromShim::Signal(signal).encode(&mut self.outgoing);
                    self.listen_again();
                }
                sys::TSTP => {
                    FromShim::Signal(signal).encode(&mut self.outgoing);
                    if is_attached {
                        // The host reports when the command has stopped.
                        self.has_passed_stop = true;
                    } else {
                        self.flush();
                        sys::stop_self();
                    }
                }
                _ => self.hold_or_pass(signal),
            }
        }
    }

    /// Passes a signal on, unless the kernel may have sent it because the parent dies (prctl(2), `PR_SET_PDEATHSIG`).
    /// Only the shell would get that one, and its children in other sessions would live on. The kernel sends it again
    /// for each thread of the parent that becomes the new parent and dies, too.
    fn hold_or_pass(&mut self, signal: Signal) {
        if self.lifeline.parent().is_some() && sys::death_signal() == Some(signal) {
            self.held_signal.get_or_insert((Instant::now() + DEATH_PATIENCE, signal));
        } else {
            self.pass_on(signal);
        }
    }

    /// Passes on a held signal, unless the parent is dying. Then this process may have another parent already.
    pub(super) fn release_signal(&mut self) {
        // Without a held signal no clock is read, and few calls need one.
        let Some((_, signal)) = self.held_signal.take_if(|(until, _)| *until <= Instant::now()) else { return };
        if self.lifeline.is_parent_dying() {
            self.held_signal = Some((Instant::now() + DEATH_PATIENCE, signal));
        } else {
            self.pass_on(signal);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if self.is_plain && ENDING & bit(signal) != 0 {
            return self.abort();
        }
        FromShim::Signal(signal).encode(&mut self.outgoing);
        self.came |= bit(signal);
        if ENDING & bit(signal) != 0 {
            self.unheard.get_or_insert((Instant::now() + SIGNAL_PATIENCE, signal));
        }
    }

    /// Restarts the deadline for the host's confirmation, because nothing was read while this process was stopped.
    fn listen_again(&mut self) {
        self.unheard = self.unheard.map(|(_, signal)| (Instant::now() + SIGNAL_PATIENCE, signal));
    }

    /// Stops this process, because the command was stopped, until both go on.
    pub(super) fn on_command_stopped(&mut self, signal: Signal) {
        let wants_foreground = matches!(signal, sys::TTIN | sys::TTOU);
        if let Some(terminal) = self.terminal.as_mut()
            && terminal.is_on_demand()
            && !terminal.is_attached()
            && wants_foreground
        {
            terminal.attach();
        }
        let Some(terminal) = self.attached() else { return };
        // A shell's `fg` sends no signal to a job that runs.
        let is_asking = wants_foreground && (terminal.is_on_demand() || !terminal.is_taken());
        if !(is_asking && terminal.take()) {
            terminal.release();
            let is_group = !self.has_passed_stop && signal != sys::STOP;
            self.has_passed_stop = false;
            sys::stop_by(signal, is_group);
            // The resumption stands for the signals that continue.
            while let Some(signal) = sys::next_signal(&self.signals) {
                if !matches!(signal, sys::CONT | sys::WINCH | sys::TSTP) {
                    self.pass_on(signal);
                }
            }
            self.listen_again();
        }
        self.resume();
    }

    fn resume(&mut self) {
        let Some(terminal) = self.attached() else { return };
        let foreground = terminal.take();
        self.send_size();
        FromShim::Resume { foreground }.encode(&mut self.outgoing);
    }
}
