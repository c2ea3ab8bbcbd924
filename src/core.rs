//! The pure core: what a job is, its log, and the engine over all jobs.
//!
//! It uses std and the plain data of `rexec_sh::protocol` only, and has no descriptors and no clock. The host passes
//! facts and the time to it, and it answers with effects, so a test can try every interleaving. The name of a fact is
//! the name of the method that takes it:
//!
//! | fact | method of the engine | what may follow |
//! |---|---|---|
//! | a caller asks for a command | `Engine::submit` | `Effect::Start` |
//! | a guard has the command, or cannot get it | `Engine::on_started`, `Engine::on_start_failed`, `Engine::retry` | kept signals |
//! | the command wrote | `Engine::on_output` | an entry for every reader |
//! | the command asked for terminal input | `Engine::on_input_stop` | an entry, `Order::EndInput`, `Order::HangUp` |
//! | a person answers it, or leaves | `Engine::answer`, `Engine::leave` | `Order::GiveForeground`, `Order::TakeForeground` |
//! | a stream hung up, the shell ended, the guard is gone | `Engine::on_hangup`, `Engine::on_exit`, `Engine::on_guard_gone` | the job ends |
//! | something outlives the end, or is learned behind it | `Engine::on_left`, `Engine::on_unkillable`, `Engine::on_received` | an entry |
//! | nothing of it lives | `Engine::on_gone` | the last entry |
//! | a caller or a person wants it to end | `Engine::stop` | `Order::Terminate`, then `Order::Kill` |
//! | time has passed | `Engine::tick` | any of these |
//!
//! Reading order: [`card`] (what a run is when it begins), [`end`] (how it ends), [`entry`] (what a log holds), [`log`]
//! (how it is read), [`job`] (one command's life), [`engine`] (all of them).

pub mod buffer_room;
pub mod card;
pub mod end;
pub mod engine;
pub mod entry;
pub mod job;
pub mod log;
