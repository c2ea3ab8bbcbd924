//! Shims that are stopped with their commands' shells, and go on with them.
//!
//! A process other than the caller may continue or kill a stopped shell. Its shim is stopped then and cannot be told, or is
//! about to stop because the message is still on its way. The host looks at the shim until it is stopped, and continues it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Runs;
use crate::core::engine::JobId;
use crate::host::peers::Peers;
use crate::host::terminal_relay::RelayEvent;
use crate::limits;
use crate::sys::confinement::ConnectedProcess;
use rexec_sh::protocol::process::Signal;

/// A shim that has to go on.
#[derive(Debug)]
struct StoppedShim {
    /// It outlives the connection, which ends with the command.
    process: ConnectedProcess,
    /// The number of stop messages after which it has to go on. It stops once for each, also for those that came while
    /// it was stopped.
    stops: u32,
    at: Instant,
    /// The time from that look to the next one.
    pause: Duration,
}

/// The shims that have to go on, by their commands.
#[derive(Debug, Default)]
pub(super) struct ShimsToContinue(BTreeMap<JobId, StoppedShim>);

impl ShimsToContinue {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.0.values().map(|shim| shim.at).min()
    }
}

impl Runs {
    pub(super) fn on_shell_stopped(&mut self, job: JobId, signal: Signal, peers: &mut Peers, now: Instant) {
        // A parent is not told that a child went on which stopped again before it looked (waitpid(2)).
        self.on_shell_continued(job, peers, now);
        if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.is_stopped = true;
        }
        self.tell_in_place(job, RelayEvent::Stopped(signal), peers);
    }

    /// The shell goes on after a stop, or has ended. If its caller did not continue it, another process did, and would have
    /// continued the caller in its place.
    pub(super) fn on_shell_continued(&mut self, job: JobId, peers: &Peers, now: Instant) {
        let Some(run) = self.get_mut(job) else { return };
        let was_stopped = run.relay.as_mut().is_some_and(|relay| std::mem::take(&mut relay.is_stopped));
        if let Some(process) = run.peer.filter(|_| was_stopped).and_then(|peer| peers.shim_process(peer)) {
            let pause = limits::STOPPED_SHIM_LOOK;
            let shim = self.to_continue.0.entry(job).or_insert(StoppedShim { process, stops: 0, at: now, pause });
            (shim.stops, shim.at, shim.pause) = (shim.stops + 1, now, pause);
        }
    }

    /// The caller goes on. Returns true if the command goes on with it: not where the host has continued the caller, because
    /// its shell went on before, and may have been stopped once more since then.
    pub(super) fn on_caller_continued(&mut self, job: JobId) -> bool {
        let relay = self.get_mut(job).and_then(|run| run.relay.as_mut());
        // On demand, a caller that was stopped while it had given its terminal back does not say that it goes on.
        if let Some(relay) = relay.filter(|relay| relay.continued > 0 && !relay.is_on_demand) {
            relay.continued -= 1;
            return false;
        }
        self.to_continue.0.remove(&job);
        if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.is_stopped = false;
        }
        true
    }

    pub(in crate::host) fn tick_stops(&mut self, now: Instant) {
        let mut continued = Vec::new();
        self.to_continue.0.retain(|job, shim| {
            if shim.at > now {
                return true;
            }
            if shim.process.continue_if_stopped() {
                (shim.stops, shim.pause) = (shim.stops - 1, limits::STOPPED_SHIM_LOOK);
                continued.push(*job);
            }
            let is_done = shim.stops == 0 || shim.pause > limits::STOPPED_SHIM_LOOK_MAX;
            shim.at = now + shim.pause;
            shim.pause *= 2;
            !is_done
        });
        for job in continued {
            if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
                relay.continued += 1;
            }
        }
    }
}
