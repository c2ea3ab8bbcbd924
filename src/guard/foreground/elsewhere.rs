//! A program of another session that asks for a password at the command's terminal, as gpg's pinentry(1) does: gpg(1)
//! asks its agent, a daemon, which starts a program that opens the terminal by its name.
//!
//! The kernel never stops such a program, because the terminal does not control it. The guard searches for it while the
//! terminal does not show keys, because a look through all processes takes long and nearly all such programs ask for a
//! password. Keys typed by the host after the foreground was taken back would answer the program's next question, so
//! that is not reported. A program that reads key by key, as a pinentry in curses, would take the host's ^D for a part
//! of the answer, so the host types nothing for it if nobody answers. Invariant: it gets no signal and never the
//! foreground. It does not belong to the command, and may serve others too.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::{Asking, Foreground, StoppedGroup};
use crate::guard::asker;
use crate::guard::control::GuardReport;
use crate::sys::{process, pty};
use rexec_sh::protocol::process::Pid;

impl Foreground {
    /// Looks for a program of another session that asks for a password. Returns the report for the host. A program that
    /// got end of file and goes on is not reported again.
    pub(in crate::guard) fn find_reader_elsewhere(&mut self) -> Option<GuardReport> {
        let is_lent = self.slice_until.is_some() || self.is_answered;
        if is_lent || self.reported.is_some() || !self.waiting.is_empty() {
            return None;
        }
        if self.slave.as_ref().is_none_or(pty::shows_keys) {
            self.ended_elsewhere = None;
            return None;
        }
        let found = asker::reader_elsewhere(&self.terminal()?, process::pid())?;
        if self.ended_elsewhere == Some(found.pid) {
            return None;
        }
        self.waiting.push_back(StoppedGroup {
            group: found.group,
            reads: true,
            how: Asking::Elsewhere,
            asker: found.pid,
            program: found.program,
        });
        self.next_report()
    }

    /// Lets the program read: it needs no help.
    pub(super) fn let_read_elsewhere(&mut self, asker: Pid) {
        self.ended_elsewhere = Some(asker).filter(|_| !self.is_answered);
    }

    /// Returns true if a program of another session may still wait for keys.
    pub(super) fn reads_elsewhere(&self, asker: Pid) -> bool {
        self.terminal().is_some_and(|terminal| asker::reads_elsewhere(asker, &terminal))
    }

    /// The path of the terminal.
    fn terminal(&self) -> Option<PathBuf> {
        let slave = self.slave.as_ref()?;
        fs::read_link(format!("/proc/self/fd/{}", slave.as_raw_fd())).ok()
    }
}
