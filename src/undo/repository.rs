//! What a command of git would destroy, as far as its text tells: in questions that git itself answers.
//!
//! Invariant: the questions change nothing. Where the text leaves a word open, they ask for more rather than less.

use super::operand::PathPattern;
use crate::gate::{Answer, Words};
use crate::script::{Argument, ArgumentPiece, HoleKind, Leaf, base_name, is_listed};

/// What a command of git would destroy in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryLoss {
    /// What the command runs: `git`, or an absolute path.
    pub program: Vec<u8>,
    pub directory: PathPattern,
    /// The options before the subcommand: `-C d`.
    pub globals: Vec<Vec<u8>>,
    pub subcommand: Vec<u8>,
    pub listings: Vec<Listing>,
    /// What other commands of git in the text let it destroy. Git is asked for that only if it may destroy something at all.
    pub because_of_others: Vec<Listing>,
    pub own: OwnFiles,
}

impl RepositoryLoss {
    pub fn all_listings(&self) -> impl Iterator<Item = &Listing> {
        self.listings.iter().chain(&self.because_of_others)
    }

    /// What of git's own files the command and the others in the text change.
    #[must_use]
    pub fn all_own(&self) -> OwnFiles {
        let others = if self.because_of_others.is_empty() { OwnFiles::Kept } else { OwnFiles::ButObjects };
        self.own.max(others)
    }
}

/// Files of the work tree that a command would replace or remove. Without paths, all such.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Those that differ from a commit, or from the index.
    Changed {
        since: Since,
        paths: Vec<Vec<u8>>,
    },
    Untracked {
        ignored: Ignored,
        paths: Vec<Vec<u8>>,
    },
    Tracked {
        paths: Vec<Vec<u8>>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    Index,
    Commit(Vec<u8>),
    /// A word that may also be something else.
    PerhapsCommit(Vec<u8>),
}

/// Whether ignored files are among the untracked ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ignored {
    Left,
    Alone,
    Too,
}

/// What a command would change of git's own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnFiles {
    /// Nothing that gets lost.
    Kept,
    /// The index, references, their logs and what stands for a merge under way.
    ButObjects,
    All,
}

impl Listing {
    /// The words behind `git` and its options.
    #[must_use]
    pub fn call(&self) -> Vec<&[u8]> {
        let (mut words, paths): (Vec<&[u8]>, _) = match self {
            Self::Changed { since, paths } => {
                let mut words: Vec<&[u8]> = vec![b"diff", b"--name-only"];
                match since {
                    Since::Index => {}
                    Since::Commit(commit) | Since::PerhapsCommit(commit) => words.push(commit),
                }
                (words, paths)
            }
            Self::Untracked { ignored, paths } => {
                let mut words: Vec<&[u8]> = vec![b"ls-files", b"--others"];
                match ignored {
                    Ignored::Left => words.push(b"--exclude-standard"),
                    Ignored::Too => {}
                    Ignored::Alone => words.extend([&b"--ignored"[..], b"--exclude-standard"]),
                }
                (words, paths)
            }
            Self::Tracked { paths } => (vec![b"ls-files"], paths),
        };
        if !paths.is_empty() {
            words.push(b"--");
            words.extend(paths.iter().map(Vec::as_slice));
        }
        words
    }

    /// Returns true if git refuses the question where the text means something else.
    #[must_use]
    pub fn is_guess(&self) -> bool {
        matches!(self, Self::Changed { since: Since::PerhapsCommit(_), .. })
    }

    /// The paths that have to be there, if nothing else can be destroyed: those that git would only know as names of files.
    #[must_use]
    pub fn plain_paths(&self) -> Option<&[Vec<u8>]> {
        match self {
            Self::Changed { since: Since::Index, paths } if !paths.is_empty() => {
                let is_plain =
                    |path: &Vec<u8>| !path.starts_with(b":") && !path.iter().any(|byte| b"*?[\\".contains(byte));
                paths.iter().all(is_plain).then_some(&paths[..])
            }
            _ => None,
        }
    }
}

/// What a command of git does to what others in the same text destroy: git is asked before the first of them runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Nothing,
    /// Untracked files get into the index, and perhaps ignored ones.
    Stages(Ignored),
    /// References, the index or the work tree change.
    Moves,
}

/// Subcommands that change neither index nor work tree, and no reference that another one may name.
const QUIET: &str = " status log diff show rev-parse ls-files ls-tree ls-remote config remote describe blame grep cat-file \
    for-each-ref version help push tag branch reflog shortlog rev-list merge-base name-rev check-ignore clean rm worktree \
    format-patch archive count-objects diff-files diff-index diff-tree var whatchanged gc prune fsck ";

/// `loss` is what the leaf itself destroys.
pub(super) fn effect(leaf: &Leaf, loss: Option<&RepositoryLoss>) -> Effect {
    if base_name(&leaf.program) != b"git" {
        return Effect::Nothing;
    }
    let words = Words::of(leaf, &[]);
    let mut operands = words.operands().map(|word| word.text().unwrap_or_default());
    let (subcommand, second) = (operands.next(), operands.next());
    let has = |options: &[&str]| options.iter().any(|option| words.has(option) != Answer::No);
    match subcommand {
        None => Effect::Nothing,
        Some(b"stash") if loss.is_some() || matches!(second, Some(b"list" | b"show")) => Effect::Nothing,
        Some(b"add" | b"stage" | b"stash") => {
            let takes_ignored = has(&["-f", "--force", "-a", "--all"]);
            Effect::Stages(if takes_ignored { Ignored::Too } else { Ignored::Left })
        }
        // A word that may be a branch.
        Some(b"checkout") if !has(&["--"]) && loss.is_some_and(|loss| loss.own == OwnFiles::Kept) => Effect::Moves,
        Some(b"rm") if has(&["--cached"]) => Effect::Moves,
        Some(name) if loss.is_some() || is_listed(name, QUIET) => Effect::Nothing,
        Some(_) => Effect::Moves,
    }
}

/// What a command may destroy because of the others in the text.
pub(super) fn because_of(others: Effect) -> Vec<Listing> {
    let all = Vec::new;
    match others {
        Effect::Nothing => Vec::new(),
        Effect::Stages(ignored) => vec![
            Listing::Changed { since: Since::Commit(b"HEAD".to_vec()), paths: all() },
            Listing::Untracked { ignored, paths: all() },
        ],
        Effect::Moves => {
            vec![Listing::Tracked { paths: all() }, Listing::Untracked { ignored: Ignored::Left, paths: all() }]
        }
    }
}

/// Returns true for a command of git that makes a repository where there may be none.
pub(super) fn makes_repository(leaf: &Leaf) -> bool {
    base_name(&leaf.program) == b"git"
        && Words::of(leaf, &[]).operands().next().is_some_and(|word| matches!(word.text(), Some(b"init" | b"clone")))
}

/// What the words of git tell.
#[derive(Debug, Default)]
pub(super) struct GitReading {
    pub loss: Option<RepositoryLoss>,
    /// Paths that the command removes with all below them.
    pub trees: Vec<Argument>,
    pub is_unknown: bool,
}

/// Reads a command of git. `directory` is the leaf's, `None` if that is not known.
pub(super) fn read(leaf: &Leaf, words: &Words<'_>, directory: Option<PathPattern>) -> GitReading {
    let Some(call) = GitCall::of(leaf, words) else { return GitReading::default() };
    let (listings, own, trees) = call.losses();
    if listings.is_empty() && own == OwnFiles::Kept && trees.is_empty() {
        return GitReading { is_unknown: call.is_unknown.get(), ..GitReading::default() };
    }
    if call.has(&["--recurse-submodules"]) {
        call.is_unknown.set(true);
    }
    let is_elsewhere = !call.globals.is_empty() && !trees.is_empty();
    let globals: Option<Vec<_>> = call.globals.iter().map(|word| word.text().map(<[u8]>::to_vec)).collect();
    let is_found = leaf.program == b"git" || leaf.program.starts_with(b"/");
    let (Some(globals), Some(directory), true) = (globals, directory, is_found && !has_own_variables(leaf)) else {
        return GitReading { is_unknown: true, ..GitReading::default() };
    };
    let loss = RepositoryLoss {
        program: leaf.program.clone(),
        directory,
        globals,
        subcommand: call.subcommand.to_vec(),
        listings,
        because_of_others: Vec::new(),
        own,
    };
    let trees = if is_elsewhere { Vec::new() } else { trees.into_iter().cloned().collect() };
    GitReading { loss: Some(loss), trees, is_unknown: is_elsewhere || call.is_unknown.get() }
}

/// Returns true if the text sets variables that name another repository.
fn has_own_variables(leaf: &Leaf) -> bool {
    use crate::script::Via;
    leaf.via.iter().any(|via| matches!(via, Via::Variable(name) if name.starts_with(b"GIT_")))
}

/// A command of git, in its parts.
struct GitCall<'l> {
    words: &'l Words<'l>,
    globals: &'l [Argument],
    subcommand: &'l [u8],
    /// The operands behind the subcommand: those before `--`, if that is there, and those behind it.
    before: Vec<&'l Argument>,
    behind: Option<Vec<&'l Argument>>,
    options: Vec<&'l [u8]>,
    /// Something gets lost that git is not asked about.
    is_unknown: std::cell::Cell<bool>,
}

impl<'l> GitCall<'l> {
    fn of(leaf: &'l Leaf, words: &'l Words<'l>) -> Option<Self> {
        debug_assert_eq!(base_name(&leaf.program), b"git");
        let place = |word: &Argument| leaf.arguments.iter().position(|other| std::ptr::eq(word, other));
        let mut operands = words.operands();
        let first = operands.next()?;
        let (verb, subcommand) = (place(first)?, first.text()?);
        let dashes = leaf.arguments.iter().skip(verb).position(|word| word.text() == Some(b"--")).map(|at| at + verb);
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        for operand in operands {
            let is_behind = dashes.zip(place(operand)).is_some_and(|(dashes, at)| at > dashes);
            if is_behind { behind.push(operand) } else { before.push(operand) }
        }
        let last = dashes.unwrap_or(leaf.arguments.len());
        let options = leaf.arguments[verb + 1..last.max(verb + 1)].iter().filter_map(Argument::text);
        Some(Self {
            words,
            globals: &leaf.arguments[..verb],
            subcommand,
            before,
            behind: dashes.map(|_| behind),
            options: options.filter(|word| word.starts_with(b"-")).collect(),
            is_unknown: std::cell::Cell::new(false),
        })
    }

    fn has(&self, options: &[&str]) -> bool {
        options.iter().any(|option| self.words.has(option) != Answer::No)
    }

    fn losses(&self) -> (Vec<Listing>, OwnFiles, Vec<&'l Argument>) {
        use OwnFiles::{All, ButObjects, Kept};
        let nothing = (Vec::new(), Kept, Vec::new());
        let is_forced = self.has(&["-f", "--force"]);
        let changed = |since| vec![Listing::Changed { since, paths: Vec::new() }];
        let own = |listings| (listings, ButObjects, Vec::new());
        match self.subcommand {
            b"reset" if self.has(&["--hard", "--merge", "--keep"]) => own(changed(self.commit())),
            // What stands behind it is no value of the option, as elsewhere.
            b"checkout" if self.has(&["-m", "--merge"]) => own(changed(Since::Index)),
            b"checkout-index" if is_forced => own(changed(Since::Index)),
            b"mv" if is_forced => {
                (Vec::new(), Kept, self.before.iter().chain(self.behind.iter().flatten()).copied().collect())
            }
            b"submodule" if is_forced && self.begins_with(&[b"update"]) => {
                self.is_unknown.set(true);
                nothing
            }
            b"checkout" if self.has(&["-b", "-B", "--orphan"]) && !is_forced => nothing,
            b"checkout" => self.checkout(is_forced),
            b"switch" if is_forced || self.has(&["--discard-changes"]) => own(changed(self.commit())),
            b"restore" if self.has(&["--worktree", "-W"]) || !self.has(&["--staged", "-S"]) => self.restore(),
            b"clean" if !self.has(&["-n", "--dry-run"]) => {
                let ignored = match (self.has(&["-X"]), self.has(&["-x"])) {
                    (true, _) => Ignored::Alone,
                    (false, true) => Ignored::Too,
                    (false, false) => Ignored::Left,
                };
                (vec![Listing::Untracked { ignored, paths: self.paths() }], Kept, Vec::new())
            }
            b"rm" if !self.has(&["--cached", "-n", "--dry-run"]) => own(vec![Listing::Tracked { paths: self.paths() }]),
            b"stash" if self.begins_with(&[b"drop", b"clear"]) => own(Vec::new()),
            b"branch" if self.has(&["-D"]) || is_forced && self.has(&["-d", "--delete"]) => own(Vec::new()),
            b"worktree" if self.begins_with(&[b"remove"]) => (Vec::new(), ButObjects, self.rest()),
            b"submodule" if self.begins_with(&[b"deinit"]) => (Vec::new(), ButObjects, self.rest()),
            b"read-tree" if self.has(&["-u"]) => own(changed(self.commit())),
            b"merge" | b"rebase" | b"cherry-pick" | b"revert" | b"am" if self.has(&["--abort", "--skip"]) => {
                let mut listings = changed(Since::Commit(b"HEAD".to_vec()));
                // Where the branch was when it began.
                listings.extend(changed(Since::PerhapsCommit(b"ORIG_HEAD".to_vec())));
                own(listings)
            }
            b"gc" | b"prune" => (Vec::new(), All, Vec::new()),
            _ => nothing,
        }
    }

    fn checkout(&self, is_forced: bool) -> (Vec<Listing>, OwnFiles, Vec<&'l Argument>) {
        use OwnFiles::{ButObjects, Kept};
        let changed = |since, paths| Listing::Changed { since, paths };
        match (&self.behind, &self.before[..]) {
            (Some(_), []) => (vec![changed(Since::Index, self.paths())], Kept, Vec::new()),
            (Some(_), _) => (vec![changed(self.commit(), self.paths())], ButObjects, Vec::new()),
            (None, _) if is_forced => (vec![changed(self.commit(), Vec::new())], ButObjects, Vec::new()),
            (None, []) => (Vec::new(), Kept, Vec::new()),
            (None, [_]) => (vec![changed(Since::Index, patterns(&self.before))], Kept, Vec::new()),
            (None, [first, paths @ ..]) => {
                let mut listings = vec![changed(Since::Index, patterns(&self.before))];
                match first.text() {
                    Some(commit) => listings.push(changed(Since::PerhapsCommit(commit.to_vec()), patterns(paths))),
                    None => self.is_unknown.set(true),
                }
                (listings, ButObjects, Vec::new())
            }
        }
    }

    fn restore(&self) -> (Vec<Listing>, OwnFiles, Vec<&'l Argument>) {
        let named = self.words.value_of(b's', "source");
        let is_staged = self.has(&["--staged", "-S"]);
        let since = match named.as_ref().and_then(Argument::text) {
            Some(commit) => Since::Commit(commit.to_vec()),
            None => {
                self.is_unknown.set(self.has(&["-s", "--source"]));
                if is_staged { Since::Commit(b"HEAD".to_vec()) } else { Since::Index }
            }
        };
        let own = if is_staged { OwnFiles::ButObjects } else { OwnFiles::Kept };
        let from_file = self.options.iter().any(|option| option.starts_with(b"--pathspec-from-file"));
        let paths = if from_file { Vec::new() } else { self.paths() };
        (vec![Listing::Changed { since, paths }], own, Vec::new())
    }

    /// The first operand, or the commit that is checked out.
    fn commit(&self) -> Since {
        match self.before.first().map(|word| word.text()) {
            Some(Some(commit)) => Since::Commit(commit.to_vec()),
            open => {
                self.is_unknown.set(open.is_some());
                Since::Commit(b"HEAD".to_vec())
            }
        }
    }

    fn begins_with(&self, words: &[&[u8]]) -> bool {
        self.before.first().and_then(|word| word.text()).is_some_and(|word| words.contains(&word))
    }

    /// The operands behind the first one.
    fn rest(&self) -> Vec<&'l Argument> {
        self.before.iter().skip(1).chain(self.behind.iter().flatten()).copied().collect()
    }

    /// The patterns of paths; none if one is not known.
    fn paths(&self) -> Vec<Vec<u8>> {
        match &self.behind {
            Some(behind) => patterns(behind),
            None => patterns(&self.before),
        }
    }
}

/// Words as patterns of git, whose stars reach over slashes, too. None if one of them is not known.
fn patterns(words: &[&Argument]) -> Vec<Vec<u8>> {
    let piece = |piece: &ArgumentPiece| match piece {
        ArgumentPiece::Text(text) => Some(text.clone()),
        ArgumentPiece::Hole(hole) => match &hole.kind {
            HoleKind::Pattern(written) if !written.iter().any(|byte| b"{}()|\\'\"$`".contains(byte)) => {
                Some(written.clone())
            }
            _ => None,
        },
    };
    let pattern = |word: &&Argument| word.pieces.iter().map(piece).collect::<Option<Vec<_>>>().map(|all| all.concat());
    words.iter().map(pattern).collect::<Option<Vec<_>>>().unwrap_or_default()
}
