//! The guard: the process between the host and one command.
//!
//! The host's side is [`spawn`] and [`control`]; the rest runs in the guard.
//!
//! Reading order: [`control`], [`spawn`], [`baseline`], `launch`, `supervisor`, `foreground`, `demand`, `reaper`.

pub mod baseline;
pub mod control;
mod demand;
mod extras;
mod foreground;
mod launch;
mod reaper;
pub mod spawn;
mod supervisor;
