//! The attributes that a command inherits from its caller, and their form in the RUN frame.
//!
//! Invariants: encoded attributes decode to the same; numbers, counts and flags beyond their bounds are errors.

use super::extras::Extras;
use super::fields::{Fields, put_bytes};
use super::{AFFINITY_BYTES_MAX, INHERITED_MAX, LIMITS_MAX, WireError};
use crate::protocol::choice::{Sanitize, Tty};

/// The kinds of the caller's descriptors 0, 1 and 2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stdio {
    /// Descriptor 0 is open. It travels with the frame, after the working directory.
    pub stdin: bool,
    /// Descriptor 1 is open.
    pub stdout: bool,
    /// Descriptor 2 is open.
    pub stderr: bool,
    /// Descriptors 1 and 2 are one open file description, or one terminal.
    pub same_output: bool,
    /// Descriptor 0 is a terminal.
    pub stdin_tty: bool,
    /// Descriptor 1 is a terminal; if `relayed` is set, the same one.
    pub stdout_tty: bool,
    /// Descriptor 2 is a terminal.
    pub stderr_tty: bool,
    /// Descriptor 0 and an output are the caller's controlling terminal. The shim can pass its keys on.
    pub relayed: bool,
    /// Descriptor 0 is the caller's controlling terminal, and the caller is not in its foreground.
    pub background: bool,
    /// The caller leads the session of that terminal. Without one: it is in its session leader's process group, which is
    /// orphaned, so that no key and no SIGTSTP stops its members (setpgid(2)).
    pub leader: bool,
    /// The shim passes keys on only while the command asks for them, because other processes may read that terminal.
    /// Without `relayed`, an output is the controlling terminal, which then travels after descriptor 0.
    pub on_demand: bool,
}

impl Stdio {
    /// Returns true if the caller's terminal travels as a descriptor of its own, because descriptor 0 is something
    /// else.
    #[must_use]
    pub fn brings_terminal(self) -> bool {
        self.on_demand && !self.relayed
    }

    fn bits(self) -> u16 {
        let flags = [
            self.stdin,
            self.stdout,
            self.stderr,
            self.same_output,
            self.stdout_tty,
            self.stderr_tty,
            self.stdin_tty,
            self.relayed,
            self.background,
            self.leader,
            self.on_demand,
        ];
        flags.iter().enumerate().fold(0, |bits, (n, &on)| bits | u16::from(on) << n)
    }

    fn from_bits(bits: u16) -> Option<Self> {
        let on = |n: u16| bits & 1 << n != 0;
        (bits < 1 << 11).then(|| Self {
            stdin: on(0),
            stdout: on(1),
            stderr: on(2),
            same_output: on(3),
            stdout_tty: on(4),
            stderr_tty: on(5),
            stdin_tty: on(6),
            relayed: on(7),
            background: on(8),
            leader: on(9),
            on_demand: on(10),
        })
    }
}

/// The process attributes that a command inherits from its caller (fork(2), execve(2)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Descriptors 0, 1 and 2.
    pub stdio: Stdio,
    /// The descriptors that are the command's terminal. `None`: the host's choice holds.
    pub tty: Option<Tty>,
    /// The treatment of the output. `None`: the host's choice holds.
    pub sanitize: Option<Sanitize>,
    pub umask: u32,
    /// Nice value, −20 to 19.
    pub nice: i32,
    /// /proc/PID/oom_score_adj.
    pub oom_score_adj: i32,
    /// Ignored signals; bit N−1 is signal N.
    pub ignored: u64,
    /// Blocked signals; bit N−1 is signal N.
    pub blocked: u64,
    /// Window size, rows; 0 if unknown.
    pub rows: u16,
    /// Window size, columns; 0 if unknown.
    pub cols: u16,
    /// Soft and hard limit of each resource, in the order of their numbers.
    pub limits: Vec<(u64, u64)>,
    /// The mask of sched_setaffinity(2); empty if unknown.
    pub affinity: Vec<u8>,
    /// Numbers of the inherited descriptors from 3 up, in the order in which they travel, after directory and stdin.
    pub inherited: Vec<i32>,
    /// Attributes that few callers change.
    pub extras: Extras,
}

pub(super) fn encode(a: &Attributes, out: &mut Vec<u8>) {
    out.extend_from_slice(&a.stdio.bits().to_le_bytes());
    out.push(a.tty.map_or(0, |tty| tty as u8 + 1));
    out.push(a.sanitize.map_or(0, |sanitize| sanitize as u8 + 1));
    out.extend_from_slice(&a.umask.to_le_bytes());
    out.extend_from_slice(&a.nice.to_le_bytes());
    out.extend_from_slice(&a.oom_score_adj.to_le_bytes());
    out.extend_from_slice(&a.ignored.to_le_bytes());
    out.extend_from_slice(&a.blocked.to_le_bytes());
    out.extend_from_slice(&a.rows.to_le_bytes());
    out.extend_from_slice(&a.cols.to_le_bytes());
    let limits = &a.limits[..a.limits.len().min(LIMITS_MAX)];
    out.push(u8::try_from(limits.len()).expect("bounded by LIMITS_MAX"));
    for (soft, hard) in limits {
        out.extend_from_slice(&soft.to_le_bytes());
        out.extend_from_slice(&hard.to_le_bytes());
    }
    put_bytes(out, &a.affinity[..a.affinity.len().min(AFFINITY_BYTES_MAX)]);
    let inherited = &a.inherited[..a.inherited.len().min(INHERITED_MAX)];
    out.push(u8::try_from(inherited.len()).expect("bounded by INHERITED_MAX"));
    for fd in inherited {
        out.extend_from_slice(&fd.to_le_bytes());
    }
}

pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Attributes, WireError> {
    let bits = u16::from_le_bytes(fields.array()?);
    let stdio = Stdio::from_bits(bits).ok_or(WireError::Malformed("unknown flags of the descriptors"))?;
    let tty = fields.choice(&Tty::ALL, "an unknown use of the terminal")?;
    let sanitize = fields.choice(&Sanitize::ALL, "an unknown treatment of output")?;
    let (umask, nice, oom_score_adj) = (fields.u32()?, fields.i32()?, fields.i32()?);
    let (ignored, blocked) = (fields.u64()?, fields.u64()?);
    let (rows, cols) = (u16::from_le_bytes(fields.array()?), u16::from_le_bytes(fields.array()?));
    let count = fields.count(LIMITS_MAX, "too many resource limits")?;
    let limits = (0..count).map(|_| Ok((fields.u64()?, fields.u64()?))).collect::<Result<_, WireError>>()?;
    let affinity = fields.bytes(AFFINITY_BYTES_MAX, "a CPU mask that is too long")?.to_vec();
    let count = fields.count(INHERITED_MAX, "too many inherited descriptors")?;
    let inherited = (0..count).map(|_| fields.i32()).collect::<Result<Vec<_>, WireError>>()?;
    if inherited.iter().any(|&fd| fd < 3) {
        return Err(WireError::Malformed("an inherited descriptor below 3"));
    }
    Ok(Attributes {
        stdio,
        tty,
        sanitize,
        umask,
        nice,
        oom_score_adj,
        ignored,
        blocked,
        rows,
        cols,
        limits,
        affinity,
        inherited,
        extras: Extras::default(),
    })
}
