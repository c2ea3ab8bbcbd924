//! Lets what a command may destroy be kept before its shell is made, and settles that when nothing of the command lives, or a while
//! after its shell has ended.
//!
//! A process of its own keeps it, because that may take seconds, and orders come meanwhile.
//!
//! Invariants: a command that destroys nothing costs no process and no file. A command waits for its collector at most
//! [`limits::KEEPING_SLACK`] longer than `[undo]` says, and runs whatever becomes of it, unless an order ends it. A collector dies with its guard.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Instant;

use nix::libc;
use nix::sys::signal::Signal as Named;
use nix::unistd::{ForkResult, fork};
use rexec_sh::protocol::process::{Pid, Signal};
use rexec_sh::protocol::wire::RunRequest;

use super::control::{GuardReport, REPORT_BYTES, RecordPlace};
use crate::limits;
use crate::sys::kill::Pidfd;
use crate::sys::program::Program;
use crate::sys::{self, background, poll, process};
use crate::undo::exceptions::Exceptions;
use crate::undo::keeping::{self, Keeping};
use crate::undo::{self, KeepingBounds, Losses, settling, store, tidying};

/// What a command may destroy, and where it begins.
pub(super) struct CollectorTask<'a> {
    losses: Losses,
    /// Its caller wants nothing kept.
    is_unwanted: bool,
    /// The command's directory, if it came as a descriptor.
    directory: Option<&'a OwnedFd>,
    path: PathBuf,
    /// The command's, if programs are to be asked.
    environment: Vec<(OsString, OsString)>,
}

/// A record that a collector has begun.
#[derive(Debug)]
pub(super) struct UnsettledRecord {
    place: RecordPlace,
    collector: Pid,
    /// The collector's report comes from here.
    report: OwnedFd,
    /// When it is seen next whether the disk with the record has room to spare.
    next_look: Instant,
    /// Set while processes live on that the shell has left. They are not waited for any longer.
    settled_at: Option<Instant>,
}

impl<'a> CollectorTask<'a> {
    pub(super) fn of(run: &RunRequest<'_>, directory: Option<&'a OwnedFd>) -> Self {
        let path = match directory {
            Some(fd) => PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd())),
            None => {
                let named = run.attributes.extras.directory.as_deref().unwrap_or(c"/");
                PathBuf::from(OsStr::from_bytes(named.to_bytes()))
            }
        };
        let variable = |name: &[u8]| {
            if name == b"PWD" {
                let there = if directory.is_some() { std::fs::read_link(&path).ok()? } else { path.clone() };
                return Some(there.into_os_string().into_vec());
            }
            let mut entries = run.env.iter().map(CStr::to_bytes);
            entries.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"=")).map(<[u8]>::to_vec)
        };
        let call: Vec<Vec<u8>> = run.argv.iter().map(|argument| argument.to_bytes().to_vec()).collect();
        let losses = undo::losses_of_call(&call, &variable);
        let is_asked = losses.asks_programs();
        let entries = run.env.iter().filter(|_| is_asked).filter_map(|entry| {
            let entry = entry.to_bytes();
            let at = memchr::memchr(b'=', entry)?;
            Some((OsStr::from_bytes(&entry[..at]).to_owned(), OsStr::from_bytes(&entry[at + 1..]).to_owned()))
        });
        let environment = entries.collect();
        let is_unwanted = run.attributes.extras.keeps_nothing;
        Self { losses, is_unwanted, directory, path, environment }
    }

    /// Makes a collector, if there is something to be kept.
    pub(super) fn begin<E>(
        self,
        place: RecordPlace,
        tell: impl Fn(GuardReport) -> Result<(), E>,
    ) -> Result<Option<UnsettledRecord>, E> {
        let unknown = Program::new(self.losses.unknown.first().map_or(b"", Vec::as_slice));
        let may_exist = keeping::may_exist(&self.losses, &self.path);
        if self.is_unwanted {
            if may_exist || !self.losses.unknown.is_empty() {
                tell(GuardReport::Unwanted)?;
            }
            return Ok(None);
        }
        if !may_exist {
            if !self.losses.unknown.is_empty() {
                tell(GuardReport::Kept { files: 0, missed: 0, unknown })?;
            }
            return Ok(None);
        }
        match self.fork(&place) {
            Ok((collector, report)) => {
                // A short command pays nothing.
                let next_look = Instant::now() + limits::ROOM_LOOKS_SHORTEST;
                Ok(Some(UnsettledRecord { place, collector, report, next_look, settled_at: None }))
            }
            Err(error) => {
                tell(GuardReport::NotKept { errno: error.raw_os_error().unwrap_or(0) })?;
                Ok(None)
            }
        }
    }

    fn fork(&self, place: &RecordPlace) -> io::Result<(Pid, OwnedFd)> {
        let (hear, say) = sys::pipe()?;
        // SAFETY: a guard has one thread, so the child may go on as an ordinary process.
        match unsafe { fork() }.map_err(sys::io)? {
            ForkResult::Parent { child } => Ok((Pid::new(child.as_raw()), hear)),
            ForkResult::Child => {
                let _ = nix::sys::prctl::set_pdeathsig(Named::SIGKILL);
                let _ = nix::sys::prctl::set_name(c"rexec-collector");
                let kept: Vec<RawFd> = [&say].into_iter().chain(self.directory).map(AsRawFd::as_raw_fd).collect();
                process::close_all_but(&kept);
                let report = self.keep(place).unwrap_or_else(|error| GuardReport::NotKept {
                    errno: match error.kind() {
                        io::ErrorKind::StorageFull => libc::ENOSPC,
                        _ => error.raw_os_error().unwrap_or(libc::EINVAL),
                    },
                });
                let _ = sys::write(&say, &report.encode());
                process::exit(0)
            }
        }
    }

    fn keep(&self, RecordPlace { store, session, run, agent, bounds }: &RecordPlace) -> io::Result<GuardReport> {
        std::env::set_current_dir(&self.path)?;
        let KeepingBounds { copy_max, wait, except } = bounds;
        let (except, until) = (&Exceptions::of(except), Instant::now() + *wait);
        let (copy_max, run, environment) = (*copy_max, *run, &self.environment[..]);
        let keeping = Keeping { store, session, run, agent, copy_max, except, environment, until };
        let kept = keeping::keep(&keeping, &self.losses)?;
        let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let unknown = Program::new(self.losses.unknown.first().map_or(b"", Vec::as_slice));
        Ok(GuardReport::Kept { files: number(kept.files), missed: number(kept.missed), unknown })
    }
}

impl UnsettledRecord {
    /// Waits until the collector has ended, and reports what it has done. Fails if an order would end the command, which
    /// `orders` tells.
    pub(super) fn await_collector<E>(
        &self,
        control: &OwnedFd,
        tell: impl Fn(GuardReport) -> Result<(), E>,
        orders: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let begun = Instant::now();
        let patience = self.place.bounds.wait + limits::KEEPING_SLACK;
        let (shown_at, until) = (begun + limits::KEEPING_SHOWN_AFTER, begun + patience);
        let mut is_shown = false;
        loop {
            let now = Instant::now();
            let next = if is_shown { until } else { shown_at };
            let left = next.saturating_duration_since(now);
            match poll::readable_within([self.report.as_fd(), control.as_fd()], left) {
                Ok([true, _]) => break,
                Ok([false, true]) => orders().inspect_err(|_| self.end_collector())?,
                Ok([false, false]) | Err(_) if now >= until => break,
                Ok([false, false]) | Err(_) if now >= shown_at && !is_shown => {
                    is_shown = true;
                    let seconds = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX);
                    tell(GuardReport::Keeping { seconds }).inspect_err(|_| self.end_collector())?;
                }
                Ok([false, false]) | Err(_) => {}
            }
        }
        let mut bytes = [0; REPORT_BYTES];
        let told = match sys::read(&self.report, &mut bytes) {
            Ok(REPORT_BYTES) => GuardReport::decode(&bytes),
            _ => None,
        };
        self.end_collector();
        tell(told.unwrap_or(GuardReport::NotKept { errno: 0 }))
    }

    /// Ends the collector, and reaps it. One that the kernel does not let go is left to the supervisor.
    fn end_collector(&self) {
        if let Some(process) = Pidfd::open(self.collector) {
            process.send(Signal::KILL);
        }
        if background::has_ended_within(self.collector, limits::COLLECTOR_END) {
            let _ = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(self.collector.number()), None);
        }
    }

    pub(super) fn deadline(&self) -> Instant {
        self.settled_at.map_or(self.next_look, |at| at.min(self.next_look))
    }

    /// The shell has ended, and processes live on.
    pub(super) fn on_processes_left(&mut self, now: Instant) {
        self.settled_at = Some(now + limits::SETTLED_AFTER);
    }

    /// Does what is due. Returns it while there is something to be settled.
    pub(super) fn tick(mut self, control: &OwnedFd, now: Instant) -> Option<Self> {
        if self.settled_at.is_some_and(|at| now >= at) {
            self.settle_aside(control);
            return None;
        }
        if now < self.next_look {
            return Some(self);
        }
        // The oldest records go if there is too little room.
        let RecordPlace { store, session, run, .. } = &self.place;
        let wait = tidying::make_room(store).unwrap_or(limits::ROOM_LOOKS_LONGEST);
        self.next_look = Instant::now() + wait;
        if store::has_record(store, session, *run) {
            return Some(self);
        }
        let _ = sys::write(control, &GuardReport::GaveWay.encode());
        None
    }

    /// Settles it in a process of its own, as orders may come meanwhile. Where that is ended, the next host settles it.
    fn settle_aside(self, control: &OwnedFd) {
        // SAFETY: a guard has one thread, so the child may go on as an ordinary process.
        if let Ok(ForkResult::Child) = unsafe { fork() } {
            let _ = nix::sys::prctl::set_pdeathsig(Named::SIGKILL);
            let _ = nix::sys::prctl::set_name(c"rexec-collector");
            process::close_all_but(&[control.as_raw_fd()]);
            self.settle(control);
            process::exit(0)
        }
    }

    /// Settles it if no process of the command lives. Where one does, all stays as it was.
    pub(super) fn settle_at_end(self, control: &OwnedFd) {
        if !process::has_children() {
            self.settle(control);
        }
    }

    /// Takes out of the store what the command has left alone, and reports what it has destroyed.
    fn settle(self, control: &OwnedFd) {
        process::lower_priority();
        let RecordPlace { store: path, session, run, .. } = &self.place;
        if let Ok(gone) = settling::settle(path, session, *run)
            && gone != settling::Destroyed::default()
        {
            // What is small waits for the host, because a look at all records takes time.
            if gone.bytes >= limits::KEPT_TIDIED_AT_ONCE_BYTES {
                let _ = tidying::tidy(path, Some(session));
            }
            let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
            let report = match store::has_record(path, session, *run) {
                true => {
                    let (directories, missed) = (number(gone.directories), number(gone.missed));
                    GuardReport::Destroyed { files: gone.files, bytes: gone.bytes, directories, missed }
                }
                // There was no room for it.
                false => {
                    let missed = number(gone.files.saturating_add(gone.directories).saturating_add(gone.missed));
                    GuardReport::Destroyed { files: 0, bytes: 0, directories: 0, missed }
                }
            };
            // A host that is gone has no use for it.
            let _ = sys::write(control, &report.encode());
        }
    }
}
