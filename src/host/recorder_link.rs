//! The recorder link: what the host keeps for the journal, and the recorder's process that writes it.
//!
//! [`RecorderLink::begin`] gives the journal a reader of the command's log, which takes all facts from there.
//!
//! Invariants: the loop never waits for a recorder; the human reads one line when a recorder dies and one when the
//! journal goes on, however often it is tried in between, and of records that are given up one line a second.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rexec_sh::protocol::notice::Notice;

use super::recorder_process::{Loss, RecorderProcess};
use super::screen::Screen;
use super::turn::{Source, Turn};
use crate::core::engine::{Engine, JobId};
use crate::io::poller::{Poller, Ready, Token};
use crate::journal::record::{DestroyedRecord, StartRecord, UnseenRecord};
use crate::journal::status::{OutputSoFar, RecorderStatus};
use crate::limits;
use crate::recorder::Bounds;
use crate::sink::feed::Feed;
use crate::text::count::counted;
use crate::text::escape::escape_line;
use rexec_sh::protocol::process::Pid;

/// Columns that a line from the recorder may take: a sentence and a path.
const NEWS_COLUMNS: usize = 4096;

#[derive(Debug)]
pub(super) struct RecorderLink {
    process: RecorderProcess,
    feed: Feed,
    /// The recorder has written something, so that there is room for more.
    has_room: bool,
    /// The recorder's answers about runs that a person begins to follow: the mark's number, and the output so far.
    pub(super) reached: Vec<(u64, Option<OutputSoFar>)>,
    lack: Lack,
}

/// The records that were given up and of which the human has not read, and when the last ones were told of.
#[derive(Debug, Default)]
struct Lack {
    untold: u64,
    told_at: Option<Instant>,
}

impl Lack {
    /// When the rest is told of.
    fn deadline(&self) -> Option<Instant> {
        let at = self.told_at.map(|at| at + limits::RECORDER_GIVEN_UP_PAUSE);
        at.filter(|_| self.untold > 0)
    }

    /// Adds records. Returns the number to tell of now.
    fn add(&mut self, count: u64, is_last: bool, now: Instant) -> Option<u64> {
        self.untold += count;
        let is_due = is_last || self.deadline().is_none_or(|at| at <= now);
        if self.untold == 0 || !is_due {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

impl RecorderLink {
    /// Makes the journal's directory and starts a recorder. Also returns what the recorder said.
    ///
    /// # Errors
    /// The directory cannot be made or is not private, or no process can be started.
    pub(super) fn start(poller: &mut Poller, home: &Path, bounds: Bounds) -> Result<(Self, Vec<String>), Notice> {
        let (process, said) = RecorderProcess::start(poller, home, bounds)?;
        Ok((Self { process, feed: Feed::default(), has_room: false, reached: Vec::new(), lack: Lack::default() }, said))
    }

    /// The journal's file. `None` as long as the recorder has named none.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.process.path()
    }

    /// The name of the journal's file. `None` as long as the recorder has named none.
    pub(super) fn session(&self) -> Option<String> {
        Some(self.path()?.file_stem()?.to_str()?.to_owned())
    }

    /// The name of a run among those of all sessions.
    pub(super) fn reference(&self, job: JobId) -> String {
        self.session().map_or_else(|| job.0.to_string(), |session| format!("{session}:{}", job.0))
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.process.pid()
    }

    /// The registration of the recorder's socket, while there is a recorder.
    pub(super) fn token(&self) -> Option<Token> {
        self.process.token()
    }

    pub(super) fn remember(&mut self, event: Ready) {
        if let Some(port) = self.process.port() {
            port.remember(event);
        }
    }

    /// When [`RecorderLink::tick`] or [`RecorderLink::flush`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [self.feed.deadline(), self.feed.send_at(), self.process.retry_at, self.lack.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// A command begins, with this environment (`NAME=value`).
    pub(super) fn begin<'a>(
        &mut self,
        engine: &mut Engine,
        start: &StartRecord,
        environment: impl IntoIterator<Item = &'a [u8]>,
        now: Instant,
    ) {
        if let Some(cursor) = engine.attach(JobId(start.card.seq), self.feed.lag()) {
            self.feed.begin(cursor, start, environment, self.process.out.buffer(), now);
        }
    }

    pub(super) fn on_unseen(&mut self, unseen: UnseenRecord, now: Instant) {
        self.feed.on_unseen(unseen, self.process.out.buffer(), now);
    }

    pub(super) fn on_destroyed(&mut self, destroyed: DestroyedRecord, now: Instant) {
        self.feed.on_destroyed(destroyed, self.process.out.buffer(), now);
    }

    /// Keeps the text of the project sessions for the next host.
    pub(super) fn keep_projects(&mut self, text: Vec<u8>, now: Instant) {
        self.feed.keep_projects(text, self.process.out.buffer(), now);
    }

    /// Takes what a command's log has for the journal, up to the limit of its room.
    pub(super) fn pump(&mut self, engine: &mut Engine, job: JobId, now: Instant) {
        self.feed.pump(engine, job, self.process.out.buffer(), now);
    }

    pub(super) fn visit(&mut self, turn: &mut Turn, engine: &mut Engine, screen: &mut Screen) {
        let news = self.process.read();
        for status in news.statuses {
            if let RecorderStatus::Done(done) = &status
                && self.feed.on_done(engine, done, turn.now)
            {
                self.has_room = true;
            }
            if let RecorderStatus::Reached { mark, so_far } = status {
                self.reached.push((mark, so_far));
                continue;
            }
            if let Some(text) = self.process.hear(status) {
                screen.say(format_args!("… {}", escape_line(&text, NEWS_COLUMNS)));
            }
        }
        if news.is_gone {
            self.on_gone(turn, engine, screen);
        }
    }

    fn on_gone(&mut self, turn: &mut Turn, engine: &mut Engine, screen: &mut Screen) {
        if let Some(token) = self.token() {
            turn.forget(token);
        }
        self.feed.on_down(turn.now);
        if self.process.on_gone(&mut turn.poller, turn.now) == Loss::New {
            screen.say("… the journal's recorder died; another one is started");
        }
        self.retry(turn, engine);
    }

    fn retry(&mut self, turn: &mut Turn, engine: &mut Engine) {
        if self.process.retry(&mut turn.poller, turn.now) {
            if let Some(token) = self.token() {
                turn.name(token, Source::Recorder);
            }
            self.feed.replay(engine, self.process.out.buffer(), turn.now);
            self.has_room = true;
        }
    }

    /// Returns true if logs may have room because time has passed.
    pub(super) fn tick(&mut self, turn: &mut Turn, engine: &mut Engine, screen: &mut Screen) -> bool {
        let has_let_go = self.feed.tick(engine, turn.now);
        if let Some(text) = self.feed.take_notice(turn.now) {
            screen.say(format_args!("… {text}"));
        }
        if self.feed.is_stuck(turn.now) {
            let seconds = limits::RECORDER_STUCK.as_secs();
            screen.say(format_args!("… the journal's recorder has done nothing for {seconds} s: it is killed"));
            self.process.kill();
            // A recorder that waits for a dead disk does not die of SIGKILL, so its end is not waited for.
            self.on_gone(turn, engine, screen);
        }
        self.retry(turn, engine);
        has_let_go
    }

    /// Sends what is due to the recorder, and takes more from the logs. Returns true if logs may have room because of
    /// it.
    pub(super) fn flush(&mut self, engine: &mut Engine, screen: &mut Screen, now: Instant) -> bool {
        let has_room = std::mem::take(&mut self.has_room);
        if has_room {
            self.feed.pump_all(engine, self.process.out.buffer(), now);
        }
        self.tell_given_up(false, screen, now);
        if !self.process.out.is_empty() && self.feed.is_due(self.process.out.pending(), now) {
            self.process.flush();
        }
        has_room
    }

    /// Reports the number of records that were given up, in the file, and on the console once in a while; `is_last`: now.
    pub(super) fn tell_given_up(&mut self, is_last: bool, screen: &mut Screen, now: Instant) {
        let count = self.feed.take_given_up(self.process.out.buffer(), now);
        if let Some(count) = self.lack.add(count, is_last, now) {
            let records = counted(count, "record", "records");
            screen.say(format_args!("… the journal lacks {records}: its recorder took nothing for too long"));
        }
    }

    /// The host ends: gives the recorder everything that is left, within a bound of time.
    pub(super) fn finish(mut self, poller: &mut Poller, engine: &mut Engine) {
        // A recorder that was behind left entries in the commands' logs, ends among them.
        self.feed.finish(engine, self.process.out.buffer(), Instant::now());
        self.process.finish(poller, engine, &mut self.feed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_up_records_are_told_of_at_once_and_then_together() {
        let (mut lack, now) = (Lack::default(), Instant::now());
        assert_eq!((lack.add(0, true, now), lack.deadline()), (None, None));
        assert_eq!((lack.add(1, false, now), lack.deadline()), (Some(1), None));
        let later = now + limits::RECORDER_GIVEN_UP_PAUSE;
        for _ in 0..5 {
            assert_eq!((lack.add(2, false, now), lack.deadline()), (None, Some(later)));
        }
        assert_eq!((lack.add(0, false, later), lack.deadline()), (Some(10), None));
        assert_eq!((lack.add(3, false, later), lack.add(4, true, later)), (None, Some(7)), "the host ends");
    }
}
