//! The host's side of the journal: a reader of every job's log that turns it into frames for the recorder, and keeps
//! every record until the file has it.
//!
//! The files belong to the recorder, a process of its own, so that the loop never waits for a disk. While the recorder
//! keeps up, the journal's cursors hold their jobs back like a caller does, and nothing is lost. When it gets no further
//! for a while, they may be skipped: then output is missing from the journal, counted, and no command waits. When it
//! dies, the next one is sent again what the file lacks.
//!
//! Invariants: nothing here waits or touches a descriptor; what is on its way and what is kept are bounded; of every
//! command that began, start and end are kept until the file has the end, or they are counted as given up; output that
//! is neither in the record nor kept is counted in the record.

mod pace;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Instant;

use self::pace::Pace;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Exit, Outcome, Reason};
use crate::core::log::{Item, Lag};
use crate::journal::frame;
use crate::journal::record::{Left, RunEnd, StartRecord};
use crate::journal::status::Done;
use crate::limits;

/// A run whose end the file does not have yet.
#[derive(Debug)]
struct Held {
    /// Until it is closed.
    cursor: Option<Cursor>,
    end: RunEnd,
    /// The frames of its start. Without them the recorder knows nothing of it, and its end would be lost there uncounted.
    start: Vec<u8>,
    /// The frames of its output, as long as they are few.
    output: Vec<u8>,
    is_output_whole: bool,
    /// Bytes of output that were sent.
    sent: u64,
    /// The frame of its end.
    ended: Vec<u8>,
}

impl Held {
    fn weight(&self) -> usize {
        self.start.len() + self.output.len() + self.ended.len()
    }
}

/// The journal, as the host sees it. Frames are appended to the buffer that each call is given.
#[derive(Debug, Default)]
pub struct Feed {
    runs: BTreeMap<JobId, Held>,
    /// What all of them weigh, bytes.
    held: usize,
    pace: Pace,
    is_stalled: bool,
    /// There is no recorder; the next one is sent everything.
    is_down: bool,
    is_leaving: bool,
    /// Records given up: not told the human yet, and not counted in the file yet.
    given_up: u64,
    uncounted: u64,
    /// The job that had the last turn.
    turn: Option<JobId>,
    /// Since when output waits for more of it, and whether a record is queued, which never waits: once it is with the
    /// recorder it is safe from this host's death.
    held_since: Option<Instant>,
    has_record: bool,
}

impl Feed {
    /// How a new cursor of the journal is to be attached.
    #[must_use]
    pub fn lag(&self) -> Lag {
        if self.is_stalled { Lag::Skip } else { Lag::Hold }
    }

    /// Records that were given up since the last call, because too many wait for the file. The file will say so as well.
    pub fn take_given_up(&mut self, out: &mut Vec<u8>, now: Instant) -> u64 {
        let count = std::mem::take(&mut self.given_up);
        if count > 0 {
            self.uncounted += count;
            self.send(out, now, |out| frame::encode_dropped(count, out));
        }
        count
    }

    /// A command begins, with this environment (`NAME=value`); what of it is secret is told the recorder, nothing else.
    pub fn begin<'a>(
        &mut self,
        cursor: Cursor,
        start: &StartRecord,
        environment: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
        now: Instant,
    ) {
        let mut frames = Vec::new();
        frame::encode_start(start, environment, &mut frames);
        if self.held + frames.len() > limits::RECORDER_HELD_BYTES {
            self.given_up += 1;
            frames = Vec::new();
        }
        self.held += frames.len();
        self.has_record |= self.send(out, now, |out| out.extend_from_slice(&frames));
        let end = RunEnd { seq: cursor.job.0, ..RunEnd::default() };
        let held = Held {
            cursor: Some(cursor),
            end,
            start: frames,
            output: Vec::new(),
            is_output_whole: true,
            sent: 0,
            ended: Vec::new(),
        };
        self.runs.insert(cursor.job, held);
    }

    /// More is known of the command's end.
    pub fn note(&mut self, job: JobId, note: impl FnOnce(&mut RunEnd)) {
        if let Some(held) = self.runs.get_mut(&job) {
            note(&mut held.end);
        }
    }

    /// The command left these processes running.
    pub fn on_left(&mut self, job: JobId, left: Vec<Left>) {
        self.note(job, |end| {
            end.left_count = u32::try_from(left.len()).unwrap_or(u32::MAX);
            end.left = left;
            end.left.truncate(limits::STRAGGLERS_NAMED_MAX);
        });
    }

    /// Whether every command that began has its end queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.runs.values().all(|held| held.cursor.is_none())
    }

    /// The recorder says what it has done; with `engine`, because holding back may end. Whether there is room for more.
    pub fn on_done(&mut self, engine: &mut Engine, done: &Done, now: Instant) -> bool {
        for seq in &done.ends {
            if let Some(held) = self.runs.remove(&JobId(*seq)) {
                self.held -= held.weight();
                // A recorder that knows nothing of a run has done with it; its log must not wait for anybody.
                held.cursor.into_iter().for_each(|cursor| engine.detach(cursor));
            }
        }
        self.uncounted = self.uncounted.saturating_sub(done.dropped);
        let has_progress = self.pace.on_handled(done.handled, now);
        if has_progress {
            self.set_stalled(engine, false);
        }
        has_progress
    }

    /// The recorder has died.
    pub fn on_down(&mut self, now: Instant) {
        self.is_down = true;
        self.pace.on_full(now);
    }

    /// There is another recorder: queues for it what the file may lack.
    pub fn replay(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) {
        self.is_down = false;
        self.set_stalled(engine, false);
        self.pace.begin(now);
        let before = out.len();
        for (job, held) in self.runs.iter().filter(|(_, held)| !held.start.is_empty()) {
            out.extend_from_slice(&held.start);
            out.extend_from_slice(&held.output);
            if !held.is_output_whole {
                frame::encode_lost(job.0, held.sent, out);
            }
            out.extend_from_slice(&held.ended);
        }
        if self.uncounted > 0 {
            frame::encode_dropped(self.uncounted, out);
        }
        self.has_record = true;
        self.pace.on_sent(out.len() - before, now);
    }

    /// When there is something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.pace.deadline(self.is_stalled, self.is_down)
    }

    /// Whether what is queued, of this length, is to be sent now. Otherwise [`Journal::send_at`] says when.
    pub fn is_due(&mut self, pending: usize, now: Instant) -> bool {
        let since = *self.held_since.get_or_insert(now);
        let is_due =
            self.has_record || pending >= limits::RECORDER_BATCH_BYTES || now >= since + limits::RECORDER_DELAY;
        if is_due {
            self.has_record = false;
            self.held_since = None;
        }
        is_due
    }

    /// When what waits for more is to be sent.
    #[must_use]
    pub fn send_at(&self) -> Option<Instant> {
        self.held_since.map(|since| since + limits::RECORDER_DELAY)
    }

    /// Time has passed; whether logs may have room because of it.
    pub fn tick(&mut self, engine: &mut Engine, now: Instant) -> bool {
        self.pace.tick(self.is_stalled, self.is_down, now);
        let is_due = !self.is_stalled && self.pace.is_stalled(now);
        if is_due {
            self.set_stalled(engine, true);
        }
        is_due
    }

    /// Whether the recorder has got no further for so long that it never will.
    #[must_use]
    pub fn is_stuck(&self, now: Instant) -> bool {
        !self.is_down && self.pace.is_stuck(now)
    }

    /// What the human should know of the recorder's pace, once.
    pub fn take_notice(&mut self, now: Instant) -> Option<String> {
        self.pace.take_notice(now)
    }

    /// Whether output is being left out because the recorder gets no further.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    fn set_stalled(&mut self, engine: &mut Engine, is_stalled: bool) {
        if self.is_stalled != is_stalled {
            self.is_stalled = is_stalled;
            let lag = self.lag();
            let cursors = self.runs.values().filter_map(|held| held.cursor);
            cursors.for_each(|cursor| engine.set_lag(cursor, lag));
        }
    }

    /// Takes what every command has for the journal, as far as there is room; one after the other, so that none takes it
    /// all.
    pub fn pump_all(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) {
        let after = self.turn.map_or(Bound::Unbounded, Bound::Excluded);
        let mut jobs: Vec<JobId> = self.runs.range((after, Bound::Unbounded)).map(|(&job, _)| job).collect();
        if let Some(turn) = self.turn {
            jobs.extend(self.runs.range(..=turn).map(|(&job, _)| job));
        }
        while !jobs.is_empty() {
            jobs.retain(|&job| {
                let has_moved = self.step(engine, job, out, now);
                if has_moved {
                    self.turn = Some(job);
                }
                has_moved
            });
        }
    }

    /// The host's end: takes what there is until much is on its way, then only the ends, so that what is left out is
    /// counted.
    pub fn finish(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) {
        self.is_leaving = true;
        self.pump_all(engine, out, now);
        self.set_stalled(engine, true);
        self.pump_all(engine, out, now);
    }

    /// Takes what this command has for the journal, as far as there is room. While the recorder is stalled, output is
    /// passed over, so that logs are let go of.
    pub fn pump(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, now: Instant) {
        while self.step(engine, job, out, now) {}
    }

    /// Takes one entry; whether there may be another.
    fn step(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, now: Instant) -> bool {
        let Some(held) = self.runs.get_mut(&job) else { return false };
        let Some(cursor) = held.cursor else { return false };
        let Some(item) = engine.next(cursor) else { return false };
        match item {
            Item::Missed { bytes } => held.end.bytes += bytes,
            Item::Entry(Entry::Output { stream, bytes }) => {
                if !self.is_stalled && !held.start.is_empty() {
                    let is_first = held.sent < limits::RECORDER_FIRST_BYTES || self.is_leaving;
                    if self.is_down || !self.pace.has_room(is_first) {
                        self.pace.on_full(now);
                        return false;
                    }
                    let before = out.len();
                    frame::encode_output(job.0, *stream as u8, bytes, out);
                    self.held -= held.output.len();
                    held.keep_output(&out[before..]);
                    self.held += held.output.len();
                    held.sent += bytes.len() as u64;
                    self.pace.on_sent(out.len() - before, now);
                }
                held.end.bytes += bytes.len() as u64;
            }
            Item::Entry(Entry::Closed { outcome, took }) => {
                let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                let end = ended(std::mem::take(&mut held.end), outcome, took);
                held.cursor = None;
                if held.start.is_empty() {
                    self.given_up += 1;
                    self.runs.remove(&job);
                } else {
                    frame::encode_end(&end, &mut held.ended);
                    self.held += held.ended.len();
                    let ended = held.ended.clone();
                    self.has_record |= self.send(out, now, |out| out.extend_from_slice(&ended));
                }
                engine.detach(cursor);
                return false;
            }
            Item::Entry(_) => {}
        }
        engine.advance(cursor);
        true
    }

    /// Queues frames, if there is a recorder; otherwise the next one is sent them with everything else.
    fn send(&mut self, out: &mut Vec<u8>, now: Instant, encode: impl FnOnce(&mut Vec<u8>)) -> bool {
        if self.is_down {
            return false;
        }
        let before = out.len();
        encode(out);
        self.pace.on_sent(out.len() - before, now);
        out.len() > before
    }
}

impl Held {
    /// Keeps frames of output for the next recorder, or none at all when they are too many: a record with a hole in the
    /// middle would say more than is known.
    fn keep_output(&mut self, frames: &[u8]) {
        if self.is_output_whole && self.output.len() + frames.len() <= limits::RECORDER_HELD_OUTPUT_BYTES {
            self.output.extend_from_slice(frames);
        } else {
            self.is_output_whole = false;
            self.output = Vec::new();
        }
    }
}

/// The end as the outcome tells it.
fn ended(mut end: RunEnd, outcome: &Outcome, duration_ms: u64) -> RunEnd {
    end.duration_ms = duration_ms;
    let (exit, error) = match outcome {
        Outcome::Ended { exit, stopped } => {
            if let Exit::Signal(signal) = exit {
                end.signal = Some(*signal);
            }
            (exit.code(), stopped.map(Reason::word))
        }
        Outcome::NotStarted(why) => (why.code, Some(if why.code == 127 { "not_found" } else { "spawn_failed" })),
        Outcome::NeverRun(_) => (125, Some("aborted")),
        Outcome::Lost { .. } => (125, Some("lost")),
    };
    end.exit = exit;
    end.error = error.map(str::to_owned);
    end
}

#[cfg(test)]
mod tests;
