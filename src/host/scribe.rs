//! The host's link to the recorder's process.
//!
//! Invariants: the recorder is restarted when it dies, and said so; every recorder gets whole frames from the first byte
//! on; at the host's end it gets everything that is queued, within a bound of time.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::io::outlet::{Flush, Outlet};
use crate::io::poller::{Poller, Token};
use crate::io::port::{Input, Port};
use crate::limits;
use crate::sink::record::Begun;
use crate::sink::recorder::{self, Limits};
use crate::sys::{process, socket};
use crate::text::reason::reason;

/// The recorder, from the host's side.
#[derive(Debug)]
pub(super) struct Scribe {
    home: PathBuf,
    /// The journal's file.
    pub(super) path: PathBuf,
    /// Runs of earlier hosts that were marked as lost.
    pub(super) lost: u64,
    pub(super) port: Port,
    pub(super) pid: i32,
    /// Frames on their way.
    pub(super) out: Outlet,
    begun: Begun,
    inbox: Vec<u8>,
}

/// What a flush did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) has_moved: bool,
    pub(super) is_empty: bool,
}

impl Scribe {
    /// Opens a journal and starts its recorder.
    pub(super) fn start(poller: &mut Poller, home: &Path) -> Result<Self, Failure> {
        let opened = recorder::open(home, process::uid()).map_err(|error| Failure::new(&error, error.hint()))?;
        let failed = |error: io::Error| {
            Failure::new(
                format_args!("the journal's recorder cannot be started: {}", reason(&error)),
                "raise the limits on processes and descriptors (ulimit -u, ulimit -n)",
            )
        };
        let (path, lost) = (opened.path.clone(), opened.lost);
        let (near, far) = socket::pair().map_err(failed)?;
        let keep: Vec<i32> = opened.descriptor().into_iter().chain([far.as_raw_fd()]).collect();
        let work = move || recorder::serve(opened, UnixStream::from(far), Limits::default());
        let pid = process::fork_helper(c"rexec-recorder", &keep, work).map_err(failed)?;
        let port = Port::new(poller, near).map_err(failed)?;
        let (out, begun, inbox) = (Outlet::default(), Begun::default(), Vec::new());
        Ok(Self { home: home.to_owned(), path, lost, port, pid, out, begun, inbox })
    }

    /// Its name in the poll.
    pub(super) fn token(&self) -> Token {
        self.port.token()
    }

    /// Starts another recorder in place of one that died; what was queued goes to the new one.
    pub(super) fn restart(&mut self, poller: &mut Poller) -> Result<(), Failure> {
        let next = Self::start(poller, &self.home)?;
        let before = std::mem::replace(self, next);
        self.out = before.out;
        self.out.put_back(before.begun.bytes());
        before.port.close(poller);
        Ok(())
    }

    /// Sends what goes.
    pub(super) fn flush(&mut self) -> Progress {
        let before = self.out.pending();
        if before > 0 && self.port.is_writable() {
            let (port, begun) = (&mut self.port, &mut self.begun);
            let flushed = self.out.flush(|bytes| {
                let sent = port.write(|fd| socket::send(fd, bytes, &[]))?;
                begun.on_sent(&bytes[..sent.unwrap_or(0)]);
                Ok(sent)
            });
            return Progress { has_moved: self.out.pending() < before, is_empty: matches!(flushed, Ok(Flush::Done)) };
        }
        Progress { has_moved: false, is_empty: before == 0 }
    }

    /// Takes the recorder's status lines; `None` when it is gone.
    pub(super) fn read(&mut self) -> Option<Vec<String>> {
        let mut buffer = [0; 1024];
        loop {
            match self.port.read(|fd| socket::receive(fd, &mut buffer)) {
                Input::Bytes(length) => self.inbox.extend_from_slice(&buffer[..length]),
                Input::Nothing => break,
                Input::End => return None,
            }
        }
        let mut lines = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.inbox) {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            lines.push(String::from_utf8_lossy(line.trim_ascii_end()).into_owned());
        }
        Some(lines)
    }

    /// Gives the recorder everything that is queued and waits for its end, as long as it takes something now and then.
    /// A journal that is not whole is not closed: the next host marks what has no end in it.
    pub(super) fn finish(mut self, poller: &mut Poller, is_whole: bool) {
        if is_whole {
            crate::sink::record::encode_close(self.out.buffer());
        }
        let mut patience = Patience::new(Instant::now());
        let mut closed = false;
        loop {
            if self.flush().has_moved {
                patience.renew(Instant::now());
            }
            if !closed && self.out.is_empty() {
                // The recorder ends at the end of its input.
                closed = socket::shut_writing(self.port.fd()).is_ok();
            }
            if self.port.is_readable() && self.read().is_none() {
                return;
            }
            let Some(left) = patience.left(Instant::now()) else { return };
            let token = self.port.token();
            let Ok(events) = poller.wait(Some(left)) else { return };
            let ours: Vec<_> = events.filter(|ready| ready.token == token).collect();
            ours.into_iter().for_each(|ready| self.port.remember(ready));
        }
    }
}

/// How long the host's end waits for the recorder: for so long in all, and without any progress for less.
#[derive(Debug)]
struct Patience {
    end: Instant,
    stalled: Instant,
}

impl Patience {
    fn new(now: Instant) -> Self {
        Self { end: now + limits::RECORDER_FAREWELL, stalled: now + limits::RECORDER_FAREWELL_STALL }
    }

    /// The recorder has taken something.
    fn renew(&mut self, now: Instant) {
        self.stalled = now + limits::RECORDER_FAREWELL_STALL;
    }

    /// What is left of it; `None` when it is over.
    fn left(&self, now: Instant) -> Option<Duration> {
        Some(self.end.min(self.stalled).saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(1);

    #[test]
    fn a_recorder_that_takes_nothing_is_left_sooner_than_a_slow_one() {
        let start = Instant::now();
        let patience = Patience::new(start);
        assert_eq!(patience.left(start), Some(limits::RECORDER_FAREWELL_STALL));
        assert_eq!(patience.left(start + limits::RECORDER_FAREWELL_STALL), None);

        let (mut patience, mut now) = (Patience::new(start), start);
        while let Some(left) = patience.left(now) {
            assert!(left <= limits::RECORDER_FAREWELL_STALL && now + left <= start + limits::RECORDER_FAREWELL);
            now += left.saturating_sub(TICK).max(TICK);
            patience.renew(now);
        }
        assert_eq!(now, start + limits::RECORDER_FAREWELL, "one that is slow is given all of it");
    }
}
