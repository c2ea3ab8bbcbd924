//! Reads a text from the first byte to the last: literal parts, and shell words whose value is certain.
//!
//! Invariant: a word is accepted only if every POSIX shell, bash and zsh read it as the same bytes: without expansion,
//! glob, operator or line continuation.

#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    /// Takes these bytes off the front; `None` if there are others.
    pub(super) fn literal(&mut self, expected: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(expected)?;
        Some(())
    }

    /// Takes a text off the front that differs from this one only in its numbers.
    pub(super) fn like(&mut self, expected: &[u8]) -> Option<()> {
        let mut rest = self.0;
        let mut expected = expected;
        while let Some((&first, more)) = expected.split_first() {
            if first.is_ascii_digit() {
                let length = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let found = Some(length(rest)).filter(|length| *length > 0)?;
                rest = &rest[found..];
                expected = &expected[length(expected)..];
            } else {
                rest = rest.strip_prefix(&[first])?;
                expected = more;
            }
        }
        self.0 = rest;
        Some(())
    }

    /// Takes the first of these texts that is at the front.
    pub(super) fn any_of(&mut self, expected: &[&[u8]]) -> Option<()> {
        expected.iter().find_map(|expected| self.literal(expected))
    }

    /// Takes the bytes before this one, if any.
    pub(super) fn until(&mut self, end: u8) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(memchr::memchr(end, self.0)?)?;
        self.0 = rest;
        Some(taken)
    }

    /// Takes the name of a variable.
    pub(super) fn name(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let (name, rest) = self.0.split_at(length);
        self.0 = rest;
        name.first().filter(|first| !first.is_ascii_digit()).map(|_| name)
    }

    /// Takes one shell word, up to a blank, a line feed, an operator or the end. Returns its value.
    pub(super) fn word(&mut self) -> Option<Vec<u8>> {
        let mut word = Vec::new();
        let mut length = 0;
        while let Some(&byte) = self.0.get(length) {
            length += match byte {
                b'\'' => {
                    let inner = memchr::memchr(b'\'', &self.0[length + 1..])?;
                    word.extend_from_slice(&self.0[length + 1..length + 1 + inner]);
                    inner + 2
                }
                b'"' => 1 + double_quoted(&self.0[length + 1..], &mut word)?,
                b'\\' => {
                    word.push(*self.0.get(length + 1).filter(|escaped| escaped.is_ascii_graphic())?);
                    2
                }
                byte if is_plain(byte) => {
                    word.push(byte);
                    1
                }
                _ => break,
            };
        }
        self.0 = &self.0[length..];
        (length > 0).then_some(word)
    }

    /// Checks that nothing is left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Appends the text before the closing quote. Returns the place after the quote.
fn double_quoted(text: &[u8], word: &mut Vec<u8>) -> Option<usize> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'$' | b'`' => return None,
            b'\\' => match *text.get(at + 1)? {
                b'\n' => return None,
                escaped @ (b'"' | b'\\' | b'$' | b'`') => {
                    word.push(escaped);
                    at += 2;
                }
                _ => {
                    word.push(b'\\');
                    at += 1;
                }
            },
            byte => {
                word.push(byte);
                at += 1;
            }
        }
    }
}

/// Returns true if a byte stands for itself anywhere in a word.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_@%+:,./-=".contains(&byte)
}

/// An argument quoted for a shell.
#[must_use]
pub fn quoted(argument: &[u8]) -> Vec<u8> {
    if !argument.is_empty() && argument.iter().all(|byte| is_plain(*byte)) {
        return argument.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in argument {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

/// Returns true if the text has `at_least` bytes, all of one kind.
pub(super) fn all(text: &[u8], at_least: usize, kind: impl Fn(&u8) -> bool) -> bool {
    text.len() >= at_least && text.iter().all(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_every_shell_reads_the_same() {
        for (text, word, rest) in [
            ("'a b' c", "a b", " c"),
            (r#"'it'"'"'s' x"#, "it's", " x"),
            (r"'it'\''s'", "it's", ""),
            (r#""a \"b\" \$c \x" y"#, r#"a "b" $c \x"#, " y"),
            ("a.b-c/d;e", "a.b-c/d", ";e"),
            (r"a\ b", "a", r"\ b"),
            ("'a\nb'\nc", "a\nb", "\nc"),
            ("''", "", ""),
        ] {
            let mut scan = Rest(text.as_bytes());
            match scan.word() {
                Some(found) => {
                    assert_eq!((String::from_utf8(found).unwrap().as_str(), scan.0), (word, rest.as_bytes()), "{text}");
                }
                None => assert_eq!(text, r"a\ b", "a blank behind a backslash is read in more than one way"),
            }
        }
        for text in
            ["", " a", "$x", "\"$x\"", "\"`x`\"", "\"$(x)\"", "'open", "\"open", "~", "*", "\\\n", "\"\\\na\"", "{a,b}"]
        {
            assert_eq!(Rest(text.as_bytes()).word(), None, "{text:?}");
        }
    }

    #[test]
    fn quoted_arguments_are_words_again() {
        for argument in ["", "a", "a b", "it's", "$x", "a\nb", "\\", "größe"] {
            let quoted = quoted(argument.as_bytes());
            let mut scan = Rest(&quoted);
            assert_eq!(scan.word().as_deref(), Some(argument.as_bytes()));
            assert!(scan.end().is_some());
        }
    }
}
