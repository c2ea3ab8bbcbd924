//! The part of a run's output in a tool's result: the beginning and the end, and the last line for progress.

use crate::front::trimmer::Trimmer;
use crate::limits;
use crate::text::escape::escape_line;

/// Bytes at the end of the output that are searched for the last line. Of a longer line only its end is shown.
const RECENT_BYTES: usize = 512;
/// Columns of the last line in a progress notification. The rest is cut.
const LINE_COLUMNS: usize = 120;

#[derive(Debug)]
pub(super) struct OutputExcerpt {
    trimmer: Trimmer,
    text: Vec<u8>,
    recent: Vec<u8>,
    is_news: bool,
}

impl OutputExcerpt {
    /// An empty excerpt. `handle` is the command that prints the whole output, if it counts the same lines.
    pub(super) fn new(handle: String) -> Self {
        let trimmer = Trimmer::new(limits::MCP_TEXT_BYTES, handle);
        Self { trimmer, text: Vec::new(), recent: Vec::new(), is_news: false }
    }

    pub(super) fn push(&mut self, output: &str) {
        let output = output.as_bytes();
        self.trimmer.push(output, &mut self.text);
        self.recent.extend_from_slice(&output[output.len().saturating_sub(RECENT_BYTES)..]);
        self.recent.drain(..self.recent.len().saturating_sub(RECENT_BYTES));
        self.is_news |= !output.is_empty();
    }

    /// Returns true if output came since the last call of [`OutputExcerpt::take_news`].
    pub(super) fn has_news(&self) -> bool {
        self.is_news
    }

    /// The last line that is not blank, if output came since the last call.
    pub(super) fn take_news(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.is_news) {
            return None;
        }
        let recent = String::from_utf8_lossy(&self.recent);
        let line = recent.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        Some(escape_line(line, LINE_COLUMNS))
    }

    /// The text, which ends with a newline if it is not empty.
    pub(super) fn finish(mut self) -> String {
        self.trimmer.finish(&mut self.text);
        let mut text = String::from_utf8_lossy(&self.text).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_told_once_and_bounded() {
        let mut excerpt = OutputExcerpt::new(String::new());
        assert_eq!(excerpt.take_news(), None);
        excerpt.push("one\ntwo \x1b[1m\n\n");
        assert_eq!(excerpt.take_news().as_deref(), Some("two \\x1b[1m"));
        assert_eq!(excerpt.take_news(), None);
        excerpt.push(&"é".repeat(9_999));
        assert!(excerpt.recent.len() <= RECENT_BYTES);
        assert_eq!(excerpt.take_news().unwrap().chars().count(), LINE_COLUMNS);
        let text = excerpt.finish();
        assert!(text.starts_with("one\ntwo") && text.ends_with("é\n") && text.contains(" left out"), "{text}");
        assert!(text.len() < limits::MCP_TEXT_BYTES + 200);
    }
}
