//! The recorder's loop: takes in frames, deals with output, writes records, and tells the host what it has done.
//!
//! Invariants: the loop sleeps only in [`HostLink::receive`], and only while no output waits; a disk that fails ends
//! nothing; output in memory is bounded, because the host is not read while too much waits.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::appender::Appender;
use super::bounds::Bounds;
use super::link::HostLink;
use super::output_directory::OutputDirectory;
use super::output_files::OutputFiles;
use super::projects_file::ProjectsFile;
use super::queue::Unwritten;
use super::repair::Repairs;
use super::runs::RecordedRuns;
use super::session::Session;
use super::volume::Volume;
use crate::journal::frame::Frame;
use crate::journal::record::{DestroyedRecord, InputRecord, timestamp};
use crate::journal::status::RecorderStatus;
use crate::limits;
use crate::text::count::{self, counted};

/// The pause before the recorder writes again to a host that does not read.
const FLUSH_EVERY: Duration = Duration::from_millis(100);

/// Records everything that the host sends on `socket` until the host's end closes. Returns when all of it is written,
/// or cannot be.
///
/// Reports a disk that cannot be written to the host, and tries it again.
pub fn serve(session: Session, socket: UnixStream, bounds: Bounds) {
    let mut link = HostLink::new(socket);
    let mut recorder = Recorder::new(session, bounds);
    recorder.runs.files.directory.sweep();
    loop {
        let now = Instant::now();
        recorder.tick(now);
        recorder.tell(now, false, &mut link);
        link.flush();
        if recorder.runs.waiting() < limits::RECORDER_WAITING_BYTES {
            let Some(bytes) = link.receive(recorder.wait(now, link.has_more())) else { break };
            recorder.fed += bytes;
            while let Some(frame) = link.next_frame() {
                // This program has made it, so it is one.
                if let Ok(frame) = frame {
                    recorder.on_frame(frame, Instant::now());
                }
            }
        }
        recorder.work(Instant::now() + limits::RECORDER_TURN);
        // Only now: by then the host knows which file is written, and does not wait for a repair.
        recorder.repaired = recorder.repaired.or_else(|| recorder.repairs.step(Instant::now()));
    }
    recorder.finish();
    recorder.tell(Instant::now(), true, &mut link);
    link.leave();
}

#[derive(Debug)]
struct Recorder {
    appender: Appender,
    runs: RecordedRuns,
    repairs: Repairs,
    /// How many runs the repairs marked as lost, until that is reported to the host.
    repaired: Option<u64>,
    projects: ProjectsFile,
    /// The host leaves in order.
    is_closing: bool,
    /// Bytes that came from the host.
    fed: u64,
    /// How many of them the host knows to be dealt with.
    told: u64,
    /// Since when there is something to report.
    untold_since: Option<Instant>,
    /// Output that was lost with an earlier recorder: runs and bytes, until that is reported to the host.
    lost: (u64, u64),
}

impl Recorder {
    fn new(session: Session, bounds: Bounds) -> Recorder {
        let (home, time, name) = (session.home.clone(), session.time.clone(), session.name.clone());
        let (appender, known) = Appender::new(session, &bounds);
        let name = name.or_else(|| appender.volume().map(|volume| volume.name().to_owned())).unwrap_or(time);
        let own = appender.volume().map(Volume::path).map(Path::to_owned).unwrap_or_default();
        let files = OutputFiles::new(OutputDirectory::new(home.clone(), &name, &bounds));
        Recorder {
            runs: RecordedRuns::new(known, files, bounds),
            repairs: Repairs::of(home.clone(), &own),
            repaired: None,
            projects: ProjectsFile::new(home),
            appender,
            is_closing: false,
            fed: 0,
            told: 0,
            untold_since: None,
            lost: (0, 0),
        }
    }

    /// How long there is nothing to do. `None` means until the host sends something.
    fn wait(&self, now: Instant, has_more: bool) -> Option<Duration> {
        if self.runs.is_at_work() {
            return Some(Duration::ZERO);
        }
        let tell = self.untold_since.map(|since| since + limits::RECORDER_TELL_AFTER);
        let flush = has_more.then(|| now + FLUSH_EVERY);
        let first = [self.appender.deadline(), self.runs.deadline(), self.repairs.deadline(), tell, flush]
            .into_iter()
            .flatten()
            .min()?;
        // Zero would mean not to wait at all.
        Some(first.saturating_duration_since(now).max(Duration::from_millis(1)))
    }

    fn tick(&mut self, now: Instant) {
        if self.appender.is_failing() {
            self.runs.files.let_go_of_removed();
        }
        self.appender.tick(now);
        self.runs.tick(now);
        if self.appender.is_sync_due(now) {
            // Output first: a record that is on the disk must not name a file that is not.
            self.runs.files.sync();
            self.appender.sync();
        }
    }

    fn on_frame(&mut self, frame: Frame<'_>, now: Instant) {
        match frame {
            Frame::Entries { seq, entries } => self.runs.on_entries(seq, entries),
            Frame::Start { start, has_entries } => self.runs.on_start(*start, has_entries, &mut self.appender, now),
            Frame::Output { seq, stream, at, bytes } => self.runs.on_output(seq, stream, at, bytes, now),
            Frame::Resized { seq, at, window } => self.runs.on_resized(seq, at, window),
            Frame::Mark { seq, mark } => self.runs.on_mark(seq, mark),
            Frame::Lost { seq, bytes } => {
                if self.runs.on_lost(seq, bytes) {
                    self.lost = (self.lost.0 + 1, self.lost.1 + bytes);
                }
            }
            Frame::End(end) => self.runs.on_end(*end, &mut self.appender, now),
            Frame::Input { .. } | Frame::Unseen(_) | Frame::Destroyed(_) if self.runs.has_aside() => {
                self.appender.pass_over_aside()
            }
            Frame::Input { at, input } => {
                let input = InputRecord { time: timestamp(SystemTime::now()), ..*input };
                self.runs.on_input(&input, at);
                self.appender.push(Unwritten::Input(input), now);
            }
            Frame::Destroyed(destroyed) => {
                let destroyed = DestroyedRecord { time: timestamp(SystemTime::now()), ..*destroyed };
                self.appender.push(Unwritten::Destroyed(Box::new(destroyed)), now);
            }
            Frame::Unseen(unseen) => self.appender.push(Unwritten::Unseen(unseen), now),
            Frame::Projects(text) => self.projects.write(text),
            Frame::Dropped(count) => self.appender.push(Unwritten::Dropped(count), now),
            Frame::Close => self.is_closing = true,
        }
    }

    fn work(&mut self, until: Instant) {
        self.runs.work(until, &mut self.appender);
    }

    /// Queues the reports for the host. If this `is_last`, no acknowledgement waits for more.
    fn tell(&mut self, now: Instant, is_last: bool, link: &mut HostLink) {
        self.appender.take_news().iter().for_each(|news| link.send(news));
        self.runs.reached.drain(..).for_each(|reached| link.send(&reached));
        let news = self.runs.files.take_news().into_iter().chain(self.projects.take_news());
        news.for_each(|text| link.send(&RecorderStatus::Say(text)));
        if let Some(lost @ 1..) = self.repaired.take() {
            let one = "command of an earlier host has no end and is marked as lost";
            let more = "commands of an earlier host have no end and are marked as lost";
            link.send(&RecorderStatus::Say(counted(lost, one, more)));
        }
        let (runs, bytes) = self.lost;
        if runs > 0 && !self.runs.is_at_work() {
            self.lost = (0, 0);
            let (bytes, commands) = (count::bytes(bytes), counted(runs, "command", "commands"));
            let text =
                format!("the journal lacks {bytes} of output of {commands}: they were lost with a recorder that died");
            link.send(&RecorderStatus::Say(text));
        }
        self.tell_done(now, is_last, link);
    }

    /// Queues an acknowledgement, unless there is little to acknowledge and it can wait for more.
    fn tell_done(&mut self, now: Instant, is_last: bool, link: &mut HostLink) {
        let handled = self.fed - self.runs.waiting();
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
            link.send(&RecorderStatus::Done(done));
            (self.told, self.untold_since) = (handled, None);
        }
    }

    /// Deals with all output that waits, and closes the file.
    fn finish(&mut self) {
        self.runs.release(|_| true);
        while self.runs.is_at_work() {
            self.work(Instant::now() + limits::RECORDER_STUCK);
        }
        self.runs.files.sync();
        self.appender.finish(self.is_closing);
    }
}
