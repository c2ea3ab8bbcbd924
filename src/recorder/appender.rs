//! Writes records to the journal's file, or keeps them until it can.
//!
//! Invariants: records reach the file in the order in which they were pushed; a bounded amount of them waits in memory,
//! and the file counts those that were given up; the host learns once that writing fails, and once that it works again;
//! every file begins with the starts of the runs that were under way, so that it is complete in itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use super::bounds::Bounds;
use super::names;
use super::queue::{RecordQueue, Unwritten};
use super::session::Session;
use super::volume::{Resumed, Volume};
use crate::journal::record::{OpenRecord, StartRecord, timestamp};
use crate::journal::status::{Done, RecorderStatus};
use crate::text::reason::reason;

/// How long a line may stay in the kernel's memory before it is synced to the disk.
const SYNC_AFTER: Duration = Duration::from_secs(5);

/// The runs that are already in the file of a recorder that died.
#[derive(Debug, Default)]
pub(super) struct AlreadyWritten {
    /// The runs without an end.
    pub(super) open: BTreeSet<u64>,
    pub(super) ended: BTreeSet<u64>,
    /// How many of the records that the host sends again and that belong to no start and no end are in the file.
    pub(super) asides: usize,
}

/// The journal's file and the records that wait for it.
#[derive(Debug)]
pub(super) struct Appender {
    session: Session,
    /// The first line of every file, but for its time.
    open: OpenRecord,
    volume: Option<Volume>,
    /// The file that the next one continues: that of a recorder that died, where it stays locked.
    continues: Option<String>,
    /// Runs whose start was written and whose end was not.
    running: BTreeMap<u64, Rc<StartRecord>>,
    /// The running ones whose start this file does not have yet.
    again: VecDeque<u64>,
    queue: RecordQueue,
    file_max: u64,
    /// Records that were given up and are not yet counted in the file.
    dropped: u64,
    retry_every: Duration,
    /// When to try again. `None` while writing works.
    retry_at: Option<Instant>,
    sync_at: Option<Instant>,
    done: Done,
    news: Vec<RecorderStatus>,
}

impl Appender {
    /// Opens a journal, or goes on in the one of a recorder that died. A file that cannot be made is tried again like
    /// any other failure.
    pub(super) fn new(session: Session, bounds: &Bounds) -> (Appender, AlreadyWritten) {
        let (pid, version) = (session.host, env!("CARGO_PKG_VERSION").to_owned());
        let open = OpenRecord { pid, started: names::started(pid), version, ..OpenRecord::default() };
        let mut appender = Appender {
            session,
            open,
            volume: None,
            continues: None,
            running: BTreeMap::new(),
            again: VecDeque::new(),
            queue: RecordQueue::new(bounds.queue_bytes),
            file_max: bounds.file_bytes,
            dropped: 0,
            retry_every: bounds.retry,
            retry_at: None,
            sync_at: None,
            done: Done::default(),
            news: Vec::new(),
        };
        let known = appender.resume();
        appender.flush(Instant::now());
        (appender, known)
    }

    /// Goes on where a recorder that died stopped. Returns the runs in its files.
    fn resume(&mut self) -> AlreadyWritten {
        let mut known = AlreadyWritten::default();
        let Some(from) = self.session.resume.clone() else { return known };
        let (mut name, mut since) = (from.name, from.length);
        while let Ok(resumed) = Volume::resume(&self.session.home, &name, since, &self.open) {
            let (mut tail, volume, next) = match resumed {
                Resumed::Here(volume, tail) => (tail, Some(volume), None),
                Resumed::Next(next, tail) => (tail, None, Some(next)),
                Resumed::Anew(tail) => {
                    self.continues = Some(name.clone());
                    (tail, None, None)
                }
            };
            known.ended.append(&mut tail.ended);
            known.asides += tail.asides;
            if let Some(volume) = volume {
                known.open.extend(tail.open.keys());
                self.take(volume);
            }
            let Some(next) = next else { break };
            (name, since) = (next, 0);
        }
        known
    }

    pub(super) fn volume(&self) -> Option<&Volume> {
        self.volume.as_ref()
    }

    /// Takes over a run whose start an earlier recorder wrote to this file.
    pub(super) fn adopt(&mut self, start: Rc<StartRecord>) {
        self.done.starts.push(start.card.seq);
        self.running.insert(start.card.seq, start);
    }

    /// Acknowledges the end of a run whose end is in the file already or will never be there.
    pub(super) fn pass_over(&mut self, seq: u64) {
        self.done.ends.push(seq);
    }

    /// Acknowledges a record that belongs to no start and no end, and that the file has already.
    pub(super) fn pass_over_aside(&mut self) {
        self.done.asides += 1;
    }

    /// Writes a record, or keeps it until that works. Drops the oldest records if too many wait.
    pub(super) fn push(&mut self, record: Unwritten, now: Instant) {
        self.queue.push(record);
        self.flush(now);
        while let Some(oldest) = self.queue.pop_excess() {
            self.dropped += match oldest {
                Unwritten::Dropped(count) => count,
                _ => 1,
            };
            self.acknowledge(&oldest);
        }
    }

    fn acknowledge(&mut self, record: &Unwritten) {
        match record {
            Unwritten::Start(start) => self.done.starts.push(start.card.seq),
            Unwritten::End(end) => self.done.ends.push(end.start.card.seq),
            Unwritten::Input(_) | Unwritten::Unseen(_) | Unwritten::Destroyed(_) => self.done.asides += 1,
            Unwritten::Dropped(count) => self.done.dropped += count,
        }
    }

    /// The acknowledgements since the last call, and the file's length.
    pub(super) fn take_done(&mut self) -> Done {
        let done = std::mem::take(&mut self.done);
        Done { length: self.volume.as_ref().map_or(0, Volume::length), ..done }
    }

    /// How many records were acknowledged since [`Appender::take_done`].
    pub(super) fn done_records(&self) -> usize {
        self.done.records() + usize::from(self.done.dropped > 0)
    }

    /// Returns true if records wait because the file cannot be written.
    pub(super) fn is_failing(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Tries again, if it is time.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.flush(now);
        }
    }

    /// Returns true if it is time for [`Appender::sync`].
    pub(super) fn is_sync_due(&self, now: Instant) -> bool {
        self.sync_at.is_some_and(|at| at <= now)
    }

    /// Writes the records that wait, if that works, and lets go of the file. If the host has left in order, closes it.
    pub(super) fn finish(&mut self, is_in_order: bool) {
        if self.retry_at.is_some() {
            self.flush(Instant::now());
        }
        if is_in_order
            && self.queue.is_empty()
            && let Err(error) = self.close()
        {
            self.fail(&error, Instant::now());
        }
        if let Some(volume) = self.volume.take() {
            volume.release();
        }
    }

    /// When [`Appender::tick`] has something to do, or a sync is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.sync_at].into_iter().flatten().min()
    }

    pub(super) fn sync(&mut self) {
        self.sync_at = None;
        if let Some(volume) = &self.volume {
            volume.sync();
        }
    }

    /// The reports that were not sent to the host yet, oldest first.
    pub(super) fn take_news(&mut self) -> Vec<RecorderStatus> {
        std::mem::take(&mut self.news)
    }

    fn flush(&mut self, now: Instant) {
        match self.write_queue() {
            Ok(()) => {
                self.sync_at.get_or_insert(now + SYNC_AFTER);
                if self.retry_at.take().is_some() {
                    self.news.push(RecorderStatus::Say("journal is written again".to_owned()));
                }
            }
            Err(error) => self.fail(&error, now),
        }
    }

    fn fail(&mut self, error: &io::Error, now: Instant) {
        if self.retry_at.replace(now + self.retry_every).is_none() {
            let path =
                self.volume.as_ref().map_or_else(|| self.session.home.path.clone(), |volume| volume.path().to_owned());
            self.news.push(RecorderStatus::Say(format!(
                "journal cannot be written: {}: {}; records are kept in memory and retried",
                path.display(),
                reason(error)
            )));
        }
    }

    /// Gives up a file that another program removed, replaced or truncated.
    fn check(&mut self) {
        let Some(volume) = &mut self.volume else { return };
        if let Some(harm) = volume.harm() {
            let (path, verb) = (volume.path().display(), harm.verb());
            self.news.push(RecorderStatus::Say(format!("journal was {verb}: {path}; it goes on in a new file")));
            self.volume = None;
        }
    }

    fn write_queue(&mut self) -> io::Result<()> {
        self.check();
        if self.volume.is_none() {
            self.begin()?;
        }
        self.write_again()?;
        if self.dropped > 0 {
            let volume = self.volume.as_mut().ok_or(io::ErrorKind::NotFound)?;
            volume.write_dropped(self.dropped)?;
            self.dropped = 0;
        }
        while let Some(next) = self.queue.pop() {
            if let Err(error) = self.write(&next) {
                self.queue.put_back(next);
                return Err(error);
            }
            self.acknowledge(&next);
        }
        Ok(())
    }

    /// Writes the records that wait, then the last line.
    fn close(&mut self) -> io::Result<()> {
        self.write_queue()?;
        self.volume.as_mut().map_or(Ok(()), |volume| volume.close(None))
    }

    /// Makes the first file, or one in place of a file that was given up or stays locked.
    fn begin(&mut self) -> io::Result<()> {
        let volume = self.new_volume(self.continues.clone())?;
        self.continues = None;
        self.take(volume);
        Ok(())
    }

    fn new_volume(&self, continues: Option<String>) -> io::Result<Volume> {
        let open = OpenRecord { time: timestamp(SystemTime::now()), continues, ..self.open.clone() };
        Volume::begin(&self.session.home, &self.session.time, &open)
    }

    fn take(&mut self, volume: Volume) {
        self.news.push(RecorderStatus::File(volume.name().to_owned()));
        self.again = self.running.keys().copied().collect();
        self.volume = Some(volume);
    }

    /// Writes the starts that a new file does not have yet.
    fn write_again(&mut self) -> io::Result<()> {
        let Some(volume) = &mut self.volume else { return Ok(()) };
        while let Some(seq) = self.again.front() {
            if let Some(start) = self.running.get(seq) {
                let lines = volume.start_lines(start);
                volume.write_start(*seq, &lines)?;
            }
            self.again.pop_front();
            if self.again.is_empty() {
                volume.settle();
            }
        }
        Ok(())
    }

    /// Goes on in a new file. The new one is made before the old one is closed, so that there is always a file to go
    /// on in.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(old) = &self.volume else { return Ok(()) };
        let new = self.new_volume(Some(old.name().to_owned()))?;
        let old = self.volume.as_mut().expect("it was there");
        old.close(Some(new.name())).inspect_err(|_| new.discard(&self.session.home))?;
        old.release();
        self.take(new);
        Ok(())
    }

    fn write(&mut self, record: &Unwritten) -> io::Result<()> {
        let volume = self.volume.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let mut lines = record.lines(volume);
        // If no new file can be made, the old one goes on.
        if volume.is_full_for(lines.iter().map(Vec::len).sum(), self.file_max) && self.rotate().is_ok() {
            // A record refers to texts in its own file. It waits until that has what runs.
            self.write_again()?;
            lines = self.volume.as_mut().map_or(lines, |volume| record.lines(volume));
        }
        let volume = self.volume.as_mut().ok_or(io::ErrorKind::NotFound)?;
        match record {
            Unwritten::Start(start) => {
                volume.write_start(start.card.seq, &lines)?;
                self.running.insert(start.card.seq, Rc::clone(start));
            }
            Unwritten::End(end) => {
                volume.write_end(end.start.card.seq, &lines)?;
                self.running.remove(&end.start.card.seq);
            }
            Unwritten::Input(input) => volume.write_input(input)?,
            Unwritten::Unseen(unseen) => volume.write_unseen(unseen)?,
            Unwritten::Destroyed(destroyed) => volume.write_destroyed(destroyed)?,
            Unwritten::Dropped(count) => volume.write_dropped(*count)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
