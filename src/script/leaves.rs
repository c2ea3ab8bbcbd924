//! From the syntax tree to leaves: puts in values, takes off wrappers, and reads code in arguments again.
//!
//! Invariants: each layer is a leaf of its own. A value counts as known only if every way to it sets it so: a value
//! that a branch, a loop, a function or another program may have set is a hole.

mod builtins;
mod child_shell;
mod expand;
mod foreign;
mod functions;
mod git;
mod given;
mod layers;
mod positional;
mod streams;
mod written;

use std::collections::HashMap;
use std::rc::Rc;

use super::leaf::{Argument, ArgumentPiece, HOLE_BYTE, Hole, HoleKind, Leaf, LeafState, OpaqueReason};
use super::leaf::{OutputOf, Pipes, Redirection, Via};
use super::syntax::{ReadingBudget, ShellText};
use super::tree::{
    Clause, List, NewValue, Pipeline, PipelineStage, Problem, Redirect, RedirectTarget, ShellWord, StageKind, ValueKind,
};
use super::values::{KnownVariables, Scope, ValuesMark, VariableLookup, unknown};
use crate::limits;
use functions::Functions;
use positional::Positional;
use streams::{LeafStreams, StandardInput};

/// The leaves of a text, and the work for them.
#[derive(Debug)]
pub struct Leaves {
    pub leaves: Vec<Leaf>,
    /// The examined bytes, some of them counted several times.
    pub steps: u64,
}

#[must_use]
pub fn leaves(text: &[u8], environment: VariableLookup<'_>) -> Leaves {
    let mut walk = Walk::new(environment);
    walk.code(text, Via::Layer(Vec::new()));
    walk.into_leaves()
}

/// The leaf of a program started without a shell, and the leaves of its arguments.
#[must_use]
pub fn leaves_of_program(words: &[Vec<u8>], environment: VariableLookup<'_>) -> Leaves {
    leaves_of_arguments(words.iter().map(|word| Argument::of_text(word)).collect(), environment)
}

/// The same, of words that may have holes.
#[must_use]
pub fn leaves_of_arguments(words: Vec<Argument>, environment: VariableLookup<'_>) -> Leaves {
    let mut walk = Walk::new(environment);
    walk.program(words, &LeafStreams::default());
    walk.into_leaves()
}

#[derive(Debug)]
struct Walk<'a> {
    leaves: Vec<Leaf>,
    values: KnownVariables<'a>,
    aliases: Vec<(Vec<u8>, Vec<u8>)>,
    /// The bodies of the functions that the text has defined.
    bodies: HashMap<Vec<u8>, Rc<PipelineStage>>,
    functions: Functions,
    /// The arguments of the code being read, if they are known.
    arguments: Option<Positional>,
    via: Vec<Via>,
    /// The standard input of the code being read.
    input: StandardInput,
    /// What the last command has written into its pipe, if it is known.
    piped: Option<StandardInput>,
    /// True in a process substitution: its output is a pipe.
    is_process: bool,
    /// The traps that the running shell has set.
    traps: Vec<Trap>,
    /// The number of texts around the one being read.
    layers: usize,
    /// The number of lists around the current place, in all texts together.
    depth: u32,
    /// The number of turns of loops that are walked one by one.
    turns: usize,
    /// True in the condition of a loop: the body sees what it reads.
    is_condition: bool,
    /// The functions whose body gives a shell their standard input.
    shell_functions: Vec<Vec<u8>>,
    /// The number of words that braces have made.
    spread: usize,
    /// The number of loops that are walked only to see the variables that they set.
    rehearsals: usize,
    /// The work, in bytes that are copied for leaves and values. It bounds time and memory.
    weight: usize,
    budget: ReadingBudget,
}

/// Code that runs when the shell ends, or at a signal.
#[derive(Debug)]
struct Trap {
    code: Vec<u8>,
    /// The moment at which it was set.
    set: ValuesMark,
    via: Vec<Via>,
    layers: usize,
}

/// The builtins of POSIX in front of which an assignment stays in force.
const SPECIAL_BUILTINS: [&[u8]; 13] = [
    b":",
    b".",
    b"source",
    b"eval",
    b"exec",
    b"export",
    b"readonly",
    b"return",
    b"set",
    b"shift",
    b"times",
    b"trap",
    b"unset",
];

/// Variables that change the program of a name, or its children.
const TELLING: [&[u8]; 26] = [
    b"PATH",
    b"LD_PRELOAD",
    b"LD_LIBRARY_PATH",
    b"LD_AUDIT",
    b"BASH_ENV",
    b"ENV",
    b"SHELLOPTS",
    b"BASHOPTS",
    b"IFS",
    b"PROMPT_COMMAND",
    b"GIT_DIR",
    b"GIT_WORK_TREE",
    b"GIT_COMMON_DIR",
    b"GIT_INDEX_FILE",
    b"GIT_SSH_COMMAND",
    b"GIT_SSH",
    b"GIT_EDITOR",
    b"GIT_PAGER",
    b"GIT_EXTERNAL_DIFF",
    b"EDITOR",
    b"VISUAL",
    b"PAGER",
    b"NODE_OPTIONS",
    b"PYTHONSTARTUP",
    b"PERL5OPT",
    b"RUBYOPT",
];

impl<'a> Walk<'a> {
    fn new(environment: VariableLookup<'a>) -> Self {
        Self {
            leaves: Vec::new(),
            values: KnownVariables::new(environment),
            aliases: Vec::new(),
            bodies: HashMap::new(),
            functions: Functions::default(),
            arguments: None,
            via: Vec::new(),
            input: StandardInput::Outer,
            piped: None,
            is_process: false,
            traps: Vec::new(),
            layers: 0,
            depth: 0,
            turns: 0,
            is_condition: false,
            shell_functions: Vec::new(),
            spread: 0,
            rehearsals: 0,
            weight: 0,
            budget: ReadingBudget::default(),
        }
    }

    /// The leaves, after the traps at the end. A function may run before or after a variable that it uses is set: a word that
    /// is nothing but a variable for temporary files is such a file, or empty.
    fn into_leaves(mut self) -> Leaves {
        self.run_traps();
        let is_file = |argument: &Argument| match &argument.pieces[..] {
            [ArgumentPiece::Hole(Hole { kind: HoleKind::Variable(name), .. })] => self.values.is_only_temporary(name),
            _ => false,
        };
        for leaf in &mut self.leaves {
            if !leaf.arguments.iter().any(is_file) || leaf.is_elsewhere() {
                continue;
            }
            for argument in leaf.arguments.iter_mut().filter(|argument| is_file(argument)) {
                for piece in &mut argument.pieces {
                    if let ArgumentPiece::Hole(hole) = piece {
                        hole.kind = HoleKind::Output(OutputOf::Mktemp);
                    }
                }
            }
        }
        Leaves { leaves: self.functions.without_definitions(self.leaves), steps: self.budget.steps }
    }

    /// Reads code in the running shell. The name of the first layer is not recorded.
    fn code(&mut self, text: &[u8], via: Via) {
        let told = self.via.len();
        if self.layers > 0 {
            self.via.push(via);
        }
        self.layers += 1;
        if self.layers > limits::SCRIPT_LAYERS_MAX + 1 {
            self.not_read(Problem::TooDeep, text);
        } else if let Err(problem) = self.budget.take_code(text.len()) {
            self.not_read(problem, text);
        } else {
            self.expect_leaves(text);
            self.units(text);
        }
        self.layers -= 1;
        self.via.truncate(told);
    }

    /// Makes room for the leaves of a long text at once.
    fn expect_leaves(&mut self, text: &[u8]) {
        let expected = text.len() / limits::SCRIPT_LEAF_BYTES;
        self.leaves.reserve(expected.min(limits::SCRIPT_LEAVES_MAX.saturating_sub(self.leaves.len())));
    }

    fn units(&mut self, text: &[u8]) {
        if text.contains(&HOLE_BYTE) && self.layers > 1 {
            self.opaque(OpaqueReason::Code, Vec::new());
            if text.trim_ascii() == [HOLE_BYTE] {
                return;
            }
        }
        let mut reader = ShellText::new(text, self.depth, std::mem::take(&mut self.budget));
        loop {
            let begin = reader.position();
            let unit = reader.unit();
            self.budget = std::mem::take(&mut reader.budget);
            match unit {
                Ok(None) => return,
                _ if self.is_full() => return,
                Ok(Some(list)) => self.list(&list),
                Err(problem) => return self.not_read(problem, &text[begin.min(text.len())..]),
            }
            reader.budget = std::mem::take(&mut self.budget);
        }
    }

    /// Adds one leaf for the rest of a text.
    fn not_read(&mut self, problem: Problem, rest: &[u8]) {
        let shown = &rest[..rest.len().min(limits::SCRIPT_LOOKAHEAD_BYTES)];
        let shown = shown.trim_ascii();
        let arguments = if shown.is_empty() { Vec::new() } else { vec![Argument::of_text(shown)] };
        self.opaque(OpaqueReason::NotRead(problem), arguments);
    }

    fn opaque(&mut self, reason: OpaqueReason, arguments: Vec<Argument>) {
        self.leaf(Vec::new(), arguments, &LeafStreams::default(), LeafState::Opaque(reason));
    }

    /// Returns true if nothing more is read.
    fn is_full(&self) -> bool {
        self.weight > limits::SCRIPT_WEIGHT_MAX
    }

    /// Counts work. Behind the last that there is room for, one leaf stands for all further ones.
    fn spend(&mut self, weight: usize) {
        let was_full = self.is_full();
        self.weight = self.weight.saturating_add(weight);
        if self.is_full() && !was_full {
            self.weight = usize::MAX;
            self.leaves.push(Leaf::opaque(OpaqueReason::TooManyLeaves));
        }
    }

    /// Adds a leaf.
    fn leaf(&mut self, program: Vec<u8>, arguments: Vec<Argument>, streams: &LeafStreams, state: LeafState) {
        if let Some(at) = self.begin_leaf(&arguments, streams, state) {
            (self.leaves[at].program, self.leaves[at].arguments) = (program, arguments);
        }
    }

    /// Adds a leaf without its words, which are needed for what it runs; the answer is its place.
    fn begin_leaf(&mut self, arguments: &[Argument], streams: &LeafStreams, state: LeafState) -> Option<usize> {
        if self.rehearsals > 0 || self.is_full() {
            return None;
        }
        let targets = streams.redirects.iter().map(|redirect| &redirect.target);
        let directory = self.values.directory();
        self.spend(arguments.iter().chain(targets).chain(&directory).map(Argument::weight).sum());
        if self.leaves.len() + 1 == limits::SCRIPT_LEAVES_MAX {
            self.spend(limits::SCRIPT_WEIGHT_MAX);
        }
        if self.is_full() {
            return None;
        }
        let is_open =
            arguments.iter().chain(streams.redirects.iter().map(|redirect| &redirect.target)).any(Argument::has_hole);
        let state = if state == LeafState::Known && is_open { LeafState::Open } else { state };
        // Leaves of two lists take turns, as in `builtin unset a || unset a`.
        let mut near = self.leaves.iter().rev().take(4).map(|leaf| &leaf.via);
        let via = near.find(|via| ***via == *self.via).map_or_else(|| Rc::from(&self.via[..]), Rc::clone);
        let redirects = streams.redirects.clone();
        let pipes = streams.pipes;
        let input = match streams.input() {
            StandardInput::Text(text) => Some(text),
            _ => None,
        };
        let (program, arguments) = (Vec::new(), Vec::new());
        self.leaves.push(Leaf { program, arguments, redirects, via, directory, state, pipes, input });
        Some(self.leaves.len() - 1)
    }

    /// Walks a subshell: its traps run at its end, and its changes are taken back.
    fn apart(&mut self, walk: impl FnOnce(&mut Self)) {
        let mark = self.values.mark();
        let told = self.via.len();
        let aliases = self.aliases.len();
        let arguments = self.arguments.clone();
        let traps = std::mem::take(&mut self.traps);
        walk(self);
        self.run_traps();
        self.traps = traps;
        self.values.restore(mark);
        self.via.truncate(told);
        self.aliases.truncate(aliases);
        self.arguments = arguments;
    }

    /// Walks a branch: its changes may happen or not.
    fn perhaps(&mut self, walk: impl FnOnce(&mut Self)) {
        let mark = self.values.mark();
        let arguments = self.arguments.clone();
        walk(self);
        self.values.blur(mark);
        if self.arguments != arguments {
            self.arguments = None;
        }
    }

    /// Walks a loop: it runs again, so the variables that it sets are unknown from the beginning.
    fn repeated(&mut self, walk: impl Fn(&mut Self)) {
        if self.rehearsals == 0 {
            self.rehearsals += 1;
            self.perhaps(&walk);
            self.rehearsals -= 1;
        }
        self.perhaps(walk);
    }

    /// Walks code that runs at another time: the body of a function or an alias.
    fn elsewhere(&mut self, walk: impl FnOnce(&mut Self)) {
        let outside = self.values.go_elsewhere();
        let arguments = self.arguments.take();
        let traps = std::mem::take(&mut self.traps);
        let input = std::mem::take(&mut self.input);
        walk(self);
        self.run_traps();
        self.input = input;
        self.traps = traps;
        self.arguments = arguments;
        self.values.come_back(outside);
    }

    /// Keeps the code of a trap until the shell that set it ends.
    fn set_trap(&mut self, code: Vec<u8>) {
        if self.rehearsals == 0 {
            let (set, via, layers) = (self.values.mark(), self.via.clone(), self.layers);
            self.traps.push(Trap { code, set, via, layers });
        }
    }

    /// Walks the code of the traps of a shell that ends. It may have run at any moment since it was set, so a variable has
    /// its value then only if nothing has changed it meanwhile.
    fn run_traps(&mut self) {
        while !self.traps.is_empty() {
            for trap in std::mem::take(&mut self.traps) {
                if self.is_full() {
                    return;
                }
                let Trap { code, set, via, layers } = trap;
                let (before, outer) = (self.values.mark(), std::mem::replace(&mut self.layers, layers));
                let (own, arguments) = (std::mem::replace(&mut self.via, via), self.arguments.take());
                self.values.blur(set);
                self.code(&code, Via::Layer(b"trap".to_vec()));
                self.values.restore(before);
                (self.layers, self.via, self.arguments) = (outer, own, arguments);
            }
        }
    }

    fn list(&mut self, list: &List) {
        self.depth += 1;
        for item in list {
            if self.is_full() {
                break;
            }
            if item.in_background {
                self.apart(|walk| walk.pipelines(&item.pipelines));
            } else {
                self.pipelines(&item.pipelines);
            }
        }
        self.depth -= 1;
    }

    fn pipelines(&mut self, pipelines: &[Pipeline]) {
        let Some((first, rest)) = pipelines.split_first() else { return };
        self.pipeline(first);
        if !rest.is_empty() {
            self.perhaps(|walk| rest.iter().for_each(|pipeline| walk.pipeline(pipeline)));
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        if let [stage] = &pipeline.stages[..] {
            return self.stage(stage, Pipes::default());
        }
        let last = pipeline.stages.len() - 1;
        let outer = self.input.clone();
        for (at, stage) in pipeline.stages.iter().enumerate() {
            let pipes = Pipes { reads: at > 0, writes: at < last };
            let written = self.piped.take();
            if at > 0 {
                self.input = written.unwrap_or(StandardInput::Stream);
            }
            if at < last {
                self.apart(|walk| walk.stage(stage, pipes));
            } else {
                // zsh runs it in the shell itself, as bash may.
                self.perhaps(|walk| walk.stage(stage, pipes));
            }
        }
        self.piped = None;
        self.input = outer;
    }

    fn stage(&mut self, stage: &PipelineStage, pipes: Pipes) {
        let changes = self.values.take_weight();
        self.spend(limits::SCRIPT_COMMAND_WEIGHT + changes);
        if self.is_full() {
            return;
        }
        if let StageKind::Simple(clause) = &stage.kind {
            return self.simple(clause, &stage.redirects, pipes);
        }
        let streams = self.streams(&stage.redirects, pipes);
        if !streams.redirects.is_empty() {
            self.leaf(Vec::new(), Vec::new(), &streams, LeafState::Known);
        }
        let outer = std::mem::replace(&mut self.input, streams.input());
        self.compound(&stage.kind);
        self.input = outer;
        self.piped = None;
    }

    fn compound(&mut self, kind: &StageKind) {
        match kind {
            StageKind::Simple(_) | StageKind::Nothing => {}
            StageKind::Group(list) => self.list(list),
            StageKind::Subshell(list) => self.apart(|walk| walk.list(list)),
            StageKind::If(lists) => self.perhaps(|walk| {
                let Some((condition, rest)) = lists.split_first() else { return };
                walk.list(condition);
                rest.iter().for_each(|list| walk.perhaps(|walk| walk.list(list)));
            }),
            StageKind::Loop(lists) => self.repeated(|walk| {
                for (at, list) in lists.iter().enumerate() {
                    let outer = std::mem::replace(&mut walk.is_condition, at == 0);
                    walk.list(list);
                    walk.is_condition = outer;
                }
            }),
            StageKind::For { name, words, body } => {
                let values: Vec<Argument> = self.arguments_of(words);
                if !self.turns(name, &values, body) {
                    self.repeated(|walk| {
                        walk.values.forget(name);
                        walk.list(body);
                    });
                }
            }
            StageKind::Case { subject, arms } => {
                self.whole(subject);
                for (patterns, list) in arms {
                    patterns.iter().for_each(|pattern| drop(self.whole(pattern)));
                    self.perhaps(|walk| walk.list(list));
                }
            }
            StageKind::Arithmetic { expression, body } => self.repeated(|walk| {
                walk.arithmetic(&expression.parts);
                walk.list(body);
            }),
            StageKind::Test(words) => words.iter().for_each(|word| drop(self.whole(word))),
            StageKind::Function { name, body } => {
                let (begin, told) = (self.leaves.len(), self.via.len());
                self.elsewhere(|walk| {
                    walk.via.push(Via::Function(name.clone()));
                    walk.stage(body, Pipes::default());
                    walk.via.truncate(told);
                });
                if self.rehearsals == 0 {
                    self.functions.define(name, begin..self.leaves.len());
                }
                if self.bodies.len() < limits::SCRIPT_VARIABLES_MAX {
                    self.bodies.insert(name.clone(), Rc::clone(body));
                }
            }
            StageKind::Coprocess(body) => self.apart(|walk| {
                walk.input = StandardInput::Stream;
                walk.stage(body, Pipes { reads: true, writes: true });
            }),
        }
    }

    /// Walks the body of a function that these words call, with its arguments.
    fn call(&mut self, words: &[Argument]) {
        let Some((name, arguments)) = words.split_first() else { return };
        let Some(name) = name.text() else { return };
        let Some(body) = self.bodies.get(name).cloned() else { return };
        let via = Via::Function(name.to_vec());
        let is_deep = self.depth >= limits::SCRIPT_DEPTH_MAX || self.via.len() > limits::SCRIPT_VIA_MAX;
        if is_deep || self.via.contains(&via) {
            return;
        }
        let mut has_traps = false;
        self.apart(|walk| {
            let outside = walk.values.steady();
            walk.arguments = Some(arguments.to_vec().into());
            walk.via.push(via);
            walk.stage(&body, Pipes::default());
            walk.values.unsteady(outside);
            has_traps = !walk.traps.is_empty();
        });
        // A trap of the running shell runs later, and what it does then stands at the definition alone.
        if self.rehearsals == 0 && !has_traps {
            self.functions.see_call(self.leaves.len());
        }
    }

    /// Walks each turn of a loop over these words. Returns false if a word is not known, or if there are too many.
    fn turns(&mut self, name: &[u8], words: &[Argument], body: &List) -> bool {
        let is_name = |piece: &ArgumentPiece| match piece {
            ArgumentPiece::Text(_) => true,
            ArgumentPiece::Hole(hole) => matches!(hole.kind, HoleKind::Pattern(_)),
        };
        let is_known = !words.is_empty() && words.iter().all(|word| word.pieces.iter().all(is_name));
        let turns = self.turns + words.len();
        if !is_known || self.rehearsals > 0 || turns > limits::SCRIPT_TURNS_MAX {
            return false;
        }
        self.turns = turns;
        let mut before = self.leaves.len();
        for word in words {
            let begin = self.leaves.len();
            self.perhaps(|walk| {
                walk.values.set(name, word.clone(), Scope::Shell);
                walk.list(body);
            });
            // A turn like the one before says nothing new.
            if begin > before && self.leaves[begin..] == self.leaves[before..begin] {
                self.leaves.truncate(begin);
                self.functions.forget_from(begin);
            } else {
                before = begin;
            }
        }
        true
    }

    fn simple(&mut self, clause: &Clause, redirects: &[Redirect], pipes: Pipes) {
        let words: Vec<Argument> = self.arguments_of(&clause.words);
        let streams = self.streams(redirects, pipes);
        if words.is_empty() {
            clause.assignments.iter().for_each(|value| self.assign(value, Scope::Shell));
            if !streams.redirects.is_empty() {
                self.leaf(Vec::new(), Vec::new(), &streams, LeafState::Known);
            }
            return;
        }
        let before = self.values.mark();
        let told = self.via.len();
        clause.assignments.iter().for_each(|value| self.assign(value, Scope::Exported));
        let assigned = self.values.mark();
        // Some shells keep what is assigned in front of these, others do not.
        let may_keep = words[0].text().is_some_and(|name| SPECIAL_BUILTINS.contains(&name));
        let alias = clause.words.first().and_then(ShellWord::bare).and_then(|name| self.alias(name));
        if let Some((name, code)) = alias {
            let rest = words[1..].iter().flat_map(|word| [b" ".to_vec(), word.as_code()]);
            let code = [code].into_iter().chain(rest).collect::<Vec<_>>().concat();
            self.perhaps(|walk| walk.code(&code, Via::Alias(name)));
        }
        self.call(&words);
        let is_read = self.is_process && streams.redirects.is_empty() || streams.writes_pipe();
        let piped = if is_read { written::written(&words, &streams) } else { None };
        self.program(words, &streams);
        self.piped = piped;
        if clause.assignments.is_empty() {
            return;
        }
        self.via.truncate(told);
        if may_keep {
            clause.assignments.iter().for_each(|value| self.values.forget(&value.name));
        } else {
            self.values.take_back(before, assigned);
        }
    }

    /// The alias of this name. It is hidden while its code is read.
    fn alias(&self, name: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let is_inside = self.via.iter().any(|via| matches!(via, Via::Alias(inside) if inside == name));
        let found = self.aliases.iter().rev().find(|(alias, _)| alias == name);
        found.filter(|_| !is_inside).cloned()
    }

    /// Sets a variable. One that changes the meaning of programs is recorded with all later leaves.
    fn assign(&mut self, new: &NewValue, scope: Scope) {
        let values: Vec<Argument> = new.words.iter().map(|word| self.whole(word)).collect();
        let value = match (new.kind, values.into_iter().next()) {
            (ValueKind::Whole, Some(value)) => value,
            (ValueKind::Appended, Some(value)) => match self.values.get(&new.name) {
                Some(mut before) => {
                    before.pieces.extend(value.pieces);
                    before.joined()
                }
                None => unknown(&new.name),
            },
            _ => unknown(&new.name),
        };
        self.set(&new.name, value, scope);
    }

    fn set(&mut self, name: &[u8], value: Argument, scope: Scope) {
        if TELLING.contains(&name) {
            let via = Via::Variable(name.to_vec());
            if !self.via.contains(&via) {
                self.via.push(via);
            }
        }
        self.values.set(name, value, scope);
    }

    fn streams(&mut self, redirects: &[Redirect], pipes: Pipes) -> LeafStreams {
        let outer = self.piped.take();
        let redirects = self.redirections(redirects);
        let process = std::mem::replace(&mut self.piped, outer);
        LeafStreams { redirects, pipes, around: self.input.clone(), process }
    }

    fn redirections(&mut self, redirects: &[Redirect]) -> Vec<Redirection> {
        let redirection = |redirect: &Redirect| {
            self.piped = None;
            let target = match &redirect.target {
                RedirectTarget::Word(word) => self.whole(word),
                RedirectTarget::HereDocument(body) => body.get().map(|word| self.whole(word)).unwrap_or_default(),
            };
            Redirection { descriptor: redirect.descriptor, kind: redirect.kind, target }
        };
        redirects.iter().map(redirection).collect()
    }
}
