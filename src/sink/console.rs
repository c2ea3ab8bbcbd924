//! The console: one block per command on the human's terminal, never two commands mixed within one.
//!
//! A block is a banner, the command's live output, an end line where there is something to say, and a blank line.
//! Blocks come in order of start. The run that is being shown has the *floor*; the others wait in their logs, where
//! they may lose output, and are told how much. A run that has had the floor for a while yields it at a line start when
//! others wait, and goes on later under a second banner.
//!
//! Invariants: nothing here waits or touches a descriptor; what is queued is bounded, and so is the number of waiting
//! blocks; what is left out is counted exactly; nothing of a command reaches the terminal but through its filter, which
//! is reset at the end of each turn.

use std::collections::VecDeque;
use std::time::Instant;

use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Exit, Outcome, Reason};
use crate::core::log::Item;
use crate::limits;
use crate::sink::record::Left;
use crate::text::banner;
use crate::text::count::{self, counted};
use crate::text::escape::escape_line;
use crate::text::safe::raw::RawFilter;
use crate::text::safe::{HEADER_SGR, SafeFilter, show_bidi};
use crate::text::sanitize::{Mode, Sanitizer};

/// The most of a program's name in a line about it; the kernel keeps 15 bytes.
const PROGRAM_COLUMNS: usize = 32;

/// What the human's side of the console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A terminal: colours and moves within lines pass.
    Terminal,
    /// A file or pipe: text only.
    Text,
}

/// What stands in a block's banner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// When it began, RFC 3339.
    pub time: String,
    /// Who calls.
    pub whoami: String,
    /// Where.
    pub dir: String,
    /// What.
    pub command: String,
    /// An agent's look at the shell: one line instead of a block.
    pub is_probe: bool,
}

/// What of a command's output reaches a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// What cannot outlive the command's turn.
    #[default]
    Safe,
    /// Everything; the terminal is put right after each turn.
    Raw,
}

#[derive(Debug)]
enum Filter {
    Safe(SafeFilter),
    Raw(RawFilter),
    Text { sanitizer: Sanitizer, is_line_start: bool },
}

impl Filter {
    fn new(kind: Kind, view: View, columns: u16) -> Self {
        match (kind, view) {
            (Kind::Terminal, View::Safe) => {
                let mut filter = SafeFilter::new();
                filter.resize(columns);
                Self::Safe(filter)
            }
            (Kind::Terminal, View::Raw) => Self::Raw(RawFilter::new()),
            (Kind::Text, _) => Self::Text { sanitizer: Sanitizer::new(Mode::Strip), is_line_start: true },
        }
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Safe(filter) => filter.push(bytes, out),
            Self::Raw(filter) => filter.push(bytes, out),
            Self::Text { sanitizer, is_line_start } => {
                let mut text = Vec::new();
                sanitizer.push(bytes, &mut text);
                show_bidi(&text, out);
                if let Some(last) = text.last() {
                    *is_line_start = *last == b'\n';
                }
            }
        }
    }

    fn is_line_start(&self) -> bool {
        match self {
            Self::Safe(filter) => filter.at_line_start(),
            Self::Raw(filter) => filter.at_line_start(),
            Self::Text { is_line_start, .. } => *is_line_start,
        }
    }

    /// Leaves the terminal as before the turn, at a line start.
    fn end_turn(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Safe(filter) => filter.end_block(out),
            Self::Raw(filter) => filter.end_block(out),
            Self::Text { sanitizer, is_line_start } => {
                let before = out.len();
                sanitizer.finish(out);
                if !(if out.len() > before { out.ends_with(b"\n") } else { *is_line_start }) {
                    out.push(b'\n');
                }
                *is_line_start = true;
            }
        }
    }
}

#[derive(Debug)]
struct Block {
    job: JobId,
    cursor: Cursor,
    heading: Heading,
    filter: Filter,
    has_banner: bool,
    /// What its shell left running, to be told at the end.
    left: Option<String>,
}

/// Blocks that were never shown, because too many waited.
#[derive(Debug, Default)]
struct Unshown {
    commands: u64,
    first: u64,
    last: u64,
}

/// The console.
#[derive(Debug)]
pub struct Console {
    kind: Kind,
    view: View,
    /// The terminal's width, 0 if it is not known.
    columns: u16,
    blocks: VecDeque<Block>,
    /// Since when the block at the front of the queue has its turn.
    floor: Option<Instant>,
    unshown: Unshown,
    /// More could be shown when it was pumped last; else it waits for the terminal, and for no time.
    has_room: bool,
}

impl Console {
    /// An empty console.
    #[must_use]
    pub fn new(kind: Kind, view: View) -> Self {
        let (blocks, unshown) = (VecDeque::new(), Unshown::default());
        Self { kind, view, columns: 0, blocks, floor: None, unshown, has_room: true }
    }

    /// The terminal is now so many columns wide.
    pub fn resize(&mut self, columns: u16) {
        self.columns = columns;
        for block in &mut self.blocks {
            if let Filter::Safe(filter) = &mut block.filter {
                filter.resize(columns);
            }
        }
    }

    /// One line of the host's own, between blocks or as a line of its own within one.
    pub fn say(&mut self, line: &str, out: &mut Vec<u8>) {
        if let (Some(_), Some(block)) = (self.floor, self.blocks.front_mut()) {
            block.filter.end_turn(out);
        }
        header(self.kind, line, out);
    }

    /// A command begins. Beyond the bound of waiting blocks the oldest of them is given up.
    pub fn begin(&mut self, engine: &mut Engine, cursor: Cursor, heading: Heading) {
        if self.blocks.len() >= limits::CONSOLE_BLOCKS_MAX {
            let oldest = usize::from(self.floor.is_some());
            if let Some(block) = self.blocks.remove(oldest) {
                engine.detach(block.cursor);
                if self.unshown.commands == 0 {
                    self.unshown.first = block.job.0;
                }
                self.unshown.commands += 1;
                self.unshown.last = block.job.0;
            }
        }
        let filter = Filter::new(self.kind, self.view, self.columns);
        self.blocks.push_back(Block { job: cursor.job, cursor, heading, filter, has_banner: false, left: None });
    }

    /// The command left these processes running.
    pub fn on_left(&mut self, job: JobId, left: &[Left]) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.job == job) {
            let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            let named = left.iter().take(limits::STRAGGLERS_NAMED_MAX);
            block.left = banner::left_line(count, named.map(|left| (left.comm.as_str(), left.pid)));
        }
    }

    /// Shows what there is to show, until `out` is this long.
    pub fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>, most: usize, now: Instant) {
        while out.len() < most && self.show_next(engine, out, now) {}
        self.has_room = out.len() < most;
    }

    /// Shows one item, or passes the floor on; whether there may be more.
    fn show_next(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) -> bool {
        if self.floor.is_none() && !self.take_floor(engine, out, now) {
            return false;
        }
        let block = self.blocks.front_mut().expect("the floor is the front block's");
        match engine.next(block.cursor) {
            Some(item) => {
                let is_end = block.show(self.kind, &item, out);
                engine.advance(block.cursor);
                if is_end {
                    engine.detach(block.cursor);
                    self.blocks.pop_front();
                    self.floor = None;
                } else if self.may_yield(now) {
                    self.yield_floor(out);
                }
            }
            None if self.may_yield(now) => self.yield_floor(out),
            None => return false,
        }
        true
    }

    /// The host leaves: whatever is being shown ends here, and the terminal is as before it.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if let (Some(_), Some(block)) = (self.floor.take(), self.blocks.front_mut()) {
            block.remark(self.kind, "… the rest is not shown, see the journal", out);
            out.push(b'\n');
        }
        self.blocks.clear();
    }

    /// When a waiting block may get the floor.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.yields_at().filter(|_| self.has_room)
    }

    /// When the front block has had its time, if others wait. A block whose line is not finished keeps the floor for as
    /// long again: it may be a progress line, and a broken line is hard to read.
    fn yields_at(&self) -> Option<Instant> {
        let (since, block) = (self.floor?, self.blocks.front()?);
        let time = limits::CONSOLE_FLOOR * if block.filter.is_line_start() { 1 } else { 2 };
        (self.blocks.len() > 1).then(|| since + time)
    }

    fn may_yield(&self, now: Instant) -> bool {
        self.yields_at().is_some_and(|at| now >= at)
    }

    fn yield_floor(&mut self, out: &mut Vec<u8>) {
        let Some(mut block) = self.blocks.pop_front() else { return };
        block.end_turn(self.kind, out);
        header(self.kind, &format!("… #{} goes on, others wait", block.job.0), out);
        out.push(b'\n');
        self.blocks.push_back(block);
        self.floor = None;
    }

    /// Gives the floor to the first block that has something to show, and prints its banner.
    fn take_floor(&mut self, engine: &Engine, out: &mut Vec<u8>, now: Instant) -> bool {
        let shows = |block: &Block| !block.has_banner || engine.next(block.cursor).is_some();
        let Some(at) = self.blocks.iter().position(shows) else { return false };
        if self.unshown.commands > 0 {
            let Unshown { commands, first, last } = std::mem::take(&mut self.unshown);
            let line = match counted(commands, "command", "commands") {
                count if first == last => format!("… {count} not shown (#{first}), see the journal"),
                count => format!("… {count} not shown (#{first} to #{last}), see the journal"),
            };
            header(self.kind, &line, out);
            out.push(b'\n');
        }
        let mut block = self.blocks.remove(at).expect("the index is in range");
        block.open(self.kind, out);
        self.blocks.push_front(block);
        self.floor = Some(now);
        true
    }
}

impl Block {
    fn open(&mut self, kind: Kind, out: &mut Vec<u8>) {
        match (self.heading.is_probe, self.has_banner) {
            (false, false) => header(kind, &self.banner(&self.heading.command, limits::BANNER_COLUMNS), out),
            (false, true) => {
                let mut line = self.banner(&self.heading.command, limits::BANNER_AGAIN_COLUMNS);
                line.push_str(" (goes on)");
                header(kind, &line, out);
            }
            (true, false) => {
                let what = "(a look at the shell, in the journal)";
                header(kind, &self.banner(what, limits::BANNER_COLUMNS), out);
            }
            (true, true) => {}
        }
        self.has_banner = true;
    }

    fn banner(&self, what: &str, columns: usize) -> String {
        let Heading { time, whoami, dir, .. } = &self.heading;
        banner::banner(time, self.job.0, whoami, dir, what, columns)
    }

    /// Shows one item; whether it was the last.
    fn show(&mut self, kind: Kind, item: &Item<'_>, out: &mut Vec<u8>) -> bool {
        match item {
            Item::Entry(Entry::Closed { outcome, took }) => {
                let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.close(kind, outcome, took, out);
                return true;
            }
            _ if self.heading.is_probe => {}
            Item::Entry(Entry::Output { bytes, .. }) => self.filter.push(bytes, out),
            Item::Missed { bytes } => {
                self.remark(kind, &format!("… {} not shown, see the journal", count::bytes(*bytes)), out)
            }
            Item::Entry(Entry::WantedInput { program }) => {
                let program = escape_line(program, PROGRAM_COLUMNS);
                self.remark(kind, &format!("… {program} asked for input and got end of file"), out);
            }
            Item::Entry(Entry::Stopping { reason }) => {
                let why = match reason {
                    Reason::CallerGone => "its caller is gone",
                    Reason::Asked => "you asked",
                    Reason::Shutdown => "the host is ending",
                };
                self.remark(kind, &format!("… stopping: {why}"), out);
            }
            Item::Entry(Entry::Exited { .. }) => {}
        }
        false
    }

    fn remark(&mut self, kind: Kind, line: &str, out: &mut Vec<u8>) {
        self.filter.end_turn(out);
        header(kind, line, out);
    }

    /// Ends the turn, and says what of it is not on the screen.
    fn end_turn(&mut self, kind: Kind, out: &mut Vec<u8>) {
        self.filter.end_turn(out);
        if let Filter::Safe(filter) = &mut self.filter {
            let hidden = filter.take_hidden_bytes();
            if hidden > 0 {
                header(kind, &format!("… a full-screen program drew {}, not shown", count::bytes(hidden)), out);
            }
        }
    }

    fn close(&mut self, kind: Kind, outcome: &Outcome, took: u64, out: &mut Vec<u8>) {
        self.end_turn(kind, out);
        let line = match outcome {
            Outcome::Ended { exit, stopped } => {
                let signal = match exit {
                    Exit::Signal(signal) => Some(*signal),
                    Exit::Code(_) => None,
                };
                banner::end_line(exit.code(), signal, took, stopped.map(|_| "aborted"))
            }
            Outcome::NotStarted(why) => {
                let first = why.text.lines().next().unwrap_or_default();
                Some(escape_line(first.strip_prefix("rexec: ").unwrap_or(first), 400))
            }
            Outcome::NeverRun(_) => Some("stopped before it began".to_owned()),
            Outcome::Lost { stopped: None } => Some("lost: its guard went away".to_owned()),
            Outcome::Lost { stopped: Some(_) } => Some("lost: how it ended is unknown".to_owned()),
        };
        if self.heading.is_probe {
            return;
        }
        for line in line.iter().chain(&self.left) {
            header(kind, line, out);
        }
        out.push(b'\n');
    }
}

/// A line of the host's own, in the one style that commands cannot use.
fn header(kind: Kind, line: &str, out: &mut Vec<u8>) {
    let (begin, end) = match kind {
        Kind::Terminal => (HEADER_SGR, b"\x1b[0m\n".as_slice()),
        Kind::Text => (b"".as_slice(), b"\n".as_slice()),
    };
    [begin, line.as_bytes(), end].into_iter().for_each(|part| out.extend_from_slice(part));
}
