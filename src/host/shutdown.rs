//! The shutdown: ends commands, tells callers, gives the terminal back as it was, and finishes the journal.
//!
//! Every step is bounded in time, because the terminal may not be read.

use std::time::{Duration, Instant};

use rexec_sh::protocol::notice::Notice;

use super::door::Arrival;
use super::screen::Question;
use super::turn::PeerId;
use super::{Closing, Host};
use crate::core::end::Stopper;
use crate::front::answer::Answer;
use crate::io::poller::Token;
use crate::limits;
use crate::sink::console::View;
use crate::sys::signal::HostSignal;

impl Host {
    /// Takes some of the host's signals in each turn, because a process may send them as fast as the host takes them.
    pub(super) fn visit_signals(&mut self, token: Token) {
        for _ in 0..limits::SIGNALS_PER_TURN {
            let Some(asked) = self.signals.take_next() else { return };
            match asked {
                HostSignal::End => self.ask_to_end(),
                HostSignal::HangUp => self.on_console_gone(),
                HostSignal::CheckSocket => {
                    self.door.check(&mut self.turn, &mut self.screen);
                    self.reports.check(&mut self.turn, &mut self.screen);
                }
                HostSignal::Resize => self.on_resized(),
                HostSignal::Continued => {
                    self.screen.retake(self.turn.now);
                    self.on_resized();
                }
            }
        }
        self.turn.queue(token);
    }

    /// A person wants the host to end: every command gets SIGTERM and a grace, and SIGKILL the second time.
    pub(super) fn ask_to_end(&mut self) {
        let grace = self.options.grace.min(limits::SHUTDOWN_GRACE);
        let is_first = !self.is_closing();
        if is_first {
            self.closing = Closing::Since(self.turn.now);
            self.starts.close();
            self.reports.leave(&mut self.turn, &mut self.engine);
            let is_busy = self.engine.jobs().any(|(_, job)| !job.has_ended());
            let rest = if is_busy { ": every command is stopped; once more kills them at once" } else { "" };
            self.screen.say(format_args!("… ending{rest}"));
        }
        self.engine.stop_all(Stopper::Host, grace, self.turn.now);
        self.runs.hurry_endings(if is_first { grace } else { Duration::ZERO }, self.turn.now);
        if is_first {
            self.admit_the_last();
        }
    }

    /// Ends the host for a person, unless commands run and the person does not want to end them.
    pub(super) fn stop(&mut self, id: PeerId, is_forced: bool) {
        let runs = self.commands().all_running();
        if !runs.is_empty() && !is_forced {
            let numbers: Vec<String> = runs.iter().take(5).map(|run| format!("#{}", run.card.seq)).collect();
            let more = if runs.len() > numbers.len() { ", …" } else { "" };
            let problem = format_args!("commands run or left processes: {}{more}", numbers.join(", "));
            let hint = "rexec ps shows them; rexec --stop-host --force ends them with the host";
            return self.fail(id, &Notice::failed(problem, hint));
        }
        let answer = Answer::Stop { pid: std::process::id() };
        self.peers.answer(id, &answer, &mut self.turn, &mut self.engine);
        self.ask_to_end();
    }

    /// Ends a host that nobody has needed since it last looked.
    pub(super) fn tick_idle(&mut self) {
        let is_quiet = self.callers.idle.is_quiet(self.engine.count(), self.turn.now);
        let is_needed = || self.callers.started.are_any_alive() || !self.peers.all.is_empty();
        if is_quiet && !is_needed() && !self.is_closing() && self.commands().all_running().is_empty() {
            self.screen.say("… nobody has needed this host for long: it ends");
            self.ask_to_end();
        }
    }

    /// The human's terminal is gone, or hung up. A closed window shows in up to three ways, and none of them counts as the
    /// second time. A host that ignores SIGHUP, as under nohup(1), goes on.
    pub(super) fn on_console_gone(&mut self) {
        if !self.signals.survives_hangup() && !self.is_closing() {
            self.ask_to_end();
        }
    }

    /// Tells callers that have connected already that the host ends. Later ones find no socket.
    fn admit_the_last(&mut self) {
        self.door.hide(&mut self.turn);
        while let Arrival::Peer(fd) = self.door.accept(self.turn.now) {
            if let Some(peer) = self.peers.admit(fd, &mut self.turn) {
                self.visit_peer(peer);
            }
        }
        self.door.close(&mut self.turn.poller);
        self.peers.dismiss(&mut self.turn, &mut self.engine);
    }

    /// Shows what is left, gives the terminal back, and gives the recorder the rest.
    pub(super) fn close(mut self) {
        self.judges.close();
        self.rpc.lookups.close();
        self.runs.resume_orphans();
        self.recorder.tell_given_up(true, &mut self.screen, self.turn.now);
        let now = Instant::now();
        let end = now + limits::CONSOLE_FAREWELL;
        self.screen.thaw();
        self.show_until(now + limits::CONSOLE_FAREWELL / 2);
        self.screen.end_take_over(&mut self.engine, self.turn.now);
        self.screen.leave();
        let question = if self.options.view == View::Raw { self.screen.question() } else { None };
        self.show_until(end);
        if let Some(question) = question {
            self.drop_replies(question);
        }
        self.screen.give_back(end.saturating_duration_since(Instant::now()));
        self.recorder.finish(&mut self.turn.poller, &mut self.engine);
        self.peers.close(&mut self.turn);
    }

    fn show_until(&mut self, end: Instant) {
        loop {
            self.screen.pump(&mut self.engine, self.turn.now);
            if self.screen.is_flushed() || !self.screen.flush(self.turn.now) {
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            let wait = left.min(limits::CONSOLE_DISK_RETRY / 10);
            if left.is_zero() || (!self.screen.is_flushed() && self.wait(Some(wait)).is_err()) {
                return;
            }
        }
    }

    /// Drops the terminal's replies to commands' queries, which arrive on the host's standard input. They must not be
    /// left for the parent shell. A command may have sent the same query as the host, so the first reply need not be
    /// the last: silence has to follow it.
    fn drop_replies(&mut self, mut question: Question) {
        let end = Instant::now() + limits::REPLIES_MAX;
        let mut until = end;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.wait(Some(left)).is_err() {
                return;
            }
            if self.screen.listen(&mut self.turn.poller, &mut question) && question.is_answered {
                until = end.min(Instant::now() + limits::REPLIES_SILENCE);
            }
        }
    }
}
