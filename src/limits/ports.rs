//! The bounds of looks at the ports on which commands listen.

use std::time::Duration;

/// How long it is remembered on which ports commands listen, at least. In this time, no more is read for clients than
/// [`PORT_PROCESSES_MAX`] and [`PORT_DESCRIPTORS_MAX`] allow, however often they ask.
pub const PORTS_KNOWN: Duration = Duration::from_millis(250);
/// It is remembered for this many times as long as the looks took, so that many commands that are asked about again and
/// again cost less than a hundredth of a core …
pub const PORT_LOOKS_SHARE: u32 = 128;
/// … but no longer than this.
pub const PORTS_KNOWN_MAX: Duration = Duration::from_secs(2);
/// The same for looks at commands on whose ports somebody waits, who is to know soon …
pub const AWAITED_LOOKS_SHARE: u32 = 32;
/// … and the longest pause between two of these.
pub const AWAITED_LOOK_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Network namespaces whose sockets are read in one look. Ports of processes in further ones are not found.
pub const PORT_NAMESPACES_MAX: usize = 4;
/// Ports that a record and the console name of one left-over process.
pub const PORTS_NAMED_MAX: usize = 4;
/// Processes that one look for listening ports visits, or all looks within [`PORTS_KNOWN`]. Ports of further ones are not
/// found.
pub const PORT_PROCESSES_MAX: usize = 256;
/// Descriptors of all these processes that one look reads. Each takes about a microsecond, and the host waits for it.
pub const PORT_DESCRIPTORS_MAX: usize = 4_096;
/// Processes of all commands in a list whose ports are looked for. The commands behind them have no ports in the list.
pub const PORT_LIST_PROCESSES_MAX: usize = 64;
/// After a look for the command that holds a port, none for this long: a loop of failing commands costs no more.
pub const PORT_HOLDER_PAUSE: Duration = Duration::from_millis(250);
