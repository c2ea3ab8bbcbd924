//! Writes records to the journal's file, or keeps them until it can.
//!
//! Invariants: records reach the file in the order they were pushed; at most `queue_max` bytes wait in memory, and how
//! many were given up is written as a record of its own; a failure is told once, and its end once; every file has the
//! starts of the runs that were under way when it began, so that it is complete in itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use super::Session;
use super::home::prepare;
use super::names;
use super::volume::{Resumed, Volume};
use crate::journal::record::{EndRecord, OpenRecord, StartRecord, timestamp};
use crate::journal::status::{Done, RecorderStatus};
use crate::text::reason::reason;

/// How long what was written may wait for the disk.
const SYNC_AFTER: Duration = Duration::from_secs(5);

/// What is written.
#[derive(Debug)]
pub(super) enum Unwritten {
    Start(Rc<StartRecord>),
    End(Box<EndRecord>),
    /// The host gave up so many.
    Dropped(u64),
}

impl Unwritten {
    /// About what it takes in memory.
    fn weight(&self) -> usize {
        let words = |exec: &[String], command: &str| exec.iter().map(String::len).sum::<usize>() + command.len() + 512;
        match self {
            Unwritten::Start(start) => words(&start.exec, &start.command),
            Unwritten::End(run) => words(&run.start.exec, &run.start.command) + run.output.text.len(),
            Unwritten::Dropped(_) => 64,
        }
    }

    fn lines(&self, volume: &mut Volume) -> Vec<Vec<u8>> {
        match self {
            Unwritten::Start(start) => volume.start_lines(start),
            Unwritten::End(run) => volume.end_lines(run),
            Unwritten::Dropped(_) => Vec::new(),
        }
    }
}

/// What the file of a recorder that died has already.
#[derive(Debug, Default)]
pub(super) struct AlreadyWritten {
    pub(super) open: BTreeSet<u64>,
    pub(super) ended: BTreeSet<u64>,
}

/// The journal's file and the records that wait for it.
#[derive(Debug)]
pub(super) struct Appender {
    session: Session,
    /// The first line of every file, but for its time.
    open: OpenRecord,
    volume: Option<Volume>,
    /// Runs whose start was written and whose end was not.
    running: BTreeMap<u64, Rc<StartRecord>>,
    /// Those of them that this file has not yet.
    again: VecDeque<u64>,
    queue: VecDeque<Unwritten>,
    queued_bytes: usize,
    pub(super) queue_max: usize,
    pub(super) file_max: u64,
    dropped: u64,
    pub(super) retry_every: Duration,
    retry_at: Option<Instant>,
    sync_at: Option<Instant>,
    done: Done,
    news: Vec<RecorderStatus>,
}

impl Appender {
    /// Opens a journal, or goes on in the one of a recorder that died. When its file cannot be made, that is one more
    /// failure to retry.
    pub(super) fn new(session: Session, limits: &super::Bounds) -> (Appender, AlreadyWritten) {
        let (pid, version) = (session.host, env!("CARGO_PKG_VERSION").to_owned());
        let open = OpenRecord { pid, started: names::started(pid), version, ..OpenRecord::default() };
        let mut appender = Appender {
            session,
            open,
            volume: None,
            running: BTreeMap::new(),
            again: VecDeque::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            queue_max: limits.queue_bytes,
            file_max: limits.file_bytes,
            dropped: 0,
            retry_every: limits.retry,
            retry_at: None,
            sync_at: None,
            done: Done::default(),
            news: Vec::new(),
        };
        let known = appender.resume().unwrap_or_default();
        appender.flush(Instant::now());
        (appender, known)
    }

    fn resume(&mut self) -> io::Result<AlreadyWritten> {
        let mut known = AlreadyWritten::default();
        let Some(from) = self.session.resume.clone() else { return Ok(known) };
        let (mut name, mut since) = (from.name, from.length);
        loop {
            match Volume::resume(&self.session.home, &name, since, &self.open)? {
                Resumed::Here(volume, mut tail) => {
                    known.ended.append(&mut tail.ended);
                    known.open.extend(tail.open.keys());
                    self.take(volume);
                    return Ok(known);
                }
                Resumed::Next(next, mut tail) => {
                    known.ended.append(&mut tail.ended);
                    (name, since) = (next, 0);
                }
            }
        }
    }

    /// The file that is written.
    pub(super) fn volume(&self) -> Option<&Volume> {
        self.volume.as_ref()
    }

    /// This run's start is in the file, although another recorder wrote it.
    pub(super) fn adopt(&mut self, start: Rc<StartRecord>) {
        self.done.starts.push(start.seq);
        self.running.insert(start.seq, start);
    }

    /// This run's end is in the file already, or will never be there.
    pub(super) fn pass_over(&mut self, seq: u64) {
        self.done.ends.push(seq);
    }

    /// Writes this record, or keeps it.
    pub(super) fn push(&mut self, record: Unwritten, now: Instant) {
        self.queued_bytes += record.weight();
        self.queue.push_back(record);
        self.flush(now);
        while self.queued_bytes > self.queue_max {
            let Some(oldest) = self.queue.pop_front() else { break };
            self.queued_bytes -= oldest.weight();
            self.dropped += match oldest {
                Unwritten::Dropped(count) => count,
                Unwritten::Start(_) | Unwritten::End(_) => 1,
            };
            self.acknowledge(&oldest);
        }
    }

    fn acknowledge(&mut self, record: &Unwritten) {
        match record {
            Unwritten::Start(start) => self.done.starts.push(start.seq),
            Unwritten::End(run) => self.done.ends.push(run.start.seq),
            Unwritten::Dropped(count) => self.done.dropped += count,
        }
    }

    /// What has reached the file since the last call, and how long that is.
    pub(super) fn take_done(&mut self) -> Done {
        let done = std::mem::take(&mut self.done);
        Done { length: self.volume.as_ref().map_or(0, Volume::length), ..done }
    }

    /// Records that have reached the file since then.
    pub(super) fn done_records(&self) -> usize {
        self.done.records() + usize::from(self.done.dropped > 0)
    }

    /// Retries what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.flush(now);
        }
    }

    /// Whether what was written is to be put on the disk now.
    pub(super) fn is_sync_due(&self, now: Instant) -> bool {
        self.sync_at.is_some_and(|at| at <= now)
    }

    /// Tries once more at the very end, when a failure is not over yet.
    fn retry(&mut self) {
        if self.retry_at.is_some() {
            self.flush(Instant::now());
        }
    }

    /// The host has gone, in order or not: what waits is written if that goes, and the file is anybody's.
    pub(super) fn finish(&mut self, is_in_order: bool) {
        self.retry();
        if is_in_order && self.queue.is_empty() {
            self.queue.clear();
            let mut close = || -> io::Result<()> {
                self.check();
                if self.volume.is_none() {
                    self.begin()?;
                }
                self.write_queue()?;
                self.volume.as_mut().map_or(Ok(()), |volume| volume.close(None))
            };
            if let Err(error) = close() {
                self.fail(&error, Instant::now());
            }
        }
        if let Some(volume) = self.volume.take() {
            volume.release();
        }
    }

    /// When `tick` has something to do, or a sync is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.sync_at].into_iter().flatten().min()
    }

    /// Puts what was written on the disk.
    pub(super) fn sync(&mut self) {
        self.sync_at = None;
        if let Some(volume) = &self.volume {
            volume.sync();
        }
    }

    /// What the host should be told, oldest first.
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
                self.volume.as_ref().map_or_else(|| self.session.home.clone(), |volume| volume.path().to_owned());
            self.news.push(RecorderStatus::Say(format!(
                "journal cannot be written: {}: {}; records are kept in memory and retried",
                path.display(),
                reason(error)
            )));
        }
    }

    /// Leaves a file that is not what it was.
    fn check(&mut self) {
        let Some(volume) = &mut self.volume else { return };
        if let Some(harm) = volume.harm() {
            let (path, verb) = (volume.path().display(), harm.verb());
            self.news.push(RecorderStatus::Say(format!("journal was {verb}: {path}; a new one is begun")));
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
        while let Some(next) = self.queue.pop_front() {
            let written = self.write(&next);
            if written.is_err() {
                self.queue.push_front(next);
                return written;
            }
            self.queued_bytes -= next.weight();
            self.acknowledge(&next);
        }
        Ok(())
    }

    /// Makes the first file, or one in place of a file that is no good any more.
    fn begin(&mut self) -> io::Result<()> {
        prepare(&self.session.home, self.session.uid).map_err(io::Error::other)?;
        let volume = self.new_volume(None)?;
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

    /// Writes the starts that a new file has not yet.
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

    /// Goes on in a new file. The old one is closed first, so that there is one to go on in at every moment.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(old) = &self.volume else { return Ok(()) };
        let new = self.new_volume(Some(old.name().to_owned()))?;
        let old = self.volume.as_mut().expect("it was there");
        old.close(Some(new.name())).inspect_err(|_| drop(std::fs::remove_file(new.path())))?;
        old.release();
        self.take(new);
        self.write_again()
    }

    fn write(&mut self, record: &Unwritten) -> io::Result<()> {
        let volume = self.volume.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let mut lines = record.lines(volume);
        // A new file that cannot be made is no reason to give up the old one.
        if volume.is_full_for(lines.iter().map(Vec::len).sum(), self.file_max) && self.rotate().is_ok() {
            lines = self.volume.as_mut().map_or(lines, |volume| record.lines(volume));
        }
        let volume = self.volume.as_mut().ok_or(io::ErrorKind::NotFound)?;
        match record {
            Unwritten::Start(start) => {
                volume.write_start(start.seq, &lines)?;
                self.running.insert(start.seq, Rc::clone(start));
            }
            Unwritten::End(run) => {
                volume.write_end(run.start.seq, &lines)?;
                self.running.remove(&run.start.seq);
            }
            Unwritten::Dropped(count) => volume.write_dropped(*count)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::super::Bounds;
    use super::*;

    fn says(news: &[RecorderStatus]) -> Vec<&str> {
        news.iter()
            .filter_map(|status| if let RecorderStatus::Say(text) = status { Some(text.as_str()) } else { None })
            .collect()
    }

    #[test]
    fn the_oldest_records_go_when_memory_is_full() {
        let home = std::env::temp_dir().join(format!("rexec-appender-{}", std::process::id()));
        let uid = fs::metadata("/proc/self").unwrap().uid();
        prepare(&home, uid).unwrap();
        let now = Instant::now();
        let most = 3 * 600;
        let limits = Bounds { queue_bytes: most, retry: Duration::from_secs(5), ..Bounds::default() };
        let (mut appender, _) = Appender::new(Session::new(&home, uid, std::process::id()), &limits);
        assert!(says(&appender.take_news()).is_empty());
        // A directory that is not ours to write in stands for every disk that fails.
        fs::remove_dir_all(&home).unwrap();
        fs::write(&home, "in the way").unwrap();
        for seq in 0..10 {
            appender.push(
                Unwritten::Start(Rc::new(StartRecord { seq, command: "0123456789".into(), ..StartRecord::default() })),
                now,
            );
            assert!(appender.queued_bytes <= most);
        }
        let news = appender.take_news();
        let notices = says(&news);
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(
            notices[0].starts_with("journal was removed: ") && notices[1].starts_with("journal cannot be written: ")
        );
        assert_eq!(appender.take_done().starts, (0..7).collect::<Vec<_>>(), "those that are counted");
        appender.tick(now + Duration::from_secs(4));
        assert!(appender.take_news().is_empty());
        fs::remove_file(&home).unwrap();
        appender.tick(now + Duration::from_secs(5));
        assert_eq!(says(&appender.take_news()), ["journal is written again"]);
        let text = fs::read_to_string(appender.volume().unwrap().path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].contains("\"open\"") && lines[1].contains("\"count\":7"));
        assert!(lines[2].contains("\"seq\":7") && lines[4].contains("\"seq\":9"));
        assert_eq!(appender.take_done().starts, [7, 8, 9]);
        fs::remove_dir_all(&home).unwrap();
    }
}
