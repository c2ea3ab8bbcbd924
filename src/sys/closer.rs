//! The closers: processes that close descriptors in place of the host, because close(2) may wait for as long as a
//! caller likes. It waits for a server of files (FUSE, NFS) that does not answer, or until the other end of a
//! connection has read everything (SO_LINGER, socket(7)).
//!
//! A closer shares the host's table of descriptors (CLONE_FILES, clone(2)) and closes the numbers that it reads from a
//! pipe. A descriptor leaves the table before its close waits, so a number is free again at once. If all closers wait,
//! one more is made; those beyond the first end when they have nothing to do. Sockets have closers of their own: a wait
//! for the end of one is no wait for somebody else's file.
//!
//! A closer that waits for a server of files cannot be killed, and keeps the table of a host that has ended. Then the
//! undertaker, one more process that shares the table, empties it, so that everybody else sees the end of the host.
//!
//! Invariants: each number is read by one closer and closed once; the owner of the closers never closes a descriptor
//! that it gave them; a closer makes system calls only and ends with that process, unless it waits for a server.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::time::Instant;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal as Told, sigprocmask};

use super::close_kind::{CloseKind, is_local_socket};
use super::process::{self, is_living_child};
use crate::limits;
use rexec_sh::protocol::process::{Pid, Signal};

thread_local! {
    static CLOSERS: RefCell<Option<Closers>> = const { RefCell::new(None) };
}

#[derive(Debug)]
struct Closers {
    sockets: Lane,
    files: Lane,
    undertaker: Option<Pid>,
}

/// Closers that share their work.
#[derive(Debug)]
struct Lane {
    work: OwnedFd,
    give: OwnedFd,
    pids: Vec<Pid>,
    /// Killed closers that have not ended yet.
    killed: Vec<Pid>,
    /// Descriptors for which the pipe has no room.
    rest: Vec<RawFd>,
    /// The time of the next check that not every closer waits.
    look_at: Option<Instant>,
}

/// Makes the first closers and the undertaker. Without closers, descriptors are closed by the process itself.
///
/// # Errors
/// As pipe(2) and fork(2).
pub fn begin() -> io::Result<()> {
    let mut closers = Closers { sockets: Lane::begin()?, files: Lane::begin()?, undertaker: None };
    closers.have_undertaker()?;
    CLOSERS.with_borrow_mut(|all| *all = Some(closers));
    Ok(())
}

/// Closes a descriptor here or in a closer, without waiting.
pub fn close(fd: OwnedFd, kind: CloseKind) {
    CLOSERS.with_borrow_mut(|closers| match (closers, kind) {
        (None, _) | (_, CloseKind::AtOnce) => drop(fd),
        (Some(closers), CloseKind::Socket) => closers.sockets.take(fd.into_raw_fd()),
        (Some(closers), CloseKind::File) => closers.files.take(fd.into_raw_fd()),
    });
}

/// The time at which [`tick`] has something to do.
#[must_use]
pub fn deadline() -> Option<Instant> {
    CLOSERS.with_borrow(|closers| closers.as_ref()?.lanes().into_iter().filter_map(|lane| lane.look_at).min())
}

pub fn tick(now: Instant) {
    CLOSERS.with_borrow_mut(|closers| {
        let Some(closers) = closers else { return };
        let is_due = |lane: &Lane| lane.look_at.is_some_and(|at| at <= now);
        if closers.lanes().into_iter().any(is_due) {
            // If there is no process for it, the next look tries again.
            let _ = closers.have_undertaker();
        }
        [&mut closers.sockets, &mut closers.files]
            .into_iter()
            .filter(|lane| is_due(lane))
            .for_each(|lane| lane.look(now));
    });
}

/// Returns true if every given descriptor is out of the table.
#[must_use]
pub fn is_done() -> bool {
    CLOSERS.with_borrow(|closers| closers.as_ref().is_none_or(|closers| closers.lanes().into_iter().all(Lane::is_done)))
}

#[must_use]
pub fn pids() -> Vec<Pid> {
    CLOSERS.with_borrow(|closers| {
        let Some(closers) = closers else { return Vec::new() };
        let of_lanes = closers.lanes().into_iter().flat_map(|lane| lane.pids.iter().chain(&lane.killed));
        of_lanes.chain(&closers.undertaker).copied().collect()
    })
}

impl Closers {
    fn lanes(&self) -> [&Lane; 2] {
        [&self.sockets, &self.files]
    }

    /// Makes the undertaker, or a new one if it was killed.
    fn have_undertaker(&mut self) -> io::Result<()> {
        if self.undertaker.is_some_and(is_living_child) {
            return Ok(());
        }
        let owner = process::pid();
        match clone_with_table()? {
            0 => undertake(owner),
            child => self.undertaker = Some(Pid::new(child)),
        }
        Ok(())
    }
}

impl Lane {
    fn begin() -> io::Result<Self> {
        let (work, give) = super::input_pipe()?;
        super::set_nonblocking(&work)?;
        let pids = Vec::new();
        let killed = Vec::new();
        let rest = Vec::new();
        let mut lane = Self { work, give, pids, killed, rest, look_at: None };
        lane.add()?;
        Ok(lane)
    }

    fn take(&mut self, fd: RawFd) {
        if !self.rest.is_empty() || super::write(&self.give, &fd.to_ne_bytes()).is_err() {
            self.rest.push(fd);
        }
        self.look_at.get_or_insert_with(|| Instant::now() + limits::CLOSER_PATIENCE);
    }

    fn is_done(&self) -> bool {
        self.rest.is_empty() && self.unread() == 0
    }

    /// Makes another closer if given descriptors are still there. At the limit all are killed: that ends waits for the
    /// other end of a connection. Closers that wait for a server stay, and others take their place.
    fn look(&mut self, now: Instant) {
        let rest = std::mem::take(&mut self.rest);
        rest.into_iter().for_each(|fd| self.take(fd));
        self.pids.retain(|&pid| is_living_child(pid));
        self.killed.retain(|&pid| is_living_child(pid));
        self.look_at = None;
        if self.is_done() {
            return;
        }
        self.look_at = Some(now + limits::CLOSER_PATIENCE);
        if self.pids.len() >= limits::CLOSERS_MAX {
            self.pids.iter().for_each(|&pid| drop(super::kill::process(pid, Signal::KILL)));
            self.killed.append(&mut self.pids);
        }
        if self.killed.len() < limits::CLOSERS_KILLED_MAX {
            // If there is no process for it, the next look tries again.
            let _ = self.add();
        }
    }

    /// The bytes of numbers that no closer has read.
    fn unread(&self) -> i32 {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the kernel writes one number.
        unsafe { libc::ioctl(self.work.as_raw_fd(), libc::FIONREAD, &raw mut bytes) };
        bytes
    }

    fn add(&mut self) -> io::Result<()> {
        let (work, owner) = (self.work.as_raw_fd(), process::pid());
        // The first one waits forever.
        let patience = if self.pids.is_empty() { -1 } else { limits::CLOSER_IDLE_MS };
        match clone_with_table()? {
            0 => serve(work, owner, patience),
            child => self.pids.push(Pid::new(child)),
        }
        Ok(())
    }
}

/// Forks a child that shares this process's table of descriptors. Returns 0 in the child.
pub(crate) fn clone_with_table() -> io::Result<i32> {
    // SAFETY: without CLONE_VM this is fork(2) with one table for both. The process has one thread, and the child makes
    // system calls only, at least until it has a table of its own.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_FILES | libc::SIGCHLD, 0, 0, 0, 0) };
    i32::try_from(child).ok().filter(|&child| child >= 0).ok_or_else(io::Error::last_os_error)
}

/// Becomes a process beside its owner, which gets this signal when the owner ends.
fn stand_beside(at_end: Told) {
    let _ = nix::sys::prctl::set_name(c"rexec-closer");
    // The signals of the owner's terminal are not for this process.
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
    let _ = nix::sys::prctl::set_pdeathsig(at_end);
    process::give_way();
}

fn is_child_of(owner: Pid) -> bool {
    nix::unistd::getppid().as_raw() == owner.number()
}

/// Closes the given descriptors until none has come for `patience` milliseconds; −1 is forever.
fn serve(work: RawFd, owner: Pid, patience: i32) -> ! {
    stand_beside(Told::SIGKILL);
    // Its owner may have died before the request for that signal.
    while is_child_of(owner) {
        let mut watched = libc::pollfd { fd: work, events: libc::POLLIN, revents: 0 };
        let mut number = [0_u8; 4];
        // SAFETY: the kernel reads and writes one structure, and then four bytes. The number is this closer's alone.
        unsafe {
            match libc::poll(&raw mut watched, 1, patience) {
                0 => break,
                1.. if watched.revents & libc::POLLIN != 0 => {}
                _ => continue,
            }
            // Another closer may have read it.
            if libc::read(work, number.as_mut_ptr().cast(), number.len()) == 4 {
                libc::close(RawFd::from_ne_bytes(number));
            }
        }
    }
    process::exit(0)
}

/// Waits for the end of the owner. Then it closes the connections to callers, guards and helpers, and everything else
/// that closes at once.
fn undertake(owner: Pid) -> ! {
    // Anybody may send the signal, so it only makes this process look. It also wakes it if somebody has stopped it.
    stand_beside(Told::SIGCONT);
    let mut end = SigSet::empty();
    end.add(Told::SIGCONT);
    while is_child_of(owner) {
        let _ = end.wait();
    }
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<RawFd> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers {
        // SAFETY: what owned these descriptors has ended, and a number without any is refused.
        unsafe {
            let fd = BorrowedFd::borrow_raw(number);
            if CloseKind::of(fd) == CloseKind::AtOnce || is_local_socket(fd) {
                libc::close(number);
            }
        }
    }
    process::exit(0)
}
