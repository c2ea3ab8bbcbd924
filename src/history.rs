//! The journals as history: which sessions there are, which runs they have, and what a run wrote.
//!
//! ```text
//! directory ──▶ session ──▶ search   runs that a query wants, newest first
//!                  │
//!                  └─────▶ find ──▶ found run ──▶ output   the record's text, or the raw file
//! ```
//!
//! Nothing here needs a host, writes a file, or needs an index. A file is read from its end, in chunks of whole lines,
//! and a line that a search does not want is never parsed.
//!
//! Invariants: memory is bounded by a chunk and by the runs that are wanted; a line that is not a record costs itself
//! only; a file that grows, shrinks or vanishes while it is read is no error.

mod answers;
mod beginning;
mod chunks;
mod ends;
mod facts;
mod find;
mod fold;
mod output;
mod output_lines;
mod query;
mod recording;
mod search;
mod session;
mod span;
mod starts;

pub use beginning::RunBeginning;
pub use ends::JournalEnds;
pub use facts::{Facts, RunOutcome};
pub use find::{FoundRun, find};
pub use fold::for_each_ended;
pub use output::{Omission, OutputSource, WholeOutput};
pub use output_lines::OutputPiece;
pub use query::{Query, milliseconds};
pub use recording::RunRecording;
pub use search::{SearchResult, search};
pub use session::{JournalFile, SessionHistory, sessions};
pub use span::SessionSpan;
pub use starts::for_each_start;
