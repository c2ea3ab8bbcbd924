//! The abilities of standard output: its width, its colours and its characters.

use std::io::{self, IsTerminal};

use crate::sys::{locale, pty};
use crate::text::escape::escape_line;
use crate::text::width::width;

#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Columns of a line. Without a terminal, lines have no end.
    pub(super) columns: usize,
    has_colours: bool,
    has_utf8: bool,
    is_dumb: bool,
}

/// The sign of the key that ends a line.
const ENTER: char = '⏎';

/// The width if no terminal reports one. No text reaches this far.
const UNBOUNDED: usize = 1 << 20;

impl Look {
    /// Reads the look from standard output and the environment.
    pub(super) fn of_output() -> Self {
        let out = io::stdout();
        let size = pty::size(&out).filter(|size| size.cols > 0);
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        Self {
            columns: size.map_or(UNBOUNDED, |size| size.cols.into()),
            has_colours: out.is_terminal() && !is_dumb && !is_set("NO_COLOR"),
            has_utf8: locale::is_utf8(),
            is_dumb,
        }
    }

    /// Returns true if the output has the width of a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.columns != UNBOUNDED
    }

    /// The look in a request to watch.
    pub(super) fn in_json(&self) -> String {
        let is_terminal = self.is_terminal();
        let look = match (is_terminal, self.is_dumb, self.has_utf8) {
            (false, ..) => "text",
            (true, false, true) => "terminal",
            (true, true, true) => "dumb",
            (true, _, false) => "ascii",
        };
        let columns = if is_terminal { self.columns } else { 0 };
        format!(r#""columns":{columns},"look":"{look}","colours":{}"#, self.has_colours)
    }

    /// The text in a colour (SGR parameters), if there are colours.
    pub(super) fn coloured(&self, sgr: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{sgr}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(super) fn dim(&self, text: &str) -> String {
        self.coloured("38;5;244", text)
    }

    /// Success or failure in one character.
    pub(super) fn sign(&self, is_good: bool) -> &'static str {
        match (is_good, self.has_utf8) {
            (true, true) => "✓",
            (false, true) => "✗",
            (true, false) => "ok:",
            (false, false) => "failed:",
        }
    }

    /// The sign for a missing number.
    pub(super) fn dash(&self) -> &'static str {
        if self.has_utf8 { "–" } else { "-" }
    }

    /// The sign for left-out text.
    pub(super) fn ellipsis(&self) -> &'static str {
        if self.has_utf8 { "…" } else { "~" }
    }

    /// The key that ends a line.
    pub(super) fn enter(&self) -> &'static str {
        if self.has_utf8 { "⏎" } else { "<-" }
    }

    /// Text on one line of at most `columns` columns. Characters that the terminal lacks are replaced.
    pub(super) fn cut(&self, text: &str, columns: usize) -> String {
        let line = escape_line(text, columns);
        if self.has_utf8 || line.is_ascii() {
            return line;
        }
        let line: String = line.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
        if line.ends_with('?') && !text.ends_with('?') { line[..line.len() - 1].to_owned() + "~" } else { line }
    }

    /// A command on one line of at most `columns` columns. A line feed in it becomes the sign of the key for it,
    /// because `\n` are two characters of many commands.
    pub(super) fn command(&self, text: &str, columns: usize) -> String {
        let mut line = String::with_capacity(text.len());
        for c in text.trim_end().chars() {
            match c {
                '\n' => line.push_str(self.enter()),
                ENTER => line.push_str("⟨23CE⟩"),
                c => line.push(c),
            }
        }
        self.cut(&line, columns)
    }

    /// As many of these parts as fit one line, and always the first one.
    pub(super) fn fitted(&self, parts: &[String]) -> String {
        let dot = if self.has_utf8 { " · " } else { " - " };
        let mut line = String::new();
        for part in parts {
            let next = if line.is_empty() { part.clone() } else { format!("{line}{dot}{part}") };
            if columns_of(&next) > self.columns && !line.is_empty() {
                // Even a beginning of a text is useful.
                let room = self.columns.saturating_sub(columns_of(&line) + columns_of(dot));
                if room >= PART_COLUMNS_MIN {
                    line = format!("{line}{dot}{}", self.cut(part, room));
                }
                break;
            }
            line = next;
        }
        self.cut(&line, self.columns)
    }
}

/// The columns below which the beginning of a part is left out.
const PART_COLUMNS_MIN: usize = 24;

/// The columns of a line without control characters.
pub(super) fn columns_of(line: &str) -> usize {
    line.chars().map(width).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_parts_fits_and_keeps_what_it_can() {
        let look = |columns, has_utf8| Look { columns, has_colours: false, has_utf8, is_dumb: false };
        let parts = ["nothing runs", "host up 2 h", "last #93 claude: git status --short"].map(str::to_owned);
        assert_eq!(look(200, true).fitted(&parts), "nothing runs · host up 2 h · last #93 claude: git status --short");
        assert_eq!(look(54, true).fitted(&parts), "nothing runs · host up 2 h · last #93 claude: git sta…");
        assert_eq!(look(40, false).fitted(&parts), "nothing runs - host up 2 h");
        assert_eq!(look(8, true).fitted(&parts), "nothing…");
        assert_eq!(look(8, false).cut("häß of it all", 8), "h?? of ~");
        assert_eq!(look(80, true).command("a \\\n b '\\n' ⏎\n", 80), "a \\⏎ b '\\n' ⟨23CE⟩");
        assert_eq!(look(80, false).command("a\nb\tc", 80), "a<-b\\tc");
        assert_eq!(look(80, true).command("a\nbc", 3), "a⏎…");
    }
}
