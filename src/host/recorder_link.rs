//! What the host does about its recorder: tells the human how it is, replaces one that died, gives it what there is.
//!
//! Invariants: the loop never waits for a recorder; the human reads one line when one dies and one when the journal goes
//! on, however often it is tried in between.

use super::recorder_process::Loss;
use super::{Host, Source};
use crate::journal::status::RecorderStatus;
use crate::limits;
use crate::text::count::counted;
use crate::text::escape::escape_line;

/// The most of what the recorder says, columns: a sentence and a path.
const NEWS_COLUMNS: usize = 4096;

impl Host {
    /// Takes what the recorder says.
    pub(super) fn visit_recorder(&mut self) {
        let Some(news) = self.scribe.read() else { return self.on_recorder_gone() };
        for status in news {
            if let RecorderStatus::Done(done) = &status
                && self.journal.on_done(&mut self.engine, done, self.now)
            {
                self.has_recorder_room = true;
            }
            if let Some(text) = self.scribe.hear(status) {
                let text = escape_line(&text, NEWS_COLUMNS);
                self.console.say(&format!("… {text}"), self.screen.out.buffer());
            }
        }
    }

    fn on_recorder_gone(&mut self) {
        if let Some(token) = self.scribe.token() {
            self.sources.remove(&token);
        }
        self.journal.on_down(self.now);
        if self.scribe.on_gone(&mut self.poller, self.now) == Loss::New {
            let line = "… the journal's recorder died; another one is started";
            self.console.say(line, self.screen.out.buffer());
        }
        self.retry_recorder();
    }

    fn retry_recorder(&mut self) {
        if self.scribe.retry(&mut self.poller, self.now) {
            self.sources.extend(self.scribe.token().map(|token| (token, Source::Recorder)));
            self.journal.replay(&mut self.engine, self.scribe.out.buffer(), self.now);
            self.has_recorder_room = true;
        }
    }

    /// Time has passed.
    pub(super) fn tick_recorder(&mut self) {
        if self.journal.tick(&mut self.engine, self.now) {
            self.dirty.extend(self.runs.keys());
        }
        if let Some(text) = self.journal.take_notice(self.now) {
            self.console.say(&format!("… {text}"), self.screen.out.buffer());
        }
        if self.journal.is_stuck(self.now) {
            let seconds = limits::RECORDER_STUCK.as_secs();
            let line = format!("… the journal's recorder has done nothing for {seconds} s: it is killed");
            self.console.say(&line, self.screen.out.buffer());
            self.scribe.kill();
            // A recorder that waits for a dead disk cannot even die; nobody waits for it.
            self.on_recorder_gone();
        }
        self.retry_recorder();
    }

    /// Sends what is due to the recorder, and gives it more; whether logs may have room because of it.
    pub(super) fn flush_recorder(&mut self) -> bool {
        let has_room = std::mem::take(&mut self.has_recorder_room);
        if has_room {
            self.journal.pump_all(&mut self.engine, self.scribe.out.buffer(), self.now);
        }
        self.tell_given_up();
        if !self.scribe.out.is_empty() && self.journal.is_due(self.scribe.out.pending(), self.now) {
            self.scribe.flush();
        }
        has_room
    }

    /// Says how many records were given up, on the console and in the file.
    pub(super) fn tell_given_up(&mut self) {
        let count = self.journal.take_given_up(self.scribe.out.buffer(), self.now);
        if count > 0 {
            let records = counted(count, "record", "records");
            let line = format!("… the journal lacks {records}: its recorder took nothing for too long");
            self.console.say(&line, self.screen.out.buffer());
        }
    }
}
