//! Keys by name, for `rexec send` and for `write` of `rexec mcp`.

/// The names, for a caller that gave an unknown one.
pub const NAMES: &str = "ctrl-c and the like, enter, tab, space, escape, backspace, up, down, left, right, home, end, page-up, page-down, delete";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The bytes that a terminal sends for it.
    pub text: &'static str,
    /// Its effect without a terminal.
    pub instead: Instead,
}

/// The effect of a key on a run without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// Its bytes are written.
    Text,
    /// The run gets this signal.
    Signal(&'static str),
    /// Its standard input ends.
    Eof,
}

const CONTROLS: [&str; 26] = [
    "\x01", "\x02", "\x03", "\x04", "\x05", "\x06", "\x07", "\x08", "\x09", "\x0a", "\x0b", "\x0c", "\x0d", "\x0e",
    "\x0f", "\x10", "\x11", "\x12", "\x13", "\x14", "\x15", "\x16", "\x17", "\x18", "\x19", "\x1a",
];

const NAMED: [(&str, &str); 16] = [
    ("enter", "\r"),
    ("return", "\r"),
    ("tab", "\t"),
    ("space", " "),
    ("escape", "\x1b"),
    ("esc", "\x1b"),
    ("backspace", "\x7f"),
    ("up", "\x1b[A"),
    ("down", "\x1b[B"),
    ("right", "\x1b[C"),
    ("left", "\x1b[D"),
    ("home", "\x1b[H"),
    ("end", "\x1b[F"),
    ("page-up", "\x1b[5~"),
    ("page-down", "\x1b[6~"),
    ("delete", "\x1b[3~"),
];

impl Key {
    /// The key of this name: `ctrl-c`, also written `^C`, `C-c` or `ctrl+c`; or one of [`NAMES`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace(['+', '_', ' '], "-");
        if let Some((_, text)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Some(Self { text, instead: Instead::Text });
        }
        let letter = ["ctrl-", "control-", "c-", "^"].into_iter().find_map(|prefix| name.strip_prefix(prefix))?;
        if letter == "\\" {
            return Some(Self { text: "\x1c", instead: Instead::Signal("QUIT") });
        }
        let &[letter @ b'a'..=b'z'] = letter.as_bytes() else { return None };
        let instead = match letter {
            b'c' => Instead::Signal("INT"),
            b'z' => Instead::Signal("TSTP"),
            b'd' => Instead::Eof,
            _ => Instead::Text,
        };
        Some(Self { text: CONTROLS[usize::from(letter - b'a')], instead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_names_that_people_give_them() {
        let text = |name: &str| Key::named(name).map(|key| key.text);
        for name in ["ctrl-c", "Ctrl+C", "^C", "C-c", "control c"] {
            assert_eq!(text(name), Some("\x03"), "{name}");
        }
        assert_eq!((text("Enter"), text("ctrl-\\"), text("page_up")), (Some("\r"), Some("\x1c"), Some("\x1b[5~")));
        assert_eq!([text("ctrl-"), text("ctrl-cc"), text("ctrl-é"), text("hyper"), text("")], [None; 5]);
        assert_eq!(Key::named("ctrl-d").unwrap().instead, Instead::Eof);
    }
}
