//! The lexer of TOML: blanks, comments, keys and strings. The editor of foreign settings and the reader of rules share it.

/// A place in a TOML text.
#[derive(Debug)]
pub struct TomlCursor<'t> {
    pub text: &'t str,
    pub at: usize,
}

/// What is wrong at a place of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TomlProblem {
    pub at: usize,
    pub problem: &'static str,
}

impl<'t> TomlCursor<'t> {
    /// The beginning of a text, behind its byte order mark.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let mut cursor = Self { text, at: 0 };
        cursor.take("\u{feff}");
        cursor
    }

    #[must_use]
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    #[must_use]
    pub fn wrong(&self, problem: &'static str) -> TomlProblem {
        TomlProblem { at: self.at, problem }
    }

    pub fn take(&mut self, mark: &str) -> bool {
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    pub fn skip(&mut self, blanks: &[char]) {
        self.at += self.rest().len() - self.rest().trim_start_matches(blanks).len();
    }

    /// Goes behind the end of this line.
    pub fn skip_line(&mut self) {
        self.at += self.rest().find('\n').map_or(self.rest().len(), |end| end + 1);
    }

    /// Goes to the next text that is no blank, no line break and no comment. Returns false at the end of the text.
    pub fn next_line(&mut self) -> bool {
        loop {
            self.skip(&[' ', '\t', '\r', '\n']);
            if !self.rest().starts_with('#') {
                return !self.rest().is_empty();
            }
            self.skip_line();
        }
    }

    pub fn is_at_line_end(&mut self) -> bool {
        self.skip(&[' ', '\t', '\r']);
        self.rest().is_empty() || self.rest().starts_with(['\n', '#'])
    }

    /// A key with its dots.
    pub fn key(&mut self) -> Result<Vec<String>, TomlProblem> {
        let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let mut parts = Vec::new();
        loop {
            self.skip(&[' ', '\t']);
            let start = self.at;
            match self.rest().starts_with(['"', '\'']) {
                true => self.string()?,
                false => self.at += self.rest().find(|c| !is_bare(c)).unwrap_or(self.rest().len()),
            }
            if self.at == start {
                return Err(self.wrong("a key is missing or not valid"));
            }
            let written = &self.text[start..self.at];
            parts.push(decoded(written).unwrap_or_else(|| written.to_owned()));
            self.skip(&[' ', '\t']);
            if !self.take(".") {
                return Ok(parts);
            }
        }
    }

    /// Passes a string, also one of several lines.
    pub fn string(&mut self) -> Result<(), TomlProblem> {
        let no_end = self.wrong("a text has no end");
        let quote = &self.rest()[..1];
        let long = quote.repeat(3);
        let mark = if self.rest().starts_with(&long) { &long } else { quote };
        self.take(mark);
        while !self.take(mark) {
            match self.rest().chars().next() {
                None => return Err(no_end),
                Some('\n') if mark.len() == 1 => return Err(no_end),
                Some('\\') if quote == "\"" => {
                    self.at += 1;
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                }
                Some(c) => self.at += c.len_utf8(),
            }
        }
        // Up to two quotes may stand before the closing ones.
        while mark.len() == 3 && self.take(quote) {}
        Ok(())
    }
}

/// The text of a string that stands on one line, or `None` if it is not valid.
#[must_use]
pub fn decoded(written: &str) -> Option<String> {
    let is_control = |c: char| c.is_control() && c != '\t' && !('\u{80}'..='\u{9f}').contains(&c);
    if written.contains(is_control) {
        return None;
    }
    if let Some(text) = written.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(text.to_owned()).filter(|text| !text.contains('\''));
    }
    let mut rest = written.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::new();
    while let Some(at) = rest.find(['\\', '"']) {
        text.push_str(&rest[..at]);
        let escape = rest[at..].strip_prefix('\\')?.chars().next()?;
        rest = &rest[at + 1 + escape.len_utf8()..];
        let digits = match escape {
            'b' => Err('\u{8}'),
            't' => Err('\t'),
            'n' => Err('\n'),
            'f' => Err('\u{c}'),
            'r' => Err('\r'),
            '"' | '\\' => Err(escape),
            'u' => Ok(4),
            'U' => Ok(8),
            _ => return None,
        };
        text.push(match digits {
            Err(character) => character,
            Ok(count) => {
                let number = rest.get(..count).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
                rest = &rest[count..];
                char::from_u32(u32::from_str_radix(number, 16).ok()?)?
            }
        });
    }
    text.push_str(rest);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_as_toml_says() {
        let decode = |written| decoded(written);
        assert_eq!(decode(r#""a\t\"\\\u00e4\U0001F600é""#).as_deref(), Some("a\t\"\\ä😀é"));
        assert_eq!(decode(r"'a\t'").as_deref(), Some(r"a\t"));
        for wrong in
            ["", "\"", "a", r#""\x""#, r#""\ud800""#, r#""\u12""#, "\"\"\"a\"\"\"", "'''a'''", "\"\u{1}\"", r#""a\""#]
        {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
