//! The console: one block per command on the human's terminal, never two commands mixed within one.
//!
//! A block is a banner, the command's output, and an end line. The command whose block grows has the *floor*
//! (`console/floor.rs` says who gets it and when). Each block takes what its command writes at once, into memory of its
//! own that is bounded (`console/backlog.rs`), so an ended command is shown whole however late its turn comes. Of a flood,
//! the beginning and the end are shown, and what is between them is counted.
//!
//! Invariants: nothing here waits or touches a descriptor; queued bytes, waiting blocks and what they hold are bounded;
//! output that is left out is counted exactly; a command's output reaches the terminal only through its filter, which is
//! reset at the end of each turn; a console that has nothing to show has no deadline; what is learned of a command
//! behind its block is a line of the host's.

mod allowance;
pub mod attention;
mod backlog;
mod block;
mod ending;
mod face;
mod filter;
mod floor;
mod heading;
pub mod keyboard;
mod later;
pub mod status_line;

use std::collections::VecDeque;
use std::time::Instant;

use time::{Date, PrimitiveDateTime};

use crate::core::engine::{Cursor, Engine, JobId};
use crate::limits;
use crate::text::count::counted;
use crate::text::safe_text::SafeText;
pub use backlog::Gap;
use block::CommandBlock;
pub use face::{Colours, ConsoleKind};
use face::{Face, Ink};
pub use filter::View;
use floor::{FloorChange, Holder};
pub use heading::Heading;
use later::LaterFacts;

/// Commands that were never shown, because too many waited.
#[derive(Debug, Default)]
struct Unshown {
    commands: u64,
    first: u64,
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    pub job: JobId,
    /// Its output that is not on the console.
    pub unshown: Gap,
}

/// Facts about the console for a status line.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The run whose block grows, see [`Console::shown`].
    pub shown: Option<JobId>,
    /// The runs whose output is only counted for now, because they write more than anybody could read.
    pub floods: Vec<Flood>,
}

#[derive(Debug)]
pub struct Console {
    face: Face,
    view: View,
    /// Oldest first.
    blocks: VecDeque<CommandBlock>,
    /// The commands that have no block any more, and may still have processes.
    later: LaterFacts,
    /// The command that has the floor, and when it got it.
    floor: Option<(JobId, Instant)>,
    /// The command whose block is the last one, and when that was last shown.
    shown_last: Option<(JobId, Instant)>,
    /// The command that is followed.
    followed: Option<JobId>,
    unshown: Unshown,
    /// The human's clock at a known moment.
    clock: Option<(PrimitiveDateTime, Instant)>,
    /// The day of the last banner.
    day: Option<Date>,
    /// When there may be something to show although no command writes.
    wakes: Option<Instant>,
    /// The last pump left room for more. Otherwise the console waits for the terminal, and has no deadline.
    has_room: bool,
}

impl Console {
    #[must_use]
    pub fn new(kind: ConsoleKind, view: View) -> Self {
        Self {
            face: Face { kind, columns: 0, colours: Colours::default(), has_keys: false },
            view,
            blocks: VecDeque::new(),
            later: LaterFacts::default(),
            floor: None,
            shown_last: None,
            followed: None,
            unshown: Unshown::default(),
            clock: None,
            day: None,
            wakes: None,
            has_room: true,
        }
    }

    /// Sets the console's own colours. Those of the commands stay.
    #[must_use]
    pub fn with_colours(mut self, colours: Colours) -> Self {
        self.face.colours = colours;
        self
    }

    /// Sets whether a keyboard is there, whose keys the rows may name.
    #[must_use]
    pub fn with_keys(mut self, has_keys: bool) -> Self {
        self.face.has_keys = has_keys;
        self
    }

    /// Notes the terminal's new width, columns; 0 if it is unknown.
    pub fn resize(&mut self, columns: u16) {
        self.face.columns = columns;
        for block in &mut self.blocks {
            block.resize(columns);
        }
    }

    /// Shows a line of the host's, between blocks or on a row of its own within one.
    pub fn say(&mut self, line: impl Into<SafeText>, out: &mut Vec<u8>) {
        self.end_row(out);
        self.face.remark(Ink::Dim, line, out);
    }

    /// Begins the block of a command of which a line is about to tell, unless it has begun or another one has the floor.
    pub fn present(&mut self, job: JobId, out: &mut Vec<u8>, now: Instant) {
        let is_new = |block: &CommandBlock| block.job == job && !block.has_banner;
        if self.floor.is_none() && self.blocks.iter().any(is_new) {
            self.give_floor(job, out, now);
        }
    }

    /// Shows an empty line, as [`Console::say`] shows a line.
    pub fn end_paragraph(&mut self, out: &mut Vec<u8>) {
        self.end_row(out);
        out.push(b'\n');
    }

    fn end_row(&mut self, out: &mut Vec<u8>) {
        if let Some(at) = self.floor_index() {
            self.blocks[at].filter.end_turn(out);
        }
    }

    /// Restores the pending-wrap state, which saving and restoring the cursor (for the status line) loses.
    pub fn mend_cursor(&self, out: &mut Vec<u8>) {
        if let Some(at) = self.floor_index() {
            self.blocks[at].filter.mend_cursor(out);
        }
    }

    /// Begins a command's block. If too many blocks wait, the oldest of them is given up and counted.
    pub fn begin(&mut self, cursor: Cursor, heading: Heading) {
        if self.blocks.len() >= limits::CONSOLE_BLOCKS_MAX {
            let floor = self.floor.map(|(job, _)| job);
            let oldest = self.blocks.iter().position(|block| Some(block.job) != floor);
            if let Some(block) = oldest.and_then(|oldest| self.blocks.remove(oldest)) {
                self.later.follow(block.cursor());
                if self.unshown.commands == 0 {
                    self.unshown.first = block.job.0;
                }
                self.unshown.commands += 1;
                self.unshown.last = block.job.0;
            }
        }
        self.clock = Some((heading.local, heading.card.at));
        self.blocks.push_back(CommandBlock::new(self.face, self.view, cursor, heading));
    }

    /// Begins the block of this console's only command, and follows it. The command has written this part of a line.
    pub fn begin_only(&mut self, cursor: Cursor, heading: Heading, last_line: &[u8]) {
        self.begin(cursor, heading);
        self.follow(Some(cursor.job));
        self.blocks.iter_mut().for_each(|block| block.begin_with(last_line));
    }

    /// Shows all that this command writes, however much it is, before the others' output; until another call.
    pub fn follow(&mut self, job: Option<JobId>) {
        self.followed = job;
        self.blocks.iter_mut().for_each(|block| block.follow(Some(block.job) == job, self.face.columns));
    }

    /// The command that is followed, while it has a block.
    #[must_use]
    pub fn followed(&self) -> Option<JobId> {
        self.followed.filter(|&job| self.blocks.iter().any(|block| block.job == job))
    }

    /// The run that has the floor: what it writes is shown now.
    #[must_use]
    pub fn shown(&self) -> Option<JobId> {
        self.floor.map(|(job, _)| job)
    }

    /// Facts about the console for a status line.
    #[must_use]
    pub fn overview(&self) -> Overview {
        let floods = self.blocks.iter().filter_map(|block| Some(Flood { job: block.job, unshown: block.flood()? }));
        Overview { shown: self.shown(), floods: floods.collect() }
    }

    /// Takes the commands' output, and appends what there is to show until `out` has `bytes_max` bytes or somewhat
    /// more: a command's turn is not cut short.
    pub fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>, bytes_max: usize, now: Instant) {
        self.blocks.iter_mut().for_each(|block| block.take(engine, now));
        self.later.take(engine, now);
        self.shed();
        while out.len() < bytes_max
            && let Some(line) = self.later.next_line()
        {
            self.say(line, out);
        }
        while out.len() < bytes_max && self.show_next(out, now) {}
        self.has_room = out.len() < bytes_max;
    }

    /// Keeps what waits within its bound: the oldest blocks give up the beginning of it first.
    fn shed(&mut self) {
        let mut held: usize = self.blocks.iter().map(CommandBlock::weight).sum();
        for everything in [false, true] {
            for block in &mut self.blocks {
                if held <= limits::CONSOLE_HELD_BYTES {
                    return;
                }
                held -= block.shed(everything);
            }
        }
    }

    /// Shows new output of the command with the floor, or passes the floor on. Returns true if there may be more.
    fn show_next(&mut self, out: &mut Vec<u8>, now: Instant) -> bool {
        let holder = self.floor_index().map(|at| &mut self.blocks[at]);
        if let Some(block) = holder {
            if block.ending.is_some() {
                let job = block.job;
                self.close(job, out, now);
                return true;
            }
            if block.show_live(self.face, out) {
                self.shown_last = Some((block.job, now));
                return true;
            }
        }
        let keeps_floor = self.followed.is_some() && self.shown() == self.followed;
        let candidates = self.blocks.iter().map(CommandBlock::candidate);
        let candidates = candidates.filter(|_| !keeps_floor);
        match floor::decide(self.holder(), candidates, self.shown_last, now) {
            FloorChange::Give(job) => {
                self.give_floor(job, out, now);
                true
            }
            FloorChange::Stay(until) => {
                let floods = self.blocks.iter().filter_map(CommandBlock::deadline);
                self.wakes = floods.chain(until).min();
                false
            }
        }
    }

    fn floor_index(&self) -> Option<usize> {
        let (job, _) = self.floor?;
        self.blocks.iter().position(|block| block.job == job)
    }

    fn holder(&self) -> Option<Holder> {
        let (job, since) = self.floor?;
        let block = &self.blocks[self.floor_index()?];
        Some(Holder { job, since, wrote: block.wrote(), is_at_line_start: block.filter.is_line_start() })
    }

    /// Takes the floor from the command that has it, and gives it to this one.
    fn give_floor(&mut self, job: JobId, out: &mut Vec<u8>, now: Instant) {
        let face = self.face;
        if let Some(at) = self.floor_index() {
            let block = &mut self.blocks[at];
            block.end_turn(face, out);
            let is_text = face.is_text();
            let line = match (block.is_held, is_text) {
                (true, _) => "still asks",
                (false, true) => "goes on, others wait",
                (false, false) => "runs on",
            };
            face.remark(Ink::Dim, format_args!("… #{} {line}", block.job.0), out);
            if is_text {
                out.push(b'\n');
            }
        }
        self.floor = None;
        self.tell_unshown(out);
        let local = self.local(now);
        let Some(at) = self.blocks.iter().position(|block| block.job == job) else { return };
        let block = &mut self.blocks[at];
        let time = if block.has_banner { local } else { block.heading.local };
        if self.day.replace(time.date()).is_some_and(|day| day != time.date()) && !face.is_text() {
            face.remark(Ink::Dim, heading::day(time), out);
        }
        if block.show_in_one_row(face, out) {
            self.forget(job, now);
            return;
        }
        let lines = block.lines_waiting();
        if std::mem::replace(&mut block.has_banner, true) {
            block.heading.show_again(face, local, lines, out);
            if block.ending.is_none() {
                block.show_last(face, out);
            }
        } else {
            block.heading.show(face, None, out);
        }
        self.floor = Some((job, now));
        self.shown_last = self.floor;
    }

    /// Shows the rest of a command that has ended.
    fn close(&mut self, job: JobId, out: &mut Vec<u8>, now: Instant) {
        if let Some(block) = self.blocks.iter_mut().find(|block| block.job == job) {
            block.close(self.face, out);
        }
        self.forget(job, now);
    }

    /// Forgets a command that was shown to its end.
    fn forget(&mut self, job: JobId, now: Instant) {
        if let Some(block) = self.blocks.iter().position(|block| block.job == job).and_then(|at| self.blocks.remove(at))
        {
            self.later.follow(block.cursor());
        }
        self.floor = None;
        self.shown_last = Some((job, now));
    }

    /// The human's clock now.
    fn local(&self, now: Instant) -> PrimitiveDateTime {
        match self.clock {
            Some((local, at)) => local + now.saturating_duration_since(at),
            None => PrimitiveDateTime::MIN,
        }
    }

    fn tell_unshown(&mut self, out: &mut Vec<u8>) {
        if self.unshown.commands == 0 {
            return;
        }
        let Unshown { commands, first, last } = std::mem::take(&mut self.unshown);
        let line = match counted(commands, "command", "commands") {
            count if first == last => format!("… {count} not shown (#{first}), see the journal"),
            count => format!("… {count} not shown (#{first} to #{last}), see the journal"),
        };
        self.face.remark(Ink::Dim, line, out);
        if self.face.is_text() {
            out.push(b'\n');
        }
    }

    /// At the host's end: ends the block that is being shown and resets the terminal's modes.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        if let Some(at) = self.floor_index() {
            self.blocks[at].end_turn(self.face, out);
            self.face.remark(Ink::Dim, "… the rest is not shown, see the journal", out);
            if self.face.is_text() {
                out.push(b'\n');
            }
        }
        self.floor = None;
        self.blocks.drain(..).for_each(|block| self.later.follow(block.cursor()));
    }

    /// The commands that have a block, with their banners' contents: those that run, and some that have ended.
    pub fn headings(&self) -> impl Iterator<Item = (JobId, &Heading)> {
        self.blocks.iter().map(|block| (block.job, &block.heading))
    }

    /// Returns true if every command that began was shown to its end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Stops reading all logs, so that none is kept for this console.
    pub fn abandon(&mut self, engine: &mut Engine) {
        self.blocks.drain(..).for_each(|block| self.later.follow(block.cursor()));
        self.later.abandon(engine);
        self.floor = None;
    }

    /// When there may be something to show although no command writes.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.wakes.filter(|_| self.has_room)
    }
}
