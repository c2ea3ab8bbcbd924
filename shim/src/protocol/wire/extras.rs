//! Attributes at the end of a RUN frame that differ from a fresh login's, and fields that only the host sets.
//!
//! Each entry is a tag of one byte, a length of four bytes, and the value. Invariants: an attribute with its default takes
//! no byte; a value of the wrong size is an error, and so is an unknown tag below [`OPTIONAL`]. Other unknown tags are
//! skipped.

use std::ffi::{CStr, CString};

use super::fields::{Fields, put_bytes};
use super::{WHY_BYTES_MAX, WireError};

/// The default of `/proc/PID/coredump_filter` (core(5)).
pub const COREDUMP_FILTER: u32 = 0x33;
/// The default timer slack, nanoseconds (prctl(2), `PR_SET_TIMERSLACK`).
pub const TIMER_SLACK_NS: u64 = 50_000;
/// The longest list of control groups, bytes.
const CGROUPS_BYTES_MAX: usize = 64 << 10;
/// The longest directory, bytes. The kernel takes only shorter paths (`PATH_MAX`).
const DIRECTORY_BYTES_MAX: usize = 64 << 10;

/// Tags from here on are optional: a reader that does not know them runs the same command.
const OPTIONAL: u8 = 0x80;

const DIRECTORY: u8 = 1;
const CGROUPS: u8 = 2;
const IO_PRIORITY: u8 = 3;
const SCHEDULER: u8 = 4;
const PERSONALITY: u8 = 5;
const TIMER_SLACK: u8 = 6;
const COREDUMP: u8 = 7;
const NO_HUGE_PAGES: u8 = 8;
const LIVE: u8 = 9;
const PROJECT: u8 = 10;
const AGENT: u8 = 11;
const BUDGET: u8 = 12;
const VARIABLE: u8 = 13;
const TIMEOUT: u8 = 14;
const WHY: u8 = 15;
const DIRECT: u8 = 16;
const KEEPS_NOTHING: u8 = OPTIONAL;

/// Attributes that few callers change, and fields that only the host sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extras {
    /// The working directory by its path, in place of a descriptor. From the host only.
    pub directory: Option<CString>,
    /// The `cgroup.procs` files of the caller's control groups, each followed by a NUL. From the host only.
    pub cgroups: Vec<u8>,
    /// ioprio_get(2); 0 if it follows the nice value.
    pub io_priority: i32,
    /// Policy of sched(7), and its priority; 0 and 0 for the usual one.
    pub scheduler: (i32, i32),
    /// personality(2), as `setarch -R` sets it.
    pub personality: u32,
    /// `PR_SET_TIMERSLACK` of prctl(2), nanoseconds.
    pub timer_slack_ns: u64,
    /// `/proc/PID/coredump_filter`.
    pub coredump_filter: u32,
    /// `PR_SET_THP_DISABLE` of prctl(2).
    pub no_huge_pages: bool,
    /// True if runtimes are asked not to buffer output on pipes. `None`: the host's choice holds.
    pub live: Option<bool>,
    /// The number of directories from the working directory up to the top of its git project. For people only.
    pub project: Option<u8>,
    /// The agent that `rexec run` has started: the number of its process, a colon, and its name. Empty for others. For
    /// people only.
    pub agent: Vec<u8>,
    /// The caller's part of the output. `None`: the host's choice holds.
    pub budget: Option<OutputBudget>,
    /// Variables (`NAME=value`) of the command besides its caller's. Each replaces those of its name. From the host
    /// only.
    pub variables: Vec<CString>,
    /// The time limit in milliseconds; 0 means none.
    pub timeout_ms: u64,
    /// The command's purpose, in the caller's words. For people only.
    pub why: Vec<u8>,
    /// The command is a program, searched as by execvp(3), and not a shell. `None` for a shell.
    pub direct: Option<Direct>,
    /// True if nothing is kept of what the command may destroy.
    pub keeps_nothing: bool,
}

/// The source of the environment of a program that is started without a shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direct {
    /// The caller's environment.
    #[default]
    Caller,
    /// The host's environment. The frame's entries are added, and replace those with their names.
    Host,
    /// The frame's entries alone.
    Bare,
}

impl Direct {
    /// All of them, in the order of their numbers on the wire.
    pub const ALL: [Self; 3] = [Self::Caller, Self::Host, Self::Bare];

    /// The word for it on the shim's command line.
    #[must_use]
    pub const fn word(self) -> &'static CStr {
        match self {
            Self::Caller => c"caller",
            Self::Host => c"host",
            Self::Bare => c"bare",
        }
    }

    #[must_use]
    pub fn named(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|direct| direct.word().to_bytes() == word)
    }
}

/// The size of a caller's part of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputBudget {
    /// Bytes of each stream; zero means all.
    pub bytes: u32,
    /// True if the caller's descriptor 1 is a regular file.
    pub is_file: bool,
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            directory: None,
            cgroups: Vec::new(),
            io_priority: 0,
            scheduler: (0, 0),
            personality: 0,
            timer_slack_ns: TIMER_SLACK_NS,
            coredump_filter: COREDUMP_FILTER,
            no_huge_pages: false,
            live: None,
            project: None,
            agent: Vec::new(),
            budget: None,
            variables: Vec::new(),
            timeout_ms: 0,
            why: Vec::new(),
            direct: None,
            keeps_nothing: false,
        }
    }
}

impl Extras {
    /// Returns true if a field is set that only the host may set.
    #[must_use]
    pub fn are_the_hosts(&self) -> bool {
        self.directory.is_some() || !self.cgroups.is_empty() || !self.variables.is_empty()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let usual = Self::default();
        if let Some(directory) = &self.directory {
            put(out, DIRECTORY, directory.to_bytes());
        }
        if !self.cgroups.is_empty() {
            put(out, CGROUPS, &self.cgroups);
        }
        if self.io_priority != usual.io_priority {
            put(out, IO_PRIORITY, &self.io_priority.to_le_bytes());
        }
        if self.scheduler != usual.scheduler {
            let (policy, priority) = self.scheduler;
            put(out, SCHEDULER, &[policy.to_le_bytes(), priority.to_le_bytes()].concat());
        }
        if self.personality != usual.personality {
            put(out, PERSONALITY, &self.personality.to_le_bytes());
        }
        if self.timer_slack_ns != usual.timer_slack_ns {
            put(out, TIMER_SLACK, &self.timer_slack_ns.to_le_bytes());
        }
        if self.coredump_filter != usual.coredump_filter {
            put(out, COREDUMP, &self.coredump_filter.to_le_bytes());
        }
        if self.no_huge_pages {
            put(out, NO_HUGE_PAGES, &[]);
        }
        if let Some(live) = self.live {
            put(out, LIVE, &[u8::from(live)]);
        }
        if let Some(depth) = self.project {
            put(out, PROJECT, &[depth]);
        }
        if !self.agent.is_empty() {
            put(out, AGENT, &self.agent);
        }
        if let Some(OutputBudget { bytes, is_file }) = self.budget {
            let [a, b, c, d] = bytes.to_le_bytes();
            put(out, BUDGET, &[a, b, c, d, u8::from(is_file)]);
        }
        self.variables.iter().for_each(|entry| put_variable(entry, out));
        if self.timeout_ms > 0 {
            put(out, TIMEOUT, &self.timeout_ms.to_le_bytes());
        }
        if !self.why.is_empty() {
            put(out, WHY, &self.why[..self.why.len().min(WHY_BYTES_MAX)]);
        }
        if let Some(direct) = self.direct {
            put(out, DIRECT, &[direct as u8]);
        }
        if self.keeps_nothing {
            put(out, KEEPS_NOTHING, &[]);
        }
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, WireError> {
        let mut extras = Self::default();
        while !fields.is_empty() {
            let [tag] = fields.array()?;
            let most = if tag == CGROUPS { CGROUPS_BYTES_MAX } else { DIRECTORY_BYTES_MAX };
            let value = fields.bytes(most, "an attribute that is too long")?;
            extras.take(tag, value).ok_or(WireError::Malformed("an attribute that is unknown or of a wrong size"))?;
        }
        Ok(extras)
    }

    fn take(&mut self, tag: u8, value: &[u8]) -> Option<()> {
        match tag {
            DIRECTORY => self.directory = Some(CString::new(value).ok()?),
            CGROUPS => self.cgroups = value.to_vec(),
            IO_PRIORITY => self.io_priority = i32::from_le_bytes(value.try_into().ok()?),
            SCHEDULER => {
                let (policy, priority) = value.split_at_checked(4)?;
                let number = |bytes: &[u8]| Some(i32::from_le_bytes(bytes.try_into().ok()?));
                self.scheduler = (number(policy)?, number(priority)?);
            }
            PERSONALITY => self.personality = u32::from_le_bytes(value.try_into().ok()?),
            TIMER_SLACK => self.timer_slack_ns = u64::from_le_bytes(value.try_into().ok()?),
            COREDUMP => self.coredump_filter = u32::from_le_bytes(value.try_into().ok()?),
            NO_HUGE_PAGES if value.is_empty() => self.no_huge_pages = true,
            PROJECT => match value {
                [depth] => self.project = Some(*depth),
                _ => return None,
            },
            AGENT => self.agent = value.to_vec(),
            VARIABLE if value.contains(&b'=') => self.variables.push(CString::new(value).ok()?),
            BUDGET => match value {
                [bytes @ .., is_file @ (0 | 1)] => {
                    let bytes = u32::from_le_bytes(bytes.try_into().ok()?);
                    self.budget = Some(OutputBudget { bytes, is_file: *is_file == 1 });
                }
                _ => return None,
            },
            TIMEOUT => self.timeout_ms = u64::from_le_bytes(value.try_into().ok()?),
            WHY if value.len() <= WHY_BYTES_MAX => self.why = value.to_vec(),
            DIRECT => match value {
                [direct] => self.direct = Some(*Direct::ALL.get(usize::from(*direct))?),
                _ => return None,
            },
            LIVE => match value {
                [on @ (0 | 1)] => self.live = Some(*on == 1),
                _ => return None,
            },
            KEEPS_NOTHING if value.is_empty() => self.keeps_nothing = true,
            OPTIONAL.. => {}
            _ => return None,
        }
        Some(())
    }
}

fn put(out: &mut Vec<u8>, tag: u8, value: &[u8]) {
    out.push(tag);
    put_bytes(out, value);
}

pub(super) fn put_cgroups(cgroups: &[u8], out: &mut Vec<u8>) {
    put(out, CGROUPS, cgroups);
}

pub(super) fn put_variable(entry: &CStr, out: &mut Vec<u8>) {
    put(out, VARIABLE, entry.to_bytes());
}
