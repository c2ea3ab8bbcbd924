//! Starts commands for programs. They take the same way as those of other callers in JSON.

use super::Requester;
use super::kept_run::KeptRun;
use super::pending_reply::{Awaiting, PendingReply, WantedStart};
use super::serve::RpcService;
use super::watcher::{ToldEvents, Watcher};
use crate::core::end::{StartError, Stopper};
use crate::core::engine::JobId;
use crate::core::log::Lag;
use crate::front::jsonl::{CommandInput, CommandRequest, OutputPlace};
use crate::front::output_filter::OutputFilter;
use crate::front::projects::ProjectId;
use crate::front::rpc::answers::Started;
use crate::front::rpc::error::{BAD_PARAMS, NAME_TAKEN, RUN_NOT_READY, RpcError};
use crate::front::rpc::gathered::GatheredOutput;
use crate::front::rpc::kept_output::{Gathering, KeptOutput};
use crate::front::rpc::listing::RunFacts;
use crate::front::rpc::methods::{Serve, Served, method};
use crate::front::rpc::params::{Encoding, RunEvent, UndoParams};
use crate::front::rpc::start::{Cleaning, StartParams};
use crate::host::Host;
use crate::host::input_pipe::InputPipe;
use crate::host::keeper::Keeper;
use crate::host::turn::Source;
use crate::io::port::Port;
use crate::journal::record::PublishedCard;
use crate::limits;
use crate::sys;
use crate::sys::caller_descriptor::CallerDescriptor;
use crate::text::redact::Redactor;
use crate::text::sanitize::Mode;

impl Serve<method::Run, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: StartParams) -> Served<method::Run> {
        self.rpc.wanted = Some(WantedStart { to: to.clone(), params, is_run: true });
        Ok(None)
    }
}

impl Serve<method::Start, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: StartParams) -> Served<method::Start> {
        self.rpc.wanted = Some(WantedStart { to: to.clone(), params, is_run: false });
        Ok(None)
    }
}

impl Serve<method::RunBackground, Requester> for RpcService<'_> {
    fn serve(&mut self, to: &Requester, params: StartParams) -> Served<method::RunBackground> {
        Serve::<method::Start, _>::serve(self, to, StartParams { background: true, ..params })
    }
}

impl Serve<method::Undo, Requester> for RpcService<'_> {
    /// It becomes a command like others, about which the person is asked.
    fn serve(&mut self, to: &Requester, params: UndoParams) -> Served<method::Undo> {
        if !(1..=self.commands.engine.count()).contains(&params.run) {
            return Err(RpcError::no_such_run(params.run));
        }
        let record = self.commands.recorder.reference(JobId(params.run));
        let program = std::env::current_exe().unwrap_or_default().with_file_name("rexec");
        let params = params.start(program.to_string_lossy().into_owned(), record);
        self.rpc.wanted = Some(WantedStart { to: to.clone(), params, is_run: false });
        Ok(None)
    }
}

impl Host {
    /// Starts a command.
    pub(super) fn start_for(&mut self, wanted: &WantedStart) -> Result<(), RpcError> {
        let WantedStart { to, params: asked, is_run } = wanted;
        if asked.restores.is_some() && !self.starts.keeps_records() {
            let sentence = "this host keeps nothing for undo";
            return Err(RpcError::new(RUN_NOT_READY, sentence).hint("start it with rexec-host --undo on"));
        }
        if asked.encoding == Encoding::Terminal {
            let sentence = "encoding: terminal is for events.subscribe";
            return Err(RpcError::new(BAD_PARAMS, sentence).hint("\"sanitize\":\"raw\" has output as it is written"));
        }
        let host_dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let name = self.rpc.meet(to.peer).name.clone();
        // Before anything is made of its project session.
        let request = asked.request(name.as_deref(), &host_dir.to_string_lossy())?;
        let text = request.text.clone().unwrap_or_else(|| request.exec.join(" "));
        self.check_start(to.peer, &request.whoami, &text)?;
        let (params, session) = self.rpc_service().in_session(asked)?;
        let completed = WantedStart { to: to.clone(), params, is_run: *is_run };
        let params = &completed.params;
        let request = params.request(name.as_deref(), &host_dir.to_string_lossy())?;
        if let Some(job) = self.run_of_name(params, &request.dir, session) {
            if !params.restart {
                let name = params.name.as_deref().unwrap_or_default();
                let sentence = format!("run {} has the name {name:?} in this project", job.0);
                let hint = "end it first, with exec.cancel, or start with \"restart\":true";
                return Err(RpcError::new(NAME_TAKEN, sentence).hint(hint).of_run(job.0));
            }
            self.engine.stop(job, Stopper::Client, self.options.grace, self.turn.now);
            let restart = Awaiting::Restart(Some(Box::new(wanted.clone())));
            return self.rpc_service().wait_for(job, to, restart, None);
        }
        let client = self.rpc.meet(to.peer);
        if !params.background && client.foreground.len() >= limits::RPC_RUNS_MAX {
            let sentence = format!("this connection has {} runs in the foreground already", limits::RPC_RUNS_MAX);
            return Err(RpcError::busy(sentence).hint("wait for one of them to end, or start it in the background"));
        }
        if params.background && self.engine.count_apart() >= limits::BACKGROUND_MAX {
            let sentence = format!("{} commands run in the background already", limits::BACKGROUND_MAX);
            return Err(RpcError::busy(sentence).hint("end some of them"));
        }
        let job = self.submit_for(to, &request, session)?;
        if params.background {
            self.engine.set_apart(job);
        }
        self.keep_started(job, &completed, &request);
        Ok(())
    }

    /// Starts the commands that waited for the end of another run.
    pub(in crate::host) fn start_again(&mut self) {
        for restart in std::mem::take(&mut self.rpc.restarts) {
            if let Err(error) = self.start_for(&restart) {
                self.rpc.fail(&restart.to, &error, &mut self.peers);
                self.peers.touch(restart.to.peer);
            }
        }
    }

    /// The running command that has the name of a start, in the same project session, or in the same directory if there
    /// is none.
    fn run_of_name(&self, params: &StartParams, dir: &str, session: Option<ProjectId>) -> Option<JobId> {
        params.name.as_ref()?;
        let session = session.or_else(|| self.projects.known.of_dir(dir)).map(ProjectId::name);
        let is_near = |run: &KeptRun| match &session {
            Some(_) => run.facts.session == session,
            None => run.facts.card.dir == dir,
        };
        let has_name =
            |run: &KeptRun| params.name.as_ref() == Some(&run.facts.card.name) && is_near(run) && run.end().is_none();
        self.rpc.kept.iter().find(|(_, run)| has_name(run)).map(|(&job, _)| job)
    }

    /// Makes a job of the command, with its input.
    fn submit_for(
        &mut self,
        to: &Requester,
        request: &CommandRequest,
        session: Option<ProjectId>,
    ) -> Result<JobId, RpcError> {
        let busy = || {
            RpcError::busy("the host is busy: too many commands or too few descriptors")
                .hint("run the command again in a moment")
        };
        let pid = self.peers.get(to.peer).map(|peer| peer.pid).ok_or_else(busy)?;
        let is_attended = self.runs.prompts.wait(self.turn.now).is_some();
        let (mut command, descriptors) = self.starts.json_command(request, is_attended);
        command.project = session;
        self.callers.identify(&mut command, None);
        self.starts.add_groups(pid, &mut command, &mut self.screen);
        let given = match &request.input {
            CommandInput::Bytes(bytes) | CommandInput::Kept(bytes) => bytes.len(),
            CommandInput::Nothing => 0,
        };
        let share = self.starts.hold(command.weight() + given).ok_or_else(busy)?;
        let is_terminal = matches!(request.place, OutputPlace::Terminal { .. });
        let (descriptors, input) = match &request.input {
            CommandInput::Kept(first) if !is_terminal => self.with_input(descriptors, first).map_err(|_| busy())?,
            _ => (descriptors, None),
        };
        let job = self.enter(None, command, descriptors, share).ok_or_else(busy)?;
        if let Some(input) = input {
            self.turn.name(input.token(), Source::Input(job));
            self.runs.set_input(job, input, &mut self.turn);
        }
        Ok(job)
    }

    /// A pipe in the place of the command's standard input.
    #[expect(clippy::type_complexity, reason = "the descriptors as they came, and the pipe's other end")]
    fn with_input(
        &mut self,
        descriptors: Result<Vec<CallerDescriptor>, StartError>,
        first: &[u8],
    ) -> std::io::Result<(Result<Vec<CallerDescriptor>, StartError>, Option<InputPipe>)> {
        let Ok(mut descriptors) = descriptors else { return Ok((descriptors, None)) };
        let (read, write) = sys::input_pipe()?;
        descriptors[0] = read.into();
        let port = Port::new(&mut self.turn.poller, write)?;
        Ok((Ok(descriptors), Some(InputPipe::new(port, first))))
    }

    /// Keeps the output of a command that this door has started.
    fn keep_started(&mut self, job: JobId, start: &WantedStart, request: &CommandRequest) {
        let WantedStart { to, params, is_run } = start;
        let filter = || self.filter_for(job, params);
        let most = params.max_output_bytes.unwrap_or(limits::RPC_ANSWER_BYTES).min(limits::RPC_ANSWER_BYTES_MAX);
        let gathered = || GatheredOutput::new(most, self.peers.outputs().share());
        let gathering = match (*is_run, params.combined || params.is_pty()) {
            (false, _) => Gathering::Nothing,
            (true, true) => Gathering::Together(gathered()),
            (true, false) => Gathering::Apart(Box::new([gathered(), gathered()])),
        };
        let is_text = params.encoding == Encoding::Text;
        let output = KeptOutput::new([filter(), filter()], params.is_pty(), is_text, gathering);
        let cursor = self.engine.attach(job, Lag::Hold);
        let known = self.rpc_service().facts_of(job);
        let why = params.why.clone().unwrap_or_default();
        let card = PublishedCard { dir: request.dir.clone(), why, ..known.card };
        let (caller_session, background) = (params.caller_session.clone(), params.background);
        let facts = RunFacts { card, caller_session, background, ..known };
        let mut run = KeptRun::new(facts, output, cursor, self.turn.now);
        if params.stream {
            let told = ToldEvents::of(&[RunEvent::Output, RunEvent::Exit]);
            run.watch(Watcher::of_run(to.peer, told, params.encoding, !params.background));
        }
        if !params.notify.is_empty() {
            run.watch(Watcher::of_run(to.peer, ToldEvents::of(&params.notify), params.encoding, false));
        }
        let client = self.rpc.meet(to.peer);
        if !params.background {
            client.foreground.insert(job);
        }
        if *is_run {
            client.waiting += 1;
            let waiting = Awaiting::Answer { parses: params.parse };
            run.replies.push(PendingReply { to: to.clone(), waiting, until: None });
        } else {
            self.rpc.answer::<method::Start>(to, &Started { run: job.0 }, &mut self.peers);
        }
        self.rpc.keep(job, run, &mut self.turn);
    }

    fn filter_for(&self, job: JobId, params: &StartParams) -> OutputFilter {
        let size = params.size.map_or((limits::UNSEEN_ROWS, limits::UNSEEN_COLS), |size| (size.rows, size.cols));
        let (rows, cols) = (size.0.min(limits::WINDOW_ROWS_MAX), size.1.min(limits::WINDOW_COLS_MAX));
        let collapse = Mode::Collapse { rows, cols };
        let mode = match params.sanitize {
            Some(Cleaning::Raw) => Mode::Raw,
            Some(Cleaning::Strip) => Mode::Strip,
            Some(Cleaning::Tidy) => Mode::Tidy,
            Some(Cleaning::Collapse) => collapse,
            None if params.is_pty() => collapse,
            None => Mode::Tidy,
        };
        OutputFilter::new(
            mode,
            Keeper::of(job, &self.runs, &self.reports).and_then(Keeper::secrets).map(Redactor::fresh),
        )
    }
}
