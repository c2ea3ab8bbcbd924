//! Peers that answer prompts: `rexec send` and `rexec attach`.

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::Signal;

use super::Host;
use super::answering::Answerer;
use super::keeper::Keeper;
use super::notices::not_there;
use super::runs::{AnswerOver, AnswerWish, InputPiece, InputState, NoAnswer};
use super::turn::PeerId;
use crate::core::engine::JobId;
use crate::core::entry::AnswerPlace;
use crate::core::job::Job;
use crate::front::answer::Answer;
use crate::front::{AttachRequest, SendRequest, TerminalEvent};
use crate::sys::pty;

impl Host {
    /// Types a text for a run. The answer comes when the run's terminal has all of it.
    pub(super) fn send_answer(&mut self, id: PeerId, request: &SendRequest) {
        if !self.has_proof(id) || !self.is_let_type(id) {
            return;
        }
        let (job, by) = (JobId(request.seq), Answerer::Peer(id));
        let has_own_terminal = self.runs.has_own_terminal(job);
        if let Some(signal) = request.signal.filter(|_| !has_own_terminal) {
            return self.signal_instead(id, job, signal);
        }
        if self.runs.has_input_pipe(job) {
            return self.write_instead(id, job, request);
        }
        let wish = AnswerWish { by, place: AnswerPlace::Send, is_forced: request.force };
        let begun = self.runs.begin_answer(job, wish, &mut self.engine);
        if let Err(why) = begun.and_then(|()| self.runs.type_answer(job, &request.keys(), &mut self.engine)) {
            self.runs.end_answer_of(job, by, &mut self.engine);
            let notice = self.no_answer(request.seq, why);
            return self.fail(id, &notice);
        }
        self.runs.prompts.on_key(self.turn.now);
        self.peers.end_greeting(id);
        self.runs.finish_answer(job, &mut self.engine);
    }

    /// Sends a signal in the place of the key that it stands for.
    fn signal_instead(&mut self, id: PeerId, job: JobId, signal: u8) {
        if !self.engine.job(job).is_some_and(Job::is_running) {
            return self.fail(id, &not_there(job));
        }
        match self.commands().control(job).and_then(|run| run.signal(Signal::new(signal))) {
            Ok(()) => self.peers.answer(id, &Answer::Send { seq: job.0, bytes: 0 }, &mut self.turn, &mut self.engine),
            Err(refused) => self.fail(id, &refused.into()),
        }
    }

    /// Writes a text to a run's standard input, which is a pipe.
    fn write_instead(&mut self, id: PeerId, job: JobId, request: &SendRequest) {
        if self.runs.input_state(job) != InputState::Open {
            let notice = self.no_answer(job.0, NoAnswer::TooManyKeys);
            return self.fail(id, &notice);
        }
        let bytes = request.text.as_bytes();
        let piece = InputPiece { bytes, is_end: request.eof };
        self.runs.write_input(job, piece, &mut self.turn, &mut self.peers);
        let bytes = u64::try_from(bytes.len()).expect("a length fits 64 bits");
        self.peers.answer(id, &Answer::Send { seq: job.0, bytes }, &mut self.turn, &mut self.engine);
    }

    /// Returns true if a caller may type for what others run. Otherwise it has got its answer.
    fn is_let_type(&mut self, id: PeerId) -> bool {
        let may = self.may_decide(id);
        self.is_let(id, may, "it types for no commands outside of its sandbox")
    }

    /// Makes a person's terminal stand for that of a run. With `watch`, the person only sees what it writes.
    pub(super) fn attach(&mut self, id: PeerId, request: &AttachRequest) {
        let is_let = if request.watch { Self::is_let_supervise } else { Self::is_let_type };
        if !self.has_proof(id) || !is_let(self, id) {
            return;
        }
        let (job, by) = (JobId(request.seq), Answerer::Peer(id));
        let begun = match request.watch {
            true if self.engine.job(job).is_some_and(Job::is_alive) => Ok(()),
            true => Err(NoAnswer::NotRunning),
            false => {
                let wish = AnswerWish { by, place: AnswerPlace::Attach, is_forced: true };
                self.runs.begin_answer(job, wish, &mut self.engine)
            }
        };
        if let Err(why) = begun {
            let notice = self.no_answer(request.seq, why);
            return self.fail(id, &notice);
        }
        if !request.watch {
            self.runs.size_answer(job, pty::Size { rows: request.rows, cols: request.cols });
        }
        let described = Keeper::of(job, &self.runs, &self.reports).map(Keeper::description);
        let command = described.map(|description| description.card.command.clone()).unwrap_or_default();
        let drawn = self.runs.full_screen(job);
        self.peers.attach(id, job, &Answer::Attach { seq: job.0, command }, drawn, &mut self.engine);
    }

    /// Something happened at the terminal of a person who is attached. A person who watches does not type.
    pub(super) fn at_attached_terminal(&mut self, id: PeerId, job: JobId, event: &TerminalEvent) {
        if self.runs.answerer(job) != Some(Answerer::Peer(id)) {
            return;
        }
        match event {
            TerminalEvent::Size(rows, cols) => self.runs.size_answer(job, pty::Size { rows: *rows, cols: *cols }),
            TerminalEvent::Keys(keys) => {
                self.runs.prompts.on_key(self.turn.now);
                if let Err(why) = self.runs.type_answer(job, keys, &mut self.engine) {
                    let notice = self.no_answer(job.0, why);
                    self.fail(id, &notice);
                }
            }
            TerminalEvent::Resume { .. } | TerminalEvent::Hangup => {}
        }
    }

    pub(super) fn no_answer(&mut self, seq: u64, why: NoAnswer) -> Notice {
        let job = JobId(seq);
        let (problem, hint) = match why {
            NoAnswer::NotRunning => {
                return self.reports.no_terminal(job).unwrap_or_else(|| not_there(job));
            }
            NoAnswer::NoTerminal => (
                format!("#{seq} has no terminal that anybody could type at"),
                "rexec help commands says when a command has one; REXEC_TTY=always gives each a terminal".to_owned(),
            ),
            NoAnswer::NotWaiting => (
                format!("#{seq} does not wait for an answer"),
                format!("rexec send --force {seq} types all the same; rexec attach {seq} shows it"),
            ),
            NoAnswer::AtItsCaller => {
                (format!("#{seq} runs on its caller's terminal"), "type at that terminal".to_owned())
            }
            NoAnswer::Taken(by) => {
                let place = match by {
                    Answerer::Console => "at the console".to_owned(),
                    Answerer::Peer(id) => {
                        let peer = self.peers.get(id);
                        peer.map_or_else(String::new, |peer| format!("by another rexec (process {})", peer.pid))
                    }
                };
                (format!("#{seq} is being answered {place}"), "wait until that is over".to_owned())
            }
            NoAnswer::TooManyKeys => {
                (format!("#{seq} has not read what was typed before"), "try again later".to_owned())
            }
        };
        Notice::failed(problem, hint)
    }

    /// Ends answers whose run or person is gone, and tells the people whose answer is over.
    pub(super) fn settle_answers(&mut self) {
        let Self { runs, engine, peers, .. } = self;
        runs.end_lost_answers(engine, |by| matches!(by, Answerer::Peer(id) if peers.get(id).is_none()));
        self.settle_take_over();
        for (job, size) in self.runs.take_resized() {
            self.engine.on_resize(job, size.rows, size.cols, self.turn.now);
        }
        for over in self.runs.take_over() {
            self.on_answer_over(over);
        }
    }

    /// The console has another size. A program that has the screen gets its part of it; if the console is too small for
    /// that, it takes the screen back ([`Host::settle_answers`]).
    pub(super) fn on_resized(&mut self) {
        let size = self.screen.measure(self.turn.now);
        self.starts.resize(size);
        if let Some((job, size)) = self.screen.resize_taken() {
            self.runs.size_answer(job, size);
        }
    }

    /// Gives the screen to a full-screen program that the human answers at the console, or takes it back.
    fn settle_take_over(&mut self) {
        let Self { runs, engine, screen, turn, .. } = self;
        let wanted = runs.answered_by(Answerer::Console).filter(|&job| runs.is_full_screen(job));
        let wanted = wanted.filter(|_| screen.can_be_taken());
        if let Some(job) = screen.taken_over().filter(|job| Some(*job) != wanted) {
            screen.end_take_over(engine, turn.now);
            runs.give_size_back(job);
        }
        if let Some(job) = wanted.filter(|_| screen.taken_over().is_none())
            && let Some(size) = screen.take_over(job, engine, turn.now)
        {
            runs.size_answer(job, size);
        }
    }

    fn on_answer_over(&mut self, over: AnswerOver) {
        let AnswerOver { job, by, bytes, is_complete } = over;
        if self.rpc.on_typed(&over, &mut self.turn, &mut self.peers) {
            return;
        }
        let Answerer::Peer(id) = by else {
            let what = if self.engine.job(job).is_some_and(Job::is_running) { "goes on" } else { "has ended" };
            self.hold_keys(job, format!("#{} {what}", job.0));
            if !self.screen.holds_keys() {
                let said = format!("#{} {what}; your keys are the console's again", job.0);
                self.screen.tell(said, self.turn.now);
            }
            return;
        };
        if self.peers.attached_to(id).is_some() {
            // The end of the command's log reports it.
            return;
        }
        if is_complete {
            let answer = Answer::Send { seq: job.0, bytes };
            return self.peers.answer(id, &answer, &mut self.turn, &mut self.engine);
        }
        let problem = format_args!("#{} ended before it read all of the answer", job.0);
        self.fail(id, &Notice::failed(problem, "rexec ps shows what runs"));
    }
}
