//! The recorder: a process of its own that owns the journal's files, so that no disk can hold up the host.
//!
//! ```text
//! host ──frames──▶ link ──▶ serve ──▶ runs: live (waiting ─▶ masks ─▶ excerpt) ──▶ appender ──▶ volume   TIME[-N].jsonl
//!   ▲                │        │                             ├──▶ raw                              raw/TIME[-N]-SEQ.out
//!   │                │        │                             └──▶ timed_output ──▶ output_files    raw/TIME[-N].rec
//!   └────status──────┘        └──▶ repair: files that dead hosts left ──▶ tail, summary_file
//! ```
//!
//! The host forks and the child calls [`serve()`]. The child must not die with the host's terminal: it ignores INT,
//! QUIT, HUP, TERM, PIPE and XFSZ, and has no copy of the host's end of the socket, or it would never see that end
//! close. When the host is killed, the recorder still writes all that it was sent.
//!
//! When a recorder dies, the host starts another one in the same [`Session`]. It sends again every record that was not
//! acknowledged and the start of every run that has not ended. The new recorder goes on in the same file and does not
//! write again what it finds there behind the last acknowledged record.
//!
//! Invariants:
//! * Frames are taken in as they come. A start is written at once, and an end once its own run's output is dealt with.
//!   Runs have their output dealt with in turns, so that no record waits for another run's output.
//! * A record is acknowledged when the file has it, or counts it as dropped.
//! * No run is dropped because its raw file, its recording, or the disk, fails.

mod accepted_texts;
mod append;
mod appender;
mod bounds;
mod directory;
mod environment;
mod excerpt;
mod held_text;
mod home;
mod learned_file;
mod link;
mod live;
mod masks;
mod names;
mod output_directory;
mod output_files;
mod projects_file;
mod queue;
mod raw;
mod repair;
mod runs;
mod serve;
mod session;
mod summary_file;
mod tail;
mod timed_output;
mod volume;
mod waiting;

pub use accepted_texts::{accept, accepted_place, accepted_text, all_accepted, forget_accepted, read_accepted};
pub use bounds::Bounds;
pub use home::JournalError;
pub use learned_file::{LEARNED_NAME, read_learned, write_learned};
pub use names::{first_line, is_alive, journals};
pub use projects_file::{is_damage, read_projects, set_projects_aside};
pub use serve::serve;
pub use session::Session;
pub use summary_file::load_summary;
pub use tail::count_runs;
