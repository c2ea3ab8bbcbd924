//! Numbers of processes, process groups and signals, each a type of its own, so that one is never taken for another;
//! and how a shell ends.

use std::fmt;

/// The number of a process. A session is named by the number of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(i32);

impl Pid {
    #[must_use]
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

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
    #[must_use]
    pub const fn new(number: i32) -> Self {
        Self(number)
    }

    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }
}

/// The number of a signal, from 1 to 64. Real-time signals have no names, so it is not an enum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    pub const HUP: Self = Self(1);
    pub const INT: Self = Self(2);
    pub const QUIT: Self = Self(3);
    pub const KILL: Self = Self(9);
    pub const PIPE: Self = Self(13);
    pub const TERM: Self = Self(15);

    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(u8),
    Signal(Signal),
}

impl Exit {
    /// The code, as shells report it: 128 + the signal for a death by signal.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.number().saturating_add(128),
        }
    }
}
