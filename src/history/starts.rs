//! How every run of a session began, one after the other.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

use super::beginning::RunBeginning;
use super::facts::Facts;
use super::query::Query;
use super::session::SessionHistory;
use crate::journal::reader::{JournalReader, Record};

/// Calls `each` with the beginning of every run that meets the query, once, in no particular order.
///
/// # Errors
/// A file cannot be read. One that is gone is left out.
pub fn for_each_start(session: &SessionHistory, query: &Query, mut each: impl FnMut(RunBeginning)) -> io::Result<()> {
    // A file begins with the starts of the runs that the file before it has left open.
    let mut seen = HashSet::new();
    for part in &session.files {
        let file = match File::open(&part.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if !query.may_be_in(part, &file)? {
            continue;
        }
        let mut environments = HashMap::new();
        let reader = JournalReader::new(file);
        // The tool before this one wrote ends alone.
        let is_prior = session.open.is_none();
        for record in if is_prior { reader } else { reader.without_ends() } {
            let start = match record? {
                Record::Environment(record) => {
                    environments.insert(record.id, record.environment);
                    continue;
                }
                Record::Start(start) => *start,
                Record::End(end) => end.start,
                _ => continue,
            };
            let is_wanted =
                Facts::of(Record::Start(Box::new(start.clone()))).is_some_and(|(run, _)| query.wants(&run, false));
            if is_wanted && seen.insert(start.card.seq) {
                let base = start.env.as_ref().and_then(|env| Some((env, environments.get(&env.id)?)));
                let environment = base.map(|(env, base)| env.applied(base));
                each(RunBeginning { start, environment });
            }
        }
    }
    Ok(())
}
