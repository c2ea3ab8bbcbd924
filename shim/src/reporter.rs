//! The reporter: writes the events of a command to the host's FIFO.
//!
//! Invariants: no write waits; output without room in the FIFO is kept up to a bound, the newest part of it, and
//! counted beyond, so the end of an output is always reported; the command goes on as if nobody read; the FIFO is this
//! user's and closed to others.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use rexec_sh::protocol::options::given;
use rexec_sh::protocol::place::{self, PlaceError};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{
    MaskedStream, PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX, Report, RunKey, RunMark, ValueMasks, encode_report,
    reported_entry,
};
use rexec_sh::protocol::wire::CallerStream;

use crate::sys;

/// The time for which output waits for more, so that a command that writes in small pieces costs few records.
const DELAY: Duration = Duration::from_millis(20);
/// The newest bytes kept of output for which there is no room. Twice as many may wait.
const KEPT_BYTES: usize = 8 << 10;
/// The time for which the end of a report waits for room in the FIFO, milliseconds. A host that has not read by then
/// does not get it.
const END_PATIENCE_MS: i32 = 10_000;

/// The time for which an ended shim stays to be found by the host.
const SIGHT_PATIENCE: Duration = Duration::from_millis(250);
/// The bytes of output reported in a second. The rest is only counted, so a flood costs little.
const ALLOWANCE_BYTES: usize = 2 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// The unreported part of one output.
#[derive(Debug)]
struct ReportedStream {
    stream: CallerStream,
    /// Bytes that are only counted. They came before the rest.
    unreported: u64,
    /// The part of it that is not masked yet.
    masked: MaskedStream,
    /// Output that waits for more, or for room.
    waiting: Vec<u8>,
}

/// A run's way to the host.
#[derive(Debug)]
pub(crate) struct Reporter {
    fifo: OwnedFd,
    key: RunKey,
    mark: RunMark,
    number: u32,
    record: Vec<u8>,
    /// Both streams; the last written one is the second.
    streams: [ReportedStream; 2],
    /// The time at which the waiting output is reported.
    due: Option<Instant>,
    /// Output is reported until the FIFO holds this many bytes. The rest of it is for beginnings and ends.
    room: usize,
    /// It was full, and not enough has been read since.
    is_full: bool,
    /// The start of the present second, and the bytes reported in it.
    second: (Instant, usize),
}

impl Reporter {
    /// Opens the FIFO beside this socket. `None` if no host reads it, or if it cannot be trusted.
    pub(crate) fn open(socket: &Path, masks: &ValueMasks) -> Option<Self> {
        let uid = sys::effective_uid();
        match place::check_directory(place::directory(socket), uid) {
            Ok(()) | Err(PlaceError::Unreadable(_)) => {}
            Err(_) => return None,
        }
        let path = CString::new(place::report_path(socket).into_os_string().into_vec()).ok()?;
        let fifo = sys::open(&path, libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOFOLLOW).ok()?;
        let (owner, mode) = sys::fifo_status(&fifo)?;
        if owner != uid || mode & 0o177 != 0 {
            return None;
        }
        // A short record may take a whole page of it, so it may be full with half of its bytes.
        let room = sys::capacity(fifo.as_raw_fd()).map_or(RECORD_BYTES_MAX, |capacity| capacity / 4);
        Some(Self {
            fifo,
            key: sys::random().ok()?,
            mark: sys::random().ok()?,
            number: 0,
            record: Vec::with_capacity(RECORD_BYTES_MAX),
            streams: [CallerStream::Err, CallerStream::Out].map(|stream| ReportedStream::new(stream, masks)),
            due: None,
            room,
            is_full: false,
            second: (Instant::now(), 0),
        })
    }

    /// The mark of this run in its command's environment.
    pub(crate) fn mark(&self) -> RunMark {
        self.mark
    }

    /// The variable with the mark. `socket` is the host's socket that the caller has chosen.
    pub(crate) fn entry(&self, socket: Option<&CStr>) -> CString {
        reported_entry(&self.mark, given(socket))
    }

    /// Reports the beginning. Returns true if the FIFO has all of it.
    pub(crate) fn begin(&mut self, beginning: &[u8]) -> bool {
        let count = beginning.chunks(PAYLOAD_BYTES_MAX).count();
        let pieces = beginning.chunks(PAYLOAD_BYTES_MAX).zip(1..);
        pieces.into_iter().all(|(piece, at)| self.write(&Report::Begin { piece, is_last: at == count }))
    }

    /// Returns true if there is room for output. Once there was none, much must be read before there is room again, so
    /// that the left-out pieces are few and long.
    pub(crate) fn has_room(&mut self) -> bool {
        if !self.has_allowance() {
            return false;
        }
        let most = if self.is_full { self.room / 4 } else { self.room };
        self.is_full = sys::queued(self.fifo.as_raw_fd()) >= most;
        !self.is_full
    }

    /// Reports output, at once or soon.
    pub(crate) fn output(&mut self, stream: CallerStream, bytes: &[u8]) {
        if self.streams[1].stream != stream {
            self.flush();
            self.streams.swap(0, 1);
        }
        for piece in bytes.chunks(PAYLOAD_BYTES_MAX) {
            let ReportedStream { masked, waiting, .. } = &mut self.streams[1];
            masked.push(piece, waiting);
            if self.streams[1].waiting.len() >= PAYLOAD_BYTES_MAX {
                self.flush();
            }
        }
        if self.is_any_waiting() {
            self.due.get_or_insert_with(|| Instant::now() + DELAY);
        }
    }

    /// Counts output that nobody has seen.
    pub(crate) fn lose(&mut self, stream: CallerStream, bytes: usize) {
        if bytes == 0 {
            return;
        }
        if self.is_any_waiting() {
            self.flush();
        }
        for lost in self.streams.iter_mut().filter(|one| one.stream == stream) {
            lost.keep(0);
            let bytes = lost.masked.forget() + bytes;
            lost.unreported += u64::try_from(bytes).expect("a length has 64 bits");
        }
    }

    /// The time at which output has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// Reports the waiting output. If the FIFO has room only for beginnings and ends, or enough was reported in this
    /// second, the newest part waits on.
    pub(crate) fn flush(&mut self) {
        self.due = None;
        let has_reserve = sys::queued(self.fifo.as_raw_fd()) < self.room + self.room / 2;
        if has_reserve && self.has_allowance() {
            self.tell_waiting();
        }
        if self.is_any_waiting() {
            self.due = Some(Instant::now() + DELAY * 5);
        }
        self.streams.iter_mut().filter(|one| one.waiting.len() >= 2 * KEPT_BYTES).for_each(|one| one.keep(KEPT_BYTES));
    }

    fn is_any_waiting(&self) -> bool {
        self.streams.iter().any(|one| !one.waiting.is_empty())
    }

    /// Reports the end. Returns `false` if the FIFO has no room for it.
    pub(crate) fn end(&mut self, exit: Exit) -> bool {
        self.streams.iter_mut().for_each(|one| one.masked.end(&mut one.waiting));
        self.tell_waiting() && self.write(&Report::End(exit))
    }

    /// As [`Reporter::end`], and waits for room.
    pub(crate) fn end_in_time(mut self, exit: Exit) {
        let until = Instant::now() + Duration::from_millis(END_PATIENCE_MS.unsigned_abs().into());
        while !self.end(exit) && Instant::now() < until {
            let mut watched = [sys::watch(self.fifo.as_raw_fd(), libc::POLLOUT)];
            let _ = sys::poll(&mut watched, END_PATIENCE_MS);
            if watched[0].revents & (libc::POLLERR | libc::POLLNVAL) != 0 {
                return;
            }
        }
    }

    /// Waits until the host has looked for this process; otherwise it does not believe the report. Mostly it has done
    /// so when the command ends.
    pub(crate) fn stay_until_seen(&self) {
        let fifo = self.fifo.as_raw_fd();
        // The host locks the FIFO before it reads, until it has looked.
        let is_due = || sys::queued(fifo) > 0 || sys::is_write_locked(&self.fifo);
        let until = Instant::now() + SIGHT_PATIENCE;
        while is_due() && Instant::now() < until {
            let mut watched = [self.watch()];
            let _ = sys::poll(&mut watched, 1);
            if watched[0].revents & (libc::POLLERR | libc::POLLNVAL) != 0 {
                return;
            }
        }
    }

    /// The poll(2) entry for the departure of the host.
    pub(crate) fn watch(&self) -> libc::pollfd {
        sys::watch(self.fifo.as_raw_fd(), 0)
    }

    fn has_allowance(&mut self) -> bool {
        if self.second.1 < ALLOWANCE_BYTES {
            return true;
        }
        let now = Instant::now();
        let is_over = now >= self.second.0 + SECOND;
        if is_over {
            self.second = (now, 0);
        }
        is_over
    }

    /// Reports the waiting and the counted output, until the FIFO is full. Returns true if it took all.
    fn tell_waiting(&mut self) -> bool {
        (0..self.streams.len()).all(|at| self.tell_stream(at))
    }

    fn tell_stream(&mut self, at: usize) -> bool {
        let ReportedStream { stream, unreported, .. } = self.streams[at];
        if unreported > 0 {
            if !self.write(&Report::Unreported { stream, bytes: unreported }) {
                return false;
            }
            self.streams[at].unreported = 0;
        }
        let waiting = std::mem::take(&mut self.streams[at].waiting);
        let tell = |piece: &&[u8]| self.write(&Report::Output { stream, bytes: piece });
        let told: usize = waiting.chunks(PAYLOAD_BYTES_MAX).take_while(tell).map(<[u8]>::len).sum();
        self.streams[at].waiting.extend_from_slice(&waiting[told..]);
        self.second.1 += told;
        told == waiting.len()
    }

    /// Writes one record. The kernel takes it whole or not at all.
    fn write(&mut self, report: &Report<'_>) -> bool {
        self.record.clear();
        encode_report(&self.key, self.number, report, &mut self.record);
        let is_written = sys::write(self.fifo.as_raw_fd(), &self.record).is_ok();
        self.number += u32::from(is_written);
        is_written
    }
}

impl ReportedStream {
    fn new(stream: CallerStream, masks: &ValueMasks) -> Self {
        Self { stream, unreported: 0, masked: MaskedStream::new(masks.clone()), waiting: Vec::new() }
    }

    /// Keeps this much of the waiting output, the newest part, and counts the rest.
    fn keep(&mut self, bytes: usize) {
        let oldest = self.waiting.len().saturating_sub(bytes);
        self.waiting.drain(..oldest);
        self.unreported += u64::try_from(oldest).expect("a length has 64 bits");
    }
}
