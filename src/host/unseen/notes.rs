//! The notes of shims that ran a command without this host, for the console and the journal.
//!
//! Invariants: the host reports notes once; nothing in them is more than a name and a time; a file that is huge, forged
//! or held is bounded in what it costs.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rexec_sh::protocol::place;
use rexec_sh::protocol::unseen::{FILE_BYTES_MAX, UnseenReason};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::front::unseen_notes::{UnseenCount, count};
use crate::host::recorder_link::RecorderLink;
use crate::host::screen::Screen;
use crate::journal::record::{UnseenRecord, timestamp};
use crate::limits;
use crate::sys::local_time;
use crate::sys::spool::{self, TakenSpool};
use crate::text::agent_name::agent_name;
use crate::text::count::counted;

#[derive(Debug)]
pub(in crate::host) struct UnseenNotes {
    path: PathBuf,
    take_at: Option<Instant>,
    tries: u32,
}

impl UnseenNotes {
    /// Those beside this socket. The first turn takes them.
    pub(in crate::host) fn new(socket: &Path, now: Instant) -> Self {
        Self { path: place::unseen_path(socket), take_at: Some(now), tries: 0 }
    }

    /// Something was made in the directory.
    pub(in crate::host) fn look(&mut self, now: Instant) {
        if self.take_at.is_none() && spool::is_there(&self.path) {
            (self.take_at, self.tries) = (Some(now + limits::UNSEEN_GATHER), 0);
        }
    }

    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        self.take_at
    }

    /// Reports commands that ran without a host, if there are notes about any.
    pub(in crate::host) fn tick(&mut self, now: Instant, screen: &mut Screen, recorder: &mut RecorderLink) {
        match self.take(now) {
            TakenSpool::Lines(notes, is_more) => {
                let is_more = is_more || notes.len() as u64 >= FILE_BYTES_MAX;
                for record in records(&notes, is_more, screen) {
                    recorder.on_unseen(record, now);
                }
            }
            TakenSpool::Unfit => screen.say(format_args!(
                "… {} was not a file of notes about unseen commands, and was removed",
                self.path.display()
            )),
            TakenSpool::Nothing | TakenSpool::Busy => {}
        }
    }

    fn take(&mut self, now: Instant) -> TakenSpool {
        if self.take_at.is_none_or(|at| at > now) {
            return TakenSpool::Nothing;
        }
        self.take_at = None;
        let taken = spool::take(&self.path, FILE_BYTES_MAX);
        if taken == TakenSpool::Busy && self.tries < limits::UNSEEN_TRIES_MAX {
            (self.take_at, self.tries) = (Some(now + limits::UNSEEN_GATHER), self.tries + 1);
        }
        taken
    }
}

/// Shows the notes on the screen, and returns them for the journal.
fn records(notes: &[u8], more: bool, screen: &mut Screen) -> Vec<UnseenRecord> {
    let now = SystemTime::now();
    let milliseconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let counts = count(notes, u64::try_from(milliseconds).unwrap_or(u64::MAX)).into_iter();
    let record = |((whoami, reason), found): ((String, UnseenReason), UnseenCount)| {
        let reason = words(reason);
        screen.say(format_args!("… {}", line(&whoami, reason, found, more)));
        let UnseenCount { count, since, until } = found;
        let moment = |at| timestamp(UNIX_EPOCH + Duration::from_millis(at));
        let (since, until, time) = (moment(since), moment(until), timestamp(now));
        UnseenRecord { whoami, count, more, reason: reason.to_owned(), since, until, time }
    };
    counts.map(record).collect()
}

fn words(reason: UnseenReason) -> &'static str {
    match reason {
        UnseenReason::NoHost => "no host ran",
        UnseenReason::Sandboxed => "they were sandboxed, and no host took reports",
    }
}

/// `3 commands of codex ran unseen since 12:03: no host ran`.
fn line(whoami: &str, reason: &str, found: UnseenCount, more: bool) -> String {
    let commands = counted(found.count, "command", "commands");
    let (more, name) = (if more { "at least " } else { "" }, agent_name(whoami, 1, ""));
    format!("{more}{commands} of {name} ran unseen since {}: {reason}", clock(found.since))
}

/// A moment on the human's clock, with its date if that is not today's.
fn clock(at: u64) -> String {
    let local = |utc: OffsetDateTime| utc + time::Duration::seconds(local_time::offset(utc.unix_timestamp()).into());
    let then = local((UNIX_EPOCH + Duration::from_millis(at)).into());
    let is_today = local(OffsetDateTime::now_utc()).date() == then.date();
    let shown = match is_today {
        true => then.format(format_description!("[hour]:[minute]")),
        false => then.format(format_description!("[year]-[month]-[day] [hour]:[minute]")),
    };
    shown.unwrap_or_default()
}
