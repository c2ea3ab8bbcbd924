//! The host's feed to the recorder: turns the log of every job into frames, and keeps every record until the file has
//! it.
//!
//! The files belong to the recorder, a process of its own, so that the loop never waits for a disk.
//! `host::recorder_link` tells the feed about the commands, `host::recorder_process` starts that process and sends it
//! these frames, [`frame`] is their form, and [`crate::recorder`] is the process.
//!
//! While the recorder keeps up, the feed's cursors hold their jobs back like a caller does, and nothing is lost. When
//! it makes no progress for a while, the cursors skip: the journal then lacks output, which is counted, and no
//! command waits. When it dies, the feed sends the next recorder what the file may lack.
//!
//! Invariants: nothing here waits or touches a descriptor; frames on their way and frames that are kept are bounded;
//! the start and the end of every command are kept until the file has the end, or counted as given up; output that is
//! neither in the record nor kept is counted in the record.

mod asides;
mod held;
mod pace;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Instant;

use self::asides::Asides;
use self::held::Held;
use self::pace::Pace;
use crate::core::buffer_room::make_room;
use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Typed};
use crate::core::log::{Item, Lag};
use crate::journal::frame::{self, Frame};
use crate::journal::record::{DestroyedRecord, InputRecord, StartRecord, UnseenRecord};
use crate::journal::status::Done;
use crate::limits;
use crate::text::echo::TYPED;

/// The feed. Its methods append frames to `out`, the buffer of what goes to the recorder.
#[derive(Debug, Default)]
pub struct Feed {
    runs: BTreeMap<JobId, Held>,
    /// The frames of all of them, bytes.
    held: usize,
    pace: Pace,
    is_stalled: bool,
    /// There is no recorder; the next one gets everything.
    is_down: bool,
    is_leaving: bool,
    /// The frames of answers and of commands without a host that the file may lack.
    asides: Asides,
    /// Records that were given up and not yet reported to the human.
    given_up: u64,
    /// The text of the file of project sessions, if that has changed since the host's start.
    projects: Vec<u8>,
    /// Records that were given up and that the file does not count yet.
    uncounted: u64,
    /// The job that had the last turn.
    turn: Option<JobId>,
    /// When output began to wait for more of it.
    held_since: Option<Instant>,
    /// A record is queued. Records never wait: the recorder writes them even if this host dies.
    has_record: bool,
}

impl Feed {
    /// The lag with which the caller must attach the next cursor.
    #[must_use]
    pub fn lag(&self) -> Lag {
        if self.is_stalled { Lag::Skip } else { Lag::Hold }
    }

    /// Returns how many records were given up since the last call because too many wait for the file. The file will
    /// count them, too.
    pub fn take_given_up(&mut self, out: &mut Vec<u8>, now: Instant) -> u64 {
        let count = std::mem::take(&mut self.given_up);
        if count > 0 {
            self.uncounted += count;
            self.send(out, now, |out| Frame::Dropped(count).encode(out));
        }
        count
    }

    /// Begins a command in this environment (entries `NAME=value`). If much is kept already, only the secrets of it are
    /// sent, whatever the start says.
    pub fn begin<'a>(
        &mut self,
        cursor: Cursor,
        start: &StartRecord,
        environment: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
        now: Instant,
    ) {
        let may_send_all = self.held < limits::RECORDER_HELD_BYTES / 2;
        let without =
            (start.environment_sent && !may_send_all).then(|| StartRecord { environment_sent: false, ..start.clone() });
        let mut frames = Vec::new();
        frame::encode_start(without.as_ref().unwrap_or(start), environment, &mut frames);
        if self.held + frames.len() > limits::RECORDER_HELD_BYTES {
            self.given_up += 1;
            frames = Vec::new();
        }
        // They are held for as long as the command runs.
        frames.shrink_to_fit();
        self.held += frames.len();
        self.has_record |= self.send(out, now, |out| append(&frames, out));
        self.runs.insert(cursor.job, Held::new(cursor, frames));
    }

    /// Sends the project sessions to the recorder, and to the next one if this one dies.
    pub fn keep_projects(&mut self, text: Vec<u8>, out: &mut Vec<u8>, now: Instant) {
        self.has_record |= self.send(out, now, |out| frame::encode_projects(&text, out));
        self.projects = text;
    }

    /// Returns true if the end of every command is queued.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.runs.values().all(|held| held.cursor.is_none())
    }

    /// Takes in the recorder's report. Returns true if it made progress, so that there may be room for more.
    pub fn on_done(&mut self, engine: &mut Engine, done: &Done, now: Instant) -> bool {
        for seq in &done.ends {
            if let Some(held) = self.runs.remove(&JobId(*seq)) {
                self.held -= held.weight();
                // The recorder also acknowledges a run that it does not know. Its job must not stay held back.
                held.cursor.into_iter().for_each(|cursor| engine.detach(cursor));
            }
        }
        self.asides.on_done(done.asides);
        self.uncounted = self.uncounted.saturating_sub(done.dropped);
        let has_progress = self.pace.on_handled(done.handled, now);
        if has_progress {
            self.set_stalled(engine, false);
        }
        has_progress
    }

    /// Notes that the recorder has died.
    pub fn on_down(&mut self, now: Instant) {
        self.is_down = true;
        self.given_up += self.asides.on_down();
        self.pace.on_full(now);
    }

    /// Queues for a new recorder everything that the file may lack.
    pub fn replay(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) {
        self.is_down = false;
        self.set_stalled(engine, false);
        self.pace.begin(now);
        let before = out.len();
        make_room(out, self.held);
        let known = || self.runs.iter().filter(|(_, held)| !held.start.is_empty());
        known().for_each(|(job, held)| held.replay(*job, out));
        // An answer belongs to a run that has begun and has not ended.
        self.asides.replay(out);
        known().for_each(|(_, held)| out.extend_from_slice(&held.ended));
        if !self.projects.is_empty() {
            frame::encode_projects(&self.projects, out);
        }
        if self.uncounted > 0 {
            Frame::Dropped(self.uncounted).encode(out);
        }
        self.has_record = true;
        self.pace.on_sent(out.len() - before, now);
    }

    /// When [`Feed::tick`] or [`Feed::take_notice`] has something to do.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.pace.deadline(self.is_stalled, self.is_down)
    }

    /// Returns true if the queued frames, `pending` bytes, must be sent now. Otherwise [`Feed::send_at`] says when.
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

    /// When output that waits for more must be sent.
    #[must_use]
    pub fn send_at(&self) -> Option<Instant> {
        self.held_since.map(|since| since + limits::RECORDER_DELAY)
    }

    /// Notes that time has passed. Returns true if jobs' logs may have room because of that.
    pub fn tick(&mut self, engine: &mut Engine, now: Instant) -> bool {
        self.pace.tick(self.is_stalled, self.is_down, now);
        let is_due = !self.is_stalled && self.pace.is_stalled(now);
        if is_due {
            self.set_stalled(engine, true);
        }
        is_due
    }

    /// Returns true if the recorder has made no progress for so long that it never will.
    #[must_use]
    pub fn is_stuck(&self, now: Instant) -> bool {
        !self.is_down && self.pace.is_stuck(now)
    }

    /// Reports, once each, that the recorder is behind or has caught up.
    pub fn take_notice(&mut self, now: Instant) -> Option<String> {
        self.pace.take_notice(now)
    }

    /// Returns true if output is skipped because the recorder makes no progress.
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

    /// Encodes new entries of all jobs' logs up to the limit, one job after the other, so that none takes all the room.
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

    /// At the host's end: encodes all that is new until too much is on its way, then skips output, so that the ends
    /// count what is left out.
    pub fn finish(&mut self, engine: &mut Engine, out: &mut Vec<u8>, now: Instant) {
        self.is_leaving = true;
        self.pump_all(engine, out, now);
        self.set_stalled(engine, true);
        self.pump_all(engine, out, now);
    }

    /// Encodes new entries of this job's log up to the limit. While the recorder is stalled, output is skipped, so that
    /// the job is not held back.
    pub fn pump(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, now: Instant) {
        while self.step(engine, job, out, now) {}
    }

    /// Encodes one entry. Returns true if there may be another.
    fn step(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, now: Instant) -> bool {
        let Some(held) = self.runs.get_mut(&job) else { return false };
        let Some(cursor) = held.cursor else { return false };
        let Some(item) = engine.next(cursor) else {
            if held.has_ended {
                self.finish_run(engine, job, out, now);
            }
            return false;
        };
        match item {
            Item::Missed { bytes } | Item::Entry(&Entry::Unreported { bytes }) => held.end.bytes += bytes,
            Item::Entry(Entry::Output { stream, bytes, at, echo }) => {
                let bytes = echo.hidden(bytes, TYPED);
                if !self.is_stalled && !held.start.is_empty() {
                    let is_first = held.sent < limits::RECORDER_FIRST_BYTES || self.is_leaving;
                    if self.is_down || !self.pace.has_room(is_first) {
                        self.pace.on_full(now);
                        return false;
                    }
                    let before = out.len();
                    make_room(out, bytes.len());
                    frame::encode_output(job.0, *stream as u8, *at, bytes, out);
                    keep(held, &out[before..], &mut self.held);
                    held.sent += bytes.len() as u64;
                    self.pace.on_sent(out.len() - before, now);
                }
                held.end.bytes += bytes.len() as u64;
            }
            Item::Entry(Entry::Resized { rows, cols, at }) if !self.is_down && !held.start.is_empty() => {
                let before = out.len();
                Frame::Resized { seq: job.0, at: *at, window: (*rows, *cols) }.encode(out);
                keep(held, &out[before..], &mut self.held);
                self.pace.on_sent(out.len() - before, now);
            }
            Item::Entry(entry @ Entry::Answered(typed)) => {
                held.on_fact(entry);
                let at = engine.job(job).map_or_else(Default::default, |job| job.age(now));
                let input = Box::new(input(job, *typed));
                self.send_aside(out, now, |out| Frame::Input { at, input }.encode(out));
            }
            Item::Entry(Entry::Marked(mark)) if !held.start.is_empty() => {
                let mark = *mark;
                self.has_record |= self.send(out, now, |out| Frame::Mark { seq: job.0, mark }.encode(out));
            }
            Item::Entry(entry) => held.on_fact(entry),
        }
        engine.advance(cursor);
        true
    }

    /// Makes the record of a run that has ended, of all that its log has of the end by now.
    fn finish_run(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, now: Instant) {
        let Some(held) = self.runs.get_mut(&job) else { return };
        let cursor = held.cursor.take();
        if held.start.is_empty() {
            self.given_up += 1;
            self.runs.remove(&job);
        } else {
            held.finish();
            self.held += held.ended.len();
            let ended = held.ended.clone();
            self.has_record |= self.send(out, now, |out| append(&ended, out));
        }
        cursor.into_iter().for_each(|cursor| engine.detach(cursor));
    }

    /// Queues the record of commands that ran without a host.
    pub fn on_unseen(&mut self, unseen: UnseenRecord, out: &mut Vec<u8>, now: Instant) {
        self.send_aside(out, now, |out| Frame::Unseen(Box::new(unseen)).encode(out));
    }

    /// Queues the record of what a run has destroyed.
    pub fn on_destroyed(&mut self, destroyed: DestroyedRecord, out: &mut Vec<u8>, now: Instant) {
        self.send_aside(out, now, |out| Frame::Destroyed(Box::new(destroyed)).encode(out));
    }

    /// Queues a record that belongs to no start and no end, and keeps it until the file has it.
    fn send_aside(&mut self, out: &mut Vec<u8>, now: Instant, encode: impl FnOnce(&mut Vec<u8>)) {
        let mut frame = Vec::new();
        encode(&mut frame);
        self.has_record |= self.send(out, now, |out| append(&frame, out));
        self.given_up += self.asides.keep(frame, self.is_down);
    }

    /// Queues frames if there is a recorder. Returns whether it did; otherwise the next recorder gets them by
    /// [`Feed::replay`].
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

/// The record of an answer. The recorder adds the time.
fn input(job: JobId, Typed { bytes, is_hidden, place }: Typed) -> InputRecord {
    InputRecord { seq: job.0, bytes, hidden: is_hidden, from: place.word().to_owned(), time: String::new() }
}

/// Queues frames. Those of records wait however many there are, so the queue may be as long as all that is kept.
fn append(frames: &[u8], out: &mut Vec<u8>) {
    make_room(out, frames.len());
    out.extend_from_slice(frames);
}

/// Keeps frames of a run for the next recorder, and counts them in `all`, the bytes of all runs' frames.
fn keep(held: &mut Held, frames: &[u8], all: &mut usize) {
    *all -= held.output.len();
    held.keep_output(frames);
    *all += held.output.len();
}

#[cfg(test)]
mod tests;
