//! Changes by the shell's own commands: variables, the directory, aliases.

use super::{LeafStreams, StandardInput, Walk};
use crate::limits;
use crate::script::leaf::{Argument, ArgumentPiece, HoleKind, HoleReach, OpaqueReason, Via};
use crate::script::values::Scope;

impl Walk<'_> {
    /// The reason why a builtin makes later programs unknown, if it does.
    pub(super) fn hides(name: &str, words: &[Argument]) -> Option<OpaqueReason> {
        let has = |option: &[u8]| words[1..].iter().any(|word| word.text() == Some(option));
        match name {
            "hash" if has(b"-p") => Some(OpaqueReason::RenamesPrograms),
            "enable" if has(b"-f") => Some(OpaqueReason::RenamesPrograms),
            "source" | "." => {
                let target = words.get(1)?;
                let is_process = target.is_only(&HoleKind::Process);
                let is_stream =
                    target.text().is_some_and(|path| path.starts_with(b"/dev/") || path.starts_with(b"/proc/"));
                (is_process || is_stream).then_some(OpaqueReason::SourcesStream)
            }
            _ => None,
        }
    }

    /// Applies the effect of a builtin to the known values.
    pub(super) fn builtin(&mut self, name: &str, words: &[Argument], streams: &LeafStreams) {
        match name {
            "cd" | "pushd" => self.change_directory(words),
            "popd" => self.values.set_directory(None),
            "export" | "readonly" | "declare" | "typeset" | "local" => self.declare(name, words),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" | "wait" | "printf" => {
                self.forget_names(name, words);
                if name == "read" && self.is_condition {
                    self.read_line(words, streams);
                }
            }
            "let" => words[1..].iter().for_each(|word| self.forget_arithmetic(&word.with_marks())),
            "set" | "shift" => self.change_arguments(name, words),
            "alias" => self.define_aliases(words),
            "trap" => {
                if let Some(code) = words.iter().skip(1).find(|word| word.text() != Some(b"--")) {
                    let code = code.with_marks();
                    let is_code = words.len() > 2 && !matches!(&code[..], b"" | b"-" | b"-p" | b"-l");
                    if is_code {
                        self.set_trap(code);
                    }
                }
            }
            "source" | "." => {
                // Another text may set anything.
                self.values.forget_set();
                self.arguments = None;
            }
            _ => {}
        }
    }

    fn change_directory(&mut self, words: &[Argument]) {
        let operands: Vec<&Argument> = words[1..]
            .iter()
            .filter(|word| !matches!(word.text(), Some(b"-P" | b"-L" | b"-e" | b"-@" | b"--" | b"-n")))
            .collect();
        let target = match &operands[..] {
            [] => self.values.get(b"HOME"),
            [target] => match target.text() {
                Some(b"-") => None,
                Some(path) if path.first().is_some_and(|first| matches!(first, b'+')) => None,
                _ => Some((*target).clone()),
            },
            _ => None,
        };
        match target {
            Some(target) => self.enter(target),
            None => self.values.set_directory(None),
        }
    }

    /// Goes to a directory, seen from the one before.
    pub(super) fn enter(&mut self, target: Argument) {
        let is_absolute = match target.pieces.first() {
            Some(ArgumentPiece::Text(text)) => text.starts_with(b"/"),
            Some(ArgumentPiece::Hole(hole)) => {
                matches!(hole.kind, HoleKind::Home(_) | HoleKind::Output(_) | HoleKind::Variable(_))
                    || matches!(hole.kind, HoleKind::Digits { may_be_empty: true, .. })
            }
            None => return,
        };
        let before = self.values.directory().filter(|_| !is_absolute);
        let directory = match before {
            Some(mut before) => {
                before.push_text(b"/");
                before.pieces.extend(target.pieces);
                before.joined()
            }
            None => target,
        };
        self.values.set_directory(Some(directory));
    }

    /// `export name=value` and its like.
    fn declare(&mut self, builtin: &str, words: &[Argument]) {
        let mut scope = if builtin == "export" { Scope::Exported } else { Scope::Shell };
        for word in &words[1..] {
            let Some(ArgumentPiece::Text(text)) = word.pieces.first() else { continue };
            if let [b'-', letters @ ..] = &text[..] {
                scope = if letters.contains(&b'x') { Scope::Exported } else { scope };
                if letters.contains(&b'n') && builtin != "export" {
                    // The names are references: an assignment to one sets another variable.
                    self.values.give_up();
                }
                continue;
            }
            let Some(at) = text.iter().position(|byte| *byte == b'=') else {
                match scope {
                    _ if word.text().is_none() => {}
                    Scope::Exported => self.values.export(text),
                    Scope::Shell if builtin == "local" => self.values.forget(text),
                    Scope::Shell => {}
                }
                continue;
            };
            let name = text[..at].to_vec();
            let value = word.with_first(&text[at + 1..]);
            let is_plain = !words[1..].iter().any(|word| matches!(word.text(), Some([b'-', letters @ ..]) if letters.iter().any(|l| b"inaAlu".contains(l))));
            match name.strip_suffix(b"+") {
                Some(name) => self.values.forget(name),
                None if is_plain => self.set(&name, value.joined(), scope),
                None => self.values.forget(&name),
            }
        }
    }

    /// Forgets the variables that a builtin sets by their names.
    fn forget_names(&mut self, builtin: &str, words: &[Argument]) {
        if builtin == "printf" {
            match words.get(1).and_then(Argument::text) {
                Some(b"-v") => {}
                Some([b'-', b'v', name @ ..]) => return self.values.forget(name_of(name)),
                _ => return,
            }
        }
        if words[1..].iter().any(Argument::has_hole) {
            return self.values.forget_set();
        }
        for word in words[1..].iter().filter_map(Argument::text) {
            if word.first().is_some_and(|first| *first != b'-') {
                self.values.forget(name_of(word));
            }
        }
        match builtin {
            "read" => self.values.forget(b"REPLY"),
            "mapfile" | "readarray" => self.values.forget(b"MAPFILE"),
            "getopts" => [b"OPTARG".as_slice(), b"OPTIND"].iter().for_each(|name| self.values.forget(name)),
            _ => {}
        }
    }

    /// `while read name`: in the body the name is a line of the input, and not empty.
    fn read_line(&mut self, words: &[Argument], streams: &LeafStreams) {
        let names = words[1..].iter().filter_map(Argument::text);
        let names: Vec<&[u8]> = names.filter(|name| name.first().is_some_and(u8::is_ascii_alphabetic)).collect();
        let [name] = names[..] else { return };
        let (StandardInput::Text(text) | StandardInput::Lines(text)) = streams.input() else { return };
        let line = match text.split(b"\n").as_deref() {
            Some([line]) => line.clone(),
            _ => Argument::filled(HoleReach::Within),
        };
        self.values.set(name, line, Scope::Shell);
    }

    fn change_arguments(&mut self, builtin: &str, words: &[Argument]) {
        match words.get(1).and_then(Argument::text) {
            Some(b"--") if builtin == "set" => self.arguments = Some(words[2..].to_vec().into()),
            Some(option) if builtin == "set" && matches!(option.first(), Some(b'-' | b'+')) => {
                let keeps = words[1..].iter().all(|word| word.text().is_some_and(|text| !text.is_empty()));
                if !keeps || words.len() > 3 {
                    self.arguments = None;
                }
            }
            None if builtin == "set" && words.len() == 1 => {}
            Some([first, ..]) if builtin == "set" && !matches!(first, b'-' | b'+') => {
                self.arguments = Some(words[1..].to_vec().into());
            }
            None if builtin == "shift" && words.len() == 1 => {
                if let Some(arguments) = &mut self.arguments {
                    arguments.shift();
                }
            }
            _ => self.arguments = None,
        }
    }

    fn define_aliases(&mut self, words: &[Argument]) {
        for word in &words[1..] {
            let bytes = word.with_marks();
            let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { continue };
            let name = bytes[..at].to_vec();
            let code = bytes[at + 1..].to_vec();
            self.elsewhere(|walk| walk.code(&code, Via::Alias(name.clone())));
            if self.aliases.len() < limits::SCRIPT_VARIABLES_MAX {
                self.aliases.push((name, code));
            }
        }
    }
}

/// The name of a variable, without an index behind it.
fn name_of(word: &[u8]) -> &[u8] {
    word.split(|byte| *byte == b'[').next().unwrap_or(word)
}
