//! Which command has the floor: whose block goes on, which one is next, and when to look again.
//!
//! 1. A command that has ended, or waits for the human, goes before the live ones, oldest first.
//! 2. A live command has the floor for as long as nobody else has anything to show. Then it yields: for an ended one at
//!    the next line start, for a live one after a while; where its line stays unfinished, after [`limits::CONSOLE_FLOOR`].
//! 3. To come back costs two rows of the console's own, so a live command comes back for [`LINES_WORTH_IT`] lines at
//!    least, when its oldest line is [`STALE`], or into silence.
//!
//! Invariants: pure, the caller passes the time; a command with nothing to show is never chosen; an ended one is never
//! passed over for a live one.

use std::time::{Duration, Instant};

use crate::core::engine::JobId;
use crate::limits;

/// A command that writes nothing shows its banner after this time, where that interrupts nobody.
const BANNER_AFTER: Duration = Duration::from_millis(300);
/// A command that has the floor and has been silent for this long gives it to any other.
const SILENCE: Duration = Duration::from_millis(200);
/// Two rows of the console's own are at most a quarter beside this many of output.
const LINES_WORTH_IT: u64 = 6;
/// The longest that output waits, roughly.
const STALE: Duration = Duration::from_secs(10);
/// The console counts as silent when nothing else was shown for this long.
const LULL: Duration = Duration::from_secs(1);

/// The facts about a command that decide on the floor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) job: JobId,
    /// Its banner is on the console.
    pub(super) has_banner: bool,
    /// When it ended, or began to wait for the human.
    pub(super) urgent: Option<Instant>,
    /// Lines that wait; an unfinished one counts.
    pub(super) lines: u64,
    /// When the oldest of them arrived; without any, when the command began.
    pub(super) since: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Holder {
    pub(super) job: JobId,
    /// When it got the floor.
    pub(super) since: Instant,
    pub(super) wrote: Instant,
    pub(super) is_at_line_start: bool,
}

/// The console's next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FloorChange {
    /// This command gets the floor.
    Give(JobId),
    /// Nothing changes before this time; without one, before something new is known.
    Stay(Option<Instant>),
}

/// Decides. `shown_last` is the command whose block was on the console last, and when that was.
pub(super) fn decide(
    holder: Option<Holder>,
    candidates: impl Iterator<Item = Candidate> + Clone,
    shown_last: Option<(JobId, Instant)>,
    now: Instant,
) -> FloorChange {
    let others = candidates.filter(|other| holder.is_none_or(|holder| holder.job != other.job));
    let urgent = others.clone().filter_map(|other| Some((other.urgent?, other.job))).min();
    let gives = |at: Instant, job| if at <= now { FloorChange::Give(job) } else { FloorChange::Stay(Some(at)) };
    if let Some((_, job)) = urgent {
        return gives(holder.map_or(now, Holder::yields_to_ended), job);
    }
    let live = others.filter_map(|other| Some((wants_at(&other, holder, shown_last)?, other.since, other.job))).min();
    let Some((wants, _, job)) = live else { return FloorChange::Stay(None) };
    gives(holder.map_or(wants, |holder| wants.max(holder.yields_to_live())), job)
}

impl Holder {
    fn yields_to_ended(self) -> Instant {
        let patience = (self.since + limits::CONSOLE_FLOOR).min(self.wrote + SILENCE);
        if self.is_at_line_start { self.since } else { patience }
    }

    /// A live command that writes on is interrupted between lines only, and not for twice its time.
    fn yields_to_live(self) -> Instant {
        let time = limits::CONSOLE_FLOOR * if self.is_at_line_start { 1 } else { 2 };
        (self.since + time).min(self.wrote + SILENCE)
    }
}

/// From when on a live command wants the floor.
fn wants_at(other: &Candidate, holder: Option<Holder>, shown_last: Option<(JobId, Instant)>) -> Option<Instant> {
    match (other.has_banner, other.lines) {
        (false, 0) => Some(other.since + BANNER_AFTER),
        (true, 0) => None,
        (false, _) => Some(other.since),
        (true, lines) => {
            let is_its_own = holder.is_none() && shown_last.is_some_and(|(job, _)| job == other.job);
            if is_its_own || lines >= LINES_WORTH_IT {
                return Some(other.since);
            }
            let lull = match (holder, shown_last) {
                (Some(holder), _) => holder.wrote.max(holder.since) + LULL,
                (None, Some((_, at))) => at + LULL,
                (None, None) => other.since,
            };
            Some((other.since + STALE).min(lull.max(other.since)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    fn live(job: u64, lines: u64, since: Instant) -> Candidate {
        Candidate { job: JobId(job), has_banner: true, urgent: None, lines, since }
    }

    #[test]
    fn who_has_nothing_to_show_is_never_chosen() {
        let start = Instant::now();
        let silent = live(1, 0, start);
        assert_eq!(decide(None, [silent].into_iter(), None, at(start, 99_999)), FloorChange::Stay(None));
        let fresh = Candidate { has_banner: false, ..silent };
        assert_eq!(decide(None, [fresh].into_iter(), None, start), FloorChange::Stay(Some(start + BANNER_AFTER)));
        assert_eq!(decide(None, [fresh].into_iter(), None, start + BANNER_AFTER), FloorChange::Give(JobId(1)));
    }

    #[test]
    fn an_ended_command_goes_before_live_ones_and_waits_for_a_line_start_only() {
        let start = Instant::now();
        let holder = Holder { job: JobId(1), since: start, wrote: start, is_at_line_start: true };
        let ended = |job, ms| Candidate { urgent: Some(at(start, ms)), ..live(job, 1, start) };
        let all = [live(2, 99, start), ended(4, 5), ended(3, 9)];
        assert_eq!(decide(Some(holder), all.into_iter(), None, at(start, 10)), FloorChange::Give(JobId(4)));
        let in_line = Holder { is_at_line_start: false, wrote: at(start, 50), ..holder };
        let decided = decide(Some(in_line), all.into_iter(), None, at(start, 60));
        assert_eq!(decided, FloorChange::Stay(Some(at(start, 250))), "it is silent for 0.2 s by then");
        assert_eq!(decide(Some(in_line), all.into_iter(), None, at(start, 250)), FloorChange::Give(JobId(4)));
        let busy = Holder { wrote: at(start, 2_000), ..in_line };
        assert_eq!(decide(Some(busy), all.into_iter(), None, at(start, 2_000)), FloorChange::Give(JobId(4)));
    }

    #[test]
    fn a_live_command_comes_back_for_much_or_for_old_output_or_into_silence() {
        let start = Instant::now();
        let last = |job, ms| Some((JobId(job), at(start, ms)));
        let few = live(1, 2, at(start, 100));
        assert_eq!(
            decide(None, [few].into_iter(), last(1, 90), at(start, 100)),
            FloorChange::Give(JobId(1)),
            "its own block"
        );
        let decided = decide(None, [few].into_iter(), last(2, 90), at(start, 100));
        assert_eq!(decided, FloorChange::Stay(Some(at(start, 1_090))), "silence");
        assert_eq!(decide(None, [live(1, 6, start)].into_iter(), last(2, 90), start), FloorChange::Give(JobId(1)));
        let busy = |ms| {
            Some(Holder { job: JobId(2), since: at(start, ms), wrote: at(start, ms + 50), is_at_line_start: true })
        };
        assert_eq!(
            decide(busy(10_000), [few].into_iter(), None, at(start, 10_060)),
            FloorChange::Stay(Some(at(start, 10_250)))
        );
        assert_eq!(
            decide(busy(10_000), [few].into_iter(), None, at(start, 10_250)),
            FloorChange::Give(JobId(1)),
            "it is old"
        );
    }

    /// One development server and five agents, for ten minutes of console time.
    #[test]
    fn the_rows_of_the_consoles_own_stay_few_and_ended_commands_never_wait_long() {
        let start = Instant::now();
        let mut server = live(0, 0, start);
        let (mut frame, mut rows, mut worst) = (0_u64, 0_u64, Duration::ZERO);
        let (mut holder, mut shown_last): (Option<Holder>, _) = (None, None);
        let mut ended: Vec<Candidate> = Vec::new();
        for ms in (0..600_000).step_by(10) {
            let now = at(start, ms);
            if ms % 700 == 0 {
                match &mut holder {
                    Some(holder) => {
                        rows += 1;
                        holder.wrote = now;
                    }
                    None => {
                        server.since = if server.lines == 0 { now } else { server.since };
                        server.lines += 1;
                    }
                }
            }
            if (0..5).any(|agent| (ms + agent * 210) % 1_900 == 0) {
                let job = ms + 1;
                ended.push(Candidate { job: JobId(job), has_banner: false, urgent: Some(now), lines: 3, since: now });
            }
            let candidates = ended.iter().copied().chain([server]);
            if let FloorChange::Give(job) = decide(holder, candidates, shown_last, now) {
                if job == server.job {
                    let is_its_own = shown_last.is_some_and(|(last, _)| last == job);
                    frame += u64::from(!is_its_own);
                    rows += server.lines;
                    server.lines = 0;
                    holder = Some(Holder { job, since: now, wrote: now, is_at_line_start: true });
                } else {
                    frame += u64::from(holder.take().is_some());
                    let place = ended.iter().position(|candidate| candidate.job == job).unwrap();
                    let shown = ended.remove(place);
                    worst = worst.max(now - shown.urgent.unwrap());
                    // A banner, three lines and an end line.
                    rows += 5;
                }
                shown_last = Some((job, now));
            }
        }
        assert!(rows > 5_000 && frame > 50, "the server had its turns: {frame} of {rows}");
        assert!(frame * 4 <= rows, "{frame} rows of the console's own beside {rows}");
        assert!(worst <= Duration::from_secs(1), "{worst:?}");
    }
}
