//! Plans the streams of a command, from the kinds of its caller's descriptors.
//!
//! A command has one terminal at most. A second one would be the controlling terminal of no session, so a program that
//! reads it would block and never be stopped.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rexec_sh::protocol::choice::Tty;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::wire::{self, Stdio};

use crate::core::entry::{Stream, Streams};
use crate::guard::control::{
    self, PLAN_DEFAULTS, PLAN_DETACHED, PLAN_ERR_IS_OUT, PLAN_ERR_PIPE, PLAN_FOREGROUND, PLAN_IN_TTY, PLAN_KILL_GROUP,
    PLAN_LEADER, PLAN_LIVE, PLAN_ON_DEMAND, PLAN_ORPHANED, PLAN_OUT_PIPE, PLAN_RELAYED, PLAN_UNLESS_FED,
};

/// A command's controlling terminal, at which its programs can ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Controlling {
    /// It does: its caller has one, or wants one.
    Given,
    /// It does, unless there is something in its standard input when it begins: then that is the answer.
    UnlessFed,
    /// It finds none, as below an agent that has none itself.
    Withheld,
}

/// The streams of one command, and how its guard sets them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamPlan {
    stdio: Stdio,
    tty: Tty,
    out_pipe: bool,
    err_pipe: bool,
    err_is_out: bool,
    kills_group: bool,
    is_live: bool,
    is_bare: bool,
    controlling: Controlling,
}

impl StreamPlan {
    /// Plans each output as the caller has it, or as `tty` says. If the caller has one file for both outputs, one pipe
    /// carries both, so that their order is kept.
    pub(super) fn of(stdio: Stdio, tty: Tty, kills_group: bool) -> Self {
        let is_pipe = |is_terminal: bool| match tty {
            Tty::Always if !is_relayed(stdio, tty) => false,
            Tty::Auto | Tty::Always => !is_terminal,
            Tty::Never => true,
        };
        let out_pipe = stdio.stdout && is_pipe(stdio.stdout_tty);
        // If stdout is a terminal and stderr is not, stderr is a pipe in any case.
        let is_apart = stdio.stderr && !stdio.same_output;
        let shares_terminal = is_apart && stdio.stderr_tty && tty != Tty::Never && (out_pipe || !stdio.stdout);
        Self {
            stdio,
            tty,
            out_pipe,
            err_pipe: is_apart && !shares_terminal,
            err_is_out: stdio.stderr && !is_apart && out_pipe,
            kills_group,
            is_live: false,
            is_bare: false,
            controlling: Controlling::Given,
        }
    }

    /// With `is_live`, the guard asks language runtimes not to buffer what they write to a pipe.
    pub(super) fn live(self, is_live: bool) -> Self {
        Self { is_live, ..self }
    }

    /// With `is_bare`, the guard adds nothing to the environment.
    pub(super) fn bare(self, is_bare: bool) -> Self {
        Self { is_bare, ..self }
    }

    /// Decides about the controlling terminal. A caller's terminal, and one that a stream leads to, is given in any case;
    /// `feeds` is asked only where it matters whether the command's text feeds a program that may read answers.
    pub(super) fn controlled(self, is_attended: bool, feeds: impl FnOnce() -> bool) -> Self {
        let controlling = if self.has_terminal() || self.is_relayed() || self.is_terminal_stdin() {
            Controlling::Given
        } else if self.tty == Tty::Never || !is_attended || feeds() {
            Controlling::Withheld
        } else {
            Controlling::UnlessFed
        };
        Self { controlling, ..self }
    }

    /// The plan in the form that the guard gets. `caller` is the process that waits for the command; `record_bytes` is the
    /// length of the record's place.
    pub(super) fn for_guard(self, grace: Duration, caller: Option<Pid>, record_bytes: u16) -> control::RunPlan {
        control::RunPlan { bits: self.bits(), grace, caller, record_bytes }
    }

    fn bits(self) -> u16 {
        let bit = |on: bool, bit: u16| if on { bit } else { 0 };
        let relayed = self.is_relayed();
        let begins_in_foreground = relayed && !self.stdio.background && !self.stdio.on_demand;
        bit(self.out_pipe, PLAN_OUT_PIPE)
            | bit(self.err_pipe, PLAN_ERR_PIPE)
            | bit(self.err_is_out, PLAN_ERR_IS_OUT)
            | bit(self.kills_group, PLAN_KILL_GROUP)
            | bit(self.tty() == Some(wire::CallerStream::Out) && !relayed && !self.is_bare, PLAN_DEFAULTS)
            | bit(self.out_pipe && self.is_live && !self.is_bare, PLAN_LIVE)
            | bit(self.is_terminal_stdin(), PLAN_IN_TTY)
            | bit(relayed, PLAN_RELAYED)
            | bit(begins_in_foreground, PLAN_FOREGROUND)
            | bit(begins_in_foreground && self.stdio.leader, PLAN_LEADER)
            | bit(relayed && self.stdio.on_demand, PLAN_ON_DEMAND)
            | bit(!relayed && self.stdio.leader, PLAN_ORPHANED)
            | bit(self.controlling == Controlling::Withheld, PLAN_DETACHED)
            | bit(self.controlling == Controlling::UnlessFed, PLAN_UNLESS_FED)
    }

    /// The caller's stream that gets what the command writes to its terminal.
    pub(super) fn tty(self) -> Option<wire::CallerStream> {
        if self.stdio.stdout && !self.out_pipe {
            return Some(wire::CallerStream::Out);
        }
        (self.stdio.stderr && !self.err_pipe && !self.err_is_out).then_some(wire::CallerStream::Err)
    }

    pub(super) fn has_terminal(self) -> bool {
        self.tty().is_some()
    }

    /// Returns true if the command's terminal stands for its caller's, which the shim relays.
    pub(super) fn is_relayed(self) -> bool {
        is_relayed(self.stdio, self.tty)
    }

    /// Returns true if the command's stdin is its own terminal: if it is relayed, or if the caller is in the background
    /// of the terminal on its stdin. A command that read the caller's terminal there would be stopped; from the session
    /// of its guard it would not, and would take the keys of another program.
    fn is_terminal_stdin(self) -> bool {
        (self.stdio.relayed && self.tty != Tty::Never)
            || (self.stdio.stdin_tty && self.stdio.background && self.tty != Tty::Never)
    }

    /// Returns true if the command writes what it would write without rexec.
    pub(super) fn is_as_written(self) -> bool {
        self.tty != Tty::Always
    }

    /// The streams that the host reads.
    pub(super) fn streams(self) -> Streams {
        let pipes = [(self.out_pipe, Stream::Out), (self.err_pipe, Stream::Err)];
        let pipes = pipes.into_iter().filter(|(on, _)| *on).map(|(_, stream)| stream);
        Streams::of(&[Stream::Tty].into_iter().chain(pipes).collect::<Vec<_>>())
    }

    /// Opens the pipes: read end and write end of each, in the order in which the write ends are sent.
    pub(super) fn open_pipes(self) -> io::Result<Vec<(Stream, OwnedFd, OwnedFd)>> {
        let wanted = [(self.out_pipe, Stream::Out), (self.err_pipe, Stream::Err)];
        let wanted = wanted.into_iter().filter(|(on, _)| *on);
        wanted.map(|(_, stream)| crate::sys::pipe().map(|(read, write)| (stream, read, write))).collect()
    }
}

/// Returns true if the shim relays the caller's terminal. One that is only on standard error is not relayed if output
/// is wanted on a terminal whatever the caller has.
fn is_relayed(stdio: Stdio, tty: Tty) -> bool {
    match tty {
        Tty::Auto => stdio.relayed || stdio.on_demand,
        Tty::Always => stdio.relayed || (stdio.on_demand && stdio.stdout_tty),
        Tty::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Stdio = Stdio {
        stdin: true,
        stdout: true,
        stderr: true,
        same_output: false,
        stdin_tty: false,
        stdout_tty: false,
        stderr_tty: false,
        relayed: false,
        background: false,
        leader: false,
        on_demand: false,
    };

    #[test]
    fn streams_follow_the_callers_descriptors() {
        use wire::CallerStream::{Err, Out};
        let same = Stdio { same_output: true, ..OPEN };
        let terminal = Stdio { stdout_tty: true, stderr_tty: true, ..same };
        let two = Stdio { same_output: false, ..terminal };
        let out_only = Stdio { stdout_tty: true, ..OPEN };
        let err_only = Stdio { stderr_tty: true, ..OPEN };
        let no_err = Stdio { stderr: false, ..OPEN };
        let only_err = Stdio { stdout: false, stderr_tty: true, ..OPEN };
        const TTY: Stream = Stream::Tty;
        for (stdio, tty, streams, at) in [
            (OPEN, Tty::Auto, &[TTY, Stream::Out, Stream::Err][..], None),
            (same, Tty::Auto, &[TTY, Stream::Out], None),
            (terminal, Tty::Auto, &[TTY], Some(Out)),
            (two, Tty::Auto, &[TTY, Stream::Err], Some(Out)),
            (out_only, Tty::Auto, &[TTY, Stream::Err], Some(Out)),
            (err_only, Tty::Auto, &[TTY, Stream::Out], Some(Err)),
            (no_err, Tty::Auto, &[TTY, Stream::Out], None),
            (only_err, Tty::Auto, &[TTY], Some(Err)),
            (OPEN, Tty::Always, &[TTY, Stream::Err], Some(Out)),
            (same, Tty::Always, &[TTY], Some(Out)),
            (no_err, Tty::Always, &[TTY], Some(Out)),
            (OPEN, Tty::Never, &[TTY, Stream::Out, Stream::Err], None),
            (terminal, Tty::Never, &[TTY, Stream::Out], None),
            (Stdio { relayed: true, ..err_only }, Tty::Always, &[TTY, Stream::Out], Some(Err)),
        ] {
            let plan = StreamPlan::of(stdio, tty, false);
            assert_eq!((plan.streams(), plan.tty()), (Streams::of(streams), at), "{stdio:?} {tty:?}");
        }
    }

    #[test]
    fn the_guard_is_told_in_bits() {
        let same = Stdio { same_output: true, ..OPEN };
        assert_eq!(StreamPlan::of(same, Tty::Auto, false).bits(), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT);
        assert_eq!(StreamPlan::of(same, Tty::Always, true).bits(), PLAN_KILL_GROUP | PLAN_DEFAULTS);
        let live = |tty| StreamPlan::of(same, tty, false).live(true);
        assert_eq!(live(Tty::Auto).bits(), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT | PLAN_LIVE);
        assert_eq!(live(Tty::Always).bits(), PLAN_DEFAULTS, "a terminal is flushed as it is");
        assert_eq!(live(Tty::Auto).bare(true).bits(), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT);
        assert_eq!(live(Tty::Always).bare(true).bits(), 0);
        let relayed =
            Stdio { stdin_tty: true, stdout_tty: true, stderr_tty: true, relayed: true, leader: true, ..same };
        let bits = |stdio| StreamPlan::of(stdio, Tty::Auto, false).bits();
        assert_eq!(bits(relayed), PLAN_IN_TTY | PLAN_RELAYED | PLAN_FOREGROUND | PLAN_LEADER);
        assert_eq!(bits(Stdio { background: true, ..relayed }), PLAN_IN_TTY | PLAN_RELAYED);
        let never = StreamPlan::of(relayed, Tty::Never, false).bits();
        assert_eq!(never, PLAN_OUT_PIPE | PLAN_ERR_IS_OUT | PLAN_ORPHANED);
        let on_demand = Stdio { stdin_tty: false, relayed: false, on_demand: true, ..relayed };
        assert_eq!(bits(on_demand), PLAN_RELAYED | PLAN_ON_DEMAND);
        let typed = Stdio { stdin_tty: true, ..same };
        assert_eq!(bits(typed), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT, "it travels as it is");
        assert_eq!(bits(Stdio { background: true, ..typed }), PLAN_OUT_PIPE | PLAN_ERR_IS_OUT | PLAN_IN_TTY);
    }

    #[test]
    fn a_caller_in_its_sessions_first_group_has_an_orphaned_one() {
        let leads =
            |stdio| StreamPlan::of(Stdio { leader: true, ..stdio }, Tty::Auto, false).bits() & PLAN_ORPHANED != 0;
        assert!(leads(OPEN));
        assert!(!leads(Stdio { relayed: true, ..OPEN }), "that one's shell leads a session itself");
    }

    #[test]
    fn a_controlling_terminal_is_for_those_that_a_person_can_answer() {
        let controlling = |stdio, tty, is_attended, feeds| {
            StreamPlan::of(stdio, tty, false).controlled(is_attended, || feeds).controlling
        };
        assert_eq!(controlling(OPEN, Tty::Auto, true, false), Controlling::UnlessFed);
        assert_eq!(controlling(OPEN, Tty::Auto, true, true), Controlling::Withheld);
        assert_eq!(controlling(OPEN, Tty::Auto, false, false), Controlling::Withheld);
        assert_eq!(controlling(OPEN, Tty::Never, true, false), Controlling::Withheld);
        let out_tty = Stdio { stdout_tty: true, ..OPEN };
        assert_eq!(controlling(out_tty, Tty::Never, true, false), Controlling::Withheld);
        for (stdio, tty) in [
            (OPEN, Tty::Always),
            (out_tty, Tty::Auto),
            (Stdio { on_demand: true, ..OPEN }, Tty::Auto),
            (Stdio { stdin_tty: true, background: true, ..OPEN }, Tty::Auto),
        ] {
            assert_eq!(controlling(stdio, tty, false, true), Controlling::Given, "{stdio:?} {tty:?}");
        }
    }
}
