//! `--otlp`: each command becomes a span of OpenTelemetry, which a process of its own gives to a file or to a collector.
//!
//! Invariants: without `--otlp` nothing here costs anything; no command waits for a span: what has no room is dropped
//! and counted; only a collector on this machine gets spans; secrets are masked as in the journal.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::{Exit, Pid};
use rexec_sh::protocol::wire;

use super::screen::Screen;
use super::turn::{Source, Turn};
use crate::core::engine::{Engine, JobId};
use crate::core::entry::{Entry, Outcome, Reason};
use crate::front::command::Command;
use crate::front::span::{Span, SpanIds, TraceContext};
use crate::io::outlet::Outlet;
use crate::io::poller::{Poller, Ready};
use crate::io::port::{Port, ReadOutcome};
use crate::journal::record::StartRecord;
use crate::limits;
use crate::recorder::{Masks, OtlpTarget, export_spans};
use crate::sys::{helper, socket};
use crate::text::count::counted;
use crate::text::escape::escape_line;
use crate::text::reason::reason;
use crate::text::redact::split_entry;

/// Columns of a line from the exporter.
const NEWS_COLUMNS: usize = 400;
/// A command that runs.
#[derive(Debug)]
struct OpenSpan {
    context: TraceContext,
    began_ns: u128,
    began: Instant,
    /// What the journal says of it, masked.
    start: StartRecord,
    /// The directory of its project session, masked.
    project: Option<String>,
}

/// The spans of commands that run, and the process that exports those of ended ones.
#[derive(Debug, Default)]
pub(super) struct Spans {
    ids: SpanIds,
    open: BTreeMap<JobId, OpenSpan>,
    link: Option<(Pid, Port)>,
    /// The host's session, as the journal names it.
    session: String,
    out: Outlet,
    inbox: Vec<u8>,
    dropped: u64,
    has_told_drops: bool,
}

impl Spans {
    /// Starts the exporter, if there is a target.
    ///
    /// # Errors
    /// The file cannot be written, or no process can be started.
    pub(super) fn start(
        poller: &mut Poller,
        target: Option<&OtlpTarget>,
        journal: Option<PathBuf>,
    ) -> Result<Self, Notice> {
        let Some(target) = target else { return Ok(Self::default()) };
        let destination = target.open()?;
        let failed = |error: std::io::Error| {
            let problem = format!("--otlp: no exporter can be started: {}", reason(&error));
            Notice::failed(problem, "raise the limits on processes and descriptors (ulimit -u, ulimit -n)")
        };
        let (near, far) = socket::pair().map_err(failed)?;
        let mut kept = vec![far.as_raw_fd()];
        kept.extend(destination.descriptor());
        let work = move || {
            let far = UnixStream::from(far);
            if far.set_nonblocking(false).is_ok() {
                export_spans(far, destination);
            }
        };
        let pid = helper::fork(c"rexec-spans", &kept, work).map_err(failed)?;
        let link = Some((pid, Port::new(poller, near).map_err(failed)?));
        let stem = journal.as_ref().and_then(|path| path.file_stem());
        let session = stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { link, session, ..Self::default() })
    }

    /// Gives the socket its name.
    pub(super) fn name_source(&self, turn: &mut Turn) {
        if let Some((_, port)) = &self.link {
            turn.name(port.token(), Source::Spans);
        }
    }

    /// The exporter's process.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.link.as_ref().map(|(pid, _)| *pid)
    }

    /// Remembers an event of the exporter's socket. Returns whether it calls for a visit.
    pub(super) fn remember(&mut self, event: Ready) -> bool {
        self.link.iter_mut().for_each(|(_, port)| port.remember(event));
        self.flush();
        event.readable
    }

    /// A command comes in. Its span is the parent of what it does. [`Spans::describe`] follows.
    pub(super) fn begin(&mut self, job: JobId, command: &mut Command, project: Option<&str>) {
        if self.link.is_none() {
            return;
        }
        let project = project.map(str::to_owned);
        let caller = command.run().and_then(|run| {
            let mut entries = run.env.iter().map(CStr::to_bytes);
            entries.find_map(|entry| entry.strip_prefix(b"TRACEPARENT=")).map(<[u8]>::to_vec)
        });
        let context = self.ids.context(job.0, caller.as_deref());
        if !command.is_bare || caller.is_some() {
            let entry = CString::new(format!("TRACEPARENT={}", context.header())).expect("digits have no NUL");
            // A frame that has no room is near the bound on all arguments, and its command more important.
            let _ = wire::add_variable(&entry, &mut command.frame);
        }
        let (began_ns, began) = (otlp_timestamp(SystemTime::now()), Instant::now());
        self.open.insert(job, OpenSpan { context, began_ns, began, start: StartRecord::default(), project });
    }

    /// A command's record of its start, before it is masked, and the entries of its environment. The span says what the
    /// journal says, masked in the same way.
    pub(super) fn describe<'a>(&mut self, job: JobId, start: &StartRecord, entries: impl Iterator<Item = &'a [u8]>) {
        let Some(open) = self.open.get_mut(&job) else { return };
        let start = start.fitted().unwrap_or_else(|| start.clone());
        let mut masks = Masks::new(entries.filter_map(split_entry), &start);
        open.start = masks.start(start);
        for text in [&mut open.start.command, &mut open.start.dir] {
            let most = text.len().min(limits::SPAN_TEXT_BYTES);
            text.truncate((0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0));
        }
        open.project = open.project.as_ref().map(|project| masks.text(project));
    }

    /// Exports the span of a command that has ended.
    pub(super) fn note(&mut self, job: JobId, engine: &Engine, screen: &mut Screen) {
        if self.open.is_empty() {
            return;
        }
        let Some(Entry::Closed { outcome, .. }) = engine.job(job).and_then(|known| known.log.newest()) else { return };
        let Some(known) = self.open.remove(&job) else { return };
        let (signal, error) = match outcome {
            Outcome::Ended { exit, stopped } => {
                let signal = if let Exit::Signal(signal) = exit { Some(signal.number()) } else { None };
                (signal, stopped.map(Reason::word))
            }
            Outcome::NotStarted(_) => (None, Some("not_started")),
            Outcome::NeverRun(reason) => (None, Some(reason.word())),
            Outcome::Lost { .. } | Outcome::Unseen => (None, Some("lost")),
        };
        let span = Span {
            context: known.context,
            seq: job.0,
            host_session: self.session.clone(),
            began_ns: known.began_ns,
            ended_ns: known.began_ns + known.began.elapsed().as_nanos(),
            command: known.start.command,
            dir: known.start.dir,
            whoami: known.start.whoami,
            project: known.project,
            exit: outcome.exit_code(),
            signal,
            error: error.map(str::to_owned),
        };
        self.send(&span, screen);
    }

    fn send(&mut self, span: &Span, screen: &mut Screen) {
        if self.link.is_none() || self.out.pending() > limits::SPANS_QUEUED_BYTES {
            self.dropped += 1;
            if self.link.is_some() && !std::mem::replace(&mut self.has_told_drops, true) {
                screen.say("… --otlp: the exporter is behind; spans are dropped and counted");
            }
            return;
        }
        let buffer = self.out.buffer();
        buffer.extend_from_slice(span.element().as_bytes());
        buffer.push(b'\n');
        self.flush();
    }

    fn flush(&mut self) {
        if let Some((_, port)) = self.link.as_mut().filter(|(_, port)| port.is_writable()) {
            // The end of the exporter is noticed by reading.
            let _ = self.out.flush(|bytes| port.write(|fd| socket::send(fd, bytes, &[])));
        }
    }

    /// Takes in what the exporter says.
    pub(super) fn visit(&mut self, turn: &mut Turn, screen: &mut Screen) {
        let mut buffer = [0; 1_024];
        let mut is_gone = false;
        let Some((_, port)) = &mut self.link else { return };
        while port.is_readable() && !is_gone {
            match port.read(|fd| socket::receive(fd, &mut buffer)) {
                ReadOutcome::Bytes(length) => self.inbox.extend_from_slice(&buffer[..length]),
                ReadOutcome::Nothing => {}
                ReadOutcome::End => is_gone = true,
            }
        }
        while let Some(end) = memchr::memchr(b'\n', &self.inbox) {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            screen.say(format_args!("… --otlp: {}", escape_line(&String::from_utf8_lossy(&line[..end]), NEWS_COLUMNS)));
        }
        if is_gone && let Some((_, port)) = self.link.take() {
            turn.close(port);
            screen.say("… --otlp: the exporter died; no more spans are exported until the host is started again");
        }
    }

    /// The host ends. The exporter gives away what it has, and ends too.
    pub(super) fn close(&mut self, screen: &mut Screen) {
        self.flush();
        let lost = self.out.buffer().iter().filter(|&&byte| byte == b'\n').count();
        let dropped = self.dropped + u64::try_from(lost).unwrap_or(u64::MAX);
        if dropped > 0 {
            screen.say(format_args!("… --otlp: {} dropped", counted(dropped, "span was", "spans were")));
        }
    }
}

/// Nanoseconds since 1970.
fn otlp_timestamp(when: SystemTime) -> u128 {
    when.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos())
}
