//! The end of a block: how its command ended, in one row.

use super::face::{Face, Ink};
use crate::core::end::{End, Failure, How, Stopper};
use crate::core::entry::LeftProcess;
use crate::limits;
use crate::text::banner::{duration, end_line, left_line, signal_name};
use crate::text::count::grouped;
use crate::text::escape::escape_line;
use rexec_sh::protocol::process::Exit;

/// The words for a command that rules or a person refused. The line above it says which.
const REFUSED: &str = "refused: nothing was run";
/// The columns of a sentence on why a command did not start.
const PROBLEM_COLUMNS: usize = 400;
/// An end line says how many lines there were when they did not fit on a usual screen.
const SCREEN_LINES: u64 = 24;
/// The processes that an end line names.
const LEFT_NAMED_MAX: usize = 4;
/// The width of a program's name, columns. The kernel keeps 15 bytes.
const PROGRAM_COLUMNS: usize = 32;

#[derive(Debug)]
pub(super) struct BlockEnd(pub(super) End);

impl BlockEnd {
    /// Returns true if it ended with code 0 and nobody stopped it.
    pub(super) fn is_well(&self) -> bool {
        self.0.code() == 0 && self.0.by.is_none()
    }

    /// Returns true if it fits beside a banner.
    pub(super) fn is_short(&self) -> bool {
        self.0.exit().is_some()
    }

    /// The end line of a terminal, for a command that wrote this many lines.
    pub(super) fn words(&self, lines: u64) -> (Ink, String) {
        let took = duration(self.0.took_ms());
        let (ink, mut text) = match (&self.0.how, self.0.by) {
            (How::Exited(Exit::Code(0)), None) => (Ink::Dim, format!("✓ {took}")),
            (How::Exited(Exit::Code(code)), None) => (Ink::Red, format!("✗ exit {code} · {took}")),
            (How::Exited(Exit::Signal(signal)), None) => match signal_name(signal.number()) {
                Some(name) => (Ink::Red, format!("✗ {name} · {took}")),
                None => (Ink::Red, format!("✗ signal {} · {took}", signal.number())),
            },
            (How::Exited(_), Some(by)) => (Ink::Red, format!("{} · {took}", stopped(by))),
            // The text may contain a name that the caller chose.
            (How::NotStarted(why), _) => {
                (Ink::Red, format!("✗ not started: {}", escape_line(&why.problem, PROBLEM_COLUMNS)))
            }
            (How::Refused(_), _) => (Ink::Red, format!("✗ {REFUSED}")),
            (How::NeverRun, Some(by)) => (Ink::Red, format!("{} · before it began", stopped(by))),
            (How::NeverRun, None) => (Ink::Red, "✗ stopped before it began".to_owned()),
            (How::Unseen | How::Lost, _) => (Ink::Red, format!("✗ {} · {took}", self.lost())),
        };
        if lines > if ink == Ink::Red { 1 } else { SCREEN_LINES } {
            text.push_str(&format!(" · {} lines", grouped(lines)));
        }
        (ink, text)
    }

    /// Ends a block: the end line, and what the command left running.
    pub(super) fn show(&self, face: Face, lines: u64, left: &[LeftProcess], out: &mut Vec<u8>) {
        if face.is_text() {
            let count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            let named = left.iter().take(limits::STRAGGLERS_NAMED_MAX).map(|left| (left.program.as_str(), left.pid));
            let left = left_line(count, named);
            self.in_text().into_iter().chain(left).for_each(|line| face.remark(Ink::Plain, line, out));
            return out.push(b'\n');
        }
        let (ink, text) = self.words(lines);
        face.row(ink, &[(ink, text.into()), (Ink::Plain, left_words(left).into())], out);
    }

    /// The end line in files and on pipes, where there is something to say.
    fn in_text(&self) -> Option<String> {
        let End { how, by, .. } = &self.0;
        match how {
            How::Exited(_) => {
                let why = self.0.failure().map(|failure| Failure::told(failure.word(), by.map(Stopper::word)));
                end_line(self.0.code(), self.0.signal(), self.0.took_ms(), why.as_deref())
            }
            How::NotStarted(why) => Some(format!("not started: {}", escape_line(&why.problem, PROBLEM_COLUMNS))),
            How::Refused(_) => Some(REFUSED.to_owned()),
            How::NeverRun => Some("stopped before it began".to_owned()),
            How::Unseen | How::Lost => Some(self.lost().to_owned()),
        }
    }

    /// The words for an end that is not known.
    fn lost(&self) -> &'static str {
        match (&self.0.how, self.0.by) {
            (How::Unseen, _) => "lost: nobody saw how it ended",
            (_, None) => "lost: its guard went away",
            (_, Some(_)) => "lost: how it ended is unknown",
        }
    }
}

/// ` · left: node 4711 :3000, sleep 4712 and 3 more`; nothing for a command that left no process.
fn left_words(left: &[LeftProcess]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let named = left.iter().take(LEFT_NAMED_MAX);
    let named: Vec<String> = named
        .map(|left| format!("{} {}{}", escape_line(&left.program, PROGRAM_COLUMNS), left.pid, ports(left)))
        .collect();
    let more = match left.len().saturating_sub(LEFT_NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(" · left: {}{more}", named.join(", "))
}

/// ` :3000`, for a process that listens.
fn ports(left: &LeftProcess) -> String {
    left.ports.iter().map(|port| format!(" :{port}")).collect()
}

/// The sign and words for a command that was asked to end.
fn stopped(by: Stopper) -> &'static str {
    match by {
        Stopper::Console => "■ stopped by you",
        Stopper::Kill => "■ stopped by rexec kill",
        Stopper::Client => "■ stopped by a client",
        Stopper::Project => "■ stopped with its project session",
        Stopper::Host => "■ stopped as the host ended",
        Stopper::Caller => "○ caller gone",
        Stopper::CallerAsked => "■ stopped by its caller",
        Stopper::TimeLimit => "⏱ timeout",
    }
}
