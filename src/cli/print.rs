//! `rexec --print NAME`: a journal in the console's format.
//!
//! Invariant: no control character from a command, a caller or an output reaches the terminal, except tab and newline; and
//! no row of output looks like a banner, an end line or a remark.

mod whole_lines;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use rexec_sh::protocol::notice::Notice;

use super::cannot_write;
use super::verb::{Call, Group, Opt, Values, Verb, Words};
use crate::core::end::Failure;
use crate::core::engine::JobId;
use crate::journal::entry_words;
use crate::journal::reader::{JournalReader, Record};
use crate::journal::record::{EndRecord, PublishedCard, RecordedOutput, StartRecord};
use crate::recorder::{first_line, is_alive};
use crate::text::banner::{Banner, end_line, left_line};
use crate::text::count::{self, counted};
use crate::text::escape::{escape_line, escape_text};
use crate::text::name::name_of;
use crate::text::reason::reason;
use crate::text::rows::{RowStyle, Rows};
use whole_lines::WholeLines;

pub(super) const VERB: Verb = Verb {
    term: "-p, --print",
    group: Group::Flag,
    summary: "print a journal as the console showed it",
    text: "\
NAME is a journal's name as rexec --list shows it, or a path with a slash in
it. Control characters are printed as escapes.

With -f it goes on: each command is printed when it has ended, also when the
journal goes on in a new file, until the host ends. ^C leaves.
",
    codes: &[(1, "there is no such journal, or it cannot be read")],
    examples: &["rexec --print 2026-05-21-09:42:18", "rexec -p -f 2026-05-21-09:42:18"],
    call: &Call::<PrintCall> {
        options: &[Opt::flag("-f, --follow", |q| q.follows = true, "go on with what ends later, until the host ends")],
        words: Words::one("NAME", Values::Journals, |q, w| q.name = Some(w.text())),
        run: |PrintCall { name, follows }| {
            let name = name.ok_or_else(|| VERB.missing("the name of a journal"))?;
            super::with_output(|out| Ok(print(&super::home()?, &name, follows, out)?))
        },
    },
};

#[derive(Default)]
struct PrintCall {
    name: Option<String>,
    follows: bool,
}

/// Columns of a file's name or of an error that are shown. The rest is cut.
const NAME_COLUMNS: usize = 1024;
/// Columns of a command that are shown: ten times as many as on the console. The rest is cut.
const COMMAND_COLUMNS: usize = 4096;

/// The reason why a journal cannot be printed.
#[derive(Debug)]
pub enum PrintError {
    /// The name cannot be that of a journal.
    Usage { name: String },
    /// There is no such file.
    NotFound { path: PathBuf },
    /// It is not a file, or no line of it is a record.
    NotAJournal { path: PathBuf },
    /// The file cannot be read.
    Read { path: PathBuf, source: io::Error },
    /// The text cannot be written.
    Write(io::Error),
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrintError::Usage { name } => write!(f, "--print: {} is not the name of a journal", super::quoted(name)),
            PrintError::NotFound { path } => write!(f, "there is no journal {}", path.display()),
            PrintError::NotAJournal { path } => write!(f, "{} is not a journal", path.display()),
            PrintError::Read { path, source } => write!(f, "cannot read {}: {}", path.display(), reason(source)),
            PrintError::Write(source) => write!(f, "cannot write the journal: {}", reason(source)),
        }
    }
}

impl Error for PrintError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            PrintError::Read { source, .. } | PrintError::Write(source) => Some(source),
            _ => None,
        }
    }
}

impl From<PrintError> for Notice {
    fn from(error: PrintError) -> Self {
        let hint = "rexec --list shows the names of the newest journals";
        match error {
            PrintError::Usage { .. } => Self::usage(&error, hint),
            PrintError::NotFound { .. } | PrintError::NotAJournal { .. } | PrintError::Read { .. } => {
                Self::failed(&error, hint)
            }
            PrintError::Write(source) => cannot_write(&source),
        }
    }
}

/// Prints a journal. `name` is its name with or without `.jsonl`, or a path with a slash in it. With `follows` it goes on
/// as long as the journal's host runs.
///
/// # Errors
/// There is no such journal, it cannot be read, or the text cannot be written.
pub fn print(home: &Path, name: &str, follows: bool, out: &mut impl Write) -> Result<(), PrintError> {
    let mut path = find(home, name)?;
    let home = path.parent().unwrap_or(home).to_owned();
    let mut printed = Printed::default();
    loop {
        let failed = |source| PrintError::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(failed)?;
        let open = first_line(&file).filter(|_| follows);
        let mut reader = JournalReader::over(WholeLines::new(file));
        let ended = printed.file(&home, &mut reader, || open.as_ref().is_some_and(is_alive), out);
        match ended {
            Err(RenderError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Err(RenderError::Write(error)) => return Err(PrintError::Write(error)),
            Err(RenderError::Read(source)) => return Err(PrintError::Read { path, source }),
            // A host killed in its first moment leaves an empty file. That is a journal all the same.
            Ok(()) if printed.records == 0 && printed.unparsable > 0 => return Err(PrintError::NotAJournal { path }),
            Ok(()) => {}
        }
        let next = printed.next.clone().filter(|_| follows).and_then(|next| find(&home, &next).ok());
        match next {
            Some(next) => path = next,
            None => break,
        }
    }
    match printed.finish(out) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(PrintError::Write(error)),
        _ => Ok(()),
    }
}

fn find(home: &Path, name: &str) -> Result<PathBuf, PrintError> {
    if name.is_empty() || matches!(name, "." | "..") || name.contains('\0') {
        return Err(PrintError::Usage { name: name.to_owned() });
    }
    let path = if name.contains('/') {
        PathBuf::from(name)
    } else {
        home.join(format!("{}.jsonl", name.strip_suffix(".jsonl").unwrap_or(name)))
    };
    match fs::metadata(&path) {
        // Opening a FIFO could wait forever.
        Ok(metadata) if metadata.is_file() => Ok(path),
        Ok(_) => Err(PrintError::NotAJournal { path }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(PrintError::NotFound { path })
        }
        Err(source) => Err(PrintError::Read { path, source }),
    }
}

/// The side of the printing that failed.
enum RenderError {
    Read(io::Error),
    Write(io::Error),
}

impl From<io::Error> for RenderError {
    fn from(error: io::Error) -> RenderError {
        RenderError::Write(error)
    }
}

/// The state of printing a journal.
#[derive(Debug, Default)]
struct Printed {
    records: u64,
    /// Lines that could not be read, and those of a later version.
    unparsable: u64,
    unknown: u64,
    /// Runs that have begun and not ended. Everything else is printed at once.
    begun: BTreeMap<u64, Box<StartRecord>>,
    /// The number of a person's answers to each of them.
    typed: BTreeMap<u64, u64>,
    /// The name of the journal that continues this one.
    next: Option<String>,
}

/// The time between two looks at a followed file.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl Printed {
    /// Prints every record of a file, and new ones as long as it `may_grow`.
    #[expect(clippy::disallowed_methods, reason = "a person waits for what the host writes")]
    fn file(
        &mut self,
        home: &Path,
        reader: &mut JournalReader<WholeLines>,
        may_grow: impl Fn() -> bool,
        out: &mut impl Write,
    ) -> Result<(), RenderError> {
        self.next = None;
        let mut is_closed = false;
        loop {
            // Asked first, because the host may write and end before the next look.
            let goes_on = may_grow() && !is_closed;
            if !goes_on {
                reader.source().end();
            }
            for entry in reader.by_ref() {
                let entry = entry.map_err(RenderError::Read)?;
                is_closed |= matches!(entry, Record::Close(_));
                self.record(home, entry, out)?;
            }
            if !goes_on {
                break;
            }
            if !is_closed {
                out.flush()?;
                std::thread::sleep(LOOK_EVERY);
            }
        }
        self.unparsable += reader.unparsable();
        self.unknown += reader.unknown();
        Ok(())
    }

    fn record(&mut self, home: &Path, entry: Record, out: &mut impl Write) -> io::Result<()> {
        self.records += 1;
        match entry {
            Record::Start(start) => {
                self.begun.insert(start.card.seq, start);
            }
            Record::End(end) => {
                self.begun.remove(&end.start.card.seq);
                let answers = self.typed.remove(&end.start.card.seq).unwrap_or(0);
                render_run(home, &end, answers, out)?;
            }
            Record::Lost(lost) => {
                self.begun.remove(&lost.start.card.seq);
                render_lost(&lost.start, out)?;
            }
            Record::Dropped(dropped) => {
                let count = counted(dropped.count, "record was", "records were");
                writeln!(out, "… {count} dropped while the journal could not be written\n")?;
            }
            Record::Unseen(unseen) => {
                let commands = counted(unseen.count, "command", "commands");
                let (whoami, reason) =
                    (name_of(&unseen.whoami, NAME_COLUMNS), escape_line(&unseen.reason, NAME_COLUMNS));
                let since = escape_line(&unseen.since, NAME_COLUMNS);
                writeln!(out, "… {commands} of {whoami} ran unseen since {since}: {reason}\n")?;
            }
            Record::Destroyed(destroyed) => {
                writeln!(out, "{}\n", entry_words::destroyed_line(JobId(destroyed.seq), (&destroyed).into()))?;
            }
            Record::Input(input) => {
                *self.typed.entry(input.seq).or_default() += 1;
            }
            Record::Close(close) => self.next = close.next,
            Record::Open(_) | Record::Environment(_) => {}
        }
        Ok(())
    }

    /// Prints the final remarks, at the end of the last file.
    fn finish(&self, out: &mut impl Write) -> io::Result<()> {
        for start in self.begun.values() {
            render_open(start, self.next.as_deref(), out)?;
        }
        if let Some(next) = &self.next {
            writeln!(out, "… the journal goes on in {}", escape_line(next, NAME_COLUMNS))?;
        }
        for (count, what) in [(self.unparsable, "could not be read"), (self.unknown, "need a newer version of rexec")] {
            // A file without a single record is no journal; the caller reports that instead.
            if count > 0 && self.records > 0 {
                writeln!(out, "… lines of the journal that {what}: {count}")?;
            }
        }
        out.flush()
    }
}

fn banner(start: &StartRecord) -> String {
    let PublishedCard { seq, time, whoami, dir, command, unwrapped, .. } = &start.card;
    Banner { time, seq: *seq, whoami, dir, command, is_unwrapped: *unwrapped }.line(COMMAND_COLUMNS)
}

pub(super) fn render_banner(start: &StartRecord, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", banner(start))
}

/// Prints a run that has no end. `next` is the name of the journal that continues it.
pub(super) fn render_open(start: &StartRecord, next: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    render_banner(start, out)?;
    match next {
        Some(next) => writeln!(out, "… it goes on in {}\n", escape_line(next, NAME_COLUMNS)),
        None => writeln!(out, "… no end is recorded\n"),
    }
}

/// Prints a run whose end is unknown.
pub(super) fn render_lost(start: &StartRecord, out: &mut impl Write) -> io::Result<()> {
    render_banner(start, out)?;
    writeln!(out, "… lost: the host died before this ended, its output and exit are not known\n")
}

/// Prints a run with its recorded output. `home` is the journal's directory, `answers` the number of a person's answers
/// to its prompts.
pub(super) fn render_run(home: &Path, record: &EndRecord, answers: u64, out: &mut impl Write) -> io::Result<()> {
    let EndRecord { start, end, output } = record;
    render_banner(start, out)?;
    let cut = output.cut.and_then(|cut| usize::try_from(cut).ok()).unwrap_or(output.text.len());
    // An edited journal may cut through a character.
    let (head, tail) = output.text.split_at_checked(cut).unwrap_or((&output.text, ""));
    write_lines(head, out)?;
    if let Some(omitted) = output.omitted {
        write!(out, "… {} omitted", count::bytes(omitted))?;
        write_raw(home, output, out)?;
        writeln!(out)?;
    }
    write_lines(tail, out)?;
    if answers > 0 {
        writeln!(out, "… a person answered {}", counted(answers, "prompt", "prompts"))?;
    }
    let why = end.error.as_deref().map(|error| Failure::told(error, end.by.as_deref()));
    if let Some(line) = end_line(end.exit, end.signal, end.duration_ms, why.as_deref()) {
        writeln!(out, "{line}")?;
    }
    let named = end.left.iter().map(|left| (left.comm.as_str(), left.pid));
    if let Some(line) = left_line(end.left_count, named) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}

/// Prints where the omitted part can be read, and how much is missing there.
fn write_raw(home: &Path, output: &RecordedOutput, out: &mut impl Write) -> io::Result<()> {
    if let Some(raw) = &output.raw {
        let name = escape_line(raw, NAME_COLUMNS);
        // Only the journal's directory is searched, whatever an edited record says.
        let is_below = Path::new(raw).components().all(|part| matches!(part, Component::Normal(_)));
        if is_below && home.join(raw).is_file() {
            write!(out, ", see {name}")?;
            if let Some(omitted) = output.raw_omitted {
                write!(out, ", which has all but {} in its middle", count::bytes(omitted))?;
            }
        } else {
            write!(out, "; {name} is gone")?;
        }
    }
    if let Some(error) = &output.raw_error {
        write!(out, " ({})", escape_line(error, NAME_COLUMNS))?;
    }
    if let Some(lost) = output.lost.filter(|_| output.raw.is_none()) {
        write!(out, " ({} did not reach the journal)", count::bytes(lost))?;
    }
    Ok(())
}

pub(super) fn write_lines(text: &str, out: &mut impl Write) -> io::Result<()> {
    let (mut rows, mut shown) = (Rows::new(RowStyle::Wording), Vec::new());
    rows.push(escape_text(text).as_bytes(), &mut shown);
    rows.finish(&mut shown);
    out.write_all(&shown)?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}
