//! What the host weighs: idle, with much output in flight, with many callers; and what an idle host does.

use std::io::{self, Error};
use std::time::Duration;

use crate::Bench;
use crate::host::{Console, Host, status};
use crate::load::{Load, loads, read_pipe};
use crate::side::Side;
use crate::table::{Goal, Row, SIDES, Table, median, millis};
use crate::turns::run_many;

/// Many callers, and the commands that they run.
const CALLERS: usize = 64;

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let loads = loads(bench)?;
    // A host for each, because memory that was used once is not all returned.
    memory(bench, table, ("idle", Goal::AtMost(3.0)), |_| Ok(()))?;
    memory(bench, table, ("peak, 100 MB in flight", Goal::AtMost(6.0)), |side| late_reader(side, &loads[0], 1000))?;
    memory(bench, table, ("peak, 8 × 20 MB in flight at once", Goal::AtMost(8.0)), |side| {
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..8).map(|_| scope.spawn(|| late_reader(side, &loads[2], 300))).collect();
            readers.into_iter().try_for_each(|reader| reader.join().expect("a reader does not panic"))
        })
    })?;
    let commands = bench.rounds(3000, 300);
    memory(bench, table, ("peak, 64 callers", Goal::AtMost(5.0)), |side| run_many(side, commands, CALLERS))?;
    idle(bench, table)
}

/// The most resident memory of each build's host while it does this, on a terminal for the command.
fn memory(
    bench: &Bench,
    table: &mut Table,
    (name, goal): (&str, Goal),
    work: impl Fn(&Side) -> io::Result<()>,
) -> io::Result<()> {
    let mut row = Row::new(format!("host's memory, {name}, MB (then its own)"));
    for side in Side::builds(bench, "sh", Console::Terminal)? {
        let Some(host) = &side.host else { continue };
        side.meter.enter()?;
        host.reset_peak()?;
        work(&side)?;
        let peak = host.status("VmHWM")? as f64 * 1024.0 / 1e6;
        // What is not of files: the program's own pages are the same for host, recorder and guards.
        let own = host.status("RssAnon")? as f64 * 1024.0 / 1e6;
        row = row.cell(side.name, format!("{peak:.1} ({own:.1})"));
        if side.name == SIDES[2] {
            row = row.goal(peak, goal);
        }
    }
    table.push(row);
    Ok(())
}

/// Reads a load's output from a pipe, after a pause in which the host has to keep it.
fn late_reader(side: &Side, load: &Load, pause: u64) -> io::Result<()> {
    let Some(host) = &side.host else { return Ok(()) };
    let shell = side.shell.clone().with("REXEC_TTY", host.always_tty());
    let bytes = read_pipe(shell.command(&load.text), Duration::from_millis(pause))?;
    if bytes == load.clean_bytes { Ok(()) } else { Err(Error::other(format!("a late reader: {bytes} bytes"))) }
}

/// Start and rest.
fn idle(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let (mut start, mut wakes) = (Row::new("cold start of the host, ms"), Row::new("wake-ups of an idle host in 5 s"));
    for (name, bin) in bench.builds() {
        let mut starts = Vec::new();
        for _ in 0..bench.rounds(10, 3) {
            starts.push(Host::start_cold(bench, bin, Console::Nowhere)?.started_in());
        }
        let took = median(&starts);
        start = start.cell(name, millis(took));
        let host = Host::start(bench, bin, Console::Nowhere)?;
        let below = host.children()?;
        let count = || {
            let below = below.iter().map(|&pid| status(pid, "voluntary_ctxt_switches")).sum::<io::Result<u64>>()?;
            Ok::<_, Error>([host.status("voluntary_ctxt_switches")?, below])
        };
        let before = count()?;
        std::thread::sleep(Duration::from_secs(5));
        let after = count()?;
        let (own, below) = (after[0] - before[0], after[1] - before[1]);
        wakes = wakes.cell(name, format!("{own} (below it {below})"));
        if name == SIDES[2] {
            start = start.goal(took.as_secs_f64() * 1e3, Goal::AtMost(10.0));
            wakes = wakes.goal(own as f64, Goal::AtMost(0.0));
        }
    }
    table.push(start);
    table.push(wakes);
    Ok(())
}
