//! What an idle host costs: its start, its memory, its wake-ups.

use std::io;
use std::time::Duration;

use crate::Bench;
use crate::host::{Host, status};
use crate::rate::kib_to_mb;
use crate::table::{Goal, Table, median};

pub(crate) fn measure(bench: &Bench, table: &mut Table) -> io::Result<()> {
    let mut starts = Vec::new();
    for _ in 0..bench.rounds(20, 5) {
        starts.push(Host::start_cold(bench)?.started_in().as_secs_f64() * 1e3);
    }
    table.absolute("cold start of the host, exec to connect", (median(&starts), "ms"), Goal::AtMost(10.0));

    let host = Host::start(bench)?;
    table.absolute("host RSS, idle", (kib_to_mb(host.status("VmRSS")?), "MB"), Goal::AtMost(3.0));
    let children = host.children()?;
    let family = children.iter().map(|&pid| status(pid, "RssAnon")).sum::<io::Result<u64>>()?;
    table.remark(format!(
        "idle host: {} processes below it with {:.2} MB of their own in all",
        children.len(),
        kib_to_mb(family)
    ));

    let span = Duration::from_secs(if bench.quick { 2 } else { 5 });
    let wakes = |pids: &[u32]| pids.iter().map(|&pid| status(pid, "voluntary_ctxt_switches")).sum::<io::Result<u64>>();
    let (before, below) = (host.status("voluntary_ctxt_switches")?, wakes(&children)?);
    std::thread::sleep(span);
    let woken = host.status("voluntary_ctxt_switches")? - before;
    let name = format!("idle host, wake-ups in {} s", span.as_secs());
    table.absolute(&name, (woken as f64, ""), Goal::AtMost(0.0));
    table.remark(format!("idle host: {} wake-ups of the processes below it", wakes(&children)? - below));
    Ok(())
}
