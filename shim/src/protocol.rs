//! The protocol that rexec-sh and rexec-host share, and the shim's rules that need no system call. std only.
//!
//! | module | contents |
//! |---|---|
//! | [`wire`] | the frames on the socket, their bounds and versions |
//! | [`place`] | the socket's place, and the check that its directory can be trusted |
//! | [`report`] | the reports of a shim in a sandbox about its command |
//! | [`process`] | pids, process groups, signals, and a shell's end |
//! | [`invocation`] | the invocations that go to the host, and the real shell's name |
//! | [`shell_places`] | the places of the real shells |
//! | [`environment`] | the variables that travel, and those that the host sets |
//! | [`run_changes`] | the changes of `rexec run` for an agent, and their undoing for commands |
//! | [`direct`] | how `rexec exec` asks the shim for a program instead of a shell's command string |
//! | [`options`], [`choice`] | the shim's `REXEC_` variables, and the choices in them |
//! | [`agents`], [`agent_programs`] | the agent that calls, by its variables and by the processes above |
//! | [`unseen`] | notes about commands that ran without a host |
//! | [`mark`] | `REXEC_INSIDE`, and the search for a guard above |
//! | [`shown`] | text from others on a person's terminal |
//! | [`notice`], [`exit_code`] | the form of a problem, and the exit codes |

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
