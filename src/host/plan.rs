//! Which streams a command gets, from what its caller's descriptors are, and what becomes of its group.
//!
//! One terminal at most: a second one would be nobody's controlling terminal, and who reads it would hang unseen.

use std::io;
use std::os::fd::OwnedFd;

use rexec_sh::wire::Stdio;

use crate::core::entry::{Stream, Streams};
use crate::sys::control::{PLAN_ERR_IS_OUT, PLAN_ERR_PIPE, PLAN_KILL_GROUP, PLAN_OUT_PIPE};

/// The plan of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pipes_only: bool,
    out_pipe: bool,
    err_pipe: bool,
    err_is_out: bool,
    kills_group: bool,
}

impl Plan {
    /// A terminal for both descriptors when the caller has one open file for both, or terminals; else the terminal for
    /// descriptor 1 and a pipe for descriptor 2, as the caller had it. In pipe mode, pipes alone.
    pub(super) fn of(stdio: Stdio, pipes_only: bool, kills_group: bool) -> Self {
        let is_one = stdio.same_output || (stdio.stdout_tty && stdio.stderr_tty);
        let separate = stdio.stderr && !is_one;
        let pipes_only = pipes_only || stdio.pipes;
        Self {
            pipes_only,
            out_pipe: pipes_only && stdio.stdout,
            err_pipe: separate,
            err_is_out: pipes_only && stdio.stderr && !separate,
            kills_group,
        }
    }

    /// The plan for the guard.
    pub(super) fn bits(self) -> u8 {
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        bit(self.out_pipe, PLAN_OUT_PIPE)
            | bit(self.err_pipe, PLAN_ERR_PIPE)
            | bit(self.err_is_out, PLAN_ERR_IS_OUT)
            | bit(self.kills_group, PLAN_KILL_GROUP)
    }

    /// Whether what the command writes to its terminal is the caller's standard output.
    pub(super) fn tty_is_stdout(self) -> bool {
        !self.pipes_only
    }

    /// The streams that the host reads.
    pub(super) fn streams(self) -> Streams {
        let pipes = [(self.out_pipe, Stream::Out), (self.err_pipe, Stream::Err)];
        let pipes = pipes.into_iter().filter(|(on, _)| *on).map(|(_, stream)| stream);
        Streams::of(&[Stream::Tty].into_iter().chain(pipes).collect::<Vec<_>>())
    }

    /// The pipes, in the order in which their write ends travel.
    pub(super) fn open_pipes(self) -> io::Result<Vec<(Stream, OwnedFd, OwnedFd)>> {
        let wanted = [(self.out_pipe, Stream::Out), (self.err_pipe, Stream::Err)];
        let wanted = wanted.into_iter().filter(|(on, _)| *on);
        wanted.map(|(_, stream)| crate::sys::pipe().map(|(read, write)| (stream, read, write))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_follow_the_callers_descriptors() {
        let open = Stdio { stdin: true, stdout: true, stderr: true, ..Stdio::default() };
        let same = Stdio { same_output: true, ..open };
        let terminal = Stdio { stdout_tty: true, stderr_tty: true, ..open };
        let streams = |stdio, pipes| Plan::of(stdio, pipes, false).streams();
        assert_eq!(streams(same, false), Streams::of(&[Stream::Tty]));
        assert_eq!(streams(terminal, false), Streams::of(&[Stream::Tty]));
        assert_eq!(streams(open, false), Streams::of(&[Stream::Tty, Stream::Err]));
        assert_eq!(streams(open, true), Streams::of(&[Stream::Tty, Stream::Out, Stream::Err]));
        assert_eq!(streams(same, true), Streams::of(&[Stream::Tty, Stream::Out]));
        assert_eq!(Plan::of(same, true, false).bits(), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT);
        assert_eq!(Plan::of(same, false, true).bits(), PLAN_KILL_GROUP);
        assert!(Plan::of(open, false, false).tty_is_stdout() && !Plan::of(open, true, false).tty_is_stdout());
    }
}
