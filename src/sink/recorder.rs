//! The recorder: a process of its own that owns the journal's files, so that no disk can hold up the host.
//!
//! ```text
//! host ──frames──▶ socket ──▶ serve ──▶ Masks ──▶ Appender ──▶ YYYY-MM-DD-HH:MM:SS.jsonl
//!   ▲                           │          └────▶ RawStore ──▶ raw/SESSION-SEQ.out
//!   └──── one line per change ──┘
//! ```
//!
//! The host calls [`open`], forks, and the child calls [`serve`]. The child must not die with the host's terminal: it
//! needs INT, QUIT, HUP, TERM, PIPE and XFSZ ignored, and no copy of the host's end of the socket, or it never sees the
//! end. When the host is killed the recorder still writes all that was sent.
//!
//! Invariants: a start and a complete record are written as they happen, in the order they arrive; per run a
//! bounded part of its output is in memory, and what may be the beginning of a secret; a run is never dropped
//! because its raw file, or the disk, fails; nothing reaches a file that was not masked before.

mod appender;
mod excerpt;
mod home;
mod masks;
mod raw;
mod repair;

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use self::appender::Appender;
use self::excerpt::Excerpt;
use self::masks::Masks;
use self::raw::{RawFile, RawStore, Refusal};
use crate::limits;
use crate::text::count;
use crate::text::reason::reason;

use super::record::{Close, Decoder, End, Frame, Run, Start, line, timestamp};

pub use self::home::JournalError;
pub use self::repair::journals;

/// Read at once from the host.
const READ_BYTES: usize = 256 << 10;
/// How long a host that does not read its status lines may hold up the recorder.
const NOTICE_WAIT: Duration = Duration::from_millis(100);

/// The bounds of a journal.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Of the text of each run's output, how much of its beginning and of its end goes into the record. The bytes of a
    /// longer output get a raw file.
    pub head_bytes: usize,
    pub tail_bytes: usize,
    /// Records kept in memory while the disk refuses them; beyond, the oldest are dropped and counted.
    pub queue_bytes: usize,
    /// How long after a failure the disk is tried again; a new record tries at once.
    pub retry: Duration,
    /// All raw files together; beyond, the oldest are removed, and what is being written stops growing.
    pub raw_bytes: u64,
    /// Older raw files are removed.
    pub raw_age: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head_bytes: 32 << 10,
            tail_bytes: 32 << 10,
            queue_bytes: 4 << 20,
            retry: Duration::from_secs(5),
            raw_bytes: 1 << 30,
            raw_age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// A journal that is ready to be served.
#[derive(Debug)]
pub struct Opened {
    /// The journal's file; its name is free again only when nothing was ever written.
    pub path: PathBuf,
    /// Runs of earlier hosts whose end nobody knows, marked so just now.
    pub lost: u64,
    home: PathBuf,
    appender: Appender,
}

impl Opened {
    /// The journal's descriptor, which the recorder's process has to keep.
    #[must_use]
    pub fn descriptor(&self) -> Option<RawFd> {
        self.appender.descriptor()
    }
}

/// Prepares the directory, repairs what earlier hosts left, and begins a journal.
///
/// `uid` is the user the host runs as. A directory that is not safe is refused; a disk that cannot be written is not:
/// [`serve`] tells the host and keeps trying.
pub fn open(home: &Path, uid: u32) -> Result<Opened, JournalError> {
    home::prepare(home, uid)?;
    let lost = repair::repair_all(home);
    let limits = Limits::default();
    let appender = Appender::new(home, uid, limits.queue_bytes, limits.retry);
    Ok(Opened { path: appender.path().to_owned(), lost, home: home.to_owned(), appender })
}

/// Records what the host says until its end of the socket closes.
pub fn serve(opened: Opened, socket: UnixStream, limits: Limits) {
    let mut recorder = Recorder::new(opened, limits);
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; READ_BYTES];
    let _ = socket.set_write_timeout(Some(NOTICE_WAIT));
    recorder.raw.sweep();
    loop {
        recorder.appender.tick(Instant::now());
        tell(&socket, &mut recorder.appender);
        let wait = recorder.appender.deadline().map(|at| {
            // Zero would mean forever.
            at.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
        });
        let _ = socket.set_read_timeout(wait);
        match (&socket).read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => {
                decoder.feed(&chunk[..n]);
                while let Some(frame) = decoder.next_frame() {
                    recorder.on_frame(frame, Instant::now());
                }
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    recorder.on_end();
    tell(&socket, &mut recorder.appender);
}

fn tell(mut socket: &UnixStream, appender: &mut Appender) {
    for notice in appender.take_notices() {
        // One line per notice, whatever a path contains. A host that is gone or does not listen misses it.
        let text: String = notice.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let _ = socket.write_all(format!("{text}\n").as_bytes());
    }
}

#[derive(Debug)]
struct Recorder {
    appender: Appender,
    raw: RawStore,
    runs: HashMap<u64, Live>,
    /// The secrets of the run that starts next.
    secrets: Option<(u64, Vec<u8>)>,
    /// Masked output on its way to the files.
    masked: Vec<u8>,
    limits: Limits,
    is_closing: bool,
}

/// A run that has not ended.
#[derive(Debug)]
struct Live {
    /// As it is kept.
    start: Start,
    masks: Masks,
    /// All bytes of output that came, as they were before the masks.
    received: u64,
    excerpt: Excerpt,
    raw: Raw,
}

#[derive(Debug)]
enum Raw {
    /// All of the output so far, which needs no file yet.
    Unneeded(Vec<u8>),
    Growing(RawFile),
    /// Not there, or not whole.
    Failed {
        reference: Option<String>,
        why: String,
    },
}

impl Recorder {
    fn new(opened: Opened, limits: Limits) -> Recorder {
        let mut appender = opened.appender;
        (appender.queue_max, appender.retry_every) = (limits.queue_bytes, limits.retry);
        let session = opened.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Recorder {
            raw: RawStore::new(&opened.home, &session, limits.raw_bytes, limits.raw_age),
            appender,
            runs: HashMap::new(),
            secrets: None,
            masked: Vec::new(),
            limits,
            is_closing: false,
        }
    }

    fn on_frame(&mut self, frame: Frame<'_>, now: Instant) {
        match frame {
            Frame::Secrets { seq, entries } => self.on_secrets(seq, entries),
            Frame::Start { start, has_secrets } => self.on_start(*start, has_secrets, now),
            Frame::Output { seq, stream, bytes } => self.on_output(seq, stream, bytes),
            Frame::End(end) => self.on_run_end(*end, now),
            Frame::Close => self.is_closing = true,
        }
    }

    fn on_secrets(&mut self, seq: u64, entries: &[u8]) {
        match &mut self.secrets {
            Some((known, all)) if *known == seq => all.extend_from_slice(entries),
            other => *other = Some((seq, entries.to_vec())),
        }
    }

    fn on_start(&mut self, start: Start, has_secrets: bool, now: Instant) {
        let secrets = self.secrets.take().filter(|(seq, _)| *seq == start.seq);
        if self.runs.contains_key(&start.seq) || has_secrets != secrets.is_some() {
            return;
        }
        let mut start = start;
        let window = start.window.take().unwrap_or((limits::PTY_ROWS, limits::PTY_COLS));
        let mut masks = Masks::new(secrets.as_ref().map_or(&[], |(_, entries)| entries));
        let start = masks.start(start);
        self.appender.push(line("start", &start), now);
        let excerpt = Excerpt::new(window, self.limits.head_bytes, self.limits.tail_bytes);
        self.runs.insert(start.seq, Live { start, masks, received: 0, excerpt, raw: Raw::Unneeded(Vec::new()) });
    }

    fn on_output(&mut self, seq: u64, stream: u8, bytes: &[u8]) {
        // What a straggler writes after its run's end is not recorded.
        let Some(live) = self.runs.get_mut(&seq) else { return };
        live.received += bytes.len() as u64;
        self.masked.clear();
        live.masks.output(stream, bytes, &mut self.masked);
        live.excerpt.push(&self.masked);
        live.keep_raw(&self.masked, self.limits.head_bytes + self.limits.tail_bytes, &mut self.raw);
    }

    fn on_run_end(&mut self, end: End, now: Instant) {
        let Some(mut live) = self.runs.remove(&end.seq) else { return };
        self.masked.clear();
        live.masks.finish(&mut self.masked);
        live.excerpt.push(&self.masked);
        live.excerpt.finish();
        live.keep_raw(&self.masked, self.limits.head_bytes + self.limits.tail_bytes, &mut self.raw);
        let mut run = Run::new(live.start, end);
        // What the host left out on its way here is missing somewhere, nobody knows where.
        let missing = run.bytes.saturating_sub(live.received);
        run.bytes = run.bytes.max(live.received);
        let text = live.excerpt.into_text();
        let omitted = text.omitted + missing;
        if omitted > 0 {
            run.output_omitted = Some(omitted);
            run.output_cut = Some(text.cut as u64);
        }
        run.output = text.text;
        match live.raw {
            Raw::Unneeded(_) => {}
            Raw::Growing(file) => {
                run.raw = Some(file.reference());
                run.raw_error = (missing > 0).then(|| format!("{} did not reach the journal", count::bytes(missing)));
                self.raw.close(file);
            }
            Raw::Failed { reference, why } => (run.raw, run.raw_error) = (reference, Some(why)),
        }
        self.appender.push(run.line(), now);
    }

    fn on_end(&mut self) {
        let now = Instant::now();
        if self.is_closing {
            self.appender.push(line("close", &Close { time: timestamp(SystemTime::now()) }), now);
        } else {
            self.appender.retry();
        }
        self.appender.release();
    }
}

impl Live {
    /// Takes masked output that the excerpt has already, and puts it into a raw file once it is more than `most`, or
    /// its text more than the record has.
    fn keep_raw(&mut self, bytes: &[u8], most: usize, store: &mut RawStore) {
        let Raw::Unneeded(all) = &mut self.raw else { return write_raw(store, &mut self.raw, bytes) };
        all.extend_from_slice(bytes);
        if all.len() <= most && !self.excerpt.is_cut() {
            return;
        }
        let all = std::mem::take(all);
        self.raw = match store.create(self.start.seq) {
            Ok(file) => Raw::Growing(file),
            Err(error) => Raw::Failed { reference: None, why: reason(&error) },
        };
        write_raw(store, &mut self.raw, &all);
    }
}

/// Appends to a raw file that is being written; gives it up when it takes no more.
fn write_raw(store: &mut RawStore, raw: &mut Raw, bytes: &[u8]) {
    let Raw::Growing(file) = raw else { return };
    let Err(refusal) = store.write(file, bytes) else { return };
    let failed = match &refusal {
        Refusal::Quota => Raw::Failed {
            reference: Some(file.reference()),
            why: "the rest was left out: raw files have no more room".to_owned(),
        },
        Refusal::Disk(error) => Raw::Failed { reference: None, why: reason(error) },
    };
    if let Raw::Growing(file) = std::mem::replace(raw, failed) {
        match refusal {
            Refusal::Quota => store.close(file),
            Refusal::Disk(_) => store.discard(file),
        }
    }
}
