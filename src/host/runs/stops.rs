//! Shims that are stopped with their commands' shells, and go on with them.
//!
//! A process other than the caller may continue or kill a stopped shell. Its shim is stopped then and cannot be told, or is
//! about to stop because the message is still on its way. The host looks at the shim until it is stopped, and continues it.

use std::time::{Duration, Instant};

use super::{Due, Runs};
use crate::core::engine::JobId;
use crate::host::peers::Peers;
use crate::host::terminal_relay::RelayEvent;
use crate::limits;
use crate::sys::confinement::ConnectedProcess;
use rexec_sh::protocol::process::Signal;

/// A shim that has to go on.
#[derive(Debug)]
pub(super) struct StoppedShim {
    /// It outlives the connection, which ends with the command.
    process: ConnectedProcess,
    /// The number of stop messages after which it has to go on. It stops once for each, also for those that came while
    /// it was stopped.
    stops: u32,
    /// The time from the look that is due to the next one.
    pause: Duration,
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
            let shim = self.to_continue.entry(job).or_insert(StoppedShim { process, stops: 0, pause });
            (shim.stops, shim.pause) = (shim.stops + 1, pause);
            self.timers.set(Due::StoppedShim(job), now);
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
        self.to_continue.remove(&job);
        self.timers.cancel(Due::StoppedShim(job));
        if let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.is_stopped = false;
        }
        true
    }

    /// Continues the shim of a command if it is stopped by now, and looks again until it went on often enough.
    pub(super) fn continue_shim(&mut self, job: JobId, now: Instant) {
        let Some(shim) = self.to_continue.get_mut(&job) else { return };
        let is_continued = shim.process.continue_if_stopped();
        if is_continued {
            (shim.stops, shim.pause) = (shim.stops - 1, limits::STOPPED_SHIM_LOOK);
        }
        if shim.stops == 0 || shim.pause > limits::STOPPED_SHIM_LOOK_MAX {
            self.to_continue.remove(&job);
        } else {
            self.timers.set(Due::StoppedShim(job), now + shim.pause);
            shim.pause *= 2;
        }
        if is_continued && let Some(relay) = self.get_mut(job).and_then(|run| run.relay.as_mut()) {
            relay.continued += 1;
        }
    }
}
