//! Readers of every job's log: the console, and the feed to the recorder.

pub mod console;
pub mod feed;
