//! The host: one process, one thread, one loop that owns everything.
//!
//! ```text
//! wait ─▶ intake ─▶ tick ─▶ effects ─▶ pump ─▶ reconcile ─┐
//!  ▲   descriptors   deadlines  starts,   logs →   drop what is over,    │
//!  │   → facts                  orders    readers  may it sleep?         │
//!  └──────────────────────────────────────────────────────┘
//! ```
//!
//! Invariants: `wait` is the only call that sleeps; readiness is remembered and cleared by `WouldBlock` alone; every
//! source is read at most a budget's worth, then the next one has its turn; a run waits for nothing but its own
//! terminal, guard and caller. Every reason to wake up is a `Source`.

mod broken_pipe;
mod door;
mod intake;
mod json_command;
mod opening;
mod orders;
mod orphaned;
mod peer;
mod recorder_link;
mod recorder_process;
mod roster;
mod run;
mod sandbox_check;
mod screen;
mod shutdown;
mod spares;
mod start;
mod start_errors;
mod stream_plan;
mod terminal_relay;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rexec_sh::protocol::choice::{Sanitize, Tty};
use rexec_sh::protocol::exit_code::OWN_FAILURE;
use rexec_sh::protocol::notice::Notice;

use crate::core::engine::{Effect, Engine, JobId};
use crate::core::entry::{Reason, Stream};
use crate::front::budget::Budget;
use crate::io::poller::{Poller, Ready, Token};
use crate::limits;
use crate::sink::console::{Console, View};
use crate::sink::feed::Feed;
use crate::sys::cgroup::Groups;
use crate::sys::orphans::Kin;
use crate::sys::pty;
use crate::sys::signal::Signals;
use crate::text::reason::reason;

use door::{Arrival, Door};
use peer::Peer;
use recorder_process::RecorderProcess;
use run::ActiveRun;
use sandbox_check::SandboxCheck;
use screen::Screen;
use spares::Spares;

/// What a caller is told that cannot be served now.
const BUSY: Notice = Notice::fixed(
    OWN_FAILURE,
    "the host is busy: too many commands or too few descriptors",
    "run the command again in a moment",
);

/// What a caller is told whose descriptors did not come although it sent some.
const RELAYED: Notice = Notice::fixed(
    OWN_FAILURE,
    "this connection comes through a relay: nothing is run for it",
    "run rexec-host on the machine where the command is to run",
);

/// What a caller is told that asks for a command while the host ends.
const ENDING: Notice =
    Notice::fixed(OWN_FAILURE, "the host is ending; nothing was run", "start rexec-host, then run the command again");

/// What the command line chose.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The socket's path.
    pub socket: PathBuf,
    /// The journal's directory.
    pub home: PathBuf,
    /// The terminals' size, if it is not the console's.
    pub pty_size: Option<(u16, u16)>,
    /// Which of a command's descriptors are its terminal, for callers that do not say themselves.
    pub tty: Tty,
    /// Runtimes are asked not to hold back what they write to pipes, for callers that do not say themselves.
    pub live: bool,
    /// From TERM to KILL when a person ends a command.
    pub grace: Duration,
    /// What is done to output for callers that do not say themselves.
    pub sanitize: Sanitize,
    /// What of the commands' output reaches the human's terminal.
    pub view: View,
    /// Secrets are masked for callers too, not only in the journal.
    pub redact_agents: bool,
    /// What is kept of the beginning and of the end of a command's output in files of its own, bytes each.
    pub raw_cap: u64,
    /// Commands of sandboxed callers are run, outside of their sandboxes.
    pub allow_sandboxed: bool,
    /// A host that cannot see Landlock compares everything else.
    pub unseen_landlock: bool,
    /// Who asks for anything must send a descriptor along, which no relay of bytes can.
    pub require_descriptor: bool,
}

/// A connection's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PeerId(u64);

/// Every reason to wake up, but for time.
#[derive(Debug, Clone, Copy)]
enum Source {
    Door,
    Watch,
    Signals,
    Screen,
    Keys,
    Recorder,
    Peer(PeerId),
    Control(JobId),
    Stream(JobId, Stream),
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Since(Instant),
}

/// Everything.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    own: json_command::Inherited,
    sandbox_check: SandboxCheck,
    now: Instant,
    poller: Poller,
    sources: HashMap<Token, Source>,
    /// Sources to visit.
    ready: BTreeSet<Token>,
    /// Jobs whose readers have room again, or that may be over.
    dirty: BTreeSet<JobId>,
    /// Peers that have room again; their jobs may be long forgotten.
    roomy: BTreeSet<PeerId>,
    engine: Engine,
    door: Door,
    signals: Signals,
    screen: Screen,
    console: Console,
    scribe: RecorderProcess,
    /// The recorder has done something, so that there is room for more.
    has_recorder_room: bool,
    journal: Feed,
    /// Where commands belong whose callers are elsewhere.
    groups: Groups,
    /// Callers of whom was told that not all of their limits hold.
    told_of_groups: BTreeSet<String>,
    /// What all answers in JSON hold.
    outputs: Budget,
    /// What all requests hold that are not with a guard yet.
    requests: Budget,
    peers: BTreeMap<PeerId, Peer>,
    last_peer: u64,
    /// Callers let in at once: as many as there are descriptors for.
    peers_max: usize,
    /// Peers that have not asked for a command yet, by their next deadline.
    greeting: BTreeSet<(Instant, PeerId)>,
    /// Peers that have bytes left to take of a command that has ended, or of the host's last word to them.
    leaving: BTreeSet<PeerId>,
    /// Peers for whom a redrawn line is held back until it stands still.
    settling: BTreeSet<PeerId>,
    runs: BTreeMap<JobId, ActiveRun>,
    /// Ended jobs that left processes running, oldest first.
    stragglers: VecDeque<JobId>,
    /// Left-over processes that a person wants ended, by when they are killed.
    endings: BTreeSet<(Instant, JobId)>,
    /// Ended or not, by when those who asked for a command's end are answered.
    answers: BTreeSet<(Instant, JobId)>,
    /// Jobs whose guards owe an answer, or are gone and have left something.
    owing: BTreeSet<JobId>,
    /// The processes that were there before the host.
    kin: Kin,
    /// Commands that run, by when their callers' patience ends.
    timeouts: BTreeSet<(Instant, JobId)>,
    spares: Spares,
    size: pty::Size,
    start_retry: Option<Instant>,
    closing: Closing,
    /// The one buffer that everything is read into.
    buffer: Box<[u8]>,
}

impl Host {
    /// Runs until it is asked to end and everything has ended.
    ///
    /// # Errors
    /// Only when the poll itself fails.
    pub fn run(mut self) -> Result<(), Notice> {
        let _ = self.screen.flush();
        loop {
            let timeout = self.timeout();
            self.wait(timeout)?;
            self.intake();
            self.tick();
            self.perform();
            self.pump();
            if self.reconcile() {
                break;
            }
        }
        self.close();
        Ok(())
    }

    /// How long nothing has to happen. With nothing at all to do, a spare guard is made instead of sleeping.
    fn timeout(&self) -> Option<Duration> {
        if self.has_work() || self.wants_spare() {
            return Some(Duration::ZERO);
        }
        let closing = match self.closing {
            Closing::No => None,
            Closing::Since(at) => Some(at + limits::SHUTDOWN_MAX),
        };
        let deadlines = [
            self.engine.deadline(),
            self.peers_deadline(),
            self.endings.first().map(|&(at, _)| at),
            self.answers.first().map(|&(at, _)| at),
            self.owing_deadline(),
            self.timeouts.first().map(|&(at, _)| at),
            self.console.deadline(),
            self.journal.deadline(),
            self.journal.send_at(),
            self.scribe.retry_at,
            self.door.retry_at,
            self.door.restore_at,
            self.start_retry,
            self.spares.replace_at().filter(|_| self.engine.is_idle() && !self.is_closing()),
            closing,
        ];
        let first = deadlines.into_iter().flatten().min()?;
        // Rounded up: a poll that ends just before its time would only come again.
        Some(first.saturating_duration_since(Instant::now()) + Duration::from_micros(999))
    }

    fn wait(&mut self, timeout: Option<Duration>) -> Result<(), Notice> {
        let events = self.poller.wait(timeout).map_err(|error| {
            Notice::failed(format_args!("waiting for events failed: {}", reason(&error)), "start the host again")
        })?;
        let events: Vec<Ready> = events.collect();
        self.now = Instant::now();
        let is_quiet = events.is_empty() && !self.has_work();
        for event in events {
            self.remember(event);
        }
        if is_quiet && self.wants_spare() {
            self.prepare_spare();
        }
        Ok(())
    }

    /// Whether there is something to do without waiting for an event.
    fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.dirty.is_empty() || !self.roomy.is_empty() || self.engine.has_changed()
    }

    /// A spare guard is made while nothing runs, where it disturbs nobody, or when there is none.
    fn wants_spare(&self) -> bool {
        !self.is_closing() && self.spares.wants_another(self.now) && (self.engine.is_idle() || self.spares.is_empty())
    }

    /// Without terminals or processes to spare, commands make their own guards when they come.
    fn prepare_spare(&mut self) {
        if self.spares.prepare(&mut self.poller).is_err() {
            self.spares.pause(self.now);
        }
    }

    /// Remembers what an event says; whether it is worth a visit. Room to write alone hardly ever is.
    fn remember(&mut self, event: Ready) {
        let Some(source) = self.sources.get(&event.token) else {
            if event.readable {
                self.spares.forget(&mut self.poller, event.token, self.now);
            }
            return;
        };
        let has_work = match *source {
            Source::Peer(id) => self.remember_peer(id, event),
            Source::Control(job) => self.remember_control(job, event),
            Source::Stream(job, stream) => self.remember_stream(job, stream, event),
            Source::Screen => self.screen.remember(event),
            Source::Recorder => {
                self.scribe.port().into_iter().for_each(|port| port.remember(event));
                event.readable
            }
            Source::Door | Source::Watch | Source::Signals | Source::Keys => event.readable,
        };
        if has_work {
            self.ready.insert(event.token);
        }
    }

    /// The first time everything is terminated, the second time it is killed.
    fn ask_to_end(&mut self) {
        let grace = self.options.grace.min(limits::SHUTDOWN_GRACE);
        let is_first = self.closing == Closing::No;
        if is_first {
            self.closing = Closing::Since(self.now);
            self.console
                .say("… ending: every command is stopped; once more kills them at once", self.screen.out.buffer());
        }
        self.engine.stop_all(Reason::Shutdown, grace, self.now);
        self.hurry_endings(if is_first { grace } else { Duration::ZERO });
        if is_first {
            self.let_in_the_last();
        }
    }

    /// The person's terminal is gone, or hung up. A window that is closed is noticed in up to three ways, and never is
    /// it asked for twice. Who started the host to survive that (nohup(1)) has said so.
    fn on_console_gone(&mut self) {
        if !self.signals.survives_hangup() && self.closing == Closing::No {
            self.ask_to_end();
        }
    }

    /// Callers who have connected already are told that the host ends; others find none.
    fn let_in_the_last(&mut self) {
        self.sources.remove(&self.door.token);
        self.door.hide();
        while let Arrival::Peer(fd) = self.door.accept(self.now) {
            if let Some(peer) = self.admit(fd) {
                self.visit_peer(peer);
            }
        }
        self.door.close(&mut self.poller);
        self.dismiss();
    }

    fn is_closing(&self) -> bool {
        self.closing != Closing::No
    }

    fn tick(&mut self) {
        self.engine.tick(self.now);
        self.tick_peers();
        self.tick_endings();
        self.tick_owing();
        self.tick_recorder();
        self.tick_timeouts();
        if self.door.retry_at.is_some_and(|at| at <= self.now) {
            self.door.retry_at = None;
            self.ready.insert(self.door.token);
        }
        if self.door.restore_at.is_some_and(|at| at <= self.now) {
            self.check_socket();
        }
        if self.start_retry.is_some_and(|at| at <= self.now) {
            self.start_retry = None;
            self.engine.start_queued();
        }
    }

    /// Ends commands whose callers gave them no more time.
    fn tick_timeouts(&mut self) {
        while let Some(&(at, job)) = self.timeouts.first().filter(|(at, _)| *at <= self.now) {
            self.timeouts.remove(&(at, job));
            if self.engine.job(job).is_some_and(|known| !known.is_closed() && !known.is_stopping()) {
                self.engine.stop(job, Reason::TimedOut, limits::GRACE_CALLER_GONE, self.now);
            }
        }
    }

    fn perform(&mut self) {
        while let Some(effect) = self.engine.next_effect() {
            match effect {
                Effect::Start(job) => self.start(job),
                Effect::Order(job, order) => self.order(job, order),
            }
        }
    }

    /// Every reader of every log that has something gets it, as far as it has room.
    fn pump(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.append(&mut self.engine.take_changed());
        let mut peers = std::mem::take(&mut self.roomy);
        peers.extend(dirty.iter().filter_map(|&job| self.peer_of(job)));
        for peer in peers {
            // What a reader takes can make room in its job's log.
            dirty.extend(self.pump_peer(peer));
        }
        for &job in &dirty {
            self.note_left(job);
            self.journal.pump(&mut self.engine, job, self.scribe.out.buffer(), self.now);
        }
        self.pump_console();
        if !self.screen.flush() {
            self.on_console_gone();
        }
        if self.flush_recorder() {
            dirty.extend(self.runs.keys());
        }
        // Whoever has room again is read in the next intake, before any deadline is judged: what is still in a pipe
        // after its command's end is not silence.
        for job in dirty {
            self.revisit(job);
            self.reconcile_run(job);
        }
    }

    /// Whether everything is over.
    fn reconcile(&mut self) -> bool {
        let Closing::Since(at) = self.closing else { return false };
        let is_pursued = self.runs.values().any(|run| run.ending.is_pursued());
        let is_done = self.engine.is_idle() && !is_pursued && self.peers.values().all(Peer::has_nothing_to_take);
        is_done || self.now >= at + limits::SHUTDOWN_MAX
    }

    fn pump_console(&mut self) {
        let (out, most) = self.screen.out.room(limits::CONSOLE_HIGH_BYTES);
        self.console.pump(&mut self.engine, out, most, self.now);
    }
}
