//! Facts about processes, read from /proc.

use std::collections::VecDeque;
use std::fs;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::waiting::{self, PATIENCE};

/// One process, as /proc/PID/stat tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) comm: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// When it started, in clock ticks: with the pid it names a process for ever.
    pub(crate) start: u64,
}

impl Process {
    /// Reads it; `None` when there is no such process.
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (open, close) = (text.find('(')?, text.rfind(')')?);
        let fields: Vec<&str> = text.get(close + 2..)?.split_ascii_whitespace().collect();
        let number = |n: usize| fields.get(n)?.parse().ok();
        Some(Self {
            pid,
            comm: text.get(open + 1..close)?.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            start: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether this very process still runs; a zombie does not.
    pub(crate) fn is_alive(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.start == self.start && now.state != 'Z')
    }

    pub(crate) fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }

    /// Its arguments, joined by blanks.
    pub(crate) fn command(&self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
    }

    /// Sends a signal, unless it has ended.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_alive() {
            _ = kill(Pid::from_raw(self.pid), signal);
        }
    }
}

/// Whether this pid is a process that runs.
pub(crate) fn is_alive(pid: i32) -> bool {
    Process::of(pid).is_some_and(|process| !process.is_zombie())
}

/// The children of a process, zombies included.
pub(crate) fn children(pid: i32) -> Vec<Process> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(list.split_ascii_whitespace().filter_map(|pid| Process::of(pid.parse().ok()?)));
    }
    found
}

/// Every process below this one, nearest first.
pub(crate) fn descendants(pid: i32) -> Vec<Process> {
    let (mut found, mut ahead) = (Vec::new(), VecDeque::from([pid]));
    while let Some(pid) = ahead.pop_front() {
        for child in children(pid) {
            ahead.push_back(child.pid);
            found.push(child);
        }
    }
    found
}

/// How often a process has slept.
pub(crate) fn sleeps(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Whether a process sleeps in poll(2) or epoll_wait(2).
pub(crate) fn is_polling(pid: i32) -> bool {
    #[cfg(target_arch = "x86_64")]
    const POLLS: &[libc::c_long] = &[libc::SYS_poll, libc::SYS_ppoll, libc::SYS_epoll_wait, libc::SYS_epoll_pwait];
    #[cfg(not(target_arch = "x86_64"))]
    const POLLS: &[libc::c_long] = &[libc::SYS_ppoll, libc::SYS_epoll_pwait];
    sleeps_in(pid, &["poll"], POLLS)
}

/// Returns true if a process sleeps in recvmsg(2) until something comes through a Unix socket.
pub(crate) fn waits_for_message(pid: i32) -> bool {
    sleeps_in(pid, &["unix_stream"], &[libc::SYS_recvmsg])
}

/// Returns true if a process sleeps in read(2) at a terminal, or in poll(2).
pub(crate) fn waits_for_keys(pid: i32) -> bool {
    is_polling(pid) || sleeps_in(pid, &["wait_woken", "n_tty_read"], &[libc::SYS_read])
}

/// Whether a process sleeps in one of these places of the kernel; where the kernel does not tell, in one of these calls;
/// where it does not tell that either, whether it sleeps. The state alone also says so of one that has lost its processor
/// on the way to another sleep, and the call alone says so of one that its tracer has stopped there.
fn sleeps_in(pid: i32, places: &[&str], calls: &[libc::c_long]) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/wchan")) {
        Ok(at) if !matches!(at.as_str(), "" | "0") => return places.iter().any(|place| at.contains(place)),
        // It runs, or the kernel does not tell.
        _ => {}
    }
    let is_asleep = Process::of(pid).is_some_and(|process| process.state == 'S');
    is_asleep
        && fs::read_to_string(format!("/proc/{pid}/syscall")).map_or(true, |call| {
            let number = call.split(' ').next().and_then(|number| number.parse().ok());
            number.is_some_and(|number| calls.contains(&number))
        })
}

/// Waits until a program below a host waits for somebody to take what it writes, and the host for something else: then
/// nothing more is written until the reader goes on.
pub(crate) fn wait_until_held(host: i32, writer: &str) -> Process {
    let find = || descendants(host).into_iter().find(|process| process.comm == writer);
    let found = waiting::until(PATIENCE, find).unwrap_or_else(|| panic!("there is no {writer}"));
    let sleeps = |pid: i32| Process::of(pid).is_some_and(|process| process.state == 'S');
    let both_sleep = || sleeps(found.pid) && sleeps(host);
    waiting::wait_until("the writer is held", || {
        let before = written(found.pid);
        both_sleep()
            && !waiting::until_true(Duration::from_millis(300), || !both_sleep())
            && written(found.pid) == before
    });
    found
}

/// The processor time that a process has used itself, as /proc counts it: in ticks of 10 ms.
pub(crate) fn processor_time(pid: i32) -> Duration {
    processor_time_of(&format!("/proc/{pid}/stat"))
}

/// The same of a process or thread whose file in /proc this is.
pub(crate) fn processor_time_of(path: &str) -> Duration {
    let text = fs::read_to_string(path).unwrap_or_default();
    // Behind the name, where `utime` and `stime` are the twelfth and the thirteenth field.
    let fields = text.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<u32>().ok()).map(|ticks| Duration::from_millis(10) * ticks).sum()
}

/// How many bytes a process has written so far, wherever to.
pub(crate) fn written(pid: i32) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let written = counts.lines().find_map(|line| line.strip_prefix("wchar: "));
    written.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("what {pid} has written is not known"))
}

/// How many descriptors a process has open.
pub(crate) fn descriptors(pid: i32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// What the descriptors of a process are, for a message.
pub(crate) fn descriptor_list(pid: i32) -> Vec<String> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let name = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        format!("{} → {}", entry.file_name().to_string_lossy(), target.display())
    };
    entries.flatten().map(name).collect()
}

/// The memory that a process has now, in bytes. Pages of its program's file are not counted: the kernel brings them in and
/// takes them away as it likes.
pub(crate) fn memory(pid: i32) -> u64 {
    numbers(pid, ["RssAnon:"])[0]
}

/// The space that a process has for its data now, in bytes, whether it has used all of it or not.
pub(crate) fn data(pid: i32) -> u64 {
    numbers(pid, ["VmData:"])[0]
}

/// The most space for its data that a process has ever had: beside it, there is only its program, which does not grow.
pub(crate) fn most_data(pid: i32) -> u64 {
    let [peak, size, data] = numbers(pid, ["VmPeak:", "VmSize:", "VmData:"]);
    peak - (size - data)
}

/// Numbers of kilobytes from one look at /proc/PID/status, in bytes; 0 when there is no such process.
fn numbers<const N: usize>(pid: i32, fields: [&str; N]) -> [u64; N] {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    fields.map(|field| {
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        line.split_ascii_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
    })
}
