//! `rexec export N`: a run as a file for other people and programs.
//!
//! Invariants: nothing is overwritten unless the human says so; secrets are masked as in the journal, and once more in
//! text whose escape sequences were removed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::run_reference::{NO_SUCH_RUN, RunReference, unreadable};
use super::verb::{Call, Group, Opt, Values, Verb, Words};
use super::{out, quoted, say_bytes, shown_json};
use crate::history::{FoundRun, OutputSource, RunOutcome, RunRecording};
use crate::journal::recording::{CastHeader, EventKind, RecordedEvent, cast};
use crate::limits;
use crate::text::banner::duration;
use crate::text::count;
use crate::text::escape::escape_line;
use crate::text::markdown::{fenced, markdown};
use crate::text::playable::PlayableFilter;
use crate::text::reason::reason;
use crate::text::redact::Redactor;
use crate::text::sanitize::{Mode, Sanitizer};

pub(super) const VERB: Verb = Verb {
    term: "export",
    group: Group::Past,
    summary: "write a command and its output as a file for others",
    text: "\
N is a number, SESSION:N or -1. Without -o the file goes to standard output.
With -o FILE the form may be left out if FILE ends in .cast, .txt or .md. A
file that exists is kept unless you say --force.

A cast needs a recording, which hosts make unless they were started with
--no-record. It has what draws, and nothing that asks or changes the terminal
on which it is played. The other forms use what the journal has.
",
    codes: &[(1, "there is no recording for a cast, or the file exists"), NO_SUCH_RUN],
    examples: &["rexec export 44 --cast -o build.cast && asciinema play build.cast", "rexec export -1 --md | wl-copy"],
    call: &Call::<ExportCall> {
        options: &[
            Opt::flag("--cast", |q| q.forms.push(ExportForm::Cast), "an asciicast v2 file, which asciinema plays"),
            Opt::flag("--text", |q| q.forms.push(ExportForm::Text), "the output as text, redraws resolved"),
            Opt::flag("--md", |q| q.forms.push(ExportForm::Markdown), "Markdown for an issue or a pull request"),
            Opt::value("-o, --output FILE", |q, v| q.path = Some(v.raw().into()), "write to this file"),
            Opt::flag("--force", |q| q.is_forced = true, "replace the file if it exists"),
        ],
        words: Words::run("N", Values::Nothing, |q, w| q.reference = w.reference()),
        run,
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportForm {
    Cast,
    Text,
    Markdown,
}

impl ExportForm {
    fn of_file(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "cast" => Some(Self::Cast),
            "txt" | "text" => Some(Self::Text),
            "md" => Some(Self::Markdown),
            _ => None,
        }
    }
}

#[derive(Default)]
struct ExportCall {
    reference: Option<RunReference>,
    forms: Vec<ExportForm>,
    path: Option<PathBuf>,
    is_forced: bool,
}

fn run(ExportCall { reference, forms, path, is_forced }: ExportCall) -> Result<u8, Notice> {
    if forms.len() > 1 {
        return Err(VERB.missing("one of --cast, --text and --md"));
    }
    let reference = reference.ok_or_else(|| VERB.missing("a command number; rexec log shows the numbers"))?;
    let form = forms.first().copied().or_else(|| path.as_deref().and_then(ExportForm::of_file));
    let form = form.ok_or_else(|| VERB.missing("a form: --cast, --text or --md"))?;
    let home = super::home()?;
    let run = out::find_with_output(&reference, &home)?;
    let bytes = export(&run, form, &home)?;
    if run.is_running() {
        let output = run.open_output().map_err(|error| unreadable(&home, &error))?;
        out::remark(&run, &output);
    }
    match path {
        None => say_bytes(&bytes),
        Some(path) => write_file(&path, &bytes, is_forced),
    }
}

fn export(run: &FoundRun, form: ExportForm, home: &Path) -> Result<Vec<u8>, Notice> {
    let cannot_read = |error: io::Error| unreadable(home, &error);
    let recording = run.recording().map_err(cannot_read)?;
    Ok(match form {
        ExportForm::Cast => as_cast(run, &recording.ok_or_else(|| no_recording(run))?),
        ExportForm::Text => text(run, recording.as_ref()).map_err(cannot_read)?.into_bytes(),
        ExportForm::Markdown => as_markdown(run, &text(run, recording.as_ref()).map_err(cannot_read)?).into_bytes(),
    })
}

/// The notice on a run that has no recording.
pub(super) fn no_recording(run: &FoundRun) -> Notice {
    let seq = run.start.card.seq;
    let hint = match &run.end {
        None if run.is_alive => "it still runs; its recording is there when it has ended".to_owned(),
        None => "its host died before it ended, and nothing of it is recorded".to_owned(),
        Some(end) if end.bytes == 0 => "it wrote nothing".to_owned(),
        _ => match (&run.recorded.recording_error, &run.recorded.recording) {
            (Some(why), _) => format!("it could not be written: {}", escape_line(why, 200)),
            (None, Some(_)) => {
                "recordings are kept for 30 days, and the oldest go first when there are many".to_owned()
            }
            (None, None) => "its host was started with --no-record, or is older than recordings".to_owned(),
        },
    };
    Notice::failed(format_args!("command {seq} has no recording"), hint)
}

fn as_cast(run: &FoundRun, recording: &RunRecording) -> Vec<u8> {
    let (height, width) = recording.window;
    let header = CastHeader {
        version: 2,
        width,
        height,
        timestamp: crate::history::milliseconds(&run.start.card.time).map(|at| at.div_euclid(1000)),
        duration: run.end.as_ref().map(|end| std::time::Duration::from_millis(end.duration_ms).as_secs_f64()),
        command: run.start.card.command.clone(),
        title: format!("#{} {}", run.start.card.seq, run.start.card.whoami),
    };
    let mut filter = PlayableFilter::default();
    let events = recording.events.iter().map(|event| match event.kind {
        EventKind::Output => {
            let mut drawn = Vec::with_capacity(event.text.len());
            filter.push(event.text.as_bytes(), &mut drawn);
            RecordedEvent { text: String::from_utf8_lossy(&drawn).into_owned(), ..event.clone() }
        }
        EventKind::Size | EventKind::Input | EventKind::Remark => event.clone(),
    });
    let lines = cast(&header, events.filter(|event| !event.text.is_empty()));
    shown_json(&lines).into_bytes()
}

/// The output as clean text, and the facts about missing parts.
fn text(run: &FoundRun, recording: Option<&RunRecording>) -> io::Result<String> {
    let mut output = run.open_output()?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    let mut parts = vec![bytes];
    if let Some(omitted) = output.omitted {
        let at = usize::try_from(omitted.at).unwrap_or(usize::MAX).min(parts[0].len());
        let rest = parts[0].split_off(at);
        parts.push(rest);
    }
    let mut clean = Vec::new();
    let (rows, cols) = recording.map_or((limits::PTY_ROWS, limits::PTY_COLS), |recording| recording.window);
    for (number, part) in parts.iter().enumerate() {
        if let Some(omitted) = output.omitted.filter(|_| number == 1) {
            let lead = if clean.is_empty() || clean.ends_with(b"\n") { "" } else { "\n" };
            clean.extend_from_slice(format!("{lead}… {} are not kept\n", count::bytes(omitted.bytes)).as_bytes());
        }
        match output.source {
            OutputSource::Record => clean.extend_from_slice(part),
            OutputSource::Raw => {
                let (mut sanitizer, mut fresh) = (Sanitizer::new(Mode::Collapse { rows, cols }), Vec::new());
                sanitizer.push(part, &mut fresh);
                sanitizer.finish(&mut fresh);
                // Without the escape sequence in its middle, a secret can be recognized.
                Redactor::default().redact(&fresh, &mut clean);
            }
        }
    }
    Ok(String::from_utf8_lossy(&clean).into_owned())
}

/// The command, its end, and its output.
fn as_markdown(run: &FoundRun, text: &str) -> String {
    let command = fenced("sh", &run.start.card.command);
    let facts = markdown(&facts(run));
    match text {
        "" => format!("{command}\n{facts} · no output{}\n", if run.is_running() { " so far" } else { "" }),
        _ => format!("{command}\n{facts}\n\n{}", fenced("text", text)),
    }
}

/// The line with the caller, the time, the directory and the end.
fn facts(run: &FoundRun) -> String {
    let line = |text: &str| escape_line(text, 200);
    let how = match (&run.end, run.outcome) {
        (Some(end), _) => match (&end.error, end.signal) {
            (Some(error), _) => format!("{}, exit {} · {}", line(error), end.exit, duration(end.duration_ms)),
            (None, Some(signal)) => format!("signal {signal} · {}", duration(end.duration_ms)),
            (None, None) => format!("exit {} · {}", end.exit, duration(end.duration_ms)),
        },
        (None, RunOutcome::Open) if run.is_alive => "still runs".to_owned(),
        (None, _) => "how it ended is not known".to_owned(),
    };
    let start = &run.start;
    format!("{how} · {} in {} · {}", line(&start.card.whoami), line(&start.card.dir), line(&start.card.time))
}

/// Writes a new file, or replaces one if that is what the human wants.
fn write_file(path: &Path, bytes: &[u8], is_forced: bool) -> Result<u8, Notice> {
    let opened =
        if is_forced { File::create(path) } else { OpenOptions::new().write(true).create_new(true).open(path) };
    let written = opened.and_then(|mut file| file.write_all(bytes));
    match written {
        Ok(()) => Ok(exit_code::SUCCESS),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let name = quoted(path);
            Err(Notice::failed(format_args!("{name} exists"), "--force replaces it; -o names another file"))
        }
        Err(error) => {
            let problem = format_args!("cannot write {}: {}", path.display(), reason(&error));
            Err(Notice::failed(problem, "-o names another file"))
        }
    }
}
