//! Makes jobs of the beginnings of reports, and facts about them of the rest.

use rexec_sh::protocol::report::{Beginning, Report, ReportRecord, RunKey, RunMark, ShimPlace};
use rexec_sh::protocol::wire::{Decoded, FromShim};

use super::run::{ReportedFact, ReportedRun, Sight};
use crate::core::engine::JobId;
use crate::core::job::Job;
use crate::front::answer::Answer;
use crate::front::command::Command;
use crate::host::Host;
use crate::host::run::Description;
use crate::limits;
use crate::sys::namespace;
use crate::sys::tree::Process;

impl Host {
    /// Makes the socket and the FIFO beside it again, if they are gone.
    pub(in crate::host) fn check_files(&mut self) {
        self.door.check(&mut self.turn, &mut self.screen);
        self.reports.check(&mut self.turn, &mut self.screen);
    }

    /// Takes what has come through the FIFO, within a bound.
    pub(in crate::host) fn visit_reports(&mut self) {
        let Some(mut fifo) = self.reports.fifo.take() else { return };
        if fifo.read(&mut self.turn) && !std::mem::replace(&mut self.reports.told.flood, true) {
            let rate = limits::REPORT_BYTES_A_SECOND >> 20;
            self.screen.say(format_args!(
                "… sandboxed commands report more than {rate} MiB a second: the rest of their output is not shown"
            ));
        }
        while let Some(record) = fifo.next_record() {
            self.on_record(&record);
        }
        let is_forged = fifo.garbage > 0;
        self.reports.fifo = Some(fifo);
        if is_forged {
            self.tell_forged();
        }
    }

    fn on_record(&mut self, record: &ReportRecord<'_>) {
        let now = self.turn.now;
        if self.reports.over.contains(&record.key) {
            return self.tell_forged();
        }
        let is_new = record.number == 0 && !self.reports.runs.contains_key(&record.key);
        if is_new && !self.has_room_for_report() {
            if let Report::Begin { piece, .. } = record.report {
                self.reports.drop_beginning(piece);
            }
            return;
        }
        let run = match is_new {
            true => self.reports.runs.entry(record.key).or_insert_with(|| ReportedRun::new(record.key, now)),
            false => match self.reports.runs.get_mut(&record.key) {
                Some(run) => run,
                None => return,
            },
        };
        let was_doubtful = run.is_doubtful;
        let had_end = run.has_end();
        let (fact, job) = (run.take(record, now), run.job);
        let is_end = run.has_end() && !had_end;
        if run.takes_look_below(is_end) {
            self.reports.look_below(record.key, is_end);
        }
        let Some(run) = self.reports.runs.get_mut(&record.key) else { return };
        if let Some(JobId(seq)) = job.filter(|_| run.is_doubtful && !was_doubtful) {
            self.screen.say_if_room(format_args!(
                "… the report of #{seq} was meddled with by another process: its words on its end are not believed"
            ));
        }
        match (fact, job) {
            (ReportedFact::None, _) => {}
            (ReportedFact::Begun, _) => self.seek_reported(record.key),
            (ReportedFact::Output(stream, bytes), Some(job)) => {
                if self.engine.job(job).is_some_and(|known| known.log.is_full()) {
                    return run.hold_back(stream, &bytes, now);
                }
                self.tell_untaken(record.key);
                self.engine.on_output(job, stream, bytes, now);
            }
            (ReportedFact::Flood, Some(job)) => {
                if !std::mem::replace(&mut self.reports.told.flood, true) {
                    let line =
                        format!("… #{} reports more than can be shown: the rest of its output is counted", job.0);
                    self.screen.say(line);
                }
            }
            _ => self.tell_forged(),
        }
    }

    /// Reports the bytes that were not taken, then those after them, which were held back.
    fn tell_untaken(&mut self, key: RunKey) {
        let Some(run) = self.reports.runs.get_mut(&key) else { return };
        let (Some(job), (bytes, held)) = (run.job, run.take_untaken()) else { return };
        if bytes > 0 {
            self.engine.on_unreported(job, bytes);
        }
        for (stream, held) in held {
            self.engine.on_output(job, stream, held.into(), self.turn.now);
        }
    }

    fn has_room_for_report(&mut self) -> bool {
        let unbegun = self.reports.runs.iter().filter(|(_, run)| !run.has_begun());
        let oldest = unbegun.clone().min_by_key(|(_, run)| run.since).map(|(&key, _)| key);
        if unbegun.count() >= limits::REPORTS_EXPECTED_MAX {
            // A shim writes its whole beginning at once, so this one was forged.
            let forged = oldest.and_then(|key| self.reports.runs.remove(&key));
            forged.into_iter().for_each(|run| self.reports.drop_beginning(&run.beginning));
        }
        let sought = self.reports.runs.values().filter(|run| run.sought_since.is_some()).count();
        let has_room = self.reports.runs.len() < limits::REPORTED_MAX && sought < limits::REPORTS_SOUGHT_MAX;
        if !has_room && !std::mem::replace(&mut self.reports.told.crowd, true) {
            let most = limits::REPORTED_MAX;
            self.screen.say(format_args!("… more than {most} sandboxed commands report at once: others run unseen"));
        }
        has_room && !self.is_closing()
    }

    pub(super) fn is_in_time(&mut self) -> bool {
        let most = limits::REPORTS_BEGUN_A_SECOND;
        let is_in_time = self.reports.beginnings.take(most, self.turn.now);
        if !is_in_time && !std::mem::replace(&mut self.reports.told.rush, true) {
            self.screen.say(format_args!("… more than {most} sandboxed commands begin in a second: others run unseen"));
        }
        is_in_time
    }

    pub(super) fn tell_forged(&mut self) {
        if !std::mem::replace(&mut self.reports.told.forged, true) {
            self.screen.say("… a process writes forged reports of sandboxed commands: they are ignored");
        }
    }

    /// A beginning is whole and its shim was found: the run becomes a job.
    pub(super) fn begin_reported(&mut self, key: RunKey, shim: Process) {
        let Some(mut run) = self.reports.runs.remove(&key) else { return };
        let bytes = std::mem::take(&mut run.beginning);
        let Some(Beginning { place, dir, frame }) = Beginning::decode(&bytes) else { return self.tell_forged() };
        let Ok(Decoded::Item(FromShim::Run(request), _)) = FromShim::decode(frame) else { return self.tell_forged() };
        let mut command = Command::of(&request, frame);
        let refused = self.reports.take_refused(&command.caller.whoami, &command.exec);
        if self.is_seen_already(place, &shim) {
            return;
        }
        let what = words(&command, place, refused.map(|refused| refused.why));
        let Some(job) = self.engine.submit_reported(self.turn.now) else { return self.reports.note_dropped(&run) };
        self.callers.identify(&mut command, None);
        let secrets = self.secrets_of(&command);
        let card = self.card(job, &command, dir, Some(what));
        self.record(&card, &command, dir, secrets.as_ref());
        run.is_contested = self.reports.dropped.may_have(run.named(), &shim);
        run.begin(job, shim, Description::of(&card, secrets), self.turn.now);
        self.reports.runs.insert(key, run);
        self.turn.touch(job);
    }

    /// Returns true if a command runs below one of this host's guards, or inside of another reported run that its shim
    /// does not see, because it has a pid namespace of its own.
    fn is_seen_already(&self, place: ShimPlace, shim: &Process) -> bool {
        let is_above = |other: &&ReportedRun| place.within != RunMark::default() && other.mark() == place.within;
        let above = self.reports.runs.values().find(is_above).and_then(|above| above.job);
        if above.and_then(|job| self.engine.job(job)).is_some_and(Job::is_running) {
            return true;
        }
        // A sandbox that clears the environment takes the mark away.
        let is_elsewhere = |other: &ReportedRun| other.job.is_some() && other.place.namespace != place.namespace;
        let is_possible = place.may_be_inside || self.reports.runs.values().any(is_elsewhere);
        if !is_possible {
            return false;
        }
        let guards = self.runs.guards();
        namespace::is_below(shim.pid, |pid| guards.contains(&pid)) || self.reports.is_below_shim(shim.parent)
    }

    /// Forgets a run that is closed, and answers the peers that wait for its end.
    fn close_reported(&mut self, key: RunKey) {
        if self.reports.runs.get(&key).is_some_and(|run| run.job.is_none()) {
            return self.drop_reported(key);
        }
        let Some(mut run) = self.reports.runs.remove(&key) else { return };
        self.reports.over.truncate(limits::REPORTED_MAX - 1);
        self.reports.over.push_front(key);
        run.unpause();
        let Some(job) = run.job else { return };
        self.tally.count(job, &self.engine, &run.description, self.turn.now);
        self.engine.on_gone(job);
        let answer = Answer::Kill { seq: job.0, unkillable: Vec::new(), grace_left_ms: None };
        for peer in run.waiting {
            self.peers.answer(peer, &answer, &mut self.turn, &mut self.engine);
        }
    }

    /// Forgets a run that has not begun. Its shim may be honest, so nobody else may report it later.
    pub(super) fn drop_reported(&mut self, key: RunKey) {
        if let Some(run) = self.reports.runs.remove(&key) {
            self.reports.note_dropped(&run);
        }
    }

    pub(in crate::host) fn tick_reports(&mut self) {
        let now = self.turn.now;
        if self.reports.fifo.as_ref().and_then(super::ReportFifo::resumes_at).is_some_and(|at| at <= now) {
            self.reports.token().into_iter().for_each(|token| self.turn.queue(token));
        }
        while let Some(at) = self.reports.refused.iter().position(|refused| refused.until <= now) {
            let refused = self.reports.refused.remove(at);
            self.screen.say_if_room(refused.line);
        }
        let due = self.reports.runs.iter().filter(|(_, run)| run.deadline() <= now).map(|(&key, _)| key);
        for key in due.collect::<Vec<_>>() {
            self.look_at_reported(key);
        }
        self.tick_search();
        self.tick_unseen();
    }

    fn look_at_reported(&mut self, key: RunKey) {
        let now = self.turn.now;
        // A run that has reported its end gets many looks, and remembers nothing more.
        if self.reports.runs.get(&key).is_some_and(|run| !run.has_end()) {
            self.reports.look_below(key, false);
        }
        self.reports.pursue(key, &mut self.turn, &mut self.engine, &mut self.peers);
        self.tell_rested(key);
        let is_drained = self.reports.fifo.as_ref().is_none_or(super::ReportFifo::is_drained);
        let Some(run) = self.reports.runs.get_mut(&key) else { return };
        let has_ended = run.job.is_some_and(|job| self.engine.job(job).is_none_or(Job::has_ended));
        let sight = if has_ended { Sight::Lost } else { run.look(is_drained, now) };
        let (job, is_doubtful) = (run.job, run.is_doubtful);
        let exit = match sight {
            Sight::Well => return,
            Sight::Outlived => {
                run.is_doubtful = true;
                let seq = job.map_or(0, |job| job.0);
                return self.screen.say(format_args!(
                    "… #{seq} was reported as ended, but runs on: the report was forged; rexec kill {seq} ends it"
                ));
            }
            Sight::Lost => None,
            Sight::Ended(exit) => Some(exit).filter(|_| !is_doubtful),
        };
        self.tell_untaken(key);
        match (job, exit) {
            (Some(job), Some(exit)) => self.engine.on_exit(job, exit, now),
            (Some(job), None) => self.engine.on_guard_gone(job, now),
            (None, _) => {}
        }
        self.close_reported(key);
    }

    /// Reports output that was held back, once no more comes and the log has room.
    fn tell_rested(&mut self, key: RunKey) {
        let Some(run) = self.reports.runs.get_mut(&key).filter(|run| run.has_rested(self.turn.now)) else { return };
        if run.job.and_then(|job| self.engine.job(job)).is_some_and(|known| known.log.is_full()) {
            return run.wait_on(self.turn.now);
        }
        self.tell_untaken(key);
    }

    /// The host ends: reported commands go on, and nobody sees how they end.
    pub(in crate::host) fn leave_reports(&mut self) {
        let ends: Vec<_> = self.reports.runs.values().filter_map(|run| Some((run.job?, run.reported_end()))).collect();
        for (job, end) in ends {
            match end {
                Some(exit) => self.engine.on_exit(job, exit, self.turn.now),
                None => self.engine.on_guard_gone(job, self.turn.now),
            }
        }
        for (_, mut run) in std::mem::take(&mut self.reports.runs) {
            run.unpause();
        }
        self.reports.close(&mut self.turn);
    }
}

fn words(command: &Command, place: ShimPlace, why: Option<&str>) -> String {
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
