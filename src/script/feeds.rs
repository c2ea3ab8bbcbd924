//! Decides if a text feeds a program that may read answers: if something is piped or redirected into it.
//!
//! Such a program runs without a terminal, since with one it would ask there and leave its answers unread. Text that is
//! not understood counts as fed, because without a terminal everything is as without this host.

use std::collections::BTreeSet;

use super::programs::{self, Known, ShellReads};
use super::syntax::{ReadingBudget, ShellText};
use super::tree::{
    Clause, Code, Direction, List, PipelineStage, Problem, Redirect, RedirectKind, RedirectTarget, ShellWord,
    StageKind, WordPart,
};
use super::wrappers::{self, WrapperRuns};
use crate::limits;

/// Tells if `sudo` may ask for a password. It never does so for root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SudoAsks {
    Perhaps,
    Never,
}

impl SudoAsks {
    /// The answer for this user.
    #[must_use]
    pub fn of(uid: u32) -> Self {
        if uid == 0 { Self::Never } else { Self::Perhaps }
    }
}

/// The result, in one word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fed {
    /// No program that may read answers.
    Nothing,
    /// This program may read answers. Its name is empty if the text does not tell it.
    Program { name: Vec<u8>, by: FedBy },
    /// Nothing of that kind, and a shell in the text turns on job control. It would stop programs that find a terminal,
    /// and cannot lend it.
    ControlsJobs,
    /// Something, and the text names `/dev/tty`: a program that opens the terminal finds the same as without this host.
    NamesTerminal,
    /// The text is not understood.
    NotUnderstood(Problem),
}

/// The source of a program's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FedBy {
    Pipe,
    File,
    HereDocument,
    HereString,
    /// `<&3`.
    Descriptor,
}

/// The reason why a fed command does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excuse {
    /// It reads its input as data.
    Filter,
    /// It asks at the terminal alone.
    AsksElsewhere,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedCommand {
    /// Empty if the text does not tell it.
    pub name: Vec<u8>,
    pub by: FedBy,
    pub excuse: Option<Excuse>,
}

#[derive(Debug, Default)]
pub struct Feeding {
    pub commands: Vec<FedCommand>,
    pub names_terminal: bool,
    pub controls_jobs: bool,
    pub problem: Option<Problem>,
}

impl Feeding {
    /// The result in one word.
    #[must_use]
    pub fn fed(&self) -> Fed {
        if let Some(problem) = self.problem {
            return Fed::NotUnderstood(problem);
        }
        match self.commands.iter().find(|command| command.excuse.is_none()) {
            Some(FedCommand { name, by, .. }) => Fed::Program { name: name.clone(), by: *by },
            None if self.controls_jobs => Fed::ControlsJobs,
            None if self.names_terminal && !self.commands.is_empty() => Fed::NamesTerminal,
            None => Fed::Nothing,
        }
    }
}

/// Decides if a text feeds a program that may read answers.
#[must_use]
pub fn feeds(text: &[u8], sudo: SudoAsks) -> Fed {
    feeding(text, sudo).fed()
}

#[must_use]
pub fn feeding(text: &[u8], sudo: SudoAsks) -> Feeding {
    let mut search = FeedSearch {
        found: Feeding::default(),
        sudo,
        hidden: BTreeSet::new(),
        layers: 0,
        depth: 0,
        budget: ReadingBudget::short(),
    };
    search.code(text, &mut None);
    search.found
}

/// Returns true if the options of this shell's own words turn on job control.
#[must_use]
pub fn shell_controls_jobs(words: &[Vec<u8>]) -> bool {
    let words: Vec<_> = words.iter().map(|word| Some(&word[..])).collect();
    programs::shell_call(&words).controls_jobs
}

/// The source of standard input.
type Input = Option<FedBy>;

#[derive(Debug)]
struct FeedSearch {
    found: Feeding,
    sudo: SudoAsks,
    /// Names of the text's own functions and aliases.
    hidden: BTreeSet<Vec<u8>>,
    layers: usize,
    /// The number of lists around the current place, in all layers together.
    depth: u32,
    budget: ReadingBudget,
}

impl FeedSearch {
    fn code(&mut self, text: &[u8], input: &mut Input) {
        if self.layers >= limits::SCRIPT_LAYERS_MAX {
            return self.not_understood(Problem::TooDeep);
        }
        if let Err(problem) = self.budget.take_code(text.len()) {
            return self.not_understood(problem);
        }
        self.layers += 1;
        let mut reader = ShellText::new(text, self.depth, std::mem::take(&mut self.budget));
        loop {
            match reader.unit() {
                Ok(Some(list)) => {
                    self.budget = std::mem::take(&mut reader.budget);
                    self.list(&list, input);
                    reader.budget = std::mem::take(&mut self.budget);
                }
                Ok(None) => break,
                Err(problem) => {
                    self.not_understood(problem);
                    break;
                }
            }
        }
        self.budget = reader.budget;
        self.layers -= 1;
    }

    fn not_understood(&mut self, problem: Problem) {
        self.found.problem.get_or_insert(problem);
    }

    fn list(&mut self, list: &List, input: &mut Input) {
        self.depth += 1;
        for item in list {
            for pipeline in &item.pipelines {
                let mut piped = *input;
                match &pipeline.stages[..] {
                    [stage] if item.in_background => self.stage(stage, &mut piped),
                    [stage] => self.stage(stage, input),
                    stages => {
                        for stage in stages {
                            self.stage(stage, &mut piped);
                            piped = Some(FedBy::Pipe);
                        }
                    }
                }
            }
        }
        self.depth -= 1;
    }

    fn lists(&mut self, lists: &[List], input: &mut Input) {
        lists.iter().for_each(|list| self.list(list, input));
    }

    fn stage(&mut self, stage: &PipelineStage, input: &mut Input) {
        let mut own = self.redirected(&stage.redirects, *input);
        match &stage.kind {
            StageKind::Simple(clause) => return self.simple(clause, own, input),
            StageKind::Group(list) => self.list(list, &mut own),
            StageKind::Subshell(list) => {
                let mut within = own;
                self.list(list, &mut within);
            }
            StageKind::If(lists) | StageKind::Loop(lists) => self.lists(lists, &mut own),
            StageKind::For { words, body, .. } => {
                self.words(words, *input);
                self.list(body, &mut own);
            }
            StageKind::Case { subject, arms } => {
                self.word(subject, *input);
                for (patterns, list) in arms {
                    self.words(patterns, own);
                    self.list(list, &mut own);
                }
            }
            StageKind::Arithmetic { expression, body } => {
                self.word(expression, *input);
                self.list(body, &mut own);
            }
            StageKind::Test(words) => self.words(words, own),
            StageKind::Function { name, body } => {
                self.hidden.insert(name.clone());
                // A function whose body has `exec <file` may be called at any time.
                let mut within = None;
                self.stage(body, &mut within);
                own = within.or(own);
            }
            StageKind::Coprocess(body) => self.stage(body, &mut Some(FedBy::Pipe)),
            StageKind::Nothing => {}
        }
        // `exec <file` in a group also holds after the group, unless the group had an input of its own.
        let has_own = stage.redirects.iter().any(|redirect| redirect.descriptor == Some(0));
        if !has_own && !matches!(stage.kind, StageKind::Subshell(_)) {
            *input = own;
        }
    }

    /// Standard input after these redirections.
    fn redirected(&mut self, redirects: &[Redirect], input: Input) -> Input {
        let mut own = input;
        for redirect in redirects {
            let target = match &redirect.target {
                RedirectTarget::Word(word) => Some(word),
                RedirectTarget::HereDocument(body) => body.get(),
            };
            let is_document = redirect.kind == RedirectKind::HereDocument;
            if let Some(word) = target {
                self.parts(&word.parts, input);
                self.found.names_terminal |= !is_document && names_terminal(word);
            }
            if redirect.descriptor != Some(0) {
                continue;
            }
            let is_terminal = target.and_then(ShellWord::literal).is_some_and(|path| path == b"/dev/tty");
            own = match redirect.kind {
                RedirectKind::Read | RedirectKind::ReadWrite if is_terminal => None,
                RedirectKind::Read | RedirectKind::ReadWrite => Some(FedBy::File),
                RedirectKind::HereDocument => Some(FedBy::HereDocument),
                RedirectKind::HereString => Some(FedBy::HereString),
                RedirectKind::Duplicate => Some(FedBy::Descriptor),
                // Nothing can be read from it.
                RedirectKind::Write | RedirectKind::Append => Some(FedBy::File),
            };
        }
        own
    }

    fn words(&mut self, words: &[ShellWord], input: Input) {
        words.iter().for_each(|word| self.word(word, input));
    }

    fn word(&mut self, word: &ShellWord, input: Input) {
        self.found.names_terminal |= names_terminal(word);
        self.parts(&word.parts, input);
    }

    /// The commands that run for the parts of a word.
    fn parts(&mut self, parts: &[WordPart], input: Input) {
        for part in parts {
            match part {
                WordPart::Variable { inner, .. } | WordPart::Arithmetic { inner, .. } => self.parts(inner, input),
                WordPart::Substitution { code, .. } => self.substitution(code, input),
                WordPart::Process { code, direction: Direction::Reads } => self.substitution(code, Some(FedBy::Pipe)),
                WordPart::Process { code, direction: Direction::Writes } => self.substitution(code, input),
                WordPart::Literal { .. } | WordPart::Pattern(_) | WordPart::Tilde(_) => {}
            }
        }
    }

    fn substitution(&mut self, code: &Code, mut input: Input) {
        if let Some(problem) = code.problem {
            self.not_understood(problem);
        }
        self.list(&code.list, &mut input);
    }

    /// Follows a simple command. `input` is its input before its redirections; `exec` changes that.
    fn simple(&mut self, clause: &Clause, own: Input, input: &mut Input) {
        for value in &clause.assignments {
            self.words(&value.words, *input);
        }
        self.words(&clause.words, *input);
        let literals: Vec<_> = clause.words.iter().map(ShellWord::literal).collect();
        let known: Vec<_> = literals.iter().map(Option::as_deref).collect();
        let has_own_path = clause.assignments.iter().any(|value| value.name == b"PATH");
        if known.first().is_some_and(|name| name.as_deref() == Some(b"exec")) {
            let runs_program = wrappers::inner("exec", &known).is_some_and(|inner| inner.is_some());
            if !runs_program {
                *input = own;
                return;
            }
        }
        let mut within = own;
        self.program(&known, has_own_path, &mut within);
        let is_own_shell = known.first().is_some_and(|name| name.as_deref() == Some(b"eval")) && own == *input;
        if is_own_shell {
            *input = within;
        }
    }

    /// Follows a program with its arguments, and its children.
    fn program(&mut self, words: &Known<'_>, has_own_path: bool, own: &mut Input) {
        let words = self.behind_wrappers(words, has_own_path);
        let Some(first) = words.first() else { return };
        let path = first.as_deref().unwrap_or_default();
        let Some(name) = self.name(path, has_own_path) else { return self.fed(path, *own, None) };
        match name {
            "eval" => return self.joined(name, &words[1..], own),
            "trap" => {
                if let Some(Some(code)) = words.get(1) {
                    self.code(code, &mut None);
                }
                return;
            }
            "alias" => {
                let names = words[1..].iter().flatten().filter_map(|word| word.split(|byte| *byte == b'=').next());
                self.hidden.extend(names.map(<[u8]>::to_vec));
            }
            _ => {}
        }
        self.found.controls_jobs |= programs::turns_on_job_control(name, words);
        if programs::is_shell(name) {
            let call = programs::shell_call(words);
            self.found.controls_jobs |= call.controls_jobs;
            if programs::is_readable_shell(name)
                && let ShellReads::Code(at) = call.reads
            {
                return self.joined(name, &words[at..=at], own);
            }
        }
        let excuse = if programs::is_filter(name) {
            Some(Excuse::Filter)
        } else if programs::asks_elsewhere(name) {
            Some(Excuse::AsksElsewhere)
        } else {
            None
        };
        self.fed(path, *own, excuse);
    }

    /// The known name of a program, unless the text has given that name or its path another meaning.
    fn name<'a>(&self, path: &'a [u8], has_own_path: bool) -> Option<&'a str> {
        programs::known_name(path).filter(|_| !has_own_path && !self.hidden.contains(path))
    }

    /// The words of the program that the wrappers in front of it run; none if they run nothing.
    fn behind_wrappers<'a>(&self, mut words: &'a Known<'a>, has_own_path: bool) -> &'a Known<'a> {
        while let Some(first) = words.first()
            && let Some(name) = self.name(first.as_deref().unwrap_or_default(), has_own_path)
            && self.looks_through(name)
            && let Some(inner) = wrappers::inner(name, words)
        {
            let own = inner.as_ref().map_or(words.len(), |inner| inner.at);
            if name == "env" && words[1..own].iter().flatten().any(|word| splits_text(word)) {
                break;
            }
            let Some(inner) = inner.filter(|inner| inner.runs != WrapperRuns::Code) else { return &[] };
            words = &words[inner.at..];
        }
        words
    }

    /// Follows code in arguments. If it is unknown, the program that runs it may read answers.
    fn joined(&mut self, name: &str, words: &Known<'_>, own: &mut Input) {
        let known: Option<Vec<&[u8]>> = words.iter().map(Option::as_deref).collect();
        match known {
            Some(words) => self.code(&words.join(&b' '), own),
            None => self.fed(name.as_bytes(), *own, None),
        }
    }

    /// Returns true if this program's child is examined in its place.
    fn looks_through(&self, name: &str) -> bool {
        let always = ["env", "command", "builtin", "exec", "nohup", "nice", "timeout", "stdbuf", "setsid", "time"];
        always.contains(&name) || (self.sudo == SudoAsks::Never && ["sudo", "doas"].contains(&name))
    }

    fn fed(&mut self, path: &[u8], input: Input, excuse: Option<Excuse>) {
        let Some(by) = input else { return };
        if self.found.commands.len() >= limits::SCRIPT_LEAVES_MAX {
            return self.not_understood(Problem::TooMany);
        }
        self.found.commands.push(FedCommand { name: path.to_vec(), by, excuse });
    }
}

/// Returns true if this option of env(1) has a program's words in one text.
fn splits_text(option: &[u8]) -> bool {
    option.starts_with(b"--split") || (option.starts_with(b"-") && option.contains(&b'S'))
}

/// Returns true if a word names the terminal, and not `/dev/tty1`.
fn names_terminal(word: &ShellWord) -> bool {
    const TERMINAL: &[u8] = b"/dev/tty";
    let mut bytes = Vec::new();
    for part in &word.parts {
        match part {
            WordPart::Literal { bytes: literal, .. } => bytes.extend_from_slice(literal),
            _ => bytes.push(0),
        }
    }
    let mut found = bytes.windows(TERMINAL.len()).enumerate().filter(|(_, window)| *window == TERMINAL);
    found.any(|(at, _)| !bytes.get(at + TERMINAL.len()).is_some_and(u8::is_ascii_alphanumeric))
}
