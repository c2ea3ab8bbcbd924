//! A full-screen program that the human answers has the screen: the console waits behind the alternate screen.
//!
//! Invariants: it begins only while the human's keys go to that command, and ends with them, with the program's own
//! alternate screen, or with the command; meanwhile nothing of other commands reaches the terminal, and of the host's only
//! the last row, which the program does not reach and which says where the keys go; afterwards the terminal is as it was
//! before.

use std::time::Instant;

use super::Screen;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::Entry;
use crate::core::log::{Item, Lag, Taken};
use crate::limits;
use crate::sink::console::status_line;
use crate::sys::terminal_keeper::TerminalKeeper;
use crate::sys::{pty, terminal};
use crate::text::alternate_screen::AlternateScreen;
use crate::text::banner::duration;
use crate::text::escape::escape_line;
use crate::text::safe::live_screen::LiveScreenFilter;
use crate::text::safe::raw::repairs;
use rexec_sh::protocol::process::Pid;
use rexec_sh::protocol::shown::BAR;

/// An empty alternate screen, and the way back to one whose rows all scroll.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H";
const LEAVE: &[u8] = b"\x1b[r\x1b[?1049l";

#[derive(Debug)]
pub(super) struct TakeOver {
    job: JobId,
    cursor: Cursor,
    /// Its name in the host's row.
    name: String,
    /// Passes what the program draws in its rows, and repairs what it changes in the terminal.
    filter: LiveScreenFilter,
    /// The program's own screen. It was on when this began.
    screen: AlternateScreen,
    since: Instant,
    /// The console was frozen (`p`) when the program took over.
    was_frozen: bool,
    /// Gives the screen back if the host is killed meanwhile.
    keeper: Option<TerminalKeeper>,
}

impl TakeOver {
    pub(super) fn keeper(&self) -> Option<Pid> {
        self.keeper.as_ref().map(TerminalKeeper::pid)
    }

    /// Passes on the command's output, up to the end of its full screen.
    fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>) {
        self.pass(engine, out);
        self.filter.pause(out);
    }

    fn pass(&mut self, engine: &mut Engine, out: &mut Vec<u8>) {
        engine.read(self.cursor, |item| {
            if out.len() >= limits::CONSOLE_HIGH_BYTES || !self.screen.is_on() {
                return Taken::Not;
            }
            match item {
                Item::Entry(Entry::Ended(_)) => return Taken::Not,
                Item::Entry(Entry::Output { bytes, .. }) => {
                    let mut goes_on = |byte: &u8| {
                        self.screen.push(&[*byte]);
                        self.screen.is_on()
                    };
                    // The switch back comes from the host, when it has its own screen ready.
                    let end = bytes.iter().take_while(|byte| goes_on(byte)).count();
                    self.filter.push(&bytes[..end], out);
                }
                Item::Entry(_) | Item::Missed { .. } => {}
            }
            Taken::All
        });
    }

    /// Makes the program's rows scroll. The cursor is in the first one then, and so is the position that the program
    /// restores without having saved one.
    fn fit(&mut self, size: pty::Size, out: &mut Vec<u8>) {
        let pty::Size { rows, cols } = program_size(size);
        out.extend_from_slice(format!("\x1b[1;{rows}r\x1b[H\x1b7").as_bytes());
        self.filter.resize((rows, cols), host_row(&self.name, size));
        self.filter.pause(out);
    }
}

/// Draws the host's row below the program's, in plain letters: without the program's colours and characters.
fn host_row(name: &str, pty::Size { rows, cols }: pty::Size) -> Vec<u8> {
    let text = format!(" your keys go to {name} · ^] takes them back");
    let text = escape_line(&text, usize::from(cols).saturating_sub(2));
    format!("\x0f\x1b(B\x1b[0;7m\x1b[{rows};1H\x1b[2K{BAR}{text}\x1b[0m").into_bytes()
}

fn program_size(size: pty::Size) -> pty::Size {
    pty::Size { rows: size.rows - 1, ..size }
}

impl Screen {
    pub(in crate::host) fn taken_over(&self) -> Option<JobId> {
        self.taken.as_ref().map(|taken| taken.job)
    }

    /// Returns true if this terminal can show a full-screen program above the host's row.
    pub(in crate::host) fn can_be_taken(&self) -> bool {
        self.takeable_size().is_some()
    }

    fn takeable_size(&self) -> Option<pty::Size> {
        self.output.size().filter(|size| self.is_clever && size.rows >= limits::TAKEN_ROWS_MIN)
    }

    /// Gives all rows but the last one to a full-screen program of this command. Returns the program's size, unless this
    /// terminal cannot do that.
    pub(in crate::host) fn take_over(&mut self, job: JobId, engine: &mut Engine, now: Instant) -> Option<pty::Size> {
        let size = self.takeable_size()?;
        let cursor = engine.attach(job, Lag::Skip)?;
        let mut screen = AlternateScreen::default();
        screen.push(ENTER);
        engine.read(cursor, |item| match item {
            Item::Entry(Entry::Ended(_)) => Taken::Not,
            Item::Entry(_) | Item::Missed { .. } => Taken::All,
        });
        self.status.resize(None, now, self.out.buffer());
        let was_frozen = self.frozen.is_some();
        self.frozen.get_or_insert_default();
        self.out.buffer().extend_from_slice(ENTER);
        let undo = self.set_undo(&[repairs().as_slice(), LEAVE].concat());
        // Without one, the next host on this terminal puts it back.
        let keeper = TerminalKeeper::start(&self.output, &undo).ok().flatten();
        self.keys.iter_mut().for_each(|keys| keys.pass_everything(true));
        let name = self.name_of(job.0);
        let pty::Size { rows, cols } = program_size(size);
        let filter = LiveScreenFilter::new((rows, cols), host_row(&name, size));
        let mut taken = TakeOver { job, cursor, name, filter, screen, since: now, was_frozen, keeper };
        taken.fit(size, self.out.buffer());
        self.taken = Some(taken);
        Some(program_size(size))
    }

    /// The terminal has another size. Returns the program that has its rows, and the program's size.
    pub(in crate::host) fn resize_taken(&mut self) -> Option<(JobId, pty::Size)> {
        let size = self.takeable_size()?;
        let taken = self.taken.as_mut()?;
        taken.fit(size, self.out.buffer());
        Some((taken.job, program_size(size)))
    }

    pub(in crate::host) fn end_take_over(&mut self, engine: &mut Engine, now: Instant) {
        let Some(mut taken) = self.taken.take() else { return };
        engine.detach(taken.cursor);
        taken.filter.end(self.out.buffer());
        self.out.buffer().extend_from_slice(LEAVE);
        self.set_undo(b"");
        self.keys.iter_mut().for_each(|keys| keys.pass_everything(false));
        taken.keeper.take().into_iter().for_each(TerminalKeeper::end);
        self.size_status(now);
        if !taken.was_frozen {
            self.thaw();
        }
        let time = u64::try_from(now.saturating_duration_since(taken.since).as_millis()).unwrap_or(u64::MAX);
        self.say(format_args!("… #{} had the screen for {}", taken.job.0, duration(time)));
    }

    pub(super) fn pump_taken(&mut self, engine: &mut Engine) {
        if let Some(taken) = &mut self.taken {
            let (out, _) = self.out.room(limits::CONSOLE_HIGH_BYTES);
            taken.pump(engine, out);
        }
    }

    /// Registers bytes that restore the terminal when the host panics, and returns them.
    pub(super) fn set_undo(&self, first: &[u8]) -> Vec<u8> {
        let mut undo = [first, super::status::MARK_NO_PASTES].concat();
        status_line::forget_region(&mut undo);
        self.attention.clean_up(&mut undo);
        terminal::write_on_panic(&self.output, undo.clone());
        undo
    }
}
