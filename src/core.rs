//! The pure core: what a job is, its log, and the engine over all jobs.
//!
//! std only, no descriptors, no clock of its own. It is told facts and the time and answers with effects, so every
//! interleaving can be tested. Reading order: [`entry`], [`log`], [`job`], [`engine`].

pub mod engine;
pub mod entry;
pub mod job;
pub mod log;
