//! The host: one process, one thread, one loop that owns everything.
//!
//! ```text
//! wait ─▶ intake ─▶ tick ─▶ perform ─▶ pump ─▶ reconcile ─┐
//!  ▲                                                      │
//!  └──────────────────────────────────────────────────────┘
//! ```
//!
//! | phase | what it does | where |
//! |---|---|---|
//! | wait | sleeps until a descriptor may be ready or something is due | `host/turn.rs`, `io/poller.rs` |
//! | intake | visits each ready source once and turns its bytes into facts for the engine | `host/requests.rs`, `host/runs/guard_reports.rs`, `host/runs/streams.rs` |
//! | tick | does what is due: timeouts, retries, guards that do not answer | `host/runs/timers.rs`, `host/peers.rs` |
//! | perform | does what the engine wants: starts and orders | `host/starts.rs`, `host/runs.rs` |
//! | pump | gives every reader of every log what is new | `host/peers.rs`, `host/recorder_link.rs`, `host/screen.rs` |
//! | reconcile | decides whether the host is done; `host/shutdown.rs` then closes it | `host.rs` |
//!
//! Each part of the state has one owner. A method of an owner takes what else it changes as a `&mut` parameter, so its
//! signature says what it touches; turn, engine and peers together are a `Context` (`context.rs`). What touches nearly
//! everything is a method of `Host` itself, and no other file has any: the loop (here), requests (`requests.rs`,
//! `submissions.rs`, `answer_requests.rs`, and of `rpc/` the files `admission.rs` and `start.rs`), the keys
//! (`console_keys.rs`) and the shutdown (`shutdown.rs`). What serves requests about commands borrows a part of the host:
//! `Commands` (`supervision.rs`) for people, `RpcService` (`rpc/serve.rs`) for programs.
//!
//! | owner | what it holds |
//! |---|---|
//! | `Turn` (`turn.rs`) | the time, the poll, the sources to visit, the jobs to look at again, the read buffer |
//! | `Engine` (`core/engine.rs`) | what every job is, its log, and the queue |
//! | `Door` (`door.rs`) | the listening socket, its lock and its watch |
//! | `SandboxCheck` (`sandbox_check.rs`) | what callers are compared with |
//! | `Reports` (`reports.rs`) | what shims in sandboxes report of commands that they run themselves |
//! | `Claims` (`unseen/claims.rs`) | how many callers said lately that they run something without this host |
//! | `Peers` (`peers.rs`) | the connections and their deadlines; one of them is a `Peer` (`peer.rs`) |
//! | `Starts` (`starts.rs`) | what a start needs: spare guards, control groups, the inherited environment |
//! | `Runs` (`runs.rs`) | the commands: guards, streams, endings, orphans; one of them is an `ActiveRun` (`run.rs`) |
//! | `Screen` (`screen.rs`) | the human's terminal and the console on it |
//! | `Tally` (`tally.rs`) | how commands ended |
//! | `Notifier` (`notifier.rs`) | for which waiting runs the human was called, and the command that does it |
//! | `RecorderLink` (`recorder_link.rs`) | the feed of the journal and the recorder's process |
//! | `Callers` (`callers.rs`) | which agents call, the numbers of their sessions, and what `rexec run` has started |
//! | `ProjectSessions` (`project_sessions.rs`) | which project session each command is in |
//! | `RuleFiles` (`rule_files.rs`) | the rules, which are asked about every command, and their files; `always.rs` has that of what the person always allows |
//! | `Judges` (`judges.rs`) | the processes that ask the rules about long commands, and those that wait for one |
//! | `AnswerTokens` (`tokens.rs`) | the tokens with which commands that ask may be answered |
//! | `LaterAsks` (`later.rs`) | the asks that nobody has answered in time, which the person may still answer |
//! | `RpcClients` (`rpc.rs`) | the connections of programs, what they wait for, and the output that is kept for them |
//!
//! Where to look for:
//!
//! * **How a command is started.** `host/submissions.rs` makes a job of a request. The engine answers with
//!   `Effect::Start`, at once or when there is room. `host/starts.rs` hands the command to a guard, and
//!   `guard/supervisor.rs` is that guard's own code.
//! * **Prompts** (a command asks for terminal input). The header of [`crate::guard`] names every place that takes part.
//! * **How facts enter the journal.** `host/submissions.rs` gives the journal the start record and a reader of the job's
//!   log, from which it takes all facts.
//! * **Acting on a run for a person** (end, signal, pause, resume), wherever it runs: `RunControl`, in `host/keeper.rs`.
//!   What lists and answers know of it: `Keeper`, there too. Lists of all: `host/supervision.rs`. The words for its state: `front/run_state.rs`.
//! * **Signals.** For the host: `Host::visit_signals`. For a command: `Host::on_signal`, then `Job::signal`.
//! * **What a caller is told when nothing can run.** `host/notices.rs` and `host/start_errors.rs`.
//!
//! Invariants: `wait` is the only call that sleeps; readiness is remembered and cleared by `WouldBlock` alone; every
//! source is read at most a budget's worth, then the next one has its turn; a run waits for nothing but its own terminal,
//! guard and caller.

mod always;
mod answer_requests;
mod answering;
mod broken_pipe;
mod callers;
mod console_keys;
mod context;
mod deciders;
mod door;
mod idle_end;
mod input_pipe;
mod json_command;
mod judges;
mod keeper;
mod later;
mod notices;
mod notifier;
mod opening;
mod options;
mod orders;
mod orphan_hunt;
mod overview;
mod own_rules;
mod peer;
mod peers;
mod project_rules;
mod project_sessions;
mod project_variables;
mod prompt_policy;
mod rate_count;
mod recorder_link;
mod recorder_process;
mod refused_order;
mod reports;
mod requests;
mod rpc;
mod rule_files;
mod rule_layers;
mod rules;
mod run;
mod runs;
mod sandbox_check;
mod screen;
mod shutdown;
mod spares;
mod start_errors;
mod started_agents;
mod starts;
mod stream_plan;
mod submissions;
mod supervision;
mod tally;
mod terminal_relay;
mod terminal_size;
mod tokens;
mod turn;
mod unkept;
mod unseen;
mod victims;
mod viewers;
mod watched_file;

pub use always::{read_learned, write_learned};
pub use json_command::own_attributes;
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use crate::core::engine::{Effect, Engine};
use crate::core::job::Order;
use crate::front::span::SpanIds;
use crate::io::poller::Ready;
use crate::limits;
use crate::sink::console::status_line::StatusFacts;
use crate::sys::signal::HostSignals;
use crate::sys::{closer, looker};
use crate::text::agent_name::agent_name;
use crate::text::reason::reason;

use callers::Callers;
use context::Context;
use door::Door;
use idle_end::IdleEnd;
use judges::Judges;
use keeper::Keeper;
use later::LaterAsks;
use notifier::Notifier;
use opening::Opened;
pub use options::{Color, HostOptions};
use peers::Peers;
use project_sessions::ProjectSessions;
pub use prompt_policy::PromptChoice;
use recorder_link::RecorderLink;
use reports::Reports;
use rpc::{RpcClients, RpcService};
use rule_files::RuleFiles;
use runs::Runs;
use sandbox_check::SandboxCheck;
use screen::Screen;
pub use screen::new_console;
pub use started_agents::has_shells;
use starts::Starts;
use supervision::Commands;
use tally::Tally;
use tokens::AnswerTokens;
use turn::{Source, Turn};
use unseen::Claims;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Since(Instant),
}

#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    turn: Turn,
    engine: Engine,
    door: Door,
    signals: HostSignals,
    sandbox_check: SandboxCheck,
    reports: Reports,
    claims: Claims,
    peers: Peers,
    starts: Starts,
    runs: Runs,
    screen: Screen,
    recorder: RecorderLink,
    tally: Tally,
    notifier: Notifier,
    span_ids: SpanIds,
    callers: Callers,
    projects: ProjectSessions,
    rpc: RpcClients,
    rules: RuleFiles,
    judges: Judges,
    later: LaterAsks,
    tokens: AnswerTokens,
    closing: Closing,
}

impl Host {
    /// Becomes the host: takes the lock, opens journal and socket, takes the terminal over.
    ///
    /// # Errors
    /// What it needs is not available: the notice says what, and what to do.
    pub fn open(options: HostOptions) -> Result<Self, Notice> {
        let opened = Opened::take(&options)?;
        let (rules, of_rules) = RuleFiles::open(&options);
        let decides = rules.have_rules();
        let greeting = opened.greeting(&options, of_rules);
        let now = Instant::now();
        let mut host = Self {
            turn: opened.turn,
            engine: Engine::default(),
            door: opened.door,
            signals: opened.signals,
            sandbox_check: opened.sandbox_check,
            claims: Claims::new(now),
            reports: Reports::new(&options.socket, options.reports, now),
            peers: Peers::new(),
            starts: Starts::new(options.clone(), opened.inherited, opened.console, opened.recorder.session()),
            runs: opened.runs,
            screen: opened.screen,
            recorder: opened.recorder,
            tally: Tally::new(now),
            notifier: Notifier::new(options.notify.clone()),
            span_ids: SpanIds::default(),
            callers: Callers::new(IdleEnd::new(options.end_idle, now), decides),
            projects: opened.projects,
            rpc: RpcClients::new(&options.home, &options.socket),
            rules,
            judges: Judges::default(),
            later: LaterAsks::default(),
            tokens: AnswerTokens::default(),
            closing: Closing::No,
            options,
        };
        host.reports.check(&mut host.turn, &mut host.screen);
        host.starts.tidy_old_store();
        if host.starts.lacks_records() {
            host.screen.say("… nothing is kept for undo, because there is no journal");
        }
        greeting.into_iter().for_each(|line| host.screen.say(line));
        host.screen.end_paragraph();
        Ok(host)
    }

    /// Runs until the host was asked to end and everything has ended.
    ///
    /// # Errors
    /// epoll_wait(2) fails.
    pub fn run(mut self) -> Result<(), Notice> {
        let _ = self.screen.flush(self.turn.now);
        loop {
            self.wait(self.timeout())?;
            self.intake();
            self.tick();
            self.perform();
            self.pump();
            self.turn.close_ended();
            if self.reconcile() {
                break;
            }
        }
        self.close();
        Ok(())
    }

    /// The time until something has to happen. Zero if there is something to do, or a spare guard to make.
    fn timeout(&self) -> Option<Duration> {
        if self.has_work() || self.starts.wants_spare(&self.engine, self.turn.now) {
            return Some(Duration::ZERO);
        }
        let closing = match self.closing {
            Closing::No => None,
            Closing::Since(at) => Some(at + limits::SHUTDOWN_MAX),
        };
        let deadlines = [
            self.engine.deadline(),
            self.peers.deadline(),
            self.reports.deadline(),
            self.runs.deadline(),
            self.callers.idle.deadline(),
            self.callers.started.deadline(),
            self.starts.deadline(&self.engine),
            self.door.deadline(),
            self.screen.deadline(),
            self.recorder.deadline(),
            self.rpc.deadline(),
            self.judges.deadline(),
            closer::deadline(),
            closing,
        ];
        let first = deadlines.into_iter().flatten().min()?;
        // Rounded up: a poll that ends just before its time would only come again.
        Some(first.saturating_duration_since(Instant::now()) + Duration::from_micros(999))
    }

    /// Sleeps until something may be ready, and queues its source. Nothing else in the host sleeps.
    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Notice> {
        let events = self.turn.poller.wait(timeout).map_err(|error| {
            Notice::failed(format_args!("waiting for events failed: {}", reason(&error)), "start the host again")
        })?;
        let events: Vec<Ready> = events.collect();
        self.turn.now = Instant::now();
        let is_quiet = events.is_empty() && !self.has_work();
        for event in events {
            self.remember(event);
        }
        if is_quiet && self.starts.wants_spare(&self.engine, self.turn.now) {
            self.starts.prepare_spare(&mut self.turn);
        }
        Ok(())
    }

    /// Returns true if there is something to do without an event.
    fn has_work(&self) -> bool {
        self.rpc.pace.has_work(self.turn.now)
            || self.turn.has_work()
            || self.peers.has_work()
            || self.engine.has_changed()
    }

    /// Remembers an event, and queues its source if it calls for a visit. Room to write alone hardly ever does.
    fn remember(&mut self, event: Ready) {
        let Some(source) = self.turn.source(event.token) else {
            if event.readable {
                self.starts.on_spare_gone(event.token, &mut self.turn);
            }
            return;
        };
        let calls_for_visit = match source {
            Source::Peer(id) => self.peers.remember(id, event),
            Source::Control(job) => self.runs.remember_control(job, event),
            Source::Stream(job, stream) => self.runs.remember_stream(job, stream, event),
            Source::Input(job) => self.runs.remember_input(job, event),
            Source::Judge(job) => self.judges.remember(job, event),
            Source::Lookup(number) => self.rpc.lookups.remember(number, event),
            Source::Screen => {
                self.screen.remember(event);
                false
            }
            Source::Recorder => {
                self.recorder.remember(event);
                event.readable
            }
            Source::Reports => {
                self.reports.remember(event);
                event.readable
            }
            Source::Door | Source::Watch | Source::Signals | Source::Keys => event.readable,
        };
        if calls_for_visit {
            self.turn.queue(event.token);
        }
    }

    /// Visits every ready source once.
    fn intake(&mut self) {
        for _ in 0..self.rpc.pace.begin_turn(self.turn.now) {
            let Some(client) = self.rpc.pace.next_late() else { break };
            self.visit_peer(client);
        }
        for token in self.turn.take_ready() {
            let Some(source) = self.turn.source(token) else { continue };
            let (turn, engine, peers) = (&mut self.turn, &mut self.engine, &mut self.peers);
            match source {
                Source::Door => self.visit_door(token),
                Source::Watch => {
                    self.door.visit_watch(turn, &mut self.screen);
                    self.reports.check(&mut self.turn, &mut self.screen);
                }
                Source::Reports => self.visit_reports(),
                Source::Signals => self.visit_signals(token),
                Source::Screen => {}
                Source::Keys => self.visit_keys(token),
                Source::Recorder => {
                    self.recorder.visit(turn, engine, &mut self.screen);
                    self.screen.viewers.on_reached(self.recorder.reached.drain(..));
                }
                Source::Peer(id) => self.visit_peer(id),
                Source::Control(job) => self.runs.visit_control(job, &mut Context { turn, engine, peers }),
                Source::Input(job) => self.runs.flush_input(job, turn),
                Source::Judge(job) => self.visit_judge(job),
                Source::Lookup(number) => self.rpc.lookups.visit(number, turn),
                Source::Stream(job, stream) => {
                    self.runs.flush_keys(job, turn, peers);
                    self.runs.flush_answer(job, engine);
                    if !self.runs.waits_for_echo(job, stream, turn, engine) {
                        self.runs.visit_stream(job, stream, turn, engine);
                    }
                }
            }
        }
    }

    fn tick(&mut self) {
        for (job, hold) in self.engine.tick(self.turn.now) {
            self.ask_later(job, hold.question, self.tokens.has(job));
        }
        self.peers.tick(&mut self.turn, &mut self.engine);
        self.tick_runs();
        self.tick_keys();
        self.tick_reports();
        self.tick_judges();
        self.reports.notes.tick(self.turn.now, &mut self.screen, &mut self.recorder);
        for destroyed in self.turn.destroyed.drain(..) {
            self.recorder.on_destroyed(destroyed, self.turn.now);
        }
        self.tick_idle();
        self.callers.started.tick(&mut self.screen, self.turn.now);
        let (turn, engine) = (&mut self.turn, &mut self.engine);
        if self.recorder.tick(turn, engine, &mut self.screen) {
            self.runs.jobs().for_each(|job| turn.touch(job));
        }
        self.rpc.tick(turn);
        closer::tick(turn.now);
        self.door.tick(turn, &mut self.screen);
        self.starts.tick(engine, turn);
        self.starts.keep(self.runs.take_free(), turn);
    }

    /// Does what is due for the runs.
    fn tick_runs(&mut self) {
        let all_due = self.runs.all_due(self.turn.now);
        if all_due.is_empty() {
            return;
        }
        self.note_helpers();
        let Self { turn, engine, peers, runs, starts, .. } = self;
        let cx = &mut Context { turn, engine, peers };
        for due in all_due {
            if let Some(job) = runs.tick(due, cx) {
                starts.begin_again(job, runs, cx);
            }
        }
    }

    fn perform(&mut self) {
        while let Some(effect) = self.engine.next_effect() {
            match effect {
                Effect::Start(job) => self.start(job),
                Effect::Order(job, Order::GiveUpTerminal) => {
                    self.runs.give_up_terminal(job, &mut self.turn, &mut self.engine);
                }
                Effect::Order(job, order) => self.runs.order(job, order, self.turn.now),
            }
        }
    }

    /// Gives every reader of every log the news, up to the limit of its room.
    fn pump(&mut self) {
        self.settle_answers();
        let is_closing = self.is_closing();
        let Self { turn, engine, peers, runs, screen, recorder, tally, rpc, .. } = self;
        let mut dirty = turn.take_dirty();
        dirty.append(&mut engine.take_changed());
        let mut roomy = peers.take_roomy();
        dirty.extend(rpc.take_up(&roomy, turn, engine, peers));
        roomy.extend(dirty.iter().filter_map(|&job| runs.peer_of(job)));
        roomy.extend(peers.attached(&dirty));
        for peer in roomy {
            // Reading frees log space, which may unblock other readers.
            dirty.extend(peers.pump(peer, turn, engine));
        }
        rpc.pump(&dirty, runs, &mut Context { turn, engine, peers });
        for &job in &dirty {
            runs.answer_unkillable(job, &mut Context { turn, engine, peers });
            runs.note_left(job, turn.now, engine);
            tally.note(job, engine, runs, turn.now);
            // A caller may just have got its last output, which the record of the end counts.
            runs.peer_of(job).map(|peer| peers.pump(peer, turn, engine));
            recorder.pump(engine, job, turn.now);
        }
        let has_news = !dirty.is_empty();
        if has_news {
            screen.touch_status(turn.now);
        }
        screen.pump(engine, turn.now);
        screen.viewers.pump(is_closing && engine.is_idle(), turn, engine, peers);
        let calls = self.notifier.calls(&dirty, &self.engine, &self.runs, &self.later);
        self.notifier.call_human(calls, &mut self.tokens, &mut self.later, &mut self.screen, self.turn.now);
        self.start_again();
        if has_news {
            self.tokens.end_answered(&self.engine, &self.later, self.turn.now);
            self.note_prompts();
        }
        self.refresh_status();
        if !self.screen.flush(self.turn.now) {
            self.on_console_gone();
        }
        let Self { turn, engine, peers, runs, screen, recorder, .. } = self;
        if recorder.flush(engine, screen, turn.now) {
            dirty.extend(runs.jobs());
        }
        // A stream that is wanted again is read in the next intake, before any deadline is judged: what is still in a
        // pipe after its command's end is not silence.
        for job in dirty {
            runs.revisit(job, turn, engine);
            runs.reconcile(job, &mut Context { turn, engine, peers }, screen);
        }
        if peers.take_has_left() {
            self.door.on_room(turn);
        }
    }

    /// Draws the status line when that is due.
    fn refresh_status(&mut self) {
        let now = self.turn.now;
        if !self.screen.is_status_due(now) {
            return;
        }
        let mut facts = StatusFacts {
            now: Some(now),
            agents: self.tally.agents(),
            silent: self.callers.started.silent().map(|name| agent_name(name, 1, "")).collect(),
            commands: self.engine.count(),
            failed: self.tally.failed_today(),
            shown: self.interruptible().map(|job| job.0),
            is_ending: self.is_closing(),
            socket: self.door.path().display().to_string(),
            ..StatusFacts::default()
        };
        let keepers = Keeper::all(&self.runs, &self.reports);
        overview::add_commands(&mut facts, keepers, &self.engine, &self.screen);
        self.screen.draw_status(facts, now);
    }

    /// The commands, to be listed or acted on.
    fn commands(&mut self) -> Commands<'_> {
        self.rpc_service().commands
    }

    fn rpc_service(&mut self) -> RpcService<'_> {
        self.note_helpers();
        let Self {
            turn,
            engine,
            peers,
            screen,
            runs,
            reports,
            recorder,
            tally,
            callers,
            options,
            rpc,
            projects,
            rules,
            later,
            ..
        } = self;
        let (started, grace) = (&callers.started, options.grace);
        let commands = Commands { turn, engine, peers, screen, runs, reports, recorder, tally, started, grace };
        RpcService { rpc, projects, rules, later, commands }
    }

    /// Tells the runs which of the host's children belong to none of them.
    fn note_helpers(&mut self) {
        let helpers =
            self.starts.pids().chain(self.recorder.pid()).chain(self.screen.helpers()).chain(self.judges.pids());
        let helpers = helpers.chain(self.rpc.lookups.pids());
        self.runs.note_helpers(helpers.chain(self.notifier.pids()).chain(closer::pids()).chain(looker::pids()));
    }

    /// Returns true if the host is ending and everything is over, or took too long.
    fn reconcile(&mut self) -> bool {
        let Closing::Since(at) = self.closing else { return false };
        let is_done = self.engine.is_idle() && !self.runs.are_pursued() && self.peers.have_nothing_to_take();
        is_done || self.turn.now >= at + limits::SHUTDOWN_MAX
    }

    fn is_closing(&self) -> bool {
        self.closing != Closing::No
    }
}
