//! What a process is confined by, as the kernel shows it, and whether a caller is confined just as this process is.
//!
//! A command runs with what the host may do. A caller in a sandbox may do less, so the host compares: the namespaces,
//! the root directory, seccomp, `no_new_privs`, identity, capabilities and the security label of whoever called
//! connect(2). Confinement only ever grows, so what is seen when the command has come holds for as long as it matters.
//!
//! Invariants: a caller counts as equal only if everything was read and nothing differs; what was read is of the process
//! that connected, because that one is pinned by a descriptor before the reading and still alive after it; the numbers
//! in /proc are of our own process namespace, which is checked once.
//!
//! Not visible here: Landlock, but for the `no_new_privs` that everybody without CAP_SYS_ADMIN needs for it; and which
//! filters seccomp has, only how many.

mod pin;

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::fcntl::{OFlag, openat};
use nix::libc;
use nix::sys::stat::Mode;

use self::pin::{lives, pin_by_number, pin_of_peer};
use super::stat::Stat;
use rexec_sh::protocol::process::Pid;

pub use self::pin::Moment;

/// Why a caller is not equal: a few words for a person.
pub type Difference = &'static str;

const UNREADABLE: Difference = "it cannot be looked at";
const GONE: Difference = "who connected is gone";
const ELSEWHERE: Difference = "other pid namespace";
const BLIND: Difference = "no_new_privs of the host";

/// Why a caller is not to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is not confined as this process is, or nobody can tell.
    Differs(Difference),
    /// This process has no descriptors or memory left to look at it.
    Shortage,
}

impl Doubt {
    fn of(error: &io::Error, words: Difference) -> Self {
        if error.raw_os_error().is_some_and(super::is_shortage) { Self::Shortage } else { Self::Differs(words) }
    }
}

/// The six namespaces that separate. Of the process namespaces it is that of the children, which is the process's own
/// or one below it: a command is a child. Cgroup and time namespaces hide nothing.
const NAMESPACES: [(&CStr, Difference); 6] = [
    (c"ns/user", "other user namespace"),
    (c"ns/pid_for_children", ELSEWHERE),
    (c"ns/mnt", "other mount namespace"),
    (c"ns/net", "other network namespace"),
    (c"ns/ipc", "other ipc namespace"),
    (c"ns/uts", "other uts namespace"),
];

/// The lines of /proc/PID/status that count. The flag: it is there on every kernel that we run on.
const LINES: [(&[u8], Difference, bool); 9] = [
    (b"Seccomp:", "seccomp filter", false),
    (b"Seccomp_filters:", "seccomp filter", false),
    (b"NoNewPrivs:", "no_new_privs", true),
    (b"Uid:", "other user", true),
    (b"Gid:", "other group", true),
    (b"Groups:", "other groups", true),
    (b"CapEff:", "other capabilities", true),
    (b"CapPrm:", "other capabilities", true),
    (b"CapBnd:", "other capabilities to gain", true),
];
/// Where `NoNewPrivs:` is in [`LINES`].
const NO_NEW_PRIVS: usize = 2;

/// What a caller wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Have a command run: it inherits everything that is compared.
    Run,
    /// See or end what runs. kill(2) asks neither for groups nor for a bounding set, and a login by another way (ssh)
    /// often brings others.
    Supervise,
}

impl Purpose {
    fn counts(self, line: &[u8]) -> bool {
        self == Self::Run || !matches!(line, b"Groups:" | b"CapBnd:")
    }
}

/// The longest status that is read, bytes: a process can be in 65,536 groups.
const STATUS_BYTES_MAX: u64 = 1 << 20;
/// What a status has at most as a rule, bytes.
const STATUS_BYTES: usize = 4 << 10;

/// A caller with more threads than this is not looked at further.
const THREADS_MAX: usize = 256;

/// Device, inode and mount of a root directory.
type Root = (u32, u32, u64, u64);

/// What one process is confined by.
#[derive(Debug, Clone)]
struct Confinement {
    /// Whether it is a process of one thread.
    is_single: bool,
    /// A namespace that this kernel does not have is `None`.
    namespaces: [Option<Vec<u8>>; NAMESPACES.len()],
    root: Root,
    /// The values of [`LINES`]; `None` for a line that this kernel does not have.
    lines: [Option<Vec<u8>>; LINES.len()],
    /// The label of AppArmor, SELinux or Smack; `None` on a kernel without labels.
    label: Option<Vec<u8>>,
}

impl Confinement {
    /// Reads it, from an open /proc/PID. Without labels on this system none is looked for.
    fn read(process: &OwnedFd, has_labels: bool) -> io::Result<Self> {
        let mut status = Vec::with_capacity(STATUS_BYTES);
        open(process, c"status")?.take(STATUS_BYTES_MAX).read_to_end(&mut status)?;
        let mut namespaces = [const { None }; NAMESPACES.len()];
        for (namespace, (name, _)) in namespaces.iter_mut().zip(NAMESPACES) {
            *namespace = optional(link(process, name))?;
        }
        Ok(Self {
            is_single: status.split(|&byte| byte == b'\n').any(|line| line == b"Threads:\t1"),
            namespaces,
            root: root(process)?,
            lines: lines(&status)?,
            label: if has_labels { label(process)? } else { None },
        })
    }

    fn has_no_new_privs(&self) -> bool {
        self.lines[NO_NEW_PRIVS].as_deref() != Some(b"0")
    }

    /// The first thing in which they differ that counts for this purpose, the most telling first.
    fn difference(&self, other: &Self, purpose: Purpose) -> Option<Difference> {
        let namespaces = self.namespaces.iter().zip(&other.namespaces).zip(NAMESPACES);
        let lines = self.lines.iter().zip(&other.lines).zip(LINES);
        let lines = lines.filter(|(_, (name, ..))| purpose.counts(name));
        let namespaces = namespaces.filter(|((ours, theirs), _)| ours != theirs).map(|(_, (_, words))| words);
        let lines = lines.filter(|((ours, theirs), _)| ours != theirs).map(|(_, (_, words, _))| words);
        let root = (self.root != other.root).then_some("other root directory");
        let label = (self.label != other.label).then_some("other security label");
        namespaces.chain(root).chain(lines).chain(label).next()
    }
}

/// This process's own confinement, which callers are compared with.
#[derive(Debug)]
pub struct Standard {
    proc: OwnedFd,
    own: Confinement,
    has_labels: bool,
    waives_landlock: bool,
}

impl Standard {
    /// Reads this process's own.
    ///
    /// # Errors
    /// When /proc is not there, or does not count processes as this one does.
    pub fn read() -> io::Result<Self> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let proc = nix::fcntl::open(c"/proc", flags, Mode::empty()).map_err(super::io)?;
        let pid = std::process::id().to_string();
        if link(&proc, c"self")? != pid.as_bytes() {
            return Err(io::Error::other("/proc is that of another pid namespace"));
        }
        let own = Confinement::read(&directory(&proc, &pid)?, true)?;
        let has_labels = own.label.is_some();
        Ok(Self { proc, own, has_labels, waives_landlock: false })
    }

    /// Callers are compared in everything else, although Landlock cannot be seen.
    #[must_use]
    pub fn waiving_landlock(self) -> Self {
        Self { waives_landlock: true, ..self }
    }

    /// Whether Landlock does not count, and could not be seen.
    #[must_use]
    pub fn overlooks_landlock(&self) -> bool {
        self.waives_landlock && self.own.has_no_new_privs()
    }

    /// Whether this process lets nobody in, because it could not tell a caller that is confined by Landlock from one that
    /// is not.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.own.has_no_new_privs() && !self.waives_landlock
    }

    /// Whether the process that connected is confined just as this one is, as far as it matters for this purpose.
    /// `accepted` is when it was let in.
    ///
    /// # Errors
    /// The first difference, or why it cannot be known.
    pub fn compare(&self, socket: &impl AsFd, accepted: Moment, purpose: Purpose) -> Result<(), Doubt> {
        if self.is_blind() {
            return Err(Doubt::Differs(BLIND));
        }
        let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials);
        let pid = credentials.map_err(|_| Doubt::Differs(UNREADABLE))?.pid();
        let pid = Pid::new(pid);
        if pid.number() <= 0 {
            return Err(Doubt::Differs(ELSEWHERE));
        }
        let pin = match pin_of_peer(socket) {
            // Older than Linux 6.5.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => pin_by_number(pid, accepted),
            pin => pin,
        };
        let pin = pin.map_err(|error| Doubt::of(&error, GONE))?;
        let seen = self.examine(pid, purpose);
        // Its number was its own all the time only if it still lives.
        if !lives(&pin) {
            return Err(Doubt::Differs(GONE));
        }
        let difference = seen.map_err(|error| Doubt::of(&error, UNREADABLE))?;
        difference.map_or(Ok(()), |words| Err(Doubt::Differs(words)))
    }

    /// A process's first difference. Seccomp, Landlock and more are a thread's own, and nobody tells which thread called
    /// connect(2), so none may differ.
    fn examine(&self, pid: Pid, purpose: Purpose) -> io::Result<Option<Difference>> {
        let process = directory(&self.proc, &pid.to_string())?;
        let first = Confinement::read(&process, self.has_labels)?;
        let difference = self.own.difference(&first, purpose);
        if difference.is_some() || first.is_single {
            return Ok(difference);
        }
        for (count, thread) in std::fs::read_dir(format!("/proc/{pid}/task"))?.enumerate() {
            let name = format!("{pid}/task/{}", thread?.file_name().display());
            let difference = match directory(&self.proc, &name) {
                Err(error) if is_gone(&error) => None,
                thread => self.thread_difference(&thread?, purpose)?,
            };
            if difference.is_some() || count >= THREADS_MAX {
                return Ok(difference.or(Some("too many threads to look at")));
            }
        }
        Ok(None)
    }

    /// A further thread's first difference. One that ends meanwhile has none: whatever it was, the others share their
    /// memory with it and are equal.
    fn thread_difference(&self, thread: &OwnedFd, purpose: Purpose) -> io::Result<Option<Difference>> {
        let seen = Confinement::read(thread, self.has_labels);
        match seen.map(|seen| self.own.difference(&seen, purpose)) {
            Ok(None) => Ok(None),
            _ if is_ending(thread) => Ok(None),
            seen => seen,
        }
    }
}

/// Whether a thread's directory, or what is in it, is not there any more.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

/// Whether a thread that could not be read is ending: the kernel then shows less of it, and denies the rest.
fn is_ending(thread: &OwnedFd) -> bool {
    const PF_EXITING: u64 = 4;
    let mut stat = Vec::new();
    match open(thread, c"stat").and_then(|mut file| file.read_to_end(&mut stat)) {
        Ok(_) => Stat::read(&stat).and_then(|stat| stat.field::<u64>(9)).is_some_and(|flags| flags & PF_EXITING != 0),
        Err(error) => is_gone(&error),
    }
}

/// A process's directory. Once open it is of that process and of no later one with its number.
fn directory(proc: &OwnedFd, pid: &str) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(proc, pid, flags, Mode::empty()).map_err(super::io)
}

fn open(process: &OwnedFd, name: &CStr) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    openat(process, name, flags, Mode::empty()).map(File::from).map_err(super::io)
}

fn link(directory: &OwnedFd, name: &CStr) -> io::Result<Vec<u8>> {
    let mut target = [0_u8; 64];
    let buffer = target.as_mut_ptr().cast();
    // SAFETY: the kernel writes into the buffer, no further than its length.
    let length = unsafe { libc::readlinkat(directory.as_raw_fd(), name.as_ptr(), buffer, target.len()) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    if length == target.len() {
        return Err(io::Error::other("a name longer than any"));
    }
    Ok(target[..length].to_vec())
}

/// What does not exist, here and for everybody.
fn optional<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Two directories can be one by device and inode and still show different things below: the mount counts too.
fn root(process: &OwnedFd) -> io::Result<Root> {
    const WANTED: u32 = libc::STATX_INO | libc::STATX_MNT_ID;
    // SAFETY: every field is a number, for which zero is a value.
    let mut seen: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills the structure, and the name ends with a NUL.
    super::check(unsafe { libc::statx(process.as_raw_fd(), c"root".as_ptr(), 0, WANTED, &raw mut seen) })?;
    if seen.stx_mask & WANTED != WANTED {
        return Err(io::Error::other("the mount of a root directory cannot be told"));
    }
    Ok((seen.stx_dev_major, seen.stx_dev_minor, seen.stx_ino, seen.stx_mnt_id))
}

fn lines(status: &[u8]) -> io::Result<[Option<Vec<u8>>; LINES.len()]> {
    let mut values = [const { None }; LINES.len()];
    for line in status.split(|&byte| byte == b'\n') {
        for (value, (name, ..)) in values.iter_mut().zip(LINES) {
            if let Some(rest) = line.strip_prefix(name) {
                *value = Some(rest.trim_ascii().to_vec());
            }
        }
    }
    let is_whole = values.iter().zip(LINES).all(|(value, (.., is_usual))| value.is_some() || !is_usual);
    if is_whole { Ok(values) } else { Err(io::Error::other("a status without the usual lines")) }
}

/// EINVAL is the answer of a kernel none of whose modules gives labels.
fn label(process: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = optional(open(process, c"attr/current"))? else { return Ok(None) };
    let mut label = Vec::new();
    match file.take(STATUS_BYTES_MAX).read_to_end(&mut label) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        read => read.map(|_| Some(label)),
    }
}

#[cfg(test)]
mod tests {
    use super::pin::tests::sleeper;
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    const STATUS: &[u8] =
        b"Name:\tsh\nUid:\t1\t1\t1\t1\nGid:\t2\t2\t2\t2\nGroups:\t4 24 27 \nCapPrm:\t00\nCapEff:\t00\n\
        CapBnd:\t1ff\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t3\n";

    fn standard() -> Standard {
        Standard::read().unwrap()
    }

    fn confinement(standard: &Standard, pid: u32) -> io::Result<Confinement> {
        Confinement::read(&directory(&standard.proc, &pid.to_string())?, standard.has_labels)
    }

    #[test]
    fn a_status_is_read_whole_or_not_at_all() {
        let values = lines(STATUS).unwrap();
        let of = |name: &[u8]| values[LINES.iter().position(|(other, ..)| *other == name).unwrap()].as_deref();
        assert_eq!(of(b"Groups:"), Some(b"4 24 27".as_slice()));
        assert_eq!(of(b"Seccomp:"), Some(b"2".as_slice()));
        assert_eq!(of(b"Seccomp_filters:"), Some(b"3".as_slice()));
        assert_eq!(LINES[NO_NEW_PRIVS].0, b"NoNewPrivs:");
        for (name, _, is_usual) in LINES {
            let without: Vec<&[u8]> =
                STATUS.split_inclusive(|&b| b == b'\n').filter(|line| !line.starts_with(name)).collect();
            assert_eq!(lines(&without.concat()).is_err(), is_usual, "{}", name.escape_ascii());
        }
        assert!(lines(b"").is_err());
    }

    #[test]
    fn every_difference_has_its_words() {
        let ours = standard().own;
        assert_eq!(ours.difference(&ours.clone(), Purpose::Run), None);
        let assert_seen = |words: &str, change: &dyn Fn(&mut Confinement)| {
            let mut theirs = ours.clone();
            change(&mut theirs);
            assert_eq!(ours.difference(&theirs, Purpose::Run), Some(words));
            assert_eq!(theirs.difference(&ours, Purpose::Run), Some(words));
        };
        for (at, (_, words)) in NAMESPACES.into_iter().enumerate() {
            assert_seen(words, &|theirs| theirs.namespaces[at] = Some(b"x:[1]".to_vec()));
        }
        for (at, (_, words, _)) in LINES.into_iter().enumerate() {
            assert_seen(words, &|theirs| theirs.lines[at] = Some(b"17".to_vec()));
        }
        for (at, (name, words, _)) in LINES.into_iter().enumerate() {
            let mut theirs = ours.clone();
            theirs.lines[at] = Some(b"17".to_vec());
            let expected = (!matches!(name, b"Groups:" | b"CapBnd:")).then_some(words);
            assert_eq!(ours.difference(&theirs, Purpose::Supervise), expected);
        }
        assert_seen("other root directory", &|theirs| theirs.root.2 += 1);
        assert_seen("other root directory", &|theirs| theirs.root.3 += 1);
        assert_seen("other security label", &|theirs| theirs.label = Some(b"x (enforce)".to_vec()));
    }

    #[test]
    fn a_child_is_equal_while_it_lives() {
        let standard = standard();
        let mut child = sleeper();
        let seen = confinement(&standard, child.id()).unwrap();
        assert_eq!((seen.is_single, standard.own.difference(&seen, Purpose::Run)), (true, None));
        let pin = pin_by_number(Pid::new(child.id().cast_signed()), Moment::now()).unwrap();
        assert!(lives(&pin));
        child.kill().unwrap();
        while lives(&pin) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(confinement(&standard, child.id()).is_err());
        assert!(pin_by_number(Pid::new(child.id().cast_signed()), Moment::now()).is_err());
    }

    #[test]
    fn threads_that_come_and_go_are_no_difference() {
        let standard = standard();
        if standard.is_blind() {
            return;
        }
        let (near, _far) = UnixStream::pair().unwrap();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        std::thread::spawn(|| {}).join().unwrap();
                    }
                });
            }
            let seen: Vec<_> = (0..500).map(|_| standard.compare(&near, Moment::now(), Purpose::Run)).collect();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(seen.into_iter().find(Result::is_err), None);
        });
    }

    #[test]
    fn the_peer_of_a_socket_is_compared() {
        let path = std::env::temp_dir().join(format!("rexec-confinement-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let _near = UnixStream::connect(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (far, _) = listener.accept().unwrap();
        let mut standard = standard();
        let expected = if standard.is_blind() { Err(Doubt::Differs(BLIND)) } else { Ok(()) };
        assert_eq!(standard.compare(&far, Moment::now(), Purpose::Run), expected);
        standard.own.lines[NO_NEW_PRIVS] = Some(b"1".to_vec());
        assert_eq!(standard.compare(&far, Moment::now(), Purpose::Run), Err(Doubt::Differs(BLIND)));
        standard = standard.waiving_landlock();
        let seen = standard.compare(&far, Moment::now(), Purpose::Run);
        assert!(matches!(seen, Ok(()) | Err(Doubt::Differs("no_new_privs"))), "{seen:?}: nothing else is waived");
        standard.own.root.2 += 1;
        let seen = standard.compare(&far, Moment::now(), Purpose::Supervise);
        assert_eq!(seen, Err(Doubt::Differs("other root directory")));
    }
}
