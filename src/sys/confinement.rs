//! Compares the confinement of a caller with the host's.
//!
//! A command runs with the rights of the host. A caller in a sandbox may have fewer, so the host compares itself with
//! the process that called connect(2): namespaces, root directory, seccomp, `no_new_privs`, identity, capabilities and
//! security label. A process can only confine itself further, so the result holds from the command's arrival on.
//!
//! Invariants: a caller is equal only if everything could be read and nothing differs. The data read belong to the
//! process that connected, because a descriptor pins that process before the reading and it is still alive afterwards.
//! The numbers in /proc are those of the host's pid namespace, which is checked once.
//!
//! Two things cannot be seen: Landlock, except for the `no_new_privs` that it requires without CAP_SYS_ADMIN, and the
//! identity of a process's seccomp filters (only their number).

mod pin;
mod snapshot;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::stat::Mode;

use self::pin::lives;
use self::snapshot::{Confinement, directory, is_ending, link};
use rexec_sh::protocol::process::Pid;

pub use self::pin::{ConnectedProcess, Moment};

/// The reason why a caller is not equal, in a few words for a person.
pub type Difference = &'static str;

const UNREADABLE: Difference = "it cannot be looked at";
const GONE: Difference = "the process that connected is gone";
const ELSEWHERE: Difference = "other pid namespace";
const BLIND: Difference = "no_new_privs of the host";

/// The reason why the host does not trust a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The caller is confined in another way, or the host cannot tell.
    Differs(Difference),
    /// The host has no descriptors or memory left to look at the caller.
    Shortage,
}

impl Doubt {
    fn of(error: &io::Error, words: Difference) -> Self {
        if error.raw_os_error().is_some_and(super::is_shortage) { Self::Shortage } else { Self::Differs(words) }
    }
}

/// A caller's purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To run a command. It inherits everything that is compared.
    Run,
    /// To see or end commands. kill(2) checks neither supplementary groups nor the bounding set, and a login by another
    /// way, such as ssh, often has others.
    Supervise,
}

impl Purpose {
    /// Returns true if a caller that is equal for this purpose is so for the other one, too.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == Self::Run || other == Self::Supervise
    }

    pub(super) fn counts(self, line: &[u8]) -> bool {
        self == Self::Run || !matches!(line, b"Groups:" | b"CapBnd:")
    }
}

/// The most threads of a caller that are compared.
const THREADS_MAX: usize = 256;

/// The confinement of this process, with which callers are compared.
#[derive(Debug)]
pub struct HostConfinement {
    proc: OwnedFd,
    own: Confinement,
    has_labels: bool,
    waives_landlock: bool,
}

impl HostConfinement {
    /// Reads the confinement of this process.
    ///
    /// # Errors
    /// /proc is not mounted, or belongs to another pid namespace.
    pub fn read() -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let proc = nix::fcntl::open(c"/proc", flags, Mode::empty()).map_err(super::io)?;
        let pid = std::process::id().to_string();
        if link(&proc, c"self")? != pid.as_bytes() {
            return Err(io::Error::other("/proc is that of another pid namespace"));
        }
        let own = Confinement::read(&directory(&proc, &pid)?, &pid, true)?;
        let has_labels = own.label.is_some();
        Ok(Self { proc, own, has_labels, waives_landlock: false })
    }

    /// The same confinement, but callers are compared although Landlock cannot be seen.
    #[must_use]
    pub fn waiving_landlock(self) -> Self {
        Self { waives_landlock: true, ..self }
    }

    /// Returns true if callers are compared although Landlock cannot be seen.
    #[must_use]
    pub fn overlooks_landlock(&self) -> bool {
        self.waives_landlock && self.own.has_no_new_privs()
    }

    /// Returns true if every caller is refused, because this process could not see that Landlock confines a caller.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.own.has_no_new_privs() && !self.waives_landlock
    }

    /// Checks that the process that connected is confined just as this one is, if it matters for `purpose`. `accepted`
    /// is the time when the connection was accepted. Returns the parent of that process.
    ///
    /// # Errors
    /// The first difference, or the reason why there may be one.
    pub fn compare(&self, socket: &impl AsFd, accepted: Moment, purpose: Purpose) -> Result<Option<Pid>, Doubt> {
        if self.is_blind() {
            return Err(Doubt::Differs(BLIND));
        }
        let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
        let pid = credentials.map_err(|_| Doubt::Differs(UNREADABLE))?.pid();
        let pid = Pid::new(pid);
        if pid.number() <= 0 {
            return Err(Doubt::Differs(ELSEWHERE));
        }
        let pin = pin::of_peer(socket, pid, accepted).map_err(|error| Doubt::of(&error, GONE))?;
        let seen = self.examine(pid, purpose);
        // Only if the process still lives has its number been its own all the time.
        if !lives(&pin) {
            return Err(Doubt::Differs(GONE));
        }
        let (parent, difference) = seen.map_err(|error| Doubt::of(&error, UNREADABLE))?;
        difference.map_or(Ok(parent), |words| Err(Doubt::Differs(words)))
    }

    /// The parent of a process, and its first difference. Each thread has its own seccomp filters, Landlock rules and
    /// more, and nothing tells which thread called connect(2), so no thread may differ.
    fn examine(&self, pid: Pid, purpose: Purpose) -> io::Result<(Option<Pid>, Option<Difference>)> {
        let place = pid.to_string();
        let first = Confinement::read(&directory(&self.proc, &place)?, &place, self.has_labels)?;
        let difference = self.own.difference(&first, purpose);
        if difference.is_some() || first.is_single {
            return Ok((first.parent, difference));
        }
        for (count, thread) in std::fs::read_dir(format!("/proc/{pid}/task"))?.enumerate() {
            let name = format!("{pid}/task/{}", thread?.file_name().display());
            let difference = match directory(&self.proc, &name) {
                Err(error) if is_gone(&error) => None,
                thread => self.thread_difference(&thread?, &name, purpose)?,
            };
            if difference.is_some() || count >= THREADS_MAX {
                return Ok((first.parent, difference.or(Some("too many threads to look at"))));
            }
        }
        Ok((first.parent, None))
    }

    /// The first difference of a further thread. A thread that ends meanwhile has none: the other threads share its
    /// memory, and they are equal.
    fn thread_difference(&self, thread: &OwnedFd, place: &str, purpose: Purpose) -> io::Result<Option<Difference>> {
        let seen = Confinement::read(thread, place, self.has_labels);
        match seen.map(|seen| self.own.difference(&seen, purpose)) {
            Ok(None) => Ok(None),
            _ if is_ending(place) => Ok(None),
            seen => seen,
        }
    }
}

/// Returns true if a thread's directory in /proc, or a file in it, is gone.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests;
