//! `rexec tail`: the console on another terminal, or the output of one command.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rexec_sh::protocol::exit_code;
use rexec_sh::protocol::notice::Notice;

use super::look::Look;
use super::out::OutputPart;
use super::output::drawn;
use super::run_reference::{RunReference, unreadable};
use super::told::tell;
use super::verb::{Call, Group, NO_HOST, Opt, Values, Verb, Words};
use super::{ask, cannot_write, chosen, out};
use crate::front::answer::{Answer, Listed, WrittenBefore};
use crate::front::run_state::RunState;
use crate::history::{FoundRun, WholeOutput};
use crate::sys::signal::{HostSignal, HostSignals};
use crate::sys::{poll, uninterrupted};
use crate::text::encode::from_base64;

pub(super) const VERB: Verb = Verb {
    term: "tail",
    group: Group::Live,
    summary: "show the console here, too, or the end of a command's output",
    text: "\
Without N this is the host's console on another terminal, in its width, from
now on. ^C leaves; the commands go on. At most four terminals can watch a host.

With N it prints the end of that command's output. With -f it shows all that
the command has written, or the last K lines of it, and then what it writes
until it ends. Between the two stands the command's banner: no line is missing
there, and none is shown twice.
",
    codes: &[(1, "too many watch"), (3, "no such command"), NO_HOST],
    examples: &["rexec tail", "rexec tail -f 12", "rexec tail -n 100 12"],
    call: &Call::<TailCall> {
        options: &[
            Opt::flag("-f, --follow", |q| q.follows = true, "with N: go on until the command ends"),
            Opt::value(
                "-n, --lines K",
                |q, v| q.lines = v.lines(),
                "with N: the last K lines (default 10; with -f all)",
            ),
        ],
        words: Words::run("[N]", Values::Runs, |q, w| q.run = Some(w.raw())),
        run: |TailCall { run, follows, lines }| {
            let Some(run) = run else {
                let is_console = lines.is_none();
                return if is_console { watch(None) } else { Err(VERB.missing("a command number with --lines")) };
            };
            if !follows {
                return so_far(&run, lines.unwrap_or(10));
            }
            let number = chosen::number(&VERB, &run.to_string_lossy())?;
            let is_it = |listed: &Listed| listed.card.seq == number && listed.state != RunState::Left;
            if chosen::runs(&super::socket_path()?)?.iter().any(is_it) {
                return watch(Some((number, lines)));
            }
            so_far(&run, lines.unwrap_or(usize::MAX))
        },
    },
};

#[derive(Default)]
struct TailCall {
    run: Option<OsString>,
    follows: bool,
    lines: Option<usize>,
}

/// The flag for the console elsewhere.
pub(super) const ATTACH: Verb = Verb {
    term: "--attach",
    group: Group::Flag,
    summary: "the same as rexec tail",
    text: "\
The host's console on another terminal, in its width, from now on. ^C leaves;
the commands go on.
",
    codes: &[(1, "too many watch"), NO_HOST],
    examples: &["rexec --attach"],
    call: &Call::<()> { options: &[], words: Words::NONE, run: |()| watch(None) },
};

/// Prints the end of a command's output from the journal.
fn so_far(run: &OsStr, lines: usize) -> Result<u8, Notice> {
    out::print(&RunReference::of(run)?, &OutputPart::last(Some(lines)))
}

/// Shows the console, or one command of it and this many lines of its earlier output, until it ends or the person
/// leaves.
fn watch(only: Option<(u64, Option<usize>)>) -> Result<u8, Notice> {
    let look = Look::of_output();
    let seq = only.as_ref().map(|(seq, _)| format!(r#""seq":{seq},"#)).unwrap_or_default();
    let question = format!(r#"{{"action":"watch",{seq}{}}}"#, look.in_json());
    let (answer, stream) = ask::ask(&super::socket_path()?, &question)?.answer_and_more(Some(ask::PATIENCE))?;
    stream.get_ref().set_read_timeout(None).map_err(ask::AskError::Lost)?;
    if let (Some((seq, lines)), Answer::Watch { ran_ms, before, .. }) = (only, answer) {
        // New output waits meanwhile in the socket.
        let output = match (before, ran_ms) {
            (Some(before), _) => Some(output_before(seq, before)?),
            (None, Some(ran)) => journal_before(seq, Duration::from_millis(ran))?,
            (None, None) => None,
        };
        output.map_or(Ok(()), |output| out::print_tail(output, lines))?;
    }
    pass_on(stream)
}

fn find(seq: u64, home: &Path) -> Result<FoundRun, Notice> {
    let run: OsString = seq.to_string().into();
    RunReference::of(&run)?.find(home, &super::socket_path()?)
}

/// The output of a running command, as the recorder reported it to the host.
fn output_before(seq: u64, before: WrittenBefore) -> Result<WholeOutput, Notice> {
    let lines = from_base64(&before.lines_b64).unwrap_or_default();
    if before.file_bytes == 0 {
        return Ok(WholeOutput::of_bytes(lines));
    }
    let home = super::home()?;
    let output = find(seq, &home)?.output_so_far(before.file_bytes, before.left_out, lines);
    output.map_err(|error| unreadable(&home, &error))
}

/// A running command's output in this time since its start, from the journal. The recorder did not answer.
fn journal_before(seq: u64, ran: Duration) -> Result<Option<WholeOutput>, Notice> {
    tell("the journal's recorder did not answer: output of this moment may be missing here, or stand here twice");
    out::wait_for_recorder();
    let home = super::home()?;
    let found = find(seq, &home)?;
    let cannot_read = |error: io::Error| unreadable(&home, &error);
    let output = if found.has_raw_file() {
        // It is too long for a recording, and has no times.
        found.open_output().map_err(cannot_read)?
    } else {
        let recording = match found.end {
            Some(_) => found.recording(),
            None => found.unfinished_recording(),
        };
        let Some(recording) = recording.map_err(cannot_read)? else { return Ok(None) };
        WholeOutput::of_bytes(recording.output_before(ran))
    };
    Ok(Some(output))
}

/// Writes the stream to standard output.
fn pass_on(mut stream: BufReader<UnixStream>) -> Result<u8, Notice> {
    let failed = |error: io::Error| Notice::from(ask::AskError::Lost(error));
    let mut signals = HostSignals::take_stoppable().map_err(failed)?;
    let mut out = drawn();
    loop {
        let bytes = stream.buffer().to_vec();
        if !bytes.is_empty() {
            stream.consume(bytes.len());
            match out.write_all(&bytes).and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(exit_code::SUCCESS),
                written => written.map_err(|error| cannot_write(&error))?,
            }
        }
        let [has_bytes, has_signal] = poll::readable([stream.get_ref().as_fd(), signals.as_fd()]).map_err(failed)?;
        while let Some(signal) = has_signal.then(|| signals.take_next()).flatten() {
            match signal {
                HostSignal::Resize | HostSignal::Continued => {
                    let columns = Look::of_output().columns;
                    let _ = writeln!(stream.get_mut(), r#"{{"action":"resize","columns":{columns}}}"#);
                }
                HostSignal::CheckSocket => {}
                HostSignal::End | HostSignal::HangUp => return leave(&mut out),
            }
        }
        if has_bytes && uninterrupted(|| stream.fill_buf().map(<[u8]>::is_empty)).map_err(failed)? {
            return Ok(exit_code::SUCCESS);
        }
    }
}

/// Leaves the terminal on a line of its own and without colours.
fn leave(out: &mut impl Write) -> Result<u8, Notice> {
    if Look::of_output().is_terminal() {
        let _ = out.write_all(b"\x1b[0m\r\n").and_then(|()| out.flush());
    }
    Ok(exit_code::SUCCESS)
}
