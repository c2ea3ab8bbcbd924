//! How many commands a second come through from many callers at once, and whether the rate lasts.

use std::io::{self, Error};
use std::time::{Duration, Instant};

use nix::sys::wait::{WaitStatus, wait};

use crate::Bench;
use crate::host::Host;
use crate::shell::{Shell, nowhere};
use crate::table::{Goal, Table, median};

/// What came of a number of commands with some callers at once.
#[derive(Debug, Clone, Copy)]
struct Burst {
    commands: usize,
    failed: usize,
    took: Duration,
}

impl Burst {
    fn rate(&self) -> f64 {
        self.commands as f64 / self.took.as_secs_f64()
    }
}

/// Ours against `sh -c` at several numbers of callers, in turns.
pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let host = Host::start(bench)?;
    let (real, ours) = (Shell::real("sh"), Shell::ours(bench, &host, "sh"));
    let commands = bench.rounds(1000, 300);
    for callers in [1, 8, 64, 256] {
        let (mut ours_rates, mut real_rates, mut failed) = (Vec::new(), Vec::new(), 0);
        for _ in 0..bench.rounds(5, 3) {
            let (mine, theirs) = (burst(&ours, callers, commands)?, burst(&real, callers, commands)?);
            ours_rates.push(mine.rate());
            real_rates.push(theirs.rate());
            failed += mine.failed;
        }
        let (mine, theirs) = (median(&ours_rates), median(&real_rates));
        let goal = if callers == 1 { Goal::None } else { Goal::AtLeast(0.35) };
        let cells = [format!("{mine:.0}/s"), format!("{theirs:.0}/s")];
        table.compare(&format!("commands a second, {callers} callers : sh -c"), cells, mine / theirs, goal);
        if failed > 0 {
            table.remark(format!("{failed} commands FAILED with {callers} callers"));
        }
    }
    Ok(())
}

/// Ten thousand commands through one host: the rate of each thousand, and what the host weighs afterwards.
pub(crate) fn soak(bench: &Bench, table: &mut Table) -> io::Result<()> {
    const CALLERS: usize = 64;
    let host = Host::start(bench)?;
    let (real, ours) = (Shell::real("sh"), Shell::ours(bench, &host, "sh"));
    let commands = bench.rounds(1000, 200);
    let (mut rates, mut relative, mut failed) = (Vec::new(), Vec::new(), 0);
    let used = host.cpu()?;
    for _ in 0..10 {
        let (mine, theirs) = (burst(&ours, CALLERS, commands)?, burst(&real, CALLERS, commands / 4)?);
        failed += mine.failed;
        rates.push(mine.rate());
        relative.push(mine.rate() / theirs.rate());
    }
    let per_command = (host.cpu()? - used).as_secs_f64() * 1e6 / (commands * 10) as f64;
    // Held against sh -c, so that a load from elsewhere in one half is not taken for a decline.
    let (first, last) = (median(&relative[..3]), median(&relative[7..]));
    let cells = [format!("{last:.2} × sh -c"), format!("{first:.2} × sh -c")];
    let total = commands * 10;
    table.compare(&format!("{total} commands: last three tenths : first"), cells, last / first, Goal::AtLeast(0.9));
    table.absolute(
        &format!("host RSS after {total} commands"),
        (kib_to_mb(host.status("VmRSS")?), "MB"),
        Goal::AtMost(8.0),
    );
    table.absolute("host CPU per command", (per_command, "µs"), Goal::None);
    let list: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
    table.remark(format!("{CALLERS} callers, rate of each {commands} commands: {} /s", list.join(" ")));
    table.remark(format!("{failed} of {total} commands failed"));
    Ok(())
}

/// Runs a number of `true`s, so many at once, and waits for all.
fn burst(shell: &Shell, callers: usize, commands: usize) -> io::Result<Burst> {
    let nowhere = nowhere()?;
    let (mut started, mut ended, mut failed) = (0, 0, 0);
    let start = Instant::now();
    while ended < commands {
        while started < commands && started - ended < callers {
            // Reaped below by wait(), which takes whichever ends first; dropping a Child does nothing.
            drop(shell.silent("true", &nowhere)?.spawn()?);
            started += 1;
        }
        match wait()? {
            WaitStatus::Exited(_, 0) => ended += 1,
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                ended += 1;
                failed += 1;
            }
            other => return Err(Error::other(format!("an unexpected end: {other:?}"))),
        }
    }
    Ok(Burst { commands, failed, took: start.elapsed() })
}

/// KiB as /proc gives them, in MB.
pub(crate) fn kib_to_mb(kib: u64) -> f64 {
    kib as f64 * 1024.0 / 1e6
}
