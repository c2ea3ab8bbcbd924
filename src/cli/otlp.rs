//! `rexec otlp`: the commands of the journal as spans of OpenTelemetry.
//!
//! Invariants: a span has only facts of the journal, and so no secret that the journal lacks; no host knows of this
//! program, so no command ever waits for a collector.

mod collector;
mod sender;

use std::io;
use std::path::Path;
use std::thread;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::run_reference::unreadable;
use super::told::tell;
use super::verb::{Call, Given, Group, Opt, Verb, Words};
use super::written;
use crate::front::span::{Span, TraceContext};
use crate::history::{JournalEnds, milliseconds};
use crate::journal::record::EndRecord;
use crate::limits;
use sender::{OtlpTarget, Sender};

pub(super) const VERB: Verb = Verb {
    term: "otlp",
    group: Group::Past,
    summary: "export commands as spans of OpenTelemetry",
    text: "\
It exports each command of the newest session that has ended, as OTLP in JSON.
With --follow it exports instead those that end from now on, of any host, until
^C. It reads the journal, where secrets are masked; no command waits for it.

TARGET is a file, or a collector on this machine. A collector that cannot be
reached gets the last 2,048 spans later, with --follow. A command is in its
caller's trace if its host was started with --trace.
",
    codes: &[(1, "spans could not be exported")],
    examples: &["rexec otlp --to spans.jsonl", "rexec otlp --follow --to http://127.0.0.1:4318"],
    call: &Call::<OtlpCall> {
        options: &[
            Opt::flag("-f, --follow", |q| q.follows = true, "export commands as they end"),
            Opt::value(
                "--to TARGET",
                |q, v| q.target = target(v).unwrap_or_default(),
                "a file, or http://127.0.0.1:4318 (default: standard output)",
            ),
        ],
        words: Words::NONE,
        run: |OtlpCall { follows, target }| {
            let home = super::home()?;
            let mut sender = Sender::new(target.open()?);
            if follows {
                return follow(&home, &mut sender);
            }
            let mut sent = Ok(());
            let mut ends = JournalEnds::of_newest(&home).map_err(|error| unreadable(&home, &error))?;
            ends.read(|session, record| {
                if sent.is_ok() && !sender.has_failed() {
                    sent = sender.push(span(session, record).element());
                }
            })
            .map_err(|error| unreadable(&home, &error))?;
            written(sent.and_then(|()| sender.send()))?;
            Ok(if sender.has_failed() { exit_code::FAILURE } else { exit_code::SUCCESS })
        },
    },
};

#[derive(Default)]
struct OtlpCall {
    follows: bool,
    target: OtlpTarget,
}

fn target(given: &mut Given<'_>) -> Option<OtlpTarget> {
    let target = OtlpTarget::named(&given.text());
    given.check(target.map_err(|problem| {
        let hint = "a file, or a collector on this machine as in http://127.0.0.1:4318";
        Notice::usage(format_args!("--to: {problem}"), hint)
    }))
}

#[expect(clippy::disallowed_methods, reason = "a person lets it wait for the ends of commands")]
fn follow(home: &Path, sender: &mut Sender) -> Result<u8, Notice> {
    let mut ends = JournalEnds::from_now(home).map_err(|error| unreadable(home, &error))?;
    tell("commands that end from now on are exported, until ^C");
    loop {
        let mut sent = Ok(());
        ends.read(|session, record| {
            if sent.is_ok() {
                sent = sender.push(span(session, record).element());
            }
        })
        .map_err(|error| unreadable(home, &error))?;
        match sent.and_then(|()| sender.send()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(exit_code::SUCCESS),
            sent => written(sent)?,
        }
        thread::sleep(limits::SPANS_LOOK);
    }
}

/// The span of an ended command.
fn span(session: &str, record: EndRecord) -> Span {
    let EndRecord { start, end, output } = record;
    let nanoseconds = |ms: u64| u128::from(ms) * 1_000_000;
    let began = milliseconds(&start.card.time).and_then(|at| u64::try_from(at).ok()).unwrap_or(0);
    let context = TraceContext::recorded(&start.trace, &start.trace_parent);
    let project = Path::new(&start.card.dir).ancestors().find(|dir| dir.join(".git").exists());
    Span {
        context: context.unwrap_or_else(|| TraceContext::of_run(session, start.card.seq)),
        seq: start.card.seq,
        host_session: session.to_owned(),
        began_ns: nanoseconds(began),
        ended_ns: nanoseconds(began.saturating_add(end.queued_ms).saturating_add(end.duration_ms)),
        project: project.map(|dir| dir.display().to_string()),
        command: shortened(start.card.command),
        dir: shortened(start.card.dir),
        whoami: start.card.whoami,
        exit: end.exit,
        signal: end.signal,
        error: end.error,
        bytes: end.bytes,
        unkept: [output.raw_error, output.recording_error].into_iter().flatten().collect(),
    }
}

fn shortened(mut text: String) -> String {
    let most = text.len().min(limits::SPAN_TEXT_BYTES);
    text.truncate((0..=most).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0));
    text
}
