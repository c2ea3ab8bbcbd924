//! The recorder: a process of its own that owns the journal's files, so that no disk can hold up the host.
//!
//! ```text
//! host ──frames──▶ socket ──▶ serve ──▶ Live ──▶ Appender ──▶ Volume   YYYY-MM-DD-HH:MM:SS[-N].jsonl
//!   ▲                           │         └────▶ RawStore              raw/SESSION-SEQ.out
//!   └──── what has been done ───┘
//! ```
//!
//! The host forks and the child calls [`serve`]. The child must not die with the host's terminal: it needs INT, QUIT,
//! HUP, TERM, PIPE and XFSZ ignored, and no copy of the host's end of the socket, or it never sees the end. When the host
//! is killed the recorder still writes all that was sent.
//!
//! When a recorder dies, the host starts another one in the same [`Session`], and sends again every record that was not
//! acknowledged and the start of every run that has not ended. The new one goes on in the same file; what it finds there
//! behind the last acknowledged record is not written again.
//!
//! Invariants: frames are taken in as they come; starts are written at once, an end when its own run's output is dealt
//! with, and output has its turn run by run, so that no record waits for another run's output; a record is acknowledged
//! when the file has it; a run is never dropped because its raw file, or the disk, fails.

mod appender;
mod excerpt;
mod home;
mod live;
mod masks;
mod names;
mod raw;
mod repair;
mod tail;
mod volume;

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use self::appender::{AlreadyWritten, Appender, Unwritten};
use self::live::Live;
use self::raw::RawStore;
use self::repair::Repairs;
use self::volume::Volume;
use crate::limits;
use crate::text::count::{self, counted};

use crate::journal::frame::{Decoder, Frame};
use crate::journal::record::{RunEnd, StartRecord, timestamp};
use crate::journal::status::RecorderStatus;

pub use self::home::JournalError;
pub use self::names::journals;
pub use self::tail::count_runs;

/// Read at once from the host.
const READ_BYTES: usize = 256 << 10;
/// Output that is dealt with at once.
const PIECE_BYTES: usize = 16 << 10;
/// How long a host that does not read what it is told may hold up the recorder at its end.
const NOTICE_WAIT: Duration = Duration::from_millis(100);
/// Everything that waits for a host that does not read, bytes; beyond it sentences are left out.
const NEWS_BYTES_MAX: usize = 64 << 10;

/// The bounds of a journal.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Of the text of each run's output, how much of its beginning and of its end goes into the record. The bytes of a
    /// longer output get a raw file.
    pub head_bytes: usize,
    pub tail_bytes: usize,
    /// Records kept in memory while the disk refuses them; beyond, the oldest are dropped and counted.
    pub queue_bytes: usize,
    /// How long after a failure the disk is tried again; a new record tries at once.
    pub retry: Duration,
    /// A journal goes on in a new file before one is longer than this.
    pub file_bytes: u64,
    /// Of each run's output, how much of its beginning and of its end a raw file keeps; none for 0.
    pub raw_cap: u64,
    /// All raw files together; beyond, the oldest are removed, and what is being written stops growing.
    pub raw_bytes: u64,
    /// Older raw files are removed.
    pub raw_age: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            head_bytes: 32 << 10,
            tail_bytes: 32 << 10,
            queue_bytes: 4 << 20,
            retry: Duration::from_secs(5),
            file_bytes: limits::JOURNAL_FILE_BYTES,
            raw_cap: limits::RAW_CAP_BYTES,
            raw_bytes: 1 << 30,
            raw_age: Duration::from_secs(30 * 24 * 60 * 60),
        }
    }
}

/// One host's journal, whichever recorder writes it.
#[derive(Debug, Clone)]
pub struct Session {
    home: PathBuf,
    uid: u32,
    /// The host's process.
    host: u32,
    /// When the journal began, as its files are called.
    time: String,
    /// The first file's name, which raw files begin with.
    name: Option<String>,
    resume: Option<ResumePoint>,
}

/// A place in a journal: everything before it is known to be in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResumePoint {
    name: String,
    length: u64,
}

impl Session {
    /// A journal that begins now, of the host with this number, who runs as this user.
    #[must_use]
    pub fn new(home: &Path, uid: u32, host: u32) -> Session {
        let now = timestamp(SystemTime::now());
        // 2026-05-21T09:42:18.123Z → 2026-05-21-09:42:18
        let time = now.chars().take(19).map(|c| if c == 'T' { '-' } else { c }).collect();
        Session { home: home.to_owned(), uid, host, time, name: None, resume: None }
    }

    /// Makes the directory, or refuses one that is not safe.
    ///
    /// # Errors
    /// A sentence and a hint for the person who starts the host.
    pub fn prepare(&self) -> Result<(), JournalError> {
        home::prepare(&self.home, self.uid)
    }

    /// The recorder writes the file of this name now.
    pub fn on_file(&mut self, name: &str) {
        self.name.get_or_insert_with(|| name.to_owned());
        self.resume = Some(ResumePoint { name: name.to_owned(), length: 0 });
    }

    /// Every acknowledged record stands before this place of the file.
    pub fn on_length(&mut self, length: u64) {
        if let Some(place) = &mut self.resume {
            place.length = length;
        }
    }

    /// The file that is written; `None` until the recorder has said so.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.resume.as_ref().map(|place| self.home.join(format!("{}.jsonl", place.name)))
    }
}

/// Records what the host says until its end of the socket closes.
///
/// Nothing here fails for good: a disk that cannot be written is told the host, and tried again.
pub fn serve(session: Session, socket: UnixStream, limits: Bounds) {
    let mut recorder = Recorder::new(session, limits);
    let mut decoder = Decoder::default();
    let mut chunk = vec![0; READ_BYTES];
    let mut is_blocking = true;
    let mut to_say = Vec::new();
    recorder.raw.sweep();
    loop {
        let now = Instant::now();
        recorder.tick(now);
        recorder.tell(now, false, &mut to_say);
        say(&socket, &mut to_say);
        let wait = recorder.wait(now, !to_say.is_empty());
        if recorder.waiting < limits::RECORDER_WAITING_BYTES
            && !recorder.take(&socket, &mut chunk, &mut decoder, &mut is_blocking, wait)
        {
            break;
        }
        recorder.work(Instant::now() + limits::RECORDER_TURN);
        // Only now: by then the host knows which file is written, and does not wait for a repair.
        recorder.repaired = recorder.repaired.or_else(|| recorder.repairs.step(Instant::now()));
    }
    recorder.finish();
    recorder.tell(Instant::now(), true, &mut to_say);
    RecorderStatus::Leave.encode(&mut to_say);
    let _ = socket.set_nonblocking(false);
    let _ = socket.set_write_timeout(Some(NOTICE_WAIT));
    let _ = (&socket).write_all(&to_say);
}

impl Recorder {
    /// Takes in what the host sends, and waits for it so long; whether there may ever be more.
    fn take(
        &mut self,
        mut socket: &UnixStream,
        chunk: &mut [u8],
        decoder: &mut Decoder,
        is_blocking: &mut bool,
        wait: Option<Duration>,
    ) -> bool {
        // What is in hand goes on without waiting for more.
        if *is_blocking != wait.is_none_or(|wait| !wait.is_zero()) {
            *is_blocking = !*is_blocking;
            let _ = socket.set_nonblocking(!*is_blocking);
        }
        if *is_blocking {
            let _ = socket.set_read_timeout(wait);
        }
        match socket.read(chunk) {
            Ok(0) => return false,
            Ok(n) => {
                self.fed += n as u64;
                decoder.feed(&chunk[..n]);
                while let Some(frame) = decoder.next_frame() {
                    self.on_frame(frame, Instant::now());
                }
            }
            Err(error) => {
                use ErrorKind::{Interrupted, TimedOut, WouldBlock};
                return matches!(error.kind(), Interrupted | WouldBlock | TimedOut);
            }
        }
        true
    }
}

/// Tells the host as much as goes without waiting for it.
fn say(mut socket: &UnixStream, to_say: &mut Vec<u8>) {
    if to_say.is_empty() {
        return;
    }
    // A moment at most: one that does not read hears the rest later.
    let _ = socket.set_write_timeout(Some(Duration::from_millis(1)));
    while let Ok(length @ 1..) = socket.write(to_say) {
        to_say.drain(..length);
        if to_say.is_empty() {
            return;
        }
    }
}

#[derive(Debug)]
struct Recorder {
    appender: Appender,
    raw: RawStore,
    repairs: Repairs,
    /// Runs that the repairs marked as lost, until it is told.
    repaired: Option<u64>,
    runs: HashMap<u64, Live>,
    /// Runs whose output waits, in the order of their turns: first those that have ended, then the others.
    ended: VecDeque<u64>,
    turns: VecDeque<u64>,
    /// Bytes of that output.
    waiting: u64,
    /// What the file had already, of what the host sends again.
    known: AlreadyWritten,
    /// The secrets of the run that starts next.
    secrets: Option<(u64, Vec<u8>)>,
    /// Masked output on its way to the files.
    masked: Vec<u8>,
    limits: Bounds,
    is_closing: bool,
    /// Bytes that came from the host, how many of them it was told are done, and when there was something to tell.
    fed: u64,
    told: u64,
    untold_since: Option<Instant>,
    /// Output that died with a recorder before this one: runs and bytes.
    lost: (u64, u64),
}

impl Recorder {
    fn new(session: Session, limits: Bounds) -> Recorder {
        let (home, time) = (session.home.clone(), session.time.clone());
        let name = session.name.clone();
        let (appender, known) = Appender::new(session, &limits);
        let name = name.or_else(|| appender.volume().map(|volume| volume.name().to_owned())).unwrap_or(time);
        let own = appender.volume().map(Volume::path).map(Path::to_owned).unwrap_or_default();
        Recorder {
            raw: RawStore::new(&home, &name, &limits),
            repairs: Repairs::of(&home, &own),
            repaired: None,
            appender,
            runs: HashMap::new(),
            ended: VecDeque::new(),
            turns: VecDeque::new(),
            waiting: 0,
            known,
            secrets: None,
            masked: Vec::new(),
            limits,
            is_closing: false,
            fed: 0,
            told: 0,
            untold_since: None,
            lost: (0, 0),
        }
    }

    /// How long nothing has to be done; `None` for as long as the host is silent.
    fn wait(&self, now: Instant, has_more_to_say: bool) -> Option<Duration> {
        if self.is_at_work() {
            return Some(Duration::ZERO);
        }
        let tell = self.untold_since.map(|since| since + limits::RECORDER_TELL_AFTER);
        let again = has_more_to_say.then(|| now + NOTICE_WAIT);
        let first = [self.appender.deadline(), self.repairs.deadline(), tell, again].into_iter().flatten().min()?;
        // Zero would mean not to wait at all.
        Some(first.saturating_duration_since(now).max(Duration::from_millis(1)))
    }

    fn tick(&mut self, now: Instant) {
        self.appender.tick(now);
        if self.appender.is_sync_due(now) {
            // A record that is on the disk names no file that is not.
            self.raw.sync();
            self.appender.sync();
        }
    }

    /// What the host should know now.
    fn tell(&mut self, now: Instant, is_last: bool, out: &mut Vec<u8>) {
        for news in self.appender.take_news() {
            // A host that never reads misses sentences, not files.
            if matches!(news, RecorderStatus::File(_)) || out.len() < NEWS_BYTES_MAX {
                news.encode(out);
            }
        }
        if let Some(lost @ 1..) = self.repaired.take() {
            let commands = counted(lost, "command", "commands");
            self.say(out, format!("{commands} of an earlier host without an end, marked as lost"));
        }
        let (runs, bytes) = self.lost;
        if runs > 0 && !self.is_at_work() {
            self.lost = (0, 0);
            let (bytes, commands) = (count::bytes(bytes), counted(runs, "command", "commands"));
            self.say(out, format!("the journal lacks {bytes} of output of {commands}: they died with its recorder"));
        }
        let handled = self.fed - self.waiting;
        let records = self.appender.done_records();
        if handled == self.told && records == 0 {
            return;
        }
        let since = *self.untold_since.get_or_insert(now);
        let is_due = is_last
            || handled >= self.told + limits::RECORDER_TELL_BYTES
            || records >= limits::RECORDER_TELL_RECORDS
            || now >= since + limits::RECORDER_TELL_AFTER;
        if is_due {
            let mut done = self.appender.take_done();
            done.handled = handled;
            RecorderStatus::Done(done).encode(out);
            (self.told, self.untold_since) = (handled, None);
        }
    }

    fn say(&self, out: &mut Vec<u8>, text: String) {
        if out.len() < NEWS_BYTES_MAX {
            RecorderStatus::Say(text).encode(out);
        }
    }

    fn on_frame(&mut self, frame: Frame<'_>, now: Instant) {
        match frame {
            Frame::Secrets { seq, entries } => self.on_secrets(seq, entries),
            Frame::Start { start, has_secrets } => self.on_start(*start, has_secrets, now),
            Frame::Output { seq, stream, bytes } => self.on_output(seq, stream, bytes),
            Frame::Lost { seq, bytes } => self.on_lost(seq, bytes),
            Frame::End(end) => self.on_run_end(*end, now),
            Frame::Dropped(count) => self.appender.push(Unwritten::Dropped(count), now),
            Frame::Close => self.is_closing = true,
        }
    }

    fn on_secrets(&mut self, seq: u64, entries: &[u8]) {
        match &mut self.secrets {
            Some((known, all)) if *known == seq => all.extend_from_slice(entries),
            other => *other = Some((seq, entries.to_vec())),
        }
    }

    fn on_start(&mut self, start: StartRecord, has_secrets: bool, now: Instant) {
        let secrets = self.secrets.take().filter(|(seq, _)| *seq == start.seq);
        if self.runs.contains_key(&start.seq) || has_secrets != secrets.is_some() {
            return;
        }
        if self.known.ended.contains(&start.seq) {
            return;
        }
        let live = Live::new(start, secrets.as_ref().map_or(&[], |(_, entries)| entries), &self.limits);
        let start = Rc::clone(&live.start);
        let seq = start.seq;
        if self.known.open.remove(&seq) {
            self.appender.adopt(start);
        } else {
            self.appender.push(Unwritten::Start(start), now);
        }
        self.runs.insert(seq, live);
    }

    fn on_output(&mut self, seq: u64, stream: u8, bytes: &[u8]) {
        // What a straggler writes after its run's end is not recorded.
        let Some(live) = self.runs.get_mut(&seq).filter(|live| live.end.is_none()) else { return };
        if bytes.is_empty() {
            return;
        }
        if live.is_idle() {
            self.turns.push_back(seq);
        }
        live.enqueue(stream, bytes, PIECE_BYTES);
        self.waiting += bytes.len() as u64;
    }

    fn on_lost(&mut self, seq: u64, bytes: u64) {
        if let Some(live) = self.runs.get_mut(&seq) {
            live.lose(bytes);
            self.lost = (self.lost.0 + 1, self.lost.1 + bytes);
        }
    }

    fn on_run_end(&mut self, end: RunEnd, now: Instant) {
        let Some(live) = self.runs.get_mut(&end.seq) else {
            // It stands in the file already, or its start never came.
            return self.appender.pass_over(end.seq);
        };
        if live.is_idle() {
            self.conclude(end, now);
        } else if live.end.is_none() {
            self.ended.push_back(end.seq);
            live.end = Some(end);
        }
    }

    fn conclude(&mut self, end: RunEnd, now: Instant) {
        let Some(live) = self.runs.remove(&end.seq) else { return };
        let run = live.finish(end, &mut self.masked, &self.limits, &mut self.raw);
        self.appender.push(Unwritten::End(Box::new(run)), now);
    }

    /// Deals with output that waits, one run after the other, until then.
    fn work(&mut self, until: Instant) {
        while let Some((seq, has_ended)) = self.next_turn() {
            let Some(live) = self.runs.get_mut(&seq) else { continue };
            if live.end.is_some() != has_ended {
                // It has its turn among the others that have ended.
                continue;
            }
            let worked = live.work(&mut self.masked, &self.limits, &mut self.raw);
            self.waiting -= worked as u64;
            if !live.is_idle() {
                let turns = if has_ended { &mut self.ended } else { &mut self.turns };
                turns.push_back(seq);
            } else if let Some(end) = live.end.take() {
                self.conclude(end, Instant::now());
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    fn next_turn(&mut self) -> Option<(u64, bool)> {
        let ended = self.ended.pop_front().map(|seq| (seq, true));
        ended.or_else(|| self.turns.pop_front().map(|seq| (seq, false)))
    }

    fn is_at_work(&self) -> bool {
        !(self.ended.is_empty() && self.turns.is_empty())
    }

    fn finish(&mut self) {
        while self.is_at_work() {
            self.work(Instant::now() + limits::RECORDER_STUCK);
        }
        self.raw.sync();
        self.appender.finish(self.is_closing);
    }
}
