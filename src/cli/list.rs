//! `rexec --list [N]`: the newest journals and their numbers of commands.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use rexec_sh::protocol::notice::Notice;

use super::run_reference::unreadable;
use super::verb::{Group, Values, Verb, one_word};
use super::written;
use crate::journal::reader::{JournalReader, Record, closing};
use crate::recorder::{self, first_line, journals};
use crate::text::escape::escape_line;

pub(super) const VERB: Verb = Verb {
    term: "-l, --list",
    group: Group::Flag,
    summary: "list the N newest journals (default 10)",
    text: "\
Each journal has one line, newest first: its name and how many commands it
holds.
",
    codes: &[(1, "a journal cannot be read")],
    examples: &["rexec --list 3"],
    call: &one_word("[N]", Values::Nothing, |word| {
        let count = match word {
            Some(word) => word.parse().map_err(|_| VERB.not_valid("N", &word, "a number, as in rexec --list 3"))?,
            None => DEFAULT,
        };
        super::with_output(|out| list(&super::home()?, count, out))
    }),
};

/// Columns of a journal's name that are shown: as many as a file's name has bytes.
const NAME_COLUMNS: usize = 255;
/// The default number of journals.
pub const DEFAULT: usize = 10;

/// Writes a line for each of the `n` newest journals, newest first. Without a directory there are no journals.
///
/// # Errors
/// The directory or a journal cannot be read, or the list cannot be written.
pub fn list(home: &Path, n: usize, out: &mut impl Write) -> Result<(), Notice> {
    let journals = match journals(home) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.map_err(|source| unreadable(home, &source))?,
    };
    for (name, path) in journals.into_iter().take(n) {
        let runs = match count_runs(&path) {
            // It was removed after the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            counted => counted.map_err(|source| unreadable(&path, &source))?,
        };
        written(writeln!(out, "{} commands={runs}", escape_line(&name, NAME_COLUMNS)))?;
    }
    written(out.flush())
}

fn count_runs(path: &Path) -> io::Result<u64> {
    let file = File::open(path)?;
    match closing(&file)?.and_then(|close| close.commands) {
        Some(commands) => Ok(commands),
        None => match recorder::count_runs(&file)? {
            // rexec's predecessor wrote neither starts nor a count.
            0 if first_line(&file).is_none() => ends(path),
            runs => Ok(runs),
        },
    }
}

/// Counts the ends of commands in a file, line by line.
fn ends(path: &Path) -> io::Result<u64> {
    let count = |ends, record: Record| ends + u64::from(matches!(record, Record::End(_)));
    JournalReader::new(File::open(path)?).try_fold(0, |ends, record| Ok(count(ends, record?)))
}
