//! Journals as history: which run a reference names, and what the reading verbs say of it.

mod reading;
mod references;
mod samples;
