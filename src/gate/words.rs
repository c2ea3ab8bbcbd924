//! A program's words as options and operands. Of some programs it is known which options have a value in the next word;
//! of others, a word behind an option may be both.

use std::borrow::Cow;

use super::answer::{Answer, Glob, pattern_matches};
use crate::script::{Argument, ArgumentPiece, Hole, HoleKind, HoleReach, Leaf, base_name};

/// The options of a program whose value stands in the next word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueOptions {
    program: Cow<'static, str>,
    letters: Cow<'static, str>,
    /// Long ones without their dashes, between blanks.
    long: Cow<'static, str>,
}

const fn known(program: &'static str, letters: &'static str, long: &'static str) -> ValueOptions {
    let (program, letters) = (Cow::Borrowed(program), Cow::Borrowed(letters));
    ValueOptions { program, letters, long: Cow::Borrowed(long) }
}

static KNOWN: [ValueOptions; 30] = [
    known(
        "git",
        "CcmFbBoste",
        " git-dir work-tree namespace message file author date reuse-message push-option repo upload-pack receive-pack \
        exec source conflict strategy strategy-option onto trailer fixup squash template branch depth origin \
        pathspec-from-file config-env attr-source exclude \
        unified inter-hunk-context ",
    ),
    known(
        "cargo",
        "pFjZ",
        " config package features manifest-path target target-dir jobs profile bin example test color registry token \
        index ",
    ),
    known(
        "docker",
        "HcelfntupvwhmD",
        " host context config file name env env-file volume user workdir tag network filter format label platform ",
    ),
    known(
        "kubectl",
        "nlfcosLv",
        " as as-group namespace context cluster user kubeconfig selector filename container output grace-period timeout \
        server token ",
    ),
    known("aws", "", " region profile output query endpoint-url color ca-bundle cli-read-timeout cli-connect-timeout "),
    known("npm", "w", " workspace prefix registry tag otp access userconfig loglevel cache "),
    known("pnpm", "CF", " filter dir registry tag otp access "),
    known(
        "rsync",
        "efTMB",
        " rsh exclude include filter files-from exclude-from include-from rsync-path port password-file bwlimit backup-dir \
        temp-dir compare-dest link-dest log-file out-format info max-size min-size timeout ",
    ),
    known("rm", "", ""),
    known("rmdir", "", ""),
    known("chmod", "", " reference "),
    known("chown", "", " reference from "),
    known("chgrp", "", " reference "),
    known("cp", "tS", " target-directory suffix "),
    known("mv", "tS", " target-directory suffix "),
    known("ln", "tS", " target-directory suffix "),
    known("tee", "", ""),
    known("touch", "dtr", " date reference "),
    known("shred", "ns", " iterations size random-source "),
    known("truncate", "sr", " size reference "),
    known("sed", "efl", " expression file line-length "),
    known("install", "gmotS", " group mode owner target-directory suffix "),
    known(
        "tar",
        "bCfFgHIKLNTVX",
        " file directory files-from exclude exclude-from strip-components transform xform owner group mode mtime \
        use-compress-program format listed-incremental newer after-date newer-mtime to-command label starting-file suffix \
        blocking-factor record-size checkpoint-action info-script new-volume-script rsh-command tape-length add-file \
        exclude-tag exclude-tag-all exclude-tag-under exclude-ignore group-map owner-map index-file level sort pax-option ",
    ),
    known("unzip", "dP", ""),
    known("zip", "bntPZO", " temp-path suffixes password compression-method output-file out "),
    known("cpio", "CDEFHIMORW", " directory file pattern-file format message owner io-size block-size "),
    known("split", "abClnt", " suffix-length additional-suffix bytes line-bytes lines number separator filter "),
    known("csplit", "bfn", " suffix-format prefix digits "),
    known("patch", "BdDFgiopVYzr", " directory fuzz get ifdef input output prefix strip reject-file suffix "),
    known("scp", "cDFiJloPSX", ""),
];

impl ValueOptions {
    /// Those of a program, from options as they are written.
    pub(super) fn new(program: &str, options: &[String]) -> Self {
        let long = options.iter().filter_map(|option| option.strip_prefix("--"));
        let long = long.fold(" ".to_owned(), |list, name| list + name + " ");
        let letters = options.iter().filter(|option| !option.starts_with("--"));
        let letters: String = letters.filter_map(|option| option.strip_prefix('-')).collect();
        Self { program: program.to_owned().into(), letters: letters.into(), long: long.into() }
    }

    fn takes_next(&self, option: &[u8]) -> bool {
        if let Some(long) = option.strip_prefix(b"--") {
            return std::str::from_utf8(long).is_ok_and(|long| self.long.split(' ').any(|name| name == long));
        }
        self.bundle(option).len() + 1 == option.len()
            && option.last().is_some_and(|last| self.letters.as_bytes().contains(last))
    }

    /// The letters of `-abc`, up to one that the rest is the value of.
    fn bundle<'w>(&self, option: &'w [u8]) -> &'w [u8] {
        let letters = &option[1..];
        let value = letters.iter().position(|letter| self.letters.as_bytes().contains(letter));
        &letters[..value.map_or(letters.len(), |at| at + 1)]
    }
}

/// How a word is taken that can be read in several ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Any of them counts.
    Any,
    /// All of them are needed.
    All,
}

/// A word that is no option, as far as is known.
#[derive(Debug)]
pub(super) struct Operand<'l> {
    pub(super) word: &'l Argument,
    /// It is not perhaps the value of an option.
    pub(super) is_certain: bool,
    /// `--` stands before it.
    is_behind_dashes: bool,
}

/// The words of a leaf.
#[derive(Debug)]
pub struct Words<'l> {
    known: Option<&'l ValueOptions>,
    /// Each with the word behind it.
    options: Vec<(&'l Argument, Option<&'l Argument>)>,
    pub(super) operands: Vec<Operand<'l>>,
    /// What a program reads as code on its input.
    input: Option<&'l Argument>,
}

/// Programs whose standard input is code, as the values of their options may be. All of it counts as operands.
const READ_CODE: [&str; 8] =
    ["psql", "mysql", "mariadb", "sqlite3", "redis-cli", "mongosh", "clickhouse-client", "sqlcmd"];

impl<'l> Words<'l> {
    /// Reads the words of a leaf. `programs` are known besides those that come with rexec, and go before them.
    #[must_use]
    pub fn of(leaf: &'l Leaf, programs: &'l [ValueOptions]) -> Self {
        let name = base_name(&leaf.program);
        let known = programs.iter().chain(&KNOWN).find(|known| known.program.as_bytes() == name);
        let mut words = Self { known, options: Vec::new(), operands: Vec::new(), input: None };
        let reads_code = READ_CODE.iter().any(|program| program.as_bytes() == name);
        let (mut is_ended, mut is_value, mut may_be_value) = (false, false, false);
        for (at, word) in leaf.arguments.iter().enumerate() {
            let lead = lead(word);
            let is_option = !is_ended && !is_value && lead.starts_with(b"-") && word.text() != Some(b"-");
            if is_option && word.text() == Some(b"--") {
                (is_ended, may_be_value) = (true, false);
            } else if is_option {
                words.options.push((word, leaf.arguments.get(at + 1)));
                let text = word.text();
                is_value = text.zip(known).is_some_and(|(text, known)| known.takes_next(text));
                may_be_value = known.is_none() && !reads_code && !lead.contains(&b'=');
            } else if is_value {
                is_value = false;
            } else {
                let (is_certain, is_behind_dashes) = (!may_be_value, is_ended);
                words.operands.push(Operand { word, is_certain, is_behind_dashes });
                may_be_value = false;
            }
        }
        if reads_code {
            words.input = leaf.input.as_deref();
        }
        words
    }

    /// The words that are no options, and not known to be values of some.
    pub fn operands(&self) -> impl Iterator<Item = &'l Argument> {
        self.operands.iter().map(|operand| operand.word)
    }

    /// Whether an option is among them, in the form of a rule: `-r`, `--force`.
    #[must_use]
    pub fn has(&self, option: &str) -> Answer {
        Wanted::new(option).answer(self, self.operands.len(), Reading::Any)
    }

    /// The value of an option: in the next word, or behind it in its own. Long ones may be cut short.
    #[must_use]
    pub fn value_of(&self, letter: u8, long: &str) -> Option<Argument> {
        self.values_of(letter, long).next()
    }

    /// The values of an option that stands there more than once.
    pub fn values_of<'w>(&'w self, letter: u8, long: &'w str) -> impl Iterator<Item = Argument> + use<'w, 'l> {
        self.options.iter().filter_map(move |(option, next)| {
            let lead = lead(option);
            let (is_it, value) = match lead.strip_prefix(b"--") {
                Some(long_form) => {
                    let length = long_form.iter().position(|byte| *byte == b'=').unwrap_or(long_form.len());
                    let is_it = length > 2 && long.as_bytes().starts_with(&long_form[..length]);
                    (is_it, long_form.get(length + 1..))
                }
                None => {
                    let letters = self.known.map_or(&lead[1..], |known| known.bundle(lead));
                    let at = letters.iter().position(|byte| *byte == letter);
                    (at.is_some(), at.and_then(|at| lead.get(at + 2..)).filter(|value| !value.is_empty()))
                }
            };
            match value {
                _ if !is_it => None,
                Some(value) => Some(option.with_first(value)),
                None if option.text().is_none() => Some(option.with_first(b"")),
                None => next.cloned(),
            }
        })
    }

    /// One statement as the only operand, without options.
    pub(super) fn of_statement(statement: &'l Argument) -> Self {
        let operand = Operand { word: statement, is_certain: true, is_behind_dashes: false };
        Self { known: None, options: Vec::new(), operands: vec![operand], input: None }
    }

    /// Returns true if the last word asks for help: then a program says what it would do, and does nothing.
    pub(super) fn ask_for_help(&self) -> bool {
        self.options.last().is_some_and(|(option, next)| option.text() == Some(b"--help") && next.is_none())
    }

    /// Whether an operand may be an option.
    pub(super) fn may_have_more_options(&self) -> bool {
        self.operands.iter().any(|operand| operand.may_be_option(Reading::All))
    }
}

/// The text before a word's first hole.
fn lead(word: &Argument) -> &[u8] {
    match word.pieces.first() {
        Some(ArgumentPiece::Text(text)) => text,
        _ => b"",
    }
}

impl Operand<'_> {
    /// Whether it may be no word, or several.
    pub(super) fn is_open(&self) -> bool {
        self.word.pieces.iter().any(|piece| matches!(piece, ArgumentPiece::Hole(hole) if is_open(hole)))
    }

    /// Whether it may be an option.
    fn may_be_option(&self, reading: Reading) -> bool {
        let begins_open = match self.word.pieces.first() {
            Some(ArgumentPiece::Hole(Hole { kind: HoleKind::Digits { may_be_empty: false, .. }, .. })) => {
                self.is_open()
            }
            Some(ArgumentPiece::Hole(hole)) => reading == Reading::All || is_open(hole),
            _ => self.is_open(),
        };
        begins_open && !self.is_behind_dashes
    }
}

/// Returns true if the only holes are patterns of file names.
fn is_pattern(word: &Argument) -> bool {
    let is_name = |piece: &ArgumentPiece| match piece {
        ArgumentPiece::Text(_) => true,
        ArgumentPiece::Hole(hole) => matches!(hole.kind, HoleKind::Pattern(_)),
    };
    word.pieces.iter().all(is_name)
}

/// Whether the hole may become several words that begin in any way. Names of files begin as they are written.
fn is_open(hole: &Hole) -> bool {
    match &hole.kind {
        HoleKind::Pattern(written) => written.contains(&b'{'),
        _ => hole.reach == HoleReach::Words,
    }
}

/// Something that a rule looks for among the words: one of the parts of `-f|--force|+*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A long option, without a value or with one that matches.
    Long {
        name: Vec<u8>,
        value: Option<Glob>,
    },
    /// `-f`, or `-rf`, or `-delete`.
    Short(Vec<u8>),
    /// `--`, with an operand behind it.
    Dashes,
    Operand(Glob),
}

impl Wanted {
    pub(super) fn new(written: &str) -> Self {
        if written == "--" {
            return Self::Dashes;
        }
        if let Some(long) = written.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return Self::Long {
                name: name.as_bytes().to_vec(),
                value: value.map(|value| Glob::of_pattern(value.as_bytes())),
            };
        }
        match written.strip_prefix('-').filter(|short| !short.is_empty()) {
            Some(short) => Self::Short(short.as_bytes().to_vec()),
            None => Self::Operand(Glob::of_pattern(written.as_bytes())),
        }
    }

    /// Whether it is among the words, the first operands of which count for something else.
    pub(super) fn answer(&self, words: &Words<'_>, skipped: usize, reading: Reading) -> Answer {
        match self {
            Self::Operand(glob) => Self::operand(glob, words, skipped, reading),
            Self::Dashes => Answer::of(words.operands.iter().any(|operand| operand.is_behind_dashes)),
            Self::Long { .. } | Self::Short(_) => {
                let may_be = words.operands.iter().any(|operand| operand.may_be_option(reading));
                if reading == Reading::All && self.is_taken_back(words) {
                    return Answer::No;
                }
                let options = words.options.iter().map(|(option, next)| match option.text() {
                    Some(option) => self.is_option(option, *next, words.known, reading),
                    None => Answer::Perhaps,
                });
                Answer::any(options).max(Answer::of(may_be).min(Answer::Perhaps))
            }
        }
    }

    fn operand(glob: &Glob, words: &Words<'_>, skipped: usize, reading: Reading) -> Answer {
        let operands = words.operands.iter().skip(skipped).map(|operand| {
            let most = if operand.is_certain || reading == Reading::Any { Answer::Yes } else { Answer::Perhaps };
            let open = if operand.is_open() { Answer::Perhaps } else { Answer::No };
            // A pattern that no file matches is the word itself.
            let is_written = reading == Reading::Any && is_pattern(operand.word) && glob.matches(&operand.word.shown());
            glob.answer(operand.word).max(Answer::of(is_written)).min(most).max(open)
        });
        let input = words.input.iter().map(|input| glob.answer(input));
        // A value in the same word as its option, as in `--command='DROP TABLE a'`.
        let is_read = words.known.is_none() && reading == Reading::Any;
        let attached = words.options.iter().filter(|_| is_read).filter_map(|(option, _)| option.text());
        let value = |option: &[u8]| match option.iter().position(|byte| *byte == b'=') {
            Some(at) => glob.matches(&option[at + 1..]),
            None => option.get(2..).is_some_and(|value| glob.matches(value)) && !option.starts_with(b"--"),
        };
        Answer::any(operands.chain(input).chain(attached.map(|option| Answer::of(value(option)))))
    }

    /// Returns true if `--no-dry-run` stands among the words, for `--dry-run`.
    fn is_taken_back(&self, words: &Words<'_>) -> bool {
        let Self::Long { name, .. } = self else { return false };
        let opposite = [b"--no-", &name[..]].concat();
        words.options.iter().any(|(option, _)| option.text() == Some(&opposite))
    }

    fn is_option(
        &self,
        option: &[u8],
        next: Option<&Argument>,
        known: Option<&ValueOptions>,
        reading: Reading,
    ) -> Answer {
        match self {
            Self::Operand(_) | Self::Dashes => Answer::No,
            Self::Long { name, value } => {
                let Some(long) = option.strip_prefix(b"--") else { return Answer::No };
                let end = long.iter().position(|byte| *byte == b'=').unwrap_or(long.len());
                let is_short_for = reading == Reading::Any && end > 1 && name.starts_with(&long[..end]);
                if !is_short_for && !pattern_matches(name, &long[..end]) {
                    return Answer::No;
                }
                match value {
                    None if is_refused(&long[end..], reading) => Answer::No,
                    None => Answer::Yes,
                    Some(value) if end < long.len() => Answer::of(value.matches(&long[end + 1..])),
                    Some(value) => next.map_or(Answer::No, |next| value.answer(next)),
                }
            }
            Self::Short(letters) => {
                let whole = &option[1..];
                let is_same =
                    whole == letters || whole.strip_prefix(&letters[..]).is_some_and(|rest| rest.starts_with(b"="));
                if is_same || option.starts_with(b"--") {
                    return Answer::of(is_same && !is_refused(&whole[letters.len().min(whole.len())..], reading));
                }
                let bundle = known.map_or(whole, |known| known.bundle(option));
                let is_certain = known.is_some() || reading == Reading::Any;
                // Longer ones are names with one dash, as in `find -delete`.
                let is_bundle = letters.len() <= 4 && letters.iter().all(|letter| bundle.contains(letter));
                Answer::of(is_certain && is_bundle)
            }
        }
    }
}

/// Returns true if the value behind an option says that the option is not there, as in `--dry-run=false`. In doubt it is
/// there for a rule that asks.
fn is_refused(value: &[u8], reading: Reading) -> bool {
    let refusals: [&[u8]; 5] = [b"=false", b"=no", b"=off", b"=0", b"=none"];
    let count = if reading == Reading::All { refusals.len() } else { 1 };
    refusals[..count].iter().any(|refusal| value.eq_ignore_ascii_case(refusal))
}
