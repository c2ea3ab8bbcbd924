//! Numbers of processes, process groups and signals, each a type of its own, so that one is never taken for another;
//! and how a shell ends.

use std::fmt;

/// The number of a process. A session is named by the number of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(i32);

impl Pid {
    /// The process with this number.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// The process group that this process leads, or would lead.
    #[must_use]
    pub const fn as_group(self) -> ProcessGroup {
        ProcessGroup(self.0)
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a process group, which is that of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessGroup(i32);

impl ProcessGroup {
    /// The process group with this number.
    #[must_use]
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// The number of a signal, from 1 to 64. Real-time signals have no names, so it is not an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    /// SIGHUP.
    pub const HUP: Self = Self(1);
    /// SIGINT.
    pub const INT: Self = Self(2);
    /// SIGQUIT.
    pub const QUIT: Self = Self(3);
    /// SIGKILL.
    pub const KILL: Self = Self(9);
    /// SIGPIPE.
    pub const PIPE: Self = Self(13);
    /// SIGTERM.
    pub const TERM: Self = Self(15);

    /// The signal with this number.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// How a shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(u8),
    /// It died by this signal.
    Signal(Signal),
}

impl Exit {
    /// The code as shells report it: 128 + the signal for a death by signal.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.number().saturating_add(128),
        }
    }
}
