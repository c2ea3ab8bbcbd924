//! Where a job's entries go: the console and the journal.

pub mod console;
pub mod journal;
pub mod reader;
pub mod record;
pub mod recorder;
