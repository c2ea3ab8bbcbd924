//! One file of a journal.
//!
//! Invariants: a record is one write of one whole line; a text that a record refers to stands before it in the same
//! file; a file that another program truncated, replaced or removed is noticed before the next record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::append::{append_line, open_append_new, undo};
use super::directory::open_file;
use super::home::JournalHome;
use super::names::{self, first_line};
use super::summary_file::SummaryMaker;
use super::tail::Tail;
use crate::journal::reader::closing;
use crate::journal::record::{
    CloseRecord, DestroyedRecord, DroppedRecord, EndRecord, Environments, InputRecord, MarkRecord, OpenRecord,
    StartRecord, Texts, UnseenRecord, line, timestamp,
};
use crate::limits;

/// How many journals may begin within one second. Beyond it, beginning one fails.
const NAMES_MAX: u32 = 1000;
/// How long the file of a recorder that has died may stay locked: on a busy machine, a process that was killed takes its
/// time to end. Beyond it, the journal goes on in a new file.
const LOCK_WAIT: Duration = if cfg!(test) { Duration::from_millis(20) } else { Duration::from_secs(5) };

/// A journal's file that is being written.
#[derive(Debug)]
pub(super) struct Volume {
    file: File,
    path: PathBuf,
    name: String,
    length: u64,
    /// The file ends in the middle of a line.
    torn: bool,
    texts: Texts,
    environments: Environments,
    /// How many runs have a record in the file.
    commands: u64,
    /// The runs that began and have not ended, each with the offset of its start.
    open: BTreeMap<u64, u64>,
    /// The length at the last mark.
    marked: u64,
    summary: Box<SummaryMaker>,
    /// The length once the starts of the runs under way were repeated.
    base: u64,
}

/// Where a journal goes on whose recorder has died.
#[derive(Debug)]
pub(super) enum Resumed {
    /// In the file that was asked for, with its tail.
    Here(Volume, Tail),
    /// In the file of this name. The end of the file that was asked for says so, and the rest.
    Next(String, Tail),
    /// In a new file, because the one that was asked for, with this end, stays locked.
    Anew(Tail),
}

/// What another program did to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Removed,
    Replaced,
    Truncated,
}

impl Harm {
    /// The participle for a sentence: the journal was …
    pub(super) fn verb(self) -> &'static str {
        match self {
            Harm::Removed => "removed",
            Harm::Replaced => "replaced by another file",
            Harm::Truncated => "truncated",
        }
    }
}

impl Volume {
    /// Makes a new file under the next free name of this second, with its first line.
    pub(super) fn begin(home: &JournalHome, time: &str, open: &OpenRecord) -> io::Result<Volume> {
        let directory = home.prepare().map_err(io::Error::other)?;
        for number in 1..NAMES_MAX {
            let name = names::join(time, number);
            match open_append_new(&names::path(&directory.path(), &name)) {
                Ok(file) => {
                    // A repair leaves a locked file alone. Where locks do not work, only that protection is lost.
                    let _ = file.try_lock();
                    let mut volume = Volume::new(file, names::path(&home.path, &name), name, 0);
                    // An empty file would cost the next attempt a name.
                    volume.write(&line("open", open)).inspect_err(|_| volume.discard(home))?;
                    return Ok(volume);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Goes on in the file of a recorder that died. `since` is the offset before which the host knows every record.
    ///
    /// # Errors
    /// If there is no such file any more, or it belongs to another host.
    pub(super) fn resume(home: &JournalHome, name: &str, since: u64, host: &OpenRecord) -> io::Result<Resumed> {
        let directory = home.open().map_err(io::Error::other)?;
        let path = names::path(&home.path, name);
        let there = names::path(&directory.path(), name);
        let file = open_file(&there, OpenOptions::new().read(true).append(true))?;
        let is_own = first_line(&file).is_some_and(|open| (open.pid, open.started) == (host.pid, host.started));
        if !is_own {
            return Err(io::ErrorKind::NotFound.into());
        }
        let has_lock = lock(&file);
        let tail = Tail::read(&file, since)?;
        if !has_lock {
            return Ok(Resumed::Anew(tail));
        }
        if tail.is_closed {
            let next = closing(&file)?.and_then(|close| close.next).ok_or(io::ErrorKind::NotFound)?;
            return Ok(Resumed::Next(next, tail));
        }
        if tail.length < since {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut volume = Volume::new(file, path, name.to_owned(), tail.length);
        (volume.torn, volume.commands, volume.open) = (tail.is_torn, tail.commands, tail.open.clone());
        Ok(Resumed::Here(volume, tail))
    }

    fn new(file: File, path: PathBuf, name: String, length: u64) -> Volume {
        let (texts, open, summary) = (Texts::new(length), BTreeMap::new(), Box::new(SummaryMaker::begin(&path, &file)));
        Volume {
            file,
            path,
            name,
            length,
            torn: false,
            texts,
            environments: Environments::new(length),
            commands: 0,
            open,
            marked: length,
            summary,
            base: length,
        }
    }

    /// Removes the useless file.
    pub(super) fn discard(&self, home: &JournalHome) {
        if let Ok(directory) = home.open() {
            let _ = fs::remove_file(names::path(&directory.path(), &self.name));
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Notes that the file has the starts of all runs that were under way when it began.
    pub(super) fn settle(&mut self) {
        self.base = self.length;
    }

    /// Returns true if a record of this size would make the file longer than `bytes_max`. New records always get half
    /// of that, however much room the starts of the runs under way took.
    pub(super) fn is_full_for(&self, bytes: usize, bytes_max: u64) -> bool {
        self.length + bytes as u64 > bytes_max.max(self.base + bytes_max / 2)
    }

    /// Checks whether the file is still as the last record left it.
    pub(super) fn harm(&mut self) -> Option<Harm> {
        let Ok(ours) = self.file.metadata() else { return None };
        if ours.nlink() == 0 {
            return Some(Harm::Removed);
        }
        match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Harm::Removed),
            Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => return Some(Harm::Replaced),
            _ => {}
        }
        if ours.len() < self.length {
            return Some(Harm::Truncated);
        }
        if ours.len() > self.length {
            // Another program has written, perhaps not whole lines.
            self.torn = true;
            self.length = ours.len();
        }
        None
    }

    /// The lines of a start record, those that it refers to first.
    pub(super) fn start_lines(&mut self, start: &StartRecord) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let start = self.texts.shorten(start, &mut lines);
        let start = self.environments.refer(start, &mut lines);
        lines.push(line("start", start.as_ref()));
        lines
    }

    /// The lines of an end record, texts first.
    pub(super) fn end_lines(&mut self, record: &EndRecord) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let line = match self.texts.shorten(&record.start, &mut lines) {
            Cow::Borrowed(_) => record.line(),
            Cow::Owned(start) => EndRecord { start, ..record.clone() }.line(),
        };
        lines.push(line);
        lines
    }

    pub(super) fn write_start(&mut self, seq: u64, lines: &[Vec<u8>]) -> io::Result<()> {
        let at = self.write_all(lines)?;
        self.commands += u64::from(self.open.insert(seq, at).is_none());
        self.mark();
        Ok(())
    }

    pub(super) fn write_end(&mut self, seq: u64, lines: &[Vec<u8>]) -> io::Result<()> {
        self.write_all(lines)?;
        self.commands += u64::from(self.open.remove(&seq).is_none());
        self.mark();
        Ok(())
    }

    pub(super) fn write_dropped(&mut self, count: u64) -> io::Result<()> {
        self.write(&line("dropped", &DroppedRecord { count, time: timestamp(SystemTime::now()) })).map(drop)
    }

    /// Writes that a person typed for a run.
    pub(super) fn write_input(&mut self, input: &InputRecord) -> io::Result<()> {
        self.write(&line("input", input)).map(drop)
    }

    /// Writes that commands ran without a host.
    pub(super) fn write_unseen(&mut self, unseen: &UnseenRecord) -> io::Result<()> {
        self.write(&line("unseen", unseen)).map(drop)
    }

    /// Writes what a run has destroyed.
    pub(super) fn write_destroyed(&mut self, destroyed: &DestroyedRecord) -> io::Result<()> {
        self.write(&line("destroyed", destroyed)).map(drop)
    }

    /// Writes the last line. `next` is the name of the file in which the journal goes on.
    pub(super) fn close(&mut self, next: Option<&str>) -> io::Result<()> {
        let (time, commands) = (timestamp(SystemTime::now()), Some(self.commands));
        self.write(&line("close", &CloseRecord { time, commands, next: next.map(str::to_owned) }))?;
        if self.summary.extend(&self.file, u64::MAX).is_ok() {
            let _ = self.summary.store(&self.path, &self.file);
        }
        Ok(())
    }

    pub(super) fn sync(&self) {
        // A disk that cannot sync will refuse the next write, and that is reported.
        let _ = self.file.sync_data();
    }

    /// Unlocks the file. Dropping it would not do: a process that is being forked at this moment shares the lock.
    pub(super) fn release(&self) {
        self.sync();
        let _ = self.file.unlock();
    }

    /// Writes lines one by one. Returns the offset of the last one.
    fn write_all(&mut self, lines: &[Vec<u8>]) -> io::Result<u64> {
        let mut at = self.length;
        for line in lines {
            at = self.write(line).inspect_err(|_| {
                self.texts.forget();
                self.environments.forget();
            })?;
        }
        Ok(at)
    }

    /// Writes a mark if the last one is far behind. If that fails, a reader merely has more to read.
    fn mark(&mut self) {
        if self.length >= self.marked + limits::JOURNAL_MARK_BYTES {
            let open = self.open.iter().map(|(&seq, &at)| (seq, at)).collect();
            if self.write(&line("mark", &MarkRecord { commands: self.commands, open })).is_ok() {
                self.marked = self.length;
            }
            self.summarize();
        }
    }

    /// Takes what is new into the summary, and writes it if it is far ahead of the one beside the file. If that fails, a
    /// reader merely has more to read.
    fn summarize(&mut self) {
        if self.summary.extend(&self.file, u64::MAX).is_ok() && self.summary.is_due() {
            let _ = self.summary.store(&self.path, &self.file);
        }
    }

    /// Writes one line. Returns its offset.
    fn write(&mut self, line: &[u8]) -> io::Result<u64> {
        let lead = u64::from(self.torn);
        let written = append_line(&self.file, line, &mut self.torn, undo);
        match written {
            Ok(()) => {
                let at = self.length + lead;
                self.length = at + line.len() as u64;
                Ok(at)
            }
            Err(error) => {
                // Part of the line may have stayed.
                self.length = self.file.metadata().map_or(self.length, |metadata| metadata.len());
                Err(error)
            }
        }
    }
}

/// Locks the file, which a dying recorder may hold for another moment. Returns true if that worked, or if locks do not
/// work there.
#[expect(clippy::disallowed_methods, reason = "the recorder may wait for its disk")]
fn lock(file: &File) -> bool {
    let patience = Instant::now() + LOCK_WAIT;
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::Error(error)) => return error.kind() == io::ErrorKind::Unsupported,
            Err(TryLockError::WouldBlock) if Instant::now() >= patience => return false,
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
}
