//! What the caller receives of a command's output, and when, through the real shim and host.

mod budget;
mod demand;
mod flags;
mod fullscreen;
pub(crate) mod interaction;
mod jobs;
mod keys;
mod notes;
mod sessions;
mod streaming;
mod terminals;
