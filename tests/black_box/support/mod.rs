//! The black-box harness: starts the real binaries, watches them from outside, and knows nothing of their insides.
//!
//! A test starts a [`Host`] and makes [`Call`]s, each either to the real shell or to the shim. Both run below a
//! [`Warden`], so that whatever they leave behind is known exactly and is gone when the test is over.

pub(crate) mod call;
pub(crate) mod clock;
pub(crate) mod crowd;
pub(crate) mod dice;
pub(crate) mod file_server;
pub(crate) mod frozen_disk;
pub(crate) mod host;
pub(crate) mod journal;
pub(crate) mod lingering;
pub(crate) mod own_process;
pub(crate) mod procs;
pub(crate) mod programs;
pub(crate) mod reader;
pub(crate) mod screen;
pub(crate) mod signals;
pub(crate) mod strip;
pub(crate) mod temp;
pub(crate) mod terminal;
pub(crate) mod typist;
pub(crate) mod waiting;
pub(crate) mod warden;
mod wires;
