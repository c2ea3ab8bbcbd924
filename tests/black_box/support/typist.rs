//! A person at a terminal: types, reads the screen, changes the window, and looks at the modes that are left.

use std::cell::{Cell, OnceCell};
use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::libc;
use nix::sys::termios::Termios;

use super::call::{dir, usual_env};
use super::procs::{self, Process};
use super::reader::Reader;
use super::screen::Screen;
use super::terminal::Terminal;
use super::waiting::{self, PATIENCE};
use super::warden::{Control, Ended, Plan, Warden};

/// What stands on descriptors 0, 1 and 2 of a program at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    Terminal,
    Null,
    /// A pipe that the test reads.
    Pipe,
}

#[derive(Debug)]
pub(crate) struct Typist {
    pub(crate) terminal: Terminal,
    pub(crate) warden: Warden,
    pub(crate) before: Termios,
    screen: OnceCell<Reader>,
    pub(crate) pipe: Option<Reader>,
    /// How much of the screen was read.
    read: usize,
    size: Cell<(u16, u16)>,
    /// Where the program was started.
    home: PathBuf,
}

impl Typist {
    /// Starts a program that leads the session of a new terminal.
    pub(crate) fn start(program: &Path, argv: &[&str], env: &[String], home: &Path, at: [At; 3]) -> Self {
        let typist = Self::blind(program, argv, env, home, at);
        typist.reader();
        typist
    }

    /// The same by somebody who does not look.
    pub(crate) fn blind(program: &Path, argv: &[&str], env: &[String], home: &Path, at: [At; 3]) -> Self {
        let size = (80, 24);
        let terminal = Terminal::new(size.0, size.1);
        let before = terminal.modes();
        let mut entries = usual_env(home);
        entries.extend(env.iter().map(|entry| entry.clone().into_bytes()));
        let mut plan = Plan::new(program, argv, &entries);
        plan.dir = Some(dir(home));
        let mut pipe = None;
        for (fd, at) in (0..).zip(at) {
            let descriptor: OwnedFd = match at {
                At::Terminal => terminal.slave(),
                At::Null => std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").expect("it").into(),
                At::Pipe => {
                    let (near, far) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).expect("a pipe");
                    pipe = Some(Reader::new(near, usize::MAX));
                    far
                }
            };
            plan.descriptors.push((descriptor, fd));
        }
        plan.control = Control::Foreground(terminal.slave());
        let home = fs::canonicalize(home).expect("a directory");
        let warden = Warden::start(plan).expect("the program can be executed");
        Self { terminal, warden, before, screen: OnceCell::new(), pipe, read: 0, size: Cell::new(size), home }
    }

    fn reader(&self) -> &Reader {
        self.screen.get_or_init(|| Reader::new(self.terminal.master_file().into(), usize::MAX))
    }

    /// Closes the terminal that nobody looks at; gives what still runs there.
    pub(crate) fn hangs_up(self) -> Warden {
        assert!(self.screen.get().is_none(), "who reads the screen holds it open");
        self.warden
    }

    /// Types.
    pub(crate) fn types(&self, keys: &[u8]) {
        self.terminal.master_file().write_all(keys).expect("the terminal takes keys");
    }

    /// Waits until the screen has brought this, behind everything waited for so far; gives what came with it.
    pub(crate) fn sees(&mut self, text: &str) -> String {
        let from = self.read;
        let found = self.reader().wait_to_find(text.as_bytes(), from);
        let Some(to) = found else { panic!("never saw {text:?}; since the last time: {:?}", self.last_part()) };
        self.read = to;
        String::from_utf8_lossy(&self.reader().so_far()[from..to]).into_owned()
    }

    /// What the screen has brought that was not waited for.
    pub(crate) fn rest(&self) -> String {
        String::from_utf8_lossy(&self.reader().so_far()[self.read..]).into_owned()
    }

    /// The end of that, for a message.
    fn last_part(&self) -> String {
        let rest = self.rest();
        rest.chars().skip(rest.chars().count().saturating_sub(2_000)).collect()
    }

    /// Everything that the screen has brought.
    pub(crate) fn screen(&self) -> String {
        String::from_utf8_lossy(&self.reader().so_far()).into_owned()
    }

    /// Changes the window.
    pub(crate) fn resizes(&self, cols: u16, rows: u16) {
        self.size.set((cols, rows));
        self.terminal.resize(cols, rows);
    }

    /// The screen as it is now.
    pub(crate) fn drawn(&self) -> Screen {
        Screen::of(&self.reader().so_far(), self.size.get())
    }

    /// Waits until this stands on the screen.
    pub(crate) fn shows(&self, text: &str) {
        let is_there = waiting::until_true(PATIENCE, || self.drawn().text().contains(text));
        assert!(is_there, "{text:?} is never on the screen: {}", self.drawn().text());
    }

    /// Waits until this program, started from the program's directory, waits for keys.
    pub(crate) fn listens(&self, program: &str) {
        let is_it = |process: &Process| {
            process.comm == program
                && fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|at| at == self.home)
        };
        let own = nix::unistd::getpid().as_raw();
        let waits =
            || procs::descendants(own).iter().any(|process| is_it(process) && procs::waits_for_keys(process.pid));
        assert!(waiting::until_true(PATIENCE, waits), "{program} never waits for keys: {}", self.drawn().text());
    }

    /// Waits until the terminal has the modes from the start, or has not.
    pub(crate) fn has_its_modes(&self, wanted: bool) -> bool {
        waiting::until_true(PATIENCE, || (self.terminal.modes() == self.before) == wanted)
    }

    /// Whether a program below passes everything on.
    pub(crate) fn is_raw(&self) -> bool {
        waiting::until_true(PATIENCE, || {
            !self.terminal.modes().local_flags.bits() & libc::ICANON != 0
                && self.terminal.modes().output_flags.bits() & libc::OPOST == 0
        })
    }

    /// Waits for the end; all output has come then.
    pub(crate) fn ends(&mut self) -> Ended {
        let ended = self.warden.wait(PATIENCE).unwrap_or_else(|| {
            panic!("it does not end; since the last time: {:?}; {:#?}", self.last_part(), self.warden.tree())
        });
        self.reader().to_silence();
        if let Some(pipe) = &self.pipe {
            pipe.to_silence();
        }
        ended
    }
}
