//! A text into its syntax tree, by bash's grammar.
//!
//! Units are read one after the other, as in bash: a line with the whole of its last command. The units before an error
//! have run by the time bash finds the error. Invariants: the time is linear, because nothing is read twice
//! except arithmetic, once for each level of depth; recursion ends at [`limits::SCRIPT_DEPTH_MAX`], and memory at
//! [`limits::SCRIPT_PARTS_MAX`]. A backslash before a newline is skipped wherever bash skips it.

mod braces;
mod compound;
mod conditions;
mod cursor;
mod expansions;
mod redirects;
mod words;

use std::cell::OnceCell;
use std::rc::Rc;

use super::tree::{AndOr, Clause, List, Pipeline, PipelineStage, Problem, Redirect, ShellWord, StageKind};
use crate::limits;

/// The result of a reading, or the problem.
type ReadStep<T> = Result<T, Problem>;

/// The rest of the limits, and the work done.
#[derive(Debug)]
pub(super) struct ReadingBudget {
    parts_left: usize,
    bytes_left: usize,
    /// The examined bytes.
    pub(super) steps: u64,
}

impl Default for ReadingBudget {
    fn default() -> Self {
        Self { parts_left: limits::SCRIPT_PARTS_MAX, bytes_left: limits::SCRIPT_BYTES_MAX, steps: 0 }
    }
}

impl ReadingBudget {
    /// The budget of a reader for whom others wait.
    pub(super) fn short() -> Self {
        Self { parts_left: limits::FED_PARTS_MAX, bytes_left: limits::FED_BYTES_MAX, steps: 0 }
    }

    /// Counts code that is about to be read.
    pub(super) fn take_code(&mut self, bytes: usize) -> ReadStep<()> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Problem::TooLong)?;
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct ShellText<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    pub(super) budget: ReadingBudget,
    /// Here-documents whose lines come after the next newline.
    pending: Vec<PendingDocument>,
    /// True if a `)` after a here-document's last word ends `$(…)`.
    in_substitution: bool,
    /// True if `@(…)` and its like are patterns now, and from the next unit on.
    patterns: bool,
    next_patterns: bool,
}

#[derive(Debug)]
struct PendingDocument {
    end: Vec<u8>,
    /// A quoted end word: nothing in the lines is expanded.
    is_quoted: bool,
    /// `<<-`.
    strips_tabs: bool,
    body: Rc<OnceCell<ShellWord>>,
}

/// Words that may begin a command or end a list.
const KEYWORDS: [&str; 22] = [
    "if", "then", "elif", "else", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "{", "}", "!",
    "[[", "function", "time", "coproc", "in", "]]",
];
/// For each byte, whether a keyword begins with it.
const BEGINS_KEYWORD: [bool; 256] = {
    let mut begins = [false; 256];
    let mut at = 0;
    while at < KEYWORDS.len() {
        begins[KEYWORDS[at].as_bytes()[0] as usize] = true;
        at += 1;
    }
    begins
};
/// The keywords that end a list.
const CLOSING: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];
/// The builtins whose arguments may be assignments of arrays.
const DECLARING: [&[u8]; 7] = [b"declare", b"typeset", b"local", b"export", b"readonly", b"alias", b"let"];

/// Adds to a list that seldom gets more than one: a long text has many such lists.
pub(super) fn push_rare<T>(list: &mut Vec<T>, one: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(one);
}

impl<'a> ShellText<'a> {
    pub(super) fn new(text: &'a [u8], depth: u32, budget: ReadingBudget) -> Self {
        let pending = Vec::new();
        let in_substitution = false;
        let patterns = false;
        let next_patterns = false;
        Self { text, at: 0, depth, budget, pending, in_substitution, patterns, next_patterns }
    }

    /// The place where the next unit begins.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next unit; `None` at the end.
    pub(super) fn unit(&mut self) -> ReadStep<Option<List>> {
        self.newlines()?;
        let mut list = List::new();
        loop {
            match self.peek() {
                None => break,
                Some(b'\n') => {
                    self.newline()?;
                    break;
                }
                Some(_) => {}
            }
            let (item, is_separated) = self.item()?;
            list.push(item);
            if !is_separated && !matches!(self.peek(), None | Some(b'\n')) {
                return Err(Problem::Syntax);
            }
        }
        self.patterns = self.next_patterns;
        Ok(if list.is_empty() { None } else { Some(list) })
    }

    /// All units as one list, and the reason why the rest is not read.
    pub(super) fn units(&mut self) -> (List, Option<Problem>) {
        let mut list = List::new();
        loop {
            match self.unit() {
                Ok(Some(unit)) => list.extend(unit),
                Ok(None) => return (list, None),
                Err(problem) => return (list, Some(problem)),
            }
        }
    }

    /// A list up to its end: a closing keyword, `)`, `;;` or the end of the text.
    fn list(&mut self) -> ReadStep<List> {
        let mut list = List::new();
        loop {
            self.newlines()?;
            if self.ends_list() {
                return Ok(list);
            }
            let (item, is_separated) = self.item()?;
            push_rare(&mut list, item);
            if !is_separated && self.peek() != Some(b'\n') {
                return Ok(list);
            }
        }
    }

    /// A list that must not be empty.
    fn full_list(&mut self) -> ReadStep<List> {
        let list = self.list()?;
        if list.is_empty() { Err(Problem::Syntax) } else { Ok(list) }
    }

    fn ends_list(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => self.starts(b";;").is_some() || self.starts(b";&").is_some(),
            Some(_) => self.keyword().is_some_and(|(word, _)| CLOSING.contains(&word)),
        }
    }

    /// Pipelines, with `true` if a separator follows them.
    fn item(&mut self) -> ReadStep<(AndOr, bool)> {
        let mut pipelines = vec![self.pipeline()?];
        loop {
            self.blanks();
            if !self.take(b"&&") && !self.take(b"||") {
                break;
            }
            self.newlines()?;
            pipelines.push(self.pipeline()?);
        }
        let mut item = AndOr { pipelines, in_background: false };
        let ends_arm = self.starts(b";;").is_some() || self.starts(b";&").is_some();
        let is_separated = match self.peek() {
            Some(b';') if !ends_arm => true,
            Some(b'&') => {
                item.in_background = true;
                true
            }
            _ => false,
        };
        if is_separated {
            self.bump();
            self.blanks();
        }
        Ok((item, is_separated))
    }

    fn pipeline(&mut self) -> ReadStep<Pipeline> {
        let mut has_prefix = false;
        loop {
            self.blanks();
            match self.keyword() {
                Some(("!", end)) => self.at = end,
                Some(("time", end)) => {
                    self.at = end;
                    self.blanks();
                    for option in [b"-p".as_slice(), b"--"] {
                        if let Some(end) = self.starts(option).filter(|end| self.is_end_of_word(*end)) {
                            self.at = end;
                            self.blanks();
                        }
                    }
                }
                _ => break,
            }
            has_prefix = true;
        }
        if has_prefix && matches!(self.peek(), None | Some(b'\n' | b';')) {
            let nothing = PipelineStage { kind: StageKind::Nothing, redirects: Vec::new() };
            return Ok(Pipeline { stages: vec![nothing] });
        }
        let mut stages = vec![self.stage()?];
        loop {
            self.blanks();
            if self.starts(b"||").is_some() || !(self.take(b"|&") || self.take(b"|")) {
                return Ok(Pipeline { stages });
            }
            self.newlines()?;
            if matches!(self.keyword(), Some(("!", _))) {
                return Err(Problem::Syntax);
            }
            stages.push(self.stage()?);
        }
    }

    /// A command with its redirections.
    fn stage(&mut self) -> ReadStep<PipelineStage> {
        self.blanks();
        self.count_part()?;
        if self.is_compound() {
            return self.deeper(Self::compound_stage);
        }
        match self.keyword() {
            Some(("function", end)) => {
                self.at = end;
                self.deeper(Self::function)
            }
            Some(("coproc", end)) => {
                self.at = end;
                self.deeper(Self::coprocess)
            }
            Some((word, _)) if word != "time" => Err(Problem::Syntax),
            _ => self.simple(),
        }
    }

    /// A simple command, or a function whose name comes first.
    fn simple(&mut self) -> ReadStep<PipelineStage> {
        let mut clause = Clause::default();
        let mut redirects = Vec::new();
        let mut takes_assignments = false;
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                push_rare(&mut redirects, redirect);
                continue;
            }
            let in_front = clause.words.is_empty();
            let Some(word) = self.command_word(in_front || takes_assignments)? else { break };
            match word {
                words::CommandPart::Word(word) => clause.words.push(word),
                words::CommandPart::Assignment(value) if in_front => clause.assignments.push(value),
                words::CommandPart::Assignment(value) => clause.words.push(value.into_word()),
            }
            if in_front && clause.words.len() == 1 {
                let is_first = clause.assignments.is_empty() && redirects.is_empty();
                self.blanks();
                if is_first && self.peek() == Some(b'(') {
                    return self.deeper(|text| text.function_behind(&clause.words[0]));
                }
                takes_assignments = DECLARING.iter().any(|name| clause.words[0].is_literally(name));
            }
        }
        if clause.words.is_empty() && clause.assignments.is_empty() && redirects.is_empty() {
            return Err(Problem::Syntax);
        }
        self.note_patterns(&clause);
        Ok(PipelineStage { kind: StageKind::Simple(clause), redirects })
    }

    /// `shopt -s extglob` changes how later lines are read.
    fn note_patterns(&mut self, clause: &Clause) {
        let has = |wanted: &[u8]| clause.words.iter().any(|word| word.bare() == Some(wanted));
        if has(b"shopt") && has(b"extglob") {
            self.next_patterns = has(b"-s");
        }
    }

    fn redirects(&mut self) -> ReadStep<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.blanks();
            match self.redirect()? {
                Some(redirect) => push_rare(&mut redirects, redirect),
                None => return Ok(redirects),
            }
        }
    }

    /// Reads one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ReadStep<T>) -> ReadStep<T> {
        if self.depth >= limits::SCRIPT_DEPTH_MAX {
            return Err(Problem::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads another text one level deeper, within the same bounds.
    fn within<T>(&mut self, text: &[u8], read: impl FnOnce(&mut ShellText<'_>) -> ReadStep<T>) -> ReadStep<T> {
        self.deeper(|outer| {
            let mut inner = ShellText::new(text, outer.depth, std::mem::take(&mut outer.budget));
            inner.patterns = outer.patterns;
            inner.next_patterns = outer.patterns;
            let result = read(&mut inner);
            outer.budget = inner.budget;
            result
        })
    }

    fn count_part(&mut self) -> ReadStep<()> {
        self.budget.parts_left = self.budget.parts_left.checked_sub(1).ok_or(Problem::TooMany)?;
        Ok(())
    }
}
