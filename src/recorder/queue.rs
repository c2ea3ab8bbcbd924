//! The records that wait for the file, in bounded memory.
//!
//! Invariant: records leave in the order in which they came.

use std::collections::VecDeque;
use std::rc::Rc;

use super::volume::Volume;
use crate::journal::record::{DestroyedRecord, EndRecord, InputRecord, StartRecord, UnseenRecord};

/// A record that the file does not have yet.
#[derive(Debug)]
pub(super) enum Unwritten {
    Start(Rc<StartRecord>),
    End(Box<EndRecord>),
    /// A person typed for a run.
    Input(InputRecord),
    Unseen(Box<UnseenRecord>),
    Destroyed(Box<DestroyedRecord>),
    /// How many records the host gave up.
    Dropped(u64),
}

impl Unwritten {
    /// The memory that the record takes, roughly, bytes.
    fn weight(&self) -> usize {
        let words =
            |start: &StartRecord| start.exec.iter().map(String::len).sum::<usize>() + start.card.command.len() + 512;
        match self {
            Unwritten::Start(start) => words(start),
            Unwritten::End(end) => words(&end.start) + end.output.text.len(),
            Unwritten::Unseen(_) => 512,
            Unwritten::Input(_) | Unwritten::Destroyed(_) | Unwritten::Dropped(_) => 64,
        }
    }

    pub(super) fn lines(&self, volume: &mut Volume) -> Vec<Vec<u8>> {
        match self {
            Unwritten::Start(start) => volume.start_lines(start),
            Unwritten::End(end) => volume.end_lines(end),
            Unwritten::Input(_) | Unwritten::Unseen(_) | Unwritten::Destroyed(_) | Unwritten::Dropped(_) => Vec::new(),
        }
    }
}

/// Oldest first.
#[derive(Debug)]
pub(super) struct RecordQueue {
    records: VecDeque<Unwritten>,
    pub(super) bytes: usize,
    bytes_max: usize,
}

impl RecordQueue {
    /// Holds about `bytes_max` bytes of records.
    pub(super) fn new(bytes_max: usize) -> RecordQueue {
        RecordQueue { records: VecDeque::new(), bytes: 0, bytes_max }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn push(&mut self, record: Unwritten) {
        self.bytes += record.weight();
        self.records.push_back(record);
    }

    pub(super) fn pop(&mut self) -> Option<Unwritten> {
        let record = self.records.pop_front()?;
        self.bytes -= record.weight();
        Some(record)
    }

    /// Puts back a record that [`RecordQueue::pop`] returned.
    pub(super) fn put_back(&mut self, record: Unwritten) {
        self.bytes += record.weight();
        self.records.push_front(record);
    }

    /// Takes the oldest record if the queue holds too much.
    pub(super) fn pop_excess(&mut self) -> Option<Unwritten> {
        if self.bytes > self.bytes_max { self.pop() } else { None }
    }
}
