//! The journal from outside: a host's frames go in over a real socket, and files come out. A test uses a real host where
//! the output's way to the recorder matters.
//!
//! The recorder runs in a thread, or in a copy of this test binary where a limit or a mount must not affect other tests
//! (see `support::own_process`). Every wait is for a fact: a status line, a file's content, the recorder's end.

pub(crate) mod faults;
mod files;
mod places;
mod reading;
mod recording;
mod records;
mod repairs;
mod secrets;
mod summaries;
mod timed;
