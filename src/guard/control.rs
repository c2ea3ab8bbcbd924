//! The protocol between the host and a guard, over their control socket. Host and guard are the same program, so it
//! has no versions, and every message but the RUN frame has a fixed size.
//!
//! ```text
//! host ▶ guard   the plan and the RUN frame (with descriptors), then orders of two bytes; to a guard that is free,
//!                RENEW with the slave of a terminal, then the next plan and frame
//! guard ▶ host   reports of 32 bytes: `Begun` before any process of the command exists, `Hunting` once the guard has
//!                the order to kill; end of file when the guard ends
//! ```

use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::core::entry::TerminalWish;
use crate::core::job::Order;
use crate::sys::program::Program;
use crate::sys::{self, socket};
use rexec_sh::protocol::process::Exit;
use rexec_sh::protocol::process::{Pid, ProcessGroup, Signal};

/// Plan bit: descriptor 1 is a pipe, sent after the RUN frame's own descriptors.
pub const PLAN_OUT_PIPE: u16 = 1;
/// Plan bit: descriptor 2 is a pipe, sent last.
pub const PLAN_ERR_PIPE: u16 = 2;
/// Plan bit: descriptor 2 is the same pipe as descriptor 1.
pub const PLAN_ERR_IS_OUT: u16 = 4;
/// Plan bit: what is left of the shell's process group is killed once the caller has its result, or the host is gone.
pub const PLAN_KILL_GROUP: u16 = 8;
/// Plan bit: the command writes to a terminal although its caller has none, so PAGER, TERM and the like get defaults.
pub const PLAN_DEFAULTS: u16 = 16;
/// Plan bit: descriptor 0 is the run's terminal instead of the descriptor that the caller sent.
pub const PLAN_IN_TTY: u16 = 32;
/// Plan bit: the run's terminal stands for the caller's, which the shim relays. Processes that stop at it stay stopped;
/// the guard reports when the shell stops.
pub const PLAN_RELAYED: u16 = 64;
/// Plan bit: the shell begins in the foreground of that terminal.
pub const PLAN_FOREGROUND: u16 = 128;
/// Plan bit: the shell leads a session of its own, which that terminal controls. Its process group is then orphaned, as
/// its caller's is: SIGTSTP, SIGTTIN and SIGTTOU stop none of its members (setpgid(2)).
pub const PLAN_LEADER: u16 = 256;
/// Plan bit: output goes to a pipe and should arrive as it is written, so the variables that turn off the buffering of
/// language runtimes are set.
pub const PLAN_LIVE: u16 = 512;
/// Plan bit: the caller's terminal is relayed, but keys come only while the command asks for them. The caller's terminal
/// travels behind descriptor 0, unless it is descriptor 0.
pub const PLAN_ON_DEMAND: u16 = 1024;
/// Plan bit: the command has no controlling terminal.
pub const PLAN_DETACHED: u16 = 2048;
/// Plan bit: the command has no controlling terminal if there is something in its standard input when it begins.
pub const PLAN_UNLESS_FED: u16 = 4096;
/// Plan bit: the caller's process group is orphaned: SIGTSTP, SIGTTIN and SIGTTOU stop none of its members (setpgid(2)).
pub const PLAN_ORPHANED: u16 = 8192;
/// Size of an encoded plan, bytes: the bits, the grace in milliseconds, and the caller's number or 0, all little-endian.
pub const PLAN_BYTES: usize = 10;

/// How a guard runs its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunPlan {
    /// Any of the `PLAN_` bits.
    pub bits: u16,
    /// Time from the death of a shell by its caller's signal to the SIGKILL for its process group.
    pub grace: Duration,
    /// The caller, as long as it waits for the command.
    pub caller: Option<Pid>,
}

impl RunPlan {
    /// Whether a bit is set.
    #[must_use]
    pub fn has(self, bit: u16) -> bool {
        self.bits & bit != 0
    }

    /// Encodes the plan. A grace beyond `u32::MAX` milliseconds is cut.
    #[must_use]
    pub fn encode(self) -> [u8; PLAN_BYTES] {
        let ([a, b], grace) = (self.bits.to_le_bytes(), u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX));
        let ([c, d, e, f], caller) = (grace.to_le_bytes(), self.caller.map_or(0, Pid::number));
        let [g, h, i, j] = caller.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }

    /// Decodes a plan.
    #[must_use]
    pub fn decode([a, b, c, d, e, f, g, h, i, j]: [u8; PLAN_BYTES]) -> Self {
        let grace = Duration::from_millis(u32::from_le_bytes([c, d, e, f]).into());
        let caller = Some(i32::from_le_bytes([g, h, i, j])).filter(|&number| number > 0).map(Pid::new);
        Self { bits: u16::from_le_bytes([a, b]), grace, caller }
    }
}

/// Size of an order, bytes.
pub const ORDER_BYTES: usize = 2;
/// To a guard that is free: prepare for another command, on the terminal whose slave comes with these bytes.
pub const RENEW: [u8; ORDER_BYTES] = [30, 0];
/// Size of a report, bytes.
pub const REPORT_BYTES: usize = 32;

/// Encodes an order.
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
        Order::Resume { foreground, continues } => [9, u8::from(foreground) | u8::from(continues) << 1],
        Order::Typed => [10, 0],
        Order::Interrupt => [11, 0],
        Order::PassModes => [12, 0],
        Order::GiveForeground => [13, 0],
        Order::TakeForeground => [14, 0],
        Order::LeaveKeys => [15, 0],
        Order::GiveUpTerminal => [16, 0],
        Order::SignalLeft(signal) => [20, signal.number()],
        Order::Pause => [21, 0],
        Order::Unpause => [22, 0],
        Order::Begin => [23, 0],
    }
}

/// Decodes an order; `None` when the bytes are not one.
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
        [9, how] => Order::Resume { foreground: how & 1 != 0, continues: how & 2 != 0 },
        [10, _] => Order::Typed,
        [11, _] => Order::Interrupt,
        [12, _] => Order::PassModes,
        [13, _] => Order::GiveForeground,
        [14, _] => Order::TakeForeground,
        [15, _] => Order::LeaveKeys,
        [16, _] => Order::GiveUpTerminal,
        [20, signal] => Order::SignalLeft(Signal::new(signal)),
        [21, _] => Order::Pause,
        [22, _] => Order::Unpause,
        [23, _] => Order::Begin,
        _ => return None,
    })
}

/// Receives what orders there are; returns the complete ones and whether the host is gone. `buffer` keeps an incomplete
/// order for the next call.
pub(super) fn receive_orders(socket: &OwnedFd, buffer: &mut Vec<u8>) -> (Vec<Order>, bool) {
    let mut bytes = [0; 64];
    let is_gone = loop {
        match socket::receive(socket, &mut bytes) {
            Ok(0) => break true,
            Ok(length) => buffer.extend_from_slice(&bytes[..length]),
            Err(error) => break !sys::is_transient(&error),
        }
    };
    (take_orders(buffer), is_gone)
}

/// Removes the complete orders from the front of a buffer.
fn take_orders(buffer: &mut Vec<u8>) -> Vec<Order> {
    let mut chunks = buffer.chunks_exact(ORDER_BYTES);
    let orders = chunks.by_ref().filter_map(|chunk| decode_order(*chunk.first_chunk()?)).collect();
    *buffer = chunks.remainder().to_vec();
    orders
}

/// The step at which a start failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartStage {
    /// Making the process.
    Fork,
    /// Entering the working directory.
    Directory,
    /// Giving the descriptors their numbers.
    Descriptors,
    /// Executing the shell.
    Exec,
}

/// What a guard reports to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardReport {
    /// The guard has the whole command and waits to be told to begin ([`Order::Begin`]). `is_detached` says that the command
    /// gets no controlling terminal, as planned or because of what is in its standard input.
    Ready { is_detached: bool },
    /// The guard was told nothing for [`crate::limits::LET_GO_PATIENCE`] and is about to make the shell's process. Before this
    /// report, or the order, nothing of the command has run.
    Begun,
    /// A moment after its begin, the command's standard input has something in it.
    Fed,
    /// The guard has begun to kill, as ordered.
    Hunting,
    /// The shell could not be started. The guard ends.
    Failed { stage: StartStage, errno: i32 },
    /// The caller's descriptor has a number beyond the guard's limit on descriptors. The guard ends.
    OutOfReach { descriptor: i32, limit: u32 },
    /// A process group waits because it reads the terminal or, stopped, changes its modes.
    Stopped { wish: TerminalWish, program: Program },
    /// The guard is the foreground process group again.
    TookBack,
    /// A process group of the command has the foreground, and reads what is typed from now on.
    Given,
    /// The process group that was reported as stopped has ended, or reads no more.
    AskerGone,
    /// The shell was reaped and the guard has closed the terminal's slave. `group` was the shell's process group;
    /// `has_left` says whether processes of the command are left.
    Exited { exit: Exit, group: ProcessGroup, has_left: bool },
    /// The guard has looked for filters behind the ended shell.
    LookedForFilters { has_any: bool },
    /// The command has left nothing. The guard waits for [`RENEW`].
    Free,
    /// SIGKILL did not end this process.
    Unkillable { pid: Pid, program: Program },
    /// SIGPIPE was sent, as ordered.
    PipeBroken,
    /// What a pause had stopped goes on, as ordered.
    Unpaused,
    /// The shell was stopped by this signal, on a relayed terminal.
    ShellStopped { signal: Signal },
    /// The shell of a relayed terminal goes on after a stop.
    ShellContinued,
    /// The command has read what was typed, on a terminal that is relayed on demand.
    KeysRead,
    /// The command does not ask for keys any more. The next process that does will be stopped again.
    TerminalReturned,
    /// The shell has begun in the foreground, or the order to resume was obeyed: keys now reach the process group they
    /// are for.
    InForeground,
}

impl GuardReport {
    /// Encodes the report.
    #[must_use]
    pub fn encode(self) -> [u8; REPORT_BYTES] {
        let (kind, small, number, count, program) = match self {
            Self::Failed { stage, errno } => (2, stage as u8, errno, 0, Program::default()),
            Self::Stopped { wish, program } => (3, wish as u8, 0, 0, program),
            Self::TookBack => (4, 0, 0, 0, Program::default()),
            Self::Exited { exit: Exit::Code(code), group, has_left } => {
                (6, code, group.number(), u32::from(has_left), Program::default())
            }
            Self::Exited { exit: Exit::Signal(signal), group, has_left } => {
                (7, signal.number(), group.number(), u32::from(has_left), Program::default())
            }
            Self::LookedForFilters { has_any } => (22, u8::from(has_any), 0, 0, Program::default()),
            Self::Free => (17, 0, 0, 0, Program::default()),
            Self::Unkillable { pid, program } => (8, 0, pid.number(), 0, program),
            Self::PipeBroken => (9, 0, 0, 0, Program::default()),
            Self::Unpaused => (18, 0, 0, 0, Program::default()),
            Self::ShellContinued => (21, 0, 0, 0, Program::default()),
            Self::Ready { is_detached } => (19, u8::from(is_detached), 0, 0, Program::default()),
            Self::Fed => (20, 0, 0, 0, Program::default()),
            Self::ShellStopped { signal } => (11, signal.number(), 0, 0, Program::default()),
            Self::KeysRead => (12, 0, 0, 0, Program::default()),
            Self::TerminalReturned => (13, 0, 0, 0, Program::default()),
            Self::InForeground => (14, 0, 0, 0, Program::default()),
            Self::OutOfReach { descriptor, limit } => (10, 0, descriptor, limit, Program::default()),
            Self::Begun => (1, 0, 0, 0, Program::default()),
            Self::Hunting => (5, 0, 0, 0, Program::default()),
            Self::Given => (15, 0, 0, 0, Program::default()),
            Self::AskerGone => (16, 0, 0, 0, Program::default()),
        };
        let mut bytes = [0; REPORT_BYTES];
        bytes[0] = kind;
        bytes[1] = small;
        bytes[4..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..12].copy_from_slice(&count.to_le_bytes());
        bytes[16..].copy_from_slice(&program.0);
        bytes
    }

    /// Decodes a report; `None` when the bytes are not one.
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
                    0 => StartStage::Fork,
                    1 => StartStage::Directory,
                    2 => StartStage::Descriptors,
                    _ => StartStage::Exec,
                },
                errno: number,
            },
            3 => Self::Stopped {
                wish: match bytes[1] {
                    0 => TerminalWish::Modes,
                    1 => TerminalWish::Input,
                    _ => TerminalWish::Keys,
                },
                program,
            },
            4 => Self::TookBack,
            6 => Self::Exited { exit: Exit::Code(bytes[1]), group: ProcessGroup::new(number), has_left: count > 0 },
            7 => Self::Exited {
                exit: Exit::Signal(Signal::new(bytes[1])),
                group: ProcessGroup::new(number),
                has_left: count > 0,
            },
            22 => Self::LookedForFilters { has_any: bytes[1] == 1 },
            17 => Self::Free,
            8 => Self::Unkillable { pid: Pid::new(number), program },
            9 => Self::PipeBroken,
            18 => Self::Unpaused,
            21 => Self::ShellContinued,
            19 => Self::Ready { is_detached: bytes[1] > 0 },
            20 => Self::Fed,
            11 => Self::ShellStopped { signal: Signal::new(bytes[1]) },
            12 => Self::KeysRead,
            13 => Self::TerminalReturned,
            14 => Self::InForeground,
            15 => Self::Given,
            16 => Self::AskerGone,
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
        use Order::{BreakPipe, EndInput, HangUp, Kill, KillGroup, LeaveKeys, Look, Resume, Signal, Terminate, Typed};
        use Order::{GiveForeground, PassModes, TakeForeground};
        let resume = [(true, false), (false, true)].map(|(foreground, continues)| Resume { foreground, continues });
        let term = Signal(process::Signal::TERM);
        let pauses = [Order::SignalLeft(process::Signal::HUP), Order::Pause, Order::Unpause, Order::Begin];
        let others = [term, Terminate, Kill, EndInput, LeaveKeys, HangUp, BreakPipe, Look, KillGroup, Typed];
        let answers = [PassModes, GiveForeground, TakeForeground, Order::GiveUpTerminal];
        for order in others.into_iter().chain(resume).chain(pauses).chain(answers) {
            assert_eq!(decode_order(encode_order(order)), Some(order));
        }
        for caller in [None, Some(Pid::new(70_000))] {
            let grace = Duration::from_millis(2_500);
            let plan = RunPlan { bits: PLAN_LEADER | PLAN_OUT_PIPE, grace, caller };
            assert_eq!(RunPlan::decode(plan.encode()), plan);
        }
        let program = Program::new(b"a-name-longer-than-the-kernel-keeps");
        let reports = [
            GuardReport::Begun,
            GuardReport::Hunting,
            GuardReport::Failed { stage: StartStage::Directory, errno: 2 },
            GuardReport::Stopped { wish: TerminalWish::Keys, program },
            GuardReport::TookBack,
            GuardReport::Exited { exit: Exit::Code(255), group: ProcessGroup::new(77), has_left: true },
            GuardReport::Exited {
                exit: Exit::Signal(process::Signal::KILL),
                group: ProcessGroup::new(1),
                has_left: false,
            },
            GuardReport::LookedForFilters { has_any: true },
            GuardReport::LookedForFilters { has_any: false },
            GuardReport::Free,
            GuardReport::Unkillable { pid: Pid::new(i32::MAX), program },
            GuardReport::PipeBroken,
            GuardReport::Unpaused,
            GuardReport::ShellContinued,
            GuardReport::Ready { is_detached: false },
            GuardReport::Ready { is_detached: true },
            GuardReport::Fed,
            GuardReport::ShellStopped { signal: process::Signal::new(20) },
            GuardReport::KeysRead,
            GuardReport::TerminalReturned,
            GuardReport::InForeground,
            GuardReport::Given,
            GuardReport::AskerGone,
            GuardReport::OutOfReach { descriptor: 5_000, limit: u32::MAX },
        ];
        for report in reports {
            assert_eq!(GuardReport::decode(&report.encode()), Some(report));
        }
        assert_eq!(Program::new(b"no\x1bde").to_string(), "no?de");
    }
}
