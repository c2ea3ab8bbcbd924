//! Bounds of what is known about callers.

use std::time::Duration;

/// Bytes of an agent's session, call or version. The rest is cut.
pub const CALLER_ID_BYTES: usize = 80;
/// Processes above a shim that are looked at for the agent that calls. Beyond them it has no name.
pub const ANCESTORS_MAX: usize = 12;
/// Parents of shims for which it is remembered which agent is above. The oldest one is looked at again.
pub const ANCESTORS_KNOWN_MAX: usize = 64;
/// Callers whose unseen commands are told apart. Those of others are counted together.
pub const UNSEEN_CALLERS_MAX: usize = 8;
/// How long notes of unseen commands gather before a host takes them.
pub const UNSEEN_GATHER: Duration = Duration::from_secs(1);
/// How often a host tries to take notes that a process holds. Then it waits for another one.
pub const UNSEEN_TRIES_MAX: u32 = 5;
/// Agents of `rexec run` for which a host stays. It may end, when it is idle, while another one runs.
pub const AGENTS_AWAITED_MAX: usize = 256;
/// How old an agent of `rexec run` is before it is told that none of its commands comes, and how often it is looked at until
/// one does.
pub const SILENT_AGENT_AGE: Duration = Duration::from_secs(60);
pub const SILENT_AGENT_LOOK_EVERY: Duration = Duration::from_secs(15);
/// Files of /proc that one such look reads. Shells that it does not reach are not found.
pub const SILENT_AGENT_READS_MAX: usize = 256;
/// The longest time for `--end-idle`. More is refused.
pub const END_IDLE_MAX: Duration = Duration::from_secs(7 * 24 * 3_600);
/// A host with `--end-idle` that has had no agent yet ends no earlier than this long after its start.
pub const END_IDLE_FIRST: Duration = Duration::from_secs(60);
/// When a host ends that `rexec run` has started and nobody needs, minutes.
pub const END_IDLE_MINUTES: u64 = 30;
