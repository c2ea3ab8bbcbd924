//! The console's lines about commands that callers run without this host.

mod claims;
mod notes;

pub(super) use claims::Claims;
pub(super) use notes::UnseenNotes;

use super::screen::Screen;
use crate::limits;
use crate::text::ends::escape_ends;
use crate::text::name::name_of;

/// Columns that a command may take in such a line.
const COMMAND_COLUMNS: usize = 400;

/// A sandboxed caller runs this command in its sandbox.
pub(super) fn say_sandboxed(why: &str, whoami: &str, command: &[u8], screen: &mut Screen) {
    screen.say_if_room(sandboxed_line(why, whoami, command));
}

/// The line about a sandboxed caller that runs this command in its sandbox. It is short, however long the command is.
pub(super) fn sandboxed_line(why: &str, whoami: &str, command: &[u8]) -> String {
    let command = escape_ends(&String::from_utf8_lossy(command), COMMAND_COLUMNS);
    let whoami = name_of(whoami, limits::WHOAMI_COLUMNS);
    format!("… {whoami} is sandboxed ({why}): its command runs in its sandbox, unseen: {command}")
}

/// The claim of a caller that runs this command itself, for this reason.
pub(super) fn left_line(whoami: &str, why: &str, command: &str) -> String {
    let whoami = name_of(if whoami.is_empty() { "shell" } else { whoami }, limits::WHOAMI_COLUMNS);
    let command = escape_ends(command, COMMAND_COLUMNS);
    format!("{whoami} runs a command without this host ({why}), unseen: {command}")
}

/// The claim of a caller that has begun an interactive shell, which this host does not show.
pub(super) fn interactive_line(whoami: &str) -> String {
    let whoami = name_of(if whoami.is_empty() { "a caller" } else { whoami }, limits::WHOAMI_COLUMNS);
    format!("not shown: interactive shell of {whoami}")
}
