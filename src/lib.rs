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
//! other helpers of the host begin in `sys/helper.rs`, but for the guards.
//!
//! `rexec`, the human's command line, is a client of the host's socket and a reader of the journal: [`cli`]. What it
//! reads of journals it reads through [`history`].
//!
//! # The way of one command
//!
//! 1. The shim (`shim/src/sys.rs` has its C `main`, `shim/src/main.rs` decides) reads its options (`protocol/options.rs`)
//!    and finds the real shell (`shim/src/shell.rs`). Inside a run (`shim/src/inside.rs`), and for anything but a command
//!    string (`protocol/invocation.rs`), it executes that shell at once; where no host serves it, `shim/src/main.rs` says
//!    what happens instead (`shim/src/local_run.rs` for sandboxes).
//! 2. It looks for its agent, on whose life the command depends (`shim/src/lifeline.rs`), reads its streams and its
//!    directory, connects to the socket (`shim/src/connect.rs`, `protocol/place.rs`), and reads what else a child of the
//!    agent would inherit (`shim/src/collect.rs`), with the filtered environment (`protocol/environment.rs`).
//!    `shim/src/main.rs` sends the request (`protocol/wire/run.rs`; the other messages are in `protocol/wire/frame.rs`),
//!    and `shim/src/client.rs` what did not fit at once and all that follows.
//! 3. The host takes the connection (`host/door.rs` accepts its own user's, `host/peers.rs` keeps it).
//!    `host/requests.rs` serves it: first `host/sandbox_check.rs` looks at the caller, whose descriptors are not taken if
//!    it may do less than the host. Then the request is decoded: `front/language.rs` knows what the peer speaks,
//!    `protocol/wire/run.rs` the bytes, and `front/shim.rs` makes the command of them, as a person would name it
//!    (`front/command.rs`, `text/unwrap.rs`). Who calls: `protocol/agents.rs` knows agents by their variables,
//!    `front/caller.rs` names them, `host/callers.rs` adds what their processes tell.
//! 4. `host/submissions.rs` makes a job of it (`Host::enter`). It asks the rules (`host/rules.rs`; `host/judges.rs` where
//!    that takes a process of its own), and the engine (`core/engine.rs`) gives the job its number and, unless they hold
//!    it, its place in the queue. Then it makes the card (`core/card.rs`) for console, journal and lists, the record of the
//!    start, for which `host/stream_plan.rs` chooses pipes or a terminal, and the command's block. Only then is the job
//!    refused or held (`core/job/hold.rs`). Who may answer is known to `host/deciders.rs`; a yes puts it into the queue.
//! 5. The engine has room for the job and answers `Effect::Start`. `host/starts.rs` begins it: `host/starts/hand_over.rs`
//!    takes a spare guard (`host/spares.rs`), sends it the plan and the request with the caller's descriptors
//!    (`guard/control.rs`), and has `front/output_filter.rs` choose how the output is filtered for the caller.
//! 6. The guard was made ahead of demand: `guard/spawn.rs` opens its terminal (`sys/pty.rs`) and forks it, and there it
//!    becomes the leader of a session, and the one to whom orphans below it come (a child subreaper). It takes the request
//!    (`guard/request.rs`), says that it is ready, and begins on the host's order (`host/runs/begin.rs`), once the caller
//!    has let go of its files (`shim/src/client/let_go.rs`); where that takes too long, by itself. It makes the shell's
//!    process (`guard/launch.rs`, which executes it) and then waits, obeys and reports (`guard/supervisor.rs`).
//! 7. What the command writes is read in `host/runs/streams.rs` and becomes an entry of the job's log (`core/job.rs`,
//!    `core/log.rs`, which is bounded; `core/engine.rs` bounds all of them). In each turn the readers get what they have
//!    room for, each by a cursor of its own, in this order:
//!    * the caller: `front/shim.rs` filters (`text/sanitize.rs`, on pipes its `tidy`),
//!      `host/peer.rs` sends, and `shim/src/client/incoming.rs` writes it to the agent's own descriptors. Signals,
//!      sizes and stops go the other way: `shim/src/client/job_control.rs`;
//!    * programs that follow by JSON-RPC: `host/rpc/watcher.rs`;
//!    * the journal: `sink/feed.rs` makes frames (`journal/frame.rs`), `host/recorder_link.rs` decides when they go, and
//!      `host/recorder_process.rs` sends them, after the console's output has gone. In the recorder, whose header has a
//!      drawing, `recorder/serve.rs` takes them in, `recorder/masks.rs` masks secrets (`text/redact.rs`) for
//!      `recorder/live.rs`, and `recorder/appender.rs` writes the records (`journal/record.rs`). What was written when
//!      goes to `recorder/timed_output.rs`, whose lines are in `journal/recording.rs`, and from there to
//!      `recorder/output_files.rs`;
//!    * the human: `sink/console/floor.rs` decides which block grows; when it gets the floor for the first time,
//!      `sink/console.rs` has its first row drawn (`sink/console/heading.rs`). `sink/console/block.rs` filters what comes
//!      (`sink/console/filter.rs`; on a terminal `text/safe.rs`), and `host/screen.rs` writes;
//!    * people at other terminals: `host/viewers.rs`.
//! 8. A process of the command reads the terminal: the guard notices (`guard/stops.rs`; `guard/asker.rs` picks the one that
//!    asks), `core/job/prompts.rs` decides what follows, `host/runs/answers.rs` gives one person the terminal, and
//!    `host/answering.rs` writes what that person types to it.
//! 9. The shell ends. The guard notices (`guard/supervisor.rs`) and reports it, `host/runs/guard_reports.rs` tells the
//!    job, and the job ends when its output has ended too (`core/job.rs` has the diagram). It makes its end,
//!    of which `core/end.rs` makes words and code. Each reader finds it behind the output: the caller first, where
//!    `shim/src/client/job_control.rs` makes a code or a deadly signal of it, by which `shim/src/main.rs` ends. Then
//!    `host/runs/guard_reports.rs` looks for what lives on, so that the record (`sink/feed/held.rs`;
//!    `journal/entry_words.rs` fills it) and the console's last row can say it. Behind the end the log says what lives on,
//!    what cannot be killed and what the caller got, until nothing of the command lives. The guard stays until the command
//!    has left no process. If its shell was the last one, and nothing has changed it (`guard/condition.rs`), it serves
//!    again. Before one ends of whose command something was kept for undo, it takes out of the store what is still there
//!    (`undo/settling.rs`) and reports what is gone.
//! 10. The host ends: `host/shutdown.rs`. What a dead guard has left is found by `host/orphan_hunt.rs`.
//!
//! # Who may name whom
//!
//! ```text
//! bin ▶ cli ▶ host ▶ { front, sink, io, guard, recorder, sys }      { guard, host, cli } ▶ undo ▶ { gate, script, sys, text }
//! cli ▶ history ▶ { recorder, journal, text }      { host, cli } ▶ { gate, script }      gate ▶ { script, text }
//!                      front, sink, journal ▶ { core, text }      front, sink, recorder ▶ journal
//!                      guard ▶ { sys, core }             io ▶ sys ▶ core
//! ```
//!
//! Everything may name [`limits`] and the shim's protocol library, which needs std alone. [`core`], [`text`], [`script`] and
//! [`gate`] are pure: they are told what happened and what time it is, and `script` names std and the limits alone.
//! mio is named in [`io`] only, nix in [`sys`] and [`guard`] only, which alone make system calls by hand.
//! `tests/architecture` checks all of this, and that no modules need each other in a circle.
//!
//! # Where to change what
//!
//! * A bound or a time: [`limits`], by topics in `limits/`; how long processes have to end, in `limits.rs` itself: `GRACE`
//!   for a person, `GRACE_CALLER_GONE`, `SHUTDOWN_GRACE`. An exit code: `shim/src/protocol/exit_code.rs`.
//! * Why and how a command has ended, or was refused, and what its agent is told of a refusal: `core/end.rs`.
//!   Of one that never ran or was lost: `front/shim.rs`.
//! * A new kind of entry: `core/entry.rs`, and a row in each table of `journal/entry_words.rs`.
//! * What is told of a thing that happened to a run, to whom and in which words: `journal/entry_words.rs`.
//! * A message's form, and the words for no host: `protocol/notice.rs`. What a peer is told that the host cannot serve:
//!   `host/notices.rs`; of a command that cannot be started: `host/start_errors.rs`.
//! * How an agent is recognised: `protocol/agents.rs` by its variables, `protocol/agent_programs.rs` by its program;
//!   its session and version: `front/caller/marks.rs`; its short name: `text/agent_name.rs`; how long it waits:
//!   `front/caller.rs`.
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
//!   order of rules. The rules that come with rexec: `gate/packs/NAME.toml`. Which processes a command would signal:
//!   `gate/kills.rs`, and whose they are: `host/victims.rs`. `host/rules.rs` asks the rules about each command, and says
//!   what follows; `host/rule_files.rs` has the files that they come from (`host/own_rules.rs`, `host/project_rules.rs`),
//!   and `recorder/accepted_texts.rs` what a person has accepted of those. `cli/gate.rs` tries them, `cli/gate/past.rs` on
//!   the commands of journals. Which rules those suggest: `gate/habits.rs`, `cli/gate/learn.rs`.
//! * What a command would destroy: `undo/operands.rs`. It is kept before that by a process between guard and shell
//!   (`guard/collector.rs`, `undo/keeping.rs`), in the form of `undo/manifest.rs`; how long it stays: `undo/tidying.rs`.
//!   `undo/record.rs` reads it, `undo/restoring.rs` brings it back, `cli/undo.rs` and `cli/kept.rs` tell.
//! * When a person is asked besides the rules: `Concern` in `front/command.rs`; before what cannot be kept:
//!   `host/unkept.rs`.
//! * What becomes of an ask that nobody answers in time: `core/job/hold.rs`; how it is answered later: `host/later.rs`.
//! * What the key `a` saves, and what that allows: `gate/learned.rs`; its file: `recorder/learned_file.rs`, `host/always.rs`.
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
//! * The console: `sink/console.rs` has the blocks, `sink/console/floor.rs` decides which one grows.
//!   A block's first row: `sink/console/heading.rs`, its last: `sink/console/ending.rs`, the status line:
//!   `sink/console/status_line.rs`, the keys: `sink/console/keyboard.rs` (`host/console_keys.rs` does what they say).
//!   `sink/console/face.rs` draws the host's own rows on a terminal; `text/banner.rs` has the words of rows in files and
//!   printed journals. `text/safe_text.rs` is the type of what may stand in them.
//! * What is known of a run when it begins, and shown: `core/card.rs`; `host/submissions.rs` makes it. What of it records,
//!   lists and answers have, and under which names: `journal/record/card.rs`.
//! * A record's fields: `journal/record/start.rs`, `journal/record/end.rs` and their neighbours; `host/submissions.rs`
//!   makes a start of the card, `journal/entry_words.rs` (for `sink/feed/held.rs`) and `recorder/live.rs` fill an end.
//! * When a command may start: `core/engine.rs` counts, `host/starts.rs` waits for what the machine lacks.
//! * When a command is stopped, and how: `core/job/stopping.rs` decides, `guard/supervisor.rs` does it, and
//!   `guard/hunt.rs` where all its processes are killed.
//! * The state of a run, as lists and programs read it: `front/run_state.rs`. What is done to a run for a person, whether a
//!   guard keeps it or a sandboxed shim: `host/keeper.rs`.
//! * Prompts (a command reads the terminal): `core/job/prompts.rs` decides; [`guard`] names every place that takes part.
//! * A record's or a `--json` form's field: `cli/help/schema.txt` lists it too, and a test compares.
//! * What is due for a command at a time (a look at its guard, the end of a time limit): `host/runs/timers.rs`.
//! * On which ports a command listens, and which one holds a port that another wants: `host/runs/ports.rs`.
//! * What a project's commands are given, and how they are paused and ended together: `front/projects.rs` has the sessions,
//!   `host/project_sessions.rs` their runs, `host/project_variables.rs` what other commands get of theirs, `recorder/projects_file.rs` the file.
//! * Spans for OpenTelemetry: `front/span.rs` has the format; `cli/otlp.rs` makes them of the journal and sends them.
//! * A command that a person or a script gives to the host: `cli/exec.rs`, which becomes the shim
//!   (`protocol/direct.rs`); in the background: `cli/exec/background.rs`, by JSON-RPC (`cli/host_calls.rs`).
//! * What a terminal that comes later is shown first: `text/terminal_tail.rs`, which `host/runs/screens.rs` keeps. How a
//!   program types for a person: `host/rpc/typing.rs`.
//! * What is awaited of a command, and how that is told: `cli/awaited.rs`. Names of services: `cli/service.rs`.
//! * MCP: `front/mcp.rs` has the protocol and the calls.
//! * How `rexec mcp` and `rexec exec-server` read, wait and write: `cli/stdio_server.rs`.
//! * Which run `44`, `SESSION:44` or `-1` is: `cli/run_reference.rs`; how it is found: `history/find.rs`.
//! * A method for programs (JSON-RPC): a row in `front/rpc/methods.rs`, its parameters and its answer beside that, and
//!   its service in a file of `host/rpc/`; who may call it: `host/rpc/admission.rs`. `cli/help/schema.txt` lists the
//!   answer's fields, and a test compares.
//!   What it reports without being asked: a row in `front/rpc/events.rs`, a `RunEvent` in `front/rpc/params.rs`, its note
//!   in `front/rpc/answers.rs`, and `host/rpc/watcher.rs` sends it.
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
//! | log, entry, cursor, reader | a job's bounded history; one fact in it; a place in it; who goes by it |
//! | card, end | what is known of a run when it begins, and how it ended; both may be published |
//! | turn | one round of the host's loop |
//! | hold | the state of a job that waits for its person's word; it is not queued |
//! | block, floor | a command's rows on the console; the right of one block to grow |
//! | banner, heading | a block's first row: in a file or a printed journal, on a terminal |
//! | mask | a placeholder for a secret |
//! | guard | the process between the host and one command |
//! | order, report | what the host tells a guard; what a guard tells the host, or the shim of a reported run |
//! | shell | the real shell that runs the command, a child of the guard |
//! | left-over process | a process of a command that lives after the command's shell has ended |
//! | orphan | a process of a command whose guard is gone |
//! | caller's terminal, relayed | the shim passes keys and output between it and the run's terminal |
//! | prompt | a process of the command reads the terminal, for which nobody has typed anything |
//! | project session | what the commands of one project share: directory, variables, shell, ports |
//! | grace | the time between SIGTERM and SIGKILL |
//! | sandbox | any confinement in which the caller may do less than the host |
//! | reported run | a command that its shim runs in its caller's sandbox and reports to the host |
//! | answer | what a peer gets for a request; to a prompt: what is typed; of a rule: yes, no or perhaps |
//! | leaf | a program that a command's text runs, or a layer such as sudo in front of one |
//! | hole | a place in a word whose text is not known |
//! | rule, verdict | what a person wants done with leaves that match; what the rules say of one leaf or command |
//! | judge | a process that asks the rules about one command, because that takes long |
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
pub mod undo;
