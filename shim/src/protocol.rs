//! The protocol that rexec-sh and rexec-host share, and the shim's rules that need no system call. std only.
//!
//! | module | what it says |
//! |---|---|
//! | [`wire`] | the frames on the socket, their bounds and versions |
//! | [`place`] | where the socket lies, and whether its directory can be trusted |
//! | [`report`] | what a shim in a sandbox tells the host of its command |
//! | [`process`] | pids, process groups, signals, and how a shell ends |
//! | [`invocation`] | which invocations go to the host, and the real shell's name |
//! | [`shell_places`] | where the real shells are |
//! | [`environment`] | which variables travel, and which the host sets |
//! | [`run_changes`] | what `rexec run` has changed for an agent, and how it is undone for commands |
//! | [`direct`] | how `rexec exec` asks the shim for a program instead of a shell's command string |
//! | [`options`], [`choice`] | the shim's `REXEC_` variables, and the choices in them |
//! | [`agents`], [`agent_programs`] | which agent calls, by its variables and by the processes above |
//! | [`unseen`] | notes about commands that ran without a host |
//! | [`mark`] | `REXEC_INSIDE`, and whether a guard is above |
//! | [`shown`] | how text from others is shown on a person's terminal |
//! | [`notice`], [`exit_code`] | how a problem is told, and the exit codes |

pub mod agent_programs;
pub mod agents;
pub mod choice;
pub mod direct;
pub mod elf;
pub mod environment;
pub mod exit_code;
pub mod invocation;
pub mod mark;
pub mod notice;
pub mod options;
pub mod place;
pub mod process;
pub mod report;
pub mod run_changes;
pub mod shell_places;
pub mod shown;
pub mod unseen;
pub mod wire;
