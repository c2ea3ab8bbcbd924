//! Which operands a command's leaves have that destroy something.
//!
//! Invariants: nothing is looked up, and nothing is expanded that the text does not tell. What is not understood is named
//! as unknown. Sources that are moved are operands, too, if something is removed later: it may be removed under its new name.

mod archives;

use archives::Format;

use super::finding::{FindAction, Finding};
use super::operand::{Extent, Loss, Operand, PathPattern, Step};
use super::repository::{self, Effect, Ignored, Listing, RepositoryLoss};
use crate::gate::{Answer, Words};
use crate::limits;
use crate::script::{
    Argument, ArgumentPiece, HoleKind, Leaf, LeafState, OutputOf, RedirectKind, Redirection, Via, base_name,
};

/// What a command would destroy.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub operands: Vec<Operand>,
    /// What git would destroy, which it tells when it is asked.
    pub repositories: Vec<RepositoryLoss>,
    /// The programs whose operands are not known, with what leads to them: `xargs rm`.
    pub unknown: Vec<Vec<u8>>,
    /// True if the command shows how many links files have, which one more would change.
    pub shows_links: bool,
}

impl Losses {
    /// Returns true if programs have to be asked what is destroyed.
    #[must_use]
    pub fn asks_programs(&self) -> bool {
        let is_of_archive = |operand: &Operand| matches!(operand.extent, Extent::Below { strip: Some(_), .. });
        !self.repositories.is_empty() || self.operands.iter().any(is_of_archive)
    }

    /// The operands of a text whose `cd`s lead to directories.
    pub fn expected(&self) -> impl Iterator<Item = &Operand> {
        let is_expected = |operand: &&Operand| !matches!(operand.path.steps.first(), Some(Step::Unless(_)));
        self.operands.iter().filter(is_expected)
    }
}

/// What a command destroys whose leaves are these, in their order. Removed files of other hosts, containers and users are
/// unknown.
#[must_use]
pub fn losses(leaves: &[Leaf]) -> Losses {
    let mut found = Losses::default();
    let mut detours = Detours::default();
    // What each leaf of git does, and the leaves that the losses are of.
    let (mut effects, mut of_leaves) = (Vec::new(), Vec::new());
    let last_removal = leaves.iter().rposition(removes);
    let first_change = leaves.iter().position(changes_files).unwrap_or(leaves.len());
    for (at, leaf) in leaves.iter().enumerate() {
        let mut own = LeafLosses { files_are_as_before: at <= first_change, ..LeafLosses::of(leaf) };
        found.shows_links |= shows_links(leaf);
        own.by_program(last_removal.is_some_and(|last| at < last));
        leaf.redirects.iter().for_each(|redirect| own.by_redirection(redirect));
        for (loss, with_below) in std::mem::take(&mut own.filled_by_find) {
            let finds = leaves.iter().filter(|leaf| base_name(&leaf.program) == b"find");
            finds.for_each(|find| own.found(find, FindAction::Executes, loss, with_below));
        }
        // Before it begins, git could not be asked.
        own.is_unknown |= own.repository.is_some() && leaves[..at].iter().any(repository::makes_repository);
        detours.take(&mut own);
        effects.push(repository::effect(leaf, own.repository.as_ref()));
        if own.operands.is_empty() && own.repository.is_none() && !own.is_unknown {
            continue;
        }
        let is_foreign = leaf.is_elsewhere() || leaf.via.iter().any(changes_user);
        let are_too_many = found.operands.len() + own.operands.len() > limits::DESTROYED_OPERANDS_MAX
            || own.repository.is_some() && found.repositories.len() == limits::DESTROYED_REPOSITORIES_MAX;
        if own.is_unknown || is_foreign || are_too_many {
            let name = shown(leaf);
            if !found.unknown.contains(&name) && found.unknown.len() < limits::DESTROYED_UNKNOWN_MAX {
                found.unknown.push(name);
            }
        }
        if !is_foreign {
            let room = limits::DESTROYED_OPERANDS_MAX - found.operands.len();
            own.operands.truncate(room);
            found.operands.append(&mut own.operands);
            let is_left = found.repositories.len() < limits::DESTROYED_REPOSITORIES_MAX;
            if let Some(loss) = own.repository.filter(|_| is_left) {
                found.repositories.push(loss);
                of_leaves.push(at);
            }
        }
    }
    let ignores = Step::Name(b".gitignore".to_vec());
    if found.operands.iter().any(|operand| operand.path.steps.last() == Some(&ignores)) {
        let listings = found.repositories.iter_mut().flat_map(|loss| &mut loss.listings);
        for listing in listings {
            if let Listing::Untracked { ignored: ignored @ Ignored::Left, .. } = listing {
                *ignored = Ignored::Too;
            }
        }
    }
    for (loss, of) in found.repositories.iter_mut().zip(of_leaves) {
        let others = effects.iter().enumerate().filter(|(at, _)| *at != of).map(|(_, effect)| *effect);
        loss.because_of_others = repository::because_of(others.max().unwrap_or(Effect::Nothing));
    }
    found
}

/// Returns true for a program that takes names away.
fn removes(leaf: &Leaf) -> bool {
    matches!(base_name(&leaf.program), b"rm" | b"unlink" | b"rmdir" | b"find" | b"rsync" | b"mv" | b"git")
}

/// Returns true for all but what is known to leave the bytes of files alone.
fn changes_files(leaf: &Leaf) -> bool {
    let writes =
        |redirect: &Redirection| redirect.kind != RedirectKind::Read && redirect.target.text() != Some(b"/dev/null");
    let leaves_alone = match base_name(&leaf.program) {
        b"bash" | b"sh" | b"zsh" | b"dash" => {
            let option = leaf.arguments.first().and_then(Argument::text);
            option.is_some_and(|option| option.starts_with(b"-") && option.ends_with(b"c"))
        }
        b"" => leaf.redirects.is_empty(),
        b"." | b":" | b"[" | b"[[" | b"cat" | b"cd" | b"command" | b"du" | b"echo" | b"env" | b"eval" | b"export" => {
            true
        }
        b"file" | b"head" | b"ls" | b"mkdir" | b"printf" | b"pwd" | b"set" | b"shopt" | b"source" | b"test" => true,
        b"time" | b"timeout" | b"true" | b"type" | b"which" => true,
        _ => false,
    };
    !leaves_alone || matches!(leaf.state, LeafState::Opaque(_)) || leaf.redirects.iter().any(writes)
}

/// Returns true for a program that shows link counts, or times of changes, or asks for them: gzip refuses a file with several
/// names.
fn shows_links(leaf: &Leaf) -> bool {
    let mut words = leaf.arguments.iter().filter_map(Argument::text);
    let has_letter = |word: &[u8]| word.starts_with(b"-") && word.iter().any(|letter| b"lgnoc".contains(letter));
    match base_name(&leaf.program) {
        b"ls" | b"dir" | b"eza" | b"exa" | b"lsd" => words.any(has_letter),
        b"vdir" | b"ll" | b"la" | b"stat" => true,
        b"find" => words.any(|word| {
            let asks: [&[u8]; 8] =
                [b"-links", b"-ls", b"-fls", b"-printf", b"-fprintf", b"-cmin", b"-ctime", b"-cnewer"];
            asks.contains(&word)
        }),
        b"fdupes" | b"jdupes" | b"rdfind" | b"hardlink" => true,
        program => Format::of(program).is_some(),
    }
}

/// Whose programs have files of other users.
fn changes_user(via: &Via) -> bool {
    matches!(via, Via::Layer(layer) if [b"sudo".as_slice(), b"doas", b"su", b"chroot", b"runuser"].contains(&&layer[..]))
}

/// The program of a leaf with the layer that gives it its words: `xargs rm`.
fn shown(leaf: &Leaf) -> Vec<u8> {
    let name = if leaf.program.is_empty() { b"redirection" } else { base_name(&leaf.program) };
    let subcommand = match name {
        b"git" => Words::of(leaf, &[]).operands().next().and_then(Argument::text),
        _ => None,
    };
    let layer = leaf.via.iter().rev().find_map(|via| match via {
        Via::Layer(layer) if !layer.is_empty() => Some(&layer[..]),
        _ => None,
    });
    layer.into_iter().chain([name]).chain(subcommand).collect::<Vec<_>>().join(&b' ')
}

pub(super) struct LeafLosses<'l> {
    pub(super) leaf: &'l Leaf,
    pub(super) operands: Vec<Operand>,
    repository: Option<RepositoryLoss>,
    pub(super) is_unknown: bool,
    /// Some words are what find finds: what gets lost of it, and true if all that is below does, too.
    filled_by_find: Vec<(Loss, bool)>,
    /// True if what the leaf reads is there before the command begins.
    files_are_as_before: bool,
}

impl<'l> LeafLosses<'l> {
    fn of(leaf: &'l Leaf) -> Self {
        Self {
            leaf,
            operands: Vec::new(),
            repository: None,
            is_unknown: false,
            filled_by_find: Vec::new(),
            files_are_as_before: false,
        }
    }

    /// `is_before_removal`: something may be removed later.
    fn by_program(&mut self, is_before_removal: bool) {
        let leaf = self.leaf;
        let words = Words::of(leaf, &[]);
        let has = |option: &str| words.has(option) != Answer::No;
        match base_name(&leaf.program) {
            b"rm" if has("-r") || has("-R") || has("--recursive") => self.each(&words, Loss::Name, Extent::Tree),
            b"rmdir" if has("-p") || has("--parents") => self.with_those_above(&words),
            b"rm" | b"unlink" | b"rmdir" => self.each(&words, Loss::Name, Extent::Itself),
            // It writes over the files in place, so there is nothing to keep a link to.
            b"shred" => self.is_unknown = words.operands().next().is_some(),
            b"find" => self.by_find(),
            b"rsync" if has("-n") || has("--dry-run") => {}
            b"rsync" => self.by_rsync(&words),
            b"mv" => {
                self.targets(&words, Loss::Name);
                if is_before_removal {
                    self.each(&words, Loss::Name, Extent::Tree);
                }
            }
            b"sort" => self.output(&words, b'o', "output"),
            b"curl" => {
                let directory = words.value_of(0, "output-dir");
                for target in words.values_of(b'o', "output") {
                    self.add(&inside(directory.as_ref(), &target), Loss::Bytes, Extent::Itself);
                }
                if has("-O") || has("--remote-name") || has("--remote-name-all") {
                    self.downloads(&words);
                }
            }
            b"wget" => self.output(&words, b'O', "output-document"),
            b"scp" => self.by_scp(&words),
            b"tar" | b"bsdtar" => self.by_tar(),
            b"unzip" => self.by_unzip(&words),
            b"cpio" => self.by_cpio(&words),
            b"zip" => self.by_zip(&words),
            b"split" if has("--filter") => {}
            b"split" => self.pieces(words.operands().nth(1).cloned(), b"x", b"[0-9a-z][0-9a-z]*"),
            b"csplit" => self.pieces(words.value_of(b'f', "prefix"), b"xx", b"[0-9]*"),
            b"patch" => self.by_patch(&words),
            b"ln" if has("-f") || has("--force") => self.targets(&words, Loss::Name),
            b"install" => self.targets(&words, Loss::Name),
            b"cp" if has("-n") || has("--no-clobber") => {}
            b"cp" => {
                let is_removed = words.has("--remove-destination") == Answer::Yes;
                if is_removed || has("-f") || has("--force") {
                    self.targets(&words, Loss::Name);
                }
                if !is_removed {
                    self.targets(&words, Loss::Bytes);
                }
            }
            b"tee" | b"sponge" if !has("-a") && !has("--append") => self.each(&words, Loss::Bytes, Extent::Itself),
            b"uniq" => words.operands().skip(1).for_each(|output| self.add(output, Loss::Bytes, Extent::Itself)),
            // Editors write in place, or at least where a file has more than one name.
            b"ed" | b"ex" | b"vi" | b"vim" | b"nvim" => self.each(&words, Loss::Bytes, Extent::Itself),
            b"yq" if self.edits_in_place() || has("--inplace") => self.each(&words, Loss::Bytes, Extent::Itself),
            b"truncate" => self.each(&words, Loss::Bytes, Extent::Itself),
            b"dd" => self.by_dd(),
            b"sed" if self.edits_in_place() || has("--in-place") => {
                // The first word is the script, unless an option has it.
                let has_script = has("-e") || has("-f") || has("--expression") || has("--file");
                // A link is replaced, unless it is followed.
                let loss = if has("--follow-symlinks") { Loss::Bytes } else { Loss::Name };
                for word in words.operands().skip(usize::from(!has_script)) {
                    self.add(word, loss, Extent::Itself);
                }
            }
            b"perl" | b"ruby" if self.edits_in_place() => {
                for word in words.operands() {
                    self.add(word, Loss::Name, Extent::Itself);
                }
            }
            b"awk" | b"gawk" if words.value_of(b'i', "include").is_some_and(|name| name.text() == Some(b"inplace")) => {
                self.each(&words, Loss::Name, Extent::Itself);
            }
            b"git" if words.operands().next().is_some_and(|word| word.text() == Some(b"apply")) => {
                self.by_git_apply(&words);
            }
            b"git" => self.by_git(&words),
            name => {
                if let Some(format) = Format::of(name) {
                    self.by_compressor(&words, format);
                }
            }
        }
    }

    /// Returns true if an option has the letter `i`, perhaps with more behind it: `-i`, `-ni`, `-pi.bak`.
    fn edits_in_place(&self) -> bool {
        let options = self.leaf.arguments.iter().filter_map(Argument::text).filter_map(|word| word.strip_prefix(b"-"));
        options.filter(|letters| !letters.starts_with(b"-")).any(|letters| letters.contains(&b'i'))
    }

    /// What find itself removes: everything below the directories where it begins. What it has others remove is theirs.
    fn by_find(&mut self) {
        let leaf = self.leaf;
        if leaf.arguments.iter().any(|word| word.text() == Some(b"-delete")) {
            self.found(leaf, FindAction::Deletes, Loss::Name, false);
        }
    }

    /// What a call of find finds, below the directories where it begins.
    fn found(&mut self, find: &Leaf, action: FindAction, loss: Loss, with_below: bool) {
        let is_start = |word: &&Argument| !word.shown().starts_with(b"-") && !matches!(word.text(), Some(b"(" | b"!"));
        let is_option = |word: &&Argument| matches!(word.text(), Some(b"-H" | b"-L" | b"-P"));
        let options = find.arguments.iter().take_while(is_option).count();
        let starts: Vec<_> = find.arguments.iter().skip(options).take_while(is_start).cloned().collect();
        let finding = Finding::of(&find.arguments[options + starts.len()..], action, with_below);
        if finding.is_nothing() {
            return;
        }
        let extent = if finding.is_all() && loss == Loss::Name { Extent::Tree } else { Extent::Found(finding) };
        let mut own = LeafLosses::of(find);
        // It goes where links lead.
        let is_behind_links = |word: &Argument| matches!(word.text(), Some(b"-H" | b"-L"));
        own.is_unknown = find.arguments[..options].iter().any(is_behind_links);
        let here = [Argument::from(&b"."[..])];
        let starts = if starts.is_empty() { &here[..] } else { &starts };
        starts.iter().for_each(|start| own.add(start, loss, extent.clone()));
        self.operands.append(&mut own.operands);
        self.is_unknown |= own.is_unknown;
    }

    fn by_rsync(&mut self, words: &Words<'_>) {
        let has = |option: &str| words.has(option) != Answer::No;
        let mut sources: Vec<_> = words.operands().collect();
        let Some(target) = sources.pop() else { return };
        if is_far(target) {
            return;
        }
        let is_in_place = has("--inplace") || has("--append") || has("--append-verify");
        let is_deleting = ["--delete", "--del", "--delete-*"].into_iter().any(has);
        let losses = [is_in_place.then_some(Loss::Bytes), (!is_deleting).then_some(Loss::Name)];
        for loss in losses.into_iter().flatten() {
            for source in &sources {
                if is_far(source) {
                    self.is_unknown = true;
                } else {
                    self.overlay(target, source, loss, !source.shown().ends_with(b"/"));
                }
            }
        }
        if is_deleting {
            self.add(target, Loss::Name, Extent::Tree);
        }
    }

    /// What is copied over the target with all that is below the source.
    fn overlay(&mut self, target: &Argument, source: &Argument, loss: Loss, is_inside: bool) {
        let shown = source.shown();
        let has_name = !matches!(shown.rsplit(|byte| *byte == b'/').next(), Some(b"." | b".."));
        match (self.pattern(target), self.pattern(source)) {
            (Some(path), Some(sources)) => {
                let extent = Extent::Overlay { sources, is_inside: is_inside && has_name };
                self.operands.push(Operand { path, loss, extent });
            }
            _ => self.is_unknown = true,
        }
    }

    /// The directories, and those above them that are written.
    fn with_those_above(&mut self, words: &Words<'_>) {
        for word in words.operands() {
            self.add(word, Loss::Name, Extent::Itself);
            let Some(text) = word.text() else { continue };
            let slashes = text.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            for above in slashes.collect::<Vec<_>>() {
                self.add(&Argument::from(&text[..above]), Loss::Name, Extent::Itself);
            }
        }
    }

    /// The files that an option names.
    pub(super) fn output(&mut self, words: &Words<'_>, letter: u8, long: &str) {
        words.values_of(letter, long).for_each(|target| self.add(&target, Loss::Bytes, Extent::Itself));
    }

    /// What curl names as its addresses do.
    fn downloads(&mut self, words: &Words<'_>) {
        let directory = words.value_of(0, "output-dir");
        for address in words.operands().filter(|word| Some(*word) != directory.as_ref()) {
            let name = match address.pieces.last() {
                Some(ArgumentPiece::Text(text)) => text.rsplit(|byte| *byte == b'/').next().unwrap_or_default(),
                _ => b"",
            };
            let name = name.split(|byte| b"?#".contains(byte)).next().unwrap_or_default();
            match name {
                b"" => self.is_unknown = true,
                name => self.add(&inside(directory.as_ref(), &Argument::from(name)), Loss::Bytes, Extent::Itself),
            }
        }
    }

    fn by_scp(&mut self, words: &Words<'_>) {
        let mut sources: Vec<_> = words.operands().collect();
        let Some(target) = sources.pop().filter(|target| !is_far(target)) else { return };
        self.add(target, Loss::Bytes, Extent::Itself);
        self.is_unknown |= words.has("-r") != Answer::No;
        for source in sources {
            let shown = source.shown();
            match shown.rsplit(|byte| b"/:".contains(byte)).next() {
                Some(name) if !name.is_empty() && !name.iter().any(|byte| b"*?[{$".contains(byte)) => {
                    self.add(&inside(Some(target), &Argument::from(name)), Loss::Bytes, Extent::Itself);
                }
                _ => self.is_unknown = true,
            }
        }
    }

    fn by_dd(&mut self) {
        for word in &self.leaf.arguments {
            if let Some(ArgumentPiece::Text(text)) = word.pieces.first()
                && let Some(path) = text.strip_prefix(b"of=")
            {
                self.add(&word.with_first(path), Loss::Bytes, Extent::Itself);
            }
        }
    }

    fn by_git(&mut self, words: &Words<'_>) {
        let directory = match &self.leaf.directory {
            Some(directory) => {
                let mut path = PathReading::default();
                path.read(directory, None).map(|()| path.into_pattern())
            }
            None => Some(PathPattern::default()),
        };
        let read = repository::read(self.leaf, words, directory);
        self.repository = read.loss;
        self.is_unknown |= read.is_unknown;
        read.trees.iter().for_each(|tree| self.add(tree, Loss::Name, Extent::Tree));
    }

    /// The targets of a program that copies, moves or links: the last operand, and each source's name in it.
    fn targets(&mut self, words: &Words<'_>, loss: Loss) {
        let mut sources: Vec<_> = words.operands().collect();
        let named = words.value_of(b't', "target-directory");
        let Some(target) = named.clone().or_else(|| sources.pop().cloned()) else { return };
        if named.is_none() {
            self.add(&target, loss, Extent::Itself);
        }
        let is_recursive = ["-r", "-R", "-a", "--recursive", "--archive"].into_iter();
        let is_recursive = is_recursive.map(|option| words.has(option)).any(|answer| answer != Answer::No);
        let is_onto = words.has("-T") == Answer::Yes || words.has("--no-target-directory") == Answer::Yes;
        for source in sources {
            if base_name(&self.leaf.program) == b"cp" && is_recursive {
                self.overlay(&target, source, loss, !is_onto);
                continue;
            }
            if is_onto {
                return;
            }
            // Its name is nobody else's.
            if is_fresh(source) {
                continue;
            }
            // One that find moves may come over another one of its name.
            if is_of_find(source, self.leaf) {
                self.filled_by_find.push((Loss::Name, true));
            }
            let (Some(mut path), Some(source)) = (self.pattern(&target), self.pattern(source)) else {
                self.is_unknown = true;
                return;
            };
            let mut names = source.steps.into_iter().rev().filter(|step| *step != Step::here());
            let Some(name) = names.next().filter(|step| *step != Step::Name(b"..".to_vec())) else {
                self.is_unknown = true;
                continue;
            };
            path.steps.push(name);
            self.operands.push(Operand { path, loss, extent: Extent::Itself });
        }
    }

    pub(super) fn each(&mut self, words: &Words<'_>, loss: Loss, extent: Extent) {
        words.operands().for_each(|word| self.add(word, loss, extent.clone()));
    }

    fn by_redirection(&mut self, redirect: &Redirection) {
        if matches!(redirect.kind, RedirectKind::Write | RedirectKind::ReadWrite) {
            self.add(&redirect.target, Loss::Bytes, Extent::Itself);
        }
    }

    pub(super) fn add(&mut self, word: &Argument, loss: Loss, extent: Extent) {
        if is_of_find(word, self.leaf) {
            let filled = (loss, extent == Extent::Tree);
            if !self.filled_by_find.contains(&filled) {
                self.filled_by_find.push(filled);
            }
            return;
        }
        if is_fresh(word) {
            return;
        }
        match self.pattern(word) {
            None => self.is_unknown = true,
            Some(path) if is_special(&path) => {}
            Some(path) => self.operands.push(Operand { path, loss, extent }),
        }
    }

    /// The path that a word is, from the command's directory. `None` if it is not known.
    pub(super) fn pattern(&self, word: &Argument) -> Option<PathPattern> {
        let mut path = PathReading::default();
        path.read(word, self.leaf.directory.as_ref())?;
        let path = match &self.leaf.directory {
            Some(directory) if !path.is_absolute() => {
                let mut joined = PathReading::default();
                joined.read(directory, None)?;
                joined.push(b"/");
                joined.read(word, Some(directory))?;
                joined
            }
            _ => path,
        };
        Some(path.into_pattern())
    }
}

/// Programs that make directories into which a later `cd` goes.
const MAKERS: [&[u8]; 9] = [b"mkdir", b"install", b"git", b"cp", b"mv", b"rsync", b"tar", b"unzip", b"ln"];

/// What paths mean after what the text did before.
#[derive(Debug, Default)]
struct Detours {
    /// The names of symbolic links that were made, and what they lead to.
    links: Vec<(PathPattern, PathPattern)>,
    has_made: bool,
}

impl Detours {
    /// Adds to a leaf's operands what else they may be, and remembers what the leaf makes.
    fn take(&mut self, own: &mut LeafLosses<'_>) {
        let mut others = Vec::new();
        for operand in &own.operands {
            self.through_links(operand, &mut others);
        }
        own.operands.append(&mut others);
        if let Some(directory) = own.leaf.directory.as_ref().and_then(directory_pattern) {
            for operand in &own.operands {
                self.of_directory(operand, &directory, &mut others);
            }
            own.operands.append(&mut others);
        }
        if base_name(&own.leaf.program) == b"ln" {
            self.links_of(own);
        }
        self.has_made |= MAKERS.contains(&base_name(&own.leaf.program));
    }

    fn through_links(&self, operand: &Operand, others: &mut Vec<Operand>) {
        for (name, target) in &self.links {
            let below = operand.path.steps.strip_prefix(&name.steps[..]);
            let Some(rest) = below.filter(|rest| !rest.is_empty() && operand.path.is_absolute == name.is_absolute)
            else {
                continue;
            };
            let path = PathPattern { steps: [&target.steps, rest].concat(), ..target.clone() };
            others.push(Operand { path, ..operand.clone() });
        }
    }

    /// An operand behind a `cd`: `x/..` is no step for a shell, and where there is no such directory, it stays where it was.
    fn of_directory(&self, operand: &Operand, directory: &PathPattern, others: &mut Vec<Operand>) {
        let Some(rest) = operand.path.steps.strip_prefix(&directory.steps[..]) else { return };
        if operand.path.is_absolute != directory.is_absolute {
            return;
        }
        let mut add = |is_absolute, before: &[Step]| {
            let path = PathPattern { is_absolute, steps: [before, rest].concat() };
            others.push(Operand { path, ..operand.clone() });
        };
        let mut logical: Vec<Step> = Vec::new();
        for step in &directory.steps {
            match (step, logical.last()) {
                (Step::Name(name), Some(Step::Name(last))) if name == b".." && last != b".." => drop(logical.pop()),
                _ => logical.push(step.clone()),
            }
        }
        if logical != directory.steps {
            add(directory.is_absolute, &logical);
        }
        if !self.has_made {
            add(false, &[Step::Unless(directory.clone())]);
        }
    }

    /// Links whose targets the words tell.
    fn links_of(&mut self, own: &LeafLosses<'_>) {
        let words = Words::of(own.leaf, &[]);
        if words.has("-s") == Answer::No && words.has("--symbolic") == Answer::No {
            return;
        }
        let mut sources: Vec<_> = words.operands().collect();
        let Some(name) = words.value_of(b't', "target-directory").or_else(|| sources.pop().cloned()) else { return };
        let Some(name) = own.pattern(&name) else { return };
        for source in sources {
            let mut read = PathReading::default();
            let Some(source) = read.read(source, None).map(|()| read.into_pattern()) else { continue };
            let inside = source.steps.iter().rev().find(|step| **step != Step::here()).cloned();
            let inside = PathPattern { steps: name.steps.iter().cloned().chain(inside).collect(), ..name.clone() };
            for link in [name.clone(), inside] {
                let above = link.steps.len().saturating_sub(1);
                let target = if source.is_absolute {
                    source.clone()
                } else {
                    PathPattern { steps: [&link.steps[..above], &source.steps].concat(), ..link.clone() }
                };
                if self.links.len() < limits::DESTROYED_OPERANDS_MAX {
                    self.links.push((link, target));
                }
            }
        }
    }
}

/// Returns true for `host:path`, and not for `./a:b`.
fn is_far(word: &Argument) -> bool {
    let shown = word.shown();
    shown.iter().find(|byte| b":/".contains(byte)) == Some(&b':')
}

/// A name in a directory, or in the command's own.
pub(super) fn inside(directory: Option<&Argument>, name: &Argument) -> Argument {
    let above = directory.map(|directory| [&directory.pieces[..], &[ArgumentPiece::Text(b"/".to_vec())]].concat());
    Argument { pieces: [above.unwrap_or_default(), name.pieces.clone()].concat() }
}

fn directory_pattern(directory: &Argument) -> Option<PathPattern> {
    let mut path = PathReading::default();
    path.read(directory, None)?;
    Some(path.into_pattern())
}

/// Returns true for a path that mktemp has just made.
fn is_fresh(word: &Argument) -> bool {
    let first = word.pieces.first();
    matches!(first, Some(ArgumentPiece::Hole(hole)) if hole.kind == HoleKind::Output(OutputOf::Mktemp))
}

/// Returns true for a path that find fills in: the directories where it begins are operands already.
fn is_of_find(word: &Argument, leaf: &Leaf) -> bool {
    let is_filled = |piece: &ArgumentPiece| matches!(piece, ArgumentPiece::Hole(hole) if hole.kind == HoleKind::Filled);
    let is_find = |via: &Via| matches!(via, Via::Layer(layer) if layer.starts_with(b"find"));
    word.pieces.iter().any(is_filled) && leaf.via.iter().any(is_find)
}

/// Returns true for devices and the like, which keep nothing.
fn is_special(path: &PathPattern) -> bool {
    let first = path.steps.first();
    path.is_absolute && matches!(first, Some(Step::Name(name)) if [&b"dev"[..], b"proc", b"sys"].contains(&&name[..]))
}

/// A path that is read piece by piece, as a pattern in which the characters of patterns are known from others.
#[derive(Debug, Default)]
struct PathReading {
    /// With `[*]` for a star that is none.
    written: Vec<u8>,
}

impl PathReading {
    /// `None` if a part is not known. `here`: the directory that `$(pwd)` is.
    fn read(&mut self, word: &Argument, here: Option<&Argument>) -> Option<()> {
        for piece in &word.pieces {
            match piece {
                ArgumentPiece::Text(text) => self.push(text),
                ArgumentPiece::Hole(hole) => match &hole.kind {
                    HoleKind::Pattern(written) => self.push_pattern(written)?,
                    HoleKind::Arithmetic | HoleKind::Digits { may_be_empty: false, .. } => self.written.push(b'*'),
                    HoleKind::Output(OutputOf::Pwd) if self.written.is_empty() => match here {
                        Some(here) => self.read(here, None)?,
                        None => self.push(b"."),
                    },
                    _ => return None,
                },
            }
        }
        (!self.written.is_empty()).then_some(())
    }

    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                b'*' | b'?' | b'[' => self.written.extend([b'[', byte, b']']),
                b'\\' => self.written.push(b'?'),
                byte => self.written.push(byte),
            }
        }
    }

    /// Braces and groups stand for any text within a name.
    fn push_pattern(&mut self, written: &[u8]) -> Option<()> {
        let is_plain = |byte: &u8| !b"{}()|\\'\"$`".contains(byte);
        if written.iter().all(is_plain) {
            self.written.extend_from_slice(written);
        } else if written.contains(&b'/') {
            return None;
        } else {
            self.written.push(b'*');
        }
        Some(())
    }

    fn is_absolute(&self) -> bool {
        self.written.starts_with(b"/")
    }

    fn into_pattern(self) -> PathPattern {
        let step = |name: &[u8]| match name {
            b"**" => Step::Any,
            name => match literal(name) {
                Some(name) => Step::Name(name),
                None => Step::Matching(name.to_vec()),
            },
        };
        let names = self.written.split(|byte| *byte == b'/').filter(|name| !name.is_empty() && *name != b".");
        let mut steps: Vec<Step> = names.map(step).collect();
        // What ends in a slash is the directory behind a link.
        let is_behind_link = self.written.ends_with(b"/") || self.written.ends_with(b"/.");
        steps.extend((is_behind_link && !steps.is_empty()).then(Step::here));
        PathPattern { is_absolute: self.is_absolute(), steps }
    }
}

/// The name that a pattern matches alone. `None` if it matches others.
fn literal(pattern: &[u8]) -> Option<Vec<u8>> {
    let (mut name, mut rest) = (Vec::new(), pattern);
    while let Some((&first, behind)) = rest.split_first() {
        let (byte, behind) = match (first, behind) {
            (b'[', [byte @ (b'*' | b'?' | b'['), b']', behind @ ..]) => (*byte, behind),
            (b'*' | b'?' | b'[', _) => return None,
            (byte, behind) => (byte, behind),
        };
        name.push(byte);
        rest = behind;
    }
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;

    /// The operands of a text in a line: `path` for a name, `path/` for a tree, `=path` for bytes; unknown ones behind `?`.
    fn read(text: &str) -> String {
        let home = |name: &[u8]| match name {
            b"HOME" => Some(b"/h".to_vec()),
            b"v" => Some(b"a b".to_vec()),
            _ => None,
        };
        let losses = losses(&Gate::default().leaves(text.as_bytes(), &home));
        let operand = |operand: &Operand| {
            let bytes = if operand.loss == Loss::Bytes { "=" } else { "" };
            let reach = match &operand.extent {
                Extent::Itself => String::new(),
                Extent::Tree => "/".to_owned(),
                Extent::Found(finding) => {
                    let below = if finding.with_below { "/" } else { "" };
                    let depth = finding.depth_max.map(|depth| format!("{depth}:")).unwrap_or_default();
                    format!("/{{{depth}{}}}{below}", finding.shown())
                }
                Extent::Below { strip: None, .. } => "/..".to_owned(),
                Extent::Below { strip: Some(strip), .. } => format!("/..@{strip}"),
                Extent::Patched { diff } => format!("~{}", String::from_utf8_lossy(&diff.shown())),
                Extent::Overlay { sources, is_inside } => {
                    let into = if *is_inside { "<" } else { "<<" };
                    format!("{into}{}", String::from_utf8_lossy(&sources.shown()))
                }
            };
            format!("{bytes}{}{reach}", String::from_utf8_lossy(&operand.path.shown()))
        };
        let unknown = losses.unknown.iter().map(|name| format!("?{}", String::from_utf8_lossy(name)));
        let repositories = losses.repositories.iter().map(repository);
        losses.expected().map(operand).chain(repositories).chain(unknown).collect::<Vec<_>>().join(" ")
    }

    /// What git is asked, behind its options and its directory; `+` for its own files, `++` for all of them.
    fn repository(loss: &RepositoryLoss) -> String {
        let listings =
            loss.all_listings().map(|listing| String::from_utf8_lossy(&listing.call().join(&b' ')).into_owned());
        let (listings, globals) = (listings.collect::<Vec<_>>().join("; "), loss.globals.join(&b' '));
        let directory = String::from_utf8_lossy(&loss.directory.shown()).into_owned();
        let own = match loss.all_own() {
            repository::OwnFiles::Kept => "",
            repository::OwnFiles::ButObjects => "+",
            repository::OwnFiles::All => "++",
        };
        let parts = [
            if directory == "." { String::new() } else { format!("{directory}:") },
            if globals.is_empty() { String::new() } else { format!("[{}]", String::from_utf8_lossy(&globals)) },
            listings,
            own.to_owned(),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_text_tells_what_its_programs_destroy() {
        for (text, expected) in [
            ("ls -la; echo hi; cat x | grep y 2>/dev/null", ""),
            ("rm a", "a"),
            ("rm -rf a /b/c ~/d", "a/ /b/c/ /h/d/"),
            ("rm -r -- -x", "-x/"),
            ("unlink a; rmdir b", "a b"),
            ("rm *.o 'a*b' a\\[1]c '?'[0-9]", "*.o a\\*b a\\[1]c [?][0-9]"),
            ("rm -f {a,b}.c {1..2000}", "a.c/ b.c/ */"),
            ("rm ./x/../y", "x/../y"),
            ("cd d && rm *", "d/*"),
            ("cd /d; rm x; cd e; rm y", "/d/x /d/e/y"),
            ("(cd d; rm x); rm y", "d/x y"),
            ("cd \"$unknown\" && rm x", "?rm"),
            ("rm \"$v\"; rm $v", "a b a b"),
            ("rm \"$unknown/x\" y", "y ?rm"),
            ("for f in p q; do rm $f; done", "p q"),
            ("t=$(mktemp); x >$t; mv $t a; mv \"$t\" b", "a a/ b"),
            ("t=$(mktemp -d); rm -rf \"$t\" \"$t/x\"", ""),
            ("rm -rf $(pwd)/x", "x/"),
            ("find . -name '*.x' | xargs rm", "?xargs rm"),
            ("printf '%s\\0' a b | xargs -0 rm; printf '%s\\0' 'a\nb' | xargs -0 rm", "a b ?xargs rm"),
            ("find a b -type f -exec rm {} +", "a/{file} b/{file}"),
            ("find . -name '*.tmp' -delete; find -maxdepth 2 -iname x -exec rm -r {} \\;", "./{*.tmp} ./{2:x}/"),
            ("find a \\( -name x -o -name y -type l \\) ! -path b -delete", "a/{x or y and symlink}"),
            ("find a -path b -prune -o -name x -mtime +1 -delete -o -print", "a/{x}"),
            (
                "find a -name \"$unknown\" -delete; find a -odd -name x -delete; find a -print -o -name x -delete",
                "a/ a/ a/{x}",
            ),
            (
                "find a -type f -exec truncate -s0 {} +; find a -empty -exec sed -i s/a/b/ {} +",
                "=a/{file} =a/{empty} a/{file} a/{empty}",
            ),
            ("find -L a -delete; find -delete", "a/ ./ ?find"),
            ("find a -type f -print", ""),
            ("rsync -a --delete x/ y", "y/"),
            ("rsync -a x/ y", "y<<x"),
            ("rsync -a --inplace x y; rsync x h:y; rsync -n x y; rsync h:x y", "=y<x y<x ?rsync"),
            ("find a -execdir rm {} +; find b -exec sh -c 'rm \"$1\"' _ {} \\;", "a/ b/ a/ b/"),
            ("rmdir -p a/b/c", "a/b/c a a/b"),
            ("shred -u a", "?shred"),
            ("sort -o a b; curl -o c d -o e f; wget -Og h", "=a =c =e =g"),
            ("curl -sSLO 'https://h/p/a.tgz?x#y'; curl -O --output-dir d h/b; curl -O \"$u\"", "=a.tgz =d/b ?curl"),
            ("scp h:a/b c; scp a h:; scp h:x/*.c .", "=c =c/b =. ?scp"),
            ("gzip a; gunzip b.gz; zstd c; xz -dc d.xz", ""),
            (
                "gzip -f a; xz -kf b; gunzip -f c.gz; zstd -f --rm d; bzip2 -rf e",
                "a a.gz b.xz c.gz c d d.zst e/ e.bz2 ?bzip2",
            ),
            ("zstd -f a -o b; gzip -f *.log", "b a.zst *.log *.log.gz"),
            ("tar xf a.tar; tar -xzf a.tgz -C /d; tar xfC a.tar d; curl u | tar xz", "./..@0 /d/.. d/.. ./.."),
            ("cd d && tar xzf a.tgz --strip-components 1", "d/..@1"),
            ("eval 'mkdir -p x; unzip -oq a.zip -d x </dev/null' 2>/dev/null; echo", "x/..@0"),
            ("exec 3<>a; echo x 1<>b; cat <>/dev/null", "=a =b"),
            ("curl --output-dir d -o f u; sed -i --follow-symlinks s/a/b/ l", "=d/f =l"),
            ("make a.tar; tar xf a.tar", "./.."),
            ("echo x >a.tar; tar xf a.tar", "=a.tar ./.."),
            ("tar xf a --strip-components=$x; tar xf a --recursive-unlink; unzip -oj a", "./.. ./.. ./.. ?tar"),
            ("tar xf a.tar m/n p --directory d; tar xf a.tar --strip-components=1 m", "d/m/n/.. d/p/.. ./.."),
            ("tar tf a; tar xOf a; tar xkf a; tar -C \"$(mktemp -d)\" -xf a; tar cf - x; tar rf a x", ""),
            ("tar cf a x; tar czf \"$u\" x; tar --create --remove-files --file=b -C d x y", "=a =b d/x/ d/y/ ?tar"),
            ("tar xf a -C b -C c; tar x --overwrite -f a; tar xPf a; bsdtar xf a", "./.. ?tar ?bsdtar"),
            ("unzip -o a; unzip -qod d a m; unzip -l a; unzip -n a; unzip a -x m", "./..@0 d/m/.. ./.."),
            ("cpio -id <a; cpio -it; cpio -pdm d; cpio -o -F a", "./.. d/.. =a"),
            ("zip -r a.zip x; zip -m b x y; zip - x", "=a.zip =b =b.zip x/ y/"),
            (
                "split -b 1M f; split f p_; split --filter=cat f; csplit f 5",
                "=x[0-9a-z][0-9a-z]* =p_[0-9a-z][0-9a-z]* =xx[0-9]*",
            ),
            ("patch a <d; patch -d e -p1 -i f; patch -p1 <g; cat d | patch -p1", "a e~f .~g ?patch"),
            ("patch --dry-run <d; git apply --check d; git apply --stat d", ""),
            (
                "git apply d e; git apply --index <f; git -C x apply d; git diff | git apply -R",
                ".~d .~e .~f ?git apply",
            ),
            ("patch -p1 <<'E'\n--- a/x/y\n+++ b/x/y\nE", "a/x/y b/x/y x/y y"),
            (
                "ed -s a; ex -s b; yq -i c d; gawk -i inplace c d; uniq a b; x | sponge c",
                "=a =b =c =d inplace c d =b =c",
            ),
            ("mv -tD a; cp --target=d b; install -t \"$HOME\"/x c", "D/a =d/b /h/x/c"),
            ("cp -r a/. b; cp -rT c d; cp -a *.x y", "=b =b<<a =d =d<<c =y =y<*.x"),
            ("ln -s /a/b l; rm -rf l/ l/x; rm l", "l/ l/x/ /a/b/ /a/b/x/ l"),
            ("ln -s ../p d/l; cd d/l; rm x", "d/l/x d/../p/x"),
            ("cd l/..; rm x", "l/../x x"),
            ("mv a b", "b b/a"),
            ("mv a b && rm -rf b", "b b/a a/ b/ b/"),
            ("mv -t d a b", "d/a d/b"),
            ("mv -T a b", "b"),
            ("ln -sf a b; ln -s c d", "b b/a"),
            ("install -m 755 a /usr/bin", "/usr/bin /usr/bin/a"),
            ("cp a b; cp -n c d", "=b =b/a"),
            ("cp -r a b", "=b =b<a"),
            ("echo x > out; echo y >> more; echo z >| all; cat < in", "=out =all"),
            ("echo x > /dev/null 2>&1", ""),
            ("echo x > \"$unknown\"", "?echo"),
            ("> out", "=out"),
            ("cat a | tee b c; tee -a d", "=b =c"),
            ("truncate -s 0 a; dd if=x of=y", "=a =y"),
            ("sed -i s/a/b/ f g", "f g"),
            ("sed -i.bak -e s/a/b/ f", "f"),
            ("sed s/a/b/ f", ""),
            ("perl -pi -e 's/a/b/' f", "s/a/b f"),
            ("sudo rm x; ssh h rm y; docker run i rm z", "?sudo rm ?ssh rm ?docker run rm"),
            ("bash -c 'rm x'; timeout 5 rm y; env A=b rm z", "x y z"),
            ("f() { rm -rf \"$1\"; }; f build", "build/"),
            ("echo 'rm x'; grep rm f", ""),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn git_is_asked_what_its_commands_destroy() {
        for (text, expected) in [
            (
                "git status; git clean -n; git checkout -b x; git switch main; git restore --staged f; git rm --cached f",
                "",
            ),
            ("git branch -d x; git stash; git stash pop; git worktree add w; git commit -am x; git reset f", ""),
            ("git reset --hard", "diff --name-only HEAD +"),
            ("git reset -q --hard origin/main", "diff --name-only origin/main +"),
            ("git reset --hard \"$unknown\"", "diff --name-only HEAD + ?git reset"),
            ("git checkout main", "diff --name-only -- main"),
            ("git checkout -- f 'g*'", "diff --name-only -- f g*"),
            ("git checkout -- src/*.c $unknown", "diff --name-only"),
            ("git checkout HEAD~1 -- f", "diff --name-only HEAD~1 -- f +"),
            ("git checkout main f", "diff --name-only -- main f; diff --name-only main -- f +"),
            ("git checkout -f other; git switch --discard-changes x", "diff --name-only other + diff --name-only x +"),
            ("git restore .; git restore -s a b", "diff --name-only -- . diff --name-only a -- b"),
            ("git restore -SW --source=a b", "diff --name-only a -- b +"),
            ("git -C d clean -fd e", "[-C d] ls-files --others --exclude-standard -- e"),
            (
                "cd d; git clean -fdx; git clean -fX",
                "d: ls-files --others d: ls-files --others --ignored --exclude-standard",
            ),
            ("git rm -r src", "ls-files -- src +"),
            ("git stash drop; git branch -D x", "+ +"),
            ("git gc", "++"),
            (
                "git add -A && git reset --hard",
                "diff --name-only HEAD; diff --name-only HEAD; ls-files --others --exclude-standard +",
            ),
            ("git stash -a; git stash drop", "diff --name-only HEAD; ls-files --others +"),
            (
                "git fetch; git reset --hard o/m",
                "diff --name-only o/m; ls-files; ls-files --others --exclude-standard +",
            ),
            (
                "git branch -D x; git status; git checkout y",
                "ls-files; ls-files --others --exclude-standard + diff --name-only -- y",
            ),
            ("git worktree remove ../w; git -C d worktree remove w", "../w/ + [-C d] + ?git worktree"),
            ("git rebase --abort", "diff --name-only HEAD; diff --name-only ORIG_HEAD +"),
            ("git rebase --skip", "diff --name-only HEAD; diff --name-only ORIG_HEAD +"),
            ("git mv -f b a", "b/ a/ "),
            ("git checkout -m f", "diff --name-only +"),
            ("git checkout-index -f -a", "diff --name-only +"),
            ("git submodule update --force; git submodule update", "?git submodule"),
            ("git reset --hard --recurse-submodules", "diff --name-only HEAD + ?git reset"),
            (
                "git init && git clean -fd",
                "ls-files --others --exclude-standard; ls-files; ls-files --others --exclude-standard + ?git clean",
            ),
            ("rm .gitignore; git clean -fd", ".gitignore ls-files --others"),
            ("echo x >d/.gitignore && git clean -fdX", "=d/.gitignore ls-files --others --ignored --exclude-standard"),
            ("GIT_DIR=x git reset --hard; ./git reset --hard; git -C \"$unknown\" clean -f", "?git reset ?git clean"),
            ("sudo git clean -fd; cd \"$unknown\"; /usr/bin/git clean -fd", "?sudo git clean ?git clean"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn commands_that_show_link_counts_are_known() {
        for (text, expected) in [
            ("ls -la build && rm -rf build", true),
            ("rm f; (cd x; stat f)", true),
            ("find . -links 1 -delete", true),
            ("find . -name x -delete; ls; ls -1a; rm -l", false),
        ] {
            let losses = losses(&Gate::default().leaves(text.as_bytes(), &|_| None));
            assert_eq!(losses.shows_links, expected, "{text}");
        }
    }

    #[test]
    fn a_flood_of_operands_is_bounded_and_named() {
        let names: Vec<_> = (0..limits::DESTROYED_OPERANDS_MAX + 10).map(|at| format!("f{at}")).collect();
        let losses = losses(&Gate::default().leaves(format!("rm {}", names.join(" ")).as_bytes(), &|_| None));
        assert_eq!(losses.operands.len(), limits::DESTROYED_OPERANDS_MAX);
        assert_eq!(losses.unknown, [b"rm"]);
    }
}
