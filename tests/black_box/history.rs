//! Journals as history: which run a reference names, and what the reading verbs say of it.

mod references;
mod samples;
