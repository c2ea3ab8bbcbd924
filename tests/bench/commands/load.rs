//! How fast large outputs come through, and what CPU time they take.
//!
//! The reference for a terminal is a bare reader of one: this program, a pseudo-terminal without output processing, and
//! the same shell running the same command on it. Nothing with a terminal can be faster.

use std::io::{self, Error, Read};
use std::process::Command;
use std::time::Duration;

use nix::libc;

use crate::Bench;
use crate::host::{Console, Host, on_terminal};
use crate::shell::write_lines;
use crate::side::Side;
use crate::table::{Goal, Row, SIDES, Table, median_and_best};
use crate::turns::{Taken, take};

const READ_BYTES: usize = 64 << 10;
/// How often a file is given to cat, to have much output from little disk.
const REPEATS: usize = 10;

/// A command with much output.
#[derive(Debug)]
pub(crate) struct Load {
    name: &'static str,
    pub(crate) text: String,
    /// What it writes.
    bytes: u64,
    /// What is left of it for a caller that has a pipe, where escape sequences are taken out.
    pub(crate) clean_bytes: u64,
}

/// What descriptors 1 and 2 are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Pipes, for the caller and for the command.
    Pipe,
    /// A pipe for the caller, a terminal for the command.
    Terminal,
    /// A terminal, for the caller and for the command.
    CallersTerminal,
}

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let loads = loads(bench)?;
    let mut sides = vec![Side::real("sh")];
    sides.extend(Side::builds(bench, "sh", Console::Nowhere)?);
    volume(bench, &sides, (Way::Pipe, "pipes, console `/dev/null`"), &loads[0], 0.0, table)?;
    sides.truncate(1);
    sides.extend(Side::builds(bench, "sh", Console::Terminal)?);
    volume(bench, &sides, (Way::Pipe, "pipes"), &loads[0], 0.5, table)?;
    sides.insert(1, Side::floor(bench)?);
    for load in &loads {
        volume(bench, &sides, (Way::Terminal, "terminal, `collapse`"), load, 0.9, table)?;
    }
    sides.remove(1);
    // An older build leaves a caller that has a terminal to the real shell.
    sides.retain(|side| side.host.as_ref().is_none_or(|host| host.has_modes));
    volume(bench, &sides, (Way::CallersTerminal, "the caller's terminal"), &loads[0], 0.0, table)
}

/// One load: its speed, and the CPU time that it takes.
fn volume(
    bench: &Bench,
    sides: &[Side],
    (way, name): (Way, &str),
    load: &Load,
    goal: f64,
    table: &mut Table,
) -> io::Result<()> {
    let cpus =
        || sides.iter().map(|side| side.host.as_ref().map(Host::cpu).transpose()).collect::<io::Result<Vec<_>>>();
    let before = cpus()?;
    let all = take(sides, bench.rounds(5, 2), |side| read_one(side, way, load))?;
    let after = cpus()?;
    let megabytes = load.bytes as f64 / 1e6;
    let speeds: Vec<(f64, f64)> = all.iter().map(|taken| speeds(taken, megabytes)).collect();
    let row = Row::new(format!("{megabytes:.0} MB {}, {name}, MB/s, median (best tenth)", load.name));
    let row = sides
        .iter()
        .zip(&speeds)
        .fold(row, |row, (side, (median, best))| row.cell(side.name, format!("{median:.0} ({best:.0})")));
    table.push(row);
    let ratios = |at: usize| (speeds[at].0 / speeds[0].0, speeds[at].1 / speeds[0].1);
    let row = (1..sides.len()).fold(Row::new("  of the reference's speed"), |row, at| {
        let (median, best) = ratios(at);
        row.cell(sides[at].name, format!("{median:.2} ({best:.2})"))
    });
    let this = sides.iter().position(|side| side.name == SIDES[2]).expect("this build takes part");
    let goal = if goal > 0.0 { Goal::AtLeast(goal) } else { Goal::None };
    table.push(row.goal(ratios(this).0, goal));

    // The round that fills the page cache was used, too.
    let gigabytes = megabytes / 1e3;
    let row = sides.iter().zip(&all).fold(Row::new("  CPU of all processes, s/GB"), |row, (side, taken)| {
        let cpu = taken.cpu_of_each(1).map(|cpu| format!("{:.2}", cpu.as_secs_f64() / gigabytes));
        row.cell(side.name, cpu.unwrap_or_else(|| "–".to_owned()))
    });
    table.push(row);
    let rounds = all[0].times.len() + 1;
    for (at, process, goal) in [(0, "host", Goal::None), (1, "recorder", Goal::AtMost(0.8))] {
        let mut row = Row::new(format!("  CPU of the {process}, s/GB"));
        for (side, cpus) in sides.iter().zip(before.iter().zip(&after)) {
            let (Some(before), Some(after)) = cpus else { continue };
            let used = (after[at] - before[at]).as_secs_f64() / gigabytes / rounds as f64;
            row = row.cell(side.name, format!("{used:.2}"));
            if side.name == SIDES[2] {
                row = row.goal(used, goal);
            }
        }
        table.push(row);
    }
    Ok(())
}

/// Megabytes a second: the median of the rounds and the best tenth.
fn speeds(taken: &Taken, megabytes: f64) -> (f64, f64) {
    let (median, best) = median_and_best(&taken.times);
    let speed = |time: Duration| megabytes / time.as_secs_f64();
    (speed(median), speed(best))
}

/// Runs a load's command and reads all that it writes. The real shell writes to a terminal where a build's does.
fn read_one(side: &Side, way: Way, load: &Load) -> io::Result<()> {
    let is_bare = side.name == SIDES[0];
    let shell = match &side.host {
        Some(host) if way == Way::Terminal => side.shell.clone().with("REXEC_TTY", host.always_tty()),
        Some(_) if way == Way::CallersTerminal => side.shell.clone().with("REXEC_TTY", "auto"),
        _ => side.shell.clone(),
    };
    let mut command = shell.command(&load.text);
    let has_terminal = way == Way::CallersTerminal || (way == Way::Terminal && is_bare);
    let bytes = if has_terminal {
        let master = on_terminal(&mut command)?;
        read_to_end(command, master, Duration::ZERO)?
    } else {
        read_pipe(command, Duration::ZERO)?
    };
    let is_cleaned = way == Way::Terminal && side.host.is_some();
    let expected = if is_cleaned { load.clean_bytes } else { load.bytes };
    if bytes == expected {
        Ok(())
    } else {
        Err(Error::other(format!("{}, {}: {bytes} bytes came through, not {expected}", side.name, load.name)))
    }
}

/// Runs a command with both outputs on one pipe and reads all of it, after a pause.
pub(crate) fn read_pipe(mut command: Command, pause: Duration) -> io::Result<u64> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    read_to_end(command, reader, pause)
}

fn read_to_end(mut command: Command, mut source: impl Read, pause: Duration) -> io::Result<u64> {
    let mut child = command.spawn()?;
    // The child holds the other end.
    drop(command);
    std::thread::sleep(pause);
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            // This is how a terminal ends: nobody has the other side open.
            Err(error) if error.raw_os_error() == Some(libc::EIO) => break,
            Err(error) => return Err(error),
            Ok(bytes) => total += u64::try_from(bytes).expect("a read's size fits"),
        }
    }
    let status = child.wait()?;
    if status.success() { Ok(total) } else { Err(Error::other(format!("a load: {status}"))) }
}

/// Three kinds of text: plain lines, coloured lines, and lines of one letter.
pub(crate) fn loads(bench: &Bench) -> io::Result<[Load; 3]> {
    let folder = bench.scratch.folder()?;
    let scale = bench.rounds(1, 5);
    let load = |name, bytes: usize, line: &dyn Fn(usize) -> String, escapes: usize| {
        let path = folder.join(name);
        let (bytes, lines) = write_lines(&path, bytes / scale, line)?;
        let total = |bytes: usize| u64::try_from(bytes * REPEATS).expect("a hundred million fits");
        let text = format!("cat {}", vec![path.display().to_string(); REPEATS].join(" "));
        Ok::<_, Error>(Load { name, text, bytes: total(bytes), clean_bytes: total(bytes - lines * escapes) })
    };
    let plain = |n| format!("test core::log::tests::a_cursor_that_holds_is_never_overtaken_{n:08} ... ok\n");
    let coloured = |n| {
        let (name, place) = (format!("pkg-{n:06}"), format!("src/lib.rs:{}", n % 1000));
        format!("\x1b[1;32m   Compiling\x1b[0m {name} v0.1.0 (\x1b[36m{place}\x1b[0m) \x1b[38;5;208mwarning\x1b[m: x\n")
    };
    let escapes = "\x1b[1;32m\x1b[0m\x1b[36m\x1b[0m\x1b[38;5;208m\x1b[m".len();
    Ok([
        load("plain", 10_000_000, &plain, 0)?,
        load("coloured", 10_000_000, &coloured, escapes)?,
        load("of-y-lines", 2_000_000, &|_| "y\n".to_owned(), 0)?,
    ])
}
