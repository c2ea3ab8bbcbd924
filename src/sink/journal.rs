//! The host's side of the journal: a reader of every job's log that turns it into frames for the recorder.
//!
//! The files belong to the recorder, a process of its own, so that the loop never waits for a disk. While the recorder
//! keeps up, the journal's cursors hold their jobs back like a caller does, and nothing is lost. When it takes nothing
//! for a while, they may be skipped: then output is missing from the journal, counted, and no command waits.
//!
//! Invariants: nothing here waits or touches a descriptor; what is queued is bounded; every command that began has its
//! start and its end queued in this order, or is counted as given up.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::core::engine::{Cursor, Engine, JobId};
use crate::core::entry::{Entry, Exit, Outcome};
use crate::core::log::{Item, Lag};
use crate::limits;
use crate::sink::record::{self, End, Left, Start};

#[derive(Debug)]
struct Reader {
    cursor: Cursor,
    end: End,
    /// Its start is queued. Without one the recorder knows nothing of it, and its end would be lost there uncounted.
    has_start: bool,
}

/// The journal, as the host sees it. Frames are appended to the buffer that each call is given.
#[derive(Debug, Default)]
pub struct Journal {
    readers: BTreeMap<JobId, Reader>,
    /// Since when the recorder has taken nothing although there is something.
    waiting_since: Option<Instant>,
    is_stalled: bool,
    given_up: u64,
    /// Since when output waits for more of it, and whether a record is queued, which never waits: once it is with the
    /// recorder it is safe from this host's death.
    held_since: Option<Instant>,
    has_record: bool,
}

impl Journal {
    /// How a new cursor of the journal is to be attached.
    #[must_use]
    pub fn lag(&self) -> Lag {
        if self.is_stalled { Lag::Skip } else { Lag::Hold }
    }

    /// Records that were given up since the last call, because the recorder took nothing for too long.
    pub fn take_given_up(&mut self) -> u64 {
        std::mem::take(&mut self.given_up)
    }

    /// A command begins, with this environment (`NAME=value`); what of it is secret is told the recorder, nothing else.
    pub fn begin<'a>(
        &mut self,
        cursor: Cursor,
        start: &Start,
        environment: impl IntoIterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
    ) {
        self.has_record = true;
        let has_start = out.len() < limits::RECORDER_RECORDS_BYTES;
        if has_start {
            record::encode_start_in(start, environment, out);
        } else {
            self.given_up += 1;
        }
        self.readers.insert(cursor.job, Reader { cursor, end: End { seq: cursor.job.0, ..End::default() }, has_start });
    }

    /// More is known of the command's end.
    pub fn note(&mut self, job: JobId, note: impl FnOnce(&mut End)) {
        if let Some(reader) = self.readers.get_mut(&job) {
            note(&mut reader.end);
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
        self.readers.is_empty()
    }

    /// Tells how the recorder takes what it is given; with `engine`, because holding back may begin or end.
    pub fn on_flush(&mut self, engine: &mut Engine, has_moved: bool, is_empty: bool, now: Instant) {
        if has_moved || is_empty {
            self.waiting_since = (!is_empty).then_some(now);
            self.set_stalled(engine, false);
        } else {
            self.waiting_since.get_or_insert(now);
        }
    }

    /// When the recorder counts as stalled.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting_since.filter(|_| !self.is_stalled).map(|since| since + limits::RECORDER_STALL)
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
        let is_due = self.deadline().is_some_and(|at| now >= at);
        if is_due {
            self.set_stalled(engine, true);
        }
        is_due
    }

    /// Whether output is being left out because the recorder takes nothing.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    fn set_stalled(&mut self, engine: &mut Engine, is_stalled: bool) {
        if self.is_stalled != is_stalled {
            self.is_stalled = is_stalled;
            let lag = self.lag();
            self.readers.values().for_each(|reader| engine.set_lag(reader.cursor, lag));
        }
    }

    /// Takes what every command has for the journal, until `out` is this long.
    pub fn pump_all(&mut self, engine: &mut Engine, out: &mut Vec<u8>, most: usize) {
        let jobs: Vec<JobId> = self.readers.keys().copied().collect();
        jobs.into_iter().for_each(|job| self.pump(engine, job, out, most));
    }

    /// The host's end: takes what there is until `out` is this long, then only the ends, so that what is left out is
    /// counted.
    pub fn finish(&mut self, engine: &mut Engine, out: &mut Vec<u8>, most: usize) {
        self.pump_all(engine, out, most);
        self.set_stalled(engine, true);
        self.pump_all(engine, out, most);
    }

    /// Takes what this command has for the journal, until `out` is this long. While the recorder is stalled, output
    /// is passed over, so that logs are let go of.
    pub fn pump(&mut self, engine: &mut Engine, job: JobId, out: &mut Vec<u8>, most: usize) {
        let Some(reader) = self.readers.get_mut(&job) else { return };
        let cursor = reader.cursor;
        while out.len() < most || self.is_stalled {
            let Some(item) = engine.next(cursor) else { return };
            match item {
                Item::Missed { bytes } => reader.end.bytes += bytes,
                Item::Entry(Entry::Output { stream, bytes }) => {
                    reader.end.bytes += u64::try_from(bytes.len()).expect("a length fits 64 bits");
                    if !self.is_stalled && reader.has_start {
                        record::encode_output(job.0, *stream as u8, bytes, out);
                    }
                }
                Item::Entry(Entry::Closed { outcome, took }) => {
                    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                    let reader = self.readers.remove(&job).expect("it was found above");
                    self.has_record = true;
                    if reader.has_start && out.len() < limits::RECORDER_RECORDS_BYTES {
                        record::encode_end(&ended(reader.end, outcome, took), out);
                    } else {
                        self.given_up += 1;
                    }
                    return engine.detach(cursor);
                }
                Item::Entry(_) => {}
            }
            engine.advance(cursor);
        }
    }
}

/// The end as the outcome tells it.
fn ended(mut end: End, outcome: &Outcome, duration_ms: u64) -> End {
    end.duration_ms = duration_ms;
    let (exit, error) = match outcome {
        Outcome::Ended { exit, stopped } => {
            if let Exit::Signal(signal) = exit {
                end.signal = Some(*signal);
            }
            (exit.code(), stopped.map(|_| "aborted"))
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
