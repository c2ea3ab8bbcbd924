//! Frames from the host, and the output in them on its way to the caller.

use nix::errno::Errno;
use rexec_sh::protocol::exit_code::{NOT_FOUND, OWN_FAILURE};
use rexec_sh::protocol::notice::{Notice, without_prefix};
use rexec_sh::protocol::wire::{CallerStream, Decoded, FromHost, FromShim, Hello, WireError};

use super::{ABORTED, Client, ClientEnd, index};
use crate::notice;
use crate::output_descriptor::Written;

/// The most bytes of one stream that may be lost for want of disk space. Beyond it, the host gets the message that the
/// reader is gone. Otherwise a command that never checks its output would run forever.
const LOST_BYTES_MAX: usize = 1 << 20;

/// Bytes of the buffer on their way to an output.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) stream: CallerStream,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Client {
    /// Takes one item off the buffer. Returns `false` if there is no whole one.
    pub(super) fn decode(&mut self) -> Result<bool, WireError> {
        let bytes = &self.buffer[self.start..self.end];
        if !self.greeted {
            if let Decoded::Item(_, taken) = Hello::decode(bytes)? {
                (self.greeted, self.start) = (true, self.start + taken);
                return Ok(true);
            }
            return Ok(false);
        }
        let (frame, taken) = match FromHost::decode(bytes)? {
            Decoded::Incomplete => {
                self.make_room();
                return Ok(false);
            }
            Decoded::Skip(taken) => {
                self.start += taken;
                return Ok(true);
            }
            Decoded::Item(frame, taken) => (frame, taken),
        };
        let to = self.start + taken;
        let chunk = |stream, bytes: &[u8]| Some(Chunk { stream, from: to - bytes.len(), to });
        match frame {
            FromHost::Out(bytes) => {
                self.chunk = chunk(CallerStream::Out, bytes);
                self.unprocess();
            }
            FromHost::Err(bytes) => {
                self.chunk = chunk(CallerStream::Err, bytes);
                self.unprocess();
            }
            FromHost::Note(text) => {
                self.chunk = chunk(CallerStream::Err, text);
                self.end_line();
            }
            FromHost::Exit(_) if self.hold_back.is_some() => {
                self.give_held();
                return self.decode();
            }
            FromHost::Exit(exit) => self.ending = Some(self.end_of(exit)),
            FromHost::Fail { code, text } => {
                let text = if self.is_plain { without_prefix(text) } else { text };
                self.chunk = chunk(CallerStream::Err, text);
                self.ending = Some(ClientEnd::Exit(if self.is_plain { NOT_FOUND } else { code }));
                self.end_line();
                self.reset_terminal();
            }
            FromHost::Refuse if self.aborting.is_some() => self.ending = Some(self.end_of(ABORTED)),
            FromHost::Refuse => self.ending = Some(ClientEnd::Refused(self.came)),
            FromHost::Heard => self.unheard = None,
            FromHost::Accepted => self.let_go(),
            FromHost::OutputEnded(stream) => self.end_output(stream),
            FromHost::Attach => self.attach(),
            FromHost::Taken(bytes) => self.on_taken(bytes),
            FromHost::Stopped(signal) => self.on_command_stopped(signal),
            FromHost::Modes(modes) => self.on_modes(&modes),
            FromHost::Return => self.return_terminal(),
        }
        self.start = to;
        Ok(true)
    }

    /// Makes sure that a text of the host's ends with a newline. The text moves into the space of the frame's header.
    fn end_line(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        if chunk.from < chunk.to && self.buffer[chunk.to - 1] != b'\n' {
            self.buffer.copy_within(chunk.from..chunk.to, chunk.from - 1);
            self.buffer[chunk.to - 1] = b'\n';
            chunk.from -= 1;
        }
    }

    /// Moves an incomplete frame to the front of the buffer, so that its rest fits behind.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
    }

    /// Writes the chunk. Returns `false` if its output takes no more at this moment.
    pub(super) fn write_chunk(&mut self) -> bool {
        let Some(stream) = self.chunk.as_ref().map(|chunk| chunk.stream) else { return true };
        self.take_turn(stream);
        let Some(chunk) = &mut self.chunk else { return true };
        let output = &mut self.outputs[index(chunk.stream)];
        while chunk.from < chunk.to && !output.is_closed() {
            match output.write(&self.buffer[chunk.from..chunk.to]) {
                Written::Bytes(bytes) => chunk.from += bytes,
                Written::Blocked => return false,
                Written::Failed(error) => {
                    let (stream, lost) = (chunk.stream, chunk.to - chunk.from);
                    self.on_unwritable(stream, error, lost);
                    break;
                }
            }
        }
        self.chunk = None;
        true
    }

    /// Handles a failed write of this many bytes. Each stream is handled by itself, as the command's own streams would be.
    fn on_unwritable(&mut self, stream: CallerStream, error: Errno, bytes: usize) {
        let output = &mut self.outputs[index(stream)];
        if output.is_without_reader(error) {
            return self.close(stream);
        }
        let is_first = !output.has_lost();
        if output.lose(bytes) > LOST_BYTES_MAX {
            self.close(stream);
        }
        if is_first && stream == CallerStream::Out && !self.outputs[index(CallerStream::Err)].is_closed() {
            // The command cannot report this, because its own write has succeeded.
            let reason = error.desc();
            let problem = format_args!("the command's output cannot be written: {reason}");
            notice::tell(&Notice::without_hint(OWN_FAILURE, problem));
        }
    }

    /// Closes an output that no process of the command can write any more, so that its reader gets the end of file.
    fn end_output(&mut self, stream: CallerStream) {
        if self.terminal.as_ref().is_some_and(|terminal| terminal.output() == stream) {
            return;
        }
        self.outputs[index(stream)].end();
        if stream == CallerStream::Out && self.is_one_output {
            self.outputs[index(CallerStream::Err)].end();
        }
    }

    /// Reports to the host, once, that the reader of this stream is gone.
    pub(super) fn close(&mut self, stream: CallerStream) {
        let output = &mut self.outputs[index(stream)];
        if !output.is_closed() {
            output.close();
            self.look_for_ends();
            FromShim::Closed(stream).encode(&mut self.outgoing);
        }
        self.abort_if_left();
    }
}
