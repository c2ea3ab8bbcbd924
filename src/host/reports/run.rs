//! One reported run.

use std::time::{Duration, Instant};

use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::report::{BEGINNING_BYTES_MAX, Report, ReportRecord, RunKey, RunMark, ShimPlace};
use rexec_sh::protocol::wire::CallerStream;

use crate::core::engine::JobId;
use crate::core::entry::Stream;
use crate::guard::paused_tree::PausedTree;
use crate::host::run::Description;
use crate::host::turn::PeerId;
use crate::limits;
use crate::sys::namespace::{self, InnerProcess};
use crate::sys::tree::{self, Process};

#[derive(Debug)]
pub(in crate::host) struct ReportedRun {
    /// `None` until its beginning is whole.
    pub(super) job: Option<JobId>,
    /// Empty until then.
    pub(in crate::host) description: Description,
    pub(in crate::host) since: Instant,
    /// The part of its beginning that has come.
    pub(super) beginning: Vec<u8>,
    /// When the search for its shim began: its beginning is whole.
    pub(super) sought_since: Option<Instant>,
    pub(super) key: RunKey,
    next: u32,
    /// Its end as it reports it, and when that report came. It counts once the shim has gone.
    end: Option<(Exit, Instant)>,
    /// Another process has written to its report, or read of it. So the host does not believe the end that it reports.
    pub(super) is_doubtful: bool,
    pub(super) place: ShimPlace,
    /// The host saw a child of the shim with the run's mark.
    pub(super) is_proven: bool,
    /// The host dropped a report that named its shim before, so this one may be somebody else's.
    pub(super) is_contested: bool,
    /// The processes that the host saw below its shim. They identify it when its command has killed that.
    pub(super) known: Vec<Process>,
    /// The number of its records that may still cost a look below its shim.
    looks_below: u32,
    /// The shim as seen from here, and when to look at it again.
    pub(super) shim: Option<Process>,
    look_at: Instant,
    pause: Duration,
    /// When a look first found no shim.
    missing_since: Option<Instant>,
    /// Bytes that came in the second that began then.
    second: (Instant, usize),
    /// Bytes that were not taken since the last record.
    untaken: u64,
    /// The newest output after those, for which there was no room. People want to see the end of a flood.
    held: Vec<(Stream, Vec<u8>)>,
    /// When the host reports these although no record has followed.
    tell_at: Option<Instant>,
    pub(super) waiting: Vec<PeerId>,
    pub(super) answer_at: Option<Instant>,
    pub(super) has_terminated: bool,
    pub(super) kills: u32,
    /// The processes that a person's pause has stopped.
    pub(super) paused: Option<PausedTree>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReportedFact {
    None,
    /// The record cannot be one of this run.
    Forged,
    /// The beginning is whole.
    Begun,
    /// It wrote this, after the untaken output before.
    Output(Stream, Box<[u8]>),
    /// Too much comes, so this is only counted.
    Flood,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Nothing speaks against it.
    Well,
    /// It is gone, and nobody will report its end.
    Lost,
    /// Its shim is gone, after it had reported this end.
    Ended(Exit),
    /// It is there, although it has reported its end.
    Outlived,
}

impl ReportedRun {
    pub(super) fn new(key: RunKey, now: Instant) -> Self {
        Self {
            job: None,
            description: Description::default(),
            since: now,
            beginning: Vec::new(),
            sought_since: None,
            key,
            next: 0,
            end: None,
            is_doubtful: false,
            place: ShimPlace::default(),
            is_proven: false,
            is_contested: false,
            known: Vec::new(),
            looks_below: limits::REPORT_LOOKS_BELOW,
            shim: None,
            look_at: now + limits::REPORT_PATIENCE,
            pause: limits::REPORT_LOOK,
            missing_since: None,
            second: (now, 0),
            untaken: 0,
            held: Vec::new(),
            tell_at: None,
            waiting: Vec::new(),
            answer_at: None,
            has_terminated: false,
            kills: 0,
            paused: None,
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        let tell_at = self.tell_at.filter(|_| self.job.is_some());
        self.answer_at.into_iter().chain(tell_at).fold(self.look_at, Instant::min)
    }

    /// Returns true if output was held back, and no more has come for a while.
    pub(super) fn has_rested(&self, now: Instant) -> bool {
        self.job.is_some() && self.tell_at.is_some_and(|at| at <= now)
    }

    /// The host has understood its beginning and found its shim.
    pub(super) fn begin(&mut self, job: JobId, description: Description, now: Instant) {
        (self.job, self.description) = (Some(job), description);
        self.beginning = Vec::new();
        // It may have reported its end meanwhile.
        self.look_at = if self.end.is_some() { now } else { self.since + self.pause };
        self.tell_at = self.tell_at.map(|_| now);
    }

    /// The sandbox that its shim runs it in, in words.
    pub(super) fn sandbox(&self) -> &str {
        self.description.card.sandbox.as_deref().unwrap_or_default()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.job.is_some() || self.sought_since.is_some()
    }

    /// The mark in its command's environment.
    pub(super) fn mark(&self) -> RunMark {
        if self.place.mark == RunMark::default() { self.key } else { self.place.mark }
    }

    /// Takes a record with its key. A record out of its turn makes the rest doubtful, if the run has begun.
    pub(super) fn take(&mut self, record: &ReportRecord<'_>, now: Instant) -> ReportedFact {
        if record.number < self.next || self.end.is_some() {
            return self.doubt();
        }
        // A gap means that another process has read the FIFO.
        let has_gap = record.number > self.next;
        self.is_doubtful |= has_gap && self.has_begun();
        self.next = record.number.saturating_add(1);
        match (record.report, self.has_begun()) {
            (Report::Begin { piece, is_last }, false) if !has_gap => {
                if self.beginning.len() + piece.len() > BEGINNING_BYTES_MAX {
                    return ReportedFact::Forged;
                }
                self.beginning.extend_from_slice(piece);
                if is_last { ReportedFact::Begun } else { ReportedFact::None }
            }
            (Report::Output { stream, bytes }, true) => self.on_output(stream, bytes, now),
            (Report::Unreported { stream, bytes }, true) => {
                self.leave_out(known(stream), bytes.min(limits::REPORT_UNREPORTED_MAX));
                self.wait_on(now);
                ReportedFact::None
            }
            (Report::End(exit), true) => {
                self.end = Some((exit, now));
                self.pause = limits::REPORT_END_LOOK;
                self.look_at = if self.job.is_some() { now } else { self.look_at };
                ReportedFact::None
            }
            _ => self.doubt(),
        }
    }

    fn doubt(&mut self) -> ReportedFact {
        self.is_doubtful |= self.has_begun();
        if self.has_begun() { ReportedFact::None } else { ReportedFact::Forged }
    }

    /// The end that it has reported, unless it is doubtful.
    pub(super) fn reported_end(&self) -> Option<Exit> {
        self.end.map(|(exit, _)| exit).filter(|_| !self.is_doubtful)
    }

    fn on_output(&mut self, stream: CallerStream, bytes: &[u8], now: Instant) -> ReportedFact {
        if now >= self.second.0 + Duration::from_secs(1) {
            self.second = (now, 0);
        }
        self.second.1 += bytes.len();
        let stream = known(stream);
        if self.second.1 > limits::REPORT_RUN_BYTES_A_SECOND {
            self.hold_back(stream, bytes, now);
            return if self.job.is_some() { ReportedFact::Flood } else { ReportedFact::None };
        }
        if self.job.is_none() {
            self.hold_back(stream, bytes, now);
            return ReportedFact::None;
        }
        ReportedFact::Output(stream, bytes.into())
    }

    /// Keeps output for which there is no room: the newest part of each stream. It counts the rest.
    pub(super) fn hold_back(&mut self, stream: Stream, bytes: &[u8], now: Instant) {
        self.wait_on(now);
        let before = self.held.iter().position(|(held, _)| *held == stream);
        let (_, mut held) = before.map_or((stream, Vec::new()), |at| self.held.remove(at));
        held.extend_from_slice(bytes);
        if held.len() >= 2 * limits::REPORT_HELD_BYTES {
            let oldest = held.len() - limits::REPORT_HELD_BYTES;
            held.drain(..oldest);
            self.untaken = self.untaken.saturating_add(oldest as u64);
        }
        self.held.push((stream, held));
    }

    /// Puts off the report of output that was held back.
    pub(super) fn wait_on(&mut self, now: Instant) {
        self.tell_at = Some(now + limits::REPORT_REST);
    }

    /// Counts the held bytes of this stream, and this many bytes after them.
    fn leave_out(&mut self, stream: Stream, bytes: u64) {
        let is_it = |(held, _): &(Stream, Vec<u8>)| *held == stream;
        let before = self.held.iter().position(is_it).map_or(0, |at| self.held.remove(at).1.len() as u64);
        self.untaken = self.untaken.saturating_add(before).saturating_add(bytes);
    }

    /// The number of bytes that were not taken since the last call, and the output after them.
    pub(super) fn take_untaken(&mut self) -> (u64, Vec<(Stream, Vec<u8>)>) {
        self.tell_at = None;
        (std::mem::take(&mut self.untaken), std::mem::take(&mut self.held))
    }

    /// Looks at its shim if that is due. `is_drained` says that the host has read all reports.
    pub(super) fn look(&mut self, is_drained: bool, now: Instant) -> Sight {
        if now < self.look_at {
            return Sight::Well;
        }
        if self.sought_since.is_some() {
            // The search ends by itself.
            self.look_at = now + limits::REPORT_PATIENCE;
            return Sight::Well;
        }
        if self.job.is_none() {
            return Sight::Lost;
        }
        if let Some((exit, since)) = self.end {
            return self.look_at_end(exit, since, now);
        }
        self.pause = (self.pause * 2).min(limits::REPORT_LOOK_MAX);
        self.look_at = now + self.pause;
        if self.is_there() {
            return Sight::Well;
        }
        self.look_at = now + limits::REPORT_KILL_PAUSE;
        // Its last reports may still be in the FIFO.
        let is_read = self.missing_since.is_some_and(|since| is_drained || now >= since + limits::REPORT_LOOK_MAX);
        self.missing_since.get_or_insert(now);
        if is_read { Sight::Lost } else { Sight::Well }
    }

    /// Checks that its shim has gone, as it has reported.
    fn look_at_end(&mut self, exit: Exit, since: Instant, now: Instant) -> Sight {
        if !self.is_there() {
            return Sight::Ended(exit);
        }
        if now < since + limits::REPORT_END_PATIENCE {
            self.look_at = now + self.pause;
            self.pause = (self.pause * 2).min(limits::REPORT_KILL_PAUSE);
            return Sight::Well;
        }
        self.end = None;
        (self.pause, self.look_at) = (limits::REPORT_LOOK, now + limits::REPORT_LOOK);
        Sight::Outlived
    }

    /// Returns true if it has reported an end, believed or not.
    pub(super) fn has_end(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn named(&self) -> InnerProcess {
        let ShimPlace { namespace, pid, began, .. } = self.place;
        InnerProcess { namespace, pid, start: began }
    }

    pub(super) fn living_shim(&self) -> Option<Process> {
        self.shim.filter(is_alive)
    }

    /// Returns true if a record of it is a reason to look below its shim.
    pub(super) fn takes_look_below(&mut self, is_end: bool) -> bool {
        let is_due = self.job.is_some() && (is_end || self.looks_below > 0);
        self.looks_below = self.looks_below.saturating_sub(u32::from(is_due));
        is_due
    }

    /// Returns true if a SIGKILL for its shim is due. The shim gets a chance to report how its shell has ended, and
    /// once it has, to end in the same way, because its caller would see the SIGKILL instead.
    pub(super) fn may_kill_shim(&self) -> bool {
        self.kills >= limits::REPORT_KILLS_MIN && self.reported_end().is_none()
    }

    /// The living ones of the processes that the host saw below its shim.
    pub(super) fn survivors(&self) -> impl Iterator<Item = Process> {
        self.known.iter().copied().filter(is_alive)
    }

    /// Everything of its command that lives now.
    pub(in crate::host) fn processes(&self) -> Vec<Process> {
        match self.living_shim() {
            Some(shim) => namespace::below(&shim, usize::MAX),
            None => self.survivors().collect(),
        }
    }

    /// Returns true if it goes on. If the host believes its end, what it has left is no part of it. Otherwise its
    /// command may have killed the shim to be forgotten.
    fn is_there(&self) -> bool {
        self.living_shim().is_some() || (self.reported_end().is_none() && self.survivors().next().is_some())
    }

    pub(in crate::host) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    pub(super) fn unpause(&mut self) -> bool {
        self.paused.take().map(PausedTree::resume).is_some()
    }

    /// Makes the next look due now.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.look_at = now;
    }

    /// Makes the next look due at this time at the latest.
    pub(super) fn look_again(&mut self, at: Instant) {
        self.look_at = self.look_at.min(at);
    }
}

fn is_alive(shim: &Process) -> bool {
    tree::process(shim.pid).is_some_and(|now| now.start == shim.start && !now.is_zombie)
}

fn known(stream: CallerStream) -> Stream {
    match stream {
        CallerStream::Out => Stream::Out,
        CallerStream::Err => Stream::Err,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(shim: Process, now: Instant) -> ReportedRun {
        let mut run = ReportedRun::new([1; 16], now);
        (run.job, run.shim) = (Some(JobId(1)), Some(shim));
        run
    }

    fn taken(run: &mut ReportedRun, number: u32, report: Report<'_>, now: Instant) -> ReportedFact {
        run.take(&ReportRecord { key: [1; 16], number, report }, now)
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_reported_end_counts_once_the_shim_has_gone() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let shim = tree::process(rexec_sh::protocol::process::Pid::new(child.id().cast_signed())).unwrap();
        let now = Instant::now();
        let (mut run, mut forged) = (begun(shim, now), begun(shim, now));
        for run in [&mut run, &mut forged] {
            run.kills = limits::REPORT_KILLS_MIN;
            assert!(run.may_kill_shim());
            assert_eq!(taken(run, 0, Report::End(Exit::Code(3)), now), ReportedFact::None);
            assert_eq!(run.look(true, now), Sight::Well);
            assert!(!run.may_kill_shim(), "it ends by itself");
        }
        let late = now + limits::REPORT_END_PATIENCE;
        assert_eq!(forged.look(true, late), Sight::Outlived);
        assert_eq!((forged.look(true, late), forged.reported_end()), (Sight::Well, None), "it is watched on");
        assert!(forged.may_kill_shim());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(run.look(true, late), Sight::Ended(Exit::Code(3)));
        assert!(!run.is_doubtful);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test starts programs")]
    fn a_doubtful_end_does_not_count_while_a_process_of_the_command_lives() {
        let start = || std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let seen = |child: &std::process::Child| {
            tree::process(rexec_sh::protocol::process::Pid::new(child.id().cast_signed())).unwrap()
        };
        let mut shim = start();
        let mut shell = start();
        let now = Instant::now();
        let mut run = begun(seen(&shim), now);
        run.known = vec![seen(&shell)];
        taken(&mut run, 0, Report::End(Exit::Code(0)), now);
        run.is_doubtful = true;
        shim.kill().unwrap();
        shim.wait().unwrap();
        assert_eq!(run.look(true, now), Sight::Well);
        let late = now + limits::REPORT_END_PATIENCE;
        assert_eq!(run.look(true, late), Sight::Outlived);
        assert_eq!(run.look(true, late + limits::REPORT_LOOK_MAX), Sight::Well, "it is watched on");
        shell.kill().unwrap();
        shell.wait().unwrap();
        let later = late + 4 * limits::REPORT_LOOK_MAX;
        assert_eq!(run.look(true, later), Sight::Well, "its last words may still come");
        assert_eq!(run.look(true, later + limits::REPORT_LOOK_MAX), Sight::Lost);
    }

    #[test]
    fn gaps_and_records_behind_the_end_make_a_report_doubtful() {
        let now = Instant::now();
        let process = tree::process(crate::sys::process::pid()).unwrap();
        let output = Report::Output { stream: CallerStream::Out, bytes: b"x" };
        let end = Report::End(Exit::Code(0));
        for records in [&[(1, output)][..], &[(0, end), (1, end)], &[(0, output), (0, end)], &[(0, end), (0, output)]] {
            let mut run = begun(process, now);
            let (last, before) = records.split_last().unwrap();
            before.iter().for_each(|&(number, report)| _ = taken(&mut run, number, report, now));
            assert!(!run.is_doubtful, "{records:?}");
            taken(&mut run, last.0, last.1, now);
            assert!(run.is_doubtful && run.reported_end().is_none(), "{records:?}");
        }
    }
}
