//! `rexec replay`: shows the past of the console again, with its pauses.
//!
//! The commands' recordings are played into a console like the host's, so banners, turns and end lines are those of the
//! host. The console's time is that of the recording, at any speed.

mod player;
mod script;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::export::no_recording;
use super::run_reference::{NO_SUCH_RUN, RunReference, unreadable};
use super::sheet::Sheet;
use super::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::history::{self, FoundRun, Query, RunOutcome};
use crate::sys::terminal::Keys;
use player::{Player, ReplayPace};
use script::{Scene, Show};

/// The longest recording that `rexec show` draws, bytes. Of a longer one it prints the journal's text.
const DRAWN_BYTES_MAX: u64 = 4 << 20;

pub(super) const VERB: Verb = Verb {
    term: "replay",
    group: Group::Past,
    summary: "play what a command wrote, with its pauses",
    text: "\
N is a number, SESSION:N or -1. With --since instead of it, all commands that
began since then are played in the order of the console, with their banners.

Escape sequences are filtered as on the console, so what a full-screen program
drew is counted and not shown: rexec export N --cast makes a file that
asciinema plays. ^C ends the replay.
",
    codes: &[(1, "there is no recording, or nothing ran since then"), NO_SUCH_RUN],
    examples: &["rexec replay -1 --max-idle 1s", "rexec replay --since 09:40 --speed 8"],
    call: &Call::<ReplayWish> {
        options: &[
            Opt::value("--since TIME", |q, v| q.since = v.moment(), "play everything since then, as in 1h or 09:40"),
            Opt::value(
                "--speed FACTOR",
                |q, v| {
                    let speed = |text: &str| text.parse().ok().filter(|speed| SPEEDS.contains(speed));
                    q.speed = v.parsed("a factor such as 4 or 0.5, from 0.01 to 1000000", speed);
                },
                "play faster or slower, as in 4 or 0.5",
            ),
            Opt::value("--max-idle TIME", |q, v| q.max_idle = v.span(), "shorten longer pauses to this, as in 1s"),
        ],
        words: Words::run("[N]", Values::Nothing, |q, w| q.reference = w.reference()),
        run: replay,
    },
};

/// The default of the longest pause while many commands are played.
const IDLE_MAX: Duration = Duration::from_secs(2);
/// The largest and the smallest speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1_000_000.0;

#[derive(Debug, Default)]
struct ReplayWish {
    reference: Option<RunReference>,
    since: Option<i64>,
    speed: Option<f64>,
    max_idle: Option<Duration>,
}

fn replay(wish: ReplayWish) -> Result<u8, Notice> {
    match (&wish.reference, wish.since) {
        (None, None) => return Err(VERB.missing("a command number or --since; rexec log shows the numbers")),
        (Some(_), Some(_)) => return Err(VERB.missing("either a command number or --since")),
        _ => {}
    }
    let sheet = Sheet::standard();
    let home = super::home()?;
    let speed = wish.speed.unwrap_or(1.0);
    let played = match (wish.reference, wish.since) {
        (Some(reference), _) => {
            let run = reference.find(&home, &super::socket_path()?)?;
            let named = reference.of_number(run.start.card.seq);
            let scene = Scene::of(run).map_err(|error| unreadable(&home, &error))?;
            if scene.recording.is_none() && scene.run.end.as_ref().is_none_or(|end| end.bytes > 0) {
                return Err(no_recording(&scene.run));
            }
            let pace = ReplayPace { speed, max_idle: wish.max_idle.unwrap_or(Duration::MAX) };
            player(&sheet, pace).and_then(|mut player| player.play_one(scene, &named))
        }
        (None, since) => {
            let pace = ReplayPace { speed, max_idle: wish.max_idle.unwrap_or(IDLE_MAX) };
            let shows = shows_since(&home, since.unwrap_or(0)).map_err(|error| unreadable(&home, &error))?;
            if shows.is_empty() {
                return Err(Notice::failed("no command began since then", "rexec log shows the newest commands"));
            }
            player(&sheet, pace).and_then(|mut player| player.play_all(&shows))
        }
    };
    super::written(played)?;
    Ok(exit_code::SUCCESS)
}

fn player(sheet: &Sheet, pace: ReplayPace) -> io::Result<Player> {
    let is_terminal = io::stdout().is_terminal();
    Player::new(sheet.clock, pace, is_terminal, if is_terminal { Keys::take(false) } else { None })
}

/// Draws the block of an ended run, as the console of this terminal shows it. Returns false if the run is too long for
/// that or incomplete.
pub(super) fn draw(run: &FoundRun, sheet: &Sheet) -> io::Result<bool> {
    let recorded = &run.recorded;
    let is_whole = match recorded.recording_at {
        Some((from, to)) => recorded.recording_omitted.is_none() && to.saturating_sub(from) <= DRAWN_BYTES_MAX,
        None => recorded.raw.is_none() && recorded.omitted.is_none(),
    };
    if !is_whole || run.outcome != RunOutcome::Ended {
        return Ok(false);
    }
    let scene = Scene::of(run.clone())?;
    if scene.recording.is_none() && recorded.recording_at.is_some() {
        return Ok(false);
    }
    let pace = ReplayPace { speed: 1.0, max_idle: Duration::ZERO };
    Player::new(sheet.clock, pace, true, None)?.draw_one(scene)?;
    Ok(true)
}

/// The sessions that have commands since then, oldest first.
fn shows_since(home: &Path, since: i64) -> io::Result<Vec<Show>> {
    let query = Query { since: Some(since), ..Query::default() };
    let mut found = Vec::new();
    for session in history::sessions(home)? {
        let changed = session.files.first().and_then(|file| file.path.metadata().ok()?.modified().ok());
        let is_older = changed.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        if is_older.is_some_and(|at| i64::try_from(at.as_millis()).is_ok_and(|at| at < since)) {
            continue;
        }
        let facts = history::search(&session, &query, usize::MAX)?.runs;
        let mut runs: Vec<_> =
            facts.iter().filter_map(|run| Some((history::milliseconds(&run.card.time)?, run.card.seq))).collect();
        runs.sort_unstable();
        if !runs.is_empty() {
            found.push(Show { session, runs });
        }
    }
    found.sort_by_key(|show: &Show| show.runs.first().copied());
    Ok(found)
}
