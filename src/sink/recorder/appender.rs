//! Writes records to the journal's file, or keeps them until it can.
//!
//! Invariants: a record is one write of one whole line; a write that fails leaves either no trace or a torn line that
//! the next record's leading newline ends; records reach the file in the order they were pushed; at most `queue_max`
//! bytes wait in memory, and how many were given up is written as a record of its own; a failure is told once, and its
//! end once.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::super::record::{Dropped, Open, line, timestamp};
use super::home::prepare;
use crate::text::reason::reason;

/// How long what was written may wait for the disk.
const SYNC_AFTER: Duration = Duration::from_secs(5);
/// How many journals may begin within one second.
const NAMES_MAX: u32 = 1000;

/// The journal's file and the records that wait for it.
#[derive(Debug)]
pub(super) struct Appender {
    home: PathBuf,
    uid: u32,
    host_pid: u32,
    /// The journal's name without suffix and extension: when it was opened.
    stem: String,
    path: PathBuf,
    file: Option<File>,
    /// The file ends in the middle of a line.
    torn: bool,
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    pub(super) queue_max: usize,
    dropped: u64,
    pub(super) retry_every: Duration,
    retry_at: Option<Instant>,
    sync_at: Option<Instant>,
    notices: Vec<String>,
}

impl Appender {
    /// A journal that opens now. When its file cannot be made, that is one more failure to retry.
    pub(super) fn new(home: &Path, uid: u32, queue_max: usize, retry_every: Duration) -> Appender {
        let now = SystemTime::now();
        // 2026-05-21T09:42:18.123Z → 2026-05-21-09:42:18
        let stem = timestamp(now).chars().take(19).map(|c| if c == 'T' { '-' } else { c }).collect::<String>();
        let mut appender = Appender {
            home: home.to_owned(),
            uid,
            host_pid: std::process::id(),
            path: home.join(format!("{stem}.jsonl")),
            stem,
            file: None,
            torn: false,
            queue: VecDeque::new(),
            queued_bytes: 0,
            queue_max,
            dropped: 0,
            retry_every,
            retry_at: None,
            sync_at: None,
            notices: Vec::new(),
        };
        appender.flush(Instant::now());
        appender
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Writes this line, or keeps it.
    pub(super) fn push(&mut self, line: Vec<u8>, now: Instant) {
        self.queued_bytes += line.len();
        self.queue.push_back(line);
        self.flush(now);
        while self.queued_bytes > self.queue_max {
            let Some(oldest) = self.queue.pop_front() else { break };
            self.queued_bytes -= oldest.len();
            self.dropped += 1;
        }
    }

    /// Retries and syncs what is due.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.flush(now);
        }
        if self.sync_at.is_some_and(|at| at <= now) {
            self.sync();
        }
    }

    /// Tries once more at the very end, when a failure is not over yet.
    pub(super) fn retry(&mut self) {
        if self.retry_at.is_some() {
            self.flush(Instant::now());
        }
    }

    /// Puts what was written on the disk, and the file into the hands of whoever opens next. Not done by a drop: the
    /// host drops its copy of a journal that the recorder goes on writing, and both have one lock.
    pub(super) fn release(&mut self) {
        self.sync();
        if let Some(file) = self.file.take() {
            let _ = file.unlock();
        }
    }

    /// When `tick` has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.retry_at, self.sync_at].into_iter().flatten().min()
    }

    /// Puts what was written on the disk.
    fn sync(&mut self) {
        self.sync_at = None;
        if let Some(file) = &self.file {
            // A disk that cannot sync will refuse the next write, which is told.
            let _ = file.sync_data();
        }
    }

    /// What the host should be told, oldest first.
    pub(super) fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    fn flush(&mut self, now: Instant) {
        match self.write_queue() {
            Ok(()) => {
                self.sync_at.get_or_insert(now + SYNC_AFTER);
                if self.retry_at.take().is_some() {
                    self.notices.push("journal is written again".to_owned());
                }
            }
            Err(error) => {
                if self.retry_at.replace(now + self.retry_every).is_none() {
                    self.notices.push(format!(
                        "journal cannot be written: {}: {}; records are kept in memory and retried",
                        self.path.display(),
                        reason(&error)
                    ));
                }
            }
        }
    }

    fn write_queue(&mut self) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|file| is_gone(file, &self.path)) {
            self.file = None;
            self.notices.push(format!("journal was removed: {}; a new one is begun", self.path.display()));
        }
        if self.file.is_none() {
            self.begin()?;
        }
        if self.dropped > 0 {
            let record = Dropped { count: self.dropped, time: timestamp(SystemTime::now()) };
            self.append(&line("dropped", &record))?;
            self.dropped = 0;
        }
        while let Some(next) = self.queue.pop_front() {
            let written = self.append(&next);
            if written.is_err() {
                self.queue.push_front(next);
                return written;
            }
            self.queued_bytes -= next.len();
        }
        Ok(())
    }

    /// Makes the file, under the next free name, with its first line.
    fn begin(&mut self) -> io::Result<()> {
        prepare(&self.home, self.uid).map_err(io::Error::other)?;
        for number in 1..NAMES_MAX {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.home.join(format!("{}{suffix}.jsonl", self.stem));
            match open_append_new(&path) {
                Ok(file) => {
                    // Whoever repairs journals leaves a locked one alone. Where locks do not work nothing is lost but that.
                    let _ = file.try_lock();
                    self.path = path;
                    let (time, version) = (timestamp(SystemTime::now()), env!("CARGO_PKG_VERSION").to_owned());
                    let first = line("open", &Open { time, pid: self.host_pid, version });
                    self.torn = false;
                    append_line(&file, &first, &mut self.torn, undo)
                        // An empty file in the way of the next attempt would only cost a name; still, none is left.
                        .inspect_err(|_| drop(fs::remove_file(&self.path)))?;
                    self.file = Some(file);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        match &self.file {
            Some(file) => append_line(file, line, &mut self.torn, undo),
            None => Err(io::ErrorKind::NotFound.into()),
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

/// Nobody can read this file any more: it has no name, or not the one it had.
fn is_gone(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
        || fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// A new file for appending, readable by its owner only, whatever the umask says. Never follows a symlink.
pub(super) fn open_append_new(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn the_oldest_records_go_when_memory_is_full() {
        let home = std::env::temp_dir().join(format!("rexec-appender-{}", std::process::id()));
        prepare(&home, fs::metadata("/proc/self").unwrap().uid()).unwrap();
        let now = Instant::now();
        let uid = fs::metadata(&home).unwrap().uid();
        let mut appender = Appender::new(&home, uid, 100, Duration::from_secs(5));
        assert!(appender.take_notices().is_empty());
        // A directory that is not ours to write in stands for every disk that fails.
        fs::remove_dir_all(&home).unwrap();
        fs::write(&home, "in the way").unwrap();
        for n in 0..10 {
            appender.push(format!("{{\"n\":{n},\"pad\":\"0123456789\"}}\n").into_bytes(), now);
            assert!(appender.queued_bytes <= 100);
        }
        let notices = appender.take_notices();
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(
            notices[0].starts_with("journal was removed: ") && notices[1].starts_with("journal cannot be written: ")
        );
        appender.tick(now + Duration::from_secs(4));
        assert!(appender.take_notices().is_empty());
        fs::remove_file(&home).unwrap();
        appender.tick(now + Duration::from_secs(5));
        assert_eq!(appender.take_notices(), ["journal is written again"]);
        let text = fs::read_to_string(appender.path()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].contains("\"open\"") && lines[1].contains("\"count\":7"));
        assert!(lines[2].contains("\"n\":7") && lines[4].contains("\"n\":9"));
        fs::remove_dir_all(&home).unwrap();
    }
}
