//! Which operands a command's leaves have that destroy something.
//!
//! Invariants: nothing is looked up, and nothing is expanded that the text does not tell. What is not understood is named
//! as unknown. Sources that are moved are operands, too, if something is removed later: it may be removed under its new name.

use super::operand::{Extent, Loss, Operand, PathPattern, Step};
use super::repository::{self, RepositoryLoss};
use crate::gate::{Answer, Words};
use crate::limits;
use crate::script::{Argument, ArgumentPiece, HoleKind, Leaf, OutputOf, RedirectKind, Redirection, Via, base_name};

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

/// What a command destroys whose leaves are these, in their order. Removed files of other hosts, containers and users are
/// unknown.
#[must_use]
pub fn losses(leaves: &[Leaf]) -> Losses {
    let mut found = Losses::default();
    for (at, leaf) in leaves.iter().enumerate() {
        let mut own = LeafLosses { leaf, operands: Vec::new(), repository: None, is_unknown: false };
        found.shows_links |= shows_links(leaf);
        own.by_program(leaves[at + 1..].iter().any(removes));
        leaf.redirects.iter().for_each(|redirect| own.by_redirection(redirect));
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
            found.repositories.extend(own.repository.filter(|_| is_left));
        }
    }
    found
}

/// Returns true for a program that takes names away.
fn removes(leaf: &Leaf) -> bool {
    matches!(base_name(&leaf.program), b"rm" | b"unlink" | b"rmdir" | b"find" | b"rsync" | b"mv" | b"git")
}

/// Returns true for a program that shows link counts, or times of changes, or asks for them.
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
        _ => false,
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

struct LeafLosses<'l> {
    leaf: &'l Leaf,
    operands: Vec<Operand>,
    repository: Option<RepositoryLoss>,
    is_unknown: bool,
}

impl<'l> LeafLosses<'l> {
    /// `is_before_removal`: something may be removed later.
    fn by_program(&mut self, is_before_removal: bool) {
        let leaf = self.leaf;
        let words = Words::of(leaf, &[]);
        let has = |option: &str| words.has(option) != Answer::No;
        match base_name(&leaf.program) {
            b"rm" if has("-r") || has("-R") || has("--recursive") => self.each(&words, Loss::Name, Extent::Tree),
            b"rm" | b"unlink" | b"rmdir" => self.each(&words, Loss::Name, Extent::Itself),
            b"find" => self.by_find(),
            b"rsync" if ["--delete", "--del", "--delete-*"].into_iter().any(has) => {
                if let Some(target) = words.operands().last() {
                    self.add(target, Loss::Name, Extent::Tree);
                }
            }
            b"mv" => {
                self.targets(&words, Loss::Name);
                if is_before_removal {
                    self.each(&words, Loss::Name, Extent::Tree);
                }
            }
            b"ln" if has("-f") || has("--force") => self.targets(&words, Loss::Name),
            b"install" => self.targets(&words, Loss::Name),
            b"cp" if has("-n") || has("--no-clobber") => {}
            b"cp" => {
                if has("--remove-destination") || has("-f") || has("--force") {
                    self.targets(&words, Loss::Name);
                }
                self.targets(&words, Loss::Bytes);
            }
            b"tee" if !has("-a") && !has("--append") => self.each(&words, Loss::Bytes, Extent::Itself),
            b"truncate" => self.each(&words, Loss::Bytes, Extent::Itself),
            b"dd" => self.by_dd(),
            b"sed" if self.edits_in_place() || has("--in-place") => {
                // The first word is the script, unless an option has it.
                let has_script = has("-e") || has("-f") || has("--expression") || has("--file");
                for word in words.operands().skip(usize::from(!has_script)) {
                    self.add(word, Loss::Name, Extent::Itself);
                }
            }
            b"perl" | b"ruby" if self.edits_in_place() => {
                for word in words.operands() {
                    self.add(word, Loss::Name, Extent::Itself);
                }
            }
            b"git" => self.by_git(&words),
            // It is to leave nothing, so nothing is kept of it.
            b"shred" => self.is_unknown = true,
            _ => {}
        }
    }

    /// Returns true if an option has the letter `i`, perhaps with more behind it: `-i`, `-ni`, `-pi.bak`.
    fn edits_in_place(&self) -> bool {
        let options = self.leaf.arguments.iter().filter_map(Argument::text).filter_map(|word| word.strip_prefix(b"-"));
        options.filter(|letters| !letters.starts_with(b"-")).any(|letters| letters.contains(&b'i'))
    }

    /// What find itself removes: everything below the directories where it begins.
    fn by_find(&mut self) {
        let words = || self.leaf.arguments.iter().map(Argument::text);
        let removers: [&[u8]; 5] = [b"rm", b"unlink", b"rmdir", b"mv", b"sed"];
        let runs = |options: [Option<&[u8]>; 2]| {
            let is_exec = matches!(options[0], Some(b"-exec" | b"-execdir" | b"-ok" | b"-okdir"));
            is_exec && options[1].is_none_or(|program| removers.contains(&base_name(program)))
        };
        let pairs = words().zip(words().skip(1)).map(|(one, two)| [one, two]);
        if !words().any(|word| word == Some(b"-delete")) && !pairs.into_iter().any(runs) {
            return;
        }
        let is_start = |word: &&Argument| !word.shown().starts_with(b"-") && !matches!(word.text(), Some(b"(" | b"!"));
        let options = words().take_while(|word| matches!(word, Some(b"-H" | b"-L" | b"-P"))).count();
        let starts: Vec<_> = self.leaf.arguments.iter().skip(options).take_while(is_start).collect();
        if starts.is_empty() {
            self.add(&Argument::from(&b"."[..]), Loss::Name, Extent::Tree);
        }
        starts.into_iter().for_each(|start| self.add(start, Loss::Name, Extent::Tree));
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
        let named = words.value_of('t', "target-directory");
        let Some(target) = named.or_else(|| sources.pop()) else { return };
        if named.is_none() {
            self.add(target, loss, Extent::Itself);
        }
        if words.has("-T") == Answer::Yes || words.has("--no-target-directory") == Answer::Yes {
            return;
        }
        for source in sources {
            let (Some(mut path), Some(source)) = (self.pattern(target), self.pattern(source)) else {
                self.is_unknown = true;
                return;
            };
            // Of `a/.` the names in it come into the target.
            let Some(name) = source.steps.into_iter().next_back().filter(|step| *step != Step::Name(b"..".to_vec()))
            else {
                self.is_unknown = true;
                continue;
            };
            path.steps.push(name);
            let is_tree = ["-r", "-R", "-a"].into_iter().any(|option| words.has(option) != Answer::No);
            self.operands.push(Operand { path, loss, extent: if is_tree { Extent::Tree } else { Extent::Itself } });
        }
    }

    fn each(&mut self, words: &Words<'_>, loss: Loss, extent: Extent) {
        words.operands().for_each(|word| self.add(word, loss, extent));
    }

    fn by_redirection(&mut self, redirect: &Redirection) {
        if redirect.kind == RedirectKind::Write {
            self.add(&redirect.target, Loss::Bytes, Extent::Itself);
        }
    }

    fn add(&mut self, word: &Argument, loss: Loss, extent: Extent) {
        if is_fresh(word) || is_of_find(word, self.leaf) {
            return;
        }
        match self.pattern(word) {
            None => self.is_unknown = true,
            Some(path) if is_special(&path) => {}
            Some(path) => self.operands.push(Operand { path, loss, extent }),
        }
    }

    /// The path that a word is, from the command's directory. `None` if it is not known.
    fn pattern(&self, word: &Argument) -> Option<PathPattern> {
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
        PathPattern { is_absolute: self.is_absolute(), steps: names.map(step).collect() }
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
            let tree = if operand.extent == Extent::Tree { "/" } else { "" };
            format!("{bytes}{}{tree}", String::from_utf8_lossy(&operand.path.shown()))
        };
        let unknown = losses.unknown.iter().map(|name| format!("?{}", String::from_utf8_lossy(name)));
        let repositories = losses.repositories.iter().map(repository);
        losses.operands.iter().map(operand).chain(repositories).chain(unknown).collect::<Vec<_>>().join(" ")
    }

    /// What git is asked, behind its options and its directory; `+` for its own files, `++` for all of them.
    fn repository(loss: &RepositoryLoss) -> String {
        let listings =
            loss.listings.iter().map(|listing| String::from_utf8_lossy(&listing.call().join(&b' ')).into_owned());
        let (listings, globals) = (listings.collect::<Vec<_>>().join("; "), loss.globals.join(&b' '));
        let directory = String::from_utf8_lossy(&loss.directory.shown()).into_owned();
        let own = match loss.own {
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
            ("t=$(mktemp -d); rm -rf \"$t\" \"$t/x\"", ""),
            ("rm -rf $(pwd)/x", "x/"),
            ("find . -name '*.x' | xargs rm", "?xargs rm"),
            ("find a b -type f -exec rm {} +", "a/ b/"),
            ("find -L a -delete; find -delete", "a/ ./"),
            ("find a -type f -print", ""),
            ("rsync -a --delete x/ y", "y/"),
            ("rsync -a x/ y", ""),
            ("mv a b", "b b/a"),
            ("mv a b && rm -rf b", "b b/a a/ b/ b/"),
            ("mv -t d a b", "d/a d/b"),
            ("mv -T a b", "b"),
            ("ln -sf a b; ln -s c d", "b b/a"),
            ("install -m 755 a /usr/bin", "/usr/bin /usr/bin/a"),
            ("cp a b; cp -n c d", "=b =b/a"),
            ("cp -r a b", "=b =b/a/"),
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
            ("git worktree remove ../w; git -C d worktree remove w", "../w/ + [-C d] + ?git worktree"),
            ("git rebase --abort", "diff --name-only HEAD; diff --name-only ORIG_HEAD +"),
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
