//! Everyday commands: what agents run all day, in a small project, run by the real shell on pipes and by the shim.
//!
//! Each command runs in a fresh copy of the same project, at the same path, in both shells. Output, exit code and the
//! files left behind must be equal, byte for byte. A command whose output changes from run to run is compared without
//! digits. Every remaining difference is listed in [`EXPLAINED`] with its reason; an unlisted difference fails the
//! test, and so does a listed one that no longer occurs. A program that is not installed is missing for both.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use rexec_host::text::sanitize::Mode;

use super::case::sanitized;
use crate::support::call::{Call, Outcome, Output, Target};
use crate::support::host::Host;
use crate::support::programs;
use crate::support::temp::TempDir;
use crate::support::waiting::PATIENCE;

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/everyday/project.sh");
const COMMANDS: &str = include_str!("../../data/everyday/commands.txt");

/// Commands whose result differs, and why that is right.
const EXPLAINED: &[(&str, &str)] = &[
    ("echo text | tee /dev/stderr", "the caller's file is a pipe to the command, and cannot be truncated by it"),
    ("[ -p /dev/stdout ] && echo pipe; [ -p /dev/stdin ] || echo no pipe", "the same, and looks like one"),
];

/// How many commands run at once: most of them wait rather than work.
const AT_ONCE: usize = 4;

/// How often the real shell is asked again whether its answer changes.
const REPEATS: usize = 10;

/// The share of commands that may differ, out of a hundred.
const DIFFERENT_MAX: usize = 1;

/// Callers differ in what they give as stdout and stderr; every command meets one of three.
fn commands() -> impl Iterator<Item = (String, Output)> {
    let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let outputs = [Output::Apart, Output::OneFile, Output::OnePipe].into_iter().cycle();
    COMMANDS.lines().filter(is_command).map(|line| line.replace('⏎', "\n")).zip(outputs)
}

/// What a shell made of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    files: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Seen {
    /// The same as an agent gets it through pipes.
    fn tidied(mut self) -> Self {
        for text in [&mut self.stdout, &mut self.stderr] {
            *text = sanitized(Mode::Tidy, text);
        }
        self
    }

    /// The same without what changes from run to run, such as pids, times and random keys.
    fn masked(mut self) -> Self {
        for text in [&mut self.stdout, &mut self.stderr] {
            text.retain(|byte| !byte.is_ascii_digit());
        }
        self.files.values_mut().for_each(Vec::clear);
        self
    }
}

/// Where one thread runs its commands: the project, and a place for what tools write elsewhere.
struct Bench<'a> {
    original: &'a Path,
    project: TempDir,
    scratch: TempDir,
}

impl<'a> Bench<'a> {
    fn new(original: &'a Path) -> Self {
        Self { original, project: TempDir::new(None), scratch: TempDir::new(None) }
    }

    fn run(&self, script: &str, output: Output, target: Target<'_>) -> Result<Seen, String> {
        drop(self.project.take_files());
        drop(self.scratch.take_files());
        let copied = programs::command("cp").arg("-a").arg(self.original.join(".")).arg(self.project.path()).status();
        assert!(copied.is_ok_and(|status| status.success()), "the project can be copied");
        let mut call = Call { output, ..Call::bash(script, self.project.path()) };
        call.env.retain(|entry| !entry.starts_with(b"PATH="));
        call.env.extend(self.env().into_iter().map(String::into_bytes));
        let mut calling = call.start(target).map_err(|error| format!("cannot be executed: {error}"))?;
        let Some(Outcome { stdout, stderr, ended }) = calling.finish(PATIENCE) else {
            return Err(format!("hangs; processes: {:#?}", calling.warden.tree()));
        };
        Ok(Seen { code: ended.code(), stdout, stderr, files: self.files() })
    }

    fn env(&self) -> Vec<String> {
        // The toolchain's own programs and not rustup's, which would look for their settings in the project.
        let tools = Path::new(env!("CARGO")).parent().expect("cargo lies in a directory");
        let scratch = self.scratch.path().display();
        let author = ["AUTHOR", "COMMITTER"].map(|role| {
            format!("GIT_{role}_NAME=Ann GIT_{role}_EMAIL=ann@example.org GIT_{role}_DATE=2026-01-03T00:00:00+0000")
        });
        let mut env = vec![
            format!("PATH={}:{}", programs::PATH, tools.display()),
            format!("CARGO_HOME={scratch}/cargo"),
            format!("CARGO_TARGET_DIR={scratch}/target"),
            format!("npm_config_cache={scratch}/npm"),
            format!("TMUX_TMPDIR={scratch}"),
            "npm_config_update_notifier=false".to_owned(),
            "REXEC_TTY=auto".to_owned(),
            "GIT_CONFIG_NOSYSTEM=1".to_owned(),
            "PYTHONDONTWRITEBYTECODE=1".to_owned(),
        ];
        env.extend(author.iter().flat_map(|entries| entries.split(' ')).map(str::to_owned));
        env
    }

    /// The project's files, without what git keeps of inodes and times.
    fn files(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let files = self.project.take_files().into_iter();
        let is_compared = |name: &[u8]| !name.starts_with(b".git/") && !name.starts_with(b".npm/");
        let entries = files.filter(|(name, _)| is_compared(name));
        entries.map(|(name, (mode, bytes))| ([&name[..], format!(" {mode:o}").as_bytes()].concat(), bytes)).collect()
    }
}

/// How a command compares.
#[derive(Debug)]
enum Verdict {
    Same,
    /// The real shell itself gives another answer each time; the answers are alike but for digits.
    Alike,
    /// The same without escape sequences and the states of rewritten lines, of which the real shell's answer has some.
    Tidied,
    Differs(String),
}

fn judge(bench: &Bench<'_>, script: &str, output: Output, host: &Host) -> Verdict {
    let theirs = bench.run(script, output, Target::Real);
    let ours = bench.run(script, output, Target::Shim(&host.socket()));
    let (theirs, ours) = match (theirs, ours) {
        (Ok(theirs), Ok(ours)) => (theirs, ours),
        (Err(error), _) => return Verdict::Differs(format!("the real shell {error}")),
        (_, Err(error)) => return Verdict::Differs(format!("the shim {error}")),
    };
    if theirs == ours {
        return Verdict::Same;
    }
    let difference = differences(&theirs, &ours);
    let tidied = theirs.clone().tidied();
    if tidied == ours {
        return Verdict::Tidied;
    }
    let is_alike = tidied.masked() == ours.masked();
    // A time or a pid may happen to be the same once; what never changes must be the same here, too.
    let changes = || (0..REPEATS).any(|_| bench.run(script, output, Target::Real).is_ok_and(|again| again != theirs));
    if is_alike && changes() { Verdict::Alike } else { Verdict::Differs(difference) }
}

fn differences(theirs: &Seen, ours: &Seen) -> String {
    let mut lines = Vec::new();
    if theirs.code != ours.code {
        lines.push(format!("   code   real {}, shim {}", theirs.code, ours.code));
    }
    for (what, a, b) in [("stdout", &theirs.stdout, &ours.stdout), ("stderr", &theirs.stderr, &ours.stderr)] {
        if a != b {
            let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
            let part =
                |bytes: &[u8]| bytes[same.saturating_sub(40)..bytes.len().min(same + 160)].escape_ascii().to_string();
            lines.push(format!(
                "   {what} ({} and {} bytes) real {}\n          shim {}",
                a.len(),
                b.len(),
                part(a),
                part(b)
            ));
        }
    }
    let names = theirs.files.keys().chain(ours.files.keys());
    for name in names.filter(|name| theirs.files.get(*name) != ours.files.get(*name)) {
        let lengths = [theirs, ours].map(|seen| seen.files.get(name).map(Vec::len));
        lines.push(format!("   file {}: bytes {lengths:?}", name.escape_ascii()));
    }
    lines.dedup();
    lines.join("\n")
}

/// One in so many commands is a sample …
const SAMPLE: usize = 12;
/// … of those that these do not take seconds for.
const SLOW: [&str; 3] = ["npm", "npx", "cargo"];

#[test]
fn a_sample_of_everyday_commands_gives_what_bash_gives() {
    let is_fast = |(command, _): &(String, Output)| !SLOW.iter().any(|tool| command.contains(tool));
    check(&commands().filter(is_fast).step_by(SAMPLE).collect::<Vec<_>>());
}

#[test]
#[ignore = "long: 500 commands in two shells"]
fn everyday_commands_give_what_bash_gives() {
    assert!(EXPLAINED.len() * 100 <= commands().count() * DIFFERENT_MAX, "{} differ", EXPLAINED.len());
    let only = std::env::var("REXEC_EVERYDAY").unwrap_or_default();
    check(&commands().filter(|(command, _)| command.contains(&only)).collect::<Vec<_>>());
}

#[expect(clippy::print_stderr, reason = "how many were compared belongs to the result")]
fn check(commands: &[(String, Output)]) {
    let original = TempDir::new(None);
    let made = programs::command("sh").arg(PROJECT).env("HOME", original.path()).current_dir(original.path()).status();
    assert!(made.is_ok_and(|status| status.success()), "the project can be made");
    let host = Host::start();
    let (next, verdicts) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let bench = Bench::new(original.path());
        while let Some(&(ref command, output)) = commands.get(next.fetch_add(1, Relaxed)) {
            let verdict = judge(&bench, command, output, &host);
            verdicts.lock().expect("no judge panics").push((command, output, verdict));
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));

    let verdicts = verdicts.into_inner().expect("no judge panics");
    let alike = verdicts.iter().filter(|(_, _, verdict)| matches!(verdict, Verdict::Alike)).count();
    let explained = |command: &str| EXPLAINED.iter().any(|(known, _)| known == &command);
    let mut faults = Vec::new();
    let mut differing = 0;
    for (command, output, verdict) in &verdicts {
        match verdict {
            Verdict::Differs(how) => {
                differing += 1;
                if !explained(command) {
                    faults.push(format!("── {command} ({output:?})\n{how}"));
                }
            }
            _ if explained(command) => faults.push(format!("── {command}: is said to differ, and does not")),
            Verdict::Same | Verdict::Alike | Verdict::Tidied => {}
        }
    }
    let count = verdicts.len();
    let tidied = verdicts.iter().filter(|(_, _, verdict)| matches!(verdict, Verdict::Tidied)).count();
    eprintln!("{count} commands: {differing} differ, {alike} compared without digits, {tidied} tidied");
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}
