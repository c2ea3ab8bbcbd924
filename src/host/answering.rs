//! A person who answers a run's prompt, or attends to a run: whose keys go to its terminal, and what they amount to.
//!
//! Invariants: keys are written only once the guard has given the foreground, so that none is dropped with what was
//! typed before; they are counted for the journal and never kept.

use super::turn::PeerId;
use crate::core::entry::{AnswerPlace, Typed};
use crate::io::outlet::Outlet;
use crate::io::port::Port;
use crate::sys::{self, pty};

/// Where a person types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answerer {
    /// On the host's console.
    Console,
    /// Behind this peer: `rexec send` or `rexec attach`.
    Peer(PeerId),
}

/// The person who has a run's terminal.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) by: Answerer,
    /// The guard has given the foreground to the command.
    pub(super) is_given: bool,
    /// The person leaves when everything typed is written.
    pub(super) is_leaving: bool,
    /// A program of the run was stopped because it read the terminal, and has got nothing since.
    is_stopped: bool,
    /// The size of the person's terminal, where it stands for the run's.
    pub(super) size: Option<pty::Size>,
    /// The size that the run's terminal had before.
    before: Option<pty::Size>,
    keys: Outlet,
    /// Bytes that reached the terminal.
    pub(super) written: u64,
    /// The answer so far.
    typed: Typed,
}

impl Answering {
    /// Somebody begins. `is_stopped` says that a program of the run was stopped because it read the terminal.
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

    /// Whether the program was stopped in read(2) and has got no key since. It is told once.
    pub(super) fn begins_in_read(&mut self) -> bool {
        std::mem::take(&mut self.is_stopped) && self.written == 0
    }

    /// Gives the run's terminal the size back that it had before. Returns that size.
    pub(super) fn unfit(&mut self, port: &Port) -> Option<pty::Size> {
        self.size = None;
        let before = self.before.take()?;
        pty::resize(port.fd(), before).ok()?;
        Some(before)
    }

    /// Queues what was typed.
    pub(super) fn push(&mut self, keys: &[u8]) {
        self.keys.buffer().extend_from_slice(keys);
    }

    /// Whether keys wait for room in the terminal.
    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// Keys that wait, bytes.
    pub(super) fn pending(&self) -> usize {
        self.keys.pending()
    }

    /// Writes as much as the terminal takes; returns the answers that are complete by that.
    pub(super) fn flush(&mut self, port: &mut Port) -> Vec<Typed> {
        let mut answers = Vec::new();
        if !self.is_given {
            return answers;
        }
        let (typed, keys, all) = (&mut self.typed, &mut self.keys, &mut self.written);
        let is_text = typed.place == AnswerPlace::Send;
        let flushed = keys.flush(|bytes| {
            let (reads_lines, hides) = (pty::reads_lines(port.fd()), !pty::shows_keys(port.fd()));
            // A line at a time: by then the terminal may have other modes.
            let line = bytes.iter().position(|byte| ENDS.contains(byte)).map_or(bytes.len(), |at| at + 1);
            let mut line_typed = bytes[..line].to_vec();
            // A text ends with a newline, and what the return key sends is a carriage return. A terminal that reads lines
            // makes the one of the other, any other one leaves that to its program.
            if let Some(end @ b'\n') = line_typed.last_mut().filter(|_| is_text && !reads_lines) {
                *end = b'\r';
            }
            let written = port.write(|fd| sys::write(fd, &line_typed))?;
            let length = written.unwrap_or(0);
            let count = u64::try_from(length).expect("a length fits 64 bits");
            *all += count;
            typed.bytes += count;
            typed.is_hidden |= hides && length > 0;
            if reads_lines && length == line && bytes[..line].last().is_some_and(|byte| ENDS.contains(byte)) {
                answers.push(std::mem::replace(typed, Typed { bytes: 0, is_hidden: false, ..*typed }));
            }
            Ok(written)
        });
        if flushed.is_err() {
            // A terminal that is gone takes everything.
            keys.clear();
        }
        answers
    }

    /// The answer that has no end, if there is one.
    pub(super) fn unfinished(&self) -> Option<Typed> {
        (self.typed.bytes > 0).then_some(self.typed)
    }
}

/// What ends an answer at a terminal that reads lines: return, newline, ^D.
const ENDS: &[u8] = b"\r\n\x04";
