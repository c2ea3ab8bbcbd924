//! Turns words into arguments: puts in values, splits words, and makes leaves of the code in them.

use super::Walk;
use crate::limits;
use crate::script::leaf::{Argument, ArgumentPiece, HOLE_BYTE, HoleKind, HoleReach, OutputOf, Via};
use crate::script::tree::{Change, Clause, Code, Pipeline, Quoting, ShellWord, StageKind, WordPart};

/// Variables that bash sets to numbers.
const COUNTERS: [&[u8]; 9] =
    [b"RANDOM", b"SRANDOM", b"UID", b"EUID", b"PPID", b"BASHPID", b"SECONDS", b"EPOCHSECONDS", b"LINENO"];

/// Tells if a word may become several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Splitting {
    Words,
    Whole,
}

#[derive(Debug, Default)]
struct Expanded {
    done: Vec<Argument>,
    /// The growing argument; none if nothing has begun it.
    open: Option<Argument>,
}

impl Expanded {
    fn open(&mut self) -> &mut Argument {
        self.open.get_or_insert_default()
    }

    fn close(&mut self) {
        self.done.extend(self.open.take());
    }

    /// Adds literal text; the sign for holes of code is a hole again.
    fn text(&mut self, bytes: &[u8]) {
        let open = self.open();
        for (at, run) in bytes.split(|byte| *byte == HOLE_BYTE).enumerate() {
            if at > 0 {
                open.push_hole(HoleKind::Filled, HoleReach::Words);
            }
            if !run.is_empty() {
                open.push_text(run);
            }
        }
    }

    /// Adds a value split at its blanks.
    fn split(&mut self, value: &[u8]) {
        let is_blank = |byte: &u8| b" \t\n".contains(byte);
        for (at, run) in value.split(is_blank).enumerate() {
            if at > 0 {
                self.close();
            }
            if run.iter().any(|byte| b"*?[".contains(byte)) {
                self.open().push_hole(HoleKind::Pattern(run.to_vec()), HoleReach::Words);
            } else if !run.is_empty() {
                self.text(run);
            }
        }
    }

    fn into_arguments(mut self) -> Vec<Argument> {
        self.close();
        self.done
    }
}

fn reach_of(quoting: Quoting, splitting: Splitting) -> HoleReach {
    match (quoting, splitting) {
        (Quoting::Unquoted, Splitting::Words) => HoleReach::Words,
        _ => HoleReach::Within,
    }
}

impl Walk<'_> {
    /// The arguments of words.
    pub(super) fn arguments_of(&mut self, words: &[ShellWord]) -> Vec<Argument> {
        let mut arguments = Vec::with_capacity(words.len());
        for word in words {
            match literal_argument(word) {
                Some(argument) => arguments.push(argument),
                None => arguments.extend(self.expand(word)),
            }
        }
        arguments
    }

    fn expand(&mut self, word: &ShellWord) -> Vec<Argument> {
        match word.spread(limits::SCRIPT_BRACES_MAX - self.spread) {
            Some(words) => {
                self.spread += words.len();
                words.iter().flat_map(|word| self.expanded(&word.parts, Splitting::Words)).collect()
            }
            None => self.expanded(&word.parts, Splitting::Words),
        }
    }

    /// The one argument of a word that is not split: a value, or the target of a redirection.
    pub(super) fn whole(&mut self, word: &ShellWord) -> Argument {
        let literal = literal_argument(word);
        literal.unwrap_or_else(|| self.expanded(&word.parts, Splitting::Whole).into_iter().next().unwrap_or_default())
    }

    fn expanded(&mut self, parts: &[WordPart], splitting: Splitting) -> Vec<Argument> {
        let mut made = Expanded::default();
        for part in parts {
            match part {
                WordPart::Literal { bytes, .. } => made.text(bytes),
                WordPart::Pattern(written) if splitting == Splitting::Whole => made.text(written),
                WordPart::Pattern(written) => {
                    made.open().push_hole(HoleKind::Pattern(written.clone()), HoleReach::Words);
                }
                WordPart::Tilde(user) => match self.values.get(b"HOME").filter(|_| user.is_empty()) {
                    Some(home) => home.pieces.into_iter().for_each(|piece| made.open().pieces.push(piece)),
                    None => made.open().push_hole(HoleKind::Home(user.clone()), HoleReach::Within),
                },
                WordPart::Variable { name, quoting, change, inner } => {
                    self.inner(inner);
                    let has_list = splitting == Splitting::Words && inner.iter().any(is_list);
                    if let Some(digits) = self.digits(name, *change) {
                        let may_vanish = matches!(digits, HoleKind::Digits { may_be_empty: true, .. });
                        let reach = match may_vanish {
                            true => reach_of(*quoting, splitting),
                            false => self.reach_of_digits(*quoting, splitting),
                        };
                        made.open().push_hole(digits, reach);
                        continue;
                    }
                    let reach = if has_list { HoleReach::Words } else { reach_of(*quoting, splitting) };
                    self.variable(name, *change, reach, &mut made);
                }
                WordPart::Substitution { code, quoting } => {
                    self.substitution(code, Via::Substitution);
                    made.open().push_hole(HoleKind::Output(Self::output_of(code)), reach_of(*quoting, splitting));
                }
                WordPart::Process { code, .. } => {
                    self.substitution(code, Via::Process);
                    made.open().push_hole(HoleKind::Process, HoleReach::Within);
                }
                WordPart::Arithmetic { inner, quoting } => {
                    self.arithmetic(inner);
                    made.open().push_hole(HoleKind::Arithmetic, self.reach_of_digits(*quoting, splitting));
                }
            }
        }
        made.into_arguments().into_iter().map(Argument::joined).collect()
    }

    /// Walks the code in the parts of `${x…}` after the name.
    fn inner(&mut self, parts: &[WordPart]) {
        if !parts.is_empty() {
            self.expanded(parts, Splitting::Whole);
        }
    }

    /// The hole for a variable that has digits, whatever the text does.
    fn digits(&self, name: &[u8], change: Change) -> Option<HoleKind> {
        let digits = |name: &[u8], may_be_empty| Some(HoleKind::Digits { name: name.to_vec(), may_be_empty });
        match (change, name) {
            (Change::Length, name) => digits(&[b"{#", name, b"}"].concat(), false),
            (Change::None, b"?" | b"$" | b"#") => digits(name, false),
            // There may be no last job, and other shells than bash do not set the others.
            (Change::None, b"!") => digits(name, true),
            (Change::None, name) if COUNTERS.contains(&name) && self.values.is_untouched(name) => digits(name, true),
            _ => None,
        }
    }

    /// Digits are one word, unless they are split at digits.
    fn reach_of_digits(&self, quoting: Quoting, splitting: Splitting) -> HoleReach {
        if self.values.is_untouched(b"IFS") { HoleReach::Within } else { reach_of(quoting, splitting) }
    }

    fn variable(&mut self, name: &[u8], change: Change, reach: HoleReach, made: &mut Expanded) {
        if change == Change::Variable {
            self.values.forget(name);
        }
        if matches!(name, b"@" | b"*")
            && change == Change::None
            && !self.values.is_set(b"IFS")
            && let Some(arguments) = self.arguments.clone()
        {
            self.spend(arguments.words().iter().map(Argument::weight).sum());
            return put_arguments(arguments.words(), name, reach, made);
        }
        // Each element of a list is a word, even in quotes.
        let reach = if name.ends_with(b"@") || name.ends_with(b"@]") { HoleReach::Words } else { reach };
        let argument = match name {
            [digit @ b'1'..=b'9'] => {
                let at = usize::from(digit - b'1');
                self.arguments.as_ref().map(|arguments| arguments.words().get(at).cloned().unwrap_or_default())
            }
            _ => self.values.get(name),
        };
        let is_split_otherwise = reach == HoleReach::Words && self.values.is_set(b"IFS");
        let value = argument.filter(|_| change == Change::None && !is_split_otherwise);
        let Some(value) = value else {
            return made.open().push_hole(HoleKind::Variable(name.to_vec()), reach);
        };
        self.spend(value.weight());
        if reach == HoleReach::Within {
            made.open();
        }
        for piece in value.pieces {
            match piece {
                ArgumentPiece::Text(text) if reach == HoleReach::Words => made.split(&text),
                ArgumentPiece::Text(text) => made.text(&text),
                ArgumentPiece::Hole(hole) => made.open().push_hole(hole.kind, reach),
            }
        }
    }

    fn substitution(&mut self, code: &Code, via: Via) {
        // Of several commands, each writes a part.
        let is_one = matches!(&code.list[..], [item] if item.pipelines.len() == 1);
        let outer = std::mem::replace(&mut self.is_process, is_one && via == Via::Process);
        self.apart(|walk| {
            walk.via.push(via);
            walk.list(&code.list);
            if let Some(problem) = code.problem {
                walk.not_read(problem, b"");
            }
        });
        self.is_process = outer;
    }

    /// Walks arithmetic: its substitutions run, and its assignments set variables.
    pub(super) fn arithmetic(&mut self, parts: &[WordPart]) {
        self.inner(parts);
        let mut text = Vec::new();
        for part in parts {
            match part {
                WordPart::Literal { bytes, .. } => text.extend_from_slice(bytes),
                _ => text.push(b' '),
            }
        }
        self.forget_arithmetic(&text);
    }

    /// Forgets the variables that an arithmetic text may set.
    pub(super) fn forget_arithmetic(&mut self, text: &[u8]) {
        if !text.iter().any(|byte| b"=+-".contains(byte)) {
            return;
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        for name in text.split(|byte| !is_part(byte)) {
            if name.first().is_some_and(|first| !first.is_ascii_digit()) {
                self.values.forget(name);
            }
        }
    }

    /// The kind of text that the code of a substitution prints.
    fn output_of(code: &Code) -> OutputOf {
        let [item] = &code.list[..] else { return OutputOf::Other };
        let mut outputs = item.pipelines.iter().map(Self::output_of_pipeline);
        let first = outputs.next().unwrap_or(OutputOf::Other);
        // `mktemp -d || mktemp -d -t x`.
        if outputs.all(|output| output == first) { first } else { OutputOf::Other }
    }

    fn output_of_pipeline(pipeline: &Pipeline) -> OutputOf {
        let [stage] = &pipeline.stages[..] else { return OutputOf::Other };
        let StageKind::Simple(Clause { words, .. }) = &stage.kind else { return OutputOf::Other };
        let known: Vec<Option<Vec<u8>>> = words.iter().map(ShellWord::literal).collect();
        let known: Vec<Option<&[u8]>> = known.iter().map(Option::as_deref).collect();
        match &known[..] {
            [Some(b"mktemp"), ..] => OutputOf::Mktemp,
            [Some(b"pwd")] | [Some(b"pwd"), Some(b"-P" | b"-L")] => OutputOf::Pwd,
            [Some(b"git"), Some(b"rev-parse"), Some(b"--show-toplevel")] => OutputOf::GitTop,
            [Some(b"dirname"), None] if is_own_name(&words[1]) => OutputOf::ScriptFolder,
            [Some(b"dirname"), Some(b"--"), None] if is_own_name(&words[2]) => OutputOf::ScriptFolder,
            _ => OutputOf::Other,
        }
    }
}

/// The argument of a word in which nothing is expanded.
fn literal_argument(word: &ShellWord) -> Option<Argument> {
    let bytes = word.literal().filter(|bytes| !word.parts.is_empty() && !bytes.contains(&HOLE_BYTE))?;
    Some(if bytes.is_empty() { Argument::default() } else { Argument { pieces: vec![ArgumentPiece::Text(bytes)] } })
}

/// Puts in all arguments of the text: `"$*"` is one word, `"$@"` one for each.
fn put_arguments(arguments: &[Argument], name: &[u8], reach: HoleReach, made: &mut Expanded) {
    for (at, argument) in arguments.iter().enumerate() {
        match (at, name) {
            (0, _) => {}
            (_, b"*") if reach == HoleReach::Within => made.text(b" "),
            _ => made.close(),
        }
        for piece in &argument.pieces {
            match piece {
                ArgumentPiece::Text(text) if reach == HoleReach::Words => made.split(text),
                piece => made.open().pieces.push(piece.clone()),
            }
        }
        if argument.pieces.is_empty() && reach == HoleReach::Within {
            made.open();
        }
    }
}

/// Returns true if a part of a word is a list of words.
fn is_list(part: &WordPart) -> bool {
    match part {
        WordPart::Variable { name, inner, .. } => {
            name.ends_with(b"@") || name.ends_with(b"@]") || inner.iter().any(is_list)
        }
        _ => false,
    }
}

/// Returns true if a word is `$0` or `${BASH_SOURCE[0]}`.
fn is_own_name(word: &ShellWord) -> bool {
    matches!(&word.parts[..], [WordPart::Variable { name, .. }] if matches!(&name[..], b"0" | b"BASH_SOURCE"))
}
