//! The sources of a crate, and the module paths that they name.

use std::fs;
use std::path::{Path, PathBuf};

/// One source file without its comments and its unit tests.
#[derive(Debug)]
pub(crate) struct Source {
    /// Relative to the crate's `src`.
    pub(crate) file: PathBuf,
    /// The module's path below the crate's root; empty for the root itself.
    pub(crate) module: Vec<String>,
    pub(crate) code: String,
    /// The lines of the whole file.
    pub(crate) lines: usize,
}

impl Source {
    /// The first folder or file below `src`.
    pub(crate) fn part(&self) -> &str {
        self.module.first().map_or("lib", String::as_str)
    }

    /// All paths that begin at the crate's root, from `use` declarations and from expressions.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (at, word) in words(&self.code) {
            let begins = !self.code[..at].ends_with("::") && ["crate", "super", "self", "rexec_sh"].contains(&word);
            if begins && self.code[at + word.len()..].starts_with("::") {
                expand(&self.code[at..], &mut Vec::new(), &mut found);
            }
        }
        found.into_iter().filter_map(|path| self.absolute(path)).collect()
    }

    /// The children's names that this module's own `use` declarations bring in: name → path.
    pub(crate) fn uses_of_children(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("use ") {
            if at == 0 || self.code[..at].ends_with(['\n', ' ']) {
                expand(&self.code[at + 4..], &mut Vec::new(), &mut found);
            }
        }
        let is_child = |path: &Vec<String>| path[0].starts_with(|c: char| c.is_lowercase());
        found.retain(is_child);
        let path = |path: Vec<String>| match path[0].as_str() {
            "crate" | "super" | "std" | "core" => None,
            "self" => Some([&self.module[..], &path[1..]].concat()),
            _ => Some([&self.module[..], &path].concat()),
        };
        found.into_iter().filter_map(path).collect()
    }

    fn absolute(&self, path: Vec<String>) -> Option<Vec<String>> {
        let mut base = self.module.clone();
        let mut rest = &path[..];
        match rest.first()?.as_str() {
            "crate" | "rexec_sh" => base.clear(),
            "self" => {}
            _ => {
                base.pop()?;
            }
        }
        rest = &rest[1..];
        while rest.first().is_some_and(|word| word == "super") {
            base.pop()?;
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }
}

/// The sources below a folder of the workspace.
pub(crate) fn sources(src: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(src);
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    files.into_iter().map(|file| read(&root, &file)).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The shim's sources are linked from where the programs are.
        if path.is_dir() && !path.is_symlink() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn read(root: &Path, path: &Path) -> Source {
    let file = path.strip_prefix(root).unwrap().to_owned();
    let mut module: Vec<String> =
        file.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    module.retain(|name| !["lib", "main", "mod"].contains(&name.as_str()));
    let text = fs::read_to_string(path).unwrap();
    let is_test = module.last().is_some_and(|name| name == "tests");
    let own = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: Vec<&str> = own.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = if is_test { String::new() } else { code.join("\n") };
    Source { file, module, code, lines: text.lines().count() }
}

/// The identifiers of a text and where they begin.
fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = code.char_indices().filter(move |&(at, c)| is_word(c) && !code[..at].ends_with(is_word));
    starts.map(move |(at, _)| (at, &code[at..at + code[at..].find(|c| !is_word(c)).unwrap_or(code.len() - at)]))
}

/// Reads a path such as `a::{b, c::d}` at the start of a text into the paths that it stands for.
fn expand<'a>(code: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let code = code.trim_start();
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = expand(rest, &mut before.clone(), found).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                more => return more.unwrap_or(rest).trim_start().strip_prefix('}').unwrap_or_default(),
            }
        }
    }
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (word, rest) = code.split_at(end);
    if !word.is_empty() && (word != "self" || before.is_empty()) {
        before.push(word.to_owned());
    }
    match rest.strip_prefix("::") {
        Some(more) if more.starts_with(|c: char| c.is_alphabetic() || c == '{' || c == '_') => {
            expand(more, before, found)
        }
        _ => {
            if !before.is_empty() {
                found.push(before.clone());
            }
            let rest = rest.strip_prefix("::*").unwrap_or(rest).trim_start();
            // What it is called here instead.
            rest.strip_prefix("as ")
                .map_or(rest, |name| name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'))
        }
    }
}

#[test]
fn paths_are_read_as_the_compiler_reads_them() {
    let source = |code: &str| Source {
        file: PathBuf::new(),
        module: ["host".to_owned(), "run".to_owned()].to_vec(),
        code: code.to_owned(),
        lines: 0,
    };
    let paths = |code: &str| source(code).paths().iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        paths("use crate::{a::{B, c::{self, D}}, e};\nuse super::Host;"),
        ["a::B", "a::c", "a::c::D", "e", "host::Host"]
    );
    assert_eq!(paths("fn f() { super::super::x(); self::y::Z }"), ["x", "host::run::y::Z"]);
    assert_eq!(paths("use crate::text::{\n    a as b,\n    c::*,\n    D,\n};"), ["text::a", "text::c", "text::D"]);
    let children: Vec<_> = source("pub use child::Name;\nuse std::fs;").uses_of_children();
    assert_eq!(children, [["host", "run", "child", "Name"]]);
}
