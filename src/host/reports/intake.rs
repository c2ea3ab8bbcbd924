//! Takes the records of reports, makes facts about runs of them, and looks at the runs that are due.

use std::time::Instant;

use rexec_sh::protocol::report::{Beginning, Report, ReportRecord, RunKey, RunMark, ShimPlace};
use rexec_sh::protocol::wire::{Decoded, FromShim};

use super::Reports;
use super::run::{ReportedFact, ReportedRun, Sight};
use crate::core::engine::{Engine, JobId};
use crate::core::job::Job;
use crate::front::command::Command;
use crate::host::peers::Peers;
use crate::host::run::Description;
use crate::host::runs::Runs;
use crate::host::screen::Screen;
use crate::host::turn::{PeerId, Turn};
use crate::limits;
use crate::sys::namespace;
use crate::sys::tree::Process;

/// The shim of a report, found.
#[derive(Debug)]
pub(in crate::host) struct FoundShim {
    pub(super) key: RunKey,
    pub(super) shim: Process,
}

/// A whole beginning whose shim was found. It may become a job.
#[derive(Debug)]
pub(in crate::host) struct BegunReport {
    pub(in crate::host) run: ReportedRun,
    pub(in crate::host) command: Command,
    pub(in crate::host) dir: Vec<u8>,
    /// In words.
    pub(in crate::host) sandbox: String,
}

/// A reported run that is over, and the peers that wait for its end.
#[derive(Debug)]
pub(in crate::host) struct ClosedReport {
    pub(in crate::host) job: JobId,
    pub(in crate::host) description: Description,
    pub(in crate::host) waiting: Vec<PeerId>,
}

impl Reports {
    /// Reads what has come through the FIFO, within a bound.
    pub(in crate::host) fn read(&mut self, turn: &mut Turn, screen: &mut Screen) {
        let is_flood = self.fifo.as_mut().is_some_and(|fifo| fifo.read(turn));
        if is_flood && !std::mem::replace(&mut self.told.flood, true) {
            let rate = limits::REPORT_BYTES_A_SECOND >> 20;
            screen.say(format_args!(
                "… sandboxed commands report more than {rate} MiB a second: the rest of their output is not shown"
            ));
        }
    }

    /// Takes what was read, up to a record that completes a beginning whose shim is there.
    pub(in crate::host) fn next_begun(
        &mut self,
        now: Instant,
        engine: &mut Engine,
        screen: &mut Screen,
    ) -> Option<FoundShim> {
        let mut fifo = self.fifo.take()?;
        let mut found = None;
        while found.is_none()
            && let Some(record) = fifo.next_record()
        {
            found = self.on_record(&record, now, engine, screen);
        }
        let is_forged = fifo.garbage > 0;
        self.fifo = Some(fifo);
        if is_forged {
            self.tell_forged(screen);
        }
        found
    }

    fn on_record(
        &mut self,
        record: &ReportRecord<'_>,
        now: Instant,
        engine: &mut Engine,
        screen: &mut Screen,
    ) -> Option<FoundShim> {
        if self.over.contains(&record.key) {
            self.tell_forged(screen);
            return None;
        }
        let is_new = record.number == 0 && !self.runs.contains_key(&record.key);
        if is_new && !self.has_room(screen) {
            if let Report::Begin { piece, .. } = record.report {
                self.drop_beginning(piece);
            }
            return None;
        }
        let run = match is_new {
            true => self.runs.entry(record.key).or_insert_with(|| ReportedRun::new(record.key, now)),
            false => self.runs.get_mut(&record.key)?,
        };
        let was_doubtful = run.is_doubtful;
        let had_end = run.has_end();
        let (fact, job) = (run.take(record, now), run.job);
        let is_end = run.has_end() && !had_end;
        if run.takes_look_below(is_end) {
            self.look_below(record.key, is_end);
        }
        let run = self.runs.get_mut(&record.key)?;
        if let Some(JobId(seq)) = job.filter(|_| run.is_doubtful && !was_doubtful) {
            screen.say_if_room(format_args!(
                "… the report of #{seq} was meddled with by another process: its words on its end are not believed"
            ));
        }
        match (fact, job) {
            (ReportedFact::None, _) => {}
            (ReportedFact::Begun, _) => return self.seek(record.key, now, screen),
            (ReportedFact::Output(stream, bytes), Some(job)) => {
                if engine.job(job).is_some_and(|known| known.log.is_full()) {
                    run.hold_back(stream, &bytes, now);
                } else {
                    self.tell_untaken(record.key, engine, now);
                    engine.on_output(job, stream, bytes, now);
                }
            }
            (ReportedFact::Flood, Some(job)) => {
                if !std::mem::replace(&mut self.told.flood, true) {
                    let line =
                        format!("… #{} reports more than can be shown: the rest of its output is counted", job.0);
                    screen.say(line);
                }
            }
            _ => self.tell_forged(screen),
        }
        None
    }

    /// Reports the bytes that were not taken, then those after them, which were held back.
    fn tell_untaken(&mut self, key: RunKey, engine: &mut Engine, now: Instant) {
        let Some(run) = self.runs.get_mut(&key) else { return };
        let (Some(job), (bytes, held)) = (run.job, run.take_untaken()) else { return };
        if bytes > 0 {
            engine.on_unreported(job, bytes);
        }
        for (stream, held) in held {
            engine.on_output(job, stream, held.into(), now);
        }
    }

    fn has_room(&mut self, screen: &mut Screen) -> bool {
        let unbegun = self.runs.iter().filter(|(_, run)| !run.has_begun());
        let oldest = unbegun.clone().min_by_key(|(_, run)| run.since).map(|(&key, _)| key);
        if unbegun.count() >= limits::REPORTS_EXPECTED_MAX {
            // A shim writes its whole beginning at once, so this one was forged.
            let forged = oldest.and_then(|key| self.runs.remove(&key));
            forged.into_iter().for_each(|run| self.drop_beginning(&run.beginning));
        }
        let sought = self.runs.values().filter(|run| run.sought_since.is_some()).count();
        let has_room = self.runs.len() < limits::REPORTED_MAX && sought < limits::REPORTS_SOUGHT_MAX;
        if !has_room && !std::mem::replace(&mut self.told.crowd, true) {
            let most = limits::REPORTED_MAX;
            screen.say(format_args!("… more than {most} sandboxed commands report at once: others run unseen"));
        }
        has_room
    }

    pub(super) fn is_in_time(&mut self, now: Instant, screen: &mut Screen) -> bool {
        let most = limits::REPORTS_BEGUN_A_SECOND;
        let is_in_time = self.beginnings.take(most, now);
        if !is_in_time && !std::mem::replace(&mut self.told.rush, true) {
            screen.say(format_args!("… more than {most} sandboxed commands begin in a second: others run unseen"));
        }
        is_in_time
    }

    pub(super) fn tell_forged(&mut self, screen: &mut Screen) {
        if !std::mem::replace(&mut self.told.forged, true) {
            screen.say("… a process writes forged reports of sandboxed commands: they are ignored");
        }
    }

    /// Takes the run of a shim out, to make a job of it. `None` if its beginning makes no sense, or if its command is seen
    /// already.
    pub(in crate::host) fn take_begun(
        &mut self,
        FoundShim { key, shim }: FoundShim,
        engine: &Engine,
        runs: &Runs,
        screen: &mut Screen,
    ) -> Option<BegunReport> {
        let mut run = self.runs.remove(&key)?;
        let bytes = std::mem::take(&mut run.beginning);
        let whole = Beginning::decode(&bytes);
        let Some((Beginning { place, dir, frame }, Ok(Decoded::Item(FromShim::Run(request), _)))) =
            whole.map(|whole| (whole, FromShim::decode(whole.frame)))
        else {
            self.tell_forged(screen);
            return None;
        };
        let command = Command::of(&request, frame);
        let refused = self.take_refused(&command.caller.whoami, &command.exec);
        if self.is_seen_already(place, &shim, engine, runs) {
            return None;
        }
        let sandbox = sandbox(&command, place, refused.map(|refused| refused.why));
        run.is_contested = self.dropped.may_have(run.named(), &shim);
        run.shim = Some(shim);
        Some(BegunReport { run, dir: dir.to_vec(), command, sandbox })
    }

    /// Takes a run back, now that it is a job.
    pub(in crate::host) fn begin(&mut self, mut run: ReportedRun, job: JobId, description: Description, now: Instant) {
        run.begin(job, description, now);
        self.runs.insert(run.key, run);
    }

    /// Returns true if a command runs below one of this host's guards, or inside of another reported run that its shim
    /// does not see, because it has a pid namespace of its own.
    fn is_seen_already(&self, place: ShimPlace, shim: &Process, engine: &Engine, runs: &Runs) -> bool {
        let is_above = |other: &&ReportedRun| place.within != RunMark::default() && other.mark() == place.within;
        let above = self.runs.values().find(is_above).and_then(|above| above.job);
        if above.and_then(|job| engine.job(job)).is_some_and(Job::is_running) {
            return true;
        }
        // A sandbox that clears the environment takes the mark away.
        let is_elsewhere = |other: &ReportedRun| other.job.is_some() && other.place.namespace != place.namespace;
        let is_possible = place.may_be_inside || self.runs.values().any(is_elsewhere);
        if !is_possible {
            return false;
        }
        let guards = runs.guards();
        namespace::is_below(shim.pid, |pid| guards.contains(&pid)) || self.is_below_shim(shim.parent)
    }

    /// Forgets a run that is over. Returns it if it was a job.
    fn close_run(&mut self, key: RunKey) -> Option<ClosedReport> {
        let Some(job) = self.runs.get(&key).and_then(|run| run.job) else {
            self.drop_run(key);
            return None;
        };
        let mut run = self.runs.remove(&key)?;
        self.over.truncate(limits::REPORTED_MAX - 1);
        self.over.push_front(key);
        run.unpause();
        Some(ClosedReport { job, description: run.description, waiting: run.waiting })
    }

    /// Forgets a run that has not begun. Its shim may be honest, so nobody else may report it later.
    pub(super) fn drop_run(&mut self, key: RunKey) {
        if let Some(run) = self.runs.remove(&key) {
            self.note_dropped(&run);
        }
    }

    /// Does what is due. Returns the runs that are over.
    pub(in crate::host) fn tick(
        &mut self,
        turn: &mut Turn,
        engine: &mut Engine,
        peers: &mut Peers,
        screen: &mut Screen,
    ) -> Vec<ClosedReport> {
        if self.fifo.as_ref().and_then(super::ReportFifo::resumes_at).is_some_and(|at| at <= turn.now) {
            self.token().into_iter().for_each(|token| turn.queue(token));
        }
        while let Some(at) = self.refused.iter().position(|refused| refused.until <= turn.now) {
            let refused = self.refused.remove(at);
            screen.say_if_room(refused.line);
        }
        let due = self.runs.iter().filter(|(_, run)| run.deadline() <= turn.now).map(|(&key, _)| key);
        let mut closed = Vec::new();
        for key in due.collect::<Vec<_>>() {
            // A run that has reported its end gets many looks, and remembers nothing more.
            if self.runs.get(&key).is_some_and(|run| !run.has_end()) {
                self.look_below(key, false);
            }
            self.pursue(key, turn, engine, peers);
            self.tell_rested(key, engine, turn.now);
            closed.extend(self.look_at(key, turn.now, engine, screen));
        }
        closed
    }

    /// Looks at the shim of a run. Returns the run if it is over.
    fn look_at(&mut self, key: RunKey, now: Instant, engine: &mut Engine, screen: &mut Screen) -> Option<ClosedReport> {
        let is_drained = self.fifo.as_ref().is_none_or(super::ReportFifo::is_drained);
        let run = self.runs.get_mut(&key)?;
        let has_ended = run.job.is_some_and(|job| engine.job(job).is_none_or(Job::has_ended));
        let sight = if has_ended { Sight::Lost } else { run.look(is_drained, now) };
        let (job, is_doubtful) = (run.job, run.is_doubtful);
        let exit = match sight {
            Sight::Well => return None,
            Sight::Outlived => {
                run.is_doubtful = true;
                let seq = job.map_or(0, |job| job.0);
                screen.say(format_args!(
                    "… #{seq} was reported as ended, but runs on: the report was forged; rexec kill {seq} ends it"
                ));
                return None;
            }
            Sight::Lost => None,
            Sight::Ended(exit) => Some(exit).filter(|_| !is_doubtful),
        };
        self.tell_untaken(key, engine, now);
        match (job, exit) {
            (Some(job), Some(exit)) => engine.on_exit(job, exit, now),
            (Some(job), None) => engine.on_guard_gone(job, now),
            (None, _) => {}
        }
        self.close_run(key)
    }

    /// Reports output that was held back, once no more comes and the log has room.
    fn tell_rested(&mut self, key: RunKey, engine: &mut Engine, now: Instant) {
        let Some(run) = self.runs.get_mut(&key).filter(|run| run.has_rested(now)) else { return };
        if run.job.and_then(|job| engine.job(job)).is_some_and(|known| known.log.is_full()) {
            return run.wait_on(now);
        }
        self.tell_untaken(key, engine, now);
    }

    /// The host ends: reported commands go on, and nobody sees how they end.
    pub(in crate::host) fn leave(&mut self, turn: &mut Turn, engine: &mut Engine) {
        for (_, mut run) in std::mem::take(&mut self.runs) {
            if let Some(job) = run.job {
                match run.reported_end() {
                    Some(exit) => engine.on_exit(job, exit, turn.now),
                    None => engine.on_guard_gone(job, turn.now),
                }
            }
            run.unpause();
        }
        self.close(turn);
    }
}

/// The sandbox of a command, in words. `why` is the difference for which its caller was refused before.
fn sandbox(command: &Command, place: ShimPlace, why: Option<&str>) -> String {
    match command.caller.whoami.as_str() {
        "Codex" if place.is_read_only => return "codex read-only".to_owned(),
        "Codex" if place.lacks_sockets => return "codex workspace-write".to_owned(),
        "Claude Code" if place.lacks_sockets || command.is_in_agents_sandbox => return "claude".to_owned(),
        _ => {}
    }
    let seen = [
        (place.lacks_sockets, "no sockets"),
        (place.has_filter, "seccomp filter"),
        (place.no_new_privs, "no_new_privs"),
        (place.is_read_only, "read-only directory"),
    ];
    let words: Vec<&str> = seen.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
    match (why, words.is_empty()) {
        (Some(why), _) => why.to_owned(),
        (None, false) => words.join(", "),
        (None, true) => "its limits are not known".to_owned(),
    }
}
