//! Which runs a person looks for.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::facts::{Facts, RunOutcome};
use super::output::raw_path;
use super::session::JournalFile;
use crate::journal::line_fields::{LineFields, number_of};
use crate::text::agent_name::{is_meant, may_be_meant};

/// How much of a raw file is read at once, bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Conditions on a run. Every one that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// The caller's name, its first word, or its name on the console, without regard to case.
    pub agent: Option<String>,
    /// The agent's session begins like this.
    pub session: Option<String>,
    /// See [`Facts::has_failed`].
    pub is_failed: bool,
    pub is_running: bool,
    /// See [`Facts::has_destroyed`].
    pub is_destroyer: bool,
    /// It began at this moment or later, milliseconds since 1970.
    pub since: Option<i64>,
    /// It began before this moment, milliseconds since 1970.
    pub until: Option<i64>,
    /// It ran in this directory or below it.
    pub dir: Option<PathBuf>,
    /// It ran in or below a directory of this name.
    pub dir_name: Option<String>,
    /// It took this long or longer, milliseconds.
    pub slow_ms: Option<u64>,
    pub exit: Option<u8>,
    /// The command has this text.
    pub text: Option<String>,
    /// Or the output has it.
    pub is_any_output: bool,
}

impl Query {
    /// Returns true if the run meets every condition but the text.
    pub(super) fn wants(&self, run: &Facts, is_alive: bool) -> bool {
        let is_ended = run.outcome == RunOutcome::Ended;
        let agent = |agent: &String| is_meant(agent, &run.card.whoami, run.card.session_number, &run.card.role);
        let began = || milliseconds(&run.card.time);
        self.agent.as_ref().is_none_or(agent)
            && self.session.as_ref().is_none_or(|session| run.card.session.starts_with(session.as_str()))
            && (!self.is_failed || run.has_failed())
            && (!self.is_destroyer || run.has_destroyed())
            && (!self.is_running || (is_alive && run.outcome == RunOutcome::Open))
            && self.since.is_none_or(|since| began().is_some_and(|at| at >= since))
            && self.until.is_none_or(|until| began().is_some_and(|at| at < until))
            && (self.dir.is_none() && self.dir_name.is_none() || self.wants_dir(Path::new(&run.card.dir)))
            && self.slow_ms.is_none_or(|slow| is_ended && run.duration_ms >= slow)
            && self.exit.is_none_or(|code| is_ended && run.exit == code)
    }

    /// Returns true if the first fields of a run's record show that it does not meet these conditions. They stand
    /// before the output. A line whose strings have escapes, or that is in another form, is not judged here.
    pub(super) fn excludes(&self, line: &[u8]) -> bool {
        if self.agent.is_none() && self.dir.is_none() && self.dir_name.is_none() && self.exit.is_none() {
            return false;
        }
        let mut fields = LineFields::of(line);
        while let Ok(Some((name, value))) = fields.take_next() {
            let text = || {
                let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
                std::str::from_utf8(inner).ok().filter(|text| !text.contains('\\'))
            };
            let is_other = match name {
                b"whoami" => self.agent.as_ref().zip(text()).is_some_and(|(agent, name)| !may_be_meant(agent, name)),
                b"dir" if self.dir.is_some() || self.dir_name.is_some() => {
                    text().is_some_and(|dir| !self.wants_dir(Path::new(dir)))
                }
                b"exit" => self.exit.zip(number_of(value)).is_some_and(|(code, exit): (u8, u8)| code != exit),
                b"output" => return false,
                _ => false,
            };
            if is_other {
                return true;
            }
        }
        false
    }

    fn wants_dir(&self, dir: &Path) -> bool {
        let is_named = |name: &String| dir.components().any(|part| part.as_os_str() == name.as_str());
        self.dir.as_ref().is_some_and(|wanted| dir.starts_with(wanted)) || self.dir_name.as_ref().is_some_and(is_named)
    }

    /// Returns true unless a file's summary shows that no run in it meets every condition but the text.
    pub(super) fn may_be_in(&self, part: &JournalFile, file: &File) -> io::Result<bool> {
        if !(self.agent.is_some()
            || self.is_failed
            || self.since.is_some()
            || self.until.is_some()
            || self.slow_ms.is_some())
        {
            return Ok(true);
        }
        let Some(summary) = part.summary(file) else { return Ok(true) };
        if summary.length < file.metadata()?.len() {
            return Ok(true);
        }
        let began = |wanted: Option<i64>, edge: &str, is_in: fn(i64, i64) -> bool| {
            wanted.zip(milliseconds(edge)).is_none_or(|(wanted, edge)| is_in(edge, wanted))
        };
        Ok(self.agent.as_ref().is_none_or(|agent| summary.agents.keys().any(|name| may_be_meant(agent, name)))
            && (!self.is_failed || summary.failed > 0)
            && self.slow_ms.is_none_or(|slow| summary.longest_ms >= slow)
            && began(self.since, &summary.to, |last, since| last >= since)
            && began(self.until, &summary.from, |first, until| first < until))
    }

    /// Returns true if the run has the text. `output` reads the output in its record, and `home` is the journal's
    /// directory.
    pub(super) fn has_text(&self, run: &Facts, output: impl FnOnce() -> Option<String>, home: &Path) -> bool {
        let Some(text) = &self.text else { return true };
        run.card.command.contains(text)
            || (self.is_any_output
                && (output().is_some_and(|output| output.contains(text)) || raw_has(run, home, text)))
    }

    /// The text as a line of the journal has it. `None` if any run will do.
    pub(super) fn needle(&self) -> Option<Vec<u8>> {
        let text = self.text.as_ref().filter(|text| !text.is_empty())?;
        let quoted = serde_json::to_vec(text).ok()?;
        Some(quoted[1..quoted.len() - 1].to_vec())
    }
}

pub(super) fn output_of(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct OutputOnly {
        output: String,
    }
    serde_json::from_slice(line).ok().map(|OutputOnly { output }| output)
}

fn raw_has(run: &Facts, home: &Path, text: &str) -> bool {
    let Some(path) = run.raw.as_deref().and_then(|name| raw_path(home, name)) else { return false };
    let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
    is_file && File::open(path).and_then(|file| has(file, text.as_bytes())).unwrap_or(false)
}

fn has(mut source: impl Read, text: &[u8]) -> io::Result<bool> {
    let finder = Finder::new(text);
    let mut bytes = vec![0; PIECE_BYTES.max(2 * text.len())];
    let mut kept = 0;
    loop {
        let read = match source.read(&mut bytes[kept..]) {
            Ok(0) => return Ok(false),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let filled = kept + read;
        if finder.find(&bytes[..filled]).is_some() {
            return Ok(true);
        }
        // The text may begin here and go on in what comes next.
        kept = text.len().saturating_sub(1).min(filled);
        bytes.copy_within(filled - kept..filled, 0);
    }
}

/// A time as records have it, in milliseconds since 1970.
#[must_use]
pub fn milliseconds(time: &str) -> Option<i64> {
    let nanoseconds = OffsetDateTime::parse(time, &Rfc3339).ok()?.unix_timestamp_nanos();
    i64::try_from(nanoseconds.div_euclid(1_000_000)).ok()
}
