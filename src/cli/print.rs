//! `rexec --print NAME`: a journal in the console's format.
//!
//! Invariant: no control character from a command, a caller or an output reaches the terminal, except tab and newline; and
//! no row of output looks like a banner, an end line or a remark.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};

use rexec_sh::protocol::notice::Notice;

use super::cannot_write;
use super::verb::{Group, Values, Verb};
use crate::journal::reader::{JournalReader, Record};
use crate::journal::record::{EndRecord, RecordedOutput, StartRecord};
use crate::text::banner::{Banner, end_line, left_line};
use crate::text::count::{self, counted};
use crate::text::escape::{escape_line, escape_text};
use crate::text::reason::reason;
use crate::text::rows::{RowStyle, Rows};

pub(super) const VERB: Verb = Verb {
    name: "--print",
    short: Some('p'),
    group: Group::Flag,
    arguments: "NAME",
    values: Values::Journals,
    summary: "print a journal as the console showed it",
    text: "\
NAME is a journal's name as rexec --list shows it, or a path with a slash in
it. Control characters are printed as escapes.
",
    options: &[],
    codes: &[(1, "there is no such journal, or it cannot be read")],
    examples: &["rexec --print 2026-05-21-09:42:18"],
    run: |parser| {
        let Some(name) = VERB.one_word(parser)? else { return Err(VERB.missing("the name of a journal")) };
        super::with_output(|out| Ok(print(&super::home()?, &name, out)?))
    },
};

/// Columns of a file's name or of an error that are shown. The rest is cut.
const NAME_COLUMNS: usize = 1024;
/// Columns of a command that are shown: ten times as many as on the console. The rest is cut.
const COMMAND_COLUMNS: usize = 4096;

/// Why a journal cannot be printed.
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

/// Prints a journal. `name` is its name with or without `.jsonl`, or a path with a slash in it.
///
/// # Errors
/// There is no such journal, it cannot be read, or the text cannot be written.
pub fn print(home: &Path, name: &str, out: &mut impl Write) -> Result<(), PrintError> {
    let path = find(home, name)?;
    let file = File::open(&path).map_err(|source| PrintError::Read { path: path.clone(), source })?;
    let mut reader = JournalReader::new(file);
    let home = path.parent().unwrap_or(home);
    match render(home, &mut reader, out) {
        Err(RenderError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(RenderError::Write(error)) => Err(PrintError::Write(error)),
        Err(RenderError::Read(source)) => Err(PrintError::Read { path, source }),
        // A host that was killed in its first moment leaves an empty file, which is a journal all the same.
        Ok(0) if reader.unparsable() > 0 => Err(PrintError::NotAJournal { path }),
        Ok(_) => Ok(()),
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
        // Opening a FIFO could wait for ever.
        Ok(metadata) if metadata.is_file() => Ok(path),
        Ok(_) => Err(PrintError::NotAJournal { path }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(PrintError::NotFound { path })
        }
        Err(source) => Err(PrintError::Read { path, source }),
    }
}

/// Which side of the printing failed.
enum RenderError {
    Read(io::Error),
    Write(io::Error),
}

impl From<io::Error> for RenderError {
    fn from(error: io::Error) -> RenderError {
        RenderError::Write(error)
    }
}

/// Prints every record of a journal in this directory; returns how many there were.
fn render(home: &Path, reader: &mut JournalReader, out: &mut impl Write) -> Result<u64, RenderError> {
    let mut records = 0;
    // Runs that have begun and not ended. Everything else is printed as it comes.
    let mut begun: BTreeMap<u64, Box<StartRecord>> = BTreeMap::new();
    let mut next = None;
    // How often a person answered each of them.
    let mut typed: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in reader.by_ref() {
        let entry = entry.map_err(RenderError::Read)?;
        records += 1;
        match entry {
            Record::Start(start) => {
                begun.insert(start.seq, start);
            }
            Record::End(end) => {
                begun.remove(&end.start.seq);
                let answers = typed.remove(&end.start.seq).unwrap_or(0);
                render_run(home, &end, answers, out)?;
            }
            Record::Lost(lost) => {
                begun.remove(&lost.start.seq);
                render_lost(&lost.start, out)?;
            }
            Record::Dropped(dropped) => {
                let count = counted(dropped.count, "record was", "records were");
                writeln!(out, "… {count} dropped while the journal could not be written\n")?;
            }
            Record::Input(input) => {
                *typed.entry(input.seq).or_default() += 1;
            }
            Record::Close(close) => next = close.next,
            Record::Open(_) => {}
        }
    }
    for start in begun.values() {
        render_open(start, next.as_deref(), out)?;
    }
    if let Some(next) = next {
        writeln!(out, "… the journal goes on in {}", escape_line(&next, NAME_COLUMNS))?;
    }
    for (count, what) in
        [(reader.unparsable(), "could not be read"), (reader.unknown(), "need a newer version of rexec")]
    {
        // A file without a single record is something else altogether, and that is said instead.
        if count > 0 && records > 0 {
            writeln!(out, "… lines of the journal that {what}: {count}")?;
        }
    }
    out.flush()?;
    Ok(records)
}

/// The banner's line of a run.
fn banner(start: &StartRecord) -> String {
    let StartRecord { seq, time, whoami, dir, command, unwrapped, .. } = start;
    Banner { time, seq: *seq, whoami, dir, command, is_unwrapped: *unwrapped }.line(COMMAND_COLUMNS)
}

/// Prints a run that has no end. `next` is the name of the journal in which it goes on.
pub(super) fn render_open(start: &StartRecord, next: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", banner(start))?;
    match next {
        Some(next) => writeln!(out, "… it goes on in {}\n", escape_line(next, NAME_COLUMNS)),
        None => writeln!(out, "… no end is recorded yet\n"),
    }
}

/// Prints a run whose end is not known.
pub(super) fn render_lost(start: &StartRecord, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", banner(start))?;
    writeln!(out, "… lost: the host died before this ended, its output and exit are not known\n")
}

/// Prints a run with what its record has of the output. `home` is the journal's directory, `answers` how often a person
/// answered a prompt of it.
pub(super) fn render_run(home: &Path, record: &EndRecord, answers: u64, out: &mut impl Write) -> io::Result<()> {
    let EndRecord { start, end, output } = record;
    writeln!(out, "{}", banner(start))?;
    let cut = output.cut.and_then(|cut| usize::try_from(cut).ok()).unwrap_or(output.text.len());
    // A journal that was edited may cut through a character.
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
    if let Some(line) = end_line(end.exit, end.signal, end.duration_ms, end.error.as_deref()) {
        writeln!(out, "{line}")?;
    }
    let named = end.left.iter().map(|left| (left.comm.as_str(), left.pid));
    if let Some(line) = left_line(end.left_count, named) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)
}

/// Where what is omitted can be read, and what is missing there.
fn write_raw(home: &Path, output: &RecordedOutput, out: &mut impl Write) -> io::Result<()> {
    if let Some(raw) = &output.raw {
        let name = escape_line(raw, NAME_COLUMNS);
        // Nothing outside of the journal's directory is looked for, whatever an edited record says.
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

fn write_lines(text: &str, out: &mut impl Write) -> io::Result<()> {
    let (mut rows, mut shown) = (Rows::new(RowStyle::Wording), Vec::new());
    rows.push(escape_text(text).as_bytes(), &mut shown);
    rows.finish(&mut shown);
    out.write_all(&shown)?;
    if text.is_empty() || text.ends_with('\n') { Ok(()) } else { writeln!(out) }
}
