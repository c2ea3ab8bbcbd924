//! The reporter: writes what a command does to the host's FIFO.
//!
//! Invariants: no write waits; what the FIFO has no room for is counted, and the command goes on as if nobody read; the
//! FIFO is this user's and closed to others.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::libc;
use rexec_sh::protocol::place::{self, PlaceError};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{PAYLOAD_BYTES_MAX, RECORD_BYTES_MAX, Report, RunKey, encode_report, reported_mark};
use rexec_sh::protocol::wire::CallerStream;

use crate::sys;

/// How long output waits for more, so that a command that writes in small pieces costs few records.
const DELAY: Duration = Duration::from_millis(20);

/// Output that is reported in a second, bytes. The rest is counted, so that a flood costs nothing but that.
const ALLOWANCE_BYTES: usize = 2 << 20;
const SECOND: Duration = Duration::from_secs(1);

/// A run's way to the host.
#[derive(Debug)]
pub(crate) struct Reporter {
    fifo: OwnedFd,
    key: RunKey,
    number: u32,
    record: Vec<u8>,
    /// Output that waits for more, and since when.
    waiting: Vec<u8>,
    stream: CallerStream,
    since: Option<Instant>,
    unreported: u64,
    /// Output is reported until the FIFO holds this, bytes. The rest of it is for beginnings and ends.
    room: usize,
    /// It was full, and has not been read far enough since.
    is_full: bool,
    /// What was reported in the second that began then, bytes.
    second: (Instant, usize),
}

impl Reporter {
    /// Opens the FIFO beside this socket. `None` when no host reads it, or when it cannot be trusted.
    pub(crate) fn open(socket: &Path) -> Option<Self> {
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
        // A short record may take a whole page of it, so it may be full when it holds half of its bytes.
        let room = sys::capacity(fifo.as_raw_fd()).map_or(RECORD_BYTES_MAX, |capacity| capacity / 4);
        Some(Self {
            fifo,
            key: sys::random().ok()?,
            number: 0,
            record: Vec::with_capacity(RECORD_BYTES_MAX),
            waiting: Vec::with_capacity(PAYLOAD_BYTES_MAX),
            stream: CallerStream::Out,
            since: None,
            unreported: 0,
            room,
            is_full: false,
            second: (Instant::now(), 0),
        })
    }

    /// The variable that names this run.
    pub(crate) fn mark(&self) -> CString {
        reported_mark(&self.key)
    }

    /// Reports the beginning. Returns whether the FIFO has all of it.
    pub(crate) fn begin(&mut self, beginning: &[u8]) -> bool {
        let count = beginning.chunks(PAYLOAD_BYTES_MAX).count();
        let pieces = beginning.chunks(PAYLOAD_BYTES_MAX).zip(1..);
        pieces.into_iter().all(|(piece, at)| self.write(&Report::Begin { piece, is_last: at == count }))
    }

    /// Whether there is room for output. Once there was none, much must have been read before there is room again, so that
    /// what is left out are few and long pieces.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.second.1 >= ALLOWANCE_BYTES {
            let now = Instant::now();
            if now < self.second.0 + SECOND {
                return false;
            }
            self.second = (now, 0);
        }
        let most = if self.is_full { self.room / 4 } else { self.room };
        self.is_full = sys::queued(self.fifo.as_raw_fd()) >= most;
        !self.is_full
    }

    /// Whether there is room for the end of a flood.
    pub(crate) fn has_reserve(&self) -> bool {
        sys::queued(self.fifo.as_raw_fd()) < self.room + self.room / 2
    }

    /// Reports output, at once or soon.
    pub(crate) fn output(&mut self, stream: CallerStream, mut bytes: &[u8]) {
        if self.stream != stream {
            self.flush();
            self.stream = stream;
        }
        while !bytes.is_empty() {
            let taken = bytes.len().min(PAYLOAD_BYTES_MAX - self.waiting.len());
            self.waiting.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.waiting.len() == PAYLOAD_BYTES_MAX {
                self.flush();
            }
        }
        if !self.waiting.is_empty() {
            self.since.get_or_insert_with(Instant::now);
        }
    }

    /// Counts output that is not reported.
    pub(crate) fn lose(&mut self, bytes: usize) {
        if !self.waiting.is_empty() {
            self.flush_if(true);
        }
        self.unreported += u64::try_from(bytes).expect("a length has 64 bits");
    }

    /// When output has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + DELAY)
    }

    /// Reports the output that waits, unless the FIFO has only room for beginnings and ends.
    pub(crate) fn flush(&mut self) {
        let has_reserve = self.has_reserve();
        self.flush_if(has_reserve);
    }

    fn flush_if(&mut self, has_room: bool) {
        self.since = None;
        let waiting = std::mem::take(&mut self.waiting);
        self.second.1 += waiting.len();
        if !waiting.is_empty() {
            let is_told = has_room
                && self.tell_unreported()
                && self.write(&Report::Output { stream: self.stream, bytes: &waiting });
            if !is_told {
                self.unreported += u64::try_from(waiting.len()).expect("a length has 64 bits");
            }
        }
        self.waiting = waiting;
        self.waiting.clear();
    }

    /// Reports the end.
    pub(crate) fn end(&mut self, exit: Exit) {
        self.flush_if(true);
        self.tell_unreported();
        self.write(&Report::End(exit));
    }

    fn tell_unreported(&mut self) -> bool {
        let is_told = self.unreported == 0 || self.write(&Report::Unreported(self.unreported));
        if is_told {
            self.unreported = 0;
        }
        is_told
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
