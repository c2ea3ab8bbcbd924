//! How long one command takes when nothing else runs.

use std::io;
use std::time::Duration;

use crate::Bench;
use crate::host::Host;
use crate::instructions::shim_to_stand_in;
use crate::shell::{Shell, nowhere};
use crate::table::{Goal, Table, median, median_and_p95, millis};

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let host = Host::start(bench)?;
    let ways = [
        Shell::real("sh"),
        Shell::ours(bench, &host, "sh"),
        Shell::real("bash"),
        Shell::ours(bench, &host, "bash"),
        Shell::ours(bench, &host, "bash").with("REXEC_TTY", "never"),
        shim_to_stand_in(bench)?,
    ];
    let nowhere = nowhere()?;
    let mut times: [Vec<Duration>; 6] = Default::default();
    for round in 0..bench.rounds(600, 100) + 5 {
        for (way, times) in ways.iter().zip(&mut times) {
            let took = way.time("true", &nowhere)?;
            // The first rounds fill the page cache.
            if round >= 5 {
                times.push(took);
            }
        }
    }
    let [sh, ours_sh, bash, ours_bash, ours_pipe, shim] = &times;
    compare(table, "rexec-sh -c true : sh -c true", [ours_sh, sh], Goal::AtMost(2.0));
    compare(table, "rexec-bash -c true : bash -c true", [ours_bash, bash], Goal::AtMost(1.6));
    compare(table, "the same in pipe mode", [ours_pipe, bash], Goal::None);
    let [whole, shim, shell] = [ours_sh, shim, sh].map(|times| median(times));
    table.remark(format!(
        "rexec-sh -c true, {}: the shim alone {}, sh alone {}, so host, guard and terminal {}",
        millis(whole),
        millis(shim),
        millis(shell),
        millis(whole.saturating_sub(shim + shell))
    ));
    two_streams(bench, &host, table)
}

/// The same with stdout and stderr apart, as agents with two pipes have it.
fn two_streams(bench: &Bench, host: &Host, table: &mut Table) -> io::Result<()> {
    let (real, ours) = (Shell::real("bash"), Shell::ours(bench, host, "bash"));
    let (out, err) = (nowhere()?, nowhere()?);
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..bench.rounds(300, 50) {
        for (way, times) in [&ours, &real].into_iter().zip(&mut times) {
            let mut command = way.command("true");
            command.stdout(out.try_clone()?).stderr(err.try_clone()?);
            let start = std::time::Instant::now();
            command.spawn()?.wait()?;
            times.push(start.elapsed());
        }
    }
    compare(table, "the same, stderr apart from stdout", [&times[0], &times[1]], Goal::None);
    Ok(())
}

fn compare(table: &mut Table, measure: &str, [ours, reference]: [&Vec<Duration>; 2], goal: Goal) {
    let ((ours_median, ours_p95), (reference_median, reference_p95)) =
        (median_and_p95(ours), median_and_p95(reference));
    let ratios: Vec<f64> = ours.iter().zip(reference).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
    let of_medians = ours_median.as_secs_f64() / reference_median.as_secs_f64();
    table.compare(measure, [millis(ours_median), millis(reference_median)], of_medians, goal);
    table.remark(format!(
        "{measure}: p95 {} and {}; median of the ratios of each round {:.2}",
        millis(ours_p95),
        millis(reference_p95),
        median(&ratios)
    ));
}
