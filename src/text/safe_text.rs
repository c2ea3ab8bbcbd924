//! Text that a person's terminal may show as it is.
//!
//! Invariant: it has no control character, no hidden character and no bar of the host's, whoever chose its parts. Only
//! this program's own words are taken unchanged; they may have line feeds.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::ops::Deref;

use rexec_sh::protocol::notice::Notice;
use rexec_sh::protocol::shown::{escaped, is_plain};

/// Escaped text, or words of this program's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SafeText(Cow<'static, str>);

impl SafeText {
    #[must_use]
    pub const fn fixed(words: &'static str) -> Self {
        Self(Cow::Borrowed(words))
    }

    /// Text from others on one line, with characters that are not plain spelled out.
    #[must_use]
    pub fn escaped(text: &str) -> Self {
        Self(escaped(text).into())
    }
}

impl From<&Notice> for SafeText {
    /// The notice as everybody reads it, on its two lines: each part is escaped where it is rendered.
    fn from(notice: &Notice) -> Self {
        Self(notice.to_string().trim_end().to_owned().into())
    }
}

impl From<&'static str> for SafeText {
    fn from(words: &'static str) -> Self {
        Self::fixed(words)
    }
}

impl From<String> for SafeText {
    fn from(text: String) -> Self {
        if text.chars().all(is_plain) { Self(text.into()) } else { Self::escaped(&text) }
    }
}

impl From<Cow<'static, str>> for SafeText {
    fn from(text: Cow<'static, str>) -> Self {
        text.into_owned().into()
    }
}

impl From<fmt::Arguments<'_>> for SafeText {
    fn from(text: fmt::Arguments<'_>) -> Self {
        text.to_string().into()
    }
}

impl Deref for SafeText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Display for SafeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_words_keep_what_a_terminal_obeys() {
        let name = "y\x1b]0;X\x07\n▌\u{202e}";
        let escaped = "y\\x1b]0;X\\x07\\n⟨258C⟩\\u{202e}";
        assert_eq!(&*SafeText::escaped(name), escaped);
        assert_eq!(&*SafeText::from(name.to_owned()), escaped);
        assert_eq!(&*SafeText::from(format_args!("… #{} {name}", 4)), format!("… #4 {escaped}"));
        assert_eq!(&*SafeText::from("… one row\nand another"), "… one row\nand another");
        assert_eq!(SafeText::from(escaped.to_owned()), SafeText::escaped(escaped), "what is escaped stays as it is");
        let notice = SafeText::from(&Notice::failed(name, name));
        assert_eq!(&*notice, format!("rexec: {escaped}\nhint: {escaped}"));
    }
}
