//! Journals as history: which run a reference names, and what the reading verbs say of it.

pub(crate) mod reading;
mod references;
pub(crate) mod samples;
