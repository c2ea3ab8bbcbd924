//! The orders that follow from what happens to a job.

use rexec_sh::protocol::process::Signal;

/// An order of the host to a guard. Only guards send signals to commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Deliver this signal to the shell's process group.
    Signal(Signal),
    /// Interrupt the command as ^C at its terminal would: SIGINT to the foreground process group. With the guard's own in
    /// the foreground, that is the group that waits for input, else the shell's.
    Interrupt,
    /// Deliver this signal to every process that an ended shell left running.
    SignalLeft(Signal),
    /// Stop every process of the command, until [`Order::Unpause`].
    Pause,
    /// Continue the processes that [`Order::Pause`] stopped.
    Unpause,
    /// Send SIGCONT and SIGTERM to the shell's process group.
    Terminate,
    /// Kill the command's whole process tree until it is empty.
    Kill,
    /// Answer a request for terminal input with end of file: the host has typed ^D, and the guard makes the stopped
    /// process group the foreground group for a moment.
    EndInput,
    /// Leave what reads keys in another session alone, because nobody answers: nothing is typed, and it is not reported again.
    LeaveKeys,
    /// Leave the command without a controlling terminal, because nobody answers: the host hangs the terminal up, so that
    /// what has asked reads end of file, and what asks later finds no terminal.
    GiveUpTerminal,
    /// Let a stopped process group change the terminal's modes, in the foreground for a moment, and see whether it then
    /// reads.
    PassModes,
    /// Give the foreground to the process group that asked, or else to the shell's, because a person types for it.
    GiveForeground,
    /// Take the foreground back once everything typed is read.
    TakeForeground,
    /// Send SIGHUP to the process that asked for terminal input too often, or SIGKILL if it got SIGHUP before.
    HangUp,
    /// Send SIGPIPE to the processes in the shell's group, because their output has no reader any more.
    BreakPipe,
    /// Begin: nobody but the guard holds what the command may let go of. The host gives it once the guard is ready, and then
    /// no other guard gets the command.
    Begin,
    /// Look through the silent command's tree for processes that are stopped at the terminal. Once the shell has ended, look
    /// for filters instead: processes that still work on what the shell has fed them.
    Look,
    /// Kill what is left of the shell's process group, as the caller would do now that it has its result.
    KillGroup,
    /// The stopped caller of a command goes on, in the foreground of its terminal or not. With `continues` the command goes on
    /// with it; otherwise it did so before.
    Resume { foreground: bool, continues: bool },
    /// Keys were typed for a command that has its caller's terminal on demand.
    Typed,
}
