//! Programs that run others, in their arguments or on their input.

use super::child_shell::{ChildShell, Sees};
use super::foreign::is_foreign;
use super::given::{given_words, parallel_words, put_in_words, replaced_text};
use super::written::found_files;
use super::{LeafStreams, Walk};
use crate::limits;
use crate::script::leaf::{Argument, ArgumentPiece, LeafState, OpaqueReason, Via};
use crate::script::programs;
use crate::script::tree::Problem;
use crate::script::wrappers::{self, WrapperRuns};

/// Programs that run the value of an option as code: the name, the option's letter, its long form.
const CODE_OPTIONS: [(&str, u8, &[u8]); 16] = [
    ("su", b'c', b"--command"),
    ("runuser", b'c', b"--command"),
    ("script", b'c', b"--command"),
    ("flock", b'c', b"--command"),
    ("sg", b'c', b"--command"),
    ("env", b'S', b"--split-string"),
    ("nix-shell", 0, b"--run"),
    ("npx", b'c', b"--call"),
    ("xterm", 0, b"-e"),
    ("entr", b's', b"-s"),
    ("vagrant", b'c', b"--command"),
    ("gcloud", 0, b"--command"),
    ("flyctl", b'C', b"--command"),
    ("fly", b'C', b"--command"),
    ("mapfile", b'C', b"-C"),
    ("readarray", b'C', b"-C"),
];

/// The options of `find` and `fd` that a program follows.
const EXECUTING: [&[u8]; 8] = [b"-exec", b"-execdir", b"-ok", b"-okdir", b"-x", b"--exec", b"-X", b"--exec-batch"];

impl Walk<'_> {
    /// Adds the leaves of a program with its arguments, and of its children.
    pub(super) fn program(&mut self, mut words: Vec<Argument>, streams: &LeafStreams) {
        let Some(first) = words.first() else { return };
        let Some(path) = first.text() else {
            let state = LeafState::Opaque(OpaqueReason::Program);
            return self.leaf(Vec::new(), words, streams, state);
        };
        let name = String::from_utf8_lossy(programs::base_name(path));
        let state = self.state(&name, &words, streams);
        let leaf = self.begin_leaf(&words[1..], streams, state);
        self.children(&name, path, &words, streams);
        if let Some(leaf) = leaf {
            let program = words.remove(0).into_text();
            (self.leaves[leaf].program, self.leaves[leaf].arguments) = (program, words);
        }
    }

    /// Adds the leaves of what a program with these words runs, and applies what it changes.
    fn children(&mut self, name: &str, path: &[u8], words: &[Argument], streams: &LeafStreams) {
        if self.is_full() {
            return;
        }
        if self.layers > limits::SCRIPT_LAYERS_MAX || self.via.len() > limits::SCRIPT_VIA_MAX {
            let is_layer = wrappers::inner(name, &known(words)).is_some() || programs::is_shell(name);
            if is_layer || name == "eval" {
                self.not_read(Problem::TooDeep, b"");
            }
            return;
        }
        match name {
            "eval" => {
                let begin = 1 + usize::from(words.get(1).and_then(Argument::text) == Some(b"--"));
                let code = joined(&words[begin.min(words.len())..]);
                let outer = std::mem::replace(&mut self.input, streams.input());
                self.code(&code, Via::Layer(b"eval".to_vec()));
                self.input = outer;
            }
            "find" | "fd" | "fdfind" => self.executing(name, words),
            "git" => self.git(words, streams),
            _ if programs::is_readable_shell(name) => self.shell(name, words, streams),
            _ => {
                self.builtin(name, words, streams);
                if self.shell_functions.iter().any(|function| function == path) {
                    self.shell_input(name, streams, Vec::new(), Sees::Exported);
                }
                self.wrapped(name, words, streams);
            }
        }
    }

    /// The degree to which the program itself is known.
    fn state(&self, name: &str, words: &[Argument], streams: &LeafStreams) -> LeafState {
        if let Some(reason) = Self::hides(name, words) {
            return LeafState::Opaque(reason);
        }
        if programs::is_shell(name) {
            let is_other = !programs::is_readable_shell(name) && words.len() > 1;
            return if is_other { LeafState::Opaque(OpaqueReason::OtherShell) } else { LeafState::Known };
        }
        if is_foreign(name, words, streams) { LeafState::Foreign } else { LeafState::Known }
    }

    /// Adds the leaves of the words after a wrapper's own ones.
    fn wrapped(&mut self, name: &str, words: &[Argument], streams: &LeafStreams) {
        if let Some(code) = option_code(name, words) {
            return self.child_code(&code, ChildShell::of(name, streams.input()));
        }
        if name == "su" {
            return self.shell_input(name, streams, Vec::new(), Sees::Exported);
        }
        if name == "sudo"
            && let Some(shell) =
                words[1..].iter().position(|word| matches!(word.text(), Some(b"-s" | b"-i" | b"--login")))
            && shell + 2 >= words.len()
        {
            return self.shell_input(name, streams, Vec::new(), Sees::Exported);
        }
        if let Some(verb) = name.strip_prefix("git-") {
            let git = [&b"git"[..], verb.as_bytes()].map(Argument::of_text);
            return self.behind(name.into(), git.into_iter().chain(words[1..].iter().cloned()).collect(), streams);
        }
        if let Some(at) = package_script(name, words) {
            return self.behind(name.into(), words[at..].to_vec(), streams);
        }
        if !wrappers::is_wrapper(name) {
            return;
        }
        let Some(inner) = wrappers::inner(name, &known(words)) else { return };
        let Some(inner) = inner else {
            match name {
                "ssh" => self.shell_input(name, streams, Vec::new(), Sees::Nothing),
                "parallel" => self.shell_input(name, streams, Vec::new(), Sees::Exported),
                _ => {}
            }
            return;
        };
        let layer = layer_name(name, words);
        let mut rest = words[inner.at..].to_vec();
        match inner.runs {
            WrapperRuns::Code => {
                if name == "parallel" {
                    rest = parallel_words(rest, &words[1..inner.at], streams);
                }
                let sees = if name == "ssh" { Sees::Nothing } else { Sees::Exported };
                self.child_code(&joined(&rest), ChildShell { sees, ..ChildShell::of(layer, streams.input()) });
            }
            WrapperRuns::Extended => {
                let options = &words[1..inner.at];
                put_in_words(&mut rest, replaced_text(options), &given_words(options, streams));
                self.behind(layer, rest, &LeafStreams::default());
            }
            WrapperRuns::Program | WrapperRuns::Assigned | WrapperRuns::Package => {
                if inner.runs == WrapperRuns::Package
                    && let Some(package) =
                        rest[0].text().filter(|word| !word.starts_with(b".") && !word.starts_with(b"/"))
                {
                    rest[0] = Argument::of_text(wrappers::package_program(package));
                }
                if layer.ends_with(b" run")
                    && let Some(program) = option_value(&words[1..inner.at], b"--entrypoint", b"--entrypoint=")
                {
                    rest.insert(0, program);
                }
                let own = ["command", "builtin", "exec"].contains(&name);
                let told = self.via.len();
                for word in &words[1..inner.at] {
                    self.tell_assignment(word);
                }
                let inherited = streams.inherited();
                let directory = chosen_directory(name, &words[1..inner.at]);
                if own {
                    self.behind(layer, rest, &inherited)
                } else {
                    self.apart(|walk| {
                        if let Some(directory) = directory {
                            walk.enter(directory);
                        }
                        walk.behind(layer, rest, &inherited)
                    })
                }
                self.via.truncate(told);
            }
        }
    }

    /// Records `env PATH=… program` like `PATH=… program`.
    fn tell_assignment(&mut self, word: &Argument) {
        if let Some(ArgumentPiece::Text(text)) = word.pieces.first()
            && let Some(at) = text.iter().position(|byte| *byte == b'=')
            && super::TELLING.contains(&&text[..at])
        {
            self.via.push(Via::Variable(text[..at].to_vec()));
        }
    }

    /// Adds the leaves of a program that a layer runs.
    pub(super) fn behind(&mut self, layer: Vec<u8>, words: Vec<Argument>, streams: &LeafStreams) {
        let told = self.via.len();
        self.via.push(Via::Layer(layer));
        self.program(words, streams);
        self.via.truncate(told);
    }

    /// Adds the leaves of each `find -exec program … ;`.
    fn executing(&mut self, name: &str, words: &[Argument]) {
        let mut at = 1;
        while at < words.len() {
            let is_executing = words[at].text().is_some_and(|word| EXECUTING.contains(&word));
            at += 1;
            if !is_executing {
                continue;
            }
            let is_end = |word: &Argument| matches!(word.text(), Some(b";" | b"+")) && name == "find";
            let length = words[at..].iter().position(is_end).unwrap_or(words.len() - at);
            let mut program = words[at..at + length].to_vec();
            if program.iter().any(|word| word.with_marks().windows(2).any(|two| two == b"{}"))
                || (name != "find" && !program.is_empty())
            {
                put_in_words(&mut program, Some(b"{}"), &found_files(name, &words[..at]));
            }
            let layer = [name.as_bytes(), b" ", &words[at - 1].shown()].concat();
            self.apart(|walk| walk.behind(layer, program, &LeafStreams::default()));
            at += length;
        }
    }
}

/// Each word's bytes, if they are known.
fn known(words: &[Argument]) -> Vec<Option<&[u8]>> {
    words.iter().map(Argument::text).collect()
}

/// Words as one text of code.
fn joined(words: &[Argument]) -> Vec<u8> {
    words.iter().map(Argument::with_marks).collect::<Vec<_>>().join(&b' ')
}

/// `docker exec` for `docker`: the words that lead to a program are part of its name.
fn layer_name(name: &str, words: &[Argument]) -> Vec<u8> {
    let verbs = wrappers::verbs(name, &known(words));
    verbs.map_or_else(|| name.into(), |verbs| format!("{name} {verbs}").into_bytes())
}

/// The directory that the options of a wrapper name for its program.
fn chosen_directory(name: &str, options: &[Argument]) -> Option<Argument> {
    let letter: &[u8] = match name {
        "env" => b"-C",
        "sudo" => b"-D",
        "bwrap" => b"--chdir",
        _ => return None,
    };
    option_value(options, letter, letter).or_else(|| option_value(options, b"--chdir", b"--chdir="))
}

/// The value of an option that is written in one of two ways: before its value, or as the beginning of one word with it.
/// The last one counts.
fn option_value(options: &[Argument], name: &[u8], beginning: &[u8]) -> Option<Argument> {
    options.iter().enumerate().rev().find_map(|(at, option)| {
        let Some(ArgumentPiece::Text(text)) = option.pieces.first() else { return None };
        if text == name {
            return options.get(at + 1).cloned();
        }
        Some(option.with_first(text.strip_prefix(beginning)?))
    })
}

/// The place of the program of a package that an interpreter runs as its script.
fn package_script(name: &str, words: &[Argument]) -> Option<usize> {
    if !matches!(name, "node" | "nodejs" | "bun" | "tsx") {
        return None;
    }
    let at = words.iter().skip(1).position(|word| !word.with_marks().starts_with(b"-"))? + 1;
    let script = words[at].text()?;
    script.windows(18).any(|part| part == b"node_modules/.bin/").then_some(at)
}

/// The code in the value of an option.
fn option_code(name: &str, words: &[Argument]) -> Option<Vec<u8>> {
    let (_, letter, long) = CODE_OPTIONS.iter().find(|(program, ..)| *program == name)?;
    for (at, word) in words.iter().enumerate().skip(1) {
        let bytes = word.with_marks();
        let is_letters = bytes.len() > 1 && bytes[0] == b'-' && bytes[1] != b'-';
        let in_letters = bytes.iter().position(|byte| byte == letter).filter(|_| is_letters && *letter != 0);
        // What stands behind these is their own value.
        let in_letters = in_letters.filter(|place| !bytes[1..*place].iter().any(|byte| b"uC".contains(byte)));
        let (code, rest) = if bytes == *long || in_letters.is_some_and(|place| place + 1 == bytes.len()) {
            (words.get(at + 1)?.with_marks(), at + 2)
        } else if let Some(code) = bytes.strip_prefix(*long).and_then(|rest| rest.strip_prefix(b"=")) {
            (code.to_vec(), at + 1)
        } else if let Some(place) = in_letters {
            (bytes[place + 1..].to_vec(), at + 1)
        } else if !bytes.starts_with(b"-") && name == "env" {
            return None;
        } else {
            continue;
        };
        if name != "env" {
            return Some(code);
        }
        // It reads the text as its own words, and the further words behind it.
        let further = words.get(rest..).unwrap_or_default().iter().map(Argument::as_code);
        return Some([b"env".to_vec(), code].into_iter().chain(further).collect::<Vec<_>>().join(&b' '));
    }
    None
}
