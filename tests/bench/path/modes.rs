//! What each terminal mode costs: this build beside the real shell and, with `--base`, beside another build.
//!
//! The sides take turns within one run. Each cell has the median and, in brackets, the best tenth, which is steadier on
//! a busy machine. CPU is the user and system time of everything that a command causes: the shell and, for the two
//! builds, the shim, the host, its guards and its recorder.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Error, Read};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::wait::{WaitStatus, wait};

use crate::Bench;
use crate::host::{Host, has_modes, terminal};
use crate::meter::{self, Meter};
use crate::shell::{Shell, write_lines};
use crate::table::{Table, columns, median_and_best};
use crate::volume::read_all;

const CALLERS: usize = 64;

/// What a command's descriptors 1 and 2 are, for its caller and for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The caller has a pipe, and so has the command: `--tty auto`.
    Pipe,
    /// The caller has a pipe and the command a terminal: `--tty always`.
    Always,
    /// The caller leads a session on a terminal, and its command gets one: `--tty auto`.
    Terminal,
}

const MODES: [(Mode, &str); 3] = [(Mode::Pipe, "pipes"), (Mode::Always, "always"), (Mode::Terminal, "terminal")];

/// The real shell or one of the builds.
#[derive(Debug)]
struct Side {
    name: &'static str,
    shell: Shell,
    host: Option<Host>,
    /// `REXEC_TTY` for each of [`MODES`].
    tty: [&'static str; 3],
    /// Dropped last, when the host is gone.
    meter: Meter,
}

impl Side {
    fn real() -> Self {
        Self { name: "real", shell: Shell::real("bash"), host: None, tty: [""; 3], meter: Meter::new("real") }
    }

    fn build(name: &'static str, bench: &Bench) -> io::Result<Self> {
        let meter = Meter::new(name);
        meter.enter()?;
        let host = Host::start(bench)?;
        let tty = if has_modes(&bench.bin)? { ["auto", "always", "auto"] } else { ["never", "auto", "auto"] };
        Ok(Self { name, shell: Shell::ours(bench, &host, "bash"), host: Some(host), tty, meter })
    }

    /// How this side starts a command in that mode, the descriptors still to be set.
    fn command(&self, mode: Mode, text: &str) -> Command {
        self.shell.clone().with("REXEC_TTY", self.tty[mode as usize]).command(text)
    }
}

/// What one side did for one row of the table.
#[derive(Debug, Default)]
struct Taken {
    times: Vec<Duration>,
    /// Of one command; nothing where it cannot be counted.
    cpu: Option<Duration>,
}

/// One thing to measure, and how to show it.
#[derive(Debug)]
struct Row {
    name: String,
    rounds: usize,
    /// The commands in one round, all at once or as many as there are callers.
    commands: usize,
    text: String,
    /// The bytes that each command writes.
    bytes: u64,
}

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    // The folders of a bench go with it, so both live until the end.
    let bins = std::iter::once(&bench.bin).chain(&bench.base);
    let benches = bins.map(|bin| bench.beside(bin)).collect::<io::Result<Vec<_>>>()?;
    let mut sides = vec![Side::real()];
    for (name, bench) in ["this", "base"].into_iter().zip(&benches) {
        sides.push(Side::build(name, bench)?);
    }
    let (file, bytes) = load(bench)?;
    let rows = [
        Row { name: "true".to_owned(), rounds: bench.rounds(400, 60), commands: 1, text: "true".to_owned(), bytes: 0 },
        Row {
            name: format!("true, {CALLERS} callers, each"),
            rounds: bench.rounds(7, 3),
            commands: bench.rounds(600, 200),
            text: "true".to_owned(),
            bytes: 0,
        },
        Row {
            name: format!("{} MB", bytes / 1_000_000),
            rounds: bench.rounds(7, 3),
            commands: 1,
            text: format!("cat {file}"),
            bytes,
        },
    ];
    let mut lines = vec![heading(&sides)];
    for (mode, name) in MODES {
        for row in &rows {
            let taken = take(mode, row, &sides)?;
            lines.push(line(&format!("{name}: {}", row.name), &taken));
        }
    }
    table.remark(columns(&lines));
    Ok(())
}

/// Measures one row: every round goes once through all sides.
fn take(mode: Mode, row: &Row, sides: &[Side]) -> io::Result<Vec<Taken>> {
    let commands = u32::try_from(row.commands).expect("few");
    let mut all = Vec::new();
    for side in sides {
        all.push((side, Taken::default(), side.meter.used()?, Duration::ZERO));
    }
    for round in 0..row.rounds + 1 {
        for (side, taken, _, own) in &mut all {
            side.meter.enter()?;
            let (before, start) = (meter::own()?, Instant::now());
            if row.bytes > 0 {
                let read = read_one(mode, side, &row.text)?;
                if read != row.bytes {
                    return Err(Error::other(format!("{}: {read} bytes, not {}", side.name, row.bytes)));
                }
            } else {
                run_many(mode, side, row)?;
            }
            // The first round fills the page cache.
            if round > 0 {
                taken.times.push(start.elapsed() / commands);
            }
            *own += meter::own()?.saturating_sub(before);
        }
    }
    let count = commands * u32::try_from(row.rounds + 1).expect("few");
    let mut taken = Vec::new();
    for (side, mut it, before, own) in all {
        let used = side.meter.used()?.zip(before).map(|(after, before)| after.saturating_sub(before + own) / count);
        it.cpu = used;
        taken.push(it);
    }
    Ok(taken)
}

/// Runs a row's commands, [`CALLERS`] at a time, and waits for all.
fn run_many(mode: Mode, side: &Side, row: &Row) -> io::Result<()> {
    let (_reader, writer) = io::pipe()?;
    let mut masters = HashMap::new();
    for started in 0..row.commands + CALLERS.min(row.commands) {
        if started >= CALLERS.min(row.commands) {
            match wait()? {
                WaitStatus::Exited(pid, 0) => drop(masters.remove(&pid.as_raw().cast_unsigned())),
                other => return Err(Error::other(format!("{}: {other:?}", side.name))),
            }
        }
        if started < row.commands {
            let mut command = side.command(mode, &row.text);
            let master = if mode == Mode::Terminal {
                Some(on_terminal(&mut command)?)
            } else {
                command.stdout(writer.try_clone()?).stderr(writer.try_clone()?);
                None
            };
            // Reaped above by wait(), which takes whichever ends first; dropping a Child does nothing.
            masters.insert(command.spawn()?.id(), master);
        }
    }
    Ok(())
}

/// Runs one command and reads all that it writes. The real shell's output goes to a terminal where a build's does.
fn read_one(mode: Mode, side: &Side, text: &str) -> io::Result<u64> {
    let mut command = side.command(mode, text);
    let source: Box<dyn Read> = if mode == Mode::Terminal || (mode == Mode::Always && side.host.is_none()) {
        Box::new(on_terminal(&mut command)?)
    } else {
        let (reader, writer) = io::pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        Box::new(reader)
    };
    let mut child = command.spawn()?;
    // The command holds the other end.
    drop(command);
    let bytes = read_all(source)?;
    let status = child.wait()?;
    if status.success() { Ok(bytes) } else { Err(Error::other(format!("{}: {status}", side.name))) }
}

/// Makes a command the leader of a session on a new terminal, and returns the side of the terminal to read.
#[expect(unsafe_code, reason = "a session and its terminal are set between fork and exec")]
fn on_terminal(command: &mut Command) -> io::Result<File> {
    let (master, slave) = terminal()?;
    command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    // SAFETY: only system calls, on descriptors that are open.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            match libc::ioctl(0, libc::TIOCSCTTY, 0) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            }
        });
    }
    Ok(master)
}

/// A file with many lines that is given to cat ten times: its names, and the bytes in all.
fn load(bench: &Bench) -> io::Result<(String, u64)> {
    let path = bench.scratch.folder()?.join("lines");
    let bytes = write_lines(&path, bench.rounds(10_000_000, 2_000_000), |n| {
        format!("test core::log::tests::a_cursor_that_holds_is_never_overtaken_{n:08} ... ok\n")
    })?;
    let names = vec![path.display().to_string(); 10].join(" ");
    Ok((names, u64::try_from(bytes * 10).expect("a hundred million fits")))
}

fn heading(sides: &[Side]) -> Vec<String> {
    let mut cells = vec!["mode: what, in ms".to_owned()];
    cells.extend(sides.iter().map(|side| format!("{} (best tenth)", side.name)));
    cells.extend(sides.iter().map(|side| format!("CPU {}", side.name)));
    cells.push("this : real".to_owned());
    if sides.len() > 2 {
        cells.extend(["base : real", "this : base"].map(str::to_owned));
    }
    cells
}

fn line(name: &str, taken: &[Taken]) -> Vec<String> {
    let millis = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
    let best: Vec<(Duration, Duration)> = taken.iter().map(|taken| median_and_best(&taken.times)).collect();
    let mut cells = vec![name.to_owned()];
    cells.extend(best.iter().map(|&(median, best)| format!("{} ({})", millis(median), millis(best))));
    cells.extend(taken.iter().map(|taken| taken.cpu.map_or_else(|| "–".to_owned(), millis)));
    let ratio = |a: usize, b: usize| {
        let [median, least] = [(best[a].0, best[b].0), (best[a].1, best[b].1)].map(|(a, b)| a.div_duration_f64(b));
        format!("{median:.2} ({least:.2})")
    };
    cells.push(ratio(1, 0));
    if taken.len() > 2 {
        cells.extend([ratio(2, 0), ratio(1, 2)]);
    }
    cells
}
