//! What the way from an agent to its command costs: time and CPU of one command, and the rate of many callers.
//!
//! The command is `true`, with both outputs on one pipe, as an agent has them.

use std::io;
use std::time::Duration;

use crate::Bench;
use crate::host::Console;
use crate::side::Side;
use crate::table::{Goal, Row, SIDES, Table, median, median_and_best, millis};
use crate::turns::{Taken, run_many, take};

/// The numbers of callers at once.
const CALLERS: [usize; 3] = [8, 64, 256];
/// Callers of the long row.
const LONG_CALLERS: usize = 64;
/// Rounds of the long row, each of as many commands.
const LONG_ROUNDS: usize = 10;

/// One caller, one command after the other.
pub(crate) fn one(bench: &Bench, table: &mut Table) -> io::Result<()> {
    for (shell, ratio_goal) in [("sh", 2.1), ("bash", 1.55)] {
        let mut sides = vec![Side::real(shell)];
        if shell == "sh" {
            sides.push(Side::floor(bench)?);
        }
        sides.extend(Side::builds(bench, shell, Console::Nowhere)?);
        let all = take(&sides, bench.rounds(1500, 150), |side| run_many(side, 1, 1))?;
        let times: Vec<(Duration, Duration)> = all.iter().map(|taken| median_and_best(&taken.times)).collect();
        let named = || sides.iter().zip(&times);

        let row = Row::new(format!("`{shell} -c true`, ms, median (best tenth)"));
        table.push(named().fold(row, |row, (side, &(median, best))| {
            row.cell(side.name, format!("{} ({})", millis(median), millis(best)))
        }));
        let added =
            |(median, best): (Duration, Duration)| (median.saturating_sub(times[0].0), best.saturating_sub(times[0].1));
        let row = named().skip(1).fold(Row::new("  more than the shell alone"), |row, (side, &times)| {
            let (median, best) = added(times);
            row.cell(side.name, format!("{} ({})", millis(median), millis(best)))
        });
        let this = this(&sides);
        table.push(if shell == "sh" {
            // Half as much again as the floor, where that is more: a slow machine makes both slow.
            let floor = added(times[1]).0.mul_f64(1.5);
            let most = (floor.as_secs_f64() * 1e3).max(0.75);
            row.goal(added(times[this]).0.as_secs_f64() * 1e3, Goal::AtMost((most * 100.0).round() / 100.0))
        } else {
            row
        });
        let ratio = |(median, best): (Duration, Duration)| {
            (median.div_duration_f64(times[0].0), best.div_duration_f64(times[0].1))
        };
        let row = named().skip(1).fold(Row::new("  times as long as the shell alone"), |row, (side, &times)| {
            let (median, best) = ratio(times);
            row.cell(side.name, format!("{median:.2} ({best:.2})"))
        });
        table.push(row.goal(ratio(times[this]).0, Goal::AtMost(ratio_goal)));
        table.push(cpu("  CPU of all processes, ms", &sides, &all, 1, Goal::None));
    }
    Ok(())
}

/// Many callers at once.
pub(crate) fn many(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let mut sides = vec![Side::real("sh"), Side::floor(bench)?];
    sides.extend(Side::builds(bench, "sh", Console::Nowhere)?);
    let commands = bench.rounds(500, 200);
    for callers in CALLERS {
        let all = take(&sides, bench.rounds(7, 3), |side| run_many(side, commands, callers))?;
        let rates: Vec<(f64, f64)> = all.iter().map(|taken| rates(taken, commands)).collect();
        let row = Row::new(format!("commands a second, {callers} callers, median (best tenth)"));
        let row = sides
            .iter()
            .zip(&rates)
            .fold(row, |row, (side, (median, best))| row.cell(side.name, format!("{median:.0} ({best:.0})")));
        let goal = if callers == LONG_CALLERS { Goal::AtLeast((rates[1].0 * 0.9).round()) } else { Goal::None };
        table.push(row.goal(rates[this(&sides)].0, goal));
        let goal = if callers == LONG_CALLERS { Goal::AtMost(1.45) } else { Goal::None };
        table.push(cpu("  CPU of all processes, ms per command", &sides, &all, commands, goal));
    }
    lasting(bench, &sides, table)
}

/// Whether the rate lasts: that of the last commands against that of the first.
fn lasting(bench: &Bench, sides: &[Side], table: &mut Table) -> io::Result<()> {
    let commands = bench.rounds(1000, 100);
    let all = take(sides, LONG_ROUNDS, |side| run_many(side, commands, LONG_CALLERS))?;
    let end_to_begin = |taken: &Taken| {
        let [first, last] = [&taken.times[..3], &taken.times[LONG_ROUNDS - 3..]].map(median);
        first.div_duration_f64(last)
    };
    let lasting: Vec<f64> = all.iter().map(end_to_begin).collect();
    let row = Row::new(format!("rate of the last 3 tenths of {} : first", commands * LONG_ROUNDS));
    let row = sides.iter().zip(&lasting).fold(row, |row, (side, ratio)| row.cell(side.name, format!("{ratio:.2}")));
    // Held against the real shell's, so that a load from elsewhere is not taken for a decline.
    table.push(row.goal(lasting[this(sides)] / lasting[0], Goal::AtLeast(0.9)));
    Ok(())
}

/// Commands a second: the median of the rounds and the best tenth.
fn rates(taken: &Taken, commands: usize) -> (f64, f64) {
    let (median, best) = median_and_best(&taken.times);
    let rate = |time: Duration| commands as f64 / time.as_secs_f64();
    (rate(median), rate(best))
}

/// The row of the CPU time of one command.
fn cpu(measure: &str, sides: &[Side], all: &[Taken], commands: usize, goal: Goal) -> Row {
    let of_each: Vec<Option<Duration>> = all.iter().map(|taken| taken.cpu_of_each(commands)).collect();
    let row = sides
        .iter()
        .zip(&of_each)
        .fold(Row::new(measure), |row, (side, cpu)| row.cell(side.name, cpu.map_or_else(|| "–".to_owned(), millis)));
    match of_each[this(sides)] {
        Some(cpu) => row.goal(cpu.as_secs_f64() * 1e3, goal),
        None => row,
    }
}

/// The place of this build among the sides.
fn this(sides: &[Side]) -> usize {
    sides.iter().position(|side| side.name == SIDES[2]).expect("this build takes part")
}
