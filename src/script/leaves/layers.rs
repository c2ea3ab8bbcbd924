//! Programs that run others, in their arguments or on their input.

use super::written::found_files;
use super::{LeafStreams, StandardInput, Walk};
use crate::limits;
use crate::script::leaf::{Argument, ArgumentPiece, HoleKind, HoleReach, LeafState, OpaqueReason, OutputOf};
use crate::script::leaf::{Redirection, Via};
use crate::script::programs::{self, ShellReads};
use crate::script::tree::Problem;
use crate::script::wrappers::{self, WrapperRuns};

/// The variables that code sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sees {
    /// A child sees what is exported.
    Exported,
    /// Another machine or a remote shell sees nothing.
    Nothing,
}

/// A shell that runs code in its own process.
#[derive(Debug)]
struct ChildShell {
    layer: Vec<u8>,
    arguments: Vec<Argument>,
    input: StandardInput,
    sees: Sees,
}

impl ChildShell {
    /// A shell here, without arguments.
    fn of(layer: impl Into<Vec<u8>>, input: StandardInput) -> Self {
        Self { layer: layer.into(), arguments: Vec::new(), input, sees: Sees::Exported }
    }
}

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

/// Interpreters of other languages, and the letters of their options with code.
const INTERPRETERS: [(&str, &str); 15] = [
    ("python", "c"),
    ("pypy", "c"),
    ("node", "ep"),
    ("nodejs", "ep"),
    ("bun", "ep"),
    ("deno", ""),
    ("tsx", "ep"),
    ("perl", "eE"),
    ("ruby", "e"),
    ("php", "rBRE"),
    ("lua", "e"),
    ("Rscript", "e"),
    ("osascript", "e"),
    ("tclsh", ""),
    ("expect", "c"),
];

impl Walk<'_> {
    /// Adds the leaves of a program with its arguments, and of its children.
    pub(super) fn program(&mut self, mut words: Vec<Argument>, streams: &LeafStreams) {
        let Some(first) = words.first() else { return };
        let Some(path) = first.text().map(<[u8]>::to_vec) else {
            let state = LeafState::Opaque(OpaqueReason::Program);
            return self.leaf(Vec::new(), words, streams, state);
        };
        let name = String::from_utf8_lossy(programs::base_name(&path));
        let state = self.state(&name, &words, streams);
        let leaf = self.begin_leaf(path.clone(), &words[1..], streams, state);
        self.children(&name, &path, &words, streams);
        if let Some(leaf) = leaf {
            words.remove(0);
            self.leaves[leaf].arguments = words;
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

    /// Code for a shell of its own.
    fn child_code(&mut self, code: &[u8], child: ChildShell) {
        let ChildShell { layer, arguments, input, sees } = child;
        let outer = self.input.clone();
        self.apart(|walk| {
            walk.arguments = Some(arguments);
            match sees {
                Sees::Exported => {
                    walk.values.hide_unexported();
                    walk.input = input;
                    walk.code(code, Via::Layer(layer));
                }
                Sees::Nothing => walk.elsewhere(|walk| {
                    walk.input = input;
                    // It begins in a home.
                    walk.values.set_directory(Some(Argument::of_hole(HoleKind::Home(Vec::new()), HoleReach::Within)));
                    walk.code(code, Via::Layer(layer));
                }),
            }
        });
        self.input = outer;
    }

    /// Reads the code of a shell: the argument of `-c`, or its standard input.
    fn shell(&mut self, name: &str, words: &[Argument], streams: &LeafStreams) {
        match programs::shell_call(&known(words)).reads {
            ShellReads::Code(at) => {
                let code = words[at].with_marks();
                let arguments = words.get(at + 2..).unwrap_or_default().to_vec();
                let child = ChildShell::of(format!("{name} -c"), streams.input());
                self.child_code(&code, ChildShell { arguments, ..child });
            }
            ShellReads::Script(at) => {
                let is_process = |piece: &ArgumentPiece| matches!(piece, ArgumentPiece::Hole(hole) if hole.kind == HoleKind::Process);
                if words[at].pieces.iter().any(is_process) {
                    self.opaque(OpaqueReason::SourcesStream, Vec::new());
                } else if let Some(path) = words[at].text()
                    && (path.starts_with(b"/dev/") || path.starts_with(b"/proc/"))
                {
                    let number = std::str::from_utf8(programs::base_name(path)).ok().and_then(|name| name.parse().ok());
                    let arguments = words[at + 1..].to_vec();
                    self.shell_input(name, &streams.with_input(number.unwrap_or(0)), arguments, Sees::Exported);
                }
            }
            ShellReads::Input(at) => {
                let arguments = words.get(at..).unwrap_or_default().to_vec();
                self.shell_input(name, streams, arguments, Sees::Exported);
            }
        }
    }

    /// Reads the standard input of a shell, here or elsewhere, as its commands.
    fn shell_input(&mut self, name: &str, streams: &LeafStreams, arguments: Vec<Argument>, sees: Sees) {
        match streams.input() {
            StandardInput::Text(code) => {
                // The code reads what is left of it.
                let child = ChildShell::of(name, StandardInput::Outer);
                self.child_code(&code.with_marks(), ChildShell { arguments, sees, ..child });
            }
            StandardInput::Stream | StandardInput::Lines(_) => self.opaque(OpaqueReason::ShellReadsPipe, Vec::new()),
            StandardInput::Outer => {
                let function = self.via.iter().rev().find_map(|via| match via {
                    Via::Function(name) => Some(name.clone()),
                    _ => None,
                });
                if self.shell_functions.len() < limits::SCRIPT_VARIABLES_MAX {
                    self.shell_functions.extend(function);
                }
            }
            StandardInput::File => {}
        }
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
                let around = streams.around.clone();
                let process = streams.process.clone();
                let inherited = LeafStreams { redirects: input_only(streams), pipes: streams.pipes, around, process };
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
    fn behind(&mut self, layer: Vec<u8>, words: Vec<Argument>, streams: &LeafStreams) {
        let told = self.via.len();
        self.via.push(Via::Layer(layer));
        self.program(words, streams);
        self.via.truncate(told);
    }

    /// The settings that git with these options sees, as far as the text tells. Of stored aliases, the one of this name.
    fn git_settings(&self, options: &[Argument], alias: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let pair = |text: &[u8]| {
            let at = text.iter().position(|byte| *byte == b'=')?;
            Some((text[..at].to_vec(), text[at + 1..].to_vec()))
        };
        let value = |name: &[u8]| self.values.get(name).map(|value| value.with_marks());
        let mut settings: Vec<_> = options
            .windows(2)
            .filter_map(|two| {
                let text = two[1].with_marks();
                match two[0].text() {
                    Some(b"-c") => pair(&text),
                    Some(b"--config-env") => pair(&text).and_then(|(name, variable)| Some((name, value(&variable)?))),
                    _ => text
                        .strip_prefix(b"--config-env=")
                        .and_then(pair)
                        .and_then(|(name, variable)| Some((name, value(&variable)?))),
                }
            })
            .collect();
        for number in 0..limits::SCRIPT_GIT_SETTINGS_MAX {
            let Some(name) = value(format!("GIT_CONFIG_KEY_{number}").as_bytes()) else { break };
            settings.extend(value(format!("GIT_CONFIG_VALUE_{number}").as_bytes()).map(|value| (name, value)));
        }
        for name in [&b"GIT_PAGER"[..], b"GIT_EDITOR", b"GIT_SSH_COMMAND", b"GIT_EXTERNAL_DIFF"] {
            let own = value(name).filter(|_| self.values.is_set(name));
            settings.extend(own.map(|value| (b"core.editor".to_vec(), value)));
        }
        let stored = self.aliases.iter().rev().find(|(name, _)| name.strip_prefix(b"git ") == Some(alias));
        settings.extend(stored.map(|(_, code)| (alias.to_vec(), code.clone())));
        settings
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

    /// Reads the code that git runs: that of aliases and of settings in its arguments or its environment, and the commands of
    /// `rebase --exec` and its like.
    fn git(&mut self, words: &[Argument], streams: &LeafStreams) {
        let verb = git_verb(words);
        // An alias may lead to another one, and to itself.
        let depth = self.via.iter().filter(|via| matches!(via, Via::Layer(name) if name == b"git")).count();
        let alias = [b"alias.", words.get(verb).and_then(Argument::text).unwrap_or_default()].concat();
        let settings = if depth < 2 { self.git_settings(&words[..verb.min(words.len())], &alias) } else { Vec::new() };
        for (name, value) in settings {
            let is_alias = name == alias;
            let rest = words.get(verb + 1..).unwrap_or_default().iter().map(Argument::as_code);
            let code = match value.strip_prefix(b"!") {
                _ if !is_alias && !runs_value(&name) => continue,
                Some(code) => code.to_vec(),
                None if is_alias => [b"git ", &value[..]].concat(),
                None => value,
            };
            let words = [code].into_iter().chain(rest.filter(|_| is_alias)).collect::<Vec<_>>();
            self.child_code(&words.join(&b' '), ChildShell::of("git", streams.input()));
        }
        match words.get(verb).and_then(Argument::text) {
            Some(b"config") => {
                let pair = words[verb + 1..].windows(2).find(|pair| pair[0].with_marks().starts_with(b"alias."));
                if let Some([name, value]) = pair
                    && self.aliases.len() < limits::SCRIPT_VARIABLES_MAX
                {
                    self.aliases.push(([b"git ", &name.with_marks()[..]].concat(), value.with_marks()));
                }
            }
            Some(b"submodule") => {
                let begin = words.iter().position(|word| word.text() == Some(b"foreach")).map(|at| at + 1);
                let rest = words.get(begin.unwrap_or(words.len())..).unwrap_or_default();
                let options = rest.iter().take_while(|word| word.with_marks().starts_with(b"-")).count();
                match &rest[options..] {
                    [code] => self.child_code(&code.with_marks(), ChildShell::of("git", streams.input())),
                    program => {
                        let program = program.to_vec();
                        self.apart(|walk| {
                            walk.behind(b"git submodule foreach".to_vec(), program, &LeafStreams::default())
                        });
                    }
                }
            }
            _ => {}
        }
        let mut before: &[u8] = b"";
        for word in &words[1..] {
            let bytes = word.with_marks();
            let is_code = matches!(before, b"--exec" | b"-x" | b"--tree-filter" | b"--index-filter");
            let code = if is_code { Some(&bytes[..]) } else { bytes.strip_prefix(b"--exec=") };
            if let Some(code) = code {
                self.child_code(code, ChildShell::of("git", streams.input()));
            }
            before = word.text().unwrap_or_default();
        }
        let bisects = words.iter().position(|word| word.text() == Some(b"bisect"));
        if let Some(at) = bisects
            && words.get(at + 1).and_then(Argument::text) == Some(b"run")
        {
            self.apart(|walk| {
                walk.behind(b"git bisect run".to_vec(), words[at + 2..].to_vec(), &LeafStreams::default())
            });
        }
    }
}

/// The place of git's subcommand, behind its own options.
pub(super) fn git_verb(words: &[Argument]) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.with_marks().starts_with(b"-")) {
        let has_value: [&[u8]; 8] = [
            b"-c",
            b"-C",
            b"--git-dir",
            b"--work-tree",
            b"--namespace",
            b"--exec-path",
            b"--config-env",
            b"--attr-source",
        ];
        at += 1 + usize::from(word.text().is_some_and(|word| has_value.contains(&word)));
    }
    at
}

/// Returns true if git runs the value of this setting.
fn runs_value(name: &[u8]) -> bool {
    let names: [&[u8]; 7] = [b"pager", b"editor", b"sshcommand", b"external", b"fsmonitor", b"textconv", b"askpass"];
    let last = name.rsplit(|byte| *byte == b'.').next().unwrap_or(name).to_ascii_lowercase();
    names.contains(&&last[..]) || name.starts_with(b"pager.")
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

/// Puts words from another program in the place of a text, or behind the last word. Within a word they are a hole.
fn put_in_words(words: &mut Vec<Argument>, replaced: Option<&[u8]>, given: &[Argument]) {
    let mut has_place = false;
    for mut word in std::mem::take(words) {
        if replaced.is_some() && word.text() == replaced {
            has_place = true;
            words.extend_from_slice(given);
        } else {
            has_place |= replaced.is_some_and(|replaced| word.fill(replaced));
            words.push(word);
        }
    }
    if !has_place {
        words.extend_from_slice(given);
    }
}

/// The words that `xargs` with these options reads on its input: those that the text tells, or any.
fn given_words(options: &[Argument], streams: &LeafStreams) -> Vec<Argument> {
    let has = |names: &[&[u8]]| {
        options.iter().filter_map(Argument::text).any(|option| names.iter().any(|name| option.starts_with(name)))
    };
    let has_lines = replaced_text(options).is_some() || has(&[b"-0", b"--null", b"-d", b"--delimiter"]);
    let known = match streams.input() {
        StandardInput::Text(text) | StandardInput::Lines(text) if !has(&[b"-a", b"--arg-file"]) => {
            let blanks: &[u8] = if has_lines { b"\n" } else { b" \t\n" };
            text.split(blanks).filter(|_| has_lines || !text.with_marks().iter().any(|byte| b"'\"\\".contains(byte)))
        }
        _ => None,
    };
    known.unwrap_or_else(|| vec![Argument::filled(HoleReach::Words)])
}

/// The words of the code that `parallel` runs: its program, and in the place of `{}`, or at the end, what stands behind `:::`
/// or on its input. Without a program, it runs these words as code.
fn parallel_words(mut words: Vec<Argument>, options: &[Argument], streams: &LeafStreams) -> Vec<Argument> {
    let is_separator = |word: &Argument| matches!(word.text(), Some(b":::" | b":::+" | b"::::" | b"::::+"));
    let Some(at) = words.iter().position(is_separator) else {
        // It reads lines.
        let given = given_words(&[options, &[Argument::of_text(b"-0")]].concat(), streams);
        put_in_code(&mut words, &given);
        return words;
    };
    let behind = words.split_off(at);
    let reads_files = behind.iter().any(|word| word.text().is_some_and(|text| text.starts_with(b"::::")));
    let given: Vec<Argument> = match reads_files {
        true => vec![Argument::filled(HoleReach::Words)],
        false => behind.into_iter().filter(|word| !is_separator(word)).collect(),
    };
    if words.is_empty() {
        return given.iter().flat_map(|code| [code.clone(), Argument::of_text(b";")]).collect();
    }
    put_in_code(&mut words, &given);
    words
}

/// Puts words into those of a code: in the place of `{}`, or behind the last one. What stands for a part of a word, or for one
/// of several, is a hole.
fn put_in_code(code: &mut Vec<Argument>, given: &[Argument]) {
    for part in [&b"{.}"[..], b"{/}", b"{//}", b"{/.}", b"{#}", b"{1}", b"{2}", b"{3}"] {
        code.iter_mut().for_each(|word| _ = word.fill(part));
    }
    let quoted: Vec<Argument> = given.iter().map(|word| Argument::of_text(&word.as_code())).collect();
    put_in_words(code, Some(b"{}"), &quoted);
}

/// The text that `xargs` with these options replaces. `None` if it adds words at the end.
fn replaced_text(options: &[Argument]) -> Option<&[u8]> {
    let mut replaced = None;
    let mut words = options.iter().map(Argument::text);
    while let Some(word) = words.next() {
        replaced = match word {
            Some(b"-I" | b"-J") => words.next().flatten(),
            Some(b"-i" | b"--replace") => Some(&b"{}"[..]),
            Some([b'-', b'I' | b'J' | b'i', text @ ..]) => Some(text),
            Some(word) => word.strip_prefix(b"--replace=").or(replaced),
            None => replaced,
        };
    }
    replaced.filter(|text| !text.is_empty())
}

/// The directory that the options of a wrapper name for its program.
fn chosen_directory(name: &str, options: &[Argument]) -> Option<Argument> {
    let letter = match name {
        "env" => b"-C",
        "sudo" => b"-D",
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
        let value = text.strip_prefix(beginning)?;
        let pieces = [ArgumentPiece::Text(value.to_vec())].into_iter().chain(option.pieces[1..].iter().cloned());
        Some(Argument { pieces: pieces.collect() })
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

/// The redirections of a program that a layer runs: standard input, which it reads itself.
fn input_only(streams: &LeafStreams) -> Vec<Redirection> {
    streams.redirects.iter().filter(|redirect| redirect.descriptor == Some(0)).cloned().collect()
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

/// Returns true if a program runs code of another language: in an option, or on its input.
fn is_foreign(name: &str, words: &[Argument], streams: &LeafStreams) -> bool {
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
        let runs: [&[u8]; 6] = [b"system(", b"| \"", b"|\"", b"|&", b"| getline", b"|getline"];
        let has = |text: &[u8]| runs.iter().any(|part| text.windows(part.len()).any(|window| window == *part));
        return words[1..].iter().any(|word| has(&word.with_marks()));
    }
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let Some((_, letters)) = INTERPRETERS.iter().find(|(interpreter, _)| *interpreter == base) else { return false };
    let has_code = |word: &[u8]| {
        let is_long = matches!(word, b"--eval" | b"--print" | b"eval") || word.starts_with(b"--eval=");
        let is_short = word.len() > 1 && word[0] == b'-' && word[1] != b'-';
        is_long || (is_short && word[1..].iter().any(|letter| letters.as_bytes().contains(letter)))
    };
    let mut operands =
        words[1..].iter().filter(|word| !word.text().is_some_and(|text| text.len() > 1 && text[0] == b'-'));
    let operand = operands.next().and_then(Argument::text);
    let is_fed = !matches!(streams.input(), StandardInput::Outer);
    let is_process =
        |word: &Argument| matches!(&word.pieces[..], [ArgumentPiece::Hole(hole)] if hole.kind == HoleKind::Process);
    let reads_input = words.get(1).is_some_and(is_process)
        || matches!(operand, Some(b"-" | b"/dev/stdin"))
        || (operand.is_none() && is_fed);
    let first_options =
        words[1..].iter().take_while(|word| word.text().is_none_or(|text| text.starts_with(b"-") || text == b"eval"));
    reads_input || first_options.filter_map(Argument::text).any(has_code)
}
