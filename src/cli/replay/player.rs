//! Plays runs on standard output.
//!
//! Invariants: the console gets the time of the recordings; a run's changes to the terminal are undone when its replay
//! ends, also by ^C; memory is bounded by the recordings of the runs under way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rexec_sh::protocol::process::{Exit, Signal};
use time::{OffsetDateTime, PrimitiveDateTime};

use super::script::{Scene, Show};
use crate::cli::output::drawn;
use crate::cli::when::Clock;
use crate::core::card::{Caller, Card, CommandLine, Place, Role};
use crate::core::end::{Failure, Refusal, RefusalCause, StartError, Stopper, Subject};
use crate::core::engine::{Engine, JobId};
use crate::core::entry::{LeftProcess, Stream, Streams};
use crate::core::log::Lag;
use crate::history::{self, milliseconds};
use crate::host::{Color, new_console};
use crate::journal::record::{RunEnd, Straggler};
use crate::journal::recording::{EventKind, RecordedEvent};
use crate::limits;
use crate::sink::console::{Console, Heading, View};
use crate::sys::pty;
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::terminal::Keys;
use crate::text::place::place;

/// The speed of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReplayPace {
    pub(super) speed: f64,
    /// The longest pause, in the recording's time.
    pub(super) max_idle: Duration,
}

/// The next step of a run, in this order at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayStep {
    Begin,
    Event,
    End,
}

#[derive(Debug)]
struct Playing {
    /// The time of its start.
    since: Duration,
    events: VecDeque<RecordedEvent>,
    end: Option<RunEnd>,
    took: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Player {
    clock: Clock,
    pace: ReplayPace,
    /// The window of the terminal that it plays on, if it is one.
    window: Option<pty::Size>,
    signals: HostSignals,
    /// Hides keys, and keeps them from reaching the shell afterwards.
    keys: Option<Keys>,
    engine: Engine,
    console: Console,
    playing: BTreeMap<JobId, Playing>,
    /// The next steps: the time, the step, and the run.
    next: BinaryHeap<Reverse<(Duration, ReplayStep, u64)>>,
    base: Instant,
    at: Duration,
    out: Vec<u8>,
    is_over: bool,
}

impl Player {
    /// `keys` belong to the terminal that it plays on, if a person may watch for long.
    pub(super) fn new(clock: Clock, pace: ReplayPace, is_terminal: bool, keys: Option<Keys>) -> io::Result<Player> {
        let window = pty::size(&io::stdout()).filter(|_| is_terminal);
        let mut player = Player {
            clock,
            pace,
            window,
            signals: HostSignals::take()?,
            keys,
            engine: Engine::default(),
            console: new_console(is_terminal, View::Safe, Color::Auto, true),
            playing: BTreeMap::new(),
            next: BinaryHeap::new(),
            base: Instant::now(),
            at: Duration::ZERO,
            out: Vec::new(),
            is_over: false,
        };
        player.console.resize(window.map_or(0, |size| size.cols));
        Ok(player)
    }

    /// Plays all output of one run. `named` is the run on a command line.
    pub(super) fn play_one(&mut self, scene: Scene, named: &str) -> io::Result<()> {
        self.say_what_differs(&scene, named);
        self.engine.continue_after(scene.run.start.card.seq.saturating_sub(1));
        let job = JobId(scene.run.start.card.seq);
        self.begin(scene);
        self.console.follow(Some(job));
        self.play(|_, _| Ok(()))
    }

    /// Draws one run as a console shows it: with the banner and the end, and the bytes of a flood counted.
    pub(super) fn draw_one(&mut self, scene: Scene) -> io::Result<()> {
        self.engine.continue_after(scene.run.start.card.seq.saturating_sub(1));
        self.begin(scene);
        self.play(|_, _| Ok(()))
    }

    /// Plays the runs of these sessions.
    pub(super) fn play_all(&mut self, shows: &[Show]) -> io::Result<()> {
        for Show { session, runs } in shows {
            self.engine = Engine::default();
            let began = runs.first().map_or(0, |(at, _)| *at);
            let since = self.at;
            for (at, seq) in runs {
                let offset = Duration::from_millis(u64::try_from(at - began).unwrap_or(0));
                self.next.push(Reverse((since + offset, ReplayStep::Begin, *seq)));
            }
            self.play(|player, seq| {
                if let Some(run) = history::find(session, seq)? {
                    let scene = Scene::of(run)?;
                    player.engine.continue_after(seq.saturating_sub(1));
                    player.begin(scene);
                }
                Ok(())
            })?;
            if self.is_over {
                break;
            }
        }
        Ok(())
    }

    /// Prints the differences between this terminal and the recorded one that matter.
    fn say_what_differs(&mut self, scene: &Scene, named: &str) {
        let Some(here) = self.window else { return };
        if scene.is_full_screen() {
            let seq = scene.run.start.card.seq;
            let line = format!("… #{seq} drew on the whole screen, which a replay does not show. To see that:");
            self.console.say(line, &mut self.out);
            let line = format!("  rexec export {named} --cast -o {seq}.cast && asciinema play {seq}.cast");
            self.console.say(line, &mut self.out);
        } else if let Some((rows, cols)) = scene.window().filter(|(_, cols)| here.cols < *cols) {
            let line = format!(
                "… recorded at {cols}x{rows}, and this terminal has {}x{}: rows may break elsewhere",
                here.cols, here.rows
            );
            self.console.say(line, &mut self.out);
        }
    }

    fn now(&self) -> Instant {
        self.base + self.at
    }

    /// Lets the console show everything that is due.
    fn pump(&mut self) {
        let now = self.now();
        self.console.pump(&mut self.engine, &mut self.out, usize::MAX, now);
    }

    fn begin(&mut self, mut scene: Scene) {
        let now = self.now();
        let Some(job) = self.engine.submit() else { return };
        self.engine.on_started(job, Duration::ZERO, Streams::of(&[Stream::Tty]), now);
        let heading = heading(&scene, job, self.clock, now);
        if let Some(cursor) = self.engine.attach(job, Lag::Skip) {
            self.console.begin(cursor, heading);
        }
        let (took, events) = (scene.took(), VecDeque::from(scene.events()));
        let playing = Playing { since: self.at, events, end: scene.run.end, took };
        self.playing.insert(job, playing);
        self.schedule(job);
    }

    /// Schedules the next step of this run.
    fn schedule(&mut self, job: JobId) {
        let Some(playing) = self.playing.get(&job) else { return };
        let (at, step) = match (playing.events.front(), playing.took) {
            (Some(event), _) => (event.at, ReplayStep::Event),
            (None, Some(took)) => (took, ReplayStep::End),
            (None, None) => return,
        };
        self.next.push(Reverse(((playing.since + at).max(self.at), step, job.0)));
    }

    /// Plays until nothing is left. `begin` starts the run of a number.
    fn play(&mut self, mut begin: impl FnMut(&mut Self, u64) -> io::Result<()>) -> io::Result<()> {
        let played = self.play_steps(&mut begin);
        self.playing.clear();
        self.next.clear();
        if self.is_over {
            self.console.leave(&mut self.out);
        }
        played.and(self.show())
    }

    fn play_steps(&mut self, begin: &mut impl FnMut(&mut Self, u64) -> io::Result<()>) -> io::Result<()> {
        loop {
            self.pump();
            self.show()?;
            let step = self.next.peek().map(|Reverse((at, ..))| *at);
            let console = self.console.deadline().map(|at| at.saturating_duration_since(self.base));
            let Some(at) = [step, console].into_iter().flatten().min() else { return Ok(()) };
            if !self.wait_until(at) {
                return Ok(());
            }
            while let Some(Reverse((_, step, seq))) = self.next.pop_if_due(self.at) {
                match step {
                    ReplayStep::Begin => begin(self, seq)?,
                    ReplayStep::Event => self.event(JobId(seq)),
                    ReplayStep::End => self.end(JobId(seq)),
                }
            }
            while self.engine.next_effect().is_some() {}
        }
    }

    /// Waits until this time of the recording. Returns false if the human has had enough.
    fn wait_until(&mut self, at: Duration) -> bool {
        let pause = at.saturating_sub(self.at).min(self.pace.max_idle).div_f64(self.pace.speed);
        let end = Instant::now() + pause;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.signals.wait(left) {
                None if end <= Instant::now() => break,
                Some(HostSignal::Resize | HostSignal::Continued) => {
                    self.keys.iter().for_each(Keys::retake);
                    self.window = pty::size(&io::stdout()).filter(|_| self.window.is_some());
                    self.console.resize(self.window.map_or(0, |size| size.cols));
                }
                Some(HostSignal::End | HostSignal::HangUp) => {
                    self.is_over = true;
                    return false;
                }
                None | Some(_) => {}
            }
        }
        self.at = self.at.max(at);
        true
    }

    fn event(&mut self, job: JobId) {
        let now = self.now();
        let Some(playing) = self.playing.get_mut(&job) else { return };
        let Some(event) = playing.events.pop_front() else { return };
        match event.kind {
            EventKind::Output => {
                self.engine.on_output(job, Stream::Tty, event.text.into_bytes().into(), now);
                self.pump();
            }
            EventKind::Remark => self.console.say(format_args!("… {}", event.text), &mut self.out),
            EventKind::Size | EventKind::Input => {}
        }
        self.schedule(job);
    }

    fn end(&mut self, job: JobId) {
        let now = self.now();
        let Some(end) = self.playing.remove(&job).and_then(|playing| playing.end) else { return };
        self.end_job(job, &end, now);
        if !end.left.is_empty() {
            self.engine.on_left(job, end.left.into_iter().map(left_process).collect());
        }
        self.engine.on_gone(job);
    }

    fn end_job(&mut self, job: JobId, end: &RunEnd, now: Instant) {
        match end.error.as_deref().and_then(Failure::of_word) {
            Some(Failure::NotFound | Failure::NotStarted) => {
                let problem = "it could not be started".to_owned();
                return self.engine.on_start_failed(job, StartError { code: end.exit, problem, hint: String::new() });
            }
            Some(Failure::Refused) => return self.engine.refuse(job, refusal(end)),
            Some(Failure::Lost) => return self.engine.on_guard_gone(job, now),
            Some(Failure::TimedOut) => self.engine.stop(job, Stopper::TimeLimit, limits::GRACE, now),
            Some(Failure::Stopped) => {
                let by = end.by.as_deref().and_then(Stopper::of_word);
                self.engine.stop(job, by.unwrap_or(Stopper::Console), limits::GRACE, now);
            }
            None => {}
        }
        let exit = end.signal.map_or(Exit::Code(end.exit), |signal| Exit::Signal(Signal::new(signal)));
        self.engine.on_exit(job, exit, now);
        self.engine.on_hangup(job, Stream::Tty);
        self.engine.on_guard_gone(job, now);
    }

    fn show(&mut self) -> io::Result<()> {
        let mut out = drawn();
        out.write_all(&self.out)?;
        self.out.clear();
        out.flush()
    }
}

/// Takes elements that are due.
trait Due<T> {
    fn pop_if_due(&mut self, now: Duration) -> Option<T>;
}

impl Due<Reverse<(Duration, ReplayStep, u64)>> for BinaryHeap<Reverse<(Duration, ReplayStep, u64)>> {
    fn pop_if_due(&mut self, now: Duration) -> Option<Reverse<(Duration, ReplayStep, u64)>> {
        let is_due = self.peek().is_some_and(|Reverse((at, ..))| *at <= now);
        if is_due { self.pop() } else { None }
    }
}

/// Why a command did not run, as far as its record says.
fn refusal(end: &RunEnd) -> Refusal {
    let gate = end.gate.clone().unwrap_or_default();
    let cause = match gate.by.as_str() {
        RefusalCause::AWAY => RefusalCause::Away,
        "timeout" => RefusalCause::Unanswered(Duration::from_millis(gate.after_ms.unwrap_or(0))),
        "rule" => RefusalCause::Denied,
        _ => RefusalCause::Person(None),
    };
    Refusal { subject: Subject { leaf: gate.leaf, rule: gate.rule, why: None }, cause }
}

fn left_process(left: Straggler) -> LeftProcess {
    LeftProcess { pid: left.pid, program: left.comm, ports: left.ports }
}

fn heading(scene: &Scene, job: JobId, clock: Clock, now: Instant) -> Heading {
    let start = &scene.run.start.card;
    let local = milliseconds(&start.time).and_then(|at| clock.local(at)).unwrap_or_else(|| {
        let epoch = OffsetDateTime::UNIX_EPOCH;
        PrimitiveDateTime::new(epoch.date(), epoch.time())
    });
    // The depth of the run's directory in its project is not recorded; the project may still exist.
    let is_top = |dir: &Path| dir.join(".git").exists();
    let depth = Path::new(&start.dir).ancestors().position(is_top);
    let card = Card {
        run: job.0,
        time: start.time.clone(),
        at: now,
        caller: Caller {
            whoami: start.whoami.clone(),
            role: Role::of_word(&start.role),
            number: start.session_number,
            ..Caller::default()
        },
        place: Place {
            dir: start.dir.clone(),
            name: place(&start.dir, depth, &std::env::var("HOME").unwrap_or_default()),
        },
        command: CommandLine {
            text: start.command.clone(),
            shell: start.shell.clone(),
            is_unwrapped: start.unwrapped,
            is_probe: start.probe,
            why: start.why.clone(),
            service: start.name.clone(),
            ..CommandLine::default()
        },
        sandbox: start.sandbox.clone(),
    };
    Heading { card: Rc::new(card), local }
}
