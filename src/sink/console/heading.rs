//! The heading of a block on a console: the row that says when, which command, whose, where and what.
//!
//! Invariants: a banner on a terminal is one row; nothing that a caller chose can end its own field or look like another
//! one; lines of a command that are not shown are counted.

use std::rc::Rc;

use time::PrimitiveDateTime;
use time::macros::format_description;

use super::face::{AGENT_COLOURS, Face, Ink, columns};
use crate::core::card::{Caller, Card};
use crate::limits;
use crate::text::agent_name::{agent_name, short_name};
use crate::text::banner::{Banner, escape_dir};
use crate::text::count::{counted, grouped};
use crate::text::ends::{escape_ends, noted};
use crate::text::escape::escape_line;
use crate::text::safe_text::SafeText;

/// The most columns of the purpose that a caller states.
const WHY_COLUMNS: usize = 60;
/// The most columns of a sandbox's description.
const SANDBOX_COLUMNS: usize = 40;
/// With fewer columns than this for a command, its end is cut: there is no room to say how much of its middle is.
const ENDS_COLUMNS: usize = 60;
/// The directory goes where it would leave the command fewer columns than this.
const COMMAND_COLUMNS_MIN: usize = 8;

/// A command's card, and what the banner says besides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    pub card: Rc<Card>,
    /// When the command began, on the human's clock.
    pub local: PrimitiveDateTime,
}

pub(super) fn clock(local: PrimitiveDateTime) -> String {
    local.format(format_description!("[hour]:[minute]:[second]")).unwrap_or_default()
}

/// The row between two days.
pub(super) fn day(local: PrimitiveDateTime) -> String {
    local.format(format_description!("[weekday] [year]-[month]-[day]")).unwrap_or_default()
}

impl Heading {
    /// The name of the agent's session: `claude`, `claude~2`, `codex/hook`.
    #[must_use]
    pub fn name(&self) -> String {
        let Caller { whoami, number, role, .. } = &self.card.caller;
        agent_name(whoami, *number, role.word())
    }

    pub(super) fn ink(&self) -> Ink {
        const KNOWN: [&str; 5] = ["claude", "codex", "gemini", "opencode", "copilot"];
        let Caller { whoami, number, .. } = &self.card.caller;
        let by_letters = || whoami.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        let known = KNOWN.iter().position(|known| *known == short_name(whoami)).and_then(|at| u32::try_from(at).ok());
        let first = known.unwrap_or_else(by_letters) % u32::from(AGENT_COLOURS);
        // The second session's colour is far from the first one's.
        let number = (first + 3 * (number.max(&1) - 1)) % u32::from(AGENT_COLOURS);
        Ink::Agent(u8::try_from(number).unwrap_or(0))
    }

    /// The command's first line that is not blank, and how many other lines there are.
    fn first_line(&self) -> (&str, usize) {
        let lines = || self.card.command.text.trim_end().lines();
        let first = lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        (first.trim(), lines().count().saturating_sub(1))
    }

    /// Shows the banner of a block, with the end line at its right edge if the command has ended without output.
    pub(super) fn show(&self, face: Face, end: Option<(Ink, &str)>, out: &mut Vec<u8>) {
        if face.is_text() {
            let line = self.in_text().line(limits::BANNER_COLUMNS) + &self.notes();
            return face.remark(Ink::Plain, line, out);
        }
        let (first, more) = self.first_line();
        let (lines, seq) = (counted(more as u64, "line", "lines"), self.card.run);
        let mut note = match more {
            0 => String::new(),
            _ if face.room() < 70 => format!(" ⏎ +{more}"),
            _ => format!(" ⏎ +{lines} (rexec show {seq})"),
        };
        note.push_str(&self.notes());
        self.show_with(face, self.local, (Ink::Bold, first), &note, end, out);
    }

    /// The notes behind the command: its purpose, and the sandbox that it runs in.
    fn notes(&self) -> String {
        let why = escape_line(&self.card.command.why, WHY_COLUMNS);
        let why = if why.is_empty() { why } else { format!(" · why: {why}") };
        why + &self.sandbox_note()
    }

    /// ` · in its sandbox (codex read-only)`; nothing for a command that the host runs.
    fn sandbox_note(&self) -> String {
        let sandbox = self.card.sandbox.as_ref().map(|sandbox| escape_line(sandbox, SANDBOX_COLUMNS));
        sandbox.map_or(String::new(), |sandbox| format!(" · in its sandbox ({sandbox})"))
    }

    /// Shows the banner of a command that goes on after others.
    pub(super) fn show_again(&self, face: Face, now: PrimitiveDateTime, lines: u64, out: &mut Vec<u8>) {
        let lines = match lines {
            0 => String::new(),
            lines => format!("{} {} meanwhile", grouped(lines), if lines == 1 { "line" } else { "lines" }),
        };
        if face.is_text() {
            let mut line = self.in_text().line(limits::BANNER_AGAIN_COLUMNS);
            let lines = if lines.is_empty() { lines } else { format!(", {lines}") };
            line.push_str(&format!(" (goes on{lines})"));
            return face.remark(Ink::Plain, line, out);
        }
        let lines = if lines.is_empty() { lines } else { format!(" · {lines}") };
        let note = format!(" since {}{lines}", clock(self.local));
        let command = format!("⋯ {}", self.first_line().0);
        self.show_with(face, now, (Ink::Bold, &command), &note, None, out);
    }

    /// Shows a command by which an agent only looks at the shell.
    pub(super) fn show_folded(&self, face: Face, end: (Ink, &str), out: &mut Vec<u8>) {
        if face.is_text() {
            let line = self.in_text().line_with("(a look at the shell, in the journal)");
            return face.remark(Ink::Plain, line, out);
        }
        self.show_with(face, self.local, (Ink::Dim, "a look at the shell"), "", Some(end), out);
    }

    fn show_with(
        &self,
        face: Face,
        time: PrimitiveDateTime,
        (ink, command): (Ink, &str),
        note: &str,
        end: Option<(Ink, &str)>,
        out: &mut Vec<u8>,
    ) {
        let lead = format!("{} ", clock(time));
        let agent = format!("#{} {}", self.card.run, self.name());
        let end = end.map_or((Ink::Dim, String::new()), |(ink, end)| (ink, face.spelled(&format!("  {end}"))));
        let note = face.spelled(note);
        let (note_columns, end_columns) = (columns(&note), columns(&end.1));
        let room = face.room().saturating_sub(columns(&lead) + columns(&agent) + note_columns + end_columns + 3);
        let place = face.spelled(&ending_in(&escape_dir(&self.card.place.name), (room / 3).max(10)));
        // On a narrow terminal the command is worth more than its directory.
        let place = if room < columns(&place) + COMMAND_COLUMNS_MIN { String::new() } else { place };
        let room = room.saturating_sub(columns(&place)).max(4);
        let command =
            face.spelled(&if room < ENDS_COLUMNS { escape_line(command, room) } else { escape_ends(command, room) });
        let gap = " ".repeat(if end.1.is_empty() { 0 } else { room.saturating_sub(columns(&command)) });
        let place = format_args!(" {place}  ").into();
        let mut parts = vec![(Ink::Dim, lead.into()), (self.ink(), agent.into()), (Ink::Plain, place)];
        let inks = noted(&command).map(|(is_note, part)| (if is_note { Ink::Dim } else { ink }, part));
        parts.extend(inks.map(|(ink, part)| (ink, SafeText::escaped(part))));
        parts.extend([(Ink::Dim, note.into()), (Ink::Plain, gap.into()), (end.0, end.1.into())]);
        face.row(self.ink(), &parts, out);
    }

    /// The banner for files and pipes.
    fn in_text(&self) -> Banner<'_> {
        let Card { run, time, caller, place, command, .. } = &*self.card;
        let (whoami, dir, is_unwrapped) = (&caller.whoami, &place.dir, command.is_unwrapped);
        Banner { time, seq: *run, whoami, dir, command: &command.text, is_unwrapped }
    }
}

/// The end of a path, in this many columns at most.
fn ending_in(path: &str, columns_max: usize) -> String {
    if columns(path) <= columns_max {
        return path.to_owned();
    }
    let mut start = path.len();
    for (at, _) in path.char_indices().rev() {
        if columns(&path[at..]) + 1 > columns_max {
            break;
        }
        start = at;
    }
    format!("…{}", &path[start..])
}
