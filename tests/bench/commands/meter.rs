//! The CPU time of everything that one side of a comparison causes, counted by a control group.
//!
//! The kernel reaps the host's guards, so no process learns what they used. A control group counts them all: this
//! program is a member during a side's turn, and everything it starts then stays a member.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// The roots of version 1 and 2, and the file that has the count.
const ROOTS: [(&str, &str); 2] = [("/sys/fs/cgroup/cpuacct", "cpuacct.usage"), ("/sys/fs/cgroup", "cpu.stat")];
/// How long processes that are about to end may keep a group.
const EMPTY_MAX: Duration = Duration::from_secs(2);

/// A control group of one side; without the right to make one, nothing is counted.
#[derive(Debug)]
pub(crate) struct Meter {
    group: Option<(PathBuf, &'static str)>,
}

impl Meter {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("rexec-bench-{}-{name}", std::process::id());
        let group = ROOTS.into_iter().find_map(|(root, count)| {
            let group = Path::new(root).join(&name);
            fs::create_dir(&group).ok()?;
            let counts = group.join(count).exists() && fs::write(group.join("cgroup.procs"), "0").is_ok();
            if !counts {
                // An empty group that cannot count; nothing is left to do about it if it stays.
                drop(fs::remove_dir(&group));
            }
            counts.then_some((group, count))
        });
        Self { group }
    }

    /// Makes this program a member, until it enters another.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.group.as_ref().map_or(Ok(()), |(group, _)| fs::write(group.join("cgroup.procs"), "0"))
    }

    /// What all members have used so far.
    pub(crate) fn used(&self) -> io::Result<Option<Duration>> {
        let Some((group, count)) = &self.group else { return Ok(None) };
        let text = fs::read_to_string(group.join(count))?;
        let (number, unit) = match text.trim().strip_prefix("usage_usec ") {
            Some(rest) => (rest.split_whitespace().next().unwrap_or_default(), 1000),
            None => (text.trim(), 1),
        };
        let number: u64 = number.parse().map_err(|_| Error::other(format!("{count}: {text:?}")))?;
        Ok(Some(Duration::from_nanos(number * unit)))
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let Some((group, _)) = &self.group else { return };
        if let Some(root) = group.parent() {
            drop(fs::write(root.join("cgroup.procs"), "0"));
        }
        let asked = Instant::now();
        while fs::remove_dir(group).is_err() && asked.elapsed() < EMPTY_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What this program itself has used so far.
pub(crate) fn own() -> io::Result<Duration> {
    let usage: Usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(micros.cast_unsigned()))
}
