//! Directories and files by their paths: where a word leads, and whether that lies in a place. The disk is not asked.

use super::answer::{Answer, pattern_matches};
use super::kills::Processes;
use super::words::Words;
use crate::script::{Argument, ArgumentPiece, HoleKind, Leaf, OutputOf, RedirectKind, Redirection, base_name};

/// What is known around a command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts<'a> {
    pub agent: Option<&'a str>,
    pub session: Option<&'a str>,
    /// Where the command begins.
    pub directory: Option<&'a [u8]>,
    /// The top of the git project that the directory is in. Without one, the directory stands for it.
    pub project: Option<&'a [u8]>,
    pub home: Option<&'a [u8]>,
    /// Whose the processes are that it would signal. Without it, that is not known.
    pub processes: Option<&'a dyn Processes>,
    /// The day, as `2026-05-21`. Without it, nothing that the person always allows counts.
    pub today: Option<&'a str>,
}

/// A directory or a file that a rule names, with all that is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Absolute(Vec<u8>),
    /// The rest of a path below the home, or below the project.
    Home(Vec<u8>),
    Project(Vec<u8>),
    /// The name of a file, or the end of its path.
    Named(Vec<u8>),
}

impl Place {
    pub(super) fn new(written: &str) -> Self {
        let below = |base: &str| {
            let rest = written.strip_prefix(base)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.as_bytes().to_vec())
        };
        if let Some(rest) = below("$PROJECT") {
            return Self::Project(rest);
        }
        if let Some(rest) = below("$HOME").or_else(|| below("~")) {
            return Self::Home(rest);
        }
        let bytes = written.as_bytes().to_vec();
        if written.starts_with('/') { Self::Absolute(bytes) } else { Self::Named(bytes) }
    }

    /// Whether a path is this place, or lies in it.
    pub(super) fn holds(&self, path: &Path, facts: &Facts<'_>) -> Answer {
        let (base, rest): (Option<&[u8]>, &[u8]) = match self {
            Self::Absolute(place) => (Some(b""), place),
            Self::Home(rest) => (facts.home, rest),
            Self::Project(rest) => match project(facts) {
                None => return Answer::No,
                base => (base, rest),
            },
            Self::Named(name) => return path.ends_with(name),
        };
        base.map_or(Answer::Perhaps, |base| path.lies_in(base, rest))
    }
}

/// The project, or the directory in its stead if it may be one: not the home, and not above it.
fn project<'f>(facts: &Facts<'f>) -> Option<&'f [u8]> {
    let may_be_project = |directory: &&[u8]| !Path::of_bytes(Some(directory)).holds_home(facts);
    facts.project.or_else(|| facts.directory.filter(may_be_project))
}

/// The names in a path that is written.
fn names_in(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|name| !name.is_empty())
}

/// A path without `.` and `..`, as far as it is known.
#[derive(Debug, Default, Clone)]
pub(super) struct Path {
    names: Vec<Vec<u8>>,
    /// Its end is not known: more text may stand in the last name, or names behind it.
    is_open: bool,
    /// The last name may go on.
    is_name_open: bool,
    /// Nothing is known of it.
    is_unknown: bool,
    /// Another program fills in a part. It is a name here.
    pub(super) is_filled: bool,
}

impl Path {
    fn unknown() -> Self {
        Self { is_unknown: true, ..Self::default() }
    }

    /// Where a word leads from a leaf's directory.
    pub(super) fn of(word: &Argument, leaf: &Leaf, facts: &Facts<'_>) -> Self {
        let here = || match &leaf.directory {
            Some(directory) => Self::default().join(directory, || Self::of_bytes(facts.directory), facts),
            None => Self::of_bytes(facts.directory),
        };
        Self::default().join(word, here, facts)
    }

    /// The directory in which a leaf runs.
    pub(super) fn of_directory(leaf: &Leaf, facts: &Facts<'_>) -> Self {
        Self::of(&Argument::from(&b"."[..]), leaf, facts)
    }

    fn of_bytes(path: Option<&[u8]>) -> Self {
        let Some(path) = path else { return Self::unknown() };
        let mut made = Self::default();
        path.split(|byte| *byte == b'/').for_each(|name| made.push(name));
        made
    }

    fn push(&mut self, name: &[u8]) {
        match name {
            b"" | b"." => {}
            b".." => _ = self.names.pop(),
            name => self.names.push(name.to_vec()),
        }
    }

    /// Puts in what is known of the holes of a word. What follows an unknown one is looked at for `..` alone.
    fn join(self, word: &Argument, here: impl FnOnce() -> Self, facts: &Facts<'_>) -> Self {
        let mut text = Vec::new();
        let mut is_open = false;
        let mut is_filled = false;
        let mut here = Some(here);
        let mut base = None;
        for piece in &word.pieces {
            match piece {
                ArgumentPiece::Text(more) if is_open => {
                    if more.split(|byte| *byte == b'/').any(|name| name == b"..") {
                        return Self::unknown();
                    }
                }
                ArgumentPiece::Text(more) => text.extend_from_slice(more),
                ArgumentPiece::Hole(_) if is_open => {}
                ArgumentPiece::Hole(hole) => match &hole.kind {
                    HoleKind::Output(OutputOf::Pwd) if text.is_empty() => base = here.take().map(|here| here()),
                    HoleKind::Output(OutputOf::GitTop) if text.is_empty() => base = Some(Self::of_bytes(facts.project)),
                    HoleKind::Home(user) if text.is_empty() && user.is_empty() => {
                        base = Some(Self::of_bytes(facts.home))
                    }
                    HoleKind::Output(OutputOf::Mktemp) if text.is_empty() => {
                        base = Some(Self::of_bytes(Some(b"/tmp")));
                        text.extend_from_slice(b"/tmp.");
                    }
                    HoleKind::Pattern(written) if !written.contains(&b'{') => text.extend_from_slice(written),
                    HoleKind::Arithmetic | HoleKind::Digits { may_be_empty: false, .. } => text.push(b'0'),
                    HoleKind::Filled if !text.is_empty() => {
                        text.push(b'0');
                        is_filled = true;
                    }
                    HoleKind::Home(user) if text.is_empty() => {
                        // Another's home is in no place that a rule names.
                        base = Some(Self { names: vec![[b"~", &user[..]].concat()], ..Self::default() });
                    }
                    _ => is_open = true,
                },
            }
        }
        if is_open && text.is_empty() && base.is_none() {
            return Self::unknown();
        }
        let mut made = match base {
            Some(base) => base,
            None if text.starts_with(b"/") => self,
            None => here.map_or_else(Self::unknown, |here| here()),
        };
        if made.is_open {
            let leaves = text.split(|byte| *byte == b'/').any(|name| name == b"..");
            return if leaves { Self::unknown() } else { made };
        }
        text.split(|byte| *byte == b'/').for_each(|name| made.push(name));
        // All that is in a directory is the directory.
        while !is_open && made.names.last().is_some_and(|name| is_all(name)) {
            made.names.pop();
        }
        made.is_filled = is_filled;
        made.is_open = is_open;
        made.is_name_open = is_open && !text.ends_with(b"/");
        made
    }

    /// Whether it lies in the place whose names these two texts have. The second one begins with a slash or is empty.
    fn lies_in(&self, base: &[u8], rest: &[u8]) -> Answer {
        if self.is_unknown {
            return Answer::Perhaps;
        }
        let mut wanted = names_in(base).chain(names_in(rest));
        let mut matching = 0;
        let differing = loop {
            let Some(wanted) = wanted.next() else { break None };
            match self.names.get(matching) {
                Some(name) if pattern_matches(wanted, name) => matching += 1,
                _ => break Some(wanted),
            }
        };
        let Some(wanted) = differing else {
            let is_longer = self.is_name_open && self.names.len() == matching;
            return if is_longer { Answer::Perhaps } else { Answer::Yes };
        };
        let may_go_on = self.is_open && matching == self.names.len();
        let is_at_end = matching + 1 == self.names.len() && self.is_name_open;
        let may_become = is_at_end && self.names.last().is_some_and(|name| wanted.starts_with(name));
        Answer::of(may_go_on || may_become).min(Answer::Perhaps)
    }

    /// Whether its last names are these.
    fn ends_with(&self, names: &[u8]) -> Answer {
        if self.is_unknown || self.is_open {
            return Answer::Perhaps;
        }
        let Some(skipped) = self.names.len().checked_sub(names_in(names).count()) else { return Answer::No };
        let mut both = names_in(names).zip(&self.names[skipped..]);
        Answer::of(both.all(|(wanted, name)| pattern_matches(wanted, name)))
    }

    /// Returns true if it is the home, or a directory above it. None of them is ever a part of a project.
    pub(super) fn holds_home(&self, facts: &Facts<'_>) -> bool {
        if self.is_open() {
            return false;
        }
        let has_dots = |home: &[u8]| memchr::memmem::find(home, b"/.").is_some();
        self.names.is_empty()
            || match facts.home {
                None => false,
                Some(home) if has_dots(home) => Self::of_bytes(facts.home).names.starts_with(&self.names),
                Some(home) => {
                    let mut above = names_in(home);
                    self.names.iter().all(|name| above.next() == Some(name))
                }
            }
    }

    /// The path, if all of it is known.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        let is_known = !self.is_open() && !self.is_filled;
        is_known
            .then(|| if self.names.is_empty() { b"/".to_vec() } else { [b"/", &self.names.join(&b'/')[..]].concat() })
    }

    /// Returns true if nothing is known of it, or if its end is not known.
    pub(super) fn is_open(&self) -> bool {
        self.is_unknown || self.is_open
    }
}

/// Returns true for `*`, `.*`, `.[!.]*` and their like.
fn is_all(name: &[u8]) -> bool {
    let mut rest = name;
    while let [b'*' | b'?' | b'.', behind @ ..] = rest {
        rest = behind;
    }
    let rest = match rest {
        [b'[', behind @ ..] => behind.iter().position(|byte| *byte == b']').map_or(rest, |end| &behind[end + 1..]),
        _ => rest,
    };
    name.contains(&b'*') && rest.iter().all(|byte| *byte == b'*')
}

/// Programs that do with `-C DIRECTORY` what they do there.
const GOING: [&[u8]; 6] = [b"git", b"make", b"gmake", b"ninja", b"pnpm", b"tar"];

/// Returns true if a leaf surely runs in this directory, and its command has gone there, or it goes there itself.
#[must_use]
pub fn goes_into(leaf: &Leaf, facts: &Facts<'_>, directory: &[u8]) -> bool {
    let is_there = |path: Path| path.lies_in(directory, b"") == Answer::Yes;
    let has_gone = || leaf.directory.is_some() && is_there(Path::of_directory(leaf, facts));
    let goes = || {
        let is_going = GOING.contains(&base_name(&leaf.program));
        is_going && Words::of(leaf, &[]).values_of(b'C', "directory").any(|word| is_there(Path::of(&word, leaf, facts)))
    };
    !leaf.is_elsewhere() && (has_gone() || goes())
}

/// Returns true if a word with an unknown part can be the root, a home, or empty: the part may be empty. So may be an
/// unknown directory, in front of it.
pub(super) fn can_be_root(word: &Argument, leaf: &Leaf, facts: &Facts<'_>) -> bool {
    let (mut text, mut is_unknown) = (Vec::new(), false);
    let is_relative = match word.pieces.first() {
        Some(ArgumentPiece::Text(text)) => !text.starts_with(b"/"),
        Some(ArgumentPiece::Hole(hole)) => matches!(hole.kind, HoleKind::Pattern(_)),
        None => true,
    };
    let between = ArgumentPiece::Text(b"/".to_vec());
    let directory = leaf.directory.iter().filter(|_| is_relative);
    let before = directory.flat_map(|directory| directory.pieces.iter().chain([&between]));
    let whole = before.chain(&word.pieces);
    for piece in whole {
        match piece {
            ArgumentPiece::Text(more) => text.extend_from_slice(more),
            ArgumentPiece::Hole(hole) => match &hole.kind {
                HoleKind::Variable(_) | HoleKind::Home(_) | HoleKind::Output(OutputOf::Other) => is_unknown = true,
                HoleKind::Digits { may_be_empty: true, .. } => is_unknown = true,
                HoleKind::Pattern(written) => text.extend_from_slice(written),
                // A whole path from another program may be any. Behind a directory it is a name in there.
                HoleKind::Filled if text.is_empty() => is_unknown = true,
                HoleKind::Output(_) | HoleKind::Arithmetic | HoleKind::Digits { .. } => return false,
                HoleKind::Process | HoleKind::Filled => return false,
            },
        }
    }
    // What is beside the folder for temporary files is no temporary file.
    if is_unset_temporary(word) && text.starts_with(b"/../") {
        return true;
    }
    let is_trailing = |byte: &u8| b"*/.".contains(byte);
    let end = text.iter().rposition(|byte| !is_trailing(byte)).map_or(0, |at| at + 1);
    is_unknown && (end == 0 || facts.home.is_some_and(|home| home == &text[..end]))
}

fn is_unset_temporary(word: &Argument) -> bool {
    matches!(word.pieces.first(), Some(ArgumentPiece::Hole(hole))
        if matches!(&hole.kind, HoleKind::Variable(name) if name == b"TMPDIR"))
}

/// Redirections to what keeps nothing.
fn keeps_nothing(target: &Argument) -> bool {
    let nothing: [&[u8]; 4] = [b"/dev/null", b"/dev/stdout", b"/dev/stderr", b"/dev/tty"];
    target.text().is_some_and(|text| nothing.contains(&text) || text.starts_with(b"/dev/fd/"))
}

/// The files that a leaf's redirections write.
pub(super) fn written_targets(leaf: &Leaf) -> impl Iterator<Item = &Argument> {
    let is_descriptor = |target: &Argument| {
        target.text().is_some_and(|text| text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-'))
    };
    let writes = move |own: &&Redirection| match own.kind {
        RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite => true,
        RedirectKind::Duplicate => !is_descriptor(&own.target),
        RedirectKind::Read | RedirectKind::HereDocument | RedirectKind::HereString => false,
    };
    leaf.redirects.iter().filter(writes).map(|own| &own.target).filter(|target| !keeps_nothing(target))
}

/// The files that a leaf writes: targets of redirections, and operands of programs that are known to write them.
pub(super) fn written<'w>(leaf: &Leaf, words: impl Fn() -> &'w Words<'w>) -> Vec<Argument> {
    let mut written: Vec<Argument> = written_targets(leaf).cloned().collect();
    let operands = || words().operands.iter().map(|operand| operand.word.clone());
    let after = |prefix: &'static [u8]| {
        leaf.arguments.iter().filter_map(move |word| match word.pieces.first() {
            Some(ArgumentPiece::Text(text)) => text.strip_prefix(prefix).map(|value| word.with_first(value)),
            _ => None,
        })
    };
    match base_name(&leaf.program) {
        b"cp" | b"mv" | b"install" | b"ln" | b"rsync" | b"scp" => {
            let folder = |words: &[Argument]| {
                matches!(words[0].text(), Some(b"-t" | b"--target-directory")).then(|| words[1].clone())
            };
            let folders = leaf.arguments.windows(2).filter_map(folder).chain(after(b"--target-directory="));
            let count = written.len();
            written.extend(folders);
            if written.len() == count {
                written.extend(operands().next_back());
            }
        }
        b"tee" | b"truncate" | b"touch" | b"shred" => written.extend(operands()),
        b"dd" => written.extend(after(b"of=")),
        b"sed" | b"gsed" => {
            let is_option = |word: &Argument, letter: u8, long: &[u8]| {
                word.text().is_some_and(|text| {
                    let is_short = text.starts_with(b"-") && !text.starts_with(b"--") && text.contains(&letter);
                    is_short || text.starts_with(long)
                })
            };
            let has = |letter, long: &[u8]| leaf.arguments.iter().any(|word| is_option(word, letter, long));
            if has(b'i', b"--in-place") {
                let has_script = has(b'e', b"--expression") || has(b'f', b"--file");
                written.extend(operands().skip(usize::from(!has_script)));
            }
        }
        _ => {}
    }
    written
}
