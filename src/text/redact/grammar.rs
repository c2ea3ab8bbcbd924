//! What bounds a value in the text of a shell command: the quotes that close, what separates words and commands, and the
//! names of programs, which stay whatever is masked around them. Of a value that somebody could choose, all of that stays.
//!
//! The text is read as a shell reads it, with its substitutions and here-documents, and so are words that are commands
//! themselves, as behind `sh -c`, `eval` and `ssh host`. Of all other words with quotes, such as a program in another
//! language, the strings are known.
//!
//! Invariants: the cost is linear in the text, whatever is nested in it; what could not be read within it is bounded as
//! narrowly as if each quote closed.

use std::collections::HashSet;
use std::ops::Range;

use super::letters::Letters;
use super::program_names::{
    AssignedWord, CommandWord, assignments, is_before_assignment, is_command_option, is_name, is_opener, is_shell,
    program_words, takes_commands, variable,
};

/// How deep substitutions and commands in words are read.
const DEPTH_MAX: usize = 24;
/// How many times its own length is read of a text, for the words in its words.
const READINGS_MAX: usize = 12;

/// No value goes beyond this byte.
const SEPARATES: u8 = 1;
/// The end of a string behind which its word may go on.
const ENDS_PART: u8 = 2;
/// The end of a string.
const ENDS_STRING: u8 = 4;
/// Part of a program's name.
const PROGRAM: u8 = 8;
/// A command ends before it.
const ENDS_COMMAND: u8 = 16;
/// A quote of the shell.
const QUOTES: u8 = 32;
/// Part of `NAME=` in front of a variable's value.
const NAMES: u8 = 64;
/// What no known value covers.
const STAYS: u8 = SEPARATES | PROGRAM | QUOTES | NAMES;

/// What stands where in a text.
#[derive(Debug)]
pub(super) struct Grammar {
    marks: Vec<u8>,
    /// For each place, the end of the innermost string or document that it is in.
    ends: Vec<usize>,
    /// For each place, where the command ends that it is in.
    command_ends: Vec<usize>,
    /// The words and documents that are commands themselves.
    scripts: Vec<Letters>,
}

impl Grammar {
    /// The grammar of a command's text.
    pub(super) fn of_text(text: &[u8]) -> Self {
        let mut reader = Reader::new(text.len());
        reader.script(&Letters::of(text, 0), 0, None, 0);
        reader.finish()
    }

    /// The grammar of a command's arguments, each behind the one before it with one byte in between.
    pub(super) fn of_arguments(arguments: &[&[u8]]) -> Self {
        let mut words = Vec::with_capacity(arguments.len());
        let mut start = 0;
        for argument in arguments {
            let letters = Letters::of(argument, start);
            words.push(Word { letters, span: start..start + argument.len(), is_apart: false });
            start += argument.len() + 1;
        }
        let mut reader = Reader::new(start);
        reader.end_command(&mut words, 0);
        reader.finish()
    }

    /// What `find` finds in the words that are commands, without their quotes.
    pub(super) fn in_scripts<'a>(
        &'a self,
        find: impl Fn(&[u8]) -> Vec<Range<usize>> + 'a,
    ) -> impl Iterator<Item = Range<usize>> + 'a {
        let found = self
            .scripts
            .iter()
            .flat_map(move |script| find(&script.bytes).into_iter().map(move |found| (script, found)));
        found
            .filter(|(_, found)| !found.is_empty())
            .map(|(script, found)| script.places[found.start]..script.places[found.end - 1] + 1)
    }

    /// Where a value that begins at this place must end; `None` if none can begin there.
    pub(super) fn bound(&self, start: usize) -> Option<usize> {
        let is = |at: usize, mark: u8| self.marks.get(at).is_none_or(|marks| marks & mark != 0);
        let before = start.checked_sub(1).map_or(0, |before| self.marks[before]);
        let is_outside = before & ENDS_STRING != 0 || (before & ENDS_PART != 0 && is(start, SEPARATES));
        (!is_outside && !is(start, SEPARATES | PROGRAM)).then(|| self.ends[start])
    }

    /// Where the command ends that this place is in.
    pub(super) fn command_end(&self, at: usize) -> usize {
        self.command_ends[at]
    }

    /// The part of a value within its word.
    pub(super) fn fit(&self, value: Range<usize>) -> Option<Range<usize>> {
        let end = self.bound(value.start)?.min(value.end);
        let is_beyond = |marks: &u8| marks & (SEPARATES | PROGRAM) != 0;
        let len = self.marks[value.start..end].iter().position(is_beyond);
        Some(value.start..len.map_or(end, |len| value.start + len)).filter(|value| !value.is_empty())
    }

    /// The parts of a value within words: a value that reaches over several words is none of the shell's, and whoever
    /// chose it must not hide what separates them.
    pub(super) fn parts(&self, value: Range<usize>) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        for at in value.filter(|&at| self.marks[at] & STAYS == 0) {
            match parts.last_mut().filter(|part| part.end == at) {
                Some(part) => part.end += 1,
                None => parts.push(at..at + 1),
            }
        }
        parts
    }
}

/// A word without its quotes.
#[derive(Debug)]
struct Word {
    letters: Letters,
    /// Where it stands in the whole, with its quotes.
    span: Range<usize>,
    /// It is where something goes to or comes from, or part of a list: not the command's own.
    is_apart: bool,
}

impl CommandWord for Word {
    fn bytes(&self) -> &[u8] {
        &self.letters.bytes
    }

    fn is_apart(&self) -> bool {
        self.is_apart
    }
}

/// A document whose lines follow the line that names it.
struct HereDocument {
    end: Vec<u8>,
    has_tabs: bool,
    /// Substitutions in it are made.
    is_expanded: bool,
}

/// How a word is read once more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordKind {
    Data,
    Command,
}

/// How far a script was read.
#[derive(Default)]
struct Script {
    /// The words of the command that has not ended.
    words: Vec<Word>,
    /// The documents whose lines begin behind the next line feed.
    documents: Vec<HereDocument>,
    /// The next word is where something goes to or comes from.
    is_apart: bool,
    /// A command of this line reads commands.
    has_shell: bool,
    parentheses: usize,
    lists: usize,
    /// A word has come behind which no assignment stands.
    has_program: bool,
    /// How many `case … esac` are open, and whether a pattern of the innermost one comes, which ends with `)`.
    cases: usize,
    is_pattern: bool,
}

impl Script {
    /// Notes a word without quotes that may begin or end a `case`.
    fn note_case(&mut self, word: &[u8]) {
        const OPENERS_MAX: usize = 8;
        let is_keyword = || self.words.len() <= OPENERS_MAX && self.words.iter().all(|word| is_opener(word.bytes()));
        match word {
            b"case" if is_keyword() => (self.cases, self.is_pattern) = (self.cases + 1, true),
            b"esac" if self.cases > 0 && is_keyword() => (self.cases, self.is_pattern) = (self.cases - 1, false),
            _ => {}
        }
    }
}

struct Reader {
    grammar: Grammar,
    /// The values that variables get, and the variables that name programs.
    assigned: Vec<(Vec<u8>, Letters)>,
    run: HashSet<Vec<u8>>,
    /// How many more bytes are read in words.
    room: usize,
}

impl Reader {
    fn new(len: usize) -> Self {
        let grammar =
            Grammar { marks: vec![0; len], ends: vec![len; len], command_ends: Vec::new(), scripts: Vec::new() };
        Self { grammar, assigned: Vec::new(), run: HashSet::new(), room: len.saturating_mul(READINGS_MAX) }
    }

    fn finish(mut self) -> Grammar {
        for (name, value) in std::mem::take(&mut self.assigned) {
            if self.run.contains(&name) {
                let first = value.bytes.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                self.mark(&value, 0..first, PROGRAM);
            }
        }
        let Grammar { marks, ends, scripts, .. } = self.grammar;
        let mut end = marks.len();
        let mut command_ends = vec![end; marks.len()];
        for (at, marks) in marks.iter().enumerate().rev() {
            end = if marks & ENDS_COMMAND == 0 { end } else { at };
            command_ends[at] = end;
        }
        Grammar { marks, ends, command_ends, scripts }
    }

    fn mark(&mut self, text: &Letters, range: Range<usize>, mark: u8) {
        let places = &text.places[range.start.min(text.places.len())..range.end.min(text.places.len())];
        places.iter().for_each(|&place| self.grammar.marks[place] |= mark);
    }

    /// What is between these places is one string or document.
    fn enclose(&mut self, text: &Letters, range: Range<usize>) {
        let end = text.places.get(range.end).copied().unwrap_or_else(|| match text.places.last() {
            Some(last) => last + 1,
            None => 0,
        });
        for &place in text.places.get(range).into_iter().flatten() {
            self.grammar.ends[place] = self.grammar.ends[place].min(end);
        }
    }

    /// Reads commands up to `closer`. Returns its place, or the text's end.
    fn script(&mut self, text: &Letters, from: usize, closer: Option<u8>, depth: usize) -> usize {
        let mut at = from;
        let mut state = Script::default();
        while let Some(byte) = text.get(at) {
            let ends_pattern = byte == b')' && state.is_pattern;
            if closer == Some(byte) && state.parentheses == 0 && state.lists == 0 && !ends_pattern {
                break;
            }
            match byte {
                b'\\' if text.get(at + 1) == Some(b'\n') => at += 2,
                b' ' | b'\t' | b'\r' => {
                    self.mark(text, at..at + 1, SEPARATES);
                    at += 1;
                }
                b'#' => at = self.comment(text, at),
                b'(' if at > from && text.get(at - 1) == Some(b'=') && !state.words.is_empty() => {
                    // A list of values: `NAME=(a b)`
                    self.mark(text, at..at + 1, SEPARATES);
                    (state.lists, at) = (state.lists + 1, at + 1);
                }
                b')' if state.lists > 0 => {
                    self.mark(text, at..at + 1, SEPARATES);
                    (state.lists, at) = (state.lists - 1, at + 1);
                }
                b'(' if text.get(at + 1) == Some(b'(') => match self.pair_end(text, at + 1) {
                    Some(end) => {
                        self.arithmetic(text, at..end, depth);
                        at = end;
                    }
                    // A subshell in a subshell.
                    None => at = self.operator(text, at, &mut state, depth),
                },
                b'\n' | b';' | b'&' | b'|' | b'(' | b')' => at = self.operator(text, at, &mut state, depth),
                b'<' | b'>' => at = self.redirection(text, at, &mut state, closer, depth),
                _ => {
                    let (letters, end) = self.word(text, at, closer, !state.has_program, depth);
                    let span = text.span(at..end);
                    if letters.bytes.len() == end - at {
                        state.note_case(&letters.bytes);
                    }
                    state.has_program |= !is_before_assignment(&letters.bytes);
                    state.words.push(Word { letters, span, is_apart: state.is_apart || state.lists > 0 });
                    state.is_apart = false;
                    at = end.max(at + 1);
                }
            }
        }
        self.end_command(&mut state.words, depth);
        at.min(text.bytes.len())
    }

    /// Reads what ends a command. Returns the place of the next one, behind the documents of the line.
    fn operator(&mut self, text: &Letters, at: usize, state: &mut Script, depth: usize) -> usize {
        self.mark(text, at..at + 1, SEPARATES | ENDS_COMMAND);
        if state.lists == 0 {
            state.has_shell |= state.words.iter().any(is_shell);
            self.end_command(&mut state.words, depth);
            state.is_apart = false;
            state.has_program = false;
        }
        match text.get(at) {
            // `(a)`, a pattern with both of its parentheses.
            Some(b'(') if state.is_pattern => {}
            Some(b'(') => state.parentheses += 1,
            Some(b')') => {
                state.parentheses = state.parentheses.saturating_sub(usize::from(!state.is_pattern));
                state.is_pattern = false;
            }
            Some(b';') if state.cases > 0 => state.is_pattern |= matches!(text.get(at + 1), Some(b';' | b'&')),
            Some(b'\n') => {
                let kind = if state.has_shell { WordKind::Command } else { WordKind::Data };
                let documents = std::mem::take(&mut state.documents);
                state.has_shell = false;
                return documents.iter().fold(at + 1, |at, document| self.document(text, at, document, kind, depth));
            }
            _ => {}
        }
        at + 1
    }

    /// Reads `<`, `>` and the like. Returns the place behind it.
    fn redirection(
        &mut self,
        text: &Letters,
        at: usize,
        state: &mut Script,
        closer: Option<u8>,
        depth: usize,
    ) -> usize {
        // `2>`
        if state.words.last().is_some_and(|word| is_descriptor(&word.letters, text, at)) {
            state.words.pop();
        }
        let end = at + text.bytes[at..].iter().take_while(|byte| matches!(byte, b'<' | b'>')).count();
        self.mark(text, at..end, SEPARATES);
        if &text.bytes[at..end] == b"<<" {
            let (document, end) = self.document_end(text, end, closer, depth);
            state.documents.push(document);
            return end;
        }
        state.is_apart = true;
        let is_copy = matches!(text.get(end), Some(b'&' | b'|'));
        self.mark(text, end..end + usize::from(is_copy), SEPARATES);
        end + usize::from(is_copy)
    }

    fn comment(&mut self, text: &Letters, at: usize) -> usize {
        let len = text.bytes[at..].iter().position(|&byte| byte == b'\n');
        let end = len.map_or(text.bytes.len(), |len| at + len);
        self.enclose(text, at..end);
        self.data(&text.part(at..end));
        end
    }

    /// Reads the word behind `<<`. Returns the place behind it, too.
    fn document_end(
        &mut self,
        text: &Letters,
        mut at: usize,
        closer: Option<u8>,
        depth: usize,
    ) -> (HereDocument, usize) {
        let has_tabs = text.get(at) == Some(b'-');
        at += usize::from(has_tabs);
        while matches!(text.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let (word, end) = self.word(text, at, closer, false, depth);
        let is_expanded = word.bytes.len() == end - at;
        (HereDocument { end: word.bytes, has_tabs, is_expanded }, end)
    }

    /// Reads the lines of a document. Returns the place behind them.
    fn document(
        &mut self,
        text: &Letters,
        from: usize,
        document: &HereDocument,
        kind: WordKind,
        depth: usize,
    ) -> usize {
        let mut at = from;
        let (end, next) = loop {
            if at >= text.bytes.len() {
                break (text.bytes.len(), text.bytes.len());
            }
            let len = text.bytes[at..].iter().position(|&byte| byte == b'\n').unwrap_or(text.bytes.len() - at);
            let line = &text.bytes[at..at + len];
            let tabs = if document.has_tabs { line.iter().take_while(|&&byte| byte == b'\t').count() } else { 0 };
            if line[tabs..] == document.end {
                break (at, at + len);
            }
            at += len + 1;
        };
        self.enclose(text, from..end);
        let body = text.part(from..end);
        let mut at = 0;
        while let Some(byte) = body.get(at).filter(|_| document.is_expanded) {
            at = match byte {
                b'\\' => at + 2,
                b'`' | b'$' => self.substitution(&body, at, depth).unwrap_or(at + 1),
                _ => at + 1,
            };
        }
        self.again(body, kind, depth);
        self.mark(text, end..next, SEPARATES);
        next
    }

    /// Reads a word, which may be an assignment. Returns it without its quotes, and the place behind it.
    fn word(
        &mut self,
        text: &Letters,
        from: usize,
        closer: Option<u8>,
        may_assign: bool,
        depth: usize,
    ) -> (Letters, usize) {
        let mut word = Letters::default();
        let mut at = from;
        let mut braces = 0usize;
        while let Some(byte) = text.get(at) {
            let next = text.get(at + 1);
            match byte {
                b'\'' => at = self.string(text, at, &mut word, |_, at| (at, at + 1)),
                b'$' if next == Some(b'\'') => {
                    at = self.string(text, at + 1, &mut word, |text, at| {
                        let escape = usize::from(text.get(at) == Some(b'\\'));
                        (at + escape, at + escape + 1)
                    });
                }
                b'"' => at = self.expanded_string(text, at, &mut word, depth),
                b'\\' => {
                    if next != Some(b'\n') {
                        word.push(text, at + 1..at + 2);
                    }
                    at += 2;
                }
                b'`' if closer == Some(b'`') => break,
                b'`' | b'$' if self.take_substitution(text, &mut at, &mut word, depth) => {}
                b'[' if at > from && may_assign && is_name(&text.bytes[from..at]) => {
                    // `NAME[…]=`, in which `<<` is a shift.
                    let end = self.bracket_end(text, at).unwrap_or(at + 1);
                    word.push(text, at..end);
                    self.arithmetic(text, at..end, depth);
                    at = end;
                }
                b'$' if next == Some(b'[') => {
                    let end = self.bracket_end(text, at + 1).unwrap_or(at + 2);
                    word.push(text, at..end);
                    self.arithmetic(text, at + 1..end, depth);
                    at = end;
                }
                b'$' if next == Some(b'{') => {
                    word.push(text, at..at + 2);
                    (braces, at) = (braces + 1, at + 2);
                }
                b'}' if braces > 0 => {
                    word.push(text, at..at + 1);
                    (braces, at) = (braces - 1, at + 1);
                }
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>' if braces == 0 => break,
                _ => {
                    word.push(text, at..at + 1);
                    at += 1;
                }
            }
        }
        (word, at.min(text.bytes.len()))
    }

    /// Reads a string in single quotes. `next` gives the place of the byte that is meant, and of the one behind it.
    fn string(
        &mut self,
        text: &Letters,
        open: usize,
        word: &mut Letters,
        next: fn(&Letters, usize) -> (usize, usize),
    ) -> usize {
        let mut at = open + 1;
        while at < text.bytes.len() && text.get(at) != Some(b'\'') {
            let (meant, behind) = next(text, at);
            word.push(text, meant..meant + 1);
            at = behind;
        }
        self.end_string(text, open, at)
    }

    fn expanded_string(&mut self, text: &Letters, open: usize, word: &mut Letters, depth: usize) -> usize {
        let (mut at, mut is_deep) = (open + 1, false);
        while let Some(byte) = text.get(at).filter(|&byte| byte != b'"') {
            let is_escaped = matches!(text.get(at + 1), Some(b'$' | b'`' | b'"' | b'\\' | b'\n'));
            match byte {
                b'\\' if is_escaped => {
                    word.push(text, at + 1..at + 2);
                    at += 2;
                }
                b'`' | b'$' if self.take_substitution(text, &mut at, word, depth) => {}
                _ => {
                    is_deep |= byte == b'`' || (byte == b'$' && text.get(at + 1) == Some(b'('));
                    word.push(text, at..at + 1);
                    at += 1;
                }
            }
        }
        if is_deep {
            self.close_everything(&text.part(open + 1..at));
        }
        self.end_string(text, open, at)
    }

    fn end_string(&mut self, text: &Letters, open: usize, close: usize) -> usize {
        let close = close.min(text.bytes.len());
        self.enclose(text, open + 1..close);
        self.mark(text, open..open + 1, QUOTES);
        self.mark(text, close..close + 1, ENDS_PART | QUOTES);
        (close + 1).min(text.bytes.len())
    }

    /// Reads the commands of a substitution, if one begins here. Returns the place behind it.
    fn substitution(&mut self, text: &Letters, at: usize, depth: usize) -> Option<usize> {
        if text.get(at) == Some(b'$')
            && text.get(at + 1) == Some(b'(')
            && text.get(at + 2) == Some(b'(')
            && let Some(end) = self.pair_end(text, at + 2)
        {
            self.arithmetic(text, at + 1..end, depth);
            return Some(end);
        }
        let (start, closer) = match (text.get(at), text.get(at + 1)) {
            (Some(b'`'), _) => (at + 1, b'`'),
            (Some(b'$'), Some(b'(')) => (at + 2, b')'),
            _ => return None,
        };
        if depth >= DEPTH_MAX {
            // The commands in it are read where they stand, as the next ones of this script.
            return None;
        }
        self.mark(text, at..start, SEPARATES | ENDS_COMMAND);
        let end = self.script(text, start, Some(closer), depth + 1);
        self.mark(text, end..end + 1, SEPARATES | ENDS_COMMAND);
        Some((end + 1).min(text.bytes.len()))
    }

    /// The place behind `(( … ))`, whose second parenthesis is here; `None` if the first one opens a subshell.
    fn pair_end(&mut self, text: &Letters, second: usize) -> Option<usize> {
        let inner = self.closed(text, second, b'(', b')')?;
        (text.get(inner) == Some(b')')).then_some(inner + 1)
    }

    /// The place behind the bracket that closes the one here.
    fn bracket_end(&mut self, text: &Letters, open: usize) -> Option<usize> {
        self.closed(text, open, b'[', b']')
    }

    /// The place behind what closes the sign here, as the shell finds it before it knows what is within.
    fn closed(&mut self, text: &Letters, open: usize, opener: u8, closer: u8) -> Option<usize> {
        let mut at = open;
        let mut level = 0;
        let mut quote = None;
        let end = loop {
            let byte = text.get(at).filter(|_| at - open <= self.room);
            let Some(byte) = byte else { break None };
            at += 1;
            match (quote, byte) {
                (None | Some(b'"'), b'\\') => at += 1,
                (Some(last), _) => quote = Some(last).filter(|&last| last != byte),
                (None, b'\'' | b'"') => quote = Some(byte),
                (None, _) if byte == opener => level += 1,
                (None, _) if byte == closer => level -= 1,
                _ => {}
            }
            if level == 0 {
                break Some(at);
            }
        };
        self.room -= (at - open).min(self.room);
        end
    }

    /// Reads an expression, in which only substitutions are commands.
    fn arithmetic(&mut self, text: &Letters, range: Range<usize>, depth: usize) {
        let inner = text.part(range);
        let mut at = 0;
        while let Some(byte) = inner.get(at) {
            at = match byte {
                b'\\' => at + 2,
                b'`' | b'$' if depth < DEPTH_MAX => self.substitution(&inner, at, depth + 1).unwrap_or(at + 1),
                _ => at + 1,
            };
        }
        self.close_everything(&inner);
    }

    /// Adds a substitution that begins here to a word, and goes behind it. Returns whether there is one.
    fn take_substitution(&mut self, text: &Letters, at: &mut usize, word: &mut Letters, depth: usize) -> bool {
        let end = self.substitution(text, *at, depth);
        if let Some(end) = end {
            word.push(text, *at..end);
            *at = end;
        }
        end.is_some()
    }

    /// Notes what the words of a simple command are.
    fn end_command(&mut self, words: &mut Vec<Word>, depth: usize) {
        let words = std::mem::take(words);
        for nth in program_words(&words) {
            self.grammar.marks[words[nth].span.clone()].iter_mut().for_each(|marks| *marks |= PROGRAM);
            self.run.extend(variable(words[nth].bytes()).map(<[u8]>::to_vec));
        }
        for AssignedWord { nth, name, value } in assignments(&words) {
            let letters = &words[nth].letters;
            self.mark(letters, 0..value, NAMES);
            let value = letters.part(value..letters.bytes.len());
            self.assigned.push((letters.bytes[..name].to_vec(), value));
        }
        let runs_words = words.iter().any(takes_commands);
        let has_shell = runs_words || words.iter().any(is_shell);
        let mut is_behind_option = runs_words;
        for word in words {
            let kind = if has_shell && is_behind_option { WordKind::Command } else { WordKind::Data };
            is_behind_option |= is_command_option(&word.letters.bytes);
            self.again(word.letters, kind, depth);
        }
    }

    /// Reads a word or a document once more, for what is in it.
    fn again(&mut self, text: Letters, kind: WordKind, depth: usize) {
        let is_simple = |byte: &u8| !matches!(byte, b'\'' | b'"' | b'`');
        let is_separated = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b';' | b'&' | b'|' | b'(' | b'<');
        let has_parts = kind == WordKind::Command && text.bytes.iter().any(is_separated);
        if text.bytes.iter().all(is_simple) && !has_parts {
            return;
        }
        let Some(room) = self.room.checked_sub(text.bytes.len()).filter(|_| depth < DEPTH_MAX) else {
            return self.close_everything(&text);
        };
        self.room = room;
        match kind {
            WordKind::Data => self.data(&text),
            WordKind::Command => {
                self.script(&text, 0, None, depth + 1);
                self.grammar.scripts.push(text);
            }
        }
    }

    /// Takes each quote for the end of a string.
    fn close_everything(&mut self, text: &Letters) {
        for at in 0..text.bytes.len() {
            match text.bytes[at] {
                b'\'' | b'"' | b'`' => self.mark(text, at..at + 1, ENDS_STRING | SEPARATES),
                byte if byte.is_ascii_whitespace() || b";&|()<>".contains(&byte) => {
                    self.mark(text, at..at + 1, SEPARATES);
                }
                _ => {}
            }
        }
    }

    /// Finds the strings in a text of any language.
    fn data(&mut self, text: &Letters) {
        let mut open: Option<(u8, usize)> = None;
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match (open, byte) {
                (_, b'\\') => at += 1,
                (Some((b'\'' | b'"', _)), b'\n') => open = None,
                (Some((quote, start)), _) if quote == byte => {
                    self.enclose(text, start + 1..at);
                    self.mark(text, at..at + 1, ENDS_STRING);
                    open = None;
                }
                (None, b'"' | b'`') => open = Some((byte, at)),
                (None, b'\'') if !is_apostrophe(&text.bytes[..at]) => open = Some((byte, at)),
                _ => {}
            }
            at += 1;
        }
    }
}

/// Returns true if a single quote behind this text is part of a word: `don't`, but not `b'…'`.
fn is_apostrophe(before: &[u8]) -> bool {
    match *before {
        [.., earlier, b'b' | b'B' | b'r' | b'R' | b'u' | b'U' | b'f' | b'F'] => earlier.is_ascii_alphanumeric(),
        [.., last] => last.is_ascii_alphanumeric(),
        [] => false,
    }
}

/// Returns true if the word before a redirection is the descriptor that is redirected.
fn is_descriptor(word: &Letters, text: &Letters, at: usize) -> bool {
    let is_adjacent = at > 0 && word.places.last() == text.places.get(at - 1);
    is_adjacent && word.bytes.iter().all(u8::is_ascii_digit)
}
