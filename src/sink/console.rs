//! The console: one block per command on the human's terminal, never two commands mixed within one.
//!
//! A block is a banner, the command's live output, an end line where there is something to say, and a blank line.
//! Blocks come in the order in which the commands start. The command that is being shown has the *floor*. The output of
//! the others waits in their logs, which may drop some of it and count how much. A command that has had the floor for a
//! while yields it at the start of a line when others wait, and goes on later under a second banner.
//!
//! Invariants: nothing here waits or touches a descriptor; queued bytes and waiting blocks are bounded; output that is
//! left out is counted exactly; a command's output reaches the terminal only through its filter, which is reset at the
//! end of each turn.

mod filter;
mod fold;
mod header;
pub mod keyboard;

use std::collections::VecDeque;
use std::time::Instant;

use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Outcome, Reason};
use crate::core::log::Item;
use crate::journal::record::Straggler;
use crate::limits;
use crate::text::banner::{self, Banner};
use crate::text::count::{self, counted};
use crate::text::escape::escape_line;
use crate::text::prompt::prompt_words;
use filter::Filter;
use fold::Fold;
pub use header::ConsoleKind;
use header::header;
use rexec_sh::protocol::process::Exit;

/// The width of a program's name in a line about it, columns. The kernel keeps 15 bytes.
const PROGRAM_COLUMNS: usize = 32;
/// The width of the words of a prompt, columns.
const PROMPT_COLUMNS: usize = 60;

/// The content of a block's banner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// When the command began, RFC 3339.
    pub time: String,
    /// The caller's name.
    pub whoami: String,
    /// The working directory.
    pub dir: String,
    /// The command, without an agent's wrapper.
    pub command: String,
    /// Whether `command` lacks an agent's wrapper.
    pub is_unwrapped: bool,
    /// Whether an agent only looks at the shell. Such a command is one line instead of a block, while all goes well.
    pub is_probe: bool,
}

/// Which of a command's output reaches a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum View {
    /// Text, and escape sequences whose effect ends with the command's turn.
    #[default]
    Safe,
    /// Every byte. The terminal's modes are reset after each turn.
    Raw,
}

/// One command on the console.
#[derive(Debug)]
struct CommandBlock {
    job: JobId,
    cursor: Cursor,
    heading: Heading,
    filter: Filter,
    has_banner: bool,
    /// What a folded command has written: only its banner is shown.
    fold: Option<Fold>,
    /// The line about processes that the command left running, for the block's end.
    left: Option<String>,
}

/// Commands that were never shown, because too many waited.
#[derive(Debug, Default)]
struct Unshown {
    commands: u64,
    first: u64,
    last: u64,
}

/// The console.
#[derive(Debug)]
pub struct Console {
    kind: ConsoleKind,
    view: View,
    /// The terminal's width, or 0 if it is unknown.
    columns: u16,
    blocks: VecDeque<CommandBlock>,
    /// Since when the block at the front of the queue has its turn.
    floor: Option<Instant>,
    /// The command that is followed.
    followed: Option<JobId>,
    unshown: Unshown,
    /// Whether the last pump left room for more. Otherwise the console waits for the terminal, and has no deadline.
    has_room: bool,
}

impl Console {
    /// An empty console.
    #[must_use]
    pub fn new(kind: ConsoleKind, view: View) -> Self {
        let (blocks, unshown) = (VecDeque::new(), Unshown::default());
        Self { kind, view, columns: 0, blocks, floor: None, followed: None, unshown, has_room: true }
    }

    /// Notes the terminal's new width, columns.
    pub fn resize(&mut self, columns: u16) {
        self.columns = columns;
        for block in &mut self.blocks {
            block.filter.resize(columns);
        }
    }

    /// Shows a line of the host's, between blocks or on a row of its own within one.
    pub fn say(&mut self, line: &str, out: &mut Vec<u8>) {
        if let (Some(_), Some(block)) = (self.floor, self.blocks.front_mut()) {
            block.filter.end_turn(out);
        }
        header(self.kind, self.columns, line, out);
    }

    /// Begins a command's block. If too many blocks wait, the oldest of them is given up and counted.
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
        let fold = heading.is_probe.then(Fold::default);
        let (has_banner, left) = (false, None);
        self.blocks.push_back(CommandBlock { job: cursor.job, cursor, heading, filter, has_banner, fold, left });
    }

    /// Notes the processes that a command left running.
    pub fn on_left(&mut self, job: JobId, left: &[Straggler]) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.job == job) {
            let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            let named = left.iter().take(limits::STRAGGLERS_NAMED_MAX);
            block.left = banner::left_line(count, named.map(|left| (left.comm.as_str(), left.pid)));
        }
    }

    /// Appends what there is to show, until `out` has `bytes_max` bytes.
    pub fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>, bytes_max: usize, now: Instant) {
        while out.len() < bytes_max && self.show_next(engine, out, now) {}
        self.has_room = out.len() < bytes_max;
    }

    /// Shows one entry, or passes the floor on. Returns whether there may be more to show.
    fn show_next(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) -> bool {
        if self.floor.is_none() && !self.take_floor(engine, out, now) {
            return false;
        }
        let face = self.face();
        let block = self.blocks.front_mut().expect("the floor is the front block's");
        match engine.next(block.cursor) {
            Some(item) => {
                let is_end = block.show(face, &item, out);
                engine.advance(block.cursor);
                if is_end {
                    engine.detach(block.cursor);
                    self.blocks.pop_front();
                    self.floor = None;
                } else if self.may_yield(now) {
                    self.yield_floor(out);
                }
            }
            None if block.fold.as_ref().and_then(Fold::deadline).is_some_and(|at| now >= at) => block.unfold(face, out),
            None if self.may_yield(now) => self.yield_floor(out),
            None => return false,
        }
        true
    }

    /// At the host's end: ends the block that is being shown and resets the terminal's modes.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        let face = self.face();
        if let (Some(_), Some(block)) = (self.floor.take(), self.blocks.front_mut()) {
            block.remark(face, "… the rest is not shown, see the journal", out);
            out.push(b'\n');
        }
        self.blocks.clear();
    }

    /// Gives this command the floor whenever it has something to show, until another call.
    pub fn follow(&mut self, job: Option<JobId>) {
        self.followed = job;
    }

    /// The command that is followed, while it has a block.
    #[must_use]
    pub fn followed(&self) -> Option<JobId> {
        self.followed.filter(|&job| self.blocks.iter().any(|block| block.job == job))
    }

    /// The command whose block is being shown.
    #[must_use]
    pub fn shown(&self) -> Option<JobId> {
        self.floor.and(self.blocks.front()).map(|block| block.job)
    }

    /// When a waiting block may get the floor, or a folded one must be unfolded.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let unfolds = self.floor.and(self.blocks.front()).and_then(|block| block.fold.as_ref()?.deadline());
        self.yields_at().into_iter().chain(unfolds).min().filter(|_| self.has_room)
    }

    fn face(&self) -> Face {
        Face { kind: self.kind, columns: self.columns }
    }

    /// When the front block must yield the floor, if others wait. A block within a line keeps it for twice the time:
    /// the line may be a progress bar, and a broken line is hard to read.
    fn yields_at(&self) -> Option<Instant> {
        let (since, block) = (self.floor?, self.blocks.front().filter(|block| Some(block.job) != self.followed)?);
        let time = limits::CONSOLE_FLOOR * if block.filter.is_line_start() { 1 } else { 2 };
        (self.blocks.len() > 1).then(|| since + time)
    }

    fn may_yield(&self, now: Instant) -> bool {
        self.yields_at().is_some_and(|at| now >= at)
    }

    fn yield_floor(&mut self, out: &mut Vec<u8>) {
        let Some(mut block) = self.blocks.pop_front() else { return };
        if block.fold.is_none() {
            block.end_turn(self.face(), out);
            self.face().header(&format!("… #{} goes on, others wait", block.job.0), out);
            out.push(b'\n');
        }
        self.blocks.push_back(block);
        self.floor = None;
    }

    /// Gives the floor to the first block that has something to show, and prints its banner.
    fn take_floor(&mut self, engine: &Engine, out: &mut Vec<u8>, now: Instant) -> bool {
        let shows = |block: &CommandBlock| !block.has_banner || engine.next(block.cursor).is_some();
        let is_followed = |block: &CommandBlock| Some(block.job) == self.followed && shows(block);
        let at = self.blocks.iter().position(is_followed).or_else(|| self.blocks.iter().position(shows));
        let Some(at) = at else { return false };
        if self.unshown.commands > 0 {
            let Unshown { commands, first, last } = std::mem::take(&mut self.unshown);
            let line = match counted(commands, "command", "commands") {
                count if first == last => format!("… {count} not shown (#{first}), see the journal"),
                count => format!("… {count} not shown (#{first} to #{last}), see the journal"),
            };
            self.face().header(&line, out);
            out.push(b'\n');
        }
        let mut block = self.blocks.remove(at).expect("the index is in range");
        block.open(self.face(), out, now);
        self.blocks.push_front(block);
        self.floor = Some(now);
        true
    }
}

/// The look of the host's rows.
#[derive(Debug, Clone, Copy)]
struct Face {
    kind: ConsoleKind,
    columns: u16,
}

impl Face {
    fn header(self, line: &str, out: &mut Vec<u8>) {
        header(self.kind, self.columns, line, out);
    }
}

impl CommandBlock {
    /// Shows the banner of a block that gets the floor.
    fn open(&mut self, face: Face, out: &mut Vec<u8>, now: Instant) {
        match (&mut self.fold, self.has_banner) {
            (None, false) => face.header(&self.banner().line(limits::BANNER_COLUMNS), out),
            (None, true) => {
                let mut line = self.banner().line(limits::BANNER_AGAIN_COLUMNS);
                line.push_str(" (goes on)");
                face.header(&line, out);
            }
            (Some(fold), false) => {
                fold.show(now);
                face.header(&self.banner().line_with("(a look at the shell, in the journal)"), out);
            }
            (Some(_), true) => {}
        }
        self.has_banner = true;
    }

    /// Shows all that a folded command has written. From now on its block is like any other.
    fn unfold(&mut self, face: Face, out: &mut Vec<u8>) {
        if let Some(fold) = self.fold.take() {
            face.header(&self.banner().line(limits::BANNER_COLUMNS), out);
            self.filter.push(&fold.into_output(), out);
        }
    }

    fn banner(&self) -> Banner<'_> {
        let Heading { time, whoami, dir, command, is_unwrapped, .. } = &self.heading;
        Banner { time, seq: self.job.0, whoami, dir, command, is_unwrapped: *is_unwrapped }
    }

    /// Shows one entry. Returns whether it was the last one.
    fn show(&mut self, face: Face, item: &Item<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(fold) = &mut self.fold {
            if fold.take(item, self.left.is_some()) {
                return matches!(item, Item::Entry(Entry::Closed { .. }));
            }
            self.unfold(face, out);
        }
        match item {
            Item::Entry(Entry::Closed { outcome, took }) => {
                let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.close(face, outcome, took, out);
                return true;
            }
            Item::Entry(Entry::Output { bytes, .. }) => self.filter.push(bytes, out),
            Item::Missed { bytes } => {
                self.remark(face, &format!("… {} not shown, see the journal", count::bytes(*bytes)), out)
            }
            Item::Entry(Entry::WantedInput { program }) => {
                let program = escape_line(program, PROGRAM_COLUMNS);
                self.remark(face, &format!("… {program} asked for input and got end of file"), out);
            }
            Item::Entry(Entry::Waits(waiting)) => {
                let words = prompt_words(&waiting.prompt, PROMPT_COLUMNS);
                self.remark(face, &format!("⏎ #{} waits: \"{words}\"", self.job.0), out);
            }
            Item::Entry(Entry::Stopping { reason }) => {
                let why = match reason {
                    Reason::CallerGone => "its caller is gone",
                    Reason::Asked => "you asked",
                    Reason::Shutdown => "the host is ending",
                    Reason::TimedOut => "its time is over",
                };
                self.remark(face, &format!("… stopping: {why}"), out);
            }
            Item::Entry(Entry::Exited { .. } | Entry::Resized { .. } | Entry::Answered { .. }) => {}
        }
        false
    }

    /// Shows a line of the host's within the block.
    fn remark(&mut self, face: Face, line: &str, out: &mut Vec<u8>) {
        self.filter.end_turn(out);
        face.header(line, out);
    }

    /// Ends the turn, and says how much of it is not on the screen.
    fn end_turn(&mut self, face: Face, out: &mut Vec<u8>) {
        self.filter.end_turn(out);
        let hidden = self.filter.take_hidden_bytes();
        if hidden > 0 {
            face.header(&format!("… a full-screen program drew {}, not shown", count::bytes(hidden)), out);
        }
    }

    /// Ends the block with the lines that the outcome needs.
    fn close(&mut self, face: Face, outcome: &Outcome, took: u64, out: &mut Vec<u8>) {
        self.end_turn(face, out);
        let line = match outcome {
            Outcome::Ended { exit, stopped } => {
                let signal = match exit {
                    Exit::Signal(signal) => Some(signal.number()),
                    Exit::Code(_) => None,
                };
                banner::end_line(exit.code(), signal, took, stopped.map(Reason::word))
            }
            Outcome::NotStarted(why) => {
                // The text may begin with a name that the caller chose, which must not begin a row of the host's.
                Some(format!("not started: {}", escape_line(&why.problem, 400)))
            }
            Outcome::NeverRun(_) => Some("stopped before it began".to_owned()),
            Outcome::Lost { stopped: None } => Some("lost: its guard went away".to_owned()),
            Outcome::Lost { stopped: Some(_) } => Some("lost: how it ended is unknown".to_owned()),
        };
        for line in line.iter().chain(&self.left) {
            face.header(line, out);
        }
        out.push(b'\n');
    }
}
