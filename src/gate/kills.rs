//! The processes that a leaf signals, as far as its words tell.
//!
//! Invariants: nothing is looked up here; who can look answers through [`Processes`]. A [`Finder`] is a call of a program
//! that finds processes and changes nothing.

use std::fmt;

use super::answer::Answer;
use crate::script::{Argument, ArgumentPiece, HoleKind, Leaf, base_name};

/// What a leaf signals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aim {
    /// The process of this number, or the process group of a negative one.
    Number(i32),
    /// All processes of the user.
    Everything,
    /// The processes that a program finds.
    Finder(Finder),
    /// What the words do not tell.
    Unknown,
}

/// A call of a program that finds processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finder {
    pub program: &'static str,
    pub arguments: Vec<Vec<u8>>,
}

/// Whose the processes are that a command would signal.
pub trait Processes: fmt::Debug {
    /// Whether some of these are neither the command's own nor those of its agent's other commands.
    fn are_others_among(&self, aims: &[Aim]) -> Answer;
}

/// Stands for any processes: whatever is signalled is others'.
#[derive(Debug)]
pub(super) struct Others;

impl Processes for Others {
    fn are_others_among(&self, _: &[Aim]) -> Answer {
        Answer::Yes
    }
}

/// Whether a leaf signals processes of others.
pub(super) fn answer(leaf: &Leaf, processes: Option<&dyn Processes>) -> Answer {
    let aims = aims(leaf);
    if aims.is_empty() || leaf.is_elsewhere() {
        return Answer::No;
    }
    processes.map_or(Answer::Perhaps, |processes| processes.are_others_among(&aims))
}

/// Returns true if a leaf signals processes that may be those of others.
#[must_use]
pub fn signals_others(leaf: &Leaf) -> bool {
    !aims(leaf).is_empty() && !leaf.is_elsewhere()
}

/// What a leaf signals besides what its shell has started: `$!`, `$$` and `%1` are its own.
fn aims(leaf: &Leaf) -> Vec<Aim> {
    let words = &leaf.arguments[..];
    match base_name(&leaf.program) {
        b"kill" => numbers(words),
        b"pkill" => matched(words),
        b"killall" => named(words),
        b"fuser" if has_letter(words, b'k', &["--kill"]) => users(words),
        b"skill" | b"killall5" => vec![Aim::Unknown],
        _ => Vec::new(),
    }
}

/// Processes for a command some of whose programs find those that others signal: `kill $(pgrep x)`, `pgrep x | xargs kill`.
#[derive(Debug)]
pub(super) struct FoundBeside<'a> {
    processes: &'a dyn Processes,
    finders: Vec<Finder>,
}

impl<'a> FoundBeside<'a> {
    pub(super) fn new(leaves: &[Leaf], processes: &'a dyn Processes) -> Self {
        Self { processes, finders: finders(leaves) }
    }
}

impl Processes for FoundBeside<'_> {
    fn are_others_among(&self, aims: &[Aim]) -> Answer {
        let found = self.finders.iter().filter(|_| aims.contains(&Aim::Unknown)).cloned().map(Aim::Finder);
        self.processes.are_others_among(&aims.iter().cloned().chain(found).collect::<Vec<_>>())
    }
}

fn finders(leaves: &[Leaf]) -> Vec<Finder> {
    let lists_all = leaves.iter().any(|leaf| base_name(&leaf.program) == b"ps");
    leaves.iter().filter(|leaf| !leaf.is_elsewhere()).filter_map(|leaf| finder(leaf, lists_all)).collect()
}

fn finder(leaf: &Leaf, lists_all: bool) -> Option<Finder> {
    let words = &leaf.arguments[..];
    match base_name(&leaf.program) {
        b"pgrep" => Finder::of("pgrep", words),
        b"pidof" => Finder::of("pidof", words),
        b"lsof" if has_letter(words, b't', &["--terse"]) => Finder::of("lsof", words),
        b"fuser" if !has_letter(words, b'k', &["--kill"]) => Finder::of("fuser", words),
        b"grep" | b"egrep" | b"rg" if lists_all && !has_letter(words, b'v', &["--invert-match"]) => {
            let pattern = words.iter().filter_map(Argument::text).find(|word| !word.starts_with(b"-"))?;
            Some(Finder::of_lines(pattern, has_letter(words, b'i', &["--ignore-case"])))
        }
        // /node/{print $2}
        b"awk" | b"gawk" | b"mawk" if lists_all => {
            let code = words.iter().filter_map(Argument::text).find_map(|word| word.strip_prefix(b"/"))?;
            let end = code.iter().position(|byte| *byte == b'/')?;
            Some(Finder::of_lines(&code[..end], false))
        }
        _ => None,
    }
}

impl Finder {
    /// A call with these words, if they are all known.
    fn of(program: &'static str, words: &[Argument]) -> Option<Self> {
        let arguments = words.iter().map(|word| word.text().map(<[u8]>::to_vec)).collect::<Option<_>>()?;
        Some(Self { program, arguments })
    }

    /// Finds the processes whose command line matches a pattern.
    fn of_lines(pattern: &[u8], ignores_case: bool) -> Self {
        let options: &[&[u8]] = if ignores_case { &[b"-f", b"-i", b"--"] } else { &[b"-f", b"--"] };
        Self { program: "pgrep", arguments: options.iter().copied().chain([pattern]).map(<[u8]>::to_vec).collect() }
    }
}

/// Of `kill`.
fn numbers(words: &[Argument]) -> Vec<Aim> {
    let mut rest = words;
    let mut has_signal = false;
    while let [first, behind @ ..] = rest {
        rest = match first.text() {
            Some(b"--") => {
                rest = behind;
                break;
            }
            Some(b"-s" | b"-n" | b"--signal") if behind.first().is_some_and(is_zero) => return Vec::new(),
            Some(b"-s" | b"-n" | b"--signal" | b"-q" | b"--queue") => behind.get(1..).unwrap_or_default(),
            Some(b"-l" | b"-L" | b"-0" | b"--list" | b"--table") => return Vec::new(),
            // Behind a signal, -12 is a process group.
            Some(option) if option.starts_with(b"-") && !(has_signal && is_signal(option)) => behind,
            _ => break,
        };
        has_signal = true;
    }
    rest.iter().filter_map(number).collect()
}

fn is_zero(word: &Argument) -> bool {
    word.text() == Some(b"0")
}

/// What an operand of `kill` means. `None` for what is its shell's own.
fn number(word: &Argument) -> Option<Aim> {
    if let [ArgumentPiece::Hole(hole)] = &word.pieces[..] {
        let is_own =
            matches!(&hole.kind, HoleKind::Digits { name, .. } if matches!(&name[..], b"!" | b"$" | b"BASHPID"));
        return (!is_own).then_some(Aim::Unknown);
    }
    let Some(text) = word.text() else { return Some(Aim::Unknown) };
    match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        // Its own process group.
        Some(0) => None,
        Some(-1) => Some(Aim::Everything),
        Some(number) => Some(Aim::Number(number)),
        None => (!text.starts_with(b"%")).then_some(Aim::Unknown),
    }
}

/// Of `pkill`, which takes what pgrep takes, and a signal.
fn matched(words: &[Argument]) -> Vec<Aim> {
    let Some(call) = Finder::of("pgrep", words) else { return vec![Aim::Unknown] };
    let mut arguments = Vec::new();
    let mut words = call.arguments.into_iter();
    while let Some(word) = words.next() {
        match &word[..] {
            b"--signal" | b"--queue" | b"-q" => {
                if words.next().is_some_and(|value| &word[..] == b"--signal" && value == b"0") {
                    return Vec::new();
                }
            }
            b"-0" | b"--signal=0" => return Vec::new(),
            b"-e" | b"--echo" | b"-c" | b"--count" => {}
            b"--" => arguments.extend(std::iter::once(word).chain(words.by_ref())),
            other if is_signal(other) || other.starts_with(b"--signal=") || other.starts_with(b"--queue=") => {}
            _ => arguments.push(word),
        }
    }
    vec![Aim::Finder(Finder { program: "pgrep", arguments })]
}

/// Returns true for `-9` and `-SIGTERM`. The options of the programs that signal have one capital at most.
fn is_signal(word: &[u8]) -> bool {
    let Some(name) = word.strip_prefix(b"-") else { return false };
    let is_number = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
    is_number || name.len() > 1 && name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// Of `killall`, as calls of pgrep that find no less.
fn named(words: &[Argument]) -> Vec<Aim> {
    let Some(call) = Finder::of("killall", words) else { return vec![Aim::Unknown] };
    let (mut options, mut names): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let mut is_pattern = false;
    let mut words = call.arguments.into_iter();
    while let Some(word) = words.next() {
        match &word[..] {
            b"-s" | b"--signal" => {
                if words.next().is_some_and(|value| value == b"0") {
                    return Vec::new();
                }
            }
            b"-l" | b"--list" | b"-0" | b"--version" | b"-V" => return Vec::new(),
            b"-o" | b"--older-than" | b"-y" | b"--younger-than" | b"-n" | b"--ns" | b"-Z" | b"--context" => {
                words.next();
            }
            b"-u" | b"--user" => options.extend([b"-u".to_vec(), words.next().unwrap_or_default()]),
            b"-r" | b"--regexp" => is_pattern = true,
            b"-I" | b"--ignore-case" => options.push(b"-i".to_vec()),
            option if option.starts_with(b"-") => {}
            _ => names.push(word),
        }
    }
    if names.is_empty() && !options.is_empty() {
        return vec![Aim::Finder(Finder { program: "pgrep", arguments: options })];
    }
    let finder = |name: Vec<u8>| {
        let ending = if is_pattern { vec![b"--".to_vec(), name] } else { exactly(base_name(&name)) };
        Aim::Finder(Finder { program: "pgrep", arguments: options.iter().cloned().chain(ending).collect() })
    };
    names.into_iter().map(finder).collect()
}

/// The arguments by which pgrep finds processes of this name. The kernel keeps its first 15 bytes.
fn exactly(name: &[u8]) -> Vec<Vec<u8>> {
    let mut pattern = Vec::new();
    for &byte in name.iter().take(PROCESS_NAME_BYTES) {
        if byte.is_ascii_punctuation() && !matches!(byte, b'-' | b'_' | b'/') {
            pattern.push(b'\\');
        }
        pattern.push(byte);
    }
    vec![b"-x".to_vec(), b"--".to_vec(), pattern]
}

/// `TASK_COMM_LEN` of the kernel, without its NUL.
const PROCESS_NAME_BYTES: usize = 15;

/// Of `fuser -k`.
fn users(words: &[Argument]) -> Vec<Aim> {
    let Some(call) = Finder::of("fuser", words) else { return vec![Aim::Unknown] };
    let mut arguments = Vec::new();
    for word in call.arguments {
        match &word[..] {
            b"--kill" | b"--interactive" | b"--writeonly" => {}
            b"--" => arguments.push(word),
            option if option.starts_with(b"--") => arguments.push(word),
            option if is_signal(option) => {}
            option if option.starts_with(b"-") => {
                let kept: Vec<u8> = option.iter().copied().filter(|letter| !b"kiw".contains(letter)).collect();
                arguments.extend((kept.len() > 1).then_some(kept));
            }
            _ => arguments.push(word),
        }
    }
    vec![Aim::Finder(Finder { program: "fuser", arguments })]
}

/// Returns true if an option with this letter stands among the words, alone or with others, or one of the long ones.
fn has_letter(words: &[Argument], letter: u8, long: &[&str]) -> bool {
    words.iter().filter_map(Argument::text).any(|word| match word.strip_prefix(b"-") {
        Some(name) if name.starts_with(b"-") => long.iter().any(|long| long.as_bytes() == word),
        Some(letters) => !is_signal(word) && letters.contains(&letter),
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script;

    fn finder(program: &'static str, arguments: &str) -> Aim {
        let arguments = arguments.split_whitespace().map(|word| word.as_bytes().to_vec()).collect();
        Aim::Finder(Finder { program, arguments })
    }

    fn leaves(text: &str) -> Vec<Leaf> {
        script::leaves(text.as_bytes(), &|_| None).leaves
    }

    #[test]
    fn words_tell_what_is_signalled() {
        for (text, wanted) in [
            ("kill 12 13", vec![Aim::Number(12), Aim::Number(13)]),
            ("kill -9 12", vec![Aim::Number(12)]),
            ("kill -s KILL -- -12", vec![Aim::Number(-12)]),
            ("kill -9 -1", vec![Aim::Everything]),
            ("kill -KILL $(pgrep x)", vec![Aim::Unknown]),
            ("kill $! $$ %1 0", vec![]),
            ("kill -l 9; kill -0 12; kill -s 0 12", vec![]),
            (
                "pkill -9 -f 'npm run'",
                vec![Aim::Finder(Finder { program: "pgrep", arguments: vec![b"-f".to_vec(), b"npm run".to_vec()] })],
            ),
            ("pkill --signal KILL -u ann node", vec![finder("pgrep", "-u ann node")]),
            ("pkill -P 12 -HUP", vec![finder("pgrep", "-P 12")]),
            ("pkill -0 node", vec![]),
            ("pkill \"$x\"", vec![Aim::Unknown]),
            ("killall -9 node a.out", vec![finder("pgrep", "-x -- node"), finder("pgrep", "-x -- a\\.out")]),
            ("killall -u ann", vec![finder("pgrep", "-u ann")]),
            ("killall -r 'no.e'", vec![finder("pgrep", "-- no.e")]),
            ("killall a-name-of-many-bytes", vec![finder("pgrep", "-x -- a-name-of-many-")]),
            ("fuser -k 3000/tcp", vec![finder("fuser", "3000/tcp")]),
            ("fuser -kn tcp -9 3000", vec![finder("fuser", "-n tcp 3000")]),
            ("fuser 3000/tcp", vec![]),
            ("skill -u ann", vec![Aim::Unknown]),
            ("echo pkill node", vec![]),
        ] {
            let all: Vec<Aim> = leaves(text).iter().flat_map(aims).collect();
            assert_eq!(all, wanted, "{text}");
        }
    }

    #[test]
    fn what_finds_processes_is_found_beside_what_signals_them() {
        for (text, wanted) in [
            ("kill $(pgrep -f vite)", finder("pgrep", "-f vite")),
            ("lsof -ti tcp:3000 | xargs kill -9", finder("lsof", "-ti tcp:3000")),
            ("kill -9 `pidof node`", finder("pidof", "node")),
            ("ps aux | grep -i node | awk '{print $2}' | xargs kill", finder("pgrep", "-f -i -- node")),
            ("ps aux | awk '/vite/{print $2}' | xargs kill", finder("pgrep", "-f -- vite")),
            ("for p in $(fuser 80/tcp); do kill $p; done", finder("fuser", "80/tcp")),
        ] {
            let leaves = leaves(text);
            let found: Vec<Aim> = finders(&leaves).into_iter().map(Aim::Finder).collect();
            assert_eq!(found, [wanted], "{text}");
            let unknown = leaves.iter().flat_map(aims).collect::<Vec<_>>();
            assert_eq!(unknown, [Aim::Unknown], "{text}");
        }
        for none in ["grep node a", "ps aux | grep -v grep", "lsof a", "pgrep \"$x\"", "ssh host pgrep node"] {
            assert_eq!(finders(&leaves(none)), [], "{none}");
        }
    }
}
