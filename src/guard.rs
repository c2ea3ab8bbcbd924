//! The guard: the process between the host and one command.
//!
//! A guard leads the session of the run's terminal and is its foreground process group. It adopts every process that
//! the command leaves behind (child subreaper, prctl(2)), and it is the only process that signals the command. The
//! shell is its child in a *background* process group of the same session. From this follows:
//!
//! * The end of the shell is not the end of the session, so background jobs live on.
//! * A process that reads the terminal is stopped, so prompts are noticed.
//! * The whole process tree of the command, however it detaches itself, is found below the guard.
//!
//! Where the run's terminal stands for its caller's ([`control::PLAN_RELAYED`]), the shell is in the foreground, and
//! leads a session of its own if its caller does. Where the caller's terminal is relayed on demand
//! ([`control::PLAN_ON_DEMAND`]), the shell begins in the background and keys come while the command asks for them.
//!
//! # Life of a guard
//!
//! 1. [`spawn`]: the host opens a pseudoterminal and forks the guard, ahead of demand. The guard takes over the
//!    terminal, waits for a command (`request`), lets what it may destroy be kept (`collector`), reports that it begins, and
//!    starts the shell (`launch`).
//! 2. `supervisor`: it reaps, obeys orders and reports. `stops` and `foreground` deal with processes that stop at the
//!    terminal, `hunt` kills the process tree when it is ordered to.
//! 3. When the shell ends, the guard closes the terminal and reports the exit. It stays until it has no children.
//! 4. A guard whose command has left no process, and that nobody has ordered anything, is free. The host gives it a new
//!    terminal and the next command (`host/spares`), if its own attributes are as they were (`condition`).
//! 5. If a guard dies by violence, the host finds its children with [`orphans`].
//!
//! # Invariants
//!
//! * A guard holds its control socket, the terminal's slave, its caller's terminal if that is relayed, and no other
//!   descriptor of the host.
//! * It closes the slave before it reports the exit of the shell.
//! * Signals from its command have no effect on it, except SIGKILL and SIGSTOP. The host watches for those.
//! * A command finds nothing of the command before it: no process, no terminal, no changed attribute of its guard.
//! * When the host is gone, a guard ends a command that runs. It leaves alone what an ended command left behind.
//!
//! # Where prompts are decided
//!
//! A prompt is a process that reads the terminal from the background, and stops. A process that changes the modes first
//! stops for that, and is let pass: what it reads then is found by looking. These places take part:
//!
//! * `host/spares` types ^D into a new terminal, so that a program that waits for input with poll(2) reads, and stops.
//! * `stops` notices stopped children at once, and others of the tree when the host orders a look. `asker` picks the
//!   process that asks.
//! * `host/prompt_policy` says whether somebody is there to answer, and for how long the command waits.
//! * [`core::job`](crate::core::job) waits, counts the stops of a command, decides between end of file and hang-up, and
//!   schedules the looks.
//! * `host/runs/answers` passes a person's keys on, while `foreground` has given the foreground to the command.
//! * `host/run` types ^D when it orders end of file, and again when the guard has the foreground back.
//! * `foreground` gives the stopped process group the foreground for a moment, in which it reads the ^D, and hangs up
//!   processes that ask too often.
//! * On a relayed terminal none of this happens: a person answers. `terminal_on_demand` decides how long a command
//!   keeps a terminal that is relayed on demand.
//!
//! Reading order: [`control`], [`spawn`], `request`, `collector`, [`baseline`], `condition`, `launch`, `supervisor`, `stops`, `asker`,
//! `foreground`, `terminal_on_demand`, `pause`, [`paused_tree`], `hunt`, `child_events`, [`orphans`].

#![expect(unsafe_code, reason = "a guard forks, and its child makes system calls only")]

mod asker;
pub mod baseline;
mod caller_group;
mod child_events;
mod collector;
mod condition;
pub mod control;
mod endless;
mod extras;
mod filters;
mod foreground;
mod hunt;

mod launch;
pub mod orphans;
mod pause;
pub mod paused_tree;
mod request;
pub mod saved_terminal;
pub mod spawn;
mod stops;
mod supervisor;
mod terminal_on_demand;
