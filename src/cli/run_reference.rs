//! The run that a person means: `44`, `2026-05-21-09:42:18:44`, or `-1`.
//!
//! ```text
//! N           the run with this number, of the host that runs; without one, of the newest session
//! SESSION:N   a run of another session
//! -1          the newest run of that session, -2 the one before it
//! NAME        the service of this name, of the host that runs
//! ```

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::Path;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::{ask, quoted, service};
use crate::front::answer::Answer;
use crate::history::{self, FoundRun, Query, SessionHistory};
use crate::text::escape::escape_line;
use crate::text::reason::reason;

/// The exit code of verbs that take a reference.
pub(super) const NO_SUCH_RUN: (u8, &str) = (exit_code::NO_SUCH_RUN, "there is no such command");

/// Columns of a session's name that are shown: as many as a file's name has bytes.
const SESSION_COLUMNS: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReference {
    session: Option<String>,
    run: RunChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunChoice {
    Number(u64),
    /// 1 is the newest.
    FromNewest(usize),
}

impl RunReference {
    /// Reads a reference; `None` if the word is not one. A session and `-1` may be combined: `SESSION:-1`.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let (session, run) = match word.rsplit_once(':') {
            Some((session, run)) if !session.is_empty() => (Some(session.to_owned()), run),
            Some(_) => return None,
            None => (None, word),
        };
        let run = match run.strip_prefix('-') {
            Some(back) => RunChoice::FromNewest(digits(back).filter(|back| *back > 0)?),
            None => RunChoice::Number(digits(run.strip_prefix('#').unwrap_or(run))?),
        };
        Some(Self { session, run })
    }

    /// The run with this number, of the running host or of the newest session.
    #[must_use]
    pub fn numbered(seq: u64) -> Self {
        Self { session: None, run: RunChoice::Number(seq) }
    }

    /// The run with this number of the same session, as on a command line.
    pub(super) fn of_number(&self, seq: u64) -> String {
        match &self.session {
            Some(session) => format!("{session}:{seq}"),
            None => seq.to_string(),
        }
    }

    /// Reads a reference from a command line: one of the forms above, or the name of a service of the host.
    ///
    /// # Errors
    /// The word is not a reference.
    pub fn of(word: &OsStr) -> Result<Self, Notice> {
        let text = word.to_string_lossy();
        if let Some(reference) = Self::parse(&text) {
            return Ok(reference);
        }
        let named = if service::is_name(&text) { service::number_if_known(&text)? } else { None };
        named.map(Self::numbered).ok_or_else(|| {
            let hint = "N is a number, as in rexec show 44; SESSION:N a run of another session; -1 the newest run";
            Notice::usage(format_args!("{} does not name a run", quoted(word)), hint)
        })
    }

    /// Finds the run in the journals of the directory `home`. The host on `socket` is asked only if several hosts run.
    ///
    /// # Errors
    /// There is no such session or no such run, or the journals cannot be read.
    pub fn find(&self, home: &Path, socket: &Path) -> Result<FoundRun, Notice> {
        let cannot_read = |error: io::Error| unreadable(home, &error);
        let mut sessions = history::sessions(home).map_err(cannot_read)?;
        let session = self.choose(&mut sessions, home, socket)?;
        let seq = match self.run {
            RunChoice::Number(seq) => seq,
            RunChoice::FromNewest(back) => {
                let newest = history::search(&session, &Query::default(), back).map_err(cannot_read)?.runs;
                newest.get(back - 1).map(|run| run.card.seq).ok_or_else(|| no_run(self, &session.name))?
            }
        };
        history::find(&session, seq).map_err(cannot_read)?.ok_or_else(|| no_run(self, &session.name))
    }

    fn choose(&self, sessions: &mut Vec<SessionHistory>, home: &Path, socket: &Path) -> Result<SessionHistory, Notice> {
        let place = match &self.session {
            Some(name) => named(sessions, name)?,
            None => current(sessions, socket),
        };
        if place < sessions.len() {
            return Ok(sessions.swap_remove(place));
        }
        let problem = format!("there is no journal in {}", home.display());
        Err(Notice::new(exit_code::NO_SUCH_RUN, problem, "rexec-host writes one; REXEC_HOME names its directory"))
    }
}

impl fmt::Display for RunReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.run {
            RunChoice::Number(seq) => write!(f, "{seq}"),
            RunChoice::FromNewest(back) => write!(f, "-{back}"),
        }
    }
}

/// A number without a sign.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// The index of the session with this name, or with a file of this name, or the only one whose name begins so.
fn named(sessions: &[SessionHistory], name: &str) -> Result<usize, Notice> {
    let is_it = |session: &SessionHistory| session.name == name || session.files.iter().any(|file| file.name == name);
    if let Some(place) = sessions.iter().position(is_it) {
        return Ok(place);
    }
    let shown = escape_line(name, SESSION_COLUMNS);
    let hint = "rexec sessions shows the names of the sessions";
    let mut alike = (0..sessions.len()).filter(|&place| sessions[place].name.starts_with(name));
    match (alike.next(), alike.next()) {
        (Some(place), None) => Ok(place),
        (Some(_), Some(_)) => {
            let problem = format_args!("the names of several sessions begin with {shown}");
            Err(Notice::new(exit_code::NO_SUCH_RUN, problem, hint))
        }
        (None, _) => Err(Notice::new(exit_code::NO_SUCH_RUN, format_args!("there is no session {shown}"), hint)),
    }
}

/// The index of the running host's session; without one, of the newest.
pub(super) fn current(sessions: &[SessionHistory], socket: &Path) -> usize {
    let alive: Vec<usize> = (0..sessions.len()).filter(|&place| sessions[place].is_alive()).collect();
    match alive[..] {
        [] => 0,
        [only] => only,
        [newest, ..] => {
            let asked = ask::ask(socket, r#"{"action":"ping"}"#).and_then(|asked| asked.answer(Some(ask::PATIENCE)));
            let Ok(Answer::Pong { pid, .. }) = asked else { return newest };
            let is_its = |place: &usize| sessions[*place].open.as_ref().is_some_and(|open| open.pid == pid);
            alive.into_iter().find(is_its).unwrap_or(newest)
        }
    }
}

fn no_run(reference: &RunReference, session: &str) -> Notice {
    let session = escape_line(session, SESSION_COLUMNS);
    let which = if reference.session.is_some() { format!("session {session}") } else { "this session".to_owned() };
    let problem = format_args!("there is no run {reference} in {which}");
    let hint = "rexec log shows the newest runs with their numbers; SESSION:N names one of another session";
    Notice::new(exit_code::NO_SUCH_RUN, problem, hint)
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Notice {
    let hint = "REXEC_HOME names the directory of the journals; the default is ~/.rexec";
    Notice::failed(format_args!("cannot read {}: {}", path.display(), reason(error)), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references() {
        let parsed = |word| {
            let RunReference { session, run } = RunReference::parse(word)?;
            Some((session, run))
        };
        let of = |session: &str| Some(session.to_owned());
        for word in ["44", "#44", "044"] {
            assert_eq!(parsed(word), Some((None, RunChoice::Number(44))), "{word}");
        }
        assert_eq!(parsed("-1"), Some((None, RunChoice::FromNewest(1))));
        assert_eq!(parsed("2026-05-21-09:42:18:7"), Some((of("2026-05-21-09:42:18"), RunChoice::Number(7))));
        assert_eq!(parsed("2026-05-21-09:42:18-2:-3"), Some((of("2026-05-21-09:42:18-2"), RunChoice::FromNewest(3))));
        for word in ["", "-", "-0", "--1", "+1", "1x", ":4", "x:", "x:-", "44:", "99999999999999999999", "last"] {
            assert_eq!(parsed(word), None, "{word}");
        }
    }
}
