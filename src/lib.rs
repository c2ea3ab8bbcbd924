//! rexec-host: one place between AI coding agents and the system, under a human's eye.
//!
//! This page is the map: the processes, the way of one command through the files, who may name whom, and the words.
//!
//! # Four processes
//!
//! ```text
//!   agent                                                              human
//!     │ executes                                                         ▲ console
//!     ▼                    Unix socket                                   │
//!  rexec-sh ◀── request, output, exit code ──▶ rexec-host ◀── orders, reports ──▶ guard ──▶ real shell ──▶ command
//!  (the shim)                                      │ ▲                            one per running command
//!                                            frames│ │status
//!                                                  ▼ │
//!                                               recorder ──▶ ~/.rexec/*.jsonl
//! ```
//!
//! * The **shim** is the agent's shell: the crate in `shim/`. What it shares with the host is `shim/src/protocol/`. Into an
//!   agent that it does not know, `rexec run` loads the **preload**, which executes the shim: the crate in `shim/preload/`.
//! * The **host** is one thread with one loop in the human's terminal: [`host`], whose header has the loop's phases.
//! * A **guard** leads the session of one command and is the only process that signals it: [`guard`].
//! * The **recorder** owns the journal's files, so that no disk can hold up the host: [`recorder`].
//!
//! What a caller has sent is closed by small processes beside the host, because close(2) may wait: [`sys::closer`]. All
//! helpers of the host begin in `sys/helper.rs`.
//!
//! `rexec`, the human's command line, is a client of the host's socket and a reader of the journal: [`cli`]. What it
//! reads of journals it reads through [`history`].
//!
//! # The way of one command
//!
//! 1. The shim (`shim/src/sys.rs` has its C `main`, `shim/src/main.rs` the rest) reads its options
//!    (`protocol/options.rs`) and finds the real shell (`shim/src/shell.rs`). Inside a run (`shim/src/inside.rs`), and
//!    for anything but a command string (`protocol/invocation.rs`), it executes that shell at once.
//! 2. It connects to the socket (`shim/src/connect.rs`, `protocol/place.rs`), reads what a child of the agent would
//!    inherit (`shim/src/collect.rs`), filters the environment (`protocol/environment.rs`), and sends it all
//!    (`protocol/wire.rs`, `shim/src/client.rs`).
//! 3. The host lets the caller in (`host/door.rs`, `host/peers.rs`) and decodes the request (`front/shim.rs`): who calls
//!    (`front/caller.rs`), and what a person would call the command (`front/command.rs`, `text/unwrap.rs`).
//!    `host/requests.rs` serves it: `host/sandbox_check.rs` refuses a caller that may do less than the host, and
//!    `host/submissions.rs` makes a job of it, with a card (`core/card.rs`) for console, journal and lists.
//! 4. The engine (`core/engine.rs`) has room for the job and answers `Effect::Start`. `host/starts.rs` takes a spare
//!    guard (`host/spares.rs`), `host/stream_plan.rs` chooses pipes or a terminal, and `host/starts/hand_over.rs` sends
//!    the request with the caller's descriptors (`guard/control.rs`).
//! 5. The guard (`guard/spawn.rs`, `guard/request.rs`) makes the shell's process (`guard/launch.rs`, which executes it)
//!    and then waits, obeys and reports (`guard/supervisor.rs`).
//! 6. What the command writes is read in `host/runs/streams.rs` and becomes an entry of the job's log (`core/job.rs`,
//!    `core/log.rs`). Three readers have each a cursor in that log:
//!    * the caller: `front/shim.rs` filters (`front/output_filter.rs`; `text/sanitize.rs`, on pipes its `tidy`),
//!      `host/peer.rs` sends, and `shim/src/client.rs` writes it to the agent's own descriptors
//!      (`shim/src/output_descriptor.rs`);
//!    * the human: `sink/console.rs` filters (`sink/console/filter.rs`; on a terminal `text/safe.rs`) and
//!      `host/screen.rs` writes;
//!    * the journal: `sink/feed.rs` makes frames (`journal/frame.rs`), and `host/recorder_link.rs` sends them. In the
//!      recorder, whose header has a drawing, `recorder/serve.rs` takes them in, `recorder/live.rs` masks secrets
//!      (`text/redact.rs`), and `recorder/appender.rs` writes the records (`journal/record.rs`). What was written when
//!      goes to `recorder/timed_output.rs`, whose lines are in `journal/recording.rs`.
//! 7. The shell ends. The guard reports it, `host/runs/reports.rs` tells the job, and the job ends when its output has
//!    ended too (`core/job.rs` has the diagram). Each reader finds the end behind the output. The shim leaves with the
//!    exit code. Behind the end the log says what lives on, what cannot be killed and what the caller got, until nothing
//!    of the command lives. The guard stays until the command has left no process. If nothing has changed it meanwhile
//!    (`guard/condition.rs`), it serves again.
//!
//! # Who may name whom
//!
//! ```text
//! bin ▶ cli ▶ host ▶ { front, sink, io, guard, recorder, sys }
//! cli ▶ history ▶ { recorder, journal, text }      { host, cli } ▶ { gate, script }      gate ▶ { script, text }
//!                      front, sink, journal ▶ { core, text }      front, sink, recorder ▶ journal
//!                      guard ▶ { sys, core }             io ▶ sys ▶ core
//! ```
//!
//! Everything may name [`limits`] and the shim's protocol library, which needs std alone. [`core`], [`text`], [`script`]
//! and [`gate`] are pure: they are told what happened and what time it is, and `script` names std and the limits alone.
//! mio is named in [`io`] only, nix in [`sys`] and [`guard`] only, which alone make system calls by hand.
//! `tests/architecture` checks all of this, and that no modules need each other in a circle.
//!
//! # Where to change what
//!
//! * A bound or a time: [`limits`]. An exit code: `shim/src/protocol/exit_code.rs`.
//! * What is told of a thing that happened to a run, to whom and in which words: `journal/entry.rs`.
//! * A message's form, and the words for no host: `protocol/notice.rs`. Other refusals: `host/notices.rs`,
//!   `host/start_errors.rs`.
//! * What travels with a command: `shim/src/collect.rs` reads it, `protocol/wire/attributes.rs` has what is always sent
//!   and `protocol/wire/extras.rs` what is rarely, `guard/launch.rs` and `guard/extras.rs` apply it.
//! * What is known of a command that its shim runs in a sandbox: `protocol/report.rs` has the records, `shim/src/report.rs`
//!   and the files that it leads to write them, `host/reports.rs` reads them.
//! * What is known of a command that no host has seen: `protocol/unseen.rs` has the notes, `shim/src/unseen.rs` leaves one,
//!   `host/unseen/notes.rs` tells a person.
//! * When a caller's descriptors are taken in, and how they are closed: `host/requests.rs`, `sys/caller_descriptor.rs`.
//! * How a command's text is read as shell: `script.rs`; what its programs are known for: `script/programs.rs`, and which
//!   run others: `script/wrappers.rs`. Which commands run without a terminal because they are fed: `script/feeds.rs`.
//!   `cli/explain.rs` prints both.
//! * What a rule for commands can say: `gate/config.rs` reads it, `gate/rule.rs` compares it with a leaf, `gate.rs` has the
//!   order of rules. The rules that come with rexec: `gate/packs/`. `host/rules.rs` watches them; `cli/gate.rs` tries
//!   them, `cli/gate/past.rs` on the commands of journals. Which rules those suggest: `gate/habits.rs`,
//!   `cli/gate/learn.rs`.
//! * Which environment a command sees: `protocol/environment.rs`.
//! * How an agent is made to call the shim: `cli/run/recipes.rs`; `cli/run/launch.rs` applies it, and
//!   `protocol/run_changes.rs` undoes it for commands. For good: `cli/run/permanent.rs` has the settings, `cli/init.rs`
//!   the verb, and `text/settings.rs` the edits of files.
//! * Which host a `rexec` finds that runs in a command: `cli/enclosing.rs`.
//! * What an agent reads of the output: `front/output_filter.rs` chooses; `text/sanitize/tidy.rs` for pipes,
//!   `text/sanitize/collapse.rs` for terminals; `front/trimmer.rs` for a budget.
//! * What is recorded with its times: `recorder/timed_output.rs`. How it is played: `cli/replay/player.rs`.
//! * What counts as a secret: `text/redact.rs`, which says what each of its modules knows.
//! * Which variables of a command the journal keeps: `recorder/environment.rs`. How a command is run again with them:
//!   `cli/rerun.rs`.
//! * The console: `sink/console.rs` has the blocks, `sink/console/floor.rs` decides which one grows, and
//!   `sink/console/face.rs` draws the host's own rows; `text/banner.rs` has those of files and pipes. `text/safe_text.rs`
//!   is the type of what may stand in them.
//! * What is known of a run when it begins, and shown: `core/card.rs`; `host/submissions.rs` makes it. What of it records,
//!   lists and answers have, and under which names: `journal/record/card.rs`.
//! * A record's fields: `journal/record.rs`; a start is made of the card, `sink/feed.rs` and `recorder/live.rs` fill
//!   an end.
//! * When a command may start: `core/engine.rs` counts, `host/starts.rs` waits for what the machine lacks.
//! * When a command is stopped, and how: `core/job/stopping.rs` decides, `guard/supervisor.rs` does it.
//! * The state of a run, as lists and programs read it: `front/run_state.rs`. What is done to a run for a person, whether a
//!   guard keeps it or a sandboxed shim: `host/keeper.rs`.
//! * Prompts (a command reads the terminal): `core/job/prompts.rs` decides; [`guard`] names every place that takes part.
//! * A record's or a `--json` form's field: `cli/help/schema.txt` lists it too, and a test compares.
//! * What is due for a command at a time (a look at its guard, the end of a time limit): `host/runs/timers.rs`.
//! * On which ports a command listens, and which one holds a port that another wants: `host/runs/ports.rs`.
//! * What a project's commands are given, and how they are paused and ended together: `front/projects.rs` has the sessions,
//!   `host/project_sessions.rs` their runs, `recorder/projects_file.rs` the file.
//! * Spans for OpenTelemetry: `front/span.rs` has the format; `cli/otlp.rs` makes them of the journal and sends them.
//! * A command that a person or a script gives to the host: `cli/exec.rs`, which becomes the shim
//!   (`protocol/direct.rs`); in the background: `cli/exec/background.rs`, by JSON-RPC (`cli/host_calls.rs`).
//! * What is awaited of a command, and how that is told: `cli/awaited.rs`. Names of services: `cli/service.rs`.
//! * MCP: `front/mcp.rs` has the protocol and the calls.
//! * How `rexec mcp` and `rexec exec-server` read, wait and write: `cli/stdio_server.rs`.
//! * Which run `44`, `SESSION:44` or `-1` is: `cli/run_reference.rs`; how it is found: `history/find.rs`.
//! * A method for programs (JSON-RPC): a row in `front/rpc/methods.rs`, its parameters and its answer beside that, and
//!   its service in `host/rpc.rs`. `cli/help/schema.txt` lists the answer's fields, and a test compares.
//!   What it reports without being asked: a row in `front/rpc/events.rs`, and `host/rpc/watcher.rs` sends it.
//! * The console on other terminals (`rexec tail`): `host/viewers.rs`. What happens to commands, a line each
//!   (`rexec events`): `cli/events.rs`, from the events of JSON-RPC.
//! * What Codex's server offers: `cli/exec_server.rs`, with its two protocols in `cli/exec_server/dialect.rs`.
//! * A verb of `rexec`: a file with its row and its function, and a line in `cli/verbs.rs`. An option of a verb or of
//!   rexec-host: a row of `cli/verb/call.rs` in that file, `cli/host.rs` for rexec-host. Help, completions and man pages are made
//!   of the rows; the manual's pages: `cli/help/`. A verb that asks the host also needs
//!   an action (`front/jsonl/request.rs`) and its service (`host/requests.rs`); one that acts on a command, an order
//!   (`core/job/order.rs`, `guard/control.rs`, `guard/supervisor.rs`).
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | caller | the process that executed the shim: an agent, or a program that it runs |
//! | peer | one connection to the host's socket |
//! | door | the listening socket with its lock |
//! | request | what a peer asks for: run a command, list, kill |
//! | run, job | one command, from its request to its last process; a job is the core's view of a run |
//! | log, entry, cursor | a job's bounded history; one fact in it; a reader's place in it |
//! | guard | the process between the host and one command |
//! | order, report | what the host tells a guard; what a guard tells the host |
//! | shell | the real shell that runs the command, a child of the guard |
//! | left-over process | a process of a command that lives after the command's shell has ended |
//! | caller's terminal, relayed | the shim passes keys and output between it and the run's terminal |
//! | prompt | a process of the command reads the terminal, for which nobody has typed anything |
//! | project session | what the commands of one project share: directory, variables, shell, ports |
//! | grace | the time between SIGTERM and SIGKILL |
//! | sandbox | any confinement in which the caller may do less than the host |
//! | reported run | a command that its shim runs in its caller's sandbox and reports to the host |
//! | leaf | a program that a command's text runs, or a layer such as sudo in front of one |
//! | hole | a place in a word whose text is not known |
//! | rule, verdict | what a person wants done with leaves that match; what the rules say of one leaf or command |
//! | pack | rules that come with rexec, under one name |
//! | fed | with something piped or redirected into it |
//! | notice | a problem, a hint and an exit code, said in one form everywhere |

pub mod cli;
pub mod core;
pub mod front;
pub mod gate;
pub mod guard;
pub mod history;
pub mod host;
pub mod io;
pub mod journal;
pub mod limits;
pub mod recorder;
pub mod script;
pub mod sink;
pub mod sys;
pub mod text;
