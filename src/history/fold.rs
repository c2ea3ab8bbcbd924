//! Every run of a session that has ended, one after the other, in bounded memory.

use std::fs::File;
use std::io;

use super::chunks::Chunks;
use super::facts::{Facts, RunOutcome, head};
use super::query::Query;
use super::session::SessionHistory;
use crate::journal::reader::JournalReader;

/// Calls `each` with every run that has ended or was lost and meets the query, in no particular order.
///
/// # Errors
/// A file cannot be read. One that is gone is left out.
pub fn for_each_ended(session: &SessionHistory, query: &Query, mut each: impl FnMut(&Facts)) -> io::Result<()> {
    let mut wanted = |run: &Facts| {
        if run.outcome != RunOutcome::Open && query.wants(run, false) {
            each(run);
        }
    };
    for part in &session.files {
        let file = match File::open(&part.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if session.open.is_none() {
            for record in JournalReader::new(file) {
                Facts::of(record?).iter().for_each(|(run, _)| wanted(run));
            }
        } else if query.may_be_in(part, &file)? {
            let mut chunks = Chunks::of(&file)?;
            while let Some(chunk) = chunks.next()? {
                let ends = chunk
                    .lines()
                    .filter(|(_, line)| head(line).is_some_and(|(kind, _)| kind == "end" || kind == "lost"));
                ends.filter_map(|(_, line)| Facts::parse(line)).for_each(|run| wanted(&run));
            }
        }
    }
    Ok(())
}
