//! A person who answers a run's prompt, or attends to a run: whose keys go to its terminal, and what they amount to.
//!
//! Invariants: keys are written only once the guard has given the foreground, so that none is dropped with what was
//! typed before; they are counted for the journal and never kept; the rest of a line that began on a terminal without ECHO
//! is not written to one that has it again, because a program has given up asking.

use std::time::Instant;

use super::spares::END_OF_FILE;
use super::turn::PeerId;
use crate::core::entry::{AnswerPlace, Typed};
use crate::io::outlet::Outlet;
use crate::io::port::Port;
use crate::sys::{self, pty};
use crate::text::echo::{SecretLine, ShownBy};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answerer {
    Console,
    /// Behind this peer: `rexec send`, `rexec attach` or a client of JSON-RPC.
    Peer(PeerId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypedLine {
    Plain,
    /// The prompt asks for a secret.
    Secret,
    /// The terminal did not show its first key, as for a password.
    Hidden,
}

impl TypedLine {
    /// A line that begins at a terminal with these modes.
    fn begun(modes: KeyModes, asks_for_secret: impl Fn() -> bool) -> Self {
        match modes {
            KeyModes { shows_keys: false, reads_lines: true } => Self::Hidden,
            KeyModes { shows_keys: true, .. } if asks_for_secret() => Self::Secret,
            KeyModes { shows_keys: false, .. } if asks_for_secret() => Self::Hidden,
            KeyModes { .. } => Self::Plain,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct KeyModes {
    shows_keys: bool,
    reads_lines: bool,
}

#[derive(Debug)]
pub(super) struct Answering {
    pub(super) by: Answerer,
    /// The guard has given the foreground to the command.
    pub(super) is_given: bool,
    /// The person leaves when the terminal has all keys.
    pub(super) is_leaving: bool,
    /// A program of the run was stopped because it read the terminal, and has got nothing since.
    is_stopped: bool,
    /// The size of the person's terminal, where it stands for the run's.
    pub(super) size: Option<pty::Size>,
    /// The size that the run's terminal had before.
    before: Option<pty::Size>,
    keys: Outlet,
    /// The line that has begun and has no end.
    line: Option<TypedLine>,
    /// A person typed a line at a terminal that shows keys, and nobody has asked for that since.
    has_shown_line: bool,
    /// Bytes that reached the terminal.
    pub(super) written: u64,
    /// The answer so far.
    typed: Typed,
}

impl Answering {
    /// `is_stopped` says that a program of the run was stopped because it read the terminal.
    pub(super) fn new(by: Answerer, place: AnswerPlace, is_stopped: bool) -> Self {
        let typed = Typed { bytes: 0, is_hidden: false, place };
        Self {
            by,
            is_given: false,
            is_leaving: false,
            is_stopped,
            size: None,
            before: None,
            keys: Outlet::default(),
            line: None,
            has_shown_line: false,
            written: 0,
            typed,
        }
    }

    /// Gives the run's terminal the size of the person's, if it has one and the command has the foreground. Returns that
    /// size. The size changes in any case, so that a full-screen program draws its screen again.
    pub(super) fn fit(&mut self, port: &Port) -> Option<pty::Size> {
        let wanted = self.size.filter(|_| self.is_given)?;
        let now = pty::size(port.fd());
        self.before = self.before.or(now);
        if now == Some(wanted) {
            let _ = pty::resize(port.fd(), pty::Size { rows: wanted.rows.saturating_sub(1).max(1), ..wanted });
        }
        pty::resize(port.fd(), wanted).ok()?;
        Some(wanted)
    }

    /// Returns true, once, if the program was stopped in read(2) and has got no key since.
    pub(super) fn begins_in_read(&mut self) -> bool {
        std::mem::take(&mut self.is_stopped) && self.written == 0
    }

    /// Restores the earlier size of the run's terminal. Returns that size.
    pub(super) fn unfit(&mut self, port: &Port) -> Option<pty::Size> {
        self.size = None;
        let before = self.before.take()?;
        pty::resize(port.fd(), before).ok()?;
        Some(before)
    }

    pub(super) fn push(&mut self, keys: &[u8]) {
        self.keys.buffer().extend_from_slice(keys);
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Bytes of the keys that wait.
    pub(super) fn pending(&self) -> usize {
        self.keys.pending()
    }

    /// Writes as much as the terminal takes; returns the answers that this completes. `secret` gets what the terminal
    /// may show of a secret.
    pub(super) fn flush(
        &mut self,
        port: &mut Port,
        secret: &mut SecretLine,
        asks_for_secret: impl Fn() -> bool,
    ) -> Vec<Typed> {
        let mut answers = Vec::new();
        if !self.is_given {
            return answers;
        }
        let typed = &mut self.typed;
        let keys = &mut self.keys;
        let all = &mut self.written;
        let begun = &mut self.line;
        let has_shown_line = &mut self.has_shown_line;
        let is_text = matches!(typed.place, AnswerPlace::Send | AnswerPlace::Client);
        let flushed = keys.flush(|bytes| {
            let modes = KeyModes { shows_keys: pty::shows_keys(port.fd()), reads_lines: pty::reads_lines(port.fd()) };
            // A line at a time: by then the terminal may have other modes.
            let is_end = |byte: &u8| ENDS.contains(byte) || *byte == INTERRUPT;
            let end = bytes.iter().position(is_end);
            let line = end.map_or(bytes.len(), |at| at + 1);
            let kind = *begun.get_or_insert_with(|| TypedLine::begun(modes, &asks_for_secret));
            let last = end.map(|at| bytes[at]);
            if kind == TypedLine::Hidden && modes.shows_keys && last != Some(INTERRUPT) {
                // Nobody asks for it any more.
                begun.take_if(|_| last.is_some());
                return Ok(Some(line));
            }
            let mut line_typed = match (kind, last) {
                (TypedLine::Hidden, Some(INTERRUPT)) if modes.shows_keys => vec![INTERRUPT],
                _ => bytes[..line].to_vec(),
            };
            let left_out = line - line_typed.len();
            // A text ends with a newline, and the return key sends a carriage return. A terminal that reads lines turns
            // one into the other, any other one leaves that to its program.
            if let Some(end @ b'\n') = line_typed.last_mut().filter(|_| is_text && !modes.reads_lines) {
                *end = b'\r';
            }
            let Some(length) = port.write(|fd| sys::write(fd, &line_typed))? else { return Ok(None) };
            let count = u64::try_from(length).expect("a length fits 64 bits");
            *all += count;
            typed.bytes += count;
            typed.is_hidden |= !modes.shows_keys && length > 0;
            let is_whole = length == line_typed.len();
            let shown_by = if modes.reads_lines { ShownBy::Terminal } else { ShownBy::Program };
            if length > 0 && (kind == TypedLine::Secret || (kind == TypedLine::Hidden && !modes.reads_lines)) {
                secret.typed(&line_typed[..length], is_whole && last.is_some(), shown_by, Instant::now());
            }
            begun.take_if(|_| is_whole && last.is_some());
            if modes.reads_lines && is_whole && last.is_some_and(|last| ENDS.contains(&last)) {
                *has_shown_line |= modes.shows_keys && last.is_some_and(|last| !END_OF_FILE.contains(&last));
                answers.push(std::mem::replace(typed, Typed { bytes: 0, is_hidden: false, ..*typed }));
            }
            Ok(Some(length + if is_whole { left_out } else { 0 }))
        });
        if flushed.is_err() {
            // A terminal that is gone takes everything.
            keys.clear();
        }
        answers
    }

    /// Returns true if the terminal has all keys, and the last one ended a line.
    pub(super) fn has_ended_line(&self) -> bool {
        self.line.is_none() && self.written > 0
    }

    /// Returns true, once, if a line has ended whose end the terminal shows.
    pub(super) fn take_shown_line(&mut self) -> bool {
        std::mem::take(&mut self.has_shown_line)
    }

    pub(super) fn unfinished(&self) -> Option<Typed> {
        (self.typed.bytes > 0).then_some(self.typed)
    }
}

/// The keys that end an answer at a terminal that reads lines: return, newline, ^D.
const ENDS: &[u8] = b"\r\n\x04";
/// ^C, after which a program asks no more.
const INTERRUPT: u8 = 0x03;
