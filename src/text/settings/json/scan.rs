//! Where the objects and members of a JSON text are. Everything else is checked and skipped.

use std::ops::Range;

use crate::text::settings::SettingsError;

/// Nested values in a text. A deeper one is refused.
const DEPTH_MAX: usize = 128;

/// An object and where its braces are.
#[derive(Debug, Clone)]
pub(super) struct JsonObject {
    pub(super) open: usize,
    pub(super) close: usize,
    pub(super) members: Vec<JsonMember>,
}

#[derive(Debug, Clone)]
pub(super) struct JsonMember {
    pub(super) key: String,
    /// Where the key begins and ends.
    pub(super) start: usize,
    pub(super) key_end: usize,
    pub(super) value: Json,
    /// Where the comma behind it is.
    pub(super) comma: Option<usize>,
}

#[derive(Debug, Clone)]
pub(super) enum Json {
    Object(JsonObject),
    Other(Range<usize>),
}

impl Json {
    pub(super) fn range(&self) -> Range<usize> {
        match self {
            Self::Object(object) => object.open..object.close + 1,
            Self::Other(range) => range.clone(),
        }
    }
}

impl JsonMember {
    /// Where the member ends, with its comma.
    pub(super) fn end(&self) -> usize {
        self.comma.map_or(self.value.range().end, |comma| comma + 1)
    }
}

impl JsonObject {
    /// The member that counts among those of this name.
    pub(super) fn last(&self, key: &str) -> Option<&JsonMember> {
        self.members.iter().rfind(|member| member.key == key)
    }
}

/// The object that a text is. A text of nothing but blanks and comments has none.
pub(super) fn root(text: &str, is_strict: bool) -> Result<Option<JsonObject>, SettingsError> {
    let mut scan = Scan { text, at: 0, is_strict };
    scan.skip()?;
    if scan.at == text.len() {
        return Ok(None);
    }
    let start = scan.at;
    let value = scan.value(0)?;
    scan.skip()?;
    match value {
        _ if scan.at < text.len() => Err(scan.wrong("there is more behind the end of the object")),
        Json::Object(object) => Ok(Some(object)),
        Json::Other(_) => Err(SettingsError::at(text, start, "the settings are not an object")),
    }
}

/// Where the comments on the rest of this line end.
pub(super) fn behind_comments(text: &str, from: usize) -> usize {
    let mut end = from;
    let mut rest = &text[from..];
    loop {
        let comment = rest.trim_start_matches([' ', '\t']);
        let length = match comment {
            line if line.starts_with("//") => line.find('\n').map_or(line, |end| &line[..end]).trim_end().len(),
            block if block.starts_with("/*") => match block.find("*/") {
                Some(close) if !block[..close].contains('\n') => close + 2,
                _ => return end,
            },
            _ => return end,
        };
        end = text.len() - comment.len() + length;
        rest = &text[end..];
    }
}

/// What a string of JSON says; `None` if the text is not one.
pub(in crate::text::settings) fn decoded(written: &str) -> Option<String> {
    let mut chars = written.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut units: Vec<u16> = Vec::new();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?);
                    continue;
                }
                c @ ('"' | '\\' | '/') => c,
                _ => return None,
            },
            c if c < ' ' || c == '"' => return None,
            c => c,
        };
        units.extend(c.encode_utf16(&mut [0; 2]).iter());
    }
    Some(String::from_utf16_lossy(&units))
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    is_strict: bool,
}

impl Scan<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn wrong(&self, problem: &str) -> SettingsError {
        SettingsError::at(self.text, self.at, problem)
    }

    /// Passes blanks and comments.
    fn skip(&mut self) -> Result<(), SettingsError> {
        loop {
            let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blanks;
            let rest = self.rest();
            let length = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").ok_or_else(|| self.wrong("a comment has no end"))? + 2
            } else {
                return Ok(());
            };
            if self.is_strict {
                return Err(self.wrong("a comment is not allowed in this file"));
            }
            self.at += length;
        }
    }

    /// Passes this character if it is the next one.
    fn take(&mut self, c: char) -> bool {
        let is_next = self.rest().starts_with(c);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, depth: usize) -> Result<Json, SettingsError> {
        let start = self.at;
        match self.rest().chars().next() {
            _ if depth > DEPTH_MAX => return Err(self.wrong("it is nested too deeply")),
            Some('{') => return self.object(depth).map(Json::Object),
            Some('[') => {
                self.at += 1;
                self.items(']', |scan| scan.value(depth + 1).map(|_| ()), |_| {})?;
            }
            Some('"') => {
                self.string()?;
            }
            _ => self.word()?,
        }
        Ok(Json::Other(start..self.at))
    }

    /// What is separated by commas up to `close`. `comma` is told where each comma is.
    fn items(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), SettingsError>,
        mut comma: impl FnMut(usize),
    ) -> Result<(), SettingsError> {
        self.skip()?;
        while !self.take(close) {
            if self.at == self.text.len() {
                return Err(self.wrong(&format!("`{close}` is missing")));
            }
            item(self)?;
            self.skip()?;
            let at = self.at;
            let has_comma = self.take(',');
            self.skip()?;
            match has_comma {
                true if self.rest().starts_with(close) && self.is_strict => {
                    return Err(SettingsError::at(self.text, at, "a comma has nothing behind it"));
                }
                true => comma(at),
                false if !self.rest().starts_with(close) => {
                    let problem = format!("a comma or `{close}` is missing");
                    return Err(self.wrong(&problem));
                }
                false => {}
            }
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<JsonObject, SettingsError> {
        let open = self.at;
        self.at += 1;
        let (mut members, mut commas) = (Vec::<JsonMember>::new(), Vec::new());
        self.items(
            '}',
            |scan| {
                members.push(scan.member(depth)?);
                Ok(())
            },
            |at| commas.push(at),
        )?;
        for (member, comma) in members.iter_mut().zip(commas) {
            member.comma = Some(comma);
        }
        Ok(JsonObject { open, close: self.at - 1, members })
    }

    fn member(&mut self, depth: usize) -> Result<JsonMember, SettingsError> {
        let start = self.at;
        if !self.rest().starts_with('"') {
            return Err(self.wrong("a key in double quotes is missing"));
        }
        let key = self.string()?;
        let key_end = self.at;
        self.skip()?;
        if !self.take(':') {
            return Err(self.wrong("a colon is missing"));
        }
        self.skip()?;
        Ok(JsonMember { key, start, key_end, value: self.value(depth + 1)?, comma: None })
    }

    fn string(&mut self) -> Result<String, SettingsError> {
        let (mut is_escaped, start) = (false, self.at);
        let end = self.rest().char_indices().skip(1).find(|(_, c)| {
            let is_end = (*c == '"' && !is_escaped) || *c == '\n';
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        let end = end.filter(|(_, c)| *c == '"').ok_or_else(|| self.wrong("a text has no end"))?.0;
        let key = decoded(&self.rest()[..=end]).ok_or_else(|| self.wrong("a text is not valid"))?;
        self.at = start + end + 1;
        Ok(key)
    }

    /// A number or `true`, `false`, `null`.
    fn word(&mut self) -> Result<(), SettingsError> {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let word = &self.rest()[..self.rest().find(|c| !is_inside(c)).unwrap_or(self.rest().len())];
        if !["true", "false", "null"].contains(&word) && !is_number(word) {
            return Err(self.wrong("a value is missing or not valid"));
        }
        self.at += word.len();
        Ok(())
    }
}

/// Whether a word is a number of JSON.
pub(in crate::text::settings) fn is_number(word: &str) -> bool {
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
