//! A full-screen program that the human answers has the whole screen: the console waits behind the alternate screen.
//!
//! Invariants: it begins only while the human's keys go to that command, and ends with them, with the program's own
//! alternate screen, or with the command; meanwhile nothing of the host's or of other commands reaches the terminal;
//! afterwards the terminal is as it was before.

use std::time::Instant;

use super::Screen;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::Entry;
use crate::core::log::{Item, Lag};
use crate::limits;
use crate::sink::console::status_line;
use crate::sys::terminal_keeper::TerminalKeeper;
use crate::sys::{pty, terminal};
use crate::text::alternate_screen::AlternateScreen;
use crate::text::banner::duration;
use crate::text::safe::raw::{RawFilter, repairs};
use rexec_sh::protocol::process::Pid;

/// An empty alternate screen, and the way back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H";
const LEAVE: &[u8] = b"\x1b[?1049l";

/// The command that has the screen.
#[derive(Debug)]
pub(super) struct TakeOver {
    job: JobId,
    cursor: Cursor,
    /// Repairs what the program changes in the terminal.
    repair: RawFilter,
    /// The program's own screen. It was on when this began.
    screen: AlternateScreen,
    since: Instant,
    /// The human had the screen stand still before.
    was_frozen: bool,
    /// Gives the screen back if the host is killed meanwhile.
    keeper: Option<TerminalKeeper>,
}

impl TakeOver {
    /// The process that gives the screen back if the host is killed.
    pub(super) fn keeper(&self) -> Option<Pid> {
        self.keeper.as_ref().map(TerminalKeeper::pid)
    }

    /// Passes on what the command writes, up to the end of its full screen.
    fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>) {
        while out.len() < limits::CONSOLE_HIGH_BYTES
            && self.screen.is_on()
            && let Some(item) = engine.next(self.cursor)
        {
            match item {
                Item::Entry(Entry::Closed { .. }) => return,
                Item::Entry(Entry::Output { bytes, .. }) => {
                    let mut goes_on = |byte: &u8| {
                        self.screen.push(&[*byte]);
                        self.screen.is_on()
                    };
                    // The switch back comes from the host, when it has its own screen ready.
                    let end = bytes.iter().take_while(|byte| goes_on(byte)).count();
                    self.repair.push(&bytes[..end], out);
                }
                Item::Entry(_) | Item::Missed { .. } => {}
            }
            engine.advance(self.cursor);
        }
    }
}

impl Screen {
    /// The command that has the whole screen.
    pub(in crate::host) fn taken_over(&self) -> Option<JobId> {
        self.taken.as_ref().map(|taken| taken.job)
    }

    /// Gives the whole screen to a full-screen program of this command, if this is a terminal that can do that. Returns
    /// the terminal's size.
    pub(in crate::host) fn take_over(&mut self, job: JobId, engine: &mut Engine, now: Instant) -> Option<pty::Size> {
        let size = self.output.size().filter(|_| self.is_clever)?;
        let cursor = engine.attach(job, Lag::Skip)?;
        let mut screen = AlternateScreen::default();
        screen.push(ENTER);
        while engine.next(cursor).is_some_and(|item| !matches!(item, Item::Entry(Entry::Closed { .. }))) {
            engine.advance(cursor);
        }
        self.status.resize(None, now, self.out.buffer());
        let was_frozen = self.frozen.is_some();
        self.frozen.get_or_insert_default();
        self.out.buffer().extend_from_slice(ENTER);
        let undo = self.set_undo(&[repairs().as_slice(), LEAVE].concat());
        // Without one, the next host on this terminal puts it back.
        let keeper = TerminalKeeper::start(&self.output, &undo).ok().flatten();
        self.keys.iter_mut().for_each(|keys| keys.pass_everything(true));
        self.taken = Some(TakeOver { job, cursor, repair: RawFilter::new(), screen, since: now, was_frozen, keeper });
        Some(size)
    }

    /// Takes the screen back.
    pub(in crate::host) fn end_take_over(&mut self, engine: &mut Engine, now: Instant) {
        let Some(mut taken) = self.taken.take() else { return };
        engine.detach(taken.cursor);
        taken.repair.end_block(self.out.buffer());
        self.out.buffer().extend_from_slice(LEAVE);
        self.set_undo(b"");
        self.keys.iter_mut().for_each(|keys| keys.pass_everything(false));
        taken.keeper.take().into_iter().for_each(TerminalKeeper::end);
        self.size_status(now);
        if !taken.was_frozen {
            self.thaw();
        }
        let time = u64::try_from(now.saturating_duration_since(taken.since).as_millis()).unwrap_or(u64::MAX);
        self.say(format_args!("… #{} had the whole screen for {}", taken.job.0, duration(time)));
    }

    pub(super) fn pump_taken(&mut self, engine: &mut Engine) {
        if let Some(taken) = &mut self.taken {
            let (out, _) = self.out.room(limits::CONSOLE_HIGH_BYTES);
            taken.pump(engine, out);
        }
    }

    /// Notes what puts the terminal back when the host panics, and returns it.
    pub(super) fn set_undo(&self, first: &[u8]) -> Vec<u8> {
        let mut undo = [first, super::status::MARK_NO_PASTES].concat();
        status_line::forget_region(&mut undo);
        self.attention.clean_up(&mut undo);
        terminal::write_on_panic(&self.output, undo.clone());
        undo
    }
}
