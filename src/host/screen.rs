//! The human's terminal, as the loop uses it: what is written goes out as it can, what is typed is taken in.

use std::time::Duration;

use crate::core::process::Pid;
use crate::io::outlet::{Flush, Outlet};
use crate::io::poller::{Poller, Ready, Token};
use crate::sink::console::ConsoleKind;
use crate::sys::terminal::{Keys, Output};
use crate::sys::{self, pty};

/// Asks a terminal whether it is well, and what every terminal answers.
const STATUS_QUERY: &[u8] = b"\x1b[5n";
const STATUS_REPLY: &[u8] = b"\x1b[0n";

/// The terminal.
#[derive(Debug)]
pub(super) struct Screen {
    output: Output,
    /// `None` when it cannot be polled; then it never has to wait either.
    pub(super) token: Option<Token>,
    pub(super) out: Outlet,
    is_writable: bool,
    is_gone: bool,
    keys: Option<Keys>,
    pub(super) keys_token: Option<Token>,
}

impl Screen {
    /// Takes standard input and output over.
    pub(super) fn take(poller: &mut Poller) -> std::io::Result<Self> {
        let output = Output::standard()?;
        let token = if output.is_pollable() { Some(poller.register(&output)?) } else { None };
        let keys = Keys::take();
        let keys_token = keys.as_ref().and_then(|keys| poller.register(keys).ok());
        let out = Outlet::default();
        Ok(Self { output, token, out, is_writable: true, is_gone: false, keys, keys_token })
    }

    /// What it is.
    pub(super) fn kind(&self) -> ConsoleKind {
        if !self.output.is_terminal() {
            return ConsoleKind::Text;
        }
        let has_utf8 = locale().is_none_or(|locale| is_utf8(&locale));
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || !has_utf8 { ConsoleKind::Dumb { has_utf8 } } else { ConsoleKind::Terminal }
    }

    /// Its size, if it is a terminal.
    pub(super) fn size(&self) -> Option<pty::Size> {
        self.output.size()
    }

    /// Remembers an event; the console is looked at in every turn.
    pub(super) fn remember(&mut self, ready: Ready) -> bool {
        self.is_writable |= ready.writable;
        false
    }

    /// Takes the keys that were typed; `false` when the terminal is gone.
    pub(super) fn discard_keys(&mut self, poller: &mut Poller) -> bool {
        self.read_keys(poller, |_| {})
    }

    fn read_keys(&mut self, poller: &mut Poller, each: impl FnMut(&[u8])) -> bool {
        let lives = self.keys.as_mut().is_none_or(|keys| keys.read_all(each));
        if !lives && let Some(keys) = self.keys.take() {
            poller.deregister(&keys);
        }
        lives
    }

    /// Asks the terminal something itself: when that is answered, everything that was asked before is, too.
    /// `None` when nobody could read the reply.
    pub(super) fn question(&mut self) -> Option<Question> {
        self.keys_token?;
        self.keys.as_ref()?;
        self.out.buffer().extend_from_slice(STATUS_QUERY);
        Some(Question::default())
    }

    /// Looks for the reply among the keys; whether any came.
    pub(super) fn listen(&mut self, poller: &mut Poller, question: &mut Question) -> bool {
        let mut has_come = false;
        self.read_keys(poller, |keys| {
            has_come = true;
            question.typed.extend_from_slice(keys);
            question.is_answered |= question.typed.windows(STATUS_REPLY.len()).any(|bytes| bytes == STATUS_REPLY);
            // A reply may come in two pieces.
            let done = question.typed.len().saturating_sub(STATUS_REPLY.len() - 1);
            question.typed.drain(..done);
        });
        has_come
    }

    /// Writes what goes; `false` when a terminal is gone. A pipe that nobody reads any more is no reason to end: the
    /// journal still has everything.
    pub(super) fn flush(&mut self) -> bool {
        if self.is_gone {
            self.out.clear();
            return true;
        }
        if !self.is_writable || self.out.is_empty() {
            return true;
        }
        let (output, is_writable) = (&self.output, &mut self.is_writable);
        let flushed = self.out.flush(|bytes| match output.write(bytes) {
            Err(error) if sys::is_transient(&error) => {
                *is_writable = false;
                Ok(None)
            }
            // A file is written on when there is room again; until then, what does not fit the queue is counted.
            Err(error) if sys::is_disk_full(&error) => Ok(None),
            written => written.map(Some),
        });
        match flushed {
            Ok(Flush::Done | Flush::Blocked) => true,
            Err(_) => {
                self.is_gone = true;
                self.out.clear();
                !self.output.is_terminal()
            }
        }
    }

    /// The process that writes to the terminal, if the host may not.
    pub(super) fn helper(&self) -> Option<Pid> {
        self.output.helper()
    }

    /// Gives the terminal back, after what was written has got there, for so long at most.
    pub(super) fn give_back(self, most: Duration) {
        self.output.end(most);
        drop(self.keys);
    }
}

/// What the environment says of the terminal's characters: locale(7). Where it says nothing, they are UTF-8.
fn locale() -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set)
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// A question to the terminal.
#[derive(Debug, Default)]
pub(super) struct Question {
    pub(super) is_answered: bool,
    typed: Vec<u8>,
}
