//! A job's log: append-only, bounded, read through cursors.
//!
//! Output is stored once and each reader has a position, so fan-out, back-pressure and order are one structure. A
//! cursor either *holds* the job back: nothing it has not read is dropped. Or it may be *skipped*: then it learns
//! exactly how much it missed.
//!
//! Invariants: sequence numbers have no gaps when entries are pushed; what a holding cursor has not read is never
//! dropped; only output and sizes are ever dropped, and every other entry reaches every cursor; a full log has room again only
//! when a cursor moves or goes; nothing is pushed after `Over`.

use std::collections::VecDeque;

use super::end::End;
use super::entry::Entry;
use crate::limits::ENTRY_OVERHEAD_BYTES;

/// What happens when a cursor falls behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lag {
    /// It holds the job back.
    Hold,
    /// Output is dropped, and the cursor learns how much it missed.
    Skip,
}

/// Never used again within its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CursorId(u32);

#[cfg(test)]
impl CursorId {
    /// The cursor that a log gave first.
    pub const FIRST: Self = Self(0);
}

/// One thing that a cursor reads.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// The next entry.
    Entry(&'a Entry),
    /// This much output was dropped before the next entry.
    Missed { bytes: u64 },
}

/// What a reader has done with an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It took all of it.
    All,
    /// It has no room, or wants it later.
    Not,
    /// It took it, and wants nothing more.
    Last,
}

#[derive(Debug)]
struct Position {
    id: CursorId,
    next: u64,
    lag: Lag,
    missed: u64,
}

#[derive(Debug)]
pub struct Log {
    entries: VecDeque<(u64, Entry)>,
    next: u64,
    weight: usize,
    capacity: usize,
    cursors: Vec<Position>,
    cursors_made: u32,
}

fn weight(entry: &Entry) -> usize {
    entry.kept_bytes() + ENTRY_OVERHEAD_BYTES
}

impl Log {
    /// An empty log that keeps about this many bytes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::new(), next: 0, weight: 0, capacity, cursors: Vec::new(), cursors_made: 0 }
    }

    /// Adds a cursor at the oldest entry that is still there.
    pub fn attach(&mut self, lag: Lag) -> CursorId {
        let id = CursorId(self.cursors_made);
        self.cursors_made += 1;
        let next = self.entries.front().map_or(self.next, |&(seq, _)| seq);
        self.cursors.push(Position { id, next, lag, missed: 0 });
        id
    }

    /// Adds a cursor at the end. The mark of this number stands before it, for the cursors that are there already.
    pub fn attach_at_end(&mut self, lag: Lag, mark: u64) -> CursorId {
        if !self.is_over() {
            self.push(Entry::Marked(mark));
        }
        let id = self.attach(lag);
        let next = self.next;
        self.cursors.iter_mut().filter(|cursor| cursor.id == id).for_each(|cursor| cursor.next = next);
        self.drop_read();
        id
    }

    /// Forgets a cursor. What it alone held may be dropped from now on.
    pub fn detach(&mut self, id: CursorId) {
        self.cursors.retain(|cursor| cursor.id != id);
        self.drop_read();
    }

    /// Changes what happens when a cursor falls behind.
    pub fn set_lag(&mut self, id: CursorId, lag: Lag) {
        if let Some(cursor) = self.cursors.iter_mut().find(|cursor| cursor.id == id) {
            cursor.lag = lag;
        }
    }

    /// The end of the job, while a cursor has not read it.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.entries.iter().rev().find_map(|(_, entry)| match entry {
            Entry::Ended(end) => Some(end),
            _ => None,
        })
    }

    /// Returns true if a cursor that holds the job back has not read everything.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held_from() < self.next
    }

    /// The next item for this cursor, without taking it.
    #[must_use]
    pub fn next(&self, id: CursorId) -> Option<Item<'_>> {
        let cursor = self.cursors.iter().find(|cursor| cursor.id == id)?;
        if cursor.missed > 0 {
            return Some(Item::Missed { bytes: cursor.missed });
        }
        self.entries.get(self.index(cursor.next)).map(|(_, entry)| Item::Entry(entry))
    }

    /// Takes the item that [`Log::next`] showed.
    pub fn advance(&mut self, id: CursorId) {
        let Some(at) = self.cursors.iter().position(|cursor| cursor.id == id) else { return };
        if self.cursors[at].missed > 0 {
            self.cursors[at].missed = 0;
        } else if let Some(&(seq, _)) = self.entries.get(self.index(self.cursors[at].next)) {
            self.cursors[at].next = seq + 1;
            self.drop_read();
        }
    }

    /// Appends an entry. If the log is too heavy then, it drops the oldest output that no cursor holds.
    pub fn push(&mut self, entry: Entry) {
        debug_assert!(!self.is_over(), "nothing follows Over");
        self.weight += weight(&entry);
        self.entries.push_back((self.next, entry));
        self.next += 1;
        if self.cursors.is_empty() {
            self.drop_read();
        }
        self.shed(self.capacity);
    }

    /// Drops the oldest output that no cursor holds, until the log weighs `most` bytes or less.
    pub fn shed(&mut self, most: usize) {
        let held = self.held_from();
        let mut at = 0;
        while self.weight > most && at < self.entries.len() && self.entries[at].0 < held {
            if self.entries[at].1.may_be_missed() {
                let (seq, entry) = self.entries.remove(at).expect("the index is in range");
                self.weight -= weight(&entry);
                let bytes = u64::try_from(entry.output_bytes()).expect("a length fits 64 bits");
                for cursor in self.cursors.iter_mut().filter(|cursor| cursor.next <= seq) {
                    cursor.missed += bytes;
                }
            } else {
                at += 1;
            }
        }
    }

    /// Returns true if a holding cursor is so far behind that the host must not read the job's output for now.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.weight >= self.capacity && self.room() == 0
    }

    /// How many bytes may be added before a holding cursor is too far behind. Adding them drops output that no cursor
    /// holds.
    #[must_use]
    pub fn room(&self) -> usize {
        let mut held = self.weight;
        // Of an emptier log there is room enough for what comes at once, so its entries are not counted.
        if held > self.capacity / 2 {
            let from = self.index(self.held_from());
            held = self.entries.iter().skip(from).map(|(_, entry)| weight(entry)).sum();
        }
        self.capacity.saturating_sub(held)
    }

    /// The bytes of all entries, with an overhead for each.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.weight
    }

    fn is_over(&self) -> bool {
        matches!(self.entries.back(), Some((_, Entry::Over)))
    }

    /// The oldest sequence number that a holding cursor still wants.
    fn held_from(&self) -> u64 {
        let holders = self.cursors.iter().filter(|cursor| cursor.lag == Lag::Hold);
        holders.map(|cursor| cursor.next).min().unwrap_or(self.next)
    }

    /// The index of the first entry with at least this number. Entries are sorted, and only shedding leaves gaps.
    fn index(&self, seq: u64) -> usize {
        self.entries.partition_point(|&(number, _)| number < seq)
    }

    fn drop_read(&mut self) {
        let oldest = self.cursors.iter().map(|cursor| cursor.next).min().unwrap_or(self.next);
        while self.entries.front().is_some_and(|&(seq, _)| seq < oldest) {
            let (_, entry) = self.entries.pop_front().expect("there is a front");
            self.weight -= weight(&entry);
        }
    }

    /// Frees the memory of entries that are gone, because few will follow.
    pub fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::core::entry::{Prompt, SecretEcho, Stream};
    use rexec_sh::protocol::process::Exit;

    fn output(byte: u8, length: usize) -> Entry {
        Entry::Output {
            stream: Stream::Tty,
            bytes: vec![byte; length].into(),
            at: Duration::ZERO,
            echo: SecretEcho::No,
        }
    }

    /// A reader with a perfect memory beside each cursor: what the cursor reads plus what it is told it missed must
    /// be what was pushed.
    struct Witness {
        id: CursorId,
        lag: Lag,
        attached_at: u64,
        seen: u64,
        missed: u64,
        marks: u32,
    }

    struct Model {
        log: Log,
        readers: Vec<Witness>,
        pushed: u64,
        marks: u32,
        state: u64,
    }

    impl Model {
        fn random(&mut self, below: usize) -> usize {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            usize::try_from(self.state % below as u64).unwrap()
        }

        fn read(&mut self, at: usize) -> bool {
            let reader = &mut self.readers[at];
            match self.log.next(reader.id) {
                None => return false,
                Some(Item::Missed { bytes }) => {
                    assert_eq!(reader.lag, Lag::Skip, "a holding cursor missed {bytes} bytes");
                    reader.missed += bytes;
                }
                Some(Item::Entry(Entry::Output { bytes, .. })) => reader.seen += bytes.len() as u64,
                Some(Item::Entry(_)) => reader.marks += 1,
            }
            self.log.advance(reader.id);
            true
        }

        fn step(&mut self) {
            match self.random(10) {
                0 if self.readers.len() < 5 => {
                    let lag = if self.random(2) == 0 { Lag::Hold } else { Lag::Skip };
                    // Only an empty log makes the arithmetic of a late reader simple.
                    while (0..self.readers.len()).any(|at| self.read(at)) {}
                    let id = self.log.attach(lag);
                    let marks = self.marks;
                    self.readers.push(Witness { id, lag, attached_at: self.pushed, seen: 0, missed: 0, marks });
                }
                1 if !self.readers.is_empty() => {
                    let at = self.random(self.readers.len());
                    let reader = self.readers.swap_remove(at);
                    self.log.detach(reader.id);
                }
                2 => {
                    self.log.push(Entry::Exited { exit: Exit::Code(0) });
                    self.marks += 1;
                }
                3..6 if !self.readers.is_empty() => {
                    let at = self.random(self.readers.len());
                    self.read(at);
                }
                _ if !self.log.is_full() => {
                    let length = self.random(300);
                    self.log.push(output(1, length));
                    self.pushed += length as u64;
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_log_agrees_with_a_model_that_forgets_nothing() {
        for seed in 1..200 {
            let mut model =
                Model { log: Log::new(2_000), readers: Vec::new(), pushed: 0, marks: 0, state: seed * 77_777 };
            for _ in 0..2_000 {
                model.step();
                let readers_hold = model.readers.iter().any(|reader| reader.lag == Lag::Hold);
                let marks_weigh = 2_000 * ENTRY_OVERHEAD_BYTES;
                assert!(model.log.weight() <= 2_000 + marks_weigh + 364, "weight {}", model.log.weight());
                assert!(readers_hold || !model.log.is_full(), "full although nobody holds it");
            }
            while (0..model.readers.len()).any(|at| model.read(at)) {}
            for reader in &model.readers {
                assert_eq!(reader.seen + reader.missed, model.pushed - reader.attached_at, "seed {seed}");
                assert_eq!(reader.marks, model.marks, "a mark was dropped, seed {seed}");
            }
            assert!(model.readers.is_empty() || model.log.weight() == 0);
        }
    }

    #[test]
    fn a_holder_fills_the_log_and_a_skipper_never_does() {
        let mut log = Log::new(1_000);
        let skip = log.attach(Lag::Skip);
        (0..10).for_each(|n| log.push(output(n, 300)));
        assert!(!log.is_full());
        assert_eq!(log.next(skip), Some(Item::Missed { bytes: 2_400 }));
        let hold = log.attach(Lag::Hold);
        assert_eq!(log.room(), 1_000 - 2 * (300 + ENTRY_OVERHEAD_BYTES), "it holds what was still there");
        (0..2).for_each(|n| log.push(output(n, 300)));
        assert!(log.is_full() && log.room() == 0);
        while log.next(hold).is_some() {
            log.advance(hold);
        }
        assert!(!log.is_full());
    }

    #[test]
    fn what_an_entry_has_elsewhere_in_memory_weighs_too() {
        let mut log = Log::new(1_000);
        log.attach(Lag::Hold);
        let words = vec![b'?'; 700].into();
        let now = Instant::now();
        log.push(Entry::Waits(Box::new(Prompt { program: "sudo".to_owned(), prompt: words, since: now, until: now })));
        assert!(log.weight() >= 704 + size_of::<Prompt>() + ENTRY_OVERHEAD_BYTES, "{}", log.weight());
    }

    /// Without the weight of the entries themselves, a command that writes single bytes would cost many times its log.
    #[test]
    fn many_short_writes_weigh_more_than_their_bytes() {
        assert!(size_of::<(u64, Entry)>() <= ENTRY_OVERHEAD_BYTES, "{} bytes", size_of::<(u64, Entry)>());
        let capacity = 1_000 * (ENTRY_OVERHEAD_BYTES + 1);
        for (lag, pushed) in [(Lag::Hold, 1_000), (Lag::Skip, 100_000)] {
            let mut log = Log::new(capacity);
            let reader = log.attach(lag);
            let writes = (0..pushed).take_while(|_| {
                let has_room = !log.is_full();
                if has_room {
                    log.push(output(1, 1));
                }
                has_room
            });
            assert_eq!(writes.count(), pushed);
            assert_eq!((log.entries.len(), log.is_full()), (1_000, lag == Lag::Hold), "{lag:?}");
            let missed = (lag == Lag::Skip).then_some(Item::Missed { bytes: 99_000 });
            assert_eq!(log.next(reader), missed.or(Some(Item::Entry(&output(1, 1)))));
        }
    }

    #[test]
    fn entries_that_are_not_output_are_never_missed() {
        let mut log = Log::new(1_000);
        let skip = log.attach(Lag::Skip);
        log.push(Entry::WantedInput { program: "less".into(), has_ended: true });
        (0..10).for_each(|n| log.push(output(n, 500)));
        log.push(Entry::Exited { exit: Exit::Code(3) });
        let mut kinds = Vec::new();
        while let Some(item) = log.next(skip) {
            kinds.push(match item {
                Item::Missed { bytes } => format!("missed {bytes}"),
                Item::Entry(Entry::Output { bytes, .. }) => format!("output {}", bytes.len()),
                Item::Entry(entry) => format!("{entry:?}"),
            });
            log.advance(skip);
        }
        assert_eq!(kinds.len(), 4, "{kinds:?}");
        assert_eq!(kinds[0], "missed 4500");
        assert_eq!(kinds[1], "WantedInput { program: \"less\", has_ended: true }");
        assert_eq!(kinds[3], "Exited { exit: Code(3) }");
    }
}
