//! One file of a journal.
//!
//! Invariants: a record is one write of one whole line; a write that fails leaves either no trace or a torn line that
//! the next record's leading newline ends; what a record refers to stands before it in the same file; a file that
//! somebody truncated, replaced or removed is noticed before the next record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::names::{first_line, join};
use super::tail::Tail;
use crate::journal::reader::closing;
use crate::journal::record::{
    CloseRecord, DroppedRecord, EndRecord, MarkRecord, OpenRecord, StartRecord, Texts, line, timestamp,
};
use crate::limits;

/// How many journals may begin within one second.
const NAMES_MAX: u32 = 1000;
/// How long the recorder before may take to let go of the file, once it is dead.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Volume {
    file: File,
    path: PathBuf,
    name: String,
    length: u64,
    /// The file ends in the middle of a line.
    torn: bool,
    texts: Texts,
    /// Runs of which there is a record.
    commands: u64,
    /// Runs that began and have not ended, each with the place of its start.
    open: BTreeMap<u64, u64>,
    /// The length at the last mark.
    marked: u64,
    /// The length when what runs had been written again.
    base: u64,
}

/// Where a journal whose recorder died goes on.
#[derive(Debug)]
pub(super) enum Resumed {
    /// In this file, which says this.
    Here(Volume, Tail),
    /// In the one of this name; the file before says this.
    Next(String, Tail),
}

/// What happened to a file behind the recorder's back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    Removed,
    Replaced,
    Truncated,
}

impl Harm {
    /// As a sentence says it.
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
    pub(super) fn begin(home: &Path, time: &str, open: &OpenRecord) -> io::Result<Volume> {
        for number in 1..NAMES_MAX {
            let name = join(time, number);
            let path = home.join(format!("{name}.jsonl"));
            match open_append_new(&path) {
                Ok(file) => {
                    // Whoever repairs journals leaves a locked one alone. Where locks do not work nothing is lost but that.
                    let _ = file.try_lock();
                    let mut volume = Volume::new(file, path, name, 0);
                    // An empty file in the way of the next attempt would only cost a name; still, none is left.
                    volume.write(&line("open", open)).inspect_err(|_| drop(fs::remove_file(&volume.path)))?;
                    return Ok(volume);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Goes on in the file of a recorder that died, behind the place up to which the host knows what is in it. An error
    /// when there is no such file any more.
    pub(super) fn resume(home: &Path, name: &str, since: u64, host: &OpenRecord) -> io::Result<Resumed> {
        let path = home.join(format!("{name}.jsonl"));
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let file = OpenOptions::new().read(true).append(true).open(&path)?;
        let is_own = first_line(&file).is_some_and(|open| (open.pid, open.started) == (host.pid, host.started));
        if !is_own || !lock(&file) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let tail = Tail::read(&file, since)?;
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
        let (texts, open) = (Texts::new(length), BTreeMap::new());
        Volume { file, path, name, length, torn: false, texts, commands: 0, open, marked: length, base: length }
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

    /// What was running when the file began is in it now.
    pub(super) fn settle(&mut self) {
        self.base = self.length;
    }

    /// Whether a record of this size would make the file longer than it may be. Half of that is always there for what is
    /// new, however much was running.
    pub(super) fn is_full_for(&self, bytes: usize, most: u64) -> bool {
        self.length + bytes as u64 > most.max(self.base + most / 2)
    }

    /// Looks whether the file is what it was after the last record.
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
            // Somebody else has written, perhaps not whole lines.
            self.torn = true;
            self.length = ours.len();
        }
        None
    }

    /// The lines of a start.
    pub(super) fn start_lines(&mut self, start: &StartRecord) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let start = self.texts.shorten(start, &mut lines);
        lines.push(line("start", start.as_ref()));
        lines
    }

    /// The lines of an end.
    pub(super) fn end_lines(&mut self, record: &EndRecord) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let line = match self.texts.shorten(&record.start, &mut lines) {
            Cow::Borrowed(_) => record.line(),
            Cow::Owned(start) => EndRecord { start, ..record.clone() }.line(),
        };
        lines.push(line);
        lines
    }

    /// Writes a start's lines.
    pub(super) fn write_start(&mut self, seq: u64, lines: &[Vec<u8>]) -> io::Result<()> {
        let at = self.write_all(lines)?;
        self.commands += u64::from(self.open.insert(seq, at).is_none());
        self.mark();
        Ok(())
    }

    /// Writes an end's lines.
    pub(super) fn write_end(&mut self, seq: u64, lines: &[Vec<u8>]) -> io::Result<()> {
        self.write_all(lines)?;
        self.commands += u64::from(self.open.remove(&seq).is_none());
        self.mark();
        Ok(())
    }

    /// Writes that so many records were given up.
    pub(super) fn write_dropped(&mut self, count: u64) -> io::Result<()> {
        self.write(&line("dropped", &DroppedRecord { count, time: timestamp(SystemTime::now()) })).map(drop)
    }

    /// Writes the last line, and lets others have the file.
    pub(super) fn close(&mut self, next: Option<&str>) -> io::Result<()> {
        let (time, commands) = (timestamp(SystemTime::now()), Some(self.commands));
        self.write(&line("close", &CloseRecord { time, commands, next: next.map(str::to_owned) })).map(drop)
    }

    /// Puts what was written on the disk.
    pub(super) fn sync(&self) {
        // A disk that cannot sync will refuse the next write, which is told.
        let _ = self.file.sync_data();
    }

    /// Lets others have the file. Not left to the drop: a process that is being forked at this moment has the lock as
    /// well.
    pub(super) fn release(&self) {
        self.sync();
        let _ = self.file.unlock();
    }

    /// Writes lines, one by one; gives where the last of them stands.
    fn write_all(&mut self, lines: &[Vec<u8>]) -> io::Result<u64> {
        let mut at = self.length;
        for line in lines {
            at = self.write(line).inspect_err(|_| self.texts.forget())?;
        }
        Ok(at)
    }

    /// Writes a mark when there was none for a while. Without one, a reader has more to read.
    fn mark(&mut self) {
        if self.length >= self.marked + limits::JOURNAL_MARK_BYTES {
            let open = self.open.iter().map(|(&seq, &at)| (seq, at)).collect();
            if self.write(&line("mark", &MarkRecord { commands: self.commands, open })).is_ok() {
                self.marked = self.length;
            }
        }
    }

    /// Writes one line; gives where it stands.
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
                // Whatever stays of it is known by the file's length.
                self.length = self.file.metadata().map_or(self.length, |metadata| metadata.len());
                Err(error)
            }
        }
    }
}

/// Takes the file, which a dying process may have for another moment.
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

/// Writes `line` in one write; after a failure `torn` says whether a part of it stays.
fn append_line<W: Write>(
    mut out: W,
    line: &[u8],
    torn: &mut bool,
    undo: impl FnOnce(&mut W, u64) -> io::Result<()>,
) -> io::Result<()> {
    let led;
    let bytes = if *torn {
        led = [b"\n", line].concat();
        &led
    } else {
        line
    };
    let mut written = 0;
    // A full disk takes what fits without an error; only the next write says why it took no more.
    let error = loop {
        if written == bytes.len() {
            *torn = false;
            return Ok(());
        }
        match out.write(&bytes[written..]) {
            Ok(0) => break io::ErrorKind::WriteZero.into(),
            Ok(n) => written += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error,
        }
    };
    if written > 0 && undo(&mut out, written as u64).is_err() {
        *torn = true;
    }
    Err(error)
}

/// Takes back the last `bytes`, unless somebody else has written behind them.
fn undo(file: &mut &File, bytes: u64) -> io::Result<()> {
    let end = file.stream_position()?;
    if file.metadata()?.len() != end {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    file.set_len(end.saturating_sub(bytes))
}

/// A new file for appending, readable by its owner only, whatever the umask says. Never follows a symlink.
pub(super) fn open_append_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A disk that takes so many bytes of each write, by script.
    #[derive(Debug, Default)]
    struct Disk {
        content: Vec<u8>,
        script: VecDeque<Result<usize, io::ErrorKind>>,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.script.pop_front().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            self.content.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn truncating(disk: &mut &mut Disk, bytes: u64) -> io::Result<()> {
        let length = disk.content.len() - bytes as usize;
        disk.content.truncate(length);
        Ok(())
    }

    #[test]
    fn a_failed_write_leaves_nothing_or_a_line_of_its_own() {
        use io::ErrorKind::{Interrupted, StorageFull};
        for cut in 0..6 {
            let mut disk = Disk { script: [Err(Interrupted), Ok(cut), Err(StorageFull)].into(), ..Disk::default() };
            let mut torn = false;
            assert!(append_line(&mut disk, b"first\n", &mut torn, truncating).is_err());
            assert!(!torn && disk.content.is_empty());
            disk.script.clear();
            append_line(&mut disk, b"first\n", &mut torn, truncating).unwrap();
            assert_eq!(disk.content, b"first\n");

            let mut disk = Disk { script: [Ok(cut)].into(), ..Disk::default() };
            let fixed = |_: &mut &mut Disk, _| Err(StorageFull.into());
            disk.script.push_back(Err(StorageFull));
            assert!(append_line(&mut disk, b"first\n", &mut torn, fixed).is_err());
            assert_eq!(torn, cut > 0);
            disk.script = [Ok(0), Ok(1), Ok(0)].into();
            // A retry that fails as well, with nothing written and with the newline only.
            assert!(append_line(&mut disk, b"again\n", &mut torn, fixed).is_err());
            assert!(append_line(&mut disk, b"again\n", &mut torn, fixed).is_err());
            append_line(&mut disk, b"last\n", &mut torn, fixed).unwrap();
            assert!(!torn);
            assert!(disk.content.ends_with(b"\nlast\n"), "{}", String::from_utf8_lossy(&disk.content));
        }
    }

    #[test]
    fn a_short_write_that_goes_on_is_one_line() {
        let mut disk = Disk { script: [Ok(2), Ok(1)].into(), ..Disk::default() };
        append_line(&mut disk, b"first\n", &mut false, truncating).unwrap();
        assert_eq!(disk.content, b"first\n");
    }
}
