//! A command that runs in its caller's sandbox, as this process's child, and is reported to the host.
//!
//! ```text
//! shim ──┬─ shell     in the same process group; killed when the shim dies
//!        ├─ witness   sleeps in the group, and so shows whether a signal came for the whole group; its name says which run
//!        │            this is
//!        ├─ relay     only when the shell has left processes that write: passes their output on, in its own session
//!        └─ reporter  only when the FIFO has no room for the report's end: waits for room, in its own session
//! ```
//!
//! The whole tree ends with the agent, as that of a command that the host runs.
//!
//! Invariants: the shell finds the descriptors, dispositions and mask that this process was started with, but for the
//! pipes; a signal reaches it once; this process ends as the shell did, and when the output is with the caller; it holds
//! no descriptor that the shell may want to close.

mod tree_end;

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Instant;

use nix::libc;
use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::process::{Exit, Pid, Signal};
use rexec_sh::protocol::report::witness_name;
use rexec_sh::protocol::wire::CallerStream;

use crate::collect::{self, StandardStreams};
use crate::inside;
use crate::lifeline::Lifeline;
use crate::notice;
use crate::output_descriptor::OutputDescriptor;
use crate::output_relay::{OutputRelay, PipedOutput, WrittenFile};
use crate::reporter::Reporter;
use crate::sys::{self, FileKind, Forked, SignalSet, bit};
use tree_end::TreeEnd;

/// Signals of job control, which come for the whole group. They stop and continue this process itself.
const SHARED: SignalSet = bit(sys::TSTP) | bit(sys::CONT);
/// The size of the pipes in front of the caller's, bytes.
const PIPE_BYTES: i32 = 256 << 10;
/// The most time between the first and the last member of a group to get a signal, milliseconds.
const GROUP_PAUSE_MS: i32 = 1;

/// The relayed outputs, and the ends of pipes that the shell gets in their places.
#[derive(Debug, Default)]
struct OutputPlan {
    pipes: Vec<PipedOutput>,
    files: Vec<WrittenFile>,
    shells: Vec<(OwnedFd, RawFd)>,
}

/// Runs the shell as a child, and ends as it does. `become_shell` executes it, and returns only if that failed. Returns
/// if no child could be made. Then nothing has run.
pub(crate) fn run(
    reporter: Reporter,
    standard: &StandardStreams,
    mut lifeline: Lifeline,
    become_shell: impl FnOnce() -> Notice,
) {
    let Ok(plan) = plan(standard) else { return };
    let forwarded = sys::PASSED_ON & !(SHARED | sys::ignored_signals()) | bit(sys::CHLD);
    let inherited = sys::block_signals(forwarded | sys::WRITE_ERRORS);
    let Ok(signals) = sys::signal_descriptor(forwarded) else { return sys::restore_mask(inherited) };
    let was_childless = sys::heed_children();
    let me = sys::own_pid();
    let shell = match sys::fork() {
        Ok(Forked::Child) => {
            sys::die_with(me);
            plan.shells.iter().for_each(|(end, number)| sys::duplicate_onto(end, *number));
            if was_childless {
                sys::ignore_children();
            }
            sys::restore_mask(inherited);
            let notice = become_shell();
            notice::tell(&notice);
            sys::exit(notice.code)
        }
        Ok(Forked::Parent(pid)) => pid,
        Err(_) => {
            if was_childless {
                sys::ignore_children();
            }
            return sys::restore_mask(inherited);
        }
    };
    sys::hide_arguments();
    // The shell runs already, so this costs no time.
    lifeline.look();
    let OutputPlan { pipes, files, shells } = plan;
    drop(shells);
    let kept: Vec<RawFd> = pipes.iter().map(PipedOutput::number).collect();
    let_go(&kept);
    let witness = Witness::new(me, witness_name(&reporter.mark()));
    let relay = OutputRelay::new(pipes, files, reporter);
    LocalRun { shell, witness, signals, relay, me, lifeline, ending: None }.finish()
}

/// Plans the outputs.
fn plan(standard: &StandardStreams) -> sys::Result<OutputPlan> {
    let mut plan = OutputPlan::default();
    let is_one = standard.has_same_output();
    for (stream, fd, path) in [
        (CallerStream::Out, libc::STDOUT_FILENO, c"/proc/self/fd/1"),
        (CallerStream::Err, libc::STDERR_FILENO, c"/proc/self/fd/2"),
    ] {
        if is_one && stream == CallerStream::Err {
            if let Some((end, _)) = plan.shells.first() {
                let copy = sys::duplicate(end)?;
                plan.shells.push((copy, fd));
            }
            continue;
        }
        match standard.output(stream) {
            Some((kind @ (FileKind::Pipe | FileKind::Socket), _)) => {
                let (read_end, write_end) = sys::pipe()?;
                sys::enlarge(read_end.as_raw_fd(), PIPE_BYTES);
                let output = OutputDescriptor::new(stream, standard);
                plan.pipes.push(PipedOutput::new(read_end, output, fd, kind == FileKind::Pipe));
                plan.shells.push((write_end, fd));
            }
            Some((FileKind::Regular, _)) => plan.files.extend(WrittenFile::open(stream, fd, path)),
            _ => {}
        }
    }
    Ok(plan)
}

/// Leaves the caller's directory and closes its descriptors in this process, except these numbers.
fn let_go(kept: &[RawFd]) {
    sys::leave_directory();
    collect::inherited().into_iter().for_each(sys::close);
    let null = sys::open(c"/dev/null", libc::O_RDWR);
    for number in (0..=2).filter(|number| !kept.contains(number)) {
        match &null {
            Ok(null) => sys::duplicate_onto(null, number),
            Err(_) => sys::close(number),
        }
    }
}

/// A process in the same group that does nothing. A signal pending for it came for the whole group, including the
/// shell.
#[derive(Debug)]
struct Witness {
    pid: Option<Pid>,
    /// Its name. The host recognizes the run by it.
    name: CString,
}

impl Witness {
    fn new(me: Pid, name: CString) -> Self {
        match sys::fork() {
            Ok(Forked::Child) => {
                sys::restore_mask(SignalSet::MAX);
                sys::die_with(me);
                sys::set_name(&name);
                sys::close_all();
                sys::sleep_for_ever()
            }
            Ok(Forked::Parent(pid)) => Self { pid: Some(pid), name },
            Err(_) => Self { pid: None, name },
        }
    }

    /// Returns true if this signal came for the group.
    fn has_got(&self, signal: Signal) -> bool {
        let Some(pid) = self.pid else { return false };
        let is_pending = || sys::pending_signals(pid) & bit(signal) != 0;
        is_pending() || {
            sys::pause(GROUP_PAUSE_MS);
            is_pending()
        }
    }

    fn end(&mut self) {
        if let Some(pid) = self.pid.take() {
            sys::signal_child(pid, Signal::KILL);
            let _ = sys::wait(pid, true);
        }
    }
}

#[derive(Debug)]
struct LocalRun {
    shell: Pid,
    witness: Witness,
    signals: OwnedFd,
    relay: OutputRelay,
    me: Pid,
    lifeline: Lifeline,
    ending: Option<TreeEnd>,
}

impl LocalRun {
    /// Waits for the shell's end, and ends in the same way.
    fn finish(mut self) -> ! {
        let mut has_host = true;
        let exit = loop {
            if let Some(exit) = sys::wait(self.shell, false) {
                break exit;
            }
            self.turn();
            if has_host && !self.relay.has_host() {
                has_host = false;
                self.resume();
            }
        };
        while let Some(at) = self.tick() {
            self.relay.wake_at(Some(at));
            self.relay.turn([]);
        }
        self.relay.wake_at(None);
        // The host believes no end of a process that has children. A killed one may live for another moment.
        self.witness.end();
        self.relay.begin_end();
        while !self.relay.has_drained() {
            let [agent, _] = self.lifeline.watch();
            let [has_signal, has_no_agent] = self.relay.turn([self.watch_signals(), agent]);
            // A signal ends the wait: it found no shell any more. So does the agent's end.
            if (has_signal && self.has_come()) || has_no_agent || self.ending.is_some() {
                break;
            }
        }
        if let Some(reporter) = self.relay.end(exit) {
            leave_process(|| reporter.end_in_time(exit));
        }
        if self.relay.has_pipes() {
            // It passes on later output, as the caller's own pipes would have taken it.
            leave_process(|| {
                while self.relay.has_pipes() {
                    self.relay.turn([]);
                }
            });
        }
        match exit {
            Exit::Code(code) => sys::exit(code),
            Exit::Signal(signal) => sys::die_by(signal, false),
        }
    }

    /// Sleeps until an event, and handles it.
    fn turn(&mut self) {
        let wakes_at = self.tick();
        self.relay.wake_at(wakes_at);
        let [agent, parent] = self.lifeline.watch();
        let [has_signal, has_no_agent, has_no_parent] = self.relay.turn([self.watch_signals(), agent, parent]);
        if has_no_parent {
            self.lifeline.lose_parent();
        }
        if has_no_agent {
            self.lifeline.lose_agent();
        }
        let is_unwanted = has_no_agent || (self.lifeline.is_left() && self.relay.has_lost_readers());
        if is_unwanted && self.ending.is_none() {
            self.ending = Some(TreeEnd::begin(self.me, self.witness.pid));
        }
        while has_signal && let Some(signal) = sys::next_signal(&self.signals) {
            self.pass_on(signal);
        }
    }

    /// Continues ending a command whose agent has ended. Returns the time of the next step.
    fn tick(&mut self) -> Option<Instant> {
        self.ending.as_mut()?.tick(self.witness.pid, Instant::now())
    }

    fn watch_signals(&self) -> libc::pollfd {
        sys::watch(self.signals.as_raw_fd(), libc::POLLIN)
    }

    fn pass_on(&mut self, signal: Signal) {
        if signal == sys::CHLD {
            return;
        }
        if self.witness.has_got(signal) {
            // It has this signal pending from now on, so another one would not show.
            self.witness.end();
            self.witness = Witness::new(self.me, self.witness.name.clone());
        } else {
            sys::signal_child(self.shell, signal);
        }
    }

    /// Returns true if a signal has come that the shell would have got.
    fn has_come(&self) -> bool {
        std::iter::from_fn(|| sys::next_signal(&self.signals)).any(|signal| signal != sys::CHLD)
    }

    /// Resumes a command that a person has paused: the host is gone, so nobody else could.
    fn resume(&self) {
        if sys::is_stopped(self.shell) {
            inside::below(self.me).into_iter().for_each(|pid| sys::signal_child(pid, sys::CONT));
            sys::signal_child(self.shell, sys::CONT);
        }
    }
}

/// Forks a process that runs `work` and ends.
fn leave_process(work: impl FnOnce()) {
    if let Ok(Forked::Child) = sys::fork() {
        sys::restore_mask(SignalSet::MAX);
        sys::leave_session();
        sys::leave_directory();
        work();
        sys::exit(0)
    }
}
