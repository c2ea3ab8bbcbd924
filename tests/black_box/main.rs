//! The programs from outside, and the parts of the library that need no program, by topic.
//!
//! `cargo test` runs the quick ones: each takes at most about 3 s on two busy processors, and there is one for each
//! promise, door and verb. The others are long: `#[ignore = "long: WHAT TAKES THE TIME"]`. Run one topic, one file of a
//! topic, or one test, with the long ones:
//!
//! ```text
//! cargo test --test black_box relay:: -- --include-ignored
//! cargo test --test black_box relay::keys -- --include-ignored
//! cargo test --test black_box -- --include-ignored --exact errors::every_mistake_is_told
//! ```
//!
//! | what you changed | topic |
//! | --- | --- |
//! | how a command is started: arguments, environment, limits, descriptors | `conformance` |
//! | what a command lets go of: its directory, descriptors, outputs | `conformance::let_go` |
//! | what 500 everyday commands print and leave behind | `conformance::everyday` |
//! | `rexec run`: how agents find the shell, and that their commands cannot tell | `agents` |
//! | prompts: programs that read the terminal while nobody answers | `conformance::prompts`, `conformance::stops` |
//! | prompts that a person answers | `prompts` |
//! | which commands have a terminal to ask at | `conformance::askers` |
//! | what callers get of the output, and callers on a terminal | `relay` |
//! | start, signals, kills, shutdown, leftovers, many commands at once | `lifecycle` |
//! | the console: whose output is shown when | `console`; how it survives hostile output: `hygiene` |
//! | what a run can have: markers, a profile, ports, spans, a project session | `runs` |
//! | the journal: files, records, repairs, masked secrets | `journal` |
//! | the reading verbs: run references, search, what they print | `history` |
//! | the socket: who may connect, and what is said over it | `socket` |
//! | `rexec undo`, `rexec kept` | `undo` |
//! | `rexec mcp` | `mcp` |
//! | `rexec export`, `rexec replay` | `export`, `replay` |
//! | JSON-RPC: what programs do over the socket | `rpc` |
//! | callers in a sandbox | `sandbox` |
//! | commands in the background, and services | `services` |
//! | `rexec exec` and `rexec --whoami` | `exec`; `rexec exec-server`: `exec_server` |
//! | error messages and hints | `errors` |
//! | the manual and `--help` | `manual` |
//! | the verbs of `rexec`: their help, options, completions and man pages | `verbs` |
//! | shortages, limits, misbehaving peers, stuck consoles | `faults` |
//! | clocks that jump | `clocks` |
//! | parsers of bytes from outside | `fuzz` |
//! | anything at all | `chaos`, `regressions` |
//!
//! The pure text modules are in `tests/text`, the reader of shell text in `tests/script`, rules for commands in
//! `tests/gate`, the rules of the source code in `tests/architecture`, and the shim beside a host that the test plays itself in `shim/tests/black_box`.
//!
//! | variable | effect |
//! | --- | --- |
//! | `REXEC_TEST_LONG=1` | the long form of the tests that have one: more commands, more rounds |
//! | `REXEC_EVERYDAY=TEXT` | `conformance::everyday`: only the commands that contain this text |
//! | `REXEC_UNDER_TEST=theirs` | `conformance`: the real shell against itself, which finds cases that are not repeatable |
//! | `REXEC_FUZZ_SECONDS=N` | `fuzz`, `tests/text`, `tests/script` and `tests/gate`: each loop lasts this long and says how far it came |
//! | `REXEC_CHAOS_SECONDS=N` | `chaos`: how long; 8 by default |
//! | `REXEC_CHAOS_SEED=N` | `chaos`: the same choices again; the order in which the threads make them still varies |
//! | `REXEC_CHAOS_RECORDER=0` | `chaos`: the recorder is left alone |
//!
//! All tests share one process. A test that changes what a process shares (a limit, a mount, a memory peak) runs in a
//! copy of this program instead: see `support::own_process`. A test that cannot run here prints `SKIPPED` and why.

#![expect(clippy::disallowed_methods, reason = "tests start programs")]

mod agents;
mod chaos;
mod clocks;
mod conformance;
mod console;
mod errors;
mod exec;
mod exec_server;
mod export;
mod faults;
mod fuzz;
mod history;
mod hygiene;
mod journal;
mod keyboard;
mod lifecycle;
mod manual;
mod mcp;
mod prompts;
mod regressions;
mod relay;
mod replay;
mod rpc;
mod runs;
mod sandbox;
mod services;
mod socket;
mod support;
mod undo;
mod verbs;
