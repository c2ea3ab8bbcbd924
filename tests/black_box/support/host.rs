//! A host that belongs to a test, and the check that it leaves nothing behind.
//!
//! Each host has a directory of mode 0700 with its socket and its journal. When a test drops its host, the host must
//! first be idle again (no process but its spare guards, no more descriptors than at the start), then leave on SIGTERM
//! within the promised time, remove its socket, and leave a journal in which every start has its end. Pseudo-terminals
//! are not counted, because one lives exactly as long as a descriptor for it.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::signal::Signal;
use nix::unistd::pipe2;
use rexec_host::limits::PARKED_GUARDS;
use rexec_sh::protocol::mark::GUARD_NAME;

use super::call::{Call, Outcome, Target, dir, usual_env};
use super::journal::Journal;
use super::procs::{self, Process};
use super::programs;
use super::reader::Reader;
use super::signals;
use super::temp::TempDir;
use super::terminal::Terminal;
use super::waiting::{self, PATIENCE};
use super::warden::{Control, Ended, Plan, State, USUAL, Warden};

/// How a host is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) user: Option<u32>,
    /// A real terminal in the place of the console; else it is a file.
    pub(crate) terminal: bool,
    /// A pipe in the place of the console, as before a pager.
    pub(crate) pipe: bool,
    /// Nobody reads the terminal or the pipe until [`Host::read_console`] is called.
    pub(crate) is_stuck: bool,
    /// Which descriptors of commands are a terminal (`--tty`), unless the flags say it.
    pub(crate) tty: &'static str,
    pub(crate) flags: &'static [&'static str],
    /// A program, with its arguments, that starts the host.
    pub(crate) wrapper: &'static [&'static str],
    pub(crate) state: State,
}

/// A host that gives every command a terminal, as most tests want it: what is hard happens there.
pub(crate) const PLAIN: Setup = Setup {
    user: None,
    terminal: false,
    pipe: false,
    is_stuck: false,
    tty: "always",
    flags: &[],
    wrapper: &[],
    state: USUAL,
};

/// A host as a person starts it: commands see what their callers have.
pub(crate) const MIRROR: Setup = Setup { tty: "auto", ..PLAIN };

/// How long an ordered shutdown may take before it counts as one that hangs. The host's own bound is five seconds.
pub(crate) const SHUTDOWN: Duration = PATIENCE;

/// What an idle host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Baseline {
    descriptors: usize,
    processes: usize,
    /// Those of them that are guards without a process below them.
    free_guards: usize,
}

impl Baseline {
    /// Whether an idle host that began as `first` may have this. Guards that ran commands at the same time wait for
    /// others for [`PARKED_IDLE`](rexec_host::limits::PARKED_IDLE), each with a socket of the host's.
    fn is_idle(&self, first: &Self) -> bool {
        let parked = self.free_guards.saturating_sub(first.free_guards).min(PARKED_GUARDS);
        self.descriptors <= first.descriptors + parked && self.processes <= first.processes + parked
    }
}

#[derive(Debug)]
pub(crate) struct Host {
    // Dropped before the directory: a host that still runs makes its socket again in one that is emptied.
    pub(crate) warden: Warden,
    pub(crate) home: TempDir,
    pub(crate) terminal: Option<Terminal>,
    console: Option<Reader>,
    /// What nobody reads yet.
    unread: Option<OwnedFd>,
    setup: Setup,
    baseline: Baseline,
    is_checked: bool,
    /// How many of its recorders the test killed.
    recorders_killed: AtomicUsize,
}

/// What a host that is ready has written on its console.
const JOURNAL_LINE: &str = "rexec journal: ";

impl Host {
    pub(crate) fn start() -> Self {
        Self::with(PLAIN)
    }

    pub(crate) fn with(setup: Setup) -> Self {
        Self::in_dir(TempDir::new(setup.user), setup)
    }

    /// Starts a host in a directory that an earlier one may have used, and waits until it is ready.
    pub(crate) fn in_dir(home: TempDir, setup: Setup) -> Self {
        Self::at(home, setup, setup.terminal.then(|| Terminal::new(120, 40)))
    }

    /// The same at this terminal.
    pub(crate) fn at(home: TempDir, setup: Setup, terminal: Option<Terminal>) -> Self {
        signals::undo_ignored();
        let (near, far) = match &terminal {
            Some(terminal) => (Some(terminal.master_file().into()), None),
            None if setup.pipe => pipe2(OFlag::O_CLOEXEC).map(|(near, far)| (Some(near), Some(far))).expect("a pipe"),
            None => (None, None),
        };
        // An earlier host has written to the same console.
        let earlier = fs::read_to_string(home.join("console")).unwrap_or_default().matches(JOURNAL_LINE).count();
        let warden = launch_on(home.path(), &setup, terminal.as_ref(), far);
        let baseline = Baseline { descriptors: 0, processes: 0, free_guards: 0 };
        let mut host = Self {
            home,
            warden,
            terminal,
            console: None,
            unread: near,
            setup,
            baseline,
            is_checked: false,
            recorders_killed: AtomicUsize::new(0),
        };
        if !setup.is_stuck {
            host.read_console();
        }
        let ready = waiting::until_true(PATIENCE, || {
            let text = host.console_text();
            let has_said = text.matches(JOURNAL_LINE).count() > earlier;
            has_said || (setup.is_stuck && UnixStream::connect(host.socket()).is_ok())
        });
        if !ready {
            host.is_checked = true;
            panic!("the host did not become ready; it said: {}{}", host.console_text(), host.errors());
        }
        host.baseline = host.at_rest(|| host.now());
        host
    }

    /// Begins to read a terminal or pipe that is the console.
    pub(crate) fn read_console(&mut self) {
        self.console = self.unread.take().map(|unread| Reader::new(unread, usize::MAX));
    }

    /// Closes a pipe that is the console, and that nobody reads.
    pub(crate) fn close_console(&mut self) {
        self.unread = None;
    }

    /// Closes the window: the test's ends of a terminal that is the console, and that nobody reads.
    pub(crate) fn close_window(&mut self) {
        self.unread = None;
        self.terminal = None;
    }

    /// The pid of the host itself, whatever started it.
    pub(crate) fn pid(&self) -> i32 {
        if self.setup.wrapper.is_empty() {
            return self.warden.pid();
        }
        let host = self.warden.tree().into_iter().find(|process| process.comm.starts_with("rexec-host"));
        host.map_or(self.warden.pid(), |process| process.pid)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.home.join("host.sock")
    }

    /// The directory of its journal.
    pub(crate) fn journal_home(&self) -> PathBuf {
        self.home.join("journal")
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.journal_home())
    }

    /// Waits until the journal answers a question, as long as the host works.
    pub(crate) fn wait_for<T>(&self, what: &str, mut ask: impl FnMut(&Journal) -> Option<T>) -> T {
        waiting::until_at_rest(|| procs::processor_time(self.pid()), || ask(&self.journal()))
            .unwrap_or_else(|| panic!("the journal never had {what}: {:#?}", self.journal()))
    }

    /// Waits until its console says this. What the journal has, or a caller, the console may show a moment later.
    #[track_caller]
    pub(crate) fn console_says(&self, text: &str) {
        let says = || self.console_text().contains(text);
        assert!(waiting::until_true(PATIENCE, says), "it never says {text:?}: {}", self.console_text());
    }

    /// What stands on its console.
    pub(crate) fn console_text(&self) -> String {
        let bytes = match &self.console {
            Some(reader) => reader.so_far(),
            None => fs::read(self.home.join("console")).unwrap_or_default(),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// What it wrote on its standard error.
    pub(crate) fn errors(&self) -> String {
        fs::read_to_string(self.home.join("errors")).unwrap_or_default()
    }

    /// Runs `bash -c SCRIPT` by the shim in the host's directory, in terminal mode.
    pub(crate) fn run(&self, script: &(impl AsRef<[u8]> + ?Sized)) -> Outcome {
        self.call(script).run(Target::Shim(&self.socket()))
    }

    /// A call that fits this host: its user, its directory.
    pub(crate) fn call(&self, script: &(impl AsRef<[u8]> + ?Sized)) -> Call {
        Call { user: self.setup.user, ..Call::bash(script, self.home.path()) }
    }

    /// Everything below the host: guards, shells, and what those started.
    pub(crate) fn tree(&self) -> Vec<Process> {
        procs::descendants(self.pid())
    }

    /// What there is to see while it sleeps. A host that is just making a guard in reserve does not, however long it
    /// takes.
    pub(crate) fn at_rest<T: PartialEq>(&self, look: impl Fn() -> T) -> T {
        let is_asleep = || procs::is_polling(self.pid());
        let seen = waiting::until(PATIENCE, || {
            let now = look();
            (is_asleep() && look() == now && is_asleep()).then_some(now)
        });
        seen.unwrap_or_else(|| {
            panic!("a host that has nothing to do sleeps: {:?} {} {}", self.now(), self.console_text(), self.errors())
        })
    }

    fn now(&self) -> Baseline {
        let pid = self.pid();
        let tree = procs::descendants(pid);
        let is_guard = |process: &Process| process.comm.as_bytes() == GUARD_NAME.to_bytes() && !process.is_zombie();
        let is_free = |guard: &&Process| is_guard(guard) && !tree.iter().any(|other| other.parent == guard.pid);
        let free_guards = tree.iter().filter(is_free).count();
        Baseline { descriptors: procs::descriptors(pid), processes: tree.len(), free_guards }
    }

    /// Waits until nothing runs and everything is given back but for guards in reserve.
    pub(crate) fn wait_idle(&self) {
        let base = self.baseline;
        if !waiting::until_true(PATIENCE, || self.now().is_idle(&base)) {
            let list: Vec<String> =
                self.tree().iter().map(|p| format!("{} {} {} {}", p.pid, p.state, p.comm, p.command())).collect();
            let fds = procs::descriptor_list(self.pid());
            panic!("the host does not become idle: {base:?} at first, now {:?}\n{list:#?}\n{fds:#?}", self.now());
        }
        let zombies: Vec<Process> = self.tree().into_iter().filter(Process::is_zombie).collect();
        let reaped =
            || zombies.iter().all(|zombie| Process::of(zombie.pid).is_none_or(|now| now.start != zombie.start));
        assert!(waiting::until_true(PATIENCE, reaped), "zombies stay: {zombies:?}");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), signal).expect("the host runs");
    }

    /// Stops it: once this is over, whatever happens is found by it when it goes on, and all of it at once.
    pub(crate) fn stop(&self) {
        self.signal(Signal::SIGSTOP);
        let is_stopped = || Process::of(self.pid()).is_some_and(|host| host.state == 'T');
        assert!(waiting::until_true(PATIENCE, is_stopped), "it does not stop");
    }

    /// SIGKILLs it, waits for its end, and gives back the directory for the next one. What its guards still do goes
    /// on below the warden.
    pub(crate) fn kill(self) -> (TempDir, Warden) {
        self.end_by(Signal::SIGKILL)
    }

    /// The same by a signal that it may answer.
    pub(crate) fn end_by(mut self, signal: Signal) -> (TempDir, Warden) {
        self.end_unchecked(signal);
        let empty = TempDir::new(None);
        let idle = Warden::start(Plan::new::<&str, &str>(Path::new("/bin/true"), &["true"], &[])).expect("true");
        (std::mem::replace(&mut self.home, empty), std::mem::replace(&mut self.warden, idle))
    }

    /// Ends it by a signal, and looks at nothing that it leaves.
    pub(crate) fn end_unchecked(&mut self, signal: Signal) {
        self.is_checked = true;
        self.signal(signal);
        self.warden.wait(PATIENCE).expect("it ends");
    }

    /// The process that writes its journal.
    pub(crate) fn recorder(&self) -> Process {
        self.recorders().into_iter().next().unwrap_or_else(|| panic!("no recorder: {:#?}", self.tree()))
    }

    /// Waits until the host has another recorder than this one.
    pub(crate) fn has_replaced(&self, before: &Process) -> bool {
        waiting::until_true(PATIENCE, || self.recorders().iter().any(|recorder| recorder.pid != before.pid))
    }

    fn recorders(&self) -> Vec<Process> {
        let mut children = procs::children(self.pid());
        children.retain(|child| child.comm == "rexec-recorder" && !child.is_zombie());
        children
    }

    /// Kills a recorder, in the middle of a write perhaps.
    pub(crate) fn kill_recorder(&self, recorder: &Process) {
        self.recorders_killed.fetch_add(1, Ordering::Relaxed);
        recorder.signal(Signal::SIGKILL);
    }

    /// Waits for the end of a host that was told to leave, and checks what it leaves.
    pub(crate) fn check_end(&mut self) -> Ended {
        let ended = self.check_gone();
        let faults = self.journal().faults(*self.recorders_killed.get_mut());
        assert!(faults.is_empty(), "the journal has faults: {faults:#?}");
        ended
    }

    /// The same without the journal.
    pub(crate) fn check_gone(&mut self) -> Ended {
        self.is_checked = true;
        let Some(ended) = self.warden.wait(SHUTDOWN) else {
            panic!("the host does not leave; {}\n{:#?}", self.errors(), self.warden.tree());
        };
        let gone = self.warden.is_empty_within(SHUTDOWN);
        assert!(gone, "processes outlive the host: {:#?}", self.warden.tree());
        assert!(!self.socket().exists(), "the socket outlives the host");
        // The terminal may still hold its last words.
        self.console.iter().for_each(|console| _ = console.to_silence());
        ended
    }

    /// The whole check: idle again, an ordered end, nothing left. Dropping a host does the same.
    pub(crate) fn finish(mut self) {
        self.check();
    }

    /// An ordered end of a host whose journal is not expected to be whole; gives back the directory.
    pub(crate) fn leave(mut self) -> TempDir {
        self.wait_idle();
        self.is_checked = true;
        self.signal(Signal::SIGTERM);
        let ended = self.warden.wait(SHUTDOWN).is_some() && self.warden.is_empty_within(SHUTDOWN);
        assert!(ended, "the host does not leave; {}\n{:#?}", self.errors(), self.warden.tree());
        std::mem::replace(&mut self.home, TempDir::new(None))
    }

    fn check(&mut self) {
        self.wait_idle();
        self.signal(Signal::SIGTERM);
        self.check_end();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !self.is_checked && !std::thread::panicking() {
            self.check();
        }
    }
}

/// The environment of a host that lives in this directory.
pub(crate) fn environment(home: &Path) -> Vec<Vec<u8>> {
    let mut env = usual_env(home);
    env.push(b"TZ=UTC0".to_vec());
    env.push(format!("REXEC_SOCKET={}", home.join("host.sock").display()).into_bytes());
    env.push(format!("REXEC_HOME={}", home.join("journal").display()).into_bytes());
    env
}

/// Starts a host process without waiting for anything.
pub(crate) fn launch(home: &Path, setup: &Setup, terminal: Option<&Terminal>) -> Warden {
    launch_on(home, setup, terminal, None)
}

/// As [`launch`], with this pipe as the console if it is not a terminal.
fn launch_on(home: &Path, setup: &Setup, terminal: Option<&Terminal>, pipe: Option<OwnedFd>) -> Warden {
    // A host without a shim beside it says so.
    programs::shims();
    let host = programs::host().to_str().expect("a path in UTF-8");
    let blind = has_no_new_privs().then_some("--allow-sandboxed");
    let says_itself = setup.flags.iter().any(|flag| flag.starts_with("--tty") || *flag == "--no-pty");
    let tty = ["--tty", setup.tty].into_iter().filter(|_| !says_itself);
    let flags = tty.chain(setup.flags.iter().copied()).chain(blind);
    let argv: Vec<&str> = setup.wrapper.iter().copied().chain([host]).chain(flags).collect();
    let program = match setup.wrapper.first() {
        Some(wrapper) => programs::find(wrapper).unwrap_or_else(|| panic!("{wrapper} is not installed")),
        None => programs::host().to_owned(),
    };
    let mut plan = Plan::new(&program, &argv, &environment(home));
    plan.dir = Some(dir(home));
    plan.user = setup.user;
    plan.state = setup.state;
    let log = |name: &str| OwnedFd::from(append(&home.join(name), setup.user));
    plan.descriptors = match terminal {
        Some(terminal) => vec![(terminal.slave(), 0), (terminal.slave(), 1), (log("errors"), 2)],
        None => {
            let null = File::open("/dev/null").expect("/dev/null");
            vec![(null.into(), 0), (pipe.unwrap_or_else(|| log("console")), 1), (log("errors"), 2)]
        }
    };
    plan.control = terminal.map_or(Control::None, |terminal| Control::Foreground(terminal.slave()));
    Warden::start(plan).expect("the host can be executed")
}

/// Whether the tests themselves have no_new_privs, as in some containers: a host then takes nobody in unless it is told
/// to.
pub(crate) fn has_no_new_privs() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| status.contains("NoNewPrivs:\t1"))
}

fn append(path: &Path, user: Option<u32>) -> File {
    let file = OpenOptions::new().create(true).append(true).open(path).expect("a log file");
    if user.is_some() {
        std::os::unix::fs::chown(path, user, user).expect("the file is ours to give away");
    }
    file
}
