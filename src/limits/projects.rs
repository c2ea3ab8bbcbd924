//! The bounds of project sessions.

/// Project sessions that are known. For one more project, the one that was idle for the longest is forgotten, if nobody
/// has defined it; if all are defined, another definition is refused.
pub const PROJECTS_MAX: usize = 256;
/// The longest directory of one, bytes.
pub const PROJECT_TEXT_BYTES: usize = 4_096;
/// The longest name, bytes.
pub const PROJECT_NAME_BYTES: usize = 64;
/// All variables of one, bytes.
pub const PROJECT_ENV_BYTES: usize = 64 << 10;
/// The first port that is given to a project session that wants ports …
pub const PROJECT_PORTS_FIRST: u16 = 3_100;
/// … in steps of this many, which is also the most that one gets …
pub const PROJECT_PORTS_MAX: u16 = 100;
/// … up to this one. Behind it the kernel chooses ports for connections (`ip_local_port_range`).
pub const PROJECT_PORTS_LAST: u16 = 32_600;
