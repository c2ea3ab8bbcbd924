//! The resources of processes: processor time, memory and listening ports, read from /proc.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::Duration;

use nix::libc;

use super::looker::{self, Look};
use super::stat::StatLine;
use rexec_sh::protocol::process::Pid;

/// Descriptors of a process that are searched for listening sockets.
const DESCRIPTORS_MAX: usize = 4_096;

/// Links that are read together.
const LINKS_AT_ONCE: usize = 256;

/// More calls than any program makes that does more than reading.
const MANY_CALLS: u64 = 10_000;

/// The resources of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of the process itself.
    pub own_time: Duration,
    /// Processor time of the reaped children, and of theirs.
    pub children_time: Duration,
    /// Resident memory, bytes. Pages that processes share count for each of them.
    pub resident: u64,
}

/// Reads the resources of one process; `None` if it is gone.
#[must_use]
pub fn of(pid: Pid) -> Option<ProcessUsage> {
    let line = looker::file(&format!("{pid}/stat")).ok()?;
    let stat = StatLine::read(&line)?;
    let ticks = |place| stat.field::<u64>(place).unwrap_or(0);
    Some(ProcessUsage {
        own_time: time(ticks(14) + ticks(15)),
        children_time: time(ticks(16) + ticks(17)),
        resident: ticks(24).saturating_mul(setting(libc::_SC_PAGESIZE)),
    })
}

/// The time since boot in clock ticks, the unit of processes' starts.
#[must_use]
pub fn ticks_since_boot() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    let each = setting(libc::_SC_CLK_TCK);
    seconds * each + nanoseconds * each / 1_000_000_000
}

/// The age of a process, from its start in clock ticks since boot.
#[must_use]
pub fn age(start: u64) -> Duration {
    time(ticks_since_boot().saturating_sub(start))
}

/// The reads of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Calls of read(2) and its like.
    calls: u64,
    /// The bytes that they returned.
    bytes: u64,
}

impl Reads {
    /// Returns true if the process has called again and again since then, and got nothing.
    #[must_use]
    pub fn are_empty_since(self, before: Self) -> bool {
        self.calls.saturating_sub(before.calls) > MANY_CALLS && self.bytes == before.bytes
    }
}

/// The reads of a process so far; `None` if it is gone or another user's, or if the kernel does not count.
#[must_use]
pub fn reads(pid: Pid) -> Option<Reads> {
    let text = looker::file(&format!("{pid}/io")).ok()?;
    let text = std::str::from_utf8(&text).ok()?;
    let count = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Reads { calls: count("syscr:")?, bytes: count("rchar:")? })
}

/// Clock ticks as a time.
fn time(ticks: u64) -> Duration {
    let each = setting(libc::_SC_CLK_TCK);
    Duration::from_millis(ticks.saturating_mul(1_000) / each)
}

/// A setting of the system that is never 0.
fn setting(name: libc::c_int) -> u64 {
    // SAFETY: the call takes a number.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).unwrap_or(1).max(1)
}

/// The listening TCP sockets of network namespaces, each read once.
#[derive(Debug)]
pub struct Listening {
    /// By namespace: the port of each listening socket, by the socket's inode.
    known: BTreeMap<Vec<u8>, BTreeMap<u64, u16>>,
    /// Descriptors that may still be examined.
    budget: usize,
}

impl Default for Listening {
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl Listening {
    /// Limits the descriptors examined in all processes together, so that the time is bounded.
    #[must_use]
    pub fn within(budget: usize) -> Self {
        Self { known: BTreeMap::new(), budget }
    }

    /// The ports on which a process listens, smallest first. Empty if this user may not read the process's descriptors.
    pub fn ports(&mut self, pid: Pid) -> Vec<u16> {
        let Ok(namespace) = looker::link(&format!("{pid}/ns/net")) else { return Vec::new() };
        let is_new = !self.known.contains_key(&namespace);
        if is_new && self.known.len() >= crate::limits::PORT_NAMESPACES_MAX {
            return Vec::new();
        }
        let sockets = self.known.entry(namespace).or_insert_with(|| sockets(pid));
        if sockets.is_empty() {
            return Vec::new();
        }
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
        let mut ports = Vec::new();
        let entries = descriptors.flatten().take(DESCRIPTORS_MAX.min(self.budget));
        let links: Vec<String> = entries.map(|entry| format!("{pid}/fd/{}", entry.file_name().display())).collect();
        self.budget -= links.len();
        for some in links.chunks(LINKS_AT_ONCE) {
            let looks: Vec<Look<'_>> = some.iter().map(|link| Look::Link(link)).collect();
            let Ok(found) = looker::all(&looks) else { break };
            let inode = |link: &[u8]| {
                std::str::from_utf8(link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?).ok()?.parse().ok()
            };
            ports.extend(found.into_iter().flatten().filter_map(|link| sockets.get(&inode(&link)?)));
        }
        ports.sort_unstable();
        ports.dedup();
        ports
    }
}

/// The port of each listening socket in a process's network namespace, by inode. See proc_pid_net(5).
fn sockets(pid: Pid) -> BTreeMap<u64, u16> {
    let table = |name| File::open(format!("/proc/{pid}/net/{name}")).map(BufReader::new);
    let tables = ["tcp", "tcp6"].into_iter().flat_map(|name| table(name).ok());
    // The kernel lists the listening sockets first, and there may be many others.
    tables.flat_map(|table| table.lines().map_while(Result::ok).skip(1).map_while(|line| listening(&line))).collect()
}

/// A line of /proc/net/tcp as inode and port, if the socket listens.
fn listening(line: &str) -> Option<(u64, u16)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let port = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
    (*state == LISTEN).then_some((inode.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::process;

    #[test]
    fn a_listening_port_and_the_memory_of_this_process_are_seen() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let me = process::pid();
        assert!(Listening::default().ports(me).contains(&port));
        assert!(of(me).unwrap().resident > 100_000);
        assert_eq!(of(Pid::new(i32::MAX)), None);
        assert_eq!(listening("  sl  local_address rem_address   st tx_queue"), None);
        let line = "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 4711 1 0 100 0";
        assert_eq!(listening(line), Some((4711, 8000)));
    }
}
