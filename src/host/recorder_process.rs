//! The recorder's process, from the host's side: started, fed, replaced when it dies, and waited for at the end.
//!
//! Invariants: every recorder gets whole frames from its first byte on; a recorder that dies is replaced as long as the
//! host lives, after a pause that grows when recorders die early; at the host's end the recorder gets everything that is
//! queued, within a bound of time, and if it dies meanwhile, another one gets the rest.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use crate::core::engine::Engine;
use crate::guard::orphans;
use crate::io::outlet::Outlet;
use crate::io::poller::{Poller, Token};
use crate::io::port::{Port, ReadOutcome};
use crate::journal::frame::Frame;
use crate::journal::status::RecorderStatus;
use crate::limits;
use crate::recorder::{self, Bounds, Session};
use crate::sink::feed::Feed;
use crate::sys::{helper, process, socket};
use crate::text::reason::reason;
use rexec_sh::protocol::process::Pid;

/// A recorder whose end the host has not noticed yet.
#[derive(Debug)]
struct LiveRecorder {
    port: Port,
    pid: Pid,
    born: Instant,
    /// It has written something, so whatever ended it does not end every recorder at its beginning.
    has_written: bool,
    /// It has said that everything is done and that it ends.
    has_left: bool,
}

#[derive(Debug)]
pub(super) struct RecorderProcess {
    session: Session,
    bounds: Bounds,
    link: Option<LiveRecorder>,
    pub(super) out: Outlet,
    inbox: Vec<u8>,
    /// The pause before the attempt after the next one.
    pause: Duration,
    pub(super) retry_at: Option<Instant>,
    /// The human knows that the recorder died, and not yet that the journal goes on.
    is_down_told: bool,
}

/// What a recorder said, and if it is gone. Its last words and its end can come together, and no event reports either
/// again.
#[derive(Debug, Default)]
pub(super) struct RecorderNews {
    pub(super) statuses: Vec<RecorderStatus>,
    pub(super) is_gone: bool,
}

/// The loss of a recorder, which the human knows already or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Known,
    New,
}

impl RecorderProcess {
    /// Makes the journal's directory and starts a recorder. Returns once the recorder has named its file or said
    /// something else, or after `RECORDER_FIRST_WORD`.
    pub(super) fn start(poller: &mut Poller, home: &Path, bounds: Bounds) -> Result<(Self, Vec<String>), Notice> {
        let session = Session::new(home, process::uid(), std::process::id());
        session.prepare().map_err(|error| Notice::failed(&error, error.hint()))?;
        let mut recorder = Self {
            session,
            bounds,
            link: None,
            out: Outlet::default(),
            inbox: Vec::new(),
            pause: Duration::ZERO,
            retry_at: None,
            is_down_told: false,
        };
        recorder.connect(poller).map_err(|error| {
            Notice::failed(
                format_args!("the journal's recorder cannot be started: {}", reason(&error)),
                "raise the limits on processes and descriptors (ulimit -u, ulimit -n)",
            )
        })?;
        let (end, mut said) = (Instant::now() + limits::RECORDER_FIRST_WORD, Vec::new());
        while recorder.session.path().is_none() && said.is_empty() {
            let Some(left) = Some(end.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero()) else {
                break;
            };
            recorder.wait(poller, left);
            let news = recorder.read();
            said.extend(news.statuses.into_iter().filter_map(|status| recorder.hear(status)));
            if news.is_gone {
                break;
            }
        }
        Ok((recorder, said))
    }

    /// The journal's file. `None` as long as the recorder has named none.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.session.path()
    }

    /// The registration of the recorder's socket, while there is a recorder.
    pub(super) fn token(&self) -> Option<Token> {
        self.link.as_ref().map(|link| link.port.token())
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.link.as_ref().map(|link| link.pid)
    }

    /// The recorder's socket, while there is a recorder.
    pub(super) fn port(&mut self) -> Option<&mut Port> {
        self.link.as_mut().map(|link| &mut link.port)
    }

    /// Starts a recorder. Everything that was on its way to the one before is dropped, because the feed sends it again.
    fn connect(&mut self, poller: &mut Poller) -> io::Result<()> {
        let (near, far) = socket::pair()?;
        let (session, bounds, fd) = (self.session.clone(), self.bounds, far.as_raw_fd());
        let work = move || {
            process::give_way();
            recorder::serve(session, UnixStream::from(far), bounds);
        };
        let pid = helper::fork(c"rexec-recorder", &[fd], work)?;
        let port = Port::new(poller, near)?;
        self.link = Some(LiveRecorder { port, pid, born: Instant::now(), has_written: false, has_left: false });
        self.out.clear();
        self.inbox.clear();
        Ok(())
    }

    /// Decides when another recorder replaces the dead one. Returns whether the human knows of the loss.
    pub(super) fn on_gone(&mut self, poller: &mut Poller, now: Instant) -> Loss {
        let Some(link) = self.link.take() else { return Loss::Known };
        link.port.close(poller);
        if now.saturating_duration_since(link.born) >= limits::RECORDER_LIVED {
            self.pause = Duration::ZERO;
        } else if link.has_written {
            self.pause = self.pause.min(limits::RECORDER_RETRY);
        }
        self.pause_again(now);
        if std::mem::replace(&mut self.is_down_told, true) { Loss::Known } else { Loss::New }
    }

    /// Sets the next attempt: the first one is made at once, each later one after a longer pause.
    fn pause_again(&mut self, now: Instant) {
        self.retry_at = Some(now + self.pause);
        self.pause = (self.pause * 2).clamp(limits::RECORDER_RETRY, limits::RECORDER_RETRY_MAX);
    }

    /// Starts another recorder if it is time for an attempt. Returns true if there is a new one.
    pub(super) fn retry(&mut self, poller: &mut Poller, now: Instant) -> bool {
        if self.retry_at.is_none_or(|at| at > now) {
            return false;
        }
        match self.connect(poller) {
            Ok(()) => self.retry_at = None,
            Err(_) => self.pause_again(now),
        }
        self.link.is_some()
    }

    pub(super) fn kill(&mut self) {
        if let Some(link) = &self.link {
            orphans::kill_child(link.pid);
        }
    }

    /// Sends as much as the recorder takes. Returns true if it took anything.
    pub(super) fn flush(&mut self) -> bool {
        let before = self.out.pending();
        if let Some(link) = self.link.as_mut().filter(|link| before > 0 && link.port.is_writable()) {
            // The end of a recorder is noticed by reading.
            let _ = self.out.flush(|bytes| link.port.write(|fd| socket::send(fd, bytes, &[])));
        }
        self.out.pending() < before
    }

    pub(super) fn read(&mut self) -> RecorderNews {
        let (mut buffer, mut news) = ([0; 4096], RecorderNews::default());
        let Some(link) = self.link.as_mut() else { return news };
        loop {
            match link.port.read(|fd| socket::receive(fd, &mut buffer)) {
                ReadOutcome::Bytes(length) => self.inbox.extend_from_slice(&buffer[..length]),
                ReadOutcome::Nothing => break,
                ReadOutcome::End => {
                    news.is_gone = true;
                    break;
                }
            }
        }
        while let Some(end) = memchr::memchr(b'\n', &self.inbox) {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            news.statuses.extend(RecorderStatus::decode(String::from_utf8_lossy(&line[..end]).as_ref()));
        }
        news
    }

    /// Takes in what the recorder said. Returns a sentence for the human, if there is one.
    pub(super) fn hear(&mut self, status: RecorderStatus) -> Option<String> {
        match status {
            RecorderStatus::File(name) => {
                self.session.on_file(&name);
                let is_back = std::mem::take(&mut self.is_down_told);
                let path = self.session.path().filter(|_| is_back)?;
                Some(format!("the journal goes on in {}", path.display()))
            }
            RecorderStatus::Done(done) => {
                self.link.iter_mut().for_each(|link| link.has_written |= !done.is_empty());
                self.session.on_length(done.length);
                None
            }
            RecorderStatus::Say(text) => Some(text),
            RecorderStatus::Reached { .. } => None,
            RecorderStatus::Leave => {
                self.link.iter_mut().for_each(|link| link.has_left = true);
                None
            }
        }
    }

    fn wait(&mut self, poller: &mut Poller, time: Duration) {
        let Some(token) = self.token() else { return };
        let Ok(events) = poller.wait(Some(time)) else { return };
        let ours: Vec<_> = events.filter(|ready| ready.token == token).collect();
        if let Some(port) = self.port() {
            ours.into_iter().for_each(|ready| port.remember(ready));
        }
    }

    /// Gives the recorder everything in the queue and waits for its end, as long as it makes progress. If it dies
    /// before the file has everything, another recorder gets the rest. A journal without all ends is not closed: the
    /// next host marks the runs that have no end in it.
    #[expect(clippy::disallowed_methods, reason = "the loop is over")]
    pub(super) fn finish(mut self, poller: &mut Poller, engine: &mut Engine, journal: &mut Feed) {
        let is_whole = journal.is_idle();
        let mut patience = FinishDeadline::new(Instant::now());
        let mut has_close = false;
        let mut is_shut = false;
        while let Some(left) = patience.left(Instant::now()) {
            if self.link.is_none() {
                if !self.retry(poller, Instant::now()) {
                    std::thread::sleep(limits::RECORDER_RETRY.min(left));
                    continue;
                }
                journal.replay(engine, self.out.buffer(), Instant::now());
                (has_close, is_shut) = (false, false);
            }
            if is_whole && !has_close {
                Frame::Close.encode(self.out.buffer());
                has_close = true;
            }
            if self.flush() {
                patience.renew(Instant::now());
            }
            if !is_shut && self.out.is_empty() {
                // The recorder ends at the end of its input.
                is_shut = self.port().is_some_and(|port| socket::shut_writing(port.fd()).is_ok());
            }
            if self.port().is_some_and(|port| port.is_readable()) {
                let news = self.read();
                for status in news.statuses {
                    if let RecorderStatus::Done(done) = &status
                        && journal.on_done(engine, done, Instant::now())
                    {
                        patience.renew(Instant::now());
                    }
                    self.hear(status);
                }
                if news.is_gone && self.link.as_ref().is_some_and(|link| link.has_left) {
                    return;
                }
                if news.is_gone {
                    self.on_gone(poller, Instant::now());
                }
                continue;
            }
            self.wait(poller, left);
        }
    }
}

/// The time that the host's end waits for the recorder: one in all, and a shorter one without progress.
#[derive(Debug)]
struct FinishDeadline {
    end: Instant,
    stalled: Instant,
}

impl FinishDeadline {
    fn new(now: Instant) -> Self {
        Self { end: now + limits::RECORDER_FAREWELL, stalled: now + limits::RECORDER_FAREWELL_STALL }
    }

    fn renew(&mut self, now: Instant) {
        self.stalled = now + limits::RECORDER_FAREWELL_STALL;
    }

    /// The time that is left. `None` when it is over.
    fn left(&self, now: Instant) -> Option<Duration> {
        Some(self.end.min(self.stalled).saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    const TICK: Duration = Duration::from_millis(1);

    #[test]
    fn last_words_and_the_end_are_heard_together() {
        let mut poller = Poller::new().unwrap();
        let (near, far) = socket::pair().unwrap();
        let port = Port::new(&mut poller, near).unwrap();
        let (pid, born) = (Pid::new(std::process::id().cast_signed()), Instant::now());
        let mut recorder = RecorderProcess {
            session: Session::new(Path::new("/nonexistent"), 0, std::process::id()),
            bounds: Bounds::default(),
            link: Some(LiveRecorder { port, pid, born, has_written: false, has_left: false }),
            out: Outlet::default(),
            inbox: Vec::new(),
            pause: Duration::ZERO,
            retry_at: None,
            is_down_told: false,
        };
        let words = [RecorderStatus::Say("one".to_owned()), RecorderStatus::Say("two".to_owned())];
        let mut said = Vec::new();
        words.iter().for_each(|status| status.encode(&mut said));
        sys::write(&far, &said).unwrap();
        let news = recorder.read();
        assert_eq!((news.statuses.as_slice(), news.is_gone), (words.as_slice(), false));
        sys::write(&far, &said).unwrap();
        drop(far);
        // A process that another test is just making may still have the other end.
        let (mut heard, mut is_gone, until) = (Vec::new(), false, Instant::now() + limits::RECORDER_FIRST_WORD);
        while !is_gone && Instant::now() < until {
            let news = recorder.read();
            heard.extend(news.statuses);
            is_gone = news.is_gone;
        }
        assert_eq!((heard.as_slice(), is_gone), (words.as_slice(), true));
    }

    #[test]
    fn a_recorder_that_takes_nothing_is_left_sooner_than_a_slow_one() {
        let start = Instant::now();
        let patience = FinishDeadline::new(start);
        assert_eq!(patience.left(start), Some(limits::RECORDER_FAREWELL_STALL));
        assert_eq!(patience.left(start + limits::RECORDER_FAREWELL_STALL), None);

        let (mut patience, mut now) = (FinishDeadline::new(start), start);
        while let Some(left) = patience.left(now) {
            assert!(left <= limits::RECORDER_FAREWELL_STALL && now + left <= start + limits::RECORDER_FAREWELL);
            now += left.saturating_sub(TICK).max(TICK);
            patience.renew(now);
        }
        assert_eq!(now, start + limits::RECORDER_FAREWELL, "one that is slow is given all of it");
    }
}
