//! The relay: passes on the output of a command in a sandbox, and reports it.
//!
//! A pipe of the relay's stands before an output that is a pipe or a socket of the caller's. A file stays the command's
//! own, and the relay reads its additions.
//!
//! Invariants: every byte goes on, in order; a pipe whose reader has left is closed, so that its writers notice; no
//! wait for the host.

mod flood_end;

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::wire::CallerStream;

use crate::output_descriptor::{OutputDescriptor, Written};
use crate::reporter::Reporter;
use crate::sys;
use flood_end::{END_BYTES, FloodEnd};

/// The bytes of output read at a time.
const READ_BYTES: usize = 64 << 10;
/// When output came as recently as this, more is left to gather …
const BUSY: Duration = Duration::from_millis(1);
/// … if it was less than this, bytes …
const SMALL_BYTES: usize = 16 << 10;
/// … for this long, so that a command that writes much in small pieces rarely wakes the relay.
const GATHER: Duration = Duration::from_micros(250);
/// The wanted size of the pipes of a flood, bytes. Then few wake-ups of this process move much. The contents of larger
/// ones outgrow the processor's cache.
const FLOOD_PIPE_BYTES: i32 = 512 << 10;
/// If a flood has moved less than this, more is left to gather, bytes …
const FLOOD_MOVE_BYTES: usize = 128 << 10;
/// … for this long. A fast writer has not filled the pipe by then, and so does not wait for this process.
const FLOOD_GATHER: Duration = Duration::from_micros(20);
/// The time for which writes to a growing file are left to gather. A resting file is examined less and less often …
const FILE_PAUSE: Duration = Duration::from_millis(10);
/// … up to this pause. It is not watched (inotify(7)): the end of a watch takes the kernel up to 25 ms, and the
/// command's end would wait for it.
const FILE_PAUSE_MAX: Duration = Duration::from_millis(160);
/// The bytes of a file that are read after the command's end; of a longer rest, the last part.
const FILE_REST_BYTES: i64 = 128 << 10;

/// A pipe of the relay's before one of the caller's outputs.
#[derive(Debug)]
pub(crate) struct PipedOutput {
    read_end: OwnedFd,
    output: OutputDescriptor,
    fd: RawFd,
    buffer: Vec<u8>,
    /// The start of the unwritten part of the buffer.
    from: usize,
    to: usize,
    /// Bytes that come before the end of the shell, once it has ended.
    due: Option<usize>,
    can_move: bool,
    /// The output exceeds the reports. It is moved unread and counted.
    is_flood: bool,
    flood_end: FloodEnd,
    is_blocked: bool,
    /// The reason why nothing more is passed on.
    over: Option<PipeOver>,
}

/// The side that has left a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PipeOver {
    Writers,
    Reader,
}

/// A file of the caller's that the command writes itself.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    stream: CallerStream,
    file: OwnedFd,
    /// The bytes of it that were read.
    at: i64,
    /// The time of the next look, and the pause after that if it has not grown by then.
    look_at: Instant,
    pause: Duration,
}

impl PipedOutput {
    /// A pipe before the descriptor with this number.
    pub(crate) fn new(read_end: OwnedFd, output: OutputDescriptor, fd: RawFd, can_move: bool) -> Self {
        let buffer = vec![0; READ_BYTES];
        let (from, to, due, flood_end) = (0, 0, None, FloodEnd::default());
        let (is_flood, is_blocked, over) = (false, false, None);
        Self { read_end, output, fd, buffer, from, to, due, can_move, is_flood, flood_end, is_blocked, over }
    }

    /// The number of the caller's descriptor that it writes.
    pub(crate) fn number(&self) -> RawFd {
        self.fd
    }

    fn has_drained(&self) -> bool {
        self.over.is_some() || (self.from == self.to && self.due == Some(0))
    }

    /// Reads or moves the waiting bytes that the output takes. Returns the number of bytes that came.
    fn pass_on(&mut self, reporter: &mut Option<Reporter>) -> usize {
        self.is_blocked = false;
        self.write();
        if self.from < self.to || self.over.is_some() || self.due == Some(0) {
            return 0;
        }
        if !self.can_move || reporter.as_mut().is_some_and(Reporter::has_room) {
            self.report_flood_end(reporter);
            self.is_flood = false;
            return self.read(reporter);
        }
        if !self.is_flood {
            self.is_flood = true;
            sys::enlarge(self.read_end.as_raw_fd(), FLOOD_PIPE_BYTES);
            sys::enlarge(self.fd, FLOOD_PIPE_BYTES);
        }
        match self.due.unwrap_or_else(|| sys::queued(self.read_end.as_raw_fd())) {
            0 => {
                // Its writers have left.
                self.report_flood_end(reporter);
                self.read(reporter)
            }
            queued => self.move_flood(queued, reporter),
        }
    }

    /// Moves this much on without looking at it, and holds its end. Returns the number of bytes moved.
    fn move_flood(&mut self, queued: usize, reporter: &mut Option<Reporter>) -> usize {
        let Some(reporter) = reporter else { return self.move_on(queued) };
        if !self.flood_end.has_room(queued) {
            reporter.lose(self.output.stream, self.flood_end.take(&mut self.buffer));
        }
        let before = if self.flood_end.has_room(queued) { 0 } else { queued - END_BYTES };
        let moved = if before > 0 { self.move_on(before) } else { 0 };
        reporter.lose(self.output.stream, moved);
        if moved < before {
            return moved;
        }
        let rest = queued - before;
        let mut held = self.flood_end.hold(&self.read_end, rest);
        if held == 0 {
            reporter.lose(self.output.stream, self.flood_end.take(&mut self.buffer));
            held = self.flood_end.hold(&self.read_end, rest);
        }
        let last = self.move_on(if held > 0 { held } else { rest });
        if last != held {
            // The held bytes are not those that were moved.
            let earlier = self.flood_end.take(&mut self.buffer).saturating_sub(held);
            reporter.lose(self.output.stream, earlier + last);
        }
        moved + last
    }

    /// Moves at most this much on. Returns the number of bytes moved.
    fn move_on(&mut self, most: usize) -> usize {
        match sys::splice(&self.read_end, self.fd, most) {
            Ok(0) => self.over = Some(PipeOver::Writers),
            Ok(moved) => {
                self.due = self.due.map(|due| due.saturating_sub(moved));
                return moved;
            }
            Err(Errno::EAGAIN) => self.is_blocked = sys::queued(self.read_end.as_raw_fd()) > 0,
            Err(Errno::EINTR) => {}
            Err(Errno::EPIPE) => self.over = Some(PipeOver::Reader),
            Err(_) => self.can_move = false,
        }
        0
    }

    /// Reports the held end of a flood.
    fn report_flood_end(&mut self, reporter: &mut Option<Reporter>) {
        let length = self.flood_end.take(&mut self.buffer);
        if let Some(reporter) = reporter.as_mut().filter(|_| length > 0) {
            reporter.output(self.output.stream, &self.buffer[..length]);
        }
    }

    /// Reads, writes and reports the waiting bytes. Returns the number of bytes that came.
    fn read(&mut self, reporter: &mut Option<Reporter>) -> usize {
        let most = self.due.unwrap_or(READ_BYTES).min(READ_BYTES);
        match sys::read(self.read_end.as_raw_fd(), &mut self.buffer[..most]) {
            Ok(0) => self.over = Some(PipeOver::Writers),
            Ok(length) => {
                (self.from, self.to) = (0, length);
                // The caller comes first.
                self.write();
                self.due = self.due.map(|due| due.saturating_sub(length));
                if let Some(reporter) = reporter {
                    reporter.output(self.output.stream, &self.buffer[..length]);
                }
                return length;
            }
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(_) => self.over = Some(PipeOver::Writers),
        }
        0
    }

    fn write(&mut self) {
        while self.from < self.to {
            match self.output.write(&self.buffer[self.from..self.to]) {
                Written::Bytes(bytes) => self.from += bytes,
                Written::Blocked => {
                    self.is_blocked = true;
                    return;
                }
                Written::Failed(_) => {
                    self.over = Some(PipeOver::Reader);
                    return;
                }
            }
        }
    }
}

impl WrittenFile {
    /// The file that is open under this path. `None` if it cannot be read.
    pub(crate) fn open(stream: CallerStream, fd: RawFd, path: &CStr) -> Option<Self> {
        let file = sys::open(path, libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY).ok()?;
        let at = sys::write_place(fd)?;
        Some(Self { stream, file, at, look_at: Instant::now() + FILE_PAUSE, pause: FILE_PAUSE })
    }

    fn look(&mut self, reporter: &mut Reporter, is_last: bool) {
        let mut buffer = [0; 4096];
        let size = sys::file_size(self.file.as_raw_fd()).unwrap_or(self.at);
        self.pause = if size > self.at { FILE_PAUSE } else { FILE_PAUSE_MAX.min(self.pause * 2) };
        self.look_at = Instant::now() + self.pause;
        let skipped = size - self.at - FILE_REST_BYTES;
        if skipped > 0 && (is_last || skipped > FILE_REST_BYTES * 8) {
            self.at += skipped;
            reporter.lose(self.stream, usize::try_from(skipped).unwrap_or(0));
        }
        while self.at < size {
            if !is_last && !reporter.has_room() {
                return;
            }
            match sys::read_at(&self.file, &mut buffer, self.at) {
                Ok(length @ 1..) => {
                    reporter.output(self.stream, &buffer[..length]);
                    self.at += i64::try_from(length).expect("at most the buffer's length");
                }
                _ => return,
            }
        }
        // A shortened file is read from its new end.
        self.at = self.at.min(size);
    }
}

#[derive(Debug)]
pub(crate) struct OutputRelay {
    pipes: Vec<PipedOutput>,
    files: Vec<WrittenFile>,
    /// `None` once the end is reported.
    reporter: Option<Reporter>,
    had_readers: bool,
    /// The number of pipes that may still have a reader.
    readers: usize,
    /// The time at which the caller of [`OutputRelay::turn`] has work.
    wakes_at: Option<Instant>,
    /// The time of the last output, and the end of the time in which more of it gathers.
    passed: Option<Instant>,
    gathers_until: Option<Instant>,
}

impl OutputRelay {
    pub(crate) fn new(pipes: Vec<PipedOutput>, files: Vec<WrittenFile>, reporter: Reporter) -> Self {
        let readers = pipes.len();
        Self {
            pipes,
            files,
            reporter: Some(reporter),
            had_readers: readers > 0,
            readers,
            wakes_at: None,
            passed: None,
            gathers_until: None,
        }
    }

    /// Returns true if the caller's pipes had readers, and all have left.
    pub(crate) fn has_lost_readers(&self) -> bool {
        self.had_readers && self.readers == 0
    }

    /// Makes [`OutputRelay::turn`] return at this time.
    pub(crate) fn wake_at(&mut self, at: Option<Instant>) {
        self.wakes_at = at;
    }

    /// Returns true if a host gets reports.
    pub(crate) fn has_host(&self) -> bool {
        self.reporter.is_some()
    }

    /// Returns true if a process may still write to a pipe.
    pub(crate) fn has_pipes(&self) -> bool {
        !self.pipes.is_empty()
    }

    /// Notes that the shell has ended: its output is in the pipes by now, and comes before the end.
    pub(crate) fn begin_end(&mut self) {
        for pipe in &mut self.pipes {
            pipe.due = Some(sys::queued(pipe.read_end.as_raw_fd()));
        }
        self.gathers_until = None;
    }

    /// Returns true if the caller has the shell's output.
    pub(crate) fn has_drained(&self) -> bool {
        self.pipes.iter().all(PipedOutput::has_drained)
    }

    /// Reports the end. Later output is not reported. Returns the reporter if the FIFO has no room for the end.
    pub(crate) fn end(&mut self, exit: Exit) -> Option<Reporter> {
        self.pipes.iter_mut().for_each(|pipe| pipe.report_flood_end(&mut self.reporter));
        let mut reporter = self.reporter.take();
        if let Some(reporter) = &mut reporter {
            self.files.iter_mut().for_each(|file| file.look(reporter, true));
        }
        let late = reporter.and_then(|mut reporter| {
            let is_told = reporter.end(exit);
            reporter.stay_until_seen();
            (!is_told).then_some(reporter)
        });
        self.files.clear();
        for pipe in &mut self.pipes {
            pipe.due = None;
            if pipe.from == pipe.to && sys::is_hung_up(&pipe.read_end) {
                pipe.over.get_or_insert(PipeOver::Writers);
            }
        }
        self.close_ended();
        late
    }

    /// Sleeps until there is something to do or one of the `others` has an event, and does it. Returns true for each of
    /// the others that has one.
    pub(crate) fn turn<const OTHERS: usize>(&mut self, others: [libc::pollfd; OTHERS]) -> [bool; OTHERS] {
        let host = self.reporter.as_ref().map_or(sys::watch(-1, 0), Reporter::watch);
        let mut watched = others.to_vec();
        watched.push(host);
        for pipe in &self.pipes {
            let is_wanted =
                self.gathers_until.is_none() && !pipe.is_blocked && pipe.from == pipe.to && pipe.due != Some(0);
            let reads = if is_wanted { pipe.read_end.as_raw_fd() } else { -1 };
            watched.push(sys::watch(reads, libc::POLLIN));
            let wants_room = pipe.is_blocked && self.gathers_until.is_none();
            watched.push(pipe.output.watch(wants_room));
        }
        let _ = sys::poll_for(&mut watched, self.patience());
        let now = Instant::now();
        self.gathers_until = self.gathers_until.filter(|&until| until > now);
        let mut events = watched.into_iter().map(|watched| watched.revents);
        let has_event = others.map(|_| events.next().unwrap_or(0) != 0);
        if events.next().unwrap_or(0) & libc::POLLERR != 0 {
            self.reporter = None;
        }
        for pipe in &mut self.pipes {
            let (input, output) = (events.next().unwrap_or(0), events.next().unwrap_or(0));
            if output & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0 {
                pipe.over = Some(PipeOver::Reader);
            } else if input != 0 || output != 0 {
                let passed = pipe.pass_on(&mut self.reporter);
                let is_busy = self.passed.replace(now).is_some_and(|before| now < before + BUSY);
                let (much, pause) =
                    if pipe.is_flood { (FLOOD_MOVE_BYTES, FLOOD_GATHER) } else { (SMALL_BYTES, GATHER) };
                self.gathers_until = (is_busy && passed < much).then(|| now + pause);
            }
            if pipe.flood_end.rested_at().is_some_and(|at| at <= now) {
                pipe.report_flood_end(&mut self.reporter);
            }
        }
        self.close_ended();
        if let Some(reporter) = &mut self.reporter {
            self.files.iter_mut().filter(|file| file.look_at <= now).for_each(|file| file.look(reporter, false));
        }
        let is_due = |reporter: &&mut Reporter| reporter.deadline().is_some_and(|at| at <= now);
        if let Some(reporter) = self.reporter.as_mut().filter(is_due) {
            reporter.flush();
        }
        has_event
    }

    /// Closes outputs that no process writes any more, or whose reader has left.
    fn close_ended(&mut self) {
        self.pipes.retain_mut(|pipe| {
            if let Some(over) = pipe.over {
                pipe.report_flood_end(&mut self.reporter);
                sys::close(pipe.fd);
                self.readers -= usize::from(over == PipeOver::Reader);
            }
            pipe.over.is_none()
        });
    }

    fn patience(&self) -> Option<Duration> {
        let looks = self.files.iter().filter(|_| self.has_host()).map(|file| file.look_at).chain(self.gathers_until);
        let rests = self.pipes.iter().filter_map(|pipe| pipe.flood_end.rested_at());
        let told = self.reporter.as_ref().and_then(Reporter::deadline);
        let first = looks.chain(rests).chain(told).chain(self.wakes_at).min();
        first.map(|at| at.saturating_duration_since(Instant::now()))
    }
}
