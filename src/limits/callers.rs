//! Bounds of what is known about callers.

/// Bytes of an agent's session, call or version. The rest is cut.
pub const CALLER_ID_BYTES: usize = 80;
/// Processes above a shim that are looked at for the agent that calls. Beyond them it has no name.
pub const ANCESTORS_MAX: usize = 12;
/// Parents of shims for which it is remembered which agent is above. The oldest one is looked at again.
pub const ANCESTORS_KNOWN_MAX: usize = 64;
