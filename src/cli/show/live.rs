//! The part of `rexec show` about a running command: the host's facts, and the output until now.

use std::collections::VecDeque;
use std::io::{self, Write};

use crate::cli::ps::table::clock;
use crate::cli::{chosen, print, socket_path};
use crate::front::answer::Listed;
use crate::front::run_state::RunState;
use crate::history::{FoundRun, OutputPiece};
use crate::journal::record::StartRecord;
use crate::text::count;
use crate::text::escape::escape_line;

/// The number of last lines of output that are shown.
const LINES_SHOWN: usize = 40;
/// Columns of a prompt.
const PROMPT_COLUMNS: usize = 120;

/// Its state, the time since then, and a person's possible actions.
pub(super) fn state(run: &FoundRun) -> String {
    let seq = run.start.card.seq;
    let Some(listed) = listed(run) else { return format!("runs · watch it: rexec tail -f {seq}") };
    let age = clock(listed.age_ms);
    let said = match listed.state {
        RunState::Queued => format!("queued for {age}: it waits for its start"),
        RunState::Asks => {
            let leaf = escape_line(&listed.held.unwrap_or_default(), PROMPT_COLUMNS);
            return format!("held for {age} · may it run? {leaf} · rexec answer {seq} yes · rexec answer {seq} no");
        }
        RunState::Waiting => {
            let what = listed.prompt.or(listed.asks).unwrap_or_default();
            let what = escape_line(what.trim(), PROMPT_COLUMNS);
            return format!("runs for {age} · waits for an answer: \"{what}\" · rexec send {seq} · rexec attach {seq}");
        }
        RunState::Paused => return format!("runs for {age} · paused · rexec resume {seq} · rexec kill {seq}"),
        RunState::Stopping => format!("runs for {age} · was told to end"),
        RunState::Running | RunState::Left | RunState::Unknown => format!("runs for {age}"),
    };
    format!("{said} · rexec tail -f {seq} · rexec kill {seq}")
}

/// The host's view of the run. A host on another socket, or one that does not answer, has none.
fn listed(run: &FoundRun) -> Option<Listed> {
    let runs = chosen::runs(&socket_path().ok()?).ok()?;
    runs.into_iter().find(|listed| {
        listed.card.seq == run.start.card.seq && run.start.card.command.starts_with(&listed.card.command)
    })
}

/// Writes its banner, its last lines of output, and the note that it goes on.
pub(super) fn write(run: &FoundRun, start: &StartRecord, out: &mut impl Write) -> io::Result<()> {
    let (mut last, mut before) = (VecDeque::new(), 0_u64);
    run.open_output()?.for_each_line(|piece| {
        if let OutputPiece::Line(line) = piece {
            last.push_back(String::from_utf8_lossy(line).into_owned());
            if last.len() > LINES_SHOWN {
                last.pop_front();
                before += 1;
            }
        }
        Ok(true)
    })?;
    print::render_banner(start, out)?;
    if before > 0 {
        let lines = count::counted(before, "line", "lines");
        writeln!(out, "… {lines} before these: rexec out {}", start.card.seq)?;
    }
    last.iter().try_for_each(|line| print::write_lines(line, out))?;
    let nothing = if last.is_empty() { ", and the journal has no output of it so far" } else { "" };
    writeln!(out, "… it still runs{nothing}\n")
}
