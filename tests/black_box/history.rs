//! Journals as history: which run a reference names, and what the reading verbs say of it.

mod counting;
mod narrow;
pub(crate) mod reading;
mod references;
pub(crate) mod samples;
