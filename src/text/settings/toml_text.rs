//! The lexical side of TOML 1.0: strings, keys, and where a value ends.

use crate::text::settings::SettingsError;

/// Nested values in a text. A deeper one is refused.
const DEPTH_MAX: usize = 128;

/// What a string of TOML says; `None` if the text is not one.
pub(super) fn decoded(written: &str) -> Option<String> {
    for quotes in ["'''", "\"\"\""] {
        if let Some(inside) = written.strip_prefix(quotes).and_then(|rest| rest.strip_suffix(quotes)) {
            let inside = inside.strip_prefix("\r\n").or_else(|| inside.strip_prefix('\n')).unwrap_or(inside);
            return if quotes == "'''" { Some(inside.to_owned()) } else { unescaped(inside) };
        }
    }
    match written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        Some(inside) => Some(inside.to_owned()),
        None => unescaped(written.strip_prefix('"')?.strip_suffix('"')?),
    }
}

fn unescaped(inside: &str) -> Option<String> {
    let (mut text, mut chars) = (String::new(), inside.chars().peekable());
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let digits = match chars.next()? {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            c @ ('"' | '\\') => c,
            'u' => code(chars.by_ref().take(4))?,
            'U' => code(chars.by_ref().take(8))?,
            c if c.is_ascii_whitespace() => {
                // The end of a line, and the blanks that the next one begins with, do not count.
                while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                continue;
            }
            _ => return None,
        };
        text.push(digits);
    }
    Some(text)
}

fn code(digits: impl Iterator<Item = char>) -> Option<char> {
    char::from_u32(u32::from_str_radix(&digits.collect::<String>(), 16).ok()?)
}

/// A place in a TOML text.
#[derive(Debug)]
pub(super) struct TomlCursor<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl<'t> TomlCursor<'t> {
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn wrong(&self, problem: &str) -> SettingsError {
        SettingsError::at(self.text, self.at, problem)
    }

    pub(super) fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Passes blanks, ends of lines and comments.
    pub(super) fn lines(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
            if !self.rest().starts_with('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    pub(super) fn take(&mut self, mark: &str) -> bool {
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    /// Passes what may stand behind a header or a pair.
    pub(super) fn end_of_line(&mut self) -> Result<(), SettingsError> {
        self.blanks();
        let rest = self.rest();
        if !(rest.is_empty() || rest.starts_with(['#', '\n']) || rest.starts_with("\r\n")) {
            return Err(self.wrong("there is more than one value on the line"));
        }
        self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
        Ok(())
    }

    /// A key with its dots.
    pub(super) fn key(&mut self) -> Result<Vec<String>, SettingsError> {
        let mut parts = Vec::new();
        loop {
            self.blanks();
            let start = self.at;
            if self.rest().starts_with(['"', '\'']) {
                self.string()?;
                parts.push(decoded(&self.text[start..self.at]).ok_or_else(|| self.wrong("a key is not valid"))?);
            } else {
                let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
                let length = self.rest().find(|c| !is_bare(c)).unwrap_or(self.rest().len());
                if length == 0 {
                    return Err(self.wrong("a key is missing or not valid"));
                }
                self.at += length;
                parts.push(self.text[start..self.at].to_owned());
            }
            self.blanks();
            if !self.take(".") {
                return Ok(parts);
            }
        }
    }

    fn string(&mut self) -> Result<(), SettingsError> {
        let start = self.at;
        let no_end = SettingsError::at(self.text, start, "a text has no end");
        let quote = if self.rest().starts_with('"') { "\"" } else { "'" };
        let long = quote.repeat(3);
        let mark = if self.take(&long) { long.as_str() } else { quote };
        self.at = self.at.max(start + mark.len());
        while !self.take(mark) {
            let Some(c) = self.rest().chars().next() else { return Err(no_end) };
            if c == '\n' && mark.len() == 1 {
                return Err(no_end);
            }
            let is_line_end = c == '\n' || self.rest().starts_with("\r\n");
            if c.is_ascii_control() && c != '\t' && !is_line_end {
                return Err(self.wrong("a text has a control character in it"));
            }
            self.at += c.len_utf8();
            if c == '\\' && quote == "\"" {
                self.at += self.rest().chars().next().map_or(0, char::len_utf8);
            }
        }
        // Up to two quotes may stand before the closing ones.
        while mark.len() == 3 && self.at - start < self.text.len() && self.take(quote) {}
        match decoded(&self.text[start..self.at]) {
            Some(_) => Ok(()),
            None => Err(SettingsError::at(self.text, start, "a text is not valid")),
        }
    }

    /// Passes a value that is not an inline table.
    pub(super) fn value(&mut self, depth: usize) -> Result<(), SettingsError> {
        match self.rest().chars().next() {
            _ if depth > DEPTH_MAX => Err(self.wrong("it is nested too deeply")),
            Some('"' | '\'') => self.string(),
            Some('[') => {
                self.at += 1;
                self.lines();
                while !self.take("]") {
                    self.value(depth + 1)?;
                    self.lines();
                    if !self.take(",") && !self.rest().starts_with(']') {
                        return Err(self.wrong("a comma or `]` is missing"));
                    }
                    self.lines();
                }
                Ok(())
            }
            Some('{') => self.table(depth, |_, _, _| {}).map(|_| ()),
            _ => self.word(),
        }
    }

    /// Passes an inline table; `pair` is told each key and where its pair and its value are. Returns whether it is empty.
    pub(super) fn table(
        &mut self,
        depth: usize,
        mut pair: impl FnMut(Vec<String>, usize, std::ops::Range<usize>),
    ) -> Result<bool, SettingsError> {
        self.at += 1;
        self.lines();
        let mut is_empty = true;
        while !self.take("}") {
            let start = self.at;
            let key = self.key()?;
            if !self.take("=") {
                return Err(self.wrong("`=` is missing"));
            }
            self.blanks();
            let from = self.at;
            self.value(depth + 1)?;
            pair(key, start, from..self.at);
            is_empty = false;
            self.lines();
            if !self.take(",") && !self.rest().starts_with('}') {
                return Err(self.wrong("a comma or `}` is missing"));
            }
            self.lines();
        }
        Ok(is_empty)
    }

    /// A number, a time, or `true` or `false`.
    fn word(&mut self) -> Result<(), SettingsError> {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | ':' | '_');
        let length = self.rest().find(|c| !is_inside(c)).unwrap_or(self.rest().len());
        let word = &self.rest()[..length];
        if !["true", "false"].contains(&word) && !is_number(word) && !is_time(word) {
            return Err(self.wrong("a value is missing or not valid"));
        }
        self.at += length;
        // A date and a time may have a blank between them.
        let time = self.rest().strip_prefix(' ').unwrap_or_default();
        if word.len() == 10 && time.len() >= 8 && time.as_bytes()[2] == b':' && time.as_bytes()[0].is_ascii_digit() {
            self.at += 1;
            return self.word();
        }
        Ok(())
    }
}

fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)]
        .into_iter()
        .find_map(|(mark, radix)| Some((word.strip_prefix(mark)?, radix)));
    let is_split_well = |word: &str| word.split('_').all(|part| part.contains(|c: char| c.is_ascii_hexdigit()));
    match radix {
        Some((digits, radix)) => is_split_well(digits) && digits.chars().all(|c| c == '_' || c.is_digit(radix)),
        None if matches!(digits, "inf" | "nan") => true,
        None => is_split_well(digits) && is_json_number(&digits.replace('_', "")),
    }
}

/// Whether it is a date, a time, or both.
fn is_time(word: &str) -> bool {
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c.to_ascii_uppercase() }).collect();
    let time = match shape.strip_prefix("0000-00-00") {
        Some("") => return is_possible(word, true),
        Some(rest) => rest.strip_prefix('T').unwrap_or_default(),
        None => shape.as_str(),
    };
    let Some(rest) = time.strip_prefix("00:00") else { return false };
    let rest = rest.strip_prefix(":00").unwrap_or(rest);
    let zone = rest.strip_prefix('.').map_or(rest, |fraction| fraction.trim_start_matches('0'));
    // Behind a date and a blank, a time may have a zone as well.
    ["", "Z", "+00:00", "-00:00"].contains(&zone) && is_possible(word, time.len() < shape.len())
}

/// Whether there are such a day and such a time. The word has their form.
fn is_possible(word: &str, has_date: bool) -> bool {
    let number = |at: usize| word.get(at..at + 2).and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
    let has_day = || {
        let (year, month) = (number(0) * 100 + number(2), number(5));
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days = match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        (1..=12).contains(&month) && (1..=days).contains(&number(8))
    };
    let time = if has_date { 11 } else { 0 };
    // A minute may have a leap second.
    (!has_date || has_day()) && number(time) < 24 && number(time + 3) < 60 && number(time + 6) <= 60
}

/// Whether a word is a number of JSON.
fn is_json_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let has_zero = digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
    // Rust takes some more.
    digits.starts_with(|c: char| c.is_ascii_digit())
        && !has_zero
        && !digits.ends_with('.')
        && !digits.contains(".e")
        && !digits.contains(".E")
        && word.parse::<f64>().is_ok()
}
