//! One reported run.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{BEGINNING_BYTES_MAX, Report, ReportRecord, ShimPlace};
use rexec_sh::protocol::wire::CallerStream;

use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::guard::paused_tree::PausedTree;
use crate::host::run::Description;
use crate::host::turn::PeerId;
use crate::limits;
use crate::sys::namespace::{self, InnerProcess, Whereabouts};
use crate::sys::tree::Process;

/// A run that a shim reports.
#[derive(Debug)]
pub(super) struct ReportedRun {
    /// Its job, once its beginning is whole.
    pub(super) job: Option<JobId>,
    pub(super) description: Option<Description>,
    /// What is known of its sandbox, in words.
    pub(super) sandbox: String,
    pub(super) since: Instant,
    /// What has come of its beginning.
    pub(super) beginning: Vec<u8>,
    /// The number of the next record.
    next: u32,
    pub(super) place: ShimPlace,
    /// The shim as seen from here, and when to look at it again.
    shim: Option<Process>,
    look_at: Instant,
    pause: Duration,
    /// When the shim was not there for the first time.
    missing_since: Option<Instant>,
    /// Bytes that came in the second that began then.
    second: (Instant, usize),
    /// Bytes that were not taken since the last record.
    untaken: u64,
    /// The newest output behind those, for which there was no room. The end of a flood is what people want to see.
    held: Vec<(Stream, Vec<u8>)>,
    /// When these are told of although no record has followed.
    tell_at: Option<Instant>,
    pub(super) waiting: Vec<PeerId>,
    pub(super) answer_at: Option<Instant>,
    pub(super) has_terminated: bool,
    /// How often it was killed.
    pub(super) kills: u32,
    /// What a person's pause has stopped.
    pub(super) paused: Option<PausedTree>,
}

/// What a record means for a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReportedFact {
    /// Nothing yet.
    None,
    /// The record cannot be one of this run.
    Forged,
    /// The beginning is whole.
    Begun,
    /// It wrote this, after what was not taken before.
    Output(Stream, Box<[u8]>),
    /// Too much comes, so this is only counted.
    Flood,
    /// It has ended, after what was not taken before.
    Ended(Exit),
}

/// What a look at a run's shim finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing speaks against it.
    Well,
    /// The shim is gone, and nobody will tell of its end.
    Lost,
}

impl ReportedRun {
    /// A run of which nothing is known.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            job: None,
            description: None,
            sandbox: String::new(),
            since: now,
            beginning: Vec::new(),
            next: 0,
            place: ShimPlace::default(),
            shim: None,
            look_at: now + limits::REPORT_PATIENCE,
            pause: limits::REPORT_LOOK,
            missing_since: None,
            second: (now, 0),
            untaken: 0,
            held: Vec::new(),
            tell_at: None,
            waiting: Vec::new(),
            answer_at: None,
            has_terminated: false,
            kills: 0,
            paused: None,
        }
    }

    /// When it has to be looked at.
    pub(super) fn deadline(&self) -> Instant {
        self.answer_at.into_iter().chain(self.tell_at).fold(self.look_at, Instant::min)
    }

    /// Whether output was held back, and no more has come for a while.
    pub(super) fn has_rested(&self, now: Instant) -> bool {
        self.tell_at.is_some_and(|at| at <= now)
    }

    /// Its beginning was understood.
    pub(super) fn begin(&mut self, job: JobId, description: Description, sandbox: String) {
        (self.job, self.description, self.sandbox) = (Some(job), Some(description), sandbox);
        self.beginning = Vec::new();
        self.look_at = self.since + self.pause;
    }

    /// Takes a record with its key.
    pub(super) fn take(&mut self, record: &ReportRecord<'_>, now: Instant) -> ReportedFact {
        // A gap means that another process has read the FIFO.
        if record.number < self.next {
            return ReportedFact::Forged;
        }
        let has_gap = record.number > self.next;
        self.next = record.number.saturating_add(1);
        match (record.report, self.job) {
            (Report::Begin { piece, is_last }, None) if !has_gap => {
                if self.beginning.len() + piece.len() > BEGINNING_BYTES_MAX {
                    return ReportedFact::Forged;
                }
                self.beginning.extend_from_slice(piece);
                if is_last { ReportedFact::Begun } else { ReportedFact::None }
            }
            (Report::Output { stream, bytes }, Some(_)) => self.on_output(stream, bytes, now),
            (Report::Unreported { stream, bytes }, Some(_)) => {
                self.leave_out(known(stream), bytes.min(limits::REPORT_UNREPORTED_MAX));
                self.wait_on(now);
                ReportedFact::None
            }
            (Report::End(exit), Some(_)) => ReportedFact::Ended(exit),
            _ => ReportedFact::Forged,
        }
    }

    fn on_output(&mut self, stream: CallerStream, bytes: &[u8], now: Instant) -> ReportedFact {
        if now >= self.second.0 + Duration::from_secs(1) {
            self.second = (now, 0);
        }
        self.second.1 += bytes.len();
        let stream = known(stream);
        if self.second.1 > limits::REPORT_RUN_BYTES_A_SECOND {
            self.hold_back(stream, bytes, now);
            return ReportedFact::Flood;
        }
        ReportedFact::Output(stream, bytes.into())
    }

    /// Keeps output for which there is no room: the newest part of each stream. The rest is counted.
    pub(super) fn hold_back(&mut self, stream: Stream, bytes: &[u8], now: Instant) {
        self.wait_on(now);
        let before = self.held.iter().position(|(held, _)| *held == stream);
        let (_, mut held) = before.map_or((stream, Vec::new()), |at| self.held.remove(at));
        held.extend_from_slice(bytes);
        if held.len() >= 2 * limits::REPORT_HELD_BYTES {
            let oldest = held.len() - limits::REPORT_HELD_BYTES;
            held.drain(..oldest);
            self.untaken = self.untaken.saturating_add(oldest as u64);
        }
        self.held.push((stream, held));
    }

    /// Puts off what is told of output that was held back.
    pub(super) fn wait_on(&mut self, now: Instant) {
        self.tell_at = Some(now + limits::REPORT_REST);
    }

    /// Counts what was held back of this stream, and this many bytes behind it.
    fn leave_out(&mut self, stream: Stream, bytes: u64) {
        let is_it = |(held, _): &(Stream, Vec<u8>)| *held == stream;
        let before = self.held.iter().position(is_it).map_or(0, |at| self.held.remove(at).1.len() as u64);
        self.untaken = self.untaken.saturating_add(before).saturating_add(bytes);
    }

    /// How many bytes were not taken since the last call, and the output behind them.
    pub(super) fn take_untaken(&mut self) -> (u64, Vec<(Stream, Vec<u8>)>) {
        self.tell_at = None;
        (std::mem::take(&mut self.untaken), std::mem::take(&mut self.held))
    }

    /// Looks at its shim if that is due. `open` is the FIFO, which the shim has open. `is_drained` says that all reports
    /// were read.
    pub(super) fn look(&mut self, open: Option<(u64, u64)>, is_drained: bool, now: Instant) -> Sight {
        if now < self.look_at {
            return Sight::Well;
        }
        if self.job.is_none() {
            return Sight::Lost;
        }
        self.pause = (self.pause * 2).min(limits::REPORT_LOOK_MAX);
        self.look_at = now + self.pause;
        let is_lost = match self.find(open) {
            Whereabouts::Here(_) => false,
            Whereabouts::Gone => {
                self.look_at = now + limits::REPORT_KILL_PAUSE;
                // What it reported last may still be in the FIFO.
                match self.missing_since {
                    None => {
                        self.missing_since = Some(now);
                        false
                    }
                    Some(since) => is_drained || now >= since + limits::REPORT_LOOK_MAX,
                }
            }
            Whereabouts::Unknown => now >= self.since + limits::REPORT_LIFE_MAX,
        };
        if is_lost { Sight::Lost } else { Sight::Well }
    }

    /// Its shim, as that names itself.
    pub(super) fn named(&self) -> InnerProcess {
        let ShimPlace { namespace, pid, began, .. } = self.place;
        InnerProcess { namespace, pid, start: began }
    }

    /// Finds its shim.
    pub(super) fn find(&mut self, open: Option<(u64, u64)>) -> Whereabouts {
        let Some(open) = open else { return Whereabouts::Unknown };
        if let Some(known) = self.shim {
            let now = crate::sys::tree::process(known.pid);
            let lives = now.is_some_and(|now| now.start == known.start && !now.is_zombie);
            return if lives { Whereabouts::Here(known) } else { Whereabouts::Gone };
        }
        let found = namespace::find(&self.named(), open);
        if let Whereabouts::Here(process) = found {
            self.shim = Some(process);
        }
        found
    }

    /// Continues what a pause has stopped. Returns `false` when it is not paused.
    pub(super) fn unpause(&mut self) -> bool {
        self.paused.take().map(PausedTree::resume).is_some()
    }

    /// The shim as it was found.
    pub(super) fn shim(&self) -> Option<Process> {
        self.shim
    }

    /// Has it looked at soon.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.look_at = now;
    }

    /// Has it looked at again at this time.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.look_at = self.look_at.min(at);
    }
}

/// The host's word for a stream.
fn known(stream: CallerStream) -> Stream {
    match stream {
        CallerStream::Out => Stream::Out,
        CallerStream::Err => Stream::Err,
    }
}
