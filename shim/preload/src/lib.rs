//! The preload: a library that `rexec run` loads into an agent, so that the shells which the agent starts are rexec's,
//! however it names them.
//!
//! It acts in the agent's own programs only: those that execute the agent's interpreter, and those of its package. There
//! it stands before execve(2) and its like ([`calls`]). A shell with a command string is executed as rexec's link of the
//! same name; one of the agent's own programs gets the preload again; and whatever else is started gets nothing of rexec's.
//! In other programs, in those that the shells start, and where its variables are missing, every call passes unchanged.
//!
//! | module | what it does |
//! |---|---|
//! | [`calls`] | stands in the place of the C library's functions |
//! | `variadic` | the same for those with any number of arguments |
//! | [`system`] | the same for system(3), which the C library does by itself |
//! | [`entries`] | the environment that a program gets |
//! | [`target`] | what a program is for an agent |
//! | [`start`] | what `rexec run` has told this process |
//! | [`sys`] | system calls, and strings of the C library's callers |
//!
//! Invariants: all of it runs in children that a program with threads has forked, and in those of vfork(2) that share its
//! memory. So it allocates nothing, takes no lock (but in [`system`]), changes no memory but its stack once the process has started, and
//! panics nowhere. What has no room on the stack passes unchanged.

pub mod calls;
pub mod entries;
pub mod start;
pub mod sys;
pub mod system;
pub mod target;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod variadic;
