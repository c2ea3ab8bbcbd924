//! `rexec out N`: the output of a command, whole or in part.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::ops::RangeInclusive;
use std::path::Path;

use memchr::memmem;
use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;
use serde::Serialize;

use super::output::{VerbOutput, drawn};
use super::run_reference::{NO_SUCH_RUN, RunReference, unreadable};
use super::told::tell;
use super::verb::{Call, Group, Opt, Values, Verb, Words, json};
use super::{cannot_write, json_line};
use crate::history::{FoundRun, OutputPiece, OutputSource, RunOutcome, WholeOutput};
use crate::limits;
use crate::text::count;
use crate::text::escape::{escape_line, escape_text};
use crate::text::safe::SafeFilter;

pub(super) const VERB: Verb = Verb {
    term: "out",
    group: Group::Past,
    summary: "print what a command wrote, whole or in part",
    text: "\
N is a command's number, SESSION:N one of another session, -1 the newest. The
text is what a person would have read: without escape sequences, a progress bar
in its last state. What the journal did not keep is counted where it was. Line
numbers begin with 1 and do not count such a gap. --grep is applied to what
--lines leaves, and --head and --tail to what --grep leaves.

Of a command that still runs, this is what it has written so far. The end of a
line that is not complete may be missing.
",
    codes: &[(1, "--grep found nothing"), NO_SUCH_RUN],
    examples: &["rexec out 44 --lines 2000:2400", "rexec out -1 --grep error --tail 20"],
    call: &Call::<OutCall> {
        options: &[
            Opt::value(
                "--lines A:B",
                |q, v| {
                    q.part.lines = v.parsed("two numbers from 1 on, as in --lines 20:40", range).unwrap_or(ALL_LINES)
                },
                "lines A to B; also A:, :B and A",
            ),
            Opt::value(
                "--grep TEXT",
                |q, v| q.part.grep = Some(v.text().into_bytes()),
                "lines with this text, each behind its number and a colon",
            ),
            Opt::value("--head K", |q, v| q.part.head = v.lines(), "the first K of them"),
            Opt::value("--tail K", |q, v| q.part.tail = v.lines(), "the last K of them"),
            Opt::flag(
                "--raw",
                |q| q.part.is_raw = true,
                "the bytes as the command wrote them, if the journal has them",
            ),
            json(|q| q.part.is_json = true),
        ],
        words: Words::run("N", Values::Runs, |q, w| q.reference = w.reference()),
        run: |OutCall { reference, part }| {
            if part.is_raw && (part.is_json || part.grep.is_some() || part.is_cut()) {
                return Err(VERB.missing("--raw or an option that selects lines, not both"));
            }
            let reference = reference.ok_or_else(|| VERB.missing("the number of a command, as in rexec out 44"))?;
            print(&reference, &part)
        },
    },
};

#[derive(Default)]
struct OutCall {
    reference: Option<RunReference>,
    part: OutputPart,
}

/// Prints this part of a command's output; returns the exit code.
pub(super) fn print(reference: &RunReference, part: &OutputPart) -> Result<u8, Notice> {
    let home = super::home()?;
    let run = find_with_output(reference, &home)?;
    let output = run.open_output().map_err(|error| unreadable(&home, &error))?;
    remark(&run, &output);
    part.print(output).or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(exit_code::SUCCESS),
        _ => Err(cannot_write(&error)),
    })
}

/// Finds a run, with all its output until now.
pub(super) fn find_with_output(reference: &RunReference, home: &Path) -> Result<FoundRun, Notice> {
    let run = reference.find(home, &super::socket_path()?)?;
    if !run.is_running() {
        return Ok(run);
    }
    // Its latest output is on its way to the journal.
    wait_for_recorder();
    reference.find(home, &super::socket_path()?)
}

/// The first line with this text in the output until now of a command of this host.
pub(super) fn line_with(seq: u64, text: &str) -> Result<Option<String>, Notice> {
    wait_for_recorder();
    let home = super::home()?;
    let output = RunReference::numbered(seq).find(&home, &super::socket_path()?)?.open_output();
    let mut found = None;
    let looked = output.and_then(|output| {
        output.for_each_line(|piece| {
            if let OutputPiece::Line(line) = piece {
                found = memchr::memmem::find(line, text.as_bytes()).map(|_| String::from_utf8_lossy(line).into_owned());
            }
            Ok(found.is_none())
        })
    });
    looked.map_err(|error| unreadable(&home, &error))?;
    Ok(found)
}

/// Waits until the recorder has written all output until now.
#[expect(clippy::disallowed_methods, reason = "a person waits for the recorder")]
pub(super) fn wait_for_recorder() {
    std::thread::sleep(limits::RECORDING_DELAY + limits::RECORDING_DELAY / 2);
}

/// Columns of one of the journal's remarks.
const FLAW_COLUMNS: usize = 1024;

const ALL_LINES: RangeInclusive<u64> = 1..=u64::MAX;

/// The wanted part of an output, and its form.
#[derive(Debug)]
pub(super) struct OutputPart {
    lines: RangeInclusive<u64>,
    grep: Option<Vec<u8>>,
    head: Option<usize>,
    tail: Option<usize>,
    is_raw: bool,
    is_json: bool,
}

/// A line in `rexec out --json`.
#[derive(Debug, Serialize)]
pub(super) struct OutLine<'a> {
    /// The line's number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    /// The number of missing bytes here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gap: Option<u64>,
}

/// Prints the last lines of an output, or all of them.
pub(super) fn print_tail(output: WholeOutput, lines: Option<usize>) -> Result<(), Notice> {
    OutputPart::last(lines).print(output).map(drop).or_else(|error| match error.kind() {
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(cannot_write(&error)),
    })
}

impl Default for OutputPart {
    fn default() -> Self {
        Self { lines: ALL_LINES, grep: None, head: None, tail: None, is_raw: false, is_json: false }
    }
}

impl OutputPart {
    pub(super) fn last(lines: Option<usize>) -> Self {
        Self { tail: lines, ..Self::default() }
    }

    fn is_cut(&self) -> bool {
        self.lines != ALL_LINES || self.head.is_some() || self.tail.is_some()
    }

    fn print(&self, output: WholeOutput) -> io::Result<u8> {
        let is_terminal = io::stdout().is_terminal();
        if self.is_raw {
            let mut out = drawn();
            copy(output, is_terminal, &mut out)?;
            out.flush()?;
            return Ok(exit_code::SUCCESS);
        }
        let mut out = VerbOutput::standard();
        let mut shown = Shown { part: self, is_terminal, out: &mut out, number: 0, count: 0, last: VecDeque::new() };
        output.for_each_line(|piece| shown.take(piece))?;
        let code = shown.finish()?;
        out.finish()?;
        Ok(code)
    }
}

/// `A:B`, `A:`, `:B` or `A`; `None` if it is none of these.
fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let bound = |text: &str, open| if text.is_empty() { Some(open) } else { text.parse().ok() };
    let (from, to) = match text.split_once(':') {
        Some((from, to)) => (bound(from, 1)?, bound(to, u64::MAX)?),
        None => text.parse().ok().map(|line| (line, line))?,
    };
    (1 <= from && from <= to && text != ":").then_some(from..=to)
}

/// Prints the facts about the output that the reader should know and that are not in it.
pub(super) fn remark(run: &FoundRun, output: &WholeOutput) {
    let seq = run.start.card.seq;
    match run.outcome {
        RunOutcome::Open if run.is_alive && output.source == OutputSource::Raw => {
            tell(format_args!("#{seq} still runs; this is what it has written so far"));
        }
        RunOutcome::Open if run.is_alive => {
            tell(format_args!("#{seq} still runs, and the journal has nothing of it so far"));
        }
        RunOutcome::Open | RunOutcome::Lost => tell(format_args!("the host died before #{seq} ended")),
        RunOutcome::Ended => {}
    }
    if let Some(flaw) = &output.flaw {
        tell(format_args!("not all of the output was kept: {}", escape_line(flaw, FLAW_COLUMNS)));
    }
}

/// Copies the bytes. A terminal gets them as the console shows them: filtered, so that nothing changes the terminal.
fn copy(mut output: WholeOutput, is_terminal: bool, out: &mut impl Write) -> io::Result<()> {
    if output.source == OutputSource::Record {
        tell("the journal has the text of this output, not its bytes");
    }
    if let Some(gap) = output.omitted {
        tell(format_args!("{} are missing behind byte {}", count::bytes(gap.bytes), gap.at));
    }
    let (mut filter, mut safe, mut bytes) = (SafeFilter::new(), Vec::new(), vec![0; 64 << 10]);
    loop {
        let read = output.read(&mut bytes)?;
        match (is_terminal, read) {
            (false, 0) => return Ok(()),
            (false, _) => out.write_all(&bytes[..read])?,
            (true, 0) => filter.end_block(&mut safe),
            (true, _) => filter.push(&bytes[..read], &mut safe),
        }
        out.write_all(&safe)?;
        safe.clear();
        if read == 0 {
            return Ok(());
        }
    }
}

/// The wanted lines so far.
struct Shown<'p, W> {
    part: &'p OutputPart,
    is_terminal: bool,
    out: W,
    /// The number of the last read line.
    number: u64,
    /// The number of wanted lines so far.
    count: usize,
    /// With `--tail`, the last lines.
    last: VecDeque<(u64, Vec<u8>)>,
}

impl<W: Write> Shown<'_, W> {
    /// Returns true if more lines may be wanted.
    fn take(&mut self, piece: OutputPiece<'_>) -> io::Result<bool> {
        let line = match piece {
            OutputPiece::Line(line) => line,
            OutputPiece::Gap(bytes) => return self.gap(bytes).map(|()| true),
        };
        self.number += 1;
        if self.number > *self.part.lines.end() {
            return Ok(false);
        }
        let has_text = |text: &Vec<u8>| memmem::find(line, text).is_some();
        if self.number < *self.part.lines.start() || !self.part.grep.as_ref().is_none_or(has_text) {
            return Ok(true);
        }
        if self.part.head.is_some_and(|head| self.count >= head) {
            return Ok(false);
        }
        self.count += 1;
        match self.part.tail {
            Some(tail) => {
                self.last.push_back((self.number, line.to_vec()));
                if self.last.len() > tail {
                    self.last.pop_front();
                }
            }
            None => self.put(self.number, line)?,
        }
        Ok(true)
    }

    fn gap(&mut self, bytes: u64) -> io::Result<()> {
        let is_inside = self.part.lines.contains(&self.number) || !self.part.is_cut();
        if self.part.is_json {
            let line = OutLine { line: None, text: None, gap: Some(bytes) };
            return self.out.write_all(json_line(&line).as_bytes());
        }
        if is_inside && self.part.grep.is_none() && self.part.tail.is_none() && self.part.head.is_none() {
            return writeln!(self.out, "… {} omitted", count::bytes(bytes));
        }
        tell(format_args!("{} behind line {} were not kept", count::bytes(bytes), self.number));
        Ok(())
    }

    fn put(&mut self, number: u64, line: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(line);
        if self.part.is_json {
            let line = OutLine { line: Some(number), text: Some(&text), gap: None };
            return self.out.write_all(json_line(&line).as_bytes());
        }
        if self.part.grep.is_some() {
            write!(self.out, "{number}:")?;
        }
        // A program that reads this gets the text unchanged.
        if self.is_terminal { writeln!(self.out, "{}", escape_text(&text)) } else { writeln!(self.out, "{text}") }
    }

    fn finish(mut self) -> io::Result<u8> {
        for (number, line) in std::mem::take(&mut self.last) {
            self.put(number, &line)?;
        }
        let has_none = self.part.grep.is_some() && self.count == 0;
        Ok(if has_none { exit_code::FAILURE } else { exit_code::SUCCESS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines() {
        assert_eq!(range("2:4"), Some(2..=4));
        assert_eq!(range("2:"), Some(2..=u64::MAX));
        assert_eq!(range(":4"), Some(1..=4));
        assert_eq!(range("7"), Some(7..=7));
        for text in ["", ":", "0:4", "4:2", "a:b", "-1:2", "1:2:3", "0"] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
