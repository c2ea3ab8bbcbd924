//! Where a job's entries go: the console, and the feed to the recorder.

pub mod console;
pub mod feed;
