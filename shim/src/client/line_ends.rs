//! Ends of lines that both the command's terminal and the caller's would write.
//!
//! The command's terminal has the modes of the caller's, so its output has CR LF for each line feed of the command.
//! While the caller's terminal has its own modes too, because nothing asks for keys, it would turn that into CR CR LF.
//! Invariant: the caller's terminal gets, byte for byte, the same as without the other one.

use std::time::{Duration, Instant};

use super::{Client, index};

/// The time for which a carriage return waits for its line feed, which the kernel may hand over separately.
const HALF_LINE_END: Duration = Duration::from_millis(20);

impl Client {
    /// Undoes the command's terminal's changes to line feeds, in the chunk that has just come.
    pub(super) fn unprocess(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        let Some(terminal) = self.terminal.as_ref().filter(|terminal| terminal.output() == chunk.stream) else {
            return;
        };
        if self.hold_back.take().is_some() {
            // It takes the place of the frame's header.
            chunk.from -= 1;
            self.buffer[chunk.from] = b'\r';
        }
        if terminal.processes_twice() {
            chunk.to = chunk.from + join_line_ends(&mut self.buffer[chunk.from..chunk.to]);
            if self.buffer[chunk.from..chunk.to].ends_with(b"\r") {
                chunk.to -= 1;
                self.hold_back = Some(Instant::now() + HALF_LINE_END);
            }
        }
    }

    /// Writes the held carriage return. A terminal that takes nothing at this moment does not miss it.
    pub(super) fn give_held(&mut self) {
        if self.hold_back.take().is_some()
            && let Some(terminal) = &self.terminal
        {
            let _ = self.outputs[index(terminal.output())].write(b"\r");
        }
    }
}

/// Turns the pairs into line feeds; returns the number of bytes left at the front.
fn join_line_ends(bytes: &mut [u8]) -> usize {
    let mut length = 0;
    for at in 0..bytes.len() {
        if bytes[at] == b'\n' && length > 0 && bytes[at - 1] == b'\r' {
            length -= 1;
        }
        bytes[length] = bytes[at];
        length += 1;
    }
    length
}
