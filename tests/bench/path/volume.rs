//! How fast large outputs come through, and how much of them the host keeps in memory.
//!
//! The reference for a terminal is a bare reader of one: this program, a pseudo-terminal without output processing, and
//! the same shell running the same command on it. Nothing with a terminal can be faster.

use std::fs::File;
use std::io::{self, Error, Read};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Bench;
use crate::host::{Host, terminal};
use crate::rate::kib_to_mb;
use crate::shell::{Shell, write_lines};
use crate::table::{Goal, Table, median};

const READ_BYTES: usize = 64 << 10;
/// How often a file is given to cat, to have much output from little disk.
const REPEATS: usize = 10;

/// A command with much output.
#[derive(Debug)]
struct Load {
    name: String,
    text: String,
    /// What it writes.
    bytes: u64,
    /// What is left of it for the caller, once escape sequences are gone.
    clean_bytes: u64,
}

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let host = Host::start(bench)?;
    let loads = loads(bench)?;
    for load in &loads {
        through_terminal(bench, &host, load, ("strip", Goal::AtLeast(0.75)), table)?;
        through_terminal(bench, &host, load, ("collapse", Goal::AtLeast(0.75)), table)?;
        against_raw(bench, &host, load, table)?;
    }
    through_pipes(bench, &host, &loads[0], table)?;
    in_flight(bench, &loads, table)
}

/// Ours against the bare reader, with this treatment of the output.
fn through_terminal(
    bench: &Bench,
    host: &Host,
    load: &Load,
    (treatment, goal): (&str, Goal),
    table: &mut Table,
) -> io::Result<()> {
    let real = Shell::real("bash");
    let ours = Shell::ours(bench, host, "bash").with("REXEC_SANITIZE", treatment);
    let (mut ours_times, mut bare_times, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds(5, 2) {
        let before = host.cpu()?;
        let (took, bytes) = read_pipe(bounded(&ours, &load.text), Duration::ZERO)?;
        used.push((host.cpu()? - before).as_secs_f64() / took.as_secs_f64());
        expect(&load.name, bytes, load.clean_bytes)?;
        ours_times.push(took);
        let (took, bytes) = read_terminal(bounded(&real, &load.text))?;
        expect(&load.name, bytes, load.bytes)?;
        bare_times.push(took);
    }
    let measure = format!("{}, {treatment} : bare terminal reader", load.name);
    compare(table, &measure, load, [&ours_times, &bare_times], goal);
    table.remark(format!("{}, {treatment}: the host's share of one core {:.0} %", load.name, median(&used) * 100.0));
    Ok(())
}

/// What the default treatment costs, against none.
fn against_raw(bench: &Bench, host: &Host, load: &Load, table: &mut Table) -> io::Result<()> {
    let shells =
        ["collapse", "raw"].map(|treatment| Shell::ours(bench, host, "bash").with("REXEC_SANITIZE", treatment));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..bench.rounds(5, 2) {
        for ((shell, times), expected) in shells.iter().zip(&mut times).zip([load.clean_bytes, load.bytes]) {
            let (took, bytes) = read_pipe(bounded(shell, &load.text), Duration::ZERO)?;
            expect(&load.name, bytes, expected)?;
            times.push(took);
        }
    }
    let measure = format!("{}, collapse : raw", load.name);
    compare(table, &measure, load, [&times[0], &times[1]], Goal::AtLeast(0.9));
    Ok(())
}

/// Pipe mode against the shell on a pipe.
fn through_pipes(bench: &Bench, host: &Host, load: &Load, table: &mut Table) -> io::Result<()> {
    let real = Shell::real("sh");
    let ours = Shell::ours(bench, host, "sh").with("REXEC_TTY", "never");
    let (mut ours_times, mut real_times) = (Vec::new(), Vec::new());
    for _ in 0..bench.rounds(9, 3) {
        for (shell, times) in [(&ours, &mut ours_times), (&real, &mut real_times)] {
            let (took, bytes) = read_pipe(bounded(shell, &load.text), Duration::ZERO)?;
            expect("pipe mode", bytes, load.bytes)?;
            times.push(took);
        }
    }
    compare(table, "pipe mode, plain : sh -c on a pipe", load, [&ours_times, &real_times], Goal::AtLeast(0.35));
    Ok(())
}

/// What the host's memory grows to while a caller reads late, and eight read at once.
fn in_flight(bench: &Bench, loads: &[Load], table: &mut Table) -> io::Result<()> {
    let host = Host::start(bench)?;
    let ours = Shell::ours(bench, &host, "bash");
    host.reset_peak()?;
    let (_, bytes) = read_pipe(bounded(&ours, &loads[0].text), Duration::from_secs(1))?;
    expect("a late reader", bytes, loads[0].clean_bytes)?;
    let peak = kib_to_mb(host.status("VmHWM")?);
    table.absolute(&format!("host peak, {} to a caller that reads late", loads[0].name), (peak, "MB"), Goal::None);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| read_pipe(bounded(&ours, &loads[2].text), Duration::from_millis(300))))
            .collect();
        readers.into_iter().try_for_each(|reader| {
            let (_, bytes) = reader.join().expect("a reader does not panic")?;
            expect("eight readers", bytes, loads[2].clean_bytes)
        })
    })?;
    let peak = kib_to_mb(host.status("VmHWM")?);
    table.absolute(&format!("host peak, then 8 × {} at once", loads[2].name), (peak, "MB"), Goal::AtMost(8.0));
    Ok(())
}

fn loads(bench: &Bench) -> io::Result<[Load; 3]> {
    let folder = bench.scratch.folder()?;
    let scale = bench.rounds(1, 5);
    let file = |name: &str| folder.join(name);
    let plain = write_lines(&file("plain"), 10_000_000 / scale, |n| {
        format!("test core::log::tests::a_cursor_that_holds_is_never_overtaken_{n:08} ... ok\n")
    })?;
    let words = |n: usize| (format!("pkg-{n:06}"), format!("src/lib.rs:{}", n % 1000));
    let colour = write_lines(&file("colour"), 10_000_000 / scale, |n| {
        let (name, place) = words(n);
        format!("\x1b[1;32m   Compiling\x1b[0m {name} v0.1.0 (\x1b[36m{place}\x1b[0m) \x1b[38;5;208mwarning\x1b[m: x\n")
    })?;
    let escapes = "\x1b[1;32m\x1b[0m\x1b[36m\x1b[0m\x1b[38;5;208m\x1b[m".len();
    let lines = std::fs::read(file("colour"))?.iter().filter(|&&byte| byte == b'\n').count();
    let short = write_lines(&file("short"), 2_000_000 / scale, |_| "y\n".to_owned())?;
    let load = |name, path: PathBuf, bytes: usize, escapes: usize| {
        let names = vec![path.display().to_string(); REPEATS].join(" ");
        let total = |bytes: usize| u64::try_from(bytes * REPEATS).expect("a hundred million fits");
        let name = format!("{} MB {name}", total(bytes) / 1_000_000);
        Load { name, text: format!("cat {names}"), bytes: total(bytes), clean_bytes: total(bytes - escapes) }
    };
    Ok([
        load("plain", file("plain"), plain, 0),
        load("coloured", file("colour"), colour, lines * escapes),
        load("of y lines", file("short"), short, 0),
    ])
}

/// A load that hangs ends the measure, not the program's patience.
fn bounded(shell: &Shell, text: &str) -> Command {
    shell.command_below(&["timeout", "--kill-after=1", "60"], text)
}

/// Runs a command with both outputs on one pipe and reads all of it, after a pause.
fn read_pipe(mut command: Command, pause: Duration) -> io::Result<(Duration, u64)> {
    let (reader, writer) = io::pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    let start = Instant::now();
    let mut child = command.spawn()?;
    // The command holds the pipe's other end.
    drop(command);
    std::thread::sleep(pause);
    let bytes = read_all(reader)?;
    let status = child.wait()?;
    if status.success() { Ok((start.elapsed(), bytes)) } else { Err(Error::other(format!("a load: {status}"))) }
}

/// Runs a command on a terminal and reads all of it.
fn read_terminal(mut command: Command) -> io::Result<(Duration, u64)> {
    let (master, slave): (File, _) = terminal()?;
    command.stdout(slave.try_clone()?).stderr(slave);
    let start = Instant::now();
    let mut child = command.spawn()?;
    drop(command);
    let bytes = read_all(master)?;
    let status = child.wait()?;
    if status.success() { Ok((start.elapsed(), bytes)) } else { Err(Error::other(format!("a load: {status}"))) }
}

pub(crate) fn read_all(mut source: impl Read) -> io::Result<u64> {
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    loop {
        match source.read(&mut buffer) {
            // EIO is how a terminal ends: nobody has the other side open.
            Ok(0) => return Ok(total),
            Err(error) if error.raw_os_error() == Some(nix::libc::EIO) => return Ok(total),
            Err(error) => return Err(error),
            Ok(bytes) => total += u64::try_from(bytes).expect("a read's size fits"),
        }
    }
}

fn expect(what: &str, bytes: u64, expected: u64) -> io::Result<()> {
    if bytes == expected {
        return Ok(());
    }
    Err(Error::other(format!("{what}: {bytes} bytes came through, not {expected}")))
}

fn compare(table: &mut Table, measure: &str, load: &Load, [ours, reference]: [&[Duration]; 2], goal: Goal) {
    let (ours, reference) = (median(ours), median(reference));
    let speed = |took: Duration| format!("{:.0} MB/s", load.bytes as f64 / 1e6 / took.as_secs_f64());
    let ratio = reference.as_secs_f64() / ours.as_secs_f64();
    table.compare(measure, [speed(ours), speed(reference)], ratio, goal);
}
