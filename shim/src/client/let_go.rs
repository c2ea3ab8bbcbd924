//! The directory and descriptors of the caller that this process holds until the host accepts the command.
//!
//! The command may close a descriptor, leave a directory or redirect its output, and somebody may wait for that: a
//! lock, a mount, a reader. Its real shell would be their only holder, so this process lets go of them. Until then it
//! needs them, because it executes the real shell if the host refuses the command.

use std::os::fd::{OwnedFd, RawFd};

use nix::libc;
use rexec_sh::protocol::wire::FromShim;

use super::Client;
use crate::controlling_terminal::ControllingTerminal;
use crate::sys;

/// The working directory and the descriptors that the command has inherited.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) directory: OwnedFd,
    pub(crate) has_stdin: bool,
    /// From 3 up.
    pub(crate) inherited: Vec<RawFd>,
}

impl Client {
    /// Lets go, because the host will not refuse the command any more. It begins once the host has the report.
    pub(super) fn let_go(&mut self) {
        let Some(Held { directory, has_stdin, inherited }) = self.held.take() else { return };
        drop(directory);
        sys::leave_directory();
        inherited.into_iter().for_each(sys::close);
        let is_terminal = |terminal: &ControllingTerminal| terminal.descriptor() == libc::STDIN_FILENO;
        if has_stdin && !self.terminal.as_ref().is_some_and(is_terminal) {
            sys::let_go(libc::STDIN_FILENO);
        }
        FromShim::LetGo.encode(&mut self.outgoing);
    }
}
