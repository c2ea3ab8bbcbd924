//! Facts about a run for lists: its record without the output.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::journal::line_fields::{LineFields, PlainValue};
use crate::journal::reader::{Header, Record};
use crate::journal::record::{KeptRecord, PublishedCard, RecordFields, RecordedOutput, RunEnd, VERSION};

/// The beginning of a record's line, up to its type.
const BEGINNING: &[u8] = b"{\"v\":1,\"type\":\"";

/// How a run ended, according to its journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RunOutcome {
    /// It has no end in the journal: it runs, or its host died.
    #[default]
    Open,
    Ended,
    /// A later host found that it has no end.
    Lost,
}

impl RunOutcome {
    /// Its name in JSON. `is_alive` says that the session's host runs.
    #[must_use]
    pub fn word(self, is_alive: bool) -> &'static str {
        match self {
            RunOutcome::Open if is_alive => "running",
            RunOutcome::Open => "unknown",
            RunOutcome::Ended => "ended",
            RunOutcome::Lost => "lost",
        }
    }
}

/// A run without its output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    #[serde(flatten, serialize_with = "put_card")]
    pub card: PublishedCard,
    pub exit: u8,
    /// The signal that ended it.
    pub signal: Option<u8>,
    /// From its start to its end, milliseconds.
    pub duration_ms: u64,
    /// From the request to its start, milliseconds.
    pub queued_ms: u64,
    pub bytes: u64,
    /// How much of that its caller got.
    pub received: Option<u64>,
    /// Secrets that were masked for its caller.
    pub hidden: u64,
    /// Why it did not end by itself.
    pub error: Option<String>,
    /// Who ended it, if somebody did.
    pub by: Option<String>,
    /// Processes that outlived its shell.
    pub left_count: u32,
    /// Secrets that the journal masked.
    pub secrets: u64,
    /// The file with its raw output, below the journal's directory.
    pub raw: Option<String>,
    /// What was kept for undo before it began.
    pub kept: Option<KeptRecord>,
    #[serde(skip)]
    pub outcome: RunOutcome,
}

impl Facts {
    /// Reads a run's record. `None` if the line is something else.
    pub(super) fn parse(line: &[u8]) -> Option<Facts> {
        let (kind, _) = head(line)?;
        let outcome = match &*kind {
            "start" => RunOutcome::Open,
            "end" => RunOutcome::Ended,
            "lost" => RunOutcome::Lost,
            _ => return None,
        };
        let facts = Facts::plain(line).or_else(|| serde_json::from_slice(line).ok())?;
        Some(Facts { outcome, ..facts })
    }

    /// Reads a line in the recorder's form. `None` if it is in another one, or has a value that the recorder never
    /// writes.
    fn plain(line: &[u8]) -> Option<Facts> {
        let (mut fields, mut facts) = (LineFields::of(line), Facts::default());
        while let Some((name, value)) = fields.take_next().ok()? {
            facts.set(name, value)?;
        }
        Some(facts)
    }

    /// Sets a field. Ignores other names. `None` if the field cannot have this value.
    fn set(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name {
            b"exit" => self.exit = PlainValue::of(value)?,
            b"signal" => self.signal = PlainValue::of(value)?,
            b"duration_ms" => self.duration_ms = PlainValue::of(value)?,
            b"queued_ms" => self.queued_ms = PlainValue::of(value)?,
            b"bytes" => self.bytes = PlainValue::of(value)?,
            b"received" => self.received = PlainValue::of(value)?,
            b"hidden" => self.hidden = PlainValue::of(value)?,
            b"error" => self.error = PlainValue::of(value)?,
            b"by" => self.by = PlainValue::of(value)?,
            b"left_count" => self.left_count = PlainValue::of(value)?,
            b"secrets" => self.secrets = PlainValue::of(value)?,
            b"raw" => self.raw = PlainValue::of(value)?,
            b"kept" => self.kept = serde_json::from_slice(value).ok()?,
            _ => _ = self.card.set(name, value)?,
        }
        Some(())
    }

    /// The run of a record, and the output in the record. `None` if the record is not of a run.
    pub(super) fn of(record: Record) -> Option<(Facts, Option<String>)> {
        let (outcome, start, end, output) = match record {
            Record::Start(start) => (RunOutcome::Open, *start, RunEnd::default(), None),
            Record::Lost(lost) => (RunOutcome::Lost, lost.start, RunEnd::default(), None),
            Record::End(end) => (RunOutcome::Ended, end.start, end.end, Some(end.output)),
            Record::Open(_)
            | Record::Input(_)
            | Record::Unseen(_)
            | Record::Destroyed(_)
            | Record::Environment(_)
            | Record::Dropped(_)
            | Record::Close(_) => return None,
        };
        let RunEnd {
            exit, signal, duration_ms, queued_ms, bytes, error, by, left_count, received, hidden, kept, ..
        } = end;
        let RecordedOutput { text, raw, secrets, .. } = output.unwrap_or_default();
        #[rustfmt::skip]
        let facts = Facts {
            card: start.card, exit, signal, duration_ms, queued_ms, bytes, error, by, left_count, received, hidden,
            secrets, raw, kept, outcome,
        };
        Some((facts, Some(text)))
    }

    /// Returns true if it has destroyed something, or was about to, as far as its text told.
    #[must_use]
    pub fn has_destroyed(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| *kept != KeptRecord::default())
    }

    /// Returns true if it ended and not with code 0, and for a lost run.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        match self.outcome {
            RunOutcome::Ended => self.exit != 0 || self.error.is_some(),
            RunOutcome::Lost => true,
            RunOutcome::Open => false,
        }
    }
}

/// In this form, `session` is the journal's, and empty facts stand, too.
fn put_card<S: Serializer>(card: &PublishedCard, serializer: S) -> Result<S::Ok, S::Error> {
    let (mut card, mut fields) = (card.all_fields(), RecordFields(serializer.serialize_map(None)?));
    card.put(&["seq", "time", "whoami", "agent"], &mut fields)?;
    card.put_as("session", "caller_session", &mut fields)?;
    card.put(&["session_number", "call", "role", "sandbox", "dir", "command", "name"], &mut fields)?;
    card.put_rest(&["why", "shell", "agent_version"], &mut fields)?;
    fields.0.end()
}

/// The type and the number in a record's line, which need not be whole. `None` if it is not a record of a version that
/// this build knows.
pub(super) fn head(line: &[u8]) -> Option<(Cow<'_, str>, u64)> {
    let usual = || {
        let rest = line.strip_prefix(BEGINNING)?;
        let end = memchr::memchr(b'"', rest.get(..16).unwrap_or(rest))?;
        let number = rest[end..].strip_prefix(b"\",\"seq\":")?;
        let digits = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let seq = std::str::from_utf8(&number[..digits]).ok()?.parse().ok()?;
        Some((Cow::Borrowed(std::str::from_utf8(&rest[..end]).ok()?), seq))
    };
    usual().or_else(|| {
        let header: Header = serde_json::from_slice(line).ok()?;
        let is_record = (1..=VERSION).contains(&header.v) && !header.kind.is_empty();
        is_record.then_some((Cow::Owned(header.kind), header.seq))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_the_same_in_every_spelling() {
        let plain = r#"{"v":1,"type":"end","seq":3,"whoami":"Codex","dir":"/a b/\u00e9\\","envs":{"A":"}"},"exec":["sh","-c","x \"y\""],"exit":7,"output":"q \"quoted\" ü\n\\","time":"t","error":null,"command":"x \"y\"","duration_ms":12,"signal":9,"bytes":5,"received":4,"secrets":1,"raw":"raw/1.out","session_number":2,"role":"hook","unwrapped":true}"#;
        let value: serde_json::Value = serde_json::from_str(plain).unwrap();
        let (spaced, facts) = (serde_json::to_string_pretty(&value).unwrap(), Facts::parse(plain.as_bytes()).unwrap());
        assert_eq!(Facts::plain(plain.as_bytes()), Some(Facts { outcome: RunOutcome::Open, ..facts.clone() }));
        assert_eq!(Facts::plain(spaced.as_bytes()), None, "another form");
        assert_eq!(Facts::parse(spaced.replace('\n', " ").as_bytes()), Some(facts.clone()));
        assert_eq!((facts.exit, facts.card.dir.as_str(), facts.card.command.as_str()), (7, "/a b/é\\", "x \"y\""));
        assert_eq!((facts.signal, facts.error, facts.card.unwrapped), (Some(9), None, true));
        for wrong in [r#""exit":700"#, r#""exit":"7""#, r#""exit":null"#, r#""exit":7.0"#] {
            let line = plain.replace(r#""exit":7"#, wrong);
            assert_eq!(Facts::parse(line.as_bytes()), None, "{wrong}: not a record for any reader");
        }
    }

    /// A field that a reader does not know would silently have its default value.
    #[test]
    fn both_readers_know_every_field() {
        let text = |text: &str| text.to_owned();
        let facts = Facts {
            card: PublishedCard {
                seq: 1,
                whoami: text("b"),
                session: text("d"),
                session_number: 1,
                sandbox: Some(text("g")),
                command: text("i"),
                probe: true,
                ..PublishedCard::default()
            },
            exit: 2,
            signal: Some(3),
            duration_ms: 4,
            queued_ms: 5,
            bytes: 6,
            received: Some(7),
            hidden: 8,
            error: Some(text("k")),
            by: Some(text("m")),
            left_count: 9,
            secrets: 10,
            raw: Some(text("l")),
            kept: Some(KeptRecord { files: 11, missed: 12, unknown: text("n"), failure: Some(text("o")) }),
            outcome: RunOutcome::Open,
        };
        let line = serde_json::to_string(&facts).unwrap().replace("caller_session", "session");
        assert_eq!(Facts::plain(line.as_bytes()).as_ref(), Some(&facts), "{line}");
        assert_eq!(serde_json::from_str::<Facts>(&line).ok(), Some(facts), "{line}");
    }

    #[test]
    fn a_record_is_known_by_its_beginning() {
        assert_eq!(head(br#"{"v":1,"type":"end","seq":12,"x"#).unwrap(), ("end".into(), 12));
        assert_eq!(head(br#"{"type": "start", "v": 1, "seq": 5}"#).unwrap(), ("start".into(), 5));
        assert_eq!(head(br#"{"v":1,"type":"open","time":"t"}"#).unwrap(), ("open".into(), 0));
        for line in ["", "{}", "[1]", r#"{"v":2,"type":"end","seq":1}"#, r#"{"v":1,"type":"end","seq":"1"}"#] {
            assert_eq!(head(line.as_bytes()), None, "{line}");
        }
    }
}
