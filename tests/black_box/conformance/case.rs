//! A case of the tables, and how it is run by the real shell and by the shim and compared.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rexec_host::limits;
use rexec_host::text::sanitize::{self, Sanitizer};

use crate::support::call::{Call, Input, Outcome, Output, Target, dir, usual_env};
use crate::support::host::{Host, PLAIN as PLAIN_HOST, Setup};
use crate::support::programs;
use crate::support::strip::strip;
use crate::support::temp::{Files, TempDir};
use crate::support::waiting::{self, PATIENCE};
use crate::support::warden::{State, USUAL};

/// How the shim is used, and with which oracle it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Commands have what their caller has, which is not a terminal, and output stays as it is.
    Pipe,
    /// The same as callers get it by default: the output is tidied, and so is the real shell's.
    Default,
    /// Commands have a terminal, and so has the real shell.
    Raw,
    /// The same, with the escape sequences taken out of both outputs.
    Strip,
    /// The same, with redraws resolved in both outputs.
    Collapse,
}

use Mode::{Collapse, Default, Pipe, Raw, Strip};

impl Mode {
    fn oracle(self) -> Target<'static> {
        match self {
            Pipe | Default => Target::Real,
            Raw | Strip | Collapse => Target::RealOnTerminal,
        }
    }

    /// What tells the shim to work this way, where the host gives commands terminals.
    fn env(self) -> &'static [&'static str] {
        match self {
            Pipe => &["REXEC_TTY=auto", "REXEC_SANITIZE=raw"],
            Default => &["REXEC_TTY=auto"],
            Raw => &["REXEC_SANITIZE=raw"],
            Strip => &["REXEC_SANITIZE=strip"],
            Collapse => &[],
        }
    }

    /// What the real shell's output is compared as, and the shim's.
    fn both(self, theirs: &[u8], ours: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let ours = without_pids(ours);
        match self {
            Pipe | Raw => (without_pids(theirs), ours),
            Default => (without_pids(&sanitized(sanitize::Mode::Tidy, theirs)), ours),
            Strip => (strip(&without_pids(theirs)), strip(&ours)),
            Collapse => {
                let mode = sanitize::Mode::Collapse { rows: limits::PTY_ROWS, cols: limits::PTY_COLS };
                (sanitized(mode, &without_pids(theirs)), ours)
            }
        }
    }
}

/// Where a case is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An empty directory, which is also the home.
    Home,
    /// A directory below it with a name that is not UTF-8.
    OddName,
    /// A directory that exists no longer.
    Deleted,
    /// A directory that its owner may not enter.
    Forbidden,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) script: &'static [u8],
    /// What stands before the script.
    pub(crate) options: &'static [&'static str],
    /// What stands behind the script.
    pub(crate) args: &'static [&'static [u8]],
    /// Which shell the caller wants.
    pub(crate) shell: &'static str,
    /// What the caller calls it: [`ITS_PATH`], or a name. The real shell is called without the `rexec-` of a link.
    pub(crate) argv0: &'static str,
    /// Added to the usual environment.
    pub(crate) env: &'static [&'static [u8]],
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) state: State,
    pub(crate) place: Place,
    /// Content of a file that is open as descriptor 3.
    pub(crate) third: Option<&'static [u8]>,
    pub(crate) needs: &'static [&'static str],
    pub(crate) modes: &'static [Mode],
    /// A file that something left in the background writes after the shell's exit.
    pub(crate) later: Option<&'static str>,
}

/// The path of the program that is executed, as most agents do: the shim's link or the real shell's own.
pub(crate) const ITS_PATH: &str = "";

/// A case as most are.
pub(crate) const PLAIN: Case = Case {
    name: "",
    script: b"",
    options: &["-c"],
    args: &[],
    shell: "bash",
    argv0: ITS_PATH,
    env: &[],
    input: Input::Null,
    output: Output::Apart,
    state: USUAL,
    place: Place::Home,
    third: None,
    needs: &[],
    modes: &[Pipe, Default, Raw, Strip, Collapse],
    later: None,
};

/// A hang guard. On a busy machine, a second of processor time takes long.
const HANG: Duration = Duration::from_secs(180);

/// What the shell or the shim made of a case.
#[derive(Debug)]
struct Seen {
    outcome: Outcome,
    files: Files,
}

impl Case {
    /// What this target is called.
    fn argv0(&self, target: Target<'_>) -> String {
        match (self.argv0, target) {
            (ITS_PATH, target) => target.program(self.shell).display().to_string(),
            (name, Target::Shim(_)) => name.to_owned(),
            (name, Target::Real | Target::RealOnTerminal) => name.replace("rexec-", ""),
        }
    }

    fn call(&self, home: &TempDir, user: Option<u32>, target: Target<'_>) -> Call {
        let place = self.prepare(home.path(), user);
        let mut argv = vec![self.argv0(target).into_bytes()];
        argv.extend(self.options.iter().map(|option| option.as_bytes().to_vec()));
        if !self.script.is_empty() {
            argv.push(self.script.to_vec());
        }
        argv.extend(self.args.iter().map(|arg| arg.to_vec()));
        let mut env = usual_env(home.path());
        env.extend(self.env.iter().map(|entry| entry.to_vec()));
        let extra = self.third.map(|bytes| (file_with(bytes, home), 3));
        let (input, output, state) = (self.input, self.output, self.state);
        Call { name: self.shell, argv, env, dir: place, input, output, state, user, extra: extra.into_iter().collect() }
    }

    /// Whether everything that it needs is here.
    fn can_be_had(&self) -> bool {
        // Only who was root a moment ago stands in a directory that it may not enter.
        let may_stand_there = !matches!(self.place, Place::Forbidden) || nix::unistd::geteuid().is_root();
        if !may_stand_there {
            programs::skipped("only root can put a caller into a directory of mode 000");
        }
        may_stand_there && self.needs.iter().all(|program| programs::has(program))
    }

    fn prepare(&self, home: &Path, user: Option<u32>) -> OwnedFd {
        let name: &[u8] = match self.place {
            Place::Home => return dir(home),
            Place::OddName => b"caf\xe9 \x01 dir",
            Place::Deleted | Place::Forbidden => b"place",
        };
        let path = home.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir(&path).expect("a fresh directory");
        chown(&path, user, user).expect("the directory is ours to give away");
        let place = dir(&path);
        match self.place {
            Place::Deleted => fs::remove_dir(&path).expect("it is empty"),
            Place::Forbidden => fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).expect("it is ours"),
            Place::Home | Place::OddName => {}
        }
        place
    }

    fn run(&self, home: &TempDir, user: Option<u32>, target: Target<'_>, env: &[&str]) -> Result<Seen, String> {
        let mut call = self.call(home, user, target);
        call.env.extend(env.iter().map(|entry| entry.as_bytes().to_vec()));
        let mut calling = call.start(target).map_err(|error| format!("cannot be executed: {error}"))?;
        let outcome = match self.later {
            // The real shell's pipes are held open by what it left; the shim's end with the shim.
            Some(_) if !matches!(target, Target::Shim(_)) => calling.finish_early(HANG),
            _ => calling.finish(HANG),
        };
        let Some(outcome) = outcome else { return Err(format!("hangs; processes: {:#?}", calling.warden.tree())) };
        if let Some(later) = self.later {
            let path = home.join(later);
            let is_written = || fs::metadata(&path).is_ok_and(|data| data.len() > 0);
            if !waiting::until_true(PATIENCE, is_written) {
                return Err(format!("what was left in the background never wrote {later}; {outcome:?}"));
            }
        }
        Ok(Seen { outcome, files: home.take_files() })
    }

    /// Runs it everywhere and says what differs.
    fn differences(&self, bench: &Bench) -> Vec<String> {
        let home = TempDir::new(bench.user);
        let mut found = Vec::new();
        for oracle in [Target::Real, Target::RealOnTerminal] {
            let mut modes = self.modes.iter().filter(|mode| mode.oracle() == oracle).peekable();
            if modes.peek().is_none() {
                continue;
            }
            let theirs = self.run(&home, bench.user, oracle, &[]);
            for &mode in modes {
                let ours = match &bench.host {
                    Some(host) => self.run(&home, bench.user, Target::Shim(&host.socket()), mode.env()),
                    None => self.run(&home, bench.user, oracle, &[]),
                };
                let difference = match (&theirs, &ours) {
                    (Ok(theirs), Ok(ours)) => compare(mode, theirs, ours),
                    (Err(error), _) => Some(format!("the real shell {error}")),
                    (_, Err(error)) => Some(format!("the shim {error}")),
                };
                let name = self.name;
                found.extend(difference.map(|text| format!("── {name} ({mode:?}, user {:?})\n{text}", bench.user)));
            }
        }
        found
    }
}

fn file_with(bytes: &[u8], home: &TempDir) -> OwnedFd {
    let path = home.join(".third");
    File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("a file");
    let file = File::open(&path).expect("the file");
    fs::remove_file(path).expect("the file");
    file.into()
}

/// Takes out the pid in what bash says of a child that a signal killed: `bash: line 1:  4711 Killed …`.
fn without_pids(stderr: &[u8]) -> Vec<u8> {
    let without = |line: &[u8]| {
        let Some(at) = find(line, b"line ").and_then(|at| Some(at + find(&line[at..], b":")? + 1)) else {
            return line.to_vec();
        };
        let rest = line[at..].trim_ascii_start();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 { [&line[..at], b" PID", &rest[digits..]].concat() } else { line.to_vec() }
    };
    stderr.split_inclusive(|&byte| byte == b'\n').flat_map(without).collect()
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, what)
}

/// What is left of it after this treatment.
pub(super) fn sanitized(mode: sanitize::Mode, bytes: &[u8]) -> Vec<u8> {
    let (mut sanitizer, mut text) = (Sanitizer::new(mode), Vec::new());
    sanitizer.push(bytes, &mut text);
    sanitizer.finish(&mut text);
    text
}

fn compare(mode: Mode, theirs: &Seen, ours: &Seen) -> Option<String> {
    let mut lines = Vec::new();
    let (a, b) = (&theirs.outcome, &ours.outcome);
    if a.ended != b.ended {
        lines.push(format!("   end    real {:?}, shim {:?}", a.ended, b.ended));
    }
    let (stdout, stderr) = (mode.both(&a.stdout, &b.stdout), mode.both(&a.stderr, &b.stderr));
    for (what, (a, b)) in [("stdout", &stdout), ("stderr", &stderr)] {
        if a != b {
            lines.push(format!("   {what} real {}\n          shim {}", around(a, b), around(b, a)));
        }
    }
    for name in theirs.files.keys().chain(ours.files.keys()) {
        let (a, b) = (theirs.files.get(name), ours.files.get(name));
        if a != b {
            let tell = |file: Option<&(u32, Vec<u8>)>, other: Option<&(u32, Vec<u8>)>| match file {
                None => "missing".to_owned(),
                Some((mode, bytes)) => format!("{mode:o} {}", around(bytes, other.map_or(&[], |(_, bytes)| bytes))),
            };
            let name = name.escape_ascii();
            lines.push(format!("   file {name}: real {}\n          shim {}", tell(a, b), tell(b, a)));
        }
    }
    if lines.is_empty() {
        return None;
    }
    if stderr.0 == stderr.1 && !stderr.0.is_empty() {
        lines.push(format!("   stderr of both: {}", around(&stderr.0, b"")));
    }
    Some(lines.join("\n"))
}

/// The bytes for a message, from a little before the first one that differs.
fn around(bytes: &[u8], other: &[u8]) -> String {
    let same = bytes.iter().zip(other).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(60);
    let to = bytes.len().min(same + 300);
    format!("({} bytes, from {from}) {}", bytes.len(), bytes[from..to].escape_ascii())
}

/// Where cases are run: as which user, by which host. Without a host, the real shell is compared with itself, which
/// shows cases that do not always give the same answer.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) user: Option<u32>,
    pub(crate) host: Option<Host>,
}

/// The usual user, and an unprivileged one when we may become that.
pub(crate) fn users() -> Vec<Option<u32>> {
    [None].into_iter().chain(programs::another_user().map(Some)).collect()
}

impl Bench {
    pub(crate) fn new(user: Option<u32>) -> Self {
        let theirs = std::env::var_os("REXEC_UNDER_TEST").is_some_and(|value| value == "theirs");
        let host = (!theirs).then(|| Host::with(Setup { user, ..PLAIN_HOST }));
        Self { user, host }
    }
}

/// How many cases run at once: most of them wait rather than work.
const AT_ONCE: usize = 4;

/// How many cases stand for their table where there is no time for all.
const SOME: usize = 4;

/// Runs a few cases from all over a table as the usual user.
pub(crate) fn check_some(table: &[Case]) {
    let count = SOME.min(table.len());
    let some: Vec<&Case> = (0..count).map(|nth| &table[(2 * nth + 1) * table.len() / (2 * count)]).collect();
    check_as(&[None], &some);
}

/// Runs a table as every user.
pub(crate) fn check(table: &[Case]) {
    check_as(&users(), &table.iter().collect::<Vec<_>>());
}

/// Fails with everything that differs.
fn check_as(users: &[Option<u32>], table: &[&Case]) {
    let (found, count, next) = (Mutex::new(Vec::new()), AtomicUsize::new(0), AtomicUsize::new(0));
    for &user in users {
        let bench = Bench::new(user);
        next.store(0, Relaxed);
        let work = || {
            while let Some(case) = table.get(next.fetch_add(1, Relaxed)) {
                if case.can_be_had() {
                    let differences = case.differences(&bench);
                    count.fetch_add(case.modes.len(), Relaxed);
                    found.lock().expect("no case panics").extend(differences);
                }
            }
        };
        std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    }
    let (found, count) = (found.into_inner().expect("no case panics"), count.into_inner());
    assert!(found.is_empty(), "{} of {count} comparisons differ:\n{}", found.len(), found.join("\n"));
}
