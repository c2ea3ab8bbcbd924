//! The journal's records: one JSON object per line, each with the format's version `v` and its `type`.
//!
//! ```text
//! open       first line of a file: which host writes it
//! text       a long argument, written once for all the runs that have it
//! environment  the variables of runs, written once for all the runs that have them
//! start      a run begins
//! end        the same run, complete: the start's fields, the output and how it ended
//! lost       a start without an end, found when a later host repaired the file
//! destroyed  what a run has destroyed of what was kept for undo
//! dropped    records that are missing, because the disk or the recorder did not take them
//! input      a person typed for a run: how much, never what
//! unseen     commands that a caller ran without a host
//! mark       what a reader of the file's last few MiB needs to know about the part before
//! close      last line of a file whose host left in order or went on in another file
//! ```
//!
//! A file is complete in itself. When a host goes on in another file, it repeats there the starts of the runs that have
//! not ended, and the texts that its records refer to.
//!
//! Invariants: no line is longer than [`LINE_BYTES_MAX`], because `fit` cuts the caller's fields and the recorder
//! cuts the output; a reader ignores fields that it does not know and has a default for every field that is missing,
//! so fields may come and go within one `v`.

mod card;
mod close;
mod destroyed;
mod dropped;
mod end;
mod environment;
mod environments;
mod fields;
mod fit;
mod input;
mod lost;
mod mark;
mod open;
mod start;
mod text;
mod text_ref;
mod unseen;

use std::time::SystemTime;

use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;

pub use card::{CardFields, PublishedCard};
pub use close::CloseRecord;
pub use destroyed::DestroyedRecord;
pub use dropped::DroppedRecord;
pub use end::{EndRecord, GateRecord, KeptRecord, PortHolder, RecordedOutput, RunEnd, Straggler};
pub use environment::{EnvironmentRecord, EnvironmentRef, KeptEnvironment};
pub use environments::Environments;
pub use fields::RecordFields;
pub use input::InputRecord;
pub use lost::LostRecord;
pub use mark::MarkRecord;
pub use open::OpenRecord;
pub use start::StartRecord;
pub use text::{Library, TextRecord, Texts};
pub use text_ref::TextRef;
pub use unseen::UnseenRecord;

/// The version of every record that this build writes, and the newest that it reads.
pub const VERSION: u32 = 1;
/// The longest line with its newline, bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// One line of the journal: version, type `kind`, the record's fields and a newline.
pub fn line(kind: &str, record: &impl Serialize) -> Vec<u8> {
    let mut line = format!("{{\"v\":{VERSION},\"type\":\"{kind}\",").into_bytes();
    let fields = line.len();
    serde_json::to_writer(&mut line, record).expect("a record has string keys only, and memory does not fail to write");
    // The record's own opening brace; every record has at least one field, so the comma before it is right.
    line.remove(fields);
    line.push(b'\n');
    line
}

/// `when` as the journal writes it: RFC 3339, UTC, milliseconds.
#[must_use]
pub fn timestamp(when: SystemTime) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
    OffsetDateTime::from(when).format(&form).unwrap_or_default()
}

/// The bytes of the day at the beginning of a timestamp.
pub const DAY_BYTES: usize = 10;

#[cfg(test)]
mod tests;
