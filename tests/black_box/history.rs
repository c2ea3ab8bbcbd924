//! Journals as history: which run a reference names, and what the reading verbs say of it.

mod counting;
pub(crate) mod reading;
mod references;
pub(crate) mod samples;
