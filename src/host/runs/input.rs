//! Passes on what programs write to the inputs of their commands: pipes, and terminals of their own.

use super::Runs;
use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::host::input_pipe::InputPipe;
use crate::host::peers::Peers;
use crate::host::run::ActiveRun;
use crate::host::spares::END_OF_FILE;
use crate::host::turn::Turn;
use crate::io::poller::Ready;
use rexec_sh::protocol::wire::KEYS_BYTES_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::host) enum InputState {
    /// It has no input, or the input is closed.
    Closed,
    /// Earlier input waits for room, or the command has not begun.
    Full,
    /// It takes more.
    Open,
}

/// A piece of a command's input.
#[derive(Debug, Clone, Copy)]
pub(in crate::host) struct InputPiece<'a> {
    pub(in crate::host) bytes: &'a [u8],
    /// Nothing comes after it.
    pub(in crate::host) is_end: bool,
}

impl Runs {
    /// Remembers an event of a pipe's. Returns true if it calls for a visit.
    pub(in crate::host) fn remember_input(&mut self, job: JobId, event: Ready) -> bool {
        self.get_mut(job).and_then(|run| run.input.as_mut()).is_some_and(|input| input.remember(event))
    }

    /// Gives an input to a command that has not begun.
    pub(in crate::host) fn set_input(&mut self, job: JobId, input: InputPipe, turn: &mut Turn) {
        if let Some(run) = self.get_mut(job) {
            run.input = Some(input);
            self.flush_input(job, turn);
        }
    }

    /// Returns true if a command has a terminal of its own, which stands for no caller's.
    pub(in crate::host) fn has_own_terminal(&self, job: JobId) -> bool {
        self.get(job).is_some_and(ActiveRun::has_own_terminal)
    }

    /// Returns true if a command's standard input is a pipe that takes more.
    pub(in crate::host) fn has_input_pipe(&self, job: JobId) -> bool {
        self.get(job).is_some_and(|run| run.input.is_some())
    }

    pub(in crate::host) fn input_state(&self, job: JobId) -> InputState {
        let Some(run) = self.get(job) else { return InputState::Closed };
        match (&run.input, &run.relay) {
            (Some(input), _) if input.is_ending() => InputState::Closed,
            (Some(input), _) if input.pending() > 0 => InputState::Full,
            (Some(_), _) => InputState::Open,
            // Its caller types there, and counts the keys that the command has read.
            (None, Some(_)) if run.peer.is_some() => InputState::Closed,
            (None, Some(_)) if run.streams[Stream::Tty as usize].is_none() => InputState::Closed,
            (None, Some(relay)) if run.is_unbegun() || relay.keys.pending() > 0 => InputState::Full,
            (None, Some(_)) => InputState::Open,
            (None, None)
                if run
                    .pending
                    .as_ref()
                    .is_some_and(|pending| pending.as_ref().is_ok_and(|pending| pending.command.stdio.relayed)) =>
            {
                InputState::Full
            }
            (None, None) => InputState::Closed,
        }
    }

    /// Writes to a command's input, which must be open.
    pub(in crate::host) fn write_input(
        &mut self,
        job: JobId,
        piece: InputPiece<'_>,
        turn: &mut Turn,
        peers: &mut Peers,
    ) {
        let InputPiece { bytes, is_end } = piece;
        let Some(run) = self.get_mut(job) else { return };
        if let Some(input) = &mut run.input {
            input.push(bytes, is_end);
            return self.flush_input(job, turn);
        }
        if let Some(relay) = &mut run.relay {
            relay.keys.buffer().extend_from_slice(bytes);
            if is_end {
                relay.keys.buffer().extend_from_slice(END_OF_FILE);
            }
            self.flush_keys(job, turn, peers);
        }
    }

    /// Writes as much as a command's pipe takes, and closes it after the last byte.
    pub(in crate::host) fn flush_input(&mut self, job: JobId, turn: &mut Turn) {
        let is_over = self.get_mut(job).and_then(|run| run.input.as_mut()).is_some_and(InputPipe::flush);
        if is_over {
            self.close_input(job, turn);
        }
        turn.touch(job);
    }

    pub(in crate::host) fn close_input(&mut self, job: JobId, turn: &mut Turn) {
        if let Some(input) = self.get_mut(job).and_then(|run| run.input.take()) {
            turn.close(input.into_port());
        }
    }
}

/// The bytes of input that the host takes at a time, so that a terminal's keys stay bounded.
pub(in crate::host) const INPUT_PIECE_BYTES: usize = KEYS_BYTES_MAX;
