//! Finds the secrets in a command that only the program's name gives away: `openssl enc -k SECRET`, `zip -P SECRET`,
//! `echo SECRET | sudo -S true`.
//!
//! Commands in quotes, as after `sh -c` or `ssh host`, are searched, too.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem;

use super::command_words::{SimpleCommand, simple_commands, unquoted};
use super::known_programs::{
    ARGUMENTS, KEEPERS, LAST_IF, LOGINS, ONLY_WITH, OPTIONS, READER_OPTIONS, READERS, TAKE_ANSWERS,
};
use super::names::{NAME_BYTES_MAX, SecretKind};
use super::plausible::{Form, is_plausible};

/// How deep commands in quotes are searched.
const DEPTH_MAX: usize = 3;
/// The most words of a simple command that are searched, so that the cost stays linear in the text.
const WORDS_MAX: usize = 128;

/// What is known of one program.
#[derive(Default)]
struct KnownProgram {
    options: Vec<&'static str>,
    /// The word without which the options mean something else.
    only_with: Option<&'static str>,
    arguments: Vec<(&'static str, usize)>,
    last_if: Option<u8>,
    takes_answers: bool,
    takes_login: bool,
    reads_password: bool,
}

static PROGRAMS: LazyLock<HashMap<&[u8], KnownProgram>> = LazyLock::new(|| {
    let mut programs: HashMap<&[u8], KnownProgram> = HashMap::new();
    let mut add = |names: &'static str, add: &dyn Fn(&mut KnownProgram)| {
        names.split(' ').for_each(|name| add(programs.entry(name.as_bytes()).or_default()));
    };
    OPTIONS.iter().for_each(|(names, options)| add(names, &|program| program.options.extend(options.split(' '))));
    ONLY_WITH.iter().for_each(|(names, word)| add(names, &|program| program.only_with = Some(word)));
    ARGUMENTS.iter().for_each(|(names, word, which)| add(names, &|program| program.arguments.push((word, *which))));
    LAST_IF.iter().for_each(|(names, letter)| add(names, &|program| program.last_if = Some(*letter)));
    add(TAKE_ANSWERS, &|program| program.takes_answers = true);
    add(LOGINS, &|program| program.takes_login = true);
    add(READERS, &|program| program.reads_password = true);
    programs
});

/// The places of the secrets in a command, in order.
pub(super) fn of_text(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    add_of_text(text, 0, DEPTH_MAX, &mut found);
    in_order(found)
}

/// The places of the secrets in the arguments of a command: for each argument, those in it.
pub(super) fn of_arguments(arguments: &[&[u8]]) -> Vec<Vec<Range<usize>>> {
    // As one text, between bytes that no argument contains.
    let text = arguments.join(&0);
    let mut words = Vec::with_capacity(arguments.len());
    let mut found = Vec::new();
    let mut start = 0;
    for argument in arguments {
        let word = start..start + argument.len();
        start = word.end + 1;
        add_of_text(argument, word.start, DEPTH_MAX, &mut found);
        words.push(word);
    }
    CommandWords { text: &text, words: words.iter().take(WORDS_MAX).cloned().collect() }.add(0, &mut found);
    let mut found = in_order(found).into_iter().peekable();
    let mut within = |word: &Range<usize>| {
        let inner = std::iter::from_fn(|| found.next_if(|secret| secret.end <= word.end));
        inner.map(|secret| secret.start - word.start..secret.end - word.start).collect()
    };
    words.iter().map(&mut within).collect()
}

fn in_order(mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.sort_by_key(|secret| (secret.start, std::cmp::Reverse(secret.end)));
    let mut end = 0;
    found.retain(|secret| {
        let is_apart = secret.start >= end;
        end = end.max(secret.end);
        is_apart
    });
    found
}

/// Adds the secrets of a text that begins at `base`.
fn add_of_text(text: &[u8], base: usize, depth: usize, found: &mut Vec<Range<usize>>) {
    let commands = simple_commands(text);
    for (nth, simple) in commands.iter().enumerate() {
        let command = CommandWords { text, words: simple.words.iter().take(WORDS_MAX).cloned().collect() };
        command.add(base, found);
        let writer = nth.checked_sub(1).map(|nth| &commands[nth]).filter(|writer| writer.is_piped);
        let is_read = command.reads_secret();
        if is_read {
            add_input(writer, &command, base, found);
        }
        let read = writer.filter(|_| is_read).into_iter().chain(is_read.then_some(simple));
        let lines = read.flat_map(|read| &read.documents).flat_map(|lines| lines_in(text, lines));
        let is_command = |line: &Range<usize>| command.may_run_input() && text[line.clone()].contains(&b' ');
        let lines = lines.filter(|line| !is_command(line));
        found.extend(lines.map(|line| at(base, secret_of_line(text, &line))).filter(|secret| !secret.is_empty()));
        let documents = simple.documents.iter().filter(|_| !is_read);
        let quoted = simple.words.iter().chain(documents);
        for word in quoted.filter(|word| depth > 0 && text[(*word).clone()].contains(&b' ')) {
            add_of_text(&text[word.clone()], base + word.start, depth - 1, found);
        }
    }
    add_of_sql(text, base, found);
}

/// Adds what a command that reads a secret gets from `echo` or `printf`, its `writer`, or from a here-string.
fn add_input(writer: Option<&SimpleCommand>, command: &CommandWords<'_>, base: usize, found: &mut Vec<Range<usize>>) {
    let text = command.text;
    let may_run = command.may_run_input();
    let is_secret = |word: &Range<usize>| !(may_run && text[unquoted(text, word.clone())].contains(&b' '));
    if let Some(writer) = writer
        && let Some(last) = writer.words.last()
        && writer.words.iter().any(|word| matches!(&text[word.clone()], b"echo" | b"printf"))
        && writer.words.len() > 1
        && is_secret(last)
    {
        found.extend(plausible(text, secret_of_line(text, last)).map(|word| at(base, word)));
    }
    for pair in command.words.windows(2) {
        if &text[pair[0].clone()] == b"<<<" && is_secret(&pair[1]) {
            found.extend(plausible(text, secret_of_line(text, &pair[1])).map(|word| at(base, word)));
        }
    }
}

/// The lines in this part of the text.
fn lines_in(text: &[u8], part: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut at = part.start;
    let part = part.clone();
    std::iter::from_fn(move || {
        let rest = text.get(at..part.end).filter(|rest| !rest.is_empty())?;
        let line = at..at + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        at = line.end + 1;
        Some(line)
    })
}

/// The secret in a line such as chpasswd(8) reads it: `user:password`, or a password alone.
fn secret_of_line(text: &[u8], line: &Range<usize>) -> Range<usize> {
    let colon = text[line.clone()].iter().position(|&byte| byte == b':');
    line.start + colon.map_or(0, |at| at + 1)..line.end
}

/// Adds the passwords in SQL: `IDENTIFIED BY '…'`, `PASSWORD '…'`.
fn add_of_sql(text: &[u8], base: usize, found: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase();
    for clause in [&b"identified by "[..], b"password "] {
        for start in memmem::find_iter(&lower, clause) {
            let start = start + clause.len();
            let Some(&quote @ (b'\'' | b'"')) = text.get(start) else { continue };
            let len = text[start + 1..].iter().position(|&byte| byte == quote);
            let word = start + 1..start + 1 + len.unwrap_or(0);
            found.extend(plausible(text, word).map(|word| at(base, word)));
        }
    }
}

fn at(base: usize, word: Range<usize>) -> Range<usize> {
    base + word.start..base + word.end
}

/// The value, unless it is a variable, a path, a pair of ports or the like.
fn plausible(text: &[u8], value: Range<usize>) -> Option<Range<usize>> {
    let value = unquoted(text, value);
    let bytes = &text[value.clone()];
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'/' | b'-');
    let are_ports = bytes.contains(&b':') && bytes.iter().all(is_part);
    let is_secret = !are_ports && is_plausible(SecretKind::Password, Form::Argument, b"PASSWORD", bytes);
    is_secret.then_some(value)
}

/// Returns true if a text has nothing but words of letters: `restart`, `not yet`, `staging-east`.
fn are_words(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii() || b" -_./:,".contains(byte))
}

/// A simple command with its text.
struct CommandWords<'a> {
    text: &'a [u8],
    words: Vec<Range<usize>>,
}

impl<'a> CommandWords<'a> {
    fn word(&self, nth: usize) -> &'a [u8] {
        self.words.get(nth).map_or(&[], |word| &self.text[word.clone()])
    }

    /// The name of the program, if the word is one.
    fn program(&self, nth: usize) -> &'a [u8] {
        let word = self.word(nth);
        let name = word.iter().rposition(|&byte| byte == b'/').map_or(word, |at| &word[at + 1..]);
        if name.len() <= NAME_BYTES_MAX { name } else { &[] }
    }

    fn has(&self, word: &str) -> bool {
        (0..self.words.len()).any(|nth| self.word(nth) == word.as_bytes())
    }

    /// Adds the secrets that its program's name gives away.
    fn add(&self, base: usize, found: &mut Vec<Range<usize>>) {
        for nth in 0..self.words.len() {
            let Some(program) = PROGRAMS.get(self.program(nth)) else { continue };
            if program.takes_login {
                found.extend((nth + 1..self.words.len()).filter_map(|nth| self.login(nth)).map(|word| at(base, word)));
            }
            if program.only_with.is_none_or(|word| self.has(word)) {
                let options = program.options.iter();
                let values = options.flat_map(|option| self.option_values(nth + 1, option));
                found.extend(values.map(|word| at(base, word)));
            }
            let arguments = program.arguments.iter().filter_map(|(word, which)| self.argument(nth, word, *which));
            let secrets = arguments.filter(|word| !program.takes_answers || !are_words(&self.text[word.clone()]));
            found.extend(secrets.map(|word| at(base, word)));
            if program.last_if.is_some_and(|letter| self.has_letter(nth + 1, letter)) {
                let last = self.words.last().and_then(|word| plausible(self.text, word.clone()));
                found.extend(last.map(|word| at(base, word)));
            }
        }
    }

    /// Returns true if an option of single letters contains this one.
    fn has_letter(&self, from: usize, letter: u8) -> bool {
        let is_letters = |word: &[u8]| word.len() > 1 && word[0] == b'-' && word[1] != b'-' && word.contains(&letter);
        (from..self.words.len()).any(|nth| is_letters(self.word(nth)))
    }

    /// The values of this option behind the program's name.
    fn option_values(&self, from: usize, option: &'static str) -> impl Iterator<Item = Range<usize>> {
        (from..self.words.len()).filter_map(move |nth| self.option_value(nth, option))
    }

    fn option_value(&self, nth: usize, option: &str) -> Option<Range<usize>> {
        let name = option.trim_end_matches(['?', '*']);
        let (name, mark) = match option.as_bytes().last() {
            Some(mark @ (b':' | b',')) if !option.starts_with('/') => (&name[..name.len() - 1], Some(*mark)),
            _ => (name, None),
        };
        let word = self.words[nth].clone();
        let rest = self.word(nth).strip_prefix(name.as_bytes())?;
        let glued = word.end - rest.len()..word.end;
        let value = match rest {
            [] if option.ends_with('*') => return None,
            [] => self.words.get(nth + 1).cloned().filter(|next| !self.text[next.clone()].starts_with(b"-"))?,
            [b'=', _, ..] => glued.start + 1..glued.end,
            _ if option.ends_with(['?', '*']) => glued,
            _ => return None,
        };
        let bytes = &self.text[value.clone()];
        let start = match mark {
            Some(mark @ b':') => bytes.iter().rposition(|&byte| byte == mark)? + 1,
            Some(mark) => bytes.iter().position(|&byte| byte == mark)? + 1,
            None if bytes.starts_with(b"pass:") => b"pass:".len(),
            None if [&b"env:"[..], b"file:", b"fd:", b"stdin"].iter().any(|place| bytes.starts_with(place)) => {
                return None;
            }
            None => 0,
        };
        plausible(self.text, value.start + start..value.end)
    }

    /// The argument with this number behind a word of a program.
    fn argument(&self, program: usize, word: &str, which: usize) -> Option<Range<usize>> {
        let behind = |from: usize| (from..self.words.len()).find(|&nth| self.word(nth) == word.as_bytes());
        let start = if word == "*" { program } else { behind(program + 1)? };
        let is_argument = |word: &&Range<usize>| !self.text[(*word).clone()].starts_with(b"-");
        let argument = self.words[start + 1..].iter().filter(is_argument).nth(which - 1)?;
        plausible(self.text, argument.clone())
    }

    /// The password of `user/password@place` or `domain/user:password@place`.
    fn login(&self, nth: usize) -> Option<Range<usize>> {
        let word = self.words[nth].clone();
        let bytes = self.word(nth);
        let end = bytes.iter().rposition(|&byte| byte == b'@').unwrap_or(bytes.len());
        let colon = bytes[..end].iter().position(|&byte| byte == b':');
        let start = colon.or_else(|| bytes[..end].iter().position(|&byte| byte == b'/'))? + 1;
        plausible(self.text, word.start + start..word.start + end)
    }

    /// Returns true if it reads a secret from its standard input.
    fn reads_secret(&self) -> bool {
        (0..self.words.len()).any(|nth| {
            let (program, word) = (self.program(nth), self.word(nth));
            (self.runs(nth) && PROGRAMS.get(program).is_some_and(|program| program.reads_password))
                || (program == b"sudo" && self.has_letter(nth + 1, b'S'))
                || READER_OPTIONS.contains(&word)
                || (word == b"stdin" && self.has("openssl"))
                || program == b"chpasswd"
                || (program == b"passwd" && self.has("--stdin"))
                || (matches!(word, b"padd" | b"pupdate") && self.has("keyctl"))
        }) || (!self.may_run_input()
            && KEEPERS.iter().all(|words| (0..self.words.len()).any(|nth| words.contains(&self.word(nth)))))
    }

    /// Returns true if it may run what it reads, behind a password or without one: a shell does.
    fn may_run_input(&self) -> bool {
        const SHELLS: [&[u8]; 9] = [b"su", b"sh", b"bash", b"dash", b"zsh", b"ksh", b"ash", b"fish", b"busybox"];
        (0..self.words.len()).any(|nth| SHELLS.contains(&self.program(nth)))
    }

    /// Returns true if this word is the program that runs, as far as the words before it tell.
    fn runs(&self, nth: usize) -> bool {
        const RUNNERS: [&[u8]; 8] = [b"sudo", b"doas", b"env", b"nice", b"nohup", b"time", b"exec", b"command"];
        let is_before = |nth: usize| {
            let word = self.word(nth);
            let is_user = nth > 0 && matches!(self.word(nth - 1), b"-u" | b"-g" | b"-n");
            word.starts_with(b"-") || word.contains(&b'=') || is_user || RUNNERS.contains(&self.program(nth))
        };
        (0..nth).all(is_before)
    }
}
