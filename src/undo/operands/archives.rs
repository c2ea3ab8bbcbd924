//! What programs destroy that pack files and unpack them.
//!
//! Invariant: nothing is read. Which files an archive has, the text does not tell, so the directory where they will be is the
//! operand: that of it which has the archive's names, if it is there already, or else all, if it is little.

use std::borrow::Cow;

use super::{LeafLosses, inside};
use crate::gate::{Answer, Words};
use crate::script::{Argument, ArgumentPiece, Hole, HoleKind, HoleReach, Leaf, base_name};
use crate::undo::operand::{Extent, Loss};

/// The letters of tar behind which a value follows, in the order of the letters where they have no dash.
const VALUES_OF_TAR: &[u8] = b"bCfFgHIKLNTVX";

/// A form of compressed files, by the programs that make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    /// The ends of their names.
    suffixes: &'static [&'static [u8]],
    /// Returns true if the file that was read stays unless an option says otherwise.
    leaves_input: bool,
}

impl Format {
    /// The form that a program reads or makes.
    pub(super) fn of(program: &[u8]) -> Option<Self> {
        let (suffixes, leaves_input): (&[&[u8]], _) = match program {
            b"gzip" | b"gunzip" | b"pigz" | b"unpigz" => (&[b".gz"], false),
            b"bzip2" | b"bunzip2" => (&[b".bz2"], false),
            b"xz" | b"unxz" => (&[b".xz"], false),
            b"lzma" | b"unlzma" => (&[b".lzma"], false),
            b"zstd" | b"unzstd" | b"zstdmt" => (&[b".zst"], true),
            b"lz4" | b"unlz4" => (&[b".lz4"], true),
            _ => return None,
        };
        Some(Self { suffixes, leaves_input })
    }
}

impl LeafLosses<'_> {
    pub(super) fn by_tar(&mut self) {
        let leaf = with_dashes(self.leaf);
        let words = Words::of(&leaf, &[]);
        let may_have = |options: &[&str]| options.iter().any(|option| words.has(option) != Answer::No);
        let has = |options: &[&str]| options.iter().any(|option| words.has(option) == Answer::Yes);
        let directories: Vec<_> = words.values_of(b'C', "directory").collect();
        let (directory, is_known) = (directories.first(), directories.len() < 2);
        if has(&["-x", "--extract", "--get"]) {
            let leaves_all = ["-t", "--list", "-O", "--to-stdout", "--to-command", "-k", "--keep-old-files"];
            if has(&leaves_all) || has(&["--skip-old-files"]) {
                return;
            }
            let is_in_place = has(&["--overwrite"]) || base_name(&leaf.program) == b"bsdtar" && !has(&["-U"]);
            self.is_unknown |= is_in_place || !is_known || may_have(&["-P", "--absolute-names"]);
            if !is_in_place && is_known {
                let others = ["--transform", "--xform", "--wildcards", "--one-top-level", "-i", "--ignore-zeros"];
                let is_renamed = may_have(&others) || may_have(&["--recursive-unlink"]);
                let strip = match words.value_of(0, "strip-components") {
                    None if may_have(&["--strip-components"]) => None,
                    None => Some(0),
                    Some(number) => number.text().and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()),
                };
                let has_other_names = is_renamed || strip != Some(0) || may_have(&["-T", "--files-from"]);
                let archive = words.value_of(b'f', "file");
                let unpacked = Unpacked { archive: archive.as_ref(), directory, strip: strip.filter(|_| !is_renamed) };
                self.unpacked(unpacked, words.operands().filter(|_| !has_other_names));
            }
        } else if may_have(&["-c", "--create", "--delete"]) {
            // `-` is a stream, and `host:path` far away.
            for archive in words.values_of(b'f', "file").filter(|name| !name.shown().contains(&b':')) {
                self.packed(&archive);
            }
        }
        if may_have(&["--remove-files"]) {
            self.is_unknown |= !is_known;
            for source in words.operands().filter(|_| is_known) {
                self.add(&inside(directory, source), Loss::Name, Extent::Tree);
            }
        }
    }

    pub(super) fn by_unzip(&mut self, words: &Words<'_>) {
        let has = |options: &[&str]| options.iter().any(|option| words.has(option) == Answer::Yes);
        if has(&["-l", "-t", "-p", "-c", "-v", "-z", "-Z", "-n"]) {
            return;
        }
        let has_other_names = ["-j", "-x", "-L", "-C"].iter().any(|option| words.has(option) != Answer::No);
        let members = words.operands().skip(1).filter(|_| !has_other_names);
        let directory = words.value_of(b'd', "");
        let strip = (!has_other_names).then_some(0);
        let unpacked = Unpacked { archive: words.operands().next(), directory: directory.as_ref(), strip };
        self.unpacked(unpacked, members);
    }

    pub(super) fn by_cpio(&mut self, words: &Words<'_>) {
        let has = |options: &[&str]| options.iter().any(|option| words.has(option) == Answer::Yes);
        if has(&["-t", "--list", "--to-stdout"]) {
            return;
        }
        let directory = words.value_of(b'D', "directory");
        if has(&["-i", "--extract"]) {
            self.unpacked(Unpacked { directory: directory.as_ref(), ..Unpacked::default() }, std::iter::empty());
        } else if has(&["-p", "--pass-through"]) {
            let directory = words.operands().next();
            self.unpacked(Unpacked { directory, ..Unpacked::default() }, std::iter::empty());
        } else if has(&["-o", "--create"]) {
            let archives = words.values_of(b'O', "").chain(words.values_of(b'F', "file"));
            archives.for_each(|archive| self.packed(&archive));
        }
    }

    /// It writes an archive that has another name in place, so a link to it is none.
    pub(super) fn by_zip(&mut self, words: &Words<'_>) {
        let mut operands = words.operands();
        let Some(archive) = operands.next() else { return };
        self.packed(archive);
        let has_suffix = archive.shown().rsplit(|byte| *byte == b'/').next().is_some_and(|name| name.contains(&b'.'));
        if !has_suffix && archive.text() != Some(b"-") {
            self.packed(&with_end(archive, b".zip"));
        }
        words.values_of(b'O', "output-file").for_each(|archive| self.packed(&archive));
        if words.has("-m") != Answer::No || words.has("--move") != Answer::No {
            // Links are followed, also to what is outside.
            self.is_unknown |= words.has("-r") != Answer::No && words.has("-y") != Answer::Yes;
            operands.for_each(|source| self.add(source, Loss::Name, Extent::Tree));
        }
    }

    /// What replaces a file, and takes away the one that it has read. Unless it is forced, it replaces none, nothing gets lost that
    /// is not in the new one, and a file with one more link is refused.
    pub(super) fn by_compressor(&mut self, words: &Words<'_>, format: Format) {
        let has = |options: &[&str]| options.iter().any(|option| words.has(option) == Answer::Yes);
        let may_have = |options: &[&str]| options.iter().any(|option| words.has(option) != Answer::No);
        if has(&["-c", "--stdout", "-t", "--test", "-l", "--list"]) || !may_have(&["-f", "--force"]) {
            return;
        }
        let leaves_input = has(&["-k", "--keep"]) || format.leaves_input && !may_have(&["--rm"]);
        let is_recursive = may_have(&["-r", "--recursive"]);
        // Links to directories are followed.
        self.is_unknown |= is_recursive;
        let extent = if is_recursive { Extent::Tree } else { Extent::Itself };
        let named: Vec<_> = words.values_of(b'o', "").filter(|_| format.leaves_input).collect();
        named.iter().for_each(|output| self.add(output, Loss::Name, Extent::Itself));
        for input in words.operands().filter(|input| !named.contains(input)) {
            if !leaves_input || is_recursive {
                self.add(input, Loss::Name, extent.clone());
            }
            for suffix in format.suffixes {
                let unpacked = without_end(input, suffix);
                let output = unpacked.unwrap_or_else(|| with_end(input, suffix));
                self.add(&output, Loss::Name, Extent::Itself);
            }
        }
    }

    /// The files that a program makes of one, whose names begin so.
    pub(super) fn pieces(&mut self, prefix: Option<Argument>, default: &[u8], rest: &[u8]) {
        let mut names = prefix.unwrap_or_else(|| Argument::from(default));
        let kind = HoleKind::Pattern(rest.to_vec());
        names.pieces.push(ArgumentPiece::Hole(Hole { kind, reach: HoleReach::Words }));
        self.add(&names, Loss::Bytes, Extent::Itself);
    }

    /// An archive that is written anew, in place.
    fn packed(&mut self, archive: &Argument) {
        if archive.text() != Some(b"-") {
            self.add(archive, Loss::Bytes, Extent::Itself);
        }
    }

    /// What is unpacked replaces files by others: of these names, or else of any.
    fn unpacked<'m>(&mut self, unpacked: Unpacked<'_>, members: impl Iterator<Item = &'m Argument>) {
        let Unpacked { archive, directory, strip } = unpacked;
        let is_file = |archive: &&Argument| archive.text() != Some(b"-");
        let archive = archive.filter(is_file).and_then(|archive| self.pattern(archive));
        let mut members = members.peekable();
        if members.peek().is_none() {
            let strip = strip.filter(|_| archive.is_some() && self.files_are_as_before);
            let here = Argument::from(&b"."[..]);
            let extent = Extent::Below { archive: archive.clone(), strip };
            self.add(directory.unwrap_or(&here), Loss::Name, extent);
        }
        for member in members {
            let extent = Extent::Below { archive: archive.clone(), strip: None };
            self.add(&inside(directory, member), Loss::Name, extent);
        }
    }
}

/// What is unpacked where.
#[derive(Default)]
struct Unpacked<'w> {
    archive: Option<&'w Argument>,
    /// The command's own, if there is none.
    directory: Option<&'w Argument>,
    /// As that of [`Extent::Below`].
    strip: Option<usize>,
}

/// A leaf of tar whose first word has letters without a dash, with each letter in a word of its own, before its value.
fn with_dashes(leaf: &Leaf) -> Cow<'_, Leaf> {
    let letters = leaf.arguments.first().and_then(Argument::text).unwrap_or_default();
    if letters.is_empty() || !letters.iter().all(u8::is_ascii_alphabetic) {
        return Cow::Borrowed(leaf);
    }
    let mut rest = leaf.arguments.iter().skip(1).cloned();
    let mut arguments = Vec::new();
    for letter in letters {
        arguments.push(Argument::from(&[b'-', *letter][..]));
        if VALUES_OF_TAR.contains(letter) {
            arguments.extend(rest.next());
        }
    }
    arguments.extend(rest);
    Cow::Owned(Leaf { arguments, ..leaf.clone() })
}

/// The name with this end.
fn with_end(name: &Argument, end: &[u8]) -> Argument {
    let pieces = name.pieces.iter().cloned().chain([ArgumentPiece::Text(end.to_vec())]);
    Argument { pieces: pieces.collect() }
}

/// The name without this end, if it has it.
fn without_end(name: &Argument, end: &[u8]) -> Option<Argument> {
    let (last, before) = name.pieces.split_last()?;
    let ArgumentPiece::Text(text) = last else { return None };
    let rest = ArgumentPiece::Text(text.strip_suffix(end)?.to_vec());
    Some(Argument { pieces: before.iter().cloned().chain([rest]).collect() })
}
