//! The language between the host and a guard, over their control socket: private, of one version, of fixed sizes.
//!
//! ```text
//! host ▶ guard   the plan and the RUN frame (with descriptors), then orders of two bytes
//! guard ▶ host   reports of 32 bytes: BEGUN before anything of the command is there, HUNTING when it has the order to kill;
//!                the socket's end is the end of the guard
//! ```

use std::time::Duration;

use crate::core::job::Order;
use crate::sys::program::Program;
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// Plan bit: descriptor 1 is a pipe that travels behind the RUN frame's own descriptors.
pub const PLAN_OUT_PIPE: u16 = 1;
/// Plan bit: descriptor 2 is a pipe that travels last.
pub const PLAN_ERR_PIPE: u16 = 2;
/// Plan bit: descriptor 2 is the same pipe as descriptor 1.
pub const PLAN_ERR_IS_OUT: u16 = 4;
/// Plan bit: what is left of the shell's group is killed when the caller has its result, and if the host goes away.
pub const PLAN_KILL_GROUP: u16 = 8;
/// Plan bit: the terminal is for output whatever the caller has, so pagers and TERM get their defaults.
pub const PLAN_DEFAULTS: u16 = 16;
/// Plan bit: descriptor 0 is the run's terminal, and not the descriptor that travels.
pub const PLAN_IN_TTY: u16 = 32;
/// Plan bit: the terminal stands for the caller's, which its shim relays. Who stops at it is left stopped; when the shell
/// is, the host is told.
pub const PLAN_RELAYED: u16 = 64;
/// Plan bit: the shell begins in the foreground of that terminal.
pub const PLAN_FOREGROUND: u16 = 128;
/// Plan bit: the shell leads a session of its own, which that terminal controls. Its group is then orphaned, as its
/// caller's is: SIGTSTP, SIGTTIN and SIGTTOU stop none of its members (setpgid(2)).
pub const PLAN_LEADER: u16 = 256;
/// Plan bit: output is a pipe and is not to be held back, so the variables are set by which runtimes do not buffer it.
pub const PLAN_LIVE: u16 = 512;
/// Plan bit: that terminal is the caller's, but keys come only while the command asks for them; the caller's terminal
/// travels behind descriptor 0, unless it is that.
pub const PLAN_ON_DEMAND: u16 = 1024;
/// Size of a plan, bytes: its bits, then milliseconds of grace, little-endian.
pub const PLAN_BYTES: usize = 6;

/// How a guard runs its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plan {
    /// Some of the bits above.
    pub bits: u16,
    /// From the death of a shell that its caller has signalled to the end of its group.
    pub grace: Duration,
}

impl Plan {
    /// Whether this bit is set.
    #[must_use]
    pub fn has(self, bit: u16) -> bool {
        self.bits & bit != 0
    }

    /// The bytes of it.
    #[must_use]
    pub fn encode(self) -> [u8; PLAN_BYTES] {
        let ([a, b], grace) = (self.bits.to_le_bytes(), u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX));
        let [c, d, e, f] = grace.to_le_bytes();
        [a, b, c, d, e, f]
    }

    /// Reads one.
    #[must_use]
    pub fn decode([a, b, c, d, e, f]: [u8; PLAN_BYTES]) -> Self {
        let grace = Duration::from_millis(u32::from_le_bytes([c, d, e, f]).into());
        Self { bits: u16::from_le_bytes([a, b]), grace }
    }
}
/// Size of an order, bytes.
pub const ORDER_BYTES: usize = 2;
/// Size of a report, bytes.
pub const REPORT_BYTES: usize = 32;

/// The two bytes of an order.
#[must_use]
pub fn encode_order(order: Order) -> [u8; ORDER_BYTES] {
    match order {
        Order::Signal(signal) => [1, signal.number()],
        Order::Terminate => [2, 0],
        Order::Kill => [3, 0],
        Order::EndInput => [4, 0],
        Order::HangUp => [5, 0],
        Order::BreakPipe => [6, 0],
        Order::Look => [7, 0],
        Order::KillGroup => [8, 0],
        Order::Resume { foreground } => [9, u8::from(foreground)],
        Order::Typed => [10, 0],
    }
}

/// Reads an order; `None` when it is none.
#[must_use]
pub fn decode_order(bytes: [u8; ORDER_BYTES]) -> Option<Order> {
    Some(match bytes {
        [1, signal] => Order::Signal(Signal::new(signal)),
        [2, _] => Order::Terminate,
        [3, _] => Order::Kill,
        [4, _] => Order::EndInput,
        [5, _] => Order::HangUp,
        [6, _] => Order::BreakPipe,
        [7, _] => Order::Look,
        [8, _] => Order::KillGroup,
        [9, foreground] => Order::Resume { foreground: foreground == 1 },
        [10, _] => Order::Typed,
        _ => return None,
    })
}

/// Takes the whole orders off the front of a buffer.
pub(super) fn take_orders(buffer: &mut Vec<u8>) -> Vec<Order> {
    let mut chunks = buffer.chunks_exact(ORDER_BYTES);
    let orders = chunks.by_ref().filter_map(|chunk| decode_order(*chunk.first_chunk()?)).collect();
    *buffer = chunks.remainder().to_vec();
    orders
}

/// Where a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Making the process.
    Fork,
    /// Entering the working directory.
    Directory,
    /// Putting descriptors in their places.
    Descriptors,
    /// Executing the shell.
    Exec,
}

/// What a guard tells the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The guard has the whole command and is about to make the shell's process. Until this is said, nothing of it ran.
    Begun,
    /// The order to kill is being obeyed.
    Hunting,
    /// The shell could not be started; nothing but the guard's end follows.
    Failed { stage: Stage, errno: i32 },
    /// This descriptor of the caller's has a number that is not below the guard's limit; nothing but the guard's end
    /// follows.
    OutOfReach { descriptor: i32, limit: u32 },
    /// A group was stopped because it reads the terminal (or changes its modes).
    Stopped { reads: bool, program: Program },
    /// The slice is over, the foreground is the guard's again.
    TookBack,
    /// The shell was reaped and the terminal's slave is closed; the shell's group, and whether there are processes left.
    Exited { exit: Exit, group: ProcessGroup, has_left: bool },
    /// This process lived through the hunt.
    Unkillable { pid: Pid, program: Program },
    /// SIGPIPE was sent.
    PipeBroken,
    /// The shell was stopped by this signal, at a terminal that is relayed.
    ShellStopped { signal: Signal },
    /// The command has read what was typed at a terminal on demand.
    KeysRead,
    /// It does not ask for keys any more: what follows it will ask for again.
    TerminalReturned,
    /// The caller's resumption was obeyed: the foreground is where keys belong.
    Resumed,
}

impl Report {
    /// The 32 bytes of it.
    #[must_use]
    pub fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, small, number, count, program) = match self {
            Self::Failed { stage, errno } => (2, stage as u8, errno, 0, Program::default()),
            Self::Stopped { reads, program } => (3, u8::from(reads), 0, 0, program),
            Self::TookBack => (4, 0, 0, 0, Program::default()),
            Self::Exited { exit: Exit::Code(code), group, has_left } => {
                (6, code, group.number(), u32::from(has_left), Program::default())
            }
            Self::Exited { exit: Exit::Signal(signal), group, has_left } => {
                (7, signal.number(), group.number(), u32::from(has_left), Program::default())
            }
            Self::Unkillable { pid, program } => (8, 0, pid.number(), 0, program),
            Self::PipeBroken => (9, 0, 0, 0, Program::default()),
            Self::ShellStopped { signal } => (11, signal.number(), 0, 0, Program::default()),
            Self::KeysRead => (12, 0, 0, 0, Program::default()),
            Self::TerminalReturned => (13, 0, 0, 0, Program::default()),
            Self::Resumed => (14, 0, 0, 0, Program::default()),
            Self::OutOfReach { descriptor, limit } => (10, 0, descriptor, limit, Program::default()),
            Self::Begun => (1, 0, 0, 0, Program::default()),
            Self::Hunting => (5, 0, 0, 0, Program::default()),
        };
        let mut bytes = [0; REPORT_BYTES];
        bytes[0] = kind;
        bytes[1] = small;
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        bytes[16..].copy_from_slice(&program.0);
        bytes
    }

    /// Reads a report; `None` when it is none.
    #[must_use]
    pub fn decode(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        let number = i32::from_le_bytes(*bytes[4..].first_chunk()?);
        let count = u32::from_le_bytes(*bytes[8..].first_chunk()?);
        let program = Program(*bytes[16..].first_chunk()?);
        Some(match bytes[0] {
            1 => Self::Begun,
            5 => Self::Hunting,
            2 => Self::Failed {
                stage: match bytes[1] {
                    0 => Stage::Fork,
                    1 => Stage::Directory,
                    2 => Stage::Descriptors,
                    _ => Stage::Exec,
                },
                errno: number,
            },
            3 => Self::Stopped { reads: bytes[1] == 1, program },
            4 => Self::TookBack,
            6 => Self::Exited { exit: Exit::Code(bytes[1]), group: ProcessGroup::new(number), has_left: count > 0 },
            7 => Self::Exited {
                exit: Exit::Signal(Signal::new(bytes[1])),
                group: ProcessGroup::new(number),
                has_left: count > 0,
            },
            8 => Self::Unkillable { pid: Pid::new(number), program },
            9 => Self::PipeBroken,
            11 => Self::ShellStopped { signal: Signal::new(bytes[1]) },
            12 => Self::KeysRead,
            13 => Self::TerminalReturned,
            14 => Self::Resumed,
            10 => Self::OutOfReach { descriptor: number, limit: count },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rexec_sh::protocol::process;

    #[test]
    fn orders_and_reports_come_back_as_they_were_sent() {
        use Order::{BreakPipe, EndInput, HangUp, Kill, KillGroup, Look, Resume, Signal, Terminate, Typed};
        let resume = [true, false].map(|foreground| Resume { foreground });
        let term = Signal(process::Signal::TERM);
        let others = [term, Terminate, Kill, EndInput, HangUp, BreakPipe, Look, KillGroup, Typed];
        for order in others.into_iter().chain(resume) {
            assert_eq!(decode_order(encode_order(order)), Some(order));
        }
        let plan = Plan { bits: PLAN_LEADER | PLAN_OUT_PIPE, grace: Duration::from_millis(2_500) };
        assert_eq!(Plan::decode(plan.encode()), plan);
        let program = Program::new(b"a-name-longer-than-the-kernel-keeps");
        let reports = [
            Report::Begun,
            Report::Hunting,
            Report::Failed { stage: Stage::Directory, errno: 2 },
            Report::Stopped { reads: true, program },
            Report::TookBack,
            Report::Exited { exit: Exit::Code(255), group: ProcessGroup::new(77), has_left: true },
            Report::Exited { exit: Exit::Signal(process::Signal::KILL), group: ProcessGroup::new(1), has_left: false },
            Report::Unkillable { pid: Pid::new(i32::MAX), program },
            Report::PipeBroken,
            Report::ShellStopped { signal: process::Signal::new(20) },
            Report::KeysRead,
            Report::TerminalReturned,
            Report::Resumed,
            Report::OutOfReach { descriptor: 5_000, limit: u32::MAX },
        ];
        for report in reports {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(Program::new(b"no\x1bde").to_string(), "no?de");
    }
}
