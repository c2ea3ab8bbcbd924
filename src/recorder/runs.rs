//! The runs that have not ended, and the order in which their output is read.
//!
//! Invariants: a run that has ended has its turn before those that go on; each turn is one piece of output; `waiting`
//! is the sum of all output that waits for its turn; a run that the file has already is not written again.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::appender::{AlreadyWritten, Appender};
use super::bounds::Bounds;
use super::environment::EnvironmentCache;
use super::live::Live;
use super::output_files::OutputFiles;
use super::queue::Unwritten;
use crate::journal::record::{InputRecord, RunEnd, StartRecord};
use crate::journal::recording;
use crate::journal::status::RecorderStatus;
use crate::limits;

/// How much output of a run is dealt with in one turn, bytes.
const PIECE_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct RecordedRuns {
    live: HashMap<u64, Live>,
    /// Runs that have ended and whose output waits, in the order of their turns.
    ended: VecDeque<u64>,
    /// The other runs whose output waits.
    turns: VecDeque<u64>,
    /// Output that waits for its turn, bytes.
    waiting: u64,
    /// Runs whose output waits because some of it may be left out.
    flooding: Vec<u64>,
    /// The records that the host sends again and that the file had when this recorder began.
    known: AlreadyWritten,
    /// The variables of the run that starts next.
    entries: Option<(u64, Vec<u8>)>,
    environments: EnvironmentCache,
    /// Masked output on its way to the files.
    masked: Vec<u8>,
    pub(super) files: OutputFiles,
    /// The answers to the host's questions.
    pub(super) reached: Vec<RecorderStatus>,
    /// When output that waits for its files is written.
    flush_at: Option<Instant>,
    bounds: Bounds,
}

impl RecordedRuns {
    pub(super) fn new(known: AlreadyWritten, files: OutputFiles, bounds: Bounds) -> RecordedRuns {
        RecordedRuns {
            live: HashMap::new(),
            ended: VecDeque::new(),
            turns: VecDeque::new(),
            waiting: 0,
            flooding: Vec::new(),
            known,
            entries: None,
            environments: EnvironmentCache::default(),
            masked: Vec::new(),
            files,
            reached: Vec::new(),
            flush_at: None,
            bounds,
        }
    }

    /// How much output waits for its turn, bytes.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns true if the output of any run waits.
    pub(super) fn is_at_work(&self) -> bool {
        !(self.ended.is_empty() && self.turns.is_empty())
    }

    /// Takes note of a record that belongs to no start and no end. Returns true if the file has it, so that it is not
    /// written again.
    pub(super) fn has_aside(&mut self) -> bool {
        let is_known = self.known.asides > 0;
        self.known.asides -= usize::from(is_known);
        is_known
    }

    pub(super) fn on_entries(&mut self, seq: u64, entries: &[u8]) {
        match &mut self.entries {
            Some((known, all)) if *known == seq => all.extend_from_slice(entries),
            other => *other = Some((seq, entries.to_vec())),
        }
    }

    pub(super) fn on_start(&mut self, start: StartRecord, has_entries: bool, appender: &mut Appender, now: Instant) {
        let seq = start.card.seq;
        let entries = self.entries.take().filter(|(of, _)| *of == seq);
        let is_known = self.live.contains_key(&seq) || self.known.ended.contains(&seq);
        // Without its variables, a start cannot be masked.
        if is_known || has_entries != entries.is_some() {
            return;
        }
        let entries = entries.map_or(Vec::new(), |(_, entries)| entries);
        let mut start = start;
        // Records that wait for a disk would take too much memory with their environments.
        if std::mem::take(&mut start.environment_sent) && self.bounds.environments && !appender.is_failing() {
            start.environment = Some(self.environments.of(&entries, &start.card.dir));
        }
        let live = Live::new(start, &entries, &self.bounds);
        let start = Rc::clone(&live.start);
        if self.known.open.remove(&seq) {
            appender.adopt(start);
        } else {
            appender.push(Unwritten::Start(start), now);
        }
        self.live.insert(seq, live);
    }

    pub(super) fn on_output(&mut self, seq: u64, stream: u8, at: Duration, bytes: &[u8], now: Instant) {
        // Output of a straggler after its run's end is not recorded.
        let Some(live) = self.live.get_mut(&seq).filter(|live| live.end.is_none()) else { return };
        if bytes.is_empty() {
            return;
        }
        if live.is_idle() && self.flooding.len() < limits::RECORDER_FLOODS_MAX && live.has_beginning(&self.bounds) {
            live.keep_end(&self.bounds, now);
            self.flooding.push(seq);
        }
        if live.keeps_end_since().is_none() {
            if live.is_idle() {
                self.turns.push_back(seq);
            }
            self.waiting += bytes.len() as u64;
        }
        live.enqueue(stream, at, bytes, PIECE_BYTES, now);
    }

    pub(super) fn on_resized(&mut self, seq: u64, at: Duration, window: (u16, u16)) {
        let Some(live) = self.live.get_mut(&seq).filter(|live| live.end.is_none()) else { return };
        if live.is_idle() && live.keeps_end_since().is_none() {
            self.turns.push_back(seq);
        }
        live.resize(at, window);
    }

    /// Notes that a person typed for a run this long after its start.
    pub(super) fn on_input(&mut self, input: &InputRecord, at: Duration) {
        let Some(live) = self.live.get_mut(&input.seq).filter(|live| live.end.is_none()) else { return };
        if live.is_idle() && live.keeps_end_since().is_none() {
            self.turns.push_back(input.seq);
        }
        live.answer(at, recording::input_text(input));
    }

    /// Takes the host's question how far a run is.
    pub(super) fn on_mark(&mut self, seq: u64, mark: u64) {
        let Some(live) = self.live.get_mut(&seq).filter(|live| live.end.is_none()) else { return };
        let has_turn = !live.is_idle() && live.keeps_end_since().is_none();
        self.waiting += live.release_end() as u64;
        self.flooding.retain(|&flooding| flooding != seq);
        live.mark(mark);
        if !has_turn {
            self.turns.push_back(seq);
        }
    }

    /// Counts output that was lost with an earlier recorder. Returns true if the run is known.
    pub(super) fn on_lost(&mut self, seq: u64, bytes: u64) -> bool {
        let live = self.live.get_mut(&seq);
        live.map(|live| live.lose(bytes)).is_some()
    }

    /// Gives a turn to each run whose output waits because some of it might be left out, if `is_due` is true for
    /// [`Live::keeps_end_since`].
    pub(super) fn release(&mut self, is_due: impl Fn(Instant) -> bool) {
        let Self { live, turns, waiting, flooding, .. } = self;
        flooding.retain(|&seq| {
            let Some(live) = live.get_mut(&seq) else { return false };
            let stays = live.keeps_end_since().is_some_and(|since| !is_due(since));
            if !stays {
                *waiting += live.release_end() as u64;
                if !live.is_idle() {
                    turns.push_back(seq);
                }
            }
            stays
        });
    }

    pub(super) fn on_end(&mut self, end: RunEnd, appender: &mut Appender, now: Instant) {
        let Some(live) = self.live.get_mut(&end.seq) else {
            // The file has it already, or its start never came.
            return appender.pass_over(end.seq);
        };
        self.waiting += live.release_end() as u64;
        self.flooding.retain(|&seq| seq != end.seq);
        if live.is_idle() {
            self.conclude(end, appender, now);
        } else if live.end.is_none() {
            self.ended.push_back(end.seq);
            live.end = Some(end);
        }
    }

    fn conclude(&mut self, end: RunEnd, appender: &mut Appender, now: Instant) {
        let Some(live) = self.live.remove(&end.seq) else { return };
        let record = live.finish(end, &mut self.masked, &self.bounds, &mut self.files);
        appender.push(Unwritten::End(Box::new(record)), now);
    }

    /// Deals with output that waits, one run after the other, until this time.
    pub(super) fn work(&mut self, until: Instant, appender: &mut Appender) {
        while let Some((seq, has_ended)) = self.next_turn() {
            let Some(live) = self.live.get_mut(&seq) else { continue };
            if live.end.is_some() != has_ended {
                // It has ended since, and has its turn among those.
                continue;
            }
            let worked = live.work(&mut self.masked, &self.bounds, &mut self.files);
            self.waiting -= worked as u64;
            self.reached.append(&mut live.reached);
            if live.has_unwritten() {
                self.flush_at.get_or_insert_with(|| Instant::now() + limits::RECORDING_DELAY);
            }
            if !live.is_idle() {
                let turns = if has_ended { &mut self.ended } else { &mut self.turns };
                turns.push_back(seq);
            } else if let Some(end) = live.end.take() {
                self.conclude(end, appender, Instant::now());
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// When [`RecordedRuns::tick`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let floods = self.flooding.iter().filter_map(|seq| self.live.get(seq)?.keeps_end_since());
        floods.map(|since| since + limits::RECORDER_FLOOD_WAIT).chain(self.flush_at).min()
    }

    /// Writes output that has waited long enough for its files, and goes on with output that nothing followed.
    pub(super) fn tick(&mut self, now: Instant) {
        self.release(|since| since + limits::RECORDER_FLOOD_WAIT <= now);
        if self.flush_at.take_if(|at| *at <= now).is_some() {
            self.live.values_mut().for_each(|live| live.flush(&mut self.files));
        }
    }

    fn next_turn(&mut self) -> Option<(u64, bool)> {
        let ended = self.ended.pop_front().map(|seq| (seq, true));
        ended.or_else(|| self.turns.pop_front().map(|seq| (seq, false)))
    }
}
