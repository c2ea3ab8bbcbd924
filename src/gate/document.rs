//! A strict subset of TOML: tables, arrays of tables, strings, integers, booleans, arrays of strings, comments.
//!
//! Invariant: a text that is accepted means the same to every reader of TOML. Everything else is refused, with the place
//! and what to write instead.

use std::fmt::{self, Write};

use crate::limits;
use crate::text::hidden::{is_bar, is_hidden};
use crate::text::toml::{TomlCursor, TomlProblem, decoded};

/// A text as its tables, in order. The pairs above the first header are in a table without a name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub tables: Vec<Table>,
}

/// A table, or one of an array of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: Vec<String>,
    /// Its header has `[[` and `]]`.
    pub is_list: bool,
    pub place: TextPlace,
    pub pairs: Vec<Pair>,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    pub key: String,
    pub place: TextPlace,
    pub value: Value,
    pub value_place: TextPlace,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Integer(i64),
    Flag(bool),
    List(Vec<String>),
}

/// As it is written in a file. A terminal may show it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => put_text(text, f),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List(texts) => {
                f.write_char('[')?;
                for (at, text) in texts.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    put_text(text, f)?;
                }
                f.write_char(']')
            }
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

fn put_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            c if c.is_control() || is_hidden(c) || is_bar(c) => write!(f, "\\U{:08X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// A line and a column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextPlace {
    pub line: usize,
    pub column: usize,
}

/// Why a file of rules is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesError {
    pub place: TextPlace,
    pub problem: String,
    /// What to write instead. Empty where nothing would help.
    pub hint: String,
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.place.line, self.place.column, self.problem)
    }
}

impl RulesError {
    pub(super) fn new(place: TextPlace, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { place, problem: problem.into(), hint: hint.into() }
    }
}

impl Document {
    /// The pairs of a table, none if there is no such table.
    #[must_use]
    pub fn pairs(&self, table: &str) -> &[Pair] {
        let found = self.tables.iter().find(|found| !found.is_list && found.name == [table]);
        found.map_or(&[], |table| &table.pairs)
    }

    /// Reads a text.
    pub fn read(bytes: &[u8]) -> Result<Self, RulesError> {
        let start = TextPlace { line: 1, column: 1 };
        if bytes.len() > limits::RULES_FILE_BYTES_MAX {
            return Err(RulesError::new(start, "the file is too long", "1 MiB is the most"));
        }
        let text = std::str::from_utf8(bytes).map_err(|wrong| {
            let valid = String::from_utf8_lossy(&bytes[..wrong.valid_up_to()]);
            RulesError::new(place(&valid, valid.len()), "this is not UTF-8", "save the file as UTF-8")
        })?;
        let is_control = |c: char| (c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r')) || c == '\u{7f}';
        let lone_return = text.match_indices('\r').map(|(at, _)| at).find(|at| !text[at + 1..].starts_with('\n'));
        if let Some(at) = text.find(is_control).into_iter().chain(lone_return).min() {
            let hint = "write \\uXXXX for it, in a text in double quotes";
            return Err(RulesError::new(place(text, at), "a control character stands here", hint));
        }
        Reader { cursor: TomlCursor::new(text), tables: Vec::new() }.read()
    }
}

fn place(text: &str, at: usize) -> TextPlace {
    let line_start = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = 1 + text[..at].bytes().filter(|byte| *byte == b'\n').count();
    TextPlace { line, column: 1 + text[line_start..at].chars().count() }
}

struct Reader<'t> {
    cursor: TomlCursor<'t>,
    tables: Vec<Table>,
}

impl Reader<'_> {
    fn read(mut self) -> Result<Document, RulesError> {
        while self.cursor.next_line() {
            match self.cursor.rest().starts_with('[') {
                true => self.header()?,
                false => self.pair()?,
            }
            if !self.cursor.is_at_line_end() {
                return Err(self.wrong(self.cursor.at, "this is too much on the line", "begin a new line before it"));
            }
        }
        Ok(Document { tables: self.tables })
    }

    fn wrong(&self, at: usize, problem: impl Into<String>, hint: impl Into<String>) -> RulesError {
        RulesError::new(place(self.cursor.text, at), problem, hint)
    }

    fn lexed<T>(&self, read: Result<T, TomlProblem>, hint: &str) -> Result<T, RulesError> {
        read.map_err(|wrong| self.wrong(wrong.at, wrong.problem, hint))
    }

    /// A key, whose parts in quotes are valid strings of one line.
    fn key(&mut self) -> Result<Vec<String>, RulesError> {
        let start = self.cursor.at;
        let key = self.cursor.key();
        let key = self.lexed(key, "a key has letters, digits, - and _")?;
        if self.cursor.text[start..self.cursor.at].contains(['"', '\'']) {
            return Err(self.wrong(start, "a key stands in quotes", "write it without them: letters, digits, - and _"));
        }
        Ok(key)
    }

    fn header(&mut self) -> Result<(), RulesError> {
        let start = self.cursor.at;
        self.cursor.take("[");
        let is_list = self.cursor.take("[");
        let name = self.key()?;
        let end = if is_list { "]]" } else { "]" };
        if !self.cursor.take(end) {
            return Err(self.wrong(self.cursor.at, format!("`{end}` is missing"), "as in [gate] and [[rule]]"));
        }
        // The same array of tables again is its next element.
        let is_next = is_list && self.tables.iter().any(|table| table.is_list && table.name == name);
        let is_taken = |table: &Table| {
            let is_prefix = |list: bool| table.is_list == list && name.starts_with(&table.name);
            let has_key = |pair: &Pair| name.starts_with(&[&table.name[..], std::slice::from_ref(&pair.key)].concat());
            let is_above = is_prefix(true) && !is_next;
            let is_same = table.name == name && !is_next;
            let makes_it = is_list && !is_next && table.name.starts_with(&name);
            is_above || is_same || makes_it || table.pairs.iter().any(has_key) && !is_next
        };
        if self.tables.iter().any(is_taken) {
            let problem = format!("`{}` is there already", name.join("."));
            return Err(self.wrong(start, problem, "write all of its lines below the first one"));
        }
        if self.tables.len() > limits::RULES_MAX {
            return Err(self.wrong(start, "there are too many tables", format!("{} are the most", limits::RULES_MAX)));
        }
        let place = place(self.cursor.text, start);
        self.tables.push(Table { name, is_list, place, pairs: Vec::new() });
        Ok(())
    }

    fn pair(&mut self) -> Result<(), RulesError> {
        let start = self.cursor.at;
        let mut keys = self.key()?;
        if keys.len() > 1 {
            let (last, table) = (keys.pop().unwrap_or_default(), keys.join("."));
            let hint = format!("write `{last} = …` below [{table}]");
            return Err(self.wrong(start, "a key has a dot", hint));
        }
        let key = keys.remove(0);
        if !self.cursor.take("=") {
            return Err(self.wrong(self.cursor.at, "`=` is missing", format!("as in {key} = \"text\"")));
        }
        self.cursor.skip(&[' ', '\t']);
        let text = self.cursor.text;
        let value_place = place(text, self.cursor.at);
        let value = self.value()?;
        if self.tables.is_empty() {
            self.tables.push(Table { name: Vec::new(), is_list: false, place: place(text, start), pairs: Vec::new() });
        }
        let (table, others) = match self.tables.split_last_mut() {
            Some(split) => split,
            None => return Ok(()),
        };
        let path = [&table.name[..], std::slice::from_ref(&key)].concat();
        let is_table = !table.is_list && others.iter().any(|other| other.name.starts_with(&path));
        if is_table || table.pairs.iter().any(|pair| pair.key == key) {
            let problem = format!("`{key}` is there already");
            return Err(RulesError::new(place(text, start), problem, "keep one of the two"));
        }
        if table.pairs.len() == limits::RULE_KEYS_MAX {
            return Err(RulesError::new(place(text, start), "there are too many lines in this table", ""));
        }
        table.pairs.push(Pair { key, place: place(text, start), value, value_place });
        Ok(())
    }

    fn value(&mut self) -> Result<Value, RulesError> {
        let at = self.cursor.at;
        let rest = self.cursor.rest();
        if rest.starts_with(['"', '\'']) {
            return Ok(Value::Text(self.string()?));
        }
        if rest.starts_with('[') {
            return self.list();
        }
        if rest.starts_with('{') {
            return Err(self.wrong(at, "a table stands within a line", "write its pairs below a [header] of its own"));
        }
        let word = &rest[..rest.find(['\n', '\r', '#', ' ', '\t', ',']).unwrap_or(rest.len())];
        self.cursor.at += word.len();
        let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
        let is_integer =
            digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
        match word {
            "true" => Ok(Value::Flag(true)),
            "false" => Ok(Value::Flag(false)),
            "" => Err(self.wrong(at, "a value is missing", "as in \"text\", 3, true or [\"a\", \"b\"]")),
            _ if is_integer && !digits.is_empty() => match word.parse() {
                Ok(number) => Ok(Value::Integer(number)),
                Err(_) => Err(self.wrong(at, "this number is too large", "64 bits are the most")),
            },
            _ if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                let hint = format!("write a whole number in digits, or \"{word}\"");
                Err(self.wrong(at, "no numbers but whole ones, and no times, are read", hint))
            }
            _ => Err(self.wrong(at, "a text stands without quotes", format!("write \"{word}\""))),
        }
    }

    fn string(&mut self) -> Result<String, RulesError> {
        let at = self.cursor.at;
        if self.cursor.rest().starts_with("\"\"\"") || self.cursor.rest().starts_with("'''") {
            return Err(self.wrong(at, "a text has several lines", "write it on one line, with \\n for a line break"));
        }
        let passed = self.cursor.string();
        self.lexed(passed, "close the quotes on the same line")?;
        let hint = "write \\\\ for a backslash, or 'text' in single quotes";
        decoded(&self.cursor.text[at..self.cursor.at])
            .ok_or_else(|| self.wrong(at, "a backslash in this text means nothing", hint))
    }

    fn list(&mut self) -> Result<Value, RulesError> {
        let start = self.cursor.at;
        self.cursor.take("[");
        let mut list = Vec::new();
        loop {
            if !self.cursor.next_line() {
                return Err(self.wrong(start, "a bracket is not closed", "as in [\"a\", \"b\"]"));
            }
            if self.cursor.take("]") {
                return Ok(Value::List(list));
            }
            if !self.cursor.rest().starts_with(['"', '\'']) {
                return Err(self.wrong(
                    self.cursor.at,
                    "an array has something else than texts",
                    "as in [\"a\", \"b\"]",
                ));
            }
            list.push(self.string()?);
            self.cursor.next_line();
            if !self.cursor.take(",") && !self.cursor.rest().starts_with(']') {
                return Err(self.wrong(self.cursor.at, "a comma is missing", "as in [\"a\", \"b\"]"));
            }
        }
    }
}
