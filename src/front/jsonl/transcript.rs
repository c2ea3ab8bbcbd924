//! The transcript: one line of JSON for each command that has ended. The published clients of version 0.5 print it.
//!
//! ```text
//! {"action":"attach","ansi":true} ▶ {"event":"transcript","entry":{"whoami":"Me","dir":"/p","exec":["ls"],"exit":0,…}}
//! ```
//!
//! Invariants: it holds back no command; the output that it gathers counts against the bound of all JSON answers, and what
//! is left out is counted.

use std::rc::Rc;

use serde::Serialize;

use super::response::Gathered;
use crate::core::card::{Card, CommandLine};
use crate::core::end::End;
use crate::core::engine::{Cursor, Engine};
use crate::core::entry::Entry;
use crate::core::log::{Item, Taken};
use crate::front::budget::Budget;
use crate::front::how_ended::HowEnded;
use crate::front::json_line::put_line;
use crate::limits;
use crate::text::echo::TYPED;
use crate::text::redact::{Redactor, StreamRedactor};

#[derive(Debug)]
struct OpenTranscriptEntry {
    cursor: Cursor,
    card: Rc<Card>,
    /// The directory and the command, without secrets if the host masks them.
    dir: String,
    exec: Vec<String>,
    output: Gathered,
    /// Masks secrets in it, if the host does that.
    mask: Option<StreamRedactor>,
    /// Its end, while its line waits for room.
    end: Option<End>,
}

/// The commands of one client's transcript.
#[derive(Debug)]
pub struct Transcript {
    /// True if the client gets escape sequences, too.
    has_escapes: bool,
    outputs: Budget,
    open: Vec<OpenTranscriptEntry>,
}

#[derive(Serialize)]
struct TranscriptEvent<'a> {
    event: &'static str,
    entry: TranscriptEntry<'a>,
}

#[derive(Serialize)]
struct TranscriptEntry<'a> {
    whoami: &'a str,
    dir: &'a str,
    exec: &'a [String],
    timeout: u64,
    exit: u8,
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "super::response::is_zero")]
    output_omitted: u64,
    time: &'a str,
}

impl Transcript {
    /// A transcript without commands. Its gathered output counts against `outputs`.
    #[must_use]
    pub fn new(has_escapes: bool, outputs: &Budget) -> Self {
        Self { has_escapes, outputs: outputs.clone(), open: Vec::new() }
    }

    /// Adds a command that begins; the cursor reads its log.
    pub fn begin(&mut self, cursor: Cursor, card: Rc<Card>, secrets: Option<&Redactor>) {
        let share = self.outputs.share();
        let output = if self.has_escapes { Gathered::as_written(share) } else { Gathered::new(share) };
        let (dir, exec) = (card.place.dir.clone(), exec(&card.command));
        let (dir, exec) = match secrets {
            None => (dir, exec),
            Some(secrets) => (secrets.masked_text(&dir), secrets.masked_arguments(&exec)),
        };
        let mask = secrets.map(StreamRedactor::new);
        self.open.push(OpenTranscriptEntry { cursor, card, dir, exec, output, mask, end: None });
    }

    /// Takes the commands' output, and writes the lines of ended ones until `out` holds `most` bytes. Returns `false`
    /// if more lines wait than [`limits::TRANSCRIPT_WAITING_MAX`].
    pub fn pump(&mut self, engine: &mut Engine, out: &mut Vec<u8>, most: usize) -> bool {
        let mut waiting = 0;
        self.open.retain_mut(|command| {
            command.take(engine);
            let Some(end) = &command.end else { return true };
            if out.len() >= most {
                waiting += 1;
                return true;
            }
            command.output.finish();
            command.put(&HowEnded::from(end), out);
            false
        });
        waiting <= limits::TRANSCRIPT_WAITING_MAX
    }

    pub fn abandon(&mut self, engine: &mut Engine) {
        self.open.drain(..).filter(|command| command.end.is_none()).for_each(|command| engine.detach(command.cursor));
    }
}

impl OpenTranscriptEntry {
    fn take(&mut self, engine: &mut Engine) {
        if self.end.is_none() {
            engine.read(self.cursor, |item| self.take_item(item));
        }
    }

    fn take_item(&mut self, item: &Item<'_>) -> Taken {
        match item {
            Item::Missed { bytes } => self.output.miss(*bytes),
            Item::Entry(Entry::Output { stream, bytes, echo, .. }) => {
                let bytes = echo.hidden(bytes, TYPED);
                match &mut self.mask {
                    None => self.output.push_all(bytes),
                    Some(mask) => {
                        let mut masked = Vec::new();
                        mask.push(*stream as u8, bytes, &mut masked);
                        self.output.push_all(&masked);
                    }
                }
            }
            Item::Entry(Entry::Ended(end)) => {
                if let Some(mut mask) = self.mask.take() {
                    let mut rest = Vec::new();
                    mask.finish(&mut rest);
                    self.output.push_all(&rest);
                }
                self.end = Some(end.clone());
                return Taken::Last;
            }
            Item::Entry(_) => {}
        }
        Taken::All
    }

    fn put(&self, end: &HowEnded, out: &mut Vec<u8>) {
        let text = self.output.text();
        let entry = TranscriptEntry {
            whoami: &self.card.caller.whoami,
            dir: &self.dir,
            exec: &self.exec,
            timeout: self.card.command.timeout.map_or(0, |timeout| timeout.as_secs().max(1)),
            exit: end.exit,
            output: &text,
            error: end.error,
            output_omitted: self.output.omitted(),
            time: &self.card.time,
        };
        put_line(&TranscriptEvent { event: "transcript", entry }, out);
    }
}

/// The program and its arguments.
fn exec(CommandLine { words, text, .. }: &CommandLine) -> Vec<String> {
    // Every shell takes a command line like that, whatever its name.
    words.clone().unwrap_or_else(|| vec!["sh".to_owned(), "-c".to_owned(), text.clone()])
}
