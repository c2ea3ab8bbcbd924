//! The fields of a record's line, without parsing more than asked for: a long output is skipped at the speed of a
//! search for its end.
//!
//! Invariant: only lines in the form in which the recorder writes them are read, without white space between the parts
//! and with plain names. Any other line is recognized, and a parser of JSON reads it.

use memchr::memchr;

/// The line is not in the recorder's form. It may be a record all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPlain;

/// A reader of one line's fields, in their order.
#[derive(Debug)]
pub struct LineFields<'l> {
    line: &'l [u8],
    at: usize,
}

impl<'l> LineFields<'l> {
    /// Reads this line, without its newline.
    #[must_use]
    pub fn of(line: &'l [u8]) -> Self {
        Self { line, at: 0 }
    }

    /// The next field: its name, and its value as JSON. `None` behind the last one.
    ///
    /// # Errors
    /// [`NotPlain`].
    #[expect(clippy::type_complexity, reason = "a name and a value")]
    pub fn take_next(&mut self) -> Result<Option<(&'l [u8], &'l [u8])>, NotPlain> {
        match (self.at, self.line.get(self.at)) {
            (0, Some(b'{')) | (1.., Some(b',')) => self.at += 1,
            (1.., Some(b'}')) if self.at + 1 == self.line.len() => return Ok(None),
            _ => return Err(NotPlain),
        }
        let name = self.string()?;
        let name = &name[1..name.len() - 1];
        if self.line.get(self.at) != Some(&b':') || memchr(b'\\', name).is_some() {
            return Err(NotPlain);
        }
        self.at += 1;
        let from = self.at;
        match self.line.get(from) {
            Some(b'"') => drop(self.string()?),
            Some(b'{' | b'[') => self.nested()?,
            _ => self.word()?,
        }
        Ok(Some((name, &self.line[from..self.at])))
    }

    /// Passes over a string; returns it with its quotes.
    fn string(&mut self) -> Result<&'l [u8], NotPlain> {
        let from = self.at;
        if self.line.get(from) != Some(&b'"') {
            return Err(NotPlain);
        }
        let mut end = from + 1;
        loop {
            let rest = self.line.get(end..).ok_or(NotPlain)?;
            let quote = end + memchr(b'"', rest).ok_or(NotPlain)?;
            let escapes = self.line[from + 1..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
            end = quote + 1;
            if escapes % 2 == 0 {
                break;
            }
        }
        self.at = end;
        Ok(&self.line[from..end])
    }

    /// Passes over an object or an array.
    fn nested(&mut self) -> Result<(), NotPlain> {
        let mut depth = 0_u32;
        loop {
            match self.line.get(self.at).ok_or(NotPlain)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Passes over a number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<(), NotPlain> {
        let rest = &self.line[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
        self.at += length;
        if length == 0 { Err(NotPlain) } else { Ok(()) }
    }
}

/// The text of a JSON string. `None` if the value is not one.
#[must_use]
fn text_of(value: &[u8]) -> Option<String> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr(b'\\', inner).is_some() {
        return serde_json::from_slice(value).ok();
    }
    std::str::from_utf8(inner).ok().map(str::to_owned)
}

/// The number in a JSON value. `None` if it is not a whole one that fits.
#[must_use]
pub fn number_of<T: std::str::FromStr>(value: &[u8]) -> Option<T> {
    let is_plain = value.iter().all(u8::is_ascii_digit) && (value.len() == 1 || value.first() != Some(&b'0'));
    std::str::from_utf8(value).ok().filter(|_| is_plain)?.parse().ok()
}

/// A type that a field's value can have.
pub trait PlainValue: Sized {
    /// Reads the value. `None` if it is another type's, or in a form in which the recorder does not write it.
    fn of(value: &[u8]) -> Option<Self>;
}

impl PlainValue for String {
    fn of(value: &[u8]) -> Option<Self> {
        text_of(value)
    }
}

impl PlainValue for bool {
    fn of(value: &[u8]) -> Option<Self> {
        match value {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        }
    }
}

macro_rules! plain_numbers {
    ($($number:ty),+) => {
        $(impl PlainValue for $number {
            fn of(value: &[u8]) -> Option<Self> {
                number_of(value)
            }
        })+
    };
}

plain_numbers!(u8, u32, u64);

impl<T: PlainValue> PlainValue for Option<T> {
    fn of(value: &[u8]) -> Option<Self> {
        if value == b"null" { Some(None) } else { T::of(value).map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(line: &str) -> Result<Vec<(String, String)>, NotPlain> {
        let (mut fields, mut all) = (LineFields::of(line.as_bytes()), Vec::new());
        while let Some((name, value)) = fields.take_next()? {
            all.push((String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(value).into_owned()));
        }
        Ok(all)
    }

    #[test]
    fn fields_are_read_in_their_order() {
        let line = r#"{"v":1,"a":"x\"},\\","b":[{"c":"]"},[]],"d":{},"e":null,"f":-1.5e3}"#;
        let expected = [
            ("v", "1"),
            ("a", r#""x\"},\\""#),
            ("b", r#"[{"c":"]"},[]]"#),
            ("d", "{}"),
            ("e", "null"),
            ("f", "-1.5e3"),
        ];
        assert_eq!(fields(line).unwrap(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_line_in_another_form_is_told_from_these() {
        let plain = r#"{"v":1,"a":"b","c":[1]}"#;
        for end in 0..plain.len() {
            assert_eq!(fields(&plain[..end]), Err(NotPlain), "torn behind byte {end}");
        }
        for line in [r#"{"v": 1}"#, r#"{ "v":1}"#, r#"{"v":1} "#, "{}", r#"{"\u0076":1}"#, r#"{"v":1,}"#, r#"["v"]"#] {
            assert_eq!(fields(line), Err(NotPlain), "{line}");
        }
    }

    #[test]
    fn values_are_what_a_parser_of_json_says() {
        assert_eq!(text_of(br#""a\u00e9\n\/""#).as_deref(), Some("a\u{e9}\n/"));
        assert_eq!(text_of("\"é\"".as_bytes()).as_deref(), Some("é"));
        for value in ["1", "null", "\"\\x\""] {
            assert_eq!(text_of(value.as_bytes()), None, "{value}");
        }
        assert_eq!(
            (number_of::<u8>(b"0"), number_of::<u8>(b"255"), number_of::<u64>(b"7")),
            (Some(0), Some(255), Some(7))
        );
        for value in ["256", "-1", "1.0", "01", "1e2", "\"1\"", "", "+1"] {
            assert_eq!(number_of::<u8>(value.as_bytes()), None, "{value}");
        }
    }
}
