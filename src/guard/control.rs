//! The protocol between the host and a guard, over their control socket. Host and guard are the same program, so it
//! has no versions, and every message but the RUN frame has a fixed size.
//!
//! ```text
//! host ▶ guard   the plan, the record's place if there is one, and the RUN frame (with descriptors), then orders of
//!                three bytes; to a guard that is free, RENEW with the slave of a terminal, then the next plan
//! guard ▶ host   reports of 32 bytes: `Begun` before any process of the command exists, `Hunting` once the guard has
//!                the order to kill; end of file when the guard ends
//! ```

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::core::entry::TerminalWish;
use crate::core::job::Order;
use crate::sys::program::Program;
use crate::sys::{self, socket};
use crate::undo::KeepingBounds;
use rexec_sh::protocol::process::{Exit, Pid, ProcessGroup, Signal};
use rexec_sh::protocol::wire::{Field, WireError};
use rexec_sh::wire;

/// Plan bit: descriptor 1 is a pipe, sent after the RUN frame's own descriptors.
pub const PLAN_OUT_PIPE: u16 = 1;
/// Plan bit: descriptor 2 is a pipe, sent last.
pub const PLAN_ERR_PIPE: u16 = 2;
/// Plan bit: descriptor 2 is the same pipe as descriptor 1.
pub const PLAN_ERR_IS_OUT: u16 = 4;
/// Plan bit: the rest of the shell's process group is killed once the caller has its result, or the host is gone.
pub const PLAN_KILL_GROUP: u16 = 8;
/// Plan bit: the command writes to a terminal although its caller has none, so PAGER, TERM and the like get defaults.
pub const PLAN_DEFAULTS: u16 = 16;
/// Plan bit: descriptor 0 is the run's terminal instead of the descriptor that the caller sent.
pub const PLAN_IN_TTY: u16 = 32;
/// Plan bit: the run's terminal stands for the caller's; the shim relays that. Processes that stop at it stay stopped;
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
/// Plan bit: the caller's terminal is relayed, but keys come only while the command asks for them. The caller's
/// terminal travels after descriptor 0, unless it is descriptor 0.
pub const PLAN_ON_DEMAND: u16 = 1024;
/// Plan bit: the command has no controlling terminal.
pub const PLAN_DETACHED: u16 = 2048;
/// Plan bit: the command has no controlling terminal if its standard input has something in it at its beginning.
pub const PLAN_UNLESS_FED: u16 = 4096;
/// Plan bit: the caller's process group is orphaned: SIGTSTP, SIGTTIN and SIGTTOU stop none of its members (setpgid(2)).
pub const PLAN_ORPHANED: u16 = 8192;
/// Size of an encoded plan, bytes: the bits, the grace in milliseconds, the caller's number or 0, and the length of the
/// record's place or 0, all little-endian.
pub const PLAN_BYTES: usize = 12;

/// The way in which a guard runs its command.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunPlan {
    /// Any of the `PLAN_` bits.
    pub bits: u16,
    /// Time from the death of a shell by its caller's signal to the SIGKILL for its process group.
    pub grace: Duration,
    /// The caller, as long as it waits for the command.
    pub caller: Option<Pid>,
    /// The length of the [`RecordPlace`] behind the plan, bytes; 0 if nothing of the command's is kept.
    pub record_bytes: u16,
}

impl RunPlan {
    #[must_use]
    pub fn has(self, bit: u16) -> bool {
        self.bits & bit != 0
    }

    /// Encodes the plan. A grace beyond `u32::MAX` milliseconds is cut.
    #[must_use]
    pub fn encode(self) -> [u8; PLAN_BYTES] {
        let grace = u32::try_from(self.grace.as_millis()).unwrap_or(u32::MAX);
        fixed(&((self.bits, grace), (self.caller.map_or(0, Pid::number), self.record_bytes)))
    }

    #[must_use]
    pub fn decode(bytes: [u8; PLAN_BYTES]) -> Self {
        let ((bits, grace), (caller, record_bytes)) =
            <((u16, u32), (i32, u16))>::take(&mut &bytes[..]).expect("of this size");
        let caller = Some(caller).filter(|&number| number > 0).map(Pid::new);
        Self { bits, grace: Duration::from_millis(grace.into()), caller, record_bytes }
    }
}

/// Where a guard keeps what its command may destroy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPlace {
    pub store: PathBuf,
    pub session: String,
    pub run: u64,
    pub agent: String,
    pub bounds: KeepingBounds,
}

impl RecordPlace {
    /// The bytes that follow a plan. `None` if they are too many.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let KeepingBounds { copy_max, wait, except } = &self.bounds;
        let numbers = [self.run, *copy_max, wait.as_secs()].map(u64::to_le_bytes);
        let texts = [self.store.as_os_str().as_bytes(), self.session.as_bytes(), self.agent.as_bytes()];
        let texts: Vec<&[u8]> = texts.into_iter().chain(except.iter().map(String::as_bytes)).collect();
        let bytes = [numbers.as_flattened(), &texts.join(&0)].concat();
        (bytes.len() <= usize::from(u16::MAX)).then_some(bytes)
    }

    /// Decodes a place; `None` if the bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, texts) = bytes.split_first_chunk::<24>()?;
        let number = |at: usize| numbers[at * 8..].first_chunk().copied().map(u64::from_le_bytes);
        let mut texts = texts.split(|byte| *byte == 0);
        let store = PathBuf::from(std::ffi::OsStr::from_bytes(texts.next()?));
        let mut text = || String::from_utf8(texts.next()?.to_vec()).ok();
        let (session, agent) = (text()?, text()?);
        let except = std::iter::from_fn(text).collect();
        let bounds = KeepingBounds { copy_max: number(1)?, wait: Duration::from_secs(number(2)?), except };
        Some(Self { store, run: number(0)?, session, agent, bounds })
    }
}

/// Encodes a message in a fixed size, filled up with zeros.
fn fixed<'a, const N: usize>(sent: &impl Field<'a>) -> [u8; N] {
    let mut bytes = Vec::with_capacity(N);
    sent.put(&mut bytes);
    bytes.resize(N, 0);
    bytes.try_into().expect("resized")
}

/// Size of an order, bytes.
pub const ORDER_BYTES: usize = 3;
/// To a free guard: prepare for another command, on the terminal whose slave comes with these bytes.
pub const RENEW: [u8; ORDER_BYTES] = [30, 0, 0];
/// Size of a report, bytes.
pub const REPORT_BYTES: usize = 32;

wire!(for Order {
    1 Signal(signal),
    2 Terminate,
    3 Kill,
    4 EndInput,
    5 HangUp,
    6 BreakPipe,
    7 Look,
    8 KillGroup,
    9 Resume { foreground, continues },
    10 Typed,
    11 Interrupt,
    12 PassModes,
    13 GiveForeground,
    14 TakeForeground,
    15 LeaveKeys,
    16 GiveUpTerminal,
    20 SignalLeft(signal),
    21 Pause,
    22 Unpause,
    23 Begin
});

#[must_use]
pub fn encode_order(order: Order) -> [u8; ORDER_BYTES] {
    fixed(&order)
}

/// Decodes an order; `None` if the bytes are not one.
#[must_use]
pub fn decode_order(bytes: [u8; ORDER_BYTES]) -> Option<Order> {
    Order::take(&mut &bytes[..]).ok()
}

/// Receives all present orders; returns the complete ones, and true if the host is gone. `buffer` keeps an incomplete
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
    Fork,
    /// Entering the working directory.
    Directory,
    /// Giving the descriptors their numbers.
    Descriptors,
    Exec,
}

wire! {
    /// A guard's report to the host.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum GuardReport {
        /// The guard has the whole command and waits for the order to begin ([`Order::Begin`]). `is_detached`: the
        /// command gets no controlling terminal, as planned or because of data in its standard input.
        1 Ready { is_detached: bool },
        /// The guard got no order for [`crate::limits::LET_GO_PATIENCE`] and is about to make the shell's process.
        /// Before this report, or the order, nothing of the command has run.
        2 Begun,
        /// A moment after its begin, the command's standard input has something in it.
        3 Fed,
        /// The guard has begun to kill, as ordered.
        4 Hunting,
        /// The shell could not be started. The guard ends.
        5 Failed { stage: StartStage, errno: i32 },
        /// The caller's descriptor has a number beyond the guard's limit on descriptors. The guard ends.
        6 OutOfReach { descriptor: i32, limit: u32 },
        /// A process group waits because it reads the terminal or, stopped, changes its modes.
        7 Stopped { wish: TerminalWish, program: Program },
        /// The guard is the foreground process group again.
        8 TookBack,
        /// A process group of the command has the foreground, and reads what is typed from now on.
        9 Given,
        /// The process group that was reported as stopped has ended, or reads no more.
        10 AskerGone,
        /// The shell was reaped and the guard has closed the terminal's slave. `group` was the shell's process group;
        /// `has_left`: processes of the command are left.
        11 Exited { exit: Exit, group: ProcessGroup, has_left: bool },
        /// The guard has looked for filters after the ended shell.
        12 LookedForFilters { has_any: bool },
        /// The command has left nothing. The guard waits for [`RENEW`].
        13 Free,
        /// SIGKILL did not end this process.
        14 Unkillable { pid: Pid, program: Program },
        /// SIGPIPE was sent, as ordered.
        15 PipeBroken,
        /// The processes that a pause had stopped go on, as ordered.
        16 Unpaused,
        /// The shell was stopped by this signal, on a relayed terminal.
        17 ShellStopped { signal: Signal },
        /// The shell of a relayed terminal goes on after a stop.
        18 ShellContinued,
        /// The command has read the typed keys, on a terminal that is relayed on demand.
        19 KeysRead,
        /// The command asks for keys no longer. The next process that does will be stopped again.
        20 TerminalReturned,
        /// The shell has begun in the foreground, or the order to resume was obeyed: keys now reach the process group they
        /// are for.
        21 InForeground,
        /// What the command may destroy is being kept, and that takes a while. The shell's process is made afterwards.
        /// The guard waits so many seconds at most.
        22 Keeping { seconds: u32 },
        /// This many files are kept, and this many paths are not. `unknown` is a program whose operands are not known.
        23 Kept { files: u32, missed: u32, unknown: Program },
        /// Nothing is kept, for this reason; 0 if keeping was cut off, so that not all is kept.
        24 NotKept { errno: i32 },
        /// The command has left nothing, and has destroyed this; `missed` more were not kept.
        25 Destroyed { files: u64, bytes: u64, directories: u32, missed: u32 },
        /// Nothing is kept of what the command may destroy, as its caller wants it.
        26 Unwanted,
        /// What was kept is given up, because its disk has no room to spare.
        27 GaveWay,
    }
}

impl GuardReport {
    /// Returns true if the guard may have made the shell's process before it.
    #[must_use]
    pub fn tells_of_begin(self) -> bool {
        let comes_before = matches!(
            self,
            Self::Ready { .. }
                | Self::Keeping { .. }
                | Self::Kept { .. }
                | Self::NotKept { .. }
                | Self::Unwanted
                | Self::Begun
        );
        !comes_before
    }

    #[must_use]
    pub fn encode(self) -> [u8; REPORT_BYTES] {
        fixed(&self)
    }

    /// Decodes a report; `None` if the bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8; REPORT_BYTES]) -> Option<Self> {
        Self::take(&mut &bytes[..]).ok()
    }
}

impl<'a> Field<'a> for Program {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(payload: &mut &'a [u8]) -> Result<Self, WireError> {
        Field::take(payload).map(Self)
    }
}

wire!(for StartStage { 0 Fork, 1 Directory, 2 Descriptors, 3 Exec });
wire!(for TerminalWish { 0 Modes, 1 Input, 2 Keys });

#[cfg(test)]
mod tests {
    use rexec_sh::protocol::wire::Message;

    use super::*;

    /// Reads bytes of chance as a message of each number. What is read comes back as it was.
    fn come_back<M, const N: usize>()
    where
        M: for<'a> Message<'a> + PartialEq + std::fmt::Debug,
    {
        let mut state = 1_u64;
        for &kind in M::KINDS {
            let read = (0..2_000).filter(|_| {
                let mut bytes = [kind; N];
                for byte in &mut bytes[1..] {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let [random, ..] = state.to_be_bytes();
                    *byte = if random < 200 { random % 4 } else { random };
                }
                let read = M::take(&mut &bytes[..]).ok();
                read.inspect(|read| assert_eq!(M::take(&mut &fixed::<N>(read)[..]).as_ref(), Ok(read))).is_some()
            });
            assert!(read.count() > 0, "nothing is read as {kind}");
        }
        assert!(M::KINDS.windows(2).all(|pair| pair[0] < pair[1]), "each number stands once, in order");
    }

    #[test]
    fn orders_and_reports_come_back_as_they_were_sent() {
        come_back::<Order, ORDER_BYTES>();
        come_back::<GuardReport, REPORT_BYTES>();
        assert_eq!(decode_order(RENEW), None);
        for caller in [None, Some(Pid::new(70_000))] {
            let grace = Duration::from_millis(2_500);
            let plan = RunPlan { bits: PLAN_LEADER | PLAN_OUT_PIPE, grace, caller, record_bytes: 700 };
            assert_eq!(RunPlan::decode(plan.encode()), plan);
        }
        let except = ["*.iso", "build/"].map(str::to_owned).to_vec();
        let bounds = KeepingBounds { copy_max: 5, wait: Duration::from_secs(3), except };
        let (session, agent) = ("s-2".into(), String::new());
        let record = RecordPlace { store: "/h\n/kept".into(), session, run: 1 << 40, agent, bounds };
        assert_eq!(RecordPlace::decode(&record.encode().expect("short")), Some(record));
        assert_eq!(RecordPlace::decode(b"short"), None);
        let program = Program::new(b"a-name-longer-than-the-kernel-keeps");
        let stopped = GuardReport::Stopped { wish: TerminalWish::Keys, program };
        assert_eq!(GuardReport::decode(&stopped.encode()), Some(stopped));
        assert_eq!(Program::new(b"no\x1bde").to_string(), "no?de");
    }
}
